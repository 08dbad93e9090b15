/* test_models.c - small tokenizers of many kinds against stored ids, offsets and texts of Hugging
 * Face tokenizers; text streams; files that lie; words that are long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/formats/json.h"
#include "base/os/clock.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "text/regex/known_regex.h"
#include "text/tokenizer.h"
#include "text/trie.h"

typedef struct opened {
    pith__arena arena;
    pith_tokenizer *tokenizer;
    pith_tokens tokens;
    pith_error err;
} opened;

static void init(opened *o) {
    *o = (opened){ .err = PITH_ERROR_INIT, .tokens = PITH_TOKENS_INIT };
    pith__arena_init(&o->arena, &pith__allocator_default);
}

static pith_status open_json(opened *o, pith_str json) {
    init(o);
    return pith__tokenizer_load_bytes(&o->tokenizer, json, NULL, &o->arena, &o->err);
}

static void open_path(opened *o, const char *path) {
    init(o);
    if (pith__tokenizer_load(&o->tokenizer, path, NULL, &o->arena, &o->err))
        fail_msg("%s: %s", path, o->err.message);
}

static void close_opened(opened *o) {
    pith_tokens_free(&o->tokens);
    if (o->tokenizer) pith__tokenizer_unload(o->tokenizer);
    pith__arena_free(&o->arena);
}

static pith_status encode(opened *o, pith_str text) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    return pith_tokenize(&o->tokens, o->tokenizer, text, NULL, &options, &o->err);
}

/* The stream gives the same text, in pieces of whole characters. */
static void check_stream(opened *o, pith_str wanted) {
    pith_text_stream *stream;
    char *all = malloc(wanted.size + 64);
    size_t size = 0;
    assert_int_equal(pith_text_stream_create(&stream, o->tokenizer, 0, &o->err), PITH_OK);
    for (size_t i = 0; i <= o->tokens.count; i++) {
        pith_str part;
        if (i < o->tokens.count)
            assert_int_equal(pith_text_stream_push(stream, &part, o->tokens.ids[i], &o->err),
                             PITH_OK);
        else
            assert_int_equal(pith_text_stream_finish(stream, &part, &o->err), PITH_OK);
        assert_int_equal(pith__utf8_valid_prefix(part.data, part.size), part.size);
        assert_true(size + part.size <= wanted.size);
        memcpy(all + size, part.data, part.size);
        size += part.size;
    }
    assert_int_equal(size, wanted.size);
    assert_memory_equal(all, wanted.data, size);
    pith_text_stream_destroy(stream);
    free(all);
}

static void check_decoded(opened *o, pith_str wanted, int skip, const char *name) {
    char *text;
    size_t size;
    assert_int_equal(pith_detokenize(&text, &size, o->tokenizer, o->tokens.ids, o->tokens.count,
                                     skip, NULL, &o->err),
                     PITH_OK);
    if (!pith__str_eq((pith_str){ text, size }, wanted))
        fail_msg("%s: decoded \"%s\" instead of \"" PITH_STR_FMT "\"", name, text,
                 PITH_STR_ARG(wanted));
    pith_text_free(o->tokenizer, text);
}

static void check_line(opened *o, pith__json *j, const char *name) {
    pith_str key, text = { "", 0 };
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        size_t n = 0;
        if (pith__str_is(key, "text")) {
            text = pith__json_string(j);
            assert_int_equal(encode(o, text), PITH_OK);
        } else if (pith__str_is(key, "ids")) {
            for (pith__json_array(j); pith__json_next_item(j); n++) {
                int64_t id = pith__json_int(j);
                if (n >= o->tokens.count || o->tokens.ids[n] != id)
                    fail_msg("%s: token %zu of \"" PITH_STR_FMT "\" is not %lld", name, n,
                             PITH_STR_ARG(text), (long long)id);
            }
            assert_int_equal(n, o->tokens.count);
        } else if (pith__str_is(key, "offsets")) {
            for (pith__json_array(j); pith__json_next_item(j); n++) {
                pith__json_array(j);
                pith__json_next_item(j);
                int64_t begin = pith__json_int(j);
                pith__json_next_item(j);
                int64_t end = pith__json_int(j);
                pith__json_next_item(j);
                if (o->tokens.begin[n] != begin || o->tokens.end[n] != end)
                    fail_msg("%s: offsets of token %zu of \"" PITH_STR_FMT
                             "\": %u to %u instead of %lld to %lld",
                             name, n, PITH_STR_ARG(text), o->tokens.begin[n], o->tokens.end[n],
                             (long long)begin, (long long)end);
            }
        } else {
            pith_str wanted = pith__json_string(j);
            bool skip = pith__str_is(key, "skipped");
            check_decoded(o, wanted, skip, name);
            if (!skip) check_stream(o, wanted);
        }
    }
    assert_false(j->failed);
}

static void check_lines(opened *o, const char *path, const char *name) {
    pith__file lines;
    size_t count = 0;
    assert_int_equal(pith__file_open(&lines, path, false, &pith__allocator_default, &o->err),
                     PITH_OK);
    for (const char *p = (const char *)lines.data, *end = p + lines.size, *stop; p < end;
         p = stop + 1, count++) {
        pith__arena scratch;
        pith__arena_init(&scratch, &pith__allocator_default);
        pith__json *j = pith__arena_alloc(&scratch, sizeof *j);
        stop = memchr(p, '\n', (size_t)(end - p));
        pith__json_init(j, (pith_str){ p, (size_t)(stop - p) }, name, &scratch, &o->err);
        check_line(o, j, name);
        pith__arena_free(&scratch);
    }
    assert_true(count > 30);
    pith__file_close(&lines);
}

static void test_stored_cases(void **state) {
    static const char *const names[] = {
        "albert",
        "bpe_unk",
        "clip",
        "deepseek",
        "gemma",
        "gpt2_prefix_space",
        "llama2",
        "llama2_metaspace",
        "llama3",
        "o200k",
        "roberta",
        "unigram_bytes",
        "split_contiguous_invert",
        "split_merged_with_next",
        "xlm_roberta",
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        pith__file json;
        opened o;
        snprintf(path, sizeof path, "%s/tokenizer_models/%s.json", PITH_TEST_DATA, names[i]);
        assert_int_equal(pith__file_open(&json, path, false, &pith__allocator_default, &o.err),
                         PITH_OK);
        if (open_json(&o, (pith_str){ (const char *)json.data, json.size }))
            fail_msg("%s: %s", names[i], o.err.message);
        pith__file_close(&json);
        snprintf(path, sizeof path, "%s/tokenizer_models/%s.jsonl", PITH_TEST_DATA, names[i]);
        check_lines(&o, path, names[i]);
        close_opened(&o);
    }
}

/* Directories without tokenizer.json. */
static void test_stored_files(void **state) {
    static const char *const names[] = { "llama", "roberta", "tiktoken" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        opened o;
        snprintf(path, sizeof path, "%s/tokenizer_models/%s", PITH_TEST_DATA, names[i]);
        open_path(&o, path);
        snprintf(path, sizeof path, "%s/tokenizer_models/%s/ids.jsonl", PITH_TEST_DATA, names[i]);
        check_lines(&o, path, names[i]);
        close_opened(&o);
    }
}

/* A directory that holds a tokenizer.model and nothing else. */
typedef struct model_file {
    char directory[24], path[48];
    FILE *file;
} model_file;

static void begin_model(model_file *m) {
    strcpy(m->directory, "/tmp/pith-model-XXXXXX");
    assert_non_null(mkdtemp(m->directory));
    snprintf(m->path, sizeof m->path, "%s/tokenizer.model", m->directory);
    m->file = fopen(m->path, "wb");
    assert_non_null(m->file);
}

/* Opens the tokenizer and removes file and directory. */
static void open_model(opened *o, model_file *m) {
    assert_int_equal(fclose(m->file), 0);
    open_path(o, m->directory);
    assert_int_equal(remove(m->path), 0);
    assert_int_equal(rmdir(m->directory), 0);
}

/* The bytes as a line of a file of ranks. */
static void put_rank(FILE *file, const char *bytes, size_t size, int rank) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = 0;
        for (size_t k = i; k < i + 3; k++)
            bits = bits << 8 | (k < size ? (unsigned char)bytes[k] : 0);
        for (size_t k = 0; k < 4; k++)
            fputc(k > size - i ? '=' : digits[bits >> (18 - 6 * k) & 63], file);
    }
    fprintf(file, " %d\n", rank);
}

/* Ranks are known by what they are, and cut by their number: all bytes, " 1234", then fillers. */
static void test_ranks(void **state) {
    static const struct {
        int count;
        size_t tokens; /* of " 1234": one for GPT-2's expression; no number has more than three
                          digits in the others' */
    } cases[] = { { 257, 5 }, { 50256, 1 }, { 50280, 1 }, { 100256, 5 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model_file m;
        opened o;
        begin_model(&m);
        for (int rank = 0; rank < cases[i].count; rank++) {
            char filler[4] = { '#', (char)(rank >> 16), (char)(rank >> 8), (char)rank };
            if (rank < 256)
                put_rank(m.file, &filler[3], 1, rank);
            else if (rank == 256)
                put_rank(m.file, " 1234", 5, rank);
            else
                put_rank(m.file, filler, 4, rank);
        }
        open_model(&o, &m);
        assert_int_equal(encode(&o, PITH_STR(" 1234")), PITH_OK);
        assert_int_equal(o.tokens.count, cases[i].tokens);
        assert_int_equal(o.tokens.ids[0], cases[i].tokens == 1 ? 256 : ' ');
        close_opened(&o);
    }
}

/* Pieces merge by score, which need not follow ids: runs of spaces come last in Llama 2 and
 * Mistral. */
static void test_scores(void **state) {
    static const struct {
        const char *text;
        float score;
    } pieces[] = { { "<unk>", 0 },    { "\u2581\u2581", -1e9f },
                   { "\u2581b", -1 }, { "\u2581", -2 },
                   { "a", -3 },       { "b", -4 } };
    static const int32_t wanted[] = { 3, 4, 3, 2 };
    model_file m;
    opened o;
    (void)state;
    begin_model(&m);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        int size = (int)strlen(pieces[i].text);
        /* A piece: its text, its score, its type. */
        fprintf(m.file, "\x0A%c\x0A%c%s\x15", size + 9, size, pieces[i].text);
        fwrite(&pieces[i].score, 4, 1, m.file);
        fprintf(m.file, "\x18%c", i ? 1 : 2);
    }
    fputs("\x12\x02\x18\x02", m.file);        /* the trainer's: model_type bpe */
    fwrite("\x1A\x02\x20\x00", 1, 4, m.file); /* the normaliser's: remove_extra_whitespaces false */
    open_model(&o, &m);
    assert_int_equal(encode(&o, PITH_STR("a  b")), PITH_OK);
    assert_int_equal(o.tokens.count, sizeof wanted / sizeof wanted[0]);
    assert_memory_equal(o.tokens.ids, wanted, sizeof wanted);
    close_opened(&o);
}

/* An expression has its matcher however its line ends are written; without, PCRE2's older Unicode
 * would show. */
static void test_expressions(void **state) {
    const pith__known_regex *known = pith__known_regex_find(PITH_STR("\\s{2,}|[\\n\\r\\t]"));
    (void)state;
    assert_non_null(known);
    assert_ptr_equal(pith__known_regex_find(PITH_STR("\\s{2,}|[\n\r\\t]")), known);
    assert_null(pith__known_regex_find(PITH_STR("\\s{2,}|[\r\n\\t]")));
    assert_null(pith__known_regex_find(PITH_STR("\\s{2,}|[\n\r\\t")));
    assert_null(pith__known_regex_find(PITH_STR("\\s{2,}|[\n\r\\t]]")));
}

#define BPE(vocab, merges, rest)                                                                   \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{" vocab "},\"merges\":[" merges "]" rest "}}"

static void refused(const char *json, const char *part) {
    opened o;
    pith_status status = open_json(&o, pith__str_of(json));
    if (!status) fail_msg("accepted: %s", json);
    if (!strstr(o.err.message, part)) fail_msg("\"%s\" does not say \"%s\"", o.err.message, part);
    close_opened(&o);
}

static void test_hostile_files(void **state) {
    (void)state;
    refused(BPE("\"a\":0,\"b\":1,\"ab\":2", "\"a b\",\"a b\"", ""), "repeats merges[0]");
    refused(BPE("\"a\":0,\"b\":1", "\"a b\"", ""), "merges[0]: 'a' + 'b' is not in the vocabulary");
    refused(BPE("\"a\":0,\"\":1", "[\"a\",\"\"]", ""), "empty side");
    refused(BPE("\"a\":0", "\"a  a\"", ""), "not two tokens");
    refused(BPE("\"a\":0", "[\"a\"]", ""), "not two tokens");
    refused(BPE("\"a\":4294967295", "", ""),
            "model.vocab.a: id 4294967295 is not between 0 and 16777215");
    refused(BPE("\"a\":-1", "", ""), "model.vocab.a: id -1 is not between 0 and 16777215");
    refused(BPE("\"a\":16777215", "", ""),
            "id 16777215 is far beyond the 1 tokens of the vocabulary");
    refused("{\"model\":{\"type\":\"BPE\",\"merges\":[]}}", "no vocab");
    refused("{\"model\":{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",-1.5]]}}",
            "unk_id 1 is outside");
    refused("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\"]]}}",
            "not a piece and its score");
#define WITH(kind, step)                                                                           \
    "{\"" kind "\":" step ",\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1]]}}"
    refused(WITH("normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"A===\"}"),
            "charsmap");
    refused(WITH("normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"/////w==\"}"),
            "impossible size");
    refused(
        WITH("normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAAD/\"}"),
        "not UTF-8");
#define SPLIT(regex)                                                                               \
    WITH("pre_tokenizer",                                                                          \
         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\"}")
    refused(SPLIT("(a"), "missing closing parenthesis");
    refused(SPLIT("[a&&b]"), "intersection");
    refused(SPLIT("[a[b]]"), "a set in a set");
    refused(SPLIT("a{1,2}+"), "an interval followed by +");
    refused(WITH("pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"ab\"}"),
            "not one character");
}

#define WORDS(rest)                                                                                \
    "{" rest "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,\"[S]\":1}" \
    "}}"
#define TEXT_A "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define TEMPLATE(pieces)                                                                           \
    "{\"type\":\"TemplateProcessing\",\"single\":[" pieces                                         \
    ",{\"SpecialToken\":{\"id\":\"s\",\"type_id\":0}}],\"pair\":[" TEXT_A                          \
    ",{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],\"special_tokens\":{\"s\":{\"ids\":[1]}}}"

static void open_and_encode(opened *o, const char *json, const char *text, pith_status wanted) {
    if (open_json(o, pith__str_of(json))) fail_msg("%s: %s", json, o->err.message);
    assert_int_equal(encode(o, pith__str_of(text)), wanted);
}

/* What docs/tokenizers.md says of files and texts for which the peer has no answer, or none that is
 * wanted, as far as no other test does. */
static void test_choices(void **state) {
    opened o;
    char *text;
    size_t size;
    (void)state;
    refused(WORDS("\"post_processor\":{\"type\":\"Sequence\",\"processors\":[" TEMPLATE(
                TEXT_A) "," TEMPLATE(TEXT_A) "]},"),
            "post_processor");
    open_and_encode(&o, WORDS("\"post_processor\":" TEMPLATE(TEXT_A "," TEXT_A) ","), "a", PITH_OK);
    assert_int_equal(o.tokens.count, 3);
    assert_int_equal(o.tokens.sequence_ids[0], 0);
    assert_int_equal(o.tokens.sequence_ids[1], 0);
    assert_int_equal(o.tokens.sequence_ids[2], -1);
    close_opened(&o);
    open_and_encode(&o, BPE("\"a\":0,\"b\":1,\"ab\":2", "\"a b\"", ",\"dropout\":1.0"), "ab",
                    PITH_OK);
    assert_int_equal(o.tokens.count, 1);
    assert_int_equal(o.tokens.ids[0], 2);
    close_opened(&o);
    open_and_encode(
        &o, WORDS("\"decoder\":{\"type\":\"Strip\",\"content\":\"a\",\"start\":3,\"stop\":0},"),
        "a", PITH_OK);
    assert_int_equal(pith_detokenize(&text, &size, o.tokenizer, o.tokens.ids, 1, 0, NULL, &o.err),
                     PITH_OK);
    assert_int_equal(size, 0);
    pith_text_free(o.tokenizer, text);
    close_opened(&o);
    open_and_encode(&o, WORDS("\"decoder\":{\"type\":\"Unheard\"},"), "a", PITH_OK);
    assert_int_equal(pith_detokenize(&text, &size, o.tokenizer, o.tokens.ids, 1, 0, NULL, &o.err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(o.err.message, "Unheard"));
    close_opened(&o);
    open_and_encode(&o, WORDS("\"version\":\"2.0\","), "a", PITH_OK);
    assert_int_equal(encode(&o, PITH_STR("a\xFF")), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(o.err.message, "invalid UTF-8 at byte 1"));
    close_opened(&o);
    /* A window of one token cannot move on by less than one. */
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.max_length = options.stride = options.overflow = 1;
    open_and_encode(&o, BPE("\"a\":0", "", ""), "aaa", PITH_OK);
    assert_int_equal(pith_tokenize(&o.tokens, o.tokenizer, PITH_STR("aaa"), NULL, &options, &o.err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(o.err.message, "stride 1 does not fit in 1 tokens"));
    options.stride = 0;
    assert_int_equal(pith_tokenize(&o.tokens, o.tokenizer, PITH_STR("aaa"), NULL, &options, &o.err),
                     PITH_OK);
    assert_int_equal(o.tokens.count, 3);
    close_opened(&o);
#define INSERT "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x*\"},\"content\":\"b\"}"
    open_and_encode(&o,
                    "{\"normalizer\":" INSERT
                    ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}",
                    "a", PITH_OK);
    assert_int_equal(o.tokens.ids[0], 1);
    assert_int_equal(o.tokens.begin[0], 0);
    assert_int_equal(o.tokens.end[0], 0);
    close_opened(&o);
    /* U+11F02 came with Unicode 15: a letter or nothing, by the age of PCRE2, but never lost. */
    open_and_encode(
        &o,
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\w+?q\"},\"behavior\":"
        "\"Isolated\"},\"model\":{"
        "\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}}",
        "\U00011F02q", PITH_OK);
    assert_true(o.tokens.count >= 1 && o.tokens.count <= 2);
    assert_int_equal(o.tokens.begin[0], 0);
    assert_int_equal(o.tokens.end[o.tokens.count - 1], 5);
    close_opened(&o);
}

static void test_regex_is_bounded(void **state) {
    (void)state;
    opened o;
    char text[65];
    memset(text, 'a', sizeof text - 1);
    text[64] = 0;
    assert_int_equal(open_json(&o, PITH_STR(SPLIT("(a|aa)+(a|aa)+(a|aa)+[bc]"))), PITH_OK);
    assert_int_equal(encode(&o, pith__str_of("abab")), PITH_OK);
    assert_int_equal(encode(&o, pith__str_of(text)), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(o.err.message, "too many steps"));
    assert_int_equal(encode(&o, pith__str_of("aab")), PITH_OK);
    close_opened(&o);
}

static void test_missing_unknown(void **state) {
    (void)state;
    opened o;
    assert_int_equal(
        open_json(
            &o,
            PITH_STR("{\"model\":{\"type\":\"Unigram\",\"unk_id\":null,\"vocab\":[[\"a\",-1]]}}")),
        0);
    assert_int_equal(encode(&o, PITH_STR("aa")), PITH_OK);
    assert_int_equal(o.tokens.count, 2);
    assert_int_equal(encode(&o, PITH_STR("ab")), PITH_ERR_ARGUMENT);
    close_opened(&o);
    assert_int_equal(open_json(&o, PITH_STR(BPE("\"a\":0", "", ",\"unk_token\":\"<unk>\""))),
                     PITH_OK);
    assert_int_equal(encode(&o, PITH_STR("ab")), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(o.err.message, "'<unk>'"));
    close_opened(&o);
}

/* Equal scores: the path found first stays, which is the one whose last piece begins first. */
static void test_unigram_ties(void **state) {
    (void)state;
    opened o;
    assert_int_equal(
        open_json(
            &o,
            PITH_STR(
                "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",-9],[\"a\",-1],"
                "[\"ab\",-1],[\"b\",-1],[\"bc\",-1],[\"c\",-1],[\"b\",-1.0]]}}")),
        PITH_OK);
    assert_int_equal(encode(&o, PITH_STR("abc")), PITH_OK);
    assert_int_equal(o.tokens.count, 2);
    assert_int_equal(o.tokens.ids[0], 1);
    assert_int_equal(o.tokens.ids[1], 4);
    assert_int_equal(encode(&o, PITH_STR("b")), PITH_OK);
    assert_int_equal(o.tokens.ids[0], 6); /* the later of two equal pieces */
    close_opened(&o);
}

static void test_trie(void **state) {
    (void)state;
    enum { KEYS = 3000 };
    static char text[KEYS][6];
    pith_str keys[KEYS];
    pith__arena arena, scratch;
    pith__trie trie;
    pith_error err;
    unsigned random = 7;
    pith__arena_init(&arena, &pith__allocator_default);
    pith__arena_init(&scratch, &pith__allocator_default);
    for (size_t i = 0; i < KEYS; i++) {
        for (int k = 0; k < 6; k++) {
            random = random * 1664525u + 1013904223u;
            text[i][k] = (char)(random >> 28 ? random >> 26 : 0);
        }
        keys[i] = (pith_str){ text[i], 1 + i % 6 };
    }
    assert_int_equal(pith__trie_build(&trie, keys, KEYS, &arena, &scratch, NULL, &err), PITH_OK);
    for (size_t i = 0; i < KEYS; i++) {
        uint32_t found = pith__trie_get(&trie, keys[i]);
        assert_true(found < KEYS && found >= i && pith__str_eq(keys[found], keys[i]));
        char absent[7];
        memcpy(absent, keys[i].data, keys[i].size);
        absent[keys[i].size] = (char)200;
        assert_int_equal(pith__trie_get(&trie, (pith_str){ absent, keys[i].size + 1 }),
                         PITH_TRIE_NONE);
    }
    pith__arena_free(&scratch);
    pith__arena_free(&arena);
}

/* Nothing but keys is found, whatever the bytes: of all strings of one and two, and of those with a
 * NUL inside. */
static void test_trie_of_bytes(void **state) {
    (void)state;
    static const pith_str keys[] = {
        { "a", 1 }, { ",", 1 }, { ",a", 2 }, { ",b", 2 }, { "\xE2\x80\x8B", 3 }, { "\0", 1 }
    };
    for (size_t count = 5; count <= 6; count++) {
        pith__arena arena, scratch;
        pith__trie trie;
        pith_error err;
        pith__arena_init(&arena, &pith__allocator_default);
        pith__arena_init(&scratch, &pith__allocator_default);
        assert_int_equal(pith__trie_build(&trie, keys, count, &arena, &scratch, NULL, &err),
                         PITH_OK);
        for (unsigned i = 0; i < 3 * 65536; i++) {
            char text[3] = { (char)(i >> 8), (char)i, (char)i };
            pith_str string = { text, 1 + i / 65536 };
            bool is_key = false;
            if (string.size == 3) text[1] = 0;
            for (size_t k = 0; k < count; k++) is_key |= pith__str_eq(string, keys[k]);
            assert_int_equal(pith__trie_get(&trie, string) != PITH_TRIE_NONE, is_key);
        }
        pith__arena_free(&scratch);
        pith__arena_free(&arena);
    }
}

/* One word of a megabyte is done in about the time of as much ordinary text; twice as long takes
 * about twice. */
static void test_long_words(void **state) {
    (void)state;
    static const char *const files[] = { "llama3", "xlm_roberta" }, *const units[] = {
        "a", "e\xCC\x81", "\xF0\x9F\x98\x80", "ab"
    };
    enum { SIZE = 1 << 18 };
    char *text = malloc(2 * SIZE);
    for (size_t f = 0; f < 2; f++) {
        char path[1024];
        pith__file json;
        opened o;
        snprintf(path, sizeof path, "%s/tokenizer_models/%s.json", PITH_TEST_DATA, files[f]);
        assert_int_equal(pith__file_open(&json, path, false, &pith__allocator_default, &o.err),
                         PITH_OK);
        assert_int_equal(open_json(&o, (pith_str){ (const char *)json.data, json.size }), PITH_OK);
        for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
            size_t unit = strlen(units[u]);
            double best[2] = { 1e9, 1e9 };
            for (size_t i = 0; i < 2 * SIZE; i++) text[i] = units[u][i % unit];
            for (int round = 0; round < 5; round++)
                for (int twice = 0; twice < 2; twice++) {
                    size_t size = (size_t)SIZE << twice;
                    uint64_t begin = pith__clock_process_ns();
                    assert_int_equal(encode(&o, (pith_str){ text, size - size % unit }), PITH_OK);
                    double seconds = 1e-9 * (double)(pith__clock_process_ns() - begin);
                    if (seconds < best[twice]) best[twice] = seconds;
                }
            assert_true(best[1] < 3.2 * best[0] + 0.01);
        }
        close_opened(&o);
        pith__file_close(&json);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_cases),
        cmocka_unit_test(test_stored_files),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_hostile_files),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_regex_is_bounded),
        cmocka_unit_test(test_missing_unknown),
        cmocka_unit_test(test_unigram_ties),
        cmocka_unit_test(test_trie),
        cmocka_unit_test(test_trie_of_bytes),
        cmocka_unit_test(test_long_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

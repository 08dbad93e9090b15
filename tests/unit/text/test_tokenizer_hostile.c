/* test_tokenizer_hostile.c - damaged tokenizer files and failing memory: an error or a result,
 * never more. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/arena_fails.h"
#include "base/os/file.h"
#include "base/str.h"
#include "support/failing_alloc.h"
#include "text/models/bpe_merges.h"
#include "text/tokenizer.h"

#define FRAME                                                                                      \
    "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"TemplateProcessing\","  \
    "\"single\":["                                                                                 \
    "{\"SpecialToken\":{\"id\":\"[C]\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}" \
    "}],"                                                                                          \
    "\"pair\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_"    \
    "id\":1}}],"                                                                                   \
    "\"special_tokens\":{\"[C]\":{\"id\":\"[C]\",\"ids\":[1],\"tokens\":[\"[C]\"]}}},"             \
    "{\"type\":\"ByteLevel\",\"trim_offsets\":true}]}"
#define ADDED                                                                                      \
    "\"added_tokens\":[{\"id\":0,\"content\":\"[U]\",\"single_word\":false,\"lstrip\":true,"       \
    "\"rstrip\":true,"                                                                             \
    "\"normalized\":false,\"special\":true},{\"id\":9,\"content\":\"Caf\\u00e9\",\"single_word\":" \
    "true,\"lstrip\":"                                                                             \
    "false,"                                                                                       \
    "\"rstrip\":false,\"normalized\":true,\"special\":false}]"
#define VOCAB                                                                                      \
    "\"vocab\":{\"[U]\":0,\"[C]\":1,\"a\":2,\"##b\":3,\"caf\":4,\"\\u6f22\":5,\"##\\u00e9\":6,\"!" \
    "\":7}"

/* One of every kind of step. */
static const char *const files[] = {
    "{\"version\":\"1.0\",\"truncation\":{\"direction\":\"Right\",\"max_length\":4,\"strategy\":"
    "\"LongestFirst\","
    "\"stride\":1},"
    "\"padding\":{\"strategy\":{\"Fixed\":6},\"direction\":\"Left\",\"pad_to_multiple_of\":4,\"pad_"
    "id\":0,\"pad_type_"
    "id\":0,"
    "\"pad_token\":\"[U]\"}," ADDED
    ",\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
    "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{"
    "\"type\":"
    "\"BertPreTokenizer\"}," FRAME
    ",\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[U]\",\"continuing_subword_prefix\":\"##\","
    "\"max_input_chars_per_word\":20," VOCAB "}}",
    "{" ADDED ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{"
    "\"type\":\"Nmt\"},"
    "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true},{\"type\":\"NFD\"},{\"type\":"
    "\"StripAccents\"},"
    "{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"},{\"type\":\"Lowercase\"}]},"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"UnicodeScripts\"},{"
    "\"type\":"
    "\"WhitespaceSplit\"},"
    "{\"type\":\"Punctuation\",\"behavior\":\"MergedWithNext\"},{\"type\":\"Digits\",\"individual_"
    "digits\":true},"
    "{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"-\"},{\"type\":\"FixedLength\",\"length\":3},"
    "{\"type\":"
    "\"Whitespace\"}]}," FRAME ",\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[U]\"," VOCAB
    "}}",
    /* A model without type, as old versions wrote it. */
    "{" ADDED
    ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x+|(?=y)\"},\"content\":\"a\"},"
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":"
    "\"first\"},"
    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"!\",7],\"cls\":[\"[C]\",1]},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
    "\"String\":\"\\u2581\"},"
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Strip\",\"content\":\" "
    "\",\"start\":1,\"stop\":0},"
    "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},{\"type\":\"BPEDecoder\","
    "\"suffix\":\"</w>\"},"
    "{\"type\":\"Metaspace\",\"replacement\":\"_\"},{\"type\":\"CTC\",\"pad_token\":\"[P]\",\"word_"
    "delimiter_token\":"
    "\"|\",\"cleanup\":true},{\"type\":\"Fuse\"}]},\"model\":{\"unk_token\":\"[U]\",\"merges\":["
    "\"a ##b\"],"
    "\"continuing_subword_prefix\":\"##\",\"vocab\":{\"[U]\":0,\"[C]\":1,\"a\":2,\"##b\":3,\"ab\":"
    "4,\"##a\":5,"
    "\"\\u2581\":6,\"!\":7}}}",
};

static const char *const texts[] = {
    "ab caf\xC3\xA9!", "  [U] x [U]Caf\xC3\xA9 \xE6\xBC\xA2\xCC\x81\xCC\xA3 12-34", "",
    "\xF0\x9F\x98\x80 \xEA\xB0\x80\xE1\x84\x80\xE1\x85\xA1 aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
};

/* Tokenises the texts alone and in pairs; with a sum of what comes out, turns it to text again. */
static pith_status try_tokenizer(const pith_tokenizer *t, uint64_t *sum, pith_error *err) {
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_status status = PITH_OK;
    for (size_t i = 0; !status && i < sizeof texts / sizeof texts[0]; i++) {
        pith_tokenize_options o = PITH_TOKENIZE_OPTIONS_INIT;
        pith_str second = pith__str_of(texts[(i + 1) % 4]);
        char *text = NULL;
        size_t size = 0;
        o.raw = i & 1;
        status = pith_tokenize(&tokens, t, pith__str_of(texts[i]), i & 2 ? &second : NULL, &o, err);
        if (!sum) continue;
        if (!status)
            status = pith_detokenize(&text, &size, t, tokens.ids, tokens.count, 0, NULL, err);
        for (size_t k = 0; !status && k < tokens.count; k++)
            *sum = *sum * 31 + (uint32_t)tokens.ids[k];
        for (size_t k = 0; !status && k < size; k++) *sum = *sum * 31 + (uint8_t)text[k];
        pith_text_free(t, text);
    }
    pith_tokens_free(&tokens);
    return status;
}

/* Opens the file and works with it if it opens. */
static pith_status try_file(pith_str json, const pith_open_options *options, uint64_t *sum,
                            pith_error *err) {
    pith__arena arena;
    pith_tokenizer *t = NULL;
    pith__arena_init(&arena, options ? options->call.allocator : &pith__allocator_default);
    pith_status status = pith__tokenizer_load_bytes(&t, json, options, &arena, err);
    if (!status) status = try_tokenizer(t, sum, err);
    pith__tokenizer_unload(t);
    pith__arena_free(&arena);
    return status;
}

static void test_good(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        pith_error err = PITH_ERROR_INIT;
        if (try_file(pith__str_of(files[i]), NULL, NULL, &err))
            fail_msg("file %zu: %s", i, err.message);
    }
}

static void test_truncated(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        for (size_t n = 0; n < strlen(files[i]); n++) {
            pith_error err = PITH_ERROR_INIT;
            char *copy = malloc(n + 1); /* so that a read behind the end is seen */
            memcpy(copy, files[i], n);
            assert_int_not_equal(try_file((pith_str){ copy, n }, NULL, NULL, &err), PITH_OK);
            assert_int_not_equal(err.message[0], 0);
            free(copy);
        }
    }
}

static void test_bit_flips(void **state) {
    uint64_t random = 0x2545F4914F6CDD1Du;
    (void)state;
    for (int round = 0; round < 10000; round++) {
        pith_error err = PITH_ERROR_INIT;
        const char *file = files[(size_t)round % (sizeof files / sizeof files[0])];
        size_t n = strlen(file);
        char *copy = malloc(n);
        memcpy(copy, file, n);
        for (int flips = 0; flips <= round % 3; flips++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            copy[(random >> 33) % n] ^= (char)(1 << (random >> 61));
        }
        pith_status status = try_file((pith_str){ copy, n }, NULL, NULL, &err);
        assert_int_equal(status, err.code);
        free(copy);
    }
}

static void test_allocation_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        bool done = false;
        for (long n = 1; !done; n++) {
            counter f = { .fail_at = n };
            pith_allocator allocator = { count_alloc, count_free, &f };
            pith_open_options options = PITH_OPEN_OPTIONS_INIT;
            pith_error err = PITH_ERROR_INIT;
            options.call.allocator = &allocator;
            pith_status status = try_file(pith__str_of(files[i]), &options, NULL, &err);
            done = f.calls < n;
            if (done)
                assert_int_equal(status, PITH_OK);
            else if (status)
                assert_int_equal(status, PITH_ERR_MEMORY);
            assert_int_equal(f.live, 0);
        }
    }
}

enum { LONG_TEXT = 8000 };

/* A text that is long enough for byte-pair encoding to make its tables of matches, twice: with and
 * without them. */
static pith_status try_long(const pith_tokenizer *t, uint64_t *sum, pith_error *err) {
    static char text[LONG_TEXT];
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_status status = PITH_OK;
    unsigned random = 1;
    for (size_t i = 0; i < sizeof text; i++) {
        random = random * 1664525u + 1013904223u;
        text[i] = "etaoin shrdlu"[(random >> 16) % 13];
    }
    for (int i = 0; i < 2 && !status; i++)
        status = pith_tokenize(&tokens, t, (pith_str){ text, sizeof text }, NULL, NULL, err);
    for (size_t k = 0; !status && k < tokens.count; k++) *sum = *sum * 31 + (uint32_t)tokens.ids[k];
    pith_tokens_free(&tokens);
    return status;
}

/* A tokenizer's directory or tokenizer.json, opened and used while one request of an arena is
 * refused: that is reported, or the result is the same. */
static void open_refused(const void *path) {
    static uint64_t wanted;
    uint64_t sum = 0;
    counter f = { .freed = arena_fails_freed };
    pith_allocator allocator = { count_alloc, count_free, &f };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_tokenizer *t = NULL;
    options.call.allocator = &allocator;
    pith_status status = pith_tokenizer_open(&t, path, &options, &err);
    if (!status) status = try_tokenizer(t, &sum, &err);
    if (!status) status = try_long(t, &sum, &err);
    pith_tokenizer_close(t);
    if (!arena_fails.fail_at) wanted = sum;
    bool reported = arena_fails.refused && status == PITH_ERR_MEMORY &&
                    err.code == PITH_ERR_MEMORY && err.message[0];
    if (!f.live && (reported || (!status && sum == wanted))) return;
    arena_fails_show();
    fail_msg("%s: request %ld: status %d, '%s', %ld leak", (const char *)path, arena_fails.fail_at,
             (int)status, err.message, f.live);
}

/* Real kinds, whose files are too large for every byte: cuts, flips and failing allocations at
 * steps through the file. */
static void damage_file(const char *path) {
    pith__file file;
    pith_error err = PITH_ERROR_INIT;
    uint64_t random = 0x9E3779B97F4A7C15u;
    assert_int_equal(pith__file_open(&file, path, true, &pith__allocator_default, &err), PITH_OK);
    size_t n = file.size;
    char *copy = malloc(n);
    for (int round = 0; round < 60; round++) {
        err = (pith_error)PITH_ERROR_INIT;
        memcpy(copy, file.data, n);
        char *cut = malloc(n * (size_t)round / 60 + 1);
        memcpy(cut, copy, n * (size_t)round / 60);
        assert_int_not_equal(try_file((pith_str){ cut, n * (size_t)round / 60 }, NULL, NULL, &err),
                             PITH_OK);
        free(cut);
        err = (pith_error)PITH_ERROR_INIT;
        random = random * 6364136223846793005u + 1442695040888963407u;
        /* every second one in the head, where the steps stand */
        copy[(random >> 33) % (round & 1 ? n : n < 2000 ? n : 2000)] ^= (char)(1 << (random >> 61));
        pith_status flipped = try_file((pith_str){ copy, n }, NULL, NULL, &err);
        assert_int_equal(flipped, err.code);
    }
    bool done = false;
    for (long at = 1; !done; at += 1 + at / 8) {
        counter f = { .fail_at = at };
        pith_allocator allocator = { count_alloc, count_free, &f };
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        err = (pith_error)PITH_ERROR_INIT;
        options.call.allocator = &allocator;
        pith_status status =
            try_file((pith_str){ (const char *)file.data, n }, &options, NULL, &err);
        done = f.calls < at;
        if (status != (done ? PITH_OK : PITH_ERR_MEMORY) && (done || status))
            fail_msg("%s: allocation %ld: %s", path, at, err.message);
        assert_int_equal(f.live, 0);
    }
    free(copy);
    pith__file_close(&file);
}

/* Calls what on every stored tokenizer.json. */
static void each_model(void (*what)(const char *path)) {
    DIR *dir = opendir(PITH_TEST_DATA "/tokenizer_models");
    int files_seen = 0;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[1024];
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".json") != 0) continue;
        snprintf(path, sizeof path, "%s/tokenizer_models/%s", PITH_TEST_DATA, entry->d_name);
        what(path);
        files_seen++;
    }
    closedir(dir);
    assert_true(files_seen > 5);
}

static void test_models_damaged(void **state) {
    (void)state;
    each_model(damage_file);
}

static size_t places;

static void refuse_each(const char *path) { places += arena_fails_each(open_refused, path); }

/* vocab.txt with tokens that are listed in the files beside it; old: not in tokenizer_config.json.
 */
static void listed_directory(const char *path, bool old) {
    static const struct {
        const char *name, *text;
    } small[] = {
        { "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\ncaf\n!\n12\n" },
        { "tokenizer_config.json",
          "{\"tokenizer_class\":\"BertTokenizer\",\"model_max_length\":512,\"sep_token\":\"[SEP]\","
          "\"added_tokens_"
          "decoder\":"
          "{\"1\":{\"content\":\"[UNK]\",\"special\":true},\"10\":{\"content\":\"[U]\",\"lstrip\":"
          "true}},"
          "\"additional_special_tokens\":[\"34\"],\"cls_token\":{\"content\":\"[CLS]\"}}" },
        { "special_tokens_map.json",
          "{\"unk_token\":{\"content\":\"[UNK]\"},\"mask_token\":\"[MASK]\"}" },
        { "added_tokens.json", "{\"x\":10}" },
        { "config.json", "{\"model_type\":\"bert\",\"tokenizer_class\":\"BertTokenizer\"}" },
    };
    mkdir(path, 0777);
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        char name[1100];
        snprintf(name, sizeof name, "%s/%s", path, small[i].name);
        FILE *f = fopen(name, "w");
        assert_non_null(f);
        fputs(old && i == 1 ? "{\"tokenizer_class\":\"BertTokenizer\"}" : small[i].text, f);
        assert_int_equal(fclose(f), 0);
    }
}

/* Every place that asks an arena, from every place that calls it, in all kinds of tokenizers. */
static void test_arenas(void **state) {
    static const char *const dirs[] = { "llama", "roberta", "tiktoken" };
    char path[1024];
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/arenas-%zu.json", PITH_BINARY_DIR, i);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(files[i], f);
        assert_int_equal(fclose(f), 0);
        refuse_each(path);
        unlink(path);
    }
    each_model(refuse_each);
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        snprintf(path, sizeof path, "%s/tokenizer_models/%s", PITH_TEST_DATA, dirs[i]);
        refuse_each(path);
    }
    for (int old = 0; old < 2; old++) {
        snprintf(path, sizeof path, "%s/arenas-%s", PITH_BINARY_DIR, old ? "old" : "listed");
        listed_directory(path, old);
        refuse_each(path);
    }
    print_message("%zu places\n", places);
    assert_true(places > 200);
}

/* Each is refused, and the message says where. */
static void test_named(void **state) {
    static const struct {
        const char *json, *named;
    } cases[] = {
        { "{\"model\":{\"type\":\"Nothing\"}}", "Nothing" },
        { "{\"normalizer\":{\"type\":\"Nothing\"},\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}",
          "normalizer" },
        { "{\"normalizer\":null}", "no model" },
        { "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":99999999}}}", "model.vocab.a" },
        { "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":-1}}}", "model.vocab.a" },
        { "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":16000000}}}", "16000000" },
        { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"max_input_chars_per_word\":-1}"
          "}",
          "max_input_chars" },
        { "{\"pre_tokenizer\":{\"type\":\"FixedLength\",\"length\":0}}", "length" },
        { "{\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Odd\"}}", "Odd" },
        { "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{"
          "\"id\":\"Z\",\"type_"
          "id\":0}}],"
          "\"pair\":[],\"special_tokens\":{}}}",
          "\"Z\"" },
        { "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\"}}", "no vocab" },
        { "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\"}}", "no vocab" },
        { "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0}}", "no vocab" },
        { "{\"decoder\":{\"type\":\"Strip\",\"start\":1}}", "Strip has no content" },
        { "{\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\"}}",
          "the replacement is empty" },
        { "{\"decoder\":{\"type\":\"Replace\",\"content\":\"x\"}}", "Replace has no pattern" },
        { "{\"post_processor\":{\"type\":\"Nothing\"}}", "unknown post-processor \"Nothing\"" },
        { "{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[],\"cls\":[\"y\",1]}}",
          "expected a pair of token" },
        { "{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"x\",16777216],\"cls\":["
          "\"y\",1]}}",
          "16777216" },
        { "{\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"BertProcessing\","
          "\"sep\":[\"x\",1],"
          "\"cls\":[\"y\",1]},{\"type\":\"RobertaProcessing\",\"sep\":[\"x\",1],\"cls\":[\"y\",1]}]"
          "}}",
          "more than one" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pith_error err = PITH_ERROR_INIT;
        assert_int_not_equal(try_file(pith__str_of(cases[i].json), NULL, NULL, &err), PITH_OK);
        if (!strstr(err.message, cases[i].named)) fail_msg("case %zu: \"%s\"", i, err.message);
    }
}

/* An added token beyond the limit is refused, and a decoder that is not there stops no encoding. */
static void test_limits(void **state) {
    char *json = malloc(6000);
    char content[4098];
    pith_error err = PITH_ERROR_INIT;
    (void)state;
    memset(content, 'x', sizeof content);
    for (int more = 0; more < 2; more++) {
        snprintf(json, 6000,
                 "{\"added_tokens\":[{\"content\":\"%.*s\"}],\"decoder\":{\"type\":\"Nothing\"},"
                 "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[U]\"," VOCAB "}}",
                 4096 + more, content);
        assert_int_equal(try_file(pith__str_of(json), NULL, NULL, &err),
                         more ? PITH_ERR_UNSUPPORTED : PITH_OK);
    }
    assert_non_null(strstr(err.message, "4097"));
    free(json);
}

/* ---- two gigabytes ---- */

typedef struct frugal {
    size_t most; /* the largest allocation asked for */
} frugal;

static void *frugal_alloc(void *user, size_t bytes) {
    frugal *f = user;
    if (bytes > f->most) f->most = bytes;
    return bytes < (size_t)256 << 20 ? malloc(bytes) : NULL;
}

static void frugal_free(void *user, void *memory) {
    (void)user;
    free(memory);
}

/* Loads the tokenizer of a directory; the largest allocation that took. */
static pith_status try_directory(const char *directory, int flags, size_t *most, pith_error *err) {
    frugal f = { 0 };
    pith_allocator allocator = { frugal_alloc, frugal_free, &f };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith__arena arena;
    pith_tokenizer *t = NULL;
    options.call.allocator = &allocator;
    options.flags |= flags;
    pith__arena_init(&arena, &allocator);
    pith_status status = pith__tokenizer_load(&t, directory, &options, &arena, err);
    pith__arena_free(&arena);
    *most = f.most;
    return status;
}

#define HUGE_SIZE (((uint64_t)1 << 31) + 1)

/* A file of the directory: its text, and zeros that take no room on the disk up to the size. */
static void write_file(const char *directory, const char *name, const char *text, uint64_t size) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
    if (size) assert_int_equal(truncate(path, (off_t)size), 0);
}

static void remove_file(const char *directory, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_int_equal(unlink(path), 0);
}

/* Files of 2 GB that begin like good ones are refused by name, mapped or copied, before anything is
 * read for them. */
static void test_huge_files(void **state) {
    static const struct {
        const char *name, *text, *beside;
    } cases[] = {
        { "tokenizer.json", "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"", NULL },
        { "tokenizer_config.json", "{\"unk_token\":\"", "tokenizer.json" },
        { "special_tokens_map.json", "{\"unk_token\":\"", "tokenizer.json" },
        { "spiece.model", "\n", NULL },
        { "vocab.json", "{\"", "merges.txt" },
        { "merges.txt", "a b\n", "vocab.json" },
        { "vocab.txt", "[UNK]\n", NULL },
        { "tokenizer.tiktoken", "IQ== 0\n", NULL },
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const char *name = cases[i / 2].name, *beside = cases[i / 2].beside;
        char directory[] = "/tmp/pith-hostile-XXXXXX";
        pith_error err = PITH_ERROR_INIT;
        size_t most;
        assert_non_null(mkdtemp(directory));
        write_file(directory, name, cases[i / 2].text, HUGE_SIZE);
        if (beside) write_file(directory, beside, "{}", 0);
        pith_status status = try_directory(directory, i & 1 ? PITH_OPEN_COPY : 0, &most, &err);
        if (status != PITH_ERR_UNSUPPORTED || !strstr(err.message, name) ||
            !strstr(err.message, "2147483649 bytes"))
            fail_msg("%s: %d, \"%s\"", name, (int)status, err.message);
        if (most > (size_t)16 << 20) fail_msg("%s: %zu bytes wanted at once", name, most);
        remove_file(directory, name);
        if (beside) remove_file(directory, beside);
        assert_int_equal(rmdir(directory), 0);
    }
}

/* The same out of memory, of which only the first bytes are there: enough to tell what it is. */
static void test_huge_json(void **state) {
    static const char json[4096] = "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"";
    pith_error err = PITH_ERROR_INIT;
    (void)state;
    assert_int_equal(try_file((pith_str){ json, (size_t)HUGE_SIZE }, NULL, NULL, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "tokenizer.json: 2147483649 bytes"));
}

/* Small files of which a length says 2 GB: of the message, of a piece, of the charsmap, and beyond
 * 64 bits. */
static void test_huge_lengths(void **state) {
#define GIGABYTES "\x81\x80\x80\x80\x08"
    static const char *const models[] = {
        "\n" GIGABYTES "\n\001a",
        "\n\x0A\n" GIGABYTES "aaaa",
        "\n\005\n\001a\x18\001\032\x0A\022" GIGABYTES "aaaa",
        "\n\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F",
    };
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char directory[] = "/tmp/pith-hostile-XXXXXX";
        pith_error err = PITH_ERROR_INIT;
        size_t most;
        assert_non_null(mkdtemp(directory));
        write_file(directory, "spiece.model", models[i], 0);
        assert_int_equal(try_directory(directory, 0, &most, &err), PITH_ERR_FORMAT);
        if (!strstr(err.message, "SentencePiece") && !strstr(err.message, "piece 0"))
            fail_msg("case %zu: \"%s\"", i, err.message);
        assert_true(most < (size_t)16 << 20);
        remove_file(directory, "spiece.model");
        assert_int_equal(rmdir(directory), 0);
    }
}

/* ---- many entries ---- */

/* Puts `count` entries between two texts; `entry` has a place for the number, which falls from
 * count on. */
static char *many_entries(const char *begin, const char *entry, const char *end, int count) {
    const size_t room = strlen(begin) + strlen(end) + (strlen(entry) + 16) * (size_t)count;
    char *json = malloc(room);
    size_t used = (size_t)snprintf(json, room, "%s", begin);
    for (int i = count; i > 0; i--) {
        if (i < count) json[used++] = ',';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        used += (size_t)snprintf(json + used, room - used, entry, i);
#pragma GCC diagnostic pop
    }
    snprintf(json + used, room - used, "%s", end);
    return json;
}

/* Files with many small entries cost time and memory by their size, not by its square. With the
 * square each of these would take minutes, or gigabytes. */
static void test_many_entries(void **state) {
    static const struct {
        const char *begin, *entry, *end;
        int count;
        pith_status status;
    } cases[] = {
        { "{\"added_tokens_decoder\":{", "\"%d\":{\"content\":\"x\"}", "}}", 300000,
          PITH_ERR_FORMAT }, /* the vocabulary has another id */
        { "{", "\"key%d\":1", "}", 100000, PITH_OK },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char directory[] = "/tmp/pith-hostile-XXXXXX";
        counter c = { .limit = (size_t)512 << 20 };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith__arena arena;
        pith_tokenizer *t = NULL;
        char *json = many_entries(cases[i].begin, cases[i].entry, cases[i].end, cases[i].count);
        assert_non_null(mkdtemp(directory));
        write_file(directory, "vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nx\n", 0);
        write_file(directory, "tokenizer_config.json", json, 0);
        options.call.allocator = &allocator;
        pith__arena_init(&arena, &allocator);
        const clock_t begin = clock();
        pith_status status = pith__tokenizer_load(&t, directory, &options, &arena, &err);
        assert_true((clock() - begin) / CLOCKS_PER_SEC < 30);
        assert_int_equal(status, cases[i].status);
        pith__tokenizer_unload(t);
        pith__arena_free(&arena);
        free(json);
        remove_file(directory, "vocab.txt");
        remove_file(directory, "tokenizer_config.json");
        assert_int_equal(rmdir(directory), 0);
    }
}

/* ---- merges and maps ---- */

/* A file whose merges all want the same bucket of the table: `count` pairs of "l0;" … and "r0;" ….
 */
static char *colliding_merges(size_t count) {
    enum { SIDE = 2000, BUCKETS = 512 };
    size_t room = 64 * SIDE + 64 * count + 256, used = 0, found = 0;
    char *vocab = malloc(room), *merges = malloc(room), *json = malloc(2 * room);
    size_t merges_used = 0;
    for (int i = 0; i < SIDE; i++)
        used += (size_t)snprintf(vocab + used, room - used, "\"l%d;\":%d,\"r%d;\":%d,", i, i, i,
                                 SIDE + i);
    for (int l = 0; l < SIDE && found < count; l++)
        for (int r = 0; r < SIDE && found < count; r++) {
            if ((pith__merges_hash(l, SIDE + r) >> 32) % BUCKETS) continue;
            used += (size_t)snprintf(vocab + used, room - used, "\"l%d;r%d;\":%zu,", l, r,
                                     2 * SIDE + found);
            merges_used += (size_t)snprintf(merges + merges_used, room - merges_used,
                                            "%s\"l%d; r%d;\"", found ? "," : "", l, r);
            found++;
        }
    assert_int_equal(found, count);
    snprintf(json, 2 * room,
             "{\"model\":{\"type\":\"BPE\",\"vocab\":{%s\"z\":%zu},\"merges\":[%s]}}", vocab,
             2 * SIDE + count, merges);
    free(vocab);
    free(merges);
    return json;
}

/* 1,100 merges in one bucket would cost every look-up as many comparisons. */
static void test_colliding_merges(void **state) {
    pith_error err = PITH_ERROR_INIT;
    (void)state;
    char *json = colliding_merges(1100);
    assert_int_equal(try_file(pith__str_of(json), NULL, NULL, &err), PITH_ERR_FORMAT);
    assert_non_null(strstr(err.message, "the merges collide (at merges[102"));
    free(json);
}

/* A tokenizer of the file and the ids of one text. */
static void check_ids(const char *json, const char *text, const int32_t *wanted, size_t count,
                      const char *error) {
    pith__arena arena;
    pith_tokenizer *t = NULL;
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tokenize_options o = PITH_TOKENIZE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&arena, &pith__allocator_default);
    if (pith__tokenizer_load_bytes(&t, pith__str_of(json), NULL, &arena, &err))
        fail_msg("%s", err.message);
    pith_status status = pith_tokenize(&tokens, t, pith__str_of(text), NULL, &o, &err);
    if (error) {
        assert_int_not_equal(status, PITH_OK);
        if (!strstr(err.message, error)) fail_msg("\"%s\" does not say \"%s\"", err.message, error);
    } else {
        if (status) fail_msg("%s", err.message);
        assert_int_equal(tokens.count, count);
        assert_memory_equal(tokens.ids, wanted, count * sizeof *wanted);
    }
    pith_tokens_free(&tokens);
    pith__tokenizer_unload(t);
    pith__arena_free(&arena);
}

/* Merges that give one of their own sides. With a prefix "##" and "##a" are "##a" again: that ends,
 * as every merge takes a symbol away, with the peer's ids. What gives its left side has nothing
 * left on its right and is refused. */
static void test_cyclic_merges(void **state) {
#define CYCLE(merges)                                                                              \
    "{\"model\":{\"type\":\"BPE\",\"continuing_subword_prefix\":\"##\",\"vocab\":{\"#\":0,\"###"   \
    "\":1,\"##a\":2,"                                                                              \
    "\"##\":3,\"a\":4},\"merges\":[" merges "]}}"
    enum { MOST = 3000 };
    int32_t wanted[MOST];
    pith_error err = PITH_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < MOST; i++) wanted[i] = 2;
    for (size_t n = 1; n <= MOST; n = n < 30 ? n + 1 : n * 10) { /* short words and long ones */
        char text[MOST + 3] = "##";
        memset(text + 2, 'a', n);
        check_ids(CYCLE("\"# ###\",\"## ##a\""), text, wanted, n, NULL);
    }
    assert_int_equal(try_file(PITH_STR(CYCLE("\"a ##\"")), NULL, NULL, &err), PITH_ERR_FORMAT);
    assert_non_null(strstr(err.message, "merges[0] has an empty side"));
}

/* Maps whose trie leads outside of itself, or in a circle, or to replacements that are not there:
 * nothing is replaced. */
static void test_charsmap_leads_nowhere(void **state) {
#define MAPPED(map)                                                                                \
    "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"" map                    \
    "\"},\"model\":{\"type\":\"Unigram\","                                                         \
    "\"unk_id\":1,\"vocab\":[[\"a\",-1],[\"?\",-9],[\"b\",-1]]}}"
    static const int32_t same[] = { 0, 0 }, replaced[] = { 2, 2 };
    (void)state;
    /* a good one: 'a' becomes 'b' */
    check_ids(MAPPED("DAAAAACAAQBhDQAAAAAAgGIA"), "aa", replaced, 2, NULL);
    /* its replacement at byte 5000 of 2 */
    check_ids(MAPPED("DAAAAACAAQBhDQAAiBMAgGIA"), "aa", same, 2, NULL);
    /* one unit, all bits set */
    check_ids(MAPPED("BAAAAP////8="), "aa", same, 2, NULL);
    /* one unit, zero: back to itself */
    check_ids(MAPPED("BAAAAAAAAAA="), "aa", same, 2, NULL);
}

/* An expression that goes back without end stops at the limit in a normalizer as well. */
static void test_regex_of_normalizer(void **state) {
    (void)state;
    check_ids("{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(a|aa)+(a|aa)+(a|aa)+"
              "[bc]\"},\"content\":"
              "\"\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1]]}}",
              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL, 0,
              "too many steps");
}

/* A step that looks at marks does not look behind its piece, where a token begins with one. */
static void test_mark_behind_piece(void **state) {
    (void)state;
    check_ids("{\"added_tokens\":[{\"id\":2,\"content\":\"\xCC\x81x\",\"normalized\":false}],"
              "\"normalizer\":"
              "{\"type\":\"StripAccents\"},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[U]\","
              "\"vocab\":{\"[U]\":0,\"a\":1}}}",
              "a\xCC\x81\xCC\x81x", (const int32_t[]){ 1, 2 }, 2, NULL);
}

/* A Unigram text of many windows: none of them ends within a piece, though shorter pieces end
 * there. */
static void test_pieces_across_windows(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    for (unsigned shift = 0; shift < 4; shift++) { /* where the windows end */
        char *text = malloc(4 * COUNT + shift + 1);
        int32_t *wanted = malloc((COUNT + shift) * sizeof *wanted);
        memset(text, 'a', shift);
        for (unsigned i = 0; i < shift; i++) wanted[i] = 1;
        for (size_t i = 0; i < COUNT; i++) {
            memcpy(text + shift + 4 * i, "dabc", 4);
            wanted[shift + i] = 5;
        }
        text[4 * COUNT + shift] = 0;
        check_ids("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"[U]\",0],[\"a\",-5],"
                  "[\"b\",-5],[\"c\",-5],"
                  "[\"d\",-5],[\"dabc\",-1],[\"ab\",-6]]}}",
                  text, wanted, COUNT + shift, NULL);
        free(text);
        free(wanted);
    }
}

/* A token through the decoder Replace. */
static void check_decoded(const char *regex, const char *content, const char *token,
                          const char *wanted) {
    pith__arena arena;
    pith_tokenizer *t = NULL;
    pith_error err = PITH_ERROR_INIT;
    char json[512], *text = NULL;
    size_t size = 0;
    snprintf(
        json, sizeof json,
        "{\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"%s\"},\"content\":\"%s\"},"
        "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"%s\",\"vocab\":{\"%s\":0}}}",
        regex, content, token, token);
    pith__arena_init(&arena, &pith__allocator_default);
    if (pith__tokenizer_load_bytes(&t, pith__str_of(json), NULL, &arena, &err))
        fail_msg("%s", err.message);
    if (pith_detokenize(&text, &size, t, (const int32_t[]){ 0 }, 1, 0, NULL, &err))
        fail_msg("%s", err.message);
    assert_string_equal(text, wanted);
    pith_text_free(t, text);
    pith__tokenizer_unload(t);
    pith__arena_free(&arena);
}

/* Matches of nothing are replaced once at each place, never inside a character, and not right
 * behind another match; as Hugging Face does it, in normalizers and decoders. */
static void test_empty_matches(void **state) {
    static const struct {
        const char *regex, *content, *text, *wanted;
    } cases[] = {
        { "(?=b)", "x", "abab", "axbaxb" },
        { "(?=b)", "x", "b", "xb" },
        { "(?=b)", "x",
          "\xC3\xA9"
          "by",
          "\xC3\xA9"
          "xby" },
        { "x*", "-", "abab", "-a-b-a-b-" },
        { "x*", "-", "xxy", "-y-" },
        { "x*", "-", "\xC3\xA9", "-\xC3\xA9-" },
        { "$", "!", "abab", "abab!" },
        { "(?=b)|a", "-", "abab", "-b-b" },
        { "a|", "-", "abab", "-b-b-" },
        { "b*?", "-", "ab", "-a-b-" },
        { "x*", "-", "axx", "-a-" },
        { "(?=y)|x+", "ab", "xxy", "aby" },
        { "", "z", "xxy", "zxzxzyz" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"%s\"},\"content\":"
                 "\"%s\"},"
                 "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[U]\",\"vocab\":{\"[U]\":0,\"%"
                 "s\":1}}}",
                 cases[i].regex, cases[i].content, cases[i].wanted);
        check_ids(json, cases[i].text, (const int32_t[]){ 1 }, 1, NULL);
        check_decoded(cases[i].regex, cases[i].content, cases[i].text, cases[i].wanted);
    }
    /* Nothing matches in a text of which an earlier step leaves nothing. */
    check_ids(
        "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Replace\",\"pattern\":"
        "{\"String\":\"a\"},"
        "\"content\":\"\"},{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x*\"},\"content\":\"-\"}]"
        "},"
        "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[U]\",\"vocab\":{\"[U]\":0,\"-\":1}}}",
        "aa", (const int32_t[]){ 0 }, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_allocation_fails),
        cmocka_unit_test(test_models_damaged),
        cmocka_unit_test(test_arenas),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_huge_files),
        cmocka_unit_test(test_huge_json),
        cmocka_unit_test(test_huge_lengths),
        cmocka_unit_test(test_many_entries),
        cmocka_unit_test(test_colliding_merges),
        cmocka_unit_test(test_cyclic_merges),
        cmocka_unit_test(test_charsmap_leads_nowhere),
        cmocka_unit_test(test_regex_of_normalizer),
        cmocka_unit_test(test_empty_matches),
        cmocka_unit_test(test_mark_behind_piece),
        cmocka_unit_test(test_pieces_across_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

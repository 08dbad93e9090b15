/* test_decoders.c - every decoder on drawn tokens gives the text that Hugging Face gives, at once
 * and as a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/formats/json.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "text/tokenizer.h"

enum { IDS_MAX = 2048, STREAM_MAX = 4096, PENDING_MAX = 256 };

static pith__arena arena;
static pith_error err;

/* A WordLevel tokenizer of a list of tokens, which is JSON as the decoder is. */
static pith_tokenizer *make_tokenizer(pith_str tokens, pith_str decoder) {
    static char json[1 << 16], vocab[1 << 15];
    pith_tokenizer *t = NULL;
    size_t used = 0, id = 0;
    bool quoted = false;
    for (size_t i = 1; i + 1 < tokens.size; i++) { /* inside the brackets; each string ends in its
                                                      id */
        char c = tokens.data[i];
        assert_true(used + 32 < sizeof vocab && c != '\\');
        vocab[used++] = c;
        if (c != '"') continue;
        quoted = !quoted;
        if (!quoted) used += (size_t)sprintf(vocab + used, ":%zu", id++);
    }
    vocab[used] = 0;
    int size = snprintf(json, sizeof json,
                        "{\"decoder\":" PITH_STR_FMT
                        ",\"added_tokens\":[{\"id\":0,\"content\":\"a\",\"special\":true}],"
                        "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{%s}}}",
                        PITH_STR_ARG(decoder), vocab);
    assert_in_range(size, 1, sizeof json - 1);
    if (pith__tokenizer_load_bytes(&t, (pith_str){ json, (size_t)size }, NULL, &arena, &err))
        fail_msg("%s", err.message);
    return t;
}

/* Pieces of a stream are whole characters, and together they are the text, if pieces cannot change
 * what came before. */
static void check_stream(const pith_tokenizer *t, const int32_t *ids, size_t count, pith_str text,
                         bool skip) {
    static char all[STREAM_MAX];
    size_t size = 0;
    pith_text_stream *stream;
    assert_int_equal(pith_text_stream_create(&stream, t, skip, &err), PITH_OK);
    for (int round = 0; round < 2; round++, size = 0) { /* a finished stream begins anew */
        for (size_t i = 0; i <= count; i++) {
            pith_str part;
            pith_status status = i < count ? pith_text_stream_push(stream, &part, ids[i], &err)
                                           : pith_text_stream_finish(stream, &part, &err);
            if (status) fail_msg("%s", err.message);
            assert_true(size + part.size < sizeof all);
            assert_int_equal(pith__utf8_valid_prefix(part.data, part.size), part.size);
            memcpy(all + size, part.data, part.size);
            size += part.size;
        }
        if (size != text.size || memcmp(all, text.data, size))
            fail_msg("streamed '%.*s', not '" PITH_STR_FMT "'", (int)size, all, PITH_STR_ARG(text));
    }
    pith_text_stream_destroy(stream);
}

static void check_text(const pith_tokenizer *t, const int32_t *ids, size_t count, pith_str wanted,
                       pith_str decoder) {
    char *text = NULL;
    size_t size = 0;
    if (pith_detokenize(&text, &size, t, ids, count, 0, NULL, &err)) fail_msg("%s", err.message);
    if (size != wanted.size || memcmp(text, wanted.data, size) || text[size])
        fail_msg(PITH_STR_FMT ": '%s', not '" PITH_STR_FMT "'; the first of %zu ids is %d",
                 PITH_STR_ARG(decoder), text, PITH_STR_ARG(wanted), count, count ? ids[0] : -1);
    pith_text_free(t, text);
}

/* Whether a decoder treats each token for itself, so that a stream gives the whole text. */
static bool streams(pith_str decoder) {
    static const char *const kinds[] = { "null", "{\"type\":\"ByteLevel\"", "{\"type\":\"Fuse\"",
                                         "{\"type\":\"Replace\"" };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (decoder.size >= strlen(kinds[i]) && !memcmp(decoder.data, kinds[i], strlen(kinds[i])))
            return true;
    return false;
}

static size_t read_ids(pith__json *j, int32_t *ids) {
    size_t n = 0;
    for (pith__json_array(j); pith__json_next_item(j);) {
        assert_true(n < 16);
        ids[n++] = (int32_t)pith__json_int(j);
    }
    return n;
}

/* A line: the decoder, lists of ids, and their texts in the same order. */
static size_t check_line(pith_str line, pith_str tokens) {
    static int32_t ids[IDS_MAX][16];
    static size_t counts[IDS_MAX];
    pith__json j;
    pith_str key, decoder = PITH_STR("");
    size_t lists = 0, texts = 0;
    pith_tokenizer *t = NULL;
    pith__json_init(&j, line, "cases.jsonl", &arena, &err);
    for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
        if (pith__str_is(key, "decoder")) {
            decoder = pith__json_raw(&j);
            t = make_tokenizer(tokens, decoder);
        } else if (pith__str_is(key, "ids")) {
            for (pith__json_array(&j); pith__json_next_item(&j); lists++) {
                assert_true(lists < IDS_MAX);
                counts[lists] = read_ids(&j, ids[lists]);
            }
        } else {
            for (pith__json_array(&j); pith__json_next_item(&j); texts++) {
                pith_str text = pith__json_string(&j);
                assert_true(texts < lists);
                check_text(t, ids[texts], counts[texts], text, decoder);
                if (streams(decoder)) check_stream(t, ids[texts], counts[texts], text, false);
            }
        }
    }
    if (j.failed) fail_msg("%s", err.message);
    assert_int_equal(lists, texts);
    pith__tokenizer_unload(t);
    return texts;
}

static void equal_to_peer(void **state) {
    (void)state;
    pith__file file;
    pith_str tokens = PITH_STR("");
    size_t cases = 0, decoders = 0;
    assert_int_equal(
        pith__file_open(&file, PITH_TEST_DATA "/decoders/cases.jsonl", false, NULL, &err), PITH_OK);
    for (const char *p = (const char *)file.data, *end = p + file.size; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        pith_str line = { p, (size_t)(stop - p) };
        if (tokens.size) {
            cases += check_line(line, tokens);
            decoders++;
        } else { /* {"vocab":[…]} */
            tokens = (pith_str){ p + 9, line.size - 10 };
        }
        p = stop + 1;
    }
    pith__file_close(&file);
    print_message("%zu cases of %zu decoders\n", cases, decoders);
    assert_true(cases > 3000 && decoders > 20);
}

/* Specials are left out on request, and ids that are no tokens are named. */
static void specials(void **state) {
    (void)state;
    pith_tokenizer *t = make_tokenizer(PITH_STR("[\"a\",\"b\",\"c\"]"), PITH_STR("null"));
    static const int32_t ids[] = { 0, 1, 0, 2, 0, 3, 1 };
    char *text;
    size_t size;
    for (int skip = 0; skip < 2; skip++) {
        pith_str wanted = skip ? PITH_STR("b c") : PITH_STR("a b a c a");
        assert_int_equal(pith_detokenize(&text, &size, t, ids, 5, skip, NULL, &err), PITH_OK);
        assert_int_equal(size, wanted.size);
        assert_string_equal(text, wanted.data);
        pith_text_free(t, text);
        check_stream(t, ids, 5, wanted, skip);
    }
    pith_text_free(t, NULL);
    assert_int_equal(pith_detokenize(&text, &size, t, ids, 0, 0, NULL, &err), PITH_OK);
    assert_string_equal(text, "");
    pith_text_free(t, text);
    assert_int_equal(pith_detokenize(&text, &size, t, ids, 7, 0, NULL, &err), PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "id 3 at index 5 is not in the vocabulary");
    pith_text_stream *stream;
    pith_str part;
    assert_int_equal(pith_text_stream_create(&stream, t, 0, &err), PITH_OK);
    assert_int_equal(pith_text_stream_push(stream, &part, -1, &err), PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "id -1 is not in the vocabulary");
    assert_int_equal(pith_text_stream_push(stream, &part, 1, &err), PITH_OK);
    assert_true(pith__str_is(part, "b")); /* the id that was refused left nothing behind */
    pith_text_stream_destroy(stream);
    pith_text_stream_destroy(NULL);
    pith__tokenizer_unload(t);
}

/* A stream waits for a character to become whole, but not for ever. */
static void waiting(void **state) {
    (void)state;
    /* The bytes E2, 82 and AC, an euro sign, as GPT-2 spells them. */
    pith_tokenizer *t = make_tokenizer(PITH_STR("[\"a\",\"\xC3\xA2\",\"\xC4\xA4\",\"\xC2\xAC\"]"),
                                       PITH_STR("{\"type\":\"ByteLevel\"}"));
    static const int32_t ids[] = { 0, 1, 2, 3, 0 };
    static const char *const parts[] = { "a", "", "", "\xE2\x82\xAC", "a" };
    pith_text_stream *stream;
    pith_str part;
    assert_int_equal(pith_text_stream_create(&stream, t, 0, &err), PITH_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(pith_text_stream_push(stream, &part, ids[i], &err), PITH_OK);
        assert_true(pith__str_is(part, parts[i]));
    }
    size_t given = 0;
    for (int i = 0; i < 3 * PENDING_MAX; i++) {
        assert_int_equal(pith_text_stream_push(stream, &part, 1, &err), PITH_OK);
        given += part.size;
        if (i < PENDING_MAX - 3) assert_int_equal(given, 0);
    }
    assert_true(given >= 3 * (2 * PENDING_MAX));
    assert_int_equal(pith_text_stream_finish(stream, &part, &err), PITH_OK);
    assert_int_equal(given + part.size, 3 * (3 * PENDING_MAX));
    pith_text_stream_destroy(stream);
    pith__tokenizer_unload(t);
}

/* What a file does not say is as its second form says. */
static void usual_settings(void **state) {
    (void)state;
    static const char *const same[][2] = {
        { "{\"type\":\"WordPiece\"}",
          "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}" },
        { "{\"type\":\"BPEDecoder\"}", "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}" },
        { "{\"type\":\"CTC\"}", "{\"type\":\"CTC\",\"pad_token\":\"<pad>\",\"word_delimiter_"
                                "token\":\"|\",\"cleanup\":true}" },
        { "{\"type\":\"Metaspace\",\"replacement\":null,\"more\":[1]}",
          "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":"
          "\"always\"}" },
        { "{\"type\":\"Metaspace\",\"add_prefix_space\":false}",
          "{\"type\":\"Metaspace\",\"prepend_scheme\":\"never\"}" },
        { "{\"type\":\"Metaspace\",\"prepend_scheme\":\"never\",\"add_prefix_space\":true}",
          "{\"type\":\"Metaspace\",\"prepend_scheme\":\"never\"}" },
        { "{\"type\":\"Strip\",\"content\":\"b\",\"more\":{}}",
          "{\"type\":\"Strip\",\"content\":\"b\",\"start\":0,\"stop\":0}" },
    };
    static const pith_str tokens =
        PITH_STR("[\"a\",\"##b\",\"c</w>\",\"|\",\"<pad>\",\" .\",\"\xE2\x96\x81"
                 "d\",\"</w\",\"||e\",\"bb\"]");
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        pith_tokenizer *bare = make_tokenizer(tokens, pith__str_of(same[i][0]));
        pith_tokenizer *full = make_tokenizer(tokens, pith__str_of(same[i][1]));
        for (int32_t id = 0; id < 100; id++) {
            const int32_t ids[] = { id % 10, id / 10, id % 10 };
            char *text = NULL;
            size_t size = 0;
            assert_int_equal(pith_detokenize(&text, &size, full, ids, 3, 0, NULL, &err), PITH_OK);
            check_text(bare, ids, 3, (pith_str){ text, size }, pith__str_of(same[i][0]));
            pith_text_free(full, text);
        }
        pith__tokenizer_unload(bare);
        pith__tokenizer_unload(full);
    }
}

static int setup(void **state) {
    (void)state;
    pith__arena_init(&arena, NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    pith__arena_free(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(equal_to_peer), cmocka_unit_test(specials),
                                        cmocka_unit_test(waiting),
                                        cmocka_unit_test(usual_settings) };
    return cmocka_run_group_tests(tests, setup, teardown);
}

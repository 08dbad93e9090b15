/* test_fpmode.c - a host's rounding mode and flushing of denormals change no result of public
 * functions, and are the host's again afterwards. */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checksum.h"
#include "base/os/file.h"
#include "pith/pith.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static const int roundings[] = { FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO };
enum { MODES = 8, LINES = 120, LINE = 2048 };

/* Rounding and, from the fifth mode on, no denormals. */
static void set_mode(int mode) {
    fesetround(roundings[mode % 4]);
#if defined(__SSE2__)
    _mm_setcsr((_mm_getcsr() & ~0x8040u) | (mode >= 4 ? 0x8040u : 0));
#endif
}

static unsigned flushing(void) {
#if defined(__SSE2__)
    return _mm_getcsr() & 0x8040u;
#else
    return 0;
#endif
}

static void check_mode(int mode) {
    assert_int_equal(fegetround(), roundings[mode % 4]);
#if defined(__SSE2__)
    assert_int_equal(flushing(), mode >= 4 ? 0x8040u : 0);
#endif
}

static char lines[LINES][LINE];
static pith_str texts[LINES];
static pith_error err;

/* Words of many lengths, drawn letters among them: ways of equal or nearly equal scores. */
static void make_texts(void) {
    uint32_t state = 1;
    for (int i = 0; i < LINES; i++) {
        size_t n = 0, size = 40 + (size_t)i * 15;
        while (n < size) {
            state = state * 1664525 + 1013904223;
            unsigned pick = state >> 24;
            lines[i][n++] = pick < 40 ? ' ' : "etaoinshrdlucmfwypvbgkEATO.,"[pick % 28];
        }
        texts[i] = (pith_str){ lines[i], n };
    }
}

static uint64_t hash_ids(uint64_t seed, const pith_tokens *tokens) {
    return pith__hash_of(tokens->ids, tokens->count * sizeof *tokens->ids) ^ seed * 31;
}

static uint64_t tokenize_all(const pith_tokenizer *t, int mode) {
    pith_tokens tokens = PITH_TOKENS_INIT;
    uint64_t hash = 0;
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(pith_tokenize(&tokens, t, texts[i], NULL, NULL, &err), PITH_OK);
        check_mode(mode);
        hash = hash_ids(hash, &tokens);
        char *text;
        size_t size;
        assert_int_equal(pith_detokenize(&text, &size, t, tokens.ids, tokens.count, 1, NULL, &err),
                         PITH_OK);
        check_mode(mode);
        hash = pith__hash_of(text, size) ^ hash * 31;
        pith_text_free(t, text);
    }
    for (int threads = 1; threads <= 2; threads++) {
        pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
        size_t ends[LINES];
        options.call.threads = threads;
        assert_int_equal(pith_tokenize_batch(&tokens, ends, t, texts, NULL, LINES, &options, &err),
                         PITH_OK);
        check_mode(mode);
        hash = hash_ids(hash, &tokens);
    }
    pith_tokens_free(&tokens);
    return hash;
}

static void test_tokenize(void **state) {
    (void)state;
    uint64_t expected = 0;
    make_texts();
    for (int opened = 0; opened < MODES; opened++) {
        pith_tokenizer *t;
        set_mode(opened);
        assert_int_equal(pith_tokenizer_open(
                             &t, PITH_TEST_DATA "/tokenizer_models/unigram_bytes.json", NULL, &err),
                         0);
        check_mode(opened);
        for (int mode = 0; mode < MODES; mode++) {
            set_mode(mode);
            uint64_t hash = tokenize_all(t, mode);
            if (!expected) expected = hash;
            if (hash != expected)
                fail_msg("opened in mode %d, tokenised in mode %d: other ids", opened, mode);
        }
        set_mode(0);
        pith_tokenizer_close(t);
    }
}

static char described[1 << 16];
static size_t described_size;

static int32_t keep_text(void *user, const void *text, size_t size) {
    (void)user;
    assert_true(described_size + size <= sizeof described);
    memcpy(described + described_size, text, size);
    described_size += size;
    return 0;
}

static void test_model(void **state) {
    (void)state;
    uint64_t expected = 0;
    for (int mode = 0; mode < MODES; mode++) {
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_model *model;
        pith_session *session;
        options.flags = PITH_OPEN_DESCRIBE;
        set_mode(mode);
        assert_int_equal(pith_model_open(&model, PITH_TEST_DATA "/hf/bert", &options, &err),
                         PITH_OK);
        described_size = 0;
        assert_int_equal(pith_model_describe(model, PITH_DESCRIBE_JSON, NULL,
                                             &(pith_writer){ keep_text, NULL, NULL }, &err),
                         PITH_OK);
        assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
        check_mode(mode);
        pith_session_destroy(session);
        pith_model_close(model);
        uint64_t hash = pith__hash_of(described, described_size);
        if (!expected) expected = hash;
        if (hash != expected) fail_msg("mode %d: another description", mode);
    }
    set_mode(0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tokenize),
                                        cmocka_unit_test(test_model) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

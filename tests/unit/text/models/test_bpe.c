/* test_bpe.c - byte-pair encoding against merging by the book: the merges, the longest matches,
 * whole tokenizers that cut texts and change from the one to the other while they work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "text/models/bpe_merges.h"
#include "text/models/bpe_longest.h"
#include "text/tokenizer.h"

/* Of a call that nothing stops. */
static pith__encoding enc;

static unsigned draw(unsigned *random, unsigned below) {
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) % below;
}

/* Merging by the book: the lowest rank, then the leftmost. */
static size_t merge_slowly(const pith__merge *merges, size_t merge_count, pith__symbol *symbols,
                           size_t count) {
    for (;;) {
        size_t best = merge_count, at = 0;
        for (size_t i = 0; i + 1 < count; i++)
            for (size_t m = 0; m < best; m++)
                if (merges[m].left == symbols[i].id && merges[m].right == symbols[i + 1].id) {
                    best = m;
                    at = i;
                }
        if (best == merge_count) return count;
        symbols[at].id = merges[best].id;
        symbols[at].size += symbols[at + 1].size;
        memmove(symbols + at + 1, symbols + at + 2, (count - at - 2) * sizeof *symbols);
        count--;
    }
}

static void test_merging(void **state) {
    (void)state;
    enum { LETTERS = 3, MERGES = 40, LONGEST = 90 };
    pith__arena arena;
    pith_error err;
    pith__encoding call = { .allocator = &pith__allocator_default };
    unsigned random = 1;
    for (int round = 0; round < 300; round++) {
        pith__merge merges[MERGES];
        pith__merges table;
        size_t merge_count = 0;
        int32_t ids = LETTERS;
        pith__arena_init(&arena, &pith__allocator_default);
        /* Merges in any order: some come before the one that makes their parts. */
        while (merge_count < MERGES) {
            int32_t left = (int32_t)draw(&random, (unsigned)(ids + 2)),
                    right = (int32_t)draw(&random, (unsigned)ids);
            bool known = false;
            for (size_t m = 0; m < merge_count; m++)
                known |= merges[m].left == left && merges[m].right == right;
            if (known) continue;
            merges[merge_count++] = (pith__merge){ left, right, ids++ };
        }
        assert_int_equal(pith__merges_build(&table, merges, merge_count, &arena, NULL, &err),
                         PITH_OK);
        pith__symbol fast[LONGEST], slow[LONGEST];
        size_t count = 1 + (size_t)round % LONGEST;
        for (size_t i = 0; i < count; i++)
            fast[i] = slow[i] = (pith__symbol){ (int32_t)draw(&random, LETTERS), 1 };
        size_t n = pith__bpe_merge(&table, &call, fast, count);
        assert_int_equal(n, merge_slowly(merges, merge_count, slow, count));
        assert_memory_equal(fast, slow, n * sizeof *fast);
        pith__arena_free(&arena);
    }
    for (int i = 0; i < PITH_SCRATCH_SLOTS; i++)
        if (call.scratch[i].data) pith__memory_free(call.allocator, call.scratch[i].data);
}

/* ---- vocabularies as training gives them: every merge makes a new string of two that are there
 * ---- */

enum { MERGES_MOST = 64, LETTERS_MOST = 8, STRING_MOST = 64 };

typedef struct drawn {
    char strings[LETTERS_MOST + MERGES_MOST][2 * STRING_MOST];
    pith__merge merges[MERGES_MOST];
    int32_t ids;
    size_t merge_count;
} drawn;

static void draw_vocabulary(drawn *d, unsigned *random, const char *const *letters,
                            int32_t letter_count, size_t merge_count) {
    d->merge_count = 0;
    for (d->ids = 0; d->ids < letter_count; d->ids++)
        snprintf(d->strings[d->ids], sizeof d->strings[0], "%s", letters[d->ids]);
    while (d->merge_count < merge_count) {
        /* Often of the newest tokens: long chains. */
        unsigned newest = (unsigned)d->ids, from = draw(random, 3) ? 0 : newest / 2;
        int32_t left = (int32_t)(from + draw(random, newest - from)),
                right = (int32_t)draw(random, newest);
        char *both = d->strings[d->ids];
        bool known = strlen(d->strings[left]) + strlen(d->strings[right]) > STRING_MOST;
        if (known) continue;
        memcpy(both, d->strings[left], STRING_MOST);
        strncat(both, d->strings[right], STRING_MOST);
        for (int32_t i = 0; i < d->ids; i++) known |= strcmp(d->strings[i], both) == 0;
        if (!known) d->merges[d->merge_count++] = (pith__merge){ left, right, d->ids++ };
    }
}

/* Tables of the drawn merges; the letters are ids 0 to letter_count - 1. */
static void make_tables(pith__merges *merges, pith__bpe_longest *b, const pith__merge *list,
                        size_t count, const char *const *letters, int32_t letter_count, int32_t ids,
                        pith__arena *arena) {
    pith__bpe_letter symbols[LETTERS_MOST];
    pith__arena scratch;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&scratch, &pith__allocator_default);
    for (int32_t i = 0; i < letter_count; i++)
        symbols[i] = (pith__bpe_letter){ pith__str_of(letters[i]), i };
    *b = (pith__bpe_longest){ .splits = NULL };
    assert_int_equal(pith__merges_build(merges, list, count, arena, NULL, &err), PITH_OK);
    assert_int_equal(pith__bpe_longest_build(b, merges, symbols, (size_t)letter_count, ids, arena,
                                             &scratch, NULL, &err),
                     PITH_OK);
    pith__arena_free(&scratch);
}

static void test_longest_matches(void **state) {
    (void)state;
    enum { LONGEST = 200, ROUNDS = 400 };
    static const char *const letters[] = { "a", "b", "c", "d" };
    unsigned random = 3;
    int all = 0, given_up = 0;
    for (int round = 0; round < ROUNDS; round++) {
        drawn d;
        pith__arena arena;
        pith__merges merges;
        pith__bpe_longest b;
        int32_t letter_count = 1 + round % 4;
        pith__arena_init(&arena, &pith__allocator_default);
        draw_vocabulary(&d, &random, letters, letter_count, letter_count == 1 ? 20 : MERGES_MOST);
        make_tables(&merges, &b, d.merges, d.merge_count, letters, letter_count, d.ids, &arena);
        assert_non_null(b.splits);
        for (size_t size = 1; size <= LONGEST; size += 1 + size / 4) {
            char text[LONGEST];
            pith__symbol found[LONGEST], wanted[LONGEST];
            uint64_t dead[LONGEST / 64 + 1];
            for (size_t i = 0; i < size; i++) {
                wanted[i] = (pith__symbol){ (int32_t)draw(&random, (unsigned)letter_count), 1 };
                text[i] = letters[wanted[i].id][0];
            }
            size_t n =
                pith__bpe_longest_encode(&b, &merges, (pith_str){ text, size }, found, dead, &enc);
            size_t slowly = merge_slowly(d.merges, d.merge_count, wanted, size);
            all++;
            given_up += n == 0;
            if (n) assert_int_equal(n, slowly);
            assert_memory_equal(found, wanted, n * sizeof *found);
        }
        pith__arena_free(&arena);
    }
    assert_true(given_up < all / 10);
}

/* What longest matches cannot follow is left to merging: a merge whose part only a later one makes,
 * a token of two texts, a letter that is missing, texts that would be read again and again. */
static void test_matches_that_cannot_be(void **state) {
    (void)state;
    enum { DEEP = 200, SIZE = 10000 };
    static const char *const letters[] = { "a", "b", "c" };
    static const pith__merge late[] = { { 3, 2, 4 }, { 0, 1, 3 } },
                             twice[] = { { 0, 1, 3 }, { 1, 2, 3 } };
    pith__arena arena;
    pith__merges merges;
    pith__bpe_longest b;
    pith__symbol few[4], *symbols = malloc(SIZE * sizeof *symbols);
    char *text = malloc(SIZE);
    uint64_t dead[SIZE / 64 + 1];
    pith__arena_init(&arena, &pith__allocator_default);
    make_tables(&merges, &b, late, 2, letters, 3, 5, &arena);
    assert_null(b.splits);
    make_tables(&merges, &b, twice, 2, letters, 3, 4, &arena);
    assert_null(b.splits);
    make_tables(&merges, &b, twice, 1, letters, 3, 4, &arena);
    assert_int_equal(pith__bpe_longest_encode(&b, &merges, PITH_STR("abc"), few, dead, &enc), 2);
    assert_int_equal(pith__bpe_longest_encode(&b, &merges, PITH_STR("abx"), few, dead, &enc), 0);
    /* "ab", "aab", "aaab" …: every place of a text of a's goes far down the trie for one letter. */
    pith__merge deep[DEEP];
    for (int32_t i = 0; i < DEEP; i++) deep[i] = (pith__merge){ 0, i ? 2 + i : 1, 3 + i };
    make_tables(&merges, &b, deep, DEEP, letters, 3, 3 + DEEP, &arena);
    assert_non_null(b.splits);
    memset(text, 'a', SIZE);
    assert_int_equal(
        pith__bpe_longest_encode(&b, &merges, (pith_str){ text, SIZE }, symbols, dead, &enc), 0);
    text[DEEP / 2] = 'b';
    assert_int_equal(pith__bpe_longest_encode(&b, &merges, (pith_str){ text, DEEP / 2 + 1 },
                                              symbols, dead, &enc),
                     1);
    pith__arena_free(&arena);
    free(symbols);
    free(text);
}

/* ---- tokenizers ---- */

static size_t write_json(char *json, size_t room, const drawn *d) {
    size_t size =
        (size_t)snprintf(json, room,
                         "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"fuse_unk\":true,"
                         "\"vocab\":{\"?\":%d",
                         d->ids);
    for (int32_t i = 0; i < d->ids; i++)
        size += (size_t)snprintf(json + size, room - size, ",\"%s\":%d", d->strings[i], i);
    size += (size_t)snprintf(json + size, room - size, "},\"merges\":[");
    for (size_t i = 0; i < d->merge_count; i++)
        size += (size_t)snprintf(json + size, room - size, "%s[\"%s\",\"%s\"]", i ? "," : "",
                                 d->strings[d->merges[i].left], d->strings[d->merges[i].right]);
    return size + (size_t)snprintf(json + size, room - size, "]}}");
}

/* A whole text is one word here; where the model cuts it, and after it has gone over to longest
 * matches, the same tokens come out. */
static void test_tokenizers(void **state) {
    (void)state;
    enum { LETTERS = 5, MERGES = 24, LONGEST = 120, TEXTS = 8 };
    static const char *const letters[LETTERS + 1] = {
        "a", "b", "\xC3\xA9", " ", "\xE2\x96\x81", "x"
    };
    unsigned random = 5;
    for (int round = 0; round < 200; round++) {
        drawn d;
        char json[16384], text[4 * LONGEST + 1] = "";
        pith__arena arena;
        pith_tokenizer *tokenizer;
        pith_tokens tokens = PITH_TOKENS_INIT;
        pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith__arena_init(&arena, &pith__allocator_default);
        draw_vocabulary(&d, &random, letters, LETTERS, MERGES);
        size_t size = write_json(json, sizeof json, &d);
        if (pith__tokenizer_load_bytes(&tokenizer, (pith_str){ json, size }, NULL, &arena, &err))
            fail_msg("%s: %s", err.message, json);
        for (int t = 0; t < TEXTS; t++) {
            pith__symbol symbols[LONGEST];
            size_t count = 0, length = 0;
            for (int i = 0; i < LONGEST; i++) {
                /* Half of the texts have unknown characters. */
                int32_t letter = (int32_t)draw(&random, LETTERS + t % 2);
                length +=
                    (size_t)snprintf(text + length, sizeof text - length, "%s", letters[letter]);
                if (letter < LETTERS)
                    symbols[count++] = (pith__symbol){ letter, 1 };
                else if (!count || symbols[count - 1].id != d.ids)
                    symbols[count++] = (pith__symbol){ d.ids, 1 };
            }
            count = merge_slowly(d.merges, d.merge_count, symbols, count);
            assert_int_equal(
                pith_tokenize(&tokens, tokenizer, (pith_str){ text, length }, NULL, &options, &err),
                PITH_OK);
            assert_int_equal(tokens.count, count);
            for (size_t i = 0; i < count; i++) assert_int_equal(tokens.ids[i], symbols[i].id);
        }
        pith_tokens_free(&tokens);
        pith__tokenizer_unload(tokenizer);
        pith__arena_free(&arena);
    }
}

/* Threads that work while one of them makes the tables get what one thread gets. */
static void test_threads(void **state) {
    (void)state;
    enum { TEXTS = 3000, SIZE = 64, ROUNDS = 5 };
    static const char *const letters[] = { "a", "b", "c" };
    static char texts[TEXTS][SIZE];
    static pith_str list[TEXTS];
    static size_t ends[2][TEXTS];
    unsigned random = 11;
    for (int round = 0; round < ROUNDS; round++) {
        drawn d;
        char json[16384];
        pith_tokens tokens[2] = { PITH_TOKENS_INIT, PITH_TOKENS_INIT };
        pith_error err = PITH_ERROR_INIT;
        draw_vocabulary(&d, &random, letters, 3, MERGES_MOST);
        size_t size = write_json(json, sizeof json, &d);
        for (size_t i = 0; i < TEXTS; i++) {
            for (size_t k = 0; k < SIZE; k++) texts[i][k] = letters[draw(&random, 3)][0];
            list[i] = (pith_str){ texts[i], SIZE };
        }
        for (int k = 0; k < 2; k++) {
            pith__arena arena;
            pith_tokenizer *tokenizer;
            pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
            options.call.threads = k ? 4 : 1;
            pith__arena_init(&arena, &pith__allocator_default);
            assert_int_equal(pith__tokenizer_load_bytes(&tokenizer, (pith_str){ json, size }, NULL,
                                                        &arena, &err),
                             PITH_OK);
            assert_int_equal(pith_tokenize_batch(&tokens[k], ends[k], tokenizer, list, NULL, TEXTS,
                                                 &options, &err),
                             PITH_OK);
            pith__tokenizer_unload(tokenizer);
            pith__arena_free(&arena);
        }
        assert_int_equal(tokens[0].count, tokens[1].count);
        assert_memory_equal(tokens[0].ids, tokens[1].ids, tokens[0].count * sizeof *tokens[0].ids);
        assert_memory_equal(ends[0], ends[1], sizeof ends[0]);
        for (int k = 0; k < 2; k++) pith_tokens_free(&tokens[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_longest_matches),
        cmocka_unit_test(test_matches_that_cannot_be),
        cmocka_unit_test(test_tokenizers),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Arenas, maps, errors, spans: alignment, marks, running out of memory at every allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory/memory.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "support/failing_alloc.h"

static void alignment(void **state) {
    (void)state;
    for (size_t a = 1; a <= 4096; a *= 2) {
        for (size_t bytes = 0; bytes < 100; bytes += 33) {
            char *p = pith__memory_alloc(&pith__allocator_default, bytes, a);
            assert_int_equal((uintptr_t)p % (a < 16 ? 16 : a), 0);
            memset(p, 1, bytes);
            pith__memory_free(&pith__allocator_default, p);
        }
    }
    assert_null(pith__memory_alloc(&pith__allocator_default, SIZE_MAX - 8, 64));
    pith__memory_free(&pith__allocator_default, NULL);
}

static void arena_keeps_contents(void **state) {
    (void)state;
    counter c = { 0 };
    pith_allocator allocator = { count_alloc, count_free, &c };
    pith__arena arena;
    pith__arena_init(&arena, &allocator);
    enum { COUNT = 3000 };
    static unsigned char *blocks[COUNT];
    static size_t sizes[COUNT];
    uint32_t random = 1;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525 + 1013904223;
        sizes[i] = random >> 24 < 250 ? (random >> 8) % 300 : (random >> 8) % 100000;
        blocks[i] =
            i & 1 ? pith__arena_alloc(&arena, sizes[i]) : pith__arena_alloc64(&arena, sizes[i]);
        assert_int_equal((uintptr_t)blocks[i] % (i & 1 ? 16 : 64), 0);
        memset(blocks[i], i & 255, sizes[i]);
    }
    for (int i = 0; i < COUNT; i++)
        for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], i & 255);
    size_t total = 0;
    for (int i = 0; i < COUNT; i++) total += sizes[i];
    assert_true(arena.total >= total && arena.total < 2 * total + (2u << 20));
    pith__arena_reset(&arena);
    assert_int_equal(c.live, 1);
    assert_non_null(pith__arena_alloc(&arena, 100));
    pith__arena_free(&arena);
    assert_int_equal(c.live, 0);
    assert_int_equal(arena.total, 0);
    assert_non_null(pith__arena_alloc(&arena, 1));
    pith__arena_free(&arena);
}

static void marks(void **state) {
    (void)state;
    counter c = { 0 };
    pith_allocator allocator = { count_alloc, count_free, &c };
    pith__arena arena;
    pith__arena_init(&arena, &allocator);
    pith__arena_mark empty = pith__arena_get_mark(&arena);
    char *first = pith__arena_alloc(&arena, 100);
    memset(first, 7, 100);
    char *kept = pith__arena_alloc(&arena, 50000); /* a chunk of its own, before the mark */
    memset(kept, 8, 50000);
    long live = c.live;
    size_t total = arena.total;
    pith__arena_mark mark = pith__arena_get_mark(&arena);
    for (int round = 0; round < 3; round++) {
        pith__arena_alloc(&arena, 70000); /* and after it */
        for (int i = 0; i < 100; i++) pith__arena_alloc(&arena, 500);
        pith__arena_alloc(&arena, 3000000);
        pith__arena_rewind(&arena, mark);
        assert_int_equal(c.live, live);
        assert_int_equal(arena.total, total);
    }
    for (int i = 0; i < 100; i++) assert_int_equal(first[i], 7);
    for (int i = 0; i < 50000; i++) assert_int_equal(kept[i], 8);
    pith__arena_rewind(&arena, empty);
    assert_int_equal(c.live, 0);
    pith__arena_alloc(&arena, 1 << 20); /* the first chunk, full */
    mark = pith__arena_get_mark(&arena);
    pith__arena_alloc(&arena, 5 << 20);
    pith__arena_alloc(&arena, 10);
    pith__arena_rewind(&arena, mark);
    assert_int_equal(c.live, 1);
    pith__arena_free(&arena);
    assert_int_equal(c.live, 0);
}

static void limits_and_overflow(void **state) {
    (void)state;
    pith__arena arena;
    pith__arena_init(&arena, NULL);
    arena.limit = 100000;
    assert_non_null(pith__arena_alloc(&arena, 50000));
    assert_null(pith__arena_alloc(&arena, 60000));
    assert_non_null(pith__arena_alloc(&arena, 10000));
    assert_null(pith__arena_array(&arena, SIZE_MAX / 4, 8));
    assert_null(pith__arena_alloc(&arena, SIZE_MAX - 10));
    void *items = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 100; i++) {
        assert_true(pith__arena_grow(&arena, &items, i, &capacity, sizeof(size_t)));
        ((size_t *)items)[i] = i;
    }
    for (size_t i = 0; i < 100; i++) assert_int_equal(((size_t *)items)[i], i);
    capacity = SIZE_MAX / 2 + 1;
    assert_false(pith__arena_grow(&arena, &items, capacity, &capacity, sizeof(size_t)));
    pith__arena_free(&arena);
}

/* One round of everything that allocates; false if memory was out. */
static bool use_all(const pith_allocator *allocator) {
    pith__arena arena;
    pith__arena_init(&arena, allocator);
    pith__map map;
    bool good = pith__map_init(&map, &arena, 0) == PITH_OK;
    for (uint32_t i = 0; good && i < 2000; i++) {
        pith_str key = pith__arena_printf(&arena, "key %u", i);
        uint32_t old = 0;
        good = key.data && pith__map_put(&map, key, i, &old);
        if (good) assert_int_equal(old, UINT32_MAX);
    }
    for (uint32_t i = 0; good && i < 2000; i += 7) {
        pith_str key = pith__arena_printf(&arena, "key %u", i);
        good = key.data != NULL;
        if (good) assert_int_equal(pith__map_get(&map, key), i);
    }
    good = good && pith__arena_str(&arena, PITH_STR("abc")).data;
    pith__arena_free(&arena);
    return good;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    counter c = { 0 };
    pith_allocator allocator = { count_alloc, count_free, &c };
    assert_true(use_all(&allocator));
    long made = c.calls;
    assert_true(made > 5);
    for (long i = 1; i <= made; i++) {
        c = (counter){ .fail_at = i };
        assert_false(use_all(&allocator));
        assert_int_equal(c.live, 0);
    }
}

static void map_replaces(void **state) {
    (void)state;
    pith__arena arena;
    pith__arena_init(&arena, NULL);
    pith__map map;
    assert_int_equal(pith__map_init(&map, &arena, 100), PITH_OK);
    uint32_t old;
    assert_true(pith__map_put(&map, (pith_str){ NULL, 0 }, 5, &old));
    assert_int_equal(old, UINT32_MAX);
    assert_int_equal(pith__map_get(&map, PITH_STR("")), 5);
    assert_true(pith__map_put(&map, PITH_STR(""), 6, &old));
    assert_int_equal(old, 5);
    assert_int_equal(map.count, 1);
    assert_true(pith__map_put(&map, PITH_STR("a\0b"), 1, NULL));
    assert_true(pith__map_put(&map, PITH_STR("a\0c"), 2, NULL));
    assert_true(pith__map_put(&map, PITH_STR("a"), 3, NULL));
    assert_int_equal(pith__map_get(&map, PITH_STR("a\0b")), 1);
    assert_int_equal(pith__map_get(&map, PITH_STR("a\0c")), 2);
    assert_int_equal(pith__map_get(&map, PITH_STR("a")), 3);
    assert_int_equal(pith__map_get(&map, PITH_STR("b")), UINT32_MAX);
    pith__arena_free(&arena);
}

static void error_messages(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith__fail(&err, PITH_ERR_FORMAT, "a%s", "\x01\n\xff\xc3\xa9\xc2\x85"),
                     PITH_ERR_FORMAT);
    assert_string_equal(err.message, "a\\x01\\x0a\\xff\xc3\xa9\\xc2\\x85");
    assert_int_equal(pith__fail_at(&err, PITH_ERR_RUN, "%s: ", err.message), PITH_ERR_FORMAT);
    assert_string_equal(err.message,
                        "a\\x01\\x0a\\xff\xc3\xa9\\xc2\\x85: a\\x01\\x0a\\xff\xc3\xa9\\xc2\\x85");
    assert_int_equal(pith__fail(NULL, PITH_ERR_IO, "x"), PITH_ERR_IO);
    assert_int_equal(pith__fail_at(NULL, PITH_ERR_IO, "x"), PITH_ERR_IO);
    /* Cut between characters, at every phase. */
    for (int shift = 0; shift < 4; shift++) {
        char text[2 * PITH_ERROR_MESSAGE_SIZE];
        memset(text, 'x', (size_t)shift);
        for (size_t i = (size_t)shift; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xf0\x9f\x98\x80", 5);
        pith__fail(&err, PITH_ERR_FORMAT, "%s", text);
        size_t size = strlen(err.message);
        assert_true(size < PITH_ERROR_MESSAGE_SIZE && size > PITH_ERROR_MESSAGE_SIZE - 10);
        assert_int_equal(pith__utf8_valid_prefix(err.message, size), size);
        assert_null(strchr(err.message, '\\'));
        assert_string_equal(err.message + size - 7, "\xf0\x9f\x98\x80\xe2\x80\xa6");
        pith__fail_at(&err, PITH_OK, "front: ");
        assert_memory_equal(err.message, "front: x", shift ? 8 : 7);
        size = strlen(err.message);
        assert_true(size < PITH_ERROR_MESSAGE_SIZE && size > PITH_ERROR_MESSAGE_SIZE - 10);
        assert_int_equal(pith__utf8_valid_prefix(err.message, size), size);
        assert_null(strchr(err.message, '\\'));
    }
    /* Bytes that grow to \xNN are cut between two of them. */
    char bytes[PITH_ERROR_MESSAGE_SIZE];
    memset(bytes, 1, sizeof bytes - 1);
    bytes[sizeof bytes - 1] = 0;
    pith__fail(&err, PITH_ERR_FORMAT, "%s", bytes);
    assert_string_equal(err.message + strlen(err.message) - 7, "\\x01\xe2\x80\xa6");
    assert_int_equal((strlen(err.message) - 3) % 4, 0);
    /* However many places come before it, the cause stays. */
    pith__fail(&err, PITH_ERR_RUN, "the cause");
    for (int i = 0; i < 1000; i++) pith__fail_at(&err, PITH_OK, "place %d: ", i);
    assert_memory_equal(err.message, "place 999: place 998: ", 22);
    assert_non_null(strstr(err.message, "place 0: the cause"));
    pith__fail_memory(&err, 17);
    assert_string_equal(err.message, "out of memory: 17 bytes are needed");
    assert_int_equal(err.code, PITH_ERR_MEMORY);
}

static void utf8(void **state) {
    (void)state;
    /* Every code point round, surrogates and what lies above refused. */
    for (uint32_t c = 0; c < 0x110100; c++) {
        char text[40];
        memset(text, 'a', sizeof text);
        size_t size = pith__utf8_put(text + 17, c);
        bool valid = (c < 0xD800 || c > 0xDFFF) && c < 0x110000;
        assert_int_equal(pith__utf8_valid_prefix(text, sizeof text), valid ? sizeof text : 17);
        const char *p = text + 17;
        if (valid) assert_int_equal(pith__utf8_next(&p), c);
        for (size_t cut = 1; cut < size; cut++)
            assert_int_equal(pith__utf8_valid_prefix(text, 17 + cut), 17);
    }
    static const char *const bad[] = {
        "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80",
        "\x80",     "\xfe",     "\xe2\x82\x28", "\xf0\x9f\x98\x28"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(pith__utf8_valid_prefix(bad[i], strlen(bad[i])), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alignment),
        cmocka_unit_test(arena_keeps_contents),
        cmocka_unit_test(marks),
        cmocka_unit_test(limits_and_overflow),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(map_replaces),
        cmocka_unit_test(error_messages),
        cmocka_unit_test(utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_picture_memory.c - memory of pictures that is kept for the next one: used again, never twice at once, never more
 * than the limit, nothing kept for much smaller pictures. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "image/picture_memory.h"
#include "pith/image.h"

#define MB ((size_t)1 << 20)

static void *kept_get(size_t bytes) {
    void *memory = pith_picture_memory.alloc(pith_picture_memory.user, bytes);
    assert_non_null(memory);
    memset(memory, 1, bytes);
    return memory;
}

static void kept_put(void *memory) { pith_picture_memory.free(pith_picture_memory.user, memory); }

#ifndef PITH_SANITIZED
static void used_again(void **unused) {
    (void)unused;
    void *one = kept_get(6 * MB), *two = kept_get(6 * MB);
    assert_ptr_not_equal(one, two);
    kept_put(one);
    void *small = kept_get(2 * MB); /* less than half: from elsewhere */
    assert_ptr_not_equal(small, one);
    void *again = kept_get(5 * MB);
    assert_ptr_equal(again, one);
    void *more = kept_get(6 * MB); /* the one before is in use */
    assert_ptr_not_equal(more, one);
    kept_put(small), kept_put(two), kept_put(again), kept_put(more);
    kept_put(NULL);
    /* Of a picture. */
    pith_image large = { .pixels = NULL };
    pith_image_resize_options o = PITH_IMAGE_RESIZE_OPTIONS_INIT;
    const pith_image source = { (uint8_t[3]){ 1, 2, 3 }, 1, 1, 3, NULL };
    o.width = o.height = 2000;
    assert_int_equal(pith_image_resize(&large, &source, &o, NULL), PITH_OK);
    uint8_t *pixels = large.pixels;
    pith_image_free(&large);
    assert_int_equal(pith_image_resize(&large, &source, &o, NULL), PITH_OK);
    assert_ptr_equal(large.pixels, pixels);
    pith_image_free(&large);
}

static void at_most_so_much(void **unused) {
    (void)unused;
    void *blocks[8];
    assert_int_equal(pith_picture_memory_kept(), 0);
    for (int i = 0; i < 8; i++) blocks[i] = kept_get(25 * MB);
    assert_int_equal(pith_picture_memory_kept(), 0);
    for (int i = 0; i < 8; i++) kept_put(blocks[i]);
    const size_t two = pith_picture_memory_kept(); /* a third would be too much */
    assert_in_range(two, 50 * MB, 50 * MB + 1024);
    kept_put(kept_get(PITH_PICTURE_MEMORY_BYTES + MB)); /* too large */
    kept_put(kept_get(MB / 2));                         /* malloc keeps it */
    assert_int_equal(pith_picture_memory_kept(), two);
    for (int i = 0; i < 8; i++) blocks[i] = kept_get(2 * MB);
    for (int i = 0; i < 8; i++) kept_put(blocks[i]);
    assert_in_range(pith_picture_memory_kept(), 8 * MB, 8 * MB + 1024); /* four places */
    kept_put(kept_get(PITH_PICTURE_MEMORY_BYTES - 1024));               /* in place of all others */
    assert_in_range(pith_picture_memory_kept(), PITH_PICTURE_MEMORY_BYTES - 1024, PITH_PICTURE_MEMORY_BYTES);
}
#endif

static void *kept_work(void *mark) {
    for (int n = 0; n < 200; n++) {
        const size_t bytes = (1 + (size_t)n % 3) * MB;
        uint8_t *memory = kept_get(bytes);
        memory[0] = memory[bytes - 1] = *(uint8_t *)mark;
        usleep(20);
        if (memory[0] != *(uint8_t *)mark || memory[bytes - 1] != *(uint8_t *)mark)
            return mark; /* another has it, too */
        kept_put(memory);
    }
    return NULL;
}

static void several_threads(void **unused) {
    (void)unused;
    pthread_t threads[6];
    uint8_t marks[6];
    for (int i = 0; i < 6; i++) {
        marks[i] = (uint8_t)(i + 1);
        assert_int_equal(pthread_create(&threads[i], NULL, kept_work, &marks[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        void *fault;
        assert_int_equal(pthread_join(threads[i], &fault), 0);
        assert_null(fault);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifndef PITH_SANITIZED
        cmocka_unit_test(at_most_so_much), /* first: nothing is kept yet */
        cmocka_unit_test(used_again),
#endif
        cmocka_unit_test(several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

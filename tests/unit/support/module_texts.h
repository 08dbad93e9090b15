/* module_texts.h - the texts of tests/data/modules, whose vectors the directories of modules have.
 */
#ifndef PITH_TESTS_MODULE_TEXTS_H
#define PITH_TESTS_MODULE_TEXTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "pith/pith.h"

enum { TEXTS = 7 };

static char text_bytes[4096];
static pith_str texts[TEXTS];

/* A setup function of cmocka. */
static int read_texts(void **state) {
    (void)state;
    FILE *f = fopen(PITH_TEST_DATA "/modules/texts.txt", "rb");
    assert_non_null(f);
    size_t size = fread(text_bytes, 1, sizeof text_bytes - 1, f);
    fclose(f);
    char *at = text_bytes;
    for (int i = 0; i < TEXTS; i++) {
        char *end = strchr(at, '\n');
        assert_non_null(end);
        texts[i] = (pith_str){ at, (size_t)(end - at) };
        at = end + 1;
    }
    assert_ptr_equal(at, text_bytes + size);
    return 0;
}

#endif

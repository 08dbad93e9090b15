/* loader_test.h - what the tests of loaders share: an arena, the files it maps, and a directory
 * that lives as long. */
#ifndef LOADER_TEST_H
#define LOADER_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/os/file.h"

static pith__arena arena;
static pith__files files;
static char dir[] = "/tmp/pith-loader-XXXXXX";

static inline void put_file(const char *name, const void *data, size_t size) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

static inline int loader_setup(void **state) {
    (void)state;
    pith__arena_init(&arena, NULL);
    files = (pith__files){ .arena = &arena };
    return mkdtemp(dir) ? 0 : 1;
}

static inline int loader_teardown(void **state) {
    (void)state;
    char command[128];
    pith__files_close(&files);
    pith__arena_free(&arena);
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

#endif

/* Files: mapped and copied, pipes, directories, names that try to leave their folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"

static char dir[] = "/tmp/pith-file-XXXXXX";
static char path[128];

static const char *in_dir(const char *name) {
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text, size_t size) {
    FILE *f = fopen(in_dir(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    fclose(f);
}

static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 100; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void reading(void **state) {
    (void)state;
    put("a", "hello", 5);
    put("empty", "", 0);
    int before = open_descriptors();
    for (int copy = 0; copy < 2; copy++) {
        pith__file file;
        pith_error err = PITH_ERROR_INIT;
        assert_int_equal(pith__file_open(&file, in_dir("a"), copy, NULL, &err), PITH_OK);
        assert_int_equal(file.size, 5);
        assert_memory_equal(file.data, "hello", 5);
        assert_int_equal(file.mapped, !copy);
        pith__file_release(&file, file.data, file.size);
        pith__file_close(&file);
        assert_int_equal(pith__file_open(&file, in_dir("empty"), copy, NULL, &err), PITH_OK);
        assert_int_equal(file.size, 0);
        assert_non_null(file.data);
        pith__file_close(&file);
        pith__file untouched = { .size = 77 };
        assert_int_equal(pith__file_open(&untouched, in_dir("missing"), copy, NULL, &err),
                         PITH_ERR_NOT_FOUND);
        assert_non_null(strstr(err.message, "/missing: "));
        assert_int_equal(pith__file_open(&untouched, dir, copy, NULL, &err), PITH_ERR_IO);
        assert_int_equal(pith__file_open(&untouched, "/dev/zero", copy, NULL, &err), PITH_ERR_IO);
        assert_int_equal(pith__file_open(&untouched, in_dir("a/b"), copy, NULL, &err),
                         PITH_ERR_NOT_FOUND);
        assert_int_equal(untouched.size, 77);
    }
    assert_int_equal(open_descriptors(), before);
    assert_true(pith__file_exists(in_dir("a")));
    assert_false(pith__file_exists(dir));
    assert_true(pith__dir_exists(dir));
    assert_false(pith__dir_exists(in_dir("a")));
}

static void pipes(void **state) {
    (void)state;
    assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
    pith__file file;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith__file_open(&file, in_dir("pipe"), false, NULL, &err), PITH_ERR_IO);
    char command[256];
    snprintf(command, sizeof command, "head -c 300001 /dev/zero > %s &", path);
    assert_int_equal(system(command), 0);
    assert_int_equal(pith__file_open(&file, path, true, NULL, &err), PITH_OK);
    assert_int_equal(file.size, 300001);
    pith__file_close(&file);
}

static void several(void **state) {
    (void)state;
    put("one", "1", 1);
    put("two", "22", 2);
    pith__arena arena;
    pith__arena_init(&arena, NULL);
    pith__files files = { .arena = &arena };
    pith_str a, b, again;
    assert_int_equal(pith__files_open(&a, &files, in_dir("one"), NULL), PITH_OK);
    assert_int_equal(pith__files_open(&b, &files, in_dir("two"), NULL), PITH_OK);
    assert_int_equal(pith__files_open(&again, &files, in_dir("one"), NULL), PITH_OK);
    assert_ptr_equal(a.data, again.data);
    assert_int_equal(files.count, 2);
    assert_true(pith__str_is(b, "22"));
    assert_int_equal(pith__files_open(&again, &files, in_dir("three"), NULL), PITH_ERR_NOT_FOUND);
    pith__files_release(&files, b.data, b.size);
    assert_true(pith__str_is(b, "22"));
    pith__files_close(&files);
    pith__arena_free(&arena);
}

static void names_stay_inside(void **state) {
    (void)state;
    pith__arena arena;
    pith__arena_init(&arena, NULL);
    pith_str joined;
    pith_error err = PITH_ERROR_INIT;
    static const pith_str bad[] = {
        { "", 0 },       { "/etc/passwd", 11 }, { "..", 2 },   { "../x", 4 },
        { "a/../b", 6 }, { "a/..", 4 },         { "a\0b", 3 }, { "a/b/../../..", 12 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(pith__path_join(&joined, &arena, "dir", bad[i], &err), PITH_ERR_FORMAT);
    assert_int_equal(pith__path_join(&joined, &arena, "dir", PITH_STR("..a/b..c/...d"), &err),
                     PITH_OK);
    assert_string_equal(joined.data, "dir/..a/b..c/...d");
    assert_int_equal(pith__path_join(&joined, &arena, "/", PITH_STR("a//b"), &err), PITH_OK);
    assert_string_equal(joined.data, "/a//b");
    pith__arena_free(&arena);
}

static int setup(void **state) {
    (void)state;
    return mkdtemp(dir) ? 0 : 1;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(reading), cmocka_unit_test(pipes),
                                        cmocka_unit_test(several),
                                        cmocka_unit_test(names_stay_inside) };
    return cmocka_run_group_tests(tests, setup, teardown);
}

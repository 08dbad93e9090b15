/* test_system_memory.c - what the system's files say about memory, below a directory of the test.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os/system_memory.h"

static char root[64];

/* Writes root/path, and makes its folders. */
static void put(const char *path, const char *text) {
    char full[400];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0755);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int begin(void **state) {
    (void)state;
    strcpy(root, "/tmp/pith-memory-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int end(void **state) {
    char line[100];
    (void)state;
    snprintf(line, sizeof line, "rm -rf '%s'", root);
    return system(line);
}

static pith_memory_info report(void) {
    pith_memory_info info = PITH_MEMORY_INFO_INIT;
    assert_int_equal(pith_memory_report(&info, root, NULL), PITH_OK);
    return info;
}

static void meminfo(unsigned total, unsigned available) {
    char text[200];
    snprintf(text, sizeof text, "MemTotal: %u kB\nMemFree: 1 kB\nMemAvailable: %u kB\n", total,
             available);
    put("/proc/meminfo", text);
}

static void near(double a, double b) { assert_true(fabs(a - b) < 1e-9); }

static void test_nothing(void **state) {
    (void)state;
    pith_memory_info info = report();
    assert_int_equal(info.total + info.available + info.group_limit + info.group_used, 0);
    near(info.used, 0);
    near(info.stalled, 0);
}

static void test_machine(void **state) {
    (void)state;
    meminfo(1000, 250);
    pith_memory_info info = report();
    assert_int_equal(info.total, 1000 << 10);
    assert_int_equal(info.available, 250 << 10);
    near(info.used, 0.75);
}

/* Version 2: the group that leaves least, here the parent; file cache that can be dropped is not in
 * use. */
static void test_version_2(void **state) {
    (void)state;
    meminfo(1000000, 900000);
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.current", "100\n");
    put("/sys/fs/cgroup/a/memory.max", "1000\n");
    put("/sys/fs/cgroup/a/memory.current", "900\n");
    put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 200\nactive_file 7\n");
    pith_memory_info info = report();
    assert_int_equal(info.group_limit, 1000);
    assert_int_equal(info.group_used, 700);
    near(info.used, 0.7);
    put("/sys/fs/cgroup/a/b/memory.high", "110\n"); /* at which the kernel begins to throttle */
    info = report();
    assert_int_equal(info.group_limit, 110);
    near(info.used, 100.0 / 110);
    /* in a container the group's path is one of outside */
    put("/proc/self/cgroup", "0::/../elsewhere\n");
    put("/sys/fs/cgroup/memory.max", "500\n");
    put("/sys/fs/cgroup/memory.current", "400\n");
    near(report().used, 0.8);
}

static void test_version_1(void **state) {
    (void)state;
    put("/proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/jobs/one\n0::/\n");
    put("/sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    put("/sys/fs/cgroup/memory/jobs/one/memory.usage_in_bytes", "50\n");
    assert_int_equal(report().group_limit, 0);
    put("/sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "200\n");
    put("/sys/fs/cgroup/memory/jobs/one/memory.stat", "inactive_file 1\ntotal_inactive_file 20\n");
    pith_memory_info info = report();
    assert_int_equal(info.group_limit, 200);
    assert_int_equal(info.group_used, 30);
    near(info.used, 0.15);
}

static bool is_short(double threshold, char *text, size_t size) {
    pith__memory_gauge gauge = { .threshold = threshold, .root = root };
    return pith__memory_gauge_short(&gauge, text, size);
}

static void test_gauge(void **state) {
    (void)state;
    char text[200];
    meminfo(1000, 250);
    assert_true(is_short(0.7, text, sizeof text));
    assert_non_null(strstr(text, "75 % of the machine's memory"));
    assert_false(is_short(0.8, text, sizeof text));
    assert_false(is_short(0, text, sizeof text));
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "1000\n");
    put("/sys/fs/cgroup/a/memory.current", "950\n");
    assert_true(is_short(0.8, text, sizeof text));
    assert_non_null(strstr(text, "95 % of the control group's limit"));
    put("/sys/fs/cgroup/a/memory.current", "50\n");
    put("/proc/pressure/memory",
        "some avg10=40.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=12.50 avg60=0.00\n");
    near(report().stalled, 0.125);
    assert_true(is_short(0.8, text, sizeof text));
    assert_non_null(strstr(text, "waited for it 12 % of the time"));
}

/* Between two looks the answer is no. */
static void test_pause(void **state) {
    (void)state;
    char text[200];
    meminfo(1000, 1);
    pith__memory_gauge gauge = { .threshold = 0.5,
                                 .root = root,
                                 .pause = (uint64_t)3600 * 1000000000 };
    assert_true(pith__memory_gauge_short(&gauge, text, sizeof text));
    assert_false(pith__memory_gauge_short(&gauge, text, sizeof text));
}

static void test_broken_files(void **state) {
    (void)state;
    static const char *const texts[] = { "",
                                         "\n\n\n",
                                         ":::::",
                                         "0:",
                                         "4:memory:",
                                         "x\0y",
                                         "0::/a/../../../../b//c/\n",
                                         "MemTotal:\nMemAvailable: -5 kB\nfull avg10=nan" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("/proc/meminfo", texts[i]);
        put("/proc/self/cgroup", texts[i]);
        put("/proc/pressure/memory", texts[i]);
        report();
    }
    char long_path[3000] = "0::/";
    memset(long_path + 4, 'a', sizeof long_path - 5);
    put("/proc/self/cgroup", long_path);
    report();
}

static void test_arguments(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_memory_info info = { 0 };
    assert_int_equal(pith_memory_report(&info, NULL, &err), PITH_ERR_ARGUMENT);
    info.size = offsetof(pith_memory_info, available);
    info.available = 77; /* an older header has no such member */
    assert_int_equal(pith_memory_report(&info, NULL, &err), PITH_OK);
    assert_true(info.total > 0);
    assert_int_equal(info.available, 77);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_machine, begin, end),
        cmocka_unit_test_setup_teardown(test_version_2, begin, end),
        cmocka_unit_test_setup_teardown(test_version_1, begin, end),
        cmocka_unit_test_setup_teardown(test_gauge, begin, end),
        cmocka_unit_test_setup_teardown(test_pause, begin, end),
        cmocka_unit_test_setup_teardown(test_broken_files, begin, end),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

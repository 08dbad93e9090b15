/* Models of the caches by names that are not spelled as their directories are. tests/cli/pulls.py
 * has more of them, through the command. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "pith/pith.h"

static char place[PATH_MAX - 1000];

static void make_folder(const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/", place, name);
    for (char *slash = path + strlen(place) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
}

static void make_file(const char *name, const char *text) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", place, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A model of Pith's cache, pulled from `repository` unless that is NULL. */
static void make_model(const char *name, const char *repository) {
    char path[500], pin[300];
    snprintf(path, sizeof path, "models/%s", name);
    make_folder(path);
    snprintf(path, sizeof path, "models/%s/model.onnx", name);
    make_file(path, "");
    snprintf(path, sizeof path, "models/%s/.pith-pull.json", name);
    snprintf(pin, sizeof pin, "{\"files\": {\"a\": {}}, \"repository\": \"%s\"}",
             repository ? repository : "");
    if (repository) make_file(path, pin);
}

/* Whether the name is found, and ends so. */
static void finds(const char *name, const char *end) {
    char path[PATH_MAX];
    pith_error err = PITH_ERROR_INIT;
    pith_status status = pith_model_locate(path, sizeof path, name, &err);
    if (status) fail_msg("%s: %s", name, err.message);
    const size_t n = strlen(path), m = strlen(end);
    if (n < m || strcmp(path + n - m, end) != 0) fail_msg("%s is %s, not %s", name, path, end);
}

static void misses(const char *name, const char *says) {
    char path[PATH_MAX];
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith_model_locate(path, sizeof path, name, &err), PITH_ERR_NOT_FOUND);
    if (!strstr(err.message, says)) fail_msg("%s: %s", name, err.message);
}

static void test_capitals_and_organisations(void **state) {
    (void)state;
    make_model("Org/The-Model", NULL);
    finds("Org/The-Model", "/models/Org/The-Model");
    finds("org/the-MODEL", "/models/Org/The-Model");
    finds("the-model", "/models/Org/The-Model");
    misses("other/the-model", "no model 'other/the-model'");
    misses("org", "no model 'org'");
    misses("a/org/the-model", "no model");
    misses("the-mode", "no model");
    make_model("the-model", NULL);
    finds("the-model", "/models/the-model");
    finds("THE-model", "/models/the-model");
    finds("ORG/the-model", "/models/Org/The-Model");
}

static void test_who_it_is_from(void **state) {
    (void)state;
    make_model("pulled", "Someone/Pulled");
    finds("someone/pulled", "/models/pulled");
    misses("other/pulled", "no model");
    make_model("mine", NULL);
    misses("someone/mine", "no model");
    make_model("damaged", "\\");
    misses("someone/damaged", "no model");
}

static void test_short_names(void **state) {
    (void)state;
    misses("minilm", "no model 'minilm'");
    make_model("Xenova/all-MiniLM-L6-v2", NULL);
    misses("minilm", "no model");
    misses("all-minilm-l6-v2", "no model");
    make_model("all-MiniLM-L6-v2", NULL);
    finds("MiniLM", "/models/all-MiniLM-L6-v2");
    finds("sentence-transformers/ALL-MiniLM-L6-v2", "/models/all-MiniLM-L6-v2");
    finds("xenova/ALL-MiniLM-L6-v2", "/models/Xenova/all-MiniLM-L6-v2");
    make_model("sentence-transformers/all-MiniLM-L6-v2", NULL);
    finds("minilm", "/models/sentence-transformers/all-MiniLM-L6-v2");
}

static void test_more_than_one(void **state) {
    (void)state;
    make_model("one/twin", NULL);
    make_model("two/twin", NULL);
    misses("twin", "one/twin and two/twin");
    finds("TWO/twin", "/models/two/twin");
}

static void test_other_cache(void **state) {
    (void)state;
    make_folder("hub/models--BAAI--bge-small-en-v1.5/snapshots/abc");
    finds("bge-small", "/hub/models--BAAI--bge-small-en-v1.5/snapshots/abc");
    finds("baai/BGE-small-en-v1.5", "/snapshots/abc");
    make_model("BGE-small-en-v1.5", NULL);
    finds("bge-small-en-v1.5", "/models/BGE-small-en-v1.5");
}

static int set_up(void **state) {
    char hub[PATH_MAX];
    (void)state;
    snprintf(place, sizeof place, "%s/name_search.XXXXXX", PITH_BINARY_DIR);
    if (!mkdtemp(place)) return -1;
    snprintf(hub, sizeof hub, "%s/hub", place);
    setenv("PITH_CACHE", place, 1);
    setenv("HF_HUB_CACHE", hub, 1);
    return 0;
}

static int tear_down(void **state) {
    char command[PATH_MAX + 20];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", place);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capitals_and_organisations),
        cmocka_unit_test(test_who_it_is_from),
        cmocka_unit_test(test_short_names),
        cmocka_unit_test(test_more_than_one),
        cmocka_unit_test(test_other_cache),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

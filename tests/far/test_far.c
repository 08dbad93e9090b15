/* test_far.c - a backend that is missing, fails to open, is lost or out of memory while it runs;
 * what a description says of it; texts embedded on it. */
#include "../unit/support/embed_test.h"
#include "far.h"

#include <pthread.h>

#define DIRECTORY PITH_BINARY_DIR "/far-model"
#define MODEL PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx"

enum { TOKENS = 5, TEXTS = 4, WIDTH_MAX = 256 };

static char warning[512];

static void take_warning(void *user, pith_log_level level, const char *message) {
    (void)user, (void)level;
    snprintf(warning, sizeof warning, "%s", message);
}

static int setup(void **state) {
    (void)state;
    far = (far_control){ .runs_left = -1, .bytes_left = -1 };
    return 0;
}

/* Everything was given back. */
static int teardown(void **state) {
    (void)state;
    return far.opened || far.bytes;
}

typedef struct opened {
    pith_model *model;
    pith_session *session;
} opened;

static void open_session(opened *o, const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_open(&o->model, MODEL, options, &err) ||
        pith_session_create(&o->session, o->model, &err))
        fail_msg("%s", err.message);
}

static void close_session(opened *o) {
    pith_session_destroy(o->session);
    pith_model_close(o->model);
}

static pith_status run(pith_tensor *output, const opened *o, pith_error *err) {
    static int64_t ids[TOKENS] = { 2, 5, 6, 7, 3 }, zeros[TOKENS], ones[TOKENS] = { 1, 1, 1, 1, 1 };
    const char *names[3];
    pith_tensor inputs[3], outputs[4];
    size_t count = pith_model_input_count(o->model);
    assert_true(count <= 3 && pith_model_output_count(o->model) <= 4);
    for (size_t i = 0; i < count; i++) {
        names[i] = pith_model_input(o->model, i)->name;
        int64_t *data = !strcmp(names[i], "input_ids")        ? ids
                        : !strcmp(names[i], "attention_mask") ? ones
                                                              : zeros;
        inputs[i] = (pith_tensor){
            .data = data, .bytes = sizeof ids, .dtype = PITH_I64, .rank = 2, .dims = { 1, TOKENS }
        };
    }
    pith_status status = pith_session_run(o->session, outputs, names, inputs, count, NULL, err);
    *output = outputs[0];
    return status;
}

static void must_run(const opened *o, const pith_tensor *wanted) {
    pith_error err = PITH_ERROR_INIT;
    pith_tensor output;
    if (run(&output, o, &err)) fail_msg("%s", err.message);
    assert_int_equal(output.bytes, wanted->bytes);
    assert_memory_equal(output.data, wanted->data, wanted->bytes);
}

static void open_cpu(opened *o, pith_tensor *output) {
    pith_error err = PITH_ERROR_INIT;
    uint32_t seed = far.seed;
    far.seed = FAR_NONE;
    open_session(o, NULL);
    assert_int_equal(run(output, o, &err), PITH_OK);
    assert_int_equal(far.steps + far.copies, 0);
    far.seed = seed;
}

static void test_missing(void **state) {
    (void)state;
    pith_log log = { .write = take_warning };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    opened cpu, other;
    pith_tensor wanted;
    open_cpu(&cpu, &wanted);
    far.open = PITH_ERR_NOT_FOUND;
    options.call.log = &log;
    open_session(&other, &options);
    assert_string_equal(warning, "backend 'far' is not used: no far memory in this machine");
    must_run(&other, &wanted);
    assert_int_equal(far.steps + far.copies, 0);
    close_session(&other);
    close_session(&cpu);
}

static void test_open_fails(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    opened cpu, other;
    pith_tensor wanted;
    open_cpu(&cpu, &wanted);
    far.open = PITH_ERR_IO;
    assert_int_equal(pith_model_open(&other.model, MODEL, NULL, &err), PITH_ERR_IO);
    assert_string_equal(err.message, "backend 'far': no far memory in this machine");
    far.open = PITH_OK;
    open_session(&other, NULL);
    must_run(&other, &wanted);
    assert_true(far.steps > 0 && far.copies > 0);
    close_session(&other);
    close_session(&cpu);
}

/* At each of its steps and copies. */
static void test_lost(void **state) {
    (void)state;
    opened cpu, other;
    pith_tensor wanted, output;
    open_cpu(&cpu, &wanted);
    open_session(&other, NULL);
    size_t before = far.steps + far.copies;
    must_run(&other, &wanted);
    size_t all = far.steps + far.copies - before;
    assert_true(all > 10);
    for (size_t n = 0; n < all; n++) {
        pith_error err = PITH_ERROR_INIT;
        far.runs_left = (int64_t)n;
        assert_int_equal(run(&output, &other, &err), PITH_ERR_RUN);
        if (strncmp(err.message, "node ", 5) || !strstr(err.message, "): the device is lost"))
            fail_msg("%s", err.message);
        far.runs_left = -1;
        must_run(&other, &wanted);
    }
    close_session(&other);
    close_session(&cpu);
}

static void test_no_memory(void **state) {
    (void)state;
    opened cpu, other;
    pith_tensor wanted, output;
    pith_error err = PITH_ERROR_INIT;
    open_cpu(&cpu, &wanted);
    far.bytes_left = 0;
    assert_int_equal(pith_model_open(&other.model, MODEL, NULL, &err), PITH_ERR_MEMORY);
    assert_non_null(strstr(err.message, "backend 'far' has no "));
    far.bytes_left = -1;
    open_session(&other, NULL);
    far.bytes_left = 0;
    assert_int_equal(run(&output, &other, &err), PITH_ERR_MEMORY);
    assert_non_null(strstr(err.message, "backend 'far' has no "));
    far.bytes_left = -1;
    must_run(&other, &wanted);
    close_session(&other);
    close_session(&cpu);
}

/* ---- the host's memory runs out ---- */

typedef struct failing {
    size_t left;
} failing;

static void *failing_alloc(void *user, size_t bytes) {
    failing *f = user;
    if (!f->left) return NULL;
    f->left--;
    return malloc(bytes);
}

static void failing_free(void *user, void *memory) {
    (void)user;
    free(memory);
}

static void test_host_memory(void **state) {
    (void)state;
    failing f;
    pith_allocator allocator = { .user = &f, .alloc = failing_alloc, .free = failing_free };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.call.allocator = &allocator;
    bool done = false;
    for (size_t n = 0; !done; n++) {
        pith_error err = PITH_ERROR_INIT;
        opened o = { NULL, NULL };
        pith_tensor output;
        f.left = n;
        pith_status status = pith_model_open(&o.model, MODEL, &options, &err);
        if (!status) status = pith_session_create(&o.session, o.model, &err);
        if (!status) status = run(&output, &o, &err);
        if (status) assert_int_equal(status, PITH_ERR_MEMORY);
        done = !status;
        close_session(&o);
        assert_int_equal(far.opened + far.bytes, 0);
    }
}

/* ---- a list of devices ---- */

static pith_statistics count(const pith_model *model) {
    pith_statistics n = PITH_STATISTICS_INIT;
    assert_int_equal(pith_model_statistics(&n, model, NULL), PITH_OK);
    return n;
}

static void expect(const opened *o, uint64_t choices, uint64_t successes, uint64_t fallbacks) {
    pith_statistics n = count(o->model);
    assert_int_equal(n.device_choices, choices);
    assert_int_equal(n.device_successes, successes);
    assert_int_equal(n.device_fallbacks, fallbacks);
}

static void test_list(void **state) {
    (void)state;
    static const struct {
        const char *devices;
        pith_status open;
        uint64_t choices, fallbacks;
        bool far_runs;
        const char *says; /* the last warning */
    } rows[] = {
        { NULL, PITH_OK, 2, 0, true, "" },
        { "auto", PITH_OK, 2, 0, true, "" },
        { "far,cpu", PITH_OK, 2, 0, true, "" },
        { " far , cpu", PITH_OK, 2, 0, true, "" },
        { "cpu", PITH_OK, 1, 0, false, "" },
        { "cpu,far", PITH_OK, 2, 0, false, "" },
        { "cuda,far,cpu", PITH_OK, 3, 1, true,
          "backend 'cuda' is not used: this build does not have it" },
        { "cuda,cpu", PITH_OK, 2, 1, false,
          "backend 'cuda' is not used: this build does not have it" },
        { "auto", PITH_ERR_NOT_FOUND, 2, 1, false,
          "backend 'far' is not used: no far memory in this machine" },
        { "far,cpu", PITH_ERR_NOT_FOUND, 2, 1, false,
          "backend 'far' is not used: no far memory in this machine" },
        { "far,cpu", PITH_ERR_IO, 2, 1, false,
          "backend 'far' is not used: no far memory in this machine" },
        { "auto", PITH_ERR_MEMORY, 2, 1, false,
          "backend 'far' is not used: no far memory in this machine" },
    };
    opened cpu, other;
    pith_tensor wanted;
    pith_log log = { .write = take_warning };
    open_cpu(&cpu, &wanted);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        options.devices = rows[i].devices;
        options.call.log = &log;
        far.open = rows[i].open;
        warning[0] = 0;
        open_session(&other, &options);
        assert_string_equal(warning, rows[i].says);
        size_t steps = far.steps;
        must_run(&other, &wanted);
        must_run(&other, &wanted);
        assert_int_equal(far.steps > steps, rows[i].far_runs);
        expect(&other, rows[i].choices, 2, rows[i].fallbacks);
        close_session(&other);
    }
    far.open = PITH_OK;
    close_session(&cpu);
}

static void test_wrong_list(void **state) {
    (void)state;
    static const struct {
        const char *devices;
        pith_status open, status;
        const char *says;
    } rows[] = {
        { "cuda", PITH_OK, PITH_ERR_ARGUMENT,
          "the list of devices 'cuda' has none of this build, which has far, cpu" },
        { "", PITH_OK, PITH_ERR_ARGUMENT, "the list of devices has an empty name" },
        { "far,", PITH_OK, PITH_ERR_ARGUMENT, "the list of devices has an empty name" },
        { "far,cpu,far", PITH_OK, PITH_ERR_ARGUMENT, "the list of devices has 'far' twice" },
        { "far,auto", PITH_OK, PITH_ERR_ARGUMENT, "'auto' stands for all devices; give it alone" },
        { "far", PITH_OK, PITH_ERR_UNSUPPORTED, "no backend can run it" },
        { "far", PITH_ERR_IO, PITH_ERR_UNSUPPORTED,
          "none of the devices can be used; backend 'far': no far memory in this machine" },
        { NULL, PITH_ERR_IO, PITH_ERR_IO, "backend 'far': no far memory in this machine" },
    };
    far.seed = FAR_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_model *model;
        options.devices = rows[i].devices;
        far.open = rows[i].open;
        assert_int_equal(pith_model_open(&model, MODEL, &options, &err), rows[i].status);
        if (!strstr(err.message, rows[i].says)) fail_msg("%s", err.message);
    }
    far.open = PITH_OK;
}

/* Lost at each of its steps and copies: the run ends on the CPU with the same bits, and so do all
 * later ones. */
static void test_list_lost(void **state) {
    (void)state;
    opened cpu, other;
    pith_tensor wanted;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_log log = { .write = take_warning };
    options.devices = "far,cpu";
    options.call.log = &log;
    open_cpu(&cpu, &wanted);
    open_session(&other, &options);
    size_t before = far.steps + far.copies;
    must_run(&other, &wanted);
    size_t all = far.steps + far.copies - before;
    assert_true(all > 10);
    close_session(&other);
    for (size_t n = 0; n < all; n++) {
        open_session(&other, &options);
        must_run(&other, &wanted);
        expect(&other, 2, 1, 0);
        far.runs_left = (int64_t)n;
        must_run(&other, &wanted);
        assert_true(!strncmp(warning, "backend 'far' is no longer used: node ", 38));
        expect(&other, 3, 1, 1); /* the CPU was opened once more */
        far.runs_left = -1;
        size_t steps = far.steps;
        must_run(&other, &wanted);
        pith_session *first = other.session;
        assert_int_equal(pith_session_create(&other.session, other.model, NULL), PITH_OK);
        must_run(&other, &wanted); /* another session follows */
        assert_int_equal(far.steps, steps);
        expect(&other, 3, 3, 1);
        pith_session_destroy(first);
        close_session(&other);
    }
    close_session(&cpu);
}

/* It has no memory for constants, or none for activations. */
static void test_list_no_memory(void **state) {
    (void)state;
    opened cpu, other;
    pith_tensor wanted;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.devices = "far,cpu";
    open_cpu(&cpu, &wanted);
    for (int at_open = 0; at_open < 2; at_open++) {
        far.bytes_left = at_open ? 0 : -1;
        open_session(&other, &options);
        far.bytes_left = 0;
        must_run(&other, &wanted);
        must_run(&other, &wanted);
        expect(&other, 3, at_open ? 2 : 1, 1);
        far.bytes_left = -1;
        close_session(&other);
    }
    close_session(&cpu);
}

/* A run that fails on every device keeps the one it was placed on. */
static void test_list_own_error(void **state) {
    (void)state;
    opened cpu, other;
    pith_tensor wanted, outputs[4];
    pith_error err = PITH_ERROR_INIT;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.devices = "far,cpu";
    open_cpu(&cpu, &wanted);
    open_session(&other, &options);
    int64_t ids[TOKENS] = { 2, 1 << 20, 6, 7, 3 }, ones[TOKENS] = { 1, 1, 1, 1, 1 },
            zeros[TOKENS] = { 0 };
    const char *names[] = { "input_ids", "attention_mask", "token_type_ids" };
    int64_t *data[] = { ids, ones, zeros };
    pith_tensor inputs[3];
    for (int i = 0; i < 3; i++)
        inputs[i] = (pith_tensor){ .data = data[i],
                                   .bytes = sizeof ids,
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { 1, TOKENS } };
    assert_int_equal(pith_session_run(other.session, outputs, names, inputs, 3, NULL, &err),
                     PITH_ERR_RUN);
    assert_true(!strncmp(err.message, "node ", 5));
    size_t steps = far.steps;
    must_run(&other, &wanted);
    assert_true(far.steps > steps);
    assert_int_equal(count(other.model).device_successes, 1);
    assert_int_equal(count(other.model).device_fallbacks, 0);
    close_session(&other);
    close_session(&cpu);
}

typedef struct reader {
    const pith_model *model;
    float vectors[TEXTS * WIDTH_MAX];
    size_t dim;
    bool good;
    float (*wanted)[WIDTH_MAX];
} reader;

static void *embed_often(void *context) {
    reader *r = context;
    static const char *const words[TEXTS] = { "a b c", "abc dab", "", "d d d d d d d d d" };
    pith_str texts[TEXTS];
    for (int i = 0; i < TEXTS; i++) texts[i] = pith__str_of(words[i]);
    for (int round = 0; round < 40 && r->good; round++) {
        r->good = !pith_embed(r->vectors, r->model, texts, TEXTS, NULL, NULL);
        for (int i = 0; i < TEXTS && r->good; i++)
            r->good =
                !memcmp(r->vectors + (size_t)i * r->dim, r->wanted[i], r->dim * sizeof(float));
    }
    return NULL;
}

static void embed_with(float (*vectors)[WIDTH_MAX], uint32_t seed, int precision, bool calibrate);

/* Texts of many threads, while the device is lost: no call fails, no bit differs, the device is
 * given up once. */
static void test_list_threads(void **state) {
    (void)state;
    enum { READERS = 6 };
    static float wanted[TEXTS][WIDTH_MAX];
    static reader readers[READERS];
    pthread_t threads[READERS];
    network_directory(DIRECTORY, "bert-base-script17-sdpa", "null");
    embed_with(wanted, FAR_NONE, PITH_PRECISION_F32, false);
    far.seed = FAR_ALL;
    for (int64_t left = 1; left < 3000; left = left * 3 + 1) {
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_model *model;
        options.devices = "far,cpu";
        if (pith_model_open(&model, DIRECTORY, &options, &err)) fail_msg("%s", err.message);
        far.runs_left = left;
        for (int i = 0; i < READERS; i++) {
            readers[i] = (reader){
                .model = model, .dim = pith_embed_dim(model, NULL), .good = true, .wanted = wanted
            };
            assert_int_equal(pthread_create(&threads[i], NULL, embed_often, &readers[i]), 0);
        }
        for (int i = 0; i < READERS; i++) {
            pthread_join(threads[i], NULL);
            assert_true(readers[i].good);
        }
        far.runs_left = -1;
        pith_statistics n = count(model);
        /* Runs that were under way at that moment, and no others, went on elsewhere. */
        assert_true(n.device_fallbacks >= 1 && n.device_fallbacks <= READERS * 2);
        assert_int_equal(n.device_successes + n.device_fallbacks, n.batches);
        pith_model_close(model);
    }
}

/* ---- what is said of it ---- */

static int32_t append(void *user, const void *text, size_t size) {
    pith_str *all = user;
    all->data = realloc((char *)(uintptr_t)all->data, all->size + size + 1);
    memcpy((char *)(uintptr_t)all->data + all->size, text, size);
    all->size += size;
    ((char *)(uintptr_t)all->data)[all->size] = 0;
    return 0;
}

/* Strings of the array of this name, joined by spaces. */
static char *list_of(const char *json, const char *name) {
    char key[64], *list = calloc(1, strlen(json) + 2), *to = list;
    snprintf(key, sizeof key, "\"%s\": [", name);
    const char *from = strstr(json, key);
    assert_non_null(from);
    for (from += strlen(key); *from != ']'; from++)
        if (*from != '"') *to++ = *from == ',' ? ' ' : *from;
    return list;
}

static void test_description(void **state) {
    (void)state;
    opened o;
    pith_error err = PITH_ERROR_INIT;
    pith_str json = { NULL, 0 };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.flags = PITH_OPEN_DESCRIBE;
    far.seed = 4;
    open_session(&o, &options);
    const pith_writer writer = { .write = append, .user = &json };
    assert_int_equal(pith_model_describe(o.model, PITH_DESCRIBE_JSON, NULL, &writer, &err),
                     PITH_OK);
    char *steps = list_of(json.data, "steps"), *backends = list_of(json.data, "step_backends");
    size_t copies = 0, on_far = 0, on_cpu = 0;
    for (char *s = steps, *b = backends, *next_s, *next_b; (s = strtok_r(s, " ", &next_s));
         s = NULL, b = NULL) {
        b = strtok_r(b, " ", &next_b);
        assert_non_null(b);
        bool copy = !strcmp(s, "CopyToDevice") || !strcmp(s, "CopyToHost"),
             is_far = !strcmp(b, "far");
        assert_true(is_far || !copy);
        copies += copy;
        on_far += is_far && !copy;
        on_cpu += !is_far;
    }
    pith_tensor output;
    assert_int_equal(run(&output, &o, &err), PITH_OK);
    assert_true(copies > 0 && on_far > 0 && on_cpu > 0);
    assert_int_equal(on_far, far.steps); /* all of them run */
    free((char *)(uintptr_t)json.data);
    free(steps);
    free(backends);
    close_session(&o);
}

/* ---- texts ---- */

static void embed_with(float (*vectors)[WIDTH_MAX], uint32_t seed, int precision, bool calibrate) {
    static const char *const words[TEXTS] = { "a b c", "abc dab", "", "d d d d d d d d d" };
    pith_str texts[TEXTS];
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_embed_options how = PITH_EMBED_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    static float rows[TEXTS * WIDTH_MAX];
    options.precision = precision;
    how.call.threads = 2;
    far.seed = seed;
    if (pith_model_open(&model, DIRECTORY, &options, &err)) fail_msg("%s", err.message);
    size_t dim = pith_embed_dim(model, NULL);
    assert_true(dim > 0 && dim <= WIDTH_MAX);
    for (int i = 0; i < TEXTS; i++) texts[i] = pith__str_of(words[i]);
    if (calibrate) {
        pith_calibrate_options fit = PITH_CALIBRATE_OPTIONS_INIT;
        fit.texts = texts;
        fit.text_count = TEXTS;
        pith_status status = pith_model_calibrate(model, &fit, &err);
        assert_int_equal(status, seed == FAR_ALL ? PITH_ERR_ARGUMENT : PITH_OK);
    }
    embed(rows, model, texts, TEXTS, &how);
    for (int i = 0; i < TEXTS; i++) memcpy(vectors[i], rows + (size_t)i * dim, dim * sizeof *rows);
    pith_model_close(model);
}

static void test_texts(void **state) {
    (void)state;
    static const char *const networks[] = { "bert-base-script17-sdpa",
                                            "families/deberta-v2-dynamo20",
                                            "families/gte-dynamo20-int8" };
    static float cpu[TEXTS][WIDTH_MAX], other[TEXTS][WIDTH_MAX];
    for (size_t n = 0; n < sizeof networks / sizeof *networks; n++) {
        network_directory(DIRECTORY, networks[n], "null");
        for (int precision = PITH_PRECISION_F32; precision <= PITH_PRECISION_BF16; precision++) {
            embed_with(cpu, FAR_NONE, precision, false);
            for (uint32_t seed = 0; seed < 6; seed++) {
                size_t steps = far.steps;
                embed_with(other, seed, precision, false);
                assert_true(far.steps > steps);
                assert_memory_equal(other, cpu, sizeof cpu);
            }
        }
    }
}

/* What another backend prepared is not the CPU's to fit. */
static void test_calibrate(void **state) {
    (void)state;
    static float cpu[TEXTS][WIDTH_MAX], plain[TEXTS][WIDTH_MAX], other[TEXTS][WIDTH_MAX];
    network_directory(DIRECTORY, "bert-base-script17-sdpa", "null");
    embed_with(plain, FAR_NONE, PITH_PRECISION_INT8, false);
    embed_with(cpu, FAR_NONE, PITH_PRECISION_INT8, true);
    embed_with(other, FAR_ALL, PITH_PRECISION_INT8, true);
    assert_memory_equal(other, plain, sizeof plain);
    assert_memory_not_equal(cpu, plain, sizeof plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_host_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_own_error, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_description, setup, teardown),
        cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calibrate, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

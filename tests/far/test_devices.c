/* test_devices.c - settings of devices, two of a kind, work that is done late, copies beside other
 * steps, inputs and outputs in the memory of a device, and programs, passes and a precision of a
 * backend's own. */
#include "../unit/support/embed_test.h"
#include "far.h"
#include "models/model.h"

#include <math.h>

#define MODEL PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx"

enum { TOKENS = 5, INPUTS_MOST = 3, OUTPUTS_MOST = 4, SEEDS = 7 };

static char warnings[4000], debug[4000];

static void take_log(void *user, pith_log_level level, const char *message) {
    (void)user;
    char *to = level == PITH_LOG_WARNING ? warnings : debug;
    const size_t used = strlen(to);
    if (used + strlen(message) + 2 < sizeof warnings)
        snprintf(to + used, sizeof warnings - used, "%s\n", message);
}

static int setup(void **state) {
    (void)state;
    far = (far_control){ .runs_left = -1, .bytes_left = -1 };
    warnings[0] = debug[0] = 0;
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
    const char *names[INPUTS_MOST];
    pith_tensor inputs[INPUTS_MOST], outputs[OUTPUTS_MOST];
    size_t input_count, output_count;
} opened;

static int64_t input_ids[TOKENS] = { 2, 5, 6, 7, 3 }, input_zeros[TOKENS],
               input_ones[TOKENS] = { 1, 1, 1, 1, 1 };

static void open_with(opened *o, const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_open(&o->model, MODEL, options, &err) ||
        pith_session_create(&o->session, o->model, &err))
        fail_msg("%s", err.message);
    o->input_count = pith_model_input_count(o->model);
    o->output_count = pith_model_output_count(o->model);
    assert_true(o->input_count <= INPUTS_MOST && o->output_count <= OUTPUTS_MOST);
    for (size_t i = 0; i < o->input_count; i++) {
        o->names[i] = pith_model_input(o->model, i)->name;
        int64_t *data = !strcmp(o->names[i], "input_ids")        ? input_ids
                        : !strcmp(o->names[i], "attention_mask") ? input_ones
                                                                 : input_zeros;
        o->inputs[i] = (pith_tensor){ .data = data,
                                      .bytes = sizeof input_ids,
                                      .dtype = PITH_I64,
                                      .rank = 2,
                                      .dims = { 1, TOKENS } };
    }
}

static void open_on(opened *o, const char *devices) {
    static const pith_log log = { .write = take_log };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.devices = devices;
    options.call.log = &log;
    open_with(o, &options);
}

static void close_all(opened *o) {
    pith_session_destroy(o->session);
    pith_model_close(o->model);
}

static pith_status run(opened *o, pith_error *err) {
    return pith_session_run(o->session, o->outputs, o->names, o->inputs, o->input_count, NULL, err);
}

static void must_run(opened *o) {
    pith_error err = PITH_ERROR_INIT;
    if (run(o, &err)) fail_msg("%s", err.message);
}

static void open_cpu(opened *o) {
    const uint32_t seed = far.seed;
    far.seed = FAR_NONE;
    open_with(o, NULL);
    must_run(o);
    far.seed = seed;
}

static void expect_output(const pith_tensor *t, const pith_tensor *wanted) {
    char *bytes = malloc(wanted->bytes + 1);
    assert_int_equal(t->dtype, wanted->dtype);
    assert_int_equal(t->rank, wanted->rank);
    for (int i = 0; i < t->rank; i++) assert_int_equal(t->dims[i], wanted->dims[i]);
    assert_true(t->bytes >= wanted->bytes);
    if (t->device)
        far_read(bytes, t->data, wanted->bytes);
    else
        memcpy(bytes, t->data, wanted->bytes);
    assert_memory_equal(bytes, wanted->data, wanted->bytes);
    free(bytes);
}

static void expect_outputs(const opened *o, const opened *wanted) {
    for (size_t i = 0; i < o->output_count; i++) expect_output(&o->outputs[i], &wanted->outputs[i]);
}

static pith_statistics count(const pith_model *model) {
    pith_statistics n = PITH_STATISTICS_INIT;
    assert_int_equal(pith_model_statistics(&n, model, NULL), PITH_OK);
    return n;
}

/* ---- settings ---- */

static void test_settings(void **state) {
    (void)state;
    static const struct {
        const char *devices, *says;
        int ordinal; /* of the device that works; -1: none */
    } rows[] = {
        { "far:device_id=0,cpu", "", 0 },
        { "far:device_id=1,cpu", "", 1 },
        { " far : device_id = 1 , delay = 2 ,cpu", "", 1 },
        { "far:device_id=1,far,cpu", "", 1 },
        { "far:device_id=7,cpu",
          "backend 'far:7' is not used: there is no far device 7; this machine has 2 of them", -1 },
        { "far:device_id=7,far:device_id=1,cpu", "backend 'far:7' is not used", 1 },
        { "nowhere:a=1,b=2,cpu", "backend 'nowhere' is not used: this build does not have it", -1 },
        { "far:memory_limit=0,cpu", "", 0 },
        { "far:memory_limit=100,cpu", "100 of its memory_limit are in use", -1 },
        { "far:gpu_mem_limit=100,cpu", "100 of its memory_limit are in use", -1 },
        { "far:device_id=1,memory_limit=100,far:device_id=0,cpu", "backend 'far:1' has no ", 0 },
    };
    opened cpu, other;
    open_cpu(&cpu);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        warnings[0] = 0;
        size_t before[FAR_DEVICES];
        memcpy(before, far.device_steps, sizeof before);
        open_on(&other, rows[i].devices);
        must_run(&other);
        expect_outputs(&other, &cpu);
        if (*rows[i].says ? !strstr(warnings, rows[i].says) : *warnings)
            fail_msg("%s: %s", rows[i].devices, warnings);
        for (int d = 0; d < FAR_DEVICES; d++)
            assert_int_equal(far.device_steps[d] > before[d], d == rows[i].ordinal);
        close_all(&other);
        assert_int_equal(far.bytes, 0);
    }
    close_all(&cpu);
}

static void test_wrong_settings(void **state) {
    (void)state;
    static const struct {
        const char *devices, *says;
    } rows[] = {
        { "far:speed=1,cpu", "device 'far' has no setting 'speed'; it has device_id, memory_limit, "
                             "delay, programs, precision, rewrite" },
        { "far:device_id=x,cpu", "device 'far': device_id is a number from 0; not 'x'" },
        { "far:device_id=-1,cpu", "device_id is a number from 0; not '-1'" },
        { "far:device_id=,cpu", "device_id is a number from 0; not ''" },
        { "far:device_id=9999999999,cpu", "device_id is a number from 0" },
        { "far:memory_limit=1G,cpu", "memory_limit is a number of bytes; not '1G'" },
        { "far:memory_limit=99999999999999999999999,cpu", "memory_limit is a number of bytes" },
        { "far:delay=soon,cpu", "device 'far': delay cannot be 'soon'" },
        { "far:delay=1,delay=2,cpu", "device 'far' has the setting 'delay' twice" },
        { "far:delay,cpu", "device 'far' needs settings as key=value; not 'delay'" },
        { "far:,cpu", "device 'far' needs settings as key=value; not ''" },
        { "cpu:a=1", "device 'cpu' has no settings; 'a' is given" },
        { "cpu:device_id=1", "device 'cpu' has no settings; 'device_id' is given" },
        { "a=1,cpu", "the setting 'a=1' has no device before it that has settings" },
        { "far:device_id=0,far,cpu", "the list of devices has 'far' twice" },
        { "far:device_id=1,far:device_id=1,cpu", "the list of devices has 'far:1' twice" },
        { "auto:a=1", "'auto' stands for all devices; give it alone" },
        { ":a=1,cpu", "the list of devices has an empty name" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_model *model;
        options.devices = rows[i].devices;
        assert_int_equal(pith_model_open(&model, MODEL, &options, &err), PITH_ERR_ARGUMENT);
        if (!strstr(err.message, rows[i].says)) fail_msg("%s: %s", rows[i].devices, err.message);
    }
}

/* ---- two of a kind, and late ---- */

static void test_two(void **state) {
    (void)state;
    static const char *const lists[] = { "far:device_id=0,far:device_id=1,cpu",
                                         "far:device_id=1,far:device_id=0,delay=1,cpu",
                                         "far:delay=3,far:device_id=1,delay=2,cpu",
                                         "far:delay=2,programs=2,far:device_id=1,delay=3,cpu" };
    opened cpu, other;
    open_cpu(&cpu);
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        memset(far.device_steps, 0, sizeof far.device_steps);
        for (far.seed = 1; far.seed < SEEDS; far.seed++) {
            open_on(&other, lists[l]);
            for (int turn = 0; turn < 3; turn++) {
                must_run(&other);
                expect_outputs(&other, &cpu);
            }
            assert_int_equal(count(other.model).device_fallbacks, 0);
            close_all(&other);
        }
        assert_true(far.device_steps[0] > 0 && far.device_steps[1] > 0);
    }
    close_all(&cpu);
}

static void test_late(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    for (far.delay = 1; far.delay < 8; far.delay += 2)
        for (far.seed = 0; far.seed < SEEDS; far.seed++) {
            const size_t begun = far.begun;
            open_on(&other, "far,cpu");
            for (int turn = 0; turn < 3; turn++) {
                must_run(&other);
                expect_outputs(&other, &cpu);
            }
            assert_true(far.begun > begun);
            assert_int_equal(count(other.model).device_fallbacks, 0);
            close_all(&other);
        }
    close_all(&cpu);
}

static int32_t append(void *user, const void *text, size_t size) {
    pith_str *all = user;
    all->data = realloc((char *)(uintptr_t)all->data, all->size + size + 1);
    memcpy((char *)(uintptr_t)all->data + all->size, text, size);
    all->size += size;
    ((char *)(uintptr_t)all->data)[all->size] = 0;
    return 0;
}

typedef struct span {
    double begin, end;
    bool copy, device;
} span;

/* The steps of a profile. */
static size_t read_spans(span *spans, size_t most, const char *json) {
    size_t spans_read = 0;
    for (const char *at = json; (at = strstr(at, "{\"name\": \"")) && spans_read < most; at++) {
        const char *line = strchr(at, '\n') ? strchr(at, '\n') : at + strlen(at);
        const char *ts = strstr(at, "\"ts\": "), *dur = strstr(at, "\"dur\": "),
                   *device = strstr(at, "\"device\": "), *step = strstr(at, "\"cat\": \"step\"");
        if (!ts || ts > line || !step || step > line) continue;
        span *s = &spans[spans_read++];
        s->begin = strtod(ts + strlen("\"ts\": "), NULL);
        s->end = s->begin + strtod(dur + strlen("\"dur\": "), NULL);
        s->copy = !strncmp(at + strlen("{\"name\": \""), "CopyTo", 6);
        s->device = device && device < line;
    }
    return spans_read;
}

/* The log, the statistics and the profile say that copies went on while other steps ran. */
static void test_overlap(void **state) {
    (void)state;
    enum { SPANS = 4000 };
    static span spans[SPANS];
    opened cpu, other;
    open_cpu(&cpu);
    far.seed = 4;
    open_on(&other, "far:delay=4,cpu");
    pith_profile *profile;
    assert_int_equal(pith_profile_create(&profile, NULL, NULL), PITH_OK);
    pith_run_options options = PITH_RUN_OPTIONS_INIT;
    options.call.profile = profile;
    assert_int_equal(pith_session_run(other.session, other.outputs, other.names, other.inputs,
                                      other.input_count, &options, NULL),
                     PITH_OK);
    expect_outputs(&other, &cpu);
    const pith_statistics n = count(other.model);
    assert_true(n.device_copies > 2 && n.device_copies_beside > 0 &&
                n.device_copies_beside <= n.device_copies);
    char line[200];
    snprintf(line, sizeof line, " copies, %zu of them during other steps",
             (size_t)n.device_copies_beside);
    if (!strstr(debug, "device 'far': ") || !strstr(debug, line)) fail_msg("%s", debug);
    pith_str json = { NULL, 0 };
    const pith_writer writer = { .write = append, .user = &json };
    assert_int_equal(pith_profile_write(profile, NULL, &writer, NULL), PITH_OK);
    const size_t all = read_spans(spans, SPANS, json.data);
    size_t beside = 0, programs = 0;
    for (size_t i = 0; i < all; i++) {
        bool meets = false;
        programs += spans[i].device && !spans[i].copy;
        for (size_t k = 0; k < all; k++)
            meets = meets ||
                    (k != i && spans[k].begin >= spans[i].begin && spans[k].begin < spans[i].end);
        beside += spans[i].copy && spans[i].device && meets;
    }
    assert_true(beside > 0 && programs > 0);
    free((char *)(uintptr_t)json.data);
    pith_profile_destroy(profile);
    close_all(&other);
    close_all(&cpu);
}

/* ---- lost ---- */

/* At each piece of its work: the run ends on the other devices with the same bits. */
static void test_lost_late(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    far.delay = 2;
    far.seed = 3;
    open_on(&other, "far,cpu");
    const size_t before = far.steps + far.copies;
    must_run(&other);
    const size_t all = far.steps + far.copies - before;
    assert_true(all > 10);
    close_all(&other);
    for (size_t n = 0; n < all; n++) {
        open_on(&other, "far,cpu");
        must_run(&other);
        warnings[0] = 0;
        far.runs_left = (int64_t)n;
        must_run(&other);
        expect_outputs(&other, &cpu);
        if (strncmp(warnings, "backend 'far' is no longer used: node ", 38))
            fail_msg("%zu: %s", n, warnings);
        far.runs_left = -1;
        const size_t steps = far.steps;
        must_run(&other);
        expect_outputs(&other, &cpu);
        assert_int_equal(far.steps, steps);
        close_all(&other);
    }
    close_all(&cpu);
}

/* Without a device behind it the run fails, and the session is of use again. */
static void test_lost_alone(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    for (far.delay = 0; far.delay < 4; far.delay++) {
        open_on(&other, NULL);
        for (int64_t n = 0; n < 10; n += 3) {
            pith_error err = PITH_ERROR_INIT;
            far.runs_left = n;
            assert_int_equal(run(&other, &err), PITH_ERR_RUN);
            if (strncmp(err.message, "node ", 5) || !strstr(err.message, "): the device is lost"))
                fail_msg("%s", err.message);
            far.runs_left = -1;
            must_run(&other);
            expect_outputs(&other, &cpu);
        }
        close_all(&other);
    }
    close_all(&cpu);
}

/* One of two: the other one goes on. */
static void test_lost_one(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    for (int lost = 0; lost < FAR_DEVICES; lost++) {
        far.seed = 3;
        open_on(&other, "far:device_id=0,delay=2,far:device_id=1,cpu");
        must_run(&other);
        warnings[0] = 0;
        far.loses = lost + 1;
        far.runs_left = 2;
        must_run(&other);
        expect_outputs(&other, &cpu);
        char says[100];
        snprintf(says, sizeof says, "backend 'far:%d' is no longer used: node ", lost);
        if (strncmp(warnings, says, strlen(says))) fail_msg("%s", warnings);
        size_t before[FAR_DEVICES];
        memcpy(before, far.device_steps, sizeof before);
        must_run(&other);
        expect_outputs(&other, &cpu);
        assert_int_equal(far.device_steps[lost], before[lost]);
        assert_true(far.device_steps[!lost] > before[!lost]);
        far.loses = 0;
        far.runs_left = -1;
        close_all(&other);
    }
    close_all(&cpu);
}

/* ---- tensors in its memory ---- */

static void put_on(pith_tensor *t, int ordinal, int32_t number) {
    void *memory = far_memory_alloc(ordinal, t->bytes);
    assert_non_null(memory);
    far_write(memory, t->data, t->bytes);
    t->data = memory;
    t->device = number;
}

/* Each set of inputs on the device: the same bits, and the inputs stay as they are. */
static void test_inputs(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    for (far.delay = 0; far.delay < 4; far.delay += 3)
        for (far.seed = 0; far.seed < SEEDS; far.seed++) {
            open_on(&other, "far,cpu");
            pith_tensor host[INPUTS_MOST];
            memcpy(host, other.inputs, sizeof host);
            for (unsigned set = 0; set < 1u << other.input_count; set++) {
                for (size_t i = 0; i < other.input_count; i++) {
                    other.inputs[i] = host[i];
                    if (set >> i & 1) put_on(&other.inputs[i], 0, 1);
                }
                for (int turn = 0; turn < 2; turn++) {
                    must_run(&other);
                    expect_outputs(&other, &cpu);
                }
                for (size_t i = 0; i < other.input_count; i++) {
                    if (!other.inputs[i].device) continue;
                    expect_output(&other.inputs[i], &host[i]);
                    far_memory_free(other.inputs[i].data);
                }
            }
            assert_int_equal(count(other.model).device_fallbacks, 0);
            close_all(&other);
        }
    close_all(&cpu);
}

/* Bound for good, in pith_model_run, and on the second device of a kind. */
static void test_inputs_elsewhere(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    for (far.seed = 0; far.seed < SEEDS; far.seed++) {
        open_on(&other, "far,far:device_id=1,delay=2,cpu");
        put_on(&other.inputs[0], 1, 2);
        assert_int_equal(
            pith_session_bind_input(other.session, other.names[0], &other.inputs[0], NULL),
            PITH_OK);
        assert_int_equal(pith_session_run(other.session, other.outputs, other.names + 1,
                                          other.inputs + 1, other.input_count - 1, NULL, NULL),
                         PITH_OK);
        expect_outputs(&other, &cpu);
        assert_int_equal(pith_model_run(other.outputs, other.model, other.names, other.inputs,
                                        other.input_count, NULL, NULL),
                         PITH_OK);
        expect_outputs(&other, &cpu);
        for (size_t i = 0; i < other.output_count; i++) pith_tensor_free(&other.outputs[i]);
        far_memory_free(other.inputs[0].data);
        close_all(&other);
    }
    close_all(&cpu);
}

static void bind_on(opened *o, size_t output, const pith_tensor *wanted, void *memory,
                    far_stream *stream) {
    pith_tensor t = { .data = memory,
                      .bytes = memory ? wanted->bytes : 0,
                      .dtype = wanted->dtype,
                      .rank = memory ? wanted->rank : -1,
                      .device = 1,
                      .stream = stream };
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < t.rank; i++) t.dims[i] = wanted->dims[i];
    if (pith_session_bind_output(o->session, pith_model_output(o->model, output)->name, &t, &err))
        fail_msg("%s", err.message);
}

/* Outputs in the caller's memory on the device, in the session's there, and in the host's, in
 * turns; with inputs there too. */
static void test_outputs(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    for (far.delay = 0; far.delay < 4; far.delay += 3)
        for (far.seed = 0; far.seed < SEEDS; far.seed++) {
            open_on(&other, "far,cpu");
            void *memory = far_memory_alloc(0, cpu.outputs[0].bytes);
            put_on(&other.inputs[0], 0, 1);
            for (int turn = 0; turn < 8; turn++) {
                pith_session_unbind(other.session);
                if (turn % 4)
                    bind_on(&other, 0, &cpu.outputs[0], turn % 4 < 3 ? memory : NULL, NULL);
                must_run(&other);
                assert_int_equal(other.outputs[0].device, turn % 4 ? 1 : 0);
                if (turn % 4 == 1 || turn % 4 == 2)
                    assert_ptr_equal(other.outputs[0].data, memory);
                else
                    assert_ptr_not_equal(other.outputs[0].data, memory);
                expect_outputs(&other, &cpu);
            }
            assert_int_equal(count(other.model).device_fallbacks, 0);
            far_memory_free(memory);
            far_memory_free(other.inputs[0].data);
            close_all(&other);
        }
    close_all(&cpu);
}

/* An input is ready when its stream gets there, an output when its own does. */
static void test_streams(void **state) {
    (void)state;
    static int64_t garbage[TOKENS] = { 1 << 20, -7, 1 << 20, 9, 1 };
    opened cpu, other;
    open_cpu(&cpu);
    for (far.delay = 0; far.delay < 200; far.delay += 99)
        for (far.seed = 0; far.seed < SEEDS; far.seed++) {
            open_on(&other, "far,cpu");
            size_t ids = 0;
            while (strcmp(other.names[ids], "input_ids")) ids++;
            pith_tensor *in = &other.inputs[ids];
            put_on(in, 0, 1);
            void *memory = far_memory_alloc(0, cpu.outputs[0].bytes);
            char *zeros = calloc(1, cpu.outputs[0].bytes);
            for (int turn = 0; turn < 3; turn++) {
                far_stream from = { .to = in->data, .from = input_ids, .bytes = sizeof input_ids },
                           to = { .context = NULL };
                far_write(in->data, garbage, sizeof garbage);
                far_write(memory, zeros, cpu.outputs[0].bytes);
                in->stream = &from;
                bind_on(&other, 0, &cpu.outputs[0], memory, &to);
                must_run(&other);
                assert_ptr_equal(other.outputs[0].stream, &to);
                assert_int_equal(from.awaited, 1);
                assert_int_equal(to.followed, 1);
                far_stream_finish(&to);
                expect_output(&other.outputs[0], &cpu.outputs[0]);
            }
            free(zeros);
            close_all(&other);
            far_memory_free(memory);
            far_memory_free(in->data);
        }
    close_all(&cpu);
}

/* The run returns before the output is there. */
static void test_returns_early(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    far.delay = 1 << 20;
    open_on(&other, "far,cpu");
    for (size_t i = 0; i < other.input_count; i++) put_on(&other.inputs[i], 0, 1);
    const size_t bytes = cpu.outputs[0].bytes;
    void *memory = far_memory_alloc(0, bytes);
    char *before = calloc(1, bytes), *after = malloc(bytes);
    far_stream to = { .context = NULL };
    far_write(memory, before, bytes);
    bind_on(&other, 0, &cpu.outputs[0], memory, &to);
    const char *wanted[] = { pith_model_output(other.model, 0)->name };
    pith_run_options options = PITH_RUN_OPTIONS_INIT;
    options.output_names = wanted;
    options.output_count = 1;
    for (int turn = 0; turn < 2; turn++) {
        far_write(memory, before, bytes);
        to.mark = 0;
        assert_int_equal(pith_session_run(other.session, other.outputs, other.names, other.inputs,
                                          other.input_count, &options, NULL),
                         PITH_OK);
        far_read(after, memory, bytes);
        assert_memory_equal(after, before, bytes);
        if (turn) break; /* the session ends with the output under way */
        far_stream_finish(&to);
        expect_output(&other.outputs[0], &cpu.outputs[0]);
    }
    close_all(&other);
    far_read(after, memory, bytes);
    assert_memory_equal(after, cpu.outputs[0].data, bytes);
    free(before);
    free(after);
    far_memory_free(memory);
    for (size_t i = 0; i < other.input_count; i++) far_memory_free(other.inputs[i].data);
    close_all(&cpu);
}

static void must_fail(opened *o, pith_status status, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(run(o, &err), status);
    if (!strstr(err.message, says)) fail_msg("%s", err.message);
}

static int32_t append_nothing(void *user, const void *data, size_t size) {
    (void)user, (void)data, (void)size;
    return 0;
}

static void test_wrong_tensors(void **state) {
    (void)state;
    opened cpu, other;
    pith_error err = PITH_ERROR_INIT;
    open_cpu(&cpu);
    open_on(&other, "far,far:device_id=1,cpu");
    pith_tensor good = other.inputs[0], *in = &other.inputs[0];
    const char *output = pith_model_output(other.model, 0)->name;
    far_stream stream = { .context = NULL };
    static const int32_t numbers[] = { 4, 99, -1, INT32_MIN };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char says[200];
        in->device = numbers[i];
        snprintf(says, sizeof says,
                 "input '%s': the model does not run on device %d; its devices with memory are 1 "
                 "('far'), 2 ('far:1')",
                 other.names[0], numbers[i]);
        must_fail(&other, PITH_ERR_ARGUMENT, says);
    }
    in->device = 3;
    must_fail(&other, PITH_ERR_ARGUMENT, "device 3, 'cpu', has no memory of its own");
    in->device = 1; /* memory of the host */
    must_fail(&other, PITH_ERR_ARGUMENT, "are not in the memory of device 1, 'far'");
    put_on(in, 1, 1); /* of the other one */
    must_fail(&other, PITH_ERR_ARGUMENT, "are not in the memory of device 1, 'far'");
    in->device = 2;
    must_run(&other);
    expect_outputs(&other, &cpu);
    far_memory_free(in->data);
    *in = good;
    put_on(in, 0, 1);
    in->data = (char *)in->data + 1;
    in->bytes = 39;
    must_fail(&other, PITH_ERR_ARGUMENT, "bytes of data do not hold the shape");
    in->data = (char *)in->data - 1;
    in->bytes = good.bytes;
    in->device = 0;
    in->stream = &stream;
    must_fail(&other, PITH_ERR_ARGUMENT,
              "has device 0; here it must be in host memory: device 0, no stream");
    in->device = 1;
    in->dtype = PITH_STRING;
    must_fail(&other, PITH_ERR_ARGUMENT, "the model needs");
    far_memory_free(in->data);
    *in = good;
    static const struct {
        int32_t device;
        const char *says;
    } rows[] = { { 9, "does not run on device 9" },
                 { 3, "device 3, 'cpu', has no memory of its own" },
                 { 1, "are not in the memory of device 1, 'far'" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_tensor t = cpu.outputs[0];
        t.device = rows[i].device;
        assert_int_equal(pith_session_bind_output(other.session, output, &t, NULL), PITH_OK);
        must_fail(&other, PITH_ERR_ARGUMENT, rows[i].says);
    }
    pith_tensor small = { .bytes = 4, .dtype = PITH_F32, .rank = -1, .device = 1 };
    small.data = far_memory_alloc(0, 64);
    assert_int_equal(pith_session_bind_output(other.session, output, &small, NULL), PITH_OK);
    must_fail(&other, PITH_ERR_ARGUMENT, "the memory bound to it has 4");
    far_memory_free(small.data);
    small.data = NULL;
    assert_int_equal(pith_session_bind_output(other.session, output, &small, &err),
                     PITH_ERR_ARGUMENT);
    pith_session_unbind(other.session);
    bind_on(&other, 0, &cpu.outputs[0], NULL, NULL);
    must_run(&other);
    float number;
    assert_int_equal(pith_tensor_convert(&number, PITH_F32, &other.outputs[0], 0, 1, &err),
                     PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "the tensor is in the memory of device 1");
    const pith_writer nowhere = { .write = append_nothing };
    assert_int_equal(pith_value_write(&other.outputs[0], NULL, PITH_F32, NULL, &nowhere, &err),
                     PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "the value is in the memory of device 1");
    pith_session_unbind(other.session);
    must_run(&other);
    expect_outputs(&other, &cpu);
    assert_int_equal(count(other.model).device_fallbacks, 0);
    close_all(&other);
    close_all(&cpu);
}

/* What lies in the memory of a lost device keeps a run from going on elsewhere; the next one,
 * without it, does. The same where the limit of its memory is reached. */
static void test_bound_to_lost(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    for (int limit = 0; limit < 2; limit++) {
        open_on(&other, "far,cpu");
        must_run(&other);
        const size_t held = far.bytes;
        close_all(&other);
        char list[100];
        snprintf(list, sizeof list, "far:memory_limit=%zu,cpu", limit ? held - 64 : 0);
        open_on(&other, list);
        if (limit) {
            bind_on(&other, 0, &cpu.outputs[0], NULL, NULL);
            must_fail(&other, PITH_ERR_MEMORY, "tensors of the run lie in the memory of 'far'");
            must_fail(&other, PITH_ERR_MEMORY, "of its memory_limit are in use");
        } else {
            pith_tensor good = other.inputs[0];
            put_on(&other.inputs[0], 0, 1);
            far.runs_left = 0;
            must_fail(&other, PITH_ERR_RUN, "tensors of the run lie in the memory of 'far'");
            must_fail(&other, PITH_ERR_RUN, "the device is lost");
            far_memory_free(other.inputs[0].data);
            other.inputs[0] = good;
        }
        pith_session_unbind(other.session);
        must_run(&other);
        expect_outputs(&other, &cpu);
        assert_int_equal(count(other.model).device_fallbacks, 1);
        bind_on(&other, 0, &cpu.outputs[0], NULL, NULL);
        must_fail(&other, PITH_ERR_ARGUMENT, "the model does not run on device 1");
        far.runs_left = -1;
        close_all(&other);
    }
    close_all(&cpu);
}

/* ---- what a backend brings ---- */

static void test_programs(void **state) {
    (void)state;
    static const char *const lists[] = { "far:programs=2,cpu", "far:programs=5,delay=2,cpu",
                                         "far:programs=2,far:device_id=1,programs=3,delay=3,cpu",
                                         "far:programs=2,rewrite=1,delay=1,cpu" };
    opened cpu, other;
    open_cpu(&cpu);
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        const size_t claims = far.claims;
        for (far.seed = 0; far.seed < 3 * SEEDS; far.seed++) {
            open_on(&other, lists[l]);
            for (int turn = 0; turn < 2; turn++) {
                must_run(&other);
                expect_outputs(&other, &cpu);
            }
            assert_int_equal(count(other.model).device_fallbacks, 0);
            close_all(&other);
        }
        assert_true(far.claims > claims);
    }
    close_all(&cpu);
}

/* All of the graph in few programs. */
static void test_whole_graph(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    open_on(&other, "far,cpu");
    size_t before = far.steps;
    must_run(&other);
    const size_t single = far.steps - before;
    close_all(&other);
    open_on(&other, "far:programs=2,cpu");
    before = far.steps;
    must_run(&other);
    assert_true(far.steps - before < single / 4);
    expect_outputs(&other, &cpu);
    close_all(&other);
    close_all(&cpu);
}

static void test_pass(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    for (far.seed = 0; far.seed < SEEDS; far.seed++) {
        const size_t rewritten = far.rewritten;
        open_on(&other, "far:rewrite=1,cpu");
        assert_true(far.rewritten > rewritten);
        must_run(&other);
        expect_outputs(&other, &cpu);
        far.runs_left = 3; /* the graph of the others is as it was */
        must_run(&other);
        expect_outputs(&other, &cpu);
        assert_int_equal(count(other.model).device_fallbacks, 1);
        far.runs_left = -1;
        close_all(&other);
    }
    close_all(&cpu);
}

/* A precision of its own: results within its tolerance, not the same bits; not where f32 is asked
 * for. */
static void test_precision(void **state) {
    (void)state;
    opened cpu, other;
    open_cpu(&cpu);
    open_on(&other, "far:precision=bfloat16,cpu");
    must_run(&other);
    const pith__plan *plan;
    assert_int_equal(pith__model_plan(&plan, other.model, NULL, NULL), PITH_OK);
    const pith__accuracy accuracy = pith__device_accuracy(plan->devices->memories[1]);
    assert_string_equal(accuracy.precision, "bfloat16");
    const float *a = other.outputs[0].data, *b = cpu.outputs[0].data;
    bool same = true;
    for (size_t i = 0; i < cpu.outputs[0].bytes / sizeof *a; i++) {
        same = same && a[i] == b[i];
        assert_true(fabs((double)a[i] - (double)b[i]) <=
                    accuracy.atol + accuracy.rtol * fabs((double)b[i]));
    }
    assert_false(same);
    close_all(&other);
    static const pith_log log = { .write = take_log };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.devices = "far:precision=bfloat16,cpu";
    options.precision = PITH_PRECISION_F32;
    options.call.log = &log;
    warnings[0] = 0;
    open_with(&other, &options);
    assert_string_equal(
        warnings, "backend 'far' is not used: it computes in bfloat16; float32 was asked for\n");
    must_run(&other);
    expect_outputs(&other, &cpu);
    close_all(&other);
    close_all(&cpu);
}

/* The host's memory runs out at each request. */
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
    far.programs = 2;
    far.delay = 2;
    far.seed = 3;
    for (size_t n = 0; !done; n++) {
        pith_error err = PITH_ERROR_INIT;
        opened o = { NULL };
        f.left = n;
        pith_status status = pith_model_open(&o.model, MODEL, &options, &err);
        if (!status) status = pith_session_create(&o.session, o.model, &err);
        if (!status) {
            o.input_count = pith_model_input_count(o.model);
            for (size_t i = 0; i < o.input_count; i++) {
                o.names[i] = pith_model_input(o.model, i)->name;
                o.inputs[i] = (pith_tensor){ .data = input_ones,
                                             .bytes = sizeof input_ones,
                                             .dtype = PITH_I64,
                                             .rank = 2,
                                             .dims = { 1, TOKENS } };
            }
            put_on(&o.inputs[0], 0, 1);
            status = run(&o, &err);
            far_memory_free(o.inputs[0].data);
        }
        if (status) assert_int_equal(status, PITH_ERR_MEMORY);
        done = !status;
        close_all(&o);
        assert_int_equal(far.opened + far.bytes, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_settings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_settings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inputs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inputs_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outputs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_streams, setup, teardown),
        cmocka_unit_test_setup_teardown(test_returns_early, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_tensors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bound_to_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_programs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_whole_graph, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(test_precision, setup, teardown),
        cmocka_unit_test_setup_teardown(test_host_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

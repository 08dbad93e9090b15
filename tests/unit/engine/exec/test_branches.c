/* Branches side by side: random graphs give the same bits as one step at a time, whatever threads
 * and memory; the first step that fails is told; the listener sees each step once. */
#include "support/graph_test.h"

#include <string.h>

#include "engine/exec/binding.h"

enum {
    SIZE = 24000,
    NODES = 60,
    SEEDS = 60
}; /* steps large enough that the estimate prefers
                                                  branches */

static float numbers[2][SIZE];

static uint32_t random_below(uint64_t *state, uint32_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

/* Elementwise operators that work in place, views, and one with scratch; recent values and old
 * ones. */
static pith__value *random_node(pith__graph *g, uint64_t *state, pith__value *const *values,
                                size_t count) {
    static const struct {
        const char *op;
        bool two;
    } kinds[] = { { "Neg", 0 },     { "Add", 1 },      { "Mul", 1 }, { "Tanh", 0 },
                  { "Softmax", 0 }, { "Identity", 0 }, { "Relu", 0 } };
    uint32_t kind = random_below(state, 7), recent = count > 6 ? 6 : (uint32_t)count;
    size_t a = random_below(state, 3) ? count - 1 - random_below(state, recent)
                                      : random_below(state, (uint32_t)count);
    size_t b = random_below(state, (uint32_t)count);
    pith__value *out =
        graph_apply(g, kinds[kind].op, values[a], kinds[kind].two ? values[b] : NULL);
    out->producer->opset = 17;
    return out;
}

static void random_graph(fixture *f, uint64_t seed) {
    pith__value *values[NODES + 2];
    uint64_t state = seed;
    values[0] = graph_input_of(f->graph, "x", PITH_F32, "AB");
    values[1] = graph_input_of(f->graph, "y", PITH_F32, "AB");
    for (size_t i = 2; i < NODES + 2; i++) values[i] = random_node(f->graph, &state, values, i);
    for (size_t i = 0; i < 4; i++) graph_output(f->graph, values[NODES + 1 - i]);
}

static void build(fixture *f) {
    if (pith__graph_check(f->graph, &f->err) || pith__ops_bind(f->graph, &f->err) ||
        pith__ops_infer(f->graph, false, &f->err) ||
        pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err))
        fail_msg("%s", f->err.message);
}

static void inputs(pith_tensor *in) {
    for (int i = 0; i < 2; i++)
        in[i] = (pith_tensor){ .data = numbers[i],
                               .bytes = sizeof numbers[i],
                               .dtype = PITH_F32,
                               .rank = 2,
                               .dims = { 40, SIZE / 40 } };
}

/* Makes f->executor run as said, and runs it. */
static void run(fixture *f, pith_tensor *out, int threads, int branches, bool separate) {
    pith_tensor in[2];
    inputs(in);
    pith__executor_destroy(f->executor);
    f->options.branches = branches;
    f->options.separate = separate;
    f->executor = NULL;
    if (pith__executor_create(&f->executor, f->plan, &f->options, &f->err) ||
        pith__executor_run(f->executor, out, in, threads, NULL, &f->err))
        fail_msg("%s", f->err.message);
}

static void same_bits_side_by_side(void **state) {
    static const struct {
        int threads, branches;
        bool separate;
    } ways[] = { { 2, 2, false }, { 4, 2, false }, { 4, 8, false }, { 3, 3, true } };
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        numbers[0][i] = (float)(i % 89) / 89 - 0.5f, numbers[1][i] = (float)(i % 97) / 97;
    uint64_t side_by_side = 0;
    static float want[4][SIZE];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fixture *f;
        pith__counters counters = { 0 };
        fixture_setup((void **)&f);
        f->options.counters = &counters;
        random_graph(f, seed);
        build(f);
        pith_tensor out[4];
        run(f, out, 1, 1, false);
        for (int o = 0; o < 4; o++) memcpy(want[o], out[o].data, sizeof want[o]);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            run(f, out, ways[w].threads, ways[w].branches, ways[w].separate);
            for (int o = 0; o < 4; o++)
                if (memcmp(want[o], out[o].data, sizeof want[o]))
                    fail_msg("seed %d, way %zu", (int)seed, w);
        }
        side_by_side += pith__counted(&counters, PITH_COUNT_branches);
        fixture_teardown((void **)&f);
    }
    assert_true(side_by_side > 4 * SEEDS); /* else the test shows nothing */
}

/* x through towers of their own, up to 8; the sum of their ends is the output. */
static void towers(fixture *f, int count, int height) {
    pith__value *ends[8], *x = graph_input_of(f->graph, "x", PITH_F32, "AB");
    graph_input_of(f->graph, "y", PITH_F32, "AB");
    for (int t = 0; t < count; t++) {
        ends[t] = x;
        for (int i = 0; i < height; i++) {
            ends[t] = graph_apply(f->graph, "Tanh", ends[t], NULL);
            ends[t]->producer->opset = 17;
        }
    }
    pith__value *sum = ends[0];
    for (int t = 1; t < count; t++) {
        sum = graph_apply(f->graph, "Add", sum, ends[t]);
        sum->producer->opset = 17;
    }
    graph_output(f->graph, sum);
}

/* The same graphs with steps in the tails of others, and steps that draw random numbers, at which
 * rows end: often between a step and its tail. */
static void random_breaks(fixture *f, uint64_t seed) {
    pith__value *values[NODES + 2];
    uint64_t state = seed;
    size_t count = 0;
    values[count++] = graph_input_of(f->graph, "x", PITH_F32, "AB");
    values[count++] = graph_input_of(f->graph, "y", PITH_F32, "AB");
    pith__value *drawn = values[0];
    while (count < NODES + 2) {
        values[count] = random_node(f->graph, &state, values, count);
        count++;
        if (random_below(&state, 5)) continue;
        drawn = graph_apply(f->graph, "RandomNormalLike", drawn, NULL);
        drawn->producer->opset = 17;
    }
    for (size_t i = 0; i < 3; i++) graph_output(f->graph, values[NODES + 1 - i]);
    graph_output(f->graph, drawn);
}

static void rows_may_end_before_a_tail(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        numbers[0][i] = (float)(i % 89) / 89 - 0.5f, numbers[1][i] = (float)(i % 97) / 97;
    static float want[3][SIZE];
    uint64_t side_by_side = 0;
    for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
        fixture *f;
        pith__counters counters = { 0 };
        fixture_setup((void **)&f);
        f->options.counters = &counters;
        f->options.tails = true;
        random_breaks(f, seed);
        build(f);
        pith_tensor out[4];
        run(f, out, 1, 1, false);
        for (int o = 0; o < 3; o++) memcpy(want[o], out[o].data, sizeof want[o]);
        run(f, out, 4, 4, false);
        for (int o = 0; o < 3; o++)
            if (memcmp(want[o], out[o].data, sizeof want[o])) fail_msg("seed %d", (int)seed);
        side_by_side += pith__counted(&counters, PITH_COUNT_branches);
        fixture_teardown((void **)&f);
    }
    assert_true(side_by_side > SEEDS); /* else the test shows nothing */
}

typedef struct heard {
    int times[200];
    uint32_t branches;
} heard;

static void hear(void *context, const pith__trace_event *event) {
    heard *h = context;
    if (!event->step) return;
    h->times[event->index]++;
    if (event->branch > h->branches) h->branches = event->branch;
}

static void each_step_is_told_once(void **state) {
    fixture *f = *state;
    towers(f, 5, 6);
    build(f);
    heard h = { 0 };
    pith_tensor out[1];
    run(f, out, 4, 1, false);
    float first = *(float *)out[0].data;
    pith__executor_destroy(f->executor);
    f->options.branches = 4;
    assert_int_equal(pith__executor_create(&f->executor, f->plan, &f->options, &f->err), PITH_OK);
    pith__executor_trace(f->executor, hear, &h);
    pith_tensor in[2];
    inputs(in);
    for (int round = 1; round <= 3; round++) {
        assert_int_equal(pith__executor_run(f->executor, out, in, 4, NULL, &f->err), PITH_OK);
        assert_true(*(float *)out[0].data == first);
        for (size_t i = 0; i < f->plan->step_count; i++) assert_int_equal(h.times[i], round);
    }
    assert_true(h.branches >= 4);
}

static pith_status broken_run(pith__run *r) {
    return pith__fail(r->err, PITH_ERR_RUN, "is broken");
}

/* Two steps of different branches fail: the error is that of the first one in the order of the
 * plan, as alone. */
static void the_first_failure_is_told(void **state) {
    fixture *f = *state;
    towers(f, 4, 5);
    if (pith__graph_check(f->graph, &f->err) || pith__ops_bind(f->graph, &f->err))
        fail_msg("%s", f->err.message);
    static pith__op broken;
    int seen = 0;
    for (pith__node *n = f->graph->first; n; n = n->next) {
        if (!pith__str_is(n->op_type, "Tanh")) continue;
        seen++;
        if (seen != 9 && seen != 12) continue;
        broken = *n->op;
        broken.run = broken_run;
        n->op = &broken;
        n->name = pith__str_of(seen == 9 ? "ninth" : "twelfth");
    }
    if (pith__ops_infer(f->graph, false, &f->err) ||
        pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err))
        fail_msg("%s", f->err.message);
    pith_tensor in[2], out[1];
    inputs(in);
    char alone[sizeof f->err.message];
    for (int branches = 1; branches <= 4; branches++) {
        pith__executor_destroy(f->executor);
        f->executor = NULL;
        f->options.branches = branches;
        assert_int_equal(pith__executor_create(&f->executor, f->plan, &f->options, &f->err),
                         PITH_OK);
        for (int round = 0; round < 20; round++) {
            assert_int_equal(pith__executor_run(f->executor, out, in, 4, NULL, &f->err),
                             PITH_ERR_RUN);
            if (branches == 1) snprintf(alone, sizeof alone, "%s", f->err.message);
            assert_string_equal(f->err.message, alone);
        }
    }
    assert_non_null(strstr(alone, "ninth"));
    const volatile int cancel = 1;
    pith_call call = PITH_CALL_INIT;
    pith__stop own;
    call.cancel = &cancel;
    assert_int_equal(
        pith__executor_run(f->executor, out, in, 4, pith__stop_begin(&own, &call), &f->err),
        PITH_ERR_CANCELLED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bits_side_by_side),
                                        cmocka_unit_test(rows_may_end_before_a_tail),
                                        TEST(each_step_is_told_once),
                                        TEST(the_first_failure_is_told) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

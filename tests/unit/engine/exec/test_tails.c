/* Elementwise steps in the tails of others: the same bits as one step after the other, whatever
 * threads, shapes and kinds of convolution; fewer steps run. */
#include "support/graph_test.h"

#include <string.h>

enum { NODES = 24, SEEDS = 300, MOST = 4 * 8 * 13 * 17 };

static float numbers[2 * MOST];

static uint32_t random_below(uint64_t *state, uint32_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

static pith__value *tail_node(pith__graph *g, const char *op, pith__value *a, pith__value *b,
                              pith__value *c) {
    pith__node *node = pith__graph_add_node(g, NULL, "", op, (pith__value *[]){ a, b, c },
                                            c   ? 3
                                            : b ? 2
                                                : 1,
                                            NULL, 1);
    node->opset = 17;
    return node->outputs[0];
}

static pith__value *constant(fixture *f, uint64_t *state, int rank, const int64_t *dims) {
    pith_tensor t = { .dtype = PITH_F32, .rank = rank };
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= t.dims[i] = dims[i];
    t.bytes = (size_t)count * sizeof(float);
    t.data = pith__arena_alloc64(&f->arena, t.bytes);
    for (int64_t i = 0; i < count; i++)
        ((float *)t.data)[i] = (float)random_below(state, 2001) / 1000 - 1;
    return pith__graph_add_const(f->graph, pith__str_of(""), &t);
}

/* A convolution that keeps the shape [n, channels, h, w]: by all channels, in groups, or one by
 * one; 1x1 or 3x3. */
static pith__value *random_conv(fixture *f, uint64_t *state, pith__value *x, int64_t channels) {
    const int64_t groups = (int64_t[]){ 1, 1, 2, channels }[random_below(state, 4)],
                  size = 1 + 2 * random_below(state, 2);
    pith__value *w = constant(f, state, 4, (int64_t[]){ channels, channels / groups, size, size });
    pith__value *bias = random_below(state, 2) ? constant(f, state, 1, &channels) : NULL;
    pith__value *y = tail_node(f->graph, "Conv", x, w, bias);
    assert_int_equal(pith__node_set_int(y->producer, "group", groups), PITH_OK);
    const int64_t pads[4] = { size / 2, size / 2, size / 2, size / 2 };
    assert_int_equal(pith__node_set_ints(y->producer, "pads", pads, 4), PITH_OK);
    return y;
}

static pith__value *random_node(fixture *f, uint64_t *state, pith__value *const *values,
                                size_t count, int64_t channels) {
    static const char *const unary[] = {
        "Relu", "HardSwish", "LeakyRelu", "Sigmoid", "Tanh", "Neg"
    };
    pith__value *x = values[count - 1 - random_below(state, count > 2 ? 2 : 1)],
                *y = values[random_below(state, (uint32_t)count)];
    const int64_t by_channel[3] = { channels, 1, 1 };
    switch (random_below(state, 8)) {
    case 0:
    case 1:
    case 2: return random_conv(f, state, x, channels);
    case 3: return tail_node(f->graph, random_below(state, 2) ? "Add" : "Mul", x, y, NULL);
    case 4:
        return tail_node(f->graph, random_below(state, 2) ? "Add" : "PRelu", x,
                         constant(f, state, 3, by_channel), NULL);
    case 5: return tail_node(f->graph, "Sub", constant(f, state, 0, NULL), x, NULL);
    case 6:
        return tail_node(f->graph, "Clip", x,
                         random_below(state, 2) ? constant(f, state, 0, NULL) : NULL,
                         constant(f, state, 0, NULL));
    default: return tail_node(f->graph, unary[random_below(state, 6)], x, NULL, NULL);
    }
}

static void random_graph(fixture *f, uint64_t seed, pith_tensor *in) {
    pith__value *values[NODES + 1];
    uint64_t state = seed;
    *in = (pith_tensor){ .data = numbers, .dtype = PITH_F32, .rank = 4 };
    in->dims[0] = 1 + random_below(&state, 2);
    in->dims[1] = 2 * (1 + random_below(&state, 4));
    in->dims[2] = 1 + random_below(&state, 13);
    in->dims[3] = 1 + random_below(&state, 17);
    in->bytes = (size_t)(in->dims[0] * in->dims[1] * in->dims[2] * in->dims[3]) * sizeof(float);
    values[0] = graph_input_of(f->graph, "x", PITH_F32, "NCHW");
    values[0]->hint->dims[1] = in->dims[1];
    for (size_t i = 1; i <= NODES; i++) values[i] = random_node(f, &state, values, i, in->dims[1]);
    for (size_t i = 0; i < 2; i++) graph_output(f->graph, values[NODES - 3 * i]);
}

static void count_steps(void *context, const pith__trace_event *event) {
    *(int *)context += event->step != NULL;
}

/* Runs the graph, and returns the steps it took. */
static int run_with(fixture *f, pith_tensor *out, const pith_tensor *in, int threads, bool tails,
                    bool separate) {
    int steps = 0;
    pith__executor_destroy(f->executor);
    f->executor = NULL;
    f->options.tails = tails;
    f->options.separate = separate;
    assert_int_equal(pith__executor_create(&f->executor, f->plan, &f->options, &f->err), PITH_OK);
    pith__executor_trace(f->executor, count_steps, &steps);
    if (pith__executor_run(f->executor, out, in, threads, NULL, &f->err))
        fail_msg("%s", f->err.message);
    return steps;
}

static void same_bits_with_tails(void **state) {
    (void)state;
    int saved = 0;
    for (size_t i = 0; i < 2 * MOST; i++) numbers[i] = (float)(i % 101) / 40 - 1.1f;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fixture *f;
        pith_tensor in, out[2];
        static float want[2][2 * MOST];
        fixture_setup((void **)&f);
        random_graph(f, seed, &in);
        if (pith__graph_check(f->graph, &f->err) || pith__ops_bind(f->graph, &f->err) ||
            pith__ops_infer(f->graph, false, &f->err) ||
            pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err))
            fail_msg("seed %d: %s", (int)seed, f->err.message);
        const int alone = run_with(f, out, &in, 1, false, false);
        for (int o = 0; o < 2; o++) memcpy(want[o], out[o].data, out[o].bytes);
        for (int way = 0; way < 3; way++) {
            saved += alone - run_with(f, out, &in, 1 + 2 * (way > 0), true, way == 2);
            for (int o = 0; o < 2; o++)
                if (memcmp(want[o], out[o].data, out[o].bytes))
                    fail_msg("seed %d, way %d, output %d", (int)seed, way, o);
        }
        fixture_teardown((void **)&f);
    }
    assert_true(saved > 10 * SEEDS); /* else the test shows nothing */
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bits_with_tails) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Convolutions in f32 by the definition: sums of fused multiply-adds in the order channel, kernel
 * row, column, then the bias; the same bits whatever way the kernels take, with tails and on any
 * number of threads. */
#include "support/graph_test.h"

#include <math.h>
#include <string.h>

#include "engine/kernels/window_shape.h"

enum { SEEDS = 600, MOST = 1 << 19 };

typedef struct shape {
    pith__window w;
    int64_t batch, groups, channels, maps; /* channels and maps of a group */
} shape;

static float x[MOST], weights[MOST], bias[256], want[MOST];

static int64_t below(uint64_t *state, uint32_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((uint32_t)(*state >> 33) % n);
}

/* Every third one is a picture's, every third one has a channel for each map, some are too large
 * for the cache, every eighth one has rows of one place. False: it has no windows. */
static bool random_shape(shape *s, uint64_t seed) {
    uint64_t state = seed;
    const bool picture = seed % 3 == 0, depthwise = seed % 3 == 1;
    *s = (shape){ .w = { .rank = 2 },
                  .batch = 1 + below(&state, 2),
                  .groups = depthwise ? 1 + below(&state, 6) : 1 + below(&state, 2) };
    const bool large = seed % 60 == 0;
    if (picture) s->groups = 1;
    if (large) s->batch = 1;
    s->channels = depthwise ? 1 : large ? 32 + below(&state, 16) : 1 + below(&state, 4);
    s->maps = depthwise ? 1 + below(&state, 2) : 1 + below(&state, large ? 4 : 17);
    for (int d = 0; d < 2; d++) {
        const bool usual = seed % 2;
        s->w.in[d] = large ? 75 + below(&state, 25) : 1 + below(&state, picture ? 90 : 40);
        s->w.kernel[d] = usual ? 3 : 1 + below(&state, 4);
        s->w.stride[d] = usual && depthwise ? 1 + (int64_t)(seed / 6 % 2) : 1 + below(&state, 3);
        s->w.dilation[d] = usual ? 1 : 1 + below(&state, 2);
        s->w.begin[d] = usual ? 1 : below(&state, 3);
        s->w.end[d] = usual ? 1 : below(&state, 3);
        if (d == 1 && seed % 8 == 5)
            s->w.in[d] = s->w.kernel[d] = 1, s->w.begin[d] = s->w.end[d] = 0;
        const int64_t room =
            s->w.in[d] + s->w.begin[d] + s->w.end[d] - (s->w.kernel[d] - 1) * s->w.dilation[d] - 1;
        if (room < 0) return false;
        s->w.out[d] = room / s->w.stride[d] + 1;
    }
    return true;
}

static float at(const shape *s, int64_t plane, int64_t r, int64_t c) {
    const bool inside = r >= 0 && r < s->w.in[0] && c >= 0 && c < s->w.in[1];
    return inside ? x[(plane * s->w.in[0] + r) * s->w.in[1] + c] : 0;
}

static float by_definition(const shape *s, int64_t image, int64_t map, int64_t r, int64_t c) {
    const pith__window *w = &s->w;
    const float *weight = weights + map * s->channels * w->kernel[0] * w->kernel[1];
    float sum = 0;
    for (int64_t k = 0; k < s->channels; k++)
        for (int64_t i = 0; i < w->kernel[0]; i++)
            for (int64_t j = 0; j < w->kernel[1]; j++)
                sum = fmaf(*weight++,
                           at(s, (image * s->groups + map / s->maps) * s->channels + k,
                              r * w->stride[0] - w->begin[0] + i * w->dilation[0],
                              c * w->stride[1] - w->begin[1] + j * w->dilation[1]),
                           sum);
    sum += bias[map];
    return sum > 0 ? sum : 0;
}

static int64_t fill_wanted(const shape *s) {
    int64_t n = 0;
    for (int64_t image = 0; image < s->batch; image++)
        for (int64_t map = 0; map < s->groups * s->maps; map++)
            for (int64_t r = 0; r < s->w.out[0]; r++)
                for (int64_t c = 0; c < s->w.out[1]; c++)
                    want[n++] = by_definition(s, image, map, r, c);
    return n;
}

static pith__value *constant(fixture *f, float *data, int rank, const int64_t *dims) {
    pith_tensor t = { .dtype = PITH_F32, .rank = rank, .data = data, .bytes = sizeof(float) };
    for (int i = 0; i < rank; i++) t.bytes *= (size_t)(t.dims[i] = dims[i]);
    return pith__graph_add_const(f->graph, pith__str_of(""), &t);
}

/* Relu(Conv(x)) with this shape. */
static void build(fixture *f, const shape *s) {
    const int64_t maps = s->groups * s->maps,
                  pads[4] = { s->w.begin[0], s->w.begin[1], s->w.end[0], s->w.end[1] };
    pith__value *in[3] = { graph_input_of(f->graph, "x", PITH_F32, "NCHW") };
    in[0]->hint->dims[1] = s->groups * s->channels;
    in[1] =
        constant(f, weights, 4, (int64_t[]){ maps, s->channels, s->w.kernel[0], s->w.kernel[1] });
    in[2] = constant(f, bias, 1, &maps);
    pith__node *conv = pith__graph_add_node(f->graph, NULL, "", "Conv", in, 3, NULL, 1);
    conv->opset = 17;
    if (pith__node_set_int(conv, "group", s->groups) ||
        pith__node_set_ints(conv, "pads", pads, 4) ||
        pith__node_set_ints(conv, "strides", s->w.stride, 2) ||
        pith__node_set_ints(conv, "dilations", s->w.dilation, 2))
        fail();
    graph_output(f->graph, graph_apply(f->graph, "Relu", conv->outputs[0], NULL));
    f->graph->last->opset = 17;
    if (pith__graph_check(f->graph, &f->err) || pith__ops_bind(f->graph, &f->err) ||
        pith__ops_infer(f->graph, false, &f->err) ||
        pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err))
        fail_msg("%s", f->err.message);
}

static void as_defined(void **state) {
    (void)state;
    int done = 0;
    for (size_t i = 0; i < MOST; i++) {
        x[i] = (float)(i * 7 % 211) / 64 - 1.5f;
        weights[i] = (float)(i * 5 % 127) / 50 - 1.2f;
    }
    for (size_t i = 0; i < sizeof bias / sizeof *bias; i++) bias[i] = (float)(i % 9) / 4 - 1;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        shape s;
        fixture *f;
        pith_tensor out, in = { .data = x, .dtype = PITH_F32, .rank = 4, .bytes = sizeof(float) };
        if (!random_shape(&s, seed)) continue;
        const int64_t dims[4] = { s.batch, s.groups * s.channels, s.w.in[0], s.w.in[1] },
                      count = fill_wanted(&s);
        for (int i = 0; i < 4; i++) in.bytes *= (size_t)(in.dims[i] = dims[i]);
        fixture_setup((void **)&f);
        build(f, &s);
        for (int way = 0; way < 4; way++) {
            pith__executor_destroy(f->executor);
            f->executor = NULL;
            f->options.tails = way % 2;
            assert_int_equal(pith__executor_create(&f->executor, f->plan, &f->options, &f->err),
                             PITH_OK);
            if (pith__executor_run(f->executor, &out, &in, way < 2 ? 1 : 3, NULL, &f->err))
                fail_msg("%s", f->err.message);
            assert_int_equal(out.bytes, (size_t)count * sizeof(float));
            if (memcmp(out.data, want, out.bytes)) fail_msg("seed %d, way %d", (int)seed, way);
        }
        fixture_teardown((void **)&f);
        done++;
    }
    assert_true(done > SEEDS / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_defined) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

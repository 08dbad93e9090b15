/* Convolutions, sums and pools of bytes whose pictures keep their channels last between them: the
 * same bits as the graph as written, on random graphs, and which values the pass takes and which it
 * leaves. ctest runs it at every instruction-set level. */
#include "support/graph_test.h"

#include <math.h>
#include <string.h>

#include "engine/opt/pass.h"

extern const pith__pass pith__pass_channels_last;

enum { SEEDS = 800, MOST_VALUES = 16, MOST_BYTES = 1 << 17 };

/* ---- graphs ---- */

/* A picture of bytes [N, channels, rows, columns]. */
typedef struct picture {
    pith__value *v;
    int64_t channels, in[2];
} picture;

typedef struct net {
    fixture *f;
    uint64_t state;
    picture made[MOST_VALUES];
    int count;
} net;

static int64_t below(net *g, uint32_t n) {
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((uint32_t)(g->state >> 33) % n);
}

static bool chance(net *g, uint32_t percent) { return below(g, 100) < (int64_t)percent; }

static pith__value *constant(net *g, int dtype, int rank, const int64_t *dims, const void *items) {
    pith_tensor t = { .dtype = dtype,
                      .rank = rank,
                      .bytes = dtype == PITH_U8 || dtype == PITH_I8 ? 1 : 4 };
    for (int i = 0; i < rank; i++) t.bytes *= (size_t)(t.dims[i] = dims[i]);
    t.data = pith__arena_alloc64(&g->f->arena, t.bytes);
    memcpy(t.data, items, t.bytes);
    return pith__graph_add_const(g->f->graph, pith__str_of(""), &t);
}

static pith__value *number(net *g, float x) { return constant(g, PITH_F32, 0, NULL, &x); }
static pith__value *byte(net *g, int dtype, int64_t x) {
    return constant(g, dtype, 0, NULL, &(uint8_t){ (uint8_t)x });
}
static int any_dtype(net *g) { return chance(g, 70) ? PITH_U8 : PITH_I8; }

/* A zero point of this type. */
static pith__value *zero_point(net *g, int dtype) {
    return byte(g, dtype, below(g, 256) - (dtype == PITH_I8 ? 128 : 0));
}

static pith__node *node_of(net *g, const char *domain, const char *op, pith__value *const *in,
                           int count) {
    return pith__graph_add_node(g->f->graph, NULL, domain, op, in, count, NULL, 1);
}

static pith__value *apply(net *g, const char *op, pith__value *a, pith__value *b, pith__value *c) {
    return node_of(g, "", op, (pith__value *[]){ a, b, c }, c ? 3 : b ? 2 : 1)->outputs[0];
}

static picture *keep(net *g, pith__value *v, int64_t channels, const int64_t *in) {
    g->made[g->count] = (picture){ v, channels, { in[0], in[1] } };
    return &g->made[g->count++];
}

static int dtype_of(const pith__value *v) { return v->hint ? v->hint->dtype : v->type.dtype; }

/* The type is set where inference has not yet been, so that later nodes can ask for it. */
static pith__value *typed(pith__value *v, int dtype) {
    v->type.dtype = dtype;
    return v;
}

static picture *start(net *g, fixture *f, uint64_t seed, int dtype, int64_t channels, int64_t rows,
                      int64_t columns) {
    *g = (net){ .f = f, .state = seed };
    pith__value *x = graph_input_of(f->graph, "x", dtype, "NCHW");
    x->hint->dims[1] = channels;
    x->hint->dims[2] = rows;
    x->hint->dims[3] = columns;
    return keep(g, x, channels, (int64_t[]){ rows, columns });
}

/* ---- one operator each ---- */

typedef struct conv {
    int64_t maps, group, kernel, stride, dilation, pads[4];
    int w_dtype, y_dtype;
    bool by_map, bias;
} conv;

static void conv_set(pith__node *node, const conv *c) {
    if (pith__node_set_int(node, "group", c->group) ||
        pith__node_set_ints(node, "strides", (int64_t[]){ c->stride, c->stride }, 2) ||
        pith__node_set_ints(node, "dilations", (int64_t[]){ c->dilation, c->dilation }, 2) ||
        pith__node_set_ints(node, "pads", c->pads, 4))
        fail();
}

/* NULL if the window is larger than the picture. */
static picture *convolve(net *g, const picture *x, const conv *c) {
    static int8_t weights[64 * 64 * 9];
    float scales[64];
    int8_t points[64];
    int32_t bias[64];
    int64_t out[2];
    const int64_t each = x->channels / c->group, dims[4] = { c->maps, each, c->kernel, c->kernel };
    for (int d = 0; d < 2; d++) {
        const int64_t room =
            x->in[d] + c->pads[d] + c->pads[2 + d] - (c->kernel - 1) * c->dilation - 1;
        if (room < 0) return NULL;
        out[d] = room / c->stride + 1;
    }
    for (int64_t i = 0; i < c->maps * each * c->kernel * c->kernel; i++)
        weights[i] = (int8_t)below(g, 256);
    for (int64_t i = 0; i < c->maps; i++) {
        scales[i] = 0.002f + 0.0007f * (float)below(g, 20);
        points[i] = (int8_t)(c->w_dtype == PITH_U8 ? 120 + i : i - 3);
        bias[i] = (int32_t)(below(g, 8001) - 4000);
    }
    const int rank = c->by_map;
    pith__value *in[9] = { x->v,
                           number(g, 0.01f + 0.01f * (float)below(g, 5)),
                           zero_point(g, dtype_of(x->v)),
                           constant(g, c->w_dtype, 4, dims, weights),
                           constant(g, PITH_F32, rank, &c->maps, scales),
                           constant(g, c->w_dtype, rank, &c->maps, points),
                           number(g, 0.05f + 0.05f * (float)below(g, 5)),
                           zero_point(g, c->y_dtype),
                           c->bias ? constant(g, PITH_I32, 1, &c->maps, bias) : NULL };
    pith__node *node = node_of(g, "", "QLinearConv", in, c->bias ? 9 : 8);
    conv_set(node, c);
    return keep(g, typed(node->outputs[0], c->y_dtype), c->maps, out);
}

static picture *random_conv(net *g, const picture *x) {
    conv c = { .maps = 1 + below(g, 20),
               .group = 1,
               .kernel = 1 + below(g, 3),
               .stride = chance(g, 30) ? 2 : 1,
               .dilation = chance(g, 15) ? 2 : 1,
               .w_dtype = any_dtype(g),
               .y_dtype = any_dtype(g),
               .by_map = chance(g, 50),
               .bias = chance(g, 60) };
    if (chance(g, 50)) c.maps = x->channels;
    if (chance(g, 25)) {
        c.group = c.maps = x->channels; /* depthwise */
    } else if (x->channels % 2 == 0 && chance(g, 30)) {
        c.group = 2;
        c.maps = c.maps / 2 * 2 + 2;
    }
    for (int i = 0; i < 4; i++) c.pads[i] = chance(g, 60) ? c.kernel / 2 : below(g, 2);
    return convolve(g, x, &c);
}

static pith__value *dequantized(net *g, pith__value *v) {
    const int dtype = dtype_of(v);
    return apply(g, "DequantizeLinear", v, number(g, 0.02f + 0.01f * (float)below(g, 7)),
                 zero_point(g, dtype));
}

static pith__value *quantized(net *g, pith__value *v) {
    const int dtype = any_dtype(g);
    return typed(apply(g, "QuantizeLinear", v, number(g, 0.03f + 0.02f * (float)below(g, 6)),
                       zero_point(g, dtype)),
                 dtype);
}

static pith__value *limited(net *g, pith__value *v) {
    switch (below(g, 5)) {
    case 0: return apply(g, "Relu", v, NULL, NULL);
    case 1: return apply(g, "Clip", v, number(g, -1.5f), number(g, 2.25f));
    case 2: return apply(g, "Sigmoid", v, NULL, NULL);
    case 3: return apply(g, "Mul", number(g, 0.7f), v, NULL);
    default: return v;
    }
}

static picture *sum(net *g, const picture *a, const picture *b) {
    if (chance(g, 30)) {
        const int dtype = any_dtype(g);
        pith__value *in[8] = {
            a->v, number(g, 0.03f), zero_point(g, dtype_of(a->v)), b->v, number(g, 0.02f),
            NULL, number(g, 0.04f), zero_point(g, dtype)
        };
        in[5] = zero_point(g, dtype_of(b->v));
        return keep(g, typed(node_of(g, "com.microsoft", "QLinearAdd", in, 8)->outputs[0], dtype),
                    a->channels, a->in);
    }
    pith__value *added = apply(g, "Add", dequantized(g, a->v), dequantized(g, b->v), NULL);
    return keep(g, quantized(g, limited(g, added)), a->channels, a->in);
}

/* NULL if it has no windows. */
static picture *pool(net *g, const picture *x) {
    const int64_t kernel[2] = { 1 + below(g, 3), 1 + below(g, 3) },
                  stride[2] = { 1 + below(g, 2), 1 + below(g, 3) };
    const int64_t dilation = chance(g, 15) ? 2 : 1;
    const bool same = chance(g, 20), ceil_mode = chance(g, 25);
    int64_t pads[4], out[2];
    for (int i = 0; i < 4; i++) pads[i] = same ? 0 : below(g, (uint32_t)kernel[i % 2]);
    pith__node *node = node_of(g, "", "MaxPool", (pith__value *[]){ x->v }, 1);
    if (pith__node_set_ints(node, "kernel_shape", kernel, 2) ||
        pith__node_set_ints(node, "strides", stride, 2) ||
        pith__node_set_ints(node, "dilations", (int64_t[]){ dilation, dilation }, 2) ||
        (!same && pith__node_set_ints(node, "pads", pads, 4)) ||
        (same && pith__node_set_str(node, "auto_pad", PITH_STR("SAME_LOWER"))) ||
        pith__node_set_int(node, "ceil_mode", ceil_mode))
        fail();
    for (int d = 0; d < 2; d++) {
        const int64_t room = x->in[d] + pads[d] + pads[2 + d] - (kernel[d] - 1) * dilation - 1;
        if (room < 0 && !same) return NULL;
        out[d] = same ? (x->in[d] + stride[d] - 1) / stride[d] : room / stride[d] + 1;
        if (!same && ceil_mode && room % stride[d] && out[d] * stride[d] < x->in[d] + pads[d])
            out[d]++;
    }
    return keep(g, typed(node->outputs[0], dtype_of(x->v)), x->channels, out);
}

/* ---- random graphs ---- */

static void draw(net *g) {
    for (int64_t steps = 3 + below(g, 8); steps > 0 && g->count < MOST_VALUES; steps--) {
        const picture *x = &g->made[chance(g, 70) ? g->count - 1 : below(g, (uint32_t)g->count)],
                      *other = NULL;
        for (int i = 0; i < g->count; i++) {
            const picture *p = &g->made[i];
            if ((p != x || chance(g, 20)) && p->channels == x->channels &&
                !memcmp(p->in, x->in, sizeof x->in))
                other = p;
        }
        const int64_t way = below(g, 10);
        if (other && way < 4)
            sum(g, x, other);
        else if (way < 8)
            random_conv(g, x);
        else if (way == 8)
            pool(g, x);
        else
            keep(g, quantized(g, limited(g, dequantized(g, x->v))), x->channels, x->in);
        if (g->f->graph->output_count < 2 && chance(g, 8))
            graph_output(g->f->graph, g->made[g->count - 1].v);
        if (g->f->graph->output_count < 3 && chance(g, 8))
            graph_output(g->f->graph, apply(g, "Transpose", g->made[g->count - 1].v, NULL, NULL));
    }
    graph_output(g->f->graph, g->made[g->count - 1].v);
}

static int count_of(const fixture *f, const char *op) {
    int n = 0;
    for (const pith__node *node = f->graph->first; node; node = node->next)
        n += pith__str_is(node->op_type, op);
    return n;
}

static void prepare(fixture *f, int level) {
    for (pith__node *node = f->graph->first; node; node = node->next)
        node->opset = node->domain.size ? 1 : 17;
    if (pith__ops_bind(f->graph, &f->err) || pith__ops_infer(f->graph, false, &f->err))
        fail_msg("%s", f->err.message);
    pith__opt opt = {
        .graph = f->graph, .level = level, .allocator = &pith__allocator_default, .err = &f->err
    };
    if (level && pith__opt_run(&opt, NULL)) fail_msg("%s", f->err.message);
    if (pith__graph_check(f->graph, &f->err) ||
        pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err))
        fail_msg("%s", f->err.message);
}

/* Runs on this many pictures; the outputs' bytes after each other. Returns how many there are. */
static size_t run(fixture *f, uint8_t *to, int64_t batch, int threads, bool tails) {
    static uint8_t data[MOST_BYTES];
    const pith__type *hint = f->graph->inputs[0]->hint;
    pith_tensor out[4],
        in = { .data = data, .bytes = 1, .dtype = hint->dtype, .rank = 4, .dims = { batch } };
    size_t n = 0;
    for (int i = 1; i < 4; i++) in.dims[i] = hint->dims[i];
    for (int i = 0; i < 4; i++) in.bytes *= (size_t)in.dims[i];
    assert_true(in.bytes <= sizeof data);
    for (size_t i = 0; i < in.bytes; i++) data[i] = (uint8_t)(i * i * 31 + i / 7);
    pith__executor_destroy(f->executor);
    f->executor = NULL;
    f->options.tails = tails;
    if (pith__executor_create(&f->executor, f->plan, &f->options, &f->err) ||
        pith__executor_run(f->executor, out, &in, threads, NULL, &f->err))
        fail_msg("%s", f->err.message);
    for (size_t i = 0; i < f->graph->output_count; i++) {
        assert_true(n + out[i].bytes <= MOST_BYTES);
        memcpy(to + n, out[i].data, out[i].bytes);
        n += out[i].bytes;
    }
    return n;
}

static void same_bits(void **state) {
    static uint8_t want[2][MOST_BYTES], got[MOST_BYTES];
    int convs = 0, pools = 0, sums = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        size_t n[2];
        for (int level = 0; level <= 3; level += 3) {
            fixture *f;
            net g;
            fixture_setup((void **)&f);
            const bool wide = seed % 5 == 0;
            start(&g, f, seed, seed % 4 ? PITH_U8 : PITH_I8, wide ? 32 : 1 + (int64_t)seed % 7,
                  5 + (int64_t)seed % 9, 4 + (int64_t)seed % 13);
            draw(&g);
            prepare(f, level);
            for (int64_t batch = 1; batch <= 2; batch++) {
                if (!level) n[batch - 1] = run(f, want[batch - 1], batch, 1, false);
                for (int threads = 1; level && threads <= 3; threads += 2) {
                    const size_t same = run(f, got, batch, threads, seed % 2);
                    if (same != n[batch - 1] || memcmp(got, want[batch - 1], same))
                        fail_msg("seed %d, batch %d, threads %d", (int)seed, (int)batch, threads);
                }
            }
            if (level) {
                convs += count_of(f, "QLinearConvLast");
                pools += count_of(f, "MaxPoolLast");
                sums += count_of(f, "QuantizedAdd");
            }
            fixture_teardown((void **)&f);
        }
    }
    print_message("%d convolutions, %d pools and %d sums\n", convs, pools, sums);
    assert_true(convs > SEEDS / 2 && pools > SEEDS / 20 && sums > SEEDS / 4);
}

/* ---- what the pass takes ---- */

static const conv plain = { 8, 1, 3, 1, 1, { 1, 1, 1, 1 }, PITH_I8, PITH_U8, true, true };

/* What is between two convolutions. */
typedef pith__value *between_fn(net *g, const picture *x);

static pith__value *with_relu(net *g, const picture *x) {
    return quantized(g, apply(g, "Sigmoid", dequantized(g, x->v), NULL, NULL));
}
static pith__value *with_sum(net *g, const picture *x) {
    const picture *y = convolve(g, x, &plain);
    return quantized(g, apply(g, "Add", dequantized(g, x->v), dequantized(g, y->v), NULL));
}
static pith__value *with_number(net *g, const picture *x) {
    return quantized(g, apply(g, "Mul", dequantized(g, x->v), number(g, 1.5f), NULL));
}
static pith__value *with_pool(net *g, const picture *x) {
    pith__node *node = node_of(g, "", "MaxPool", (pith__value *[]){ x->v }, 1);
    assert_int_equal(pith__node_set_ints(node, "kernel_shape", (int64_t[]){ 2, 2 }, 2), PITH_OK);
    return typed(node->outputs[0], PITH_U8);
}
static pith__value *with_places(net *g, const picture *x) {
    pith__value *in[] = { x->v };
    pith__node *node = pith__graph_add_node(g->f->graph, NULL, "", "MaxPool", in, 1, NULL, 2);
    assert_int_equal(pith__node_set_ints(node, "kernel_shape", (int64_t[]){ 2, 2 }, 2), PITH_OK);
    graph_output(g->f->graph, node->outputs[1]);
    return typed(node->outputs[0], PITH_U8);
}
static pith__value *with_numbers_by_map(net *g, const picture *x) {
    const float scales[8] = { 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f };
    pith__value *by_map = constant(g, PITH_F32, 4, (int64_t[]){ 1, 8, 1, 1 }, scales);
    return quantized(g, apply(g, "Mul", dequantized(g, x->v), by_map, NULL));
}
static pith__value *with_scales_by_map(net *g, const picture *x) {
    const float scales[8] = { 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f };
    pith__value *by_map = constant(g, PITH_F32, 1, (int64_t[]){ 8 }, scales);
    const uint8_t points[8] = { 0 };
    pith__value *zeros = constant(g, PITH_U8, 1, (int64_t[]){ 8 }, points);
    return quantized(
        g, apply(g, "Sigmoid", apply(g, "DequantizeLinear", x->v, by_map, zeros), NULL, NULL));
}
static pith__value *with_turn(net *g, const picture *x) {
    pith__value *v = apply(g, "Transpose", x->v, NULL, NULL);
    assert_int_equal(pith__node_set_ints(v->producer, "perm", (int64_t[]){ 0, 1, 3, 2 }, 4),
                     PITH_OK);
    return typed(v, PITH_U8);
}
static pith__value *with_reader(net *g, const picture *x) {
    graph_output(g->f->graph, apply(g, "Transpose", x->v, NULL, NULL));
    return x->v;
}
static pith__value *with_output(net *g, const picture *x) {
    graph_output(g->f->graph, x->v);
    return x->v;
}
static pith__value *with_float_output(net *g, const picture *x) {
    pith__value *v = dequantized(g, x->v);
    graph_output(g->f->graph, v);
    return quantized(g, v);
}
static pith__value *with_nothing(net *g, const picture *x) {
    (void)g;
    return x->v;
}

static void decisions(void **state) {
    /* convs and pools: how many have channels last on one side or both; sums: of QuantizedAdd */
    static const struct {
        const char *name;
        between_fn *between;
        int convs, pools, sums;
    } cases[] = {
        { "nothing", with_nothing, 2, 0, 0 },
        { "relu", with_relu, 2, 0, 0 },
        { "sum", with_sum, 3, 0, 1 },
        { "number", with_number, 2, 0, 0 },
        { "pool", with_pool, 2, 1, 0 },
        { "places", with_places, 0, 0, 0 },
        { "by map", with_numbers_by_map, 0, 0, 0 },
        { "scales by map", with_scales_by_map, 0, 0, 0 },
        { "turn", with_turn, 0, 0, 0 },
        { "reader", with_reader, 0, 0, 0 },
        { "output", with_output, 0, 0, 0 },
        { "float output", with_float_output, 0, 0, 0 },
    };
    static uint8_t want[MOST_BYTES], got[MOST_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n[2];
        for (int level = 0; level <= 3; level += 3) {
            fixture *f;
            net g;
            fixture_setup((void **)&f);
            const picture *x = convolve(&g, start(&g, f, 7, PITH_U8, 8, 9, 7), &plain);
            pith__value *v = cases[i].between(&g, x);
            const bool pooled = pith__str_is(v->producer->op_type, "MaxPool");
            const picture *last = keep(&g, v, 8, (int64_t[]){ 9 - pooled, 7 - pooled });
            graph_output(f->graph, convolve(&g, last, &plain)->v);
            prepare(f, level);
            n[level / 3] = run(f, level ? got : want, 2, 1, false);
            if (level && (count_of(f, "QLinearConvLast") != cases[i].convs ||
                          count_of(f, "MaxPoolLast") != cases[i].pools ||
                          count_of(f, "QuantizedAdd") != cases[i].sums))
                fail_msg("%s: %d convolutions, %d pools, %d sums", cases[i].name,
                         count_of(f, "QLinearConvLast"), count_of(f, "MaxPoolLast"),
                         count_of(f, "QuantizedAdd"));
            fixture_teardown((void **)&f);
        }
        assert_int_equal(n[0], n[1]);
        if (memcmp(want, got, n[0])) fail_msg("%s: other bits", cases[i].name);
    }
}

/* Marks are taken away from the end of a long chain to its begin; what takes the square of its
 * length runs into ctest's limit. */
static void long_chain(void **state) {
    enum { LENGTH = 100000 };
    fixture *f;
    net g;
    size_t changes = 0;
    (void)state;
    fixture_setup((void **)&f);
    const picture *x = convolve(&g, start(&g, f, 7, PITH_U8, 8, 9, 7), &plain);
    pith__value *v = dequantized(&g, x->v);
    for (int i = 0; i < LENGTH; i++) v = apply(&g, "Abs", v, NULL, NULL);
    graph_output(f->graph, v);
    prepare(f, 0);
    pith__opt opt = {
        .graph = f->graph, .level = 3, .allocator = &pith__allocator_default, .err = &f->err
    };
    assert_int_equal(pith__pass_channels_last.run(&opt, &changes), PITH_OK);
    assert_int_equal(changes, 0);
    fixture_teardown((void **)&f);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bits), cmocka_unit_test(decisions),
                                        cmocka_unit_test(long_chain) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

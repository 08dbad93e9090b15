/* Convolutions between DequantizeLinear and QuantizeLinear: in integers where the numbers allow it,
 * and then within one step of the graph as written. Sums have its bits. */
#include "support/graph_test.h"

#include <math.h>
#include <string.h>

#include "engine/opt/pass.h"

enum { CHANNELS = 5, MAPS = 7, SIDE = 9 };

/* How a graph is built. Those from WRONG_BIAS on are not to be rewritten. */
typedef enum qdq_form {
    PLAIN,
    BY_MAP,
    WITH_BIAS,
    RELU,
    CLIP,
    SIGNED,
    WRONG_BIAS,
    BIAS_FROM_ONE,
    RELU_ABOVE,
    CLIP_BELOW,
    READ_TWICE,
    FORMS, /* of convolutions */
    SUM,
    SIGNED_SUM
} qdq_form;

static pith__value *constant(fixture *f, int dtype, int rank, const int64_t *dims,
                             const void *items, size_t bytes) {
    pith_tensor t = { .dtype = dtype, .rank = rank, .bytes = bytes };
    for (int i = 0; i < rank; i++) t.dims[i] = dims[i];
    t.data = pith__arena_alloc64(&f->arena, bytes);
    memcpy(t.data, items, bytes);
    return pith__graph_add_const(f->graph, pith__str_of(""), &t);
}

static pith__value *number(fixture *f, float x) {
    return constant(f, PITH_F32, 0, NULL, &x, sizeof x);
}
static pith__value *byte(fixture *f, int dtype, int x) {
    return constant(f, dtype, 0, NULL, &(uint8_t){ (uint8_t)x }, 1);
}

static pith__value *node(fixture *f, const char *op, pith__value *a, pith__value *b,
                         pith__value *c) {
    return pith__graph_add_node(f->graph, NULL, "", op, (pith__value *[]){ a, b, c },
                                c   ? 3
                                : b ? 2
                                    : 1,
                                NULL, 1)
        ->outputs[0];
}

/* A sum with a constant that has one picture, of pictures whose number is known when it runs. */
static void build_sum(fixture *f, qdq_form form) {
    const int dtype = form == SIGNED_SUM ? PITH_I8 : PITH_U8;
    const int64_t dims[4] = { 1, CHANNELS, SIDE, SIDE };
    uint8_t term[CHANNELS * SIDE * SIDE];
    for (size_t i = 0; i < sizeof term; i++) term[i] = (uint8_t)(i * 77 % 256);
    pith__value *x = graph_input_of(f->graph, "x", dtype, "NCHW");
    for (int i = 1; i < 4; i++) x->hint->dims[i] = dims[i];
    pith__value *own = node(f, "DequantizeLinear", x, number(f, 0.02f), byte(f, dtype, 17));
    pith__value *other =
        node(f, "DequantizeLinear", constant(f, PITH_U8, 4, dims, term, sizeof term),
             number(f, 0.03f), NULL);
    pith__value *y =
        form == SUM ? node(f, "Add", own, other, NULL) : node(f, "Add", other, own, NULL);
    graph_output(f->graph, node(f, "QuantizeLinear", y, number(f, 0.06f), byte(f, dtype, 90)));
}

static void build(fixture *f, qdq_form form) {
    if (form > FORMS) {
        build_sum(f, form);
        return;
    }

    int8_t w[MAPS * CHANNELS * 9];
    int32_t bias[MAPS];
    const int32_t points[MAPS] = { [MAPS - 1] = form == BIAS_FROM_ONE };
    float scales[MAPS], bias_scales[MAPS];
    const int64_t maps = MAPS, dims[4] = { MAPS, CHANNELS, 3, 3 };
    const int bytes = form == SIGNED ? PITH_I8 : PITH_U8;
    const bool by_map =
        form == BY_MAP || form == WITH_BIAS || form == WRONG_BIAS || form == BIAS_FROM_ONE;
    for (int i = 0; i < MAPS * CHANNELS * 9; i++) w[i] = (int8_t)(i * 37 % 255 - 127);
    for (int i = 0; i < MAPS; i++) {
        bias[i] = 900 * i - 2000;
        scales[i] = 0.004f + 0.0007f * (float)i;
        bias_scales[i] = (form == WRONG_BIAS ? 0.03f : 0.02f) * scales[i];
    }
    pith__value *x = graph_input_of(f->graph, "x", bytes, "NCHW"), *zeros = NULL;
    x->hint->dims[1] = CHANNELS;
    if (!by_map) zeros = byte(f, PITH_I8, 3);
    pith__value *from =
        node(f, "DequantizeLinear", x, number(f, 0.02f), byte(f, bytes, form == SIGNED ? -5 : 117));
    pith__value *weights = node(
        f, "DequantizeLinear", constant(f, PITH_I8, 4, dims, w, sizeof w),
        by_map ? constant(f, PITH_F32, 1, &maps, scales, sizeof scales) : number(f, 0.005f), zeros);
    assert_int_equal(pith__node_set_int(weights->producer, "axis", 0), PITH_OK);
    pith__value *added = NULL;
    if (form == WITH_BIAS || form == WRONG_BIAS || form == BIAS_FROM_ONE) {
        added = node(f, "DequantizeLinear", constant(f, PITH_I32, 1, &maps, bias, sizeof bias),
                     constant(f, PITH_F32, 1, &maps, bias_scales, sizeof bias_scales),
                     constant(f, PITH_I32, 1, &maps, points, sizeof points));
        assert_int_equal(pith__node_set_int(added->producer, "axis", 0), PITH_OK);
    }
    pith__value *y = node(f, "Conv", from, weights, added);
    assert_int_equal(pith__node_set_ints(y->producer, "pads", (int64_t[]){ 1, 1, 1, 1 }, 4),
                     PITH_OK);
    assert_int_equal(pith__node_set_ints(y->producer, "strides", (int64_t[]){ 2, 1 }, 2), PITH_OK);
    if (form == READ_TWICE) graph_output(f->graph, y);
    if (form == RELU || form == RELU_ABOVE) y = node(f, "Relu", y, NULL, NULL);
    if (form == CLIP || form == CLIP_BELOW)
        y = node(f, "Clip", y, number(f, 0), number(f, form == CLIP ? 25.5f : 12));
    const int zero = form == RELU || form == CLIP || form == CLIP_BELOW ? 0
                     : form == SIGNED                                   ? 4
                                                                        : 101;
    graph_output(f->graph, node(f, "QuantizeLinear", y, number(f, 0.1f), byte(f, bytes, zero)));
}

/* Runs the graph of a form at a level; returns how many QLinearConv or QuantizedAdd it had. */
static int run(qdq_form form, int level, uint8_t *result, size_t *bytes) {
    fixture *f;
    uint8_t data[2 * CHANNELS * SIDE * SIDE];
    pith_tensor out[2],
        in = { .data = data, .bytes = sizeof data, .rank = 4, .dims = { 2, CHANNELS, SIDE, SIDE } };
    int found = 0;
    fixture_setup((void **)&f);
    build(f, form);
    in.dtype = form == SIGNED || form == SIGNED_SUM ? PITH_I8 : PITH_U8;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * i * 31 % 256);
    assert_int_equal(pith__ops_bind(f->graph, &f->err), PITH_OK);
    assert_int_equal(pith__ops_infer(f->graph, false, &f->err), PITH_OK);
    pith__opt opt = {
        .graph = f->graph, .level = level, .allocator = &pith__allocator_default, .err = &f->err
    };
    if (level && pith__opt_run(&opt, NULL)) fail_msg("%s", f->err.message);
    for (const pith__node *n = f->graph->first; n; n = n->next)
        found += pith__str_is(n->op_type, form > FORMS ? "QuantizedAdd" : "QLinearConv");
    if (pith__plan_build(&f->plan, f->graph, NULL, &f->arena, &f->err) ||
        pith__executor_create(&f->executor, f->plan, &f->options, &f->err) ||
        pith__executor_run(f->executor, out, &in, 1, NULL, &f->err))
        fail_msg("form %d: %s", form, f->err.message);
    const pith_tensor *y = &out[f->graph->output_count - 1];
    *bytes = y->bytes;
    memcpy(result, y->data, y->bytes);
    fixture_teardown((void **)&f);
    return found;
}

static void within_a_step(void **state) {
    (void)state;
    for (qdq_form form = PLAIN; form < FORMS; form++) {
        static uint8_t want[1 << 14], got[1 << 14];
        size_t n, same;
        int differ = 0;
        assert_int_equal(run(form, 0, want, &n), 0);
        assert_int_equal(run(form, 2, got, &same), 0);
        const int found = run(form, 3, got, &same);
        if (found != (form < WRONG_BIAS)) fail_msg("form %d: %d in integers", form, found);
        assert_int_equal(n, same);
        for (size_t i = 0; i < n; i++) {
            const int gap = form == SIGNED ? (int8_t)got[i] - (int8_t)want[i] : got[i] - want[i];
            if (gap < -1 || gap > 1)
                fail_msg("form %d, element %zu: %d for %d", form, i, got[i], want[i]);
            differ += gap != 0;
        }
        assert_true(differ <= (int)n / 100 && (form < WRONG_BIAS || !differ));
    }
}

static void sums(void **state) {
    (void)state;
    for (qdq_form form = SUM; form <= SIGNED_SUM; form++) {
        static uint8_t want[1 << 14], got[1 << 14];
        size_t n, same;
        assert_int_equal(run(form, 0, want, &n), 0);
        assert_int_equal(run(form, 3, got, &same), 1);
        assert_int_equal(n, 2 * CHANNELS * SIDE * SIDE);
        assert_int_equal(n, same);
        assert_memory_equal(got, want, n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(within_a_step), cmocka_unit_test(sums) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

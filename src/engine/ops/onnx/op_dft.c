/* op_dft.c - DFT: the discrete Fourier transform along an axis, forward or inverse.
 *
 * Real numbers have one part, complex ones two along the last axis. With onesided, the half of the
 * spectrum that mirrors the other is left out; the inverse then reads it as the conjugate. Lines
 * are padded with zeros or cut to dft_length. Source: ONNX DFT (opset 20). */
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/fourier_transform.h"

/* axis was an attribute, 1 by default, before opset 20. */
static pith_status dft_upgrade(pith__node *node, pith_error *err) {
    int64_t axis = pith__node_int(node, "axis", 1);
    pith_tensor t = { .data = &axis, .bytes = sizeof axis, .dtype = PITH_I64 };
    pith__graph *graph = node->graph;
    int64_t *copy = pith__arena_alloc(graph->arena, sizeof *copy);
    if (!copy) return pith__fail_memory(err, sizeof *copy);
    *copy = axis;
    t.data = copy;
    pith__value *value = pith__graph_add_const(graph, PITH_STR(""), &t);
    if (!value) return pith__fail_memory(err, sizeof *value);
    PITH_TRY(pith__node_set_input_count(node, 3));
    pith__node_unset(node, "axis");
    return pith__node_set_input(node, 2, value);
}

typedef struct dft_form {
    int axis;
    pith__dim length; /* of the transform */
    bool inverse, onesided;
} dft_form;

/* false: axis or length is not known yet. */
static pith_status dft_form_of(const pith__infer *c, dft_form *f, bool *known) {
    const pith__type *x = c->in[0];
    *f = (dft_form){ .inverse = pith__node_int(c->node, "inverse", 0) != 0,
                     .onesided = pith__node_int(c->node, "onesided", 0) != 0 };
    *known = false;
    if (x->rank < 0) return PITH_OK;
    if (x->rank < 2)
        return pith__fail(c->err, PITH_ERR_ARGUMENT,
                          "input has %d dimensions, at least 2 are needed", x->rank);
    pith__dim axis = -2;
    if (c->in_count > 2 && c->in[2] &&
        (!pith__type_elem(c->in[2], 0, &axis) || !pith__dim_known(axis)))
        return PITH_OK;
    PITH_TRY(pith__axis_normalize(axis, x->rank, &f->axis, c->err));
    if (f->axis == x->rank - 1)
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "axis is the one of real and imaginary parts");
    f->length = x->dims[f->axis];
    if (f->inverse && f->onesided)
        f->length = pith__dim_apply(c->dims, PITH_DIM_MUL,
                                    pith__dim_apply(c->dims, PITH_DIM_ADD, f->length, -1), 2);
    if (c->in_count > 1 && c->in[1] && !pith__type_elem(c->in[1], 0, &f->length)) return PITH_OK;
    if (pith__dim_known(f->length) && f->length < 1)
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "length %lld is not positive",
                          (long long)f->length);
    *known = true;
    return PITH_OK;
}

/* onesided keeps floor(length / 2) + 1 bins of a forward transform; its inverse gives real numbers.
 */
static pith_status dft_infer(pith__infer *c) {
    dft_form f;
    bool known;
    PITH_TRY(dft_form_of(c, &f, &known));
    const pith__type *x = c->in[0];
    pith__type_set(&c->out[0], x->dtype, x->rank, x->dims);
    for (int i = 0; i < x->rank; i++)
        if (!known) c->out[0].dims[i] = PITH_DIM_UNKNOWN;
    if (x->rank < 2) return PITH_OK;
    c->out[0].dims[x->rank - 1] = f.inverse && f.onesided ? 1 : 2;
    if (!known) return PITH_OK;
    bool half = f.onesided && !f.inverse;
    pith__dim bins = half ? pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, f.length, 2) : f.length;
    c->out[0].dims[f.axis] = half ? pith__dim_apply(c->dims, PITH_DIM_ADD, bins, 1) : bins;
    return PITH_OK;
}

static pith_status dft_scratch(const pith__infer *c, const void *state, int threads,
                               size_t *bytes) {
    dft_form f;
    bool known;
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    PITH_TRY(dft_form_of(c, &f, &known));
    return known ? pith__transform_bytes(c, f.length, bytes) : PITH_OK;
}

/* Line by line along the axis, gathered into the transform's own array and scattered back. Elements
 * behind the end of a line are zero. */
static pith_status dft_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    bool inverse = pith__node_int(r->node, "inverse", 0) != 0,
         onesided = pith__node_int(r->node, "onesided", 0) != 0;
    int axis;
    PITH_TRY(
        pith__axis_normalize(r->in_count > 2 && r->in[2] ? pith__transform_index(r->in[2]) : -2,
                             x->rank, &axis, r->err));
    int64_t in_length = x->dims[axis], out_length = y->dims[axis], parts = x->dims[x->rank - 1],
            out_parts = y->dims[y->rank - 1];
    int64_t n = inverse && onesided ? 2 * (in_length - 1) : in_length;
    if (r->in_count > 1 && r->in[1]) n = pith__transform_index(r->in[1]);
    if (parts != 1 && parts != 2)
        return pith__op_fail(r, "the last dimension is %lld, not 1 or 2", (long long)parts);
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; i++) outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank - 1; i++) inner *= x->dims[i];
    pith__transform t;
    int64_t spent = 0;
    PITH_TRY(pith__transform_init(&t, r, w.rest, n, inverse && x->dtype != PITH_F64));
    for (int64_t line = 0; line < outer * inner; line++) {
        PITH_TRY(pith__run_spend(r, &spent, 16 * n));
        const double *from = w.in[0] + (line / inner * in_length * inner + line % inner) * parts;
        double *to = w.out[0] + (line / inner * out_length * inner + line % inner) * out_parts;
        for (int64_t i = 0; i < n; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 4));
            bool mirror = inverse && onesided && i > n / 2,
                 end = inverse && onesided && (i == 0 || 2 * i == n);
            int64_t at = mirror ? n - i : i; /* the other half is the mirrored conjugate; ends are
                                                real */
            double re = at < in_length ? from[at * inner * parts] : 0;
            double im = at < in_length && parts == 2 && !end ? from[at * inner * parts + 1] : 0;
            pith__transform_put(&t, i, re, mirror ? -im : im);
        }
        PITH_TRY(pith__transform_run(&t, inverse));
        for (int64_t i = 0; i < out_length; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 4));
            for (int part = 0; part < out_parts; part++)
                to[i * inner * out_parts + part] = pith__transform_get(&t, i, part);
        }
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_DFT = {
    .domain = "",
    .name = "DFT",
    .since = 20,
    .newest = 20,
    .min_inputs = 1,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "fil",
    .attrs = "axis int = 1 @-19; inverse bool = 0; onesided bool = 0",
    .upgrade = dft_upgrade,
    .shape_inputs = 1u << 1 | 1u << 2,
    .infer = dft_infer,
    .scratch = dft_scratch,
    .run = dft_run,
};

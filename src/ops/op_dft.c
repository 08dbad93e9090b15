/* op_dft.c - DFT and STFT, in double: radix 2 for powers of two, the plain sum with tabled angles otherwise.
 * Sources: ONNX operators of these names; Cooley and Tukey 1965. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/wide.h"

#define PI 3.14159265358979323846

/* ---- one transform ---- */

/* Arrays of n doubles each; table has cos and sin of 2 pi k / n. */
typedef struct transform {
    int64_t n;
    double *re, *im, *out_re, *out_im, *cos_table, *sin_table;
} transform;

enum { ARRAYS = 6 };

static void transform_init(transform *t, double *memory, int64_t n) {
    *t = (transform){ .n = n,
                      .re = memory,
                      .im = memory + n,
                      .out_re = memory + 2 * n,
                      .out_im = memory + 3 * n,
                      .cos_table = memory + 4 * n,
                      .sin_table = memory + 5 * n };
    for (int64_t k = 0; k < n; k++) {
        t->cos_table[k] = cos(2 * PI * (double)k / (double)n);
        t->sin_table[k] = sin(2 * PI * (double)k / (double)n);
    }
}

static void fft(transform *t, double sign) {
    int64_t n = t->n;
    for (int64_t i = 0, j = 0; i < n; i++) { /* bit reversal */
        t->out_re[j] = t->re[i];
        t->out_im[j] = t->im[i];
        int64_t bit = n >> 1;
        for (; bit && j & bit; bit >>= 1) j ^= bit;
        j |= bit;
    }
    for (int64_t half = 1; half < n; half *= 2) {
        for (int64_t i = 0; i < n; i += 2 * half) {
            for (int64_t k = 0; k < half; k++) {
                double c = t->cos_table[k * (n / (2 * half))], s = sign * t->sin_table[k * (n / (2 * half))];
                double *ar = &t->out_re[i + k], *ai = &t->out_im[i + k], *br = ar + half, *bi = ai + half;
                double re = *br * c - *bi * s, im = *br * s + *bi * c;
                *br = *ar - re, *bi = *ai - im;
                *ar += re, *ai += im;
            }
        }
    }
}

static void plain_dft(transform *t, double sign) {
    for (int64_t k = 0; k < t->n; k++) {
        double re = 0, im = 0;
        for (int64_t i = 0, at = 0; i < t->n; i++, at = (at + k) % t->n) {
            double c = t->cos_table[at], s = sign * t->sin_table[at];
            re += t->re[i] * c - t->im[i] * s;
            im += t->re[i] * s + t->im[i] * c;
        }
        t->out_re[k] = re;
        t->out_im[k] = im;
    }
}

/* re, im → out_re, out_im. The inverse divides by n. */
static void transform_run(transform *t, bool inverse) {
    double sign = inverse ? 1 : -1;
    if ((t->n & (t->n - 1)) == 0)
        fft(t, sign);
    else
        plain_dft(t, sign);
    for (int64_t i = 0; inverse && i < t->n; i++) t->out_re[i] /= (double)t->n, t->out_im[i] /= (double)t->n;
}

static pith_status transform_bytes(const pith_infer *c, pith_dim n, size_t *bytes) {
    size_t more;
    if (!pith_dim_known(n) || n < 0) return PITH_OK;
    if (pith_mul_overflows((size_t)n, ARRAYS * sizeof(double), &more) || pith_add_overflows(*bytes, more, bytes))
        return pith_fail(c->err, PITH_ERR_MEMORY, "length %lld is too large", (long long)n);
    return PITH_OK;
}

/* ---- DFT ---- */

/* axis was an attribute, 1 by default, before opset 20. */
static pith_status upgrade_dft(pith_node *node, pith_error *err) {
    int64_t axis = pith_node_int(node, "axis", 1);
    pith_tensor t = { .data = &axis, .bytes = sizeof axis, .dtype = PITH_I64 };
    pith_graph *graph = node->graph;
    int64_t *copy = pith_arena_alloc(graph->arena, sizeof *copy);
    if (!copy) return pith_fail_memory(err, sizeof *copy);
    *copy = axis;
    t.data = copy;
    pith_value *value = pith_graph_add_const(graph, PITH_STR(""), &t);
    if (!value) return pith_fail_memory(err, sizeof *value);
    PITH_TRY(pith_node_set_input_count(node, 3));
    pith_node_unset(node, "axis");
    return pith_node_set_input(node, 2, value);
}

typedef struct dft_form {
    int axis;
    pith_dim length; /* of the transform */
    bool inverse, onesided;
} dft_form;

/* false: axis or length is not known yet. */
static pith_status dft_form_of(const pith_infer *c, dft_form *f, bool *known) {
    const pith_type *x = c->in[0];
    *f = (dft_form){ .inverse = pith_node_int(c->node, "inverse", 0) != 0,
                     .onesided = pith_node_int(c->node, "onesided", 0) != 0 };
    *known = false;
    if (x->rank < 0) return PITH_OK;
    if (x->rank < 2)
        return pith_fail(c->err, PITH_ERR_ARGUMENT, "input has %d dimensions, at least 2 are needed", x->rank);
    pith_dim axis = -2;
    if (c->in_count > 2 && c->in[2] && (!pith_type_elem(c->in[2], 0, &axis) || !pith_dim_known(axis))) return PITH_OK;
    PITH_TRY(pith_axis_normalize(axis, x->rank, &f->axis, c->err));
    if (f->axis == x->rank - 1)
        return pith_fail(c->err, PITH_ERR_ARGUMENT, "axis is the one of real and imaginary parts");
    f->length = x->dims[f->axis];
    if (f->inverse && f->onesided && pith_dim_known(f->length)) f->length = 2 * (f->length - 1);
    if (c->in_count > 1 && c->in[1] && !pith_type_elem(c->in[1], 0, &f->length)) return PITH_OK;
    if (pith_dim_known(f->length) && f->length < 1)
        return pith_fail(c->err, PITH_ERR_ARGUMENT, "length %lld is not positive", (long long)f->length);
    *known = true;
    return PITH_OK;
}

static pith_status infer_dft(pith_infer *c) {
    dft_form f;
    bool known;
    PITH_TRY(dft_form_of(c, &f, &known));
    const pith_type *x = c->in[0];
    pith_type_set(&c->out[0], x->dtype, x->rank, x->dims);
    for (int i = 0; i < x->rank; i++)
        if (!known) c->out[0].dims[i] = PITH_DIM_UNKNOWN;
    if (x->rank < 2) return PITH_OK;
    c->out[0].dims[x->rank - 1] = f.inverse && f.onesided ? 1 : 2;
    if (!known) return PITH_OK;
    bool half = f.onesided && !f.inverse;
    pith_dim bins = half ? pith_dim_apply(c->dims, PITH_DIM_FLOOR_DIV, f.length, 2) : f.length;
    c->out[0].dims[f.axis] = half ? pith_dim_apply(c->dims, PITH_DIM_ADD, bins, 1) : bins;
    return PITH_OK;
}

static pith_status scratch_dft(const pith_infer *c, const void *state, int threads, size_t *bytes) {
    dft_form f;
    bool known;
    PITH_TRY(pith_wide_scratch(c, state, threads, bytes));
    PITH_TRY(dft_form_of(c, &f, &known));
    return known ? transform_bytes(c, f.length, bytes) : PITH_OK;
}

static int64_t index_of(const pith_tensor *t) {
    return t->dtype == PITH_I32 ? *(const int32_t *)t->data : *(const int64_t *)t->data;
}

static pith_status run_dft(pith_run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    pith_wide w;
    pith_wide_open(&w, r);
    bool inverse = pith_node_int(r->node, "inverse", 0) != 0, onesided = pith_node_int(r->node, "onesided", 0) != 0;
    int axis;
    PITH_TRY(pith_axis_normalize(r->in_count > 2 && r->in[2] ? index_of(r->in[2]) : -2, x->rank, &axis, r->err));
    int64_t in_length = x->dims[axis], out_length = y->dims[axis], parts = x->dims[x->rank - 1],
            out_parts = y->dims[y->rank - 1];
    int64_t n = r->in_count > 1 && r->in[1] ? index_of(r->in[1])
                : inverse && onesided       ? 2 * (in_length - 1)
                                            : in_length;
    if (parts != 1 && parts != 2) return pith_op_fail(r, "the last dimension is %lld, not 1 or 2", (long long)parts);
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; i++) outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank - 1; i++) inner *= x->dims[i];
    transform t;
    transform_init(&t, w.rest, n);
    for (int64_t line = 0; line < outer * inner; line++) {
        const double *from = w.in[0] + (line / inner * in_length * inner + line % inner) * parts;
        double *to = w.out[0] + (line / inner * out_length * inner + line % inner) * out_parts;
        for (int64_t i = 0; i < n; i++) {
            t.re[i] = i < in_length ? from[i * inner * parts] : 0;
            t.im[i] = i < in_length && parts == 2 ? from[i * inner * parts + 1] : 0;
        }
        if (inverse && onesided) { /* the other half is the mirrored conjugate; ends are real */
            t.im[0] = 0;
            if (n % 2 == 0) t.im[n / 2] = 0;
            for (int64_t i = n / 2 + 1; i < n; i++) t.re[i] = t.re[n - i], t.im[i] = -t.im[n - i];
        }
        transform_run(&t, inverse);
        for (int64_t i = 0; i < out_length; i++) {
            to[i * inner * out_parts] = t.out_re[i];
            if (out_parts == 2) to[i * inner * out_parts + 1] = t.out_im[i];
        }
    }
    pith_wide_close(&w, r);
    return PITH_OK;
}

const pith_op pith_op_DFT = {
    .domain = "",
    .name = "DFT",
    .since = 20,
    .min_inputs = 1,
    .max_inputs = 3,
    .max_outputs = 1,
    .upgrade = upgrade_dft,
    .infer = infer_dft,
    .scratch = scratch_dft,
    .run = run_dft,
};

/* ---- STFT ---- */

/* The frame length: given, else the window's, else the signal's. */
static bool frame_of(const pith_infer *c, pith_dim *frame) {
    if (c->in_count > 3 && c->in[3]) return pith_type_elem(c->in[3], 0, frame);
    const pith_type *t = c->in_count > 2 && c->in[2] ? c->in[2] : c->in[0];
    if (t->rank < 1) return false;
    *frame = t == c->in[0] ? t->dims[1] : t->dims[0];
    return true;
}

static pith_status infer_stft(pith_infer *c) {
    const pith_type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 3) return pith_op_fail(c, "the signal has %d dimensions, not 3", x->rank);
    pith_dim dims[4] = { x->rank == 3 ? x->dims[0] : PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, 2 }, frame,
             step;
    if (x->rank == 3 && frame_of(c, &frame) && pith_type_elem(c->in[1], 0, &step)) {
        if ((pith_dim_known(step) && step < 1) || (pith_dim_known(frame) && frame < 1))
            return pith_op_fail(c, "frame step and frame length must be positive");
        if (pith_dim_known(frame) && pith_dim_known(x->dims[1]) && frame > x->dims[1])
            return pith_op_fail(c, "a frame of %lld is longer than the signal", (long long)frame);
        pith_dim room = pith_dim_apply(c->dims, PITH_DIM_SUB, x->dims[1], frame);
        dims[1] = pith_dim_apply(c->dims, PITH_DIM_ADD, pith_dim_apply(c->dims, PITH_DIM_FLOOR_DIV, room, step), 1);
        dims[2] = pith_node_int(c->node, "onesided", 1) == 0
                      ? frame
                      : pith_dim_apply(c->dims, PITH_DIM_ADD, pith_dim_apply(c->dims, PITH_DIM_FLOOR_DIV, frame, 2), 1);
    }
    pith_type_set(&c->out[0], x->dtype, 4, dims);
    return PITH_OK;
}

static pith_status scratch_stft(const pith_infer *c, const void *state, int threads, size_t *bytes) {
    pith_dim frame;
    PITH_TRY(pith_wide_scratch(c, state, threads, bytes));
    return frame_of(c, &frame) ? transform_bytes(c, frame, bytes) : PITH_OK;
}

static pith_status run_stft(pith_run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0], *window = r->in_count > 2 ? r->in[2] : NULL;
    const pith_tensor *length = r->in_count > 3 ? r->in[3] : NULL;
    pith_wide w;
    pith_wide_open(&w, r);
    int64_t step = index_of(r->in[1]), parts = x->dims[2], frames = y->dims[1], bins = y->dims[2];
    int64_t n = length ? index_of(length) : window ? window->dims[0] : x->dims[1];
    if (window && pith_tensor_count(window) < n) return pith_op_fail(r, "the window is shorter than a frame");
    if (parts != 1 && parts != 2) return pith_op_fail(r, "the last dimension is %lld, not 1 or 2", (long long)parts);
    transform t;
    transform_init(&t, w.rest, n);
    for (int64_t f = 0; f < x->dims[0] * frames; f++) {
        const double *from = w.in[0] + (f / frames * x->dims[1] + f % frames * step) * parts;
        double *to = w.out[0] + f * bins * 2;
        for (int64_t i = 0; i < n; i++) {
            double weight = window ? w.in[2][i] : 1;
            t.re[i] = weight * from[i * parts];
            t.im[i] = parts == 2 ? weight * from[i * parts + 1] : 0;
        }
        transform_run(&t, false);
        for (int64_t i = 0; i < bins; i++) to[2 * i] = t.out_re[i], to[2 * i + 1] = t.out_im[i];
    }
    pith_wide_close(&w, r);
    return PITH_OK;
}

const pith_op pith_op_STFT = {
    .domain = "",
    .name = "STFT",
    .since = 17,
    .min_inputs = 2,
    .max_inputs = 4,
    .max_outputs = 1,
    .infer = infer_stft,
    .scratch = scratch_stft,
    .run = run_stft,
};

/* op_dft.c - DFT and STFT, one transform of engine/kernels/fft.h after another.
 *
 * Forward transforms are computed in double, inverse ones in the type of the tensor (at least f32).
 * NumPy does so, in which the standard's reference is written, and its results contain that
 * rounding. Source: ONNX operators of these names. */
#include "base/checked.h"
#include "engine/kernels/fft.h"
#include "engine/ops/shared/as_doubles.h"

/* ---- one transform ---- */

/* x and y hold n pairs of `fft`'s type; load and store see doubles. */
typedef struct transform {
    int64_t n;
    pith__fft_fn *fft;
    void *x, *y, *rest, *roots;
    bool single;
} transform;

/* x, y, rest and roots of a transform. */
enum { ARRAYS = 4 };

/* memory: ARRAYS * n pairs of doubles. */
static void transform_init(transform *t, char *memory, int64_t n, bool single) {
    size_t bytes = (size_t)n * 2 * sizeof(double);
    *t = (transform){ .n = n,
                      .x = memory,
                      .y = memory + bytes,
                      .rest = memory + 2 * bytes,
                      .roots = memory + 3 * bytes,
                      .single = single };
    t->fft = t->single ? pith__k_fft_f32 : pith__k_fft_f64;
    (t->single ? pith__k_fft_roots_f32 : pith__k_fft_roots_f64)(t->roots, n);
}

static void dft_load(const transform *t, int64_t i, double re, double im) {
    if (t->single) {
        ((float *)t->x)[2 * i] = (float)re;
        ((float *)t->x)[2 * i + 1] = (float)im;
    } else {
        ((double *)t->x)[2 * i] = re;
        ((double *)t->x)[2 * i + 1] = im;
    }
}

/* part: 0 real, 1 imaginary. */
static double result(const transform *t, int64_t i, int part) {
    return t->single ? (double)((const float *)t->y)[2 * i + part]
                     : ((const double *)t->y)[2 * i + part];
}

static void transform_run(transform *t, bool inverse) {
    t->fft(t->y, t->x, t->rest, t->roots, t->n, inverse);
    for (int64_t i = 0; inverse && i < 2 * t->n; i++) {
        if (t->single)
            ((float *)t->y)[i] *= 1.0f / (float)t->n;
        else
            ((double *)t->y)[i] /= (double)t->n;
    }
}

static pith_status transform_bytes(const pith__infer *c, pith__dim n, size_t *bytes) {
    size_t more;
    if (!pith__dim_known(n) || n < 0) return PITH_OK;
    if (pith__mul_overflows((size_t)n, ARRAYS * 2 * sizeof(double), &more) ||
        pith__add_overflows(*bytes, more, bytes))
        return pith__fail(c->err, PITH_ERR_MEMORY, "length %lld is too large", (long long)n);
    return PITH_OK;
}

/* ---- DFT ---- */

/* axis was an attribute, 1 by default, before opset 20. */
static pith_status upgrade_dft(pith__node *node, pith_error *err) {
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
    if (f->inverse && f->onesided && pith__dim_known(f->length)) f->length = 2 * (f->length - 1);
    if (c->in_count > 1 && c->in[1] && !pith__type_elem(c->in[1], 0, &f->length)) return PITH_OK;
    if (pith__dim_known(f->length) && f->length < 1)
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "length %lld is not positive",
                          (long long)f->length);
    *known = true;
    return PITH_OK;
}

static pith_status infer_dft(pith__infer *c) {
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

static pith_status scratch_dft(const pith__infer *c, const void *state, int threads,
                               size_t *bytes) {
    dft_form f;
    bool known;
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    PITH_TRY(dft_form_of(c, &f, &known));
    return known ? transform_bytes(c, f.length, bytes) : PITH_OK;
}

static int64_t index_of(const pith_tensor *t) {
    return t->dtype == PITH_I32 ? *(const int32_t *)t->data : *(const int64_t *)t->data;
}

static pith_status run_dft(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    pith__wide w;
    pith__wide_open(&w, r);
    bool inverse = pith__node_int(r->node, "inverse", 0) != 0,
         onesided = pith__node_int(r->node, "onesided", 0) != 0;
    int axis;
    PITH_TRY(pith__axis_normalize(r->in_count > 2 && r->in[2] ? index_of(r->in[2]) : -2, x->rank,
                                  &axis, r->err));
    int64_t in_length = x->dims[axis], out_length = y->dims[axis], parts = x->dims[x->rank - 1],
            out_parts = y->dims[y->rank - 1];
    int64_t n = r->in_count > 1 && r->in[1] ? index_of(r->in[1])
                : inverse && onesided       ? 2 * (in_length - 1)
                                            : in_length;
    if (parts != 1 && parts != 2)
        return pith__op_fail(r, "the last dimension is %lld, not 1 or 2", (long long)parts);
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; i++) outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank - 1; i++) inner *= x->dims[i];
    transform t;
    transform_init(&t, w.rest, n, inverse && x->dtype != PITH_F64);
    for (int64_t line = 0; line < outer * inner; line++) {
        const double *from = w.in[0] + (line / inner * in_length * inner + line % inner) * parts;
        double *to = w.out[0] + (line / inner * out_length * inner + line % inner) * out_parts;
        for (int64_t i = 0; i < n; i++) {
            bool mirror = inverse && onesided && i > n / 2,
                 end = inverse && onesided && (i == 0 || 2 * i == n);
            int64_t at = mirror ? n - i : i; /* the other half is the mirrored conjugate; ends are
                                                real */
            double re = at < in_length ? from[at * inner * parts] : 0;
            double im = at < in_length && parts == 2 && !end ? from[at * inner * parts + 1] : 0;
            dft_load(&t, i, re, mirror ? -im : im);
        }
        transform_run(&t, inverse);
        for (int64_t i = 0; i < out_length; i++) {
            for (int part = 0; part < out_parts; part++)
                to[i * inner * out_parts + part] = result(&t, i, part);
        }
    }
    pith__wide_close(&w, r);
    return PITH_OK;
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
    .upgrade = upgrade_dft,
    .shape_inputs = 1u << 1 | 1u << 2,
    .infer = infer_dft,
    .scratch = scratch_dft,
    .run = run_dft,
};

/* ---- STFT ---- */

/* The frame length: given, else the window's, else the signal's. */
static bool frame_of(const pith__infer *c, pith__dim *frame) {
    if (c->in_count > 3 && c->in[3]) return pith__type_elem(c->in[3], 0, frame);
    const pith__type *t = c->in_count > 2 && c->in[2] ? c->in[2] : c->in[0];
    if (t->rank < 1) return false;
    *frame = t == c->in[0] ? t->dims[1] : t->dims[0];
    return true;
}

static pith_status infer_stft(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 3)
        return pith__op_fail(c, "the signal has %d dimensions, not 3", x->rank);
    pith__dim dims[4] = { x->rank == 3 ? x->dims[0] : PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN,
                          PITH_DIM_UNKNOWN, 2 },
              frame, step;
    if (x->rank == 3 && frame_of(c, &frame) && pith__type_elem(c->in[1], 0, &step)) {
        if ((pith__dim_known(step) && step < 1) || (pith__dim_known(frame) && frame < 1))
            return pith__op_fail(c, "frame step and frame length must be positive");
        if (pith__dim_known(frame) && pith__dim_known(x->dims[1]) && frame > x->dims[1])
            return pith__op_fail(c, "a frame of %lld is longer than the signal", (long long)frame);
        pith__dim room = pith__dim_apply(c->dims, PITH_DIM_SUB, x->dims[1], frame);
        dims[1] = pith__dim_apply(c->dims, PITH_DIM_ADD,
                                  pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, room, step), 1);
        dims[2] = pith__node_int(c->node, "onesided", 1) == 0
                      ? frame
                      : pith__dim_apply(c->dims, PITH_DIM_ADD,
                                        pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, frame, 2), 1);
    }
    pith__type_set(&c->out[0], x->dtype, 4, dims);
    return PITH_OK;
}

static pith_status scratch_stft(const pith__infer *c, const void *state, int threads,
                                size_t *bytes) {
    pith__dim frame;
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    return frame_of(c, &frame) ? transform_bytes(c, frame, bytes) : PITH_OK;
}

static pith_status run_stft(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0], *window = r->in_count > 2 ? r->in[2] : NULL;
    const pith_tensor *length = r->in_count > 3 ? r->in[3] : NULL;
    pith__wide w;
    pith__wide_open(&w, r);
    int64_t step = index_of(r->in[1]), parts = x->dims[2], frames = y->dims[1], bins = y->dims[2];
    int64_t n = length ? index_of(length) : window ? window->dims[0] : x->dims[1];
    if (window && pith__tensor_count(window) < n)
        return pith__op_fail(r, "the window is shorter than a frame");
    if (parts != 1 && parts != 2)
        return pith__op_fail(r, "the last dimension is %lld, not 1 or 2", (long long)parts);
    transform t;
    transform_init(&t, w.rest, n, false);
    for (int64_t f = 0; f < x->dims[0] * frames; f++) {
        const double *from = w.in[0] + (f / frames * x->dims[1] + f % frames * step) * parts;
        double *to = w.out[0] + f * bins * 2;
        for (int64_t i = 0; i < n; i++) {
            double weight = window ? w.in[2][i] : 1;
            dft_load(&t, i, weight * from[i * parts],
                     parts == 2 ? weight * from[i * parts + 1] : 0);
        }
        transform_run(&t, false);
        for (int64_t i = 0; i < 2 * bins; i++) to[i] = result(&t, i / 2, (int)(i % 2));
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

const pith__op pith__op_STFT = {
    .domain = "",
    .name = "STFT",
    .since = 17,
    .newest = 17,
    .min_inputs = 2,
    .max_inputs = 4,
    .max_outputs = 1,
    .types = "fifi",
    .attrs = "onesided bool = 1",
    .shape_inputs = 1u << 1 | 1u << 3,
    .infer = infer_stft,
    .scratch = scratch_stft,
    .run = run_stft,
};

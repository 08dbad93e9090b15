/* vector_steps.c - each step has its kernels and packed weights; a run goes from one buffer to the
 * other. */
#include "models/heads/vector_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/norm.h"

/* Of torch.nn.LayerNorm. */
#define LAYER_NORM_EPSILON 1e-5f

typedef struct ready_step {
    const pith__vector_step *step;
    const float *weight, *shortcut; /* packed */
} ready_step;

struct pith__vector_steps {
    ready_step *steps;
    size_t count;
    int64_t widest;
    bool tops; /* a step keeps the largest components */
    pith__gemm_f32_fn *gemm;
    pith__gemm_pack_f32_fn *pack;
    pith__layer_norm_f32_fn *layer_norm;
    pith__row_f32_fn *normalize;
};

/* weight [out, in] as gemm.h packs [in, out]. */
static pith_status steps_pack(const float **packed, const pith__vector_steps *s,
                              const float *weight, int64_t in, int64_t out, pith__arena *arena,
                              pith_error *err) {
    int64_t n = pith__gemm_f32_packed_size(in, out);
    size_t bytes;
    if (n < 0 || pith__mul_overflows((size_t)n, sizeof(float), &bytes))
        return pith__fail_memory(err, SIZE_MAX);
    float *to = pith__arena_alloc64(arena, bytes);
    if (!to) return pith__fail_memory(err, bytes);
    s->pack(to, weight, 1, in, in, out, 0, out);
    *packed = to;
    return PITH_OK;
}

static pith_status steps_make_ready(ready_step *r, pith__vector_steps *s,
                                    const pith__vector_step *step, pith__arena *arena,
                                    pith_error *err) {
    r->step = step;
    if (step->in > s->widest) s->widest = step->in;
    if (step->out > s->widest) s->widest = step->out;
    s->tops = s->tops || step->kind == PITH_STEP_TOP;
    if (step->kind != PITH_STEP_DENSE) return PITH_OK;
    PITH_TRY(steps_pack(&r->weight, s, step->weight, step->in, step->out, arena, err));
    return step->shortcut
               ? steps_pack(&r->shortcut, s, step->shortcut, step->in, step->out, arena, err)
               : PITH_OK;
}

pith_status pith__vector_steps_prepare(const pith__vector_steps **steps,
                                       const pith__modules *modules, pith__isa isa,
                                       pith__arena *arena, pith_error *err) {
    *steps = NULL;
    if (!modules->step_count) return PITH_OK;
    pith__vector_steps *s = pith__arena_array(arena, 1, sizeof *s);
    ready_step *ready = pith__arena_array(arena, modules->step_count, sizeof *ready);
    if (!s || !ready) return pith__fail_memory(err, sizeof *s);
    *s = (pith__vector_steps){ .steps = ready, .count = modules->step_count };
    pith__lacks lacks = { .count = 0 };
    s->gemm = PITH_KERNEL_NEED(pith__gemm_f32_fn, "gemm", PITH_F32, isa, &lacks);
    s->pack = PITH_KERNEL_NEED(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, isa, &lacks);
    s->layer_norm = PITH_KERNEL_NEED(pith__layer_norm_f32_fn, "layer_norm", PITH_F32, isa, &lacks);
    s->normalize = PITH_KERNEL_NEED(pith__row_f32_fn, "l2_normalize", PITH_F32, isa, &lacks);
    PITH_TRY(pith__lacks_check(&lacks, err));
    for (size_t i = 0; i < s->count; i++)
        PITH_TRY(steps_make_ready(&ready[i], s, &modules->steps[i], arena, err));
    *steps = s;
    return PITH_OK;
}

int64_t pith__vector_steps_width(const pith__vector_steps *s, int64_t in, int64_t *needed) {
    const size_t count = s ? s->count : 0;
    for (size_t i = 0; i < count; i++) {
        const pith__vector_step *step = s->steps[i].step;
        if (step->kind == PITH_STEP_NORMALIZE) continue;
        if (step->in != in) {
            *needed = step->in;
            return 0;
        }
        in = step->out;
    }
    return in;
}

/* y [out] = activation(packed weight x + bias); bias may be NULL. */
static void steps_product(float *y, const pith__vector_steps *s, const float *weight,
                          const float *bias, pith__step_activation activation,
                          const pith__vector_step *step, const float *x) {
    static const pith__gemm_activation activations[PITH_STEP_ACTIVATIONS] = {
        [PITH_STEP_IDENTITY] = PITH_ACT_NONE,   [PITH_STEP_TANH] = PITH_ACT_TANH,
        [PITH_STEP_GELU] = PITH_ACT_GELU_ERF,   [PITH_STEP_RELU] = PITH_ACT_RELU,
        [PITH_STEP_SIGMOID] = PITH_ACT_SIGMOID, [PITH_STEP_SILU] = PITH_ACT_SILU,
    };
    pith__gemm g = { .a = x,
                     .b = weight,
                     .c = y,
                     .bias = bias,
                     .m = 1,
                     .n = step->out,
                     .k = step->in,
                     .lda = step->in,
                     .ldc = step->out,
                     .activation = activations[activation] };
    s->gemm(&g, 0, 1, 0, step->out);
}

static void steps_run_dense(float *y, float *beside, const pith__vector_steps *s,
                            const ready_step *r, const float *x) {
    const pith__vector_step *step = r->step;
    steps_product(y, s, r->weight, step->bias, step->activation, step, x);
    if (r->shortcut) steps_product(beside, s, r->shortcut, NULL, PITH_STEP_IDENTITY, step, x);
    const float *more = r->shortcut ? beside : x;
    if (step->residual)
        for (int64_t i = 0; i < step->out; i++) y[i] += more[i];
}

/* In double, so that the difference to the mean loses nothing. */
static void steps_standardize(float *y, const float *x, int64_t n) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double by = sqrt(squares / (double)(n - 1)) + 1e-5;
    for (int64_t i = 0; i < n; i++) y[i] = (float)(((double)x[i] - mean) / by);
}

static int steps_compare_top(const void *a, const void *b) {
    const float *const *x = a, *const *y = b;
    if (**x < **y || **x > **y) return **x > **y ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

void pith__vector_keep_top(float *y, const float *x, int64_t n, int64_t top, const float **order) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i] > 0) order[count++] = &x[i];
    if (count > top) qsort(order, (size_t)count, sizeof *order, steps_compare_top);
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < count && i < top; i++) y[order[i] - x] = *order[i];
}

static void steps_norm(float *y, const pith__vector_steps *s, const pith__vector_step *step,
                       const float *x) {
    pith__layer_norm a = { .x = x,
                           .gamma = step->weight,
                           .beta = step->bias,
                           .y = y,
                           .rows = 1,
                           .n = step->in,
                           .epsilon = LAYER_NORM_EPSILON };
    s->layer_norm(&a);
}

/* Steps write to two buffers by turns, so none reads what it writes; the caller's vector is never
 * written to. One vector at a time, since a step costs little beside the network. */
pith_status pith__vector_steps_run(const float **y, const pith__vector_steps *s, const float *x,
                                   int64_t in, pith__arena *scratch, pith_error *err) {
    *y = x;
    if (!s) return PITH_OK;
    const int64_t widest = in > s->widest ? in : s->widest;
    /* by turns; for shortcuts */
    float *buffers = pith__arena_array(scratch, (size_t)widest, 3 * sizeof *buffers);
    const float **order = pith__arena_array(scratch, s->tops ? (size_t)widest : 0, sizeof *order);
    if (!buffers || !order) return pith__fail_memory(err, (size_t)widest * 3 * sizeof *buffers);
    for (size_t i = 0; i < s->count; i++) {
        const ready_step *r = &s->steps[i];
        float *to = buffers + (int64_t)(i % 2) * widest;
        switch (r->step->kind) {
        case PITH_STEP_DENSE: steps_run_dense(to, buffers + 2 * widest, s, r, *y); break;
        case PITH_STEP_LAYER_NORM: steps_norm(to, s, r->step, *y); break;
        case PITH_STEP_STANDARDIZE: steps_standardize(to, *y, in); break;
        case PITH_STEP_TOP: pith__vector_keep_top(to, *y, in, r->step->top, order); break;
        default: s->normalize(*y, to, 1, in);
        }
        if (r->step->kind != PITH_STEP_NORMALIZE) in = r->step->out;
        *y = to;
    }
    return PITH_OK;
}

/* op_pith_gated.c - pith.Gated: one half of a row, activated, times the other half.
 *
 *   input       x [..., 2n]
 *   output      [..., n]: activation(a) * b, where a is the first half, or with `second` the second
 *   attributes  activation (pith__gemm_activation), second */
#include "engine/kernels/binary.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/unary.h"
#include "engine/ops/op.h"

/* Elements that are worth a thread, a few microseconds: an activation costs several times as much
 * as an addition. */
#define GATED_GRAIN 4000

typedef struct gated {
    pith__unary_f32_fn *activate;
    pith__binary_fn *multiply;
    bool second;
} gated;

/* The last axis is halved, also as a symbol. */
static pith_status gated_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->dtype != PITH_F32) return pith__op_fail(c, "x must be float32");
    if (x->rank == 0) return pith__op_fail(c, "x is a scalar");
    pith__type_set(&c->out[0], PITH_F32, x->rank, x->dims);
    if (x->rank < 0) return PITH_OK;
    pith__dim *n = &c->out[0].dims[x->rank - 1];
    if (pith__dim_known(*n) && *n % 2)
        return pith__op_fail(c, "x has %lld columns, not two halves", (long long)*n);
    *n = pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, *n, 2);
    return PITH_OK;
}

/* Finds the kernel of the activation and that of the product. */
static pith_status gated_prepare(pith__prepare *c) {
    static const char *const families[] = {
        [PITH_ACT_GELU_ERF] = "gelu",
        [PITH_ACT_GELU_TANH] = "gelu_tanh",
        [PITH_ACT_RELU] = "relu",
        [PITH_ACT_TANH] = "tanh",
        [PITH_ACT_SIGMOID] = "sigmoid",
        [PITH_ACT_SILU] = "silu",
        [PITH_ACT_QUICK_GELU] = "quick_gelu",
    };
    int64_t activation = pith__node_int(c->node, "activation", PITH_ACT_NONE);
    if (activation <= PITH_ACT_NONE || activation > PITH_ACT_QUICK_GELU)
        return pith__op_fail(c, "impossible activation");
    gated *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->activate = PITH_PREPARE_KERNEL(pith__unary_f32_fn, families[activation], PITH_F32, c);
    s->multiply = PITH_PREPARE_KERNEL(pith__binary_fn, "mul", PITH_F32, c);
    s->second = pith__node_int(c->node, "second", 0) != 0;
    if (!s->activate || !s->multiply)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "this build has no kernel %s or no kernel mul", families[activation]);
    c->state = s;
    return PITH_OK;
}

typedef struct work {
    const gated *s;
    const float *x;
    float *y;
    int64_t rows, n, chunk;
} work;

/* Row by row, so that the activated half is still in the cache when it is multiplied. */
static void gated_part(void *context, size_t index, int worker) {
    const work *w = context;
    int64_t begin = (int64_t)index * w->chunk,
            end = begin + w->chunk < w->rows ? begin + w->chunk : w->rows, n = w->n;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const float *first = w->x + i * 2 * n, *second = first + n;
        float *y = w->y + i * n;
        w->s->activate(w->s->second ? second : first, y, (size_t)n);
        w->s->multiply(y, y, w->s->second ? first : second, n, 1, 1);
    }
}

static pith_status gated_run(pith__run *r) {
    const pith_tensor *out = r->out[0];
    int64_t n = out->dims[out->rank - 1], count = pith__tensor_count(out);
    if (count == 0) return PITH_OK;
    work w = { .s = r->state, .x = r->in[0]->data, .y = out->data, .rows = count / n, .n = n };
    w.chunk = pith__run_chunk(r, w.rows, n, GATED_GRAIN);
    pith__run_parallel(r, gated_part, &w, (size_t)((w.rows + w.chunk - 1) / w.chunk));
    return PITH_OK;
}

const pith__op pith__op_Gated_pith = {
    .domain = "pith",
    .name = "Gated",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .attrs = "activation int 0..7 = 0; second bool = 0",
    .infer = gated_infer,
    .prepare = gated_prepare,
    .run = gated_run,
};

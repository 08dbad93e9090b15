/* op_swiglu.c - SwiGLU: y = Swish(a) * b, element by element. Swish(a) = a / (1 + exp(-alpha a)) is
 * rounded to the type before the multiplication. The operands have one shape; nothing is broadcast.
 * Source: ONNX SwiGLU (opset 28). */
#include "engine/ops/shared/elementwise.h"

typedef struct state {
    pith__map_state swish, mul;
} state;

/* Shapes are equal; a size that one operand knows serves both. */
static pith_status swiglu_infer(pith__infer *c) {
    const pith__type *a = c->in[0], *b = c->in[1];
    PITH_TRY(pith__infer_equal_dtypes(c, 0, 1));
    if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank)
        return pith__op_fail(c, "operands have ranks %d and %d", a->rank, b->rank);
    pith__dim dims[PITH_MAX_RANK];
    int rank = a->rank >= 0 ? a->rank : b->rank;
    for (int i = 0; i < rank; i++) {
        pith__dim da = a->rank >= 0 ? a->dims[i] : PITH_DIM_UNKNOWN,
                  db = b->rank >= 0 ? b->dims[i] : PITH_DIM_UNKNOWN;
        if (pith__dim_known(da) && pith__dim_known(db) && da != db)
            return pith__op_fail(c, "operands have sizes %lld and %lld at axis %d", (long long)da,
                                 (long long)db, i);
        dims[i] = pith__dim_known(da) || db == PITH_DIM_UNKNOWN ? da : db;
    }
    pith__infer_set(c, 0, a->dtype, rank, dims);
    return PITH_OK;
}

/* Two loops of the elementwise operators, whose results are rounded to the dtype one after the
 * other. */
static pith_status swiglu_prepare(pith__prepare *c) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    int dtype = c->in[0]->dtype;
    if (dtype && !pith__dtype_is_float(dtype)) return pith__fail_dtype(c->err, dtype);
    PITH_TRY(pith__map_find(&s->swish, "swish", dtype, c));
    PITH_TRY(pith__map_find(&s->mul, "mul", dtype, c));
    s->swish.result = s->swish.compute;
    s->mul.result = s->mul.compute;
    s->swish.parameters[0] = (double)pith__node_float(c->node, "alpha", 1.0f);
    c->state = s;
    return PITH_OK;
}

static pith_status swiglu_run(pith__run *r) {
    const state *s = r->state;
    pith__map1_apply(r, &s->swish, r->out[0], r->in[0]);
    pith__map2_apply(r, &s->mul, r->out[0], r->out[0], r->in[1]);
    return PITH_OK;
}

const pith__op pith__op_SwiGLU = {
    .domain = "",
    .name = "SwiGLU",
    .since = 28,
    .newest = 28,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "f",
    .attrs = "alpha float = 1",
    .flags = PITH_OP_ELEMENTWISE,
    .infer = swiglu_infer,
    .prepare = swiglu_prepare,
    .run = swiglu_run,
};

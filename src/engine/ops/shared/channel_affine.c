/* channel_affine.c - see channel_affine.h. */
#include "engine/ops/shared/channel_affine.h"

#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/widen_types.h"

pith__channel_form pith__channel_form_of(const pith_tensor *x) {
    pith__channel_form l = { x->dims[0], x->rank > 1 ? x->dims[1] : 1, 1 };
    for (int d = 2; d < x->rank; d++) l.inner *= x->dims[d];
    return l;
}

pith_status pith__channel_check_counts(const pith__run *r, int first, int last, int64_t wanted) {
    for (int i = first; i <= last; i++) {
        if (pith__tensor_count(r->in[i]) == wanted) continue;
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "input %d has %lld elements, %lld are needed",
                          i, (long long)pith__tensor_count(r->in[i]), (long long)wanted);
    }
    return PITH_OK;
}

pith_status pith__channel_infer(pith__infer *c) {
    if (c->in[0]->rank == 0) return pith__op_fail(c, "the input is a scalar");
    return pith__infer_same(c);
}

pith_status pith__channel_affine_prepare(pith__prepare *c) {
    pith__channel_affine *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    if (pith__compute_dtype(c->in[0]->dtype) == PITH_F32 &&
        !pith__node_int(c->node, "training_mode", 0)) {
        s->affine = PITH_PREPARE_KERNEL(pith__affine_fn, "affine", PITH_F32, c);
        s->moments = PITH_PREPARE_KERNEL(pith__moments_fn, "moments", PITH_F32, c);
    }
    c->state = s;
    return PITH_OK;
}

pith_status pith__channel_affine_scratch(const pith__infer *c, const void *state_, int threads,
                                         size_t *bytes) {
    const pith__channel_affine *s = state_;
    const pith__type *x = c->in[0];
    if (!s->affine) return pith__wide_scratch(c, s, threads, bytes);
    size_t planes = x->dims[0] ? (size_t)x->dims[0] : 1;
    if ((x->rank > 1 && pith__mul_overflows(planes, (size_t)x->dims[1], &planes)) ||
        pith__mul_overflows(planes, 2 * sizeof(float), bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    *bytes += 64;
    return pith__widen_scratch(c, 0, bytes);
}

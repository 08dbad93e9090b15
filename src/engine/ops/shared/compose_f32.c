/* compose_f32.c - see compose_f32.h. */
#include "engine/ops/shared/compose_f32.h"

#include "engine/ops/shared/compose_ops.h"

pith__value *pith__compose_f32(pith__node *at, pith__value *x) {
    return pith__compose_cast(at, x, PITH_F32);
}

pith__value *pith__compose_number(pith__node *at, const char *op_type, pith__value *x, float item) {
    return pith__compose2(at, op_type, x, pith__graph_add_f32(at->graph, PITH_STR(""), item));
}

/* Of x's dtype. */
pith__value *pith__compose_like(pith__node *at, pith__value *v, pith__value *x) {
    return pith__compose2(at, "CastLike", v, x);
}

pith__value *pith__compose_reduce(pith__node *at, const char *op_type, pith__value *x, int64_t axis,
                                  bool keep) {
    return pith__with_int(pith__compose_list(at, op_type, x, &axis, 1), "keepdims", keep);
}

/* Rows along the last axis over their root mean square. */
pith__value *pith__compose_rms(pith__node *at, pith__value *x, float epsilon) {
    pith__value *mean =
        pith__compose_reduce(at, "ReduceMean", pith__compose2(at, "Mul", x, x), -1, true);
    return pith__compose2(
        at, "Div", x, pith__compose1(at, "Sqrt", pith__compose_number(at, "Add", mean, epsilon)));
}

/* With the sizes of x but the last one, then `last` (a vector). */
pith__value *pith__compose_reshape(pith__node *at, pith__value *v, pith__value *x,
                                   pith__value *last) {
    return pith__compose2(at, "Reshape", v,
                          pith__compose_join(at, pith__compose_sizes(at, x, 0, -1), last));
}

pith__value *pith__compose_numbers(pith__node *at, const int64_t *items, int64_t count) {
    return pith__graph_add_i64s(at->graph, PITH_STR(""), items, count);
}

pith__value *pith__compose_shaped(pith__node *at, pith__value *v, pith__value *x) {
    return pith__compose2(at, "Reshape", v, pith__compose1(at, "Shape", x));
}

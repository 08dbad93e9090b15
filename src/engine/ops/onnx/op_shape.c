/* op_shape.c - Shape: the sizes of a tensor, or of some of its axes, as numbers of the graph. They
 * are followed as symbols, so shapes computed from them stay known. Source: ONNX Shape (opset 25).
 */
#include "engine/ops/shared/infer_shapes.h"

static void shape_range(const pith__node *node, int rank, int *begin, int *end) {
    int64_t b = pith__node_int(node, "start", 0), e = pith__node_int(node, "end", rank);
    b = b < 0 ? b + rank : b;
    e = e < 0 ? e + rank : e;
    if (b < 0) b = 0;
    if (e < 0) e = 0;
    *begin = (int)(b > rank ? rank : b);
    *end = (int)(e > rank ? rank : e);
    if (*end < *begin) *end = *begin;
}

/* The elements are the sizes themselves, so they may be symbols. */
static pith_status shape_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim count = PITH_DIM_UNKNOWN;
    int begin = 0, end = 0;
    if (x->rank >= 0) {
        shape_range(c->node, x->rank, &begin, &end);
        count = end - begin;
    }
    pith__infer_set(c, 0, PITH_I64, 1, &count);
    int64_t n;
    pith__dim *elems = x->rank >= 0 ? pith__infer_new_elems(c, &n) : NULL;
    if (!elems) return PITH_OK;
    for (int i = begin; i < end; i++) elems[i - begin] = x->dims[i];
    c->out[0].elems = elems;
    return PITH_OK;
}

static pith_status shape_run(pith__run *r) {
    int begin, end;
    shape_range(r->node, r->in[0]->rank, &begin, &end);
    int64_t *y = r->out[0]->data;
    for (int i = begin; i < end; i++) y[i - begin] = r->in[0]->dims[i];
    return PITH_OK;
}

const pith__op pith__op_Shape = { .domain = "",
                                  .name = "Shape",
                                  .since = 1,
                                  .newest = 25,
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .max_outputs = 1,
                                  .types = "a",
                                  .attrs = "end int any @15; start int any = 0 @15",
                                  .flags = PITH_OP_SHAPE_ONLY,
                                  .infer = shape_infer,
                                  .run = shape_run };

/* op_bit_cast.c - BitCast: the same bytes under another dtype of the same width. Source: ONNX
 * BitCast (opset 26). */
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

/* Only dtypes of the same number of bits can stand for each other; strings have none. */
static pith_status bit_cast_infer(pith__infer *c) {
    int64_t to = pith__node_int(c->node, "to", 0);
    const pith__type *x = c->in[0];
    if (to <= 0 || to >= PITH_DTYPE_COUNT || to == PITH_STRING || x->dtype == PITH_STRING ||
        (x->dtype && pith__dtype_bits(x->dtype) != pith__dtype_bits((int)to))) {
        return pith__op_fail(c, "cannot see the bits of %s as type %lld",
                             pith__dtype_name(x->dtype), (long long)to);
    }
    pith__infer_set(c, 0, (int)to, x->rank, x->dims);
    return PITH_OK;
}

static pith_status bit_cast_run(pith__run *r) {
    if (r->in[0]->bytes && r->out[0]->data != r->in[0]->data)
        return pith__run_bytes(r, r->out[0]->data, r->in[0]->data, r->in[0]->bytes);
    return PITH_OK;
}

const pith__op pith__op_BitCast = { .domain = "",
                                    .name = "BitCast",
                                    .since = 26,
                                    .newest = 26,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .max_outputs = 1,
                                    .types = "a",
                                    .attrs = "to dtype!",
                                    .flags = PITH_OP_IN_PLACE,
                                    .infer = bit_cast_infer,
                                    .run = bit_cast_run };

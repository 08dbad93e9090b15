/* op_constant.c - Constant: a tensor, number, string or list that stands in an attribute. Which
 * attribute it is gives dtype and rank. Source: ONNX Constant (opset 25), without sparse_value. */
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

/* The value that one of Constant's attributes describes, in *t; data of lists and scalars points
 * into the node. */
static pith_status constant_value(const pith__node *node, pith_tensor *t, pith_error *err) {
    for (size_t i = 0; i < node->attr_count; i++) {
        const pith__attr *a = &node->attrs[i];
        bool list = a->kind == PITH_ATTR_FLOATS || a->kind == PITH_ATTR_INTS ||
                    a->kind == PITH_ATTR_STRINGS;
        *t = (pith_tensor){ .rank = list, .dims = { (int64_t)a->count } };
        switch (a->kind) {
        case PITH_ATTR_TENSOR: *t = *a->tensor; return PITH_OK;
        case PITH_ATTR_FLOAT:
            t->dtype = PITH_F32;
            t->data = (void *)&a->real;
            break;
        case PITH_ATTR_INT:
            t->dtype = PITH_I64;
            t->data = (void *)&a->integer;
            break;
        case PITH_ATTR_STRING:
            t->dtype = PITH_STRING;
            t->data = (void *)&a->string;
            break;
        case PITH_ATTR_FLOATS:
            t->dtype = PITH_F32;
            t->data = (void *)a->floats;
            break;
        case PITH_ATTR_INTS:
            t->dtype = PITH_I64;
            t->data = (void *)a->ints;
            break;
        case PITH_ATTR_STRINGS:
            t->dtype = PITH_STRING;
            t->data = (void *)a->strings;
            break;
        default: continue;
        }
        t->bytes = pith__element_size(t->dtype) * (list ? a->count : 1);
        return PITH_OK;
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "has no dense value (sparse_value is not supported)");
}

static pith_status constant_infer(pith__infer *c) {
    pith_tensor *t = pith__arena_array(c->arena, 1, sizeof *t);
    if (!t) return pith__fail_memory(c->err, sizeof *t);
    PITH_TRY(constant_value(c->node, t, c->err));
    if (c->out_count > 0) pith__type_of_tensor(&c->out[0], t);
    return PITH_OK;
}

static pith_status constant_run(pith__run *r) {
    pith_tensor t;
    PITH_TRY(constant_value(r->node, &t, r->err));
    if (t.bytes) memcpy(r->out[0]->data, t.data, t.bytes);
    return PITH_OK;
}

const pith__op pith__op_Constant = {
    .domain = "",
    .name = "Constant",
    .since = 1,
    .newest = 25,
    .min_inputs = 0,
    .max_inputs = 0,
    .max_outputs = 1,
    .attrs = "value tensor! @-10; value tensor @11; value_float float @12; "
             "value_floats floats @12; value_int int any @12; value_ints ints any @12; "
             "value_string string @12; value_strings strings @12",
    .infer = constant_infer,
    .run = constant_run
};

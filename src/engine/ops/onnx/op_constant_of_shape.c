/* op_constant_of_shape.c - ConstantOfShape: a tensor of a given shape, all of one value (0 in f32
 * if none is given). Small results of integers are known as contents, since exporters build shapes
 * of them. Source: ONNX ConstantOfShape (opset 25). */
#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/kernels/move.h"
#include "engine/ops/shared/infer_shapes.h"

static pith_status constant_of_shape_infer(pith__infer *c) {
    pith__numbers shape;
    PITH_TRY(pith__infer_numbers(c, 0, &shape));
    if (shape.count > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", shape.count, PITH_MAX_RANK);
    for (int i = 0; i < shape.count; i++) {
        if (pith__dim_known(shape.items[i]) && shape.items[i] < 0) {
            return pith__op_fail(c, "shape[%d] is %lld; it must not be negative", i,
                                 (long long)shape.items[i]);
        }
    }
    const pith_tensor *value = pith__node_tensor(c->node, "value");
    if (value && pith__tensor_count(value) != 1)
        return pith__op_fail(c, "attribute value must have exactly one element");
    pith__infer_set(c, 0, value ? value->dtype : PITH_F32, shape.count, shape.items);
    int64_t count;
    pith__dim *elems = value ? pith__infer_new_elems(c, &count) : NULL;
    if (!elems) return PITH_OK;
    pith__type type;
    pith__dim item;
    pith__type_of_tensor(&type, value);
    if (!pith__type_elem(&type, 0, &item)) return PITH_OK;
    for (int64_t i = 0; i < count; i++) elems[i] = item;
    c->out[0].elems = elems;
    return PITH_OK;
}

/* Without a value the output is 0 in f32, whose bytes are zero. Packed dtypes have no element of
 * whole bytes and are filled one by one. */
static pith_status constant_of_shape_run(pith__run *r) {
    const pith_tensor *value = pith__node_tensor(r->node, "value");
    pith_tensor *y = r->out[0];
    size_t size = pith__element_size(y->dtype);
    if (!value) return pith__run_bytes(r, y->data, NULL, y->bytes);
    if (size) return pith__run_fill(r, y->data, value->data, pith__tensor_count(y), size);
    for (int64_t i = 0; i < pith__tensor_count(y); i++) {
        PITH_TRY(pith__run_step(r, i));
        pith__convert(y->data, y->dtype, i, value->data, value->dtype, 0, 1, true);
    }
    return PITH_OK;
}

const pith__op pith__op_ConstantOfShape = { .domain = "",
                                            .name = "ConstantOfShape",
                                            .since = 9,
                                            .newest = 25,
                                            .min_inputs = 1,
                                            .max_inputs = 1,
                                            .max_outputs = 1,
                                            .types = "l",
                                            .attrs = "value tensor",
                                            .shape_inputs = 1u << 0,
                                            .infer = constant_of_shape_infer,
                                            .run = constant_of_shape_run };

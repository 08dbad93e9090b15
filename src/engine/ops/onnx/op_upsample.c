/* op_upsample.c - Upsample, which ended with opset 9: at load it becomes Resize with the places of
 * that time. Its scales were an attribute before opset 9. Source: ONNX Upsample (opset 10). */
#include "engine/ops/shared/compose_ops.h"
#include "engine/ops/shared/infer_shapes.h"

/* Upsample ended with opset 9; its scales were an attribute before. It becomes Resize. */
static pith_status upsample_upgrade(pith__node *node, pith_error *err) {
    size_t count;
    const float *scales = pith__node_floats(node, "scales", &count);
    pith__value *inputs[3] = { pith__node_input(node, 0), NULL, pith__node_input(node, 1) };
    if (!inputs[2]) {
        float *copy = pith__arena_array(node->graph->arena, count + 1, sizeof *copy);
        if (!copy) return pith__fail_memory(err, count * sizeof *copy);
        for (size_t i = 0; i < count; i++) copy[i] = scales[i];
        pith_tensor t = { .data = copy,
                          .bytes = count * sizeof *copy,
                          .dtype = PITH_F32,
                          .rank = 1,
                          .dims = { (int64_t)count } };
        inputs[2] = pith__graph_add_const(node->graph, PITH_STR(""), &t);
        if (!inputs[2]) return pith__fail_memory(err, sizeof t);
    }
    pith_str kind = pith__node_str(node, "mode", "nearest");
    PITH_TRY(pith__compose_require(node, 0x1, 1, err));
    pith__value *y = pith__compose(node, "", "Resize", inputs, 3, 1);
    if (!y) return pith__fail_memory(err, sizeof *y);
    pith__node *by = y->producer;
    by->opset = 13;
    PITH_TRY(
        pith__node_set_str(by, "mode", pith__str_is(kind, "bilinear") ? PITH_STR("linear") : kind));
    PITH_TRY(pith__node_set_str(by, "coordinate_transformation_mode", PITH_STR("asymmetric")));
    PITH_TRY(pith__node_set_str(by, "nearest_mode", PITH_STR("floor")));
    PITH_TRY(pith__op_bind_node(by, err));
    PITH_TRY(pith__value_replace(pith__node_output(node, 0), y));
    pith__node_remove(node);
    return PITH_OK;
}

const pith__op pith__op_Upsample = {
    .domain = "",
    .name = "Upsample",
    .since = INT32_MAX,
    .newest = 10,
    .min_inputs = 1,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "Zf",
    .attrs = "height_scale float! @-6; mode string nearest|bilinear = nearest @-6; "
             "mode string nearest|linear = nearest @7; scales floats! @7-8; "
             "width_scale float! @-6",
    .upgrade = upsample_upgrade,
    .infer = pith__infer_same,
    .note = "becomes Resize",
};

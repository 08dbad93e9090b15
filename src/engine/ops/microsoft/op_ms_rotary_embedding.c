/* op_ms_rotary_embedding.c - com.microsoft's RotaryEmbedding: ai.onnx's operator of this name with
 * its inputs in another order, written out at load. Positions may be one number, from which the
 * rows of all sequences count. Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

/* Positions that begin at a number, one for all rows: that number + 0, 1, … of the sequence. */
static pith__value *ms_rotary_counted(pith__node *node, pith__value *x, pith__value *first) {
    static int64_t numbers[] = { 0, 1 };
    pith__value *constants[2];
    for (int i = 0; i < 2; i++) {
        pith_tensor scalar = { .data = &numbers[i], .bytes = sizeof numbers[i], .dtype = PITH_I64 };
        constants[i] = pith__graph_add_const(node->graph, PITH_STR(""), &scalar);
        if (!constants[i]) return NULL;
    }
    pith__value *shape = pith__compose1(node, "Shape", x);
    pith__value *batch = pith__compose_list(node, "Gather", shape, (int64_t[]){ 0 }, 1);
    pith__value *length = pith__compose_list(node, "Gather", shape, (int64_t[]){ -2 }, 1);
    pith__value *scalar = pith__compose_list(node, "Squeeze", length, (int64_t[]){ 0 }, 1);
    pith__value *row =
        scalar ? pith__compose3(node, "Range", constants[0], scalar, constants[1]) : NULL;
    pith__value *both = pith__with_int(pith__compose2(node, "Concat", batch, length), "axis", 0);
    return pith__compose2(node, "Expand", pith__compose2(node, "Add", row, first), both);
}

/* Inputs here are x, positions, cosines, sines; in ai.onnx the positions are last. */
static pith_status ms_rotary_upgrade(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "interleaved", "num_heads", "rotary_embedding_dim", NULL };
    PITH_TRY(pith__compose_require(node, 15u, 1, err));
    if (pith__node_float(node, "scale", 1.0f) != 1.0f)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "attribute scale is not supported");
    pith__value *x = pith__node_input(node, 0), *positions = pith__node_input(node, 1);
    if (pith__compose_rank(positions) == 1) positions = ms_rotary_counted(node, x, positions);
    pith__value *in[] = { x, pith__node_input(node, 2), pith__node_input(node, 3), positions };
    pith__value *y = positions ? pith__compose(node, "", "RotaryEmbedding", in, 4, 1) : NULL;
    y = pith__with_attributes(y, node, kept);
    return pith__compose_become(node, y, err);
}

PITH_OP_COMPOSED(RotaryEmbedding_ms, "com.microsoft", "RotaryEmbedding", 4, 4, 1, ms_rotary_upgrade,
                 "no scale",
                 .attrs = "interleaved bool; is_packed_batching bool; num_heads int 0..; "
                          "rotary_embedding_dim int 0..; scale float")

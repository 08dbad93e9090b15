/* op_ms_hyper_connection.c - com.microsoft's HyperConnectionPreMix, HyperConnectionPostMix and
 * BranchwiseRMSNorm: decoders whose residual is several streams, mixed before and after each block.
 *
 * Streams come as groups [..., C, H], or side by side in a row if num_branches says so. Written out
 * at load as plain operators in float32 between casts. Source: ONNX Runtime's ContribOperators.md.
 */
#include "engine/ops/shared/compose_f32.h"
#include "engine/ops/shared/compose_ops.h"

/* Streams in groups [..., C, H]: as they are, or out of [..., C * H] if there is the attribute
 * num_branches. */
static pith__value *streams_grouped(pith__node *node, pith__value *x) {
    int64_t branches = pith__node_int(node, "num_branches", 0);
    return branches < 1
               ? x
               : pith__compose_reshape(node, x, x,
                                       pith__compose_numbers(node, (int64_t[]){ branches, -1 }, 2));
}

/* Each stream is normalised by itself. The scale may be for all streams or for one: as rows of H it
 * broadcasts in both cases. */
static pith_status streams_upgrade_branch_norm(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 1u, 1, err));
    pith__value *x = pith__node_input(node, 0), *scale = pith__node_input(node, 1);
    pith__value *grouped = pith__compose_f32(node, streams_grouped(node, x));
    pith__value *y = pith__compose_rms(node, grouped, pith__node_float(node, "epsilon", 1e-5f));
    if (scale && y) { /* [C * H], [C, H] or [H], as rows of H */
        pith__value *any = pith__compose_numbers(node, (int64_t[]){ -1 }, 1);
        pith__value *rows =
            any ? pith__compose_join(node, any, pith__compose_sizes(node, grouped, -1, INT64_MAX))
                : NULL;
        y = pith__compose2(node, "Mul", y,
                           pith__compose2(node, "Reshape", pith__compose_f32(node, scale), rows));
    }
    return pith__compose_become(node, pith__compose_like(node, pith__compose_shaped(node, y, x), x),
                                err);
}

/* Gates of [..., C], [..., C, 1], [..., C, H] or [..., C * H] as [..., C, 1 or H]. */
static pith__value *streams_gates(pith__node *node, pith__value *gates, pith__value *grouped) {
    return pith__compose_reshape(node, pith__compose_f32(node, gates), grouped,
                                 pith__compose_numbers(node, (int64_t[]){ -1 }, 1));
}

/* The sum of the streams, each times its gate, is the input of the block. */
static pith_status streams_upgrade_pre_mix(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *x = pith__node_input(node, 0),
                *grouped = pith__compose_f32(node, streams_grouped(node, x));
    pith__value *y = grouped
                         ? pith__compose2(node, "Mul", grouped,
                                          streams_gates(node, pith__node_input(node, 1), grouped))
                         : NULL;
    y = pith__compose_reduce(node, "ReduceSum", y, -2, false);
    y = pith__compose_number(node, "Mul", y, pith__node_float(node, "reduction_scale", 1.0f));
    return pith__compose_become(node, pith__compose_like(node, y, x), err);
}

/* The streams, mixed by a matrix if there is one, plus the block's result times each stream's gate.
 */
static pith_status streams_upgrade_post_mix(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 1, err));
    pith__value *x = pith__node_input(node, 0),
                *grouped = pith__compose_f32(node, streams_grouped(node, x)), *mixed = grouped;
    pith__value *block =
        pith__compose_list(node, "Unsqueeze", pith__compose_f32(node, pith__node_input(node, 1)),
                           (int64_t[]){ -2 }, 1);
    if (!grouped || !block) return pith__fail_memory(err, 0);
    if (pith__node_input(node, 3))
        mixed = pith__compose2(
            node, "MatMul",
            pith__compose_move(node, pith__compose_f32(node, pith__node_input(node, 3)), -1, -2),
            grouped);
    pith__value *added =
        pith__compose2(node, "Mul", streams_gates(node, pith__node_input(node, 2), grouped), block);
    pith__value *y = pith__compose2(node, "Add", mixed, added);
    return pith__compose_become(node, pith__compose_like(node, pith__compose_shaped(node, y, x), x),
                                err);
}

#define STREAMS(symbol, name, min, max, outputs, upgrade, attrs_)                                  \
    PITH_OP_COMPOSED(symbol, "com.microsoft", name, min, max, outputs, upgrade, NULL,              \
                     .attrs = attrs_)
STREAMS(BranchwiseRMSNorm_ms, "BranchwiseRMSNorm", 1, 2, 1, streams_upgrade_branch_norm,
        "epsilon float = 1e-05; num_branches int 0.. = 0")
STREAMS(HyperConnectionPostMix_ms, "HyperConnectionPostMix", 3, 4, 1, streams_upgrade_post_mix,
        "num_branches int 0.. = 0")
STREAMS(HyperConnectionPreMix_ms, "HyperConnectionPreMix", 2, 2, 1, streams_upgrade_pre_mix,
        "num_branches int 0.. = 0; reduction_scale float = 1")

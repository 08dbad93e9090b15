/* op_ms_cdist.c - com.microsoft's CDist, written out at load: distances of all pairs of rows of two
 * matrices, by one Gemm. Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

/* Distances of rows: |a|^2 - 2 a b + |b|^2, which rounding must not make negative, or its root. */
static pith_status cdist_upgrade(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    bool root = pith__str_is(pith__node_str(node, "metric", "sqeuclidean"), "euclidean");
    pith__value *squares[2], *a = pith__node_input(node, 0), *b = pith__node_input(node, 1);
    for (int i = 0; i < 2; i++) {
        squares[i] = pith__compose_list(node, "ReduceSumSquare", pith__node_input(node, i),
                                        (int64_t[]){ 1 }, 1);
        squares[i] = pith__with_int(squares[i], "keepdims", i == 0);
    }
    pith__value *y = pith__with_int(
        pith__with_float(pith__compose2(node, "Gemm", a, b), "alpha", -2), "transB", 1);
    y = pith__compose2(node, "Add", pith__compose2(node, "Add", y, squares[0]), squares[1]);
    y = pith__compose1(node, "Relu", y);
    return pith__compose_become(node, root ? pith__compose1(node, "Sqrt", y) : y, err);
}

PITH_OP_COMPOSED(CDist_ms, "com.microsoft", "CDist", 2, 2, 1, cdist_upgrade, NULL,
                 .attrs = "metric string euclidean|sqeuclidean = sqeuclidean")

/* op_transpose.c - Transpose: the same elements with axes in another order. And pith.MoveAxis,
 * which moves axis `from` to place `to` without a rank: operators that are written out before ranks
 * are known use it, and pass_clean.c makes a Transpose of it. */
#include "engine/kernels/move.h"
#include "engine/ops/shared/widen_types.h"

/* perm[rank], reversed axes if the attribute is absent. */
static pith_status transpose_get_perm(const pith__node *node, int rank, int *perm,
                                      pith_error *err) {
    size_t count;
    const int64_t *items = pith__node_ints(node, "perm", &count);
    if (pith__str_is(node->op_type, "MoveAxis")) {
        int from, to;
        PITH_TRY(pith__axis_normalize(pith__node_int(node, "from", 0), rank, &from, err));
        PITH_TRY(pith__axis_normalize(pith__node_int(node, "to", 0), rank, &to, err));
        pith__move_axis_perm(perm, rank, from, to);
        return PITH_OK;
    }
    for (int i = 0; i < rank; i++) perm[i] = rank - 1 - i;
    if (!items) return PITH_OK;
    if (count != (size_t)rank) {
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "attribute perm has %zu axes, the input has rank %d", count, rank);
    }
    uint32_t seen = 0;
    for (int i = 0; i < rank; i++) {
        PITH_TRY(pith__axis_normalize(items[i], rank, &perm[i], err));
        seen |= 1u << perm[i];
    }
    if (seen != (1u << rank) - 1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "attribute perm names an axis twice");
    return PITH_OK;
}

static pith_status transpose_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim dims[PITH_MAX_RANK];
    int perm[PITH_MAX_RANK];
    if (x->rank >= 0) PITH_TRY(transpose_get_perm(c->node, x->rank, perm, c->err));
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[perm[i]];
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    if (x->rank == 0 || x->rank == 1) pith__infer_keep_elems(c);
    return PITH_OK;
}

/* One strided copy. Elements of 4 bytes have a kernel that turns squares, which keeps both sides in
 * the cache. */
static pith_status transpose_run_plain(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int perm[PITH_MAX_RANK];
    int64_t own[PITH_MAX_RANK], from[PITH_MAX_RANK], to[PITH_MAX_RANK];
    PITH_TRY(transpose_get_perm(r->node, x->rank, perm, r->err));
    pith__strides(own, x->dims, x->rank);
    pith__strides(to, y->dims, y->rank);
    for (int i = 0; i < x->rank; i++) from[i] = own[perm[i]];
    if (pith__tensor_count(y))
        pith__run_turn(r, *(pith__turn_fn *const *)r->state, y->data, to, x->data, from, y->dims,
                       y->rank, pith__element_size(x->dtype));
    return PITH_OK;
}

static pith_status transpose_run(pith__run *r) { return pith__unpack_run(r, transpose_run_plain); }

/* The state is the loop that turns squares, or NULL. */
static pith_status transpose_prepare(pith__prepare *c) {
    pith__turn_fn **turn = pith__arena_array(c->arena, 1, sizeof *turn);
    if (!turn) return pith__fail_memory(c->err, sizeof *turn);
    if (pith__element_size(c->in[0]->dtype) == 4)
        *turn = PITH_PREPARE_KERNEL(pith__turn_fn, "turn", PITH_F32, c);
    c->state = turn;
    return PITH_OK;
}

static pith_status transpose_scratch(const pith__infer *c, const void *state, int threads,
                                     size_t *bytes) {
    (void)state, (void)threads;
    *bytes = 0;
    return pith__unpack_scratch(c, bytes);
}

#define TRANSPOSE(symbol, domain_, name_, newest_, attrs_)                                         \
    const pith__op pith__op_##symbol = { .domain = domain_,                                        \
                                         .name = name_,                                            \
                                         .since = 1,                                               \
                                         .newest = newest_,                                        \
                                         .min_inputs = 1,                                          \
                                         .max_inputs = 1,                                          \
                                         .max_outputs = 1,                                         \
                                         .types = "a",                                             \
                                         .attrs = attrs_,                                          \
                                         .infer = transpose_infer,                                 \
                                         .prepare = transpose_prepare,                             \
                                         .scratch = transpose_scratch,                             \
                                         .run = transpose_run };
TRANSPOSE(MoveAxis_pith, "pith", "MoveAxis", 1, "from int! -12..11; to int! -12..11")
TRANSPOSE(Transpose, "", "Transpose", 25, "perm ints 0..11")

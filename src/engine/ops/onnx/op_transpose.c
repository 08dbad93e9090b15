/* op_transpose.c - Transpose: the same elements with axes in another order. And pith.MoveAxis, which moves axis `from`
 * to place `to` without a rank: operators that are written out before ranks are known use it, and pass_clean.c makes a
 * Transpose of it. */
#include "engine/kernels/move.h"
#include "engine/ops/shared/widen_types.h"

/* perm[rank], reversed axes if the attribute is absent. */
static pith_status get_perm(const pith_node *node, int rank, int *perm, pith_error *err) {
    size_t count;
    const int64_t *items = pith_node_ints(node, "perm", &count);
    if (pith_str_is(node->op_type, "MoveAxis")) {
        int from, to;
        PITH_TRY(pith_axis_normalize(pith_node_int(node, "from", 0), rank, &from, err));
        PITH_TRY(pith_axis_normalize(pith_node_int(node, "to", 0), rank, &to, err));
        pith_move_axis_perm(perm, rank, from, to);
        return PITH_OK;
    }
    for (int i = 0; i < rank; i++) perm[i] = rank - 1 - i;
    if (!items) return PITH_OK;
    if (count != (size_t)rank) {
        return pith_fail(err, PITH_ERR_ARGUMENT, "attribute perm has %zu axes, the input has rank %d", count, rank);
    }
    uint32_t seen = 0;
    for (int i = 0; i < rank; i++) {
        PITH_TRY(pith_axis_normalize(items[i], rank, &perm[i], err));
        seen |= 1u << perm[i];
    }
    if (seen != (1u << rank) - 1) return pith_fail(err, PITH_ERR_ARGUMENT, "attribute perm names an axis twice");
    return PITH_OK;
}

static pith_status transpose_infer(pith_infer *c) {
    const pith_type *x = c->in[0];
    pith_dim dims[PITH_MAX_RANK];
    int perm[PITH_MAX_RANK];
    if (x->rank >= 0) PITH_TRY(get_perm(c->node, x->rank, perm, c->err));
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[perm[i]];
    pith_infer_set(c, 0, x->dtype, x->rank, dims);
    if (x->rank == 0 || x->rank == 1) pith_infer_keep_elems(c);
    return PITH_OK;
}

static pith_status transpose_run_plain(pith_run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int perm[PITH_MAX_RANK];
    int64_t own[PITH_MAX_RANK], from[PITH_MAX_RANK], to[PITH_MAX_RANK];
    PITH_TRY(get_perm(r->node, x->rank, perm, r->err));
    pith_strides(own, x->dims, x->rank);
    pith_strides(to, y->dims, y->rank);
    for (int i = 0; i < x->rank; i++) from[i] = own[perm[i]];
    if (pith_tensor_count(y))
        pith_run_turn(r, *(pith_turn_fn *const *)r->state, y->data, to, x->data, from, y->dims, y->rank,
                      pith_element_size(x->dtype));
    return PITH_OK;
}

static pith_status transpose_run(pith_run *r) { return pith_unpack_run(r, transpose_run_plain); }

/* The state is the loop that turns squares, or NULL. */
static pith_status transpose_prepare(pith_prepare *c) {
    pith_turn_fn **turn = pith_arena_array(c->arena, 1, sizeof *turn);
    if (!turn) return pith_fail_memory(c->err, sizeof *turn);
    if (pith_element_size(c->in[0]->dtype) == 4) *turn = PITH_PREPARE_KERNEL(pith_turn_fn, "turn", PITH_F32, c);
    c->state = turn;
    return PITH_OK;
}

static pith_status transpose_scratch(const pith_infer *c, const void *state, int threads, size_t *bytes) {
    (void)state, (void)threads;
    *bytes = 0;
    return pith_unpack_scratch(c, bytes);
}

#define TRANSPOSE(symbol, domain_, name_, newest_, attrs_)                                                             \
    const pith_op pith_op_##symbol = { .domain = domain_,                                                              \
                                       .name = name_,                                                                  \
                                       .since = 1,                                                                     \
                                       .newest = newest_,                                                              \
                                       .min_inputs = 1,                                                                \
                                       .max_inputs = 1,                                                                \
                                       .max_outputs = 1,                                                               \
                                       .types = "a",                                                                   \
                                       .attrs = attrs_,                                                                \
                                       .infer = transpose_infer,                                                       \
                                       .prepare = transpose_prepare,                                                   \
                                       .scratch = transpose_scratch,                                                   \
                                       .run = transpose_run };
TRANSPOSE(MoveAxis_pith, "pith", "MoveAxis", 1, "from int! -12..11; to int! -12..11")
TRANSPOSE(Transpose, "", "Transpose", 25, "perm ints 0..11")

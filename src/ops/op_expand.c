/* op_expand.c - Expand and Tile: repeat the elements of a tensor. */
#include "kernels/move.h"
#include "ops/compose.h"
#include "ops/infer.h"

static pith_status infer_expand(pith_infer *c) {
    const pith_type *x = c->in[0];
    pith_numbers shape;
    PITH_TRY(pith_infer_numbers(c, 1, &shape));
    if (shape.count > PITH_MAX_RANK) return pith_op_fail(c, "rank %d is more than %d", shape.count, PITH_MAX_RANK);
    pith_type wanted, out;
    pith_type_set(&wanted, PITH_I64, shape.count, shape.items);
    pith_type_init(&out);
    for (int i = 0; i < shape.count; i++) {
        if (pith_dim_known(shape.items[i]) && shape.items[i] < 0) {
            return pith_op_fail(c, "shape[%d] is %lld; it must not be negative", i, (long long)shape.items[i]);
        }
    }
    PITH_TRY(pith_infer_broadcast(c, x, &wanted, &out));
    pith_infer_set(c, 0, x->dtype, out.rank, out.dims);
    int64_t count;
    pith_dim *elems = x->data || x->elems ? pith_infer_new_elems(c, &count) : NULL, item;
    if (!elems || pith_type_count(x) != 1 || !pith_type_elem(x, 0, &item)) return PITH_OK;
    for (int64_t i = 0; i < count; i++) elems[i] = item;
    c->out[0].elems = elems;
    return PITH_OK;
}

static pith_status run_expand(pith_run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int64_t own[PITH_MAX_RANK], from[PITH_MAX_RANK] = { 0 }, to[PITH_MAX_RANK];
    int shift = y->rank - x->rank;
    pith_strides(own, x->dims, x->rank);
    pith_strides(to, y->dims, y->rank);
    for (int i = 0; i < x->rank; i++) from[i + shift] = x->dims[i] == 1 ? 0 : own[i];
    if (pith_tensor_count(y))
        pith_run_move(r, y->data, to, x->data, from, y->dims, y->rank, pith_element_size(x->dtype));
    return PITH_OK;
}

const pith_op pith_op_Expand = { .domain = "",
                                 .name = "Expand",
                                 .since = 8,
                                 .newest = 13,
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .max_outputs = 1,
                                 .types = "ml",
                                 .attrs = "",
                                 .shape_inputs = 1u << 1,
                                 .infer = infer_expand,
                                 .prepare = pith_prepare_movable,
                                 .run = run_expand };

/* ---- Tile ---- */

/* Opset 1 had the number of tiles and one axis as two inputs, of any number type: 1 but at that axis. */
static pith_status upgrade_tile(pith_node *node, pith_error *err) {
    static int64_t numbers[] = { 0, 1 };
    PITH_TRY(pith_compose_require(node, 7u, 1, err));
    pith_value *constants[2];
    for (int i = 0; i < 2; i++) {
        pith_tensor scalar = { .data = &numbers[i], .bytes = sizeof numbers[i], .dtype = PITH_I64 };
        constants[i] = pith_graph_add_const(node->graph, PITH_STR(""), &scalar);
        if (!constants[i]) return pith_fail_memory(err, sizeof scalar);
    }
    pith_value *rank = pith_compose1(node, "Size", pith_compose1(node, "Shape", pith_node_input(node, 0)));
    pith_value *axes = rank ? pith_compose3(node, "Range", constants[0], rank, constants[1]) : NULL;
    pith_value *here = pith_compose2(node, "Equal", axes, pith_compose_cast(node, pith_node_input(node, 2), PITH_I64));
    pith_value *tiles = pith_compose_cast(node, pith_node_input(node, 1), PITH_I64);
    pith_value *repeats = here && tiles ? pith_compose3(node, "Where", here, tiles, constants[1]) : NULL;
    return pith_compose_become(node, pith_compose2(node, "Tile", pith_node_input(node, 0), repeats), err);
}

static pith_status infer_tile(pith_infer *c) {
    const pith_type *x = c->in[0];
    pith_numbers repeats;
    PITH_TRY(pith_infer_numbers(c, 1, &repeats));
    if (x->rank >= 0 && repeats.count >= 0 && repeats.count != x->rank) {
        return pith_op_fail(c, "repeats has %d numbers, the input has rank %d", repeats.count, x->rank);
    }
    pith_dim dims[PITH_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        pith_dim times = repeats.count >= 0 ? repeats.items[i] : PITH_DIM_UNKNOWN;
        if (pith_dim_known(times) && times < 0)
            return pith_op_fail(c, "repeats[%d] is %lld; it must not be negative", i, (long long)times);
        dims[i] = pith_dim_apply(c->dims, PITH_DIM_MUL, x->dims[i], times);
        if (pith_dim_known(x->dims[i]) && pith_dim_known(times) && !pith_dim_known(dims[i])) {
            return pith_op_fail(c, "axis %d would be too long", i);
        }
    }
    pith_infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* Each tile is moved on its own. */
static pith_status expand_run_tile(pith_run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    if (!pith_tensor_count(y)) return PITH_OK;
    int64_t own[PITH_MAX_RANK], into[PITH_MAX_RANK], dims[PITH_MAX_RANK];
    int64_t tiles[PITH_MAX_RANK], index[PITH_MAX_RANK] = { 0 };
    size_t size = pith_element_size(x->dtype);
    pith_strides(own, x->dims, x->rank);
    pith_strides(into, y->dims, y->rank);
    for (int i = 0; i < x->rank; i++) {
        tiles[i] = y->dims[i] / x->dims[i];
        dims[i] = x->dims[i];
    }
    for (;;) {
        int64_t at = 0;
        for (int i = 0; i < x->rank; i++) at += index[i] * x->dims[i] * into[i];
        pith_run_move(r, (char *)y->data + (size_t)at * size, into, x->data, own, dims, x->rank, size);
        int i = x->rank - 1;
        while (i >= 0 && ++index[i] == tiles[i]) index[i--] = 0;
        if (i < 0) return PITH_OK;
    }
}

const pith_op pith_op_Tile = { .domain = "",
                               .name = "Tile",
                               .since = 6,
                               .newest = 13,
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .max_outputs = 1,
                               .types = "mn",
                               .attrs = "",
                               .upgrade = upgrade_tile,
                               .shape_inputs = 1u << 1,
                               .infer = infer_tile,
                               .prepare = pith_prepare_movable,
                               .run = expand_run_tile };

/* pith_ops_rows.c - pith.Rotary as RotaryEmbedding of com.microsoft, and pith.EmbedNorm as
 * EmbedLayerNormalization.
 *
 * RotaryEmbedding has tables of half a head, [positions, turned / 2]. The graph's own tables, which
 * are mostly computed from positions, are cut to that: once for all layers. They may be cut only if
 * both halves are the same. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "engine/ops/op.h"
#include "formats/export/pith_ops.h"

/* First numbers of keys (pith_ops.h). */
enum { MEMO_TABLE = 16, MEMO_PLACES, MEMO_IDS };

/* The longest way from a table back to the joint of its halves. */
#define CHAIN_MAX 16

/* ---- pith.Rotary ---- */

static int64_t rows_width(const pith__value *table) {
    return table->type.rank > 0 ? table->type.dims[table->type.rank - 1] : PITH_DIM_UNKNOWN;
}

static bool rows_same_halves(const pith_tensor *t) {
    const int64_t width = t->dims[t->rank - 1], half = width / 2;
    const float *row = t->data;
    for (int64_t i = 0, rows = width ? (int64_t)(t->bytes / sizeof *row) / width : 0; i < rows;
         i++, row += width)
        if (memcmp(row, row + half, (size_t)half * sizeof *row)) return false;
    return true;
}

/* Are the two halves of the last axis the same, because they are joined so? Operators on the way
 * work on each element, or leave the last axis alone. */
static bool rows_repeats(const pith__value *v) {
    static const char *const each[] = { "Cos",     "Sin",    "Cast",  "Mul",    "Unsqueeze",
                                        "Squeeze", "Gather", "Slice", "Expand", "Identity" };
    for (int i = 0; i < CHAIN_MAX; i++) {
        const pith__node *node = v->producer;
        const int64_t width = rows_width(v);
        if (v->type.data) return v->type.dtype == PITH_F32 && rows_same_halves(v->type.data);
        if (!node || node->domain.size) return false;
        if (pith__str_is(node->op_type, "Concat"))
            return node->input_count == 2 && node->inputs[0] == node->inputs[1] &&
                   (pith__node_int(node, "axis", 0) == -1 ||
                    pith__node_int(node, "axis", 0) == v->type.rank - 1);
        size_t k = 0;
        while (k < sizeof each / sizeof *each && !pith__str_is(node->op_type, each[k])) k++;
        if (k == sizeof each / sizeof *each || !pith__dim_known(width) ||
            rows_width(node->inputs[0]) != width)
            return false;
        /* A factor is one number; rows are taken from a table along its first axis. */
        if (pith__str_is(node->op_type, "Mul") &&
            (!node->inputs[1]->type.data || pith__type_count(&node->inputs[1]->type) != 1))
            return false;
        if (pith__str_is(node->op_type, "Gather") && pith__node_int(node, "axis", 0) != 0)
            return false;
        v = node->inputs[0];
    }
    return false;
}

static bool rows_table_fits(const pith__node *node, int i) {
    const pith__value *table = node->inputs[i];
    const int64_t size = pith__node_int(node, "size", 0),
                  turned = pith__node_int(node, "turned", size);
    const int64_t width = rows_width(table);
    if (2 * width == turned) return true;
    return width == turned && !pith__node_int(node, "interleaved", 0) && rows_repeats(table);
}

/* Whether the tables have one row per position (1), or one per token of each text (0); -1: that is
 * not known. */
static int rows_are_shared(const pith__node *node) {
    const pith__type *x = &node->inputs[0]->type, *t = &node->inputs[1]->type;
    pith__dims *dims = node->graph->dims;
    const pith__dim rows = pith__dim_product(dims, t->dims, t->rank - 1),
                    all = pith__dim_product(dims, x->dims, 2);
    if (pith__dim_equal(rows, x->dims[1])) return 1;
    return pith__dim_equal(rows, all) ? 0 : -1;
}

bool pith__replace_rotary_fits(const pith__node *node, const pith__replace_form *how,
                               const char **why) {
    const pith__type *x = &node->inputs[0]->type;
    const int64_t heads = pith__node_int(node, "heads", 0), size = pith__node_int(node, "size", 0),
                  column = pith__node_int(node, "column", 0);
    *why = "RotaryEmbedding is not asked for";
    if (!how->all) return false;
    *why = "packed rows";
    if (pith__node_int(node, "ragged", 0)) return false;
    *why = "the heads of its input do not lie next to each other";
    if (pith__node_int(node, "pitch", size) != size) return false;
    if (x->rank == 4 ? column || x->dims[2] != heads || x->dims[3] != size
                     : x->rank != 3 || !pith__dim_known(x->dims[2]))
        return false;
    *why = "the halves of its tables are not the same";
    if (!rows_table_fits(node, 1) || !rows_table_fits(node, 2)) return false;
    *why = "the number of positions of its tables is not known";
    return rows_are_shared(node) >= 0;
}

/* [positions, turned / 2] */
static pith__value *rows_table(pith__replace *b, pith__value *table, int64_t turned) {
    const pith__replace_key key = { table, { MEMO_TABLE, turned } };
    pith__value *made = pith__replace_recall(b, &key);
    if (made) return made;
    const int64_t width = rows_width(table), shape[] = { -1, width };
    pith__dim dims[] = {
        pith__dim_product(b->nodes.graph->dims, table->type.dims, table->type.rank - 1), width
    };
    made = table;
    if (table->type.rank != 2) {
        made = PITH_NEW_NODE(&b->nodes, "Reshape", table, pith__replace_numbers(b, shape, 2));
        pith__replace_shape(made, PITH_F32, 2, dims);
    }
    if (width != turned / 2) made = pith__replace_slice(b, made, 1, 0, turned / 2, 1);
    return pith__replace_remember(b, &key, made);
}

/* The row of the tables of each token: from 0 on in every text; or one after another, [batch,
 * sequence]. */
static pith__value *rows_places(pith__replace *b, pith__value *x, bool shared) {
    const pith__replace_key key = { shared ? NULL : x, { MEMO_PLACES, shared } };
    pith__value *made = pith__replace_recall(b, &key);
    if (made) return made;
    if (shared)
        return pith__replace_remember(b, &key, pith__replace_numbers(b, (const int64_t[]){ 0 }, 1));
    pith__new_nodes *m = &b->nodes;
    const pith__dim count = pith__dim_product(m->graph->dims, x->type.dims, 2);
    pith__value *sizes = pith__replace_sizes(b, x, 0, 2);
    pith__value *number = PITH_NEW_NODE(m, "ReduceProd", sizes);
    pith__new_node_set_int(m, number, "keepdims", 0);
    pith__replace_shape(number, PITH_I64, 0, NULL);
    pith__value *all =
        PITH_NEW_NODE(m, "Range", pith__replace_number(b, 0), number, pith__replace_number(b, 1));
    pith__replace_shape(all, PITH_I64, 1, &count);
    return pith__replace_remember(
        b, &key,
        pith__replace_shape(PITH_NEW_NODE(m, "Reshape", all, sizes), PITH_I64, 2, x->type.dims));
}

/* The heads as rows of their own. */
static pith__value *rows_of_heads(pith__replace *b, const pith__node *node, int64_t row) {
    pith__value *x = node->inputs[0];
    const int64_t column = pith__node_int(node, "column", 0);
    const pith__dim dims[] = { x->type.dims[0], x->type.dims[1], row };
    if (x->type.rank == 3)
        return x->type.dims[2] == row ? x : pith__replace_slice(b, x, 2, column, column + row, 1);
    pith__value *y = PITH_NEW_NODE(&b->nodes, "Reshape", x,
                                   pith__replace_numbers(b, (const int64_t[]){ 0, 0, row }, 3));
    return pith__replace_shape(y, PITH_F32, 3, dims);
}

pith__value *pith__replace_rotary(pith__replace *b, pith__node *node) {
    const int64_t heads = pith__node_int(node, "heads", 0), size = pith__node_int(node, "size", 0),
                  turned = pith__node_int(node, "turned", size);
    pith__value *x = rows_of_heads(b, node, heads * size), *places = NULL;
    if (x) places = rows_places(b, x, rows_are_shared(node) == 1);
    pith__value *inputs[] = { x, places, rows_table(b, node->inputs[1], turned),
                              rows_table(b, node->inputs[2], turned) };
    pith__value *y = pith__replace_contrib(b, "RotaryEmbedding", inputs, 4, 1);
    pith__new_node_set_int(&b->nodes, y, "num_heads", heads);
    if (turned != size) pith__new_node_set_int(&b->nodes, y, "rotary_embedding_dim", turned);
    if (pith__node_int(node, "interleaved", 0))
        pith__new_node_set_int(&b->nodes, y, "interleaved", 1);
    return y;
}

/* ---- pith.EmbedNorm ---- */

/* Gather, Add and the norm, as they were before the pass. */
static pith__value *rows_lower(pith__replace *b, const pith__node *node) {
    pith__value *sum = NULL;
    for (int i = 2; i + 1 < node->input_count; i += 2) {
        pith__value *table = node->inputs[i], *ids = node->inputs[i + 1];
        pith__dim dims[PITH_MAX_RANK];
        const int rank = ids->type.rank;
        if (rank >= 0) memcpy(dims, ids->type.dims, (size_t)rank * sizeof *dims);
        if (rank >= 0 && rank < PITH_MAX_RANK) dims[rank] = table->type.dims[1];
        pith__value *row = PITH_NEW_NODE(&b->nodes, "Gather", table, ids);
        pith__replace_shape(row, table->type.dtype, rank + 1, dims);
        if (table->type.dtype != PITH_F32)
            row = pith__replace_shape(pith__new_node_cast(&b->nodes, row, PITH_F32), PITH_F32,
                                      rank + 1, dims);
        sum = sum ? PITH_REPLACE(b, "Add", sum, row) : row;
    }
    return pith__replace_norm(b, sum, node->inputs[0], pith__node_input(node, 1),
                              pith__node_float(node, "epsilon", 1e-5f),
                              pith__node_int(node, "rms", 0) != 0);
}

/* Which pair of table and ids serves as words, positions and types; types may be absent (0). */
typedef struct rows_roles {
    int words, positions, types;
} rows_roles;

static bool rows_is_full(const pith__replace *b, const pith__value *ids) {
    return ids->type.rank == 2 && pith__dim_equal(ids->type.dims[0], b->type->dims[0]) &&
           pith__dim_equal(ids->type.dims[1], b->type->dims[1]);
}

/* Ids of words and types have a number per token; those of positions may be the same for all texts.
 */
static bool rows_find_roles(rows_roles *r, const pith__replace *b, const pith__node *node) {
    *r = (rows_roles){ 0, 0, 0 };
    if (b->type->rank != 3 || node->input_count < 6 || pith__node_int(node, "rms", 0)) return false;
    for (int i = 2; i + 1 < node->input_count; i += 2) {
        const pith__value *ids = node->inputs[i + 1];
        if (node->inputs[i]->type.dtype != PITH_F32 || ids->type.rank != 2) return false;
        const bool full = rows_is_full(b, ids), shared = ids->type.dims[0] == 1;
        if (full && !r->words)
            r->words = i;
        else if (shared && !r->positions)
            r->positions = i;
        else if (full && !r->types)
            r->types = i;
        else if (full && !r->positions)
            r->positions = i;
        else
            return false;
    }
    if (!r->positions) {
        r->positions = r->types;
        r->types = 0;
    }
    return r->words && r->positions;
}

static pith__value *rows_ids(pith__replace *b, pith__value *ids) {
    const pith__replace_key key = { ids, { MEMO_IDS } };
    pith__value *made = pith__replace_recall(b, &key);
    if (made || ids->type.dtype == PITH_I32) return made ? made : ids;
    made = pith__new_node_cast(&b->nodes, ids, PITH_I32);
    return pith__replace_remember(
        b, &key, pith__replace_shape(made, PITH_I32, ids->type.rank, ids->type.dims));
}

static pith__value *rows_beta(pith__replace *b, const pith__node *node) {
    const int64_t n = node->inputs[0]->type.dims[0];
    if (pith__node_input(node, 1)) return node->inputs[1];
    float *zeros = pith__arena_array(b->nodes.graph->arena, (size_t)n, sizeof *zeros);
    if (zeros) return pith__new_node_constant(&b->nodes, zeros, 1, &n);
    b->nodes.status = pith__fail_memory(b->nodes.err, (size_t)n * sizeof *zeros);
    return NULL;
}

pith__value *pith__replace_embed_norm(pith__replace *b, pith__node *node) {
    rows_roles r;
    if (!b->how->all || !rows_find_roles(&r, b, node)) return rows_lower(b, node);
    pith__value *const *in = node->inputs;
    pith__value *inputs[] = { rows_ids(b, in[r.words + 1]),
                              r.types ? rows_ids(b, in[r.types + 1]) : NULL,
                              in[r.words],
                              in[r.positions],
                              r.types ? in[r.types] : NULL,
                              in[0],
                              rows_beta(b, node),
                              NULL,
                              rows_ids(b, in[r.positions + 1]) };
    /* ONNX Runtime wants the second output, a number per text, whether it is used or not. */
    pith__value *y = pith__replace_contrib(b, "EmbedLayerNormalization", inputs, 9, 2);
    if (y) pith__type_set(&y->producer->outputs[1]->type, PITH_I32, 1, b->type->dims);
    pith__replace_set_float(b, y, "epsilon", pith__node_float(node, "epsilon", 1e-5f));
    return y;
}

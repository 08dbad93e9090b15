/* pith_ops_attention.c - pith.Attention as operators of com.microsoft: Attention with its
 * projections, MultiHeadAttention where these are apart, and GroupQueryAttention where heads share
 * keys and values.
 *
 * What the operators have no attribute for (windows of keys, masks of GroupQueryAttention) becomes
 * a number that is added to each score, the one that the graph added itself if that is known. It is
 * made once for all layers that have the same. GroupQueryAttention gets causal 0, so that this
 * number alone decides what a query sees, also of padding. */
#include <float.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "engine/kernels/attention.h"
#include "engine/ops/op.h"
#include "formats/export/pith_ops.h"

/* First numbers of keys (pith_ops.h). */
enum { MEMO_BIAS = 1, MEMO_LENGTHS, MEMO_TOTAL, MEMO_SEES };

/* Where the heads of input i lie: one after another in a row of rank 3, from a column on; in rank 4
 * by themselves; or head by head. */
typedef struct replace_rows {
    int64_t row, column; /* elements of all heads, and before them */
    bool head_major;
} replace_rows;

static bool replace_rows_of(replace_rows *rows, const pith__node *node, int i) {
    const int64_t heads = pith__node_int(node, i ? "kv_heads" : "heads", 0),
                  size = pith__node_int(node, i < 2 ? "size" : "v_size", 0);
    const pith__type *t = &node->inputs[i]->type;
    size_t columns, pitches;
    const int64_t *column = pith__node_ints(node, "columns", &columns),
                  *pitch = pith__node_ints(node, "pitches", &pitches);
    *rows = (replace_rows){ .row = heads * size, .column = columns == 3 ? column[i] : 0 };
    rows->head_major = pith__node_int(node, "head_major", 0) >> i & 1;
    if (rows->head_major) return t->rank == 4 && t->dims[1] == heads && t->dims[3] == size;
    if (pitches == 3 && pitch[i] != size) return false;
    if (t->rank == 4) return !rows->column && t->dims[2] == heads && t->dims[3] == size;
    return t->rank == 3 && (!pith__dim_known(t->dims[2]) || rows->column + rows->row <= t->dims[2]);
}

static bool replace_all_rows_fit(const pith__node *node) {
    replace_rows rows;
    for (int i = 0; i < 3; i++)
        if (!replace_rows_of(&rows, node, i)) return false;
    return true;
}

/* One number per key, or one length per text. */
static bool replace_mask_fits(const pith__node *node) {
    const pith__value *mask = pith__node_input(node, 4);
    const pith__type *q = &node->inputs[0]->type;
    return !mask || mask->type.rank == 2 ||
           (mask->type.rank == 1 && pith__dim_equal(mask->type.dims[0], q->dims[0]));
}

static bool replace_bias_fits(const pith__node *node) {
    const pith__value *bias = pith__node_input(node, 3);
    const int64_t heads = pith__node_int(node, "heads", 0);
    if (!bias) return true;
    const pith__type *t = &bias->type;
    return t->rank == 4 && (t->dims[1] == 1 || t->dims[1] == heads) && t->dims[2] != 1 &&
           t->dims[3] != 1;
}

static bool replace_is_shared(const pith__node *node) {
    return pith__node_int(node, "kv_heads", 0) != pith__node_int(node, "heads", 0);
}

static bool replace_is_window(const pith__node *node) {
    return pith__node_int(node, "window_left", -1) >= 0 ||
           pith__node_int(node, "window_right", -1) > 0;
}

/* GroupQueryAttention wants heads of one size, a multiple of 8. */
static bool replace_shared_fits(const pith__node *node) {
    const int64_t size = pith__node_int(node, "size", 0);
    return size == pith__node_int(node, "v_size", 0) && size % 8 == 0;
}

bool pith__replace_attention_fits(const pith__node *node, const pith__replace_form *how,
                                  const char **why) {
    *why = "packed rows";
    if (pith__node_input(node, 5)) return false;
    *why = "heads share keys and values";
    if (replace_is_shared(node) && (!how->all || !replace_shared_fits(node))) return false;
    *why = "the heads of its inputs do not lie next to each other";
    if (!replace_all_rows_fit(node)) return false;
    *why = "a window of keys";
    if (replace_is_window(node) && !how->all) return false;
    *why = "its mask is neither one number per key nor one length per text";
    if (!replace_mask_fits(node)) return false;
    *why = "what is added to its scores is broadcast";
    return replace_bias_fits(node);
}

/* The heads of input i as rows of their own: [batch, sequence, heads * size]. */
static pith__value *replace_own_rows(pith__replace *b, const pith__node *node, int i) {
    pith__new_nodes *m = &b->nodes;
    pith__value *x = node->inputs[i], *y = x;
    const pith__type *t = &x->type;
    replace_rows rows;
    (void)replace_rows_of(&rows, node, i);
    const pith__dim dims[] = { t->dims[0], t->dims[rows.head_major ? 2 : 1], rows.row };
    if (rows.head_major) {
        y = PITH_NEW_NODE(m, "Transpose", x);
        pith__new_node_set_ints(m, y, "perm", (const int64_t[]){ 0, 2, 1, 3 }, 4);
    }
    if (t->rank == 4) {
        y = PITH_NEW_NODE(m, "Reshape", y,
                          pith__replace_numbers(b, (const int64_t[]){ 0, 0, rows.row }, 3));
    } else if (t->dims[2] != rows.row) {
        y = pith__replace_slice(b, x, 2, rows.column, rows.column + rows.row, 1);
    }
    if (y && y != x) pith__type_set(&y->type, t->dtype, 3, dims);
    return y;
}

/* A key that the mask skips gets the number that the graph added, if that is all that is known of
 * it; else one so low that it counts for nothing beside any key that is left. */
static float replace_filter(const pith__node *node) {
    size_t count;
    const float *skipped = pith__node_floats(node, "skipped", &count);
    const bool scores =
        pith__node_int(node, "none_left", PITH_NONE_LEFT_MEAN) == PITH_NONE_LEFT_SCORES;
    return scores && count ? skipped[0] : -FLT_MAX;
}

/* Query, key and value as columns of one matmul with constants. */
typedef struct replace_projection {
    pith__value *x, *weight, *bias; /* bias may be NULL */
} replace_projection;

/* Are the inputs the first, second and third part of one value? */
static bool replace_is_one_row(const pith__node *node) {
    replace_rows first, rows;
    (void)replace_rows_of(&first, node, 0);
    for (int i = 0; i < 3; i++) {
        (void)replace_rows_of(&rows, node, i);
        if (node->inputs[i] != node->inputs[0] || rows.head_major || rows.column != i * first.row ||
            rows.row != first.row)
            return false;
    }
    return !node->inputs[0]->output_uses && node->inputs[0]->user_count == 3;
}

/* Finds the MatMul, and the Add behind it, that made query, key and value as one row: Attention of
 * com.microsoft has this projection inside. Its weight is [width, 3 * row], as here; other layouts
 * become MultiHeadAttention. */
static bool replace_projection_of(replace_projection *p, const pith__node *node) {
    const pith__node *made = node->inputs[0]->producer;
    *p = (replace_projection){ NULL, NULL, NULL };
    if (!replace_is_one_row(node)) return false;
    if (made && !made->domain.size && pith__str_is(made->op_type, "Add") &&
        made->inputs[1]->type.data) {
        p->bias = made->inputs[1];
        made = made->inputs[0]->producer;
    }
    if (!made || made->domain.size || !pith__str_is(made->op_type, "MatMul")) return false;
    p->x = made->inputs[0];
    p->weight = made->inputs[1];
    const pith_tensor *w = p->weight->type.data, *bias = p->bias ? p->bias->type.data : NULL;
    replace_rows rows;
    (void)replace_rows_of(&rows, node, 0);
    return p->x->type.rank == 3 && w && w->rank == 2 && w->dims[1] == 3 * rows.row &&
           (!bias || (bias->rank == 1 && bias->dims[0] == w->dims[1]));
}

static pith__value *replace_int_mask(pith__replace *b, const pith__node *node) {
    pith__value *mask = pith__node_input(node, 4);
    if (!mask || mask->type.dtype == PITH_I32) return mask;
    return pith__replace_shape(pith__new_node_cast(&b->nodes, mask, PITH_I32), PITH_I32,
                               mask->type.rank, mask->type.dims);
}

/* ---- numbers that are added to scores ---- */

typedef struct replace_skips {
    int64_t left, right; /* the window */
    float masked, outside, both;
} replace_skips;

/* What the graph added for keys that its mask, its window or both skip; else a number that absorbs
 * every score. */
static replace_skips replace_skips_of(const pith__node *node) {
    replace_skips s = { pith__node_int(node, "window_left", -1),
                        pith__node_int(node, "window_right", -1), -FLT_MAX, -FLT_MAX, -FLT_MAX };
    size_t count;
    const float *skipped = pith__node_floats(node, "skipped", &count);
    if (count != 3 ||
        pith__node_int(node, "none_left", PITH_NONE_LEFT_MEAN) != PITH_NONE_LEFT_SCORES)
        return s;
    s.masked = skipped[0];
    s.outside = skipped[1];
    s.both = skipped[2];
    return s;
}

/* 0, 1, … as i64 [n], n the size of an axis of x. */
static pith__value *replace_count(pith__replace *b, pith__value *x, int64_t axis) {
    const pith__dim n = x ? x->type.dims[axis] : 0;
    pith__value *y = PITH_NEW_NODE(&b->nodes, "Range", pith__replace_number(b, 0),
                                   pith__replace_size(b, x, axis), pith__replace_number(b, 1));
    return pith__replace_shape(y, PITH_I64, 1, &n);
}

/* Whether query i sees key j by the window: bool [queries, keys]. */
static pith__value *replace_inside(pith__replace *b, pith__value *q, pith__value *k,
                                   const replace_skips *s) {
    const pith__dim dims[] = { q->type.dims[1], k->type.dims[1] }, column[] = { dims[0], 1 };
    pith__new_nodes *m = &b->nodes;
    pith__value *row = PITH_NEW_NODE(m, "Unsqueeze", replace_count(b, q, 1),
                                     pith__replace_numbers(b, (const int64_t[]){ 1 }, 1));
    pith__replace_shape(row, PITH_I64, 2, column);
    pith__value *ahead = pith__replace_shape(PITH_NEW_NODE(m, "Sub", replace_count(b, k, 1), row),
                                             PITH_I64, 2, dims);
    /* Without a limit every key is inside, and the comparison gives the shape. */
    const int64_t right = s->right >= 0 ? s->right : INT32_MAX;
    pith__value *inside = PITH_NEW_NODE(m, "LessOrEqual", ahead, pith__replace_number(b, right));
    pith__replace_shape(inside, PITH_BOOL, 2, dims);
    if (s->left < 0) return inside;
    pith__value *behind =
        PITH_NEW_NODE(m, "GreaterOrEqual", ahead, pith__replace_number(b, -s->left));
    pith__replace_shape(behind, PITH_BOOL, 2, dims);
    return pith__replace_shape(PITH_NEW_NODE(m, "And", inside, behind), PITH_BOOL, 2, dims);
}

/* Whether the mask keeps a key: bool [batch, 1, 1, keys]; NULL: there is no mask. */
static pith__value *replace_kept(pith__replace *b, const pith__node *node, pith__value *k) {
    pith__new_nodes *m = &b->nodes;
    pith__value *mask = replace_int_mask(b, node), *kept;
    if (!mask) return NULL;
    const pith__dim dims[] = { mask->type.dims[0], 1, 1, k->type.dims[1] },
                    flat[] = { dims[0], dims[3] }, column[] = { dims[0], 1 };
    if (mask->type.rank == 1) {
        const int64_t one = 1;
        pith__value *lengths = pith__replace_shape(
            PITH_NEW_NODE(m, "Unsqueeze", mask, pith__replace_numbers(b, &one, 1)), PITH_I32, 2,
            column);
        pith__value *wide =
            pith__replace_shape(pith__new_node_cast(m, lengths, PITH_I64), PITH_I64, 2, column);
        kept = PITH_NEW_NODE(m, "Less", replace_count(b, k, 1), wide);
    } else {
        kept = pith__new_node_cast(m, mask, PITH_BOOL);
    }
    pith__replace_shape(kept, PITH_BOOL, 2, flat);
    const int64_t axes[] = { 1, 2 };
    return pith__replace_shape(
        PITH_NEW_NODE(m, "Unsqueeze", kept, pith__replace_numbers(b, axes, 2)), PITH_BOOL, 4, dims);
}

static pith__value *replace_choice(pith__replace *b, pith__value *which, float number) {
    pith__value *y = PITH_NEW_NODE(&b->nodes, "Where", which, pith__new_node_f32(&b->nodes, 0.0f),
                                   pith__new_node_f32(&b->nodes, number));
    return which ? pith__replace_shape(y, PITH_F32, which->type.rank, which->type.dims) : y;
}

/* What mask and window together add to a score: f32 [batch, 1, queries, keys], or [1, 1, queries,
 * keys] without a mask. Layers with the same mask, window and numbers share it; the key has all
 * three numbers by their bits. */
static pith__value *replace_score_bias(pith__replace *b, const pith__node *node, pith__value *q,
                                       pith__value *k) {
    const replace_skips s = replace_skips_of(node);
    pith__new_nodes *m = &b->nodes;
    pith__value *mask = pith__node_input(node, 4);
    pith__replace_key key = { mask,
                              { MEMO_BIAS, s.left, s.right, q->type.dims[1], k->type.dims[1] } };
    memcpy(&key.numbers[5], &s.masked, sizeof s.masked);
    memcpy((char *)&key.numbers[5] + sizeof s.masked, &s.outside, sizeof s.outside);
    memcpy(&key.numbers[6], &s.both, sizeof s.both);
    pith__value *made = pith__replace_recall(b, &key),
                *inside = made ? NULL : replace_inside(b, q, k, &s);
    if (made || !inside) return made;
    pith__value *kept = replace_kept(b, node, k);
    const pith__dim dims[] = { kept ? kept->type.dims[0] : 1, 1, q->type.dims[1], k->type.dims[1] };
    if (kept) {
        /* Where the window lets a key through, what the mask adds; else one of the other two. */
        pith__value *outside = PITH_NEW_NODE(m, "Where", kept, pith__new_node_f32(m, s.outside),
                                             pith__new_node_f32(m, s.both));
        pith__replace_shape(outside, PITH_F32, 4, kept->type.dims);
        made = PITH_NEW_NODE(m, "Where", inside, replace_choice(b, kept, s.masked), outside);
    } else {
        const int64_t axes[] = { 0, 1 };
        made = PITH_NEW_NODE(m, "Unsqueeze", replace_choice(b, inside, s.outside),
                             pith__replace_numbers(b, axes, 2));
    }
    return pith__replace_remember(b, &key, pith__replace_shape(made, PITH_F32, 4, dims));
}

/* ---- the operators ---- */

/* The greatest place of a key of each text, i32 [batch], and the number of keys, i32.
 * GroupQueryAttention wants both for its cache of keys. There is no cache here, so every text has
 * all keys, and what is padding is told by the number that is added to the scores alone. */
static void replace_lengths(pith__replace *b, pith__value *k, pith__value **last,
                            pith__value **total) {
    pith__new_nodes *m = &b->nodes;
    const pith__dim batch = k ? k->type.dims[0] : 0;
    const pith__replace_key lengths = { NULL, { MEMO_LENGTHS, batch, k ? k->type.dims[1] : 0 } },
                            count = { NULL, { MEMO_TOTAL, batch, lengths.numbers[2] } };
    *last = pith__replace_recall(b, &lengths);
    *total = pith__replace_recall(b, &count);
    if (*last && *total) return;
    pith__value *keys = pith__replace_size(b, k, 1);
    *total = pith__replace_remember(
        b, &count, pith__replace_shape(pith__new_node_cast(m, keys, PITH_I32), PITH_I32, 0, NULL));
    pith__value *less = pith__replace_shape(
        PITH_NEW_NODE(m, "Sub", keys, pith__replace_number(b, 1)), PITH_I64, 0, NULL);
    pith__value *each = pith__replace_shape(
        PITH_NEW_NODE(m, "Expand", less, pith__replace_sizes(b, k, 0, 1)), PITH_I64, 1, &batch);
    *last = pith__replace_remember(
        b, &lengths,
        pith__replace_shape(pith__new_node_cast(m, each, PITH_I32), PITH_I32, 1, &batch));
}

/* y with zeros for a query that sees no key: one of padding whose window holds nothing else. */
static pith__value *replace_zero_if_none(pith__replace *b, pith__value *bias, pith__value *y) {
    pith__new_nodes *m = &b->nodes;
    const pith__replace_key key = { bias, { MEMO_SEES } };
    pith__value *sees = pith__replace_recall(b, &key);
    if (!sees && bias) {
        const pith__dim dims[] = { bias->type.dims[0], 1, bias->type.dims[2], 1 },
                        rows[] = { dims[0], dims[2], 1 };
        const int64_t last = -1, one = 1;
        pith__value *most = PITH_NEW_NODE(m, "ReduceMax", bias, pith__replace_numbers(b, &last, 1));
        pith__replace_shape(most, PITH_F32, 4, dims);
        pith__value *some = PITH_NEW_NODE(m, "Greater", most, pith__new_node_f32(m, PITH_ABSORBS));
        some = pith__new_node_cast(m, pith__replace_shape(some, PITH_BOOL, 4, dims), PITH_F32);
        sees = PITH_NEW_NODE(m, "Squeeze", pith__replace_shape(some, PITH_F32, 4, dims),
                             pith__replace_numbers(b, &one, 1));
        sees = pith__replace_remember(b, &key, pith__replace_shape(sees, PITH_F32, 3, rows));
    }
    return PITH_REPLACE(b, "Mul", y, sees);
}

/* With all that is masked as a number that is added to the scores, *made. What the graph adds
 * itself comes on top. MultiHeadAttention has no window, and GroupQueryAttention no mask of keys,
 * so both get it this way. */
static pith__value *replace_spread(pith__replace *b, const pith__node *node, pith__value **made) {
    pith__value *q = replace_own_rows(b, node, 0), *k = replace_own_rows(b, node, 1),
                *v = replace_own_rows(b, node, 2), *given = pith__node_input(node, 3), *bias = NULL,
                *y, *last, *total;
    if (!b->nodes.status) bias = replace_score_bias(b, node, q, k);
    *made = bias;
    if (bias && given) {
        const pith__dim dims[] = { bias->type.dims[0], given->type.dims[1], bias->type.dims[2],
                                   bias->type.dims[3] };
        bias = pith__replace_shape(PITH_NEW_NODE(&b->nodes, "Add", given, bias), PITH_F32, 4, dims);
    }
    if (!replace_is_shared(node)) {
        pith__value *inputs[] = { q, k, v, NULL, NULL, bias };
        return pith__replace_contrib(b, "MultiHeadAttention", inputs, 6, 1);
    }
    replace_lengths(b, k, &last, &total);
    pith__value *inputs[] = { q, k, v, NULL, NULL, last, total, NULL, NULL, NULL, bias };
    y = pith__replace_contrib(b, "GroupQueryAttention", inputs, 11, 1);
    pith__new_node_set_int(&b->nodes, y, "kv_num_heads", pith__node_int(node, "kv_heads", 0));
    pith__new_node_set_int(&b->nodes, y, "causal", 0);
    return y;
}

/* As the padding mask and the bias that com.microsoft's operators have; absent inputs at the end of
 * their lists are left out. Attention takes one x and the joined weights of its three projections,
 * if that is what the node is made of. */
static pith__value *replace_masked(pith__replace *b, pith__node *node) {
    replace_projection p;
    pith__value *mask = replace_int_mask(b, node), *bias = pith__node_input(node, 3), *y;
    if (replace_projection_of(&p, node)) {
        pith__value *inputs[] = { p.x, p.weight, p.bias, mask, NULL, bias };
        int count = p.bias ? 3 : 2;
        if (mask) count = 4;
        if (bias) count = 6;
        y = pith__replace_contrib(b, "Attention", inputs, count, 1);
    } else {
        pith__value *inputs[] = { replace_own_rows(b, node, 0),
                                  replace_own_rows(b, node, 1),
                                  replace_own_rows(b, node, 2),
                                  NULL,
                                  mask,
                                  bias };
        int count = mask ? 5 : 3;
        if (bias) count = 6;
        y = pith__replace_contrib(b, "MultiHeadAttention", inputs, count, 1);
    }
    if (mask) pith__replace_set_float(b, y, "mask_filter_value", replace_filter(node));
    if (pith__node_int(node, "window_right", -1) == 0)
        pith__new_node_set_int(&b->nodes, y, "unidirectional", 1);
    return y;
}

pith__value *pith__replace_attention(pith__replace *b, pith__node *node) {
    pith__value *bias = NULL, *y = replace_is_shared(node) || replace_is_window(node)
                                       ? replace_spread(b, node, &bias)
                                       : replace_masked(b, node);
    pith__new_node_set_int(&b->nodes, y, "num_heads", pith__node_int(node, "heads", 0));
    pith__replace_set_float(b, y, "scale", pith__node_float(node, "scale", 1.0f));
    const bool zero = pith__node_int(node, "none_left", PITH_NONE_LEFT_MEAN) == PITH_NONE_LEFT_ZERO;
    return bias && zero ? replace_zero_if_none(b, bias, y) : y;
}

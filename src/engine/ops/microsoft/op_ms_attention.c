/* op_ms_attention.c - com.microsoft's Attention, MultiHeadAttention, PackedAttention and
 * PackedMultiHeadAttention, written out at load.
 *
 * The forms that encoders use become pith.Attention. Past or present keys, or scores as an output,
 * need Attention of ai.onnx. Masks of keys by length, by start and end, by position or by pair of
 * positions become numbers that are added to scores (pith.ScoreMask), where pith.Attention does not
 * take them itself. Source: ONNX Runtime's ContribOperators.md. */
#include <float.h>
#include <math.h>

#include "engine/kernels/attention.h"
#include "engine/ops/shared/compose_ops.h"

/* What is known of axis `axis`, as a number, from the type, the declaration or constant operands of
 * the producer; 0. */
static int64_t ms_attention_width_of(const pith__value *v, int axis, int depth) {
    const pith__type *types[] = { &v->type, v->hint };
    for (int i = 0; i < 2; i++) {
        if (types[i] && types[i]->rank > axis && types[i]->dims[axis] > 0)
            return types[i]->dims[axis];
    }
    const pith__node *p = v->producer;
    if (p && depth < 4 && pith__str_is(p->op_type, "Cast") && pith__node_input(p, 0))
        return ms_attention_width_of(pith__node_input(p, 0), axis, depth + 1);
    if (p && depth < 4) {
        for (int i = 0; i < p->input_count && i < 2; i++) {
            bool sum = pith__str_is(p->op_type, "Add"),
                 product = i == 1 && pith__str_is(p->op_type, "MatMul");
            const pith__value *x = pith__node_input(p, i);
            if (!x || !(sum || product)) continue;
            const pith_tensor *t = x->type.data;
            if (t && t->rank > 0) return t->dims[t->rank - 1];
            if (sum && !t && ms_attention_width_of(x, axis, depth + 1))
                return ms_attention_width_of(x, axis, depth + 1);
        }
    }
    return 0;
}

/* ---- pith.Attention ---- */

static pith__value *ms_attention_with_sizes(pith__value *v, int64_t heads, const int64_t columns[3],
                                            int64_t size, int64_t v_size, float scale,
                                            bool causal) {
    v = pith__with_int(pith__with_int(v, "heads", heads), "kv_heads", heads);
    v = pith__with_int(pith__with_int(v, "size", size), "v_size", v_size);
    v = pith__with_int(v, "window_right", causal ? 0 : -1);
    v = pith__with_float(v, "scale", scale != 0 ? scale : (float)(1.0 / sqrt((double)size)));
    return v && !pith__node_set_ints(v->producer, "columns", columns, 3) ? v : NULL;
}

/* Masked keys have a number added to their scores, so a query with none but those attends to them.
 */
static pith__value *ms_attention_with_skipped(pith__value *v, float filter) {
    const float skipped[3] = { filter, -FLT_MAX, -FLT_MAX };
    v = pith__with_int(v, "none_left", PITH_NONE_LEFT_SCORES);
    return v && !pith__node_set_floats(v->producer, "skipped", skipped, 3) ? v : NULL;
}

/* Numbers to be added to scores, from a mask of any form and a bias that may be NULL. */
static pith__value *ms_attention_score_mask(pith__node *node, pith__value *mask, pith__value *q,
                                            pith__value *k, pith__value *past, pith__value *bias) {
    pith__value *y =
        pith__compose(node, "pith", "ScoreMask", (pith__value *[]){ mask, q, k, past }, 4, 1);
    y = pith__with_float(y, "filter", pith__node_float(node, "mask_filter_value", -10000.0f));
    return bias ? pith__compose2(node, "Add", y, pith__compose_cast(node, bias, PITH_F32)) : y;
}

/* ---- Attention, PackedAttention ---- */

/* Sizes of q, k and v in the weight's columns. */
static pith_status ms_attention_split_sizes(const pith__node *node, int64_t heads, int64_t sizes[3],
                                            pith_error *err) {
    int64_t columns = ms_attention_width_of(pith__node_input(node, 1), 1, 0);
    if (heads < 1 || columns < 1)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the weight's size is not known, or there are no heads");
    for (int i = 0; i < 3; i++) sizes[i] = columns / 3;
    size_t count;
    const int64_t *given = pith__node_ints(node, "qkv_hidden_sizes", &count);
    if (given && count == 3) {
        for (size_t i = 0; i < 3; i++) sizes[i] = given[i];
    }
    for (int i = 0; i < 3; i++) {
        if (sizes[i] < heads || sizes[i] % heads || sizes[i] > columns)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "the weight's columns do not divide into heads");
    }
    if (sizes[0] != sizes[1])
        return pith__fail(err, PITH_ERR_FORMAT, "queries and keys differ in size");
    return PITH_OK;
}

static pith__value *ms_attention_half_of(pith__node *at, pith__value *past, int64_t which) {
    pith__value *v = pith__compose_list(at, "Gather", past, &which, 1);
    return pith__compose_list(at, "Squeeze", v, (int64_t[]){ 0 }, 1);
}

/* With past or present keys and values, which are one tensor [2, batch, heads, keys, size]. */
static pith_status ms_attention_with_past(pith__node *node, pith__value *rows, int64_t heads,
                                          const int64_t sizes[3], pith_error *err) {
    enum { MASK = 3, PAST, BIAS };
    pith__value *past = pith__node_input(node, PAST), *mask = pith__node_input(node, MASK),
                *bias = pith__node_input(node, BIAS), *parts[3], *halves[2] = { NULL, NULL };
    pith__value *counts = pith__graph_add_i64s(node->graph, PITH_STR(""), sizes, 3);
    pith__value *split = pith__compose(node, "", "Split", (pith__value *[]){ rows, counts }, 2, 3);
    if (!counts || !pith__with_int(split, "axis", -1)) return pith__fail_memory(err, 0);
    for (int i = 0; i < 3; i++) parts[i] = pith__node_output(split->producer, i);
    if (past) {
        for (int i = 0; i < 2; i++) {
            halves[i] = ms_attention_half_of(node, past, i);
            if (!halves[i]) return pith__fail_memory(err, 0);
        }
    }
    if (mask) bias = ms_attention_score_mask(node, mask, parts[0], parts[1], halves[0], bias);
    if (mask && !bias) return pith__fail_memory(err, 0);
    pith__value *y = pith__compose(
        node, "", "Attention",
        (pith__value *[]){ parts[0], parts[1], parts[2], bias, halves[0], halves[1] }, 6, 3);
    y = pith__with_int(pith__with_int(y, "q_num_heads", heads), "kv_num_heads", heads);
    y = pith__with_int(y, "is_causal", pith__node_int(node, "unidirectional", 0) != 0);
    float scale = pith__node_float(node, "scale", 0.0f);
    if (scale != 0) y = pith__with_float(y, "scale", scale);
    if (!y) return pith__fail_memory(err, 0);
    if (pith__compose_wanted(node, 1)) {
        pith__value *k = pith__compose_list(node, "Unsqueeze", pith__node_output(y->producer, 1),
                                            (int64_t[]){ 0 }, 1);
        pith__value *v = pith__compose_list(node, "Unsqueeze", pith__node_output(y->producer, 2),
                                            (int64_t[]){ 0 }, 1);
        PITH_TRY(pith__compose_give(
            node, 1, pith__with_int(pith__compose2(node, "Concat", k, v), "axis", 0), err));
    }
    return pith__compose_become(node, y, err);
}

/* x times the weights plus the bias. */
static pith__value *ms_attention_projected(pith__node *node, pith__value *bias) {
    pith__value *rows =
        pith__compose2(node, "MatMul", pith__node_input(node, 0), pith__node_input(node, 1));
    return bias ? pith__compose2(node, "Add", rows, bias) : rows;
}

static int ms_attention_dtype_of(const pith__value *v) {
    if (v->type.dtype) return v->type.dtype;
    return v->hint ? v->hint->dtype : PITH_F32;
}

/* pith.Attention of inputs (q, k, v, bias, key mask, offsets), computed in f32 whatever they are.
 */
static pith__value *ms_attention_attention(pith__node *node, pith__value *in[6], int dtype,
                                           int64_t heads, const int64_t columns[3], int64_t size,
                                           int64_t v_size) {
    bool wide = dtype != PITH_F32;
    pith__value *own[6];
    for (int i = 0; i < 6; i++) {
        own[i] = in[i];
        if (in[i] && i < 4 && wide) {
            bool again = i > 0 && in[i] == in[0];
            own[i] = again ? own[0] : pith__compose_cast(node, in[i], PITH_F32);
        }
        if (in[i] && !own[i]) return NULL;
    }
    pith__value *y = pith__compose(node, "pith", "Attention", own, 6, 1);
    y = ms_attention_with_sizes(y, heads, columns, size, v_size,
                                pith__node_float(node, "scale", 0.0f),
                                pith__node_int(node, "unidirectional", 0) != 0);
    y = ms_attention_with_skipped(y, pith__node_float(node, "mask_filter_value", -10000.0f));
    return wide ? pith__compose_cast(node, y, dtype) : y;
}

/* One matmul gives query, key and value, which are then columns of one value. A mask of rank 3 or 4
 * becomes numbers to add, since pith.Attention takes masks of keys only. */
static pith_status ms_attention_upgrade_attention(pith__node *node, pith_error *err) {
    enum { X, WEIGHT, INPUT_BIAS, MASK, PAST, BIAS, PAST_LENGTH };
    PITH_TRY(pith__compose_require(node, 1u << X | 1u << WEIGHT, 2, err));
    PITH_TRY(pith__compose_refuse(node, PAST_LENGTH, err));
    if (pith__node_int(node, "do_rotary", 0))
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "do_rotary is not supported");
    int64_t heads = pith__node_int(node, "num_heads", 0), sizes[3];
    PITH_TRY(ms_attention_split_sizes(node, heads, sizes, err));
    pith__value *rows = ms_attention_projected(node, pith__node_input(node, INPUT_BIAS)),
                *mask = pith__node_input(node, MASK), *bias = pith__node_input(node, BIAS);
    if (!rows) return pith__fail_memory(err, 0);
    if (pith__node_input(node, PAST) || pith__compose_wanted(node, 1))
        return ms_attention_with_past(node, rows, heads, sizes, err);
    if (mask && pith__compose_rank(mask) > 2) {
        bias = ms_attention_score_mask(node, mask, rows, rows, NULL, bias);
        mask = NULL;
        if (!bias) return pith__fail_memory(err, 0);
    }
    const int64_t columns[3] = { 0, sizes[0], sizes[0] + sizes[1] };
    pith__value *in[6] = { rows, rows, rows, bias, mask, NULL };
    pith__value *y =
        ms_attention_attention(node, in, ms_attention_dtype_of(pith__node_input(node, WEIGHT)),
                               heads, columns, sizes[0] / heads, sizes[2] / heads);
    return pith__compose_become(node, y, err);
}

/* Tokens without padding: the running sums of the lengths are the offsets of pith.Attention, and
 * the table of token places is not needed. */
static pith_status ms_attention_upgrade_packed(pith__node *node, pith_error *err) {
    enum { X, WEIGHT, INPUT_BIAS, TOKENS, CUMULATIVE, BIAS };
    PITH_TRY(pith__compose_require(node, 1u << X | 1u << WEIGHT | 1u << CUMULATIVE, 1, err));
    int64_t heads = pith__node_int(node, "num_heads", 0), sizes[3];
    PITH_TRY(ms_attention_split_sizes(node, heads, sizes, err));
    pith__value *rows = ms_attention_projected(node, pith__node_input(node, INPUT_BIAS));
    pith__value *offsets = pith__compose_cast(node, pith__node_input(node, CUMULATIVE), PITH_I64);
    if (!rows || !offsets) return pith__fail_memory(err, 0);
    const int64_t columns[3] = { 0, sizes[0], sizes[0] + sizes[1] };
    pith__value *in[6] = { rows, rows, rows, pith__node_input(node, BIAS), NULL, offsets };
    pith__value *y =
        ms_attention_attention(node, in, ms_attention_dtype_of(pith__node_input(node, WEIGHT)),
                               heads, columns, sizes[0] / heads, sizes[2] / heads);
    return pith__compose_become(node, y, err);
}

/* ---- MultiHeadAttention, PackedMultiHeadAttention ---- */

/* Adds to `count` of q, k and v their parts of a bias, whose first two are as long as a row of q.
 */
static pith_status ms_attention_add_bias(pith__node *node, pith__value *v[3], pith__value *bias,
                                         int count, int axis, pith_error *err) {
    if (!bias) return PITH_OK;
    pith__graph *graph = node->graph;
    pith__value *first = pith__compose_list(node, "Gather", pith__compose1(node, "Shape", v[0]),
                                            (int64_t[]){ axis }, 1);
    pith__value *ends[4] = { pith__graph_add_i64s(graph, PITH_STR(""), (int64_t[]){ 0 }, 1), first,
                             first ? pith__compose2(node, "Add", first, first) : NULL,
                             pith__graph_add_i64s(graph, PITH_STR(""), (int64_t[]){ INT64_MAX },
                                                  1) };
    for (int i = 0; i < count; i++) {
        pith__value *part = ends[i] && ends[i + 1]
                                ? pith__compose3(node, "Slice", bias, ends[i], ends[i + 1])
                                : NULL;
        v[i] = part ? pith__compose2(node, "Add", v[i], part) : NULL;
        if (!v[i]) return pith__fail_memory(err, 0);
    }
    return PITH_OK;
}

/* [batch, keys, heads, count, size] as `count` tensors [batch, keys, heads * size]. */
static pith_status ms_attention_unpack(pith__node *node, pith__value *packed, int count,
                                       pith__value **parts, pith_error *err) {
    for (int i = 0; i < count; i++) {
        pith__value *v = pith__compose_list(node, "Gather", packed, (int64_t[]){ i }, 1);
        parts[i] = pith__compose_list(node, "Reshape", pith__with_int(v, "axis", 3),
                                      (int64_t[]){ 0, 0, -1 }, 3);
        if (!parts[i]) return pith__fail_memory(err, 0);
    }
    return PITH_OK;
}

enum { QUERY, KEY, VALUE, HEADS_BIAS, KEY_MASK, SCORE_BIAS, PAST_KEY, PAST_VALUE };

/* A mask of keys by position in the form that exporters write, any other as pith.ScoreMask. */
static pith__value *ms_attention_heads_mask(pith__node *node, pith__value *const v[3]) {
    pith__value *keys = pith__node_input(node, KEY_MASK),
                *bias = pith__node_input(node, SCORE_BIAS);
    if (pith__compose_rank(keys) != 2)
        return ms_attention_score_mask(node, keys, v[0], v[1], pith__node_input(node, PAST_KEY),
                                       bias);
    pith__value *wide = pith__compose_list(
        node, "Unsqueeze", pith__compose_cast(node, keys, PITH_BOOL), (int64_t[]){ 1, 2 }, 2);
    pith__value *kept = pith__graph_add_f32(node->graph, PITH_STR(""), 0);
    pith__value *none = pith__graph_add_f32(node->graph, PITH_STR(""),
                                            pith__node_float(node, "mask_filter_value", -10000.0f));
    pith__value *added = pith__compose3(node, "Where", wide, kept, none);
    return bias ? pith__compose2(node, "Add", added, pith__compose_cast(node, bias, PITH_F32))
                : added;
}

/* Becomes Attention of ai.onnx. A missing key or value means that the input before it holds
 * several, one after another per head, and is unpacked. */
static pith_status ms_attention_upgrade_heads(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 1u << QUERY, 4, err));
    for (int i = PAST_VALUE + 1; i < node->input_count; i++)
        PITH_TRY(pith__compose_refuse(node, i, err));
    int64_t heads = pith__node_int(node, "num_heads", 0);
    if (heads < 1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "attribute num_heads is %lld", (long long)heads);
    pith__value *v[3] = { pith__node_input(node, QUERY), pith__node_input(node, KEY),
                          pith__node_input(node, VALUE) };
    /* keys and values in heads, their bias added */
    bool ready = v[1] && pith__compose_rank(v[1]) == 4;
    if (!v[1]) PITH_TRY(ms_attention_unpack(node, v[0], 3, v, err));
    if (!v[2]) PITH_TRY(ms_attention_unpack(node, v[1], 2, v + 1, err));
    PITH_TRY(
        ms_attention_add_bias(node, v, pith__node_input(node, HEADS_BIAS), ready ? 1 : 3, 2, err));
    pith__value *mask = pith__node_input(node, KEY_MASK) ? ms_attention_heads_mask(node, v)
                                                         : pith__node_input(node, SCORE_BIAS);
    if (!mask && pith__node_input(node, KEY_MASK)) return pith__fail_memory(err, 0);
    pith__value *in[] = {
        v[0], v[1], v[2], mask, pith__node_input(node, PAST_KEY), pith__node_input(node, PAST_VALUE)
    };
    pith__value *y = pith__compose(node, "", "Attention", in, 6, node->output_count);
    y = pith__with_int(pith__with_int(y, "q_num_heads", heads), "kv_num_heads", heads);
    y = pith__with_int(y, "is_causal", pith__node_int(node, "unidirectional", 0) != 0);
    y = pith__with_int(y, "qk_matmul_output_mode", 2);
    float scale = pith__node_float(node, "scale", 0.0f);
    if (scale != 0) y = pith__with_float(y, "scale", scale);
    if (!y) return pith__fail_memory(err, 0);
    for (int i = 1; i < node->output_count; i++) {
        if (pith__node_output(node, i))
            PITH_TRY(pith__compose_give(node, i, pith__node_output(y->producer, i), err));
    }
    return pith__compose_become(node, y, err);
}

/* As upgrade_packed, with projected rows. Packed ones interleave query, key and value per head and
 * are turned, so that each is a range of columns. The size of a head must be known, because the
 * columns are attributes. */
static pith_status ms_attention_upgrade_packed_heads(pith__node *node, pith_error *err) {
    enum { TOKENS = 4, CUMULATIVE, BIAS };
    PITH_TRY(pith__compose_require(node, 1u << QUERY | 1u << CUMULATIVE, 1, err));
    pith__value *v[3] = { pith__node_input(node, QUERY), pith__node_input(node, KEY),
                          pith__node_input(node, VALUE) };
    int64_t heads = pith__node_int(node, "num_heads", 0), columns[3] = { 0, 0, 0 };
    bool packed = !v[1] || !v[2];
    int dtype = ms_attention_dtype_of(v[0]);
    int64_t size = 0, v_size = 0;
    if (packed) {
        size = v_size = ms_attention_width_of(v[0], 3, 0);
    } else if (heads > 0) {
        size = ms_attention_width_of(v[0], 1, 0) / heads;
        v_size = ms_attention_width_of(v[2], 1, 0) / heads;
    }
    if (heads < 1 || size < 1 || v_size < 1 || size > INT32_MAX / heads)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "the size of a head is not known");
    if (packed) { /* [tokens, heads, 3, size] */
        pith__value *rows = pith__compose_turn(node, v[0], (int64_t[]){ 0, 2, 1, 3 }, 4);
        rows = pith__compose_list(node, "Reshape", rows, (int64_t[]){ 0, 3 * heads * size }, 2);
        pith__value *bias = pith__node_input(node, HEADS_BIAS);
        if (bias) rows = pith__compose2(node, "Add", rows, bias);
        for (int i = 0; i < 3; i++) v[i] = rows, columns[i] = i * heads * size;
        if (!rows) return pith__fail_memory(err, 0);
    } else {
        PITH_TRY(ms_attention_add_bias(node, v, pith__node_input(node, HEADS_BIAS), 3, 1, err));
    }
    pith__value *offsets = pith__compose_cast(node, pith__node_input(node, CUMULATIVE), PITH_I64);
    if (!offsets) return pith__fail_memory(err, 0);
    pith__value *in[6] = { v[0], v[1], v[2], pith__node_input(node, BIAS), NULL, offsets };
    return pith__compose_become(
        node, ms_attention_attention(node, in, dtype, heads, columns, size, v_size), err);
}

PITH_OP_COMPOSED(Attention_ms, "com.microsoft", "Attention", 2, 7, 2,
                 ms_attention_upgrade_attention,
                 "no do_rotary, no buffer shared by past and present",
                 .attrs = "do_rotary bool; mask_filter_value float; num_heads int! 1..; "
                          "past_present_share_buffer int 0; qkv_hidden_sizes ints 0..; "
                          "rotary_embedding_dim int 0..; scale float; unidirectional bool = 0")
PITH_OP_COMPOSED(MultiHeadAttention_ms, "com.microsoft", "MultiHeadAttention", 1, 10, 4,
                 ms_attention_upgrade_heads, "no buffer shared by past and present",
                 .attrs = "mask_filter_value float; num_heads int! 1..; scale float; "
                          "unidirectional bool = 0")
PITH_OP_COMPOSED(PackedAttention_ms, "com.microsoft", "PackedAttention", 5, 6, 1,
                 ms_attention_upgrade_packed, NULL,
                 .attrs = "num_heads int! 1..; qkv_hidden_sizes ints 0..; scale float")
PITH_OP_COMPOSED(PackedMultiHeadAttention_ms, "com.microsoft", "PackedMultiHeadAttention", 6, 7, 1,
                 ms_attention_upgrade_packed_heads, NULL,
                 .attrs = "mask_filter_value float; num_heads int! 1..; scale float")

/* op_attention.c - Attention of ai.onnx, to the letter: softmax(scale * q k^T (softcap) + mask) v
 * per batch and head.
 *
 * This form does everything the standard names: masks of any broadcast shape, caches of keys and
 * values, scores as an output. The part that encoders use becomes pith.Attention, which needs no
 * matrix of scores. Inputs are [batch, heads, sequence, size] or [batch, sequence, heads * size];
 * several query heads may share a key head. If query or value is float64, everything is computed in
 * float64. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/plain_attention.h"
#include "engine/ops/shared/widen_types.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS };

/* batch, heads, rows, columns of an input. */
typedef struct shape {
    pith__dim batch, heads, rows, size;
} shape;

/* Sizes of q, k or v in either form. A row of rank 3 holds its heads one after another, so it must
 * divide into them. */
static pith_status attention_shape_of(pith__infer *c, int input, const char *attribute, shape *s) {
    const pith__type *t = c->in[input];
    *s = (shape){ PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN };
    if (t->rank < 0) return PITH_OK;
    if (t->rank == 4) {
        *s = (shape){ t->dims[0], t->dims[1], t->dims[2], t->dims[3] };
        return PITH_OK;
    }
    int64_t heads = pith__node_int(c->node, attribute, 0);
    if (t->rank != 3 || heads < 1)
        return pith__op_fail(c, "input %d has rank %d; %s is %lld", input, t->rank, attribute,
                             (long long)heads);
    *s = (shape){ t->dims[0], heads, t->dims[1],
                  pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, t->dims[2], heads) };
    if (pith__dim_known(t->dims[2]) && t->dims[2] % heads) {
        return pith__op_fail(
            c, "input %d has rows of %lld numbers, which do not divide into %lld heads", input,
            (long long)t->dims[2], (long long)heads);
    }
    return PITH_OK;
}

static bool attention_differ(pith__dim a, pith__dim b) {
    return pith__dim_known(a) && pith__dim_known(b) && a != b;
}

static pith_status attention_check_precision(pith__infer *c) {
    int64_t precision = pith__node_int(c->node, "softmax_precision", PITH_F32);
    if (precision == PITH_F32 || precision == PITH_F16 || precision == PITH_F64 ||
        precision == PITH_BF16)
        return PITH_OK;
    return pith__op_fail(c, "softmax_precision is %lld, not 1, 10, 11 or 16", (long long)precision);
}

/* The past is like the keys and values that it is joined with; *rows: how many it has. */
static pith_status attention_check_past(pith__infer *c, const shape *q, const shape *k,
                                        const shape *v, pith__dim *rows) {
    *rows = 0;
    for (int i = PAST_K; i <= PAST_V && i < c->in_count; i++) {
        const pith__type *t = c->in[i];
        if (!t) continue;
        if (t->rank >= 0 && t->rank != 4)
            return pith__op_fail(c, "input %d has rank %d, expected 4", i, t->rank);
        if (!pith__has_input(c, PAST_K) || !pith__has_input(c, PAST_V))
            return pith__op_fail(c, "one of past_key and past_value is missing");
        if (t->rank < 0)
            *rows = PITH_DIM_UNKNOWN;
        else if (attention_differ(t->dims[0], q->batch) || attention_differ(t->dims[1], k->heads) ||
                 attention_differ(t->dims[3], i == PAST_K ? k->size : v->size) ||
                 (i == PAST_V && attention_differ(t->dims[2], *rows)))
            return pith__op_fail(c, "the shape of input %d does not fit the query, key and value",
                                 i);
        else
            *rows = t->dims[2];
    }
    return PITH_OK;
}

/* The mask broadcasts to [batch, heads, rows, keys] from the right. Its last axis may be shorter
 * than the keys: the rest is masked. It is never longer. */
static pith_status attention_check_mask(pith__infer *c, const shape *q, pith__dim total) {
    if (!pith__has_input(c, MASK) || c->in[MASK]->rank < 0) return PITH_OK;
    const pith__type *m = c->in[MASK];
    pith__dim want[4] = { q->batch, q->heads, q->rows, total };
    bool half = m->dtype == PITH_F16 || m->dtype == PITH_BF16;
    if (m->dtype && m->dtype != PITH_BOOL && !half && !pith__convert_known(m->dtype, PITH_F64))
        return pith__fail_dtype(c->err, m->dtype);
    if (m->rank > 4 || m->rank < 1) return pith__op_fail(c, "mask has rank %d", m->rank);
    for (int i = 0; i < m->rank; i++) {
        pith__dim d = m->dims[i], w = want[4 - m->rank + i];
        bool last = i == m->rank - 1;
        if (last ? pith__dim_known(d) && pith__dim_known(w) && d > w
                 : d != 1 && attention_differ(d, w))
            return pith__op_fail(c, "mask has size %lld at axis %d, scores %lld", (long long)d, i,
                                 (long long)w);
    }
    return PITH_OK;
}

static pith_status attention_check_lengths(pith__infer *c, const shape *q) {
    const pith__type *t = pith__has_input(c, LENGTHS) ? c->in[LENGTHS] : NULL;
    if (!t || ((!t->dtype || t->dtype == PITH_I64) &&
               (t->rank < 0 || (t->rank == 1 && !attention_differ(t->dims[0], q->batch)))))
        return PITH_OK;
    return pith__op_fail(c, "nonpad_kv_seqlen is not int64 [batch]");
}

/* Outputs: the result in the form of the query, the keys and values with the past before them, and
 * the scores, whose place in the computation the attribute qk_matmul_output_mode chooses. */
static pith_status attention_infer(pith__infer *c) {
    shape q, k, v;
    pith__dim past;
    PITH_TRY(attention_check_precision(c));
    PITH_TRY(pith__infer_equal_dtypes(c, Q, K));
    for (int i = PAST_K; i <= PAST_V; i++) { /* like the keys and values that they are joined
                                                with */
        int dtype = pith__has_input(c, i) ? c->in[i]->dtype : PITH_UNDEFINED,
            own = c->in[i - PAST_K + K]->dtype;
        if (dtype && own && pith__compute_dtype(dtype) != pith__compute_dtype(own))
            return pith__fail_dtype(c->err, dtype);
    }
    PITH_TRY(attention_shape_of(c, Q, "q_num_heads", &q));
    PITH_TRY(attention_shape_of(c, K, "kv_num_heads", &k));
    PITH_TRY(attention_shape_of(c, V, "kv_num_heads", &v));
    if (attention_differ(q.batch, k.batch) || attention_differ(q.batch, v.batch) ||
        attention_differ(k.heads, v.heads) || attention_differ(k.rows, v.rows) ||
        attention_differ(q.size, k.size) ||
        (pith__dim_known(q.heads) && pith__dim_known(k.heads) &&
         (k.heads < 1 || q.heads % k.heads))) {
        return pith__op_fail(c, "the shapes of query, key and value do not fit each other");
    }
    PITH_TRY(attention_check_past(c, &q, &k, &v, &past));
    pith__dim total = pith__dim_apply(c->dims, PITH_DIM_ADD, past, k.rows);
    PITH_TRY(attention_check_mask(c, &q, total));
    PITH_TRY(attention_check_lengths(c, &q));
    int dtype = c->in[Q]->dtype, rank = c->in[Q]->rank;
    if (rank == 3)
        pith__infer_set(c, 0, dtype, 3,
                        (pith__dim[]){ q.batch, q.rows,
                                       pith__dim_apply(c->dims, PITH_DIM_MUL, q.heads, v.size) });
    else
        pith__infer_set(c, 0, dtype, rank, (pith__dim[]){ q.batch, q.heads, q.rows, v.size });
    pith__infer_set(c, 1, dtype, 4, (pith__dim[]){ q.batch, k.heads, total, k.size });
    pith__infer_set(c, 2, c->in[V]->dtype, 4, (pith__dim[]){ q.batch, k.heads, total, v.size });
    pith__infer_set(c, 3, dtype, 4, (pith__dim[]){ q.batch, q.heads, q.rows, total });
    return PITH_OK;
}

static pith_status attention_prepare(pith__prepare *c) {
    pith__attend_kernels *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    c->state = s;
    return pith__attend_prepare(s, c, c->in[V]->dtype == PITH_F64 ? PITH_F64 : c->in[Q]->dtype);
}

/* Sizes and strides from the shapes of q, k and v. */
static pith__attend attention_sizes_of(const pith__attend_kernels *kernels, const int64_t *q,
                                       const int64_t *k, const int64_t *v, const int ranks[3],
                                       const pith__node *node, int64_t past) {
    pith__attend a = { .kernels = kernels,
                       .batch = q[0],
                       .past = past,
                       .left = -1,
                       .right = -1,
                       .masked = -INFINITY };
    a.heads = ranks[Q] == 4 ? q[1] : pith__node_int(node, "q_num_heads", 1);
    a.kv_heads = ranks[K] == 4 ? k[1] : pith__node_int(node, "kv_num_heads", 1);
    a.rows = q[ranks[Q] - 2];
    a.keys = k[ranks[K] - 2] + past;
    a.d = ranks[Q] == 4 ? q[3] : q[2] / a.heads;
    a.dv = ranks[V] == 4 ? v[3] : v[2] / a.kv_heads;
    pith__attend_strides(a.q_at, ranks[Q] == 4, a.heads, a.rows, a.d);
    pith__attend_strides(a.k_at, ranks[K] == 4, a.kv_heads, a.keys - past, a.d);
    pith__attend_strides(a.v_at, ranks[V] == 4, a.kv_heads, a.keys - past, a.dv);
    pith__attend_strides(a.y_at, ranks[Q] == 4, a.heads, a.rows, a.dv);
    return a;
}

/* The dtype that softmax_precision rounds to where that is less than what is computed in; 0: none.
 */
static int attention_precision(const pith__attend_kernels *s, const pith__node *node) {
    int precision = (int)pith__node_int(node, "softmax_precision", s->dtype);
    return precision == PITH_F64 || precision == s->dtype ? 0 : precision;
}

static pith_status attention_check_given_lengths(const pith__run *r, const pith__attend *a) {
    if (a->lengths) {
        for (int64_t b = 0; b < a->batch; b++) {
            if (a->lengths[b] < 0 || a->lengths[b] > a->keys)
                return pith__op_fail(r, "nonpad_kv_seqlen[%lld] is %lld, and there are %lld keys",
                                     (long long)b, (long long)a->lengths[b], (long long)a->keys);
        }
    }
    return PITH_OK;
}

static int64_t attention_round16(int64_t n) { return (n + 15) & ~(int64_t)15; }

/* Per worker what pith__attend asks for, and one copy of all keys and values, which a past is
 * joined with unless the outputs hold them. */
static pith_status attention_scratch(const pith__infer *c, const void *state, int threads,
                                     size_t *bytes) {
    const pith__type *q = c->in[Q], *k = c->in[K], *v = c->in[V];
    pith__attend a =
        attention_sizes_of(state, q->dims, k->dims, v->dims, (int[]){ q->rank, k->rank, v->rank },
                           c->node, pith__has_input(c, PAST_K) ? c->in[PAST_K]->dims[2] : 0);
    int64_t one = pith__attend_scratch(&a), cache;
    if (one < 0 || pith__mul_overflows((size_t)one, (size_t)threads, bytes) ||
        pith__mul_overflows(a.batch * a.kv_heads, a.keys, &cache) ||
        pith__mul_overflows(cache, (a.d + a.dv) * 8, &cache) ||
        pith__add_overflows(*bytes, (size_t)cache + 512, bytes)) {
        return pith__fail_memory(c->err, SIZE_MAX);
    }
    return pith__widen_scratch_to(c, a.kernels->dtype, 0, bytes);
}

/* Old and new keys (values) as [batch, heads, keys, size] in to. */
static void attention_join(char *to, const pith_tensor *past, const char *x, const int64_t at[3],
                           const pith__attend *a, int64_t size, size_t element) {
    size_t row = (size_t)size * element, before = (size_t)a->past * row;
    if (row) {
        for (int64_t i = 0; i < a->batch * a->kv_heads; i++) {
            int64_t b = i / a->kv_heads, h = i % a->kv_heads;
            char *own = to + (size_t)(i * a->keys) * row;
            if (before) memcpy(own, (const char *)past->data + (size_t)i * before, before);
            for (int64_t k = 0; k < a->keys - a->past; k++)
                memcpy(own + (size_t)(a->past + k) * row,
                       x + (size_t)(b * at[0] + h * at[1] + k * at[2]) * element, row);
        }
    }
}

/* Fills the description of the computation that plain_attention.h runs. Keys and values are read
 * where they lie; only a past, or an output that wants them, makes them one [batch, heads, keys,
 * size] array. */
static pith_status attention_run_plain(pith__run *r) {
    const pith__attend_kernels *s = r->state;
    const pith_tensor *q = r->in[Q], *k = r->in[K], *v = r->in[V],
                      *past = pith__has_input(r, PAST_K) ? r->in[PAST_K] : NULL;
    pith__attend a =
        attention_sizes_of(s, q->dims, k->dims, v->dims, (int[]){ q->rank, k->rank, v->rank },
                           r->node, past ? past->dims[2] : 0);
    a.q = q->data, a.k = k->data, a.v = v->data, a.y = r->out[0]->data;
    a.scale = pith__node_attr(r->node, "scale") ? (double)pith__node_float(r->node, "scale", 0)
                                                : 1.0 / sqrt((double)a.d);
    a.softcap = (double)pith__node_float(r->node, "softcap", 0.0f);
    a.causal = pith__node_int(r->node, "is_causal", 0) != 0;
    a.left = pith__node_int(r->node, "left_window_size", -1);
    a.right = pith__node_int(r->node, "right_window_size", -1);
    a.mode = pith__node_choice(r->node, "qk_matmul_output_mode", 0);
    a.precision = attention_precision(s, r->node);
    a.mask = pith__has_input(r, MASK) ? r->in[MASK] : NULL;
    a.lengths = pith__has_input(r, LENGTHS) ? r->in[LENGTHS]->data : NULL;
    a.at_end = a.lengths && !past;
    PITH_TRY(attention_check_given_lengths(r, &a));
    if (r->out_count > 3 && r->out[3]) a.scores = r->out[3]->data;
    char *rest = r->scratch;
    size_t element = s->product.element;
    bool keep_k = r->out_count > 1 && r->out[1], keep_v = r->out_count > 2 && r->out[2];
    if (past || keep_k || keep_v) {
        char *key = keep_k ? r->out[1]->data : rest;
        rest +=
            keep_k ? 0 : (size_t)attention_round16(a.batch * a.kv_heads * a.keys * a.d) * element;
        char *value = keep_v ? r->out[2]->data : rest;
        rest +=
            keep_v ? 0 : (size_t)attention_round16(a.batch * a.kv_heads * a.keys * a.dv) * element;
        attention_join(key, past, a.k, a.k_at, &a, a.d, element);
        attention_join(value, past ? r->in[PAST_V] : NULL, a.v, a.v_at, &a, a.dv, element);
        a.k = key;
        a.v = value;
        pith__attend_strides(a.k_at, true, a.kv_heads, a.keys, a.d);
        pith__attend_strides(a.v_at, true, a.kv_heads, a.keys, a.dv);
    }
    pith__attend_run(r, &a, rest);
    return PITH_OK;
}

static pith_status attention_run(pith__run *r) {
    return pith__widen_run_to(r, ((const pith__attend_kernels *)r->state)->dtype, 0,
                              attention_run_plain);
}

static void attention_cost(const pith__run *r, pith__cost *cost) {
    const pith_tensor *q = r->in[Q], *k = r->in[K], *v = r->in[V];
    pith__attend a = attention_sizes_of(r->state, q->dims, k->dims, v->dims,
                                        (int[]){ q->rank, k->rank, v->rank }, r->node,
                                        pith__has_input(r, PAST_K) ? r->in[PAST_K]->dims[2] : 0);
    pith__attend_cost(&a, cost);
}

const pith__op pith__op_Attention = {
    .domain = "",
    .name = "Attention",
    .since = 23,
    .newest = 25,
    .min_inputs = 3,
    .max_inputs = 7,
    .max_outputs = 4,
    .types = "fffv",
    .attrs = "is_causal bool = 0; kv_num_heads int 1..; "
             "left_window_size int -1.. = -1 @25; q_num_heads int 1..; "
             "qk_matmul_output_mode int 0..3 = 0; right_window_size int -1.. = -1 @25; "
             "scale float; softcap float = 0; softmax_precision dtype",
    .infer = attention_infer,
    .prepare = attention_prepare,
    .scratch = attention_scratch,
    .run = attention_run,
    .cost = attention_cost
};

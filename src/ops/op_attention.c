/* op_attention.c - Attention of ai.onnx, to the letter: softmax(scale * q k^T (softcap) + mask) v per batch and head.
 *
 * This is the form that gives everything the standard names: masks of any broadcast shape, caches of keys and values,
 * scores as an output. What encoders use of it becomes pith.Attention, which needs no matrix of scores. Inputs are
 * [batch, heads, sequence, size] or [batch, sequence, heads * size]; several query heads may share a key head. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "kernels/norm.h"
#include "kernels/unary.h"
#include "ops/elementwise.h"
#include "ops/product.h"
#include "ops/widen.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS };

typedef struct state {
    pith_product product; /* f32, nothing packed */
    pith_row_f32_fn *softmax;
    pith_unary_f32_fn *tanh;
} state;

/* batch, heads, rows, columns of an input. */
typedef struct shape {
    pith_dim batch, heads, rows, size;
} shape;

static pith_status shape_of(pith_infer *c, int input, const char *attribute, shape *s) {
    const pith_type *t = c->in[input];
    *s = (shape){ PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN };
    if (t->rank < 0) return PITH_OK;
    if (t->rank == 4) {
        *s = (shape){ t->dims[0], t->dims[1], t->dims[2], t->dims[3] };
        return PITH_OK;
    }
    int64_t heads = pith_node_int(c->node, attribute, 0);
    if (t->rank != 3 || heads < 1)
        return pith_op_fail(c, "input %d has rank %d; %s is %lld", input, t->rank, attribute, (long long)heads);
    *s = (shape){ t->dims[0], heads, t->dims[1], pith_dim_apply(c->dims, PITH_DIM_FLOOR_DIV, t->dims[2], heads) };
    if (pith_dim_known(t->dims[2]) && t->dims[2] % heads) {
        return pith_op_fail(c, "input %d has rows of %lld for %lld heads", input, (long long)t->dims[2],
                            (long long)heads);
    }
    return PITH_OK;
}

static bool differ(pith_dim a, pith_dim b) { return pith_dim_known(a) && pith_dim_known(b) && a != b; }

static pith_status infer(pith_infer *c) {
    shape q, k, v;
    PITH_TRY(pith_infer_equal_dtypes(c, Q, K));
    for (int i = V; i <= PAST_V; i++) {
        int dtype = pith_has_input(c, i) && i != MASK ? c->in[i]->dtype : PITH_UNDEFINED;
        if (dtype && c->in[Q]->dtype && pith_compute_dtype(dtype) != pith_compute_dtype(c->in[Q]->dtype)) {
            return pith_fail_dtype(c->err, dtype);
        }
    }
    PITH_TRY(shape_of(c, Q, "q_num_heads", &q));
    PITH_TRY(shape_of(c, K, "kv_num_heads", &k));
    PITH_TRY(shape_of(c, V, "kv_num_heads", &v));
    if (differ(q.batch, k.batch) || differ(q.batch, v.batch) || differ(k.heads, v.heads) || differ(k.rows, v.rows) ||
        differ(q.size, k.size) ||
        (pith_dim_known(q.heads) && pith_dim_known(k.heads) && (k.heads < 1 || q.heads % k.heads))) {
        return pith_op_fail(c, "shapes of query, key and value do not fit");
    }
    pith_dim past = 0;
    for (int i = PAST_K; i <= PAST_V && i < c->in_count; i++) {
        const pith_type *t = c->in[i];
        if (!t) continue;
        if (t->rank >= 0 && t->rank != 4) return pith_op_fail(c, "input %d has rank %d, expected 4", i, t->rank);
        if (!pith_has_input(c, PAST_K) || !pith_has_input(c, PAST_V))
            return pith_op_fail(c, "one of past_key and past_value is missing");
        if (t->rank < 0)
            past = PITH_DIM_UNKNOWN;
        else if (differ(t->dims[0], q.batch) || differ(t->dims[1], k.heads) ||
                 differ(t->dims[3], i == PAST_K ? k.size : v.size) || (i == PAST_V && differ(t->dims[2], past)))
            return pith_op_fail(c, "input %d does not fit", i);
        else
            past = t->dims[2];
    }
    pith_dim total = pith_dim_apply(c->dims, PITH_DIM_ADD, past, k.rows);
    if (pith_has_input(c, MASK) && c->in[MASK]->rank >= 0) {
        const pith_type *m = c->in[MASK];
        pith_dim want[4] = { q.batch, q.heads, q.rows, total };
        bool half = m->dtype == PITH_F16 || m->dtype == PITH_BF16;
        if (m->dtype && m->dtype != PITH_BOOL && m->dtype != PITH_F32 && !half)
            return pith_fail_dtype(c->err, m->dtype);
        if (m->rank > 4 || m->rank < 1) return pith_op_fail(c, "mask has rank %d", m->rank);
        for (int i = 0; i < m->rank; i++) {
            pith_dim d = m->dims[i], w = want[4 - m->rank + i];
            bool last = i == m->rank - 1;
            if (last ? pith_dim_known(d) && pith_dim_known(w) && d > w : d != 1 && differ(d, w)) {
                return pith_op_fail(c, "mask has size %lld at axis %d, scores %lld", (long long)d, i, (long long)w);
            }
        }
    }
    if (pith_has_input(c, LENGTHS)) {
        const pith_type *t = c->in[LENGTHS];
        if ((t->dtype && t->dtype != PITH_I64) || (t->rank >= 0 && (t->rank != 1 || differ(t->dims[0], q.batch)))) {
            return pith_op_fail(c, "nonpad_kv_seqlen is not int64 [batch]");
        }
    }
    int dtype = c->in[Q]->dtype, rank = c->in[Q]->rank;
    if (rank == 3)
        pith_infer_set(c, 0, dtype, 3,
                       (pith_dim[]){ q.batch, q.rows, pith_dim_apply(c->dims, PITH_DIM_MUL, q.heads, v.size) });
    else
        pith_infer_set(c, 0, dtype, rank, (pith_dim[]){ q.batch, q.heads, q.rows, v.size });
    pith_infer_set(c, 1, dtype, 4, (pith_dim[]){ q.batch, k.heads, total, k.size });
    pith_infer_set(c, 2, c->in[V]->dtype, 4, (pith_dim[]){ q.batch, k.heads, total, v.size });
    pith_infer_set(c, 3, dtype, 4, (pith_dim[]){ q.batch, q.heads, q.rows, total });
    return PITH_OK;
}

static pith_status prepare(pith_prepare *c) {
    state *s = pith_arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith_fail_memory(c->err, sizeof *s);
    int dtype = c->in[Q]->dtype;
    if (dtype != PITH_F32 && dtype != PITH_F16 && dtype != PITH_BF16) return pith_fail_dtype(c->err, dtype);
    pith_kernel_fn *softmax, *tanh_fn;
    PITH_TRY(pith_product_prepare(&s->product, c, PITH_F32, -1, false));
    PITH_TRY(pith_prepare_kernel(c, "softmax", PITH_F32, &softmax));
    PITH_TRY(pith_prepare_kernel(c, "tanh", PITH_F32, &tanh_fn));
    s->softmax = (pith_row_f32_fn *)softmax;
    s->tanh = (pith_unary_f32_fn *)tanh_fn;
    c->state = s;
    return PITH_OK;
}

typedef struct sizes {
    int64_t batch, heads, kv_heads, rows, keys, past, d, dv, q_at[3], k_at[3],
        v_at[3]; /* strides of batch, head, row */
} sizes;

static void strides_of(int64_t at[3], int rank, int64_t heads, int64_t rows, int64_t size) {
    at[0] = heads * rows * size;
    at[1] = rank == 4 ? rows * size : size;
    at[2] = rank == 4 ? size : heads * size;
}

static sizes sizes_of(const int64_t *q, const int64_t *k, const int64_t *v, int q_rank, int k_rank, int v_rank,
                      const pith_node *node, int64_t past) {
    sizes z = { .batch = q[0], .past = past };
    z.heads = q_rank == 4 ? q[1] : pith_node_int(node, "q_num_heads", 1);
    z.kv_heads = k_rank == 4 ? k[1] : pith_node_int(node, "kv_num_heads", 1);
    z.rows = q[q_rank - 2];
    z.keys = k[k_rank - 2] + past;
    z.d = q_rank == 4 ? q[3] : q[2] / z.heads;
    z.dv = v_rank == 4 ? v[3] : v[2] / z.kv_heads;
    strides_of(z.q_at, q_rank, z.heads, z.rows, z.d);
    strides_of(z.k_at, k_rank, z.kv_heads, z.keys - past, z.d);
    strides_of(z.v_at, v_rank, z.kv_heads, z.keys - past, z.dv);
    return z;
}

static int64_t round16(int64_t n) { return (n + 15) & ~(int64_t)15; }

/* Floats one worker needs: keys packed, values packed, scores. -1 on overflow. */
static int64_t worker_floats(const sizes *z) {
    int64_t keys = pith_gemm_f32_packed_size(z->d, z->keys), values = pith_gemm_f32_packed_size(z->keys, z->dv), scores,
            sum;
    if (keys < 0 || values < 0 || pith_mul_overflows(z->rows, z->keys, &scores) ||
        pith_add_overflows(keys, values, &sum) || pith_add_overflows(sum, scores, &sum) || sum > INT64_MAX / 8)
        return -1;
    return round16(keys) + round16(values) + round16(scores);
}

static pith_status scratch(const pith_infer *c, const void *state_, int threads, size_t *bytes) {
    const pith_type *q = c->in[Q], *k = c->in[K], *v = c->in[V];
    sizes z = sizes_of(q->dims, k->dims, v->dims, q->rank, k->rank, v->rank, c->node,
                       pith_has_input(c, PAST_K) ? c->in[PAST_K]->dims[2] : 0);
    int64_t one = worker_floats(&z), cache;
    (void)state_;
    if (one < 0 || pith_mul_overflows((size_t)one * sizeof(float), (size_t)threads, bytes) ||
        pith_mul_overflows(z.batch * z.kv_heads, z.keys, &cache) ||
        pith_mul_overflows(cache, (z.d + z.dv) * 4, &cache) || pith_add_overflows(*bytes, (size_t)cache + 256, bytes)) {
        return pith_fail_memory(c->err, SIZE_MAX);
    }
    return pith_widen_scratch(c, 0, bytes);
}

typedef struct job {
    const pith_run *r;
    sizes z;
    const float *q, *k, *v;
    float *y, *scores_out, *workers;
    int64_t worker_size, y_at[3], mask_at[4], mask_keys;
    float scale, softcap;
    int mode;
    bool causal;
} job;

/* scores + mask; masked places become -infinity. */
static void add_mask(const job *j, float *row, int64_t b, int64_t h, int64_t i) {
    const pith_run *r = j->r;
    int64_t keys = j->z.keys;
    if (pith_has_input(r, MASK)) {
        const pith_tensor *m = r->in[MASK];
        int64_t at = b * j->mask_at[0] + h * j->mask_at[1] + i * j->mask_at[2];
        for (int64_t n = 0; n < keys; n++) {
            int64_t own = at + n * j->mask_at[3];
            if (n >= j->mask_keys)
                row[n] = -INFINITY;
            else if (m->dtype == PITH_BOOL)
                row[n] = ((const uint8_t *)m->data)[own] ? row[n] : -INFINITY;
            else
                row[n] += ((const float *)m->data)[own];
        }
    }
    for (int64_t n = j->causal ? j->z.past + i + 1 : keys; n < keys; n++) row[n] = -INFINITY;
    if (pith_has_input(r, LENGTHS)) {
        int64_t length = ((const int64_t *)r->in[LENGTHS]->data)[b];
        for (int64_t n = length < 0 ? 0 : length; n < keys; n++) row[n] = -INFINITY;
    }
}

static void run_head(void *context, size_t part, int worker) {
    const job *j = context;
    const state *s = j->r->state;
    const sizes *z = &j->z;
    int64_t b = (int64_t)part / z->heads, h = (int64_t)part % z->heads, kv = h / (z->heads / z->kv_heads);
    float *keys = j->workers + worker * j->worker_size,
          *values = keys + round16(pith_gemm_f32_packed_size(z->d, z->keys));
    float *scores = values + round16(pith_gemm_f32_packed_size(z->keys, z->dv));
    s->product.pack(keys, j->k + b * z->k_at[0] + kv * z->k_at[1], 1, z->k_at[2], z->d, z->keys, 0, z->keys);
    s->product.pack(values, j->v + b * z->v_at[0] + kv * z->v_at[1], z->v_at[2], 1, z->keys, z->dv, 0, z->dv);
    pith_gemm qk = { .a = j->q + b * z->q_at[0] + h * z->q_at[1],
                     .b = keys,
                     .c = scores,
                     .m = z->rows,
                     .n = z->keys,
                     .k = z->d,
                     .lda = z->q_at[2],
                     .ldc = z->keys };
    s->product.gemm(&qk, 0, z->rows, 0, z->keys);
    float *out = j->scores_out ? j->scores_out + (b * z->heads + h) * z->rows * z->keys : NULL;
    for (int64_t i = 0; i < z->rows; i++) {
        float *row = scores + i * z->keys;
        size_t bytes = (size_t)z->keys * sizeof *row;
        for (int64_t n = 0; n < z->keys; n++) row[n] *= j->scale;
        if (j->softcap > 0) {
            for (int64_t n = 0; n < z->keys; n++) row[n] /= j->softcap;
            s->tanh(row, row, (size_t)z->keys);
            for (int64_t n = 0; n < z->keys; n++) row[n] *= j->softcap;
        }
        if (out && j->mode < 2) memcpy(out + i * z->keys, row, bytes);
        add_mask(j, row, b, h, i);
        if (out && j->mode == 2) memcpy(out + i * z->keys, row, bytes);
        s->softmax(row, row, 1, z->keys);
        if (out && j->mode == 3) memcpy(out + i * z->keys, row, bytes);
    }
    pith_gemm pv = { .a = scores,
                     .b = values,
                     .c = j->y + b * j->y_at[0] + h * j->y_at[1],
                     .m = z->rows,
                     .n = z->dv,
                     .k = z->keys,
                     .lda = z->keys,
                     .ldc = j->y_at[2] };
    s->product.gemm(&pv, 0, z->rows, 0, z->dv);
}

/* Old and new keys (values) as [batch, heads, keys, size] in to. */
static void join(float *to, const pith_tensor *past, const float *x, const int64_t at[3], const sizes *z,
                 int64_t size) {
    for (int64_t i = 0; i < z->batch * z->kv_heads; i++) {
        int64_t b = i / z->kv_heads, h = i % z->kv_heads;
        float *own = to + i * z->keys * size;
        if (z->past > 0 && size > 0)
            memcpy(own, (const float *)past->data + i * z->past * size, (size_t)(z->past * size) * sizeof *own);
        for (int64_t k = 0; k < z->keys - z->past && size; k++) {
            memcpy(own + (z->past + k) * size, x + b * at[0] + h * at[1] + k * at[2], (size_t)size * sizeof *own);
        }
    }
}

static pith_status run_plain(pith_run *r) {
    const pith_tensor *q = r->in[Q], *k = r->in[K], *v = r->in[V],
                      *past = pith_has_input(r, PAST_K) ? r->in[PAST_K] : NULL;
    job j = { .r = r, .q = q->data, .k = k->data, .v = v->data, .y = r->out[0] ? r->out[0]->data : NULL };
    j.z = sizes_of(q->dims, k->dims, v->dims, q->rank, k->rank, v->rank, r->node, past ? past->dims[2] : 0);
    j.scale = pith_node_float(r->node, "scale", 0.0f);
    if (!pith_node_attr(r->node, "scale")) j.scale = (float)(1.0 / sqrt((double)j.z.d));
    j.softcap = pith_node_float(r->node, "softcap", 0.0f);
    j.causal = pith_node_int(r->node, "is_causal", 0) != 0;
    j.mode = (int)pith_node_int(r->node, "qk_matmul_output_mode", 0);
    if (r->out_count > 3 && r->out[3]) j.scores_out = r->out[3]->data;
    strides_of(j.y_at, q->rank, j.z.heads, j.z.rows, j.z.dv);
    if (pith_has_input(r, MASK)) {
        const pith_tensor *m = r->in[MASK];
        int64_t stride = 1;
        for (int i = 3, own = m->rank - 1; own >= 0; i--, own--) {
            j.mask_at[i] = m->dims[own] == 1 && i < 3 ? 0 : stride;
            stride *= m->dims[own];
        }
        j.mask_keys = m->dims[m->rank - 1];
        if (j.mask_keys == 1 && j.z.keys != 1) {
            j.mask_at[3] = 0;
            j.mask_keys = j.z.keys;
        }
    }
    float *rest = r->scratch;
    bool keep_k = r->out_count > 1 && r->out[1], keep_v = r->out_count > 2 && r->out[2];
    if (past || keep_k || keep_v) {
        float *key = keep_k ? r->out[1]->data : rest;
        rest += keep_k ? 0 : round16(j.z.batch * j.z.kv_heads * j.z.keys * j.z.d);
        float *value = keep_v ? r->out[2]->data : rest;
        rest += keep_v ? 0 : round16(j.z.batch * j.z.kv_heads * j.z.keys * j.z.dv);
        join(key, past, j.k, j.z.k_at, &j.z, j.z.d);
        join(value, past ? r->in[PAST_V] : NULL, j.v, j.z.v_at, &j.z, j.z.dv);
        j.k = key;
        j.v = value;
        strides_of(j.z.k_at, 4, j.z.kv_heads, j.z.keys, j.z.d);
        strides_of(j.z.v_at, 4, j.z.kv_heads, j.z.keys, j.z.dv);
    }
    if (!j.y || j.z.batch * j.z.heads * j.z.rows == 0) return PITH_OK;
    j.workers = rest;
    j.worker_size = worker_floats(&j.z);
    pith_run_parallel(r, run_head, &j, (size_t)(j.z.batch * j.z.heads));
    return PITH_OK;
}

static pith_status run(pith_run *r) { return pith_widen_run(r, 0, run_plain); }

/* Every query with every key, masked or not. */
static void cost(const pith_run *r, pith_cost *cost) {
    const pith_tensor *q = r->in[Q], *k = r->in[K], *v = r->in[V];
    const pith_tensor *past = pith_has_input(r, PAST_K) ? r->in[PAST_K] : NULL;
    sizes z = sizes_of(q->dims, k->dims, v->dims, q->rank, k->rank, v->rank, r->node, past ? past->dims[2] : 0);
    cost->operations = 2.0 * (double)(z.batch * z.heads * z.rows) * (double)(z.keys * (z.d + z.dv));
    cost->kernel = "gemm f32";
}

const pith_op pith_op_Attention = { .domain = "",
                                    .name = "Attention",
                                    .since = 23,
                                    .min_inputs = 3,
                                    .max_inputs = 7,
                                    .max_outputs = 4,
                                    .infer = infer,
                                    .prepare = prepare,
                                    .scratch = scratch,
                                    .run = run,
                                    .cost = cost,
                                    .note = "computed in float32; float64 is not supported" };

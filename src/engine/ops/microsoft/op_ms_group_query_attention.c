/* op_ms_group_query_attention.c - com.microsoft's GroupQueryAttention: attention whose query heads
 * share key heads, with a cache of keys and values whose length in each sequence is given by
 * seqlens_k.
 *
 * seqlens_k is the last position of each sequence, its new rows included. A first prompt (as many
 * new rows as total_sequence_length) begins at position 0, any other call after the rows in the
 * cache. Query and key rows are first normalised per head (if weights are given), then rotated by
 * the angles of their positions. present has room for the longer of cache and
 * total_sequence_length, and unused rows are zero. With sliding_window_cache it keeps its length
 * and holds only the last positions: see resident. A quantised cache is that of kv_cache.h;
 * attention uses the numbers that are stored, new ones included. Source: ONNX Runtime's
 * ContribOperators.md. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/kv_cache.h"
#include "engine/ops/shared/plain_attention.h"
#include "engine/ops/shared/widen_types.h"

enum {
    Q,
    K,
    V,
    PAST_K,
    PAST_V,
    LENGTHS,
    TOTAL,
    COS,
    SIN,
    POSITIONS,
    BIAS,
    SINKS,
    K_SCALE,
    V_SCALE,
    Q_NORM,
    K_NORM
};

/* Heads and the size of one. */
typedef struct form {
    int64_t heads, kv_heads, size;
    bool packed; /* query holds keys and values too */
} form;

/* Heads and their size; false if the query's width does not divide into them. Packed: key and value
 * heads lie behind the query's in one row. */
static bool group_query_form_of(form *f, const pith__infer *c) {
    *f = (form){ .heads = pith__node_int(c->node, "num_heads", 0),
                 .kv_heads = pith__node_int(c->node, "kv_num_heads", 0) };
    f->packed = !pith__has_input(c, K) || !pith__has_input(c, V);
    if (f->heads < 1 || f->kv_heads < 1 || f->heads % f->kv_heads || f->heads > INT32_MAX)
        return false;
    pith__dim width = c->in[Q]->rank == 3 ? c->in[Q]->dims[2] : PITH_DIM_UNKNOWN;
    int64_t heads = f->packed ? f->heads + 2 * f->kv_heads : f->heads;
    f->size = pith__dim_known(width) ? width / heads : 0;
    return !pith__dim_known(width) || (width % heads == 0 && width > 0);
}

static const char *const quant_types[] = { "k_quant_type", "v_quant_type" };

/* The dtype of a cache, and its columns. */
static pith_status group_query_check_cache(pith__infer *c, const form *f, int i, int *dtype,
                                           pith__dim *columns) {
    pith__kv_cache cache;
    const pith__type *past = pith__has_input(c, PAST_K + i) ? c->in[PAST_K + i] : NULL;
    PITH_TRY(pith__kv_cache_read(&cache, c->node, quant_types[i], f->size, c->err));
    *dtype = c->in[Q]->dtype;
    if (cache.bits) *dtype = cache.bits == 8 ? PITH_I8 : PITH_U8;
    *columns = cache.bits ? pith__kv_row_bytes(&cache) : f->size;
    if (!f->size) *columns = PITH_DIM_UNKNOWN;
    if (past && past->dtype && *dtype && past->dtype != *dtype)
        return pith__fail_dtype(c->err, past->dtype);
    if (!cache.bits) return PITH_OK;
    if (!pith__has_input(c, K_SCALE + i))
        return pith__op_fail(c, "input %d is missing", K_SCALE + i);
    int64_t scales = pith__type_count(c->in[K_SCALE + i]),
            wanted = cache.by_column ? f->kv_heads * f->size : 1;
    if (scales >= 0 && f->size && scales != wanted)
        return pith__op_fail(c, "input %d has %lld elements, not %lld", K_SCALE + i,
                             (long long)scales, (long long)wanted);
    return PITH_OK;
}

/* The rows of a cache as long as the window must hold it; its columns by absolute positions would
 * be another output. */
static pith_status group_query_check_window(pith__infer *c) {
    int64_t window = pith__node_int(c->node, "local_window_size", -1);
    if (!pith__has_input(c, PAST_K) || window < 1 || !pith__node_int(c->node, "causal", 1))
        return pith__op_fail(c, "sliding_window_cache without a past or a window");
    if (c->in[PAST_K]->rank == 4 && pith__dim_known(c->in[PAST_K]->dims[2]) &&
        c->in[PAST_K]->dims[2] < window)
        return pith__op_fail(c, "a cache of %lld rows for a window of %lld",
                             (long long)c->in[PAST_K]->dims[2], (long long)window);
    if (c->out_count > 3 && pith__node_output(c->node, 3))
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "scores as an output with sliding_window_cache");
    return PITH_OK;
}

/* Everything that the shapes tell before the run. Contents (lengths, positions) are checked when
 * they are there. */
static pith_status group_query_check(pith__infer *c, const form *f, const pith__dim columns[2]) {
    int64_t window = pith__node_int(c->node, "local_window_size", -1);
    if (window < 1 && window != -1)
        return pith__op_fail(c, "local_window_size is %lld, not -1 or at least 1",
                             (long long)window);
    if (pith__node_int(c->node, "sliding_window_cache", 0)) PITH_TRY(group_query_check_window(c));
    if (pith__has_input(c, PAST_K) != pith__has_input(c, PAST_V) ||
        pith__has_input(c, COS) != pith__has_input(c, SIN) ||
        pith__has_input(c, Q_NORM) != pith__has_input(c, K_NORM) || !pith__has_input(c, LENGTHS) ||
        !pith__has_input(c, TOTAL) ||
        (pith__node_int(c->node, "do_rotary", 0) && !pith__has_input(c, COS)))
        return pith__op_fail(c, "an input is missing");
    for (int i = LENGTHS; i <= TOTAL; i++) {
        if (c->in[i]->dtype && c->in[i]->dtype != PITH_I32)
            return pith__fail_dtype(c->err, c->in[i]->dtype);
    }
    if (pith__has_input(c, POSITIONS) && c->in[POSITIONS]->dtype &&
        c->in[POSITIONS]->dtype != PITH_I64)
        return pith__fail_dtype(c->err, c->in[POSITIONS]->dtype);
    if (!f->packed) {
        for (int i = K; i <= V; i++) {
            const pith__type *t = c->in[i];
            bool fits = t->rank < 0 || (t->rank == 3 && (!f->size || !pith__dim_known(t->dims[2]) ||
                                                         t->dims[2] == f->kv_heads * f->size));
            if (!fits) return pith__op_fail(c, "input %d does not have kv_num_heads heads", i);
        }
    }
    for (int i = PAST_K; i <= PAST_V && pith__has_input(c, i); i++) {
        const pith__type *t = c->in[i];
        const pith__dim want[4] = { c->in[Q]->rank == 3 ? c->in[Q]->dims[0] : PITH_DIM_UNKNOWN,
                                    f->kv_heads,
                                    c->in[PAST_K]->rank == 4 ? c->in[PAST_K]->dims[2]
                                                             : PITH_DIM_UNKNOWN,
                                    columns[i - PAST_K] };
        if (t->rank >= 0 && t->rank != 4)
            return pith__op_fail(c, "input %d has rank %d, expected 4", i, t->rank);
        for (int d = 0; d < t->rank; d++) {
            if (pith__dim_known(t->dims[d]) && pith__dim_known(want[d]) && t->dims[d] != want[d])
                return pith__op_fail(c, "input %d does not fit at axis %d", i, d);
        }
    }
    return PITH_OK;
}

/* present is as long as the longer of cache and total_sequence_length, whose content must be known
 * for that; a sliding cache keeps its length. */
static pith_status group_query_infer(pith__infer *c) {
    form f;
    const pith__type *q = c->in[Q];
    if ((q->rank >= 0 && q->rank != 3) || !group_query_form_of(&f, c))
        return pith__op_fail(c, "query does not divide into heads");
    int dtypes[2];
    pith__dim columns[2];
    for (int i = 0; i < 2; i++)
        PITH_TRY(group_query_check_cache(c, &f, i, &dtypes[i], &columns[i]));
    PITH_TRY(group_query_check(c, &f, columns));
    pith__dim batch = PITH_DIM_UNKNOWN, rows = PITH_DIM_UNKNOWN, keys = PITH_DIM_UNKNOWN, total;
    if (q->rank == 3) batch = q->dims[0], rows = q->dims[1];
    if (pith__infer_number(c, TOTAL, &total)) {
        if (pith__dim_known(total) && total < 0)
            return pith__op_fail(c, "total_sequence_length is negative");
        if (!pith__has_input(c, PAST_K))
            keys = total;
        else if (c->in[PAST_K]->rank == 4)
            keys = pith__dim_apply(c->dims, PITH_DIM_MAX, total, c->in[PAST_K]->dims[2]);
    }
    if (pith__node_int(c->node, "sliding_window_cache", 0))
        keys = c->in[PAST_K]->rank == 4 ? c->in[PAST_K]->dims[2] : PITH_DIM_UNKNOWN;
    pith__infer_set(c, 0, q->dtype, 3,
                    (pith__dim[]){ batch, rows, f.size ? f.heads * f.size : PITH_DIM_UNKNOWN });
    for (int i = 0; i < 2; i++)
        pith__infer_set(c, 1 + i, dtypes[i], 4,
                        (pith__dim[]){ batch, f.kv_heads, keys, columns[i] });
    pith__infer_set(c, 3, q->dtype, 4, (pith__dim[]){ batch, f.heads, rows, keys });
    return PITH_OK;
}

static pith_status group_query_prepare(pith__prepare *c) {
    pith__attend_kernels *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    if (c->in[Q]->dtype == PITH_F64) return pith__fail_dtype(c->err, PITH_F64);
    c->state = s;
    return pith__attend_prepare(s, c, c->in[Q]->dtype);
}

static int64_t group_query_round16(int64_t n) { return (n + 15) & ~(int64_t)15; }

/* The parts of the description that do not depend on data. */
static pith__attend group_query_sizes_of(const pith__attend_kernels *s, const form *f,
                                         int64_t batch, int64_t rows, int64_t keys) {
    pith__attend a = { .kernels = s,
                       .left = -1,
                       .right = -1,
                       .masked = -FLT_MAX, /* as in ONNX Runtime */
                       .batch = batch,
                       .heads = f->heads,
                       .kv_heads = f->kv_heads,
                       .rows = rows,
                       .keys = keys,
                       .d = f->size,
                       .dv = f->size };
    pith__attend_strides(a.q_at, false, f->heads, rows, f->size);
    pith__attend_strides(a.y_at, false, f->heads, rows, f->size);
    pith__attend_strides(a.k_at, true, f->kv_heads, keys, f->size);
    pith__attend_strides(a.v_at, true, f->kv_heads, keys, f->size);
    return a;
}

/* Lengths, first positions and first rows; queries; keys and values, where they are not the
 * outputs; a bias cut to a cache of the window's length; one part for each worker. */
static pith_status group_query_scratch(const pith__infer *c, const void *state, int threads,
                                       size_t *bytes) {
    form f;
    const pith__type *q = c->in[Q];
    if (!group_query_form_of(&f, c)) return pith__op_fail(c, "query does not divide into heads");
    bool window = pith__node_int(c->node, "sliding_window_cache", 0) != 0;
    int64_t keys = c->out[1].dims[2] + (window ? q->dims[1] : 0);
    pith__attend a = group_query_sizes_of(state, &f, q->dims[0], q->dims[1], keys);
    int64_t one = pith__attend_scratch(&a), all, bias = 0;
    if (window && pith__has_input(c, BIAS) &&
        (pith__mul_overflows(a.rows * f.heads, a.batch * (int64_t)sizeof(float), &bias) ||
         pith__mul_overflows(bias, keys, &bias)))
        return pith__fail_memory(c->err, SIZE_MAX);
    if (one < 0 ||
        pith__mul_overflows(a.keys * 2 + a.rows * 3, a.batch * (f.heads + f.kv_heads), &all) ||
        pith__mul_overflows(all, f.size * (int64_t)sizeof(float), &all) ||
        pith__add_overflows(all, bias, &all) ||
        pith__mul_overflows((size_t)one, (size_t)threads, bytes) ||
        pith__add_overflows(*bytes, (size_t)all + (size_t)a.batch * 24 + 1024, bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return pith__widen_scratch(c, 0, bytes);
}

typedef struct job {
    pith__run *r;
    form f;
    int64_t batch, rows, half, cached; /* half: angles of a position; cached: positions */
    const int64_t *first;              /* position of each sequence's first new row */
    const int64_t *at, *lengths;       /* … where that row lies among the keys, and how many keys
                                          there are */
    bool prompt, interleaved, window;  /* window: the cache is as long as it */
    float epsilon;                     /* of the norm of each head's row */
} job;

/* The epsilon of the queries' or the keys' norm, which have attributes of their own in addition to
 * the common one. */
static float group_query_norm_epsilon(const pith__node *node, const char *own) {
    return pith__node_float(node, own, pith__node_float(node, "qk_norm_epsilon", 1e-6f));
}

/* The rows of a cache of `room` rows that hold the last of `count` positions for a window: `step`
 * rows go at once. */
static int64_t group_query_resident(int64_t count, int64_t room, int64_t window) {
    int64_t step = room - window + 1;
    return count <= room ? count : count - (count - room + step - 1) / step * step;
}

/* One head of one row, normalised and turned. */
static pith_status group_query_place_row(const job *j, float *to, const float *from,
                                         const float *norm, int64_t b, int64_t row) {
    int64_t size = j->f.size;
    memcpy(to, from, (size_t)size * sizeof *to);
    if (norm) {
        float sum = 0;
        for (int64_t i = 0; i < size; i++) sum += to[i] * to[i];
        float scale = 1.0f / sqrtf(sum / (float)size + j->epsilon);
        for (int64_t i = 0; i < size; i++) to[i] = to[i] * scale * norm[i];
    }
    if (!j->half) return PITH_OK;
    int64_t position = j->first[b] + row;
    if (pith__has_input(j->r, POSITIONS)) {
        const int64_t *given = j->r->in[POSITIONS]->data;
        position = j->prompt ? given[0] + row : given[b * j->rows + row];
    }
    if (position < 0 || position >= j->cached)
        return pith__fail(j->r->err, PITH_ERR_RUN, "position %lld is outside of a cache of %lld",
                          (long long)position, (long long)j->cached);
    const float *cosine = (const float *)j->r->in[COS]->data + position * j->half,
                *sine = (const float *)j->r->in[SIN]->data + position * j->half;
    for (int64_t k = 0; k < j->half; k++) {
        int64_t p = j->interleaved ? 2 * k : k, q = j->interleaved ? 2 * k + 1 : k + j->half;
        float x = to[p], y = to[q];
        to[p] = cosine[k] * x - sine[k] * y;
        to[q] = sine[k] * x + cosine[k] * y;
    }
    return PITH_OK;
}

/* The cache's rows, then the new ones, as [batch, heads, keys, size]. */
static pith_status group_query_fill(const job *j, float *all, int64_t keys,
                                    const pith__kv_cache *cache, const pith_tensor *past,
                                    const float *x, int64_t stride, const float *norm,
                                    bool turned) {
    int64_t size = j->f.size, heads = j->f.kv_heads, old = past ? past->dims[2] : 0;
    job plain = *j;
    plain.half = turned ? j->half : 0;
    plain.epsilon = group_query_norm_epsilon(j->r->node, "k_norm_epsilon");
    PITH_TRY(
        pith__run_bytes(j->r, all, NULL, (size_t)(j->batch * heads * keys * size) * sizeof *all));
    for (int64_t i = 0; i < j->batch * heads; i++) {
        PITH_TRY(pith__run_look(j->r));
        int64_t b = i / heads, h = i % heads, kept = j->at[b] < old ? j->at[b] : old;
        float *own = all + i * keys * size;
        if (kept)
            pith__kv_get(cache, own, (const char *)past->data + i * old * pith__kv_row_bytes(cache),
                         h, kept);
        for (int64_t row = 0; row < j->rows; row++)
            PITH_TRY(group_query_place_row(&plain, own + (j->at[b] + row) * size,
                                           x + (b * j->rows + row) * stride + h * size, norm, b,
                                           row));
    }
    return PITH_OK;
}

/* What a quantised cache will hold is what attention sees. */
static pith_status group_query_round_rows(const job *j, float *all, int64_t keys,
                                          const pith__kv_cache *cache) {
    if (!cache->bits) return PITH_OK;
    for (int64_t i = 0; i < j->batch * j->f.kv_heads; i++) {
        PITH_TRY(pith__run_look(j->r));
        pith__kv_put(cache, NULL, all + i * keys * j->f.size, i % j->f.kv_heads, keys);
    }
    return PITH_OK;
}

/* The rows that the next call needs, into the output. */
static pith_status group_query_keep(const job *j, float *all, int64_t keys,
                                    const pith__kv_cache *cache, pith_tensor *present) {
    int64_t heads = j->f.kv_heads, room = present->dims[2], bytes = pith__kv_row_bytes(cache);
    int64_t window = pith__node_int(j->r->node, "local_window_size", -1);
    PITH_TRY(pith__run_bytes(j->r, present->data, NULL, present->bytes));
    for (int64_t i = 0; i < j->batch * heads; i++) {
        PITH_TRY(pith__run_look(j->r));
        int64_t b = i / heads, used = j->window ? j->lengths[b] : j->at[b] + j->rows;
        int64_t kept =
            j->window ? group_query_resident(used + j->first[b] - j->at[b], room, window) : used;
        pith__kv_put(cache, (char *)present->data + i * room * bytes,
                     all + (i * keys + used - kept) * j->f.size, i % heads, kept);
    }
    return PITH_OK;
}

/* The bias by absolute positions as one by rows of keys, [batch, heads or 1, rows, keys]. */
static void group_query_cut_bias(const job *j, pith_tensor *cut, const pith_tensor *bias, float *to,
                                 int64_t keys) {
    int64_t planes = bias->dims[1] * j->rows, columns = bias->dims[3];
    *cut = (pith_tensor){
        .data = to, .dtype = PITH_F32, .rank = 4, .dims = { j->batch, bias->dims[1], j->rows, keys }
    };
    for (int64_t i = 0; i < j->batch * planes; i++) {
        int64_t b = i / planes, base = j->first[b] - j->at[b];
        const float *from =
            (const float *)bias->data + (bias->dims[0] == 1 ? i % planes : i) * columns;
        for (int64_t k = 0; k < keys; k++)
            to[i * keys + k] = base + k < columns ? from[base + k] : 0;
    }
}

/* The number of keys of each sequence, the position of its first new row, and that row's place. */
static pith_status group_query_positions(const job *j, int64_t *lengths, int64_t *first,
                                         int64_t *at, int64_t room) {
    int64_t window = pith__node_int(j->r->node, "local_window_size", -1);
    const pith_tensor *given = j->r->in[LENGTHS];
    if (pith__tensor_count(given) != j->batch)
        return pith__op_fail(j->r, "seqlens_k does not fit the batch");
    for (int64_t b = 0; b < j->batch; b++) {
        lengths[b] = (int64_t)((const int32_t *)given->data)[b] + 1;
        first[b] = j->prompt ? 0 : lengths[b] - j->rows;
        if (first[b] < 0 || lengths[b] < 0 || (!j->window && first[b] + j->rows > room))
            return pith__op_fail(
                j->r, "seqlens_k[%lld] is %lld with %lld new rows and room for %lld", (long long)b,
                (long long)lengths[b] - 1, (long long)j->rows, (long long)room);
        at[b] = j->window ? group_query_resident(first[b], room, window) : first[b];
        lengths[b] -= first[b] - at[b];
    }
    return PITH_OK;
}

static const float *group_query_floats(const pith__run *r, int i) {
    return pith__has_input(r, i) ? r->in[i]->data : NULL;
}

/* Inputs whose number of elements follows from the others. One position is enough for a first
 * prompt, which counts on from it. */
static pith_status group_query_check_extras(const job *j) {
    const pith__run *r = j->r;
    const int64_t want[] = { j->f.size, j->f.size, j->f.heads, j->rows * j->batch };
    static const int inputs[] = { Q_NORM, K_NORM, SINKS, POSITIONS };
    for (int i = 0; i < 4; i++) {
        if (!pith__has_input(r, inputs[i])) continue;
        int64_t own = pith__tensor_count(r->in[inputs[i]]);
        if (own != want[i] && !(inputs[i] == POSITIONS && j->prompt && own > 0))
            return pith__op_fail(r, "input %d has %lld elements, not %lld", inputs[i],
                                 (long long)own, (long long)want[i]);
    }
    if (j->half &&
        (2 * j->half > j->f.size || pith__tensor_count(r->in[SIN]) != j->cached * j->half))
        return pith__op_fail(r, "the caches of angles do not fit");
    return PITH_OK;
}

static bool group_query_mask_fits(const pith_tensor *m, const pith__attend *a, int64_t total) {
    const int64_t want[4] = { a->batch, a->heads, a->rows, total };
    if (m->rank != 4) return false;
    for (int i = 0; i < 4; i++) {
        if (m->dims[i] != want[i] && (m->dims[i] != 1 || i > 1)) return false;
    }
    return true;
}

/* What attributes and shapes say; the keys that attention sees are *keys, *room of them are kept.
 */
static job group_query_job(pith__run *r, int64_t total, int64_t *keys, int64_t *room) {
    const pith_tensor *q = r->in[Q];
    job j = { .r = r, .batch = q->dims[0], .rows = q->dims[1] };
    int64_t old = pith__has_input(r, PAST_K) ? r->in[PAST_K]->dims[2] : 0;
    j.f = (form){ .heads = pith__node_int(r->node, "num_heads", 0),
                  .kv_heads = pith__node_int(r->node, "kv_num_heads", 0),
                  .packed = !pith__has_input(r, K) || !pith__has_input(r, V) };
    j.f.size = r->out[0]->dims[2] / j.f.heads;
    j.prompt = j.rows == total;
    j.window = pith__node_int(r->node, "sliding_window_cache", 0) != 0;
    *room = j.window || old > total ? old : total;
    *keys = j.window ? old + j.rows : *room;
    j.epsilon = group_query_norm_epsilon(r->node, "q_norm_epsilon");
    j.interleaved = pith__node_int(r->node, "rotary_interleaved", 0) != 0;
    if (pith__node_int(r->node, "do_rotary", 0)) {
        const pith_tensor *cosine = r->in[COS];
        j.half = cosine->rank == 2 ? cosine->dims[1] : 0;
        j.cached = cosine->rank == 2 ? cosine->dims[0] : 0;
    }
    return j;
}

/* All query rows, normalised and rotated, into memory of their own. */
static pith_status group_query_queries(const job *j, float *queries) {
    const pith_tensor *q = j->r->in[Q];
    const float *x = q->data, *norm = group_query_floats(j->r, Q_NORM);
    for (int64_t i = 0; i < j->batch * j->rows * j->f.heads; i++) {
        int64_t row = i / j->f.heads, h = i % j->f.heads;
        PITH_TRY(group_query_place_row(j, queries + i * j->f.size,
                                       x + row * q->dims[2] + h * j->f.size, norm, row / j->rows,
                                       row % j->rows));
    }
    return PITH_OK;
}

/* All keys (i = 0) or values (i = 1) as attention reads them: in the output where that holds just
 * them, else taken from *rest; the output gets what is kept of them. */
static pith_status group_query_join(const job *j, int i, int64_t keys, float **all, float **rest) {
    pith__run *r = j->r;
    pith__kv_cache cache;
    const pith_tensor *past = pith__has_input(r, PAST_K) ? r->in[PAST_K + i] : NULL;
    pith_tensor *present = r->out_count > i + 1 ? r->out[i + 1] : NULL;
    int64_t width = j->f.kv_heads * j->f.size, stride = j->f.packed ? r->in[Q]->dims[2] : width;
    const float *x = j->f.packed
                         ? (const float *)r->in[Q]->data + j->f.heads * j->f.size + i * width
                         : group_query_floats(r, K + i);
    PITH_TRY(pith__kv_cache_read(&cache, r->node, quant_types[i], j->f.size, r->err));
    cache.scale = group_query_floats(r, K_SCALE + i);
    bool in_place = present && !cache.bits && !j->window;
    *all = in_place ? present->data : *rest;
    *rest += in_place ? 0 : group_query_round16(j->batch * width * keys);
    PITH_TRY(group_query_fill(j, *all, keys, &cache, past, x, stride,
                              i ? NULL : group_query_floats(r, K_NORM), i == 0));
    PITH_TRY(group_query_round_rows(j, *all, keys, &cache));
    if (present && !in_place) PITH_TRY(group_query_keep(j, *all, keys, &cache, present));
    return PITH_OK;
}

/* The attributes that change the computation itself. scale 0 means 1 / sqrt(size); softcap 0 means
 * none. */
static void group_query_settings(pith__attend *a, const pith__run *r, int64_t size) {
    float scale = pith__node_float(r->node, "scale", 0.0f);
    a->scale = scale != 0 ? (double)scale : 1.0 / sqrt((double)size);
    a->softcap = (double)pith__node_float(r->node, "softcap", 0.0f);
    a->causal = pith__node_int(r->node, "causal", 1) != 0;
    int64_t window = pith__node_int(r->node, "local_window_size", -1);
    a->left = window > 0 ? window - 1 : -1;
    a->sinks = group_query_floats(r, SINKS);
    a->smooth = pith__node_int(r->node, "smooth_softmax", 0) > 0;
    if (r->out_count > 3 && r->out[3]) {
        a->scores = r->out[3]->data;
        a->mode = pith__node_int(r->node, "qk_output", 0) == 2 ? 3 : 2;
    }
}

/* First where each sequence's new rows stand, then the queries, then keys and values joined with
 * the cache, then plain_attention.h. Memory is handed out from `rest` on. */
static pith_status group_query_run_plain(pith__run *r) {
    int64_t total = ((const int32_t *)r->in[TOTAL]->data)[0], keys, room;
    job j = group_query_job(r, total, &keys, &room);
    int64_t elements = j.batch * j.rows * j.f.size, *lengths = r->scratch,
            *first = lengths + j.batch, *at = first + j.batch;
    float *queries = (float *)r->scratch + group_query_round16(6 * j.batch),
          *rest = queries + group_query_round16(elements * j.f.heads), *all[2];
    PITH_TRY(group_query_positions(&j, lengths, first, at, room));
    PITH_TRY(group_query_check_extras(&j));
    j.first = first;
    j.at = at;
    j.lengths = lengths;
    if (!j.f.packed) {
        for (int i = K; i <= V; i++) {
            if (pith__tensor_count(r->in[i]) != elements * j.f.kv_heads)
                return pith__op_fail(r, "key and value do not have the rows of the query");
        }
    }
    PITH_TRY(group_query_queries(&j, queries));
    for (int i = 0; i < 2; i++) PITH_TRY(group_query_join(&j, i, keys, &all[i], &rest));
    pith__attend a = group_query_sizes_of(r->state, &j.f, j.batch, j.rows, keys);
    a.q = queries, a.k = all[0], a.v = all[1], a.y = r->out[0]->data;
    a.lengths = lengths, a.first = at;
    a.mask = pith__has_input(r, BIAS) ? r->in[BIAS] : NULL;
    if (a.mask && !group_query_mask_fits(a.mask, &a, total))
        return pith__op_fail(r, "attention_bias does not fit the scores");
    pith_tensor cut;
    if (a.mask && j.window) {
        group_query_cut_bias(&j, &cut, a.mask, rest, keys);
        rest += group_query_round16(pith__tensor_count(&cut));
        a.mask = &cut;
    }
    group_query_settings(&a, r, j.f.size);
    pith__attend_run(r, &a, rest);
    return PITH_OK;
}

static pith_status group_query_run(pith__run *r) {
    return pith__widen_run(r, 0, group_query_run_plain);
}

const pith__op pith__op_GroupQueryAttention_ms = {
    .domain = "com.microsoft",
    .name = "GroupQueryAttention",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 16,
    .max_outputs = 4,
    .types = "hhhyywwhhlhheehh",
    .attrs = "causal bool = 1; do_rotary bool; k_norm_epsilon float; "
             "k_quant_type string NONE|PER_TENSOR|PER_CHANNEL = NONE; "
             "kv_cache_bit_width int 0|4|8; kv_num_heads int! 1..; "
             "local_window_size int -1.. = -1; num_heads int! 1..; q_norm_epsilon float; "
             "qk_norm_epsilon float = 1e-06; qk_output int 0..2 = 0; "
             "rotary_interleaved bool; scale float; sliding_window_cache bool = 0; "
             "smooth_softmax int -1..1 = -1; softcap float; "
             "v_quant_type string NONE|PER_TENSOR|PER_CHANNEL = NONE",
    .shape_inputs = 1u << TOTAL,
    .infer = group_query_infer,
    .prepare = group_query_prepare,
    .scratch = group_query_scratch,
    .run = group_query_run
};

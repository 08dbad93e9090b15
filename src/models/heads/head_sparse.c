/* head_sparse.c - weights of vocabulary entries, from one of three forms of an output:
 *   one row per text, [vocabulary]: the weights as they are (an exported SPLADE model); one row per
 *   token, [vocabulary]: logits of a masked language model. The weight is log(1 + max(0, logit)),
 *   at its
 *     largest over the tokens or summed over them (SPLADE, arXiv 2107.05720 and 2109.10086). Some
 *     models take that logarithm twice (sentence-transformers, SpladePooling, log1p_relu);
 *   one number per token: the weight of that token's id, at its largest (BGE-M3, arXiv 2402.03216).
 * Weights that are not greater than 0 are left out, except negative ones of words that stand for
 * themselves (sentence-transformers, SparseStaticEmbedding). A model may keep its largest weights
 * only (max_active_dims). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/kernels/unary.h"
#include "models/heads/id_list.h"
#include "models/heads/sparse_request.h"

typedef struct sparse_state {
    const pith__sparse_request *request;
    pith__sparse_settings settings;
    pith__unary_f32_fn *log;
    bool pooled;
} sparse_state;

/* The kernel is looked up once for all texts of a call. */
static pith_status sparse_open(const void **state, const pith__head_model *model,
                               const void *request, pith__arena *arena, pith_error *err) {
    sparse_state *s = pith__arena_array(arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(err, sizeof *s);
    pith__lacks lacks = { .count = 0 };
    *s = (sparse_state){ .request = request,
                         .settings = model->modules->sparse,
                         .pooled = model->pooled,
                         .log = PITH_KERNEL_NEED(pith__unary_f32_fn, "log", PITH_F32, model->isa,
                                                 &lacks) };
    PITH_TRY(pith__lacks_check(&lacks, err));
    *state = s;
    return PITH_OK;
}

static float sparse_size(float x) { return x < 0 ? -x : x; }

static int sparse_compare_sizes(const void *a, const void *b) {
    const pith__sparse_weight *x = a, *y = b;
    const float p = sparse_size(x->value), q = sparse_size(y->value);
    if (p < q || p > q) return p > q ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int sparse_compare_indices(const void *a, const void *b) {
    const pith__sparse_weight *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* The largest are kept by size, so that negative weights count too; of equal ones the lower index.
 * Then the order by index is restored. */
pith_status pith__sparse_put(pith__collected *weights, size_t text, pith__sparse_weight *items,
                             size_t count, int32_t most, pith_error *err) {
    void *data;
    if (most && count > (size_t)most) {
        qsort(items, count, sizeof *items, sparse_compare_sizes);
        count = (size_t)most;
        qsort(items, count, sizeof *items, sparse_compare_indices);
    }
    PITH_TRY(pith__collected_put(&data, weights, text, count, sizeof *items, err));
    if (count) memcpy(data, items, count * sizeof *items);
    return PITH_OK;
}

/* Counted first, so that the scratch memory is that of the items and not of the vocabulary. */
pith_status pith__sparse_put_row(pith__collected *weights, size_t text, const float *row,
                                 int64_t width, int32_t most, pith__arena *scratch,
                                 pith_error *err) {
    size_t count = 0;
    for (int64_t i = 0; i < width; i++) count += row[i] > 0;
    pith__sparse_weight *items = pith__arena_array(scratch, count, sizeof *items);
    if (!items) return pith__fail_memory(err, count * sizeof *items);
    count = 0;
    for (int64_t i = 0; i < width; i++)
        if (row[i] > 0) items[count++] = (pith__sparse_weight){ (int32_t)i, row[i] };
    return pith__sparse_put(weights, text, items, count, most, err);
}

/* weights of all vocabulary entries to items. */
static pith_status sparse_put(const sparse_state *s, const pith__head_rows *x, const float *weights,
                              int64_t width, pith_error *err) {
    return pith__sparse_put_row(s->request->weights, x->text, weights, width, s->settings.most,
                                x->scratch, err);
}

/* log(1 + max(0, x)) of n numbers, once or twice; y may be x. */
static void sparse_saturate(const sparse_state *s, const float *x, float *y, int64_t n) {
    for (int times = s->settings.twice ? 2 : 1; times; times--, x = y) {
        for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? 1 + x[i] : 1;
        s->log(y, y, (size_t)n);
    }
}

/* log(1 + relu(x)) grows with x, so the maximum over tokens is taken of the logits and saturated
 * once. Sums need it for each token. Source: SPLADE, and SpladePooling of sentence-transformers. */
static pith_status sparse_emit_logits(const sparse_state *s, const pith__head_rows *x,
                                      pith_error *err) {
    const size_t bytes = (size_t)x->width * sizeof(float);
    float *weights = pith__arena_array(x->scratch, (size_t)x->width, sizeof *weights);
    float *row = pith__arena_array(x->scratch, (size_t)x->width, sizeof *row);
    if (!weights || !row) return pith__fail_memory(err, bytes);
    for (int64_t t = 0; t < x->count; t++) {
        const float *logits = x->rows + t * x->width;
        if (s->settings.sum) {
            sparse_saturate(s, logits, row, x->width);
            for (int64_t i = 0; i < x->width; i++) weights[i] += row[i];
        } else {
            for (int64_t i = 0; i < x->width; i++)
                weights[i] = logits[i] > weights[i] ? logits[i] : weights[i];
        }
    }
    if (!s->settings.sum) sparse_saturate(s, weights, weights, x->width);
    return sparse_put(s, x, weights, x->width, err);
}

/* By ascending id; of one id the largest weight comes first. */
static int sparse_compare(const void *a, const void *b) {
    const pith__sparse_weight *x = a, *y = b;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return (x->value < y->value) - (x->value > y->value);
}

static bool sparse_counts(const sparse_state *s, float weight, int32_t id) {
    const pith__sparse_request *r = s->request;
    if (s->settings.words) return weight > 0 || weight < 0;
    return weight > 0 && !pith__id_list_has(r->skip, r->skip_count, id);
}

/* A token that occurs several times has its largest weight, as in FlagEmbedding's M3. */
static pith_status sparse_emit_tokens(const sparse_state *s, const pith__head_rows *x,
                                      pith_error *err) {
    pith__sparse_weight *items = pith__arena_array(x->scratch, (size_t)x->count, sizeof *items);
    size_t count = 0, kept = 0;
    if (!items) return pith__fail_memory(err, (size_t)x->count * sizeof *items);
    for (int64_t t = 0; t < x->count; t++)
        if (sparse_counts(s, x->rows[t], x->ids[t]))
            items[count++] = (pith__sparse_weight){ x->ids[t], x->rows[t] };
    qsort(items, count, sizeof *items, sparse_compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || items[kept - 1].index != items[i].index) items[kept++] = items[i];
    return pith__sparse_put(s->request->weights, x->text, items, kept, s->settings.most, err);
}

static pith_status sparse_emit(const void *state, const pith__head_rows *x, pith_error *err) {
    const sparse_state *s = state;
    if (x->bad) return pith__collected_put_none(s->request->weights, x->text);
    if (!x->count) return sparse_put(s, x, NULL, 0, err);
    if (s->pooled) return sparse_put(s, x, x->rows, x->width, err);
    return x->width == 1 ? sparse_emit_tokens(s, x, err) : sparse_emit_logits(s, x, err);
}

const pith__head pith__head_sparse = { .name = "sparse",
                                       .phase = "sparse",
                                       .outputs =
                                           "sparse_vecs sparse_embedding sparse_weights logits",
                                       .takes = PITH_HEAD_TOKENS | PITH_HEAD_TEXTS,
                                       .open = sparse_open,
                                       .emit = sparse_emit };

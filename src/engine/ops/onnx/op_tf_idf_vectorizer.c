/* op_tf_idf_vectorizer.c - TfIdfVectorizer: weighted counts of known n-grams per row.
 *
 * The pool lists the grams of each size one after another. A skip-gram of size n at distance s
 * takes elements s apart. Every gram is compared as it is, because pools are small. Source: ONNX
 * operator TfIdfVectorizer. */
#include <string.h>

#include "engine/ops/op.h"

typedef struct tfidf {
    const int64_t *ints, *counts, *indexes;
    const pith_str *strings;
    const float *weights;
    size_t items, count_count, index_count, weight_count;
    int64_t shortest, longest, skip, width;
    bool idf, tf;
} tfidf;

/* The pool holds all grams of length 1, then 2, …; ngram_counts says where each length begins.
 * Everything that the run indexes with is checked here. */
static pith_status tfidf_read_attributes(const pith__node *node, tfidf *t, pith_error *err) {
    size_t strings, ints;
    *t = (tfidf){ .shortest = pith__node_int(node, "min_gram_length", 1),
                  .longest = pith__node_int(node, "max_gram_length", 1),
                  .skip = pith__node_int(node, "max_skip_count", 0) };
    t->strings = pith__node_strs(node, "pool_strings", &strings);
    t->ints = pith__node_ints(node, "pool_int64s", &ints);
    t->items = t->strings ? strings : ints;
    t->counts = pith__node_ints(node, "ngram_counts", &t->count_count);
    t->indexes = pith__node_ints(node, "ngram_indexes", &t->index_count);
    t->weights = pith__node_floats(node, "weights", &t->weight_count);
    pith_str mode = pith__node_str(node, "mode", "");
    t->tf = pith__str_is(mode, "TF") || pith__str_is(mode, "TFIDF");
    t->idf = pith__str_is(mode, "IDF") || pith__str_is(mode, "TFIDF");
    if (!t->tf && !t->idf)
        return pith__fail(err, PITH_ERR_ARGUMENT, "mode '" PITH_STR_FMT "' is unknown",
                          PITH_STR_ARG(mode));
    if (!t->items || !t->count_count || !t->index_count)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the pool is empty");
    if (t->shortest < 1 || t->longest < t->shortest || t->skip < 0)
        return pith__fail(err, PITH_ERR_ARGUMENT, "gram lengths or skip count are wrong");
    size_t grams = 0;
    for (size_t n = 0; n < t->count_count; n++) {
        int64_t begin = t->counts[n],
                end = n + 1 < t->count_count ? t->counts[n + 1] : (int64_t)t->items;
        if (begin < 0 || end < begin || (size_t)end > t->items || (end - begin) % (int64_t)(n + 1))
            return pith__fail(err, PITH_ERR_ARGUMENT, "ngram_counts[%zu] does not fit the pool", n);
        grams += (size_t)(end - begin) / (n + 1);
    }
    if (grams > t->index_count)
        return pith__fail(err, PITH_ERR_ARGUMENT, "%zu grams but %zu indexes", grams,
                          t->index_count);
    for (size_t i = 0; i < t->index_count; i++) {
        if (t->indexes[i] < 0 || t->indexes[i] > INT32_MAX)
            return pith__fail(err, PITH_ERR_ARGUMENT, "ngram_indexes[%zu]", i);
        if (t->indexes[i] >= t->width) t->width = t->indexes[i] + 1;
    }
    if (t->weights && t->weight_count < (size_t)t->width && t->weight_count < t->index_count)
        return pith__fail(err, PITH_ERR_ARGUMENT, "%zu weights for %zu grams", t->weight_count,
                          t->index_count);
    return PITH_OK;
}

static pith_status tfidf_infer(pith__infer *c) {
    tfidf t;
    PITH_TRY(tfidf_read_attributes(c->node, &t, c->err));
    const pith__type *x = c->in[0];
    if (x->rank > 2 || x->rank == 0)
        return pith__op_fail(c, "input has %d dimensions, not 1 or 2", x->rank);
    pith__dim dims[2] = { x->rank == 1 ? t.width : x->dims[0], t.width };
    pith__type_set(&c->out[0], PITH_F32, x->rank, dims);
    return PITH_OK;
}

static pith_status tfidf_prepare(pith__prepare *c) {
    tfidf *t = pith__arena_array(c->arena, 1, sizeof *t);
    if (!t) return pith__fail_memory(c->err, sizeof *t);
    c->state = t;
    return tfidf_read_attributes(c->node, t, c->err);
}

/* Whether the gram of n items at pool[at] stands at x[from], its items step apart. */
static bool tfidf_matches(const tfidf *t, size_t at, int64_t n, const pith_tensor *x, int64_t from,
                          int64_t step) {
    for (int64_t k = 0; k < n; k++) {
        int64_t i = from + k * step;
        bool same = false;
        if (t->strings)
            same = pith__str_eq(((const pith_str *)x->data)[i], t->strings[at + (size_t)k]);
        else
            same =
                (x->dtype == PITH_I32 ? ((const int32_t *)x->data)[i]
                                      : ((const int64_t *)x->data)[i]) == t->ints[at + (size_t)k];
        if (!same) return false;
    }
    return true;
}

/* Every gram of the pool is compared at every place and distance of the row. A gram of one element
 * has only one distance. */
static pith_status tfidf_run(pith__run *r) {
    const tfidf *t = r->state;
    const pith_tensor *x = r->in[0];
    if ((x->dtype == PITH_STRING) != (t->strings != NULL))
        return pith__op_fail(r, "the input's dtype is not the pool's");
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, length = x->dims[x->rank - 1];
    /* elements further apart than the row is long are not there */
    int64_t skip = t->skip < length ? t->skip : length;
    float *y = r->out[0]->data;
    PITH_TRY(pith__run_bytes(r, y, NULL, r->out[0]->bytes));
    int64_t spent = 0;
    for (int64_t row = 0; row < rows; row++, y += t->width) {
        size_t gram = 0;
        for (size_t size = 0; size < t->count_count; size++) {
            int64_t n = (int64_t)size + 1, begin = t->counts[size];
            int64_t end = size + 1 < t->count_count ? t->counts[size + 1] : (int64_t)t->items;
            for (int64_t at = begin; at < end; at += n, gram++) {
                PITH_TRY(pith__run_spend(r, &spent, 16));
                if (n < t->shortest || n > t->longest) continue;
                for (int64_t step = 1; step <= (n == 1 ? 1 : skip + 1); step++) {
                    for (int64_t from = 0; from + (n - 1) * step < length; from++) {
                        PITH_TRY(pith__run_spend(r, &spent, 4));
                        if (tfidf_matches(t, (size_t)at, n, x, row * length + from, step))
                            y[t->indexes[gram]] += 1;
                    }
                }
            }
        }
        if (!t->idf) continue;
        for (int64_t i = 0; i < t->width; i++) {
            float weight = t->weights && (size_t)i < t->weight_count ? t->weights[i] : 1;
            if (t->tf)
                y[i] *= weight;
            else
                y[i] = y[i] > 0 ? weight : 0;
        }
    }
    return PITH_OK;
}

const pith__op pith__op_TfIdfVectorizer = {
    .domain = "",
    .name = "TfIdfVectorizer",
    .since = 9,
    .newest = 9,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "t",
    .attrs = "max_gram_length int! 1..; max_skip_count int! 0..; "
             "min_gram_length int! 1..; mode string! TF|IDF|TFIDF; "
             "ngram_counts ints! 0..; ngram_indexes ints! 0..; pool_int64s ints any; "
             "pool_strings strings; weights floats",
    .infer = tfidf_infer,
    .prepare = tfidf_prepare,
    .run = tfidf_run,
};

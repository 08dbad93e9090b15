/* head_dense.c - one vector per text: rows are pooled, go through the modules behind the pooling,
 * and are cut to the requested dimension and normalised.
 *
 * The pooled vector of a text without tokens is zeros. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/kernels/norm.h"
#include "models/heads/dense_request.h"
#include "models/heads/pooling.h"
#include "models/heads/sparse_request.h"

typedef struct dense_state {
    uint32_t pooling; /* PITH_POOL_*; not read if the model is pooled */
    bool pooled, weighted;
    const pith__bag_settings *bag; /* words is 0: rows are pooled */
    int64_t pool_width;            /* components of the pooled vector */
    const pith__vector_steps *steps;
    int64_t dim;
    pith__row_f32_fn *normalize; /* NULL: as it is */
    float *vectors;
    pith__collected *weights;
} dense_state;

/* The caller's pooling, or what the modules say. */
static uint32_t dense_pooling(const pith__head_model *model, const pith__dense_request *request) {
    switch (request->pooling) {
    case PITH_POOLING_CLS: return PITH_POOL_CLS;
    case PITH_POOLING_MEAN: return PITH_POOL_MEAN;
    case PITH_POOLING_MAX: return PITH_POOL_MAX;
    case PITH_POOLING_LAST: return PITH_POOL_LAST;
    default: return model->modules->pooling;
    }
}

static int64_t dense_pool_width(const pith__head_model *model, const pith__dense_request *request) {
    if (model->pooled) return model->width;
    if (model->modules->bag.words) return model->modules->bag.words;
    return (model->width - model->modules->weighted) *
           pith__pool_parts(dense_pooling(model, request));
}

/* 0: the modules behind the pooling take *needed components. */
static int64_t dense_full(const pith__head_model *model, const pith__dense_request *request,
                          int64_t *needed) {
    return pith__vector_steps_width(model->steps, dense_pool_width(model, request), needed);
}

size_t pith__dense_dim(const pith__head_model *model, const pith__dense_request *request) {
    int64_t needed, full = dense_full(model, request, &needed);
    int64_t dim = request->dim ? request->dim : model->modules->truncate_dim;
    if (!request->dim && dim > full) dim = full;
    if (dim < 0 || dim > full) return 0;
    return (size_t)(dim ? dim : full);
}

/* The order of the checks is that of what a caller would change first: an option, then the kind of
 * vectors, then the model. */
static pith_status dense_check(const pith__head_model *model, const pith__dense_request *r,
                               pith_error *err) {
    int64_t needed, width = dense_pool_width(model, r), full = dense_full(model, r, &needed);
    if (r->pooling < PITH_POOLING_MODEL || r->pooling > PITH_POOLING_LAST)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pooling is %d, which is not a PITH_POOLING_* value", r->pooling);
    if (r->normalize < PITH_CHOICE_NO || r->normalize > PITH_CHOICE_YES)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "normalize is %d, which is not a PITH_CHOICE_* value", r->normalize);
    if (r->pooling != PITH_POOLING_MODEL && model->pooled)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the model's graph pools already; leave out "
                          "pith_embed_options.pooling");
    if (r->pooling != PITH_POOLING_MODEL && model->modules->bag.words)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the model counts words, so there is nothing to pool; leave out "
                          "pith_embed_options.pooling");
    if (!width && model->modules->rerank.only)
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "the modules make scores of pairs of texts, not vectors: ask for those "
            "(rerank), or name a pooling of the network's rows (pith_embed_options.pooling)");
    if (!width && model->modules->sparse.only)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the modules make sparse vectors, not dense ones: ask for those "
                          "(PITH_ENCODE_SPARSE), or name a pooling of the network's rows "
                          "(pith_embed_options.pooling)");
    if (!width)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "modules.json lists no Pooling, so the model gives a vector for each "
                          "token; name a pooling (pith_embed_options.pooling) to make one of them");
    if (!full)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the pooled vectors have %lld numbers, but a module behind the pooling "
                          "needs %lld; use the "
                          "model's own pooling",
                          (long long)width, (long long)needed);
    if (pith__dense_dim(model, r)) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "dim %d is not between 1 and the model's %lld",
                      r->dim, (long long)full);
}

static bool dense_normalizes(const pith__head_model *model, const pith__dense_request *r) {
    return r->normalize ? r->normalize > 0 : model->modules->normalize;
}

/* For exports, which write the same steps as nodes. */
pith_status pith__dense_choose(uint32_t *pooling, bool *normalize, int64_t *dim,
                               const pith__head_model *model, const pith__dense_request *request,
                               pith_error *err) {
    int64_t needed;
    PITH_TRY(dense_check(model, request, err));
    *pooling = dense_pooling(model, request);
    *normalize = dense_normalizes(model, request);
    *dim = (int64_t)pith__dense_dim(model, request);
    if (*dim == dense_full(model, request, &needed)) *dim = 0;
    return PITH_OK;
}

/* *normalize is NULL if vectors are not normalised. */
static pith_status dense_normalizer(pith__row_f32_fn **normalize, const pith__head_model *model,
                                    const pith__dense_request *r, pith_error *err) {
    *normalize = NULL;
    if (!dense_normalizes(model, r)) return PITH_OK;
    pith__lacks lacks = { .count = 0 };
    *normalize = PITH_KERNEL_NEED(pith__row_f32_fn, "l2_normalize", PITH_F32, model->isa, &lacks);
    return pith__lacks_check(&lacks, err);
}

/* Chunks are averaged after the modules behind the pooling: the vectors of chunks are what callers
 * have. */
pith_status pith__dense_mean(float *mean, const pith__head_model *model,
                             const pith__dense_request *request, const double *sums, double weight,
                             pith_error *err) {
    pith__row_f32_fn *normalize;
    PITH_TRY(dense_check(model, request, err));
    PITH_TRY(dense_normalizer(&normalize, model, request, err));
    const size_t dim = pith__dense_dim(model, request);
    for (size_t i = 0; i < dim; i++) mean[i] = (float)(sums[i] / weight);
    if (normalize) normalize(mean, mean, 1, (int64_t)dim);
    return PITH_OK;
}

/* All choices are made once; emit only computes. */
static pith_status dense_open(const void **state, const pith__head_model *model,
                              const void *request, pith__arena *arena, pith_error *err) {
    const pith__dense_request *r = request;
    PITH_TRY(dense_check(model, r, err));
    size_t dim = pith__dense_dim(model, r);
    dense_state *s = pith__arena_array(arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(err, sizeof *s);
    *s = (dense_state){ .pooling = dense_pooling(model, r),
                        .pooled = model->pooled,
                        .weighted = model->modules->weighted,
                        .bag = &model->modules->bag,
                        .pool_width = dense_pool_width(model, r),
                        .steps = model->steps,
                        .dim = (int64_t)dim,
                        .vectors = r->vectors,
                        .weights = r->weights };
    PITH_TRY(dense_normalizer(&s->normalize, model, r, err));
    *state = s;
    return PITH_OK;
}

/* rows: weights of words, one after another. Words beyond the vocabulary count nothing. */
static void dense_count_words(float *y, const pith__bag_settings *bag, const pith__head_rows *x) {
    for (int64_t t = 0; t < x->count; t++) {
        const int32_t id = x->ids[t];
        if (id >= 0 && id < bag->words) y[id] = bag->once ? x->rows[t] : y[id] + x->rows[t];
    }
}

/* The text's vector before it is cut and normalised. */
static pith_status dense_vector(const float **vector, const dense_state *s,
                                const pith__head_rows *x, pith_error *err) {
    *vector = x->rows;
    if (!s->pooled || !x->count) {
        float *pooled = pith__arena_array(x->scratch, (size_t)s->pool_width, sizeof *pooled);
        if (!pooled) return pith__fail_memory(err, (size_t)s->pool_width * sizeof *pooled);
        if (s->bag->words && !s->pooled)
            dense_count_words(pooled, s->bag, x);
        else if (x->count)
            pith__pool_rows(pooled, s->pooling, x->rows, x->count, x->width - s->weighted,
                            x->prompt, s->weighted);
        *vector = pooled;
    }
    return pith__vector_steps_run(vector, s->steps, *vector, s->pool_width, x->scratch, err);
}

static pith_status dense_emit(const void *state, const pith__head_rows *x, pith_error *err) {
    const dense_state *s = state;
    float *place = s->vectors + (int64_t)x->text * s->dim;
    const float *vector;
    if (x->bad) {
        for (int64_t i = 0; i < s->dim; i++) place[i] = NAN;
        return PITH_OK;
    }
    PITH_TRY(dense_vector(&vector, s, x, err));
    if (s->normalize)
        s->normalize(vector, place, 1, s->dim);
    else
        memcpy(place, vector, (size_t)s->dim * sizeof *place);
    return PITH_OK;
}

/* Codes of a sparse autoencoder (CSR, arXiv 2503.01776). */
static pith_status dense_emit_code(const void *state, const pith__head_rows *x, pith_error *err) {
    const dense_state *s = state;
    const float *vector;
    if (x->bad) return pith__collected_put_none(s->weights, x->text);
    PITH_TRY(dense_vector(&vector, s, x, err));
    if (s->normalize) {
        float *scaled = pith__arena_array(x->scratch, (size_t)s->dim, sizeof *scaled);
        if (!scaled) return pith__fail_memory(err, (size_t)s->dim * sizeof *scaled);
        s->normalize(vector, scaled, 1, s->dim);
        vector = scaled;
    }
    return pith__sparse_put_row(s->weights, x->text, vector, s->dim, 0, x->scratch, err);
}

const pith__head pith__head_dense = {
    .name = "dense",
    .phase = "pool",
    .outputs = "sentence_embedding text_embeds last_hidden_state token_embeddings",
    .takes = PITH_HEAD_TOKENS | PITH_HEAD_TEXTS,
    .open = dense_open,
    .emit = dense_emit
};
const pith__head pith__head_sparse_code = {
    .name = "sparse_code",
    .phase = "pool",
    .outputs = "sentence_embedding text_embeds last_hidden_state token_embeddings",
    .takes = PITH_HEAD_TOKENS | PITH_HEAD_TEXTS,
    .open = dense_open,
    .emit = dense_emit_code
};

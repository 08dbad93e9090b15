/* head_vectors.c - a vector per token: normalised for late interaction (multi_vector), or as it is
 * (tokens). */
#include <string.h>

#include "base/error.h"
#include "engine/kernels/norm.h"
#include "models/heads/id_list.h"
#include "models/heads/token_pooling.h"
#include "models/heads/token_vectors_request.h"

typedef struct vectors_state {
    const pith__token_vectors_request *request;
    pith__row_f32_fn *normalize; /* NULL: as they are */
    pith__row_f32_fn *normalize_pooled;
} vectors_state;

static pith_status vectors_open(const void **state, const pith__head_model *model,
                                const void *request, pith__arena *arena, pith_error *err) {
    vectors_state *s = pith__arena_array(arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(err, sizeof *s);
    s->request = request;
    const bool pooled = s->request->pool && s->request->pool->normalizes;
    if (s->request->normalize || pooled) {
        pith__lacks lacks = { .count = 0 };
        pith__row_f32_fn *normalize =
            PITH_KERNEL_NEED(pith__row_f32_fn, "l2_normalize", PITH_F32, model->isa, &lacks);
        PITH_TRY(pith__lacks_check(&lacks, err));
        if (s->request->normalize) s->normalize = normalize;
        if (pooled) s->normalize_pooled = normalize;
    }
    *state = s;
    return PITH_OK;
}

static bool vectors_has(const pith__token_vectors_request *r, int32_t id) {
    return !pith__id_list_has(r->skip, r->skip_count, id) &&
           (!r->keep_count || pith__id_list_has(r->keep, r->keep_count, id));
}

/* The ids and vectors of the tokens that have one. */
static void vectors_fill(int32_t *ids, float *to, const vectors_state *s,
                         const pith__head_rows *x) {
    const pith__token_vectors_request *r = s->request;
    const size_t width = (size_t)x->width;
    for (int64_t t = r->skip_first; t < x->count; t++) {
        const float *row = x->rows + t * x->width;
        if (!vectors_has(r, x->ids[t])) continue;
        *ids++ = x->ids[t];
        if (s->normalize)
            s->normalize(row, to, 1, x->width);
        else
            memcpy(to, row, width * sizeof *to);
        to += width;
    }
}

static pith_status vectors_emit_pooled(const vectors_state *s, const pith__head_rows *x,
                                       size_t count, pith_error *err) {
    const size_t width = (size_t)x->width;
    int32_t *ids = pith__arena_array(x->scratch, count, sizeof *ids);
    float *rows = pith__arena_array(x->scratch, count, width * sizeof *rows);
    void *data;
    if (!ids || !rows) return pith__fail_memory(err, count * width * sizeof *rows);
    vectors_fill(ids, rows, s, x);
    PITH_TRY(pith__token_pool(rows, ids, &count, x->width, s->request->pool, x->scratch, err));
    if (s->normalize_pooled) s->normalize_pooled(rows, rows, (int64_t)count, x->width);
    PITH_TRY(pith__collected_put(&data, s->request->tokens, x->text, count, (1 + width) * 4, err));
    if (!data) return PITH_OK;
    memcpy(data, ids, count * sizeof *ids);
    memcpy((float *)data + count, rows, count * width * sizeof *rows);
    return PITH_OK;
}

static pith_status vectors_emit(const void *state, const pith__head_rows *x, pith_error *err) {
    const vectors_state *s = state;
    const pith__token_vectors_request *r = s->request;
    size_t count = 0;
    void *data;
    if (x->bad) return pith__collected_put_none(r->tokens, x->text);
    for (int64_t t = r->skip_first; t < x->count; t++) count += vectors_has(r, x->ids[t]);
    if (r->pool) return vectors_emit_pooled(s, x, count, err);
    PITH_TRY(
        pith__collected_put(&data, r->tokens, x->text, count, (1 + (size_t)x->width) * 4, err));
    if (data) vectors_fill(data, (float *)data + count, s, x);
    return PITH_OK;
}

const pith__head pith__head_multi_vector = {
    .name = "multi_vector",
    .phase = "vectors",
    .outputs = "colbert_vecs pith.colbert_vecs pith.rows token_embeddings last_hidden_state",
    .takes = PITH_HEAD_TOKENS,
    .open = vectors_open,
    .emit = vectors_emit
};
const pith__head pith__head_tokens = { .name = "tokens",
                                       .phase = "vectors",
                                       .outputs = "last_hidden_state token_embeddings",
                                       .takes = PITH_HEAD_TOKENS,
                                       .open = vectors_open,
                                       .emit = vectors_emit };

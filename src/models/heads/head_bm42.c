/* head_bm42.c - BM42: words weighed by the attention that the first token pays to them. Source:
 * fastembed 0.9, sparse/bm42.py.
 *
 * The weight of a word is the sum of those of its pieces. Stop words and ASCII punctuation are left
 * out. A stem has the largest weight of its words, x, and the number log(1 + x)^alpha; in a query
 * it has 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/murmur.h"
#include "engine/kernels/unary.h"
#include "models/heads/sparse_request.h"
#include "models/heads/word_weights_request.h"
#include "models/lexical/stemmer.h"

typedef struct bm42_state {
    const pith__word_weights_request *request;
    pith__unary_f32_fn *log, *exp;
} bm42_state;

/* No check of the model: the output has its own name, which only graphs of BM42 have. */
static pith_status bm42_open(const void **state, const pith__head_model *model, const void *request,
                             pith__arena *arena, pith_error *err) {
    bm42_state *s = pith__arena_array(arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(err, sizeof *s);
    pith__lacks lacks = { .count = 0 };
    *s = (bm42_state){ request,
                       PITH_KERNEL_NEED(pith__unary_f32_fn, "log", PITH_F32, model->isa, &lacks),
                       PITH_KERNEL_NEED(pith__unary_f32_fn, "exp", PITH_F32, model->isa, &lacks) };
    PITH_TRY(pith__lacks_check(&lacks, err));
    *state = s;
    return PITH_OK;
}

static bool bm42_is_left_out(const bm42_state *s, pith_str word) {
    const unsigned char c = (unsigned char)word.data[0];
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (word.size == 1 && c > ' ' && c < 127 && !letter) return true;
    return pith__map_get(&s->request->word_model->stops, word) != UINT32_MAX;
}

/* The distinct stems, in the order in which they first occur, and the largest weight of each. */
static pith_status bm42_stems(pith__sparse_weight *stems, size_t *count, const bm42_state *s,
                              const pith__head_rows *x, const pith__wordpiece_words *p,
                              pith__stemmer *stemmer, pith_error *err) {
    pith__map places;
    *count = 0;
    if (pith__map_init(&places, x->scratch, p->count)) return pith__fail_memory(err, p->count);
    for (size_t i = 0; i < p->count; i++) {
        const pith__wordpiece_word *w = &p->words[i];
        if (bm42_is_left_out(s, w->word)) continue;
        double sum = 0;
        if (x->rows)
            for (size_t k = w->begin; k < w->end; k++) sum += (double)x->rows[p->order[k]];
        const float weight = (float)sum;
        pith_str stem = pith__stemmer_run(stemmer, w->word);
        if (stem.data) stem = pith__arena_str(x->scratch, stem);
        if (!stem.data) return pith__fail_memory(err, w->word.size);
        uint32_t place = pith__map_get(&places, stem);
        if (place == UINT32_MAX) {
            place = (uint32_t)(*count)++;
            if (!pith__map_put(&places, stem, place, NULL))
                return pith__fail_memory(err, stem.size);
            stems[place].index =
                (int32_t)pith__murmur3_number(pith__murmur3_32(stem.data, stem.size, 0));
            stems[place].value = 0;
        }
        if (weight > stems[place].value) stems[place].value = weight;
    }
    return PITH_OK;
}

/* log(1 + x)^alpha. The rounding of 1 + x, which is large beside a small x, is taken out of the
 * logarithm again: by the factor x / ((1 + x) - 1), as Kahan does. */
static void bm42_rescore(const bm42_state *s, pith__sparse_weight *stems, float *logs,
                         size_t count) {
    for (size_t i = 0; i < count; i++) logs[i] = 1 + stems[i].value;
    s->log(logs, logs, count);
    for (size_t i = 0; i < count; i++) {
        const float x = stems[i].value, rounded = (1 + x) - 1;
        stems[i].value = rounded > 0 ? logs[i] * (x / rounded) : x;
    }
    if (s->request->alpha >= 0.5 && s->request->alpha <= 0.5) {
        for (size_t i = 0; i < count; i++) stems[i].value = sqrtf(stems[i].value);
        return;
    }
    for (size_t i = 0; i < count; i++) logs[i] = stems[i].value;
    s->log(logs, logs, count);
    for (size_t i = 0; i < count; i++) logs[i] = (float)(s->request->alpha * (double)logs[i]);
    s->exp(logs, logs, count);
    for (size_t i = 0; i < count; i++) stems[i].value = stems[i].value > 0 ? logs[i] : 0;
}

/* A query needs no attention: each of its stems weighs 1. So it runs without the network, and
 * x->rows is NULL. */
static pith_status bm42_emit(const void *state, const pith__head_rows *x, pith_error *err) {
    const bm42_state *s = state;
    pith__wordpiece_words p;
    pith__stemmer stemmer;
    size_t count;
    if (x->bad) return pith__collected_put_none(s->request->weights, x->text);
    PITH_TRY(pith__wordpiece_words_join(&p, &s->request->tokens, x->ids, (size_t)x->count, false,
                                        x->scratch, err));
    pith__sparse_weight *stems = pith__arena_array(x->scratch, p.count, sizeof *stems);
    float *logs = pith__arena_array(x->scratch, p.count, sizeof *logs);
    if (!stems || !logs) return pith__fail_memory(err, p.count * sizeof *stems);
    PITH_TRY(pith__stemmer_create(&stemmer, "english", err));
    pith_status status = bm42_stems(stems, &count, s, x, &p, &stemmer, err);
    pith__stemmer_destroy(&stemmer);
    if (status) return status;
    if (!s->request->query) bm42_rescore(s, stems, logs, count);
    if (s->request->query)
        for (size_t i = 0; i < count; i++) stems[i].value = 1;
    return pith__word_weights_put(s->request, x->text, stems, count, x->scratch, err);
}

typedef struct bm42_sorted {
    pith__sparse_weight weight;
    size_t at;
} bm42_sorted;

static int bm42_compare(const void *a, const void *b) {
    const bm42_sorted *x = a, *y = b;
    if (x->weight.index != y->weight.index) return x->weight.index < y->weight.index ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Sorted by index; of equal ones the last that was given counts, as in a Python dict. A weight of 0
 * is left out. */
pith_status pith__word_weights_put(const pith__word_weights_request *request, size_t text,
                                   pith__sparse_weight *weights, size_t count, pith__arena *scratch,
                                   pith_error *err) {
    bm42_sorted *sorted = pith__arena_array(scratch, count, sizeof *sorted);
    size_t kept = 0, last = 0;
    void *data;
    if (!sorted) return pith__fail_memory(err, count * sizeof *sorted);
    for (size_t i = 0; i < count; i++) sorted[i] = (bm42_sorted){ weights[i], i };
    qsort(sorted, count, sizeof *sorted, bm42_compare);
    for (size_t i = 0; i < count; i++) {
        last = i + 1 == count || sorted[i + 1].weight.index != sorted[i].weight.index;
        if (last && !(sorted[i].weight.value <= 0 && sorted[i].weight.value >= 0))
            weights[kept++] = sorted[i].weight;
    }
    PITH_TRY(pith__collected_put(&data, request->weights, text, kept, sizeof *weights, err));
    if (kept) memcpy(data, weights, kept * sizeof *weights);
    return PITH_OK;
}

const pith__head pith__head_bm42 = { .name = "bm42",
                                     .phase = "sparse",
                                     .outputs = PITH_BM42_OUTPUT,
                                     .takes = PITH_HEAD_TOKENS,
                                     .open = bm42_open,
                                     .emit = bm42_emit };

/* head_minicoil.c - miniCOIL: a few numbers for each word of a vocabulary, which tell its meanings
 * apart, and BM25 for all other words. Source: fastembed 0.9, sparse/minicoil.py and sparse/utils.
 *
 * A word is looked up as it is, then as a stem. The mean of the vectors of its tokens goes through
 * the matrix of the word and tanh, and is scaled to length 1. Words that are not found are cleaned
 * and stemmed. All are weighed by BM25's formula; in a query they are not. Sums are in double and
 * in a fixed order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/murmur.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "engine/kernels/unary.h"
#include "models/heads/sparse_request.h"
#include "models/heads/word_weights_request.h"
#include "models/lexical/stemmer.h"
#include "models/lexical/words.h"

enum { MINICOIL_STEM_CHARS = 40 };

typedef struct minicoil_state {
    const pith__word_weights_request *request;
    pith__unary_f32_fn *tanh;
} minicoil_state;

typedef struct minicoil_word {
    pith_str word;
    int64_t count;
    int64_t id; /* 0: not of the vocabulary */
    const float *numbers;
} minicoil_word;

/* Words by their text, in the order in which they were put. */
typedef struct minicoil_words {
    pith__map places;
    minicoil_word *items;
    size_t count, capacity;
} minicoil_words;

/* One text. */
typedef struct minicoil_text {
    const minicoil_state *s;
    const pith__word_model *word_model;
    const pith__head_rows *x;
    pith__stemmer stemmer;
    pith__wordpiece_words pieces;
    int64_t *ids; /* [tokens] the word of the vocabulary that a token is of; 0: none */
    minicoil_words found, cleaned;
} minicoil_text;

static pith_status minicoil_open(const void **state, const pith__head_model *model,
                                 const void *request, pith__arena *arena, pith_error *err) {
    minicoil_state *s = pith__arena_array(arena, 1, sizeof *s);
    const pith__word_weights_request *r = request;
    if (!s) return pith__fail_memory(err, sizeof *s);
    pith__lacks lacks = { .count = 0 };
    *s = (minicoil_state){ request, PITH_KERNEL_NEED(pith__unary_f32_fn, "tanh", PITH_F32,
                                                     model->isa, &lacks) };
    PITH_TRY(pith__lacks_check(&lacks, err));
    if (model->pooled || r->word_model->width != model->width)
        return pith__fail(
            err, PITH_ERR_FORMAT,
            "the matrices of miniCOIL need %lld numbers, but the vectors of the model have %lld",
            (long long)r->word_model->width, (long long)model->width);
    *state = s;
    return PITH_OK;
}

/* Sets *item to the word's, new (count 0) or old; *old says which. */
static pith_status minicoil_item(minicoil_word **item, bool *old, minicoil_words *words,
                                 pith_str word, pith__arena *arena, pith_error *err) {
    uint32_t place = pith__map_get(&words->places, word);
    *old = place != UINT32_MAX;
    if (!*old) {
        void *grown = words->items;
        place = (uint32_t)words->count;
        if (!pith__arena_grow(arena, &grown, words->count, &words->capacity,
                              sizeof *words->items) ||
            !pith__map_put(&words->places, word, place, NULL))
            return pith__fail_memory(err, sizeof *words->items);
        words->items = grown;
        words->items[words->count++] = (minicoil_word){ .word = word };
    }
    *item = &words->items[place];
    return PITH_OK;
}

static bool minicoil_is_stop(const minicoil_text *t, pith_str word) {
    return pith__map_get(&t->word_model->stops, word) != UINT32_MAX;
}

/* The id of a word; 0: the vocabulary does not have it. */
static pith_status minicoil_look_up(int64_t *id, minicoil_text *t, pith_str word, pith_error *err) {
    uint32_t found = UINT32_MAX;
    if (!minicoil_is_stop(t, word)) {
        found = pith__map_get(&t->word_model->ids, word);
        if (found == UINT32_MAX) found = pith__map_get(&t->word_model->stems, word);
        if (found == UINT32_MAX) {
            pith_str stem = pith__stemmer_run(&t->stemmer, word);
            if (!stem.data) return pith__fail_memory(err, word.size);
            found = pith__map_get(&t->word_model->stems, stem);
        }
    }
    *id = found == UINT32_MAX ? 0 : found;
    return PITH_OK;
}

/* ---- words of the vocabulary ---- */

/* tanh of the mean vector of the tokens of a word, times the word's matrix. All tokens of the word
 * in the text count, at whatever place it stands. Rows of the matrix are widened one by one, so it
 * stays as it is stored. */
static pith_status minicoil_numbers(const float **numbers, const minicoil_text *t, int64_t id,
                                    pith_error *err) {
    const int64_t size = t->word_model->size, width = t->word_model->width;
    float *result = pith__arena_array(t->x->scratch, (size_t)size, sizeof *result);
    float *row = pith__arena_array(t->x->scratch, (size_t)size, sizeof *row);
    float *mean = pith__arena_array(t->x->scratch, (size_t)width, sizeof *mean);
    double *sums = pith__arena_array(t->x->scratch, (size_t)size, sizeof *sums);
    int64_t tokens = 0;
    if (!result || !row || !mean || !sums)
        return pith__fail_memory(err, (size_t)(size + width) * sizeof *sums);
    for (int64_t k = 0; k < t->x->count; k++) {
        if (t->ids[k] != id) continue;
        for (int64_t i = 0; i < width; i++) mean[i] += t->x->rows[k * width + i];
        tokens++;
    }
    for (int64_t i = 0; i < width; i++) {
        pith__word_model_row(row, t->word_model, id, i);
        const double x = (double)(mean[i] / (float)tokens);
        for (int64_t o = 0; o < size; o++) sums[o] += x * (double)row[o];
    }
    for (int64_t o = 0; o < size; o++) result[o] = (float)sums[o];
    t->s->tanh(result, result, (size_t)size);
    *numbers = result;
    return PITH_OK;
}

static int minicoil_compare(const void *a, const void *b) {
    const minicoil_word *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Looks all words up: those of the vocabulary by ascending id, then the others as they first occur.
 */
static pith_status minicoil_find(minicoil_text *t, pith_error *err) {
    pith__arena *arena = t->x->scratch;
    minicoil_words known = { .items = NULL }, other = { .items = NULL };
    minicoil_word *item;
    bool old;
    if (pith__map_init(&known.places, arena, t->pieces.count) ||
        pith__map_init(&other.places, arena, t->pieces.count) ||
        pith__map_init(&t->found.places, arena, t->pieces.count))
        return pith__fail_memory(err, t->pieces.count);
    for (size_t i = 0; i < t->pieces.count; i++) {
        const pith__wordpiece_word *w = &t->pieces.words[i];
        int64_t id = 0;
        PITH_TRY(minicoil_look_up(&id, t, w->word, err));
        for (size_t k = w->begin; k < w->end; k++) t->ids[t->pieces.order[k]] = id;
        PITH_TRY(minicoil_item(&item, &old, id ? &known : &other,
                               id ? t->word_model->words[id - 1] : w->word, arena, err));
        item->id = id;
        item->count++;
    }
    if (known.count) qsort(known.items, known.count, sizeof *known.items, minicoil_compare);
    for (size_t i = 0; i < known.count; i++) {
        PITH_TRY(minicoil_item(&item, &old, &t->found, known.items[i].word, arena, err));
        *item = known.items[i];
        PITH_TRY(minicoil_numbers(&item->numbers, t, item->id, err));
    }
    for (size_t i = 0; i < other.count; i++) { /* a stop word may be the word of the vocabulary of
                                                  another one */
        PITH_TRY(minicoil_item(&item, &old, &t->found, other.items[i].word, arena, err));
        *item = other.items[i];
    }
    return PITH_OK;
}

/* ---- other words ---- */

static size_t minicoil_chars(pith_str word) {
    size_t chars = 0;
    for (size_t i = 0; i < word.size; i++) chars += ((unsigned char)word.data[i] & 0xC0) != 0x80;
    return chars;
}

/* Punctuation, the special tokens of BERT, stop words. */
static bool minicoil_is_unwanted(const minicoil_text *t, pith_str word) {
    static const char *const specials[] = { "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]" };
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (pith__str_is(word, specials[i])) return true;
    /* Other punctuation has no characters of words, so nothing is left of it. */
    return pith__str_is(word, "_") || minicoil_is_stop(t, word);
}

static pith_status minicoil_add(minicoil_text *t, pith_str part, int64_t count, pith_error *err) {
    minicoil_word *item;
    bool old;
    pith_str stem = pith__stemmer_run(&t->stemmer, part);
    if (stem.data) stem = pith__arena_str(t->x->scratch, stem);
    if (!stem.data) return pith__fail_memory(err, part.size);
    if (minicoil_chars(stem) > MINICOIL_STEM_CHARS || minicoil_is_unwanted(t, stem)) return PITH_OK;
    PITH_TRY(minicoil_item(&item, &old, &t->cleaned, stem, t->x->scratch, err));
    item->count += count;
    return PITH_OK;
}

/* Cuts a word at all that is no letter and no number, and adds the stems of its parts. */
static pith_status minicoil_clean_word(minicoil_text *t, const minicoil_word *word,
                                       pith_error *err) {
    const char *p = word->word.data, *end = p + word->word.size, *begin = NULL;
    if (minicoil_is_unwanted(t, word->word)) return PITH_OK;
    while (p < end) {
        const char *at = p;
        const bool has = pith__words_has(pith__utf8_next(&p));
        if (has && !begin) begin = at;
        if (!has && begin)
            PITH_TRY(minicoil_add(t, (pith_str){ begin, (size_t)(at - begin) }, word->count, err));
        if (!has) begin = NULL;
    }
    return begin ? minicoil_add(t, (pith_str){ begin, (size_t)(end - begin) }, word->count, err)
                 : PITH_OK;
}

static pith_status minicoil_clean(minicoil_text *t, pith_error *err) {
    minicoil_word *item;
    bool old;
    if (pith__map_init(&t->cleaned.places, t->x->scratch, t->found.count))
        return pith__fail_memory(err, t->found.count);
    for (size_t i = 0; i < t->found.count; i++) {
        const minicoil_word *word = &t->found.items[i];
        if (!word->id) {
            PITH_TRY(minicoil_clean_word(t, word, err));
            continue;
        }
        PITH_TRY(minicoil_item(&item, &old, &t->cleaned, word->word, t->x->scratch, err));
        *item = *word;
    }
    return PITH_OK;
}

/* ---- weights ---- */

/* BM25's weight of each word, with the length of the text counted in words. A word of the
 * vocabulary spreads it over its numbers, scaled to length 1, in a range of indexes of its own. Any
 * other word has one index behind all of these, from a hash of it (MurmurHash3, absolute value),
 * which may collide. */
static pith_status minicoil_weigh(const minicoil_text *t, pith_error *err) {
    const pith__word_model *h = t->word_model;
    const pith__word_weights_request *r = t->s->request;
    const size_t size = (size_t)h->size;
    double words = 0;
    size_t n = 0, most = 0;
    for (size_t i = 0; i < t->cleaned.count; i++) {
        words += (double)t->cleaned.items[i].count;
        most += t->cleaned.items[i].id ? size : 1;
    }
    const double length_part = r->k * (1 - r->b + r->b * words / r->avg_len);
    pith__sparse_weight *weights = pith__arena_array(t->x->scratch, most, sizeof *weights);
    if (!weights) return pith__fail_memory(err, most * sizeof *weights);
    for (size_t i = 0; i < t->cleaned.count; i++) {
        const minicoil_word *word = &t->cleaned.items[i];
        const double times = (double)word->count;
        const double tf = r->query ? 1 : times * (r->k + 1) / (times + length_part);
        if (!word->id) {
            uint32_t hash =
                pith__murmur3_abs(pith__murmur3_32(word->word.data, word->word.size, 0));
            uint32_t index =
                (uint32_t)h->unknown_from + hash % (uint32_t)(INT32_MAX - h->unknown_from);
            weights[n++] = (pith__sparse_weight){ (int32_t)index, (float)tf };
            continue;
        }
        double squares = 0;
        for (size_t o = 0; o < size; o++)
            squares += (double)word->numbers[o] * (double)word->numbers[o];
        const double length = sqrt(squares), scale = length < 1e-8 ? 1 : length;
        for (size_t o = 0; o < size; o++)
            weights[n++] = (pith__sparse_weight){ (int32_t)((size_t)word->id * size + o),
                                                  (float)((double)word->numbers[o] / scale * tf) };
    }
    return pith__word_weights_put(r, t->x->text, weights, n, t->x->scratch, err);
}

static pith_status minicoil_run(minicoil_text *t, pith_error *err) {
    PITH_TRY(minicoil_find(t, err));
    PITH_TRY(minicoil_clean(t, err));
    return minicoil_weigh(t, err);
}

static pith_status minicoil_emit(const void *state, const pith__head_rows *x, pith_error *err) {
    const minicoil_state *s = state;
    minicoil_text t = { .s = s, .word_model = s->request->word_model, .x = x };
    if (x->bad) return pith__collected_put_none(s->request->weights, x->text);
    PITH_TRY(pith__wordpiece_words_join(&t.pieces, &s->request->tokens, x->ids, (size_t)x->count,
                                        true, x->scratch, err));
    t.ids = pith__arena_array(x->scratch, (size_t)x->count, sizeof *t.ids);
    if (!t.ids) return pith__fail_memory(err, (size_t)x->count * sizeof *t.ids);
    PITH_TRY(pith__stemmer_create(&t.stemmer, "english", err));
    pith_status status = minicoil_run(&t, err);
    pith__stemmer_destroy(&t.stemmer);
    return status;
}

const pith__head pith__head_minicoil = { .name = "minicoil",
                                         .phase = "sparse",
                                         .outputs = "last_hidden_state token_embeddings",
                                         .takes = PITH_HEAD_TOKENS,
                                         .open = minicoil_open,
                                         .emit = minicoil_emit };

/* word_models.c - see word_models.h. */
#include "models/lexical/word_models.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/formats/json.h"
#include "base/formats/npy.h"
#include "base/half.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

#define WORD_MODEL_VOCABULARY "minicoil.triplet.model.vocab"
#define WORD_MODEL_MATRICES "minicoil.triplet.model.npy"
/* Words without an id have indices behind those of the words, and a gap of one to two steps. */
enum { WORD_MODEL_STEP = 32000 };

/* ---- maps ---- */

static pith_status word_model_map_words(pith__word_model *h, pith__arena *arena, pith_error *err) {
    size_t distinct = 0;
    uint32_t old;
    if (pith__map_init(&h->ids, arena, h->word_count) ||
        pith__map_init(&h->stems, arena, h->stem_count))
        return pith__fail_memory(err, h->word_count);
    for (size_t i = 0; i < h->word_count; i++) {
        if (!pith__map_put(&h->ids, h->words[i], (uint32_t)i + 1, &old))
            return pith__fail_memory(err, h->word_count);
        distinct += old == UINT32_MAX;
    }
    for (size_t i = 0; i < h->stem_count; i++) {
        const pith__word_model_stem *s = &h->stem_list[i];
        uint32_t id = pith__map_get(&h->ids, s->word);
        if (id == UINT32_MAX)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "stem_mapping: '" PITH_STR_FMT "' stands for '" PITH_STR_FMT
                              "', which is not in vocab",
                              PITH_STR_ARG(s->stem), PITH_STR_ARG(s->word));
        if (!pith__map_put(&h->stems, s->stem, id, NULL))
            return pith__fail_memory(err, h->stem_count);
    }
    const int64_t places = ((int64_t)distinct + 1) * h->size;
    h->unknown_from = (int32_t)((places / WORD_MODEL_STEP + 2) * WORD_MODEL_STEP);
    return PITH_OK;
}

static pith_status word_model_check_matrices(const pith__word_model *h, pith_str matrices,
                                             pith_error *err) {
    size_t items, total;
    if (pith__mul_overflows((size_t)h->rows, (size_t)h->width, &items) ||
        pith__mul_overflows(items, (size_t)h->size, &items) ||
        pith__mul_overflows(items, h->dtype == PITH_F32 ? 4 : 2, &total) || matrices.size != total)
        return pith__fail(err, PITH_ERR_FORMAT,
                          WORD_MODEL_MATRICES
                          ": has %zu bytes behind its header, which its shape does not fit",
                          matrices.size);
    if (h->rows + 1 > (INT32_MAX - 3 * (int64_t)WORD_MODEL_STEP) / h->size)
        return pith__fail(err, PITH_ERR_FORMAT,
                          WORD_MODEL_MATRICES
                          ": has so many outputs that 32-bit indices do not suffice");
    if ((int64_t)h->word_count >= h->rows)
        return pith__fail(err, PITH_ERR_FORMAT,
                          WORD_MODEL_VOCABULARY
                          ": vocab has %zu words, but " WORD_MODEL_MATRICES
                          " has %lld matrices; it needs one for each word and one more in front",
                          h->word_count, (long long)h->rows);
    return PITH_OK;
}

pith_status pith__word_model_complete(pith__word_model *h, pith_str matrices, pith__arena *arena,
                                      pith_error *err) {
    if (pith__map_init(&h->stops, arena, h->stop_count + 1))
        return pith__fail_memory(err, h->stop_count);
    for (size_t i = 0; i < h->stop_count; i++)
        if (!pith__map_put(&h->stops, h->stop_words[i], 1, NULL))
            return pith__fail_memory(err, h->stop_count);
    if (h->kind != PITH_WORD_MODEL_MINICOIL) return PITH_OK;
    PITH_TRY(word_model_check_matrices(h, matrices, err));
    h->matrices = matrices.data;
    pith_status status = word_model_map_words(h, arena, err);
    return status == PITH_ERR_FORMAT ? pith__fail_at(err, status, WORD_MODEL_VOCABULARY ": ")
                                     : status;
}

/* ---- lists ---- */

typedef struct word_model_lists {
    pith_str *stops, *words;
    pith__word_model_stem *stems;
    size_t stop_count, stop_capacity, word_count, word_capacity, stem_count, stem_capacity;
} word_model_lists;

static bool word_model_add_word(pith_str **words, size_t *count, size_t *capacity, pith_str word,
                                pith__arena *arena) {
    void *grown = *words;
    if (!pith__arena_grow(arena, &grown, *count, capacity, sizeof **words)) return false;
    *words = grown;
    (*words)[(*count)++] = word;
    return true;
}

static pith_status word_model_read_stops(word_model_lists *l, const char *dir, pith__files *files,
                                         pith__arena *arena, pith_error *err) {
    pith_str path, text;
    bool there;
    PITH_TRY(pith__file_find(&there, &path, arena, dir, "stopwords.txt", err));
    if (!there) return PITH_OK;
    PITH_TRY(pith__files_open(&text, files, path.data, err));
    if (pith__utf8_valid_prefix(text.data, text.size) < text.size)
        return pith__fail(err, PITH_ERR_FORMAT, "%s: is not UTF-8", path.data);
    for (size_t at = 0, end; at < text.size; at = end + 1) {
        for (end = at; end < text.size && text.data[end] != '\n';) end++;
        pith_str word = { text.data + at, end - at };
        if (word.size && word.data[word.size - 1] == '\r') word.size--;
        if (!word_model_add_word(&l->stops, &l->stop_count, &l->stop_capacity, word, arena))
            return pith__fail_memory(err, word.size);
    }
    return PITH_OK;
}

static void word_model_read_words(pith__json *j, word_model_lists *l, pith__arena *arena) {
    for (pith__json_array(j); pith__json_next_item(j);) {
        if (word_model_add_word(&l->words, &l->word_count, &l->word_capacity, pith__json_string(j),
                                arena))
            continue;
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
}

static void word_model_read_stems(pith__json *j, word_model_lists *l, pith__arena *arena) {
    pith_str stem;
    for (pith__json_object(j); pith__json_next_key(j, &stem);) {
        void *grown = l->stems;
        if (!pith__arena_grow(arena, &grown, l->stem_count, &l->stem_capacity, sizeof *l->stems)) {
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        l->stems = grown;
        l->stems[l->stem_count++] = (pith__word_model_stem){ stem, pith__json_string(j) };
    }
}

static pith_status word_model_read_vocabulary(word_model_lists *l, const char *dir,
                                              pith__files *files, pith__arena *arena,
                                              pith_error *err) {
    pith__json *j = pith__arena_alloc(arena, sizeof *j);
    pith_str path, text, key;
    if (!j) return pith__fail_memory(err, sizeof *j);
    PITH_TRY(pith__path_join(&path, arena, dir, PITH_STR(WORD_MODEL_VOCABULARY), err));
    PITH_TRY(pith__files_open(&text, files, path.data, err));
    pith__json_init(j, text, path.data, arena, err);
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "vocab"))
            word_model_read_words(j, l, arena);
        else if (pith__str_is(key, "stem_mapping"))
            word_model_read_stems(j, l, arena);
        else
            pith__json_skip(j);
    }
    pith__json_finish(j);
    if (!j->failed) return PITH_OK;
    return j->err ? j->err->code : PITH_ERR_FORMAT;
}

/* ---- matrices ---- */

static pith_status word_model_read_matrices(pith__word_model *h, pith_str *matrices,
                                            const char *path, pith__files *files, pith_error *err) {
    pith_str bytes;
    pith__npy npy;
    PITH_TRY(pith__files_open(&bytes, files, path, err));
    const pith__npy_fault fault = pith__npy_read(&npy, bytes);
    if (fault == PITH_NPY_NONE || fault == PITH_NPY_CUT || npy.version < 1 || npy.version > 2)
        return pith__fail(err, PITH_ERR_FORMAT, "%s: is not a .npy file of version 1 or 2", path);
    h->dtype = pith__npy_dtype(npy.type);
    if (fault || npy.fortran || npy.rank != 3 || npy.dims[0] < 1 || npy.dims[1] < 1 ||
        npy.dims[2] < 1 || (h->dtype != PITH_F32 && h->dtype != PITH_F16))
        return pith__fail(
            err, PITH_ERR_FORMAT,
            "%s: is not an array [words, inputs, outputs] of float32 or float16, in C order", path);
    h->rows = npy.dims[0];
    h->width = npy.dims[1];
    h->size = npy.dims[2];
    *matrices = npy.contents;
    return PITH_OK;
}

void pith__word_model_row(float *row, const pith__word_model *h, int64_t id, int64_t input) {
    const size_t first = ((size_t)id * (size_t)h->width + (size_t)input) * (size_t)h->size;
    if (h->dtype == PITH_F32) {
        memcpy(row, h->matrices + first * sizeof *row, (size_t)h->size * sizeof *row);
        return;
    }
    for (size_t i = 0; i < (size_t)h->size; i++) {
        uint16_t half;
        memcpy(&half, h->matrices + (first + i) * sizeof half, sizeof half);
        row[i] = pith__f32_of_f16(half);
    }
}

pith_status pith__word_model_read(pith__word_model *h, pith__word_model_kind otherwise,
                                  const char *dir, pith__files *files, pith__arena *arena,
                                  pith_error *err) {
    pith_str path, matrices = { NULL, 0 };
    bool there;
    word_model_lists lists = { .words = NULL };
    *h = (pith__word_model){ .kind = otherwise };
    PITH_TRY(pith__file_find(&there, &path, arena, dir, WORD_MODEL_MATRICES, err));
    if (there) h->kind = PITH_WORD_MODEL_MINICOIL;
    if (!h->kind) return PITH_OK;
    PITH_TRY(word_model_read_stops(&lists, dir, files, arena, err));
    if (there) PITH_TRY(word_model_read_matrices(h, &matrices, path.data, files, err));
    if (there) PITH_TRY(word_model_read_vocabulary(&lists, dir, files, arena, err));
    h->stop_words = lists.stops;
    h->stop_count = lists.stop_count;
    h->words = lists.words;
    h->word_count = lists.word_count;
    h->stem_list = lists.stems;
    h->stem_count = lists.stem_count;
    pith_status status = pith__word_model_complete(h, matrices, arena, err);
    return status == PITH_ERR_FORMAT ? pith__fail_at(err, status, "%s/", dir) : status;
}

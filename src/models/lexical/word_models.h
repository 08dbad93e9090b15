/* word_models.h - what a directory says about words, for sparse vectors that join words with a
 * network: BM42 and miniCOIL.
 *
 * Both put the pieces of a tokenizer together again to words, leave out stop words, and stem the
 * others. Sources: fastembed 0.9, sparse/bm42.py, sparse/minicoil.py and sparse/utils. */
#ifndef PITH_MODELS_LEXICAL_WORD_MODELS_H
#define PITH_MODELS_LEXICAL_WORD_MODELS_H

#include "base/memory/span_map.h"
#include "base/os/file.h"

typedef enum pith__word_model_kind {
    PITH_WORD_MODEL_NONE,
    PITH_WORD_MODEL_BM42,
    PITH_WORD_MODEL_MINICOIL
} pith__word_model_kind;

typedef struct pith__word_model_stem {
    pith_str stem, word; /* the word that the stem stands for */
} pith__word_model_stem;

typedef struct pith__word_model {
    pith__word_model_kind kind;
    const pith_str *stop_words; /* [stop_count] */
    size_t stop_count;
    pith__map stops; /* the same */
    /* miniCOIL only: */
    const pith_str *words; /* [word_count]; the id of words[i] is i + 1 */
    size_t word_count;
    const pith__word_model_stem *stem_list; /* [stem_count] */
    size_t stem_count;
    pith__map ids;        /* of words */
    pith__map stems;      /* stems to ids of words */
    int32_t unknown_from; /* words without an id have indices from here on */
    int32_t dtype;        /* of the matrices, PITH_F32 or PITH_F16, little-endian */
    const char *matrices; /* [rows, width, size], by id; any alignment; in a file that stays open */
    int64_t rows, width, size;
} pith__word_model;

/* Reads stopwords.txt (without it there are no stop words); and minicoil.triplet.model.vocab and
 * .npy, if the second is there: then the kind is miniCOIL, else it is `otherwise`. Memory is in the
 * arena, the files stay open in `files`. PITH_ERR_FORMAT names the file and what is wrong. */
pith_status pith__word_model_read(pith__word_model *word_model, pith__word_model_kind otherwise,
                                  const char *dir, pith__files *files, pith__arena *arena,
                                  pith_error *err);

/* Completes a model whose kind, lists, dtype, rows, width and size are set: makes the maps and the
 * first index of words without an id. matrices: the bytes of miniCOIL's matrices. Of equal words,
 * and of equal stems, the last one counts. PITH_ERR_FORMAT names the list or array that does not
 * fit; the caller puts the file in front. */
pith_status pith__word_model_complete(pith__word_model *word_model, pith_str matrices,
                                      pith__arena *arena, pith_error *err);

/* A matrix of a word at row `input`: [size] numbers. id is below rows. */
void pith__word_model_row(float *row, const pith__word_model *word_model, int64_t id,
                          int64_t input);

#endif

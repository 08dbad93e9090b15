/* save_words.c - see save_words.h. The section is: u32 kind; the stop words; and for miniCOIL the
 * words, the stems with their words, the dtype and shape of the matrices, and the number of the
 * weights that hold them. */
#include "models/save/save_words.h"

#include "base/dtype.h"
#include "base/error.h"

static void write_words(pith__bytes_out *out, const pith_str *words, size_t count) {
    pith__put_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) pith__put_str(out, words[i]);
}

pith_status pith__save_words_write(pith__bytes_out *out, pith__constant_spans_out *weights,
                                   const pith__word_model *h, pith_error *err) {
    uint32_t number;
    size_t bytes;
    pith__put_u32(out, h->kind);
    write_words(out, h->stop_words, h->stop_count);
    if (h->kind != PITH_WORD_MODEL_MINICOIL) return PITH_OK;
    write_words(out, h->words, h->word_count);
    pith__put_u32(out, (uint32_t)h->stem_count);
    for (size_t i = 0; i < h->stem_count; i++) {
        pith__put_str(out, h->stem_list[i].stem);
        pith__put_str(out, h->stem_list[i].word);
    }
    pith__put_u32(out, (uint32_t)h->dtype);
    pith__put_i64(out, h->rows);
    pith__put_i64(out, h->width);
    pith__put_i64(out, h->size);
    if (!pith__dtype_bytes(h->dtype, h->rows * h->width * h->size, &bytes))
        return pith__fail_memory(err, SIZE_MAX);
    PITH_TRY(pith__constant_spans_add(&number, weights, h->matrices, bytes, err));
    pith__put_u32(out, number);
    return PITH_OK;
}

static void *words_array(pith__bytes_in *in, pith__arena *arena, size_t *count, size_t item_bytes,
                         size_t size) {
    *count = pith__get_count(in, item_bytes);
    void *array = pith__arena_array(arena, *count, size);
    if (!array && !in->status) in->status = pith__fail_memory(in->err, *count * size);
    if (!array) *count = 0;
    return array;
}

static const pith_str *read_words(pith__bytes_in *in, pith__arena *arena, size_t *count) {
    pith_str *words = words_array(in, arena, count, 4, sizeof *words);
    for (size_t i = 0; i < *count; i++) words[i] = pith__get_str(in);
    return words;
}

/* A size of the matrices; such that no product of three overflows unseen, see
 * pith__word_model_complete. */
static int64_t read_size(pith__bytes_in *in) {
    const int64_t size = pith__get_i64(in);
    if (size < 1 || size > INT32_MAX) pith__bytes_fail(in, "an impossible size of matrices");
    return size;
}

static pith_str read_matrices(pith__word_model *h, pith__bytes_in *in,
                              const pith__constant_spans_in *weights, pith__arena *arena) {
    h->words = read_words(in, arena, &h->word_count);
    pith__word_model_stem *stems = words_array(in, arena, &h->stem_count, 8, sizeof *stems);
    for (size_t i = 0; i < h->stem_count; i++) {
        stems[i].stem = pith__get_str(in);
        stems[i].word = pith__get_str(in);
    }
    h->stem_list = stems;
    h->dtype = (int32_t)pith__get_u32(in);
    if (h->dtype != PITH_F32 && h->dtype != PITH_F16)
        pith__bytes_fail(in, "matrices of another dtype");
    h->rows = read_size(in);
    h->width = read_size(in);
    h->size = read_size(in);
    const uint32_t number =
        pith__get_below(in, (uint32_t)weights->count, "a reference to weights that do not exist");
    return in->status ? (pith_str){ NULL, 0 } : pith__constant_spans_get(weights, number);
}

pith_status pith__save_words_read(pith__word_model *word_model, pith_str section,
                                  const pith__constant_spans_in *weights, pith__arena *arena,
                                  pith_error *err) {
    pith__bytes_in in = { .bytes = section, .what = "words", .err = err };
    pith_str matrices = { NULL, 0 };
    if (!section.data) return PITH_OK;
    pith__word_model h = { .kind = (pith__word_model_kind)pith__get_below(
                               &in, PITH_WORD_MODEL_MINICOIL + 1, "an unknown kind") };
    if (!h.kind) pith__bytes_fail(&in, "an unknown kind");
    h.stop_words = read_words(&in, arena, &h.stop_count);
    if (h.kind == PITH_WORD_MODEL_MINICOIL) matrices = read_matrices(&h, &in, weights, arena);
    PITH_TRY(pith__bytes_end(&in));
    pith_status status = pith__word_model_complete(&h, matrices, arena, err);
    if (status) return pith__fail_at(err, status, "words: ");
    *word_model = h;
    return PITH_OK;
}

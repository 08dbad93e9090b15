/* bm25.h - sparse vectors of texts without a network: BM25, as fastembed's "Qdrant/bm25" has it.
 *
 *     pith_bm25 *bm25;
 *     pith_bm25_rows rows;
 *     if (pith_bm25_open(&bm25, "Qdrant/bm25", NULL, &err)) puts(err.message);
 *     if (pith_bm25_encode(&rows, bm25, texts, count, PITH_ROLE_DOCUMENT, NULL, &err))
 *         puts(err.message);
 *
 * A text becomes words: runs of letters, digits and "_", in lower case. Stop words and words that
 * are too long are left out. The others lose their endings (Snowball), and each stem becomes a
 * number: the absolute value of its MurmurHash3, x86, 32 bits, seed 0, as a signed number. The
 * vector of a document has for each stem
 *
 *     f * (k + 1) / (f + k * (1 - b + b * words / avg_len))
 *
 * where f says how often it occurs, and words counts the stems of the document. The vector of a
 * query has 1 for each stem. An index of such vectors brings in how rare a stem is (the modifier
 * "idf" of Qdrant). */
#ifndef PITH_BM25_H
#define PITH_BM25_H

#include "pith/call.h"
#include "pith/encode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable; any number of threads may use it. */
typedef struct pith_bm25 pith_bm25;

/* In the call context, the three ways to end a call and allocator have an effect. */
typedef struct pith_bm25_options {
    pith_call call;
    const char *language;          /* "english", …; pith_bm25_languages lists them; NULL:
                                      "english" */
    double k, b;                   /* 0: 1.2 and 0.75; a negative number stands for 0. b is at most
                                      1 */
    double avg_len;                /* the mean number of words of documents; 0: 256 */
    int32_t token_max_length;      /* longer words are left out, in characters; 1 to 255; 0: 40 */
    int32_t no_stemming;           /* 1: words stay as they are, and the directory's stop words are
                                      not used */
    const char *const *stop_words; /* [stop_word_count]; used instead of those of the directory */
    size_t stop_word_count;
} pith_bm25_options;

#define PITH_BM25_OPTIONS_INIT PITH_OPTIONS_INIT(pith_bm25_options)

/* Returns the names of the languages, with commas between them. Valid as long as the process. */
PITH_API const char *pith_bm25_languages(void);

/* Opens BM25 for a language. dir is a directory with stop words, one per line, in <language>.txt,
 * or a name in the model cache; NULL: there are no stop words but those of the options. A directory
 * without a file for the language has none for it either. Stemming needs libstemmer, which is
 * loaded here; without it the error is PITH_ERR_NOT_FOUND, and names the package.
 * PITH_ERR_ARGUMENT: a language that is not known, or an option out of range. */
PITH_API pith_status pith_bm25_open(pith_bm25 **bm25, const char *dir,
                                    const pith_bm25_options *options, pith_error *err);
/* NULL is allowed. Free its rows first. */
PITH_API void pith_bm25_close(pith_bm25 *bm25);

/* Vectors of texts, in compressed form (CSR): indices ascend within a row. */
typedef struct pith_bm25_rows {
    pith_sparse_rows sparse;
    void *memory; /* the library's */
} pith_bm25_rows;

/* Makes the vectors of texts, as documents or as queries (a pith_role). call: NULL is allowed; of
 * it threads, the three ways to end a call, and progress ("texts") have an effect. The caller frees
 * the rows. A text that is not UTF-8 gives PITH_ERR_ARGUMENT, and the message names its index. A
 * row does not depend on the other texts or on the number of threads. */
PITH_API pith_status pith_bm25_encode(pith_bm25_rows *rows, const pith_bm25 *bm25,
                                      const pith_str *texts, size_t count, int32_t role,
                                      const pith_call *call, pith_error *err);
/* Frees the rows and sets them to zeros. */
PITH_API void pith_bm25_rows_free(pith_bm25_rows *rows, const pith_bm25 *bm25);

#ifdef __cplusplus
}
#endif

#endif

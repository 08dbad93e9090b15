/* api_bm25.c - the public functions of pith/bm25.h. */
#include "api/entry.h"
#include "models/lexical/bm25.h"
#include "models/lexical/stemmer.h"

const char *pith_bm25_languages(void) { return pith__stemmer_languages; }

pith_status pith_bm25_open(pith_bm25 **bm25, const char *dir, const pith_bm25_options *options,
                           pith_error *err) {
    PITH_ENTRY(pith__bm25_open(bm25, dir, options, err));
}

void pith_bm25_close(pith_bm25 *bm25) { pith__bm25_close(bm25); }

pith_status pith_bm25_encode(pith_bm25_rows *rows, const pith_bm25 *bm25, const pith_str *texts,
                             size_t count, int32_t role, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__bm25_encode(rows, bm25, texts, count, role, call, err));
}

void pith_bm25_rows_free(pith_bm25_rows *rows, const pith_bm25 *bm25) {
    pith__bm25_free(rows, bm25);
}

/* bm25.h - the implementation of pith/bm25.h. */
#ifndef PITH_MODELS_LEXICAL_BM25_H
#define PITH_MODELS_LEXICAL_BM25_H

#include "pith/bm25.h"

pith_status pith__bm25_open(pith_bm25 **bm25, const char *dir, const pith_bm25_options *options,
                            pith_error *err);
void pith__bm25_close(pith_bm25 *bm25);
pith_status pith__bm25_encode(pith_bm25_rows *rows, const pith_bm25 *bm25, const pith_str *texts,
                              size_t count, int32_t role, const pith_call *call, pith_error *err);
void pith__bm25_free(pith_bm25_rows *rows, const pith_bm25 *bm25);

#endif

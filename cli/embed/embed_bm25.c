/* embed_bm25.c - see embed_bm25.h. */
#include "cli/embed/embed_bm25.h"

int bm25_open(pith_bm25 **bm25, const command *c, const char *dir, const bm25_settings *s) {
    pith_error err = PITH_ERROR_INIT;
    pith_bm25_options options = PITH_BM25_OPTIONS_INIT;
    options.language = s->language;
    options.k = s->k;
    options.b = s->b;
    if (!isnan(s->avg_len)) options.avg_len = s->avg_len;
    options.token_max_length = s->token_max_length;
    options.no_stemming = s->no_stemming;
    return pith_bm25_open(bm25, dir, &options, &err) ? fail(c, "%s", err.message) : EXIT_DONE;
}

void bm25_set_numbers(pith_encode_options *options, const bm25_settings *s) {
    options->alpha = s->alpha;
    options->k = s->k;
    options->b = s->b;
    if (!isnan(s->avg_len)) options->avg_len = s->avg_len;
}

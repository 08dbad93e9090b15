/* embed_bm25.c - see embed_bm25.h. */
#include "cli/embed/embed_bm25.h"

int bm25_check(const command *c, const bm25_settings *s) {
    const char *wanted = s->language ? "" : " and a number";
    if (s->alpha < 0 && !s->language) return fail(c, "alpha is 0; it must be above 0%s", wanted);
    if (s->avg_len < 0) return fail(c, "avg_len is 0; it must be above 0%s", wanted);
    return EXIT_DONE;
}

int bm25_open(pith_bm25 **bm25, const command *c, const char *dir, const bm25_settings *s) {
    pith_error err = PITH_ERROR_INIT;
    pith_bm25_options options = PITH_BM25_OPTIONS_INIT;
    options.language = s->language;
    options.k = s->k;
    options.b = s->b;
    if (!isnan(s->avg_len)) options.avg_len = s->avg_len;
    options.token_max_length = s->token_max_length;
    options.no_stemming = s->no_stemming;
    int code = bm25_check(c, s);
    if (code) return code;
    return pith_bm25_open(bm25, dir, &options, &err) ? fail(c, "%s", err.message) : EXIT_DONE;
}

void bm25_set_numbers(pith_encode_options *options, const bm25_settings *s) {
    options->alpha = s->alpha;
    options->k = s->k;
    options->b = s->b;
    if (!isnan(s->avg_len)) options->avg_len = s->avg_len;
}

/* embed_bm25.h - pith embed --bm25: sparse vectors without a network. */
#ifndef PITH_CLI_EMBED_EMBED_BM25_H
#define PITH_CLI_EMBED_EMBED_BM25_H

#include <math.h>

#include "cli/base/cli.h"

/* What the options say. */
typedef struct bm25_settings {
    const char *language; /* NULL: --bm25 was not given */
    double k, b, avg_len; /* avg_len: NAN if it was not given */
    double alpha;         /* of BM42 */
    int32_t token_max_length;
    bool no_stemming;
} bm25_settings;

#define BM25_SETTINGS_INIT                                                                         \
    { NULL, 1.2, 0.75, NAN, 0.5, 40, false }

/* EXIT_DONE, or EXIT_FAILED after a message: what must be above 0 is 0. */
int bm25_check(const command *c, const bm25_settings *s);
/* Sets the numbers of BM42 and miniCOIL. */
void bm25_set_numbers(pith_encode_options *options, const bm25_settings *s);
/* Opens BM25; dir: where its stop words are, or NULL. EXIT_DONE, or another exit code after a
 * message. */
int bm25_open(pith_bm25 **bm25, const command *c, const char *dir, const bm25_settings *s);

#endif

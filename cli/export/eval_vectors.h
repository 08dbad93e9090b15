/* eval_vectors.h - how near the vectors of a changed model are to those of the model that it was
 * made from. */
#ifndef PITH_CLI_EXPORT_EVAL_VECTORS_H
#define PITH_CLI_EXPORT_EVAL_VECTORS_H

#include "cli/export/eval_texts.h"

typedef struct vector_figures {
    size_t texts;
    double mean, worst; /* 1 - cosine of the two vectors of a text: over all texts, and the
                           largest */
    double overlap;     /* the share of the 10 nearest other texts that both models agree on; -1:
                           fewer than 12 texts */
    double sts[2]; /* with pairs: Spearman's correlation of cosines and scores, of the model and of
                      what was made of it; NaN if one of the two is the same for all pairs */
} vector_figures;

/* Embeds the texts with both models, with `model` once only; `made` is a directory, or a file,
 * which gets the small files of `model` for that; pooled: its network pools. EXIT_DONE, or another
 * exit code after a message. */
int eval_vectors(vector_figures *figures, const command *c, const char *made, bool pooled,
                 const char *model, const pith_open_options *model_options, eval_texts *on);

#endif

/* eval_texts.h - what models are compared on: texts, one a line, or pairs of texts with a score
 * (STS benchmarks). */
#ifndef PITH_CLI_EXPORT_EVAL_TEXTS_H
#define PITH_CLI_EXPORT_EVAL_TEXTS_H

#include "cli/input/csv_in.h"
#include "cli/input/text_lines.h"

typedef struct eval_texts {
    pith_str *texts; /* [count]; of pairs, first and second one in turns */
    double *scores;  /* [count / 2] of pairs; NULL: there are none */
    size_t count;
    text_lines lines; /* the others hold what is read */
    csv_in csv;
    bytes kept;
    bool of_lines, of_csv;
    float *vectors; /* [count, dim] of the model, once they were made */
    size_t dim;
} eval_texts;

/* A file that ends in .csv or .tsv has pairs: columns named sentence1, sentence2 and score (in any
 * order, also text1, text2, label, similarity), or without such a first record the first three.
 * Other files have a text per line; empty ones are passed over. *t is zeroed before. EXIT_DONE, or
 * another exit code after a message, also for a file without texts. Free what was read in either
 * case. */
int eval_texts_read(eval_texts *t, const command *c, const char *path);
void eval_texts_free(eval_texts *t);

#endif

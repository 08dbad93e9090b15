/* score_format.h - scores as lines of JSON, or as tables. */
#ifndef PITH_CLI_OUTPUT_SCORE_FORMAT_H
#define PITH_CLI_OUTPUT_SCORE_FORMAT_H

#include "cli/base/bytes.h"
#include "cli/output/output.h"

/* The choices of --format. */
typedef enum score_format { SCORES_JSONL, SCORES_CSV, SCORES_TSV } score_format;

/* EXIT_DONE, or EXIT_USAGE after a message: objects in the place of bad lines, which is choice 1 of
 * --errors, need lines of JSON. */
int score_check(const command *c, int format, int errors);
char score_delimiter(int format);
/* Writes the names of the columns, "index,score", as the format has them. */
bool score_header(output *out, int format, const char *names);
/* Appends a score; nothing if it is infinite or not a number. */
void score_cell(bytes *out, float score);

#endif

/* embed_table.h - the vectors of all texts of a table, in memory. */
#ifndef PITH_CLI_EMBED_EMBED_TABLE_H
#define PITH_CLI_EMBED_EMBED_TABLE_H

#include "cli/base/progress_line.h"
#include "cli/input/text_table.h"

/* *vectors: a row of `dim` floats for each text, from malloc, also after a failure. options are
 * those of `pith embed`. EXIT_DONE, or another exit code after a message. */
int embed_table(float **vectors, const command *c, const pith_model *model, text_table *texts,
                size_t dim, const pith_embed_options *options, progress_line *progress);

/* Says that the texts are embedded now, and which command keeps their vectors. model: as -m names
 * it, NULL: the default one; dim 0: all components. */
void embed_table_tell(const command *c, const text_table *texts, const char *path,
                      const char *model, const row_options *rows, int32_t dim);

#endif

/* database_diagram.h - the tables of a database and the foreign keys between them, as SVG without
 * scripts. Colours follow the reader's light or dark setting. */
#ifndef PITH_CLI_DRAWING_DATABASE_DIAGRAM_H
#define PITH_CLI_DRAWING_DATABASE_DIAGRAM_H

#include <jansson.h>
#include <stdio.h>

/* Draws what pith_database_describe says. Tables stand to the right of the tables that they name,
 * and arrows lead from a key to the table it names. Returns NULL, or what is wrong: then nothing is
 * written. */
const char *database_diagram(FILE *out, const json_t *database);

#endif

/* vector_layout.h - how vectors are written: format, type, and the ranges of 8-bit numbers. */
#ifndef PITH_CLI_ARRAYS_VECTOR_LAYOUT_H
#define PITH_CLI_ARRAYS_VECTOR_LAYOUT_H

#include "cli/arrays/vectors.h"

/* What --format, --dtype and --ranges say. */
typedef struct layout_settings {
    int format, type;
    const char *ranges; /* a file; NULL: none */
    bool ids;           /* as in vector_layout */
} layout_settings;

/* EXIT_DONE, or EXIT_USAGE after a message if they do not go together. */
int vector_layout_check(const command *c, const layout_settings *s);
/* For vectors of dim components; reads the ranges, which vector_layout_free frees. EXIT_DONE, or
 * another exit code after a message. */
int vector_layout_make(vector_layout *layout, const command *c, const layout_settings *s,
                       size_t dim);
void vector_layout_free(vector_layout *layout);

#endif

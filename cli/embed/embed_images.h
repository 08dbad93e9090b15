/* embed_images.h - pith embed --images: pictures to vectors. */
#ifndef PITH_CLI_EMBED_EMBED_IMAGES_H
#define PITH_CLI_EMBED_EMBED_IMAGES_H

#include <pith/image.h>

#include "cli/arrays/vectors.h"
#include "cli/base/progress_line.h"
#include "cli/input/text_batch.h"

typedef struct embed_images {
    const command *c;
    const pith_model *model;
    pith_embed_images_options options;
    const row_options *rows; /* its inputs are pictures, and folders of them; none: their paths come
                                from stdin, from the column of objects */
    bool objects;            /* a line is an object with "path" and "embedding" */
    progress_line *progress;
    uint64_t max_pixels;
    vector_layout layout;
    uint64_t done, failed; /* pictures */
    double seconds;        /* that they took */
} embed_images;

/* Writes a row per picture to the file at path (NULL: standard output), in order. A picture that
 * cannot be read gets a message and a row of NaN, or of zeros if the type of numbers has no NaN.
 * Returns EXIT_FAILED then, or after a message. resume: the output may hold rows of an earlier
 * call. */
int embed_images_run(embed_images *e, const char *path, bool resume);

#endif

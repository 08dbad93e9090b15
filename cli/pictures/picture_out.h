/* picture_out.h - pictures written into a folder: their names, folders and formats. */
#ifndef PITH_CLI_PICTURES_PICTURE_OUT_H
#define PITH_CLI_PICTURES_PICTURE_OUT_H

#include <pith/image.h>

#include "cli/base/cli.h"

/* What pictures are called in the folder of results, [found->count], all from malloc: the path
 * below the folder that was given as one of `paths`, with that folder's name before it if several
 * were given, else the last part. Two pictures that would have one name get different ones: -2, -3
 * and so on before the ending of the later ones. ending: of what is written; NULL: the picture's
 * own, and .png where its format is not written, put in its place or after it. */
char **picture_out_names(const string_list *paths, const string_list *found, const char *ending,
                         bool after);
void picture_out_names_free(char **names, size_t count);

/* "jpeg", "png" or "webp" by the ending of a name; NULL if it has none of theirs. */
const char *picture_out_format(const char *name);

/* Makes the folders on the way to a path, up to its last slash. Returns an exit code, after a
 * message. */
int picture_out_folders(const command *c, const char *path);

/* Writes dir/name, and makes the folders on the way. inputs are not overwritten. Returns an exit
 * code, after a message. */
int picture_out_write(const command *c, const pith_image *image, const char *dir, const char *name,
                      const pith_image_encode_options *options, const string_list *inputs);

#endif

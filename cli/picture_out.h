/* picture_out.h - pictures written into a folder: their names, folders and formats. */
#ifndef PITH_CLI_PICTURE_OUT_H
#define PITH_CLI_PICTURE_OUT_H

#include <pith/image.h>

#include "cli/cli.h"

/* What a picture is called in the folder of results, from malloc: its path below the folder that was given as one of
 * `paths`, else its last part. */
char *picture_out_name(const string_list *paths, const char *found);

/* "jpeg", "png" or "webp" by the ending of a name; NULL if it has none of theirs. */
const char *picture_out_format(const char *name);

/* Makes the folders on the way to a path, up to its last slash. Returns an exit code, after a message. */
int picture_out_folders(const command *c, const char *path);

/* Writes dir/name, and makes the folders on the way. inputs are not overwritten. Returns an exit code, after a message.
 */
int picture_out_write(const command *c, const pith_image *image, const char *dir, const char *name,
                      const pith_image_encode_options *options, const string_list *inputs);

#endif

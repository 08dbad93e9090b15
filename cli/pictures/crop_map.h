/* crop_map.h - a CSV that says which pictures are cropped, where, and what the crops are called.
 */
#ifndef PITH_CLI_PICTURES_CROP_MAP_H
#define PITH_CLI_PICTURES_CROP_MAP_H

#include <pith/detect.h>

#include "cli/base/cli.h"

typedef struct crop_entry {
    char *path, *name; /* of the picture, and of its crop; from malloc */
    bool has_box;      /* the face is given, so nothing is looked for: */
    pith_face face;    /* its box, and eyes at the usual place in it */
} crop_entry;

typedef struct crop_map {
    crop_entry *items;
    size_t count, unknown; /* unknown: entries without a box */
} crop_map;

/* Reads columns file, name (or crop), and x, y, w, h, which may be missing or empty; others are
 * passed over. Names must stay below the folder of the crops and be all different. EXIT_DONE, or
 * another exit code after a message. */
int crop_map_read(crop_map *map, const command *c, const char *path);
void crop_map_free(crop_map *map);

#endif

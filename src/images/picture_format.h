/* picture_format.h - which format bytes are in, told by how they begin. */
#ifndef PITH_IMAGES_PICTURE_FORMAT_H
#define PITH_IMAGES_PICTURE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The format's name, or NULL if the bytes begin like none that is known by name. *decodes: whether
 * Pith decodes it. */
const char *pith__picture_format(bool *decodes, const uint8_t *data, size_t size);

#endif

/* picture_details.h - what a file says of its picture beside the pixels: colour profile and
 * resolution. */
#ifndef PITH_IMAGES_PICTURE_DETAILS_H
#define PITH_IMAGES_PICTURE_DETAILS_H

#include <stdbool.h>

#include "pith/image.h"
#include "pith/image_module.h"

/* The channels of pixels that an ICC profile is for: 1 grey, 3 RGB, 0 others; -1: it is damaged. */
int pith__profile_channels(const uint8_t *profile, size_t size);

/* Copies what the decoder found. turned: rows become columns. */
pith_status pith__details_take(pith_image_details *details, const pith_image_header *header,
                               bool turned, const pith_allocator *allocator, pith_error *err);
/* NULL is allowed. */
void pith__details_free(pith_image_details *details);

#endif

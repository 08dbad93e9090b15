/* float_planes.h - bytes of a picture as planes of floats. */
#ifndef PITH_IMAGES_FLOAT_PLANES_H
#define PITH_IMAGES_FLOAT_PLANES_H

#include <stddef.h>
#include <stdint.h>

/* planes[p][x] becomes channel order[p] of pixel x, from 0 to 255; of a grey picture, its one
 * channel. count: pixels. channels: 1, 3 or 4. order: below the number of channels, if there are
 * several. */
void pith__planes_of_row(float *const planes[3], const uint8_t *pixels, int channels,
                         const int order[3], size_t count);

#endif

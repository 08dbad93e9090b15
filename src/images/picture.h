/* picture.h - bytes of a file → pixels: limits, the decoder's call, orientation and channels. */
#ifndef PITH_IMAGES_PICTURE_H
#define PITH_IMAGES_PICTURE_H

#include "base/stop.h"
#include "pith/image.h"

/* As pith_image_decode, with options that have all their fields and no defaults to be resolved; for
 * code that runs inside the library. stop may be NULL. */
pith_status pith__picture_decode(pith_image *image, const uint8_t *data, size_t size,
                                 const pith_image_options *options, pith__stop *stop,
                                 pith_error *err);

/* Room for the pixels of a picture of this size; width, height and channels must be positive. */
pith_status pith__picture_alloc(pith_image *image, int32_t width, int32_t height, int32_t channels,
                                const pith_allocator *allocator, pith_error *err);

/* NULL is allowed; the picture is zero afterwards. */
void pith__picture_free(pith_image *image);

/* A picture the caller made: sizes are positive, channels are 1, 3 or 4, pixels are there. */
pith_status pith__picture_check(const pith_image *image, pith_error *err);

/* count pixels from one number of channels to another: alpha is 255 where there was none, grey is
 * ITU-R 601-2 luma. to may be from if it has no more channels. */
void pith__picture_convert(uint8_t *to, int to_channels, const uint8_t *from, int from_channels,
                           size_t count);
/* All pixels of a picture likewise, row by row. to may be its pixels if it has no more channels. */
pith_status pith__picture_convert_rows(uint8_t *to, int to_channels, const pith_image *from,
                                       pith__stop *stop, pith_error *err);

#endif

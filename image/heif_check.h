/* heif_check.h - the sizes that HEIC and AVIF files state inside of their compressed streams. */
#ifndef PITH_IMAGE_HEIF_CHECK_H
#define PITH_IMAGE_HEIF_CHECK_H

#include "codec.h"

/* Decoders take memory by the sizes in the streams, which may be others than the file states.
 * PITH_IMAGE_DECODED: none has more pixels than call->max_pixels, but for what is cut off at
 * edges. */
pith_image_outcome pith__heif_check(pith_image_call *call);

/* One stream: HEVC as units with a length of four bytes each, or AV1 as units. call gets the
 * message. */
pith_image_outcome pith__heif_check_hevc(pith_image_call *call, const uint8_t *data, size_t size);
pith_image_outcome pith__heif_check_hevc_unit(pith_image_call *call, const uint8_t *unit,
                                              size_t size);
pith_image_outcome pith__heif_check_av1(pith_image_call *call, const uint8_t *data, size_t size);

/* Whether so many pixels are too many; if so, call gets the message. */
pith_image_outcome pith__heif_check_size(pith_image_call *call, uint64_t width, uint64_t height);

#endif

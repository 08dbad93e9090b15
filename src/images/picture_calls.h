/* picture_calls.h - the functions of pith/image.h that take options, without the entry. */
#ifndef PITH_IMAGES_PICTURE_CALLS_H
#define PITH_IMAGES_PICTURE_CALLS_H

#include "pith/image.h"

pith_status pith__pictures_decode(pith_image *image, const void *data, size_t size,
                                  const pith_image_options *options, pith_error *err);
pith_status pith__pictures_read(pith_image *image, const char *path,
                                const pith_image_options *options, pith_error *err);
pith_status pith__pictures_encode(const pith_image *image, const pith_image_encode_options *options,
                                  const pith_writer *writer, pith_error *err);
pith_status pith__pictures_resize(pith_image *resized, const pith_image *image,
                                  const pith_image_resize_options *options, pith_error *err);
pith_status pith__pictures_center_crop(pith_image *cropped, const pith_image *image, int32_t width,
                                       int32_t height, const pith_call *call, pith_error *err);

#endif

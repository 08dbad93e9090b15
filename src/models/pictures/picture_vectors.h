/* picture_vectors.h - the implementation of pith_embed_images and pith_embed_images_dim. The caller
 * has set the floating-point mode. */
#ifndef PITH_MODELS_PICTURES_PICTURE_VECTORS_H
#define PITH_MODELS_PICTURES_PICTURE_VECTORS_H

#include "models/model.h"
#include "pith/image.h"

pith_status pith__model_picture_dim(size_t *dim, const pith_model *model,
                                    const pith_embed_images_options *options, pith_error *err);
pith_status pith__model_embed_pictures(float *vectors, const pith_model *model,
                                       const pith_image *images, size_t count,
                                       const pith_embed_images_options *options, pith_error *err);

#endif

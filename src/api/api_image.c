/* api_image.c - the public functions of pith/image.h. */
#include "api/entry.h"
#include "images/picture.h"
#include "images/picture_calls.h"
#include "images/picture_details.h"
#include "images/processor.h"
#include "models/pictures/picture_vectors.h"

void pith_image_free(pith_image *image) { pith__picture_free(image); }
void pith_image_details_free(pith_image_details *details) { pith__details_free(details); }

pith_status pith_image_decode(pith_image *image, const void *data, size_t size,
                              const pith_image_options *options, pith_error *err) {
    PITH_ENTRY(pith__pictures_decode(image, data, size, options, err));
}

pith_status pith_image_read(pith_image *image, const char *path, const pith_image_options *options,
                            pith_error *err) {
    PITH_ENTRY(pith__pictures_read(image, path, options, err));
}

pith_status pith_image_encode(const pith_image *image, const pith_image_encode_options *options,
                              const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__pictures_encode(image, options, writer, err));
}

pith_status pith_image_resize(pith_image *resized, const pith_image *image,
                              const pith_image_resize_options *options, pith_error *err) {
    PITH_ENTRY(pith__pictures_resize(resized, image, options, err));
}

pith_status pith_image_center_crop(pith_image *cropped, const pith_image *image, int32_t width,
                                   int32_t height, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__pictures_center_crop(cropped, image, width, height, call, err));
}

pith_status pith_image_processor_open(pith_image_processor **processor, const char *path,
                                      const pith_allocator *allocator, pith_error *err) {
    PITH_ENTRY(pith__processor_open(processor, path, allocator, err));
}

void pith_image_processor_close(pith_image_processor *processor) {
    pith__processor_close(processor);
}

pith_status pith_image_processor_shape(int64_t dims[3], const pith_image_processor *processor,
                                       int32_t width, int32_t height, pith_error *err) {
    PITH_ENTRY(pith__processor_shape(dims, processor, width, height, err));
}

pith_status pith_image_process(float *pixel_values, const pith_image_processor *processor,
                               const pith_image *image, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__processor_process(pixel_values, processor, image, call, err));
}

pith_status pith_embed_images_dim(size_t *dim, const pith_model *model,
                                  const pith_embed_images_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_picture_dim(dim, model, options, err));
}

pith_status pith_embed_images(float *vectors, const pith_model *model, const pith_image *images,
                              size_t count, const pith_embed_images_options *options,
                              pith_error *err) {
    PITH_ENTRY(pith__model_embed_pictures(vectors, model, images, count, options, err));
}

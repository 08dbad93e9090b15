/* processor.h - the steps of a preprocessor_config.json, and the classes of transformers that give
 * them meaning. */
#ifndef PITH_IMAGES_PROCESSOR_H
#define PITH_IMAGES_PROCESSOR_H

#include <stdbool.h>

#include "base/stop.h"
#include "base/memory/memory.h"
#include "pith/image.h"

/* "size" and "crop_size": height and width, or edges; 0 where nothing is said. */
typedef struct pith__processor_size {
    int32_t height, width, shortest, longest;
} pith__processor_size;

typedef enum pith__size_rule {
    PITH_SIZE_EXACT,    /* height and width; one number is both */
    PITH_SIZE_BOTH,     /* height and width, named; one number is an error */
    PITH_SIZE_EDGE,     /* the short edge, which one number is too; or height and width */
    PITH_SIZE_CONVNEXT, /* the short edge; below 384 it is resized to edge / crop_pct and cropped,
                           else it is both */
    PITH_SIZE_LEVIT     /* as EDGE, the short edge times 256 / 224 */
} pith__size_rule;

/* What a class does unless the file says otherwise. */
typedef struct pith__processor_class {
    const char *name; /* without "ImageProcessor" */
    pith__size_rule rule;
    pith__processor_size size;
    int resample; /* Pillow's number: pith_image_filter less 1 */
    int crop;     /* the default edge of the crop; 0: the class has no crop */
    bool do_crop; /* whether it crops by default */
    float channel_mean[3], channel_std[3];
    bool normalizes; /* the class has that step */
    bool flips;      /* do_flip_channel_order, true by default */
    bool offsets;    /* rescale_offset, false by default; include_top, true by default */
} pith__processor_class;

/* name: of the class, with or without "ImageProcessor", "ImageProcessorFast" or "FeatureExtractor";
 * NULL if unknown. */
const pith__processor_class *pith__processor_class_find(pith_str name);
/* The class that transformers takes for a model_type of config.json. */
const pith__processor_class *pith__processor_class_of_model(pith_str model_type);

/* The highest of Pillow's numbers of filters. */
#define PITH_RESAMPLE_MOST (PITH_IMAGE_HAMMING - 1)

struct pith_image_processor {
    const pith_allocator *allocator;
    const pith__processor_class *kind;
    pith__processor_size size, crop_size;
    double crop_pct, rescale_factor;
    float mean[3], std[3];
    int resample;
    bool do_resize, do_crop, do_rescale, do_normalize, do_flip, rescale_offset, include_top;
    float values[3][256]; /* by channel of the result and byte */
};

/* As pith_image_processor_open and _close. */
pith_status pith__processor_open(pith_image_processor **processor, const char *path,
                                 const pith_allocator *allocator, pith_error *err);
void pith__processor_close(pith_image_processor *processor);

/* Reads the folder's or the file's settings into p, which is zero but for the allocator. */
pith_status pith__processor_read(pith_image_processor *p, const char *path, pith__arena *arena,
                                 pith_error *err);

/* Checks the sizes and makes the tables of a processor whose other members are set. path: for
 * messages. */
pith_status pith__processor_complete(pith_image_processor *p, const char *path, pith_error *err);

/* The functions of pith/image.h, without the entry. */
pith_status pith__processor_shape(int64_t dims[3], const pith_image_processor *p, int32_t width,
                                  int32_t height, pith_error *err);
pith_status pith__processor_process(float *pixel_values, const pith_image_processor *p,
                                    const pith_image *image, const pith_call *call,
                                    pith_error *err);
/* The same inside of another call. stop may be NULL. */
pith_status pith__processor_run(float *pixel_values, const pith_image_processor *p,
                                const pith_image *image, pith__stop *stop, pith_error *err);

#endif

/* crop_picture.h - the part of a picture around a face: where it lies, its pixels, and how sharp it
 * is. */
#ifndef PITH_CLI_PICTURES_CROP_PICTURE_H
#define PITH_CLI_PICTURES_CROP_PICTURE_H

#include <stdbool.h>

#include <pith/detect.h>

typedef enum crop_position {
    CROP_CENTRE, /* the middle of the face is the middle of the crop */
    CROP_THIRDS  /* the eyes are at a third of its height */
} crop_position;

typedef struct crop_rule {
    int32_t width, height; /* of the result in pixels */
    double face;           /* the face's height as a percentage of the crop's */
    int position;          /* a crop_position */
    double right, down;    /* percentages of the crop by which the face is moved in it */
    bool level;            /* turned so that the eyes are level */
    uint8_t fill[3];       /* where the picture ends */
} crop_rule;

/* A crop in the picture, before it is scaled: the pixel x, y of the crop is at
 * left + x cos - y sin, top + x sin + y cos of the picture. */
typedef struct crop_place {
    double left, top, width, height, cosine, sine;
} crop_place;

crop_place crop_place_of(const pith_face *face, const crop_rule *rule);
/* Makes the crop of a picture, RGB or RGB and alpha, which the caller frees. The fill is opaque. */
pith_status crop_picture(pith_image *crop, const pith_image *image, const crop_place *place,
                         const crop_rule *rule, pith_error *err);
/* The variance of the Laplacian of the picture's grey: high where it is sharp. Source: Pech-Pacheco
 * et al., "Diatom autofocusing in brightfield microscopy" (2000). */
double crop_sharpness(const pith_image *image);

#endif

/* picture_out_details.h - colour profile, resolution and alpha of a picture that is written
 * again. */
#ifndef PITH_CLI_PICTURES_PICTURE_OUT_DETAILS_H
#define PITH_CLI_PICTURES_PICTURE_OUT_DETAILS_H

#include <pith/image.h>

/* Makes a picture, RGB or RGB and alpha, what the format can hold: over colour where it has no
 * alpha, grey where the profile is for grey and nothing in it has a colour. Returns the details to
 * be written with it; the profile stays that of details. */
pith_image_details picture_out_details_fit(pith_image *image, const pith_image_details *details,
                                           const char *format, const uint8_t colour[3]);

/* What of the colours is lost when a picture with these details is written as fitted: "its ...";
 * NULL: nothing. */
const char *picture_out_details_lost(const pith_image_details *details,
                                     const pith_image_details *fitted);

#endif

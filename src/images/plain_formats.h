/* plain_formats.h - decoders of formats that need no library: BMP and PNM. */
#ifndef PITH_IMAGES_PLAIN_FORMATS_H
#define PITH_IMAGES_PLAIN_FORMATS_H

#include "pith/image_module.h"

/* NULL if the format is not one of these. */
const pith_image_codec *pith__plain_codec(const char *format);

#endif

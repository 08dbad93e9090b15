/* bmp.h - the decoder of BMP. */
#ifndef PITH_IMAGES_BMP_H
#define PITH_IMAGES_BMP_H

#include "pith/image_module.h"

pith_image_outcome pith__bmp_decode(pith_image_call *call);

#endif

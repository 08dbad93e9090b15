/* odd_image_module.c - a module of another interface, for test_image_hostile.c. */
#include "pith/image_module.h"

__attribute__((visibility("default")))
const pith_image_module pith_image_codecs = { PITH_IMAGE_MODULE_ABI + 1, "9.9.9", NULL, 0 };

/* decoder_module.h - the module of decoders: found, loaded, checked. */
#ifndef PITH_IMAGE_MODULE_LOAD_H
#define PITH_IMAGE_MODULE_LOAD_H

#include "pith/image_module.h"
#include "pith/pith.h"

/* The decoder of a format. path: the module or its folder; NULL: the registered module, else the
 * one that is searched, which is loaded once. Thread-safe. */
pith_status pith__picture_codec(const pith_image_codec **codec, const char *format,
                                const char *path, pith_error *err);

/* NULL: forgets the registered or found module. */
pith_status pith__picture_module_set(const pith_image_module *module, pith_error *err);

#endif

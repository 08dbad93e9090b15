/* save_pictures.h - the section "pictures" of a compiled file: the processor of a model that takes
 * pictures, or the reason why there is none. */
#ifndef PITH_MODELS_SAVE_SAVE_PICTURES_H
#define PITH_MODELS_SAVE_SAVE_PICTURES_H

#include "formats/compiled/wire_bytes.h"
#include "images/processor.h"
#include "models/model.h"

/* Writes nothing for a model that cannot embed pictures. */
pith_status pith__save_pictures_write(pith__bytes_out *out, const pith_model *model,
                                      pith_error *err);
/* Makes the processor of the section. *processor is NULL and *why is set if the file has none. */
pith_status pith__save_pictures_read(pith_image_processor **processor, pith_error *why,
                                     pith_str section, const pith_allocator *allocator,
                                     pith_error *err);

#endif

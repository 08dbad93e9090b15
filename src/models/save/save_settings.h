/* save_settings.h - the section "model" of a compiled file. */
#ifndef PITH_MODELS_SAVE_SAVE_SETTINGS_H
#define PITH_MODELS_SAVE_SAVE_SETTINGS_H

#include "formats/compiled/wire_bytes.h"
#include "models/model.h"

/* models: the routes that are in the file, of which `model` is one. */
void pith__save_settings_write(pith__bytes_out *out, const pith_model *model,
                               const pith_model *const *models, size_t model_count);
/* The model has its graph. */
pith_status pith__save_settings_read(pith_model *model, pith_str section, pith_error *err);

#endif

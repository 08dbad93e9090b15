/* saved.h - a model in a compiled file: writing it, and taking the file apart. */
#ifndef PITH_MODEL_SAVED_H
#define PITH_MODEL_SAVED_H

#include "model/model.h"

/* What pith_model_save and pith_model_verify do; the caller has set the floating-point mode. */
pith_status pith_model_write(const pith_model *model, pith_write_fn *write, void *user, pith_error *err);
pith_status pith_model_verify_file(const char *path, pith_error *err);

/* What the model's passes made, out of a compiled file: graphs, ports, modules, report. file outlives the model. */
pith_status pith_model_load(pith_model *model, pith_str file, pith_error *err);
/* Parts of a compiled file that are of use alone. */
pith_status pith_compiled_tokenizer(pith_tokenizer **tokenizer, const pith_compiled *compiled,
                                    const pith_open_options *options, pith_arena *arena, pith_error *err);
pith_status pith_compiled_modules(pith_modules *modules, const pith_compiled *compiled, pith_arena *arena,
                                  pith_error *err);

#endif

/* save_model.h - writing a model as a compiled file, and reading it back. */
#ifndef PITH_MODELS_SAVE_SAVE_MODEL_H
#define PITH_MODELS_SAVE_SAVE_MODEL_H

#include "models/model.h"

/* The implementation of pith_model_save, pith_model_save_routes and pith_model_verify. The caller has set the
 * floating-point mode. */
pith_status pith_model_write(const pith_model *const *models, size_t count, pith_write_fn *write, void *user,
                             pith_error *err);
pith_status pith_model_verify_file(const char *path, pith_error *err);

/* Fills a model from a compiled file: graphs, ports, modules, report. file must outlive the model. */
pith_status pith_model_load(pith_model *model, pith_str file, pith_error *err);
/* Reads a graph of the file, with operators and types; for pith_model_load and the parts it calls. */
pith_status pith_model_load_graph(pith_graph **graph, pith_model *model, pith_section kind,
                                  const pith_weights_in *weights, pith_error *err);
/* Open parts of a compiled file without the rest. */
pith_status pith_compiled_tokenizer(pith_tokenizer **tokenizer, const pith_compiled *compiled,
                                    const pith_open_options *options, pith_arena *arena, pith_error *err);
pith_status pith_compiled_modules(pith_modules *modules, const pith_compiled *compiled, pith_arena *arena,
                                  pith_error *err);

#endif

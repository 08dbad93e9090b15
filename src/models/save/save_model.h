/* save_model.h - writing a model as a compiled file, and reading it back. */
#ifndef PITH_MODELS_SAVE_SAVE_MODEL_H
#define PITH_MODELS_SAVE_SAVE_MODEL_H

#include "models/model.h"
#include "pith/source.h"

/* The implementation of pith_model_save, pith_model_save_routes and pith_source_verify. The caller
 * has set the floating-point mode. */
pith_status pith__model_write(const pith_model *const *models, size_t count, const pith_call *call,
                              const pith_writer *writer, pith_error *err);
pith_status pith__model_verify(const pith_source *source, const pith_call *call, pith_error *err);

/* Fills a model from a compiled file: graphs, ports, modules, report. file must outlive the model.
 */
pith_status pith__model_load(pith_model *model, pith_str file, pith_error *err);
/* Reads a graph of the file, with operators and types; for pith__model_load and the parts it calls.
 */
pith_status pith__model_load_graph(pith__graph **graph, pith_model *model, pith__section kind,
                                   const pith__constant_spans_in *weights, pith_error *err);
/* Open parts of a compiled file without the rest. */
pith_status pith__compiled_tokenizer(pith_tokenizer **tokenizer, const pith__compiled *compiled,
                                     const pith_open_options *options, pith__arena *arena,
                                     pith_error *err);
pith_status pith__compiled_modules(pith__modules *modules, const pith__compiled *compiled,
                                   pith__arena *arena, pith_error *err);

#endif

/* chosen_runtime.h - which runtime runs a model: what was asked for, or what stands in for it. */
#ifndef PITH_MODELS_OPEN_CHOSEN_RUNTIME_H
#define PITH_MODELS_OPEN_CHOSEN_RUNTIME_H

#include "models/model.h"

/* Takes options.runtime and options.runtime_options into the model, which copies them, and finds
 * the runtime. If that runtime cannot be used at all, the builtin one takes its place with a
 * warning, or opening fails (strict). */
pith_status pith__chosen_runtime_begin(pith_model *model, pith_error *err);

/* Call it when the graph was read and bound. `known` is the result of that, with its error:
 * operators may be unknown to Pith. Opens the program of a runtime that runs files as they are
 * written, or falls back. Returns an error only if no runtime can run the model. */
pith_status pith__chosen_runtime_choose(pith_model *model, pith_status known,
                                        const pith_error *fault, pith_error *err);

/* The plan of the builtin runtime could not be made for this reason. Lets another runtime take over
 * if "auto" was asked for; else returns the error itself. */
pith_status pith__chosen_runtime_rescue(pith_model *model, pith_status status, pith_error *err);

/* chosen_runtime.c, where there are runtimes to choose from. */
typedef struct pith__chosen_runtime_functions {
    pith_status (*begin)(pith_model *model, pith_error *err);
    pith_status (*choose)(pith_model *model, pith_status known, const pith_error *fault,
                          pith_error *err);
    pith_status (*rescue)(pith_model *model, pith_status status, pith_error *err);
} pith__chosen_runtime_functions;
extern const pith__chosen_runtime_functions pith__chosen_runtime_all;
/* pith__chosen_runtime_all if the table has other runtimes than the builtin one, else NULL; defined
 * by select/tables.c. */
extern const pith__chosen_runtime_functions *const pith__chosen_runtime_used;

/* What a program of this graph of the model is made from. */
pith__program_source pith__model_program_source(const pith_model *model, const pith__graph *graph);

/* Fills in the caller's report, whose size is set. */
pith_status pith__model_report_runtime(pith_runtime_report *report, const pith_model *model,
                                       pith_error *err);

#endif

/* fed.h - the plan of a session whose inputs contradict what the model's own plan takes for granted. */
#ifndef PITH_MODEL_FED_H
#define PITH_MODEL_FED_H

#include "model/model.h"

/* The model planned again with some inputs that have a default made ordinary ones; a session that is fed other values
 * for them keeps one. */
typedef struct pith_fed pith_fed;
/* open: by input, those that are fed; apart: every axis of an input has a symbol of its own; options: of its executor.
 * Thread-safe; the model must outlive it. */
pith_status pith_fed_create(pith_fed **fed, const pith_model *model, const bool *open, bool apart,
                            const pith_executor_options *options, pith_error *err);
void pith_fed_destroy(pith_fed *fed); /* NULL is fine */
/* The executor to run on. Opened inputs that are not given get their defaults here; inputs in the graph's order. */
pith_executor *pith_fed_ready(const pith_fed *fed, pith_tensor *inputs);
/* Whether a tensor given for an input that has a default differs from it. */
bool pith_fed_needs(const pith_model *model, size_t input, const pith_tensor *tensor);
/* Sizes by symbolic name, while the inputs of a run are compared; and the axis that has another one. */
typedef struct pith_named_size {
    bool given; /* false between calls */
    size_t input;
    int64_t size;
} pith_named_size;

typedef struct pith_named_sizes {
    pith_named_size *items; /* by symbol of the model's graph */
    int32_t symbol;
    size_t input;
    int axis;
    int64_t size;
} pith_named_sizes;
/* Whether axes of inputs that have one symbol are given different sizes, in a model that can be planned for that. */
bool pith_fed_apart(const pith_model *model, const pith_tensor *inputs, pith_named_sizes *sizes);
/* "input 'b' has size 3 at axis 1, where input 'a' makes sequence 2", after they differed. */
const char *pith_named_sizes_text(const pith_named_sizes *sizes, const pith_model *model, char *buffer, size_t size);
/* Whether all inputs that `open` marks are opened, and axes have symbols of their own if `apart`. */
bool pith_fed_has(const pith_fed *fed, const bool *open, bool apart);

#endif

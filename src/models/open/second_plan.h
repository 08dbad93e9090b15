/* second_plan.h - a second plan, for sessions whose inputs contradict an assumption of the model's
 * own plan. */
#ifndef PITH_MODELS_OPEN_SECOND_PLAN_H
#define PITH_MODELS_OPEN_SECOND_PLAN_H

#include "models/model.h"

/* The model planned again, with some optional inputs treated as ordinary ones. A session that is
 * fed other values than the defaults keeps one. */
typedef struct pith__second_plan pith__second_plan;
/* The sizes given for each symbolic name while the inputs of a run are compared, and the first axis
 * that contradicts them. */
typedef struct pith__named_size {
    bool given; /* false between calls */
    size_t input;
    int64_t size;
} pith__named_size;

typedef struct pith__named_sizes {
    pith__named_size *items; /* by symbol of the model's graph */
    int32_t symbol;
    size_t input;
    int axis;
    int64_t size;
} pith__named_sizes;

/* Reached through the stages of the model's reader. */
typedef struct pith__second_plan_functions {
    /* open[input] is true for inputs that are fed. If apart is set, every axis of an input gets a
     * symbol of its own. options are those of its runner. Thread-safe. The model must outlive
     * it. */
    pith_status (*create)(pith__second_plan **second, const pith_model *model, const bool *open,
                          bool apart, const pith__executor_options *options, pith__stop *stop,
                          pith_error *err);
    void (*destroy)(pith__second_plan *second); /* NULL is allowed */
    /* Returns the runner to use. Puts the defaults into `inputs` (in the graph's order) for opened
     * inputs that are not given. */
    pith__runner (*ready)(const pith__second_plan *second, pith_tensor *inputs);
    /* True if axes with the same symbol are given different sizes, and the model can be planned for
     * that. */
    bool (*apart)(const pith_model *model, const pith_tensor *inputs, pith__named_sizes *sizes);
    /* After apart returned true: "input 'b' has size 3 at axis 1, but input 'a' sets sequence to
     * 2". */
    const char *(*sizes_text)(const pith__named_sizes *sizes, const pith_model *model, char *buffer,
                              size_t size);
    /* True if this plan has opened all inputs that `open` marks and, if `apart` is set, gave every
     * axis its own symbol. */
    bool (*has)(const pith__second_plan *second, const bool *open, bool apart);
} pith__second_plan_functions;
extern const pith__second_plan_functions pith__second_plan_calls;

#endif

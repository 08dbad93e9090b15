/* output_subsets.h - runs that compute some of the outputs.
 *
 * Such a run uses the binding of all outputs, with the same places, and passes over the steps that
 * no wanted output needs; so it gives the same bits. */
#ifndef PITH_ENGINE_EXEC_OUTPUT_SUBSETS_H
#define PITH_ENGINE_EXEC_OUTPUT_SUBSETS_H

#include "engine/exec/executor.h"

/* Subsets that an executor remembers. */
enum { PITH_SUBSETS_MOST = 8 };

/* A set of outputs, and the steps that a run of it passes over. */
typedef struct pith__subset {
    bool *wanted; /* [output_count]; NULL: of no use yet */
    bool *skips;  /* [step_count] */
    uint64_t last_used;
} pith__subset;

/* What an executor remembers of them. In its arena. */
typedef struct pith__subsets {
    pith__subset items[PITH_SUBSETS_MOST];
    uint64_t clock;
} pith__subsets;

/* Outputs that a caller asks for by name. */
typedef struct pith__asked_outputs {
    const char *const *names;
    size_t count;
    pith_status (*find)(size_t *output, const void *model, const char *name, pith_error *err);
    const void *model;
} pith__asked_outputs;

/* The part "subsets". */
typedef struct pith__subsets_part {
    /* Sets wanted[output], which is false at first, for each output that is asked for, and order[i]
     * to the i-th. */
    pith_status (*read)(bool *wanted, size_t *order, const pith__asked_outputs *asked,
                        pith_error *err);
    /* Sets *skips to the steps that a run of executor's wanted outputs passes over: [step_count],
     * valid until the next call. */
    pith_status (*find)(const bool **skips, pith__executor *executor, pith_error *err);
} pith__subsets_part;

#endif

/* inner_values.h - where two runtimes begin to differ inside a model. */
#ifndef PITH_CLI_COMPARE_INNER_VALUES_H
#define PITH_CLI_COMPARE_INNER_VALUES_H

#include "cli/compare/two_runtimes.h"

/* What was found. */
typedef struct inner_values {
    size_t count;        /* values that were compared, in the order of nodes */
    bool differs;        /* the members below are set */
    size_t index;        /* of the first value that differs */
    char *name;          /* from malloc */
    difference_of first; /* its name is `name` */
} inner_values;

/* What counts as a difference: more than atol, or more than rtol of the larger element. Both
 * negative: more than a thousandth of the value's largest number, as pith verify --fusions takes
 * it, and more than 1e-6. */
typedef struct inner_limits {
    double atol, rtol;
} inner_limits;

/* Runs the model as written on both runtimes with the same inputs, and compares all that its nodes
 * give. Returns an exit code, after a message. */
int inner_values_find(inner_values *found, const command *c, const char *model,
                      pith_open_options open, runtime_choice *choice, const model_inputs *in,
                      const pith_run_options *run, const inner_limits *limits);

#endif

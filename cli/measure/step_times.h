/* step_times.h - reads profiles back: the time and cost of each step of a run. */
#ifndef PITH_CLI_MEASURE_STEP_TIMES_H
#define PITH_CLI_MEASURE_STEP_TIMES_H

#include "cli/base/cli.h"

/* One step of the main graph. Strings are malloc's. */
typedef struct step_time {
    int64_t step;
    char *op, *node, *shapes, *kernel;
    double flop, bytes;         /* of one run */
    double *seconds, *fraction; /* by run: time, and share of the multiply-add peak measured next to
                                   it */
    size_t runs;
} step_time;

typedef struct step_times {
    step_time *steps; /* in the order they first ran */
    size_t count;
} step_times;

/* Adds the steps of a profile of one run; peak: FLOP per second at that time, runs: how many there
 * will be at most. A step that ran several times counts as one of the sum. False if the profile
 * cannot be read. */
bool step_times_add(step_times *times, const pith_profile *profile, double peak, size_t runs);
void step_times_free(step_times *times);

/* FLOP of all steps of a profile, subgraphs in their owners' place not counted twice; negative if
 * it cannot be read. */
double profile_flop(const pith_profile *profile);

/* Returns the quantile of the numbers at `share`, such as 0.5 for the median, or 0 if there are
 * none. Sorts them. */
double quantile(double *numbers, size_t count, double share);

#endif

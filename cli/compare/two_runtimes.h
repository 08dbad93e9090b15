/* two_runtimes.h - one model on two runtimes, with the same inputs. */
#ifndef PITH_CLI_COMPARE_TWO_RUNTIMES_H
#define PITH_CLI_COMPARE_TWO_RUNTIMES_H

#include "cli/input/model_inputs.h"
#include "cli/options/runtime_choice.h"

enum { RUNTIMES = 2 };

/* How much an output differs. */
typedef struct difference_of {
    const char *name; /* of the output; the model's */
    double max_abs;   /* largest |a - b|; infinite where only one is a number, or the shapes
                         differ */
    double max_rel;   /* largest |a - b| / max(|a|, |b|) */
    size_t at;        /* index of the element with max_abs */
    double values[RUNTIMES];
    double largest; /* the largest finite |a| or |b| */
    size_t count;   /* elements */
} difference_of;

typedef struct two_runtimes {
    const char *names[RUNTIMES];
    pith_model *models[RUNTIMES];
    pith_session *sessions[RUNTIMES];
    pith_tensor *outputs[RUNTIMES]; /* of the last run */
    double open_seconds[RUNTIMES];
    pith_runtime_report reports[RUNTIMES];
} two_runtimes;

/* The steps of two_runtimes_open: puts the choice into open, which must outlive both steps; opens
 * with one of t->names. */
void two_runtimes_prepare(two_runtimes *t, pith_open_options *open, runtime_choice *choice,
                          int32_t threads);
int two_runtimes_open_one(two_runtimes *t, const command *c, const char *model,
                          pith_open_options *open, int i);
/* Opens the model with each of t->names; ONNX Runtime does not fall back. Returns an exit code,
 * after a message. */
int two_runtimes_open(two_runtimes *t, const command *c, const char *model, pith_open_options open,
                      runtime_choice *choice, int32_t threads);
void two_runtimes_close(two_runtimes *t);

/* Runs on both. Returns an exit code, after a message. */
int two_runtimes_run(two_runtimes *t, const command *c, const model_inputs *in,
                     const pith_run_options *run);
/* Compares output i of the last run. Returns an exit code, after a message. */
int two_runtimes_compare(difference_of *d, const two_runtimes *t, const command *c, size_t i);

#endif

/* inspect_time.h - pith inspect --time: the time of each step of a run. */
#ifndef PITH_CLI_MEASURE_INSPECT_TIME_H
#define PITH_CLI_MEASURE_INSPECT_TIME_H

#include "cli/base/cli.h"

typedef struct time_options {
    const char *text;   /* of a text encoder; NULL: made-up words */
    string_list inputs; /* NAME=FILE, of any other model */
    string_list shapes; /* NAME=A,B,… */
    int32_t runs, threads;
    bool as_json;
} time_options;

/* Runs the model and prints the table. Returns an exit code. */
int inspect_time(const command *c, const pith_model *model, const time_options *options);

#endif

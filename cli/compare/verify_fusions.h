/* verify_fusions.h - pith verify --fusions. */
#ifndef PITH_CLI_COMPARE_VERIFY_FUSIONS_H
#define PITH_CLI_COMPARE_VERIFY_FUSIONS_H

#include "cli/base/cli.h"

typedef struct fusion_check {
    int32_t level, loop_limit, seed, runs; /* runs 0: the library's number */
    bool as_json;
} fusion_check;

/* Checks each model (files, directories, names) and prints what was found. Returns the exit code.
 */
int verify_fusions(const command *c, const string_list *models, const fusion_check *check);

#endif

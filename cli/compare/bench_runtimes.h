/* bench_runtimes.h - pith bench --runtime A,B: one model on two runtimes, after a check that both
 * give the same. */
#ifndef PITH_CLI_COMPARE_BENCH_RUNTIMES_H
#define PITH_CLI_COMPARE_BENCH_RUNTIMES_H

#include "cli/compare/two_runtimes.h"

/* Texts that one call embeds. */
typedef struct bench_texts {
    const char *name;
    const pith_str *texts;
    size_t count;
} bench_texts;

typedef struct bench_runtimes {
    const command *command;
    const char *model, *names[RUNTIMES];
    pith_open_options open;
    pith_embed_options embed;
    runtime_choice *choice;
    const int32_t *threads; /* [thread_count] */
    size_t thread_count;
    const bench_texts *loads; /* [load_count], for a model that embeds text; any other gets random
                                 inputs */
    size_t load_count;
    const string_list *shapes; /* NAME=1x3x480x640, of inputs */
    int32_t rounds;
    double atol; /* the largest difference of two elements that still counts as the same */
    bool as_json;
} bench_runtimes;

/* Returns an exit code, after a message. Without parity nothing is measured. */
int bench_runtimes_run(const bench_runtimes *b);

#endif

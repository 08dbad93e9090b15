/* work_options.h - options of verbs that open a model and work with it: how much memory and how
 * many texts at a time, and what is told about the work. */
#ifndef PITH_CLI_OPTIONS_WORK_OPTIONS_H
#define PITH_CLI_OPTIONS_WORK_OPTIONS_H

#include <jansson.h>

#include "cli/base/text_input.h"
#include "cli/options/runtime_choice.h"

typedef struct work_settings {
    bool check, strict, deterministic;
    int32_t prediction, arena, plan_reuse;
    const char *profile;
    int stats; /* a stats_form */
    const char *stats_file;
    pith_batching batching;
} work_settings;

typedef enum stats_form { STATS_NONE, STATS_JSON, STATS_TEXT } stats_form;

#define WORK_SETTINGS_INIT                                                                         \
    { .prediction = 1, .arena = 1, .plan_reuse = 1, .batching = PITH_BATCHING_INIT }

/* Rows of a verb's table; the settings have the members `open` and `work`. */
#define OPTIONS_PASSES(settings)                                                                   \
    OPTION_PLACE(optimization, settings, open.optimization),                                       \
        OPTION_PLACE(check, settings, work.check),                                                 \
        OPTION_PLACE(precision, settings, open.precision),                                         \
        OPTION_PLACE(deterministic, settings, work.deterministic)
#define OPTIONS_MEMORY(settings)                                                                   \
    OPTION_PLACE(memory_limit, settings, open.memory_limit),                                       \
        OPTION_PLACE(memory_prediction, settings, work.prediction),                                \
        OPTION_PLACE(arena, settings, work.arena),                                                 \
        OPTION_PLACE(plan_reuse, settings, work.plan_reuse),                                       \
        OPTION_PLACE(inter_op_threads, settings, open.inter_op_threads),                           \
        OPTION_PLACE(memory_pressure_threshold, settings, open.pressure_percent),                  \
        OPTION_PLACE(max_pool_size, settings, open.pool_blocks),                                   \
        OPTION_PLACE(max_pool_memory, settings, open.pool_bytes),                                  \
        OPTION_PLACE(idle_sessions, settings, open.sessions),                                      \
        OPTION_PLACE(idle_timeout, settings, open.session_idle_ms)
#define OPTIONS_BATCHING(settings)                                                                 \
    OPTION_PLACE(min_batch_size, settings, work.batching.least),                                   \
        OPTION_PLACE(max_batch_size, settings, work.batching.most),                                \
        OPTION_PLACE(target_latency, settings, work.batching.target_ms),                           \
        OPTION_PLACE(prefer, settings, work.batching.prefer)
#define OPTIONS_TOLD(settings)                                                                     \
    OPTION_PLACE(stats, settings, work.stats),                                                     \
        OPTION_PLACE(stats_file, settings, work.stats_file),                                       \
        OPTION_PLACE(profile, settings, work.profile)

/* Sets the flags of *open and its log. EXIT_DONE, or an exit code after a message that says what
 * does not go together. */
int work_begin(const command *c, const work_settings *w, pith_open_options *open);

/* A model that a verb works with: which settings open it, and what is told when the work is done.
 */
typedef struct work_model {
    const command *c;
    const char *path;
    const work_settings *work;
    pith_open_options *open;
    runtime_choice *runtime;
    int32_t threads;           /* of the work */
    const string_list *inputs; /* as for output_open */
    pith_profile **profile;    /* is set by work_open, for the work too; NULL there: nothing is
                                  recorded */
    pith_model *model;         /* is set by work_open */
    double began;              /* seconds; so is this */
} work_model;

/* EXIT_DONE, or an exit code after a message; then nothing is open. */
int work_open(work_model *w);
/* Warns if the flag at this place, which holds --max-length, names more tokens than the model
 * takes. */
void work_tell_max_length(const pith_model *model, const int32_t *max_length);

/* Tells what --stats asks for. code: of the work; returns it, or EXIT_FAILED after a message. */
int work_tell(const work_model *w, int code);
/* Closes the model and writes the profile. code as above. */
int work_close(work_model *w, int code);

/* Adds what the model has counted to text. */
void work_numbers(bytes *text, const pith_model *model, pith_statistics_form form);

/* Writes what --stats asks for: the members of `first`, which is released, and the numbers of the
 * model (NULL: there was none). inputs as for output_open. Returns code, or EXIT_FAILED after a
 * message. */
int work_stats(const command *c, const work_settings *w, json_t *first, const pith_model *model,
               const string_list *inputs, int code);

#endif

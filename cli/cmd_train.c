/* cmd_train.c - pith train: a model of a task of a database, in a directory that a later call goes on with. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/relational_run.h"
#include "cli/seconds.h"

typedef struct train_settings {
    const char *task, *config, *output;
    int32_t steps, seed, threads, save_every, evaluate_every;
} train_settings;

/* The configuration of the file with --steps over it, as text from malloc. */
static int train_config(char **text, const command *c, const train_settings *s) {
    json_error_t fault;
    json_t *config = s->config ? json_load_file(s->config, 0, &fault) : json_object();
    if (!config) return fail(c, "%s:%d: %s", s->config, fault.line, fault.text);
    if (!json_is_object(config)) {
        json_decref(config);
        return fail(c, "%s is no JSON object", s->config);
    }
    if (s->steps) json_object_set_new(config, "steps", json_integer(s->steps));
    *text = json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(config);
    return EXIT_DONE;
}

/* What the run is. A directory that holds another run is refused. */
static int train_about(relational_run *run, const command *c, const train_settings *s, const char *database,
                       const char *config) {
    char *file = run_file(run->path, "run.json"), *full = realpath(database, NULL);
    int code = EXIT_DONE;
    output out;
    run->about = json_pack("{s:s, s:s, s:i, s:s}", "database", full ? full : database, "task", s->task, "seed",
                           (int)s->seed, "config", config);
    json_t *old = json_load_file(file, 0, NULL);
    if (old && !json_equal(old, run->about)) {
        code = fail(c, "%s holds a run of another database, task, seed or configuration; give another directory",
                    run->path);
    } else if (!old) {
        char *text = json_dumps(run->about, JSON_INDENT(2));
        code = output_open(&out, c, file, NULL);
        if (!code) {
            output_write(&out, text, strlen(text));
            output_write(&out, "\n", 1);
            code = output_close(&out, c, true, code);
        }
        free(text);
    }
    json_decref(old);
    free(full);
    free(file);
    return code;
}

static int train_log(const relational_run *run, const command *c, json_t *line) {
    char *file = run_file(run->path, "log.jsonl"), *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
    FILE *log = fopen(file, "a");
    int code = EXIT_DONE;
    if (log) fprintf(log, "%s\n", text);
    if (!log || fclose(log)) code = fail(c, "%s: %s", file, strerror(errno));
    fprintf(stderr, "%s\n", text);
    free(text);
    free(file);
    json_decref(line);
    return code;
}

/* Trains up to the next multiple of `every`, and says how it went. */
static int train_stretch(relational_run *run, const command *c, const train_settings *s, pith_relational_state *state) {
    const int64_t every = s->save_every, until = (state->step / every + 1) * every;
    const uint64_t cells = state->cells;
    const double begin = now_seconds();
    pith_error err = PITH_ERROR_INIT;
    pith_relational_metrics metrics;
    double loss;
    const int64_t from = state->step;
    if (pith_relational_train(&loss, run->model, until - state->step, s->threads, NULL, &err))
        return fail(c, "%s", err.message);
    const double seconds = now_seconds() - begin;
    pith_relational_get_state(state, run->model);
    json_t *line =
        json_pack("{s:I, s:f, s:f, s:f}", "step", (json_int_t)state->step, "loss", loss, "steps_per_second",
                  (double)(state->step - from) / seconds, "cells_per_second", (double)(state->cells - cells) / seconds);
    if (state->step % s->evaluate_every == 0 || state->step == state->steps) {
        json_t *validation = json_object();
        if (pith_relational_evaluate(&metrics, run->model, PITH_SPLIT_OF_VALIDATION, s->threads, &err)) {
            json_decref(validation);
            json_decref(line);
            return fail(c, "%s", err.message);
        }
        run_add_metrics(validation, &metrics);
        pith_relational_get_state(state, run->model); /* its cells are not those of training */
        json_object_set_new(line, "validation", validation);
    }
    const int code = run_save(run, c);
    return code ? json_decref(line), code : train_log(run, c, line);
}

static int train_model(relational_run *run, const command *c, const train_settings *s, const char *config) {
    pith_error err = PITH_ERROR_INIT;
    pith_relational_state state;
    bool there;
    int code = run_load(run, c, &there);
    if (code) return code;
    if (!there && pith_relational_create(&run->model, run->database, s->task, config, (uint64_t)s->seed, &err))
        return fail(c, "%s", err.message);
    pith_relational_get_state(&state, run->model);
    while (!code && state.step < state.steps) code = train_stretch(run, c, s, &state);
    return code;
}

static int train_run(int argc, char **argv) {
    const command *c = &command_train;
    train_settings s = { 0 };
    relational_run run = { NULL, NULL, NULL, NULL };
    pith_error err = PITH_ERROR_INIT;
    string_list rest = { NULL, 0 };
    char *config = NULL;
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count != 1) return usage(c, "give one database file");
    if (!s.task || !s.output) return usage(c, "give the task with --task and the directory of the run with -o");
    run.path = s.output;
    code = train_config(&config, c, &s);
    if (!code && pith_database_open(&run.database, rest.items[0], NULL, &err)) code = fail(c, "%s", err.message);
    if (!code && mkdir(s.output, 0777) && errno != EEXIST) code = fail(c, "%s: %s", s.output, strerror(errno));
    if (!code) code = train_about(&run, c, &s, rest.items[0], config);
    if (!code) code = train_model(&run, c, &s, config);
    run_close(&run);
    free(config);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, train_settings, member)

static const option options[] = {
    AT(task, task),       AT(output_train, output),   AT(config_train, config),           AT(steps, steps),
    AT(seed_train, seed), AT(save_every, save_every), AT(evaluate_every, evaluate_every), AT(threads, threads),
    OPTION_END,
};

static const example examples[] = {
    { "pith train shop.rdb --task returned -o run", "then: pith eval run" },
    { "pith train shop.rdb --task returned -o quick --steps 300", NULL },
    { NULL, NULL },
};

const command command_train = {
    .name = "train",
    .summary = "train a model of a task of a database",
    .forms = "FILE --task NAME -o DIR [options]",
    .takes = "FILE",
    .description =
        "Trains a relational transformer to answer the question of a task, on rows of the training part alone. The "
        "model has the same bits whatever the number of threads, and whether or not the training was interrupted.",
    .examples = examples,
    .options = options,
    .run = train_run,
};

/* cmd_train.c - pith train: a model of a task of a database, or of several, in a directory that a
 * later call goes on with. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/base/progress_line.h"
#include "cli/base/seconds.h"
#include "cli/output/output.h"
#include "cli/tables/relational_plots.h"
#include "cli/tables/relational_run.h"

typedef struct train_settings {
    const char *task, *config, *output, *from;
    pith_call call;
    int32_t steps, seed, save_every, evaluate_every;
    int32_t early_stopping; /* -1: the run decides; 0: all steps are taken */
    int model;              /* TRAIN_TRANSFORMER, TRAIN_AUTO */
    bool compare;
    bool keep;     /* best.bin; decided by the run */
    int64_t batch; /* of the configuration */
} train_settings;

enum { TRAIN_TRANSFORMER, TRAIN_AUTO };

/* A run that passes over its training rows more often than this learns them by heart and ends
 * early; shorter ones are the rule for databases of tens of thousands of rows, which gain until the
 * last step. */
enum { TRAIN_PASSES = 8, TRAIN_BATCH = 32 /* as the library has it */ };

/* The model with the least loss on the validation rows so far. */
typedef struct train_best {
    double loss; /* infinite: none yet */
    int64_t step;
} train_best;

/* Takes what a model that is started from decides: its shape, and what it is used to read. */
static int train_inherit(json_t *config, const command *c, const char *from) {
    static const char *const members[] = {
        "dim",   "heads", "ff",     "blocks",        "attend",
        "width", "cells", "latest", "lone_children", "ages_alone"
    };
    pith_error err = PITH_ERROR_INIT;
    pith_str text;
    size_t size;
    void *bytes = run_model_bytes(from, &size);
    if (!bytes) return fail(c, "%s: %s", from, strerror(errno));
    if (pith_relational_config(&text, bytes, size, NULL, &err)) {
        free(bytes);
        return fail(c, "%s: %s", from, err.message);
    }
    json_t *base = text.data ? json_loadb(text.data, text.size, 0, NULL) : NULL;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (json_object_get(base, members[i]) && !json_object_get(config, members[i]))
            json_object_set(config, members[i], json_object_get(base, members[i]));
    json_decref(base);
    free(bytes);
    return EXIT_DONE;
}

/* The configuration of the file with --steps over it, as text from malloc. */
static int train_config(char **text, const command *c, train_settings *s) {
    json_error_t fault;
    json_t *config = s->config ? json_load_file(s->config, 0, &fault) : json_object();
    int code = EXIT_DONE;
    if (!config) return fail(c, "%s:%d: %s", s->config, fault.line, fault.text);
    if (!json_is_object(config)) {
        json_decref(config);
        return fail(c, "%s is no JSON object", s->config);
    }
    if (s->steps >= 0) json_object_set_new(config, "steps", json_integer(s->steps));
    if (s->from) code = train_inherit(config, c, s->from);
    const json_t *batch = json_object_get(config, "batch");
    s->batch = json_is_integer(batch) ? json_integer_value(batch) : TRAIN_BATCH;
    *text = json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(config);
    return code;
}

/* The paths of the files as run.json has them; a string if there is one. */
static json_t *train_paths(const char *run, const string_list *files) {
    json_t *paths = json_array();
    for (size_t i = 0; i < files->count; i++) {
        char *path = run_relative(run, files->items[i]);
        json_array_append_new(paths, json_string(path));
        free(path);
    }
    json_t *one = files->count == 1 ? json_incref(json_array_get(paths, 0)) : NULL;
    if (one) json_decref(paths);
    return one ? one : paths;
}

/* The task of each file: one for all, or names with commas between. */
static json_t *train_tasks(const char *names, size_t count) {
    json_t *tasks = json_array();
    for (const char *at = names, *end; at; at = end ? end + 1 : NULL) {
        end = strchr(at, ',');
        json_array_append_new(tasks, json_stringn(at, end ? (size_t)(end - at) : strlen(at)));
    }
    while (json_array_size(tasks) > 0 && json_array_size(tasks) < count && !strchr(names, ','))
        json_array_append(tasks, json_array_get(tasks, 0));
    return tasks;
}

/* Whether run.json describes the same training. */
static bool train_same(const relational_run *run, const json_t *old) {
    static const char *const members[] = { "task", "seed", "config", "early_stopping" };
    const json_t *from = json_object_get(run->about, "from"),
                 *old_from = json_object_get(old, "from");
    bool same = run_same_files(run->path, json_object_get(run->about, "database"),
                               json_object_get(old, "database"));
    for (size_t i = 0; same && i < sizeof members / sizeof *members; i++) {
        const json_t *a = json_object_get(run->about, members[i]),
                     *b = json_object_get(old, members[i]);
        same = a == b || json_equal(a, b);
    }
    return same && (from == old_from || json_equal(from, old_from) ||
                    run_same_files(run->path, from, old_from));
}

/* What the run is. A directory that holds another run is refused. */
static int train_about(relational_run *run, const command *c, const train_settings *s,
                       const string_list *files, const char *config) {
    static const char *const found[] = { "validation", "answers" };
    char *file = run_file(run->path, "run.json"),
         *from = s->from ? run_relative(run->path, s->from) : NULL;
    int code = EXIT_DONE;
    run->about = json_pack("{s:o, s:s, s:i, s:s}", "database", train_paths(run->path, files),
                           "task", s->task, "seed", (int)s->seed, "config", config);
    if (from) json_object_set_new(run->about, "from", json_string(from));
    if (s->early_stopping >= 0)
        json_object_set_new(run->about, "early_stopping", json_integer(s->early_stopping));
    json_t *old = json_load_file(file, 0, NULL);
    if (old && !train_same(run, old))
        code = fail(c,
                    "%s holds a run of another database, task, seed or configuration; give another "
                    "directory",
                    run->path);
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (json_object_get(old, found[i]))
            json_object_set(run->about, found[i], json_object_get(old, found[i]));
    json_decref(old);
    free(from);
    free(file);
    return code;
}

/* Makes the directory and run.json, now that there is a model. */
static int train_begin(const relational_run *run, const command *c) {
    if (mkdir(run->path, 0777) && errno != EEXIST)
        return fail(c, "%s: %s", run->path, strerror(errno));
    const int code = run_write_about(run, c);
    return code ? code : run_keep(run, c);
}

/* What the number of rows decides: which model is kept, and when the training ends. */
static train_settings train_plan(const train_settings *s, const relational_run *run) {
    pith_relational_state state = PITH_RELATIONAL_STATE_INIT;
    pith_error err = PITH_ERROR_INIT;
    train_settings plan = *s;
    size_t validation = 0;
    pith_relational_get_state(&state, run->model);
    pith_relational_part(NULL, NULL, &validation, run->model, PITH_SPLIT_OF_VALIDATION, NULL, &err);
    plan.keep = s->early_stopping > 0 || (validation && run->database_count == 1);
    if (s->early_stopping >= 0) return plan;
    plan.early_stopping = 0;
    if (!plan.keep || state.steps * s->batch <= TRAIN_PASSES * state.rows) return plan;
    if (!option_by_flag(&s->evaluate_every) && plan.save_every < plan.evaluate_every)
        plan.evaluate_every = plan.save_every;
    plan.early_stopping =
        (int32_t)(state.steps / 4 > plan.evaluate_every ? state.steps / 4 : plan.evaluate_every);
    return plan;
}

static int train_log(const relational_run *run, const command *c, json_t *line) {
    char *file = run_file(run->path, "log.jsonl"),
         *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
    int code = output_append(file, text) ? EXIT_DONE : fail(c, "%s: %s", file, strerror(errno));
    note("%s", text);
    free(text);
    free(file);
    json_decref(line);
    return code;
}

/* The loss of an evaluation: of numbers the mean distance. NaN if there are no rows. */
static double train_loss(const pith_relational_metrics *m) {
    return isnan(m->logloss[0]) ? m->mae[0] : m->logloss[0];
}

/* How well the validation rows are answered. The model is saved if it is the best so far. */
static int train_validate(json_t *line, train_best *best, relational_run *run, const command *c,
                          const train_settings *s) {
    pith_error err = PITH_ERROR_INIT;
    pith_relational_metrics metrics = PITH_RELATIONAL_METRICS_INIT;
    pith_relational_state state = PITH_RELATIONAL_STATE_INIT;
    if (pith_relational_evaluate(&metrics, run->model, PITH_SPLIT_OF_VALIDATION, &s->call, &err))
        return fail(c, "%s", err.message);
    json_t *validation = json_object();
    run_add_metrics(validation, &metrics);
    json_object_set_new(line, "validation", validation);
    if (!s->keep) return EXIT_DONE;
    const double loss = train_loss(&metrics);
    if (isnan(loss)) return fail(c, "--early-stopping: the task has no validation rows");
    if (loss < best->loss) {
        pith_relational_get_state(&state, run->model);
        *best = (train_best){ loss, state.step };
        /* Before model.bin: a run that is killed in between evaluates this step again and finds its
         * equal. */
        const int code = run_save(run, c, "best.bin");
        if (code) return code;
    }
    json_object_set_new(line, "best_step", json_integer(best->step));
    return EXIT_DONE;
}

/* What an interrupted run has found: the loss of best.bin is computed again, to the same bits. */
static int train_find_best(train_best *best, const relational_run *run, const command *c,
                           const train_settings *s) {
    relational_run kept = *run;
    pith_error err = PITH_ERROR_INIT;
    pith_relational_metrics metrics = PITH_RELATIONAL_METRICS_INIT;
    pith_relational_state state = PITH_RELATIONAL_STATE_INIT;
    bool there;
    *best = (train_best){ INFINITY, 0 };
    kept.model = NULL;
    int code = s->keep ? run_load(&kept, c, "best.bin", &there) : EXIT_DONE;
    if (code || !kept.model) return code;
    if (pith_relational_evaluate(&metrics, kept.model, PITH_SPLIT_OF_VALIDATION, &s->call, &err))
        code = fail(c, "%s", err.message);
    pith_relational_get_state(&state, kept.model);
    if (!code) *best = (train_best){ train_loss(&metrics), state.step };
    pith_relational_destroy(kept.model);
    return code;
}

/* Whether training ends early: a step that was evaluated lies far enough behind the best one. */
static bool train_stops(const train_best *best, const train_settings *s, int64_t step) {
    return s->early_stopping && !isinf(best->loss) && step % s->evaluate_every == 0 &&
           step - best->step >= s->early_stopping;
}

/* Trains up to the next multiple of `every`, and says how it went. */
static int train_stretch(relational_run *run, train_best *best, const command *c,
                         const train_settings *s, pith_relational_state *state) {
    const int64_t every = s->save_every, until = (state->step / every + 1) * every;
    const uint64_t cells = state->cells;
    const double begin = now_seconds();
    pith_error err = PITH_ERROR_INIT;
    double loss;
    int code = EXIT_DONE;
    const int64_t from = state->step;
    if (pith_relational_train(&loss, run->model, until - state->step, &s->call, &err))
        return fail(c, "%s", err.message);
    const double seconds = now_seconds() - begin;
    pith_relational_get_state(state, run->model);
    json_t *line = json_pack("{s:I, s:f, s:f, s:f}", "step", (json_int_t)state->step, "loss", loss,
                             "steps_per_second", (double)(state->step - from) / seconds,
                             "cells_per_second", (double)(state->cells - cells) / seconds);
    if (state->step % s->evaluate_every == 0 || state->step == state->steps) {
        code = train_validate(line, best, run, c, s);
        pith_relational_get_state(state, run->model); /* its cells are not those of training */
    }
    if (!code) code = run_save(run, c, "model.bin");
    return code ? json_decref(line), code : train_log(run, c, line);
}

/* A new model; with --from it has the parameters of another. */
static int train_create(relational_run *run, const command *c, const train_settings *s,
                        const char *config) {
    pith_error err = PITH_ERROR_INIT;
    const size_t count = run->database_count;
    json_t *tasks = train_tasks(s->task, count);
    const char **names = grow(NULL, count * sizeof *names);
    int code = EXIT_DONE;
    size_t size;
    for (size_t i = 0; i < count; i++) names[i] = json_string_value(json_array_get(tasks, i));
    if (!code &&
        pith_relational_create_over(&run->model, (const pith_database *const *)run->databases,
                                    names, count, config, (uint64_t)s->seed, &s->call, &err))
        code = fail(c, "%s", err.message);
    void *bytes = !code && s->from ? run_model_bytes(s->from, &size) : NULL;
    if (!code && s->from && !bytes) code = fail(c, "%s: %s", s->from, strerror(errno));
    if (bytes && pith_relational_start_from(run->model, bytes, size, NULL, &err))
        code = fail(c, "%s: %s", s->from, err.message);
    free(bytes);
    free(names);
    json_decref(tasks);
    return code;
}

/* A model without steps is saved as it is. */
static int train_nothing(relational_run *run, train_best *best, const command *c,
                         const train_settings *s) {
    json_t *line = json_pack("{s:i}", "step", 0);
    int code = train_validate(line, best, run, c, s);
    if (!code) code = run_save(run, c, "model.bin");
    return code ? json_decref(line), code : train_log(run, c, line);
}

/* ---- what else answers the question ---- */

/* Measures a baseline on the validation rows, and saves it if it has the least loss so far. One
 * that cannot be trained is left out with a warning. */
static int train_baseline(json_t *losses, double *least, const char **best, relational_run *run,
                          const command *c, const train_settings *s, int32_t baseline) {
    const char *name = pith_baseline_name(baseline);
    pith_error err = PITH_ERROR_INIT;
    pith_relational_metrics metrics = PITH_RELATIONAL_METRICS_INIT;
    if (pith_relational_answer_by(run->model, baseline, &s->call, &err) ||
        pith_relational_evaluate(&metrics, run->model, PITH_SPLIT_OF_VALIDATION, &s->call, &err)) {
        if (err.code != PITH_ERR_UNSUPPORTED)
            return fail(c, "baseline '%s': %s", name, err.message);
        note("pith %s: warning: '%s' is not compared: %s", c->name, name, err.message);
        return EXIT_DONE;
    }
    const double loss = train_loss(&metrics);
    json_object_set_new(losses, name, json_real(loss));
    if (!(loss < *least)) return EXIT_DONE;
    *least = loss;
    *best = name;
    return s->model == TRAIN_AUTO ? run_save_baseline(run, c) : EXIT_DONE;
}

/* The loss of the model that answers: the best one, or the last. */
static int train_own_loss(double *loss, bool *numbers, const relational_run *run, const command *c,
                          const train_settings *s) {
    relational_run kept = *run;
    pith_error err = PITH_ERROR_INIT;
    pith_relational_metrics metrics = PITH_RELATIONAL_METRICS_INIT;
    bool there = false;
    kept.model = NULL;
    int code = s->keep ? run_load(&kept, c, "best.bin", &there) : EXIT_DONE;
    if (!code && pith_relational_evaluate(&metrics, there ? kept.model : run->model,
                                          PITH_SPLIT_OF_VALIDATION, &s->call, &err))
        code = fail(c, "%s", err.message);
    pith_relational_destroy(kept.model);
    if (code) return code;
    *loss = train_loss(&metrics);
    *numbers = isnan(metrics.logloss[0]);
    return EXIT_DONE;
}

/* Compares the model with baselines on the validation rows, and chooses among them if that is
 * wanted. run.json then says what was found. */
static int train_compare(relational_run *run, const command *c, const train_settings *s) {
    static const int32_t compared[] = { 0, 1, 4 }; /* constant, entity mean, and the trees that see
                                                      most */
    const char *best = NULL;
    double least;
    bool numbers;
    int code = train_own_loss(&least, &numbers, run, c, s);
    if (code) return code;
    if (isnan(least))
        return s->model == TRAIN_AUTO
                   ? fail(c, "--predictor auto: the task has no validation rows to choose by")
                   : EXIT_DONE;
    json_t *losses =
        json_pack("{s:s, s:f}", "loss", numbers ? "mae" : "logloss", "transformer", least);
    for (size_t i = 0; !code && i < sizeof compared / sizeof *compared; i++)
        code = train_baseline(losses, &least, &best, run, c, s, compared[i]);
    json_object_set_new(run->about, "validation", losses);
    json_object_del(run->about, "answers");
    if (s->model == TRAIN_AUTO)
        json_object_set_new(run->about, "answers", json_string(best ? best : RUN_TRANSFORMER));
    if (!code) code = run_write_about(run, c);
    if (!code && s->model == TRAIN_AUTO)
        note("pith train: '%s' answers: %s %.4f on the validation rows",
             best ? best : RUN_TRANSFORMER, numbers ? "mae" : "logloss", least);
    return code;
}

/* What is left to do after the training. A finished run that is started again is compared again
 * only if another --model is asked for. */
static int train_finish(relational_run *run, const command *c, const train_settings *given,
                        const train_settings *s) {
    const bool compared = json_object_get(run->about, "validation") != NULL,
               asked = option_by_flag(&given->model);
    const bool other =
        asked && (given->model == TRAIN_AUTO) != (json_object_get(run->about, "answers") != NULL);
    int code = EXIT_DONE;
    if ((s->compare || s->model == TRAIN_AUTO) && (!compared || other))
        code = train_compare(run, c, s);
    if (!code) run_tell_better(run, c);
    return code;
}

static int train_model(relational_run *run, const command *c, const train_settings *settings,
                       const char *config) {
    pith_relational_state state = PITH_RELATIONAL_STATE_INIT;
    train_best best;
    bool there;
    int code = run_load(run, c, "model.bin", &there);
    if (!code && !there) code = train_create(run, c, settings, config);
    if (!code) code = train_begin(run, c);
    if (code) return code;
    const train_settings plan = train_plan(settings, run), *s = &plan;
    pith_relational_get_state(&state, run->model);
    code = train_find_best(&best, run, c, s);
    if (code) return code;
    if (!there && !state.steps) code = train_nothing(run, &best, c, s);
    while (!code && state.step < state.steps && !train_stops(&best, s, state.step))
        code = train_stretch(run, &best, c, s, &state);
    if (!code && state.steps) code = plot_loss(run, c);
    return code ? code : train_finish(run, c, settings, s);
}

static int train_run(int argc, char **argv) {
    const command *c = &command_train;
    train_settings s = { .call = PITH_CALL_INIT, .steps = -1, .early_stopping = -1 };
    relational_run run = { .path = NULL };
    string_list rest = { NULL, 0 };
    char *config = NULL;
    progress_line line;
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    progress_line_begin(&line, "steps", false, false, s.output);
    s.call.progress = progress_line_hear;
    s.call.user = &line;
    if (!rest.count) return usage(c, "give one database file, or several");
    if (!s.task || !s.output)
        return usage(c, "give the task with --task and the directory of the run with -o");
    if (s.model == TRAIN_AUTO && !s.compare)
        return usage(c, "--predictor auto compares; leave --no-compare out");
    json_t *tasks = train_tasks(s.task, rest.count);
    const size_t named = json_array_size(tasks);
    json_decref(tasks);
    if (named != rest.count)
        return usage(c, "--task names %zu tasks, and there are %zu databases", named, rest.count);
    run.path = s.output;
    code = train_config(&config, c, &s);
    json_t *names = json_array();
    for (size_t i = 0; i < rest.count; i++)
        json_array_append_new(names, json_string(rest.items[i]));
    if (!code) code = run_open_databases(&run, c, NULL, names);
    json_decref(names);
    if (!code) code = train_about(&run, c, &s, &rest, config);
    if (!code) code = train_model(&run, c, &s, config);
    note_line_end();
    run_close(&run);
    free(config);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, train_settings, member)

static const option options[] = {
    AT(task, task),
    AT(output_train, output),
    AT(config_train, config),
    AT(steps, steps),
    AT(from_train, from),
    AT(seed_train, seed),
    AT(save_every, save_every),
    AT(evaluate_every, evaluate_every),
    AT(early_stopping, early_stopping),
    AT(model_train, model),
    AT(compare_train, compare),
    AT(threads, call.threads),
    OPTION_END,
};

static const example examples[] = {
    { "pith train shop.rdb --task returned -o run", "then: pith eval run" },
    { "pith train shop.rdb --task returned -o quick --steps 300", NULL },
    { "pith train shop.rdb --task returned -o run --early-stopping 800",
      "ends when 800 steps have found none better" },
    { "pith train shop.rdb --task returned -o run --predictor auto",
      "or trees or a mean, if they do better" },
    { "pith train a.rdb b.rdb c.rdb --task label -o base",
      "one model, which learns from all in turns" },
    { "pith train shop.rdb --task returned --from base --steps 0 -o zero",
      "asks it about another database as it is" },
    { NULL, NULL },
};

const command command_train = {
    .name = "train",
    .summary = "train a model of a task of a database",
    .forms = "FILE... --task NAME -o DIR [options]",
    .takes = "FILE...",
    .reads = "json|bin|jsonl",
    .description =
        "Trains a relational transformer to answer the question of a task, on rows of "
        "the training part alone. The "
        "model has the same bits whatever the number of threads, and whether or not the "
        "training was interrupted. With "
        "several databases, the first is the one whose validation rows are answered. With "
        "one database, the step with "
        "the least loss on the validation rows is kept. Then simpler predictors are "
        "trained on the same rows, and a "
        "line says so if one of them does better on the validation rows.",
    .examples = examples,
    .options = options,
    .run = train_run,
};

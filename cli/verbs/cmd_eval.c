/* cmd_eval.c - pith eval: how well the model of a run answers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/base/progress_line.h"
#include "cli/base/text_input.h"
#include "cli/output/json_out.h"
#include "cli/tables/relational_plots.h"
#include "cli/tables/relational_run.h"

typedef struct eval_settings {
    int split;
    bool json, baseline, importance, plots;
    pith_call call;
} eval_settings;

enum { BASELINES_MOST = 16, IMPORTANCE_ROWS = 1000 };
/* Of the choices of --split. */
static const int eval_parts[] = { PITH_SPLIT_OF_VALIDATION, PITH_SPLIT_OF_TEST,
                                  PITH_SPLIT_OF_TRAINING };

/* The model's numbers, and those of the baselines. */
typedef struct eval_result {
    pith_relational_metrics model, baselines[BASELINES_MOST];
    int count;
    int64_t left_out;   /* questions without an answer */
    json_t *importance; /* NULL: not asked for */
} eval_result;

static void eval_line(const char *name, const double *x) {
    if (!isnan(x[0])) printf("%-10s %.4f  (%.4f to %.4f)\n", name, x[0], x[1], x[2]);
}

/* "0.8007 (0.7851 to 0.8155)", or "-": equal answers have no correlation. */
static void eval_cell(const double *x) {
    if (isnan(x[0]))
        printf("  %28s", "-");
    else
        printf("  %10.4f (%.4f to %.4f)", x[0], x[1], x[2]);
}

/* Which numbers a table shows. */
typedef struct eval_columns {
    bool area, loss, classes, distance;
} eval_columns;

static void eval_row(const char *name, const pith_relational_metrics *m, eval_columns shown) {
    printf("%-30s", name);
    if (shown.area) eval_cell(m->auroc);
    if (shown.loss) eval_cell(m->logloss);
    if (shown.classes) printf("  %10.4f  %10.4f", m->accuracy, m->macro_f1);
    if (shown.distance) {
        eval_cell(m->mae);
        eval_cell(m->spearman);
        printf("  %10.4f", m->r2);
    }
    printf("\n");
}

static void eval_table(const eval_result *r) {
    const pith_relational_metrics *m = &r->model;
    const eval_columns shown = { !isnan(m->auroc[0]), !isnan(m->logloss[0]), !isnan(m->macro_f1),
                                 !isnan(m->mae[0]) };
    printf("%-30s", "");
    if (shown.area) printf("  %28s", "auroc");
    if (shown.loss) printf("  %28s", "logloss");
    if (shown.classes) printf("  %10s  %10s", "accuracy", "macro f1");
    if (shown.distance) printf("  %28s  %28s  %10s", "mae", "spearman", "r2");
    printf("\n");
    eval_row("model", m, shown);
    for (int i = 0; i < r->count; i++) eval_row(pith_baseline_name(i), &r->baselines[i], shown);
}

static void eval_json(const relational_run *run, const char *split, const eval_result *r) {
    json_t *object = json_object(), *baselines = json_object();
    json_object_set_new(object, "split", json_string(split));
    json_object_set(object, "task", json_object_get(run->about, "task"));
    if (run_answers(run)) json_object_set_new(object, "answers", json_string(run_answers(run)));
    run_add_metrics(object, &r->model);
    if (r->left_out) json_object_set_new(object, "left_out", json_integer(r->left_out));
    for (int i = 0; i < r->count; i++) {
        json_t *one = json_object();
        run_add_metrics(one, &r->baselines[i]);
        json_object_set_new(baselines, pith_baseline_name(i), one);
    }
    if (r->count) json_object_set(object, "baselines", baselines);
    json_decref(baselines);
    if (r->importance) json_object_set(object, "importance", r->importance);
    json_print(object);
}

static void eval_importance(const eval_result *r) {
    size_t i;
    json_t *one;
    if (!r->importance) return;
    printf("\n%-44s  %10s\n", "hidden", "loss rises");
    json_array_foreach(r->importance, i, one) {
        const char *column = json_string_value(json_object_get(one, "column"));
        printf("%-20s  %-22s  %10.4f\n", json_string_value(json_object_get(one, "table")),
               column ? column : "(all)", json_real_value(json_object_get(one, "loss_rise")));
    }
}

/* user: the array. */
static void eval_take(void *user, pith_str table, pith_str column, double rise) {
    json_t *one = json_object();
    json_object_set_new(one, "table", json_stringn(table.data, table.size));
    if (column.data) json_object_set_new(one, "column", json_stringn(column.data, column.size));
    json_object_set_new(one, "loss_rise", json_real(rise));
    json_array_append_new(user, one);
}

static int eval_print(relational_run *run, const eval_settings *s, const eval_result *r) {
    static const char *const names[] = { "validation", "test", "train" };
    const pith_relational_metrics *m = &r->model;
    if (s->json) {
        eval_json(run, names[s->split], r);
        return EXIT_DONE;
    }
    printf("%lld rows of %s\n", (long long)m->rows, names[s->split]);
    if (run_answers(run)) printf("'%s' answers\n", run_answers(run));
    if (r->left_out)
        printf("%lld questions of all parts are left out: their windows end after the data\n",
               (long long)r->left_out);
    if (r->count) {
        eval_table(r);
        eval_importance(r);
        return EXIT_DONE;
    }
    eval_line("auroc", m->auroc);
    eval_line("logloss", m->logloss);
    if (!isnan(m->macro_f1))
        printf("%-10s %.4f\n%-10s %.4f\n", "accuracy", m->accuracy, "macro f1", m->macro_f1);
    eval_line("mae", m->mae);
    eval_line("spearman", m->spearman);
    if (!isnan(m->constant_logloss)) printf("%-10s %.4f\n", "constant", m->constant_logloss);
    if (!isnan(m->constant_mae)) printf("%-10s %.4f\n", "constant", m->constant_mae);
    eval_importance(r);
    return EXIT_DONE;
}

/* Questions of the task that have no answer yet, since their windows end after the data. */
static int64_t eval_left_out(const relational_run *run) {
    bytes text = { NULL, 0, 0 };
    int64_t count = 0;
    size_t i;
    json_t *task, *database = NULL;
    const json_t *name = json_object_get(run->about, "task");
    const pith_writer writer = bytes_writer(&text);
    if (!pith_database_describe(run->databases[0], NULL, &writer, NULL))
        database = json_loadb(text.data, text.size, 0, NULL);
    json_array_foreach(json_object_get(database, "tasks"), i,
                       task) if (json_equal(json_object_get(task, "name"), name)) count =
        json_integer_value(json_object_get(task, "left_out"));
    json_decref(database);
    free(text.data);
    return count;
}

static int eval_measure(eval_result *r, const relational_run *run, const command *c,
                        const eval_settings *s) {
    const int part = eval_parts[s->split];
    pith_error err = PITH_ERROR_INIT;
    *r = (eval_result){ .model = PITH_RELATIONAL_METRICS_INIT,
                        .importance = s->importance ? json_array() : NULL,
                        .left_out = eval_left_out(run) };
    if (pith_relational_evaluate(&r->model, run->model, part, &s->call, &err))
        return fail(c, "%s", err.message);
    if (s->baseline) {
        for (int i = 0; i < BASELINES_MOST && pith_baseline_name(i); i++, r->count++) {
            r->baselines[i] = (pith_relational_metrics)PITH_RELATIONAL_METRICS_INIT;
            if (pith_baseline_evaluate(&r->baselines[i], run->model, i, part, &s->call, &err))
                return fail(c, "baseline '%s': %s", pith_baseline_name(i), err.message);
        }
    }
    if (s->importance && pith_relational_importance(run->model, part, IMPORTANCE_ROWS, &s->call,
                                                    eval_take, r->importance, &err))
        return fail(c, "%s", err.message);
    return EXIT_DONE;
}

static int eval_plots(const relational_run *run, const command *c, const eval_settings *s,
                      const eval_result *r) {
    int code = plot_loss(run, c);
    if (!code) code = plot_answers(run, c, eval_parts[s->split], &s->call);
    if (!code && r->importance) code = plot_importance(run, c, r->importance);
    return code;
}

static int eval_run(int argc, char **argv) {
    const command *c = &command_eval;
    eval_settings s = { .call = PITH_CALL_INIT };
    eval_result result = { .importance = NULL };
    relational_run run;
    progress_line line;
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count != 1) return usage(c, "give one directory of a run");
    if (s.json) json_failures();
    progress_line_begin(&line, "rows", false, false, "");
    s.call.progress = progress_line_hear;
    s.call.user = &line;
    code = run_open(&run, c, rest.items[0]);
    if (!code && s.importance) code = run_needs_network(&run, c, "--importance");
    if (!code) run_tell_better(&run, c);
    if (!code) code = eval_measure(&result, &run, c, &s);
    if (!code && s.plots) code = eval_plots(&run, c, &s, &result);
    note_line_end();
    if (!code) code = eval_print(&run, &s, &result);
    json_decref(result.importance);
    run_close(&run);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, eval_settings, member)

static const option options[] = {
    AT(split, split),
    AT(baseline, baseline),
    AT(importance, importance),
    AT(plots, plots),
    AT(json, json),
    AT(threads, call.threads),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith eval run", "the test rows, with intervals of 95 %" },
    { "pith eval run --baseline", "compared with boosted trees and others" },
    { "pith eval run --importance --plots",
      "run/loss.svg, roc.svg, calibration.svg and importance.svg" },
    { "pith eval run --split validation --json", "{\"split\": \"validation\", \"auroc\": ...}" },
    { NULL, NULL },
};

const command command_eval = {
    .name = "eval",
    .summary = "measure the model of a training run",
    .forms = "DIR [--split PART] [--baseline] [--importance] [--plots] [--json]",
    .takes = "DIR",
    .reads = "json|bin|jsonl",
    .description = "Answers the rows of a part and compares the answers with what is true. "
                   "Intervals are those of 1000 "
                   "bootstrap samples of the rows.",
    .examples = examples,
    .options = options,
    .run = eval_run,
};

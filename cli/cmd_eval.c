/* cmd_eval.c - pith eval: how well the model of a run answers. */
#include <math.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/relational_run.h"

typedef struct eval_settings {
    int split;
    bool json;
    int32_t threads;
} eval_settings;

static void eval_line(const char *name, const double *x) {
    if (!isnan(x[0])) printf("%-10s %.4f  (%.4f to %.4f)\n", name, x[0], x[1], x[2]);
}

static int eval_print(relational_run *run, const eval_settings *s, const pith_relational_metrics *m) {
    static const char *const names[] = { "validation", "test", "train" };
    if (s->json) {
        json_t *object = json_object();
        json_object_set_new(object, "split", json_string(names[s->split]));
        json_object_set(object, "task", json_object_get(run->about, "task"));
        run_add_metrics(object, m);
        json_print(object);
        return EXIT_DONE;
    }
    printf("%lld rows of %s\n", (long long)m->rows, names[s->split]);
    eval_line("auroc", m->auroc);
    eval_line("logloss", m->logloss);
    eval_line("mae", m->mae);
    if (!isnan(m->constant_logloss)) printf("%-10s %.4f\n", "constant", m->constant_logloss);
    if (!isnan(m->constant_mae)) printf("%-10s %.4f\n", "constant", m->constant_mae);
    return EXIT_DONE;
}

static int eval_run(int argc, char **argv) {
    static const int parts[] = { PITH_SPLIT_OF_VALIDATION, PITH_SPLIT_OF_TEST, PITH_SPLIT_OF_TRAINING };
    const command *c = &command_eval;
    eval_settings s = { 0 };
    pith_error err = PITH_ERROR_INIT;
    pith_relational_metrics metrics;
    relational_run run;
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count != 1) return usage(c, "give one directory of a run");
    if (s.json) json_failures();
    code = run_open(&run, c, rest.items[0]);
    if (!code && pith_relational_evaluate(&metrics, run.model, parts[s.split], s.threads, &err))
        code = fail(c, "%s", err.message);
    if (!code) code = eval_print(&run, &s, &metrics);
    run_close(&run);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, eval_settings, member)

static const option options[] = {
    AT(split, split), AT(json, json), AT(threads, threads), OPTION_SOURCES, OPTION_END,
};

static const example examples[] = {
    { "pith eval run", "the test rows, with intervals of 95 %" },
    { "pith eval run --split validation --json", "{\"split\": \"validation\", \"auroc\": ...}" },
    { NULL, NULL },
};

const command command_eval = {
    .name = "eval",
    .summary = "measure the model of a training run",
    .forms = "DIR [--split PART] [--json]",
    .takes = "DIR",
    .description = "Answers the rows of a part and compares the answers with what is true. Intervals are those of 1000 "
                   "bootstrap samples of the rows.",
    .examples = examples,
    .options = options,
    .run = eval_run,
};

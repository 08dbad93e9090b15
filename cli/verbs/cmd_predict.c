/* cmd_predict.c - pith predict: answers about single rows, which are named by their keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/base/progress_line.h"
#include "cli/base/float_text.h"
#include "cli/base/text_input.h"
#include "cli/output/output.h"
#include "cli/tables/export_relational.h"
#include "cli/tables/relational_run.h"

typedef struct predict_settings {
    const char *rows, *output, *inputs, *database;
    database_making making; /* of a source that database names */
    pith_call call;
} predict_settings;

enum { KEY_BYTES = 1 << 16 };

/* Keys in the order of the file, and the rows of those that are known. */
typedef struct predict_list {
    char **keys;
    char **faults; /* [count] why there is no row; NULL: there is one */
    uint32_t *rows;
    size_t count, found;
} predict_list;

static int predict_read(predict_list *list, const command *c, const relational_run *run,
                        const char *path) {
    string_list paths = { &path, 1 };
    pith_error err = PITH_ERROR_INIT;
    text_input in;
    bytes line = { NULL, 0, 0 };
    int code = EXIT_DONE, state;
    text_input_open(&in, &paths);
    in.limit = KEY_BYTES;
    for (; (state = text_input_next(&in, &line, NULL)) > 0; line.size = 0) {
        const pith_str key = { line.data ? line.data : "", line.size };
        if (!key.size) continue;
        for (size_t i = 0; i < line.size; i++) /* what joins the columns of a key */
            if (line.data[i] == '\t') line.data[i] = '\x1F';
        list->keys = grow_for(list->keys, list->count, sizeof *list->keys);
        list->faults = grow_for(list->faults, list->count, sizeof *list->faults);
        list->rows = grow_for(list->rows, list->count, sizeof *list->rows);
        const pith_status status =
            pith_relational_find_row(&list->rows[list->found], run->model, key, NULL, &err);
        list->faults[list->count] = status ? strdup(err.message) : NULL;
        list->found += !status;
        list->keys[list->count] = grow(NULL, key.size + 1);
        memcpy(list->keys[list->count], key.data, key.size);
        list->keys[list->count++][key.size] = 0;
    }
    if (state < 0) code = fail(c, "%s", in.message);
    free(line.data);
    text_input_close(&in);
    return code;
}

static void predict_print_key(output *out, char *key) {
    for (char *p = key; *p; p++)
        if (*p == '\x1F') *p = '\t';
    output_write(out, key, strlen(key));
    output_write(out, "\t", 1);
}

/* The line of a key that names no row, in the place of its answer. */
static void predict_print_fault(output *out, char *key, const char *why) {
    predict_print_key(out, key);
    output_write(out, "error: ", 7);
    output_write(out, why, strlen(why));
    output_write(out, "\n", 1);
}

/* Keys that name no row, on standard error: the first, and how many. */
static int predict_tell_faults(const predict_list *list, const command *c, const char *path) {
    for (size_t i = 0; i < list->count; i++)
        if (list->faults[i])
            return fail(c, "%s: %zu of %zu keys name no row; %s", path, list->count - list->found,
                        list->count, list->faults[i]);
    return EXIT_DONE;
}

static int predict_print(const predict_list *list, const float *answers, const relational_run *run,
                         const command *c, const predict_settings *s) {
    output out;
    pith_relational_state state = PITH_RELATIONAL_STATE_INIT;
    char number[NUMBER_CHARS];
    int code = output_open(&out, c, s->output, NULL);
    if (code) return code;
    pith_relational_get_state(&state, run->model);
    for (size_t i = 0, found = 0; i < list->count; i++) {
        if (list->faults[i]) {
            predict_print_fault(&out, list->keys[i], list->faults[i]);
            continue;
        }
        const float *answer = answers + found++ * (size_t)state.outputs;
        int best = 0;
        for (int k = 1; k < state.outputs; k++) best = answer[k] > answer[best] ? k : best;
        const pith_str class = pith_relational_class(run->model, best);
        predict_print_key(&out, list->keys[i]);
        output_write(&out, class.data ? class.data : "", class.size);
        if (class.data) output_write(&out, "\t", 1);
        output_write(&out, number, number_print(number, answer[best]));
        output_write(&out, "\n", 1);
    }
    return output_close(&out, c, true, code);
}

static int predict_rows(relational_run *run, const command *c, const predict_settings *s) {
    predict_list list = { NULL, NULL, NULL, 0, 0 };
    pith_error err = PITH_ERROR_INIT;
    int code = predict_read(&list, c, run, s->rows);
    pith_relational_state state = PITH_RELATIONAL_STATE_INIT;
    pith_relational_get_state(&state, run->model);
    float *answers = grow(NULL, (list.found * (size_t)state.outputs + 1) * sizeof *answers);
    if (!code &&
        pith_relational_predict(answers, run->model, list.rows, list.found, &s->call, &err))
        code = fail(c, "%s", err.message);
    if (!code) code = predict_print(&list, answers, run, c, s);
    if (!code && s->inputs)
        code = export_relational_inputs(c, run->model, list.rows, list.found, s->inputs);
    if (!code) code = predict_tell_faults(&list, c, s->rows);
    for (size_t i = 0; i < list.count; i++) {
        free(list.keys[i]);
        free(list.faults[i]);
    }
    free(list.keys);
    free(list.faults);
    free(list.rows);
    free(answers);
    return code;
}

static int predict_run(int argc, char **argv) {
    const command *c = &command_predict;
    predict_settings s = { .call = PITH_CALL_INIT };
    relational_run run;
    progress_line line;
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count != 1) return usage(c, "give one directory of a run");
    if (!s.rows) return usage(c, "give the keys of the rows with --rows FILE, one in a line");
    if (!s.database && (option_by_flag(&s.making.schema) || option_by_flag(&s.making.embedder)))
        return usage(c, "--schema and --embedder are those of a source that --database names");
    progress_line_begin(&line, "rows", false, false, s.output);
    s.call.progress = progress_line_hear;
    s.call.user = &line;
    s.making.threads = s.call.threads;
    code = run_open_over(&run, c, rest.items[0], s.database, &s.making);
    if (!code && s.inputs) code = run_needs_network(&run, c, "--inputs");
    if (!code) run_tell_better(&run, c);
    if (!code) code = predict_rows(&run, c, &s);
    note_line_end();
    run_close(&run);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, predict_settings, member)

static const option options[] = {
    AT(rows, rows),
    AT(database, database),
    AT(schema_predict, making.schema),
    AT(embedder_predict, making.embedder),
    AT(python, making.python),
    AT(threads, call.threads),
    AT(output, output),
    AT(inputs, inputs),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "echo 23000 | pith predict run --rows -", "23000 and the probability, with a tab between" },
    { "pith predict run --database new.rdb --rows keys.txt",
      "about rows that came after the training" },
    { "pith predict run --database shop --rows keys.txt",
      "the same of a source, read with the schema of the run" },
    { "pith predict run --rows keys.txt --inputs in",
      "and in/*.npy: the inputs of the exported network for these rows" },
    { NULL, NULL },
};

const command command_predict = {
    .name = "predict",
    .summary = "answer the question of a training run about rows",
    .forms = "DIR --rows FILE [--database FILE] [-o FILE]",
    .takes = "DIR",
    .reads = "json|bin|jsonl",
    .description = "Prints a line for each key: the key, a tab, and the probability of yes, the "
                   "number, or the likeliest class, a "
                   "tab and its probability. The target's cell of a row is never "
                   "read for its own answer. A key "
                   "that names no row gets 'error: ' and the reason instead of its answer, "
                   "and the exit code is 1.\n"
                   "With --database the rows are those of a later database of the same schema. "
                   "Statistics of columns and classes "
                   "stay those of the training.",
    .examples = examples,
    .options = options,
    .run = predict_run,
};

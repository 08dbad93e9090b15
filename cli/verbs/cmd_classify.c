/* cmd_classify.c - pith classify: labels for texts, or for pairs of texts, each with a score. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/float_text.h"
#include "cli/base/progress_line.h"
#include "cli/input/text_batch.h"
#include "cli/options/work_options.h"
#include "cli/output/csv_out.h"
#include "cli/output/format_choice.h"
#include "cli/output/json_out.h"
#include "cli/output/score_format.h"
#include "cli/output/output.h"

/* Texts of a batch. More keep more threads busy; the first result comes later. */
#define BATCH_TEXTS ((size_t)1024)

typedef struct classify_settings {
    const char *model, *output, *pair_field;
    bool raw;
    int format; /* a score_format */
    int32_t top;
    row_options rows;
    work_settings work;
    pith_open_options open;
    runtime_choice runtime;
    pith_score_options score;
} classify_settings;

typedef struct ranked {
    float score;
    size_t label;
} ranked;

/* The best first, what is no number last; equal scores in the order of the labels. */
static int compare_ranked(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (isnan(x->score) != isnan(y->score)) return isnan(x->score) ? 1 : -1;
    if (x->score != y->score && !isnan(x->score)) return x->score < y->score ? 1 : -1;
    return (x->label > y->label) - (x->label < y->label);
}

/* The name of a label, valid until the next call. */
static pith_str label_name(const pith_model *model, size_t label) {
    static char number[40];
    const char *name = pith_label_name(model, label);
    if (*name) return (pith_str){ name, strlen(name) };
    return (pith_str){ number, (size_t)snprintf(number, sizeof number, "LABEL_%zu", label) };
}

/* [{"label": "joy", "score": 0.98}, ...] */
static void print_labels(bytes *out, const pith_model *model, const ranked *labels, size_t count) {
    char number[NUMBER_CHARS];
    bytes_add(out, "[", 1);
    for (size_t i = 0; i < count; i++) {
        bytes_print(out, "%s{\"label\": ", i ? ", " : "");
        json_quote(out, label_name(model, labels[i].label));
        bytes_print(out, ", \"score\": ");
        if (isfinite(labels[i].score))
            bytes_add(out, number, number_print(number, labels[i].score));
        else
            bytes_add(out, "null", 4);
        bytes_add(out, "}", 1);
    }
    bytes_add(out, "]", 1);
}

/* A row for each label of a text: index, id, label, score. */
static void print_cells(bytes *out, const classify_settings *s, const pith_model *model,
                        text_batch *b, size_t text, uint64_t index, const ranked *labels,
                        size_t count) {
    const char delimiter = score_delimiter(s->format);
    for (size_t i = 0; i < count; i++) {
        bytes_print(out, "%llu%c", (unsigned long long)index, delimiter);
        if (b->width) json_line_cell(&b->json, out, text_batch_id(b, text), delimiter);
        if (b->width) bytes_add(out, &delimiter, 1);
        csv_put_text(out, label_name(model, labels[i].label), delimiter);
        bytes_add(out, &delimiter, 1);
        score_cell(out, labels[i].score);
        bytes_add(out, "\n", 1);
    }
}

/* A line per text of the batch, whose first text has this number. */
static bool write_batch(output *out, bytes *line, const classify_settings *s,
                        const pith_model *model, text_batch *b, const float *scores,
                        uint64_t first) {
    const size_t count = pith_label_count(model),
                 shown = s->top && (size_t)s->top < count ? (size_t)s->top : count;
    ranked *labels = grow(NULL, count * sizeof *labels);
    bool good = true;
    for (size_t i = 0; good && i < b->count; i++) {
        line->size = 0;
        for (size_t k = 0; k < count; k++) labels[k] = (ranked){ scores[i * count + k], k };
        qsort(labels, count, sizeof *labels, compare_ranked);
        if (s->format) {
            print_cells(line, s, model, b, i, first + i, labels, shown);
            good = output_write(out, line->data, line->size);
            continue;
        }
        if (b->keeps) {
            bytes_add(line, b->kept.data + b->kept_begins[i],
                      b->kept_begins[i + 1] - b->kept_begins[i]);
            bytes_print(line, "\"labels\":");
        }
        print_labels(line, model, labels, shown);
        bytes_print(line, b->keeps ? "}\n" : "\n");
        good = bad_lines_write(&b->bad, out, i) && output_write(out, line->data, line->size);
    }
    free(labels);
    return good && bad_lines_write(&b->bad, out, SIZE_MAX) && output_flush(out);
}

/* Scores batch by batch. A failed write ends the loop without a message; closing the output tells
 * why. */
static int classify_batches(const classify_settings *s, const pith_model *model, text_batch *b,
                            output *out) {
    const command *c = &command_classify;
    pith_error err = PITH_ERROR_INIT;
    bytes line = { NULL, 0, 0 };
    float *scores = grow(NULL, BATCH_TEXTS * pith_label_count(model) * sizeof *scores);
    progress_line progress;
    progress_line_begin(&progress, "texts", false, s->rows.quiet, s->output);
    unsigned long long done = 0;
    int code = EXIT_DONE, state;
    while (!code && (state = text_batch_next(b, BATCH_TEXTS)) > 0) {
        const pith_str *pairs = b->width == 2 ? b->texts[1] : NULL;
        if (pith_classify(scores, model, b->texts[0], pairs, b->count, &s->score, &err))
            code = fail(c, "texts %llu to %llu: %s", done + 1, done + b->count, err.message);
        else if (!write_batch(out, &line, s, model, b, scores, done))
            break;
        done += b->count;
        progress_line_show(&progress, done, 0);
    }
    progress_line_end(&progress, done, 0);
    if (!code && state < 0) code = fail(c, "%s", b->message);
    free(line.data);
    free(scores);
    return code;
}

static int classify_files(const classify_settings *s, const pith_model *model,
                          const string_list *files) {
    output out;
    text_batch b;
    int code = output_open(&out, &command_classify, s->output, files);
    if (code) return code;
    text_batch_open(&b, &s->rows, s->pair_field);
    b.keeps = s->rows.objects && !s->format;
    b.json.added = "labels";
    if (s->format)
        score_header(&out, s->format, b.width ? "index,id,label,score" : "index,label,score");
    code = classify_batches(s, model, &b, &out);
    code = bad_lines_end(b.bad.total, &command_classify, s->rows.errors,
                         output_close(&out, &command_classify, true, code));
    text_batch_close(&b);
    return code;
}

/* Takes the arguments and the format. EXIT_DONE, or another exit code after a message. */
static int classify_check(const command *c, classify_settings *s, const string_list *arguments) {
    if (!s->model)
        return usage(c, "-m MODEL is needed: there is no default classifier; "
                        "'pith pull emotion' fetches one");
    int code = format_choose(c, &s->format, s->output);
    if (!code) code = row_options_take(c, &s->rows, arguments);
    if (code) return code;
    if (!s->rows.objects && s->pair_field)
        return usage(c, "--column and --pair-field go with --jsonl, and with files that have "
                        "columns");
    return score_check(c, s->format, s->rows.errors);
}

static int classify_run(int argc, char **argv) {
    const command *c = &command_classify;
    classify_settings s = { .work = WORK_SETTINGS_INIT,
                            .open = PITH_OPEN_OPTIONS_INIT,
                            .score = PITH_SCORE_OPTIONS_INIT };
    string_list arguments = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &arguments);
    if (code >= 0) return code;
    pith_error err = PITH_ERROR_INIT;
    work_model w = { c,
                     s.model,
                     &s.work,
                     &s.open,
                     &s.runtime,
                     s.score.call.threads,
                     &s.rows.inputs,
                     &s.score.call.profile,
                     NULL,
                     0 };
    s.score.batching = &s.work.batching;
    if (s.raw) s.score.activation = PITH_ACTIVATION_NONE;
    code = classify_check(c, &s, &arguments);
    if (!code) code = work_open(&w);
    if (code) {
        row_options_free(&s.rows);
        return code;
    }
    work_tell_max_length(w.model, &s.score.max_length);
    if (pith_classify(NULL, w.model, NULL, NULL, 0, &s.score, &err))
        code = fail(c, "%s", err.message);
    else
        code = classify_files(&s, w.model, &s.rows.inputs);
    code = work_close(&w, work_tell(&w, code));
    row_options_free(&s.rows);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, classify_settings, member)

static const option options[] = {
    OPTION_SECTION("model"),
    AT(model_classify, model),
    AT(max_length_classify, score.max_length),
    OPTIONS_PASSES(classify_settings),
    OPTION_SECTION("input"),
    AT(column, rows.columns),
    AT(pair_field, pair_field),
    OPTIONS_ROWS(classify_settings, rows),
    AT(jsonl, rows.jsonl),
    OPTION_SECTION("output"),
    AT(output, output),
    AT(format_lines, format),
    AT(quiet_texts, rows.quiet),
    AT(top_k, top),
    AT(raw, raw),
    OPTIONS_TOLD(classify_settings),
    OPTION_SECTION("work"),
    AT(threads, score.call.threads),
    AT(batch_tokens, score.batch_tokens),
    OPTIONS_BATCHING(classify_settings),
    OPTIONS_MEMORY(classify_settings),
    OPTIONS_RUNTIME(classify_settings, runtime),
    AT(telemetry, runtime.telemetry),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "echo \"what a day\" | pith classify -m emotion",
      "[{\"label\": \"joy\", \"score\": 0.98}, ...]" },
    { "pith classify -m nli --jsonl --field premise --pair-field hypothesis pairs.jsonl",
      "adds \"labels\"" },
    { "pith classify -m toxicity -k 1 comments.txt", "the best label of each line" },
    { "pith classify -m emotion --column comment -k 1 -o labels.csv posts.csv",
      "index,id,label,score" },
    { NULL, NULL },
};

const command command_classify = {
    .name = "classify",
    .summary = "give texts labels with scores",
    .forms = "-m MODEL [options] [FILE...]\n-m MODEL [options] TEXT...",
    .takes = "FILE",
    .description = "Each line of the files, or of standard input, is a text; of .csv, .tsv, "
                   ".parquet and .jsonl files the --column of each row is. Each text gets a line "
                   "with all labels of "
                   "the model, the best first. With -o labels.csv each label of a text is a row.\n"
                   "Scores are probabilities: over all labels "
                   "together, or of each label by "
                   "itself if the model's config.json says multi_label_classification.",
    .examples = examples,
    .options = options,
    .run = classify_run,
};

/* cmd_classify.c - pith classify: labels for texts, or for pairs of texts, each with a score. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/float_text.h"
#include "cli/input/text_batch.h"
#include "cli/options/work_options.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

/* Texts of a batch. More keep more threads busy; the first result comes later. */
#define BATCH_TEXTS ((size_t)1024)

typedef struct classify_settings {
    const char *model, *output, *field, *pair_field;
    bool null, jsonl, raw;
    int32_t top;
    int invalid, errors;
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

/* [{"label": "joy", "score": 0.98}, ...] */
static void print_labels(bytes *out, const pith_model *model, ranked *labels, size_t count,
                         size_t top) {
    char number[NUMBER_CHARS];
    qsort(labels, count, sizeof *labels, compare_ranked);
    bytes_add(out, "[", 1);
    for (size_t i = 0; i < count && i < top; i++) {
        const char *name = pith_label_name(model, labels[i].label);
        bytes_print(out, "%s{\"label\": ", i ? ", " : "");
        if (*name)
            json_quote(out, (pith_str){ name, strlen(name) });
        else
            bytes_print(out, "\"LABEL_%zu\"", labels[i].label);
        bytes_print(out, ", \"score\": ");
        if (isfinite(labels[i].score))
            bytes_add(out, number, number_print(number, labels[i].score));
        else
            bytes_add(out, "null", 4);
        bytes_add(out, "}", 1);
    }
    bytes_add(out, "]", 1);
}

/* A line per text of the batch. */
static bool write_batch(output *out, bytes *line, const pith_model *model, text_batch *b,
                        const float *scores, size_t top) {
    const size_t count = pith_label_count(model);
    ranked *labels = grow(NULL, count * sizeof *labels);
    bool good = true;
    for (size_t i = 0; good && i < b->count; i++) {
        line->size = 0;
        for (size_t k = 0; k < count; k++) labels[k] = (ranked){ scores[i * count + k], k };
        if (b->keeps) {
            bytes_add(line, b->kept.data + b->kept_begins[i],
                      b->kept_begins[i + 1] - b->kept_begins[i]);
            bytes_print(line, "\"labels\":");
        }
        print_labels(line, model, labels, count, top);
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
    size_t top = s->top ? (size_t)s->top : SIZE_MAX;
    unsigned long long done = 0;
    int code = EXIT_DONE, state;
    while (!code && (state = text_batch_next(b, BATCH_TEXTS)) > 0) {
        const pith_str *pairs = b->width == 2 ? b->texts[1] : NULL;
        if (pith_classify(scores, model, b->texts[0], pairs, b->count, &s->score, &err))
            code = fail(c, "texts %llu to %llu: %s", done + 1, done + b->count, err.message);
        else if (!write_batch(out, &line, model, b, scores, top))
            break;
        done += b->count;
    }
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
    const char *field = s->field ? s->field : "text";
    text_batch_open(&b, files, s->jsonl ? field : NULL, s->pair_field);
    b.in.separator = s->null ? 0 : '\n';
    b.in.replace = s->invalid == 1;
    b.bad.report = s->errors == ERRORS_REPORT;
    b.keeps = s->jsonl;
    b.json.added = "labels";
    code = classify_batches(s, model, &b, &out);
    code = bad_lines_end(b.bad.total, &command_classify,
                         output_close(&out, &command_classify, true, code));
    text_batch_close(&b);
    return code;
}

static int classify_run(int argc, char **argv) {
    const command *c = &command_classify;
    classify_settings s = { .work = WORK_SETTINGS_INIT,
                            .open = PITH_OPEN_OPTIONS_INIT,
                            .score = PITH_SCORE_OPTIONS_INIT };
    string_list files = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &files);
    if (code >= 0) return code;
    if (!s.model) return usage(c, "-m MODEL is needed: there is no default classifier");
    if (!s.jsonl && (s.field || s.pair_field))
        return usage(c, "--field and --pair-field go with --jsonl");
    if (s.jsonl && s.null) return usage(c, "--jsonl and -0 do not go together");
    pith_error err = PITH_ERROR_INIT;
    work_model w = { c,          s.model,
                     &s.work,    &s.open,
                     &s.runtime, s.score.call.threads,
                     &files,     &s.score.call.profile,
                     NULL,       0 };
    s.score.batching = &s.work.batching;
    if (s.raw) s.score.activation = PITH_ACTIVATION_NONE;
    code = work_open(&w);
    if (code) return code;
    work_tell_max_length(w.model, &s.score.max_length);
    if (pith_classify(NULL, w.model, NULL, NULL, 0, &s.score, &err))
        code = fail(c, "%s", err.message);
    else
        code = classify_files(&s, w.model, &files);
    return work_close(&w, work_tell(&w, code));
}

#define AT(id, member) OPTION_PLACE(id, classify_settings, member)

static const option options[] = {
    OPTION_SECTION("model"),
    AT(model_classify, model),
    AT(max_length_classify, score.max_length),
    OPTIONS_PASSES(classify_settings),
    OPTION_SECTION("input"),
    AT(null, null),
    AT(jsonl, jsonl),
    AT(field, field),
    AT(pair_field, pair_field),
    AT(invalid, invalid),
    AT(errors, errors),
    OPTION_SECTION("output"),
    AT(output, output),
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
    { NULL, NULL },
};

const command command_classify = {
    .name = "classify",
    .summary = "give texts labels with scores",
    .forms = "-m MODEL [options] [FILE...]",
    .takes = "FILE",
    .description = "Each line of the files, or of standard input, is a text. Each text gets a line "
                   "with all labels of "
                   "the model, the best first.\nScores are probabilities: over all labels "
                   "together, or of each label by "
                   "itself if the model's config.json says multi_label_classification.",
    .examples = examples,
    .options = options,
    .run = classify_run,
};

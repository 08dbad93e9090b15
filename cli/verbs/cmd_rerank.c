/* cmd_rerank.c - pith rerank: how well documents answer a query.
 *
 * The documents of one query are scored together, so they are held in memory: with --query all
 * texts of the input, else those of one line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/float_text.h"
#include "cli/input/text_batch.h"
#include "cli/options/work_options.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

/* Texts that are read at a time. */
#define BATCH_TEXTS ((size_t)1024)

typedef struct rerank_settings {
    const char *model, *query, *output, *field;
    bool null, jsonl, raw, documents;
    int32_t top;
    int invalid, errors;
    work_settings work;
    pith_open_options open;
    runtime_choice runtime;
    pith_score_options score;
} rerank_settings;

typedef struct ranked {
    size_t index;
    float score;
} ranked;

/* A query and its documents. */
typedef struct question {
    pith_str query;
    const pith_str *documents;
    const size_t *indices; /* of the documents; NULL: 0, 1, ... */
    size_t count;
    int64_t number; /* of the query; -1: there is only one */
} question;

/* The best first, what is no number last; equal scores in the order of the documents. */
static int compare_ranked(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (isnan(x->score) != isnan(y->score)) return isnan(x->score) ? 1 : -1;
    if (x->score != y->score && !isnan(x->score)) return x->score < y->score ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* {"index": 0, "score": 0.93, "document": "..."} */
static bool write_ranked(output *out, bytes *line, const rerank_settings *s, const question *q,
                         const ranked *r) {
    char number[NUMBER_CHARS];
    line->size = 0;
    bytes_add(line, "{", 1);
    if (q->number >= 0) bytes_print(line, "\"query\": %lld, ", (long long)q->number);
    bytes_print(line, "\"index\": %zu, \"score\": ", q->indices ? q->indices[r->index] : r->index);
    if (isfinite(r->score))
        bytes_add(line, number, number_print(number, r->score));
    else
        bytes_add(line, "null", 4);
    if (s->documents) {
        bytes_print(line, ", \"document\": ");
        json_quote(line, q->documents[r->index]);
    }
    bytes_add(line, "}\n", 2);
    return output_write(out, line->data, line->size);
}

/* Writes the answers. place: of the question, for messages; NULL: none. */
static int answer(const rerank_settings *s, const pith_model *model, const question *q,
                  const char *place, output *out) {
    pith_error err = PITH_ERROR_INIT;
    float *scores = grow(NULL, (q->count + 1) * sizeof *scores);
    ranked *order = grow(NULL, (q->count + 1) * sizeof *order);
    bytes line = { NULL, 0, 0 };
    int code = EXIT_DONE;
    if (pith_rerank(scores, model, q->query, q->documents, q->count, &s->score, &err)) {
        code = fail(&command_rerank, "%s%s%s", place ? place : "", place ? ": " : "", err.message);
    } else {
        for (size_t i = 0; i < q->count; i++) order[i] = (ranked){ i, scores[i] };
        if (s->top) qsort(order, q->count, sizeof *order, compare_ranked);
        size_t shown = s->top && (size_t)s->top < q->count ? (size_t)s->top : q->count;
        for (size_t i = 0; i < shown && write_ranked(out, &line, s, q, &order[i]); i++) continue;
        output_flush(out);
    }
    free(line.data);
    free(scores);
    free(order);
    return code;
}

/* All texts of the input are documents of one query. */
static int answer_query(const rerank_settings *s, const pith_model *model, text_batch *b,
                        output *out) {
    bytes text = { NULL, 0, 0 };
    size_t count = 0, bad = 0, *ends = NULL, *indices = NULL;
    int state, code;
    while ((state = text_batch_next(b, BATCH_TEXTS)) > 0) {
        size_t at = 0;
        for (size_t i = 0; i < b->count; i++) {
            bytes_add(&text, b->texts[0][i].data, b->texts[0][i].size);
            ends = grow_for(ends, count, sizeof *ends);
            indices = grow_for(indices, count, sizeof *indices);
            for (; at < b->bad.count && b->bad.lines[at].row <= i; at++) bad++;
            indices[count] = count + bad;
            ends[count++] = text.size;
        }
        bad += b->bad.count - at;
        bad_lines_write(&b->bad, out, SIZE_MAX);
    }
    pith_str *documents = grow(NULL, (count + 1) * sizeof *documents);
    for (size_t i = 0, begin = 0; i < count; begin = ends[i++])
        documents[i] = bytes_text(&text, begin, ends[i]);
    bytes query = { NULL, 0, 0 };
    bytes_add(&query, s->query, strlen(s->query));
    if (s->invalid == 1) bytes_replace_invalid(&query, 0);
    const question q = { { query.data, query.size }, documents, indices, count, -1 };
    code = state < 0 ? fail(&command_rerank, "%s", b->message) : answer(s, model, &q, NULL, out);
    free(query.data);
    free(documents);
    free(indices);
    free(ends);
    free(text.data);
    return code;
}

/* Writes an object in place of the answers to a question; false: the line ends the command. */
static bool pass_bad(bad_lines *bad, const text_input *in, const char *why, int64_t number,
                     output *out) {
    char query[40];
    snprintf(query, sizeof query, "\"query\": %lld, ", (long long)number);
    bad_lines_clear(bad);
    if ((why == in->message && !in->bad) || !bad_lines_add(bad, 0, in, why, query)) return false;
    if (bad_lines_write(bad, out, SIZE_MAX)) output_flush(out);
    return true;
}

/* Each line has a query and its documents. */
static int answer_lines(const rerank_settings *s, const pith_model *model, text_batch *b,
                        output *out) {
    text_input *in = &b->in;
    bytes line = { NULL, 0, 0 };
    pith_str *documents = NULL;
    question q = { .number = 0 };
    int code = EXIT_DONE, state = 0;
    bool cut;
    for (; !code; line.size = 0) {
        if (out->error) break;
        state = text_input_next(in, &line, &cut);
        if (!state) break;
        const pith_str text = { line.data, line.size };
        const char *why = NULL;
        if (state < 0)
            why = in->message;
        else if (cut)
            why = "the line is longer than 64 MiB";
        else if (json_line_blank(text))
            continue;
        else if (!json_line_question(&b->json, &q.query, &documents, &q.count, text))
            why = b->json.message;
        q.documents = documents;
        if (!why)
            code = answer(s, model, &q, text_input_place(in), out);
        else if (!pass_bad(&b->bad, in, why, q.number, out))
            code = fail(&command_rerank, "%s%s%s", state < 0 ? "" : text_input_place(in),
                        state < 0 ? "" : ": ", why);
        q.number++;
    }
    free(documents);
    free(line.data);
    return code;
}

static int rerank_files(const rerank_settings *s, const pith_model *model,
                        const string_list *files) {
    output out;
    text_batch b;
    int code = output_open(&out, &command_rerank, s->output, files);
    if (code) return code;
    const char *field = s->field ? s->field : "text";
    text_batch_open(&b, files, s->jsonl ? field : NULL, NULL);
    b.in.separator = s->null ? 0 : '\n';
    b.in.replace = b.json.replace = s->invalid == 1;
    b.bad.report = s->errors == ERRORS_REPORT;
    if (!s->query) b.in.limit = JSON_LINE_BYTES;
    code = s->query ? answer_query(s, model, &b, &out) : answer_lines(s, model, &b, &out);
    code = bad_lines_end(b.bad.total, &command_rerank,
                         output_close(&out, &command_rerank, true, code));
    text_batch_close(&b);
    return code;
}

static int rerank_run(int argc, char **argv) {
    const command *c = &command_rerank;
    rerank_settings s = { .work = WORK_SETTINGS_INIT,
                          .open = PITH_OPEN_OPTIONS_INIT,
                          .score = PITH_SCORE_OPTIONS_INIT };
    string_list files = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &files);
    if (code >= 0) return code;
    if (!s.model) return usage(c, "-m MODEL is needed: there is no default reranker");
    if (!s.query && (s.jsonl || s.field || s.null))
        return usage(
            c,
            "--jsonl, --field and -0 go with --query; without it each line is a JSON object with "
            "\"query\" and \"documents\"");
    if (s.field && !s.jsonl) return usage(c, "--field goes with --jsonl");
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
    if (pith_rerank(NULL, w.model, (pith_str){ "", 0 }, NULL, 0, &s.score, &err))
        code = fail(c, "%s", err.message);
    else
        code = rerank_files(&s, w.model, &files);
    return work_close(&w, work_tell(&w, code));
}

#define AT(id, member) OPTION_PLACE(id, rerank_settings, member)

static const option options[] = {
    OPTION_SECTION("model"),
    AT(model_classify, model),
    AT(max_length_rerank, score.max_length),
    AT(instruction, score.instruction),
    OPTIONS_PASSES(rerank_settings),
    OPTION_SECTION("input"),
    AT(query, query),
    AT(null, null),
    AT(jsonl_rerank, jsonl),
    AT(field_rerank, field),
    AT(invalid, invalid),
    AT(errors, errors),
    OPTION_SECTION("output"),
    AT(output, output),
    AT(top_k_rerank, top),
    AT(return_documents, documents),
    AT(raw_rerank, raw),
    OPTIONS_TOLD(rerank_settings),
    OPTION_SECTION("work"),
    AT(threads, score.call.threads),
    AT(batch_tokens, score.batch_tokens),
    OPTIONS_BATCHING(rerank_settings),
    OPTIONS_MEMORY(rerank_settings),
    OPTIONS_RUNTIME(rerank_settings, runtime),
    AT(telemetry, runtime.telemetry),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith rerank -m ms-marco-MiniLM-L6-v2 --query \"capital of France\" passages.txt",
      "{\"index\": 0, \"score\": 8.61}" },
    { "pith rerank -m bge-reranker-base --query \"a cat\" -k 3 --return-documents lines.txt",
      "the three best lines" },
    { "pith rerank -m bge-reranker-base questions.jsonl",
      "lines with \"query\" and \"documents\"" },
    { NULL, NULL },
};

const command command_rerank = {
    .name = "rerank",
    .summary = "score documents by how well they answer a query",
    .forms = "-m MODEL --query TEXT [options] [FILE...]\n-m MODEL [options] [FILE...]",
    .takes = "FILE",
    .description = "Each document becomes one line, in the order they came: its number and its "
                   "score. A higher score is "
                   "a better answer.\nModels are cross-encoders, which read the query and a "
                   "document together, or language models "
                   "that "
                   "answer whether the document is a good one.",
    .examples = examples,
    .options = options,
    .run = rerank_run,
};

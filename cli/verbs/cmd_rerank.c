/* cmd_rerank.c - pith rerank: how well documents answer a query.
 *
 * The documents of one query are scored together, so they are held in memory: with --query all
 * texts of the input, else those of one line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/float_text.h"
#include "cli/base/message.h"
#include "cli/base/progress_line.h"
#include "cli/input/text_batch.h"
#include "cli/options/work_options.h"
#include "cli/output/csv_out.h"
#include "cli/output/format_choice.h"
#include "cli/output/json_out.h"
#include "cli/output/score_format.h"
#include "cli/output/output.h"

/* Texts that are read at a time. */
#define BATCH_TEXTS ((size_t)1024)

typedef struct rerank_settings {
    const char *model, *query, *output;
    bool raw, documents;
    int format; /* a score_format */
    int32_t top;
    row_options rows;
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
    const pith_str *ids;   /* as they are written in objects; NULL: documents have none */
    json_line *json;       /* reads them */
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

/* query, index, id, score, document */
static void print_cells(bytes *line, const rerank_settings *s, const question *q, const ranked *r) {
    const char delimiter = score_delimiter(s->format);
    if (q->number >= 0) bytes_print(line, "%lld%c", (long long)q->number, delimiter);
    bytes_print(line, "%zu%c", q->indices ? q->indices[r->index] : r->index, delimiter);
    if (q->ids) json_line_cell(q->json, line, q->ids[r->index], delimiter);
    if (q->ids) bytes_add(line, &delimiter, 1);
    score_cell(line, r->score);
    if (s->documents) bytes_add(line, &delimiter, 1);
    if (s->documents) csv_put_text(line, q->documents[r->index], delimiter);
    bytes_add(line, "\n", 1);
}

/* {"index": 0, "id": "A1", "score": 0.93, "document": "..."} */
static bool write_ranked(output *out, bytes *line, const rerank_settings *s, const question *q,
                         const ranked *r) {
    char number[NUMBER_CHARS];
    line->size = 0;
    if (s->format) {
        print_cells(line, s, q, r);
        return output_write(out, line->data, line->size);
    }
    bytes_add(line, "{", 1);
    if (q->number >= 0) bytes_print(line, "\"query\": %lld, ", (long long)q->number);
    bytes_print(line, "\"index\": %zu, ", q->indices ? q->indices[r->index] : r->index);
    if (q->ids && q->ids[r->index].size) {
        bytes_print(line, "\"id\": ");
        bytes_add(line, q->ids[r->index].data, q->ids[r->index].size);
        bytes_print(line, ", ");
    }
    bytes_print(line, "\"score\": ");
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

/* The documents of one query, while they are read. */
typedef struct document_list {
    bytes text, ids;
    size_t *ends, *id_ends; /* of each in text and in ids */
    size_t *indices;        /* the number of each among all lines, the bad ones as well */
    size_t count, bad;
} document_list;

static void documents_free(document_list *d) {
    free(d->text.data);
    free(d->ids.data);
    free(d->ends);
    free(d->id_ends);
    free(d->indices);
}

static void documents_add(document_list *d, const text_batch *b) {
    size_t at = 0;
    for (size_t i = 0; i < b->count; i++) {
        const pith_str id = text_batch_id(b, i);
        bytes_add(&d->text, b->texts[0][i].data, b->texts[0][i].size);
        bytes_add(&d->ids, id.data, id.size);
        d->ends = grow_for(d->ends, d->count, sizeof *d->ends);
        d->id_ends = grow_for(d->id_ends, d->count, sizeof *d->id_ends);
        d->indices = grow_for(d->indices, d->count, sizeof *d->indices);
        for (; at < b->bad.count && b->bad.lines[at].row <= i; at++) d->bad++;
        d->indices[d->count] = d->count + d->bad;
        d->id_ends[d->count] = d->ids.size;
        d->ends[d->count++] = d->text.size;
    }
    d->bad += b->bad.count - at;
}

/* The spans that end there, from malloc. */
static pith_str *spans(const bytes *all, const size_t *ends, size_t count) {
    pith_str *found = grow(NULL, (count + 1) * sizeof *found);
    for (size_t i = 0, begin = 0; i < count; begin = ends[i++])
        found[i] = bytes_text(all, begin, ends[i]);
    return found;
}

/* All texts of the input are documents of one query. */
static int answer_query(const rerank_settings *s, const pith_model *model, text_batch *b,
                        output *out) {
    document_list d = { .count = 0 };
    int state, code;
    while ((state = text_batch_next(b, BATCH_TEXTS)) > 0) {
        documents_add(&d, b);
        bad_lines_write(&b->bad, out, SIZE_MAX);
    }
    pith_str *texts = spans(&d.text, d.ends, d.count), *ids = spans(&d.ids, d.id_ends, d.count);
    bytes query = { NULL, 0, 0 };
    bytes_add(&query, s->query, strlen(s->query));
    if (s->rows.invalid == 1) bytes_replace_invalid(&query, 0);
    const question q = { .query = { query.data, query.size },
                         .documents = texts,
                         .indices = d.indices,
                         .ids = b->width ? ids : NULL,
                         .json = &b->json,
                         .count = d.count,
                         .number = -1 };
    code = state < 0 ? fail(&command_rerank, "%s", b->message) : answer(s, model, &q, NULL, out);
    free(query.data);
    free(texts);
    free(ids);
    documents_free(&d);
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
    text_batch_open(&b, &s->rows, NULL);
    if (!s->query) b.in.limit = JSON_LINE_BYTES;
    if (s->format) {
        char names[60];
        snprintf(names, sizeof names, "%sindex,%sscore%s", s->query ? "" : "query,",
                 b.width ? "id," : "", s->documents ? ",document" : "");
        score_header(&out, s->format, names);
    }
    code = s->query ? answer_query(s, model, &b, &out) : answer_lines(s, model, &b, &out);
    code = bad_lines_end(b.bad.total, &command_rerank, s->rows.errors,
                         output_close(&out, &command_rerank, true, code));
    text_batch_close(&b);
    return code;
}

/* Takes the arguments and the format. EXIT_DONE, or another exit code after a message. */
static int rerank_check(const command *c, rerank_settings *s, const string_list *arguments) {
    if (!s->model)
        return usage(c, "-m MODEL is needed: there is no default reranker; "
                        "'pith pull ms-marco' fetches one");
    const row_options *rows = &s->rows;
    if (!s->query &&
        (rows->jsonl || rows->columns.count || rows->id || rows->texts.count || rows->null))
        return usage(
            c, "--jsonl, --column, --id, --text and -0 go with --query; without it each line is a "
               "JSON object with \"query\" and \"documents\"");
    for (size_t i = 0; i < arguments->count; i++)
        if (!s->query && row_options_table(arguments->items[i]))
            return usage(c, "%s has documents; give the query with --query", arguments->items[i]);
    int code = format_choose(c, &s->format, s->output);
    if (code) return code;
    if (s->query)
        code = row_options_take(c, &s->rows, arguments);
    else
        row_options_files(&s->rows, arguments);
    return code ? code : score_check(c, s->format, s->rows.errors);
}

/* How far the scoring of a query's documents is. */
static void show_scored(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)what;
    progress_line_show(user, done, total);
}

static int rerank_run(int argc, char **argv) {
    const command *c = &command_rerank;
    rerank_settings s = { .work = WORK_SETTINGS_INIT,
                          .open = PITH_OPEN_OPTIONS_INIT,
                          .score = PITH_SCORE_OPTIONS_INIT };
    string_list arguments = { NULL, 0 };
    progress_line progress;
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
    code = rerank_check(c, &s, &arguments);
    if (!code) code = work_open(&w);
    if (code) {
        row_options_free(&s.rows);
        return code;
    }
    work_tell_max_length(w.model, &s.score.max_length);
    progress_line_begin(&progress, "documents", false, s.rows.quiet, s.output);
    s.score.call.progress = show_scored;
    s.score.call.user = &progress;
    if (pith_rerank(NULL, w.model, (pith_str){ "", 0 }, NULL, 0, &s.score, &err))
        code = fail(c, "%s", err.message);
    else
        code = rerank_files(&s, w.model, &s.rows.inputs);
    note_line_end();
    code = work_close(&w, work_tell(&w, code));
    row_options_free(&s.rows);
    return code;
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
    AT(column, rows.columns),
    OPTIONS_ROWS(rerank_settings, rows),
    AT(jsonl_rerank, rows.jsonl),
    OPTION_SECTION("output"),
    AT(output, output),
    AT(format_lines, format),
    AT(quiet_rerank, rows.quiet),
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
    { "pith rerank -m bge-reranker-base --query \"a cat\" --column description --id sku "
      "products.csv",
      "{\"index\": 0, \"id\": \"A1\", \"score\": 8.61}" },
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

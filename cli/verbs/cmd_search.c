/* cmd_search.c - pith search: the vectors of a file that are nearest to queries.
 *
 * The file is mapped and never copied. Without one, the texts that are searched are embedded first.
 * Queries are vectors of another file, or texts that a model embeds. Texts come in batches, which
 * end when the next line is not there yet, so that a program can ask line by line through pipes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_out.h"

#include "cli/arrays/vector_file.h"
#include "cli/base/cli.h"
#include "cli/base/float_text.h"
#include "cli/base/message.h"
#include "cli/embed/embed_table.h"
#include "cli/input/bad_lines.h"
#include "cli/input/name_list.h"
#include "cli/input/text_table.h"
#include "cli/options/work_options.h"
#include "cli/output/csv_out.h"
#include "cli/output/format_choice.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"
#include "cli/output/score_format.h"

/* Queries of a batch. More are faster, because each reading of the vectors answers several; results
 * come later. */
#define BATCH_QUERIES ((size_t)256)
/* Bytes of a line that are kept, as `pith embed` does. */
#define LINE_BYTES ((size_t)1 << 20)
/* Hits of a query, if -k does not say. */
#define HITS 10
/* Vectors by which it is seen whether all are of length 1, and how far from it that is: f16 rounds
 * to 11 bits. */
enum { LENGTH_ROWS = 100 };
#define LENGTH_TOLERANCE 5e-3

typedef struct search_settings {
    const char *index, *texts, *offsets, *query_vectors, *output, *fields;
    string_list queries;
    vector_reading reading;
    int32_t dim, hits;
    row_options rows;  /* of --texts, as far as they name columns; else of the files of queries */
    row_options asked; /* of the files of queries */
    int metric, first_pass;
    int format; /* a score_format */
    const char *model;
    work_settings work;
    pith_open_options open;
    pith_embed_options embed;
    pith_search_options search;
} search_settings;

typedef struct search_work {
    const command *c;
    search_settings *s;
    const char *name; /* of the file of vectors, or of texts without one, in messages */
    pith_model *model;
    vector_file file;
    text_table texts;
    string_list fields; /* that hits have */
    json_line json;     /* reads the objects of queries */
    int64_t *offsets;
    size_t documents;
    pith_search_index *index;
    size_t k;       /* hits of a query that there are */
    uint64_t asked; /* queries so far */
    bad_lines bad;  /* of the batch, by the numbers that they have as queries */
    output out;
    bytes line;
} search_work;

/* ---- results ---- */

/* Writes the objects of bad lines whose turn it is as queries. */
static bool print_bad(search_work *w) {
    for (; bad_lines_next(&w->bad) <= w->asked; w->asked++)
        if (!bad_lines_write(&w->bad, &w->out, (size_t)w->asked)) return false;
    return true;
}

/* Whether hits have ids, and the id of one as a JSON value; size 0: it has none. */
static bool has_ids(const search_work *w) { return w->texts.objects || w->file.id_ends; }

static pith_str id_of(search_work *w, size_t index) {
    return w->texts.objects ? text_table_id(&w->texts, index) : vector_file_id(&w->file, index);
}

/* {"index": 3, "id": "A1", "score": 0.8, "price": 5, "text": "…"} */
static void print_hit(search_work *w, const pith_hit *hit) {
    bytes *line = &w->line;
    char number[NUMBER_CHARS];
    const size_t index = (size_t)hit->index;
    const pith_str id = has_ids(w) ? id_of(w, index) : (pith_str){ NULL, 0 };
    bytes_print(line, "{\"index\": %zu", index);
    if (id.size) {
        bytes_print(line, ", \"id\": ");
        bytes_add(line, id.data, id.size);
    }
    bytes_print(line, ", \"score\": ");
    if (isfinite(hit->score))
        bytes_add(line, number, number_print(number, hit->score));
    else
        bytes_add(line, "null", 4);
    for (size_t i = 0; i < w->fields.count; i++) {
        const char *name = w->fields.items[i];
        const pith_str value = text_table_field(&w->texts, index, name);
        bytes_print(line, ", ");
        json_quote(line, (pith_str){ name, strlen(name) });
        bytes_print(line, ": ");
        bytes_add(line, value.size ? value.data : "null", value.size ? value.size : 4);
    }
    if (w->texts.open) {
        bytes_print(line, ", \"text\": ");
        json_quote(line, text_table_text(&w->texts, index));
    }
    bytes_add(line, "}", 1);
}

/* query, index, id, score, the fields, text */
static void print_cells(search_work *w, uint64_t query, const pith_hit *hit) {
    bytes *line = &w->line;
    const char delimiter = score_delimiter(w->s->format);
    const size_t index = (size_t)hit->index;
    bytes_print(line, "%llu%c%zu%c", (unsigned long long)query, delimiter, index, delimiter);
    if (has_ids(w)) json_line_cell(&w->texts.json, line, id_of(w, index), delimiter);
    if (has_ids(w)) bytes_add(line, &delimiter, 1);
    score_cell(line, hit->score);
    for (size_t i = 0; i < w->fields.count; i++) {
        bytes_add(line, &delimiter, 1);
        json_line_cell(&w->texts.json, line, text_table_field(&w->texts, index, w->fields.items[i]),
                       delimiter);
    }
    if (w->texts.open) {
        bytes_add(line, &delimiter, 1);
        csv_put_text(line, text_table_text(&w->texts, index), delimiter);
    }
    bytes_add(line, "\n", 1);
}

static bool print_header(search_work *w) {
    bytes names = { NULL, 0, 0 };
    bytes_print(&names, "query,index,%sscore", has_ids(w) ? "id," : "");
    for (size_t i = 0; i < w->fields.count; i++) {
        bytes_add(&names, ",", 1);
        csv_put(&names, w->fields.items[i]);
    }
    bytes_print(&names, "%s", w->texts.open ? ",text" : "");
    bytes_add(&names, "", 1);
    const bool good = score_header(&w->out, w->s->format, names.data);
    free(names.data);
    return good;
}

/* {"query": 0, "hits": [...]}, or a row for each hit. */
static bool print_hits(search_work *w, const pith_hit *hits, size_t k) {
    bytes *line = &w->line;
    line->size = 0;
    if (!print_bad(w)) return false;
    const uint64_t query = w->asked++;
    if (!w->s->format)
        bytes_print(line, "{\"query\": %llu, \"hits\": [", (unsigned long long)query);
    for (size_t i = 0; i < k; i++) {
        if (w->s->format) {
            print_cells(w, query, &hits[i]);
            continue;
        }
        if (i) bytes_add(line, ", ", 2);
        print_hit(w, &hits[i]);
    }
    if (!w->s->format) bytes_add(line, "]}\n", 3);
    return output_write(&w->out, line->data, line->size);
}

/* In place of an exit code: nobody takes the results any more. Whether that is a failure is said by
 * the output. */
enum { UNWANTED = -1 };

/* Searches for count queries and prints what is found. */
static int answer(search_work *w, const float *queries, size_t count) {
    pith_error err = PITH_ERROR_INIT;
    pith_hit *hits = grow(NULL, count * w->k * sizeof *hits + 1);
    int code = EXIT_DONE;
    if (pith_search(hits, w->index, queries, count, w->k, &w->s->search, &err))
        code = fail(w->c, "%s", err.message);
    for (size_t i = 0; !code && i < count; i++)
        if (!print_hits(w, hits + i * w->k, w->k)) code = UNWANTED;
    free(hits);
    return !code && !output_flush(&w->out) ? UNWANTED : code;
}

/* ---- queries that are vectors ---- */

/* With maxsim a query is an array of rows; an array with three axes holds several. */
static int answer_groups(search_work *w, const float *floats, const vector_file *queries) {
    int code = EXIT_DONE;
    for (size_t i = 0; !code && i < queries->groups; i++) {
        const size_t ends[2] = { 0, queries->per_group };
        w->s->search.query_offsets = ends;
        code = answer(w, floats + i * queries->per_group * queries->dim, 1);
        w->s->search.query_offsets = NULL;
    }
    return code;
}

static int answer_vectors(search_work *w) {
    const bool maxsim = w->s->metric == PITH_METRIC_MAXSIM;
    vector_file queries;
    int code = vector_file_open(&queries, w->c, w->s->query_vectors, &w->s->reading);
    if (code) return code;
    if (queries.dim != w->file.dim)
        code = fail(w->c, "the vectors of %s have %zu components, those of %s have %zu",
                    queries.path, queries.dim, w->name, w->file.dim);
    else if (queries.rank == 3 && !maxsim)
        code = fail(w->c, "%s has three axes, which only --metric maxsim reads", queries.path);
    if (!code) {
        float *floats = vector_file_floats(&queries);
        if (maxsim)
            code = answer_groups(w, floats, &queries);
        else
            for (size_t at = 0, n; !code && at < queries.count; at += n) {
                n = queries.count - at < BATCH_QUERIES ? queries.count - at : BATCH_QUERIES;
                code = answer(w, floats + at * queries.dim, n);
            }
        free(floats);
    }
    vector_file_close(&queries);
    return code;
}

/* ---- queries that are texts ---- */

/* Whether the first vectors of the file have the length 1; then the dot products and distances of
 * its own texts are those of queries of length 1. */
static bool has_unit_rows(const search_work *w) {
    vector_file some = w->file;
    if (some.bits || (some.dtype != PITH_F32 && some.dtype != PITH_F16) || !some.count)
        return false;
    if (some.count > LENGTH_ROWS) some.count = LENGTH_ROWS;
    float *floats = vector_file_floats(&some);
    bool unit = true;
    for (size_t r = 0; r < some.count; r++) {
        double sum = 0;
        for (size_t i = 0; i < some.dim; i++)
            sum += (double)floats[r * some.dim + i] * floats[r * some.dim + i];
        unit = unit && fabs(sqrt(sum) - 1) < LENGTH_TOLERANCE;
    }
    free(floats);
    return unit;
}

static int open_model(search_work *w) {
    search_settings *s = w->s;
    pith_error err = PITH_ERROR_INIT;
    if (w->model) return EXIT_DONE;
    int code = work_begin(w->c, &s->work, &s->open);
    if (code) return code;
    s->embed.batching = &s->work.batching;
    s->embed.dim = s->dim;
    s->embed.call.threads = s->search.call.threads;
    return pith_model_open(&w->model, s->model, &s->open, &err) ? fail_model(w->c, &err, s->model)
                                                                : EXIT_DONE;
}

/* Makes vectors of queries what those of the file are. */
static int fit_model(search_work *w) {
    search_settings *s = w->s;
    pith_error err = PITH_ERROR_INIT;
    int code = open_model(w);
    if (code) return code;
    if (has_unit_rows(w)) s->embed.normalize = 1;
    if (pith_embed(NULL, w->model, NULL, 0, &s->embed, &err)) return fail(w->c, "%s", err.message);
    const size_t dim = pith_embed_dim(w->model, &s->embed);
    if (dim == w->file.dim) return EXIT_DONE;
    return fail(w->c, "the vectors of %s have %zu components, those of the model %s have %zu%s",
                w->name, w->file.dim, s->model, dim,
                dim > w->file.dim ? "; if they were cut by `pith embed --dim`, give --dim here too"
                                  : "");
}

static int answer_texts(search_work *w, const pith_str *texts, size_t count) {
    pith_error err = PITH_ERROR_INIT;
    float *vectors = grow(NULL, count * w->file.dim * sizeof *vectors + 1);
    int code = pith_embed(vectors, w->model, texts, count, &w->s->embed, &err)
                   ? fail(w->c, "%s", err.message)
                   : answer(w, vectors, count);
    free(vectors);
    return code;
}

static int answer_listed(search_work *w) {
    const string_list *list = &w->s->queries;
    pith_str *texts = grow(NULL, list->count * sizeof *texts);
    for (size_t i = 0; i < list->count; i++)
        texts[i] = (pith_str){ list->items[i], strlen(list->items[i]) };
    int code = answer_texts(w, texts, list->count);
    free(texts);
    return code;
}

/* Notes a line that holds no text as a query of its own; false: it ends the command. */
static bool pass_bad(search_work *w, const text_input *in, size_t count) {
    char number[40];
    const size_t row = (size_t)w->asked + count + w->bad.count;
    snprintf(number, sizeof number, "\"query\": %zu, ", row);
    return in->bad && bad_lines_add(&w->bad, row, in, in->message, number);
}

/* Replaces the object behind `from` by the text in it. False: in->message says why not. */
static bool take_query(search_work *w, text_input *in, bytes *text, size_t from, bool cut) {
    static const char *const by_columns[] = { NULL };
    pith_str query = { "", 0 };
    w->json.row = text_input_row(in) > 0;
    const bool good = !cut && json_line_texts(&w->json, &query, bytes_text(text, from, text->size),
                                              by_columns, 1, NULL);
    const size_t size = query.size < LINE_BYTES ? query.size : LINE_BYTES;
    if (size) memmove(text->data + from, query.data, size); /* it may be a part of the line */
    text->size = from + size;
    in->bad = !good;
    if (!good)
        pith__text_print(in->message, sizeof in->message, "%s: %s", text_input_place(in),
                         cut ? "the object is longer than 64 MiB" : w->json.message);
    return good;
}

/* Appends the next query: 1 it is there, 0 there is none, -1 message in in. */
static int read_query(search_work *w, text_input *in, bytes *text) {
    const size_t from = text->size;
    for (;;) {
        bool cut;
        const int state = text_input_next(in, text, &cut);
        if (state <= 0 || !w->s->asked.objects) return state;
        if (!json_line_blank(bytes_text(text, from, text->size)))
            return take_query(w, in, text, from, cut) ? 1 : -1;
        text->size = from;
    }
}

/* Reads a batch of lines: 1 there are some, 0 there are none, -1 message in in. */
static int read_batch(search_work *w, text_input *in, bytes *text, pith_str *texts, size_t *count) {
    size_t ends[BATCH_QUERIES];
    int state = 1;
    text->size = *count = 0;
    bad_lines_clear(&w->bad);
    while (*count + w->bad.count < BATCH_QUERIES &&
           (!(*count + w->bad.count) || text_input_ready(in))) {
        state = read_query(w, in, text);
        if (state < 0 && pass_bad(w, in, *count)) continue;
        if (state <= 0) break;
        ends[(*count)++] = text->size;
    }
    for (size_t i = 0, begin = 0; i < *count; begin = ends[i++])
        texts[i] = bytes_text(text, begin, ends[i]);
    return state < 0 && !(w->bad.how && in->bad) ? -1 : *count + w->bad.count > 0;
}

static int answer_files(search_work *w) {
    const row_options *asked = &w->s->asked;
    text_input in;
    bytes text = { NULL, 0, 0 };
    pith_str texts[BATCH_QUERIES];
    size_t count;
    int code = EXIT_DONE, state;
    text_input_open(&in, &asked->inputs);
    json_line_init(&w->json, false);
    row_options_apply(asked, &in, &w->json);
    w->json.asks = true;
    w->bad.how = asked->errors;
    in.limit = asked->objects ? JSON_LINE_BYTES : LINE_BYTES;
    while (!code && (state = read_batch(w, &in, &text, texts, &count)) != 0) {
        /* those before a line that cannot be read */
        if (count) code = answer_texts(w, texts, count);
        if (!code && w->bad.count && !(print_bad(w) && output_flush(&w->out))) code = UNWANTED;
        if (!code && state < 0) code = fail(w->c, "%s", in.message);
    }
    free(text.data);
    text_input_close(&in);
    json_line_free(&w->json);
    return code;
}

static int answer_with_model(search_work *w) {
    int code = fit_model(w);
    if (code) return code;
    const double began = now_seconds();
    code = w->s->queries.count ? answer_listed(w) : answer_files(w);
    json_t *told = json_pack("{s:f}", "seconds", now_seconds() - began);
    return work_stats(w->c, &w->s->work, told, w->model, &w->s->asked.inputs, code);
}

/* ---- the index ---- */

/* The columns that hits have are there in the first row. */
static int check_fields(search_work *w) {
    for (size_t i = 0; i < w->fields.count && w->texts.count; i++)
        if (!text_table_has(&w->texts, 0, w->fields.items[i]))
            return fail(w->c, "%s: --fields: %s", w->s->texts, w->texts.json.message);
    return EXIT_DONE;
}

static int open_texts(search_work *w) {
    const search_settings *s = w->s;
    const size_t items = s->offsets ? w->documents : w->file.count;
    if (!s->texts || !s->index) return EXIT_DONE;
    int code = text_table_open(&w->texts, w->c, s->texts, &s->rows, false);
    if (!code) code = check_fields(w);
    if (code || w->texts.count == items) return code;
    return fail(w->c, "%s has %zu %s, but %s has %zu %s", s->texts, w->texts.count,
                w->texts.objects ? "rows" : "lines", s->offsets ? s->offsets : s->index, items,
                s->offsets ? "documents" : "vectors");
}

/* Embeds the texts, where there is no file of vectors. */
static int make_vectors(search_work *w) {
    search_settings *s = w->s;
    pith_error err = PITH_ERROR_INIT;
    progress_line progress;
    int code = text_table_open(&w->texts, w->c, s->texts, &s->rows, true);
    if (!code) code = check_fields(w);
    if (!code) code = open_model(w);
    if (code) return code;
    pith_embed_options options = s->embed;
    options.prompt_name = NULL; /* it is that of the queries */
    if (pith_embed(NULL, w->model, NULL, 0, &options, &err)) return fail(w->c, "%s", err.message);
    const size_t dim = pith_embed_dim(w->model, &options);
    if (!s->rows.quiet)
        embed_table_tell(w->c, &w->texts, s->texts, option_by_flag(&s->model) ? s->model : NULL,
                         &s->rows, s->dim);
    progress_line_begin(&progress, "texts", false, s->rows.quiet, s->output);
    float *vectors;
    code = embed_table(&vectors, w->c, w->model, &w->texts, dim, &options, &progress);
    w->file = (vector_file){ .path = s->texts,
                             .rows = vectors,
                             .dtype = PITH_F32,
                             .count = w->texts.count,
                             .dim = dim,
                             .groups = 1,
                             .per_group = w->texts.count,
                             .rank = 2,
                             .owned = vectors };
    return code;
}

static int open_offsets(search_work *w) {
    size_t count;
    if (!w->s->offsets) return EXIT_DONE;
    int code = vector_file_integers(&w->offsets, &count, w->c, w->s->offsets);
    if (code) return code;
    if (!count)
        return fail(w->c, "%s is empty; it holds one number more than there are documents",
                    w->s->offsets);
    w->documents = count - 1;
    return EXIT_DONE;
}

static int open_index(search_work *w) {
    search_settings *s = w->s;
    pith_error err = PITH_ERROR_INIT;
    int code = s->index ? vector_file_open(&w->file, w->c, s->index, &s->reading) : make_vectors(w);
    if (!code && w->file.rank != 2)
        code = fail(w->c, "%s has %d axes; the vectors are the rows of an array with two", s->index,
                    w->file.rank);
    else if (!code && s->reading.bits && !w->file.bits)
        code =
            fail(w->c, "%s: packed bits are uint8 in .npy, as numpy.packbits makes them", s->index);
    if (!code) code = open_offsets(w);
    if (!code) code = open_texts(w);
    if (code) return code;
    pith_search_index_options how = PITH_SEARCH_INDEX_OPTIONS_INIT;
    how.metric = s->metric;
    how.dtype = w->file.dtype;
    how.bits = w->file.bits;
    how.first_pass = s->first_pass;
    how.call.threads = s->search.call.threads;
    how.offsets = w->offsets;
    how.documents = w->documents;
    if (pith_search_index_create(&w->index, w->file.rows, w->file.count, w->file.dim, &how, &err))
        return fail(w->c, "%s: %s",
                    s->offsets && strstr(err.message, "offset") ? s->offsets : w->name,
                    err.message);
    const size_t items = pith_search_index_count(w->index);
    const char *searched = s->index ? "vectors" : "texts";
    if ((size_t)s->hits > items)
        note("warning: %s has %zu %s, so a query has %zu hits and not %d", w->name, items,
             s->offsets ? "documents" : searched, items, (int)s->hits);
    w->k = s->hits ? (size_t)s->hits : HITS;
    if (w->k > items) w->k = items;
    return EXIT_DONE;
}

static void close_index(search_work *w) {
    pith_search_index_destroy(w->index);
    text_table_close(&w->texts);
    vector_file_close(&w->file);
    pith_model_close(w->model);
    name_list_free(&w->fields);
    free(w->offsets);
    free(w->line.data);
}

/* All files that are read; the output must be none of them. */
static string_list all_inputs(const search_settings *s, const string_list *files) {
    const char *const named[] = { s->index, s->texts, s->offsets, s->query_vectors };
    string_list all = { NULL, 0 };
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (named[i]) list_add(&all, named[i]);
    for (size_t i = 0; i < files->count; i++) list_add(&all, files->items[i]);
    if (!s->query_vectors && !s->queries.count && !files->count) list_add(&all, "-");
    return all;
}

static int search_files(const command *c, search_settings *s) {
    search_work w = { .c = c, .s = s, .name = s->index ? s->index : s->texts };
    string_list inputs = all_inputs(s, &s->asked.inputs);
    name_list_read(&w.fields, s->fields);
    int code = s->index ? open_index(&w) : EXIT_DONE;
    if (!code) code = output_open(&w.out, c, s->output, &inputs);
    if (!code) {
        if (!s->index) code = open_index(&w);
        if (!code && s->format) print_header(&w);
        if (!code) code = s->query_vectors ? answer_vectors(&w) : answer_with_model(&w);
        if (code == UNWANTED) code = EXIT_DONE;
        code = bad_lines_end(w.bad.total + w.texts.skipped, c, s->asked.errors,
                             output_close(&w.out, c, code == EXIT_DONE, code));
        bad_lines_free(&w.bad);
    }
    close_index(&w);
    free(inputs.items);
    return code;
}

/* Which of the two has the columns that --column names: the texts, or the queries. */
static int check_columns(const command *c, search_settings *s, const string_list *arguments) {
    const bool table = s->texts && text_table_objects(s->texts);
    if (!table && (s->rows.id || s->fields))
        return usage(c, "--id and --fields go with --texts of a file that has columns: .csv, .tsv, "
                        ".jsonl, .parquet");
    s->asked = s->rows;
    s->asked.id = NULL;
    if (table)
        s->asked.columns = (string_list){ NULL, 0 };
    else
        s->rows.columns = (string_list){ NULL, 0 };
    int code = row_options_take(c, &s->asked, arguments);
    if (!code) code = format_choose(c, &s->format, s->output);
    return code ? code : score_check(c, s->format, s->asked.errors);
}

static int search_check(const command *c, search_settings *s, const string_list *arguments) {
    const bool maxsim = s->metric == PITH_METRIC_MAXSIM;
    s->reading.dim = (size_t)s->dim;
    if (!s->index && !s->texts)
        return usage(c, "give the file of vectors with --index, or texts with --texts");
    if (!s->index && (s->offsets || s->reading.bits || maxsim))
        return usage(c, "--bits, --offsets and --metric maxsim go with --index");
    if ((s->queries.count > 0) + (s->query_vectors != NULL) + (arguments->count > 0) > 1)
        return usage(c, "queries are one of --query, --query-vectors and FILE");
    if (maxsim != (s->offsets != NULL))
        return usage(c, maxsim ? "--metric maxsim needs --offsets"
                               : "--offsets goes with --metric maxsim");
    if (maxsim && !s->query_vectors)
        return usage(c,
                     "--metric maxsim needs --query-vectors: a model gives one vector for a text");
    if (s->search.rescore && !s->first_pass) return usage(c, "--rescore goes with --first-pass");
    return check_columns(c, s, arguments);
}

static int search_run(int argc, char **argv) {
    const command *c = &command_search;
    search_settings s = { .reading.field = "embedding",
                          .work = WORK_SETTINGS_INIT,
                          .open = PITH_OPEN_OPTIONS_INIT,
                          .embed = PITH_EMBED_OPTIONS_INIT,
                          .search = PITH_SEARCH_OPTIONS_INIT };
    string_list arguments = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &arguments);
    if (code >= 0) return code;
    code = search_check(c, &s, &arguments);
    if (!code) code = search_files(c, &s);
    row_options_free(&s.rows);
    row_options_free(&s.asked);
    free(s.queries.items);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, search_settings, member)

static const option options[] = {
    OPTION_SECTION("vectors"),
    AT(index, index),
    AT(texts_search, texts),
    AT(column_search, rows.columns),
    AT(id_column, rows.id),
    AT(fields, fields),
    AT(python, rows.python),
    AT(field_search, reading.field),
    AT(dim_search, dim),
    AT(bits, reading.bits),
    AT(offsets, offsets),
    OPTION_SECTION("queries"),
    AT(query_search, queries),
    AT(query_vectors, query_vectors),
    AT(null, rows.null),
    AT(invalid, rows.invalid),
    AT(errors, rows.errors),
    OPTION_SECTION("model"),
    AT(model, model),
    AT(prompt_name, embed.prompt_name),
    OPTIONS_PASSES(search_settings),
    OPTION_SECTION("search"),
    AT(hits, hits),
    AT(metric, metric),
    AT(first_pass, first_pass),
    AT(rescore, search.rescore),
    AT(threads, search.call.threads),
    OPTIONS_BATCHING(search_settings),
    OPTIONS_MEMORY(search_settings),
    OPTION_SOURCES,
    OPTION_SECTION("output"),
    AT(output, output),
    AT(format_lines, format),
    AT(quiet_texts, rows.quiet),
    OPTION_PLACE(stats, search_settings, work.stats),
    OPTION_PLACE(stats_file, search_settings, work.stats_file),
    OPTION_END,
};

static const example examples[] = {
    { "pith search --texts products.csv --column description --fields name,price --query \"a "
      "lamp\"",
      "no vectors are needed" },
    { "pith embed -o v.npy texts.txt", "the vectors that the next lines search" },
    { "pith search --index v.npy --texts texts.txt --query \"a cat\"",
      "{\"query\": 0, \"hits\": [...]}" },
    { "pith search --index v.npy -k 3 questions.txt", "a line for each question" },
    { "pith search --index v.npy --query-vectors q.npy --metric l2", "no model is needed" },
    { NULL, NULL },
};

const command command_search = {
    .name = "search",
    .summary = "find the vectors nearest to queries",
    .forms = "--index FILE [options] --query TEXT\n--texts FILE [options] --query TEXT\n--index "
             "FILE [options] --query-vectors FILE\n--index FILE [options] [FILE...]",
    .takes = "FILE",
    .description = "Compares each query with all vectors of a file and prints the best, one JSON "
                   "object per query. Each "
                   "line of the files, or of standard input, is a query. Without --index the texts "
                   "of --texts are embedded first. Where --texts names a .csv, .tsv, .parquet or "
                   ".jsonl file, hits have the id of their row and its --fields.",
    .examples = examples,
    .options = options,
    .run = search_run,
};

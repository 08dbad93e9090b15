/* cmd_tokenize.c - pith tokenize: the ids that embed would feed, one JSON array per line.
 *
 * Lines are gathered as long as they arrive without waiting, and are then tokenized together on all
 * threads. */
#include <stdlib.h>
#include <string.h>

#include "base/text_out.h"
#include "cli/base/cli.h"
#include "cli/base/progress_line.h"
#include "cli/base/text_input.h"
#include "cli/input/bad_lines.h"
#include "cli/input/row_options.h"
#include "cli/output/format_choice.h"
#include "cli/output/output.h"

/* Bytes of a line that are kept if its end matters: it is not truncated, or its beginning is cut
 * off. */
#define WHOLE_BYTES ((size_t)64 << 20)
/* Bytes of a line that are kept if only its first tokens are needed. */
#define LINE_BYTES ((size_t)1 << 20)
/* A batch ends after this many texts or bytes. Larger batches keep threads busy; smaller ones need
 * less memory. A longer line is a batch of its own. */
enum { BATCH_TEXTS = 4096, BATCH_BYTES = 1 << 20 };

/* ---- results ---- */

typedef struct tokenize_settings {
    pith_tokenizer *tokenizer;
    pith_tokenize_options options;
    const char *pair_field; /* of objects; NULL: "text_pair" */
    bool pair, full, count, total;
    const char *model, *output;
    bool no_specials, raw, characters, overflow;
    int32_t max_length; /* -1: what the model's files say */
    int side;
    row_options rows;
} tokenize_settings;

static void print_int(bytes *out, int64_t value) {
    char digits[24], *p = digits + sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0) *--p = '-';
    bytes_add(out, p, (size_t)(digits + sizeof digits - p));
}

static void print_string(bytes *out, pith_str s) {
    bytes_add(out, "\"", 1);
    for (size_t i = 0; i < s.size; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c < 0x20)
            bytes_print(out, "\\u%04x", c);
        else {
            if (c == '"' || c == '\\') bytes_add(out, "\\", 1);
            bytes_add(out, &s.data[i], 1);
        }
    }
    bytes_add(out, "\"", 1);
}

/* ,"name":[…] of tokens [begin, end); NUMBERS(i) is the number of token i, NONE stands for null. */
#define NONE INT64_MIN
#define PRINT_COLUMN(out, name, begin, end, number)                                                \
    do {                                                                                           \
        bytes_print(out, "%s[", name);                                                             \
        for (size_t i = begin; i < end; i++) {                                                     \
            int64_t n_ = (number);                                                                 \
            if (i > begin) bytes_add(out, ",", 1);                                                 \
            if (n_ == NONE)                                                                        \
                bytes_add(out, "null", 4);                                                         \
            else                                                                                   \
                print_int(out, n_);                                                                \
        }                                                                                          \
        bytes_add(out, "]", 1);                                                                    \
    } while (0)

static void print_full(bytes *out, const pith_tokenizer *tokenizer, const pith_tokens *t,
                       size_t begin, size_t end) {
    PRINT_COLUMN(out, "{\"ids\":", begin, end, t->ids[i]);
    bytes_print(out, ",\"tokens\":[");
    for (size_t i = begin; i < end; i++) {
        pith_str token = pith_token_text(tokenizer, t->ids[i]);
        if (i > begin) bytes_add(out, ",", 1);
        if (token.data)
            print_string(out, token);
        else
            bytes_add(out, "null", 4);
    }
    bytes_print(out, "],\"offsets\":[");
    for (size_t i = begin; i < end; i++)
        bytes_print(out, "%s[%u,%u]", i > begin ? "," : "", t->begin[i], t->end[i]);
    PRINT_COLUMN(out, "],\"word_ids\":", begin, end, t->word_ids[i] < 0 ? NONE : t->word_ids[i]);
    PRINT_COLUMN(out, ",\"sequence_ids\":", begin, end,
                 t->sequence_ids[i] < 0 ? NONE : t->sequence_ids[i]);
    PRINT_COLUMN(out, ",\"type_ids\":", begin, end, t->type_ids[i]);
    PRINT_COLUMN(out, ",\"special\":", begin, end, t->special[i]);
    PRINT_COLUMN(out, ",\"attention\":", begin, end, t->attention[i]);
    bytes_add(out, "}", 1);
}

/* The line of one text, tokens [begin, end). */
static void tokenize_print_text(bytes *out, const tokenize_settings *s, const pith_tokens *t,
                                size_t begin, size_t end) {
    bool windows = s->options.overflow;
    if (s->count)
        print_int(out, (int64_t)(end - begin));
    else {
        if (windows) bytes_add(out, "[", 1);
        for (size_t at = begin, stop; at < end || at == begin; at = stop) {
            for (stop = at; stop < end && t->windows[stop] == t->windows[at];) stop++;
            if (at > begin) bytes_add(out, ",", 1);
            if (s->full)
                print_full(out, s->tokenizer, t, at, stop);
            else
                PRINT_COLUMN(out, "", at, stop, t->ids[i]);
            if (stop == end) break;
        }
        if (windows) bytes_add(out, "]", 1);
    }
    bytes_add(out, "\n", 1);
}

/* ---- texts ---- */

/* Where a text lies in the batch's bytes, and where it came from. */
typedef struct place {
    size_t begin, pair, end; /* the text ends, its pair begins at `pair` */
    size_t path;
    uint64_t line, row;
} place;

typedef struct batch {
    bytes text;
    place places[BATCH_TEXTS];
    pith_str texts[BATCH_TEXTS], pairs[BATCH_TEXTS];
    size_t ends[BATCH_TEXTS], count;
    pith_tokens tokens;
    bytes result;
    uint64_t total;
    bad_lines bad;
    char message[1400]; /* why gathering ended; "": nothing wrong */
} batch;

/* The texts in an object's fields replace the object. False: message says why. */
static bool take_fields(batch *b, place *p, const tokenize_settings *s, json_line *json,
                        const text_input *in, bool too_long) {
    const char *fields[2] = { NULL, s->pair_field };
    pith_str texts[2] = { { NULL, 0 }, { NULL, 0 } },
             line = bytes_text(&b->text, p->begin, b->text.size);
    const char *why = too_long ? "the object is longer than 64 MiB" : NULL;
    json->row = text_input_row(in) > 0;
    if (!why && !json_line_texts(json, texts, line, fields, s->pair ? 2 : 1, NULL))
        why = json->message;
    if (why) {
        pith__text_print(b->message, sizeof b->message, "%s: %s", text_input_place(in), why);
        return false;
    }
    /* They may be parts of the line, in any order. */
    bytes both = { NULL, 0, 0 };
    bytes_add(&both, texts[0].data, texts[0].size);
    bytes_add(&both, texts[1].data, texts[1].size);
    b->text.size = p->begin;
    bytes_add(&b->text, both.data, both.size);
    free(both.data);
    p->pair = p->begin + texts[0].size;
    p->end = b->text.size;
    if (!s->pair) p->pair = p->end;
    return true;
}

static bool split_at_tab(batch *b, place *p, const text_input *in) {
    const char *begin = bytes_text(&b->text, p->begin, p->begin).data,
               *tab = p->end > p->begin ? memchr(begin, '\t', p->end - p->begin) : NULL;
    if (!tab) {
        pith__text_print(b->message, sizeof b->message, "%s: there is no tab between two texts",
                         text_input_place(in));
        return false;
    }
    /* The tab stays between them. */
    p->pair = p->begin + (size_t)(tab - begin) + 1;
    return true;
}

/* Takes back what a bad line has left, and notes the line; false: it ends the command, message says
 * why. */
static bool pass_bad(batch *b, size_t begin, const text_input *in) {
    b->text.size = begin;
    if (!bad_lines_add(&b->bad, b->count, in, b->message, NULL)) return false;
    b->message[0] = 0;
    return true;
}

/* Lines as long as there are any without waiting. False: it was the end, or message says what was
 * wrong. */
static bool gather(batch *b, const tokenize_settings *s, json_line *json, text_input *in) {
    b->text.size = b->count = 0;
    bad_lines_clear(&b->bad);
    do {
        place p = { .begin = b->text.size };
        bool cut;
        int state = text_input_next(in, &b->text, &cut);
        if (state < 0) pith__text_print(b->message, sizeof b->message, "%s", in->message);
        if (state < 0 && in->bad && pass_bad(b, p.begin, in)) continue;
        if (state <= 0) return false;
        if (s->rows.objects && json_line_blank(bytes_text(&b->text, p.begin, b->text.size))) {
            b->text.size = p.begin;
            continue;
        }
        p.pair = p.end = b->text.size;
        p.path = in->path_at;
        p.line = in->line;
        p.row = in->rows.row;
        if (s->rows.objects ? take_fields(b, &p, s, json, in, cut)
                            : !s->pair || split_at_tab(b, &p, in))
            b->places[b->count++] = p;
        else if (!pass_bad(b, p.begin, in))
            return false;
    } while (b->count < BATCH_TEXTS && b->text.size + bad_lines_bytes(&b->bad) < BATCH_BYTES &&
             text_input_ready(in));
    return true;
}

static void find_texts(batch *b, const tokenize_settings *s) {
    const char *data = b->text.data ? b->text.data : "";
    for (size_t i = 0; i < b->count; i++) {
        const place *p = &b->places[i];
        size_t tab = s->pair && !s->rows.objects;
        b->texts[i] = (pith_str){ data + p->begin, p->pair - p->begin - tab };
        b->pairs[i] = (pith_str){ data + p->pair, p->end - p->pair };
    }
}

/* The line of text i, behind the objects of the bad lines before it. */
static void tokenize_print(batch *b, const tokenize_settings *s, size_t i, size_t begin,
                           size_t end) {
    const pith_str objects = bad_lines_take(&b->bad, i);
    bytes_add(&b->result, objects.data, objects.size);
    tokenize_print_text(&b->result, s, &b->tokens, begin, end);
}

/* One by one: the texts before the one that fails are written. */
static int tokenize_singly(batch *b, const tokenize_settings *s, text_input *in) {
    pith_error err = PITH_ERROR_INIT;
    for (size_t i = 0; i < b->count; i++) {
        if (pith_tokenize(&b->tokens, s->tokenizer, b->texts[i], s->pair ? &b->pairs[i] : NULL,
                          &s->options, &err)) {
            in->path_at = b->places[i].path;
            in->line = b->places[i].line;
            in->rows.row = b->places[i].row;
            return fail(&command_tokenize, "%s: %s", text_input_place(in), err.message);
        }
        b->total += b->tokens.count;
        if (!s->total) tokenize_print(b, s, i, 0, b->tokens.count);
    }
    return EXIT_DONE;
}

static int tokenize(batch *b, const tokenize_settings *s, text_input *in) {
    find_texts(b, s);
    b->result.size = 0;
    if (pith_tokenize_batch(&b->tokens, b->ends, s->tokenizer, b->texts, s->pair ? b->pairs : NULL,
                            b->count, &s->options, NULL))
        return tokenize_singly(b, s, in);
    b->total += b->tokens.count;
    if (!s->total)
        for (size_t i = 0; i < b->count; i++)
            tokenize_print(b, s, i, i ? b->ends[i - 1] : 0, b->ends[i]);
    return EXIT_DONE;
}

static int tokenize_all(uint64_t *bad, const tokenize_settings *s, json_line *json, text_input *in,
                        output *out) {
    batch *b = grow(NULL, sizeof *b);
    int code = EXIT_DONE;
    progress_line progress;
    uint64_t done = 0;
    progress_line_begin(&progress, "texts", false, s->rows.quiet, s->output);
    *b = (batch){ .tokens = PITH_TOKENS_INIT, .bad.how = s->rows.errors };
    for (bool more = true; more && !code;) {
        more = gather(b, s, json, in);
        code = tokenize(b, s, in);
        const pith_str objects = bad_lines_take(&b->bad, SIZE_MAX);
        bytes_add(&b->result, objects.data, objects.size);
        if (!code && b->message[0]) code = fail(&command_tokenize, "%s", b->message);
        done += b->count;
        progress_line_show(&progress, done, 0);
        if (!output_write(out, b->result.data, b->result.size)) break;
        if (more && !text_input_ready(in) && !output_flush(out)) break;
    }
    if (!code && s->total) {
        b->result.size = 0;
        print_int(&b->result, (int64_t)b->total);
        bytes_add(&b->result, "\n", 1);
        output_write(out, b->result.data, b->result.size);
    }
    progress_line_end(&progress, done, 0);
    *bad = b->bad.total;
    pith_tokens_free(&b->tokens);
    bad_lines_free(&b->bad);
    free(b->text.data);
    free(b->result.data);
    free(b);
    return code;
}

static int tokenize_check(const command *c, const tokenize_settings *s) {
    if (s->full + s->count + s->total > 1)
        return usage(c, "--full, --count and --total do not go together");
    if (!s->rows.objects && s->pair_field)
        return usage(c, "--pair-field goes with --jsonl, and with files that have columns");
    if (s->pair_field && !s->pair) return usage(c, "--pair-field goes with --pair");
    if (s->characters && !s->full) return usage(c, "--characters goes with --full");
    if (s->total && s->rows.errors == ERRORS_REPORT)
        return usage(c, "--errors report does not go with --total");
    return s->count || s->total ? EXIT_DONE : format_only(c, "jsonl", s->output);
}

static int tokenize_files(const command *c, const tokenize_settings *s, const string_list *files) {
    output out;
    text_input in;
    json_line json;
    uint64_t bad;
    int code = output_open(&out, c, s->output, files);
    if (code) return code;
    const bool left = s->side ? s->side == 2 : pith_tokenizer_cuts_left(s->tokenizer);
    const bool cut_off = s->options.max_length && !s->overflow && !left;
    text_input_open(&in, files);
    in.limit = LINE_BYTES;
    if (s->rows.objects)
        in.limit = JSON_LINE_BYTES;
    else if (!cut_off)
        in.limit = WHOLE_BYTES;
    json_line_init(&json, false);
    row_options_apply(&s->rows, &in, &json);
    code = tokenize_all(&bad, s, &json, &in, &out);
    json_line_free(&json);
    text_input_close(&in);
    return bad_lines_end(bad, c, s->rows.errors, output_close(&out, c, true, code));
}

/* Opens the tokenizer and does the work. */
static int tokenize_with(const command *c, tokenize_settings *s) {
    pith_error err = PITH_ERROR_INIT;
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    open_options.call.log = &warnings;
    if (pith_tokenizer_open(&s->tokenizer, s->model, &open_options, &err))
        return fail_model(c, &err, s->model);
    if (s->max_length < 0 && pith_tokenizer_limit(&s->max_length, s->tokenizer, s->model, &err)) {
        pith_tokenizer_close(s->tokenizer);
        return fail(c, "%s", err.message);
    }
    s->options.max_length = s->raw ? 0 : s->max_length;
    s->options.no_specials = s->no_specials;
    s->options.raw = s->raw;
    s->options.no_offsets = !s->full;
    s->options.characters = s->characters;
    s->options.left = 1;
    if (s->side == 0)
        s->options.left = 0;
    else if (s->side == 1)
        s->options.left = -1;
    s->options.overflow = s->overflow;
    if (!s->pair_field) s->pair_field = "text_pair";
    const int code = tokenize_files(c, s, &s->rows.inputs);
    pith_tokenizer_close(s->tokenizer);
    return code;
}

static int tokenize_run(int argc, char **argv) {
    const command *c = &command_tokenize;
    tokenize_settings s = { .options = PITH_TOKENIZE_OPTIONS_INIT, .max_length = -1 };
    string_list arguments = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &arguments);
    if (code >= 0) return code;
    code = row_options_take(c, &s.rows, &arguments);
    if (!code) code = tokenize_check(c, &s);
    if (!code) code = tokenize_with(c, &s);
    row_options_free(&s.rows);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, tokenize_settings, member)

static const option options[] = {
    AT(model_detokenize, model),
    OPTION_SECTION("input"),
    AT(pair, pair),
    AT(column, rows.columns),
    AT(pair_field_tokenize, pair_field),
    OPTIONS_ROWS(tokenize_settings, rows),
    AT(jsonl_tokenize, rows.jsonl),
    OPTION_SECTION("tokens"),
    AT(max_length_tokenize, max_length),
    AT(overflow, overflow),
    AT(stride, options.stride),
    AT(cut, options.cut),
    AT(side, side),
    AT(no_specials, no_specials),
    AT(raw_tokenize, raw),
    AT(threads_tokenize, options.call.threads),
    OPTION_SECTION("output"),
    AT(full, full),
    AT(characters, characters),
    AT(count, count),
    AT(total, total),
    AT(output, output),
    AT(quiet_texts, rows.quiet),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "echo \"a cat sat on the mat\" | pith tokenize", "[101,1037,4937,...]" },
    { "pith tokenize -m tokenizer.json --full texts.txt", "ids, tokens, offsets" },
    { "pith tokenize --total --max-length 0 texts.txt", "the total number of tokens" },
    { "pith tokenize --overflow --stride 20 long.txt", "windows over long texts" },
    { "pith tokenize texts.txt | pith detokenize", "there and back" },
    { NULL, NULL },
};

const command command_tokenize = {
    .name = "tokenize",
    .summary = "turn texts into token ids, one text per line",
    .forms = "[-m MODEL] [options] [FILE...]\n[-m MODEL] [options] TEXT...",
    .takes = "FILE",
    .description =
        "Each line becomes a JSON array of the ids that 'pith embed' feeds to the model; of .csv, "
        ".tsv, .parquet and .jsonl files the --column of each row does.",
    .examples = examples,
    .options = options,
    .run = tokenize_run,
};

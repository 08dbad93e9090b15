/* tokenize.c - pith tokenize: the ids the embedder would feed, one JSON array a line.
 *
 * Lines are gathered as long as they can be had without waiting and tokenised together, on all threads. */
#include <stdlib.h>
#include <string.h>

#include "cli/json_line.h"
#include "cli/output.h"
#include "cli/text_input.h"

/* A line that is not to be truncated is held whole. */
#define WHOLE_BYTES ((size_t)64 << 20)
/* Kept of a line that is truncated to a number of tokens anyway. */
#define LINE_BYTES ((size_t)1 << 20)
/* What is gathered at most, unless a line is longer. */
enum { BATCH_TEXTS = 4096, BATCH_BYTES = 1 << 20 };

static const char help[];

static int run(int argc, char **argv);

const command command_tokenize = { "tokenize", "texts to token ids, one a line", help, run };

static const char help[] =
    "usage: pith tokenize [-m MODEL] [options] [FILE...]\n"
    "\n"
    "Each line becomes a JSON array: exactly the ids that 'pith embed' would feed to the model.\n"
    "\n"
    "  echo \"a cat sat on the mat\" | pith tokenize              [101,1037,4937,...]\n"
    "  pith tokenize -m tokenizer.json --full texts.txt         ids, tokens, offsets\n"
    "  pith tokenize --total --max-length 0 texts.txt           how many tokens the texts have\n"
    "  pith tokenize --overflow --stride 20 long.txt            windows over long texts\n"
    "  pith tokenize texts.txt | pith detokenize                there and back\n"
    "\n"
    "  -m, --model MODEL      directory, tokenizer file or name in the model cache (" DEFAULT_MODEL ")\n"
    "  --pair                 lines hold two texts with a tab between them, fed together\n"
    "  --full                 objects: ids, tokens, offsets (bytes), word_ids, type_ids, and more\n"
    "  --characters           offsets count characters\n"
    "  --count                only the number of tokens\n"
    "  --total                only the number of all tokens, at the end\n"
    "  --max-length N         tokens a text is cut at, 0: never (what the model's files say)\n"
    "  --overflow             an array of windows a line: what is cut off follows in further ones\n"
    "  --stride N             tokens that a window repeats of the one before (0)\n"
    "  --cut WHICH            longest|first|second: which text of a pair is cut (longest)\n"
    "  --side SIDE            right|left: the end a text is cut at (right)\n"
    "  --no-specials          without [CLS], [SEP] and the like\n"
    "  --raw                  with tokenizer.json's own truncation and padding\n"
    "  -0, --null             texts end with a NUL byte instead of a newline\n"
    "  --jsonl                lines are JSON objects, --field names the text in them (\"text\"),\n"
    "                         --pair-field the second one (\"text_pair\")\n"
    "  --invalid HOW          error|replace: what is done with bytes that are not UTF-8 (error)\n"
    "  --threads N            (as many as the machine has)\n"
    "  -o, --output FILE      appears under this name when it is complete\n";

/* ---- results ---- */

typedef struct settings {
    pith_tokenizer *tokenizer;
    pith_tokenize_options options;
    const char *field, *pair_field; /* NULL: lines are texts; no pairs in objects */
    bool pair, full, count, total;
} settings;

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
#define PRINT_COLUMN(out, name, begin, end, number)                                                                    \
    do {                                                                                                               \
        bytes_print(out, "%s[", name);                                                                                 \
        for (size_t i = begin; i < end; i++) {                                                                         \
            int64_t n_ = (number);                                                                                     \
            if (i > begin) bytes_add(out, ",", 1);                                                                     \
            if (n_ == NONE)                                                                                            \
                bytes_add(out, "null", 4);                                                                             \
            else                                                                                                       \
                print_int(out, n_);                                                                                    \
        }                                                                                                              \
        bytes_add(out, "]", 1);                                                                                        \
    } while (0)

static void print_full(bytes *out, const pith_tokenizer *tokenizer, const pith_tokens *t, size_t begin, size_t end) {
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
    for (size_t i = begin; i < end; i++) bytes_print(out, "%s[%u,%u]", i > begin ? "," : "", t->begin[i], t->end[i]);
    PRINT_COLUMN(out, "],\"word_ids\":", begin, end, t->word_ids[i] < 0 ? NONE : t->word_ids[i]);
    PRINT_COLUMN(out, ",\"sequence_ids\":", begin, end, t->sequence_ids[i] < 0 ? NONE : t->sequence_ids[i]);
    PRINT_COLUMN(out, ",\"type_ids\":", begin, end, t->type_ids[i]);
    PRINT_COLUMN(out, ",\"special\":", begin, end, t->special[i]);
    PRINT_COLUMN(out, ",\"attention\":", begin, end, t->attention[i]);
    bytes_add(out, "}", 1);
}

/* The line of one text, tokens [begin, end). */
static void print_text(bytes *out, const settings *s, const pith_tokens *t, size_t begin, size_t end) {
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
    uint64_t line;
} place;

typedef struct batch {
    bytes text;
    place places[BATCH_TEXTS];
    pith_str texts[BATCH_TEXTS], pairs[BATCH_TEXTS];
    size_t ends[BATCH_TEXTS], count;
    pith_tokens tokens;
    bytes result;
    uint64_t total;
    char message[1400]; /* why gathering ended; "": nothing wrong */
} batch;

/* The texts in an object's fields replace the object. False: message says why. */
static bool take_fields(batch *b, place *p, const settings *s, json_line *json, const text_input *in, bool too_long) {
    const char *fields[2] = { s->field, s->pair_field };
    pith_str texts[2] = { { NULL, 0 }, { NULL, 0 } }, line = { b->text.data + p->begin, b->text.size - p->begin };
    const char *why = too_long ? "the object is longer than 64 MiB" : NULL;
    if (!why && !json_line_texts(json, texts, line, fields, s->pair ? 2 : 1, NULL)) why = json->message;
    if (why) {
        snprintf(b->message, sizeof b->message, "%s: %s", text_input_place(in), why);
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
    const char *begin = b->text.data + p->begin,
               *tab = p->end > p->begin ? memchr(begin, '\t', p->end - p->begin) : NULL;
    if (!tab) {
        snprintf(b->message, sizeof b->message, "%s: no tab between two texts", text_input_place(in));
        return false;
    }
    /* The tab stays between them. */
    p->pair = p->begin + (size_t)(tab - begin) + 1;
    return true;
}

/* Lines as long as there are any without waiting. False: it was the end, or message says what was wrong. */
static bool gather(batch *b, const settings *s, json_line *json, text_input *in) {
    b->text.size = b->count = 0;
    do {
        place p = { .begin = b->text.size };
        bool cut;
        int state = text_input_next(in, &b->text, &cut);
        if (state < 0) snprintf(b->message, sizeof b->message, "%s", in->message);
        if (state <= 0) return false;
        if (s->field && json_line_blank((pith_str){ b->text.data + p.begin, b->text.size - p.begin })) {
            b->text.size = p.begin;
            continue;
        }
        p.pair = p.end = b->text.size;
        p.path = in->path_at;
        p.line = in->line;
        if (s->field ? !take_fields(b, &p, s, json, in, cut) : s->pair && !split_at_tab(b, &p, in)) return false;
        b->places[b->count++] = p;
    } while (b->count < BATCH_TEXTS && b->text.size < BATCH_BYTES && text_input_ready(in));
    return true;
}

static void find_texts(batch *b, const settings *s) {
    const char *data = b->text.data ? b->text.data : "";
    for (size_t i = 0; i < b->count; i++) {
        const place *p = &b->places[i];
        size_t tab = s->pair && !s->field;
        b->texts[i] = (pith_str){ data + p->begin, p->pair - p->begin - tab };
        b->pairs[i] = (pith_str){ data + p->pair, p->end - p->pair };
    }
}

/* One by one: the texts before the one that fails are written. */
static int tokenize_singly(batch *b, const settings *s, text_input *in) {
    pith_error err = PITH_ERROR_INIT;
    for (size_t i = 0; i < b->count; i++) {
        if (pith_tokenize(&b->tokens, s->tokenizer, b->texts[i], s->pair ? &b->pairs[i] : NULL, &s->options, &err)) {
            in->path_at = b->places[i].path;
            in->line = b->places[i].line;
            return fail(&command_tokenize, "%s: %s", text_input_place(in), err.message);
        }
        b->total += b->tokens.count;
        if (!s->total) print_text(&b->result, s, &b->tokens, 0, b->tokens.count);
    }
    return EXIT_DONE;
}

static int tokenize(batch *b, const settings *s, text_input *in) {
    find_texts(b, s);
    b->result.size = 0;
    if (pith_tokenize_batch(&b->tokens, b->ends, s->tokenizer, b->texts, s->pair ? b->pairs : NULL, b->count,
                            &s->options, NULL))
        return tokenize_singly(b, s, in);
    b->total += b->tokens.count;
    for (size_t i = 0; i < b->count && !s->total; i++)
        print_text(&b->result, s, &b->tokens, i ? b->ends[i - 1] : 0, b->ends[i]);
    return EXIT_DONE;
}

static int tokenize_all(const settings *s, json_line *json, text_input *in, output *out) {
    batch *b = grow(NULL, sizeof *b);
    int code = EXIT_DONE;
    *b = (batch){ .tokens = PITH_TOKENS_INIT };
    for (bool more = true; more && !code;) {
        more = gather(b, s, json, in);
        code = tokenize(b, s, in);
        if (!code && b->message[0]) code = fail(&command_tokenize, "%s", b->message);
        if (!output_write(out, b->result.data, b->result.size)) break;
        if (more && !text_input_ready(in) && !output_flush(out)) break;
    }
    if (!code && s->total) {
        b->result.size = 0;
        print_int(&b->result, (int64_t)b->total);
        bytes_add(&b->result, "\n", 1);
        output_write(out, b->result.data, b->result.size);
    }
    pith_tokens_free(&b->tokens);
    free(b->text.data);
    free(b->result.data);
    free(b);
    return code;
}

static int run(int argc, char **argv) {
    const command *c = &command_tokenize;
    const char *model = DEFAULT_MODEL, *output_path = NULL, *field = NULL, *pair_field = NULL;
    bool null = false, jsonl = false, no_specials = false, raw = false, characters = false, overflow = false;
    int32_t max_length = -1;
    int invalid = 0, cut = 0, side = 0;
    settings s = { .options = PITH_TOKENIZE_OPTIONS_INIT };
    string_list files = { NULL, 0 };
    const option options[] = {
        { "model", 'm', OPTION_STRING, &model, 0, 0, NULL },
        { "pair", 0, OPTION_FLAG, &s.pair, 0, 0, NULL },
        { "full", 0, OPTION_FLAG, &s.full, 0, 0, NULL },
        { "characters", 0, OPTION_FLAG, &characters, 0, 0, NULL },
        { "count", 0, OPTION_FLAG, &s.count, 0, 0, NULL },
        { "total", 0, OPTION_FLAG, &s.total, 0, 0, NULL },
        { "max-length", 0, OPTION_INT, &max_length, 0, INT32_MAX, NULL },
        { "overflow", 0, OPTION_FLAG, &overflow, 0, 0, NULL },
        { "stride", 0, OPTION_INT, &s.options.stride, 0, INT32_MAX, NULL },
        { "cut", 0, OPTION_CHOICE, &cut, 0, 0, "longest|first|second" },
        { "side", 0, OPTION_CHOICE, &side, 0, 0, "right|left" },
        { "no-specials", 0, OPTION_FLAG, &no_specials, 0, 0, NULL },
        { "raw", 0, OPTION_FLAG, &raw, 0, 0, NULL },
        { "null", '0', OPTION_FLAG, &null, 0, 0, NULL },
        { "jsonl", 0, OPTION_FLAG, &jsonl, 0, 0, NULL },
        { "field", 0, OPTION_STRING, &field, 0, 0, NULL },
        { "pair-field", 0, OPTION_STRING, &pair_field, 0, 0, NULL },
        { "invalid", 0, OPTION_CHOICE, &invalid, 0, 0, "error|replace" },
        { "threads", 0, OPTION_INT, &s.options.threads, 0, 1024, NULL },
        { "output", 'o', OPTION_STRING, &output_path, 0, 0, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &files);
    if (code >= 0) return code;
    if (s.full + s.count + s.total > 1) return usage(c, "--full, --count and --total do not go together");
    if (!jsonl && (field || pair_field)) return usage(c, "--field and --pair-field go with --jsonl");
    if (pair_field && !s.pair) return usage(c, "--pair-field goes with --pair");
    if (characters && !s.full) return usage(c, "--characters goes with --full");
    if (jsonl && null) return usage(c, "--jsonl and -0 do not go together");

    pith_error err = PITH_ERROR_INIT;
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    open_options.log = &warnings;
    if (pith_tokenizer_open(&s.tokenizer, model, &open_options, &err)) return fail_model(c, &err, model);
    if (max_length < 0 && pith_tokenizer_limit(&max_length, s.tokenizer, model, &err)) {
        pith_tokenizer_close(s.tokenizer);
        return fail(c, "%s", err.message);
    }
    s.options.max_length = raw ? 0 : max_length;
    s.options.no_specials = no_specials;
    s.options.raw = raw;
    s.options.no_offsets = !s.full;
    s.options.characters = characters;
    s.options.cut = cut;
    s.options.left = side;
    s.options.overflow = overflow;
    s.field = !jsonl ? NULL : field ? field : "text";
    s.pair_field = pair_field ? pair_field : "text_pair";

    output out;
    code = output_open(&out, c, output_path, &files);
    if (!code) {
        text_input in;
        text_input_open(&in, &files);
        in.separator = null ? 0 : '\n';
        in.replace = invalid == 1;
        bool cut_off = s.options.max_length && !overflow && !side;
        in.limit = jsonl ? JSON_LINE_BYTES : !cut_off ? WHOLE_BYTES : LINE_BYTES;
        json_line json;
        json_line_init(&json, in.replace);
        code = tokenize_all(&s, &json, &in, &out);
        json_line_free(&json);
        text_input_close(&in);
        code = output_close(&out, c, true, code);
    }
    pith_tokenizer_close(s.tokenizer);
    return code;
}

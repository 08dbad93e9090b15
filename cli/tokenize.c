/* tokenize.c - pith tokenize: the ids the embedder would feed, one JSON array a line. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/text_input.h"

/* A JSON object is held whole; so is a line that is not to be truncated. */
#define OBJECT_BYTES ((size_t)64 << 20)
/* Kept of a line that is truncated to a number of tokens anyway. */
#define LINE_BYTES ((size_t)1 << 20)

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
    "  pith tokenize --count --max-length 0 texts.txt           how long the texts are\n"
    "  pith tokenize texts.txt | pith detokenize                there and back\n"
    "\n"
    "  -m, --model MODEL      directory, tokenizer.json or name in the model cache (" DEFAULT_MODEL ")\n"
    "  --max-length N         tokens a text is cut at, 0: never (what the model's files say)\n"
    "  --full                 objects: ids, tokens, offsets (bytes), type_ids, special\n"
    "  --count                only the number of tokens\n"
    "  --no-specials          without [CLS], [SEP] and the like\n"
    "  --raw                  with tokenizer.json's own truncation and padding\n"
    "  -0, --null             texts end with a NUL byte instead of a newline\n"
    "  --jsonl                lines are JSON objects, --field names the text in them (\"text\")\n"
    "  --invalid HOW          error|replace: what is done with bytes that are not UTF-8 (error)\n"
    "  -o, --output FILE      appears under this name when it is complete\n";

static void print_ints(bytes *out, const char *name, const int32_t *x, size_t count) {
    bytes_print(out, "%s[", name);
    for (size_t i = 0; i < count; i++) bytes_print(out, i ? ",%d" : "%d", x[i]);
    bytes_print(out, "]");
}

static void print_full(bytes *out, const pith_tokenizer *tokenizer, const pith_tokens *t) {
    print_ints(out, "{\"ids\":", t->ids, t->count);
    bytes_print(out, ",\"tokens\":[");
    for (size_t i = 0; i < t->count; i++) {
        pith_str token = pith_token_text(tokenizer, t->ids[i]);
        json_t *string = token.data ? json_stringn(token.data, token.size) : NULL;
        char *text = json_dumps(string, JSON_ENCODE_ANY);
        if (i) bytes_add(out, ",", 1);
        bytes_add(out, text ? text : "null", text ? strlen(text) : 4);
        free(text);
        json_decref(string);
    }
    bytes_print(out, "],\"offsets\":[");
    for (size_t i = 0; i < t->count; i++) bytes_print(out, "%s[%u,%u]", i ? "," : "", t->begin[i], t->end[i]);
    print_ints(out, "],\"type_ids\":", t->type_ids, t->count);
    bytes_print(out, ",\"special\":[");
    for (size_t i = 0; i < t->count; i++) bytes_print(out, "%s%d", i ? "," : "", t->special[i]);
    bytes_print(out, "]}");
}

/* The text in an object's field replaces the object. False: message says why. */
static bool take_field(bytes *line, const char *name, const text_input *in, char *message, size_t size) {
    json_error_t fault;
    json_t *object = json_loadb(line->data, line->size, JSON_ALLOW_NUL, &fault);
    json_t *field = json_is_object(object) ? json_object_get(object, name) : NULL;
    bool good = json_is_string(field);
    if (!good) snprintf(message, size, "%s: %s", text_input_place(in), object ? "no string in the field" : fault.text);
    line->size = 0;
    if (good) bytes_add(line, json_string_value(field), json_string_length(field));
    json_decref(object);
    return good;
}

typedef struct settings {
    pith_tokenizer *tokenizer;
    pith_tokenize_options options;
    const char *field; /* NULL: lines are texts */
    bool full, count;
} settings;

static int tokenize_all(const settings *s, text_input *in, output *out) {
    const command *c = &command_tokenize;
    bytes line = { NULL, 0, 0 }, result = { NULL, 0, 0 };
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_error err = PITH_ERROR_INIT;
    char message[700];
    int state, code = EXIT_DONE;
    while ((state = text_input_next(in, &line, NULL)) != 0) {
        if (state < 0) {
            code = fail(c, "%s", in->message);
            break;
        }
        if (s->field && !take_field(&line, s->field, in, message, sizeof message)) {
            code = fail(c, "%s", message);
            break;
        }
        pith_str text = { line.size ? line.data : "", line.size };
        if (pith_tokenize(&tokens, s->tokenizer, text, NULL, &s->options, &err)) {
            code = fail(c, "%s: %s", text_input_place(in), err.message);
            break;
        }
        result.size = line.size = 0;
        if (s->count)
            bytes_print(&result, "%zu", tokens.count);
        else if (s->full)
            print_full(&result, s->tokenizer, &tokens);
        else
            print_ints(&result, "", tokens.ids, tokens.count);
        bytes_add(&result, "\n", 1);
        if (!output_write(out, result.data, result.size)) break;
        if (!text_input_ready(in) && !output_flush(out)) break;
    }
    pith_tokens_free(&tokens);
    free(line.data);
    free(result.data);
    return code;
}

static int run(int argc, char **argv) {
    const command *c = &command_tokenize;
    const char *model = DEFAULT_MODEL, *output_path = NULL, *field = "text";
    bool null = false, jsonl = false, no_specials = false, raw = false;
    int32_t max_length = -1;
    int invalid = 0;
    settings s = { .options = PITH_TOKENIZE_OPTIONS_INIT };
    string_list files = { NULL, 0 };
    const option options[] = {
        { "model", 'm', OPTION_STRING, &model, 0, 0, NULL },
        { "max-length", 0, OPTION_INT, &max_length, 0, INT32_MAX, NULL },
        { "full", 0, OPTION_FLAG, &s.full, 0, 0, NULL },
        { "count", 0, OPTION_FLAG, &s.count, 0, 0, NULL },
        { "no-specials", 0, OPTION_FLAG, &no_specials, 0, 0, NULL },
        { "raw", 0, OPTION_FLAG, &raw, 0, 0, NULL },
        { "null", '0', OPTION_FLAG, &null, 0, 0, NULL },
        { "jsonl", 0, OPTION_FLAG, &jsonl, 0, 0, NULL },
        { "field", 0, OPTION_STRING, &field, 0, 0, NULL },
        { "invalid", 0, OPTION_CHOICE, &invalid, 0, 0, "error|replace" },
        { "output", 'o', OPTION_STRING, &output_path, 0, 0, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &files);
    if (code >= 0) return code;
    if (s.full && s.count) return usage(c, "--full and --count do not go together");
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
    s.field = jsonl ? field : NULL;

    output out;
    code = output_open(&out, c, output_path);
    if (!code) {
        text_input in;
        text_input_open(&in, &files);
        in.separator = null ? 0 : '\n';
        in.replace = invalid == 1;
        in.limit = jsonl || !s.options.max_length ? OBJECT_BYTES : LINE_BYTES;
        code = tokenize_all(&s, &in, &out);
        text_input_close(&in);
        code = output_close(&out, c, true, code);
    }
    pith_tokenizer_close(s.tokenizer);
    return code;
}

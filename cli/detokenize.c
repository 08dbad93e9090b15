/* detokenize.c - pith detokenize: JSON arrays of ids back to text, one a line. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/text_input.h"

static const char help[];

static int run(int argc, char **argv);

const command command_detokenize = { "detokenize", "token ids back to text, one a line", help, run };

static const char help[] =
    "usage: pith detokenize [-m MODEL] [options] [FILE...]\n"
    "\n"
    "Each line is a JSON array of ids (or an object with \"ids\", as 'pith tokenize --full' writes them).\n"
    "\n"
    "  echo \"[101,1037,4937,102]\" | pith detokenize             a cat\n"
    "  pith tokenize texts.txt | pith detokenize                there and back\n"
    "  generate | pith detokenize --stream                      one text, as its ids arrive\n"
    "\n"
    "  -m, --model MODEL      directory, tokenizer.json or name in the model cache (" DEFAULT_MODEL ")\n"
    "  --keep-specials        with [CLS], [SEP] and the like\n"
    "  --stream               all lines are one text (lines may be plain ids): what is new is written at once, never\n"
    "                         half a character\n"
    "  -o, --output FILE      appears under this name when it is complete\n"
    "\n"
    "Newlines inside a text are written as they are.\n";

/* The ids of a line; false: message says why. */
static bool parse_ids(int32_t **ids, size_t *count, const bytes *line, bool single, char *message, size_t size) {
    json_error_t fault;
    json_t *value = json_loadb(line->data, line->size, JSON_DECODE_ANY, &fault);
    if (single && json_is_integer(value)) value = json_pack("[o]", value);
    json_t *array = json_is_object(value) ? json_object_get(value, "ids") : value;
    bool good = json_is_array(array);
    if (!good) snprintf(message, size, "%s", value ? "no array of ids" : fault.text);
    *count = good ? json_array_size(array) : 0;
    *ids = grow(*ids, *count * sizeof **ids);
    for (size_t i = 0; good && i < *count; i++) {
        json_t *id = json_array_get(array, i);
        json_int_t n = json_integer_value(id);
        good = json_is_integer(id) && n >= 0 && n <= INT32_MAX;
        if (!good) snprintf(message, size, "item %zu is no token id", i);
        (*ids)[i] = (int32_t)n;
    }
    json_decref(value);
    return good;
}

static int detokenize_all(const pith_tokenizer *tokenizer, bool skip_specials, text_input *in, output *out) {
    const command *c = &command_detokenize;
    bytes line = { NULL, 0, 0 };
    int32_t *ids = NULL;
    size_t count;
    pith_error err = PITH_ERROR_INIT;
    char message[300];
    int state, code = EXIT_DONE;
    while (!code && (state = text_input_next(in, &line, NULL)) != 0) {
        char *text;
        size_t size;
        if (state < 0)
            code = fail(c, "%s", in->message);
        else if (!parse_ids(&ids, &count, &line, false, message, sizeof message))
            code = fail(c, "%s: %s", text_input_place(in), message);
        else if (pith_detokenize(&text, &size, tokenizer, ids, count, skip_specials, &err))
            code = fail(c, "%s: %s", text_input_place(in), err.message);
        if (code) break;
        output_write(out, text, size);
        pith_text_free(tokenizer, text);
        if (!output_write(out, "\n", 1)) break;
        if (!text_input_ready(in) && !output_flush(out)) break;
        line.size = 0;
    }
    free(ids);
    free(line.data);
    return code;
}

/* One text out of all lines; ids are taken as they come. */
static int detokenize_stream(pith_text_stream *stream, text_input *in, output *out) {
    const command *c = &command_detokenize;
    bytes line = { NULL, 0, 0 };
    int32_t *ids = NULL;
    size_t count;
    pith_error err = PITH_ERROR_INIT;
    pith_str text;
    char message[300];
    int state, code = EXIT_DONE;
    bool written = true;
    while (!code && written && (state = text_input_next(in, &line, NULL)) != 0) {
        if (state < 0)
            code = fail(c, "%s", in->message);
        else if (!parse_ids(&ids, &count, &line, true, message, sizeof message))
            code = fail(c, "%s: %s", text_input_place(in), message);
        for (size_t i = 0; !code && i < count; i++) {
            if (pith_text_stream_push(stream, &text, ids[i], &err))
                code = fail(c, "%s: %s", text_input_place(in), err.message);
            else
                written = output_write(out, text.data, text.size);
        }
        if (written && !text_input_ready(in)) written = output_flush(out);
        line.size = 0;
    }
    if (!code && pith_text_stream_finish(stream, &text, &err)) code = fail(c, "%s", err.message);
    if (!code && output_write(out, text.data, text.size)) output_write(out, "\n", 1);
    free(ids);
    free(line.data);
    return code;
}

static int run(int argc, char **argv) {
    const command *c = &command_detokenize;
    const char *model = DEFAULT_MODEL, *output_path = NULL;
    bool keep_specials = false, streaming = false;
    string_list files = { NULL, 0 };
    const option options[] = {
        { "model", 'm', OPTION_STRING, &model, 0, 0, NULL },
        { "keep-specials", 0, OPTION_FLAG, &keep_specials, 0, 0, NULL },
        { "stream", 0, OPTION_FLAG, &streaming, 0, 0, NULL },
        { "output", 'o', OPTION_STRING, &output_path, 0, 0, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &files);
    if (code >= 0) return code;
    pith_error err = PITH_ERROR_INIT;
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    open_options.log = &warnings;
    pith_tokenizer *tokenizer;
    pith_text_stream *stream = NULL;
    if (pith_tokenizer_open(&tokenizer, model, &open_options, &err)) return fail_model(c, &err, model);
    if (streaming && pith_text_stream_create(&stream, tokenizer, !keep_specials, &err)) {
        pith_tokenizer_close(tokenizer);
        return fail(c, "%s", err.message);
    }
    output out;
    code = output_open(&out, c, output_path);
    if (!code) {
        text_input in;
        text_input_open(&in, &files);
        code = streaming ? detokenize_stream(stream, &in, &out) : detokenize_all(tokenizer, !keep_specials, &in, &out);
        text_input_close(&in);
        code = output_close(&out, c, true, code);
    }
    pith_text_stream_destroy(stream);
    pith_tokenizer_close(tokenizer);
    return code;
}

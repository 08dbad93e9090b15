/* detokenize.c - pith detokenize: JSON arrays of ids back to text, one a line. */
#include <stdlib.h>
#include <string.h>

#include "cli/json_line.h"
#include "cli/output.h"

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

/* Lines of ids. */
typedef struct id_lines {
    text_input in;
    json_line json;
    bytes line;
    int32_t *ids; /* of the line read last */
    size_t count;
    bool single; /* a line may be one id */
} id_lines;

/* The next line that is not blank: true; false: there is none, or *code is the exit code after a message. */
static bool next_ids(id_lines *lines, int *code) {
    const command *c = &command_detokenize;
    bool cut;
    pith_str line;
    do {
        lines->line.size = 0;
        int state = text_input_next(&lines->in, &lines->line, &cut);
        if (state < 0) *code = fail(c, "%s", lines->in.message);
        if (state <= 0) return false;
        line = (pith_str){ lines->line.data, lines->line.size };
    } while (json_line_blank(line));
    if (cut)
        *code = fail(c, "%s: the line is longer than 64 MiB", text_input_place(&lines->in));
    else if (!json_line_ids(&lines->json, &lines->ids, &lines->count, line, lines->single))
        *code = fail(c, "%s: %s", text_input_place(&lines->in), lines->json.message);
    return !*code;
}

static int detokenize_all(const pith_tokenizer *tokenizer, bool skip_specials, id_lines *lines, output *out) {
    pith_error err = PITH_ERROR_INIT;
    int code = EXIT_DONE;
    while (next_ids(lines, &code)) {
        char *text;
        size_t size;
        if (pith_detokenize(&text, &size, tokenizer, lines->ids, lines->count, skip_specials, &err))
            return fail(&command_detokenize, "%s: %s", text_input_place(&lines->in), err.message);
        output_write(out, text, size);
        pith_text_free(tokenizer, text);
        if (!output_write(out, "\n", 1)) break;
        if (!text_input_ready(&lines->in) && !output_flush(out)) break;
    }
    return code;
}

/* One text out of all lines; ids are taken as they come. */
static int detokenize_stream(pith_text_stream *stream, id_lines *lines, output *out) {
    const command *c = &command_detokenize;
    pith_error err = PITH_ERROR_INIT;
    pith_str text;
    int code = EXIT_DONE;
    bool written = true;
    while (written && next_ids(lines, &code)) {
        for (size_t i = 0; i < lines->count; i++) {
            if (pith_text_stream_push(stream, &text, lines->ids[i], &err))
                return fail(c, "%s: %s", text_input_place(&lines->in), err.message);
            written = output_write(out, text.data, text.size);
        }
        if (written && !text_input_ready(&lines->in)) written = output_flush(out);
    }
    if (!code && pith_text_stream_finish(stream, &text, &err)) code = fail(c, "%s", err.message);
    if (!code && output_write(out, text.data, text.size)) output_write(out, "\n", 1);
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
    code = output_open(&out, c, output_path, &files);
    if (!code) {
        id_lines lines = { .single = streaming };
        text_input_open(&lines.in, &files);
        lines.in.limit = JSON_LINE_BYTES;
        json_line_init(&lines.json, false);
        code = streaming ? detokenize_stream(stream, &lines, &out)
                         : detokenize_all(tokenizer, !keep_specials, &lines, &out);
        text_input_close(&lines.in);
        json_line_free(&lines.json);
        free(lines.line.data);
        free(lines.ids);
        code = output_close(&out, c, true, code);
    }
    pith_text_stream_destroy(stream);
    pith_tokenizer_close(tokenizer);
    return code;
}

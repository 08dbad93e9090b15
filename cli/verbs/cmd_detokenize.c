/* cmd_detokenize.c - pith detokenize: JSON arrays of ids back to text, one array per line. */
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/input/bad_lines.h"
#include "cli/input/json_line.h"
#include "cli/output/output.h"

/* Lines of ids. */
typedef struct id_lines {
    text_input in;
    json_line json;
    bytes line;
    int32_t *ids; /* of the line read last */
    size_t count;
    bool single; /* a line may be one id */
    bad_lines bad;
} id_lines;

/* Reads a line: 1: it has ids; 0: there is none; -1: *why says what is wrong with it. */
static int read_ids(id_lines *lines, const char **why) {
    bool cut;
    pith_str line;
    do {
        lines->line.size = 0;
        int state = text_input_next(&lines->in, &lines->line, &cut);
        *why = lines->in.message;
        if (state <= 0) return state;
        line = (pith_str){ lines->line.data, lines->line.size };
    } while (json_line_blank(line));
    lines->in.bad = true; /* what follows is wrong with this line alone */
    *why = cut ? "the line is longer than 64 MiB" : lines->json.message;
    return !cut && json_line_ids(&lines->json, &lines->ids, &lines->count, line, lines->single)
               ? 1
               : -1;
}

/* Writes an object in place of the text of a line; false: the line ends the command. */
static bool pass_bad(id_lines *lines, const char *why, output *out) {
    bad_lines_clear(&lines->bad);
    if (!lines->in.bad || !bad_lines_add(&lines->bad, 0, &lines->in, why, NULL)) return false;
    if (bad_lines_write(&lines->bad, out, SIZE_MAX) && !text_input_ready(&lines->in))
        output_flush(out);
    return true;
}

/* The next line of ids: true; false: there is none, or *code is the exit code after a message. */
static bool next_ids(id_lines *lines, output *out, int *code) {
    const char *why;
    int state;
    while ((state = read_ids(lines, &why)) < 0 && pass_bad(lines, why, out)) continue;
    const bool placed = why == lines->in.message;
    if (state < 0)
        *code = fail(&command_detokenize, "%s%s%s", placed ? "" : text_input_place(&lines->in),
                     placed ? "" : ": ", why);
    return state > 0;
}

static int detokenize_all(const pith_tokenizer *tokenizer, bool skip_specials, id_lines *lines,
                          output *out) {
    pith_error err = PITH_ERROR_INIT;
    int code = EXIT_DONE;
    while (next_ids(lines, out, &code)) {
        char *text;
        size_t size;
        if (pith_detokenize(&text, &size, tokenizer, lines->ids, lines->count, skip_specials, NULL,
                            &err)) {
            if (pass_bad(lines, err.message, out)) continue;
            return fail(&command_detokenize, "%s: %s", text_input_place(&lines->in), err.message);
        }
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
    while (written && next_ids(lines, out, &code)) {
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

typedef struct detokenize_settings {
    const char *model, *output;
    bool keep_specials, stream;
    int errors;
} detokenize_settings;

static int detokenize_lines(const detokenize_settings *s, const pith_tokenizer *tokenizer,
                            pith_text_stream *stream, const string_list *files) {
    output out;
    id_lines lines = { .single = s->stream, .bad.how = s->errors };
    int code = output_open(&out, &command_detokenize, s->output, files);
    if (code) return code;
    text_input_open(&lines.in, files);
    lines.in.limit = JSON_LINE_BYTES;
    json_line_init(&lines.json, false);
    code = s->stream ? detokenize_stream(stream, &lines, &out)
                     : detokenize_all(tokenizer, !s->keep_specials, &lines, &out);
    text_input_close(&lines.in);
    json_line_free(&lines.json);
    free(lines.line.data);
    free(lines.ids);
    bad_lines_free(&lines.bad);
    return bad_lines_end(lines.bad.total, &command_detokenize, s->errors,
                         output_close(&out, &command_detokenize, true, code));
}

static int detokenize_run(int argc, char **argv) {
    const command *c = &command_detokenize;
    detokenize_settings s = { .model = NULL };
    string_list files = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &files);
    if (code >= 0) return code;
    if (s.stream && s.errors == ERRORS_REPORT)
        return usage(c, "--errors report does not go with --stream, which writes one text");
    pith_error err = PITH_ERROR_INIT;
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    open_options.call.log = &warnings;
    pith_tokenizer *tokenizer;
    pith_text_stream *stream = NULL;
    if (pith_tokenizer_open(&tokenizer, s.model, &open_options, &err))
        return fail_model(c, &err, s.model);
    if (s.stream && pith_text_stream_create(&stream, tokenizer, !s.keep_specials, &err))
        code = fail(c, "%s", err.message);
    else
        code = detokenize_lines(&s, tokenizer, stream, &files);
    pith_text_stream_destroy(stream);
    pith_tokenizer_close(tokenizer);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, detokenize_settings, member)

static const option options[] = {
    AT(model_detokenize, model),
    AT(keep_specials, keep_specials),
    AT(stream, stream),
    AT(errors, errors),
    AT(output, output),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "echo \"[101,1037,4937,102]\" | pith detokenize", "a cat" },
    { "pith tokenize texts.txt | pith detokenize", "there and back" },
    { "generate | pith detokenize --stream", "one text, as its ids arrive" },
    { NULL, NULL },
};

const command command_detokenize = {
    .name = "detokenize",
    .summary = "turn token ids back into texts, one per line",
    .forms = "[-m MODEL] [options] [FILE...]",
    .takes = "FILE",
    .description = "Each line is a JSON array of ids, or an object with \"ids\" as 'pith tokenize "
                   "--full' writes it. "
                   "Newlines inside a text are written as they are.",
    .examples = examples,
    .options = options,
    .run = detokenize_run,
};

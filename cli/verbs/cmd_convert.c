/* cmd_convert.c - pith convert: an ONNX file as text, and back. */
#include <stdio.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/output/output.h"

typedef struct convert_settings {
    const char *output;
    int to; /* a pith_convert_to */
    bool quiet;
} convert_settings;

/* The output is opened when its first bytes come, so that a fault leaves no file. */
typedef struct convert_out {
    const char *input, *path;
    output file;
    bool opened;
    int code;
} convert_out;

static int32_t convert_put(void *user, const void *data, size_t size) {
    convert_out *out = user;
    const string_list inputs = { &out->input, 1 };
    if (!out->opened && (out->code = output_open(&out->file, &command_convert, out->path, &inputs)))
        return 1;
    out->opened = true;
    return !output_write(&out->file, data, size);
}

static void convert_warn(void *user, pith_log_level level, const char *message) {
    (void)user;
    if (level == PITH_LOG_WARNING) note("pith convert: %s", message);
}

static int convert_file(const convert_settings *s, const char *path) {
    const command *c = &command_convert;
    const pith_log log = { convert_warn, NULL };
    pith_convert_options options = PITH_CONVERT_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    convert_out out = { .input = path, .path = s->output };
    options.to = s->to;
    options.call.log = s->quiet ? NULL : &log;
    const pith_writer writer = { .write = convert_put, .user = &out };
    pith_source_options from = PITH_SOURCE_OPTIONS_INIT;
    pith_source *source = NULL;
    from.flags = PITH_SOURCE_FILE;
    pith_status status = pith_source_open(&source, path, &from, &err);
    if (!status) status = pith_source_convert(source, &options, &writer, NULL, &err);
    pith_source_close(source);
    if (out.code) return out.code;
    int code = status && !(out.opened && out.file.error) ? fail(c, "%s: %s", path, err.message)
                                                         : EXIT_DONE;
    if (out.opened) code = output_close(&out.file, c, !status, code);
    return code;
}

static int convert_run(int argc, char **argv) {
    const command *c = &command_convert;
    convert_settings s = { .output = NULL };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count != 1) return usage(c, "give one file: ONNX, or text");
    return convert_file(&s, rest.items[0]);
}

#define AT(id, member) OPTION_PLACE(id, convert_settings, member)

static const option options[] = {
    AT(output_convert, output),
    AT(to_convert, to),
    AT(quiet_convert, quiet),
    OPTION_END,
};

static const example examples[] = {
    { "pith convert model.onnx | less", "read a model" },
    { "pith convert model.onnx -o model.txt", "change it in an editor" },
    { "pith convert model.txt -o model.onnx", "and turn it into a file again" },
    { NULL, NULL },
};

const command command_convert = {
    .name = "convert",
    .summary = "turn an ONNX file into text, and text into an ONNX file",
    .forms = "[options] FILE",
    .takes = "FILE",
    .description =
        "The text is in ONNX's own syntax, which onnx.parser and onnx.printer of the Python "
        "package have too. All "
        "numbers are kept; weights in other files stay there. What the syntax has no place for, "
        "such as doc strings of "
        "nodes, is left out and counted. Faults in a text are reported with line and column.",
    .examples = examples,
    .options = options,
    .run = convert_run,
};

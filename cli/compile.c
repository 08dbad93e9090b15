/* compile.c - pith compile: a model as one file that opens by mapping. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/compile.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "cli/text_input.h"

static const char help[];

static int run(int argc, char **argv);

const command command_compile = { "compile", "a model as one .pith file that opens in milliseconds", help, run };

static const char help[] =
    "usage: pith compile [options] [MODEL] -o FILE.pith\n"
    "\n"
    "Writes the optimised graph, the weights as the kernels read them, the tokenizer and the settings to one file. It\n"
    "opens by mapping, gives the same bits on every processor, and processes share its pages. Every command takes it "
    "as\n"
    "its model.\n"
    "\n"
    "  pith compile -o minilm.pith                    the default model\n"
    "  pith compile model.onnx -o model.pith          any ONNX model\n"
    "  pith compile --precision int8 -o small.pith    8-bit products, weights rounded with care\n"
    "  pith compile --precision int8 --calibrate corpus.txt -o small.pith    for texts like these\n"
    "  echo \"a cat\" | pith embed -m minilm.pith\n"
    "  pith verify minilm.pith                        are all bytes as they were written?\n"
    "\n"
    "  -m, --model MODEL      the same as the argument\n"
    "  -o, --output FILE      appears under its name when it is complete\n"
    "  --level N              optimisation level 0 to 3 (3)\n"
    "  --check                compare the optimised model with the model as written first; leave out passes\n"
    "                         that do not hold\n"
    "  --precision HOW        auto|f32|int8|bf16: arithmetic of dense layers (auto: f32); int8 makes a file of two\n"
    "                         fifths the size\n"
    "  --calibrate WHAT       with int8: the texts whose vectors shall stay nearest to those of f32, FILE with one a\n"
    "                         line (1024 of them are drawn) or vocabulary: made-up ones in every script the tokenizer\n"
    "                         knows (vocabulary, where there is one); none: weights go to the nearest step\n"
    "  --json                 the sizes as one JSON object on standard output\n"
    "  -q, --quiet            no sizes, no progress\n";

/* ---- bytes in memory ---- */

typedef struct saved {
    char *data;
    size_t size;
} saved;

static int add(void *user, const void *data, size_t size, uint64_t total) {
    saved *s = user;
    if (!s->data) s->data = grow(NULL, (size_t)total);
    memcpy(s->data + s->size, data, size);
    s->size += size;
    return 0;
}

pith_status reopen_compiled(pith_model **model, void **file, const pith_open_options *options, pith_error *err) {
    saved s = { NULL, 0 };
    pith_status status = pith_model_save(*model, add, &s, err);
    pith_model_close(*model);
    *model = NULL;
    *file = s.data;
    return status ? status : pith_model_open_memory(model, s.data, s.size, options, err);
}

/* ---- calibration ---- */

/* A line of the calibration file is cut at so many bytes. */
enum { DRAWN_MAX = 1024, LINE_MAX_BYTES = 1 << 14 };

/* Texts drawn evenly from a file of any length. */
typedef struct drawing {
    bytes lines[DRAWN_MAX];
    size_t count, seen;
} drawing;

/* Each line that was read is kept with the same probability (Vitter's algorithm R), the same ones every time. */
static int draw_lines(drawing *d, const char *path) {
    const command *c = &command_compile;
    text_input in;
    string_list paths = { &path, 1 };
    bytes line = { NULL, 0, 0 };
    uint64_t random = 1;
    int state;
    text_input_open(&in, &paths);
    in.limit = LINE_MAX_BYTES;
    for (; (state = text_input_next(&in, &line, NULL)) > 0; line.size = 0) {
        size_t place = d->count;
        if (!line.size) continue;
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (d->seen++ >= DRAWN_MAX) place = (size_t)((random >> 32) * d->seen >> 32);
        if (place >= DRAWN_MAX) continue;
        if (place == d->count) d->count++;
        d->lines[place].size = 0;
        bytes_add(&d->lines[place], line.data, line.size);
    }
    free(line.data);
    text_input_close(&in);
    if (state < 0) return fail(c, "%s", in.message);
    return d->count ? EXIT_DONE : fail(c, "%s: no text in it", path);
}

static void show_texts(void *user, size_t done, size_t total) {
    (void)user;
    fprintf(stderr, "\rcalibrating: %zu of %zu texts%s", done, total, done == total ? "\n" : "");
}

/* what: NULL for vocabulary where there is one. */
static int calibrate(pith_model *model, const char *what, bool progress) {
    const command *c = &command_compile;
    pith_calibrate_options options = PITH_CALIBRATE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    drawing drawn = { .count = 0 };
    pith_str texts[DRAWN_MAX];
    int code = EXIT_DONE;
    if (what && !strcmp(what, "none")) return EXIT_DONE;
    if (!what && !pith_embed_dim(model, NULL)) return EXIT_DONE;
    if (what && strcmp(what, "vocabulary") != 0) {
        code = draw_lines(&drawn, what);
        for (size_t i = 0; i < drawn.count; i++) texts[i] = (pith_str){ drawn.lines[i].data, drawn.lines[i].size };
        options.texts = texts;
        options.text_count = drawn.count;
    }
    if (progress) options.progress = show_texts;
    if (!code && pith_model_calibrate(model, &options, &err) && (what || err.code != PITH_ERR_UNSUPPORTED))
        code = fail(c, "%s", err.message);
    for (size_t i = 0; i < drawn.count; i++) free(drawn.lines[i].data);
    return code;
}

/* ---- the command ---- */

typedef struct job {
    output out;
    uint64_t written;
    double shown;
    bool progress;
} job;

static int write_piece(void *user, const void *data, size_t size, uint64_t total) {
    job *j = user;
    j->written += size;
    if (j->progress && (now_seconds() - j->shown > 0.2 || j->written == total)) {
        fprintf(stderr, "\r%.1f of %.1f MB%s", (double)j->written / 1e6, (double)total / 1e6,
                j->written == total ? "\n" : "");
        j->shown = now_seconds();
    }
    return !output_write(&j->out, data, size);
}

static int save(job *j, const pith_model *model) {
    const command *c = &command_compile;
    pith_error err = PITH_ERROR_INIT;
    if (!pith_model_save(model, write_piece, j, &err)) return output_close(&j->out, c, true, EXIT_DONE);
    if (!j->out.error) fail(c, "%s", err.message); /* else output_close tells */
    return output_close(&j->out, c, false, EXIT_FAILED);
}

/* A file that is there may only be replaced if it is empty or a compiled model: a name that was mistyped must not cost
 * a model's sources. */
static int check_target(const char *path) {
    const command *c = &command_compile;
    struct stat st;
    char start[64];
    if (stat(path, &st)) return EXIT_DONE;
    if (!S_ISREG(st.st_mode)) return fail(c, "%s is not a file; -o takes the name of one", path);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(start, 1, sizeof start, file) : 0;
    if (file) fclose(file);
    if (!size || (size >= 8 && !memcmp(start, "\x89PITH\r\n\x1a", 8))) return EXIT_DONE;
    return fail(c, "%s is there and is no compiled model; remove it first if it is to be replaced", path);
}

static void append(void *user, const char *text, size_t size) { bytes_add(user, text, size); }

static void print_sizes(const json_t *compiled) {
    size_t i;
    json_t *section;
    json_array_foreach(json_object_get(compiled, "sections"), i, section)
        fprintf(stderr, "%-10s %12.1f kB\n", json_string_value(json_object_get(section, "name")),
                (double)json_integer_value(json_object_get(section, "bytes")) / 1e3);
    fprintf(stderr, "%-10s %12.1f kB\n", "file", (double)json_integer_value(json_object_get(compiled, "bytes")) / 1e3);
}

/* What was written opens, and its contents are what was meant. */
static int check(const char *path, bool as_json, bool quiet) {
    const command *c = &command_compile;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    bytes text = { NULL, 0, 0 };
    options.flags = PITH_OPEN_DESCRIBE;
    if (pith_model_verify(path, &err) || pith_model_open(&model, path, &options, &err))
        return fail(c, "%s was written but cannot be used: %s", path, err.message);
    pith_status status = pith_model_describe(model, PITH_DESCRIBE_JSON, append, &text, &err);
    pith_model_close(model);
    json_t *description = status ? NULL : json_loadb(text.data, text.size, 0, NULL);
    json_t *compiled = json_object_get(description, "compiled");
    if (as_json && compiled) {
        json_print(json_incref(compiled));
    } else if (!quiet) {
        print_sizes(compiled);
    }
    json_decref(description);
    free(text.data);
    if (status) return fail(c, "%s", err.message);
    return output_close_standard(c, EXIT_DONE);
}

static int run(int argc, char **argv) {
    const command *c = &command_compile;
    const char *model_path = NULL, *path = NULL, *texts = NULL;
    bool json = false, quiet = false;
    string_list rest = { NULL, 0 };
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    bool checked = false;
    const option options[] = {
        { "model", 'm', OPTION_STRING, &model_path, 0, 0, NULL },
        { "output", 'o', OPTION_STRING, &path, 0, 0, NULL },
        { "level", 0, OPTION_INT, &open_options.optimization, 0, 3, NULL },
        { "precision", 0, OPTION_CHOICE, &open_options.precision, 0, 0, PRECISIONS },
        { "check", 0, OPTION_FLAG, &checked, 0, 0, NULL },
        { "calibrate", 0, OPTION_STRING, &texts, 0, 0, NULL },
        { "json", 0, OPTION_FLAG, &json, 0, 0, NULL },
        { "quiet", 'q', OPTION_FLAG, &quiet, 0, 0, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &rest);
    if (code >= 0) return code;
    code = take_model(c, &model_path, &rest);
    if (code >= 0) return code;
    if (!model_path) model_path = DEFAULT_MODEL;
    if (!path || !strcmp(path, "-")) return usage(c, "-o FILE is needed: the file to write");
    const bool in_8_bits = open_options.precision == PITH_PRECISION_INT8;
    if (texts && !in_8_bits) return usage(c, "--calibrate goes with --precision int8");
    code = check_target(path);
    if (code) return code;

    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    open_options.flags = PITH_OPEN_DESCRIBE | (checked ? PITH_OPEN_CHECK : 0);
    open_options.log = &warnings;
    if (pith_model_open(&model, model_path, &open_options, &err)) return fail_model(c, &err, model_path);
    job j = { .progress = !quiet && isatty(STDERR_FILENO) };
    const char *read[] = { model_path, texts };
    const string_list inputs = { read, texts ? 2 : 1 };
    code = output_open(&j.out, c, path, &inputs);
    if (!code && in_8_bits && (code = calibrate(model, texts, j.progress)))
        output_close(&j.out, c, false, code);
    else if (!code)
        code = save(&j, model);
    pith_model_close(model);
    return code ? code : check(path, json, quiet);
}

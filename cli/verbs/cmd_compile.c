/* cmd_compile.c - pith compile: a model as one file that opens by mapping. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/export/calibration_texts.h"
#include "cli/export/model_out.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

/* ---- calibration ---- */

static void show_texts(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user;
    if (strcmp(what, "texts") != 0) return;
    fprintf(stderr, "\rcalibrating: %llu of %llu texts%s", (unsigned long long)done,
            (unsigned long long)total, done == total ? "\n" : "");
}

/* what: NULL for vocabulary where there is one. */
static int compile_calibrate(pith_model *model, const char *what, bool progress) {
    const command *c = &command_compile;
    pith_calibrate_options options = PITH_CALIBRATE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    calibration_texts drawn = { .count = 0 };
    int code = EXIT_DONE;
    if (what && !strcmp(what, "none")) return EXIT_DONE;
    if (!what && !pith_embed_dim(model, NULL)) return EXIT_DONE;
    if (what && strcmp(what, "vocabulary") != 0) {
        code = calibration_texts_read(&drawn, c, what);
        options.texts = drawn.texts;
        options.text_count = drawn.count;
    }
    if (progress) options.call.progress = show_texts;
    if (!code && pith_model_calibrate(model, &options, &err) &&
        (what || err.code != PITH_ERR_UNSUPPORTED))
        code = fail(c, "%s", err.message);
    calibration_texts_free(&drawn);
    return code;
}

/* ---- the routes of a Router ---- */

/* Models of one directory; the first is of its default route, or of the one that was asked for. */
enum { ROUTES_MAX = 8 };

typedef struct route_list {
    pith_model *models[ROUTES_MAX];
    size_t count;
} route_list;

static void close_routes(route_list *routes) {
    while (routes->count) pith_model_close(routes->models[--routes->count]);
}

/* Several names may lead to one route. */
static bool has_route(const route_list *routes, const char *route) {
    for (size_t i = 0; i < routes->count; i++)
        if (!strcmp(pith_model_route(routes->models[i]), route)) return true;
    return false;
}

static int open_routes(route_list *routes, const char *path, const pith_open_options *open) {
    const command *c = &command_compile;
    pith_error err = PITH_ERROR_INIT;
    pith_open_options options = *open;
    if (pith_model_open(&routes->models[0], path, &options, &err)) return fail_model(c, &err, path);
    routes->count = 1;
    const pith_model *first = routes->models[0];
    if (!open->route)
        for (size_t i = 0; i < pith_model_route_count(first); i++) {
            pith_model *model;
            options.route = pith_model_route_name(first, i);
            if (pith_model_open(&model, path, &options, &err)) return fail_model(c, &err, path);
            if (has_route(routes, pith_model_route(model))) {
                pith_model_close(model);
            } else if (routes->count == ROUTES_MAX) {
                pith_model_close(model);
                return fail(c, "%s: it has more than %d routes; name one with --route", path,
                            ROUTES_MAX);
            } else {
                routes->models[routes->count++] = model;
            }
        }
    return EXIT_DONE;
}

/* ---- the command ---- */

typedef struct job {
    output out;
    uint64_t written, total;
    double shown;
    bool progress;
} job;

static int32_t begin_file(void *user, uint64_t total) {
    job *j = user;
    j->total = total;
    return 0;
}

static int32_t write_piece(void *user, const void *data, size_t size) {
    job *j = user;
    j->written += size;
    if (j->progress && (now_seconds() - j->shown > 0.2 || j->written == j->total)) {
        fprintf(stderr, "\r%.1f of %.1f MB%s", (double)j->written / 1e6, (double)j->total / 1e6,
                j->written == j->total ? "\n" : "");
        j->shown = now_seconds();
    }
    return !output_write(&j->out, data, size);
}

static int compile_save(job *j, const route_list *routes) {
    const command *c = &command_compile;
    pith_error err = PITH_ERROR_INIT;
    const pith_model *const *models = (const pith_model *const *)routes->models;
    const pith_writer writer = { .write = write_piece, .begin = begin_file, .user = j };
    if (!pith_model_save_routes(models, routes->count, NULL, &writer, &err))
        return output_close(&j->out, c, true, EXIT_DONE);
    if (!j->out.error) fail(c, "%s", err.message); /* else output_close tells */
    return output_close(&j->out, c, false, EXIT_FAILED);
}

/* A file that is there may only be replaced if it is empty or a compiled model: a name that was
 * mistyped must not cost a model's sources. */
static int check_target(const char *path) {
    const command *c = &command_compile;
    struct stat st;
    char start[64];
    if (stat(path, &st)) return EXIT_DONE;
    if (!S_ISREG(st.st_mode)) return fail(c, "%s is not a file; give -o the name of a file", path);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(start, 1, sizeof start, file) : 0;
    if (file) fclose(file);
    if (!size || (size >= 8 && !memcmp(start, "\x89PITH\r\n\x1a", 8))) return EXIT_DONE;
    return fail(c, "%s exists and is not a compiled model; remove it first to replace it", path);
}

static void print_sizes(const json_t *compiled) {
    size_t i;
    json_t *section;
    json_array_foreach(json_object_get(compiled, "sections"), i, section)
        fprintf(stderr, "%-10s %12.1f kB\n", json_string_value(json_object_get(section, "name")),
                (double)json_integer_value(json_object_get(section, "bytes")) / 1e3);
    fprintf(stderr, "%-10s %12.1f kB\n", "file",
            (double)json_integer_value(json_object_get(compiled, "bytes")) / 1e3);
}

/* What was written opens, and its contents are what was meant. */
static int compile_check(const char *path, bool as_json, bool quiet) {
    const command *c = &command_compile;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    bytes text = { NULL, 0, 0 };
    options.flags = PITH_OPEN_DESCRIBE;
    pith_source *source = NULL;
    const bool opens = !pith_source_open(&source, path, NULL, &err) &&
                       !pith_source_verify(source, NULL, &err) &&
                       !pith_model_open_source(&model, source, &options, &err);
    pith_source_close(source);
    if (!opens) return fail(c, "%s was written but cannot be used: %s", path, err.message);
    const pith_writer writer = bytes_writer(&text);
    pith_status status = pith_model_describe(model, PITH_DESCRIBE_JSON, NULL, &writer, &err);
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

typedef struct compile_settings {
    const char *model, *output, *texts;
    pith_open_options open;
    bool check, json, quiet;
} compile_settings;

static int compile_model(const command *c, compile_settings *s) {
    route_list routes = { .count = 0 };
    const bool in_8_bits = s->open.precision == PITH_PRECISION_INT8;
    s->open.flags = PITH_OPEN_DESCRIBE | (s->check ? PITH_OPEN_CHECK : 0);
    s->open.call.log = &warnings;
    int code = open_routes(&routes, s->model, &s->open);
    if (code) {
        close_routes(&routes);
        return code;
    }
    job j = { .progress = !s->quiet && isatty(STDERR_FILENO) };
    const char *read[] = { s->model, s->texts };
    const string_list inputs = { read, s->texts ? 2 : 1 };
    code = output_open(&j.out, c, s->output, &inputs);
    if (in_8_bits) {
        for (size_t i = 0; !code && i < routes.count; i++)
            if ((code = compile_calibrate(routes.models[i], s->texts, j.progress)))
                output_close(&j.out, c, false, code);
    }
    if (!code) code = compile_save(&j, &routes);
    close_routes(&routes);
    return code ? code : compile_check(s->output, s->json, s->quiet);
}

static int compile_run(int argc, char **argv) {
    const command *c = &command_compile;
    compile_settings s = { .open = PITH_OPEN_OPTIONS_INIT };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    code = take_model(c, &s.model, &rest);
    if (code >= 0) return code;
    if (!s.model) s.model = DEFAULT_MODEL;
    if (!s.output || !strcmp(s.output, "-"))
        return usage(c, "-o FILE is needed: the file to write");
    if (s.texts && s.open.precision != PITH_PRECISION_INT8)
        return usage(c, "--calibrate goes with --precision int8");
    code = model_out_check_name(c, s.output, "pith");
    if (!code) code = check_target(s.output);
    return code ? code : compile_model(c, &s);
}

#define AT(id, member) OPTION_PLACE(id, compile_settings, member)

static const option options[] = {
    AT(model_compile, model),
    AT(output_compile, output),
    AT(optimization, open.optimization),
    AT(check, check),
    AT(precision_compile, open.precision),
    AT(model_file, open.model_file),
    AT(route, open.route),
    AT(calibrate, texts),
    AT(json_compile, json),
    AT(quiet, quiet),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith compile -o minilm.pith", "the default model" },
    { "pith compile model.onnx -o model.pith", "any ONNX model" },
    { "pith compile --precision int8 -o small.pith", "8-bit dense layers, calibrated" },
    { "pith compile --precision int8 --calibrate corpus.txt -o small.pith",
      "calibrated on your own texts" },
    { "echo \"a cat\" | pith embed -m minilm.pith", NULL },
    { "pith verify minilm.pith", "checks all bytes of the file" },
    { NULL, NULL },
};

const command command_compile = {
    .name = "compile",
    .summary = "write a model as one .pith file that opens in milliseconds",
    .forms = "[options] [MODEL] -o FILE.pith",
    .takes = "MODEL",
    .description = "Writes the optimised graph, the weights in the kernels' layout, the tokenizer "
                   "and the settings to one "
                   "file. It opens by mapping and gives the same bits on every processor. "
                   "Processes share its pages. "
                   "Every command accepts it as its model.",
    .examples = examples,
    .options = options,
    .run = compile_run,
};

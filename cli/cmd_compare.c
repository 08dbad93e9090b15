/* cmd_compare.c - pith compare: the same inputs through the builtin engine and ONNX Runtime. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "cli/random_inputs.h"
#include "cli/two_runtimes.h"

typedef struct compare_settings {
    const char *model;
    bool json, strict;
    string_list given, shapes;
    int32_t seed, loop_limit;
    double atol, rtol; /* negative: not given */
    pith_open_options open;
    pith_run_options run;
    runtime_choice runtime;
} compare_settings;

/* JSON has no infinity: null stands for it. */
static json_t *number_or_null(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static void print_json(const difference_of *d, size_t count) {
    json_t *outputs = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(outputs, json_pack("{s:o, s:o, s:o, s:I, s:I}", "name", json_text(d[i].name), "max_abs",
                                                 number_or_null(d[i].max_abs), "max_rel", number_or_null(d[i].max_rel),
                                                 "element", (json_int_t)d[i].at, "elements", (json_int_t)d[i].count));
    json_print(json_pack("{s:o}", "outputs", outputs));
}

static void print_text(const difference_of *d, size_t count) {
    printf("%-32s %12s %12s %10s\n", "output", "max_abs", "max_rel", "elements");
    for (size_t i = 0; i < count; i++) {
        printf("%-32s %12.3g %12.3g %10zu", d[i].name, d[i].max_abs, d[i].max_rel, d[i].count);
        if (d[i].max_abs > 0) printf("  at %zu: %.9g, %.9g", d[i].at, d[i].values[0], d[i].values[1]);
        putchar('\n');
    }
}

/* True if an output differs by more than is allowed, where a limit is given. */
static bool beyond(const compare_settings *s, const difference_of *d) {
    return (s->atol >= 0 && d->max_abs > s->atol) || (s->rtol >= 0 && d->max_rel > s->rtol);
}

static int compare_outputs(const command *c, const compare_settings *s, const two_runtimes *t) {
    const size_t count = pith_model_output_count(t->models[0]);
    difference_of *d = grow(NULL, count * sizeof *d);
    int code = EXIT_DONE;
    for (size_t i = 0; i < count && !code; i++) code = two_runtimes_compare(&d[i], t, c, i);
    if (!code && s->json) print_json(d, count);
    if (!code && !s->json) print_text(d, count);
    for (size_t i = 0; i < count && !code; i++)
        if (beyond(s, &d[i])) code = fail(c, "output '%s' differs by more than is allowed", d[i].name);
    free(d);
    return output_close_standard(c, code);
}

static int compare_models(const command *c, compare_settings *s) {
    two_runtimes t = { .names = { "builtin", "ort" } };
    model_inputs in = { .count = 0 };
    s->open.log = &warnings;
    s->open.loop_limit = s->loop_limit;
    s->open.flags = s->strict ? PITH_OPEN_STRICT_SHAPES : 0;
    s->open.input_shapes = s->shapes.items;
    s->open.input_shape_count = s->shapes.count;
    int code = two_runtimes_open(&t, c, s->model, s->open, &s->runtime, s->run.threads);
    if (!code) code = model_inputs_load(&in, c, t.models[0], &s->given);
    if (!code) code = model_inputs_shape(&in, c, &s->shapes);
    if (!code) code = random_inputs_add(&in, c, t.models[0], (uint64_t)s->seed);
    if (!code) code = two_runtimes_run(&t, c, &in, &s->run);
    if (!code) code = compare_outputs(c, s, &t);
    two_runtimes_close(&t);
    model_inputs_free(&in);
    return code;
}

static int compare_run(int argc, char **argv) {
    const command *c = &command_compare;
    compare_settings s = { .open = PITH_OPEN_OPTIONS_INIT, .run = PITH_RUN_OPTIONS_INIT, .atol = -1, .rtol = -1 };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0) code = take_model(c, &s.model, &rest);
    if (code < 0 && !s.model) code = usage(c, "give one model: an .onnx file, or a directory that has one");
    if (code < 0) code = compare_models(c, &s);
    free(s.given.items);
    free(s.shapes.items);
    runtime_choice_free(&s.runtime);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, compare_settings, member)

static const option options[] = {
    AT(model_compile, model),
    OPTION_SECTION("inputs"),
    AT(input_run, given),
    AT(input_shape, shapes),
    AT(strict_shapes, strict),
    AT(seed_compare, seed),
    OPTION_SECTION("result"),
    AT(json_compare, json),
    AT(atol_compare, atol),
    AT(rtol_compare, rtol),
    OPTION_SECTION("work"),
    AT(optimization, open.optimization),
    AT(model_file, open.model_file),
    AT(threads, run.threads),
    AT(loop_limit, loop_limit),
    OPTION_SECTION("ONNX Runtime"),
    OPTIONS_ORT(compare_settings, runtime),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith compare model.onnx --ort-python venv", "output, max_abs, max_rel" },
    { "pith compare model.onnx --input-shape input=1x3x480x640 --json", NULL },
    { "pith compare model.onnx -i x=x.npy --atol 1e-4", "exit code 1 if they differ by more" },
    { NULL, NULL },
};

const command command_compare = {
    .name = "compare",
    .summary = "the same inputs through the builtin engine and ONNX Runtime",
    .forms = "MODEL [options]",
    .takes = "MODEL",
    .description =
        "Runs a model once on the builtin engine and once on ONNX Runtime, and prints for each output the largest "
        "difference of two elements: max_abs, and max_rel, which is divided by the larger of the two.\n"
        "Inputs that are not given are random: floats between -1 and 1, ids of tokens below 16, other integers 0 or 1, "
        "masks of ones. A free size is 2 for a batch, 64 for a height or width, else 8; --input-shape sets it.",
    .examples = examples,
    .options = options,
    .run = compare_run,
};

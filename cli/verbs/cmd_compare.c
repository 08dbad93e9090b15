/* cmd_compare.c - pith compare: the same inputs through the builtin engine and ONNX Runtime. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/compare/inner_values.h"
#include "cli/compare/two_runtimes.h"
#include "cli/input/random_inputs.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

typedef struct compare_settings {
    const char *model;
    bool json, strict, inner;
    string_list given, shapes;
    int32_t seed, loop_limit;
    double atol, rtol; /* negative: not given */
    pith_open_options open;
    pith_run_options run;
    runtime_choice runtime;
} compare_settings;

/* JSON has no infinity: null stands for it. */
static json_t *number_or_null(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *json_of(const difference_of *d) {
    return json_pack("{s:o, s:o, s:o, s:I, s:I}", "name", json_text(d->name), "max_abs",
                     number_or_null(d->max_abs), "max_rel", number_or_null(d->max_rel), "element",
                     (json_int_t)d->at, "elements", (json_int_t)d->count);
}

/* inner NULL: nobody asked for it. */
static void print_json(const difference_of *d, size_t count, const inner_values *inner) {
    json_t *outputs = json_array(), *all = json_pack("{s:o}", "outputs", outputs);
    for (size_t i = 0; i < count; i++) json_array_append_new(outputs, json_of(&d[i]));
    if (inner) {
        json_t *first = inner->differs ? json_of(&inner->first) : json_null();
        if (inner->differs)
            json_object_set_new(first, "index", json_integer((json_int_t)inner->index));
        json_object_set_new(
            all, "inner",
            json_pack("{s:I, s:o}", "values", (json_int_t)inner->count, "first", first));
    }
    json_print(all);
}

static void print_inner(const inner_values *inner) {
    const difference_of *d = &inner->first;
    if (!inner->differs) {
        printf("none of %zu inner values differs\n", inner->count);
        return;
    }
    printf("the first of %zu inner values that differs is number %zu, '%s': max_abs %.3g, max_rel "
           "%.3g",
           inner->count, inner->index, shown(d->name), d->max_abs, d->max_rel);
    if (d->count)
        printf(", at %zu of %zu: %.9g, %.9g", d->at, d->count, d->values[0], d->values[1]);
    putchar('\n');
}

static void print_text(const difference_of *d, size_t count) {
    printf("%-32s %12s %12s %10s\n", "output", "max_abs", "max_rel", "elements");
    for (size_t i = 0; i < count; i++) {
        printf("%-32s %12.3g %12.3g %10zu", shown(d[i].name), d[i].max_abs, d[i].max_rel,
               d[i].count);
        if (d[i].max_abs > 0)
            printf("  at %zu: %.9g, %.9g", d[i].at, d[i].values[0], d[i].values[1]);
        putchar('\n');
    }
}

/* True if an output differs by more than is allowed, where a limit is given. */
static bool beyond(const compare_settings *s, const difference_of *d) {
    return (s->atol >= 0 && d->max_abs > s->atol) || (s->rtol >= 0 && d->max_rel > s->rtol);
}

static int compare_outputs(const command *c, const compare_settings *s, const two_runtimes *t,
                           const inner_values *inner) {
    const size_t count = pith_model_output_count(t->models[0]);
    difference_of *d = grow(NULL, count * sizeof *d);
    int code = EXIT_DONE;
    for (size_t i = 0; i < count && !code; i++) code = two_runtimes_compare(&d[i], t, c, i);
    if (!code && s->json) print_json(d, count, inner);
    if (!code && !s->json) print_text(d, count);
    if (!code && !s->json && inner) print_inner(inner);
    for (size_t i = 0; i < count && !code; i++)
        if (beyond(s, &d[i]))
            code = fail(c, "output '%s' differs by more than is allowed", d[i].name);
    free(d);
    return output_close_standard(c, code);
}

/* Opens the model on both runtimes, gives both the same inputs (those of files, the rest made up),
 * and compares their outputs, with --inner also the values inside. */
static int compare_models(const command *c, compare_settings *s) {
    two_runtimes t = { .names = { "builtin", "ort" } };
    model_inputs in = { .count = 0 };
    inner_values inner = { .count = 0 };
    const inner_limits limits = { s->atol, s->rtol };
    s->open.call.log = &warnings;
    s->open.loop_limit = s->loop_limit;
    s->open.flags = s->strict ? PITH_OPEN_STRICT_SHAPES : 0;
    s->open.input_shapes = s->shapes.items;
    s->open.input_shape_count = s->shapes.count;
    int code = two_runtimes_open(&t, c, s->model, s->open, &s->runtime, s->run.call.threads);
    if (!code) code = model_inputs_load(&in, c, t.models[0], &s->given);
    if (!code) code = model_inputs_shape(&in, c, &s->shapes);
    if (!code) code = random_inputs_add(&in, c, t.models[0], (uint64_t)s->seed);
    if (!code) code = two_runtimes_run(&t, c, &in, &s->run);
    if (!code && s->inner)
        code = inner_values_find(&inner, c, s->model, s->open, &s->runtime, &in, &s->run, &limits);
    if (!code) code = compare_outputs(c, s, &t, s->inner ? &inner : NULL);
    free(inner.name);
    two_runtimes_close(&t);
    model_inputs_free(&in);
    return code;
}

static int compare_run(int argc, char **argv) {
    const command *c = &command_compare;
    compare_settings s = {
        .open = PITH_OPEN_OPTIONS_INIT, .run = PITH_RUN_OPTIONS_INIT, .atol = -1, .rtol = -1
    };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0) code = take_model(c, &s.model, &rest);
    if (code < 0 && !s.model)
        code = usage(c, "give one model: an .onnx file, or a directory that has one");
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
    AT(inner_compare, inner),
    OPTION_SECTION("work"),
    AT(optimization, open.optimization),
    AT(model_file, open.model_file),
    AT(threads, run.call.threads),
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
    { "pith compare model.onnx --inner", "also the first value between nodes that differs" },
    { NULL, NULL },
};

const command command_compare = {
    .name = "compare",
    .summary = "the same inputs through the builtin engine and ONNX Runtime",
    .forms = "MODEL [options]",
    .takes = "MODEL",
    .description = "Runs a model once on the builtin engine and once on ONNX Runtime, and prints "
                   "for each output the largest "
                   "difference of two elements: max_abs, and max_rel, which is divided by the "
                   "larger of the two.\n"
                   "Inputs that are not given are random: floats between -1 and 1, ids of tokens "
                   "below 16, other integers 0 or 1, "
                   "masks of ones. A free size is that of the given inputs with an axis of this "
                   "name, else 2 for a batch, 64 "
                   "for a height or width, else 8; --input-shape sets it.",
    .examples = examples,
    .options = options,
    .run = compare_run,
};

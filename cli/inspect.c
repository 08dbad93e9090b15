/* inspect.c - pith inspect: what a model is made of and what became of it.
 *
 * The library describes a model as JSON; --json hands that on, the text for people is made from it. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inspect_time.h"
#include "cli/output.h"
#include "cli/text_input.h"

static const char help[];

static int run(int argc, char **argv);

const command command_inspect = { "inspect", "what a model is made of, what was fused and why not", help, run };

static const char help[] =
    "usage: pith inspect [options] [MODEL]\n"
    "\n"
    "Inputs, outputs, operators, parameters, what was fused, whether texts run without padding, the steps of a run.\n"
    "\n"
    "  pith inspect                                   the default model\n"
    "  pith inspect model.onnx --json                 for machines; the keys are listed in docs/cli.md\n"
    "  pith inspect model.onnx --ops                  the graph as it is run, a line a node\n"
    "  pith inspect model.onnx --dot | dot -Tsvg      a drawing\n"
    "  pith inspect model.onnx --level 0 --ops        the graph as it was written\n"
    "  pith inspect model.onnx --after fold --ops     the graph after one of the passes\n"
    "  pith inspect --time --text \"a cat on the mat\"   what each step of a run takes\n"
    "  pith inspect model.onnx --time --input-shape x=1x3x480x640\n"
    "\n"
    "  -m, --model MODEL      the same as the argument\n"
    "  --json                 one JSON object\n"
    "  --ops                  a line a node\n"
    "  --dot                  Graphviz\n"
    "  --after PASS           stop optimising after this pass\n"
    "  --level N              optimisation level 0 to 3 (3)\n"
    "  --check                compare the optimised model with the model as written first; leave out passes\n"
    "                         that do not hold\n"
    "  --precision HOW        auto|f32|int8|bf16: arithmetic of the dense layers (auto: f32)\n"
    "  --input-shape NAME=AxBx...   the input has this shape, whatever the model declares\n"
    "  --strict-shapes        declared shapes that contradict the inferred ones are errors\n"
    "  --loop-limit N         iterations a Loop may take when the model runs, for --time and --check (1000000)\n"
    "with --time: medians, GFLOP/s, share of the multiply-add peak measured beside each run, GB/s\n"
    "  --text TEXT            what a text encoder embeds (110 made-up words)\n"
    "  -i, --input NAME=FILE  an input of any other model; zeros where none is given, of the declared shape,\n"
    "                         1 where that is free\n"
    "  --runs N               (20)\n"
    "  -t, --threads N        (1)\n";

static void append(void *user, const char *text, size_t size) { bytes_add(user, text, size); }

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

static void print_ports(const json_t *d, const char *key) {
    size_t i;
    json_t *port;
    json_array_foreach(json_object_get(d, key), i, port)
        printf("%-10s %s %s %s%s\n", i ? "" : key, text_of(port, "name"), text_of(port, "dtype"),
               text_of(port, "shape"), json_is_true(json_object_get(port, "optional")) ? " (has a default)" : "");
}

static void print_ops(const json_t *d) {
    size_t i;
    json_t *op;
    int column = 0;
    printf("%-10s ", "ops");
    json_array_foreach(json_object_get(d, "ops"), i, op) {
        const char *domain = text_of(op, "domain");
        bool plain = !strcmp(domain, "ai.onnx");
        if (column > 90) column = printf("\n%-10s ", "") - 1;
        column += printf("%s%s%s %lld  ", plain ? "" : domain, plain ? "" : ".", text_of(op, "op"),
                         (long long)number_of(op, "count"));
    }
    putchar('\n');
}

/* What was fused, counted; what was not, each with its reason. */
static void print_report(const json_t *d) {
    size_t i;
    json_t *line, *count;
    json_t *counts = json_object();
    const char *what;
    json_array_foreach(json_object_get(d, "fused"), i, line) {
        what = text_of(line, "what");
        json_object_set_new(counts, what, json_integer(number_of(counts, what) + 1));
    }
    printf("%-10s", "fused");
    json_object_foreach(counts, what, count) printf(" %s %lld ", what, (long long)json_integer_value(count));
    putchar('\n');
    json_decref(counts);
    json_array_foreach(json_object_get(d, "not_fused"), i, line)
        printf("%-10s %s: %s\n", i ? "" : "not fused", text_of(line, "what"), text_of(line, "text"));
}

static void print_embedding(const json_t *d) {
    const json_t *e = json_object_get(d, "embedding");
    size_t i;
    json_t *mode;
    if (!json_is_true(json_object_get(e, "possible"))) {
        printf("%-10s no: %s\n", "embeds", text_of(e, "reason"));
        return;
    }
    printf("%-10s %lld floats a text, at most %lld tokens, pooling", "embeds", (long long)number_of(e, "dim"),
           (long long)number_of(e, "max_length"));
    json_array_foreach(json_object_get(e, "pooling"), i, mode) printf("%s %s", i ? " +" : "", json_string_value(mode));
    puts(json_is_true(json_object_get(e, "normalize")) ? ", length 1" : "");
}

static void print_steps(const json_t *d) {
    size_t i;
    json_t *step;
    const json_t *steps = json_object_get(d, "steps");
    int column = 0;
    size_t repeated = 0;
    printf("%-10s %zu:", "steps", json_array_size(steps));
    json_array_foreach(steps, i, step) {
        const char *name = json_string_value(step), *next = json_string_value(json_array_get(steps, i + 1));
        repeated++;
        if (next && !strcmp(name, next)) continue;
        if (column > 90) column = printf("\n%-10s ", "") - 1;
        column += printf(" %s", name);
        if (repeated > 1) column += printf(" x%zu", repeated);
        repeated = 0;
    }
    putchar('\n');
}

/* What one thread needs beside the weights, planned without a run. */
static void print_activations(const json_t *activations) {
    size_t i;
    json_t *plan;
    printf("%-10s", "");
    json_array_foreach(activations, i, plan) {
        double mb = (double)number_of(plan, "bytes") / 1e6;
        long long tokens = number_of(plan, "tokens");
        if (tokens)
            printf("%s %.2f MB for %lld tokens", i ? "," : "", mb, tokens);
        else
            printf(" %.2f MB for inputs as declared, 1 where that is free", mb);
    }
    puts(i ? " (activations of one thread)" : " activations: their shapes follow from contents");
}

static void print_text(const json_t *d) {
    size_t version = 0;
    const char *domain;
    json_t *value;
    const json_t *memory = json_object_get(d, "memory");
    const char *source = text_of(d, "source"), *producer = text_of(d, "producer");
    bool named = *producer && strcmp(producer, source);
    printf("%-10s %s (%s%s%s)\n", "model", text_of(d, "path"), source, named ? ", " : "", named ? producer : "");
    json_object_foreach(json_object_get(d, "opsets"), domain, value)
        printf("%-10s %s %lld\n", version++ ? "" : "opsets", domain, (long long)json_integer_value(value));
    print_ports(d, "inputs");
    print_ports(d, "outputs");
    print_ops(d);
    printf("%-10s %lld, %.1f MB\n", "parameters", (long long)number_of(d, "parameters"),
           (double)number_of(d, "parameter_bytes") / 1e6);
    print_report(d);
    if (json_is_true(json_object_get(d, "ragged")))
        printf("%-10s yes: texts run laid end to end, nothing is padded\n", "ragged");
    else
        printf("%-10s no: %s\n", "ragged", text_of(d, "ragged_reason"));
    print_embedding(d);
    print_steps(d);
    printf("%-10s %.1f MB packed weights, %.1f MB graph and tables in all\n", "memory",
           (double)number_of(memory, "packed_bytes") / 1e6, (double)number_of(memory, "model_bytes") / 1e6);
    print_activations(json_object_get(memory, "activations"));
}

/* As JSON it is what the library says; as text for people it is made from that. */
static int describe(const command *c, const pith_model *model, pith_description form, bool for_people) {
    pith_error err = PITH_ERROR_INIT;
    bytes text = { NULL, 0, 0 };
    pith_status status = pith_model_describe(model, form, append, &text, &err);
    int code = status ? fail(c, "%s", err.message) : EXIT_DONE;
    if (!code && for_people) {
        json_t *description = json_loadb(text.data, text.size, 0, NULL);
        if (description)
            print_text(description);
        else
            code = fail(c, "the description cannot be read");
        json_decref(description);
    } else if (!code) {
        fwrite(text.data, 1, text.size, stdout);
    }
    free(text.data);
    return code;
}

static int inspect(const command *c, const char *path, const pith_open_options *open_options, pith_description form,
                   const time_options *timing, bool as_json) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (pith_model_open(&model, path, open_options, &err)) return fail_model(c, &err, path);
    int code =
        timing ? inspect_time(c, model, timing) : describe(c, model, form, form == PITH_DESCRIBE_JSON && !as_json);
    pith_model_close(model);
    return output_close_standard(c, code);
}

static int run(int argc, char **argv) {
    const command *c = &command_inspect;
    const char *path = NULL;
    bool as_json = false, ops = false, dot = false, strict = false, time = false;
    string_list rest = { NULL, 0 };
    time_options timing = { .runs = 0 };
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    int32_t loop_limit = LOOP_LIMIT;
    bool check = false;
    const option options[] = {
        { "model", 'm', OPTION_STRING, &path, 0, 0, NULL },
        { "json", 0, OPTION_FLAG, &as_json, 0, 0, NULL },
        { "ops", 0, OPTION_FLAG, &ops, 0, 0, NULL },
        { "dot", 0, OPTION_FLAG, &dot, 0, 0, NULL },
        { "after", 0, OPTION_STRING, &open_options.stop_after, 0, 0, NULL },
        { "level", 0, OPTION_INT, &open_options.optimization, 0, 3, NULL },
        { "precision", 0, OPTION_CHOICE, &open_options.precision, 0, 0, PRECISIONS },
        { "check", 0, OPTION_FLAG, &check, 0, 0, NULL },
        { "strict-shapes", 0, OPTION_FLAG, &strict, 0, 0, NULL },
        { "loop-limit", 0, OPTION_INT, &loop_limit, 1, INT32_MAX, NULL },
        { "time", 0, OPTION_FLAG, &time, 0, 0, NULL },
        { "text", 0, OPTION_STRING, &timing.text, 0, 0, NULL },
        { "input", 'i', OPTION_LIST, &timing.inputs, 0, 0, NULL },
        { "input-shape", 0, OPTION_LIST, &timing.shapes, 0, 0, NULL },
        { "runs", 0, OPTION_INT, &timing.runs, 1, 10000, NULL },
        { "threads", 't', OPTION_INT, &timing.threads, 1, 4096, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &rest);
    if (code < 0) code = take_model(c, &path, &rest);
    if (code < 0 && as_json + ops + dot > 1) code = usage(c, "--json, --ops and --dot do not go together");
    if (code < 0 && time && (ops || dot)) code = usage(c, "--time does not go with --ops and --dot");
    if (code < 0 && !time && (timing.text || timing.inputs.count || timing.runs || timing.threads))
        code = usage(c, "--text, --input, --runs and --threads go with --time");
    if (code < 0) {
        timing.as_json = as_json;
        if (!timing.runs) timing.runs = 20;
        if (!timing.threads) timing.threads = 1;
        open_options.flags =
            PITH_OPEN_DESCRIBE | (strict ? PITH_OPEN_STRICT_SHAPES : 0) | (check ? PITH_OPEN_CHECK : 0);
        open_options.log = &warnings;
        open_options.loop_limit = loop_limit;
        open_options.input_shapes = timing.shapes.items;
        open_options.input_shape_count = timing.shapes.count;
        code = inspect(c, path ? path : DEFAULT_MODEL, &open_options,
                       ops   ? PITH_DESCRIBE_NODES
                       : dot ? PITH_DESCRIBE_DOT
                             : PITH_DESCRIBE_JSON,
                       time ? &timing : NULL, as_json);
    }
    free(timing.inputs.items);
    free(timing.shapes.items);
    return code;
}

/* cmd_inspect.c - pith inspect: what a model consists of and what the optimiser made of it; what is
 * in a database.
 *
 * The library describes both as JSON. --json prints that; the text for people is made from it. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/base/text_input.h"
#include "cli/measure/inspect_time.h"
#include "cli/output/output.h"
#include "cli/tables/inspect_database.h"

static const char *inspect_text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? shown(text) : "";
}

static json_int_t inspect_number_of(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

static void print_ports(const json_t *d, const char *key) {
    size_t i;
    json_t *port;
    json_array_foreach(json_object_get(d, key), i, port) {
        const bool items = json_object_get(port, "items") != NULL;
        printf("%-10s %s %s%s%s %s%s\n", i ? "" : key, inspect_text_of(port, "name"),
               inspect_text_of(port, "dtype"), items ? " of " : "",
               items ? inspect_text_of(port, "items") : "", inspect_text_of(port, "shape"),
               json_is_true(json_object_get(port, "optional")) ? " (has a default)" : "");
    }
}

static void print_ops(const json_t *d) {
    size_t i;
    json_t *op;
    int column = 0;
    printf("%-10s ", "ops");
    json_array_foreach(json_object_get(d, "ops"), i, op) {
        const char *domain = inspect_text_of(op, "domain");
        bool plain = !strcmp(domain, "ai.onnx");
        if (column > 90) column = printf("\n%-10s ", "") - 1;
        column += printf("%s%s%s %lld  ", plain ? "" : domain, plain ? "" : ".",
                         inspect_text_of(op, "op"), (long long)inspect_number_of(op, "count"));
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
        what = inspect_text_of(line, "what");
        json_object_set_new(counts, what, json_integer(inspect_number_of(counts, what) + 1));
    }
    printf("%-10s", "fused");
    json_object_foreach(counts, what, count)
        printf(" %s %lld ", what, (long long)json_integer_value(count));
    putchar('\n');
    json_decref(counts);
    json_array_foreach(json_object_get(d, "not_fused"), i, line)
        printf("%-10s %s: %s\n", i ? "" : "not fused", inspect_text_of(line, "what"),
               inspect_text_of(line, "text"));
}

/* What a selective build was made without: the graph runs as it is, slower. One line per kind. */
static void inspect_print_left_out(const json_t *d) {
    size_t i, lines = 0;
    json_t *piece;
    const char *last = "";
    json_array_foreach(json_object_get(d, "left_out"), i, piece) {
        const char *kind = inspect_text_of(piece, "kind");
        if (strcmp(kind, last)) {
            printf("%s%-10s %s:", lines ? "\n" : "", lines ? "" : "left out", kind);
            lines++;
        }
        printf(" %s", inspect_text_of(piece, "name"));
        last = kind;
    }
    if (lines) putchar('\n');
}

static void print_embedding(const json_t *d) {
    const json_t *e = json_object_get(d, "embedding");
    size_t i;
    json_t *mode;
    if (!json_is_true(json_object_get(e, "possible"))) {
        printf("%-10s no: %s\n", "embeds", inspect_text_of(e, "reason"));
        return;
    }
    const long long most = inspect_number_of(e, "max_length");
    char limit[48] = "any number of";
    if (most) snprintf(limit, sizeof limit, "at most %lld", most);
    if (!inspect_number_of(e, "dim")) {
        printf("%-10s no dense vectors; texts of %s tokens\n", "embeds", limit);
        return;
    }
    printf("%-10s one vector of %lld numbers per text, %s tokens, pooling", "embeds",
           (long long)inspect_number_of(e, "dim"), limit);
    json_array_foreach(json_object_get(e, "pooling"), i, mode)
        printf("%s %s", i ? " +" : "", json_string_value(mode));
    puts(json_is_true(json_object_get(e, "normalize")) ? ", length 1" : "");
}

static void print_pictures(const json_t *d) {
    const json_t *p = json_object_get(d, "pictures");
    char height[24] = "any", width[24] = "any";
    if (!p) return;
    if (!json_is_true(json_object_get(p, "embeds"))) {
        printf("%-10s no: %s\n", "pictures", inspect_text_of(p, "reason"));
        return;
    }
    if (inspect_number_of(p, "height") > 0)
        snprintf(height, sizeof height, "%lld", (long long)inspect_number_of(p, "height"));
    if (inspect_number_of(p, "width") > 0)
        snprintf(width, sizeof width, "%lld", (long long)inspect_number_of(p, "width"));
    const char *processor = inspect_text_of(p, "processor");
    printf("%-10s one vector of %lld numbers per picture, %s x %s pixels, %s%s%s\n", "pictures",
           (long long)inspect_number_of(p, "dim"), width, height,
           *processor ? "processed as " : "no processor: ",
           *processor ? processor : inspect_text_of(p, "reason"),
           *processor ? "ImageProcessor" : "");
}

/* What the files of the directory decided, each with the file that says it. */
static void print_decisions(const json_t *d) {
    size_t i;
    json_t *decision;
    json_array_foreach(json_object_get(d, "decisions"), i, decision) {
        const char *file = inspect_text_of(decision, "file");
        printf("%-10s %s: %s%s%s%s\n", i ? "" : "decided", inspect_text_of(decision, "what"),
               inspect_text_of(decision, "value"), *file ? " (" : "", file, *file ? ")" : "");
    }
}

/* How many steps each backend has, unless one has all. */
static void inspect_print_backends(const json_t *steps, const json_t *backends) {
    json_t *counts = json_object(), *name, *count;
    const char *key;
    size_t i;
    json_int_t copies = 0;
    json_array_foreach(backends, i, name) {
        const char *op = json_string_value(json_array_get(steps, i));
        bool is_copy = !strcmp(op, "CopyToDevice") || !strcmp(op, "CopyToHost");
        copies += is_copy;
        json_int_t before = json_integer_value(json_object_get(counts, json_string_value(name)));
        json_object_set_new(counts, json_string_value(name), json_integer(before + !is_copy));
    }
    if (json_object_size(counts) > 1) {
        printf("%-10s", "backends");
        json_object_foreach(counts, key, count)
            printf(" %s %lld,", key, (long long)json_integer_value(count));
        printf(" copies %lld\n", (long long)copies);
    }
    json_decref(counts);
}

static void print_steps(const json_t *d) {
    size_t i;
    json_t *step;
    const json_t *steps = json_object_get(d, "steps");
    int column = 0;
    size_t repeated = 0;
    printf("%-10s %zu:", "steps", json_array_size(steps));
    json_array_foreach(steps, i, step) {
        const char *name = json_string_value(step),
                   *next = json_string_value(json_array_get(steps, i + 1));
        repeated++;
        if (next && !strcmp(name, next)) continue;
        if (column > 90) column = printf("\n%-10s ", "") - 1;
        column += printf(" %s", name);
        if (repeated > 1) column += printf(" x%zu", repeated);
        repeated = 0;
    }
    putchar('\n');
    inspect_print_backends(steps, json_object_get(d, "step_backends"));
}

/* What one thread needs in addition to the weights, planned without a run. */
static void print_activations(const json_t *activations) {
    size_t i;
    json_t *plan;
    printf("%-10s", "");
    json_array_foreach(activations, i, plan) {
        double mb = (double)inspect_number_of(plan, "bytes") / 1e6;
        long long tokens = inspect_number_of(plan, "tokens");
        if (tokens)
            printf("%s %.2f MB for %lld tokens", i ? "," : "", mb, tokens);
        else
            printf(" %.2f MB for inputs of the declared shapes, with 1 for free sizes", mb);
    }
    puts(i ? " (activations of one thread)"
           : " activations: not known before a run, since shapes depend on the inputs' contents");
}

/* The description as text for people. Everything in it comes from the JSON that --json prints. */
static void inspect_print_text(const json_t *d) {
    size_t version = 0;
    const char *domain;
    json_t *value;
    const json_t *memory = json_object_get(d, "memory");
    const char *source = inspect_text_of(d, "source"), *producer = inspect_text_of(d, "producer");
    bool named = *producer && strcmp(producer, source);
    printf("%-10s %s (%s%s%s)\n", "model", inspect_text_of(d, "path"), source, named ? ", " : "",
           named ? producer : "");
    json_object_foreach(json_object_get(d, "opsets"), domain, value) printf(
        "%-10s %s %lld\n", version++ ? "" : "opsets", domain, (long long)json_integer_value(value));
    print_ports(d, "inputs");
    print_ports(d, "outputs");
    print_ops(d);
    printf("%-10s %lld, %.1f MB\n", "parameters", (long long)inspect_number_of(d, "parameters"),
           (double)inspect_number_of(d, "parameter_bytes") / 1e6);
    print_report(d);
    inspect_print_left_out(d);
    if (json_is_true(json_object_get(d, "ragged")))
        printf("%-10s yes: texts run packed, without padding\n", "ragged");
    else
        printf("%-10s no: %s\n", "ragged", inspect_text_of(d, "ragged_reason"));
    print_embedding(d);
    print_pictures(d);
    print_decisions(d);
    print_steps(d);
    printf("%-10s %.1f MB of packed weights, %.1f MB for the whole model\n", "memory",
           (double)inspect_number_of(memory, "packed_bytes") / 1e6,
           (double)inspect_number_of(memory, "model_bytes") / 1e6);
    print_activations(json_object_get(memory, "activations"));
}

/* As JSON it is what the library says; as text for people it is made from that. */
static int inspect_describe(const command *c, const pith_model *model, pith_description form,
                            bool for_people) {
    pith_error err = PITH_ERROR_INIT;
    bytes text = { NULL, 0, 0 };
    const pith_writer writer = bytes_writer(&text);
    pith_status status = pith_model_describe(model, form, NULL, &writer, &err);
    int code = status ? fail(c, "%s", err.message) : EXIT_DONE;
    if (!code && for_people) {
        json_t *description = json_loadb(text.data, text.size, 0, NULL);
        if (description)
            inspect_print_text(description);
        else
            code = fail(c, "the description cannot be read");
        json_decref(description);
    } else if (!code) {
        fwrite(text.data, 1, text.size, stdout);
    }
    free(text.data);
    return code;
}

static int inspect_model(const command *c, const char *path, const pith_open_options *open_options,
                         pith_description form, const time_options *timing, bool as_json) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (pith_model_open(&model, path, open_options, &err)) return fail_model(c, &err, path);
    int code = timing ? inspect_time(c, model, timing)
                      : inspect_describe(c, model, form, form == PITH_DESCRIBE_JSON && !as_json);
    pith_model_close(model);
    return output_close_standard(c, code);
}

typedef struct inspect_settings {
    const char *model, *svg;
    bool json, ops, dot, strict, check, time;
    int32_t loop_limit;
    pith_open_options open;
    time_options timing;
} inspect_settings;

static int inspect_with(const command *c, inspect_settings *s) {
    pith_description form = PITH_DESCRIBE_JSON;
    if (s->ops)
        form = PITH_DESCRIBE_NODES;
    else if (s->dot)
        form = PITH_DESCRIBE_DOT;
    s->timing.as_json = s->json;
    if (!s->timing.runs) s->timing.runs = 20;
    if (!s->timing.threads) s->timing.threads = 1;
    s->open.flags = PITH_OPEN_DESCRIBE | (s->strict ? PITH_OPEN_STRICT_SHAPES : 0) |
                    (s->check ? PITH_OPEN_CHECK : 0);
    s->open.call.log = &warnings;
    s->open.loop_limit = s->loop_limit;
    s->open.input_shapes = s->timing.shapes.items;
    s->open.input_shape_count = s->timing.shapes.count;
    return inspect_model(c, s->model ? s->model : DEFAULT_MODEL, &s->open, form,
                         s->time ? &s->timing : NULL, s->json);
}

/* A database has nothing that options of models are about. */
static int inspect_tables(const command *c, const inspect_settings *s) {
    const void *places[] = { &s->ops,
                             &s->dot,
                             &s->time,
                             &s->open.stop_after,
                             &s->open.optimization,
                             &s->open.precision,
                             &s->open.model_file,
                             &s->open.route,
                             &s->timing.shapes };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (option_by_flag(places[i]))
            return usage(c, "'%s' is a database, where only --json and --svg apply", s->model);
    return inspect_database(c, s->model, s->svg, s->json);
}

static int inspect_run(int argc, char **argv) {
    const command *c = &command_inspect;
    inspect_settings s = { .open = PITH_OPEN_OPTIONS_INIT };
    const time_options *timing = &s.timing;
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0) code = take_model(c, &s.model, &rest);
    if (code < 0 && s.json + s.ops + s.dot > 1)
        code = usage(c, "--json, --ops and --dot do not go together");
    if (code < 0 && s.time && (s.ops || s.dot))
        code = usage(c, "--time does not go with --ops and --dot");
    if (code < 0 && !s.time &&
        (timing->text || timing->inputs.count || timing->runs || timing->threads))
        code = usage(c, "--text, --input, --runs and --threads go with --time");
    if (code < 0 && s.model && inspect_is_database(s.model)) code = inspect_tables(c, &s);
    if (code < 0 && s.svg) code = usage(c, "--svg goes with a database file; --dot draws a model");
    if (code < 0) code = inspect_with(c, &s);
    free(s.timing.inputs.items);
    free(s.timing.shapes.items);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, inspect_settings, member)

static const option options[] = {
    AT(model_compile, model),
    AT(json, json),
    AT(ops, ops),
    AT(dot, dot),
    AT(svg, svg),
    AT(after, open.stop_after),
    AT(optimization, open.optimization),
    AT(check, check),
    AT(precision, open.precision),
    AT(runtime, open.runtime),
    AT(model_file, open.model_file),
    AT(route, open.route),
    AT(input_shape, timing.shapes),
    AT(strict_shapes, strict),
    AT(loop_limit, loop_limit),
    OPTION_SOURCES,
    OPTION_SECTION("time"),
    AT(time, time),
    AT(text, timing.text),
    AT(input, timing.inputs),
    AT(runs, timing.runs),
    AT(threads_inspect, timing.threads),
    OPTION_END,
};

static const example examples[] = {
    { "pith inspect", "the default model" },
    { "pith inspect model.onnx --json", "as JSON" },
    { "pith inspect model.onnx --ops", "the graph as it is run" },
    { "pith inspect model.onnx --dot | dot -Tsvg", "a drawing" },
    { "pith inspect model.onnx --level 0 --ops", "the graph as it was written" },
    { "pith inspect model.onnx --after fold --ops", "the graph after one of the passes" },
    { "pith inspect --time --text \"a cat on the mat\"", "the time of each step" },
    { "pith inspect model.onnx --time --input-shape x=1x3x480x640", NULL },
    { "pith inspect shop.rdb --svg shop.svg",
      "tables, columns, warnings; and a diagram of the foreign keys" },
    { NULL, NULL },
};

const command command_inspect = {
    .name = "inspect",
    .summary = "show what a model is made of, which operators were fused, and why others were not; "
               "or what is in a database",
    .forms = "[options] [MODEL]\nDATABASE.rdb [--json] [--svg FILE]",
    .takes = "MODEL",
    .description =
        "Prints inputs, outputs, operators, parameters, what was fused, whether texts run without "
        "padding, and the "
        "steps of a run. For a database file that `pith preprocess` made it prints tables, columns "
        "with their "
        "statistics, foreign keys, tasks and warnings. docs/cli.md lists the keys of --json.",
    .examples = examples,
    .options = options,
    .run = inspect_run,
};

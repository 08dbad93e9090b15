/* cmd_optimize.c - pith optimize: a model with fewer and faster operators, as an ONNX file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/export/model_card.h"
#include "cli/export/model_out.h"
#include "cli/output/json_out.h"

typedef struct optimize_settings {
    const char *model, *output;
    int dtype; /* index into "f32|f16|bf16" */
    int fuse;  /* index into "fast|com.microsoft" */
    bool standard, gpu, narrow_ports, free_shapes, external, force, json, quiet, verbose;
    string_list keep, inputs, outputs, shapes;
    model_card card;
    pith_source_options from;
    pith_optimize_options to;
} optimize_settings;

/* What the library tells, in order. */
typedef struct told {
    json_t *fused, *unfused;
} told;

static void optimize_hear(void *user, int32_t done, const char *what, const char *text) {
    const told *t = user;
    json_t *line = json_object();
    json_object_set_new(line, "what", json_text(what));
    json_object_set_new(line, "text", json_text(text));
    json_array_append_new(done ? t->fused : t->unfused, line);
}

/* "attention 6, layer_norm 13": the kinds in the order in which they came. */
static void optimize_print_kinds(const char *title, const json_t *lines) {
    json_t *counts = json_object(), *line;
    const char *what;
    size_t i, n = 0;
    json_array_foreach(lines, i, line) {
        what = json_string_value(json_object_get(line, "what"));
        json_object_set_new(counts, what,
                            json_integer(json_integer_value(json_object_get(counts, what)) + 1));
    }
    json_t *count;
    json_object_foreach(counts, what, count) {
        fprintf(stderr, "%s%s %d", n++ ? ", " : title, what, (int)json_integer_value(count));
    }
    if (n) fputc('\n', stderr);
    json_decref(counts);
}

static void optimize_print_lines(const char *title, const json_t *lines) {
    json_t *line;
    size_t i;
    json_array_foreach(lines, i, line) {
        note("%s%s: %s", title, json_string_value(json_object_get(line, "what")),
             json_string_value(json_object_get(line, "text")));
    }
}

static int optimize_tell(const optimize_settings *s, const model_out *out,
                         const pith_optimize_report *r, const told *t) {
    static const char *const dtypes[] = { "f32", "f16", "bf16" };
    if (s->json) {
        json_t *o =
            json_pack("{s:o, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O, s:O}", "path",
                      json_text(out->path), "opset", (int)r->opset, "dtype", dtypes[s->dtype],
                      "nodes_before", (json_int_t)r->nodes_before, "nodes", (json_int_t)r->nodes,
                      "shared", (json_int_t)r->shared, "bytes", (json_int_t)r->model_bytes,
                      "data_bytes", (json_int_t)r->data_bytes, "clamped", (json_int_t)r->clamped,
                      "lost", (json_int_t)r->lost, "fused", t->fused, "not_fused", t->unfused);
        json_print(o);
        return output_close_standard(out->c, EXIT_DONE);
    }
    if (s->quiet) return EXIT_DONE;
    note("%s: %.1f MB, opset %d, %s; %llu nodes became %llu", out->path,
         (double)r->model_bytes / 1e6, r->opset, dtypes[s->dtype],
         (unsigned long long)r->nodes_before, (unsigned long long)r->nodes);
    if (r->data_bytes) note("%s: %.1f MB", out->data_path, (double)r->data_bytes / 1e6);
    if (s->verbose) {
        optimize_print_lines("fused ", t->fused);
        optimize_print_lines("not fused ", t->unfused);
    } else {
        optimize_print_kinds("fused: ", t->fused);
        optimize_print_kinds("not fused (--verbose says why): ", t->unfused);
    }
    return EXIT_DONE;
}

/* A part of a network has other outputs than its source, which is not run for it. */
static int optimize_describe(optimize_settings *s, const model_out *out,
                             const pith_optimize_report *r) {
    static const char *const dtypes[] = { "f32", "f16", "bf16" };
    model_card *card = &s->card;
    model_card_add(card, "made from", "%s", s->model);
    model_card_add(card, "opset", "%d", r->opset);
    model_card_add(card, "type of weights", "%s", dtypes[s->dtype]);
    model_card_add(card, "nodes", "%llu, of %llu", (unsigned long long)r->nodes,
                   (unsigned long long)r->nodes_before);
    model_card_add(card, "fusions", "%llu", (unsigned long long)r->fusions);
    int code = EXIT_DONE;
    if (s->inputs.count || s->outputs.count || s->narrow_ports)
        model_card_add(card, "compared with its source", "no: its inputs or outputs are others");
    else
        code = model_card_compare(card, out, s->model, &s->from, NULL);
    return code ? code : model_card_write(card, out);
}

static int optimize_model(const command *c, optimize_settings *s) {
    model_out out;
    pith_error err = PITH_ERROR_INIT;
    pith_optimize_report report = PITH_OPTIMIZE_REPORT_INIT;
    int code = model_out_place(&out, c, s->model, s->output, s->force, false);
    if (!code) code = model_card_place(&s->card, &out, s->force);
    if (code) return code;
    told t = { json_array(), json_array() };
    model_out_progress(&out, !s->quiet);
    s->to.call.progress = model_out_hear;
    s->to.call.user = &out;
    s->to.data_name = model_out_data_name(&out);
    s->to.tell = optimize_hear;
    s->to.tell_user = &t;
    const pith_writer file = model_out_writer(&out), data = model_out_data_writer(&out);
    pith_source *source = NULL;
    pith_status status = pith_source_open(&source, s->model, &s->from, &err);
    if (!status) status = pith_source_optimize(source, &s->to, &file, &data, &report, &err);
    pith_source_close(source);
    code = model_out_close(&out, status, &err);
    if (!code) code = model_out_small_files(&out, false);
    if (!code) code = optimize_describe(s, &out, &report);
    if (!code) code = optimize_tell(s, &out, &report, &t);
    json_decref(t.fused);
    json_decref(t.unfused);
    return code;
}

/* What the options mean together. Returns -1 to go on, else the exit code. */
static int optimize_take(const command *c, optimize_settings *s) {
    static const int32_t dtypes[] = { PITH_F32, PITH_F16, PITH_BF16 };
    if (!s->output || !*s->output || !strcmp(s->output, "-"))
        return usage(
            c, "-o is needed: the file to write, or a directory for the network and its tokenizer");
    if (!s->dtype && (s->narrow_ports || s->keep.count))
        return usage(c, "--narrow-ports and --keep-f32 go with --dtype f16 or bf16");
    if (s->gpu && s->standard) return usage(c, "--gpu and --standard exclude each other");
    if (s->fuse && s->standard)
        return usage(c, "--fuse com.microsoft and --standard exclude each other");
    if (s->free_shapes && s->shapes.count)
        return usage(c, "--free-shapes and --input-shape exclude each other");
    s->to.dtype = dtypes[s->dtype];
    s->to.standard = s->standard;
    s->to.gpu = s->gpu;
    s->to.contrib = s->fuse;
    s->to.narrow_ports = s->narrow_ports;
    s->to.free_shapes = s->free_shapes;
    s->to.keep = s->keep.items;
    s->to.keep_count = s->keep.count;
    s->to.inputs = s->inputs.items;
    s->to.input_count = s->inputs.count;
    s->to.outputs = s->outputs.items;
    s->to.output_count = s->outputs.count;
    s->to.input_shapes = s->shapes.items;
    s->to.input_shape_count = s->shapes.count;
    s->to.data_always = s->external;
    s->to.call.log = &warnings;
    return -1;
}

static int optimize_run(int argc, char **argv) {
    const command *c = &command_optimize;
    optimize_settings s = { .from = PITH_SOURCE_OPTIONS_INIT, .to = PITH_OPTIMIZE_OPTIONS_INIT };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0) code = take_model(c, &s.model, &rest);
    if (code < 0 && s.json) json_failures();
    if (!s.model) s.model = DEFAULT_MODEL;
    if (code < 0) code = optimize_take(c, &s);
    if (code < 0) code = optimize_model(c, &s);
    free(s.keep.items);
    free(s.inputs.items);
    free(s.outputs.items);
    free(s.shapes.items);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, optimize_settings, member)

static const option options[] = {
    AT(model_compile, model),
    AT(output_export, output),
    AT(level_optimize, to.level),
    AT(standard, standard),
    AT(gpu, gpu),
    AT(fuse_optimize, fuse),
    AT(opset_optimize, to.opset),
    AT(external, external),
    AT(force, force),
    AT(card, card.wanted),
    AT(model_file, from.model_file),
    AT(route, from.route),
    OPTION_SECTION("types"),
    AT(dtype_export, dtype),
    AT(narrow_ports, narrow_ports),
    AT(keep_optimize, keep),
    OPTION_SECTION("parts and shapes"),
    AT(extract_input, inputs),
    AT(extract_output, outputs),
    AT(input_shape, shapes),
    AT(free_shapes, free_shapes),
    OPTION_SECTION("messages"),
    AT(json_optimize, json),
    AT(verbose_optimize, verbose),
    AT(quiet_export, quiet),
    OPTION_END,
};

static const example examples[] = {
    { "pith optimize model.onnx -o fast.onnx", "for ONNX Runtime" },
    { "pith optimize model.onnx -o plain.onnx --standard --level 2",
      "for engines that know ai.onnx only" },
    { "pith optimize model.onnx -o half.onnx --dtype f16 --keep-f32 Softmax",
      "16-bit weights, Softmax in f32" },
    { "pith optimize model.onnx -o head.onnx --extract-input hidden --extract-output logits",
      "a part of the network" },
    { NULL, NULL },
};

const command command_optimize = {
    .name = "optimize",
    .summary = "write a model with fewer and faster operators as an ONNX file",
    .forms = "[options] [MODEL] -o FILE.onnx",
    .takes = "MODEL",
    .description = "Folds constants, removes what is not needed, and fuses operators to those of "
                   "ai.onnx and com.microsoft, "
                   "which ONNX Runtime runs. Names of inputs and outputs stay.",
    .examples = examples,
    .options = options,
    .run = optimize_run,
};

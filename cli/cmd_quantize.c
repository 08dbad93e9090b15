/* cmd_quantize.c - pith quantize: a model as an ONNX file with weights of few bits. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/drawn_texts.h"
#include "cli/eval_vectors.h"
#include "cli/json_out.h"
#include "cli/model_out.h"

typedef struct quantize_settings {
    const char *model, *output, *eval, *texts;
    int block, table, table_block; /* indices into the choices */
    bool asymmetric, rows, reduce_range, external, force, json, quiet;
    string_list keep;
    pith_quantize_model_options to;
} quantize_settings;

static const char *const schemes[] = { "int8", "q8", "q4" };

static int quantize_tell(const quantize_settings *s, const model_out *out, const pith_quantize_model_report *r,
                         const vector_figures *f) {
    if (s->json) {
        json_t *o = json_pack("{s:o, s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "path", json_text(out->path), "opset",
                              (int)r->opset, "scheme", schemes[s->to.scheme], "matmuls", (json_int_t)r->matmuls,
                              "tables", (json_int_t)r->tables, "kept", (json_int_t)r->kept, "bytes",
                              (json_int_t)r->model_bytes, "data_bytes", (json_int_t)r->data_bytes);
        if (f) {
            json_object_set_new(o, "texts", json_integer((json_int_t)f->texts));
            json_object_set_new(o, "mean_difference", json_real(f->mean));
            json_object_set_new(o, "max_difference", json_real(f->worst));
            json_object_set_new(o, "overlap", f->overlap < 0 ? json_null() : json_real(f->overlap));
        }
        json_print(o);
        return output_close_standard(out->c, EXIT_DONE);
    }
    if (s->quiet) return EXIT_DONE;
    fprintf(stderr, "%s: %.1f MB, %s: %llu matmuls and %llu tables; %llu matmuls stay in f32\n", out->path,
            (double)r->model_bytes / 1e6, schemes[s->to.scheme], (unsigned long long)r->matmuls,
            (unsigned long long)r->tables, (unsigned long long)r->kept);
    if (r->data_bytes) fprintf(stderr, "%s: %.1f MB\n", out->data_path, (double)r->data_bytes / 1e6);
    if (f)
        fprintf(stderr, "on %zu texts, 1 - cosine to the model's vectors: mean %.2g, largest %.2g\n", f->texts, f->mean,
                f->worst);
    if (f && f->overlap >= 0) fprintf(stderr, "overlap of the 10 nearest texts: %.3f\n", f->overlap);
    return EXIT_DONE;
}

static int quantize_eval(vector_figures *figures, const quantize_settings *s, const model_out *out) {
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    text_lines lines;
    int code = text_lines_open(&lines, out->c, s->eval, '\n');
    if (code) return code;
    open.model_file = s->to.model_file;
    open.route = s->to.route;
    code = eval_vectors(figures, out->c, *out->folder ? out->folder : out->path, s->model, &open, &lines);
    text_lines_close(&lines);
    return code;
}

static int quantize_write(quantize_settings *s, model_out *out, pith_quantize_model_report *report) {
    pith_error err = PITH_ERROR_INIT;
    drawn_texts drawn = { .count = 0 };
    int code = EXIT_DONE;
    if (s->texts && strcmp(s->texts, "vocabulary") != 0) {
        code = drawn_texts_read(&drawn, out->c, s->texts);
        s->to.texts = drawn.texts;
        s->to.text_count = drawn.count;
    }
    if (!code) {
        pith_status status =
            pith_model_quantize(s->model, &s->to, model_out_put, model_out_put_data, out, report, &err);
        code = model_out_close(out, status, &err);
    }
    drawn_texts_free(&drawn);
    return code;
}

static int quantize_model(const command *c, quantize_settings *s) {
    model_out out;
    pith_quantize_model_report report = PITH_QUANTIZE_MODEL_REPORT_INIT;
    vector_figures figures;
    int code = model_out_place(&out, c, s->model, s->output, s->force);
    if (code) return code;
    model_out_progress(&out, !s->quiet);
    s->to.data_name = model_out_data_name(&out);
    code = quantize_write(s, &out, &report);
    if (!code) code = model_out_small_files(&out, false);
    if (!code && s->eval) code = quantize_eval(&figures, s, &out);
    return code ? code : quantize_tell(s, &out, &report, s->eval ? &figures : NULL);
}

/* What the options mean together. Returns -1 to go on, else the exit code. */
static int quantize_take(const command *c, quantize_settings *s) {
    static const int32_t blocks[] = { 0, 16, 32, 64, 128, 256 }, tables[] = { -1, 8, 4, 0 };
    if (!s->output || !*s->output || !strcmp(s->output, "-"))
        return usage(c, "-o is needed: the file to write, or a directory for the network and its tokenizer");
    if (!s->to.scheme && (s->block || s->table_block || s->asymmetric || s->to.accuracy))
        return usage(c, "--block, --table-block, --asymmetric and --accuracy go with --scheme q4 or q8");
    if (s->to.scheme && (s->reduce_range || s->rows))
        return usage(c, "--rows and --reduce-range go with --scheme int8");
    if (!s->to.scheme && tables[s->table] == 4) return usage(c, "--table 4 goes with --scheme q4 or q8");
    s->to.block = blocks[s->block];
    s->to.table_block = blocks[s->table_block];
    s->to.table_bits = tables[s->table];
    s->to.asymmetric = s->asymmetric;
    s->to.rows = s->rows;
    s->to.reduce_range = s->reduce_range;
    s->to.keep = s->keep.items;
    s->to.keep_count = s->keep.count;
    s->to.calibrate = s->texts != NULL;
    s->to.data_always = s->external;
    s->to.log = &warnings;
    return -1;
}

static int quantize_run(int argc, char **argv) {
    const command *c = &command_quantize;
    quantize_settings s = { .to = PITH_QUANTIZE_MODEL_OPTIONS_INIT };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0) code = take_model(c, &s.model, &rest);
    if (!s.model) s.model = DEFAULT_MODEL;
    if (code < 0 && s.json) json_failures();
    if (code < 0) code = quantize_take(c, &s);
    if (code < 0) code = quantize_model(c, &s);
    free(s.keep.items);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, quantize_settings, member)

static const option options[] = {
    AT(model_compile, model),
    AT(output_export, output),
    AT(scheme, to.scheme),
    AT(block, block),
    AT(asymmetric, asymmetric),
    AT(accuracy, to.accuracy),
    AT(rows_quantize, rows),
    AT(reduce_range, reduce_range),
    AT(table, table),
    AT(table_block, table_block),
    AT(keep_quantize, keep),
    AT(calibrate_quantize, texts),
    AT(eval, eval),
    AT(external, external),
    AT(force, force),
    AT(model_file, to.model_file),
    AT(route, to.route),
    OPTION_SECTION("messages"),
    AT(json_export, json),
    AT(quiet_export, quiet),
    OPTION_END,
};

static const example examples[] = {
    { "pith quantize -o minilm_int8.onnx", "8-bit weights, standard operators" },
    { "pith quantize -m bge-small-en-v1.5 --scheme q4 -o bge-q4/ --eval texts.txt", "how near its vectors are" },
    { "pith quantize --scheme q4 --calibrate corpus.txt -o q4.onnx", "nearer to the model, in some seconds more" },
    { "pith quantize model.onnx --scheme q4 --block 64 --table 4 --keep pooler -o small.onnx", NULL },
    { NULL, NULL },
};

const command command_quantize = {
    .name = "quantize",
    .summary = "write a model's network as an ONNX file with weights of few bits",
    .forms = "[options] [MODEL] -o FILE.onnx",
    .takes = "MODEL",
    .description =
        "Writes the network of a model directory or of an ONNX file with weights of 8 or 4 bits. Other engines "
        "run the file: int8 has standard operators only, q4 and q8 have those of com.microsoft, which ONNX "
        "Runtime knows.",
    .examples = examples,
    .options = options,
    .run = quantize_run,
};

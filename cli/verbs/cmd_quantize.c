/* cmd_quantize.c - pith quantize: a model as an ONNX file with weights of few bits. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/arrays/tensor_sets.h"
#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/export/calibration_texts.h"
#include "cli/export/eval_vectors.h"
#include "cli/export/export_files.h"
#include "cli/export/model_card.h"
#include "cli/export/model_out.h"
#include "cli/export/temporary_folder.h"
#include "cli/output/json_out.h"

typedef struct quantize_settings {
    const char *model, *output, *eval, *texts;
    int block, table, table_block, accuracy; /* indices into the choices */
    double percentile, target;
    bool asymmetric, reduce_range, external, force, json, quiet, pool, no_normalize;
    int32_t rows; /* -1: as the scheme has it */
    string_list keep;
    eval_texts on; /* of --eval */
    calibration_texts drawn;
    tensor_sets sets;
    model_card card;
    pith_source_options from;
    pith_quantize_model_options to;
    pith_export_options pooled; /* of --pool */
} quantize_settings;

static const char *const schemes[] = { "int8", "q8", "q4", "static" };

static int quantize_tell(const quantize_settings *s, const model_out *out,
                         const pith_quantize_model_report *r, const vector_figures *f) {
    if (s->json) {
        json_t *o = json_pack("{s:o, s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "path",
                              json_text(out->path), "opset", (int)r->opset, "scheme",
                              schemes[s->to.scheme], "matmuls", (json_int_t)r->matmuls, "tables",
                              (json_int_t)r->tables, "kept", (json_int_t)r->kept, "bytes",
                              (json_int_t)r->model_bytes, "data_bytes", (json_int_t)r->data_bytes);
        if (f) {
            json_object_set_new(o, "texts", json_integer((json_int_t)f->texts));
            json_object_set_new(o, "mean_difference", json_real(f->mean));
            json_object_set_new(o, "max_difference", json_real(f->worst));
            json_object_set_new(o, "overlap", f->overlap < 0 ? json_null() : json_real(f->overlap));
            if (s->on.scores)
                for (int i = 0; i < 2; i++)
                    json_object_set_new(o, i ? "sts" : "sts_before",
                                        isnan(f->sts[i]) ? json_null() : json_real(f->sts[i]));
        }
        json_print(o);
        return output_close_standard(out->c, EXIT_DONE);
    }
    if (s->quiet) return EXIT_DONE;
    note("%s: %.1f MB, %s: %llu matmuls and %llu tables; %llu matmuls stay in f32", out->path,
         (double)r->model_bytes / 1e6, schemes[s->to.scheme], (unsigned long long)r->matmuls,
         (unsigned long long)r->tables, (unsigned long long)r->kept);
    if (r->data_bytes) note("%s: %.1f MB", out->data_path, (double)r->data_bytes / 1e6);
    if (f)
        fprintf(stderr,
                "on %zu texts, 1 - cosine to the model's vectors: mean %.2g, largest %.2g\n",
                f->texts, f->mean, f->worst);
    if (f && f->overlap >= 0)
        fprintf(stderr, "overlap of the 10 nearest texts: %.3f\n", f->overlap);
    if (f && s->on.scores)
        fprintf(stderr, "Spearman's correlation on %zu pairs: %.2f, and of the model %.2f\n",
                f->texts / 2, 100 * f->sts[1], 100 * f->sts[0]);
    model_out_tell_use(out, s->pool);
    return EXIT_DONE;
}

static int quantize_eval(vector_figures *figures, quantize_settings *s, const model_out *out) {
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    open.model_file = s->from.model_file;
    open.route = s->from.route;
    return eval_vectors(figures, out->c, *out->folder ? out->folder : out->path, s->pool, s->model,
                        &open, &s->on);
}

static bool quantize_is_folder(const char *path) {
    struct stat st;
    return path && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* What --calibrate names. */
static int quantize_read(quantize_settings *s, const command *c) {
    int code = EXIT_DONE;
    if (s->to.calibrate != PITH_CALIBRATE || !strcmp(s->texts, "vocabulary")) return EXIT_DONE;
    if (quantize_is_folder(s->texts)) {
        if (s->to.scheme != PITH_QUANTIZE_STATIC)
            return usage(c, "--calibrate DIR goes with --scheme static");
        code = tensor_sets_read(&s->sets, c, s->model, s->texts);
        s->to.inputs = s->sets.tensors;
        s->to.input_sets = s->sets.count;
    } else {
        code = calibration_texts_read(&s->drawn, c, s->texts);
        s->to.texts = s->drawn.texts;
        s->to.text_count = s->drawn.count;
    }
    return code;
}

static int quantize_write(quantize_settings *s, model_out *out,
                          pith_quantize_model_report *report) {
    s->to.call.progress = model_out_hear;
    s->to.call.user = out;
    pith_error err = PITH_ERROR_INIT;
    const pith_writer file = model_out_writer(out), data = model_out_data_writer(out);
    pith_source *source = NULL;
    pith_status status = pith_source_open(&source, s->model, &s->from, &err);
    if (!status) status = pith_source_quantize(source, &s->to, &file, &data, report, &err);
    pith_source_close(source);
    int code = model_out_close(out, status, &err);
    return code ? code : model_out_small_files(out, false);
}

/* Puts pooling into a quantised network, whose directory is complete. */
static int quantize_pool(quantize_settings *s, model_out *out, const char *folder,
                         pith_quantize_model_report *report) {
    pith_error err = PITH_ERROR_INIT;
    pith_export_report pooled = PITH_EXPORT_REPORT_INIT;
    pith_source_options from = PITH_SOURCE_OPTIONS_INIT;
    const pith_writer file = model_out_writer(out), data = model_out_data_writer(out);
    pith_source *source = NULL;
    from.route = s->from.route;
    s->pooled.data_name = s->to.data_name;
    s->pooled.data_always = s->to.data_always;
    pith_status status = pith_source_open(&source, folder, &from, &err);
    if (!status) status = pith_source_export(source, &s->pooled, &file, &data, &pooled, &err);
    pith_source_close(source);
    report->opset = pooled.opset;
    report->model_bytes = pooled.model_bytes;
    report->data_bytes = pooled.data_bytes;
    return model_out_close(out, status, &err);
}

/* The network is quantised without pooling in a temporary folder first: calibration needs it so. */
static int quantize_write_pooled(quantize_settings *s, model_out *out,
                                 pith_quantize_model_report *report) {
    char folder[PATH_MAX], from[PATH_MAX];
    model_out plain;
    int code = temporary_folder_make(folder, out->c);
    if (!code) code = model_out_place(&plain, out->c, s->model, folder, true, false);
    if (!code) {
        const char *data_name = s->to.data_name;
        model_out_progress(&plain, !s->quiet);
        s->to.data_name = model_out_data_name(&plain);
        code = quantize_write(s, &plain, report);
        s->to.data_name = data_name;
    }
    if (!code) code = export_model_folder(out->c, from, s->model);
    if (!code) code = export_copy_files(out->c, from, folder, false);
    if (!code) code = quantize_pool(s, out, folder, report);
    temporary_folder_remove(folder);
    return code ? code : model_out_small_files(out, true);
}

/* One file, and its figures if there is something to evaluate on. */
static int quantize_once(quantize_settings *s, model_out *out, bool force,
                         pith_quantize_model_report *report, vector_figures *figures) {
    int code = model_out_place(out, out->c, s->model, s->output, force, s->pool);
    model_out_progress(out, !s->quiet);
    if (!code)
        code = s->pool ? quantize_write_pooled(s, out, report) : quantize_write(s, out, report);
    return code || !s->eval ? code : quantize_eval(figures, s, out);
}

/* ---- a target: how many of the most sensitive weights stay in f32 ---- */

typedef struct sensitive {
    char *name;
    double error;
} sensitive;

typedef struct sensitivities {
    sensitive *items;
    size_t count;
} sensitivities;

static void quantize_hear(void *user, const char *name, double error) {
    sensitivities *all = user;
    all->items = grow_for(all->items, all->count, sizeof *all->items);
    char *exact = grow(NULL, strlen(name) + 2); /* with a '=': the whole name */
    sprintf(exact, "=%s", name);
    all->items[all->count++] = (sensitive){ exact, error };
}

static int quantize_by_error(const void *a, const void *b) {
    const sensitive *x = a, *y = b;
    return x->error != y->error ? (x->error < y->error) - (x->error > y->error)
                                : strcmp(x->name, y->name);
}

/* Keeps the first `kept` of them beside those that --keep names. */
static int quantize_keeping(quantize_settings *s, const sensitivities *all, size_t kept,
                            model_out *out, pith_quantize_model_report *report,
                            vector_figures *figures) {
    const char **names = grow(NULL, (s->keep.count + kept + 1) * sizeof *names);
    for (size_t i = 0; i < s->keep.count; i++) names[i] = s->keep.items[i];
    for (size_t i = 0; i < kept; i++) names[s->keep.count + i] = all->items[i].name;
    s->to.keep = names;
    s->to.keep_count = s->keep.count + kept;
    int code = quantize_once(s, out, true, report, figures);
    if (!code && !s->quiet && !s->json)
        fprintf(stderr, "%zu of %zu weights in f32: mean of 1 - cosine %.2g\n", kept, all->count,
                figures->mean);
    free(names);
    return code;
}

/* The fewest that reach the target, by bisection. */
static int quantize_search(quantize_settings *s, const sensitivities *all, model_out *out,
                           pith_quantize_model_report *report, vector_figures *figures) {
    size_t low = 0, high = all->count, at = 0; /* the target is not reached with `low` */
    int code = EXIT_DONE;
    while (high - low > 1 && !code) {
        at = low + (high - low) / 2;
        code = quantize_keeping(s, all, at, out, report, figures);
        if (figures->mean <= s->target)
            high = at;
        else
            low = at;
    }
    if (!code && high == all->count)
        return fail(out->c,
                    "the target of %g cannot be reached: with %zu of %zu weights in f32 the mean "
                    "of 1 - cosine is %.2g",
                    s->target, low, all->count, figures->mean);
    return code || at == high ? code : quantize_keeping(s, all, high, out, report, figures);
}

static int quantize_to_target(quantize_settings *s, model_out *out,
                              pith_quantize_model_report *report, vector_figures *figures) {
    sensitivities all = { NULL, 0 };
    s->to.tell = quantize_hear;
    s->to.tell_user = &all;
    int code = quantize_once(s, out, s->force, report, figures);
    s->to.tell = NULL;
    qsort(all.items, all.count, sizeof *all.items, quantize_by_error);
    if (!code && figures->mean > s->target) code = quantize_search(s, &all, out, report, figures);
    for (size_t i = 0; i < all.count; i++) free(all.items[i].name);
    free(all.items);
    return code;
}

static int quantize_describe(quantize_settings *s, const model_out *out,
                             const pith_quantize_model_report *r, const vector_figures *f) {
    model_card *card = &s->card;
    model_card_add(card, "made from", "%s", s->model);
    model_card_add(card, "opset", "%d", r->opset);
    model_card_add(card, "scheme", "%s", schemes[s->to.scheme]);
    model_card_add(card, "quantised", "%llu matmuls, %llu look-ups", (unsigned long long)r->matmuls,
                   (unsigned long long)r->tables);
    model_card_add(card, "matmuls in f32", "%llu", (unsigned long long)r->kept);
    if (s->texts) model_card_add(card, "calibrated on", "%s", s->texts);
    if (s->eval) {
        model_card_add(card, "compared with its source on", "%zu texts of %s", f->texts, s->eval);
        model_card_add(card, "1 - cosine of vectors", "mean %.2g, largest %.2g", f->mean, f->worst);
        if (f->overlap >= 0)
            model_card_add(card, "overlap of the 10 nearest texts", "%.3f", f->overlap);
        if (s->on.scores)
            model_card_add(card, "Spearman's correlation", "%.2f; of its source %.2f",
                           100 * f->sts[1], 100 * f->sts[0]);
    }
    int code = model_card_compare(card, out, s->model, &s->from, s->pool ? &s->pooled : NULL);
    return code ? code : model_card_write(card, out);
}

static int quantize_model(const command *c, quantize_settings *s) {
    model_out out = { .c = c };
    pith_quantize_model_report report = PITH_QUANTIZE_MODEL_REPORT_INIT;
    vector_figures figures;
    s->to.data_name = NULL;
    int code = model_out_place(&out, c, s->model, s->output, s->force, s->pool);
    if (!code) code = model_card_place(&s->card, &out, s->force);
    if (code) return code;
    char data_name[NAME_MAX + 1];
    snprintf(data_name, sizeof data_name, "%s", model_out_data_name(&out));
    s->to.data_name = data_name;
    code = quantize_read(s, c);
    if (!code)
        code = s->target > 0 ? quantize_to_target(s, &out, &report, &figures)
                             : quantize_once(s, &out, s->force, &report, &figures);
    if (!code) code = quantize_describe(s, &out, &report, &figures);
    if (code) return code;
    return quantize_tell(s, &out, &report, s->eval ? &figures : NULL);
}

static int32_t quantize_calibration(const quantize_settings *s) {
    if (!s->texts) return s->to.rows ? PITH_CALIBRATE_WHERE_POSSIBLE : PITH_CALIBRATE_NOT;
    return strcmp(s->texts, "none") ? PITH_CALIBRATE : PITH_CALIBRATE_NOT;
}

/* What the options mean together. Returns -1 to go on, else the exit code. */
static int quantize_take(const command *c, quantize_settings *s) {
    static const int32_t blocks[] = { 0, 16, 32, 64, 128, 256 }, tables[] = { 0, 8, 4, -1 },
                         accuracies[] = { 0, -1, 1, 2, 3, 4 };
    if (!s->output || !*s->output || !strcmp(s->output, "-"))
        return usage(
            c, "-o is needed: the file to write, or a directory for the network and its tokenizer");
    const bool int8 = s->to.scheme == PITH_QUANTIZE_INT8,
               fixed = s->to.scheme == PITH_QUANTIZE_STATIC;
    if ((int8 || fixed) && (s->block || s->table_block || s->asymmetric || s->accuracy))
        return usage(
            c, "--block, --table-block, --asymmetric and --accuracy go with --scheme q4 or q8");
    if ((!int8 && s->rows >= 0) || (!int8 && !fixed && s->reduce_range))
        return usage(c, "--per-row goes with --scheme int8, --reduce-range with int8 and static");
    s->to.rows = int8 && s->rows != 0;
    s->to.calibrate = quantize_calibration(s);
    if (fixed && s->to.calibrate != PITH_CALIBRATE)
        return usage(c, "--scheme static needs --calibrate");
    if (!fixed && (s->to.ranges || s->percentile > 0))
        return usage(c, "--range-method and --percentile go with --scheme static");
    if (s->percentile > 0 && s->to.ranges != PITH_RANGE_PERCENTILE)
        return usage(c, "--percentile goes with --range-method percentile");
    if (s->target > 0 && (!s->eval || s->to.calibrate != PITH_CALIBRATE))
        return usage(c, "--target needs --eval and --calibrate");
    if ((int8 || fixed) && tables[s->table] == 4)
        return usage(c, "--table 4 goes with --scheme q4 or q8");
    s->to.block = blocks[s->block];
    s->to.table_block = blocks[s->table_block];
    s->to.table_bits = tables[s->table];
    s->to.asymmetric = s->asymmetric;
    s->to.accuracy = accuracies[s->accuracy];
    s->to.reduce_range = s->reduce_range;
    s->to.keep = s->keep.items;
    s->to.keep_count = s->keep.count;
    s->to.percentile = (float)s->percentile;
    s->to.data_always = s->external;
    s->to.call.log = &warnings;
    if (!s->pool && (s->pooled.pooling || s->pooled.dim || s->no_normalize))
        return usage(c, "--pooling, --dim and --no-normalize go with --pool");
    s->pooled.pool = s->pool;
    s->pooled.normalize = s->no_normalize ? PITH_CHOICE_NO : PITH_CHOICE_MODEL;
    s->pooled.call.log = &warnings;
    return -1;
}

static int quantize_run(int argc, char **argv) {
    const command *c = &command_quantize;
    quantize_settings s = { .rows = -1,
                            .from = PITH_SOURCE_OPTIONS_INIT,
                            .to = PITH_QUANTIZE_MODEL_OPTIONS_INIT,
                            .pooled = PITH_EXPORT_OPTIONS_INIT };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0) code = take_model(c, &s.model, &rest);
    if (!s.model) s.model = DEFAULT_MODEL;
    if (code < 0 && s.json) json_failures();
    if (code < 0) code = quantize_take(c, &s);
    if (code < 0 && s.eval && (code = eval_texts_read(&s.on, c, s.eval)) == EXIT_DONE) code = -1;
    if (code < 0) code = quantize_model(c, &s);
    eval_texts_free(&s.on);
    calibration_texts_free(&s.drawn);
    tensor_sets_free(&s.sets);
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
    AT(accuracy, accuracy),
    AT(rows_quantize, rows),
    AT(reduce_range, reduce_range),
    AT(table, table),
    AT(table_block, table_block),
    AT(keep_quantize, keep),
    AT(calibrate_quantize, texts),
    AT(ranges_static, to.ranges),
    AT(percentile_static, percentile),
    AT(eval, eval),
    AT(target_quantize, target),
    AT(external, external),
    AT(force, force),
    AT(card, card.wanted),
    AT(model_file, from.model_file),
    AT(route, from.route),
    OPTION_SECTION("pooling"),
    AT(pool, pool),
    AT(pooling_export, pooled.pooling),
    AT(dim_export, pooled.dim),
    AT(no_normalize, no_normalize),
    OPTION_SECTION("messages"),
    AT(json_export, json),
    AT(quiet_export, quiet),
    OPTION_END,
};

static const example examples[] = {
    { "pith quantize -o minilm_int8.onnx", "8-bit weights, standard operators" },
    { "pith quantize --calibrate none -o minilm_int8.onnx",
      "in less time, but farther from the model" },
    { "pith quantize -m bge-small-en-v1.5 --scheme q4 -o bge-q4/ --eval texts.txt",
      "how near its vectors are" },
    { "pith quantize --pool -o minilm_int8/", "one vector per text, and the tokenizer next to it" },
    { "pith quantize --scheme q4 --calibrate corpus.txt -o q4.onnx",
      "nearer to the model, in some seconds more" },
    { "pith quantize --scheme static --calibrate corpus.txt -o static.onnx",
      "ranges of inputs that the texts bring" },
    { "pith quantize --scheme q4 --calibrate corpus.txt --eval texts.txt --target 0.01 -o q4.onnx",
      "as many weights in f32 as that needs" },
    { "pith quantize model.onnx --scheme q4 --block 64 --table 4 --keep-f32 pooler -o small.onnx",
      NULL },
    { NULL, NULL },
};

const command command_quantize = {
    .name = "quantize",
    .summary = "write a model's network as an ONNX file with weights of few bits",
    .forms = "[options] [MODEL] -o FILE.onnx",
    .takes = "MODEL",
    .description = "Writes the network of a model directory or of an ONNX file with weights of 8 "
                   "or 4 bits. Other engines "
                   "run the file: int8 has standard operators only, q4 and q8 have those of "
                   "com.microsoft, which ONNX "
                   "Runtime knows.",
    .examples = examples,
    .options = options,
    .run = quantize_run,
};

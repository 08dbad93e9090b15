/* cmd_export.c - pith export: a model as an ONNX file that other engines run. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/export/export_check.h"
#include "cli/export/model_card.h"
#include "cli/export/model_out.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"
#include "cli/tables/export_relational.h"

typedef struct export_settings {
    const char *model, *output;
    int dtype; /* index into "f32|f16|bf16" */
    int fuse;  /* index into "none|com.microsoft" */
    bool pool, int32_inputs, external, force, no_normalize, json, quiet;
    model_card card;
    pith_source_options from;
    pith_export_options to;
} export_settings;

typedef struct export_job {
    const command *c;
    const export_settings *s;
    model_out out;
} export_job;

/* ---- what is told ---- */

static int export_tell(const export_job *j, const pith_export_report *r, double worst) {
    static const char *const dtypes[] = { "f32", "f16", "bf16" };
    if (j->s->json) {
        json_t *o = json_pack("{s:o, s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "path",
                              json_text(j->out.path), "opset", (int)r->opset, "dtype",
                              dtypes[j->s->dtype], "parameters", (json_int_t)r->parameters, "bytes",
                              (json_int_t)r->model_bytes, "data_bytes", (json_int_t)r->data_bytes,
                              "clamped", (json_int_t)r->clamped, "lost", (json_int_t)r->lost);
        json_object_set_new(o, "max_difference", worst < 0 ? json_null() : json_real(worst));
        json_print(o);
        return output_close_standard(j->c, EXIT_DONE);
    }
    if (j->s->quiet) return EXIT_DONE;
    note("%s: %.1f MB, opset %d, %s", j->out.path, (double)r->model_bytes / 1e6, r->opset,
         dtypes[j->s->dtype]);
    if (r->data_bytes) note("%s: %.1f MB", j->out.data_path, (double)r->data_bytes / 1e6);
    if (worst >= 0)
        fprintf(stderr, "largest difference to the model on a few texts: %.2g\n", worst);
    model_out_tell_use(&j->out, j->s->pool);
    return EXIT_DONE;
}

static void export_describe(export_settings *s, const pith_export_report *r, double worst) {
    static const char *const dtypes[] = { "f32", "f16", "bf16" };
    model_card *card = &s->card;
    model_card_add(card, "made from", "%s", s->model);
    model_card_add(card, "opset", "%d%s", r->opset,
                   s->fuse ? ", with operators of com.microsoft" : "");
    model_card_add(card, "type of weights", "%s", dtypes[s->dtype]);
    model_card_add(card, "parameters", "%llu", (unsigned long long)r->parameters);
    if (s->fuse) model_card_add(card, "fusions", "%llu", (unsigned long long)r->fusions);
    if (s->pool) model_card_add(card, "output", "sentence_embedding: pooled vectors, float32");
    if (s->dtype)
        model_card_add(card, "numbers beyond the type, and lost to 0", "%llu, %llu",
                       (unsigned long long)r->clamped, (unsigned long long)r->lost);
    if (worst >= 0)
        model_card_add(card, "largest difference of an element of its outputs, on three texts",
                       "%.2g", worst);
    else
        model_card_add(card, "compared with its source", "no: the model is not run on texts");
}

/* ---- the command ---- */

static int export_model(const command *c, export_settings *s) {
    export_job j = { .c = c, .s = s };
    pith_error err = PITH_ERROR_INIT;
    pith_export_report report = PITH_EXPORT_REPORT_INIT;
    double worst = -1;
    int code = model_out_place(&j.out, c, s->model, s->output, s->force, s->pool);
    if (!code) code = model_card_place(&s->card, &j.out, s->force);
    if (code) return code;
    model_out_progress(&j.out, !s->quiet);
    s->to.call.progress = model_out_hear;
    s->to.call.user = &j.out;
    s->to.data_name = model_out_data_name(&j.out);
    const pith_writer file = model_out_writer(&j.out), data = model_out_data_writer(&j.out);
    pith_source *source = NULL;
    pith_status status = pith_source_open(&source, s->model, &s->from, &err);
    if (!status) status = pith_source_export(source, &s->to, &file, &data, &report, &err);
    pith_source_close(source);
    code = model_out_close(&j.out, status, &err);
    if (!code) code = model_out_small_files(&j.out, s->pool);
    if (!code) code = export_check(c, &worst, j.out.path, s->model, &s->from, &s->to);
    export_describe(s, &report, worst);
    if (!code) code = model_card_write(&s->card, &j.out);
    return code ? code : export_tell(&j, &report, worst);
}

static int export_run(int argc, char **argv) {
    static const int32_t dtypes[] = { PITH_F32, PITH_F16, PITH_BF16 };
    const command *c = &command_export;
    export_settings s = { .from = PITH_SOURCE_OPTIONS_INIT, .to = PITH_EXPORT_OPTIONS_INIT };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    code = take_model(c, &s.model, &rest);
    if (code >= 0) return code;
    if (!s.model) s.model = DEFAULT_MODEL;
    if (!s.output || !*s.output || !strcmp(s.output, "-"))
        return usage(
            c, "-o is needed: the file to write, or a directory for the network and its tokenizer");
    if (!s.pool && (s.to.pooling || s.to.dim || s.no_normalize))
        return usage(c, "--pooling, --dim and --no-normalize go with --pool");
    s.to.dtype = dtypes[s.dtype];
    s.to.pool = s.pool;
    s.to.contrib = s.fuse;
    s.to.int32_inputs = s.int32_inputs;
    s.to.normalize = s.no_normalize ? PITH_CHOICE_NO : PITH_CHOICE_MODEL;
    s.to.data_always = s.external;
    s.to.call.log = &warnings;
    return export_is_run(s.model) ? export_relational(c, s.model, s.output, s.force)
                                  : export_model(c, &s);
}

#define AT(id, member) OPTION_PLACE(id, export_settings, member)

static const option options[] = {
    AT(model_compile, model),
    AT(output_export, output),
    AT(opset, to.opset),
    AT(fuse_export, fuse),
    AT(dtype_export, dtype),
    AT(int32_inputs, int32_inputs),
    AT(external, external),
    AT(force, force),
    AT(card, card.wanted),
    AT(model_file, from.model_file),
    AT(route, from.route),
    OPTION_SECTION("pooling"),
    AT(pool, pool),
    AT(pooling_export, to.pooling),
    AT(dim_export, to.dim),
    AT(no_normalize, no_normalize),
    OPTION_SECTION("messages"),
    AT(json_export, json),
    AT(quiet_export, quiet),
    OPTION_END,
};

static const example examples[] = {
    { "pith export -o minilm.onnx", "the default model's network" },
    { "pith export -m bge-small-en-v1.5 -o bge/", "bge/model.onnx, tokenizer and configurations" },
    { "pith export --pool --dtype f16 -o minilm_f16/",
      "16-bit weights, one vector per text; pith embed -m minilm_f16 opens it" },
    { "pith export --pool --fuse com.microsoft -o minilm_ort.onnx",
      "with attention as one operator, for ONNX Runtime" },
    { "pith export run -o rows.onnx",
      "the network of a run of pith train; docs/relational.md lists its inputs" },
    { "pith export --pool --dim 128 --int32-inputs -o small.onnx", NULL },
    { NULL, NULL },
};

const command command_export = {
    .name = "export",
    .summary = "write a model's network as an ONNX file for other engines",
    .forms = "[options] [MODEL] -o FILE.onnx",
    .takes = "MODEL",
    .description =
        "Writes the network of a model directory or of an ONNX file with standard operators only, "
        "or those of "
        "com.microsoft that it had. The file is then compared with the model on a few texts.",
    .examples = examples,
    .options = options,
    .run = export_run,
};

/* cmd_export.c - pith export: a model as an ONNX file that other engines run. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/export_check.h"
#include "cli/export_files.h"
#include "cli/json_out.h"
#include "cli/output.h"

typedef struct export_settings {
    const char *model, *output;
    int dtype; /* index into "f32|f16|bf16" */
    bool pool, int32_inputs, external, force, no_normalize, json, quiet;
    pith_export_options to;
} export_settings;

/* The two files. The second is opened when its first bytes come. */
typedef struct export_job {
    const command *c;
    const export_settings *s;
    char path[PATH_MAX], data_path[PATH_MAX];
    output file, data;
    bool opened, data_opened, progress;
    uint64_t written;
    double shown;
    int code; /* of a file that could not be opened */
} export_job;

/* ---- where it goes ---- */

static int export_check_absent(const export_job *j, const char *path) {
    struct stat st;
    if (j->s->force || stat(path, &st) || (S_ISREG(st.st_mode) && !st.st_size)) return EXIT_DONE;
    return fail(j->c, "%s exists; --force replaces it", path);
}

/* -o DIR/ or a directory that is there: the network is DIR/model.onnx, and *folder is DIR. */
static int export_place(export_job *j, char folder[PATH_MAX]) {
    const char *path = j->s->output;
    size_t n = strlen(path);
    struct stat st;
    bool there = !stat(path, &st) && S_ISDIR(st.st_mode), named = path[n - 1] == '/';
    *folder = 0;
    if (n + sizeof "/model.onnx.data" > sizeof j->path) return usage(j->c, "-o is too long");
    if (!there && !named) {
        strcpy(j->path, path);
    } else {
        strcpy(folder, path);
        while (n > 1 && folder[n - 1] == '/') folder[--n] = 0;
        if (!there && mkdir(folder, 0777)) return fail(j->c, "%s cannot be made: %s", folder, strerror(errno));
        snprintf(j->path, sizeof j->path, "%.*s/model.onnx", (int)n, folder);
    }
    snprintf(j->data_path, sizeof j->data_path, "%.*s.data", (int)(sizeof j->data_path - 6), j->path);
    int code = export_check_absent(j, j->path);
    return code ? code : export_check_absent(j, j->data_path);
}

/* ---- writing ---- */

static int export_write(export_job *j, output *out, bool *opened, const char *path, const void *data, size_t size) {
    const string_list inputs = { (const char *[]){ j->s->model }, 1 };
    if (!*opened && (j->code = output_open(out, j->c, path, &inputs))) return 1;
    *opened = true;
    j->written += size;
    if (j->progress && now_seconds() - j->shown > 0.2) {
        fprintf(stderr, "\r%.1f MB", (double)j->written / 1e6);
        j->shown = now_seconds();
    }
    return !output_write(out, data, size);
}

static int export_put(void *user, const void *data, size_t size) {
    export_job *j = user;
    return export_write(j, &j->file, &j->opened, j->path, data, size);
}

static int export_put_data(void *user, const void *data, size_t size) {
    export_job *j = user;
    return export_write(j, &j->data, &j->data_opened, j->data_path, data, size);
}

/* The second file gets its name first: whoever sees the network has its weights. */
static int export_close(export_job *j, const pith_error *err) {
    const bool good = !err;
    int code = j->code ? j->code : good ? EXIT_DONE : EXIT_FAILED;
    bool told = j->code || (j->opened && j->file.error) || (j->data_opened && j->data.error);
    if (j->progress && j->shown > 0) fputs("\r\033[K", stderr);
    if (!good && !told) fail(j->c, "%s: %s", j->s->model, err->message);
    if (j->data_opened) code = output_close(&j->data, j->c, good, code);
    if (j->opened) code = output_close(&j->file, j->c, good && !code, code);
    return code;
}

/* ---- what is told ---- */

static int export_tell(const export_job *j, const pith_export_report *r, double worst) {
    static const char *const dtypes[] = { "f32", "f16", "bf16" };
    if (j->s->json) {
        json_t *o = json_pack("{s:o, s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "path", json_text(j->path), "opset",
                              (int)r->opset, "dtype", dtypes[j->s->dtype], "parameters", (json_int_t)r->parameters,
                              "bytes", (json_int_t)r->model_bytes, "data_bytes", (json_int_t)r->data_bytes, "clamped",
                              (json_int_t)r->clamped, "lost", (json_int_t)r->lost);
        json_object_set_new(o, "max_difference", worst < 0 ? json_null() : json_real(worst));
        json_print(o);
        return output_close_standard(j->c, EXIT_DONE);
    }
    if (j->s->quiet) return EXIT_DONE;
    fprintf(stderr, "%s: %.1f MB, opset %d, %s\n", j->path, (double)r->model_bytes / 1e6, r->opset,
            dtypes[j->s->dtype]);
    if (r->data_bytes) fprintf(stderr, "%s: %.1f MB\n", j->data_path, (double)r->data_bytes / 1e6);
    if (worst >= 0) fprintf(stderr, "largest difference to the model on a few texts: %.2g\n", worst);
    return EXIT_DONE;
}

/* ---- the command ---- */

static int export_small_files(const export_job *j, const char *folder) {
    char path[PATH_MAX];
    struct stat st;
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_locate(path, sizeof path, j->s->model, &err) || stat(path, &st) || !S_ISDIR(st.st_mode))
        return EXIT_DONE;
    return export_copy_files(j->c, path, folder, j->s->pool);
}

static int export_model(const command *c, export_settings *s) {
    export_job j = { .c = c, .s = s, .progress = !s->quiet && isatty(STDERR_FILENO) };
    pith_error err = PITH_ERROR_INIT;
    pith_export_report report = PITH_EXPORT_REPORT_INIT;
    char folder[PATH_MAX];
    double worst = -1;
    int code = export_place(&j, folder);
    if (code) return code;
    const char *slash = strrchr(j.data_path, '/');
    s->to.data_name = slash ? slash + 1 : j.data_path;
    pith_status status = pith_model_export(s->model, &s->to, export_put, export_put_data, &j, &report, &err);
    if (status == PITH_ERR_NOT_FOUND && !j.opened) return fail_model(c, &err, s->model);
    code = export_close(&j, status ? &err : NULL);
    if (!code && *folder) code = export_small_files(&j, folder);
    if (!code) code = export_check(c, &worst, j.path, s->model, &s->to);
    return code ? code : export_tell(&j, &report, worst);
}

static int export_run(int argc, char **argv) {
    static const int32_t dtypes[] = { PITH_F32, PITH_F16, PITH_BF16 };
    const command *c = &command_export;
    export_settings s = { .to = PITH_EXPORT_OPTIONS_INIT };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    code = take_model(c, &s.model, &rest);
    if (code >= 0) return code;
    if (!s.model) s.model = DEFAULT_MODEL;
    if (!s.output || !*s.output || !strcmp(s.output, "-"))
        return usage(c, "-o is needed: the file to write, or a directory for the network and its tokenizer");
    if (!s.pool && (s.to.pooling || s.to.dim || s.no_normalize))
        return usage(c, "--pooling, --dim and --no-normalize go with --pool");
    s.to.dtype = dtypes[s.dtype];
    s.to.pool = s.pool;
    s.to.int32_inputs = s.int32_inputs;
    s.to.normalize = s.no_normalize ? 0 : -1;
    s.to.data_always = s.external;
    s.to.log = &warnings;
    return export_model(c, &s);
}

#define AT(id, member) OPTION_PLACE(id, export_settings, member)

static const option options[] = {
    AT(model_compile, model),
    AT(output_export, output),
    AT(opset, to.opset),
    AT(dtype_export, dtype),
    AT(int32_inputs, int32_inputs),
    AT(external, external),
    AT(force, force),
    AT(model_file, to.model_file),
    AT(route, to.route),
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
    { "pith export --pool --dtype f16 -o minilm_fp16_pooled.onnx", "16-bit weights, one vector per text" },
    { "pith export --pool --dim 128 --int32-inputs -o small.onnx", NULL },
    { NULL, NULL },
};

const command command_export = {
    .name = "export",
    .summary = "write a model's network as an ONNX file for other engines",
    .forms = "[options] [MODEL] -o FILE.onnx",
    .takes = "MODEL",
    .description =
        "Writes the network of a model directory or of an ONNX file with standard operators only, or those of "
        "com.microsoft that it had. The file is then compared with the model on a few texts.",
    .examples = examples,
    .options = options,
    .run = export_run,
};

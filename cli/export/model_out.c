/* model_out.c - see model_out.h. */
#include "cli/export/model_out.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/message.h"
#include "cli/export/export_files.h"

static int model_out_check_absent(const command *c, const char *path, bool force) {
    struct stat st;
    if (force || stat(path, &st) || (S_ISREG(st.st_mode) && !st.st_size)) return EXIT_DONE;
    return fail(c, "%s exists; --force replaces it", path);
}

int model_out_check_name(const command *c, const char *path, const char *kind) {
    static const struct {
        const char *suffix, *kind, *hint;
    } others[] = {
        { ".onnx", "onnx", "'pith export' and 'pith quantize' write ONNX" },
        { ".pith", "pith", "'pith compile' writes .pith files" },
        { ".gguf", "", "Pith reads GGUF, but does not write it" },
        { ".safetensors", "", "Pith reads safetensors, but does not write them" },
        { ".pt", "", "Pith reads checkpoints of PyTorch, but does not write them" },
    };
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (!dot) return EXIT_DONE;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcasecmp(dot, others[i].suffix) && strcmp(kind, others[i].kind) != 0)
            return usage(c, "-o %s: this command writes .%s files; %s", path, kind, others[i].hint);
    return EXIT_DONE;
}

/* Whether a path that is no file yet is to be a folder. */
static bool model_out_names_folder(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct stat st;
    return !*name || (!strchr(name, '.') && lstat(path, &st));
}

int model_out_place(model_out *out, const command *c, const char *model, const char *path,
                    bool force, bool folder) {
    size_t n = strlen(path);
    struct stat st;
    bool there = !stat(path, &st) && S_ISDIR(st.st_mode), named = n && path[n - 1] == '/';
    named |= folder && n && model_out_names_folder(path);
    *out = (model_out){ .c = c, .model = model };
    if (n + sizeof "/model.onnx.data" > sizeof out->path) return usage(c, "-o is too long");
    if (!there && !named) {
        int code = model_out_check_name(c, path, "onnx");
        if (code) return code;
        strcpy(out->path, path);
    } else {
        strcpy(out->folder, path);
        while (n > 1 && out->folder[n - 1] == '/') out->folder[--n] = 0;
        if (!there && mkdir(out->folder, 0777))
            return fail(c, "%s cannot be made: %s", out->folder, strerror(errno));
        snprintf(out->path, sizeof out->path, "%.*s/model.onnx", (int)n, out->folder);
    }
    snprintf(out->data_path, sizeof out->data_path, "%.*s.data", (int)(sizeof out->data_path - 6),
             out->path);
    int code = model_out_check_absent(c, out->path, force);
    return code ? code : model_out_check_absent(c, out->data_path, force);
}

void model_out_progress(model_out *out, bool shown) {
    out->progress = shown && isatty(STDERR_FILENO);
    progress_line_begin(&out->line, "steps", false, !shown, out->path);
}

void model_out_hear(void *out, const char *what, uint64_t done, uint64_t total) {
    model_out *m = out;
    if (!m->progress || !strcmp(what, "bytes")) return;
    progress_line_hear(&m->line, what, done, total);
}

const char *model_out_data_name(const model_out *out) {
    const char *slash = strrchr(out->data_path, '/');
    return slash ? slash + 1 : out->data_path;
}

static int32_t model_out_write(model_out *m, output *out, bool *opened, const char *path,
                               const void *data, size_t size) {
    const string_list inputs = { &m->model, 1 };
    if (!*opened && (m->code = output_open(out, m->c, path, &inputs))) return 1;
    *opened = true;
    m->written += size;
    if (m->progress && now_seconds() - m->shown > 0.2) {
        fprintf(stderr, "\r%.1f MB", (double)m->written / 1e6);
        m->shown = now_seconds();
    }
    return !output_write(out, data, size);
}

int32_t model_out_put(void *out, const void *data, size_t size) {
    model_out *m = out;
    return model_out_write(m, &m->file, &m->opened, m->path, data, size);
}

static int32_t model_out_put_data(void *out, const void *data, size_t size) {
    model_out *m = out;
    return model_out_write(m, &m->data, &m->data_opened, m->data_path, data, size);
}

pith_writer model_out_writer(model_out *out) {
    return (pith_writer){ .write = model_out_put, .user = out };
}

pith_writer model_out_data_writer(model_out *out) {
    return (pith_writer){ .write = model_out_put_data, .user = out };
}

/* The second file gets its name first: whoever sees the network has its weights. */
int model_out_close(model_out *out, pith_status status, const pith_error *err) {
    if (status == PITH_ERR_NOT_FOUND && !out->opened) return fail_model(out->c, err, out->model);
    const bool good = !status;
    int code = EXIT_FAILED;
    if (out->code)
        code = out->code;
    else if (good)
        code = EXIT_DONE;
    bool told =
        out->code || (out->opened && out->file.error) || (out->data_opened && out->data.error);
    if (out->progress && (out->shown > 0 || out->line.any)) fputs("\r\033[K", stderr);
    if (!good && !told) fail(out->c, "%s: %s", out->model, err->message);
    if (out->data_opened) code = output_close(&out->data, out->c, good, code);
    if (out->opened) code = output_close(&out->file, out->c, good && !code, code);
    return code;
}

int model_out_small_files(const model_out *out, bool pooled) {
    char path[PATH_MAX];
    struct stat st;
    pith_error err = PITH_ERROR_INIT;
    if (!*out->folder || pith_model_locate(path, sizeof path, out->model, &err) ||
        stat(path, &st) || !S_ISDIR(st.st_mode))
        return EXIT_DONE;
    return export_copy_files(out->c, path, out->folder, pooled);
}

/* Whether the model's directory has a tokenizer; *beside: whether one lies next to the file. */
static bool model_out_has_tokenizer(const model_out *out, bool *beside) {
    static const char *const files[] = { "tokenizer.json",          "vocab.txt",
                                         "tokenizer.model",         "spiece.model",
                                         "sentencepiece.bpe.model", "vocab.json" };
    char model[PATH_MAX], path[PATH_MAX];
    const char *slash = strrchr(out->path, '/');
    pith_error err = PITH_ERROR_INIT;
    bool has = false;
    *beside = false;
    if (pith_model_locate(model, sizeof model, out->model, &err)) return false;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (snprintf(path, sizeof path, "%s/%s", model, files[i]) < (int)sizeof path)
            has |= !access(path, F_OK);
        if (snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - out->path) + 1 : 0,
                     out->path, files[i]) < (int)sizeof path)
            *beside |= !access(path, F_OK);
    }
    return has;
}

void model_out_tell_use(const model_out *out, bool pooled) {
    bool beside;
    if (!model_out_has_tokenizer(out, &beside)) return;
    if (*out->folder)
        note("'pith embed -m %s' embeds texts with it", out->folder);
    else if (!beside)
        note("%s is the network alone; to embed texts, Pith needs the model's tokenizer next to "
             "it%s: "
             "-o DIR/ writes a directory with both",
             out->path, pooled ? "" : " and its configuration");
}

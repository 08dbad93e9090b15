/* cmd_preprocess.c - pith preprocess: the tables of a source as one database file, or a draft of their schema. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/parquet_tables.h"

typedef struct preprocess_settings {
    const char *schema, *embedder, *output, *python;
    bool draft, quiet;
    int32_t threads;
} preprocess_settings;

typedef struct preprocess_model {
    pith_model *model;
    pith_embed_options embed;
} preprocess_model;

static void preprocess_text(void *user, const char *text, size_t size) { output_write(user, text, size); }

static int preprocess_bytes(void *user, const void *data, size_t size) {
    return output_write(user, data, size) ? 0 : 1;
}

static pith_status preprocess_embed(void *user, float *vectors, const pith_str *texts, size_t count, pith_error *err) {
    preprocess_model *m = user;
    return pith_embed(vectors, m->model, texts, count, &m->embed, err);
}

static void preprocess_progress(void *user, const char *what, size_t done, size_t total) {
    (void)user;
    fprintf(stderr, "\r%s: %zu of %zu%s", what, done, total, done == total ? "\n" : "");
}

static void preprocess_warn(void *user, const char *text) {
    (void)user;
    fprintf(stderr, "pith preprocess: warning: %s\n", text);
}

static int preprocess_make(const command *c, const preprocess_settings *s, const char *source,
                           const parquet_tables *unpacked, output *out) {
    pith_database_options options = PITH_DATABASE_OPTIONS_INIT;
    preprocess_model m = { NULL, PITH_EMBED_OPTIONS_INIT };
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_text_embedder embedder = { s->embedder, 0, preprocess_embed, &m };
    int code = EXIT_DONE;
    options.schema = s->schema;
    options.warn = preprocess_warn;
    if (isatty(STDERR_FILENO) == 1) options.progress = preprocess_progress;
    if (s->embedder && strcmp(s->embedder, "hash") != 0) {
        open.log = &warnings;
        m.embed.threads = s->threads;
        if (pith_model_open(&m.model, s->embedder, &open, &err)) return fail_model(c, &err, s->embedder);
        embedder.dim = pith_embed_dim(m.model, &m.embed);
        options.embedder = &embedder;
    }
    if (pith_database_make(unpacked->source ? unpacked->source : source, &options, preprocess_bytes, out, &err))
        code = parquet_fail(unpacked, c, source, err.message);
    pith_model_close(m.model);
    return code;
}

static int preprocess_run(int argc, char **argv) {
    const command *c = &command_preprocess;
    preprocess_settings s = { 0 };
    pith_error err = PITH_ERROR_INIT;
    string_list rest = { NULL, 0 };
    parquet_tables unpacked;
    output out;
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count != 1)
        return usage(
            c, "give one directory or zip archive of .csv and .tsv files, an SQLite file, or a postgresql:// address");
    if (!s.draft && !s.output) return usage(c, "give the name of the database file with -o, or --draft for a schema");
    code = output_open(&out, c, s.output, NULL);
    if (code) return code;
    code = parquet_unpack(&unpacked, c, rest.items[0], s.python);
    if (!code && !s.draft)
        code = preprocess_make(c, &s, rest.items[0], &unpacked, &out);
    else if (!code &&
             pith_database_draft(unpacked.source ? unpacked.source : rest.items[0], preprocess_text, &out, &err))
        code = parquet_fail(&unpacked, c, rest.items[0], err.message);
    parquet_remove(&unpacked);
    return output_close(&out, c, code == EXIT_DONE, code);
}

#define AT(id, member) OPTION_PLACE(id, preprocess_settings, member)

static const option options[] = {
    AT(schema, schema), AT(draft, draft),   AT(embedder, embedder), AT(threads, threads),
    AT(output, output), AT(python, python), OPTION_SOURCES,         OPTION_END,
};

static const example examples[] = {
    { "pith preprocess shop --draft -o shop/schema.json", "a schema to check and edit" },
    { "pith preprocess shop -o shop.rdb", "then: pith train shop.rdb --task returned -o run" },
    { "pith preprocess postgresql://me@host/shop --draft", "from what the database declares" },
    { "pith preprocess shop.sqlite --schema schema.json -o shop.rdb", "the tables of an SQLite file" },
    { NULL, NULL },
};

const command command_preprocess = {
    .name = "preprocess",
    .summary = "make a database file of tables",
    .forms = "SOURCE [--schema FILE] [--embedder MODEL] -o FILE\nSOURCE --draft [-o FILE]",
    .takes = "FILE",
    .reads = "csv|tsv|json",
    .description = "Reads the .csv and .tsv files of a directory or zip archive, plain or as .gz or .zst, or the "
                   "tables of an SQLite "
                   "file or a PostgreSQL database, resolves their keys, and writes one file that `pith train` maps. "
                   "The file has the "
                   "same bytes whatever the number of threads.",
    .examples = examples,
    .options = options,
    .run = preprocess_run,
};

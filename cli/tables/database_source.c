/* database_source.c - see database_source.h. */
#include "cli/tables/database_source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text_out.h"
#include "cli/options/field_flags.h"
#include "cli/tables/parquet_tables.h"

/* What the callbacks of a database are given. */
typedef struct source_making {
    const command *c;
    output *out;
    pith_model *model; /* the embedder; NULL: none */
    pith_embed_options embed;
} source_making;

static pith_status source_embed(void *user, float *vectors, const pith_str *texts, size_t count,
                                pith_error *err) {
    const source_making *m = user;
    return pith_embed(vectors, m->model, texts, count, &m->embed, err);
}

/* Rows, of which the total is not known, are left out. */
static void source_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user;
    if (!total) return;
    fprintf(stderr, "\r%s: %llu of %llu%s", what, (unsigned long long)done,
            (unsigned long long)total, done == total ? "\n" : "");
}

static void source_warn(void *user, const char *text) {
    const source_making *m = user;
    char shown[2000];
    pith__text_print(shown, sizeof shown, "%s", text);
    name_flags(m->c, shown);
    fprintf(stderr, "pith %s: warning: %s\n", m->c->name, shown);
}

static int source_make(const command *c, const database_making *how, const char *source,
                       const parquet_tables *unpacked, output *out) {
    pith_database_options options = PITH_DATABASE_OPTIONS_INIT;
    source_making m = { c, out, NULL, PITH_EMBED_OPTIONS_INIT };
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_text_embedder embedder = { how->embedder, 0, source_embed, &m };
    int code = EXIT_DONE;
    options.schema = how->schema;
    options.warn = source_warn;
    options.call.user = &m;
    if (isatty(STDERR_FILENO) == 1) options.call.progress = source_progress;
    if (how->embedder && strcmp(how->embedder, "hash") != 0) {
        open.call.log = &warnings;
        m.embed.call.threads = how->threads;
        if (pith_model_open(&m.model, how->embedder, &open, &err))
            return fail_model(c, &err, how->embedder);
        embedder.dim = pith_embed_dim(m.model, &m.embed);
        options.embedder = &embedder;
    }
    const pith_writer writer = output_writer(out);
    if (pith_database_make(unpacked->source ? unpacked->source : source, &options, &writer, &err))
        code = parquet_fail(unpacked, c, source, err.message);
    pith_model_close(m.model);
    return code;
}

int database_source_make(const command *c, const database_making *how, const char *source,
                         bool draft, output *out) {
    pith_error err = PITH_ERROR_INIT;
    parquet_tables unpacked;
    const pith_writer writer = output_writer(out);
    int code = parquet_unpack(&unpacked, c, source, how->python);
    if (!code && !draft)
        code = source_make(c, how, source, &unpacked, out);
    else if (!code &&
             pith_database_draft(unpacked.source ? unpacked.source : source, NULL, &writer, &err) &&
             !out->error) /* else output_close tells */
        code = parquet_fail(&unpacked, c, source, err.message);
    parquet_remove(&unpacked);
    return code;
}

/* relational_run.c - see relational_run.h. */
#include "cli/tables/relational_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/message.h"
#include "cli/base/temporary_file.h"
#include "cli/base/text_input.h"
#include "cli/output/output.h"
#include "cli/tables/inspect_database.h"

char *run_file(const char *run, const char *name) {
    const size_t size = strlen(run) + strlen(name) + 2;
    char *path = grow(NULL, size);
    snprintf(path, size, "%s/%s", run, name);
    return path;
}

/* The bytes of a file, from malloc; NULL with errno. */
static void *run_bytes(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    size_t room = 0;
    *size = 0;
    if (!f) return NULL;
    do {
        if (*size == room) data = grow(data, room = room * 2 + 65536);
        *size += fread(data + *size, 1, room - *size, f);
    } while (!feof(f) && !ferror(f));
    const int error = ferror(f);
    fclose(f);
    if (!error) return data;
    free(data);
    errno = EIO;
    return NULL;
}

void *run_model_bytes(const char *path, size_t *size) {
    static const char *const names[] = { "best.bin", "model.bin" };
    void *data = NULL;
    for (size_t i = 0; !data && i < sizeof names / sizeof *names; i++) {
        char *inner = run_file(path, names[i]);
        data = run_bytes(inner, size);
        free(inner);
    }
    return data ? data : run_bytes(path, size);
}

int run_load(relational_run *run, const command *c, const char *name, bool *there) {
    char *path = run_file(run->path, name);
    pith_error err = PITH_ERROR_INIT;
    size_t size;
    int code = EXIT_DONE;
    void *data = run_bytes(path, &size);
    *there = data != NULL;
    if (!data && errno != ENOENT) code = fail(c, "%s: %s", path, strerror(errno));
    if (data && pith_relational_load_over(&run->model, (const pith_database *const *)run->databases,
                                          run->database_count, data, size, NULL, &err))
        code = fail(c, "%s: %s", path, err.message);
    free(data);
    free(path);
    return code;
}

/* Writes a file of the run with a function of the library, or from text. */
static int run_put(const relational_run *run, const command *c, const char *name,
                   pith_status (*save)(const pith_relational *, const pith_call *,
                                       const pith_writer *, pith_error *),
                   pith_str text) {
    char *path = run_file(run->path, name);
    pith_error err = PITH_ERROR_INIT;
    output out;
    int code = output_open(&out, c, path, NULL);
    if (!code) {
        const pith_writer writer = output_writer(&out);
        if (!save)
            output_write(&out, text.data, text.size);
        else if (save(run->model, NULL, &writer, &err))
            code = fail(c, "%s", err.message);
        code = output_close(&out, c, code == EXIT_DONE, code);
    }
    free(path);
    return code;
}

int run_save(const relational_run *run, const command *c, const char *name) {
    return run_put(run, c, name, pith_relational_save, (pith_str){ NULL, 0 });
}

int run_save_baseline(const relational_run *run, const command *c) {
    return run_put(run, c, "baseline.bin", pith_relational_save_baseline, (pith_str){ NULL, 0 });
}

int run_keep(const relational_run *run, const command *c) {
    const pith_str schema = pith_database_schema(run->databases[0]);
    int code = run_put(run, c, "kept.rdb", pith_relational_keep, (pith_str){ NULL, 0 });
    if (!code && schema.size) code = run_put(run, c, "schema.json", NULL, schema);
    return code;
}

int run_write_about(const relational_run *run, const command *c) {
    char *text = json_dumps(run->about, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    bytes line = { NULL, 0, 0 };
    bytes_print(&line, "%s\n", text);
    const int code = run_put(run, c, "run.json", NULL, (pith_str){ line.data, line.size });
    free(line.data);
    free(text);
    return code;
}

/* ---- paths ---- */

/* The full name of a file, or of one that is not there in a folder that is; from malloc, as it is
 * if neither is. */
static char *run_full(const char *path) {
    char *full = realpath(path, NULL), *copy = strdup(path);
    char *slash = copy ? strrchr(copy, '/') : NULL;
    const char *base = slash ? slash + 1 : copy;
    if (full || !copy || !*base) {
        if (full) free(copy);
        return full ? full : copy;
    }
    if (slash) *slash = 0;
    const char *folder = slash ? copy : ".";
    if (slash == copy) folder = "/";
    full = realpath(folder, NULL);
    char *result = full ? run_file(full, base) : strdup(path);
    free(full);
    free(copy);
    return result;
}

char *run_relative(const char *run, const char *file) {
    char *from = run_full(run), *to = run_full(file);
    bytes path = { NULL, 0, 0 };
    size_t same = 0, at = 0;
    if (from[0] != '/' || to[0] != '/') {
        free(from);
        return to;
    }
    /* What both have in front, up to a slash. */
    for (; from[at] && from[at] == to[at]; at++)
        if (from[at] == '/') same = at;
    if (!from[at] && to[at] == '/') same = at;
    for (const char *p = from + same; *p; p++)
        if (*p == '/' && p[1]) bytes_print(&path, "../");
    bytes_print(&path, "%s", to + same + (to[same] == '/'));
    free(from);
    free(to);
    bytes_add(&path, "", 1);
    return path.data;
}

/* A path of run.json as the process opens it, from malloc. */
static char *run_place(const char *run, const char *path) {
    return path[0] == '/' ? strdup(path) : run_file(run, path);
}

static const char *run_item(const json_t *names, size_t i) {
    if (json_is_array(names)) return json_string_value(json_array_get(names, i));
    return i ? NULL : json_string_value(names);
}

bool run_same_files(const char *run, const json_t *a, const json_t *b) {
    const size_t n = json_is_array(a) ? json_array_size(a) : a != NULL,
                 m = json_is_array(b) ? json_array_size(b) : b != NULL;
    bool same = n == m;
    for (size_t i = 0; same && i < n; i++) {
        if (!run_item(a, i) || !run_item(b, i)) return false;
        char *x = run_place(run, run_item(a, i)), *y = run_place(run, run_item(b, i));
        char *full_x = realpath(x, NULL), *full_y = realpath(y, NULL);
        same = !strcmp(full_x ? full_x : x, full_y ? full_y : y);
        free(full_x);
        free(full_y);
        free(x);
        free(y);
    }
    return same;
}

/* ---- opening ---- */

/* more: what a message says behind the reason. */
static int run_add_database(relational_run *run, const command *c, const char *path,
                            const char *more) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_database_open(&run->databases[run->database_count], path, NULL, &err))
        return fail(c, "%s%s", err.message, more);
    run->database_count++;
    return EXIT_DONE;
}

int run_open_databases(relational_run *run, const command *c, const char *folder,
                       const json_t *names) {
    const size_t count = json_is_array(names) ? json_array_size(names) : 1;
    int code = EXIT_DONE;
    run->databases = grow(NULL, (count + 1) * sizeof *run->databases);
    for (size_t i = 0; !code && i < count; i++) {
        if (!run_item(names, i)) return fail(c, "no database is named");
        char *path = folder ? run_place(folder, run_item(names, i)) : strdup(run_item(names, i));
        code = run_add_database(run, c, path, folder ? "; run.json of the run names it" : "");
        free(path);
    }
    return code;
}

/* Makes a database file of a source, opens it and removes its name. */
static int run_open_source(relational_run *run, const command *c, const char *source,
                           const database_making *how) {
    const char *folder = getenv("TMPDIR");
    char *own = run_file(run->path, "schema.json"),
         *path = run_file(folder && *folder ? folder : "/tmp", "pith-XXXXXX");
    database_making making = *how;
    output out;
    if (!making.schema && !access(own, R_OK)) making.schema = own;
    const int file = temporary_file_make(path);
    int code = file < 0 ? fail(c, "%s: %s", path, strerror(errno)) : EXIT_DONE;
    if (file >= 0) close(file);
    if (!code) code = output_open(&out, c, path, NULL);
    if (!code) {
        code = database_source_make(c, &making, source, false, &out);
        code = output_close(&out, c, code == EXIT_DONE, code);
    }
    if (!code) code = run_add_database(run, c, path, "");
    if (file >= 0) unlink(path);
    temporary_file_forget(path);
    free(path);
    free(own);
    return code;
}

/* Gives the database what the model of the run keeps of its own. Of runs of earlier versions there
 * is no such file: then the database must be the run's. */
static int run_follow(relational_run *run, const command *c, const char *database) {
    char *path = run_file(run->path, "kept.rdb");
    pith_error err = PITH_ERROR_INIT;
    pith_database *kept = NULL;
    int code = EXIT_DONE;
    if (access(path, F_OK))
        note("pith %s: warning: %s is not there, so %s must be the database of the training; `pith "
             "train` with the "
             "same arguments writes it",
             c->name, path, database);
    else if (pith_database_open(&kept, path, NULL, &err) ||
             pith_database_follow(run->databases[0], kept, NULL, &err))
        code = fail(c, "%s: %s", database, err.message);
    pith_database_close(kept);
    free(path);
    return code;
}

static int run_open_other(relational_run *run, const command *c, const char *database,
                          const database_making *how) {
    struct stat st;
    const bool file = !stat(database, &st) && S_ISREG(st.st_mode) && inspect_is_database(database);
    run->databases = grow(NULL, 2 * sizeof *run->databases);
    int code =
        file ? run_add_database(run, c, database, "") : run_open_source(run, c, database, how);
    return code ? code : run_follow(run, c, database);
}

const char *run_answers(const relational_run *run) {
    const char *name = json_string_value(json_object_get(run->about, "answers"));
    return name && strcmp(name, RUN_TRANSFORMER) != 0 ? name : NULL;
}

int run_needs_network(const relational_run *run, const command *c, const char *what) {
    return run_answers(run) ? fail(c, "%s is about the transformer, and in this run '%s' answers",
                                   what, run_answers(run))
                            : EXIT_DONE;
}

/* The baseline that answers. */
static int run_load_baseline(relational_run *run, const command *c) {
    if (!run_answers(run)) return EXIT_DONE;
    char *path = run_file(run->path, "baseline.bin");
    pith_error err = PITH_ERROR_INIT;
    size_t size;
    void *data = run_bytes(path, &size);
    int code = data ? EXIT_DONE : fail(c, "%s: %s", path, strerror(errno));
    if (data && pith_relational_load_baseline(run->model, data, size, NULL, &err))
        code = fail(c, "%s: %s", path, err.message);
    free(data);
    free(path);
    return code;
}

/* Opens a run on its own databases or on another one. The best model is taken if there is one, else
 * the last. */
int run_open_over(relational_run *run, const command *c, const char *path, const char *other,
                  const database_making *how) {
    char *file = run_file(path, "run.json");
    json_error_t fault;
    bool there = false;
    int code = EXIT_DONE;
    *run = (relational_run){ .path = path };
    run->about = json_load_file(file, 0, &fault);
    const json_t *database = json_object_get(run->about, "database");
    if (!database)
        code = fail(c, "%s: %s; a run is a directory that pith train made", file,
                    run->about ? "no database is named" : fault.text);
    else
        code =
            other ? run_open_other(run, c, other, how) : run_open_databases(run, c, path, database);
    if (!code) code = run_load(run, c, "best.bin", &there);
    if (!code && !there) code = run_load(run, c, "model.bin", &there);
    if (!code && !there) code = fail(c, "%s holds no model yet", path);
    if (!code) code = run_load_baseline(run, c);
    free(file);
    return code;
}

int run_open(relational_run *run, const command *c, const char *path) {
    return run_open_over(run, c, path, NULL, NULL);
}

void run_tell_better(const relational_run *run, const command *c) {
    const json_t *losses = json_object_get(run->about, "validation");
    const double own = json_real_value(json_object_get(losses, "transformer"));
    const char *loss = json_string_value(json_object_get(losses, "loss"));
    double least = own;
    const char *better = NULL, *name;
    json_t *one;
    if (run_answers(run) || !loss || !json_is_real(json_object_get(losses, "transformer"))) return;
    for (int32_t i = 0; (name = pith_baseline_name(i)); i++) {
        one = json_object_get(losses, name);
        if (!json_is_real(one) || !(json_real_value(one) < least)) continue;
        least = json_real_value(one);
        better = name;
    }
    if (better)
        note("pith %s: warning: on the validation rows '%s' does better than the model (%s %.4f "
             "and %.4f); `pith train "
             "--predictor auto` uses what does best",
             c->name, better, loss, least, own);
}

void run_close(relational_run *run) {
    pith_relational_destroy(run->model);
    while (run->database_count) pith_database_close(run->databases[--run->database_count]);
    free(run->databases);
    json_decref(run->about);
}

static void run_add_interval(json_t *object, const char *name, const double *x) {
    char interval[60];
    if (isnan(x[0])) return;
    json_object_set_new(object, name, json_real(x[0]));
    snprintf(interval, sizeof interval, "%s_interval", name);
    if (!isnan(x[1])) json_object_set_new(object, interval, json_pack("[f, f]", x[1], x[2]));
}

static void run_add_number(json_t *object, const char *name, double x) {
    if (!isnan(x) && !isinf(x)) json_object_set_new(object, name, json_real(x));
}

void run_add_metrics(json_t *object, const pith_relational_metrics *m) {
    json_object_set_new(object, "rows", json_integer(m->rows));
    run_add_interval(object, "auroc", m->auroc);
    run_add_interval(object, "logloss", m->logloss);
    run_add_number(object, "accuracy", m->accuracy);
    run_add_number(object, "base_rate", m->base_rate);
    run_add_number(object, "constant_logloss", m->constant_logloss);
    run_add_interval(object, "mae", m->mae);
    run_add_number(object, "constant_mae", m->constant_mae);
    run_add_number(object, "r2", m->r2);
    run_add_interval(object, "spearman", m->spearman);
    run_add_number(object, "macro_f1", m->macro_f1);
}

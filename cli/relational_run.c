/* relational_run.c - see relational_run.h. */
#include "cli/relational_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

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
    void *bytes = NULL;
    for (size_t i = 0; !bytes && i < sizeof names / sizeof *names; i++) {
        char *inner = run_file(path, names[i]);
        bytes = run_bytes(inner, size);
        free(inner);
    }
    return bytes ? bytes : run_bytes(path, size);
}

int run_load(relational_run *run, const command *c, const char *name, bool *there) {
    char *path = run_file(run->path, name);
    pith_error err = PITH_ERROR_INIT;
    size_t size;
    int code = EXIT_DONE;
    void *bytes = run_bytes(path, &size);
    *there = bytes != NULL;
    if (!bytes && errno != ENOENT) code = fail(c, "%s: %s", path, strerror(errno));
    if (bytes && pith_relational_load_over(&run->model, (const pith_database *const *)run->databases,
                                           run->database_count, bytes, size, &err))
        code = fail(c, "%s: %s", path, err.message);
    free(bytes);
    free(path);
    return code;
}

static int run_write(void *user, const void *data, size_t size) { return output_write(user, data, size) ? 0 : 1; }

int run_save(const relational_run *run, const command *c, const char *name) {
    char *path = run_file(run->path, name);
    pith_error err = PITH_ERROR_INIT;
    output out;
    int code = output_open(&out, c, path, NULL);
    if (!code) {
        if (pith_relational_save(run->model, run_write, &out, &err)) code = fail(c, "%s", err.message);
        code = output_close(&out, c, code == EXIT_DONE, code);
    }
    free(path);
    return code;
}

int run_open_databases(relational_run *run, const command *c, const json_t *names) {
    const size_t count = json_is_array(names) ? json_array_size(names) : 1;
    pith_error err = PITH_ERROR_INIT;
    run->databases = grow(NULL, (count + 1) * sizeof *run->databases);
    for (; run->database_count < count; run->database_count++) {
        const char *path = json_string_value(json_is_array(names) ? json_array_get(names, run->database_count) : names);
        if (!path) return fail(c, "no database is named");
        if (pith_database_open(&run->databases[run->database_count], path, NULL, &err))
            return fail(c, "%s", err.message);
    }
    return EXIT_DONE;
}

int run_open(relational_run *run, const command *c, const char *path) {
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
        code = run_open_databases(run, c, database);
    if (!code) code = run_load(run, c, "best.bin", &there);
    if (!code && !there) code = run_load(run, c, "model.bin", &there);
    if (!code && !there) code = fail(c, "%s holds no model yet", path);
    free(file);
    return code;
}

void run_close(relational_run *run) {
    pith_relational_close(run->model);
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

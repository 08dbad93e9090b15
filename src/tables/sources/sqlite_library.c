/* sqlite_library.c - see sqlite_library.h. */
#include "tables/sources/sqlite_library.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/formats/decimal.h"
#include "base/formats/read_double.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "base/work.h"
#include "tables/sources/sqlite_guard.h"

static pith__sqlite sqlite;
static pthread_mutex_t sqlite_lock = PTHREAD_MUTEX_INITIALIZER;

static pith_status sqlite_find(const char *what, pith_error *err) {
    static const char *const names[] = { "libsqlite3.so.0", "libsqlite3.so" };
    PITH_TRY(pith__library_safe(err));
    void *library = pith__library_load(names, sizeof names / sizeof *names);
    pith__sqlite s;
    if (!library)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "%s needs SQLite, which is not installed; install it (Debian: apt-get "
                          "install libsqlite3-0)",
                          what);
    const char *lacks = pith__library_fill(&s, library, PITH_SQLITE_FUNCTIONS(PITH_LIBRARY_NAME));
    if (lacks)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "SQLite is here, but lacks %s; install version 3.37 or newer", lacks);
    sqlite = s;
    return PITH_OK;
}

pith_status pith__sqlite_load(const pith__sqlite **out, const char *what, pith_error *err) {
    pthread_mutex_lock(&sqlite_lock);
    const pith_status status = sqlite.open_v2 ? PITH_OK : sqlite_find(what, err);
    pthread_mutex_unlock(&sqlite_lock);
    *out = &sqlite;
    return status;
}

/* Steps of SQLite's machine between two looks: less than a millisecond. */
enum { SQLITE_WATCH_STEPS = 10000 };

static int sqlite_stopped(void *stop) { return pith__stop_asked(stop); }

void pith__sqlite_watch(const pith__sqlite *s, sqlite3 *db, pith__stop *stop) {
    s->progress_handler(db, stop ? SQLITE_WATCH_STEPS : 0, stop ? sqlite_stopped : NULL, stop);
}

static pith_status sqlite_fail(const pith__sqlite *s, sqlite3 *db, const char *path,
                               pith_error *err) {
    return pith__fail(err, PITH_ERR_FORMAT, "%s: %s", path, s->errmsg(db));
}

pith_status pith__sqlite_prepare(sqlite3_stmt **statement, const pith__sqlite *s, sqlite3 *db,
                                 const char *sql, const pith_str *parameters, int count,
                                 const char *path, pith_error *err) {
    *statement = NULL;
    if (s->prepare_v2(db, sql, -1, statement, NULL)) return sqlite_fail(s, db, path, err);
    if (!*statement) return pith__fail(err, PITH_ERR_FORMAT, "%s: the query is empty", path);
    for (int i = 0; i < count; i++) {
        if (parameters[i].size > INT_MAX ||
            s->bind_text(*statement, i + 1, parameters[i].data, (int)parameters[i].size, NULL)) {
            s->finalize(*statement);
            return sqlite_fail(s, db, path, err);
        }
    }
    return PITH_OK;
}

/* ---- rows as text ---- */

typedef struct sqlite_rows {
    const pith__sqlite *s;
    sqlite3 *db;
    sqlite3_stmt *statement;
    pith__text_table *t;
    pith__arena *arena;
    size_t room; /* cells */
    size_t most; /* bytes of cells and texts */
    size_t bytes;
    pith__stop *stop;
} sqlite_rows;

/* %.17g with the fewest digits that are read back as the same number. */
static size_t sqlite_number(char text[PITH_DECIMAL_CHARS], double x) {
    size_t n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        double back;
        n = pith__decimal_print(text, digits, x);
        if (!pith__read_number(&back, (pith_str){ text, n }) || back == x) break;
    }
    return n;
}

static pith_status sqlite_names(sqlite_rows *r, pith_error *err) {
    pith__text_table *t = r->t;
    pith__map seen;
    t->columns = (size_t)r->s->column_count(r->statement);
    if (!t->columns)
        return pith__fail(err, PITH_ERR_FORMAT, "%s: the statement gives no columns", t->path);
    t->names = pith__arena_array(r->arena, t->columns, sizeof *t->names);
    t->blobs = pith__arena_array(r->arena, t->columns, sizeof *t->blobs);
    if (!t->names || !t->blobs) return pith__fail_memory(err, t->columns * sizeof *t->names);
    PITH_TRY(pith__map_init(&seen, r->arena, t->columns));
    for (size_t c = 0; c < t->columns; c++) {
        const char *name = r->s->column_name(r->statement, (int)c);
        uint32_t old;
        t->names[c] = pith__arena_str(r->arena, pith__str_of(name ? name : ""));
        if (!name || !t->names[c].data || !pith__map_put(&seen, t->names[c], (uint32_t)c, &old))
            return pith__fail_memory(err, 64);
        if (pith__utf8_valid_prefix(name, t->names[c].size) != t->names[c].size)
            return pith__fail(err, PITH_ERR_FORMAT, "%s: the name of column %zu is not UTF-8",
                              t->path, c + 1);
        if (old != UINT32_MAX)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: columns %u and %zu are both named '" PITH_STR_FMT "'", t->path,
                              old + 1, c + 1, PITH_STR_ARG(t->names[c]));
        if (!t->names[c].size)
            return pith__fail(err, PITH_ERR_FORMAT, "%s: column %zu has no name", t->path, c + 1);
    }
    return PITH_OK;
}

static pith_status sqlite_cell(pith_str *cell, sqlite_rows *r, size_t c, pith_error *err) {
    char number[PITH_DECIMAL_CHARS];
    pith__text_table *t = r->t;
    const int type = r->s->column_type(r->statement, (int)c);
    pith_str text = { number, 0 };
    *cell = (pith_str){ "", 0 };
    if (type == SQLITE_NULL) return PITH_OK;
    if (type == SQLITE_BLOB) {
        if (!t->blobs[c]) t->blobs[c] = t->rows + 1;
        return PITH_OK;
    }
    if (type == SQLITE_INTEGER) {
        text.size = (size_t)snprintf(number, sizeof number, "%lld",
                                     (long long)r->s->column_int64(r->statement, (int)c));
    } else if (type == SQLITE_FLOAT) {
        text.size = sqlite_number(number, r->s->column_double(r->statement, (int)c));
    } else {
        text.data = (const char *)r->s->column_text(r->statement, (int)c);
        text.size = (size_t)r->s->column_bytes(r->statement, (int)c);
        if (!text.data) return pith__fail_memory(err, text.size);
        if (pith__utf8_valid_prefix(text.data, text.size) != text.size)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: row %zu, column '" PITH_STR_FMT "': the text is not UTF-8",
                              t->path, t->rows + 1, PITH_STR_ARG(t->names[c]));
    }
    if (!text.size) return PITH_OK;
    *cell = pith__arena_str(r->arena, text);
    r->bytes += text.size;
    return cell->data ? PITH_OK : pith__fail_memory(err, text.size);
}

static pith_status sqlite_row(sqlite_rows *r, pith_error *err) {
    pith__text_table *t = r->t;
    const size_t used = t->rows * t->columns;
    if (t->rows >= PITH_TEXT_ROWS)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s has more than %u rows", t->path,
                          PITH_TEXT_ROWS);
    if (!pith__text_table_room(t, &r->room, r->arena))
        return pith__fail_memory(err, r->room * sizeof *t->cells);
    for (size_t c = 0; c < t->columns; c++) PITH_TRY(sqlite_cell(&t->cells[used + c], r, c, err));
    t->rows++;
    r->bytes += t->columns * sizeof *t->cells;
    if (r->bytes > r->most)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: its first %zu rows take more than %zu MiB", t->path, t->rows,
                          r->most >> 20);
    return PITH_OK;
}

static pith_status sqlite_all(sqlite_rows *r, pith_error *err) {
    int code;
    PITH_TRY(sqlite_names(r, err));
    while ((code = r->s->step(r->statement)) == SQLITE_ROW) {
        PITH_TRY_ROW(r->stop, r->t->rows, err);
        PITH_TRY(sqlite_row(r, err));
    }
    if (code == SQLITE_DONE) return PITH_OK;
    PITH_TRY(pith__stop_check(r->stop, err));
    return pith__fail(err, PITH_ERR_FORMAT, "%s: after row %zu: %s", r->t->path, r->t->rows,
                      r->s->errmsg(r->db));
}

pith_status pith__sqlite_table(pith__text_table *table, const pith__sqlite *s, sqlite3 *db,
                               const char *sql, const pith_str *parameters, int count, size_t most,
                               const char *path, pith__stop *stop, pith__arena *arena,
                               pith_error *err) {
    pith__text_table t = { .path = path };
    sqlite_rows r = { .s = s, .db = db, .t = &t, .arena = arena, .most = most, .stop = stop };
    PITH_TRY(pith__sqlite_prepare(&r.statement, s, db, sql, parameters, count, path, err));
    const pith_status status = sqlite_all(&r, err);
    s->finalize(r.statement);
    if (status) return status;
    if (!t.cells && !(t.cells = pith__arena_array(arena, 1, sizeof *t.cells)))
        return pith__fail_memory(err, 16);
    *table = t;
    return PITH_OK;
}

static bool sqlite_begins(const char *sql, const char *word) {
    const size_t n = strlen(word);
    return !strncasecmp(sql, word, n) && strchr(" \t\r\n(", sql[n]);
}

/* What stands behind a statement: nothing but spaces and semicolons. */
static bool sqlite_alone(const pith__sqlite *s, sqlite3 *db, const char *sql) {
    const char *rest = sql;
    sqlite3_stmt *statement = NULL;
    const bool right =
        !s->prepare_v2(db, sql, -1, &statement, &rest) && statement && s->stmt_readonly(statement);
    s->finalize(statement);
    return right && !rest[strspn(rest, " \t\r\n;")];
}

static pith_status sqlite_guarded(pith__text_table *table, size_t most, const pith__sqlite *s,
                                  sqlite3 *db, const char *sql, const char *path, pith__stop *stop,
                                  pith__arena *arena, pith_error *err) {
    sqlite3_stmt *statement;
    /* for the message */
    PITH_TRY(pith__sqlite_prepare(&statement, s, db, sql, NULL, 0, path, err));
    s->finalize(statement);
    if (!sqlite_alone(s, db, sql))
        return pith__fail(err, PITH_ERR_FORMAT, "%s is not one SELECT alone", path);
    return pith__sqlite_table(table, s, db, sql, NULL, 0, most, path, stop, arena, err);
}

pith_status pith__sqlite_select(pith__text_table *table, const pith__sqlite *s, sqlite3 *db,
                                const char *sql, const char *path, pith__stop *stop,
                                pith__arena *arena, pith_error *err) {
    pith__sqlite_guard guard;
    size_t most;
    sql += strspn(sql, " \t\r\n");
    if (!sqlite_begins(sql, "SELECT") && !sqlite_begins(sql, "WITH"))
        return pith__fail(err, PITH_ERR_FORMAT, "%s begins neither with SELECT nor with WITH",
                          path);
    PITH_TRY(pith__sqlite_most(&most, s, db, path, arena, err));
    PITH_TRY(pith__sqlite_guard_begin(&guard, s, db, path, stop, arena, err));
    const pith_status status = sqlite_guarded(table, most, s, db, sql, path, stop, arena, err);
    pith__sqlite_guard_end(&guard);
    return status;
}

/* source_postgres.c - the tables of a PostgreSQL database, with the keys that it declares. They are
 * read by cursors in one read-only transaction that sees one snapshot. The tables are those of the
 * current schema (search_path); views and partitions are left out, partitioned tables are not.
 * libpq is loaded when the first such source is opened; it takes what the address does not say from
 * its own environment variables and files. */
#include <poll.h>
#include <pthread.h>
#include <strings.h>

#include <libpq-fe.h>

#include "base/error.h"
#include "base/os/shared_library.h"
#include "base/str.h"
#include "base/work.h"
#include "tables/sources/table_source.h"

enum {
    PG_BYTES = 17,  /* the type bytea */
    PG_LOOK_MS = 10 /* between two looks whether the call must end, while the server works */
};

#define PG_FUNCTIONS(F)                                                                            \
    F(PQ, conninfoParse)                                                                           \
    F(PQ, conninfoFree)                                                                            \
    F(PQ, freemem)                                                                                 \
    F(PQ, connectdb)                                                                               \
    F(PQ, connectStart)                                                                            \
    F(PQ, connectPoll)                                                                             \
    F(PQ, socket)                                                                                  \
    F(PQ, status)                                                                                  \
    F(PQ, errorMessage)                                                                            \
    F(PQ, finish)                                                                                  \
    F(PQ, execParams)                                                                              \
    F(PQ, sendQueryParams)                                                                         \
    F(PQ, consumeInput)                                                                            \
    F(PQ, isBusy)                                                                                  \
    F(PQ, getResult)                                                                               \
    F(PQ, getCancel)                                                                               \
    F(PQ, cancel)                                                                                  \
    F(PQ, freeCancel)                                                                              \
    F(PQ, resultStatus)                                                                            \
    F(PQ, ntuples)                                                                                 \
    F(PQ, nfields)                                                                                 \
    F(PQ, fname)                                                                                   \
    F(PQ, ftype)                                                                                   \
    F(PQ, getvalue)                                                                                \
    F(PQ, getlength)                                                                               \
    F(PQ, getisnull)                                                                               \
    F(PQ, clear)                                                                                   \
    F(PQ, setNoticeProcessor)

typedef struct pg_library {
    PG_FUNCTIONS(PITH_LIBRARY_MEMBER)
} pg_library;

typedef struct pg_source {
    PGconn *connection;
    const char *path;          /* the address without its password */
    PQconninfoOption *options; /* of the address */
} pg_source;

static pg_library pg;
static pthread_mutex_t pg_lock = PTHREAD_MUTEX_INITIALIZER;

static pith_status pg_find(pith_error *err) {
    static const char *const names[] = { "libpq.so.5", "libpq.so" };
    PITH_TRY(pith__library_safe(err));
    void *library = pith__library_load(names, sizeof names / sizeof *names);
    pg_library l;
    if (!library)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "a PostgreSQL source needs libpq, which is not installed; install it "
                          "(Debian: apt-get install "
                          "libpq5)");
    const char *lacks = pith__library_fill(&l, library, PG_FUNCTIONS(PITH_LIBRARY_NAME));
    if (lacks) return pith__fail(err, PITH_ERR_UNSUPPORTED, "libpq is here, but lacks %s", lacks);
    pg = l;
    return PITH_OK;
}

static pith_status pg_load(pith_error *err) {
    pthread_mutex_lock(&pg_lock);
    const pith_status status = pg.connectdb ? PITH_OK : pg_find(err);
    pthread_mutex_unlock(&pg_lock);
    return status;
}

/* The bytes of the scheme and "//", in any case, or 0. */
static size_t postgres_scheme(const char *path) {
    if (!strncasecmp(path, "postgresql://", 13)) return 13;
    if (!strncasecmp(path, "postgres://", 11)) return 11;
    return 0;
}

static bool postgres_takes(const char *path) { return postgres_scheme(path) != 0; }

static void postgres_notice(void *user, const char *text) { (void)user, (void)text; }

static bool postgres_secret(const PQconninfoOption *o) {
    return o->val && *o->val &&
           (strstr(o->keyword, "password") || (o->dispchar && *o->dispchar == '*'));
}

/* Overwrites what occurs in the text. */
static void postgres_hide(char *text, const char *secret) {
    for (char *at = text; (at = strstr(at, secret)) != NULL;) memset(at, '*', strlen(secret));
}

/* The last message of the server in one line, without passwords; or that the call must end. */
static pith_status postgres_fail(pith__table_source *source, const char *path, pith_error *err) {
    const pg_source *p = source->state;
    PITH_TRY(pith__stop_check(source->stop, err));
    const pith_str text =
        pith__arena_str(source->arena, pith__str_of(pg.errorMessage(p->connection)));
    if (!text.data) return pith__fail_memory(err, 64);
    char *message = (char *)(uintptr_t)text.data;
    for (const PQconninfoOption *o = p->options; o->keyword; o++)
        if (postgres_secret(o)) postgres_hide(message, o->val);
    size_t n = text.size;
    for (char *m = message; *m; m++)
        if (*m == '\n') *m = ' ';
    while (n && message[n - 1] == ' ') n--;
    message[n] = 0;
    return pith__fail(err, PITH_ERR_FORMAT, "%s: %s", path, message);
}

/* ---- waiting for the server, in a call that can be stopped ---- */

/* Waits until the connection can be read or written, or the call must end: false. */
static bool postgres_wait(const PGconn *connection, short events, pith__stop *stop) {
    while (!pith__stop_asked(stop)) {
        struct pollfd one = { .fd = pg.socket(connection), .events = events };
        if (one.fd < 0 || poll(&one, 1, PG_LOOK_MS) > 0) return true;
    }
    return false;
}

/* Connects; what went wrong is told by pg.status. */
static PGconn *postgres_connect(const char *address, pith__stop *stop) {
    if (!stop) return pg.connectdb(address);
    PGconn *connection = pg.connectStart(address);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (connection && pg.status(connection) != CONNECTION_BAD) {
        if (state == PGRES_POLLING_OK || state == PGRES_POLLING_FAILED) break;
        if (!postgres_wait(connection, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, stop))
            break;
        state = pg.connectPoll(connection);
    }
    return connection;
}

/* Asks the server to end a statement whose call must end; the connection is closed soon. */
static void postgres_cancel(PGconn *connection) {
    char message[256];
    PGcancel *cancel = pg.getCancel(connection);
    if (cancel) pg.cancel(cancel, message, sizeof message);
    pg.freeCancel(cancel);
}

/* Runs a statement; $1 is `name`, if there is one. NULL if it failed, or the call must end. */
static PGresult *postgres_exec(const pith__table_source *source, const char *sql,
                               const char *name) {
    PGconn *connection = ((const pg_source *)source->state)->connection;
    const int count = name ? 1 : 0;
    PGresult *result = NULL, *next;
    if (!source->stop) return pg.execParams(connection, sql, count, NULL, &name, NULL, NULL, 0);
    if (pith__stop_asked(source->stop) ||
        !pg.sendQueryParams(connection, sql, count, NULL, &name, NULL, NULL, 0))
        return NULL;
    do {
        while (pg.isBusy(connection)) {
            if (!postgres_wait(connection, POLLIN, source->stop)) {
                postgres_cancel(connection);
                pg.clear(result);
                return NULL;
            }
            if (!pg.consumeInput(connection)) break;
        }
        next = pg.getResult(connection);
        if (next) pg.clear(result);
        if (next) result = next;
    } while (next);
    return result;
}

static pith_status postgres_run(pith__table_source *source, const char *sql, const char *path,
                                pith_error *err) {
    PGresult *result = postgres_exec(source, sql, NULL);
    const ExecStatusType status = result ? pg.resultStatus(result) : PGRES_FATAL_ERROR;
    pg.clear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK
               ? PITH_OK
               : postgres_fail(source, path, err);
}

/* What makes texts of values independent of the server's settings. */
static const char *const postgres_settings[] = {
    "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL datestyle = 'ISO, YMD'",
    "SET LOCAL extra_float_digits = 3",
    "SET LOCAL statement_timeout = '10min'"
};

static void postgres_close(pith__table_source *source) {
    const pg_source *p = source->state;
    pg.finish(p->connection);
    pg.conninfoFree(p->options);
}

/* Takes the address apart. Messages of libpq about one that cannot be read quote it, so none is
 * shown. */
static pith_status postgres_parse(pg_source *p, const char *address, const char *shown,
                                  pith_error *err) {
    const char *begin = address + postgres_scheme(address), *end = begin + strcspn(begin, "/");
    char *message = NULL;
    p->options = pg.conninfoParse(address, &message);
    pg.freemem(message);
    /* "me:pa/ss@host": to libpq the host is me; of "me:p@ss@host" it is ss@host. */
    bool right = p->options && !memchr(end, '@', strcspn(end, "?"));
    for (const PQconninfoOption *o = p->options; right && o->keyword; o++)
        if (!strcmp(o->keyword, "host") && o->val)
            right = !strchr(o->val, '@');
        else if (!strcmp(o->keyword, "port") && o->val)
            right = !o->val[strspn(o->val, "0123456789,")];
    if (right) return PITH_OK;
    pg.conninfoFree(p->options);
    return pith__fail(err, PITH_ERR_FORMAT,
                      "%s: the address cannot be read; in a user's name or a password write %% as "
                      "%%25, / as %%2F, @ as "
                      "%%40, : as %%3A and ? as %%3F",
                      shown);
}

static pith_status postgres_open(pith__table_source *source, pith_error *err) {
    pg_source *p = pith__arena_array(source->arena, 1, sizeof *p);
    const pith_str shown = pith__source_shown(source->arena, source->path);
    const pith_str address = pith__arena_str(source->arena, pith__str_of(source->path));
    pith_status status = PITH_OK;
    if (!p || !shown.data || !address.data) return pith__fail_memory(err, sizeof *p);
    for (char *c = (char *)(uintptr_t)address.data; *c != ':'; c++)
        *c |= 32; /* libpq knows the scheme in small letters */
    PITH_TRY(pg_load(err));
    PITH_TRY(postgres_parse(p, address.data, shown.data, err));
    p->connection = postgres_connect(address.data, source->stop);
    if (!p->connection) {
        pg.conninfoFree(p->options);
        return pith__fail_memory(err, 0);
    }
    source->state = p;
    source->path = p->path = shown.data;
    pg.setNoticeProcessor(p->connection, postgres_notice, NULL);
    if (pg.status(p->connection) != CONNECTION_OK) status = postgres_fail(source, p->path, err);
    for (size_t i = 0; !status && i < sizeof postgres_settings / sizeof *postgres_settings; i++)
        status = postgres_run(source, postgres_settings[i], p->path, err);
    if (status) postgres_close(source);
    return status;
}

/* ---- rows as text ---- */

static pith_status postgres_names(pith__text_table *t, PGresult *result, pith__arena *arena,
                                  pith_error *err) {
    t->columns = (size_t)pg.nfields(result);
    if (!t->columns) return pith__fail(err, PITH_ERR_FORMAT, "%s gives no columns", t->path);
    t->names = pith__arena_array(arena, t->columns, sizeof *t->names);
    t->blobs = pith__arena_array(arena, t->columns, sizeof *t->blobs);
    if (!t->names || !t->blobs) return pith__fail_memory(err, t->columns * sizeof *t->names);
    for (size_t c = 0; c < t->columns; c++) {
        t->names[c] = pith__arena_str(arena, pith__str_of(pg.fname(result, (int)c)));
        if (!t->names[c].data) return pith__fail_memory(err, 64);
        for (size_t k = 0; k < c; k++)
            if (pith__str_eq(t->names[k], t->names[c]))
                return pith__fail(err, PITH_ERR_FORMAT,
                                  "%s: columns %zu and %zu are both named '" PITH_STR_FMT "'",
                                  t->path, k + 1, c + 1, PITH_STR_ARG(t->names[c]));
    }
    return PITH_OK;
}

/* Appends the rows of a result. */
static pith_status postgres_rows(pith__text_table *t, size_t *room, PGresult *result,
                                 pith__stop *stop, pith__arena *arena, pith_error *err) {
    const int rows = pg.ntuples(result);
    for (int r = 0; r < rows; r++) {
        PITH_TRY_ROW(stop, (size_t)r, err);
        if (!pith__text_table_room(t, room, arena))
            return pith__fail_memory(err, *room * sizeof *t->cells);
        if (t->rows >= PITH_TEXT_ROWS)
            return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s has more than %u rows", t->path,
                              PITH_TEXT_ROWS);
        for (size_t c = 0; c < t->columns; c++) {
            pith_str *cell = &t->cells[t->rows * t->columns + c];
            const pith_str value = { pg.getvalue(result, r, (int)c),
                                     (size_t)pg.getlength(result, r, (int)c) };
            *cell = (pith_str){ "", 0 };
            if (pg.getisnull(result, r, (int)c)) continue;
            if (pg.ftype(result, (int)c) == PG_BYTES) {
                if (!t->blobs[c]) t->blobs[c] = t->rows + 1;
            } else if (value.size) {
                *cell = pith__arena_str(arena, value);
                if (!cell->data) return pith__fail_memory(err, value.size);
            }
        }
        t->rows++;
    }
    return PITH_OK;
}

static pith_status postgres_fetch(pith__text_table *t, pith__table_source *source,
                                  pith_error *err) {
    size_t room = 0;
    for (bool more = true; more;) {
        PGresult *result = postgres_exec(source, "FETCH 10000 FROM pith_rows", NULL);
        pith_status status = result && pg.resultStatus(result) == PGRES_TUPLES_OK
                                 ? PITH_OK
                                 : postgres_fail(source, t->path, err);
        if (!status && !t->names) status = postgres_names(t, result, source->arena, err);
        if (!status) status = postgres_rows(t, &room, result, source->stop, source->arena, err);
        more = !status && pg.ntuples(result) > 0;
        pg.clear(result);
        if (status) return status;
    }
    if (!t->cells && !pith__text_table_room(t, &room, source->arena))
        return pith__fail_memory(err, 64);
    return PITH_OK;
}

/* Reads all rows of a query; $1 is `name`, if there is one. */
static pith_status postgres_read_rows(pith__text_table *table, pith__table_source *source,
                                      const char *sql, const char *name, const char *path,
                                      pith_error *err) {
    pith__text_table t = { .path = path };
    const pith_str declare =
        pith__arena_printf(source->arena, "DECLARE pith_rows NO SCROLL CURSOR FOR %s", sql);
    if (!declare.data) return pith__fail_memory(err, strlen(sql));
    PGresult *result = postgres_exec(source, declare.data, name);
    const bool done = result && pg.resultStatus(result) == PGRES_COMMAND_OK;
    pg.clear(result);
    if (!done) return postgres_fail(source, path, err);
    PITH_TRY(postgres_fetch(&t, source, err));
    PITH_TRY(postgres_run(source, "CLOSE pith_rows", path, err));
    *table = t;
    return PITH_OK;
}

/* ---- what is declared ---- */

#define POSTGRES_TABLE                                                                             \
    "(SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname " \
    "= current_schema() "                                                                          \
    "AND c.relname = $1 AND c.relkind IN ('r', 'p'))"

static pith__declared postgres_declared(pith_str category) {
    if (pith__str_is(category, "B")) return PITH_DECLARED_BOOLEAN;
    return pith__str_is(category, "N") || pith__str_is(category, "D") ? PITH_DECLARED_NOTHING
                                                                      : PITH_DECLARED_TEXT;
}

static pith_status postgres_columns(pith__source_table *to, pith__table_source *source,
                                    pith_error *err) {
    pith__text_table t;
    const pith_str name = pith__arena_str(source->arena, to->name);
    if (!name.data) return pith__fail_memory(err, to->name.size);
    PITH_TRY(postgres_read_rows(
        &t, source,
        "SELECT a.attname, y.typcategory::text AS category, coalesce(array_position(k.conkey, "
        "a.attnum), 0) AS key FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid LEFT "
        "JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p' WHERE a.attrelid "
        "= " POSTGRES_TABLE " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        name.data, source->path, err));
    return pith__source_take_columns(to, &t, postgres_declared, source->arena, err);
}

/* One row for each column of each foreign key, in the order of the key, so that keys of several
 * columns come together. */
static pith_status postgres_links(pith__source_table *to, pith__table_source *source,
                                  pith_error *err) {
    pith__text_table t;
    const pith_str name = pith__arena_str(source->arena, to->name);
    if (!name.data) return pith__fail_memory(err, to->name.size);
    PITH_TRY(postgres_read_rows(
        &t, source,
        "SELECT k.conname, p.relname, a.attname, b.attname AS other FROM pg_constraint k JOIN "
        "pg_class p ON p.oid = k.confrelid JOIN LATERAL unnest(k.conkey, k.confkey) WITH "
        "ORDINALITY u(own, other, n) ON true JOIN pg_attribute a ON a.attrelid = k.conrelid "
        "AND a.attnum = u.own JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = "
        "u.other WHERE k.contype = 'f' AND NOT p.relispartition AND k.conrelid = " POSTGRES_TABLE
        " ORDER BY k.conname, k.oid, u.n",
        name.data, source->path, err));
    for (size_t r = 0; r < t.rows; r++) {
        const pith_str *row = &t.cells[r * 4];
        pith__link_schema *link;
        PITH_TRY(pith__source_take_link(&link, to, &t, r, source->arena, err));
        link->columns.items[link->columns.count++] = row[2];
        link->parent_columns.items[link->parent_columns.count++] = row[3];
    }
    return PITH_OK;
}

/* Names are sorted by bytes (COLLATE "C"), so that the same database gives the same order on every
 * server. */
static pith_status postgres_list(pith__source_table **tables, size_t *count,
                                 pith__table_source *source, pith_error *err) {
    pith__text_table t;
    PITH_TRY(postgres_read_rows(
        &t, source,
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
        "n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND NOT c.relispartition "
        "ORDER BY c.relname COLLATE \"C\"",
        NULL, source->path, err));
    pith__source_table *list = pith__arena_array(source->arena, t.rows + 1, sizeof *list);
    if (!list) return pith__fail_memory(err, t.rows * sizeof *list);
    if (!t.rows)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "%s: the current schema holds no table; search_path names it",
                          source->path);
    for (size_t i = 0; i < t.rows; i++) {
        list[i].name = list[i].file = t.cells[i];
        PITH_TRY(postgres_columns(&list[i], source, err));
        PITH_TRY(postgres_links(&list[i], source, err));
    }
    *tables = list;
    *count = t.rows;
    return PITH_OK;
}

/* Rows come in the order of their primary key, or without one as they lie on the disk. */
static pith_status postgres_read(pith__text_table *table, pith__table_source *source, pith_str file,
                                 pith_error *err) {
    pith__source_table about = { .name = file };
    const pith_str quoted = pith__source_quoted(source->arena, file);
    const pith_str path = pith__arena_printf(source->arena, "%s, table " PITH_STR_FMT, source->path,
                                             PITH_STR_ARG(file));
    pith_str order = PITH_STR("tableoid, ctid");
    PITH_TRY(postgres_columns(&about, source, err));
    if (!about.columns.count)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "%s has no table '" PITH_STR_FMT "'",
                          source->path, PITH_STR_ARG(file));
    for (size_t i = 0; order.data && i < about.primary_key.count; i++) {
        const pith_str name = pith__source_quoted(source->arena, about.primary_key.items[i]);
        if (!name.data) return pith__fail_memory(err, 64);
        order = i ? pith__arena_printf(source->arena, "%s, %s", order.data, name.data) : name;
    }
    if (!quoted.data || !path.data || !order.data) return pith__fail_memory(err, file.size);
    const pith_str sql =
        pith__arena_printf(source->arena, "SELECT * FROM %s ORDER BY %s", quoted.data, order.data);
    if (!sql.data) return pith__fail_memory(err, file.size);
    return postgres_read_rows(table, source, sql.data, NULL, path.data, err);
}

/* The protocol takes one statement alone, and the transaction cannot write. */
static pith_status postgres_select(pith__text_table *result, pith__table_source *source,
                                   const char *sql, const char *path, pith_error *err) {
    return postgres_read_rows(result, source, sql, NULL, path, err);
}

const pith__source_kind pith__source_kind_postgres = { .takes = postgres_takes,
                                                       .open = postgres_open,
                                                       .list = postgres_list,
                                                       .read = postgres_read,
                                                       .query = postgres_select,
                                                       .close = postgres_close };

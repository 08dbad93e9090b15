/* sqlite_guard.c - see sqlite_guard.h. */
#include "tables/sources/sqlite_guard.h"

#include <strings.h>
#include <time.h>

#include "base/error.h"
#include "base/str.h"

enum { GUARD_STEPS = 10000, GUARD_SECONDS = 60 };
static const int64_t guard_heap = (int64_t)2 << 30;

/* Sorted. Functions of JSON are told by their beginning. */
static const char *const guard_functions[] = {
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "ceil",
    "ceiling",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "if",
    "ifnull",
    "iif",
    "instr",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "max",
    "median",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "soundex",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "subtype",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unixepoch",
    "unlikely",
    "upper",
};

static bool guard_harmless(const char *name) {
    if (!strncasecmp(name, "json", 4) || !strcmp(name, "->") || !strcmp(name, "->>")) return true;
    for (size_t i = 0; i < sizeof guard_functions / sizeof *guard_functions; i++)
        if (!strcasecmp(name, guard_functions[i])) return true;
    return false;
}

static int guard_function(void *user, int action, const char *a, const char *b,
                          const char *database, const char *inner) {
    (void)user, (void)a, (void)database, (void)inner;
    return action != SQLITE_FUNCTION || guard_harmless(b) ? SQLITE_OK : SQLITE_DENY;
}

/* A name in small letters, as the maps have them. */
static bool guard_known(const pith__map *names, const char *name) {
    char small[256];
    size_t n = 0;
    for (; name[n] && n < sizeof small; n++)
        small[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] + 32 : name[n]);
    return n < sizeof small && pith__map_get(names, (pith_str){ small, n }) != UINT32_MAX;
}

/* A table of which no column is read may also be the name of a WITH; then it is no virtual table's.
 */
static int guard_query(void *user, int action, const char *a, const char *b, const char *database,
                       const char *inner) {
    const pith__sqlite_guard *g = user;
    (void)database, (void)inner;
    if (action == SQLITE_SELECT || action == SQLITE_RECURSIVE) return SQLITE_OK;
    if (action == SQLITE_FUNCTION) return guard_harmless(b) ? SQLITE_OK : SQLITE_DENY;
    if (action != SQLITE_READ) return SQLITE_DENY;
    if (guard_known(&g->tables, a)) return SQLITE_OK;
    return b && !*b && !guard_known(&g->modules, a) && strncasecmp(a, "sqlite_", 7) != 0
               ? SQLITE_OK
               : SQLITE_DENY;
}

static double guard_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int guard_late(void *user) {
    const pith__sqlite_guard *g = user;
    return guard_now() > g->deadline || pith__stop_asked(g->stop);
}

void pith__sqlite_protect(const pith__sqlite *s, sqlite3 *db) {
    static const int settings[][2] = {
        { SQLITE_DBCONFIG_ENABLE_FKEY, 0 },
        { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
        { SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0 },
        { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
    };
    static const int limits[][2] = {
        { SQLITE_LIMIT_LENGTH, 1 << 28 },           { SQLITE_LIMIT_SQL_LENGTH, 1000000 },
        { SQLITE_LIMIT_EXPR_DEPTH, 200 },           { SQLITE_LIMIT_COMPOUND_SELECT, 100 },
        { SQLITE_LIMIT_VDBE_OP, 1000000 },          { SQLITE_LIMIT_ATTACHED, 0 },
        { SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000 }, { SQLITE_LIMIT_TRIGGER_DEPTH, 10 },
        { SQLITE_LIMIT_WORKER_THREADS, 0 },
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        s->db_config(db, settings[i][0], settings[i][1], NULL);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        s->limit(db, limits[i][0], limits[i][1]);
    s->set_authorizer(db, guard_function, NULL);
}

/* The first column of a query of ours as a set. */
static pith_status guard_names(pith__map *names, const pith__sqlite_guard *g, const char *sql,
                               const char *path, pith__arena *arena, pith_error *err) {
    pith__text_table t;
    PITH_TRY(pith__map_init(names, arena, 16));
    PITH_TRY(pith__sqlite_table(&t, g->sqlite, g->db, sql, NULL, 0, SIZE_MAX, path, g->stop, arena,
                                err));
    for (size_t r = 0; r < t.rows; r++)
        if (!pith__map_put(names, t.cells[r], (uint32_t)r, NULL)) return pith__fail_memory(err, 64);
    return PITH_OK;
}

static pith_status guard_bytes(uint64_t *bytes, const pith__sqlite *s, sqlite3 *db,
                               const char *path, pith__arena *arena, pith_error *err) {
    pith__text_table size;
    *bytes = 0;
    PITH_TRY(pith__sqlite_table(
        &size, s, db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
        NULL, 0, SIZE_MAX, path, NULL, arena, err));
    if (size.rows)
        for (size_t i = 0; i < size.cells[0].size; i++)
            *bytes = *bytes * 10 + (uint64_t)(size.cells[0].data[i] - '0');
    return PITH_OK;
}

pith_status pith__sqlite_most(size_t *most, const pith__sqlite *s, sqlite3 *db, const char *path,
                              pith__arena *arena, pith_error *err) {
    uint64_t bytes;
    PITH_TRY(guard_bytes(&bytes, s, db, path, arena, err));
    *most = ((size_t)1 << 30) + 64 * (size_t)(bytes < SIZE_MAX / 128 ? bytes : SIZE_MAX / 128);
    return PITH_OK;
}

/* A query may read the tables and views of the file and call harmless functions, for a time that
 * grows with the size of the file and with bounded memory. The names are read before the authorizer
 * is set, which would refuse these look-ups. */
pith_status pith__sqlite_guard_begin(pith__sqlite_guard *g, const pith__sqlite *s, sqlite3 *db,
                                     const char *path, pith__stop *stop, pith__arena *arena,
                                     pith_error *err) {
    uint64_t bytes;
    *g = (pith__sqlite_guard){ .sqlite = s, .db = db, .stop = stop };
    PITH_TRY(guard_names(&g->tables, g,
                         "SELECT lower(name) FROM pragma_table_list WHERE schema = 'main' AND type "
                         "IN ('table', 'view') "
                         "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' UNION SELECT 'json_each' "
                         "UNION SELECT 'json_tree'",
                         path, arena, err));
    PITH_TRY(guard_names(&g->modules, g, "SELECT lower(name) FROM pragma_module_list", path, arena,
                         err));
    PITH_TRY(guard_bytes(&bytes, s, db, path, arena, err));
    g->deadline = guard_now() + GUARD_SECONDS + (double)bytes / 1e6;
    /* Their tables are declared at first use, which a query may not. */
    s->exec(db, "SELECT 1 FROM json_each('[]'), json_tree('[]')", NULL, NULL, NULL);
    g->heap = s->hard_heap_limit64(-1);
    if (!g->heap || g->heap > guard_heap) s->hard_heap_limit64(guard_heap);
    s->set_authorizer(db, guard_query, g);
    s->progress_handler(db, GUARD_STEPS, guard_late, g);
    return PITH_OK;
}

void pith__sqlite_guard_end(pith__sqlite_guard *g) {
    pith__sqlite_watch(g->sqlite, g->db, g->stop);
    g->sqlite->set_authorizer(g->db, guard_function, NULL);
    g->sqlite->hard_heap_limit64(g->heap);
}

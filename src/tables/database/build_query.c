/* build_query.c - questions that SQL asks: a query gives a row for each question, with the columns
 * anchor (the primary key of a row of the anchor table), time, target and perhaps known_at. A
 * source that is a database answers it itself; the tables of other sources are copied into a
 * temporary SQLite database. */
#include <limits.h>

#include "base/error.h"
#include "base/str.h"
#include "tables/database/build_database.h"
#include "tables/sources/sqlite_guard.h"

/* ---- the temporary database ---- */

/* Keys that are whole numbers without leading zeros, all of them, may be compared as numbers. */
static bool query_whole(const pith__text_table *t, size_t at) {
    for (size_t r = 0; r < t->rows; r++) {
        pith_str cell = t->cells[r * t->columns + at];
        if (!cell.size) continue;
        if (cell.data[0] == '-') cell = (pith_str){ cell.data + 1, cell.size - 1 };
        if (!cell.size || cell.size > 18 || (cell.data[0] == '0' && cell.size > 1)) return false;
        for (size_t i = 0; i < cell.size; i++)
            if (cell.data[i] < '0' || cell.data[i] > '9') return false;
    }
    return true;
}

static const char *query_type(const pith__column_schema *c, const pith__text_table *t, size_t at) {
    switch (c->stype) {
    case PITH_STYPE_NUMERICAL: return "NUMERIC";
    case PITH_STYPE_BOOLEAN: return "INTEGER";
    case PITH_STYPE_IDENTIFIER: return query_whole(t, at) ? "INTEGER" : "TEXT";
    default: return "TEXT";
    }
}

/* Where the columns of the schema are in the file; build_columns has found all of them. */
static size_t *query_places(pith__arena *arena, const pith__text_table *t,
                            const pith__table_schema *schema) {
    size_t *places = pith__arena_array(arena, schema->column_count + 1, sizeof *places);
    if (!places) return NULL;
    for (size_t i = 0; i < schema->column_count; i++)
        while (places[i] + 1 < t->columns &&
               !pith__str_eq(t->names[places[i]], schema->columns[i].name))
            places[i]++;
    return places;
}

static int query_bind(const pith__sqlite *s, sqlite3_stmt *statement, int at,
                      const pith__column_schema *c, pith__time_format format, pith_str cell) {
    char text[PITH_TIME_CHARS];
    int64_t time;
    bool yes;
    const bool typed = c->stype == PITH_STYPE_NUMERICAL || c->stype == PITH_STYPE_TIMESTAMP ||
                       c->stype == PITH_STYPE_BOOLEAN;
    if (typed ? pith__cell_is_null(cell) : !cell.size) return s->bind_null(statement, at);
    if (cell.size > INT_MAX) return SQLITE_TOOBIG;
    if (c->stype == PITH_STYPE_BOOLEAN && pith__cell_boolean(&yes, cell))
        return s->bind_int64(statement, at, yes);
    if (c->stype == PITH_STYPE_TIMESTAMP && pith__time_parse(&time, cell, format)) {
        pith__time_print(text, time, ' ');
        return s->bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
    }
    return s->bind_text(statement, at, cell.data, (int)cell.size, NULL);
}

static pith_status query_rows(pith__build *b, const pith__sqlite *s, sqlite3_stmt *statement,
                              const pith__table_schema *schema, const pith__text_table *t,
                              const size_t *places, pith_error *err) {
    pith__time_format *formats =
        pith__arena_array(PITH_BUILD_ARENA(b), schema->column_count + 1, sizeof *formats);
    if (!formats) return pith__fail_memory(err, schema->column_count * sizeof *formats);
    for (size_t i = 0; i < schema->column_count; i++) {
        formats[i] = schema->columns[i].format;
        if (schema->columns[i].stype == PITH_STYPE_TIMESTAMP && !formats[i])
            PITH_TRY(
                pith__build_format(&formats[i], b, schema->columns[i].name, t, places[i], err));
    }
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        int code = 0;
        for (size_t i = 0; i < schema->column_count && !code; i++)
            code = query_bind(s, statement, (int)i + 1, &schema->columns[i], formats[i],
                              t->cells[r * t->columns + places[i]]);
        if (!code) code = s->step(statement);
        if (code == SQLITE_DONE) code = s->reset(statement);
        if (code)
            return pith__fail(err, PITH_ERR_RUN,
                              "%s: row %zu does not go into the temporary database of queries: %s",
                              t->path, r + 1, s->errmsg(b->queries));
    }
    return PITH_OK;
}

/* "(a, b, c)" of names or of anything else. */
typedef struct query_text {
    pith__arena *arena;
    pith_str text;
} query_text;

static void query_add(query_text *q, const char *before, pith_str name, const char *behind) {
    const pith_str quoted = pith__source_quoted(q->arena, name);
    if (!q->text.data || !quoted.data)
        q->text.data = NULL;
    else
        q->text =
            pith__arena_printf(q->arena, "%s%s%s%s", q->text.data, before, quoted.data, behind);
}

static pith_status query_execute(pith__build *b, const pith__sqlite *s, pith_str sql,
                                 pith_error *err) {
    if (!sql.data) return pith__fail_memory(err, 64);
    if (!s->exec(b->queries, sql.data, NULL, NULL, NULL)) return PITH_OK;
    return pith__fail(err, PITH_ERR_RUN, "the temporary database of queries: %s",
                      s->errmsg(b->queries));
}

/* An index on some columns, so that joins by keys are fast. */
static pith_status query_index(pith__build *b, const pith__sqlite *s, pith_str table,
                               const pith__name_list *names, pith_error *err) {
    query_text q = { PITH_BUILD_ARENA(b),
                     pith__arena_printf(PITH_BUILD_ARENA(b), "CREATE INDEX pith_index_%zu ON ",
                                        b->query_indices++) };
    if (!names->count) return PITH_OK;
    query_add(&q, "", table, "");
    for (size_t i = 0; i < names->count; i++) query_add(&q, i ? ", " : "(", names->items[i], "");
    if (q.text.data) q.text = pith__arena_printf(q.arena, "%s)", q.text.data);
    return query_execute(b, s, q.text, err);
}

static pith_status query_table(pith__build *b, const pith__sqlite *s, size_t at, pith_error *err) {
    const pith__table_schema *schema = &b->schema->tables[at];
    const pith__text_table *t = &b->texts[at];
    pith__arena *arena = PITH_BUILD_ARENA(b);
    const size_t *places = query_places(arena, t, schema);
    query_text make = { arena, PITH_STR("CREATE TABLE ") },
               fill = { arena, PITH_STR("INSERT INTO ") };
    sqlite3_stmt *statement;
    if (!places) return pith__fail_memory(err, schema->column_count * sizeof *places);
    if (!schema->column_count) return PITH_OK;
    query_add(&make, "", schema->name, "");
    query_add(&fill, "", schema->name, "");
    for (size_t i = 0; i < schema->column_count; i++) {
        query_add(&make, i ? ", " : "(", schema->columns[i].name, " ");
        if (make.text.data)
            make.text = pith__arena_printf(arena, "%s%s", make.text.data,
                                           query_type(&schema->columns[i], t, places[i]));
        if (fill.text.data)
            fill.text = pith__arena_printf(arena, "%s%s", fill.text.data, i ? ", ?" : " VALUES(?");
    }
    if (make.text.data) make.text = pith__arena_printf(arena, "%s)", make.text.data);
    if (fill.text.data) fill.text = pith__arena_printf(arena, "%s)", fill.text.data);
    PITH_TRY(query_execute(b, s, make.text, err));
    if (!fill.text.data) return pith__fail_memory(err, 64);
    PITH_TRY(
        pith__sqlite_prepare(&statement, s, b->queries, fill.text.data, NULL, 0, t->path, err));
    const pith_status status = query_rows(b, s, statement, schema, t, places, err);
    s->finalize(statement);
    PITH_TRY(status);
    PITH_TRY(query_index(b, s, schema->name, &schema->primary_key, err));
    for (size_t i = 0; i < schema->link_count; i++)
        PITH_TRY(query_index(b, s, schema->name, &schema->links[i].columns, err));
    return PITH_OK;
}

/* An empty path is a database of SQLite's own in a file that is gone with it. */
static pith_status query_database(pith__build *b, const pith__sqlite *s, pith_error *err) {
    if (b->queries) return PITH_OK;
    if (s->open_v2("", &b->queries, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL))
        return pith__fail(err, PITH_ERR_RUN, "the temporary database of queries cannot be made: %s",
                          b->queries ? s->errmsg(b->queries) : "out of memory");
    pith__sqlite_watch(s, b->queries, b->work->stop);
    PITH_TRY(query_execute(b, s, PITH_STR("PRAGMA journal_mode = OFF; BEGIN"), err));
    for (size_t i = 0; i < b->schema->table_count; i++) PITH_TRY(query_table(b, s, i, err));
    PITH_TRY(query_execute(b, s, PITH_STR("COMMIT; PRAGMA query_only = ON"), err));
    pith__sqlite_protect(s, b->queries);
    return PITH_OK;
}

void pith__build_queries_close(pith__build *b) {
    const pith__sqlite *s;
    if (b->queries && !pith__sqlite_load(&s, "a query", NULL)) s->close(b->queries);
    b->queries = NULL;
}

/* ---- the result ---- */

static pith_status query_ask(pith__text_table *result, pith__build *b,
                             const pith__task_schema *task, pith_error *err) {
    const pith_str path =
        pith__arena_printf(PITH_BUILD_ARENA(b), "%s: the query of task '" PITH_STR_FMT "'",
                           b->schema_path, PITH_STR_ARG(task->name));
    const pith_str sql = pith__arena_str(PITH_BUILD_ARENA(b), task->query);
    const pith__sqlite *s;
    if (!path.data || !sql.data) return pith__fail_memory(err, task->query.size);
    if (b->source.kind->query)
        return b->source.kind->query(result, &b->source, sql.data, path.data, err);
    PITH_TRY(pith__sqlite_load(&s, path.data, err));
    PITH_TRY(query_database(b, s, err));
    return pith__sqlite_select(result, s, b->queries, sql.data, path.data, b->work->stop,
                               PITH_BUILD_ARENA(b), err);
}

/* Columns of the result, in the order in which they are looked for. */
enum { QUERY_ANCHOR, QUERY_TIME, QUERY_TARGET, QUERY_KNOWN, QUERY_COLUMNS };

static pith_status query_columns(size_t *places, const pith__text_table *t, pith_error *err) {
    static const char *const names[QUERY_COLUMNS] = { "anchor", "time", "target", "known_at" };
    for (int k = 0; k < QUERY_COLUMNS; k++) places[k] = SIZE_MAX;
    for (size_t c = 0; c < t->columns; c++) {
        int k = 0;
        while (k < QUERY_COLUMNS && !pith__str_is(t->names[c], names[k])) k++;
        if (k == QUERY_COLUMNS)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s gives a column '" PITH_STR_FMT
                              "'; it gives anchor, time, target and perhaps known_at",
                              t->path, PITH_STR_ARG(t->names[c]));
        places[k] = c;
    }
    for (int k = 0; k < QUERY_KNOWN; k++)
        if (places[k] == SIZE_MAX)
            return pith__fail(err, PITH_ERR_FORMAT, "%s gives no column '%s'", t->path, names[k]);
    return PITH_OK;
}

/* The anchor rows: keys as the anchor table has them, or without a primary key the numbers of its
 * rows. */
static pith_status query_anchors(uint32_t *up, pith__build *b, uint32_t anchor,
                                 const pith__text_table *t, size_t at, pith_error *err) {
    const pith__map *keys = &b->keys[anchor];
    for (size_t r = 0; r < t->rows; r++) {
        const pith_str cell = t->cells[r * t->columns + at];
        double number;
        PITH_TRY_ROW(b->work->stop, r, err);
        up[r] = PITH_RDB_NONE;
        if (keys->slots)
            up[r] = pith__map_get(keys, cell);
        else if (pith__cell_number(&number, cell) && number >= 0 &&
                 number < b->rdb->tables[anchor].rows)
            up[r] = (uint32_t)number;
        if (up[r] == PITH_RDB_NONE)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: row %zu, column 'anchor': '" PITH_STR_FMT
                              "' is no row of table '" PITH_STR_FMT "'",
                              t->path, r + 1, PITH_STR_ARG(cell),
                              PITH_STR_ARG(b->rdb->tables[anchor].name));
    }
    return PITH_OK;
}

static pith_status query_fill(pith__build *b, pith__rdb_table *t, const pith__task_schema *from,
                              const pith__text_table *result, const size_t *places,
                              pith_error *err) {
    PITH_TRY(pith__build_made_column(b, t, 0, "asked_at", PITH_STYPE_TIMESTAMP, err));
    PITH_TRY(pith__build_made_column(b, t, 1, "target", from->target_stype, err));
    if (places[QUERY_KNOWN] != SIZE_MAX) PITH_TRY(pith__build_made_known(b, t, err));
    for (uint32_t c = 0; c < t->column_count; c++)
        PITH_TRY(pith__build_cells(b, &t->columns[c], PITH_TIME_AUTO, result,
                                   places[QUERY_TIME + c], err));
    const int64_t *times = t->columns[0].data;
    for (uint32_t r = 0; r < t->rows; r++)
        if (times[r] == PITH_TIME_NULL)
            return pith__fail(err, PITH_ERR_FORMAT, "%s: row %u, column 'time': it is null",
                              result->path, r + 1);
    if (t->column_count == 2) t->columns[1].known_column = PITH_KNOWN_ROW_TIME;
    t->columns[1].known_delay = from->delay;
    if (t->column_count > 2 || from->delayed) return PITH_OK;
    return pith__build_warn(
        b, err,
        "task '" PITH_STR_FMT
        "' has neither a known_at nor known_delay_seconds: its targets are treated as "
        "known from the time when they are asked for",
        PITH_STR_ARG(from->name));
}

pith_status pith__build_query(pith__build *b, pith__rdb_task *task, const pith__task_schema *from,
                              pith_error *err) {
    const uint32_t anchor = (uint32_t)pith__schema_table(b->schema, from->anchor_table),
                   index = b->rdb->table_count;
    pith__rdb_table *t = &b->rdb->tables[index];
    pith__text_table result;
    size_t places[QUERY_COLUMNS];
    if (b->schema->tables[anchor].primary_key.count > 1)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: task '" PITH_STR_FMT
                          "': rows with a key of several columns cannot be a query's anchor",
                          b->schema_path, PITH_STR_ARG(from->name));
    PITH_TRY(query_ask(&result, b, from, err));
    PITH_TRY(query_columns(places, &result, err));
    *t = (pith__rdb_table){ .name = from->name, .rows = (uint32_t)result.rows, .time_column = 0 };
    t->column_count = places[QUERY_KNOWN] == SIZE_MAX ? 2 : 3;
    t->columns = pith__arena_array(PITH_BUILD_ARENA(b), 3, sizeof *t->columns);
    uint32_t *up = pith__arena_array(PITH_BUILD_ARENA(b), result.rows + 1, sizeof *up);
    if (!t->columns || !up) return pith__fail_memory(err, result.rows * sizeof *up);
    PITH_TRY(query_anchors(up, b, anchor, &result, places[QUERY_ANCHOR], err));
    PITH_TRY(query_fill(b, t, from, &result, places, err));
    return pith__build_made_table(b, task, from->name, anchor, up, err);
}

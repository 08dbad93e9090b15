/* source_sqlite.c - the tables of an SQLite file, with the keys that it declares. It is opened
 * read-only, and all of it is read in one transaction. Views and virtual tables are left out. */
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "tables/sources/table_source.h"
#include "tables/sources/sqlite_guard.h"

typedef struct sqlite_file {
    const pith__sqlite *s;
    sqlite3 *db;
    size_t most; /* bytes of rows as text */
} sqlite_file;

static bool sqlite_takes(const char *path) {
    return pith__source_begins(path, "SQLite format 3", 16);
}

/* Opens the file read-only, in one transaction: all tables are seen in one state even while another
 * program writes. */
static pith_status sqlite_open(pith__table_source *source, pith_error *err) {
    sqlite_file *f = pith__arena_array(source->arena, 1, sizeof *f);
    if (!f) return pith__fail_memory(err, sizeof *f);
    PITH_TRY(pith__sqlite_load(&f->s, source->path, err));
    /* Functions and tables that a hostile schema names are not trusted. */
    if (f->s->open_v2(source->path, &f->db, SQLITE_OPEN_READONLY, NULL) ||
        f->s->exec(f->db,
                   "PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA cell_size_check = "
                   "ON; BEGIN",
                   NULL, NULL, NULL)) {
        const pith_status status = pith__fail(err, PITH_ERR_FORMAT, "%s: %s", source->path,
                                              f->db ? f->s->errmsg(f->db) : "out of memory");
        f->s->close(f->db);
        return status;
    }
    pith__sqlite_protect(f->s, f->db);
    pith__sqlite_watch(f->s, f->db, source->stop);
    source->state = f;
    const pith_status status =
        pith__sqlite_most(&f->most, f->s, f->db, source->path, source->arena, err);
    if (status) f->s->close(f->db);
    return status;
}

static void sqlite_close(pith__table_source *source) {
    const sqlite_file *f = source->state;
    f->s->close(f->db);
}

static pith_status sqlite_query(pith__text_table *t, pith__table_source *source, const char *sql,
                                const pith_str *name, pith_error *err) {
    const sqlite_file *f = source->state;
    return pith__sqlite_table(t, f->s, f->db, sql, name, name ? 1 : 0, f->most, source->path,
                              source->stop, source->arena, err);
}

static bool sqlite_says(pith_str type, const char *word) {
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= type.size; i++) {
        size_t k = 0;
        while (k < n && (type.data[i + k] & ~32) == word[k]) k++;
        if (k == n) return true;
    }
    return false;
}

/* Source of the words: https://www.sqlite.org/datatype3.html, section 3.1. */
static pith__declared sqlite_declared(pith_str type) {
    if (sqlite_says(type, "BOOL")) return PITH_DECLARED_BOOLEAN;
    return sqlite_says(type, "CHAR") || sqlite_says(type, "CLOB") || sqlite_says(type, "TEXT")
               ? PITH_DECLARED_TEXT
               : PITH_DECLARED_NOTHING;
}

/* The types of the columns, and the primary key. */
static pith_status sqlite_columns(pith__source_table *to, pith__table_source *source,
                                  pith_error *err) {
    pith__text_table t;
    PITH_TRY(sqlite_query(
        &t, source,
        "SELECT name, coalesce(type, '') AS type, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 "
        "ORDER BY cid",
        &to->name, err));
    return pith__source_take_columns(to, &t, sqlite_declared, source->arena, err);
}

/* Names of tables and columns are the same in any case. */
static bool sqlite_same(pith_str a, pith_str b) {
    return a.size == b.size && !strncasecmp(a.data, b.data, a.size);
}

/* A column as its table spells it. */
static pith_str sqlite_spelling(const pith__source_table *t, pith_str name) {
    for (size_t i = 0; i < t->columns.count; i++)
        if (sqlite_same(t->columns.items[i], name)) return t->columns.items[i];
    return name;
}

/* The foreign keys; one that names no columns of the parent means its primary key. */
static pith_status sqlite_links(pith__source_table *tables, size_t count, size_t at,
                                pith__table_source *source, pith_error *err) {
    pith__source_table *to = &tables[at];
    pith__text_table t;
    PITH_TRY(sqlite_query(
        &t, source,
        "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?) ORDER BY id, seq",
        &to->name, err));
    for (size_t r = 0; r < t.rows; r++) {
        const pith_str *row = &t.cells[r * 4];
        pith__link_schema *link;
        PITH_TRY(pith__source_take_link(&link, to, &t, r, source->arena, err));
        const pith__source_table *parent = NULL;
        for (size_t i = 0; i < count; i++)
            if (sqlite_same(tables[i].name, row[1])) parent = &tables[i];
        pith_str up = row[3];
        if (!up.size && parent && link->columns.count < parent->primary_key.count)
            up = parent->primary_key.items[link->columns.count];
        if (parent) link->parent = parent->name;
        link->columns.items[link->columns.count++] = sqlite_spelling(to, row[2]);
        if (up.size && parent)
            link->parent_columns.items[link->parent_columns.count++] = sqlite_spelling(parent, up);
    }
    return PITH_OK;
}

/* Links are read after all tables, because a foreign key may name a table that comes later. */
static pith_status sqlite_list(pith__source_table **tables, size_t *count,
                               pith__table_source *source, pith_error *err) {
    pith__text_table t;
    PITH_TRY(sqlite_query(
        &t, source,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT "
        "LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
        NULL, err));
    pith__source_table *list = pith__arena_array(source->arena, t.rows + 1, sizeof *list);
    if (!list) return pith__fail_memory(err, t.rows * sizeof *list);
    if (!t.rows) return pith__fail(err, PITH_ERR_NOT_FOUND, "%s holds no table", source->path);
    for (size_t i = 0; i < t.rows; i++) {
        list[i].name = list[i].file = t.cells[i];
        PITH_TRY(sqlite_columns(&list[i], source, err));
    }
    for (size_t i = 0; i < t.rows; i++) PITH_TRY(sqlite_links(list, t.rows, i, source, err));
    *tables = list;
    *count = t.rows;
    return PITH_OK;
}

/* Rows come in the order of their rowid, or without one of their primary key, so that the file
 * decides the bytes. */
static pith_status sqlite_read(pith__text_table *table, pith__table_source *source, pith_str file,
                               pith_error *err) {
    const sqlite_file *f = source->state;
    pith__text_table found;
    PITH_TRY(sqlite_query(
        &found, source,
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND "
        "name = ? AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        &file, err));
    if (!found.rows)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "%s has no table '" PITH_STR_FMT "'",
                          source->path, PITH_STR_ARG(file));
    pith__source_table keys = { .name = file };
    const bool rowid = !pith__str_is(found.cells[1], "1");
    PITH_TRY(sqlite_columns(&keys, source, err));
    const pith_str quoted = pith__source_quoted(source->arena, file);
    const pith_str path = pith__arena_printf(source->arena, "%s, table " PITH_STR_FMT, source->path,
                                             PITH_STR_ARG(file));
    pith_str order = PITH_STR("rowid");
    if (!rowid)
        for (size_t i = 0; order.data && i < keys.primary_key.count; i++) {
            const pith_str name = pith__source_quoted(source->arena, keys.primary_key.items[i]);
            if (!name.data || !order.data) return pith__fail_memory(err, 64);
            order = i ? pith__arena_printf(source->arena, "%s, %s", order.data, name.data) : name;
        }
    if (!quoted.data || !path.data || !order.data) return pith__fail_memory(err, file.size);
    const pith_str sql =
        pith__arena_printf(source->arena, "SELECT * FROM %s ORDER BY %s", quoted.data, order.data);
    if (!sql.data) return pith__fail_memory(err, file.size);
    return pith__sqlite_table(table, f->s, f->db, sql.data, NULL, 0, f->most, path.data,
                              source->stop, source->arena, err);
}

static pith_status sqlite_select(pith__text_table *result, pith__table_source *source,
                                 const char *sql, const char *path, pith_error *err) {
    const sqlite_file *f = source->state;
    return pith__sqlite_select(result, f->s, f->db, sql, path, source->stop, source->arena, err);
}

const pith__source_kind pith__source_kind_sqlite = { .takes = sqlite_takes,
                                                     .open = sqlite_open,
                                                     .list = sqlite_list,
                                                     .read = sqlite_read,
                                                     .query = sqlite_select,
                                                     .close = sqlite_close };

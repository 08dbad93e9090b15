/* schema_draft.c - a first schema: what the source declares, the rest guessed from the cells.
 *
 * A kind is what all cells of a column allow. A primary key is unique and is named like one, or
 * stands first. A foreign key holds keys of another table, and is named like that table's key;
 * texts need no such name. A draft is for people to check: it favours what they can see at once to
 * be wrong. */
#include <stdlib.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "tables/database/build_database.h"

/* A column of fewer different texts than this, or of which there is one for so many rows, is a
 * category. */
enum { DRAFT_CATEGORIES = 50, DRAFT_ROWS_EACH = 20 };

/* What all cells of a column are. */
typedef struct draft_column {
    bool number, whole, time, boolean, named_boolean, words; /* words: some cell holds a space */
    unsigned formats;                                        /* of times, that read all cells */
    size_t filled, distinct;
    pith__map values;
} draft_column;

typedef struct draft_table {
    const pith__source_table *source;
    pith__text_table text;
    draft_column *columns;
    size_t key; /* SIZE_MAX: none */
} draft_table;

static pith_status draft_look(draft_column *c, const pith__text_table *t, size_t at,
                              pith__stop *stop, pith__arena *arena, pith_error *err) {
    *c = (draft_column){ .number = true, .whole = true, .boolean = true, .formats = PITH_TIME_ANY };
    PITH_TRY(pith__map_init(&c->values, arena, 64));
    for (size_t r = 0; r < t->rows; r++) {
        const pith_str cell = t->cells[r * t->columns + at];
        uint32_t old;
        double number;
        bool yes;
        PITH_TRY_ROW(stop, r, err);
        if (!cell.size) continue;
        c->filled++;
        if (!pith__map_put(&c->values, cell, (uint32_t)r, &old))
            return pith__fail_memory(err, cell.size);
        if (old != UINT32_MAX) continue;
        c->distinct++;
        c->words |= memchr(cell.data, ' ', cell.size) != NULL;
        if (pith__cell_is_null(cell)) continue;
        c->number = c->number && pith__cell_number(&number, cell);
        c->whole = c->whole && c->number && !memchr(cell.data, '.', cell.size) &&
                   !memchr(cell.data, 'e', cell.size);
        c->formats = c->formats ? pith__time_formats(c->formats, cell) : 0;
        c->time = c->formats;
        c->boolean = c->boolean && c->distinct <= 2 && pith__cell_boolean(&yes, cell);
        c->named_boolean = c->boolean && !c->number;
    }
    return PITH_OK;
}

/* Whether numbers that could be times are. Those without such a name stand behind the first column,
 * and are not named like keys and codes. */
static bool draft_names_time(pith_str name, size_t at) {
    static const char *const times[] = { "time",  "date",  "_at",  "_on",    "_ts",
                                         "epoch", "stamp", "when", "created" };
    static const char *const others[] = { "id",   "key",   "no",  "num", "number",
                                          "code", "phone", "ref", "nr",  "zip" };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        for (size_t k = 0, n = strlen(times[i]); k + n <= name.size; k++)
            if (!strncasecmp(name.data + k, times[i], n)) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const size_t n = strlen(others[i]);
        if (name.size >= n && !strncasecmp(name.data + name.size - n, others[i], n)) return false;
    }
    return at > 0;
}

static pith__stype draft_stype(const draft_column *c, pith__declared declared) {
    if (!c->filled) return PITH_STYPE_IGNORED;
    if (c->boolean && (c->distinct == 2 || declared == PITH_DECLARED_BOOLEAN))
        return PITH_STYPE_BOOLEAN;
    if (c->named_boolean) return PITH_STYPE_BOOLEAN;
    if (c->time) return PITH_STYPE_TIMESTAMP;
    if (c->number && declared != PITH_DECLARED_TEXT) return PITH_STYPE_NUMERICAL;
    if (c->distinct <= DRAFT_CATEGORIES || c->distinct * DRAFT_ROWS_EACH <= c->filled)
        return PITH_STYPE_CATEGORICAL;
    return c->words || c->distinct < c->filled ? PITH_STYPE_TEXT : PITH_STYPE_IDENTIFIER;
}

static bool draft_same(const char *a, size_t n, pith_str b) {
    return n == b.size && !strncasecmp(a, b.data, n);
}

/* "id", or the table's name or its singular with "id" behind it: customer_id or customerId of
 * customers. */
static bool draft_names_key(pith_str column, pith_str table) {
    size_t n = column.size;
    if (n == 2 && !strncasecmp(column.data, "id", 2)) return true;
    if (n <= 2 || strncasecmp(column.data + n - 2, "id", 2) != 0) return false;
    n -= 2;
    if (n && column.data[n - 1] == '_') n--;
    if (draft_same(column.data, n, table)) return true;
    if (table.size > 1 && (table.data[table.size - 1] | 32) == 's') table.size--;
    return draft_same(column.data, n, table);
}

static bool draft_unique(const draft_table *t, size_t c) {
    return t->text.rows && t->columns[c].filled == t->text.rows &&
           t->columns[c].distinct == t->text.rows;
}

static void draft_key(draft_table *t, pith_str name) {
    t->key = SIZE_MAX;
    for (size_t c = t->text.columns; c-- > 0;)
        if (draft_unique(t, c) && draft_names_key(t->text.names[c], name)) t->key = c;
    const draft_column *first = &t->columns[0];
    if (t->key == SIZE_MAX && draft_unique(t, 0) &&
        !pith__str_is(t->text.names[0], PITH_CSV_UNNAMED) && !first->words && !first->time &&
        (first->whole || !first->number))
        t->key = 0;
}

/* True if the column can be a foreign key of the parent. Without meaning if the call must end. */
static bool draft_refers(const draft_table *t, size_t c, const draft_table *parent,
                         pith_str parent_name, pith__stop *stop) {
    const draft_column *from = &t->columns[c];
    const pith_str name = t->text.names[c];
    size_t found = 0;
    if (parent->key == SIZE_MAX || !from->filled || from->time || from->boolean) return false;
    const draft_column *to = &parent->columns[parent->key];
    const bool named = draft_same(name.data, name.size, parent->text.names[parent->key])
                           ? name.size != 2
                           : name.size > 2 && draft_names_key(name, parent_name);
    if (!named && (from->number || to->number || from->distinct < 2)) return false;
    for (size_t r = 0; r < t->text.rows; r++) {
        if (pith__row_stops(stop, r)) return false;
        const pith_str cell = t->text.cells[r * t->text.columns + c];
        found += cell.size && pith__key_find(&to->values, cell) != UINT32_MAX;
    }
    return named ? found * 2 >= from->filled : found == from->filled;
}

static pith_status draft_link(pith__table_schema *s, const draft_table *t, size_t c,
                              pith_str parent, pith_str key, pith__arena *arena, size_t *room,
                              pith_error *err) {
    pith_str *names = pith__arena_array(arena, 2, sizeof *names);
    if (!names ||
        !pith__arena_grow(arena, (void **)&s->links, s->link_count, room, sizeof *s->links))
        return pith__fail_memory(err, 2 * sizeof *names);
    names[0] = t->text.names[c];
    names[1] = key;
    s->links[s->link_count++] = (pith__link_schema){ { names, 1 }, { names + 1, 1 }, parent };
    s->columns[c].stype = PITH_STYPE_IDENTIFIER;
    return PITH_OK;
}

static size_t draft_place(const pith__text_table *t, pith_str name) {
    size_t c = 0;
    while (c < t->columns && !pith__str_eq(t->names[c], name)) c++;
    return c;
}

/* The foreign keys that the source declares, but for those whose parent is not there. A column that
 * is one alone is an identifier. */
static pith_status draft_declared_links(pith__schema *schema, const draft_table *tables, size_t at,
                                        pith__stop *stop, pith__arena *arena, pith_error *err) {
    pith__table_schema *s = &schema->tables[at];
    const pith__source_table *from = tables[at].source;
    s->links = pith__arena_array(arena, from->link_count, sizeof *s->links);
    if (!s->links) return pith__fail_memory(err, from->link_count * sizeof *s->links);
    PITH_TRY(pith__stop_check(stop, err));
    for (size_t i = 0; i < from->link_count; i++) {
        const pith__link_schema *link = &from->links[i];
        const size_t parent = pith__schema_table(schema, link->parent);
        bool whole = parent != SIZE_MAX && link->columns.count == link->parent_columns.count;
        for (size_t k = 0; whole && k < link->columns.count; k++)
            whole =
                draft_place(&tables[at].text, link->columns.items[k]) < tables[at].text.columns &&
                draft_place(&tables[parent].text, link->parent_columns.items[k]) <
                    tables[parent].text.columns;
        if (!whole) continue;
        s->links[s->link_count++] = *link;
        if (link->columns.count == 1)
            s->columns[draft_place(&tables[at].text, link->columns.items[0])].stype =
                PITH_STYPE_IDENTIFIER;
    }
    return PITH_OK;
}

static pith_status draft_links(pith__schema *schema, const draft_table *tables, size_t at,
                               pith__stop *stop, pith__arena *arena, pith_error *err) {
    pith__table_schema *s = &schema->tables[at];
    const draft_table *t = &tables[at];
    size_t room = 0;
    for (size_t c = 0; c < t->text.columns; c++) {
        if (c == t->key) continue;
        for (size_t p = 0; p < schema->table_count; p++) {
            const bool refers =
                p != at && draft_refers(t, c, &tables[p], schema->tables[p].name, stop);
            PITH_TRY(pith__stop_check(stop, err));
            if (!refers) continue;
            PITH_TRY(draft_link(s, t, c, schema->tables[p].name,
                                tables[p].text.names[tables[p].key], arena, &room, err));
            break;
        }
    }
    return PITH_OK;
}

static pith_status draft_table_schema(pith__table_schema *s, draft_table *t, pith__stop *stop,
                                      pith__arena *arena, pith_error *err) {
    const pith__source_table *from = t->source;
    t->columns = pith__arena_array(arena, t->text.columns, sizeof *t->columns);
    s->columns = pith__arena_array(arena, t->text.columns, sizeof *s->columns);
    if (!t->columns || !s->columns)
        return pith__fail_memory(err, t->text.columns * sizeof *t->columns);
    for (size_t c = 0; c < t->text.columns; c++) {
        PITH_TRY(draft_look(&t->columns[c], &t->text, c, stop, arena, err));
        if (t->columns[c].number && !draft_names_time(t->text.names[c], c))
            t->columns[c].time = false;
        s->columns[c] =
            (pith__column_schema){ .name = t->text.names[c],
                                   .stype = draft_stype(&t->columns[c],
                                                        from->types ? from->types[c] : 0) };
        if (!c && pith__str_is(t->text.names[c], PITH_CSV_UNNAMED))
            s->columns[c].stype = PITH_STYPE_IGNORED;
        if (t->text.blobs && t->text.blobs[c]) s->columns[c].stype = PITH_STYPE_IGNORED;
        if (s->columns[c].stype != PITH_STYPE_TIMESTAMP) continue;
        const pith__time_format format = pith__time_format_of(t->columns[c].formats);
        if (format != PITH_TIME_ISO) s->columns[c].format = format;
        if (!s->temporal_column.size) s->temporal_column = t->text.names[c];
    }
    s->column_count = t->text.columns;
    draft_key(t, s->name);
    if (from->primary_key.count) {
        s->primary_key = from->primary_key;
        t->key = from->primary_key.count == 1 ? draft_place(&t->text, from->primary_key.items[0])
                                              : SIZE_MAX;
        if (t->key < t->text.columns) s->columns[t->key].stype = PITH_STYPE_IDENTIFIER;
        return PITH_OK;
    }
    if (t->key == SIZE_MAX) return PITH_OK;
    s->primary_key = (pith__name_list){ &t->text.names[t->key], 1 };
    s->columns[t->key].stype = PITH_STYPE_IDENTIFIER;
    return PITH_OK;
}

/* The last name of the path; that of a directory whose path ends with a dot is the real one. */
static pith_status draft_name(pith_str *name, pith__table_source *source, pith_error *err) {
    pith_str path = pith__str_of(source->path);
    const bool folder = pith__dir_exists(source->path);
    while (folder && path.size > 1 && path.data[path.size - 1] == '/') path.size--;
    *name = pith__path_name(path);
    if (!folder) return PITH_OK;
    if (name->size && !pith__str_is(*name, ".") && !pith__str_is(*name, "..")) return PITH_OK;
    char *real = realpath(source->path, NULL);
    *name = pith__arena_str(source->arena, pith__path_name(pith__str_of(real ? real : "")));
    free(real);
    return name->data ? PITH_OK : pith__fail_memory(err, 64);
}

pith_status pith__schema_draft(pith__schema *schema, pith__table_source *source,
                               const pith__work *work, pith_error *err) {
    pith__arena *arena = source->arena;
    pith__source_table *list;
    size_t count, declared = 0;
    uint64_t rows = 0;
    PITH_TRY(source->kind->list(&list, &count, source, err));
    draft_table *tables = pith__arena_array(arena, count, sizeof *tables);
    *schema = (pith__schema){ .name = { "", 0 } };
    PITH_TRY(draft_name(&schema->name, source, err));
    schema->tables = pith__arena_array(arena, count, sizeof *schema->tables);
    if (!tables || !schema->tables) return pith__fail_memory(err, count * sizeof *tables);
    for (size_t i = 0; i < count; i++) {
        schema->tables[i].name = list[i].name;
        schema->tables[i].file = list[i].file;
        if (pith__schema_table(schema, list[i].name) != SIZE_MAX)
            return pith__fail(err, PITH_ERR_FORMAT, "%s holds two tables '" PITH_STR_FMT "'",
                              source->path, PITH_STR_ARG(list[i].name));
        schema->table_count++;
        tables[i].source = &list[i];
        declared += list[i].link_count;
        PITH_TRY(source->kind->read(&tables[i].text, source, list[i].file, err));
        rows += tables[i].text.rows;
        pith__work_tell(work, "rows", rows, 0);
        PITH_TRY(draft_table_schema(&schema->tables[i], &tables[i], work->stop, arena, err));
    }
    /* Where foreign keys are declared, none is guessed. */
    for (size_t i = 0; i < count; i++)
        PITH_TRY((declared ? draft_declared_links : draft_links)(schema, tables, i, work->stop,
                                                                 arena, err));
    return PITH_OK;
}

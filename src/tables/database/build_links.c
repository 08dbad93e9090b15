/* build_links.c - keys to rows: primary keys, foreign keys, and the children of each parent in
 * order of time. */
#include "base/error.h"
#include "base/str.h"
#include "base/text_out.h"
#include "tables/database/build_database.h"
#include "tables/database/stoppable_sort.h"

/* The key of a row as text. Several columns are joined with the unit separator (0x1F). Null if any
 * part is empty. */
pith_str pith__build_key(pith__arena *arena, const pith__text_table *t, const size_t *columns,
                         size_t count, size_t row, bool *null) {
    const pith_str *cells = t->cells + row * t->columns;
    size_t size = 0;
    *null = false;
    for (size_t i = 0; i < count; i++) {
        size += cells[columns[i]].size + 1;
        *null |= !cells[columns[i]].size;
    }
    if (count == 1) return cells[columns[0]];
    char *text = pith__arena_alloc(arena, size), *p = text;
    if (text)
        for (size_t i = 0; i < count; i++) {
            memcpy(p, cells[columns[i]].data, cells[columns[i]].size);
            p += cells[columns[i]].size;
            *p++ = i + 1 < count ? '\x1F' : 0; /* the unit separator */
        }
    return (pith_str){ text, size - 1 };
}

/* Where the named columns are in a file; pith__build_columns has found all of them. */
static size_t *link_places(pith__arena *arena, const pith__text_table *t,
                           const pith__name_list *names) {
    size_t *places = pith__arena_array(arena, names->count, sizeof *places);
    if (!places) return NULL;
    for (size_t i = 0; i < names->count; i++)
        while (places[i] + 1 < t->columns && !pith__str_eq(t->names[places[i]], names->items[i]))
            places[i]++;
    return places;
}

/* Maps the keys of the rows of a table to their numbers. A key must be there and must be the only
 * one of its kind. */
static pith_status link_keys(pith__map *map, pith__build *b, size_t table,
                             const pith__name_list *names, pith_error *err) {
    const pith__text_table *t = &b->texts[table];
    const size_t *places = link_places(PITH_BUILD_ARENA(b), t, names);
    PITH_TRY(pith__map_init(map, PITH_BUILD_ARENA(b), t->rows));
    if (!places) return pith__fail_memory(err, names->count * sizeof *places);
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        bool null;
        uint32_t old;
        const pith_str key =
            pith__build_key(PITH_BUILD_ARENA(b), t, places, names->count, r, &null);
        if (!key.data || (!null && !pith__map_put(map, key, (uint32_t)r, &old)))
            return pith__fail_memory(err, key.size);
        if (null)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: row %zu, column '" PITH_STR_FMT "': the key is empty", t->path,
                              r + 1, PITH_STR_ARG(names->items[0]));
        if (old != UINT32_MAX)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: row %zu, column '" PITH_STR_FMT "': the key '" PITH_STR_FMT
                              "' is also that of row %u",
                              t->path, r + 1, PITH_STR_ARG(names->items[0]), PITH_STR_ARG(key),
                              old + 1);
    }
    return PITH_OK;
}

/* The keys of a table one after the other, for looking rows up later. */
static pith_status link_key_text(pith__build *b, size_t table, const pith__name_list *names,
                                 pith_error *err) {
    const pith__text_table *t = &b->texts[table];
    pith__arena *arena = PITH_BUILD_ARENA(b);
    const size_t *places = link_places(arena, t, names);
    uint64_t *begin = pith__arena_array(arena, t->rows + 1, sizeof *begin);
    pith_str *keys = pith__arena_array(arena, t->rows + 1, sizeof *keys);
    if (!places || !begin || !keys) return pith__fail_memory(err, t->rows * sizeof *keys);
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        bool null;
        keys[r] = pith__build_key(arena, t, places, names->count, r, &null);
        if (!keys[r].data) return pith__fail_memory(err, keys[r].size);
        begin[r + 1] = begin[r] + keys[r].size;
    }
    char *bytes = pith__arena_alloc(arena, (size_t)begin[t->rows] + 1);
    if (!bytes) return pith__fail_memory(err, (size_t)begin[t->rows]);
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        memcpy(bytes + begin[r], keys[r].data, keys[r].size);
    }
    b->rdb->tables[table].key_begin = begin;
    b->rdb->tables[table].key_bytes = bytes;
    return PITH_OK;
}

static bool link_same(const pith__name_list *a, const pith__name_list *b) {
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) same = pith__str_eq(a->items[i], b->items[i]);
    return same;
}

/* A foreign key of which no value names a row joins nothing. */
static pith_status link_all_lost(pith__build *b, const pith__rdb_link *link,
                                 const pith__link_schema *from, pith_str cell, pith_error *err) {
    const pith__rdb_table *child = &b->rdb->tables[link->child],
                          *parent = &b->rdb->tables[link->parent];
    return pith__build_tell(
        b, err,
        PITH_STR_FMT " (" PITH_STR_FMT "): column '" PITH_STR_FMT
                     "': none of the %llu keys, as '" PITH_CUT_FMT
                     "', names a row of '" PITH_STR_FMT
                     "', so the tables are not joined; compare how both files "
                     "write their keys",
        PITH_STR_ARG(child->name), PITH_STR_ARG(b->schema->tables[link->child].file),
        PITH_STR_ARG(from->columns.items[0]), (unsigned long long)link->dangling,
        PITH_CUT(cell, 60), PITH_STR_ARG(parent->name));
}

/* The parent row of each row. Keys that name no parent are counted and warned about. If all do, the
 * schema names a wrong column, and that is an error. */
static pith_status link_up(pith__build *b, pith__rdb_link *link, const pith__link_schema *from,
                           const pith__map *keys, pith_error *err) {
    const pith__text_table *t = &b->texts[link->child];
    pith__arena *arena = PITH_BUILD_ARENA(b);
    const size_t *places = link_places(arena, t, &from->columns);
    uint32_t *up = pith__arena_array(arena, t->rows + 1, sizeof *up);
    size_t lost_row = 0;
    if (!places || !up) return pith__fail_memory(err, t->rows * sizeof *up);
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        bool null;
        const pith__arena_mark mark = pith__arena_get_mark(arena);
        const pith_str key = pith__build_key(arena, t, places, from->columns.count, r, &null);
        if (!key.data) return pith__fail_memory(err, key.size);
        up[r] = null ? PITH_RDB_NONE : pith__key_find(keys, key);
        if (!null && up[r] == PITH_RDB_NONE && !link->dangling) lost_row = r;
        link->nulls += null;
        link->dangling += !null && up[r] == PITH_RDB_NONE;
        pith__arena_rewind(arena, mark);
    }
    link->up = up;
    if (!link->dangling) return PITH_OK;
    if (link->dangling + link->nulls == t->rows)
        return link_all_lost(b, link, from, t->cells[lost_row * t->columns + places[0]], err);
    return pith__build_warn(
        b, err,
        PITH_STR_FMT ": column '" PITH_STR_FMT "': %llu of %zu keys name no row of '" PITH_STR_FMT
                     "'",
        PITH_STR_ARG(b->rdb->tables[link->child].name), PITH_STR_ARG(from->columns.items[0]),
        (unsigned long long)link->dangling, t->rows, PITH_STR_ARG(from->parent));
}

/* Where the ".0", ".00" … of a whole number begins, which spreadsheets and data frames write behind
 * keys; 0: nowhere. */
static size_t key_fraction(pith_str key) {
    size_t i = key.size;
    while (i && key.data[i - 1] == '0') i--;
    if (i == key.size || i < 2 || key.data[i - 1] != '.') return 0;
    for (size_t k = key.data[0] == '-'; k + 1 < i; k++)
        if (key.data[k] < '0' || key.data[k] > '9') return 0;
    return i - 1;
}

uint32_t pith__key_find(const pith__map *keys, pith_str key) {
    char text[40];
    uint32_t row = pith__map_get(keys, key);
    const size_t whole = key_fraction(key);
    if (row != PITH_RDB_NONE) return row;
    if (whole) key.size = whole;
    if (whole) row = pith__map_get(keys, key);
    if (row != PITH_RDB_NONE) return row;
    if (!key.size || key.size > sizeof text - 3) return PITH_RDB_NONE;
    memcpy(text, key.data, key.size);
    memcpy(text + key.size, ".0", 2);
    const pith_str decimal = { text, key.size + 2 };
    return key_fraction(decimal) ? pith__map_get(keys, decimal) : PITH_RDB_NONE;
}

typedef struct link_row {
    int64_t time;
    uint32_t row;
} link_row;

static int link_compare(const void *a, const void *b) {
    const link_row *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Lists the children of each parent: rows in order of time, dealt out to their parents. */
pith_status pith__build_down(pith__build *b, pith__rdb_link *link, pith_error *err) {
    const uint32_t children = b->rdb->tables[link->child].rows,
                   parents = b->rdb->tables[link->parent].rows;
    pith__arena *arena = PITH_BUILD_ARENA(b);
    uint32_t *begin = pith__arena_array(arena, (size_t)parents + 2, sizeof *begin);
    uint32_t *down = pith__arena_array(arena, (size_t)children + 1, sizeof *down);
    const pith__arena_mark mark = pith__arena_get_mark(arena);
    link_row *rows = pith__arena_array(arena, (size_t)children + 1, sizeof *rows);
    if (!begin || !down || !rows) return pith__fail_memory(err, children * sizeof *rows);
    for (uint32_t r = 0; r < children; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        rows[r] = (link_row){ pith__rdb_row_time(b->rdb, link->child, r), r };
        if (link->up[r] != PITH_RDB_NONE) begin[link->up[r] + 2]++;
    }
    if (!pith__sort(rows, children, sizeof *rows, link_compare, b->work->stop, arena))
        return pith__stop_check(b->work->stop, err);
    for (uint32_t p = 1; p <= parents; p++) begin[p + 1] += begin[p];
    for (uint32_t i = 0; i < children; i++) {
        PITH_TRY_ROW(b->work->stop, i, err);
        const uint32_t parent = link->up[rows[i].row];
        if (parent != PITH_RDB_NONE) down[begin[parent + 1]++] = rows[i].row;
    }
    link->begin = begin;
    link->down = down;
    pith__arena_rewind(arena, mark);
    return PITH_OK;
}

/* Looks keys up in the map of the parent's primary key, or in one that is made for other
 * columns. */
static pith_status link_make(pith__build *b, size_t child, const pith__link_schema *from,
                             pith_error *err) {
    const size_t parent = pith__schema_table(b->schema, from->parent);
    pith__rdb_link *link = &b->rdb->links[b->rdb->link_count];
    pith__map own, *keys = &b->keys[parent];
    *link = (pith__rdb_link){ .child = (uint32_t)child, .parent = (uint32_t)parent };
    link->name = pith__arena_printf(PITH_BUILD_ARENA(b), PITH_STR_FMT "." PITH_STR_FMT,
                                    PITH_STR_ALL(b->rdb->tables[child].name),
                                    PITH_STR_ALL(from->columns.items[0]));
    if (!link->name.data) return pith__fail_memory(err, 64);
    if (!link_same(&from->parent_columns, &b->schema->tables[parent].primary_key)) {
        keys = &own;
        PITH_TRY(link_keys(keys, b, parent, &from->parent_columns, err));
    }
    PITH_TRY(link_up(b, link, from, keys, err));
    b->rdb->link_count++;
    return PITH_OK;
}

/* Upward links come first, because times of rows without their own follow from their parents
 * (build_times.c), and children are then listed in order of these times. */
pith_status pith__build_links(pith__build *b, pith_error *err) {
    const pith__schema *schema = b->schema;
    size_t count = schema->task_count; /* a window's table has a link of its own */
    for (size_t i = 0; i < schema->table_count; i++) count += schema->tables[i].link_count;
    b->keys = pith__arena_array(PITH_BUILD_ARENA(b), schema->table_count, sizeof *b->keys);
    b->rdb->links = pith__arena_array(PITH_BUILD_ARENA(b), count, sizeof *b->rdb->links);
    if (!b->keys || !b->rdb->links) return pith__fail_memory(err, count * sizeof *b->rdb->links);
    for (size_t i = 0; i < schema->table_count; i++) {
        if (!schema->tables[i].primary_key.count) continue;
        PITH_TRY(link_keys(&b->keys[i], b, i, &schema->tables[i].primary_key, err));
        PITH_TRY(link_key_text(b, i, &schema->tables[i].primary_key, err));
    }
    for (size_t i = 0; i < schema->table_count; i++)
        for (size_t k = 0; k < schema->tables[i].link_count; k++)
            PITH_TRY(link_make(b, i, &schema->tables[i].links[k], err));
    PITH_TRY(pith__build_times(b, err));
    for (uint32_t i = 0; i < b->rdb->link_count; i++)
        PITH_TRY(pith__build_down(b, &b->rdb->links[i], err));
    return PITH_OK;
}

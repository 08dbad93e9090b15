/* feature_list.c - which groups of features a table has: its columns, those of its parents, and for
 * the row and each parent those of its children and of the children's other parents. */
#include "base/error.h"
#include "tables/baseline/features.h"

enum { FEATURE_COLUMNS = 4096 };

typedef struct list_build {
    pith__feature_list *list;
    pith__arena *arena;
    size_t room;
    int ways; /* so far: a schema with many links has very many */
    bool failed;
} list_build;

/* The columns that a group of single cells has: see feature_values.c. */
static void list_cell_kinds(pith__feature_group *g, const pith__rdb_column *c) {
    g->count = c->stype == PITH_STYPE_TIMESTAMP ? 4 : 1;
    g->category[0] = c->stype == PITH_STYPE_CATEGORICAL;
}

/* The columns of an aggregate; 0: such cells are not aggregated. See feature_aggregate.c. */
static void list_aggregate_kinds(pith__feature_group *g, const pith__rdb_column *c) {
    if (!c || c->stype == PITH_STYPE_BOOLEAN || g->target) {
        g->count = c ? 3 : 2;
    } else if (c->stype == PITH_STYPE_NUMERICAL) {
        g->count = 6;
    } else if (c->stype == PITH_STYPE_CATEGORICAL) {
        g->count = 3;
        g->category[0] = g->category[1] = true;
    }
}

static void list_put(list_build *b, pith__feature_group g) {
    pith__feature_list *l = b->list;
    if (b->failed) return;
    if (l->count + g.count > FEATURE_COLUMNS ||
        !pith__arena_grow(b->arena, (void **)&l->groups, l->group_count, &b->room,
                          sizeof *l->groups)) {
        b->failed = true;
        return;
    }
    g.first = l->count;
    l->count += g.count;
    l->groups[l->group_count++] = g;
}

static void list_add(list_build *b, const pith__feature_group *from, uint32_t table,
                     uint32_t column) {
    pith__feature_list *l = b->list;
    const pith__rdb_column *c =
        column == PITH_RDB_NONE ? NULL : &l->rdb->tables[table].columns[column];
    pith__feature_group g = *from;
    g.table = table;
    g.column = column;
    g.target = table == l->task->table && column == l->task->column;
    if (g.target && (g.over != PITH_RDB_NONE || (!g.ups && g.down == PITH_RDB_NONE))) return;
    if (g.down == PITH_RDB_NONE)
        list_cell_kinds(&g, c);
    else
        list_aggregate_kinds(&g, c);
    const int labels = g.target && g.down != PITH_RDB_NONE ? l->target->outputs : 1;
    if (g.count)
        for (g.label = 0; g.label < labels; g.label++) list_put(b, g);
}

static void list_columns(list_build *b, const pith__feature_group *from, uint32_t table) {
    for (uint32_t c = 0; c < b->list->rdb->tables[table].column_count; c++)
        list_add(b, from, table, c);
}

/* The children of the rows at the end of a way up, and the other parents of these children. */
static void list_children(list_build *b, const pith__feature_group *from, uint32_t table) {
    const pith__rdb *rdb = b->list->rdb;
    for (uint32_t k = 0; k < rdb->link_count; k++) {
        if (b->failed) break;
        pith__feature_group g = *from;
        if (rdb->links[k].parent != table) continue;
        g.down = k;
        list_add(b, &g, rdb->links[k].child, PITH_RDB_NONE);
        list_columns(b, &g, rdb->links[k].child);
        for (uint32_t o = 0; o < rdb->link_count; o++) {
            if (b->failed) break;
            if (rdb->links[o].child != rdb->links[k].child || o == k) continue;
            g.over = o;
            list_columns(b, &g, rdb->links[o].parent);
        }
    }
}

static void list_ways(list_build *b, const pith__feature_group *from, uint32_t table, int level) {
    const pith__rdb *rdb = b->list->rdb;
    /* a task's own table is one step further away */
    const int ups = PITH_FEATURE_UPS - !b->list->task->made;
    pith__feature_group g = *from;
    list_columns(b, &g, table);
    if (level >= PITH_FEATURE_AGGREGATES && g.ups < ups) list_children(b, &g, table);
    if (level < PITH_FEATURE_PARENTS || g.ups == ups) return;
    g.ups++;
    if (++b->ways > FEATURE_COLUMNS) b->failed = true;
    for (uint32_t k = 0; k < rdb->link_count; k++) {
        if (b->failed) break;
        if (rdb->links[k].child != table) continue;
        g.up[g.ups - 1] = k;
        list_ways(b, &g, rdb->links[k].parent, level);
    }
}

pith_status pith__features_list(pith__feature_list *list, const pith__target *target, int level,
                                pith__arena *arena, pith_error *err) {
    list_build b = { .list = list, .arena = arena };
    const pith__feature_group none = { .down = PITH_RDB_NONE, .over = PITH_RDB_NONE };
    *list = (pith__feature_list){ .target = target, .rdb = target->rdb, .task = target->task };
    list_ways(&b, &none, target->task->table, level);
    if (b.ways > FEATURE_COLUMNS || (b.failed && list->count + PITH_FEATURE_MOST > FEATURE_COLUMNS))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the tables around the task give trees more than %d features",
                          FEATURE_COLUMNS);
    return b.failed ? pith__fail_memory(err, b.room * sizeof *list->groups) : PITH_OK;
}

/* feature_values.c - what may be seen, and features that are single cells: of the row that is
 * asked, or of a parent. Columns of a cell: a number, a yes or no, a category; the bytes of a text;
 * of a time its age when the question is asked, the hour, the day of the week and the day of the
 * year. */
#include <math.h>

#include "tables/baseline/features.h"
#include "tables/database/stoppable_sort.h"

int64_t pith__feature_seen_from(const pith__rdb *rdb, uint32_t table, uint32_t column,
                                uint32_t row) {
    const int64_t time = pith__rdb_row_time(rdb, table, row);
    if (time == PITH_TIME_NULL) return INT64_MAX;
    if (column == PITH_RDB_NONE) return time;
    const int64_t known = pith__rdb_known_at(rdb, table, column, row);
    return known > time ? known : time;
}

uint32_t pith__feature_fold(uint32_t row) { return (row * 2654435761u >> 16) % PITH_FEATURE_FOLDS; }

bool pith__feature_label(const pith__feature_list *l, uint32_t seed, uint32_t row) {
    if (row == seed) return false;
    if (l->task->split != PITH_SPLIT_HASH) return true;
    if (pith__rdb_split(l->rdb, l->task, row) != PITH_TRAIN) return false;
    return l->task->time_column >= 0 || pith__rdb_split(l->rdb, l->task, seed) != PITH_TRAIN ||
           pith__feature_fold(row) != pith__feature_fold(seed);
}

uint32_t pith__feature_climb(const pith__feature_list *l, const pith__feature_group *g,
                             uint32_t row, int64_t asked) {
    for (int i = 0; i < g->ups && row != PITH_RDB_NONE; i++) {
        const pith__rdb_link *link = &l->rdb->links[g->up[i]];
        row = link->up[row];
        if (row != PITH_RDB_NONE &&
            pith__feature_seen_from(l->rdb, link->parent, PITH_RDB_NONE, row) >= asked)
            row = PITH_RDB_NONE;
    }
    return row;
}

double pith__feature_cell(const pith__rdb_column *c, uint32_t row) {
    if (pith__rdb_is_null(c, row)) return NAN;
    switch (c->stype) {
    case PITH_STYPE_NUMERICAL: return ((const double *)c->data)[row];
    case PITH_STYPE_TIMESTAMP: return (double)((const int64_t *)c->data)[row];
    case PITH_STYPE_BOOLEAN: return ((const uint8_t *)c->data)[row];
    default: return ((const uint32_t *)c->data)[row];
    }
}

/* Whether the asked row sees the cell of a row at the end of the way up. Its own cells need no
 * earlier time. */
static bool value_sees(const pith__feature_list *l, const pith__feature_group *g, uint32_t seed,
                       uint32_t row, int64_t asked) {
    if (g->target && !pith__feature_label(l, seed, row)) return false;
    if (g->ups) return pith__feature_seen_from(l->rdb, g->table, g->column, row) < asked;
    return l->rdb->tables[g->table].columns[g->column].known_column == PITH_KNOWN_WITH_ROW ||
           pith__rdb_known_at(l->rdb, g->table, g->column, row) < asked;
}

static void value_time(double *values, size_t stride, int64_t time, int64_t asked) {
    const int64_t day = time >= 0 ? time / 86400 : -((86399 - time) / 86400);
    values[0] = asked == INT64_MAX ? (double)time : (double)asked - (double)time;
    values[stride] = (double)(time - day * 86400) / 3600;
    values[2 * stride] = (double)(((day + 3) % 7 + 7) % 7);
    values[3 * stride] = fmod((double)day, 365.2425);
}

bool pith__feature_values(double *values, const pith__feature_list *l, const pith__feature_group *g,
                          const pith__feature_seeds *seeds, pith__arena *arena) {
    if (g->down != PITH_RDB_NONE) return pith__feature_aggregate(values, l, g, seeds, arena);
    const pith__rdb_column *c = &l->rdb->tables[g->table].columns[g->column];
    for (size_t i = 0; i < seeds->count; i++) {
        if (pith__row_stops(seeds->stop, i)) return false;
        const uint32_t seed = seeds->rows[i],
                       row = pith__feature_climb(l, g, seed, seeds->asked[i]);
        for (int k = 0; k < g->count; k++) values[(size_t)k * seeds->count + i] = NAN;
        if (row == PITH_RDB_NONE || !value_sees(l, g, seed, row, seeds->asked[i]) ||
            pith__rdb_is_null(c, row))
            continue;
        if (c->stype == PITH_STYPE_TIMESTAMP) {
            value_time(values + i, seeds->count, ((const int64_t *)c->data)[row], seeds->asked[i]);
        } else {
            values[i] = pith__feature_cell(c, row);
            if (c->stype != PITH_STYPE_TEXT) continue;
            const uint32_t text = ((const uint32_t *)c->data)[row];
            values[i] = (double)(l->rdb->string_begin[text + 1] - l->rdb->string_begin[text]);
        }
    }
    return true;
}

typedef struct seed_time {
    int64_t asked;
    uint32_t at;
} seed_time;

static int seed_compare(const void *a, const void *b) {
    const seed_time *x = a, *y = b;
    if (x->asked != y->asked) return x->asked < y->asked ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

bool pith__feature_seeds_make(pith__feature_seeds *s, const pith__rdb *rdb,
                              const pith__rdb_task *task, const uint32_t *rows, size_t count,
                              pith__stop *stop, pith__arena *arena) {
    *s = (pith__feature_seeds){ .rows = rows, .count = count, .stop = stop };
    s->asked = pith__arena_array(arena, count + 1, sizeof *s->asked);
    s->order = pith__arena_array(arena, count + 1, sizeof *s->order);
    const pith__arena_mark mark = pith__arena_get_mark(arena);
    seed_time *times = pith__arena_array(arena, count + 1, sizeof *times);
    if (!s->asked || !s->order || !times) return false;
    for (size_t i = 0; i < count; i++) {
        if (pith__row_stops(stop, i)) return false;
        s->asked[i] = pith__rdb_asked_at(rdb, task, rows[i]);
        times[i] = (seed_time){ s->asked[i], (uint32_t)i };
    }
    if (!pith__sort(times, count, sizeof *times, seed_compare, stop, arena)) return false;
    for (size_t i = 0; i < count; i++) s->order[i] = times[i].at;
    pith__arena_rewind(arena, mark);
    return true;
}

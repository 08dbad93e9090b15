/* build_times.c - when rows without a time of their own are known: when the newest row that they
 * name is, which may in turn have its time from the rows that it names. Without this a table of
 * order lines or refunds would tell of orders that are still to come. Times go from parents to
 * children, the newest first, so that each row is set once, also where rows name each other in a
 * circle. */
#include "base/error.h"
#include "base/str.h"
#include "tables/database/build_database.h"
#include "tables/database/stoppable_sort.h"

typedef struct times_row {
    int64_t time;
    uint32_t table, row;
} times_row;

static int times_compare(const void *a, const void *b) {
    const times_row *x = a, *y = b;
    if (x->time != y->time) return x->time > y->time ? -1 : 1;
    if (x->table != y->table) return x->table < y->table ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* A time that never comes, of rows that name a row which never is: it is before no question. */
#define TIMES_NEVER INT64_MAX

/* The newest of the rows with times of their own that a row names, or PITH_TIME_ALWAYS. */
static int64_t times_direct(const pith__rdb *rdb, uint32_t table, uint32_t row) {
    int64_t newest = PITH_TIME_ALWAYS;
    for (uint32_t k = 0; k < rdb->link_count; k++) {
        const pith__rdb_link *link = &rdb->links[k];
        if (link->child != table || rdb->tables[link->parent].time_column < 0 ||
            link->up[row] == PITH_RDB_NONE)
            continue;
        const int64_t own = pith__rdb_row_time(rdb, link->parent, link->up[row]);
        const int64_t time = own == PITH_TIME_NULL ? TIMES_NEVER : own;
        if (time > newest) newest = time;
    }
    return newest;
}

/* Marks the tables whose rows get times: those without, unless they are always there, that name a
 * table with times or a marked one. Returns the number of their rows. */
static size_t times_mark(bool *marked, const pith__build *b) {
    const pith__rdb *rdb = b->rdb;
    size_t rows = 0;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t k = 0; k < rdb->link_count; k++) {
            const pith__rdb_link *link = &rdb->links[k];
            if (marked[link->child] || rdb->tables[link->child].time_column >= 0 ||
                b->schema->tables[link->child].always ||
                (rdb->tables[link->parent].time_column < 0 && !marked[link->parent]))
                continue;
            marked[link->child] = more = true;
            rows += rdb->tables[link->child].rows;
        }
    }
    return rows;
}

/* What is at hand while times go from row to row. */
typedef struct times_work {
    pith__rdb *rdb;
    const bool *marked;
    int64_t **times; /* [tables][rows], of the marked ones */
    times_row *waiting;
    size_t count;
} times_work;

static void times_set(times_work *w, uint32_t table, uint32_t row, int64_t time) {
    if (w->times[table][row] != PITH_TIME_ALWAYS) return;
    w->times[table][row] = time;
    w->waiting[w->count++] = (times_row){ time, table, row };
}

/* Gives the time of a row to all that name it, and so on. */
static void times_spread(times_work *w, const times_row *from) {
    w->count = 0;
    times_set(w, from->table, from->row, from->time);
    while (w->count) {
        const times_row at = w->waiting[--w->count];
        for (uint32_t k = 0; k < w->rdb->link_count; k++) {
            const pith__rdb_link *link = &w->rdb->links[k];
            if (link->parent != at.table || !w->marked[link->child]) continue;
            for (uint32_t i = link->begin[at.row]; i < link->begin[at.row + 1]; i++)
                times_set(w, link->child, link->down[i], at.time);
        }
    }
}

static pith_status times_tell(pith__build *b, const bool *marked, pith_error *err) {
    for (uint32_t k = 0; k < b->rdb->link_count; k++) {
        const pith__rdb_link *link = &b->rdb->links[k];
        bool first = marked[link->child];
        for (uint32_t i = 0; i < k; i++) first &= b->rdb->links[i].child != link->child;
        if (!first) continue;
        PITH_TRY(pith__build_tell(
            b, err,
            PITH_STR_FMT
            ": its rows have no time of their own; each is known when the newest row "
            "that it names is. If they are known before, write \"known\": \"always\" for the table",
            PITH_STR_ARG(b->rdb->tables[link->child].name)));
    }
    return PITH_OK;
}

/* Lists the rows that name rows with times, and lists the children of marked tables, for the way
 * down. */
static pith_status times_run(pith__build *b, times_work *w, size_t rows, pith_error *err) {
    pith__rdb *rdb = b->rdb;
    times_row *first = pith__arena_array(PITH_BUILD_ARENA(b), rows + 1, sizeof *first);
    size_t count = 0;
    w->waiting = pith__arena_array(PITH_BUILD_ARENA(b), rows + 1, sizeof *w->waiting);
    if (!first || !w->waiting) return pith__fail_memory(err, rows * sizeof *first);
    for (uint32_t t = 0; t < rdb->table_count; t++) {
        if (!w->marked[t]) continue;
        w->times[t] = pith__arena_array(PITH_BUILD_ARENA(b), (size_t)rdb->tables[t].rows + 1,
                                        sizeof **w->times);
        if (!w->times[t]) return pith__fail_memory(err, rows * sizeof **w->times);
        for (uint32_t r = 0; r < rdb->tables[t].rows; r++) {
            PITH_TRY_ROW(b->work->stop, r, err);
            const int64_t time = times_direct(rdb, t, r);
            w->times[t][r] = PITH_TIME_ALWAYS;
            if (time != PITH_TIME_ALWAYS) first[count++] = (times_row){ time, t, r };
        }
    }
    for (uint32_t k = 0; k < rdb->link_count; k++)
        if (w->marked[rdb->links[k].child] && w->marked[rdb->links[k].parent])
            PITH_TRY(pith__build_down(b, &rdb->links[k], err));
    if (!pith__sort(first, count, sizeof *first, times_compare, b->work->stop, PITH_BUILD_ARENA(b)))
        return pith__stop_check(b->work->stop, err);
    for (size_t i = 0; i < count; i++) {
        PITH_TRY_ROW(b->work->stop, i, err);
        times_spread(w, &first[i]);
    }
    return PITH_OK;
}

pith_status pith__build_times(pith__build *b, pith_error *err) {
    pith__rdb *rdb = b->rdb;
    bool *marked =
        pith__arena_array(PITH_BUILD_ARENA(b), (size_t)rdb->table_count + 1, sizeof *marked);
    times_work w = { .rdb = rdb, .marked = marked };
    w.times = pith__arena_array(PITH_BUILD_ARENA(b), (size_t)rdb->table_count + 1, sizeof *w.times);
    if (!marked || !w.times) return pith__fail_memory(err, rdb->table_count * sizeof *w.times);
    const size_t rows = times_mark(marked, b);
    if (!rows) return PITH_OK;
    PITH_TRY(times_run(b, &w, rows, err));
    for (uint32_t t = 0; t < rdb->table_count; t++)
        if (marked[t]) rdb->tables[t].times = w.times[t];
    return times_tell(b, marked, err);
}

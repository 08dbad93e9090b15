/* build_tasks.c - the questions. A window becomes a table of its own: a row for each anchor row and
 * time, with the target, which is known when the window ends; so does a query (build_query.c).
 * After that every question is a column of a table. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "tables/database/build_database.h"

/* Rows a window may make, so that a wrong number of seconds does not fill the memory. */
enum { WINDOW_ROWS = 100000000 };

pith_status pith__build_made_column(pith__build *b, pith__rdb_table *t, uint32_t index,
                                    const char *name, pith__stype stype, pith_error *err) {
    pith__rdb_column *c = &t->columns[index];
    *c = (pith__rdb_column){
        .name = pith__str_of(name), .stype = stype, .sd = 1, .known_column = PITH_KNOWN_WITH_ROW
    };
    c->data =
        pith__arena_array(PITH_BUILD_ARENA(b), (size_t)t->rows + 1, pith__rdb_value_bytes(stype));
    const pith_str text =
        pith__arena_printf(PITH_BUILD_ARENA(b), "%s of " PITH_STR_FMT, name, PITH_STR_ALL(t->name));
    if (!c->data || !text.data)
        return pith__fail_memory(err, t->rows * pith__rdb_value_bytes(stype));
    return pith__build_string(&c->name_string, b, text, err);
}

pith_status pith__build_made_known(pith__build *b, pith__rdb_table *t, pith_error *err) {
    PITH_TRY(pith__build_made_column(b, t, 2, "known_at", PITH_STYPE_TIMESTAMP, err));
    t->columns[1].known_column = t->columns[2].known_column = 2;
    t->columns[1].known_delay = 0;
    return PITH_OK;
}

/* Keys of the rows of a table that a task has made. */
static pith_status task_keys(pith__build *b, pith__rdb_table *t, uint32_t anchor,
                             const uint32_t *up, pith_error *err) {
    const pith__rdb_table *a = &b->rdb->tables[anchor];
    pith__arena *arena = PITH_BUILD_ARENA(b);
    const int64_t *times = t->columns[0].data;
    uint64_t *begin = pith__arena_array(arena, (size_t)t->rows + 1, sizeof *begin);
    char text[PITH_TIME_CHARS], *bytes = NULL;
    if (!begin) return pith__fail_memory(err, t->rows * sizeof *begin);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t r = 0; r < t->rows; r++) {
            PITH_TRY_ROW(b->work->stop, r, err);
            const size_t own = a->key_begin
                                   ? (size_t)(a->key_begin[up[r] + 1] - a->key_begin[up[r]])
                                   : (size_t)snprintf(text, sizeof text, "%u", up[r]);
            if (bytes)
                memcpy(bytes + begin[r], a->key_begin ? a->key_bytes + a->key_begin[up[r]] : text,
                       own);
            const size_t size = pith__time_print(text, times[r], 'T');
            if (bytes) bytes[begin[r] + own] = '\x1F';
            if (bytes) memcpy(bytes + begin[r] + own + 1, text, size);
            begin[r + 1] = begin[r] + own + 1 + size;
        }
        if (!pass && !(bytes = pith__arena_alloc(arena, (size_t)begin[t->rows] + 1)))
            return pith__fail_memory(err, 64);
    }
    t->key_begin = begin;
    t->key_bytes = bytes;
    return PITH_OK;
}

pith_status pith__build_made_table(pith__build *b, pith__rdb_task *task, pith_str name,
                                   uint32_t anchor, const uint32_t *up, pith_error *err) {
    const uint32_t index = b->rdb->table_count;
    pith__rdb_link *link = &b->rdb->links[b->rdb->link_count];
    PITH_TRY(task_keys(b, &b->rdb->tables[index], anchor, up, err));
    *link = (pith__rdb_link){ .name = name, .child = index, .parent = anchor, .up = up };
    b->rdb->table_count++;
    b->rdb->link_count++;
    task->table = index;
    task->column = 1;
    task->time_column = 0;
    task->made = true;
    return pith__build_down(b, link, err);
}

/* The column whose numbers a window takes, or PITH_RDB_NONE. */
static uint32_t window_column(const pith__rdb_table *child, const pith__window_schema *w) {
    for (uint32_t c = 0; c < child->column_count; c++)
        if (pith__str_eq(child->columns[c].name, w->column)) return c;
    return PITH_RDB_NONE;
}

/* Whether these numbers are known later than their rows, so that a window may have ended before its
 * answer is known. */
static bool window_waits(const pith__rdb_table *child, uint32_t column) {
    return column != PITH_RDB_NONE &&
           (child->columns[column].known_column >= 0 || child->columns[column].known_delay > 0);
}

/* What the children of a row hold in (from, until]. *known: when the window has ended and all of it
 * is known. That a number is null is known no earlier than a number would be: else the answer would
 * tell it before its time. A number that is never known is none. */
static double window_value(int64_t *known, const pith__build *b, const pith__rdb_link *link,
                           const pith__window_schema *w, uint32_t parent, int64_t from,
                           int64_t until) {
    const pith__rdb_table *child = &b->rdb->tables[link->child];
    const uint32_t column = window_column(child, w);
    const double *numbers = column == PITH_RDB_NONE ? NULL : child->columns[column].data;
    const bool waits = window_waits(child, column);
    double sum = 0;
    *known = until;
    for (uint32_t i = link->begin[parent]; i < link->begin[parent + 1]; i++) {
        const uint32_t row = link->down[i];
        const int64_t time = pith__rdb_row_time(b->rdb, link->child, row);
        if (time <= from || time > until) continue;
        const double x = numbers ? numbers[row] : 1;
        const int64_t at = waits ? pith__rdb_known_at(b->rdb, link->child, column, row) : time;
        if (at == INT64_MAX) continue;
        if (at > *known) *known = at;
        if (x != x) continue;
        sum += pith__str_is(w->aggregate, "sum") ? x : 1;
    }
    return pith__str_is(w->aggregate, "any") ? sum > 0 : sum;
}

static const pith__rdb_link *window_link(const pith__build *b, uint32_t anchor,
                                         const pith__window_schema *w) {
    const size_t child = pith__schema_table(b->schema, w->table);
    for (uint32_t i = 0; i < b->rdb->link_count; i++)
        if (b->rdb->links[i].child == child && b->rdb->links[i].parent == anchor)
            return &b->rdb->links[i];
    return NULL;
}

/* The last time of a table; PITH_TIME_NULL if it has no rows. */
static int64_t window_last(const pith__rdb *rdb, uint32_t table) {
    int64_t last = PITH_TIME_NULL;
    for (uint32_t r = 0; r < rdb->tables[table].rows; r++) {
        const int64_t time = pith__rdb_row_time(rdb, table, r);
        if (time > last) last = time;
    }
    return last;
}

/* Says how many windows end after the table's last row: what they hold is not known yet. */
static pith_status window_tell(pith__build *b, pith__rdb_task *task, const pith__rdb_table *t,
                               uint32_t child, pith_error *err) {
    char last[PITH_TIME_CHARS];
    task->left_out = t->columns[1].nulls;
    if (!task->left_out) return PITH_OK;
    pith__time_print(last, window_last(b->rdb, child), 'T');
    return pith__build_tell(b, err,
                            "task '" PITH_STR_FMT
                            "': %llu of %u questions are left out, since their windows end after "
                            "%s, the last time in '" PITH_STR_FMT "'",
                            PITH_STR_ARG(task->name), (unsigned long long)task->left_out, t->rows,
                            last, PITH_STR_ARG(b->rdb->tables[child].name));
}

/* Fills the rows: for each time all anchor rows that are there by then. A window that ends after
 * the last row of its table has no target: more rows may come. */
static pith_status window_fill(pith__build *b, pith__rdb_table *t, uint32_t *up, uint32_t anchor,
                               const pith__rdb_link *link, const pith__window_schema *w,
                               pith_error *err) {
    int64_t *times = (int64_t *)t->columns[0].data,
            *knowns = t->column_count > 2 ? (int64_t *)t->columns[2].data : NULL;
    const bool any = pith__str_is(w->aggregate, "any");
    const int64_t last = window_last(b->rdb, link->child);
    uint32_t row = 0;
    for (int64_t time = w->from; time < w->until; time += w->every) {
        PITH_TRY(pith__stop_check(b->work->stop, err));
        for (uint32_t a = 0; a < b->rdb->tables[anchor].rows; a++) {
            PITH_TRY_ROW(b->work->stop, a, err);
            const int64_t begins = pith__rdb_row_time(b->rdb, anchor, a);
            if (begins == PITH_TIME_NULL || begins >= time) continue;
            const bool ended = time + w->seconds <= last;
            int64_t known = time + w->seconds;
            const double x = ended ? window_value(&known, b, link, w, a, time, known) : NAN;
            times[row] = time;
            if (knowns) knowns[row] = known;
            up[row] = a;
            t->columns[1].nulls += !ended;
            if (any)
                ((uint8_t *)t->columns[1].data)[row] = ended ? x > 0 : 2;
            else
                ((double *)t->columns[1].data)[row] = x;
            row++;
        }
    }
    t->rows = row;
    return PITH_OK;
}

/* Makes the table of a window: one row for each anchor row and time. The target is known when the
 * window ends, and later if the aggregated column is itself known later. */
static pith_status task_window(pith__build *b, pith__rdb_task *task, const pith__task_schema *from,
                               pith_error *err) {
    const pith__window_schema *w = &from->window;
    const uint32_t anchor = (uint32_t)pith__schema_table(b->schema, from->anchor_table),
                   index = b->rdb->table_count;
    pith__rdb_table *t = &b->rdb->tables[index];
    const uint64_t times = (uint64_t)((w->until - w->from + w->every - 1) / w->every);
    const uint64_t rows = times * b->rdb->tables[anchor].rows;
    if (times > WINDOW_ROWS || rows > WINDOW_ROWS)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: the window of task '" PITH_STR_FMT
                          "' makes more than %d rows; ask less often",
                          b->schema_path, PITH_STR_ARG(from->name), WINDOW_ROWS);
    const pith__rdb_link *link = window_link(b, anchor, w);
    const pith__rdb_table *child = &b->rdb->tables[link->child];
    const bool waits = window_waits(child, window_column(child, w));
    *t = (pith__rdb_table){
        .name = from->name, .rows = (uint32_t)rows, .time_column = 0, .column_count = waits ? 3 : 2
    };
    t->columns = pith__arena_array(PITH_BUILD_ARENA(b), 3, sizeof *t->columns);
    uint32_t *up = pith__arena_array(PITH_BUILD_ARENA(b), (size_t)rows + 1, sizeof *up);
    if (!t->columns || !up) return pith__fail_memory(err, (size_t)rows * sizeof *up);
    const bool any = pith__str_is(w->aggregate, "any");
    PITH_TRY(pith__build_made_column(b, t, 0, "asked_at", PITH_STYPE_TIMESTAMP, err));
    PITH_TRY(pith__build_made_column(b, t, 1, "target",
                                     any ? PITH_STYPE_BOOLEAN : PITH_STYPE_NUMERICAL, err));
    t->columns[1].known_column = 0;
    t->columns[1].known_delay = w->seconds;
    if (waits) PITH_TRY(pith__build_made_known(b, t, err));
    PITH_TRY(window_fill(b, t, up, anchor, link, w, err));
    PITH_TRY(window_tell(b, task, t, link->child, err));
    return pith__build_made_table(b, task, from->name, anchor, up, err);
}

static int32_t task_find(const pith__rdb_table *t, pith_str name) {
    if (!name.size) return -1;
    for (uint32_t i = 0; i < t->column_count; i++)
        if (pith__str_eq(t->columns[i].name, name)) return (int32_t)i;
    return -1;
}

/* A task asks about a column that is there, or one that a window or a query makes. */
static pith_status task_make(pith__build *b, pith__rdb_task *task, const pith__task_schema *from,
                             pith_error *err) {
    *task = (pith__rdb_task){ .name = from->name,
                              .split = from->split,
                              .train_until = from->train_until,
                              .validation_until = from->validation_until,
                              .train_percent = from->train_percent,
                              .validation_percent = from->validation_percent,
                              .rank = from->rank };
    if (from->window.set) return task_window(b, task, from, err);
    if (from->query.size) return pith__build_query(b, task, from, err);
    task->table = (uint32_t)pith__schema_table(b->schema, from->anchor_table);
    pith__rdb_table *t = &b->rdb->tables[task->table];
    task->column = (uint32_t)task_find(t, from->target_column);
    task->time_column = from->time_column.size ? task_find(t, from->time_column) : t->time_column;
    /* Where nothing is said, a target is known from the time of its row. */
    pith__rdb_column *c = &t->columns[task->column];
    if (c->known_column == PITH_KNOWN_WITH_ROW && t->time_column >= 0)
        c->known_column = PITH_KNOWN_ROW_TIME;
    return PITH_OK;
}

pith_status pith__build_tasks(pith__build *b, pith_error *err) {
    pith__rdb *rdb = b->rdb;
    rdb->tasks = pith__arena_array(PITH_BUILD_ARENA(b), b->schema->task_count, sizeof *rdb->tasks);
    if (!rdb->tasks) return pith__fail_memory(err, b->schema->task_count * sizeof *rdb->tasks);
    for (size_t i = 0; i < b->schema->task_count; i++) {
        PITH_TRY(task_make(b, &rdb->tasks[i], &b->schema->tasks[i], err));
        rdb->task_count++;
    }
    for (uint32_t i = 0; i < rdb->table_count; i++) {
        rdb->tables[i].first_cell = rdb->column_count;
        rdb->column_count += rdb->tables[i].column_count;
    }
    return PITH_OK;
}

/* trainer_importance.c - what a model reads, by occlusion: how much its loss rises when the cells
 * of a column, or of a table, are hidden from every context. */
#include <stdlib.h>

#include "base/error.h"
#include "tables/network/trainer.h"

/* A table, or with a column one of its columns. */
typedef struct importance_part {
    uint32_t table, column;
    double rise;
} importance_part;

typedef struct importance_rows {
    const uint32_t *rows;
    size_t count;
    float *answers;
    pith__work work; /* of the networks' runs, which tell nothing */
} importance_rows;

/* The mean loss with some columns of the database hidden. */
static pith_status importance_loss(double *loss, pith_relational *r, const importance_rows *rows,
                                   uint32_t from, uint32_t to, pith_error *err) {
    const pith__sample_options before = r->config.sample;
    const size_t outputs = (size_t)r->target.outputs;
    float d[PITH_TARGET_CLASSES];
    r->config.sample.hidden_from = from;
    r->config.sample.hidden_to = to;
    const pith_status status =
        pith__trainer_answer(rows->answers, r, rows->rows, rows->count, &rows->work, err);
    r->config.sample = before;
    *loss = 0;
    if (status) return status;
    for (size_t i = 0; i < rows->count; i++)
        *loss += pith__target_loss(d, &r->target, rows->rows[i], rows->answers + i * outputs) /
                 (double)rows->count;
    return PITH_OK;
}

static int importance_compare(const void *a, const void *b) {
    const importance_part *x = a, *y = b;
    if (x->rise != y->rise) return x->rise > y->rise ? -1 : 1;
    if (x->table != y->table) return x->table < y->table ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

static pith_status importance_parts(importance_part *parts, size_t *count, pith_relational *r,
                                    const importance_rows *rows, const pith__work *work,
                                    pith_error *err) {
    const uint64_t all = (uint64_t)r->rdb->column_count + r->rdb->table_count;
    double whole, hidden;
    *count = 0;
    PITH_TRY(importance_loss(&whole, r, rows, 0, 0, err));
    for (uint32_t t = 0; t < r->rdb->table_count; t++) {
        const uint32_t first = r->rdb->tables[t].first_cell,
                       columns = r->rdb->tables[t].column_count;
        if (columns)
            for (uint32_t c = 0; c <= columns; c++) {
                const bool table = c == columns;
                PITH_TRY(importance_loss(&hidden, r, rows, table ? first : first + c,
                                         table ? first + columns : first + c + 1, err));
                parts[(*count)++] =
                    (importance_part){ t, table ? PITH_RDB_NONE : c, hidden - whole };
                pith__work_tell(work, "columns", *count, all);
            }
    }
    qsort(parts, *count, sizeof *parts, importance_compare);
    return PITH_OK;
}

/* Asks the same rows again with each column hidden, then each table, and tells how much the loss
 * rises, the largest first. Up to `most` rows are asked, evenly spread over the part, because every
 * column costs a pass over them. */
pith_status pith__trainer_importance(pith_relational *r, int32_t split, size_t most,
                                     const pith__work *work,
                                     void (*each)(void *user, pith_str table, pith_str column,
                                                  double rise),
                                     void *user, pith_error *err) {
    const uint32_t all = r->rdb->tables[r->task->table].rows;
    size_t n = 0, count, kept = 0;
    if (!pith__trainer_workers(r, work->threads))
        return pith__fail_memory(err, r->rdb->string_count * 4u);
    const pith__arena_mark mark = pith__arena_get_mark(&r->arena);
    uint32_t *list = pith__arena_array(&r->arena, (size_t)all + 1, sizeof *list);
    float *answers =
        pith__arena_array(&r->arena, most + 1, (size_t)r->target.outputs * sizeof *answers);
    importance_part *parts = pith__arena_array(
        &r->arena, (size_t)r->rdb->column_count + r->rdb->table_count, sizeof *parts);
    pith_status status =
        list && answers && parts ? PITH_OK : pith__fail_memory(err, all * sizeof *list);
    if (!status) {
        for (uint32_t i = 0; i < all; i++) {
            if (pith__row_stops(work->stop, i)) break;
            if (pith__rdb_split(r->rdb, r->task, i) == split) list[n++] = i;
        }
        status = pith__stop_check(work->stop, err);
    }
    if (most > n) most = n;
    for (; kept < most; kept++) list[kept] = list[kept * n / most]; /* evenly spread */
    const importance_rows rows = {
        list, kept, answers, { .threads = work->threads, .stop = work->stop }
    };
    if (!status && !kept) status = pith__fail(err, PITH_ERR_ARGUMENT, "there are no rows to ask");
    if (!status) status = importance_parts(parts, &count, r, &rows, work, err);
    if (!status)
        for (size_t i = 0; i < count; i++) {
            const pith__rdb_table *t = &r->rdb->tables[parts[i].table];
            const bool table = parts[i].column == PITH_RDB_NONE;
            each(user, t->name, table ? (pith_str){ NULL, 0 } : t->columns[parts[i].column].name,
                 parts[i].rise);
        }
    pith__arena_rewind(&r->arena, mark);
    return status;
}

/* rdb_figures.c - see rdb_figures.h. */
#include "tables/database/rdb_figures.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "base/work.h"
#include "tables/database/stoppable_sort.h"

typedef struct figures_work {
    const pith__rdb *rdb;
    double *numbers; /* [most rows of a table], shared with times */
    uint8_t *seen;   /* a bit for each string */
    pith__stop *stop;
    pith__arena *arena;
} figures_work;

static int figures_by_number(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int figures_by_time(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static pith_status figures_numbers(pith__rdb_figures *f, const figures_work *w,
                                   const pith__rdb_column *c, uint32_t rows, pith_error *err) {
    double *x = w->numbers;
    size_t n = 0;
    for (uint32_t r = 0; r < rows; r++) {
        PITH_TRY_ROW(w->stop, r, err);
        if (!pith__rdb_is_null(c, r)) x[n++] = ((const double *)c->data)[r];
    }
    if (!n) return PITH_OK;
    if (!pith__sort(x, n, sizeof *x, figures_by_number, w->stop, w->arena))
        return pith__stop_check(w->stop, err);
    for (size_t i = 0; i < n; i++) f->distinct += !i || x[i] > x[i - 1];
    f->least = x[0];
    f->greatest = x[n - 1];
    return PITH_OK;
}

static pith_status figures_times(pith__rdb_figures *f, const figures_work *w,
                                 const pith__rdb_column *c, uint32_t rows, pith_error *err) {
    int64_t *x = (int64_t *)(void *)w->numbers;
    size_t n = 0;
    for (uint32_t r = 0; r < rows; r++) {
        PITH_TRY_ROW(w->stop, r, err);
        if (!pith__rdb_is_null(c, r)) x[n++] = ((const int64_t *)c->data)[r];
    }
    if (!n) return PITH_OK;
    if (!pith__sort(x, n, sizeof *x, figures_by_time, w->stop, w->arena))
        return pith__stop_check(w->stop, err);
    for (size_t i = 0; i < n; i++) f->distinct += !i || x[i] > x[i - 1];
    f->first = x[0];
    f->last = x[n - 1];
    return PITH_OK;
}

static pith_status figures_booleans(pith__rdb_figures *f, const figures_work *w,
                                    const pith__rdb_column *c, uint32_t rows, pith_error *err) {
    bool seen[2] = { false, false };
    for (uint32_t r = 0; r < rows; r++) {
        PITH_TRY_ROW(w->stop, r, err);
        if (!pith__rdb_is_null(c, r)) seen[((const uint8_t *)c->data)[r]] = true;
    }
    f->distinct = (uint64_t)seen[0] + seen[1];
    return PITH_OK;
}

/* Equal texts are one string of the database. */
static pith_status figures_strings(pith__rdb_figures *f, const figures_work *w,
                                   const pith__rdb_column *c, uint32_t rows, pith_error *err) {
    memset(w->seen, 0, w->rdb->string_count / 8 + 1);
    for (uint32_t r = 0; r < rows; r++) {
        PITH_TRY_ROW(w->stop, r, err);
        if (pith__rdb_is_null(c, r)) continue;
        const uint32_t string = ((const uint32_t *)c->data)[r];
        const uint8_t bit = (uint8_t)(1u << (string & 7));
        f->distinct += !(w->seen[string >> 3] & bit);
        w->seen[string >> 3] |= bit;
    }
    return PITH_OK;
}

static bool figures_warned(const pith__rdb *rdb, pith_str warning) {
    for (uint32_t i = 0; i < rdb->warning_count; i++)
        if (pith__str_eq(rdb->warnings[i], warning)) return true;
    return false;
}

static pith_status figures_warn(pith__rdb_figures *f, const figures_work *w,
                                const pith__rdb_table *t, const pith__rdb_column *c,
                                pith_error *err) {
    if (t->rows < 2 || f->distinct != 1 || c->nulls) return PITH_OK;
    const pith_str text =
        pith__arena_printf(w->arena, PITH_STR_FMT ": column '" PITH_STR_FMT "' is constant",
                           PITH_STR_ARG(t->name), PITH_STR_ARG(c->name));
    if (!text.data) return pith__fail_memory(err, t->name.size + c->name.size);
    if (!figures_warned(w->rdb, text)) f->warning = text;
    return PITH_OK;
}

static pith_status figures_table(pith__rdb_figures *figures, const figures_work *w,
                                 const pith__rdb_table *t, pith_error *err) {
    for (uint32_t i = 0; i < t->column_count; i++) {
        const pith__rdb_column *c = &t->columns[i];
        pith__rdb_figures *f = &figures[t->first_cell + i];
        *f = (pith__rdb_figures){ .distinct = 0 };
        switch (c->stype) {
        case PITH_STYPE_NUMERICAL: PITH_TRY(figures_numbers(f, w, c, t->rows, err)); break;
        case PITH_STYPE_TIMESTAMP: PITH_TRY(figures_times(f, w, c, t->rows, err)); break;
        case PITH_STYPE_BOOLEAN: PITH_TRY(figures_booleans(f, w, c, t->rows, err)); break;
        default: PITH_TRY(figures_strings(f, w, c, t->rows, err)); break;
        }
        PITH_TRY(figures_warn(f, w, t, c, err));
    }
    return PITH_OK;
}

pith_status pith__rdb_figures_of(pith__rdb_figures **figures, const pith__rdb *rdb,
                                 pith__stop *stop, pith__arena *arena, pith_error *err) {
    figures_work w = { .rdb = rdb, .stop = stop, .arena = arena };
    uint32_t rows = 0;
    for (uint32_t t = 0; t < rdb->table_count; t++)
        rows = rdb->tables[t].rows > rows ? rdb->tables[t].rows : rows;
    *figures = pith__arena_array(arena, (size_t)rdb->column_count + 1, sizeof **figures);
    w.numbers = pith__arena_array(arena, (size_t)rows + 1, sizeof *w.numbers);
    w.seen = pith__arena_array(arena, (size_t)rdb->string_count / 8 + 1, 1);
    if (!*figures || !w.numbers || !w.seen) return pith__fail_memory(err, rows * sizeof *w.numbers);
    for (uint32_t t = 0; t < rdb->table_count; t++)
        PITH_TRY(figures_table(*figures, &w, &rdb->tables[t], err));
    return PITH_OK;
}

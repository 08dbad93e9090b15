/* build_statistics.c - mean and standard deviation of each column, over the cells that training may
 * see alone: rows before every task's train_until, rows of the training part where a task splits by
 * hash, and cells that are known by then. */
#include <math.h>

#include "base/error.h"
#include "base/str.h"
#include "tables/database/build_database.h"

/* A column whose cells are all positive and as skewed as this, or more, is seen as a logarithm. The
 * skewness of an exponential distribution is 2. */
#define SKEWED 2.0

static bool statistics_sees(const pith__build *b, uint32_t table, uint32_t column, uint32_t row) {
    const pith__rdb *rdb = b->rdb;
    const int64_t time = pith__rdb_row_time(rdb, table, row);
    const int64_t known = pith__rdb_known_at(rdb, table, column, row);
    /* A cell that is never known is seen by nobody, also where training sees all times. */
    if (time == PITH_TIME_NULL || time >= b->train_until || known >= b->train_until) return false;
    for (uint32_t i = 0; i < rdb->task_count; i++)
        if (rdb->tasks[i].split == PITH_SPLIT_HASH && rdb->tasks[i].table == table &&
            pith__rdb_split(rdb, &rdb->tasks[i], row) != PITH_TRAIN)
            return false;
    return true;
}

static double statistics_value(const pith__rdb_column *c, uint32_t row) {
    if (c->stype == PITH_STYPE_NUMERICAL) return ((const double *)c->data)[row];
    if (c->stype == PITH_STYPE_TIMESTAMP) return (double)((const int64_t *)c->data)[row];
    return (double)((const uint8_t *)c->data)[row];
}

/* Mean and standard deviation of x, or of its logarithm. Returns the skewness. What it says is of
 * no use if the call must end. */
static double statistics_moments(pith__rdb_column *c, const double *x, size_t n, bool logarithm,
                                 pith__stop *stop) {
    double sum = 0, squares = 0, cubes = 0;
    for (size_t i = 0; i < n; i++) {
        if (pith__row_stops(stop, i)) return 0;
        sum += logarithm ? log(x[i]) : x[i];
    }
    c->mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++) {
        if (pith__row_stops(stop, i)) return 0;
        const double d = (logarithm ? log(x[i]) : x[i]) - c->mean;
        squares += d * d;
        cubes += d * d * d;
    }
    const double sd = n ? sqrt(squares / (double)n) : 0;
    const bool spread = isfinite(sd) && sd > 1e-9 * (fabs(c->mean) + 1e-290);
    c->sd = spread ? sd : 1;
    return spread ? cubes / (double)n / (sd * sd * sd) : 0;
}

static pith_status statistics_column(pith__build *b, uint32_t table, uint32_t column, double *x,
                                     pith_error *err) {
    const pith__rdb_table *t = &b->rdb->tables[table];
    pith__rdb_column *c = &t->columns[column];
    const bool asked = c->log;
    bool automatic = c->stype == PITH_STYPE_NUMERICAL;
    double low = INFINITY;
    size_t n = 0;
    if (c->stype == PITH_STYPE_TEXT || c->stype == PITH_STYPE_CATEGORICAL) return PITH_OK;
    for (uint32_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        if (pith__rdb_is_null(c, r) || !statistics_sees(b, table, column, r)) continue;
        x[n++] = statistics_value(c, r);
        if (x[n - 1] < low) low = x[n - 1];
    }
    if (table < b->schema->table_count) {
        const pith__table_schema *from = &b->schema->tables[table];
        automatic &=
            from->columns[pith__schema_column(from, c->name)].transform == PITH_TRANSFORM_AUTO;
    }
    for (uint32_t i = 0; i < b->rdb->task_count; i++) /* targets stay as they are asked for */
        automatic &= b->rdb->tasks[i].table != table || b->rdb->tasks[i].column != column;
    if (asked && n && low <= 0)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: column '" PITH_STR_FMT "' has the transform log, but holds %g",
                          b->schema_path, PITH_STR_ARG(c->name), low);
    c->log = false;
    const double skewness = statistics_moments(c, x, n, false, b->work->stop);
    c->low = n ? low : 1;
    if (n && (asked || (automatic && low > 0 && skewness >= SKEWED))) {
        c->log = true;
        statistics_moments(c, x, n, true, b->work->stop);
    }
    PITH_TRY(pith__stop_check(b->work->stop, err));
    if (t->rows && n && c->sd == 1 && !c->log && low == x[0] && c->mean == x[0])
        return pith__build_warn(b, err, PITH_STR_FMT ": column '" PITH_STR_FMT "' is constant",
                                PITH_STR_ARG(t->name), PITH_STR_ARG(c->name));
    return PITH_OK;
}

pith_status pith__build_statistics(pith__build *b, pith_error *err) {
    const pith__rdb *rdb = b->rdb;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < rdb->task_count; i++)
        if (rdb->tasks[i].split == PITH_SPLIT_TIME && rdb->tasks[i].train_until < b->train_until)
            b->train_until = rdb->tasks[i].train_until;
    for (uint32_t t = 0; t < rdb->table_count; t++)
        rows = rdb->tables[t].rows > rows ? rdb->tables[t].rows : rows;
    double *x = pith__arena_array(PITH_BUILD_ARENA(b), (size_t)rows + 1, sizeof *x);
    if (!x) return pith__fail_memory(err, rows * sizeof *x);
    for (uint32_t t = 0; t < rdb->table_count; t++)
        for (uint32_t c = 0; c < rdb->tables[t].column_count; c++)
            PITH_TRY(statistics_column(b, t, c, x, err));
    return PITH_OK;
}

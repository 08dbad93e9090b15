/* rdb.c - what a database says of single rows and cells. */
#include "tables/database/rdb.h"

#include <math.h>
#include <string.h>

#include "base/checksum.h"

size_t pith__rdb_value_bytes(pith__stype stype) {
    switch (stype) {
    case PITH_STYPE_NUMERICAL:
    case PITH_STYPE_TIMESTAMP: return 8;
    case PITH_STYPE_BOOLEAN: return 1;
    case PITH_STYPE_CATEGORICAL:
    case PITH_STYPE_TEXT: return 4;
    default: return 0;
    }
}

int64_t pith__rdb_row_time(const pith__rdb *rdb, uint32_t table, uint32_t row) {
    const pith__rdb_table *t = &rdb->tables[table];
    if (t->time_column >= 0) return ((const int64_t *)t->columns[t->time_column].data)[row];
    return t->times ? t->times[row] : PITH_TIME_ALWAYS;
}

int64_t pith__rdb_known_at(const pith__rdb *rdb, uint32_t table, uint32_t column, uint32_t row) {
    const pith__rdb_table *t = &rdb->tables[table];
    const pith__rdb_column *c = &t->columns[column];
    int64_t time, known;
    if (c->known_column == PITH_KNOWN_WITH_ROW) return pith__rdb_row_time(rdb, table, row);
    time = c->known_column < 0 ? pith__rdb_row_time(rdb, table, row)
                               : ((const int64_t *)t->columns[c->known_column].data)[row];
    if (time == PITH_TIME_NULL || __builtin_add_overflow(time, c->known_delay, &known))
        return INT64_MAX;
    return known;
}

bool pith__rdb_is_null(const pith__rdb_column *c, uint32_t row) {
    switch (c->stype) {
    case PITH_STYPE_NUMERICAL: return isnan(((const double *)c->data)[row]);
    case PITH_STYPE_TIMESTAMP: return ((const int64_t *)c->data)[row] == PITH_TIME_NULL;
    case PITH_STYPE_BOOLEAN: return ((const uint8_t *)c->data)[row] > 1;
    default: return ((const uint32_t *)c->data)[row] == PITH_RDB_NONE;
    }
}

/* A cell of a column that is scaled: a number, a time, or a yes or no as 1 or 0. */
static double rdb_value(const pith__rdb_column *c, uint32_t row) {
    if (c->stype == PITH_STYPE_NUMERICAL) return ((const double *)c->data)[row];
    if (c->stype == PITH_STYPE_TIMESTAMP) return (double)((const int64_t *)c->data)[row];
    return (double)((const uint8_t *)c->data)[row];
}

float pith__rdb_scaled(const pith__rdb_column *c, uint32_t row) {
    double x = rdb_value(c, row);
    if (c->log) x = log(x > c->low ? x : c->low);
    x = (x - c->mean) / c->sd;
    if (x > 10) return 10;
    if (x < -10) return -10;
    return (float)x;
}

/* Writes sine and cosine of x, which turns once in `period`, and returns where the next ones go. */
static float *rdb_turn(float *features, double x, double period) {
    const double angle = 6.283185307179586 * fmod(x, period) / period;
    features[0] = (float)sin(angle);
    features[1] = (float)cos(angle);
    return features + 2;
}

void pith__rdb_time_features(float *features, const pith__rdb_column *column, uint32_t row,
                             int64_t asked, bool ages_alone) {
    /* seconds: the last is the mean Gregorian year */
    static const double periods[] = { 86400, 7 * 86400, 31556952 };
    const int64_t time = ((const int64_t *)column->data)[row];
    *features++ = ages_alone && asked != INT64_MAX ? 0 : pith__rdb_scaled(column, row);
    for (int i = 0; i < 3; i++) features = rdb_turn(features, (double)time, periods[i]);
    memset(features, 0, 9 * sizeof *features);
    if (asked == INT64_MAX) return;
    const double hours = ((double)asked - (double)time) / 3600, l = log2(1 + fabs(hours));
    *features++ = (float)copysign(l / 8, hours);
    for (double period = 8; period >= 1; period /= 2) features = rdb_turn(features, l, period);
}

int64_t pith__rdb_asked_at(const pith__rdb *rdb, const pith__rdb_task *task, uint32_t row) {
    if (task->time_column < 0) return INT64_MAX;
    return ((const int64_t *)rdb->tables[task->table].columns[task->time_column].data)[row];
}

/* A number from 0 to 99 that the row's key decides, or without keys its number. */
static int rdb_percentile(const pith__rdb_table *t, uint32_t row) {
    const uint64_t hash = t->key_begin
                              ? pith__hash_of(t->key_bytes + t->key_begin[row],
                                              (size_t)(t->key_begin[row + 1] - t->key_begin[row]))
                              : pith__hash_of(&row, sizeof row);
    return (int)(hash % 100);
}

/* Whether a label is a class that the model of a followed database does not know: it belongs to no
 * part then. */
static bool rdb_unknown_class(const pith__rdb_task *task, const pith__rdb_column *c, uint32_t row) {
    bool unknown = task->classes != NULL;
    for (uint32_t i = 0; unknown && i < task->class_count; i++)
        unknown = task->classes[i] != ((const uint32_t *)c->data)[row];
    return unknown;
}

int pith__rdb_split(const pith__rdb *rdb, const pith__rdb_task *task, uint32_t row) {
    const pith__rdb_table *t = &rdb->tables[task->table];
    const int64_t asked = pith__rdb_asked_at(rdb, task, row);
    if (asked == PITH_TIME_NULL || pith__rdb_is_null(&t->columns[task->column], row))
        return PITH_NO_SPLIT;
    if (rdb_unknown_class(task, &t->columns[task->column], row)) return PITH_NO_SPLIT;
    if (task->split == PITH_SPLIT_TIME) {
        const int64_t known = pith__rdb_known_at(rdb, task->table, task->column, row);
        if (asked >= task->validation_until) return PITH_TEST;
        if (asked >= task->train_until)
            return known < task->validation_until ? PITH_VALIDATION : PITH_NO_SPLIT;
        return known < task->train_until ? PITH_TRAIN : PITH_NO_SPLIT;
    }
    const int at = rdb_percentile(t, row);
    if (at < task->train_percent) return PITH_TRAIN;
    if (at < task->train_percent + task->validation_percent) return PITH_VALIDATION;
    return PITH_TEST;
}

/* trainer_metrics.c - answers, and how well they fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "relational/trainer.h"

enum { BOOTSTRAP = 1000 };

static const pith_rdb_column *metric_target(const pith_relational *r) {
    return &r->rdb->tables[r->task->table].columns[r->task->column];
}

pith_status pith_trainer_predict(float *answers, pith_relational *r, const uint32_t *rows, size_t count,
                                 int32_t threads, pith_error *err) {
    const pith_rdb_column *target = metric_target(r);
    for (size_t i = 0; i < count; i++)
        if (rows[i] >= r->rdb->tables[r->task->table].rows)
            return pith_fail(err, PITH_ERR_ARGUMENT, "there is no row %u", rows[i]);
    PITH_TRY(pith_trainer_answer(answers, r, rows, count, threads, err));
    for (size_t i = 0; i < count; i++) {
        const double z = answers[i];
        answers[i] =
            target->stype == PITH_STYPE_BOOLEAN ? (float)(1 / (1 + exp(-z))) : (float)(z * target->sd + target->mean);
    }
    return PITH_OK;
}

pith_status pith_trainer_find(uint32_t *row, const pith_relational *r, pith_str key, pith_error *err) {
    const pith_rdb_table *t = &r->rdb->tables[r->task->table];
    if (!t->key_begin) {
        double number;
        if (pith_cell_number(&number, key) && number >= 0 && number < t->rows && number == floor(number)) {
            *row = (uint32_t)number;
            return PITH_OK;
        }
    }
    for (uint32_t i = 0; t->key_begin && i < t->rows; i++) {
        if (t->key_begin[i + 1] - t->key_begin[i] == key.size &&
            !memcmp(t->key_bytes + t->key_begin[i], key.data, key.size)) {
            *row = i;
            return PITH_OK;
        }
    }
    return pith_fail(err, PITH_ERR_NOT_FOUND, "table '" PITH_STR_FMT "' has no row '" PITH_STR_FMT "'",
                     PITH_STR_ARG(t->name), PITH_STR_ARG(key));
}

/* One row: its answer, its true value, its loss. */
typedef struct metric_row {
    double answer, truth, loss;
} metric_row;

static int metric_compare(const void *a, const void *b) {
    const metric_row *x = a, *y = b;
    return (x->answer > y->answer) - (x->answer < y->answer);
}

/* The area under the ROC curve of rows in ascending order, each counted `times` times; equal answers count half. */
static double metric_auroc(const metric_row *rows, const uint32_t *times, size_t n) {
    double below = 0, pairs = 0, yes = 0;
    for (size_t i = 0; i < n;) {
        double tied[2] = { 0, 0 };
        size_t k = i;
        for (; k < n && rows[k].answer == rows[i].answer; k++) tied[rows[k].truth > 0] += times[k];
        pairs += tied[1] * (below + tied[0] / 2);
        below += tied[0];
        yes += tied[1];
        i = k;
    }
    return yes > 0 && below > 0 ? pairs / (yes * below) : NAN;
}

static double metric_loss(const metric_row *rows, const uint32_t *times, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += times[i] * rows[i].loss;
    return n ? sum / (double)n : NAN;
}

static int number_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

static void metric_bounds(double *bounds, double *drawn) {
    qsort(drawn, BOOTSTRAP, sizeof *drawn, number_compare);
    bounds[0] = drawn[BOOTSTRAP / 40];
    bounds[1] = drawn[BOOTSTRAP - 1 - BOOTSTRAP / 40];
}

/* Values and bounds of the area and of the loss. `times` is [n]. */
static void metric_bootstrap(double *area, double *loss, metric_row *rows, uint32_t *times, size_t n) {
    double areas[BOOTSTRAP], losses[BOOTSTRAP];
    uint64_t state = pith_random_state(3, n, 0, 0);
    qsort(rows, n, sizeof *rows, metric_compare);
    for (size_t i = 0; i < n; i++) times[i] = 1;
    area[0] = metric_auroc(rows, times, n);
    loss[0] = metric_loss(rows, times, n);
    for (int b = 0; b < BOOTSTRAP; b++) {
        memset(times, 0, n * sizeof *times);
        for (size_t i = 0; i < n; i++) times[((pith_random_next(&state) >> 32) * n) >> 32]++;
        areas[b] = metric_auroc(rows, times, n);
        losses[b] = metric_loss(rows, times, n);
    }
    metric_bounds(area + 1, areas);
    metric_bounds(loss + 1, losses);
}

static void metric_booleans(pith_relational_metrics *m, pith_relational *r, metric_row *rows, uint32_t *times,
                            size_t n) {
    const double rate = metric_target(r)->mean;
    double yes = 0, right = 0;
    for (size_t i = 0; i < n; i++) {
        const double z = rows[i].answer, y = rows[i].truth;
        rows[i].loss = (z > 0 ? z : 0) - z * y + log1p(exp(-fabs(z)));
        yes += y;
        right += (z > 0) == (y > 0);
    }
    metric_bootstrap(m->auroc, m->logloss, rows, times, n);
    m->accuracy = right / (double)n;
    m->base_rate = yes / (double)n;
    m->constant_logloss = -(m->base_rate * log(rate) + (1 - m->base_rate) * log1p(-rate));
}

static void metric_numbers(pith_relational_metrics *m, pith_relational *r, metric_row *rows, uint32_t *times,
                           size_t n) {
    const pith_rdb_column *target = metric_target(r);
    double mean = 0, total = 0, left = 0, constant = 0, unused[3];
    for (size_t i = 0; i < n; i++) mean += rows[i].truth / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double away = rows[i].answer * target->sd + target->mean - rows[i].truth;
        rows[i].loss = fabs(away);
        left += away * away;
        total += (rows[i].truth - mean) * (rows[i].truth - mean);
        constant += fabs(target->mean - rows[i].truth) / (double)n;
    }
    metric_bootstrap(unused, m->mae, rows, times, n);
    m->r2 = total > 0 ? 1 - left / total : NAN;
    m->constant_mae = constant;
}

pith_status pith_trainer_evaluate(pith_relational_metrics *metrics, pith_relational *r, int32_t split, int32_t threads,
                                  pith_error *err) {
    const uint32_t all = r->rdb->tables[r->task->table].rows;
    const pith_rdb_column *target = metric_target(r);
    const bool boolean = target->stype == PITH_STYPE_BOOLEAN;
    size_t n = 0;
    pith_relational_metrics m = { 0, { NAN, NAN, NAN }, { NAN, NAN, NAN }, NAN, { NAN, NAN, NAN }, NAN, NAN, NAN, NAN };
    if (!pith_trainer_workers(r, threads)) return pith_fail_memory(err, r->rdb->string_count * 4u);
    const pith_arena_mark inner = pith_arena_get_mark(&r->arena);
    uint32_t *rows = pith_arena_array(&r->arena, (size_t)all + 1, sizeof *rows);
    float *answers = pith_arena_array(&r->arena, (size_t)all + 1, sizeof *answers);
    metric_row *list = pith_arena_array(&r->arena, (size_t)all + 1, sizeof *list);
    pith_status status = rows && answers && list ? PITH_OK : pith_fail_memory(err, all * sizeof *list);
    for (uint32_t i = 0; !status && i < all; i++)
        if (pith_rdb_split(r->rdb, r->task, i) == split) rows[n++] = i;
    if (!status) status = pith_trainer_answer(answers, r, rows, n, threads, err);
    for (size_t i = 0; !status && i < n; i++) {
        list[i].answer = answers[i];
        list[i].truth = boolean ? ((const uint8_t *)target->data)[rows[i]] : ((const double *)target->data)[rows[i]];
    }
    m.rows = (int64_t)n;
    if (!status && n && boolean) metric_booleans(&m, r, list, rows, n);
    if (!status && n && !boolean) metric_numbers(&m, r, list, rows, n);
    pith_arena_rewind(&r->arena, inner);
    if (!status) *metrics = m;
    return status;
}

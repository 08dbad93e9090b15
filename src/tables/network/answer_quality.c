/* answer_quality.c - see answer_quality.h. Intervals are those of bootstrap samples of the rows,
 * drawn from a fixed seed. */
#include "tables/network/answer_quality.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/work.h"
#include "tables/database/stoppable_sort.h"
#include "tables/network/cell_sampler.h"

/* Samples of an interval, whose bounds are the values at 1/40 of either end: 95 % lie between them.
 * More make the bounds steadier from seed to seed and take time in proportion. */
enum { BOOTSTRAP = 1000 };

/* What a measure works with. Measures return at once where the call must end; what they have said
 * is then of no use. */
typedef struct measure_work {
    uint32_t *times; /* [rows] */
    pith__arena *arena;
    pith__stop *stop;
} measure_work;

/* One row: its answer, its true value, its loss. */
typedef struct measure_row {
    double answer, truth, loss;
} measure_row;

static int measure_compare(const void *a, const void *b) {
    const measure_row *x = a, *y = b;
    return (x->answer > y->answer) - (x->answer < y->answer);
}

/* The area under the ROC curve of rows in ascending order, each counted `times` times; equal
 * answers count half. */
static double measure_auroc(const measure_row *rows, const uint32_t *times, size_t n) {
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

static double measure_loss(const measure_row *rows, const uint32_t *times, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += times[i] * rows[i].loss;
    return n ? sum / (double)n : NAN;
}

static int number_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

/* How often each row is in a sample. False if the call must end. */
static bool measure_draw(uint32_t *times, uint64_t *state, size_t n, pith__stop *stop) {
    memset(times, 0, n * sizeof *times);
    for (size_t i = 0; i < n; i++) {
        if (pith__row_stops(stop, i)) return false;
        times[((pith__random_next(state) >> 32) * n) >> 32]++;
    }
    return true;
}

static void measure_bounds(double *bounds, double *drawn) {
    qsort(drawn, BOOTSTRAP, sizeof *drawn, number_compare);
    bounds[0] = drawn[BOOTSTRAP / 40];
    bounds[1] = drawn[BOOTSTRAP - 1 - BOOTSTRAP / 40];
}

/* Values and bounds of the area and of the loss. A bootstrap sample draws n rows with replacement;
 * it is kept as the number of times each row was drawn, so that rows are sorted by their answers
 * once and not for each sample. */
static void measure_bootstrap(double *area, double *loss, measure_row *rows, size_t n,
                              const measure_work *w) {
    double areas[BOOTSTRAP], losses[BOOTSTRAP];
    uint32_t *times = w->times;
    uint64_t state = pith__random_state(3, n, 0, 0);
    if (!pith__sort(rows, n, sizeof *rows, measure_compare, w->stop, w->arena)) return;
    for (size_t i = 0; i < n; i++) times[i] = 1;
    area[0] = measure_auroc(rows, times, n);
    loss[0] = measure_loss(rows, times, n);
    for (int b = 0; b < BOOTSTRAP; b++) {
        if (!measure_draw(times, &state, n, w->stop)) return;
        areas[b] = measure_auroc(rows, times, n);
        losses[b] = measure_loss(rows, times, n);
    }
    measure_bounds(area + 1, areas);
    measure_bounds(loss + 1, losses);
}

/* The loss of a logit z for y of 0 or 1, log(1 + e^z) - z y, in a form that does not overflow. The
 * constant beside it answers the training rows' share of yes to every row. */
static void measure_booleans(pith_relational_metrics *m, const pith__target *target,
                             measure_row *rows, size_t n, const measure_work *w) {
    const double rate = target->column->mean;
    double yes = 0, right = 0;
    for (size_t i = 0; i < n; i++) {
        if (pith__row_stops(w->stop, i)) return;
        const double z = rows[i].answer, y = rows[i].truth;
        rows[i].loss = (z > 0 ? z : 0) - z * y + log1p(exp(-fabs(z)));
        yes += y;
        right += (z > 0) == (y > 0);
    }
    measure_bootstrap(m->auroc, m->logloss, rows, n, w);
    m->accuracy = right / (double)n;
    m->base_rate = yes / (double)n;
    m->constant_logloss = -(m->base_rate * log(rate) + (1 - m->base_rate) * log1p(-rate));
}

/* Accuracy, the loss (log of the sum of exponentials, relative to the largest) and the macro F1:
 * the mean over the classes that occur among the truths. answers[n][outputs]; rows[i].truth is a
 * class. */
static void measure_classes(pith_relational_metrics *m, const pith__target *target,
                            const double *answers, measure_row *rows, size_t n,
                            const measure_work *w) {
    const int k = target->outputs;
    double right = 0, constant = 0, unused[3], f1 = 0;
    double said[PITH_TARGET_CLASSES] = { 0 }, is[PITH_TARGET_CLASSES] = { 0 },
           both[PITH_TARGET_CLASSES] = { 0 };
    int there = 0;
    for (size_t i = 0; i < n; i++) {
        if (pith__row_stops(w->stop, i)) return;
        const double *z = answers + i * (size_t)k;
        const int truth = (int)rows[i].truth;
        double sum = 0;
        int best = 0;
        for (int c = 1; c < k; c++) best = z[c] > z[best] ? c : best;
        for (int c = 0; c < k; c++) sum += exp(z[c] - z[best]);
        rows[i].loss = log(sum) + z[best] - z[truth];
        right += best == truth;
        said[best]++;
        is[truth]++;
        both[truth] += best == truth;
        constant -= log(target->shares[truth]) / (double)n;
    }
    for (int c = 0; c < k; c++) {
        if (is[c] <= 0) continue;
        there++;
        f1 += 2 * both[c] / (said[c] + is[c]);
    }
    measure_bootstrap(unused, m->logloss, rows, n, w);
    m->accuracy = right / (double)n;
    m->macro_f1 = f1 / there;
    m->constant_logloss = constant;
}

/* The mean distance, whose constant answers the usual value to every row, and R2, the share of the
 * variance that the answers explain. The constant of ranks is the middle one. */
static void measure_numbers(pith_relational_metrics *m, const pith__target *target,
                            measure_row *rows, size_t n, const measure_work *w) {
    const double usual = target->kind == PITH_TARGET_RANK ? 0.5 : pith__target_answer(target, 0);
    double mean = 0, total = 0, left = 0, constant = 0, unused[3];
    for (size_t i = 0; i < n; i++) mean += rows[i].truth / (double)n;
    for (size_t i = 0; i < n; i++) {
        if (pith__row_stops(w->stop, i)) return;
        const double away = rows[i].answer - rows[i].truth;
        rows[i].loss = fabs(away);
        left += away * away;
        total += (rows[i].truth - mean) * (rows[i].truth - mean);
        constant += fabs(usual - rows[i].truth) / (double)n;
    }
    measure_bootstrap(unused, m->mae, rows, n, w);
    m->r2 = total > 0 ? 1 - left / total : NAN;
    m->constant_mae = constant;
}

static int measure_compare_truth(const void *a, const void *b) {
    const measure_row *x = a, *y = b;
    return (x->truth > y->truth) - (x->truth < y->truth);
}

/* Puts ranks, equal values sharing theirs, in the place of answers or truths of rows in that order.
 */
static void measure_rank(measure_row *rows, size_t n, size_t offset) {
    for (size_t i = 0, k; i < n; i = k) {
        const double x = *(const double *)(const void *)((const char *)&rows[i] + offset);
        for (k = i; k < n && *(const double *)(const void *)((const char *)&rows[k] + offset) == x;)
            k++;
        for (size_t j = i; j < k; j++)
            *(double *)(void *)((char *)&rows[j] + offset) = ((double)i + (double)k - 1) / 2;
    }
}

/* The correlation of answers and truths, each row counted `times` times. */
static double measure_correlation(const measure_row *rows, const uint32_t *times, size_t n) {
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < n; i++) {
        x += times[i] * rows[i].answer / (double)n;
        y += times[i] * rows[i].truth / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        const double a = rows[i].answer - x, b = rows[i].truth - y;
        xx += times[i] * a * a;
        yy += times[i] * b * b;
        xy += times[i] * a * b;
    }
    const double least = 1e-9 * (double)n; /* ranks that are all equal, but for rounding */
    return xx > least && yy > least ? xy / sqrt(xx * yy) : NAN;
}

/* Spearman's correlation: that of the ranks. Its samples keep the ranks of all rows, since ranking
 * each sample again would mean sorting it. */
static void measure_spearman(double *result, measure_row *rows, size_t n, const measure_work *w) {
    double drawn[BOOTSTRAP];
    uint32_t *times = w->times;
    uint64_t state = pith__random_state(3, n, 0, 0);
    if (!pith__sort(rows, n, sizeof *rows, measure_compare_truth, w->stop, w->arena)) return;
    measure_rank(rows, n, offsetof(measure_row, truth));
    if (!pith__sort(rows, n, sizeof *rows, measure_compare, w->stop, w->arena)) return;
    measure_rank(rows, n, offsetof(measure_row, answer));
    for (size_t i = 0; i < n; i++) times[i] = 1;
    result[0] = measure_correlation(rows, times, n);
    for (int b = 0; b < BOOTSTRAP; b++) {
        if (!measure_draw(times, &state, n, w->stop)) return;
        drawn[b] = measure_correlation(rows, times, n);
    }
    measure_bounds(result + 1, drawn);
}

pith_status pith__answer_quality(pith_relational_metrics *metrics, const pith__target *target,
                                 const double *answers, const uint32_t *asked, size_t n,
                                 pith__stop *stop, pith__arena *arena, pith_error *err) {
    pith_relational_metrics m = { sizeof m,
                                  0,
                                  { NAN, NAN, NAN },
                                  { NAN, NAN, NAN },
                                  NAN,
                                  { NAN, NAN, NAN },
                                  NAN,
                                  NAN,
                                  NAN,
                                  NAN,
                                  { NAN, NAN, NAN },
                                  NAN };
    const pith__arena_mark mark = pith__arena_get_mark(arena);
    measure_row *rows = pith__arena_array(arena, n + 1, sizeof *rows);
    uint32_t *times = pith__arena_array(arena, n + 1, sizeof *times);
    if (!rows || !times) return pith__fail_memory(err, n * sizeof *rows);
    const measure_work w = { times, arena, stop };
    for (size_t i = 0; i < n; i++) {
        PITH_TRY_ROW(stop, i, err);
        rows[i] = (measure_row){ answers[i * (size_t)target->outputs],
                                 pith__target_truth(target, asked[i]), 0 };
    }
    m.rows = (int64_t)n;
    if (n && target->kind == PITH_TARGET_BOOLEAN) {
        measure_booleans(&m, target, rows, n, &w);
    } else if (n && target->kind == PITH_TARGET_CLASS) {
        measure_classes(&m, target, answers, rows, n, &w);
    } else if (n) {
        measure_numbers(&m, target, rows, n, &w);
        measure_spearman(m.spearman, rows, n, &w);
    }
    pith__arena_rewind(arena, mark);
    PITH_TRY(pith__stop_check(stop, err));
    *metrics = m;
    return PITH_OK;
}

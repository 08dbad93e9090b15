/* baseline.c - see baseline.h. */
#include "tables/baseline/baseline.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/os/threads.h"
#include "tables/database/stoppable_sort.h"
#include "tables/network/answer_quality.h"

const char *const pith__baseline_names[PITH_BASELINE_COUNT] = { "constant", "entity mean",
                                                                "trees: row", "trees: row, parents",
                                                                "trees: row, parents, children" };

/* Why work was not done: the call must end, or memory is out. */
static pith_status baseline_undone(const pith__baseline *b, pith_error *err) {
    PITH_TRY(pith__stop_check(b->work->stop, err));
    return pith__fail_memory(err, b->arena.total);
}

/* The rows of a part, in the arena; NULL if memory is out or the call must end. */
static uint32_t *baseline_rows(size_t *count, pith__baseline *b, int part) {
    const uint32_t all = b->rdb->tables[b->task->table].rows;
    uint32_t *rows = pith__arena_array(&b->arena, (size_t)all + 1, sizeof *rows);
    *count = 0;
    if (!rows) return NULL;
    for (uint32_t i = 0; i < all; i++) {
        if (pith__row_stops(b->work->stop, i)) return NULL;
        if (pith__rdb_split(b->rdb, b->task, i) == part) rows[(*count)++] = i;
    }
    return rows;
}

/* ---- the constant ---- */

static int baseline_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The shares of the classes; or the median, and the mean distance from it. */
static bool baseline_constant(pith__baseline *b) {
    const pith__arena_mark mark = pith__arena_get_mark(&b->arena);
    double *x = pith__arena_array(&b->arena, b->train_count + 1, sizeof *x), sum = 0;
    if (!x) return false;
    for (size_t i = 0; i < b->train_count; i++) {
        if (pith__row_stops(b->work->stop, i)) return false;
        x[i] = pith__target_truth(b->target, b->train[i]);
        sum += x[i];
    }
    b->spread = 1;
    if (b->loss == PITH_FOREST_CLASSES) {
        for (int k = 0; k < b->target->outputs; k++) b->start[k] = log(b->target->shares[k]);
    } else if (b->loss == PITH_FOREST_BOOLEAN) {
        const double n = (double)b->train_count, share = (sum + 1e-3) / (n + 2e-3);
        b->start[0] = log(share / (1 - share));
    } else if (b->train_count) {
        if (!pith__sort(x, b->train_count, sizeof *x, baseline_compare, b->work->stop, &b->arena))
            return false;
        b->middle = x[b->train_count / 2];
        sum = 0;
        for (size_t i = 0; i < b->train_count; i++) sum += fabs(x[i] - b->middle);
        if (sum > 0) b->spread = sum / (double)b->train_count;
    }
    pith__arena_rewind(&b->arena, mark);
    return true;
}

static double baseline_truth(const pith__baseline *b, uint32_t row) {
    const double x = pith__target_truth(b->target, row);
    return b->loss == PITH_FOREST_NUMBER ? (x - b->middle) / b->spread : x;
}

/* ---- the mean of earlier labels of the same parent ---- */

/* The answer from the labels' means and number: mean[output] of row i is means[output * stride +
 * i]. */
static void entity_answer(double *answer, const pith__baseline *b, double weight,
                          const double *means, size_t stride, double count) {
    const int outputs = b->target->outputs;
    for (int k = 0; k < outputs; k++) {
        const double mean = means[(size_t)k * stride], start = b->start[k];
        answer[k] = start;
        if (!(count > 0)) continue;
        if (b->loss == PITH_FOREST_NUMBER) {
            answer[k] = (mean - b->middle) / b->spread * count / (count + weight);
            continue;
        }
        const double usual =
            b->loss == PITH_FOREST_CLASSES ? b->target->shares[k] : 1 / (1 + exp(-start));
        const double share = (mean * count + weight * usual) / (count + weight);
        double bound = share;
        if (share < 1e-6)
            bound = 1e-6;
        else if (share > 1 - 1e-6)
            bound = 1 - 1e-6;
        answer[k] = b->loss == PITH_FOREST_CLASSES ? log(bound) : log(bound / (1 - bound));
    }
}

/* Means and numbers of the labels: values[outputs][count], then counts[count]. False if memory is
 * out. */
static bool entity_values(double **values, pith__baseline *b, const pith__feature_list *list,
                          const pith__feature_group *first, const pith__feature_seeds *seeds) {
    const size_t n = seeds->count, outputs = (size_t)b->target->outputs;
    *values = pith__arena_array(&b->arena, n + 1, (outputs + 1) * sizeof **values);
    double *group = pith__arena_array(&b->arena, n + 1, (size_t)first->count * sizeof *group);
    if (!*values || !group) return false;
    for (size_t k = 0; k < outputs; k++) {
        const pith__arena_mark mark = pith__arena_get_mark(&b->arena);
        if (!pith__feature_values(group, list, first + k, seeds, &b->arena)) return false;
        memcpy(*values + k * n, group, n * sizeof *group);
        pith__arena_rewind(&b->arena, mark);
    }
    memcpy(*values + outputs * n, group + n, n * sizeof *group);
    return true;
}

pith_status pith__baseline_entity_take(pith__baseline *b, const pith__feature_list *list,
                                       size_t group, double weight, pith_error *err) {
    const size_t outputs = (size_t)b->target->outputs;
    b->features = *list;
    b->features.group_count = outputs;
    b->features.groups = pith__arena_array(&b->arena, outputs, sizeof *list->groups);
    if (!b->features.groups) return baseline_undone(b, err);
    memcpy(b->features.groups, list->groups + group, outputs * sizeof *list->groups);
    b->entity = group;
    b->weight = weight;
    return PITH_OK;
}

/* Tries one group of labels with several weights; keeps what has the least loss. */
static bool entity_try(pith__baseline *b, double *least, const pith__feature_list *list,
                       const pith__feature_group *g, const uint32_t *rows, size_t count) {
    const pith__arena_mark mark = pith__arena_get_mark(&b->arena);
    const size_t outputs = (size_t)b->target->outputs;
    double *values, answer[PITH_TARGET_CLASSES], kept = 0;
    pith__feature_seeds seeds;
    if (!pith__feature_seeds_make(&seeds, b->rdb, b->task, rows, count, b->work->stop, &b->arena) ||
        !entity_values(&values, b, list, g, &seeds))
        return false;
    for (double weight = 0.5; weight < 300; weight *= 2) {
        double loss = 0;
        for (size_t i = 0; i < count; i++) {
            if (pith__row_stops(b->work->stop, i)) return false;
            entity_answer(answer, b, weight, values + i, count, values[outputs * count + i]);
            loss += pith__forest_loss_of(b->loss, b->target->outputs, answer,
                                         baseline_truth(b, rows[i]));
        }
        if (!(loss < *least)) continue;
        *least = loss;
        kept = weight;
    }
    pith__arena_rewind(&b->arena, mark);
    if (kept <= 0) return true;
    return !pith__baseline_entity_take(b, list, (size_t)(g - list->groups), kept, NULL);
}

static pith_status entity_fit(pith__baseline *b, pith_error *err) {
    const uint32_t *rows = b->validation_count ? b->validation : b->train;
    const size_t count = b->validation_count ? b->validation_count : b->train_count;
    double least = 0;
    pith__feature_list list;
    PITH_TRY(pith__features_list(&list, b->target, PITH_FEATURE_AGGREGATES, &b->arena, err));
    for (size_t i = 0; i < count; i++) {
        PITH_TRY_ROW(b->work->stop, i, err);
        least +=
            pith__forest_loss_of(b->loss, b->target->outputs, b->start, baseline_truth(b, rows[i]));
    }
    for (size_t i = 0; i < list.group_count; i++) {
        const pith__feature_group *g = &list.groups[i];
        pith__work_tell(b->work, "features", i, list.group_count);
        if (!g->target || g->label || g->ups != 1 || g->down != g->up[0]) continue;
        if (!entity_try(b, &least, &list, g, rows, count)) return baseline_undone(b, err);
    }
    return PITH_OK;
}

/* ---- trees ---- */

/* Features of rows as bytes, group by group on all threads. */
typedef struct baseline_matrix {
    pith__baseline *b;
    const pith__feature_seeds *seeds;
    size_t learn;        /* the first rows, from whose values bins are made; 0: bins are there */
    uint8_t **columns;   /* [features.count] of [seeds->count] */
    pith__arena *arenas; /* [threads] */
    bool *failed;        /* [groups] */
    atomic_size_t done;  /* groups */
} baseline_matrix;

static bool matrix_group(baseline_matrix *m, const pith__feature_group *g, pith__arena *arena) {
    const size_t n = m->seeds->count;
    double *values = pith__arena_array(arena, n + 1, (size_t)g->count * sizeof *values);
    double *copy = pith__arena_array(arena, n + 1, sizeof *copy);
    if (!values || !copy || !pith__feature_values(values, &m->b->features, g, m->seeds, arena))
        return false;
    for (int k = 0; k < g->count; k++) {
        const double *x = values + (size_t)k * n;
        pith__feature_bins *bins = &m->b->bins[g->first + k];
        if (m->learn) {
            memcpy(copy, x, m->learn * sizeof *copy);
            if (!pith__feature_bins_make(bins, copy, m->learn, g->category[k], m->seeds->stop,
                                         arena))
                return false;
        }
        for (size_t i = 0; i < n; i++) {
            if (pith__row_stops(m->seeds->stop, i)) return false;
            m->columns[g->first + k][i] = pith__feature_bin_of(bins, x[i]);
        }
    }
    return true;
}

static void matrix_part(void *context, size_t part, int worker) {
    baseline_matrix *m = context;
    pith__arena_reset(&m->arenas[worker]);
    m->failed[part] = pith__stop_asked(m->seeds->stop) ||
                      !matrix_group(m, &m->b->features.groups[part], &m->arenas[worker]);
    if (!m->learn || !m->b->work->progress) return;
    const size_t done = atomic_fetch_add(&m->done, 1) + 1;
    pith__work_tell(m->b->work, "features", done, m->b->features.group_count);
}

/* Fills the matrix; its columns are in the arena of the baseline. */
static bool matrix_make(baseline_matrix *m, pith__baseline *b, const pith__feature_seeds *seeds,
                        size_t learn) {
    const size_t features = (size_t)b->features.count, groups = b->features.group_count;
    bool failed = false;
    *m = (baseline_matrix){ .b = b, .seeds = seeds, .learn = learn };
    m->columns = pith__arena_array(&b->arena, features + 1, sizeof *m->columns);
    m->arenas = pith__arena_array(&b->arena, (size_t)b->threads, sizeof *m->arenas);
    m->failed = pith__arena_array(&b->arena, groups + 1, sizeof *m->failed);
    if (!m->columns || !m->arenas || !m->failed) return false;
    for (size_t f = 0; f < features; f++)
        if (!(m->columns[f] = pith__arena_alloc(&b->arena, seeds->count + 1))) return false;
    for (int i = 0; i < b->threads; i++) pith__arena_init(&m->arenas[i], b->allocator);
    pith__threads_run_until(seeds->stop, matrix_part, m, groups,
                            seeds->count < 100 ? 1 : b->threads);
    for (int i = 0; i < b->threads; i++) pith__arena_free(&m->arenas[i]);
    for (size_t g = 0; g < groups; g++) failed |= m->failed[g];
    return !failed && !pith__stop_asked(seeds->stop);
}

static int baseline_level(pith__baseline_kind kind) {
    if (kind == PITH_BASELINE_ROW) return PITH_FEATURE_ROW;
    if (kind == PITH_BASELINE_PARENTS) return PITH_FEATURE_PARENTS;
    return PITH_FEATURE_AGGREGATES;
}

pith_status pith__baseline_trees_begin(pith__baseline *b, pith_error *err) {
    PITH_TRY(pith__features_list(&b->features, b->target, baseline_level(b->kind), &b->arena, err));
    const size_t features = (size_t)b->features.count;
    b->bins = pith__arena_array(&b->arena, features + 1, sizeof *b->bins);
    b->category = pith__arena_array(&b->arena, features + 1, sizeof *b->category);
    if (!b->bins || !b->category) return baseline_undone(b, err);
    for (size_t f = 0; f < features; f++)
        if (!(b->bins[f].cuts = pith__arena_array(&b->arena, PITH_BINS, sizeof(double))))
            return baseline_undone(b, err);
    for (size_t i = 0; i < b->features.group_count; i++) {
        const pith__feature_group *g = &b->features.groups[i];
        for (int k = 0; k < g->count; k++) b->category[g->first + k] = g->category[k];
    }
    return PITH_OK;
}

/* Training rows come first in the matrix and validation rows follow: bins are made from the former
 * alone. */
static pith_status trees_fit(pith__baseline *b, pith_error *err) {
    const size_t n = b->train_count + b->validation_count;
    baseline_matrix matrix;
    pith__feature_seeds seeds;
    PITH_TRY(pith__baseline_trees_begin(b, err));
    uint32_t *rows = pith__arena_array(&b->arena, n + 1, sizeof *rows);
    double *truths = pith__arena_array(&b->arena, n + 1, sizeof *truths);
    if (!rows || !truths) return baseline_undone(b, err);
    memcpy(rows, b->train, b->train_count * sizeof *rows);
    memcpy(rows + b->train_count, b->validation, b->validation_count * sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        PITH_TRY_ROW(b->work->stop, i, err);
        truths[i] = baseline_truth(b, rows[i]);
    }
    if (!pith__feature_seeds_make(&seeds, b->rdb, b->task, rows, n, b->work->stop, &b->arena) ||
        !matrix_make(&matrix, b, &seeds, b->train_count))
        return baseline_undone(b, err);
    const pith__forest_data data = { .bins = matrix.columns,
                                     .category = b->category,
                                     .features = b->features.count,
                                     .outputs = b->target->outputs,
                                     .loss = b->loss,
                                     .train = b->train_count,
                                     .validation = b->validation_count,
                                     .truths = truths,
                                     .start = b->start };
    return pith__forest_grow(&b->forest, &data, b->threads, b->work, &b->arena)
               ? PITH_OK
               : baseline_undone(b, err);
}

/* ---- all of them ---- */

pith_status pith__baseline_begin(pith__baseline *b, const pith__rdb *rdb,
                                 const pith__rdb_task *task, pith__baseline_kind kind,
                                 const pith__work *work, const pith_allocator *allocator,
                                 pith_error *err) {
    *b = (pith__baseline){
        .kind = kind, .rdb = rdb, .task = task, .allocator = allocator, .work = work
    };
    pith__arena_init(&b->arena, allocator);
    b->threads = pith__threads_count(work->threads);
    b->target = pith__arena_array(&b->arena, 1, sizeof *b->target);
    if (!b->target) return baseline_undone(b, err);
    PITH_TRY(pith__target_make(b->target, rdb, task, work->stop, &b->arena, err));
    b->loss = PITH_FOREST_NUMBER;
    if (b->target->kind == PITH_TARGET_BOOLEAN)
        b->loss = PITH_FOREST_BOOLEAN;
    else if (b->target->kind == PITH_TARGET_CLASS)
        b->loss = PITH_FOREST_CLASSES;
    return PITH_OK;
}

pith_status pith__baseline_fit(pith__baseline *b, const pith__rdb *rdb, const pith__rdb_task *task,
                               pith__baseline_kind kind, const pith__work *work,
                               const pith_allocator *allocator, pith_error *err) {
    PITH_TRY(pith__baseline_begin(b, rdb, task, kind, work, allocator, err));
    b->train = baseline_rows(&b->train_count, b, PITH_TRAIN);
    b->validation = baseline_rows(&b->validation_count, b, PITH_VALIDATION);
    if (!b->train || !b->validation || !baseline_constant(b)) return baseline_undone(b, err);
    if (!b->train_count)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the task has no rows to train on");
    if (kind == PITH_BASELINE_CONSTANT) return PITH_OK;
    return kind == PITH_BASELINE_ENTITY ? entity_fit(b, err) : trees_fit(b, err);
}

void pith__baseline_free(pith__baseline *b) { pith__arena_free(&b->arena); }

static bool baseline_entities(double *answers, pith__baseline *b,
                              const pith__feature_seeds *seeds) {
    const size_t n = seeds->count, outputs = (size_t)b->target->outputs;
    double *values;
    if (!b->features.group_count) return true;
    if (!entity_values(&values, b, &b->features, b->features.groups, seeds)) return false;
    for (size_t i = 0; i < n; i++)
        entity_answer(answers + i * outputs, b, b->weight, values + i, n, values[outputs * n + i]);
    return true;
}

static bool baseline_trees(double *answers, pith__baseline *b, const pith__feature_seeds *seeds) {
    baseline_matrix matrix;
    uint8_t *bins = pith__arena_alloc(&b->arena, (size_t)b->features.count + 1);
    if (!bins || !matrix_make(&matrix, b, seeds, 0)) return false;
    for (size_t i = 0; i < seeds->count; i++) {
        if (pith__row_stops(seeds->stop, i)) return false;
        for (int f = 0; f < b->features.count; f++) bins[f] = matrix.columns[f][i];
        pith__forest_answer(answers + i * (size_t)b->target->outputs, &b->forest, bins);
    }
    return true;
}

pith_status pith__baseline_answer(double *answers, pith__baseline *b, const uint32_t *rows,
                                  size_t count, const pith__work *work, pith_error *err) {
    const pith__arena_mark mark = pith__arena_get_mark(&b->arena);
    const size_t outputs = (size_t)b->target->outputs;
    pith__feature_seeds seeds;
    b->work = work;
    bool done =
        pith__feature_seeds_make(&seeds, b->rdb, b->task, rows, count, work->stop, &b->arena);
    for (size_t i = 0; i < count; i++)
        memcpy(answers + i * outputs, b->start, outputs * sizeof *answers);
    if (done && b->kind == PITH_BASELINE_ENTITY) done = baseline_entities(answers, b, &seeds);
    if (done && b->kind > PITH_BASELINE_ENTITY) done = baseline_trees(answers, b, &seeds);
    pith__arena_rewind(&b->arena, mark);
    if (!done) return baseline_undone(b, err);
    if (b->loss == PITH_FOREST_NUMBER)
        for (size_t i = 0; i < count; i++) answers[i] = answers[i] * b->spread + b->middle;
    return PITH_OK;
}

static pith_status baseline_metrics(pith_relational_metrics *metrics, pith__baseline *b,
                                    int32_t split, pith_error *err) {
    size_t n;
    const uint32_t *rows = baseline_rows(&n, b, split);
    double *answers =
        pith__arena_array(&b->arena, n + 1, (size_t)b->target->outputs * sizeof *answers);
    if (!rows || !answers) return baseline_undone(b, err);
    PITH_TRY(pith__baseline_answer(answers, b, rows, n, b->work, err));
    return pith__answer_quality(metrics, b->target, answers, rows, n, b->work->stop, &b->arena,
                                err);
}

pith_status pith__baseline_measure(pith_relational_metrics *metrics, const pith__rdb *rdb,
                                   const pith__rdb_task *task, int32_t kind, int32_t split,
                                   const pith__work *work, const pith_allocator *allocator,
                                   pith_error *err) {
    pith__baseline b;
    if (kind < 0 || kind >= PITH_BASELINE_COUNT)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no baseline %d", (int)kind);
    pith_status status =
        pith__baseline_fit(&b, rdb, task, (pith__baseline_kind)kind, work, allocator, err);
    if (!status) status = baseline_metrics(metrics, &b, split, err);
    pith__baseline_free(&b);
    return status;
}

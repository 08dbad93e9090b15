/* task_target.c - see task_target.h. */
#include "tables/database/task_target.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "base/work.h"
#include "tables/database/stoppable_sort.h"

#define TARGET_UNIFORM                                                                             \
    3.4641016151377544 /* the root of 12: a uniform distribution has the deviation 1 / root 12 */

static pith_str target_text(const pith__rdb *rdb, uint32_t string) {
    return (pith_str){ rdb->string_bytes + rdb->string_begin[string],
                       (size_t)(rdb->string_begin[string + 1] - rdb->string_begin[string]) };
}

static bool target_before(const pith__rdb *rdb, uint32_t a, uint32_t b) {
    const pith_str x = target_text(rdb, a), y = target_text(rdb, b);
    const int order = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
    return order ? order < 0 : x.size < y.size;
}

/* The place of a string among the classes, or where it belongs. */
static int target_place(const pith__target *t, uint32_t string) {
    int i = 0;
    while (i < t->outputs && t->classes[i] != string &&
           target_before(t->rdb, t->classes[i], string))
        i++;
    return i;
}

static double target_class(const pith__target *t, uint32_t string) {
    int i = 0;
    while (i < t->outputs && t->classes[i] != string) i++;
    return i < t->outputs ? i : -1;
}

static pith_status target_classes(pith__target *t, uint32_t rows, pith__stop *stop,
                                  pith__arena *arena, pith_error *err) {
    const uint32_t *cells = t->column->data;
    double all = 0;
    t->outputs = 0;
    t->classes = pith__arena_array(arena, PITH_TARGET_CLASSES + 1, sizeof *t->classes);
    t->shares = pith__arena_array(arena, PITH_TARGET_CLASSES + 1, sizeof *t->shares);
    if (!t->classes || !t->shares)
        return pith__fail_memory(err, PITH_TARGET_CLASSES * sizeof *t->shares);
    if (t->task->classes) {
        t->outputs = (int)t->task->class_count;
        memcpy(t->classes, t->task->classes, t->task->class_count * sizeof *t->classes);
        memcpy(t->shares, t->task->labels, t->task->class_count * sizeof *t->shares);
        return PITH_OK;
    }
    for (uint32_t r = 0; r < rows && t->outputs <= PITH_TARGET_CLASSES; r++) {
        PITH_TRY_ROW(stop, r, err);
        if (cells[r] == PITH_RDB_NONE) continue;
        const int at = target_place(t, cells[r]);
        if (at < t->outputs && t->classes[at] == cells[r]) continue;
        memmove(t->classes + at + 1, t->classes + at,
                (size_t)(t->outputs - at) * sizeof *t->classes);
        t->classes[at] = cells[r];
        t->outputs++;
    }
    if (t->outputs < 2 || t->outputs > PITH_TARGET_CLASSES)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the target of task '" PITH_STR_FMT
                          "' has %s %d categories; it must have 2 to %d",
                          PITH_STR_ARG(t->task->name), t->outputs < 2 ? "only" : "more than",
                          t->outputs < 2 ? t->outputs : PITH_TARGET_CLASSES, PITH_TARGET_CLASSES);
    for (uint32_t r = 0; r < rows; r++) {
        PITH_TRY_ROW(stop, r, err);
        if (pith__rdb_split(t->rdb, t->task, r) == PITH_TRAIN)
            t->shares[target_place(t, cells[r])]++, all++;
    }
    for (int i = 0; i < t->outputs; i++)
        t->shares[i] = (t->shares[i] + 1e-3) / (all + 1e-3 * t->outputs);
    return PITH_OK;
}

static int target_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static pith_status target_ranks(pith__target *t, uint32_t rows, pith__stop *stop,
                                pith__arena *arena, pith_error *err) {
    if (t->task->labels) rows = t->task->label_count;
    t->ranks = pith__arena_array(arena, (size_t)rows + 1, sizeof *t->ranks);
    if (!t->ranks) return pith__fail_memory(err, rows * sizeof *t->ranks);
    if (t->task->labels) {
        memcpy(t->ranks, t->task->labels, t->task->label_count * sizeof *t->ranks);
        t->rank_count = t->task->label_count;
        return PITH_OK;
    }
    for (uint32_t r = 0; r < rows; r++) {
        PITH_TRY_ROW(stop, r, err);
        if (pith__rdb_split(t->rdb, t->task, r) == PITH_TRAIN)
            t->ranks[t->rank_count++] = ((const double *)t->column->data)[r];
    }
    return pith__sort(t->ranks, t->rank_count, sizeof *t->ranks, target_compare, stop, arena)
               ? PITH_OK
               : pith__stop_check(stop, err);
}

pith_status pith__target_make(pith__target *t, const pith__rdb *rdb, const pith__rdb_task *task,
                              pith__stop *stop, pith__arena *arena, pith_error *err) {
    const uint32_t rows = rdb->tables[task->table].rows;
    *t = (pith__target){ .rdb = rdb,
                         .task = task,
                         .column = &rdb->tables[task->table].columns[task->column] };
    t->outputs = 1;
    if (t->column->stype == PITH_STYPE_CATEGORICAL) {
        t->kind = PITH_TARGET_CLASS;
        return target_classes(t, rows, stop, arena, err);
    }
    t->kind = PITH_TARGET_NUMBER;
    if (t->column->stype == PITH_STYPE_BOOLEAN)
        t->kind = PITH_TARGET_BOOLEAN;
    else if (task->rank)
        t->kind = PITH_TARGET_RANK;
    return t->kind == PITH_TARGET_RANK ? target_ranks(t, rows, stop, arena, err) : PITH_OK;
}

/* The number of training labels below x; with `equal`, also those equal to it. */
static uint32_t target_below(const pith__target *t, double x, bool equal) {
    uint32_t low = 0, high = t->rank_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->ranks[middle] < x || (equal && t->ranks[middle] == x))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double pith__target_truth(const pith__target *t, uint32_t row) {
    switch (t->kind) {
    case PITH_TARGET_BOOLEAN: return ((const uint8_t *)t->column->data)[row];
    case PITH_TARGET_CLASS: return target_class(t, ((const uint32_t *)t->column->data)[row]);
    default: break;
    }
    const double x = ((const double *)t->column->data)[row];
    if (t->kind == PITH_TARGET_NUMBER || !t->rank_count) return x;
    return ((double)target_below(t, x, false) + target_below(t, x, true)) / 2 / t->rank_count;
}

double pith__target_scaled(const pith__target *t, uint32_t row) {
    if (t->kind == PITH_TARGET_RANK) return (pith__target_truth(t, row) - 0.5) * TARGET_UNIFORM;
    return pith__rdb_scaled(t->column, row);
}

void pith__target_units(double *factor, double *shift, const pith__target *t) {
    const bool rank = t->kind == PITH_TARGET_RANK;
    *factor = rank ? 1 / TARGET_UNIFORM : t->column->sd;
    *shift = rank ? 0.5 : t->column->mean;
}

double pith__target_answer(const pith__target *t, double answer) {
    double factor, shift;
    if (t->kind != PITH_TARGET_RANK && t->kind != PITH_TARGET_NUMBER) return answer;
    pith__target_units(&factor, &shift, t);
    const double x = answer * factor + shift;
    if (t->kind == PITH_TARGET_RANK) {
        if (x < 0) return 0;
        return x > 1 ? 1 : x;
    }

    return t->column->log ? exp(x) : x;
}

double pith__target_loss(float *d, const pith__target *t, uint32_t row, const float *answer) {
    if (t->kind == PITH_TARGET_BOOLEAN) {
        const double z = answer[0], y = pith__target_truth(t, row), e = exp(-fabs(z));
        d[0] = (float)((z >= 0 ? 1 / (1 + e) : e / (1 + e)) - y);
        return (z > 0 ? z : 0) - z * y + log1p(e);
    }
    if (t->kind == PITH_TARGET_CLASS) {
        const int truth = (int)pith__target_truth(t, row);
        double most = answer[0], sum = 0;
        for (int i = 1; i < t->outputs; i++) most = answer[i] > most ? answer[i] : most;
        for (int i = 0; i < t->outputs; i++) sum += exp(answer[i] - most);
        for (int i = 0; i < t->outputs; i++)
            d[i] = (float)(exp(answer[i] - most) / sum - (i == truth));
        return log(sum) + most - answer[truth];
    }
    const double away = (double)answer[0] - pith__target_scaled(t, row);
    d[0] = (float)away;
    if (away > 1) d[0] = 1;
    if (away < -1) d[0] = -1;
    return fabs(away) <= 1 ? away * away / 2 : fabs(away) - 0.5;
}

void pith__target_probabilities(const pith__target *t, double *answer) {
    if (t->kind == PITH_TARGET_BOOLEAN) answer[0] = 1 / (1 + exp(-answer[0]));
    if (t->kind != PITH_TARGET_CLASS) return;
    double most = answer[0], sum = 0;
    for (int i = 1; i < t->outputs; i++) most = answer[i] > most ? answer[i] : most;
    for (int i = 0; i < t->outputs; i++) sum += answer[i] = exp(answer[i] - most);
    for (int i = 0; i < t->outputs; i++) answer[i] /= sum;
}

pith_str pith__target_class_name(const pith__target *t, int index) {
    pith_str text =
        t->task->class_texts ? t->task->class_texts[index] : target_text(t->rdb, t->classes[index]);
    const size_t before = t->column->name.size + 4; /* "colour is red" */
    if (text.size >= before) text = (pith_str){ text.data + before, text.size - before };
    return text;
}

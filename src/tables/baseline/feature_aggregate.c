/* feature_aggregate.c - aggregates of children in one sweep over time: the cells of the children of
 * all wanted parents in the order in which they become known, and the questions in the order in
 * which they are asked. So the work grows with rows, not with rows times children.
 *
 * Columns: of rows their number and the age of the latest; of numbers mean, least, greatest,
 * deviation, last, sum; of booleans and labels mean, number, last; of categories the most frequent,
 * the last, and how many there are. */
#include <math.h>

#include "base/memory/span_map.h"
#include "tables/baseline/features.h"
#include "tables/database/stoppable_sort.h"

/* A cell that becomes known, of the child `row` or of a parent of it. slot and category together
 * are the key of a count. */
typedef struct aggregate_event {
    int64_t time;
    double value;
    uint32_t row, slot, category;
} aggregate_event;

/* What is known of a parent's children by now. */
typedef struct aggregate_state {
    double count, mean, squares, least, greatest, last, before;
    int64_t latest, labels; /* labels: their sum in units */
    uint32_t last_row, most_count, most, distinct;
} aggregate_state;

typedef struct aggregate_sweep {
    const pith__feature_list *list;
    const pith__feature_group *group;
    const pith__feature_seeds *seeds;
    pith__arena *arena;
    uint32_t *slots;  /* [seeds] number of the parent among those wanted, or PITH_RDB_NONE */
    uint32_t *wanted; /* [slot_count] rows of parents */
    uint32_t slot_count, folds;
    double unit; /* of labels: whole numbers are added, so that one can be taken away again to the
                    last bit */
    aggregate_event *events;
    size_t event_count;
    aggregate_state *states; /* [slot_count][folds] */
    pith__map counts;
} aggregate_sweep;

static int aggregate_compare(const void *a, const void *b) {
    const aggregate_event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Gives each parent that is asked about a slot, so that memory grows with the questions and not
 * with the table. */
static bool aggregate_slots(aggregate_sweep *s) {
    const pith__rdb_link *down = &s->list->rdb->links[s->group->down];
    const uint32_t parents = s->list->rdb->tables[down->parent].rows;
    uint32_t *of_row = pith__arena_array(s->arena, (size_t)parents + 1, sizeof *of_row);
    s->slots = pith__arena_array(s->arena, s->seeds->count + 1, sizeof *s->slots);
    s->wanted = pith__arena_array(s->arena, (size_t)parents + 1, sizeof *s->wanted);
    if (!of_row || !s->slots || !s->wanted) return false;
    for (size_t i = 0; i < s->seeds->count; i++) {
        if (pith__row_stops(s->seeds->stop, i)) return false;
        const uint32_t row =
            pith__feature_climb(s->list, s->group, s->seeds->rows[i], s->seeds->asked[i]);
        s->slots[i] = PITH_RDB_NONE;
        if (row == PITH_RDB_NONE) continue;
        if (!of_row[row]) {
            s->wanted[s->slot_count++] = row;
            of_row[row] = s->slot_count;
        }
        s->slots[i] = of_row[row] - 1;
    }
    return true;
}

static int64_t aggregate_later(int64_t a, int64_t b) { return a > b ? a : b; }

static double aggregate_label(const aggregate_sweep *s, uint32_t row) {
    const pith__target *t = s->list->target;
    const double truth = pith__target_truth(t, row);
    return t->kind == PITH_TARGET_CLASS ? (int)truth == s->group->label : truth;
}

/* The event of a child, or false if it has none. */
static bool aggregate_child(aggregate_event *e, const aggregate_sweep *s, uint32_t child,
                            uint32_t slot) {
    const pith__rdb *rdb = s->list->rdb;
    const pith__feature_group *g = s->group;
    const pith__rdb_link *down = &rdb->links[g->down];
    uint32_t row = child;
    *e = (aggregate_event){ .time = pith__feature_seen_from(rdb, down->child, PITH_RDB_NONE, child),
                            .slot = slot };
    if (g->over != PITH_RDB_NONE) row = rdb->links[g->over].up[child];
    if (row == PITH_RDB_NONE) return false;
    e->row = child;
    if (g->column == PITH_RDB_NONE) return e->time != INT64_MAX;
    if (g->target && g->table == s->list->task->table && s->list->task->split == PITH_SPLIT_HASH &&
        pith__rdb_split(rdb, s->list->task, row) != PITH_TRAIN)
        return false;
    e->time = aggregate_later(e->time, pith__feature_seen_from(rdb, g->table, g->column, row));
    const pith__rdb_column *c = &rdb->tables[g->table].columns[g->column];
    if (e->time == INT64_MAX || pith__rdb_is_null(c, row)) return false;
    e->value = g->target ? aggregate_label(s, row) : pith__feature_cell(c, row);
    if (g->category[0]) e->category = (uint32_t)e->value;
    return true;
}

static bool aggregate_list(aggregate_sweep *s) {
    const pith__rdb_link *down = &s->list->rdb->links[s->group->down];
    size_t most = 0;
    for (uint32_t i = 0; i < s->slot_count; i++)
        most += down->begin[s->wanted[i] + 1] - down->begin[s->wanted[i]];
    s->events = pith__arena_array(s->arena, most + 1, sizeof *s->events);
    s->states =
        pith__arena_array(s->arena, (size_t)s->slot_count * s->folds + 1, sizeof *s->states);
    if (!s->events || !s->states) return false;
    size_t seen = 0;
    for (uint32_t i = 0; i < s->slot_count; i++)
        for (uint32_t k = down->begin[s->wanted[i]]; k < down->begin[s->wanted[i] + 1]; k++) {
            if (pith__row_stops(s->seeds->stop, seen++)) return false;
            s->event_count += aggregate_child(&s->events[s->event_count], s, down->down[k], i);
        }
    return pith__sort(s->events, s->event_count, sizeof *s->events, aggregate_compare,
                      s->seeds->stop, s->arena);
}

static int64_t aggregate_units(const aggregate_sweep *s, double label) {
    const double x = label / s->unit, most = 0x1p30;
    double units = x;
    if (x > most) units = most;
    if (x < -most) units = -most;
    return llround(units);
}

/* Adds one event to the state of its parent. Mean and deviation are updated in one pass without
 * cancellation. Counts of categories are kept per parent and category in one map. */
static bool aggregate_take(aggregate_sweep *s, const aggregate_event *e) {
    const uint32_t fold = s->folds > 1 ? pith__feature_fold(e->row) : 0;
    aggregate_state *a = &s->states[(size_t)e->slot * s->folds + fold];
    const double away = e->value - a->mean;
    a->least = a->count > 0 && a->least < e->value ? a->least : e->value;
    a->greatest = a->count > 0 && a->greatest > e->value ? a->greatest : e->value;
    a->count++;
    a->mean += away / a->count; /* Source: Welford, Technometrics 4(3), 1962. */
    a->squares += away * (e->value - a->mean);
    a->before = a->count > 1 ? a->last : NAN;
    a->last = e->value;
    if (s->group->target) a->labels += aggregate_units(s, e->value);
    a->last_row = e->row;
    a->latest = e->time;
    if (!s->group->category[0]) return true;
    const pith_str key = { (const char *)&e->slot, 2 * sizeof e->slot };
    uint32_t count = pith__map_get(&s->counts, key);
    count = count == UINT32_MAX ? 1 : count + 1;
    if (!pith__map_put(&s->counts, key, count, NULL)) return false;
    a->distinct += count == 1;
    if (count > a->most_count) {
        a->most_count = count;
        a->most = e->category;
    }
    return true;
}

/* Labels: mean, number and last one, without the label of the row that is asked. */
static void aggregate_labels(double *v, size_t stride, const aggregate_sweep *s,
                             const aggregate_state *a, size_t at) {
    const pith__feature_list *l = s->list;
    const uint32_t seed = s->seeds->rows[at];
    const bool train = s->folds > 1 && pith__rdb_split(l->rdb, l->task, seed) == PITH_TRAIN;
    double count = 0;
    int64_t sum = 0;
    for (uint32_t f = 0; f < s->folds; f++) {
        if (train && f == pith__feature_fold(seed)) continue;
        count += a[f].count;
        sum += a[f].labels;
    }
    v[stride] = count;
    if (s->folds > 1) {
        if (count > 0) v[0] = (double)sum * s->unit / count;
        return;
    }
    /* Its own label may be among them, where the question is asked after the label is known. */
    aggregate_event own;
    const uint32_t slot = s->slots[at];
    const bool child = l->rdb->links[s->group->down].up[seed] == s->wanted[slot];
    const bool counted =
        child && aggregate_child(&own, s, seed, slot) && own.time < s->seeds->asked[at];
    if (counted) {
        count--;
        sum -= aggregate_units(s, own.value);
        v[stride] = count;
    }
    if (count <= 0) return;
    v[0] = (double)sum * s->unit / count;
    v[2 * stride] = counted && a->last_row == seed ? a->before : a->last;
}

/* Writes what the parent's children have said so far. A feature without any child stays NaN, which
 * bins read as missing; the number of children is 0 then. */
static void aggregate_give(double *v, size_t stride, const aggregate_sweep *s, size_t at) {
    const pith__feature_group *g = s->group;
    for (int k = 0; k < g->count; k++) v[(size_t)k * stride] = NAN;
    if (s->slots[at] == PITH_RDB_NONE) return;
    const aggregate_state *a = &s->states[(size_t)s->slots[at] * s->folds];
    if (g->target) {
        aggregate_labels(v, stride, s, a, at);
        return;
    }
    if (g->column == PITH_RDB_NONE) {
        v[0] = a->count;
        if (a->count > 0 && a->latest != PITH_TIME_ALWAYS && s->seeds->asked[at] != INT64_MAX)
            v[stride] = (double)s->seeds->asked[at] - (double)a->latest;
        return;
    }
    if (a->count <= 0) return;
    if (g->category[0]) {
        v[0] = a->most;
        v[stride] = a->last;
        v[2 * stride] = a->distinct;
    } else if (g->count == 3) {
        v[0] = a->mean;
        v[stride] = a->count;
        v[2 * stride] = a->last;
    } else {
        const double deviation = sqrt(a->squares / a->count), sum = a->mean * a->count;
        const double all[] = { a->mean, a->least, a->greatest, deviation, a->last, sum };
        for (int k = 0; k < g->count; k++) v[(size_t)k * stride] = all[k];
    }
}

/* A millionth of the spread of training, as a power of two. */
static double aggregate_unit(const pith__feature_list *list) {
    const pith__target *t = list->target;
    return t->kind == PITH_TARGET_NUMBER && !t->column->log ? ldexp(1, ilogb(t->column->sd) - 20)
                                                            : 0x1p-20;
}

/* Sweeps events and questions together in order of time: a question sees the events strictly before
 * it. Where rows without a time are split by hash, labels are kept in folds, so that a row does not
 * see its own label. */
bool pith__feature_aggregate(double *values, const pith__feature_list *list,
                             const pith__feature_group *group, const pith__feature_seeds *seeds,
                             pith__arena *arena) {
    aggregate_sweep s = {
        .list = list, .group = group, .seeds = seeds, .arena = arena, .folds = 1
    };
    if (group->target) s.unit = aggregate_unit(list);
    size_t next = 0;
    if (group->target && list->task->split == PITH_SPLIT_HASH && list->task->time_column < 0)
        s.folds = PITH_FEATURE_FOLDS;
    if (!aggregate_slots(&s) || !aggregate_list(&s)) return false;
    if (group->category[0] && pith__map_init(&s.counts, arena, s.event_count)) return false;
    for (size_t i = 0; i < seeds->count; i++) {
        const size_t at = seeds->order[i];
        if (pith__row_stops(seeds->stop, i)) return false;
        for (; next < s.event_count && s.events[next].time < seeds->asked[at]; next++)
            if (pith__row_stops(seeds->stop, next) || !aggregate_take(&s, &s.events[next]))
                return false;
        aggregate_give(values + at, seeds->count, &s, at);
    }
    return true;
}

/* branches.c - finds regions: from each step on, steps are added one by one to a forest of sets
 * (union-find), a set per branch, and the row of steps with the greatest gain is taken.
 *
 * Two steps join the same set if one reads what the other writes, or if both touch a slot of memory
 * that one of them writes. The second kind matters where a step works in place: whoever read the
 * memory before it must have read. */
#include "engine/exec/branches.h"

#include <string.h>

#include "engine/ops/shared/call_op.h"

/* Steps that a region may have at most. With more, branches that are longer are found; the search
 * costs up to this many times the number of steps. */
#define REGION_MOST 256
/* The model of a step's time, in which one core does OPERATIONS_PER_NS operations and moves
 * BYTES_PER_NS bytes in a nanosecond. Each step takes STEP_NS to begin, and sharing a step or a
 * region among threads takes SHARE_NS. The numbers are rough ones of the processors of today.
 * Higher rates make steps look shorter, so fewer regions pass GAIN_NS. A larger SHARE_NS counts
 * once against a region, but also against each long step that is shared without one. They decide
 * what runs side by side, never a result. */
#define OPERATIONS_PER_NS 30.0
#define BYTES_PER_NS 8.0
#define STEP_NS 300.0
#define SHARE_NS 2000.0
#define SHARED_FROM_NS 10000.0 /* shorter steps run on one thread */
/* A region must save this much, and this share of its time. Lower thresholds admit regions whose
 * gain is smaller than the error of the estimate, and every region costs memory: what its steps
 * touch is kept from its first step to its last. */
#define GAIN_NS 5000.0
#define GAIN_SHARE 0.05

typedef struct touch { /* of a slot by a step of the row; a chain by slot */
    uint32_t slot, step, next;
} touch;

typedef struct branch_row {
    const pith__branch_search *how;
    double *cost;       /* by step, in ns; < 0: may not be in a region */
    bool *serial;       /* by step: further threads help little */
    uint32_t *producer; /* by value id: the step that writes it; UINT32_MAX: none */
    uint32_t *parent;   /* by step: in the forest */
    double *sum;        /* by step: cost of its set, if it is the root */
    uint32_t *last;     /* by slot: 1 + index of the last touch; 0: none */
    bool *written;      /* by slot: a step of the row writes it */
    touch *touches;
    size_t touch_count, touch_capacity;
    uint32_t begin, end, sets;
    double total, alone, largest; /* cost; time if each step has all threads to itself; cost of the
                                     largest set */
} branch_row;

/* ---- costs ---- */

/* The estimated time of a step on one core: STEP_NS, and the longer of its arithmetic and its
 * memory traffic, which overlap. Negative means that the step may not be in a region: its shapes
 * are dynamic, it runs in or copies to another memory, it owns graphs, or it draws random numbers.
 * What a run skips takes no time but may still be in a region, so that a view does not end it. */
static double branch_step_cost(const branch_row *r, uint32_t index, bool *serial) {
    const pith__step *step = &r->how->plan->steps[index];
    const pith__bound_step *bound = &r->how->binding->steps[index];
    const pith__op *op = step->node->op;
    if (bound->mode == PITH_BOUND_LATE || step->memory || step->is_copy || step->subplan_count)
        return -1;
    if (bound->mode == PITH_BOUND_SKIP) return 0;
    if (op->flags & PITH_OP_RANDOM) return -1;
    pith__exec exec = { .threads = 1, .isa = r->how->plan->isa };
    const pith__run run =
        pith__invoke_run(step->node, step->state, bound->in, bound->out, &exec, NULL);
    pith__cost cost = pith__run_cost(&run);
    if (op->cost) op->cost(&run, &cost);
    *serial = cost.serial;
    double work = cost.operations / OPERATIONS_PER_NS, traffic = cost.bytes / BYTES_PER_NS;
    return STEP_NS + (work > traffic ? work : traffic);
}

/* The time of a step that has all threads to itself. Short steps, and those that say further
 * threads help little, take as long as on one thread: the time that running side by side can win is
 * the time of the threads that idle there. */
static double branch_shared(const branch_row *r, uint32_t step) {
    const double cost = r->cost[step];
    return cost < SHARED_FROM_NS || r->serial[step] ? cost : SHARE_NS + cost / r->how->threads;
}

/* The time that the row saves if its sets run side by side. The sets are dealt to the threads; if
 * none is longer than an even share, they take total / threads. Else one thread is busy with the
 * largest while the others do the rest, and what then remains of the largest is shared by all
 * threads, with the speed-up that the row's steps have on average (alone / total). Against it
 * stands the row with its steps one after the other, each with all threads. */
static double branch_gain(const branch_row *r) {
    const int threads = r->how->threads < r->how->at_once ? r->how->threads : r->how->at_once;
    if (r->sets < 2) return 0;
    double others = r->total - r->largest, time = r->total / threads;
    if (r->largest > time) {
        double first = threads > 2 ? others / (threads - 1) : others;
        time = first + (r->largest - first) * (r->alone / r->total);
    }
    double gain = r->alone - time - SHARE_NS;
    return gain > GAIN_NS && gain > GAIN_SHARE * r->alone ? gain : 0;
}

/* ---- the forest ---- */

static uint32_t branch_root(const branch_row *r, uint32_t step) {
    while (r->parent[step] != step) step = r->parent[step] = r->parent[r->parent[step]];
    return step;
}

/* Of two roots the later one goes below, so that a set is known by its first step. */
static void branch_join(branch_row *r, uint32_t a, uint32_t b) {
    a = branch_root(r, a), b = branch_root(r, b);
    if (a == b) return;
    uint32_t first = a < b ? a : b, below = a < b ? b : a;
    r->parent[below] = first;
    r->sum[first] += r->sum[below];
    if (r->sum[first] > r->largest) r->largest = r->sum[first];
    r->sets--;
}

/* The slot in host memory, or UINT32_MAX. */
static uint32_t branch_slot(const branch_row *r, const pith__value *value) {
    return value && !r->how->plan->memory_of[value->id] ? r->how->slot_of[value->id] : UINT32_MAX;
}

/* Notes that a step touches a slot, and joins it with the steps of the row that it must not run
 * beside: all that touched the slot, as soon as one of them writes it. Slots are looked at, not
 * values, since values that are written over each other share one. Different slots may still get
 * the same bytes of the buffer, but not within a region: places are given after the regions are
 * known, and a region makes its slots last through it (pith__branches_widen). False if memory is
 * out. */
static bool branch_touch(branch_row *r, uint32_t step, const pith__value *value, bool writes) {
    uint32_t slot = branch_slot(r, value);
    if (slot == UINT32_MAX) return true;
    if (writes || r->written[slot])
        for (uint32_t t = r->last[slot]; t; t = r->touches[t - 1].next)
            branch_join(r, step, r->touches[t - 1].step);
    r->written[slot] = r->written[slot] || writes;
    if (!pith__arena_grow(r->how->scratch, (void **)&r->touches, r->touch_count, &r->touch_capacity,
                          sizeof *r->touches))
        return false;
    r->touches[r->touch_count++] = (touch){ slot, step, r->last[slot] };
    r->last[slot] = (uint32_t)r->touch_count;
    return true;
}

static bool branch_read(branch_row *r, uint32_t index, const pith__step *step) {
    for (int i = 0; i < step->in_count; i++) {
        const pith__value *value = step->in[i];
        uint32_t from = value ? r->producer[value->id] : UINT32_MAX;
        if (from != UINT32_MAX && from >= r->begin && from <= index) branch_join(r, index, from);
        if (!branch_touch(r, index, value, false)) return false;
    }
    return true;
}

/* Adds the next step to the row: a set of its own first, which then joins every set that it depends
 * on. Reads of its tail count as its own. */
static bool branch_add(branch_row *r, uint32_t index) {
    const pith__step *step = &r->how->plan->steps[index];
    const pith__bound_step *bound = &r->how->binding->steps[index];
    const double cost = r->cost[index];
    r->parent[index] = index;
    r->sum[index] = cost;
    r->sets++;
    r->end = index + 1;
    r->total += cost;
    r->alone += branch_shared(r, index);
    if (cost > r->largest) r->largest = cost;
    if (!branch_read(r, index, step)) return false;
    for (int i = 0; i < bound->tail_count; i++)
        if (!branch_read(r, index, &r->how->plan->steps[bound->tail[i]])) return false;
    const bool writes = bound->mode == PITH_BOUND_RUN;
    for (int i = 0; i < step->out_count; i++)
        if (!branch_touch(r, index, step->out[i], writes)) return false;
    return true;
}

/* Begins a new row. Only the slots that the old row touched are reset, so that a row costs its own
 * steps and not those of the model. The touches name all of them: also those of tails, whose steps
 * may lie behind the row. */
static void branch_clear(branch_row *r, uint32_t begin) {
    for (size_t i = 0; i < r->touch_count; i++) {
        const uint32_t slot = r->touches[i].slot;
        r->last[slot] = 0;
        r->written[slot] = false;
    }
    r->begin = r->end = begin;
    r->sets = 0;
    r->touch_count = 0;
    r->total = r->alone = r->largest = 0;
}

/* Puts the row from begin up to end together. */
static bool branch_fill(branch_row *r, uint32_t begin, uint32_t end) {
    branch_clear(r, begin);
    for (uint32_t i = begin; i < end; i++)
        if (!branch_add(r, i)) return false;
    return true;
}

/* The end of the best row from begin on; begin: none is worth it. Steps are added one by one, and
 * the row's gain is looked at after each, since the sets are kept up to date in almost constant
 * time. A step that may not be in a region ends the row. */
static bool branch_best(branch_row *r, uint32_t begin, uint32_t *end) {
    const size_t count = r->how->plan->step_count;
    double best = 0;
    *end = begin;
    branch_clear(r, begin);
    for (uint32_t i = begin; i < count && i - begin < REGION_MOST && r->cost[i] >= 0; i++) {
        if (!branch_add(r, i)) return false;
        double gain = branch_gain(r);
        if (gain <= best) continue;
        best = gain;
        *end = i + 1;
    }
    return true;
}

/* ---- regions ---- */

/* Writes the row as a region. The costliest set comes first: threads take the sets in this order,
 * and a long one that begins last would run alone at the end. Within a set the steps keep their
 * order. */
static bool branch_keep(pith__region *region, const branch_row *r) {
    const uint32_t count = r->end - r->begin;
    uint32_t *first = pith__arena_array(r->how->arena, r->sets + 1, sizeof *first);
    uint32_t *steps = pith__arena_array(r->how->arena, count, sizeof *steps);
    uint32_t *roots = pith__arena_array(r->how->scratch, r->sets, sizeof *roots);
    if (!first || !steps || !roots) return false;
    uint32_t sets = 0, at = 0;
    for (uint32_t i = r->begin; i < r->end; i++) {
        if (branch_root(r, i) != i) continue;
        uint32_t place = sets++;
        for (; place && r->sum[roots[place - 1]] < r->sum[i]; place--)
            roots[place] = roots[place - 1];
        roots[place] = i;
    }
    for (uint32_t s = 0; s < sets; s++) {
        first[s] = at;
        for (uint32_t i = roots[s]; i < r->end; i++)
            if (branch_root(r, i) == roots[s]) steps[at++] = i;
    }
    first[sets] = at;
    *region = (pith__region){ r->begin, r->end, sets, first, steps };
    return true;
}

static bool branch_begin(branch_row *r) {
    const pith__branch_search *how = r->how;
    const size_t steps = how->plan->step_count, values = how->plan->value_count;
    r->cost = pith__arena_array(how->scratch, steps, sizeof *r->cost);
    r->serial = pith__arena_array(how->scratch, steps, sizeof *r->serial);
    r->producer = pith__arena_array(how->scratch, values, sizeof *r->producer);
    r->parent = pith__arena_array(how->scratch, steps, sizeof *r->parent);
    r->sum = pith__arena_array(how->scratch, steps, sizeof *r->sum);
    r->last = pith__arena_array(how->scratch, how->slot_count, sizeof *r->last);
    r->written = pith__arena_array(how->scratch, how->slot_count, sizeof *r->written);
    if (!r->cost || !r->serial || !r->producer || !r->parent || !r->sum || !r->last || !r->written)
        return false;
    memset(r->producer, 0xFF, values * sizeof *r->producer);
    for (size_t i = 0; i < steps; i++) {
        const pith__step *step = &how->plan->steps[i];
        r->cost[i] = branch_step_cost(r, (uint32_t)i, &r->serial[i]);
        for (int j = 0; j < step->out_count; j++)
            if (step->out[j]) r->producer[step->out[j]->id] = (uint32_t)i;
    }
    return true;
}

/* Greedy: the best row from each step on is taken, and the search goes on behind it. A row is
 * filled once while it is looked for, with REGION_MOST steps at most, and once more when it is
 * kept, so the cost is linear in the steps. */
pith_status pith__branches_find(pith__region **regions, size_t *count,
                                const pith__branch_search *search) {
    branch_row r = { .how = search };
    size_t capacity = 0;
    *regions = NULL;
    *count = 0;
    if (!branch_begin(&r)) return PITH_ERR_MEMORY;
    for (uint32_t begin = 0; begin < search->plan->step_count;) {
        uint32_t end;
        if (!branch_best(&r, begin, &end)) return PITH_ERR_MEMORY;
        if (end == begin) {
            begin++;
            continue;
        }
        if (!pith__arena_grow(search->arena, (void **)regions, *count, &capacity,
                              sizeof **regions) ||
            !branch_fill(&r, begin, end) || !branch_keep(&(*regions)[*count], &r))
            return PITH_ERR_MEMORY;
        ++*count;
        begin = end;
    }
    return PITH_OK;
}

/* The region that the step is in, or NULL. */
static const pith__region *region_of(const pith__region *regions, size_t count, uint32_t step) {
    size_t low = 0;
    while (count) { /* the regions that begin up to the step are those before low, and perhaps some
                       of count */
        size_t half = count / 2;
        bool before = regions[low + half].begin <= step;
        low += before ? half + 1 : 0;
        count = before ? count - half - 1 : half;
    }
    return low && step < regions[low - 1].end ? &regions[low - 1] : NULL;
}

void pith__branches_widen(pith__slot *slots, size_t count, const pith__region *regions,
                          size_t region_count) {
    for (size_t i = 0; i < count; i++) {
        const pith__region *first = region_of(regions, region_count, slots[i].begin);
        const pith__region *last = region_of(regions, region_count, slots[i].end);
        if (first) slots[i].begin = first->begin;
        if (last) slots[i].end = last->end - 1;
    }
}

/* value_places.c - places values in the buffer: walks through the steps and takes and frees memory
 * as an allocator would.
 *
 * It takes the smallest free region that fits (of equal ones the lowest), else the end of the
 * buffer. Regions, free or taken, form a list in the order of their offsets, so that a freed region
 * finds its neighbours; free regions never touch each other. The free ones also form a treap by
 * size: a binary search tree by key, and a heap by priority. */
#include "engine/exec/value_places.h"

#include <stdint.h>

#include "base/checked.h"

/* Numbers of regions count from 1; 0 is none. */
typedef struct region {
    size_t offset, bytes;
    size_t before, after; /* neighbours in the buffer */
    size_t child[2];
    uint32_t priority;
    bool free;
} region;

typedef struct space {
    region *regions;                       /* [0] is not used */
    size_t count, unused, root, last, end; /* unused: a chain of numbers to be used again, through
                                              after */
} space;

/* ---- the treap of free regions ---- */

static bool is_less(const space *s, size_t a, size_t b) {
    const region *x = &s->regions[a], *y = &s->regions[b];
    return x->bytes != y->bytes ? x->bytes < y->bytes : x->offset < y->offset;
}

/* Joins two treaps of which every key in `low` is below every one in `high`. The root is the region
 * with the greater priority, so both orders hold. Expected depth is logarithmic. */
static size_t place_merge(space *s, size_t low, size_t high) {
    if (!low || !high) return low ? low : high;
    region *a = &s->regions[low], *b = &s->regions[high];
    if (a->priority > b->priority) {
        a->child[1] = place_merge(s, a->child[1], high);
        return low;
    }
    b->child[0] = place_merge(s, low, b->child[0]);
    return high;
}

/* Splits a treap at `key` into the regions below it and the others. */
static void place_split(space *s, size_t tree, size_t key, size_t *low, size_t *high) {
    if (!tree) {
        *low = *high = 0;
    } else if (is_less(s, tree, key)) {
        *low = tree;
        place_split(s, s->regions[tree].child[1], key, &s->regions[tree].child[1], high);
    } else {
        *high = tree;
        place_split(s, s->regions[tree].child[0], key, low, &s->regions[tree].child[0]);
    }
}

static void set_free(space *s, size_t number) {
    region *r = &s->regions[number];
    size_t low, high;
    r->free = true;
    r->child[0] = r->child[1] = 0;
    place_split(s, s->root, number, &low, &high);
    s->root = place_merge(s, place_merge(s, low, number), high);
}

static void set_taken(space *s, size_t number) {
    size_t *link = &s->root;
    while (*link != number) link = &s->regions[*link].child[is_less(s, *link, number)];
    *link = place_merge(s, s->regions[number].child[0], s->regions[number].child[1]);
    s->regions[number].free = false;
}

/* The smallest free region of at least this size, of equal ones the one that is lowest in the
 * buffer; 0: none. Going left after a fit and right after a miss finds it in one descent. */
static size_t best_fit(const space *s, size_t bytes) {
    size_t best = 0;
    for (size_t at = s->root; at;) {
        bool fits = s->regions[at].bytes >= bytes;
        if (fits) best = at;
        at = s->regions[at].child[!fits];
    }
    return best;
}

/* ---- the list ---- */

/* A new region after `before`. Its priority is its number times 2^32 / golden ratio (Knuth's
 * multiplicative hashing), which scatters consecutive numbers enough for a treap and gives the same
 * places in every run, unlike random priorities. */
static size_t add_region(space *s, size_t before, size_t offset, size_t bytes) {
    size_t number = s->unused ? s->unused : ++s->count,
           after = before ? s->regions[before].after : 0;
    if (s->unused) s->unused = s->regions[number].after;
    s->regions[number] =
        (region){ .offset = offset, .bytes = bytes, .before = before, .after = after };
    s->regions[number].priority = (uint32_t)number * 0x9E3779B9u;
    s->regions[before].after = number;
    if (after)
        s->regions[after].before = number;
    else
        s->last = number;
    return number;
}

/* The region after `number` becomes part of it. */
static void join_next(space *s, size_t number) {
    region *r = &s->regions[number];
    size_t gone = r->after, after = s->regions[gone].after;
    r->bytes += s->regions[gone].bytes;
    r->after = after;
    if (after)
        s->regions[after].before = number;
    else
        s->last = number;
    s->regions[gone].after = s->unused;
    s->unused = gone;
}

/* The number of a region of this size; 0 if the buffer would be too large. Of a free region that
 * fits, what is too much stays free. If none fits, the buffer grows at its end; a free region there
 * grows with it and is used. */
static size_t place_take(space *s, size_t bytes) {
    size_t number = best_fit(s, bytes);
    if (number) {
        region *r = &s->regions[number];
        set_taken(s, number);
        size_t rest = r->bytes - bytes;
        r->bytes = bytes;
        if (rest) set_free(s, add_region(s, number, r->offset + bytes, rest));
        return number;
    }
    /* A free region at the end grows. */
    number = s->last;
    if (number && s->regions[number].free)
        set_taken(s, number);
    else
        number = add_region(s, s->last, s->end, 0);
    s->regions[number].bytes = bytes;
    return pith__add_overflows(s->regions[number].offset, bytes, &s->end) ? 0 : number;
}

/* Frees a region and joins it with free neighbours, so that two free regions never touch. Without
 * that the buffer would fall apart into pieces that fit nothing. */
static void give(space *s, size_t number) {
    size_t before = s->regions[number].before, after = s->regions[number].after;
    if (after && s->regions[after].free) {
        set_taken(s, after);
        join_next(s, number);
    }
    if (before && s->regions[before].free) {
        set_taken(s, before);
        join_next(s, before);
        number = before;
    }
    set_free(s, number);
}

/* Walks through the steps as a run would: what ended with the step before is freed, then what
 * begins is taken. A slot is free only from the step after its last, or a result could lie over an
 * input of its own step. Sizes are rounded up to 64 bytes, a cache line, which also keeps every
 * offset aligned to it. Best fit is not the optimum, which would take exponential time; it costs
 * log n per slot. */
pith_status pith__slots_place(pith__slot *slots, size_t count, size_t steps, size_t *total,
                              pith__arena *scratch) {
    space s = { .regions = pith__arena_array(scratch, 2 * count + 2, sizeof *s.regions) };
    size_t *region_of = pith__arena_array(scratch, count, sizeof *region_of);
    /* Slots that end at a step, a chain of 1 + index. */
    size_t *first = pith__arena_array(scratch, steps + 1, sizeof *first);
    size_t *next = pith__arena_array(scratch, count, sizeof *next);
    if (!s.regions || !region_of || !first || !next) return PITH_ERR_MEMORY;
    size_t at = 0;
    for (size_t step = 0; step < steps; step++) {
        for (size_t i = step ? first[step - 1] : 0; i; i = next[i - 1]) give(&s, region_of[i - 1]);
        for (; at < count && slots[at].begin == step; at++) {
            if (pith__add_overflows(slots[at].bytes, 63, &slots[at].bytes)) return PITH_ERR_MEMORY;
            slots[at].bytes &= ~(size_t)63;
            if (slots[at].bytes == 0) slots[at].bytes = 64;
            region_of[at] = place_take(&s, slots[at].bytes);
            if (!region_of[at]) return PITH_ERR_MEMORY;
            slots[at].offset = s.regions[region_of[at]].offset;
            next[at] = first[slots[at].end];
            first[slots[at].end] = at + 1;
        }
    }
    *total = s.end;
    return PITH_OK;
}

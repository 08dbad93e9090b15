/* stoppable_sort.c - see stoppable_sort.h. Runs of items are sorted by qsort and merged, the left
 * one first among equals, so that the order is that of a stable qsort of them all. */
#include "tables/database/stoppable_sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/work.h"

/* Items of a run. Larger: a call ends later; smaller: more merging. 32768 rows take about 10 ms. */
enum { SORT_RUN = 32768 };

typedef struct sort_work {
    size_t size;
    int (*compare)(const void *, const void *);
    pith__stop *stop;
} sort_work;

/* Merges from[begin, middle) and from[middle, end) into to[begin, end). */
static bool sort_merge(char *to, const char *from, size_t begin, size_t middle, size_t end,
                       const sort_work *w) {
    size_t left = begin, right = middle;
    for (size_t i = begin; i < end; i++) {
        if (pith__row_stops(w->stop, i)) return false;
        const bool first =
            left < middle &&
            (right == end || w->compare(from + left * w->size, from + right * w->size) <= 0);
        memcpy(to + i * w->size, from + (first ? left++ : right++) * w->size, w->size);
    }
    return true;
}

bool pith__sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *),
                pith__stop *stop, pith__arena *arena) {
    const sort_work w = { size, compare, stop };
    const bool large = stop && count > SORT_RUN;
    const pith__arena_mark mark = pith__arena_get_mark(arena);
    char *from = items, *to = large ? pith__arena_array(arena, count, size) : NULL;
    bool done = !pith__stop_asked(stop);
    if (!to) {
        if (done && count) qsort(items, count, size, compare);
        return done;
    }
    for (size_t i = 0; done && i < count; i += SORT_RUN) {
        qsort(from + i * size, count - i < SORT_RUN ? count - i : SORT_RUN, size, compare);
        done = !pith__stop_asked(stop);
    }
    for (size_t run = SORT_RUN; done && run < count; run *= 2) {
        for (size_t i = 0; done && i < count; i += 2 * run) {
            const size_t middle = i + run < count ? i + run : count,
                         end = middle + run < count ? middle + run : count;
            done = sort_merge(to, from, i, middle, end, &w);
        }
        char *other = from;
        from = to;
        to = other;
    }
    if (from != items && done) memcpy(items, from, count * size);
    pith__arena_rewind(arena, mark);
    return done;
}

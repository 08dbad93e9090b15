/* top.h - the best k of the scores seen so far.
 *
 * Larger scores are better, equal ones are ordered by index, and NaN comes last. This order is
 * total, so which items are kept does not depend on the order in which they are offered, nor on how
 * they were divided among threads. The items are a heap with the worst one at its root. */
#ifndef PITH_SEARCH_TOP_H
#define PITH_SEARCH_TOP_H

#include <stdbool.h>

#include "base/stop.h"
#include "pith/search.h"

typedef struct pith__top {
    pith_hit *hits; /* [k] */
    size_t k, count;
} pith__top;

static inline bool pith__top_before(float score, int64_t index, pith_hit other) {
    if (score > other.score) return true;
    if (score < other.score) return false;
    const bool nan = score != score, other_nan = other.score != other.score;
    return nan == other_nan ? index < other.index : other_nan;
}

/* Puts an item in that is better than the worst one, or one more than there were. */
void pith__top_put(pith__top *top, int64_t index, float score);

static inline void pith__top_offer(pith__top *top, int64_t index, float score) {
    if (top->count < top->k || pith__top_before(score, index, top->hits[0]))
        pith__top_put(top, index, score);
}

/* Items that are sorted or merged between two looks at whether the call must end. */
enum { PITH_TOP_STOP_EVERY = 4096 };

/* Orders the items, the best first. They are no heap any more. Returns false if the call must end
 * before; stop may be NULL. */
bool pith__top_sort(pith__top *top, pith__stop *stop);

#endif

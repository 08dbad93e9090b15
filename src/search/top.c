/* top.c - see top.h. */
#include "search/top.h"

static bool top_worse(pith_hit a, pith_hit b) { return pith__top_before(b.score, b.index, a); }

/* Lets the item sink from the place `at` of the first `count` ones until it is worse than all below
 * it. */
static void top_sink(pith_hit *hits, size_t count, size_t at, pith_hit item) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && top_worse(hits[child + 1], hits[child])) child++;
        if (!top_worse(hits[child], item)) break;
        hits[at] = hits[child];
    }
    hits[at] = item;
}

void pith__top_put(pith__top *top, int64_t index, float score) {
    const pith_hit item = { index, score };
    if (top->count == top->k) {
        if (top->k) top_sink(top->hits, top->count, 0, item);
        return;
    }
    size_t at = top->count++;
    for (size_t parent; at && top_worse(item, top->hits[parent = (at - 1) / 2]); at = parent)
        top->hits[at] = top->hits[parent];
    top->hits[at] = item;
}

bool pith__top_sort(pith__top *top, pith__stop *stop) {
    for (size_t n = top->count; n > 1; n--) {
        if (n % PITH_TOP_STOP_EVERY == 0 && pith__stop_asked(stop)) return false;
        const pith_hit worst = top->hits[0];
        top_sink(top->hits, n - 1, 0, top->hits[n - 1]);
        top->hits[n - 1] = worst;
    }
    return true;
}

/* window_pace.c - see window_pace.h. */
#include "models/encode/window_pace.h"

#include <stdlib.h>
#include <string.h>

/* What a text costs besides its bytes, such as its special tokens, in bytes. */
#define BYTES_PER_TEXT 16
/* Before WARM windows are known, a window is at most GROWTH times the one before. The first takes
 * `least` texts. */
#define WARM 3
#define GROWTH 4

static double pace_units(size_t texts, size_t bytes) {
    return (double)bytes + BYTES_PER_TEXT * (double)texts;
}

static int pace_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The 90th percentile of the costs. */
static double pace_cost(const pith__window_pace *pace) {
    double sorted[PITH_WINDOW_PACE_KEPT];
    size_t n = pace->count < PITH_WINDOW_PACE_KEPT ? pace->count : PITH_WINDOW_PACE_KEPT;
    memcpy(sorted, pace->costs, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, pace_order);
    return sorted[(9 * n + 9) / 10 - 1];
}

void pith__window_pace_begin(pith__window_pace *pace, double target, size_t least, size_t most) {
    *pace = (pith__window_pace){ .target = target, .least = least, .most = most };
}

/* Until enough windows are known their number grows by a factor each time; then the cost decides.
 */
bool pith__window_pace_admits(const pith__window_pace *pace, size_t texts, size_t bytes) {
    if (texts < pace->least) return true;
    if (texts >= pace->most) return false;
    if (!pace->target) return true;
    if (!pace->count || (pace->count < WARM && texts >= GROWTH * pace->last)) return false;
    /* the next text is taken to be as long as those before it */
    double units = pace_units(texts, bytes), next = units / (double)(texts ? texts : 1);
    return (units + next) * pace_cost(pace) <= pace->target;
}

void pith__window_pace_note(pith__window_pace *pace, size_t texts, size_t bytes, double seconds) {
    if (!pace->target || !texts) return;
    pace->costs[pace->count++ % PITH_WINDOW_PACE_KEPT] = seconds / pace_units(texts, bytes);
    pace->last = texts;
}

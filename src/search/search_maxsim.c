/* search_maxsim.c - scores of documents of several rows (late interaction).
 *
 * Source: Khattab and Zaharia, "ColBERT" (2020), section 3.3. The rows of the query are taken in
 * ascending order, so the sum has one order. */
#include <math.h>

#include "search/search.h"

/* most[q] = the largest score of row q of the queries with the document's rows; NaN if one of them
 * is NaN. A document may be long, so whether the call must end is asked within it. */
static void maxsim_most(float *most, pith__search_room *inner, const pith_search_index *x,
                        const pith__search_queries *queries, size_t row, size_t end,
                        pith__stop *stop) {
    for (size_t q = 0; q < queries->count; q++) most[q] = -INFINITY;
    for (size_t n; row < end; row += n) {
        n = end - row < inner->stride ? end - row : inner->stride;
        if (pith__stop_asked(stop)) return;
        pith__search_score(inner, x, queries, row, n);
        for (size_t q = 0; q < queries->count; q++) {
            const float *scores = inner->scores + q * inner->stride;
            for (size_t r = 0; r < n; r++)
                if (scores[r] > most[q] || isnan(scores[r]))
                    most[q] = isnan(most[q]) ? NAN : scores[r];
        }
    }
}

/* A document's score: for each row of the query its best score with any row of the document,
 * summed. Rows of the query are taken PITH_SEARCH_MAXSIM_ROWS at a time, whose maxima lie on the
 * stack; a document is read once for each such part. Documents without rows are worse than all
 * others. */
void pith__search_maxsim(pith__search_room *room, pith__search_room *inner,
                         const pith__search_scan *scan, size_t item, size_t n) {
    const pith_search_index *x = scan->index;
    float most[PITH_SEARCH_MAXSIM_ROWS];
    for (size_t d = 0; d < n; d++) {
        const size_t begin = (size_t)x->offsets[item + d], end = (size_t)x->offsets[item + d + 1];
        float sum = 0;
        for (size_t at = 0, some; at < scan->queries->count; at += some) {
            pith__search_queries q = pith__search_query(x, scan->queries, at);
            some = scan->queries->count - at;
            if (some > PITH_SEARCH_MAXSIM_ROWS) some = PITH_SEARCH_MAXSIM_ROWS;
            q.count = some;
            maxsim_most(most, inner, x, &q, begin, end, scan->stop);
            for (size_t i = 0; i < some; i++) sum += most[i];
        }
        room->scores[d] = begin == end ? -INFINITY : sum;
    }
}

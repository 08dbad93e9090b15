/* spm_merges.c - see spm_merges.h. */
#include "text/sources/spm_merges.h"

#include <float.h>
#include <stdlib.h>

#include "base/memory/span_map.h"

typedef struct scored {
    float score;
    uint32_t piece;
} scored;

static int spm_pairs_by_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->piece < y->piece ? -1 : x->piece > y->piece;
}

/* The pieces, best score first: what merges go by. Scores that are no numbers count as the least.
 */
static scored *spm_pairs_sort(pith__arena *scratch, const double *scores, size_t count) {
    scored *order = pith__arena_array(scratch, count, sizeof *order);
    if (!order) return NULL;
    for (size_t i = 0; i < count; i++)
        order[i] = (scored){ scores[i] >= -FLT_MAX ? scores[i] : -FLT_MAX, (uint32_t)i };
    qsort(order, count, sizeof *order, spm_pairs_by_score);
    return order;
}

/* SentencePiece merges whichever two neighbours make the piece with the best score. As a list of
 * merges that is: each piece, the best first, with every cut of it into two pieces, from left to
 * right. */
pith_status pith__spm_merges(pith__bpe_spec *spec, pith__loader *loader, const pith_str *pieces,
                             const double *scores, const bool *merges, size_t count) {
    pith__map ids;
    const scored *order = spm_pairs_sort(loader->scratch, scores, count);
    if (!order) return pith__fail_memory(loader->err, count * sizeof *order);
    PITH_TRY(pith__map_init(&ids, loader->scratch, count));
    for (size_t i = 0; i < count; i++) {
        PITH_TRY(pith__loader_check(loader, i));
        if (!pith__map_put(&ids, pieces[i], (uint32_t)i, NULL) ||
            !pith__vocab_add(&spec->vocab, pieces[i], (int32_t)i))
            return pith__fail_memory(loader->err, count);
    }
    for (size_t i = 0; i < count; i++) {
        const pith_str piece = pieces[order[i].piece];
        PITH_TRY(pith__loader_check(loader, i));
        if (merges && !merges[order[i].piece]) continue;
        for (const char *p = piece.data, *end = p + piece.size; p < end;) {
            pith__utf8_next(&p);
            pith_str left = { piece.data, (size_t)(p - piece.data) },
                     right = { p, (size_t)(end - p) };
            const uint32_t l = pith__map_get(&ids, left), r = pith__map_get(&ids, right);
            if (!right.size || l == UINT32_MAX || r == UINT32_MAX) continue;
            if (merges && (!merges[l] || !merges[r])) continue;
            if (!pith__bpe_add_merge(spec, left, right))
                return pith__fail_memory(loader->err, spec->merge_count);
        }
    }
    return PITH_OK;
}

/* candidates.c - lists of candidates, and which of those that overlap stay. See detector.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/faces/detector.h"

/* A box in whole pixels, for comparing. */
typedef struct candidate_box {
    int64_t left, top, right, bottom;
} candidate_box;

typedef struct candidate_rank {
    float score;
    size_t index;
} candidate_rank;

pith_status pith__candidates_add(pith__candidates *c, const pith_face *face, pith_error *err) {
    if (!pith__arena_grow(c->arena, (void **)&c->items, c->count, &c->capacity, sizeof *c->items))
        return pith__fail_memory(err, (c->count + 1) * sizeof *c->items);
    c->items[c->count++] = *face;
    return PITH_OK;
}

static int candidate_by_score(const void *a, const void *b) {
    const candidate_rank *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Coordinates far outside of any picture are cut off, so that sums of them fit. */
static int64_t candidate_pixel(float x) {
    const float most = 1e9f;
    if (x > most) return (int64_t)most;
    return (int64_t)(x < -most ? -most : x);
}

static candidate_box candidate_box_of(const pith_face *f) {
    candidate_box b = { candidate_pixel(f->box[0]), candidate_pixel(f->box[1]), 0, 0 };
    b.right = b.left + candidate_pixel(f->box[2]);
    b.bottom = b.top + candidate_pixel(f->box[3]);
    return b;
}

static double candidate_area(const candidate_box *b) {
    return b->right > b->left && b->bottom > b->top
               ? (double)(b->right - b->left) * (double)(b->bottom - b->top)
               : 0;
}

/* The area of both divided by the area of either; 1 for two boxes without area, as in OpenCV. */
static float candidate_overlap(const candidate_box *a, const candidate_box *b) {
    candidate_box both = { a->left > b->left ? a->left : b->left, a->top > b->top ? a->top : b->top,
                           a->right < b->right ? a->right : b->right,
                           a->bottom < b->bottom ? a->bottom : b->bottom };
    double sum = candidate_area(a) + candidate_area(b), common = candidate_area(&both);
    return sum > 0 ? (float)(common / (sum - common)) : 1;
}

/* Non-maximum suppression: candidates in the order of their scores, equal ones in their own order;
 * one stays if it does not overlap more than the threshold with any that stayed before. Only the
 * best top_k are looked at, which bounds the work to their square. */
pith_status pith__candidates_choose(pith__candidates *c, float threshold, size_t top_k,
                                    pith_error *err) {
    if (c->count < 2) return PITH_OK;
    const size_t most = c->count < top_k ? c->count : top_k;
    candidate_rank *ranks = pith__arena_array(c->arena, c->count, sizeof *ranks);
    candidate_box *boxes = pith__arena_array(c->arena, most, sizeof *boxes);
    pith_face *kept = pith__arena_array(c->arena, most, sizeof *kept);
    size_t count = 0;
    if (!ranks || !boxes || !kept) return pith__fail_memory(err, c->count * sizeof *ranks);
    for (size_t i = 0; i < c->count; i++) ranks[i] = (candidate_rank){ c->items[i].score, i };
    qsort(ranks, c->count, sizeof *ranks, candidate_by_score);
    for (size_t i = 0; i < most; i++) {
        const pith_face *face = &c->items[ranks[i].index];
        candidate_box box = candidate_box_of(face);
        bool keep = true;
        for (size_t k = 0; k < count && keep; k++)
            keep = candidate_overlap(&box, &boxes[k]) <= threshold;
        if (!keep) continue;
        boxes[count] = box;
        kept[count++] = *face;
    }
    c->items = kept;
    c->count = count;
    c->capacity = most;
    return PITH_OK;
}

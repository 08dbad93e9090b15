/* combined_masks.h - the combined effect of several masks on the scores of skipped keys.
 *
 * A skipped key has no weight as long as its query keeps another key. If a query keeps none, the
 * numbers in the masks decide the result: -infinity gives NaN, a number so large that it absorbs
 * the scores gives the mean, and any other number gives the softmax of the scores. */
#ifndef PITH_ENGINE_OPT_COMBINED_MASKS_H
#define PITH_ENGINE_OPT_COMBINED_MASKS_H

#include "engine/opt/attention_mask.h"

#define PITH_SKIPS_MAX 16

typedef struct pith__skips {
    pith__value *key_mask; /* of all masks that have one; NULL: none has */
    int64_t window_left, window_right;
    int numbers; /* a pith__mask_numbers */
    struct pith__skips_mask {
        int step;                          /* how far it is from the softmax */
        bool replaces;                     /* the score is the number; else it is added */
        bool keyed;                        /* it skips padded keys */
        int64_t window_left, window_right; /* its own */
        float number[PITH_SKIPS];          /* 0: this mask does not skip it */
    } masks[PITH_SKIPS_MAX];
    int count;
} pith__skips;

void pith__skips_init(pith__skips *skips);
/* Adds a mask. number is the score of a skipped key, or what is added to it; it is unused if the
 * form is ADDED. Returns false if the mask cannot be combined with the others. */
bool pith__skips_add(pith__skips *skips, const pith__mask *mask, pith__mask_form form,
                     double number, bool replaces, int step);
/* True if a term added at this step still changes scores that an earlier mask has replaced. Then
 * the keys of a query that keeps none do not all have the same weight. */
bool pith__skips_show(const pith__skips *skips, int step);
/* Sets numbers, indexed by pith__mask_skip, to what is added to the scores of a query that keeps no
 * key. Returns false if no numbers have the effect of the masks. */
bool pith__skips_settle(const pith__skips *skips, bool zero_if_none, pith__none_left *none_left,
                        float *numbers);

#endif

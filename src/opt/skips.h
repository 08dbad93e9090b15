/* skips.h - what several masks together do to the scores of the keys they skip.
 *
 * A skipped key has no weight as long as its query has another one left. Only where it has none do the masks' numbers
 * decide: -infinity leaves NaN, a number that absorbs the scores the mean, any other one the softmax of the scores. */
#ifndef PITH_OPT_SKIPS_H
#define PITH_OPT_SKIPS_H

#include "opt/mask.h"

#define PITH_SKIPS_MAX 16

typedef struct pith_skips {
    pith_value *key_mask; /* of all masks that have one; NULL: none has */
    int64_t window_left, window_right;
    int numbers; /* a pith_mask_numbers */
    bool windows_differ;
    struct pith_skips_mask {
        int step;                 /* how far it is from the softmax */
        bool replaces;            /* the score is the number; else it is added */
        float number[PITH_SKIPS]; /* 0: this mask does not skip it */
    } masks[PITH_SKIPS_MAX];
    int count;
} pith_skips;

void pith_skips_init(pith_skips *skips);
/* number: what a skipped key's score becomes or has added, unless the form is ADDED. false: it does not go with what is
 * there. */
bool pith_skips_add(pith_skips *skips, const pith_mask *mask, pith_mask_form form, double number, bool replaces,
                    int step);
/* Is a term that is added at this step still seen where a mask before it has replaced the score? Then keys do not count
 * alike where all are masked. */
bool pith_skips_show(const pith_skips *skips, int step);
/* numbers: what is added to the scores by pith_mask_skip, where nothing else is left. false: no numbers would do. */
bool pith_skips_settle(const pith_skips *skips, bool zero_if_none, pith_none_left *none_left, float *numbers);

#endif

/* combined_masks.c - see combined_masks.h. */
#include "engine/opt/combined_masks.h"

#include <math.h>

void pith__skips_init(pith__skips *skips) {
    *skips = (pith__skips){ .window_left = -1, .window_right = -1 };
}

static bool has_window(const pith__skips *s) { return s->window_left >= 0 || s->window_right >= 0; }

static int64_t skips_nearer(int64_t a, int64_t b) { return a < 0 || (b >= 0 && b < a) ? b : a; }

/* Of two windows both must hold. */
static void take_window(pith__skips *s, const pith__mask *mask) {
    s->window_left = skips_nearer(s->window_left, mask->window_left);
    s->window_right = skips_nearer(s->window_right, mask->window_right);
}

/* Masks combine if they read the same key mask, since the fused step has one input for it; their
 * windows intersect. */
bool pith__skips_add(pith__skips *skips, const pith__mask *mask, pith__mask_form form,
                     double number, bool replaces, int step) {
    bool window = mask->window_left >= 0 || mask->window_right >= 0;
    if ((mask->key_mask && skips->key_mask && mask->key_mask != skips->key_mask) ||
        skips->count == PITH_SKIPS_MAX)
        return false;
    struct pith__skips_mask *m = &skips->masks[skips->count++];
    *m = (struct pith__skips_mask){ .step = step,
                                    .replaces = replaces,
                                    .keyed = mask->key_mask != NULL,
                                    .window_left = mask->window_left,
                                    .window_right = mask->window_right };
    for (int i = 0; i < PITH_SKIPS; i++) {
        bool padded = mask->key_mask && i != PITH_SKIP_OUTSIDE,
             outside = window && i != PITH_SKIP_PADDED;
        if (!padded && !outside) continue;
        int seen = pith__mask_skip_of(padded, outside);
        m->number[i] = form == PITH_MASK_ADDED ? mask->added[seen] : (float)number;
    }
    if (mask->key_mask) {
        skips->numbers =
            !skips->key_mask || skips->numbers == mask->numbers ? mask->numbers : PITH_MASK_BINARY;
        skips->key_mask = mask->key_mask;
    }
    take_window(skips, mask);
    return true;
}

bool pith__skips_show(const pith__skips *skips, int step) {
    for (int i = 0; i < skips->count; i++) {
        const struct pith__skips_mask *m = &skips->masks[i];
        if (!m->replaces || m->step <= step) continue;
        for (int k = 0; k < PITH_SKIPS; k++)
            if (m->number[k] != 0.0f && m->number[k] > PITH_ABSORBS) return true;
    }
    return false;
}

static bool skips_outside(int64_t left, int64_t right, int64_t distance) {
    return (left >= 0 && distance > left) || (right >= 0 && -distance > right);
}

/* What the masks make of a key so many places before its query: one after the other, the one next
 * to the matmul first. *replaced: the score itself is gone. */
static float skips_number_of(const pith__skips *s, int64_t distance, bool padded, bool *replaced) {
    float number = 0.0f;
    *replaced = false;
    for (int step = PITH_SKIPS_MAX; step >= 0; step--) {
        for (int i = 0; i < s->count; i++) {
            const struct pith__skips_mask *m = &s->masks[i];
            bool skips_padded = m->keyed && padded,
                 outside = skips_outside(m->window_left, m->window_right, distance);
            int skip = pith__mask_skip_of(skips_padded, outside);
            if (m->step != step || !(skips_padded || outside) || m->number[skip] == 0.0f) continue;
            number = m->replaces ? m->number[skip] : number + m->number[skip];
            *replaced = *replaced || m->replaces;
        }
    }
    return number;
}

/* The numbers of each kind of skipped key. False if keys of one kind have different ones: then no
 * number stands for them. Between the ends of the masks' windows nothing changes, so a distance on
 * each side of each end will do. */
static bool skips_numbers(const pith__skips *s, float *numbers, bool *replaced) {
    int64_t distances[4 * PITH_SKIPS_MAX + 1] = { 0 };
    int count = 1;
    bool seen[PITH_SKIPS] = { false };
    for (int i = 0; i < s->count; i++) {
        const struct pith__skips_mask *m = &s->masks[i];
        for (int64_t beyond = 0; beyond < 2; beyond++) {
            if (m->window_left >= 0) distances[count++] = m->window_left + beyond;
            if (m->window_right >= 0) distances[count++] = -m->window_right - beyond;
        }
    }
    for (int i = 0; i < PITH_SKIPS; i++) numbers[i] = 0.0f, replaced[i] = false;
    for (int i = 0; i < count; i++) {
        for (int padded = 0; padded <= (s->key_mask != NULL); padded++) {
            bool outside = skips_outside(s->window_left, s->window_right, distances[i]), gone;
            if (!padded && !outside) continue;
            int skip = pith__mask_skip_of(padded, outside);
            float number = skips_number_of(s, distances[i], padded, &gone);
            if (seen[skip] && (number != numbers[skip] || gone != replaced[skip])) return false;
            seen[skip] = true;
            numbers[skip] = number;
            replaced[skip] = gone;
        }
    }
    return true;
}

/* Three cases, by what a query that keeps no key ends up with. If no number is finite, the result
 * is zeros or NaN. If all keys have the same number, so large that the scores vanish next to it,
 * all keys weigh the same. Else the scores stay, with the numbers added to them; that cannot be
 * said of a score that was replaced, where the numbers of others differ. For a query that keeps a
 * key none of this matters: next to it a skipped key's weight is 0. */
bool pith__skips_settle(const pith__skips *skips, bool zero_if_none, pith__none_left *none_left,
                        float *numbers) {
    const bool happens[] = { skips->key_mask, has_window(skips),
                             skips->key_mask && has_window(skips) };
    float first = 0.0f; /* of the finite ones */
    bool uniform = true, infinite = false, replaced[PITH_SKIPS];
    /* Without padding a query sees itself at least, so the numbers never count. */
    if (!skips_numbers(skips, numbers, replaced) && skips->key_mask) return false;
    for (int i = 0; i < PITH_SKIPS; i++) {
        if (!happens[i]) continue;
        infinite = infinite || isinf(numbers[i]);
        if (isinf(numbers[i])) continue;
        /* Where nothing is left of the scores, and the number is the same for all, all keys count
         * alike. */
        if (first == 0.0f) first = numbers[i];
        uniform = uniform && numbers[i] == first && (replaced[i] || first <= PITH_ABSORBS);
    }
    if (first == 0.0f && skips->count)
        *none_left = zero_if_none ? PITH_NONE_LEFT_ZERO : PITH_NONE_LEFT_NAN;
    else
        *none_left = uniform && !infinite ? PITH_NONE_LEFT_MEAN : PITH_NONE_LEFT_SCORES;
    if (*none_left != PITH_NONE_LEFT_SCORES) return true;
    for (int i = 0; i < PITH_SKIPS; i++) {
        if (!happens[i] || isinf(numbers[i]) || numbers[i] <= PITH_ABSORBS) continue;
        /* Without its score it is no match for one that kept it. */
        if (replaced[i] && !uniform) return false;
        if (replaced[i]) numbers[i] = PITH_ABSORBS;
    }
    return true;
}

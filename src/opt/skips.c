/* skips.c - see skips.h. */
#include "opt/skips.h"

#include <math.h>

void pith_skips_init(pith_skips *skips) { *skips = (pith_skips){ .window_left = -1, .window_right = -1 }; }

static bool has_window(const pith_skips *s) { return s->window_left >= 0 || s->window_right >= 0; }

/* Of two windows both must hold. */
static void take_window(pith_skips *s, const pith_mask *mask) {
    bool has = mask->window_left >= 0 || mask->window_right >= 0;
    bool same = mask->window_left == s->window_left && mask->window_right == s->window_right;
    s->windows_differ = s->windows_differ || (has && has_window(s) && !same);
    if (mask->window_left >= 0 && (s->window_left < 0 || mask->window_left < s->window_left))
        s->window_left = mask->window_left;
    if (mask->window_right >= 0 && (s->window_right < 0 || mask->window_right < s->window_right))
        s->window_right = mask->window_right;
}

bool pith_skips_add(pith_skips *skips, const pith_mask *mask, pith_mask_form form, double number, bool replaces,
                    int step) {
    bool window = mask->window_left >= 0 || mask->window_right >= 0;
    if ((mask->key_mask && skips->key_mask && mask->key_mask != skips->key_mask) || skips->count == PITH_SKIPS_MAX)
        return false;
    struct pith_skips_mask *m = &skips->masks[skips->count++];
    *m = (struct pith_skips_mask){ .step = step, .replaces = replaces };
    for (int i = 0; i < PITH_SKIPS; i++) {
        bool padded = mask->key_mask && i != PITH_SKIP_OUTSIDE, outside = window && i != PITH_SKIP_PADDED;
        if (!padded && !outside) continue;
        int seen = padded && outside ? PITH_SKIP_BOTH : padded ? PITH_SKIP_PADDED : PITH_SKIP_OUTSIDE;
        m->number[i] = form == PITH_MASK_ADDED ? mask->added[seen] : (float)number;
    }
    if (mask->key_mask) {
        skips->numbers = !skips->key_mask || skips->numbers == mask->numbers ? mask->numbers : PITH_MASK_BINARY;
        skips->key_mask = mask->key_mask;
    }
    take_window(skips, mask);
    return true;
}

bool pith_skips_show(const pith_skips *skips, int step) {
    for (int i = 0; i < skips->count; i++) {
        const struct pith_skips_mask *m = &skips->masks[i];
        for (int k = 0; k < PITH_SKIPS && m->replaces && m->step > step; k++)
            if (m->number[k] != 0.0f && m->number[k] > PITH_ABSORBS) return true;
    }
    return false;
}

/* The masks one after the other, the one next to the matmul first; *replaced: the score itself is gone. */
static float skips_number_of(const pith_skips *s, int skip, bool *replaced) {
    float number = 0.0f;
    *replaced = false;
    for (int step = PITH_SKIPS_MAX; step >= 0; step--) {
        for (int i = 0; i < s->count; i++) {
            const struct pith_skips_mask *m = &s->masks[i];
            if (m->step != step || m->number[skip] == 0.0f) continue;
            number = m->replaces ? m->number[skip] : number + m->number[skip];
            *replaced = *replaced || m->replaces;
        }
    }
    return number;
}

/* Do keys on the two sides of the window have different numbers? Without padding a query sees itself at least. */
static bool skips_sides_differ(const pith_skips *s) {
    float first = 0.0f;
    for (int i = 0; i < s->count && s->windows_differ && s->key_mask; i++) {
        float number = s->masks[i].number[PITH_SKIP_OUTSIDE];
        if (number != 0.0f && first != 0.0f && number != first) return true;
        if (number != 0.0f) first = number;
    }
    return false;
}

bool pith_skips_settle(const pith_skips *skips, bool zero_if_none, pith_none_left *none_left, float *numbers) {
    const bool happens[] = { skips->key_mask, has_window(skips), skips->key_mask && has_window(skips) };
    float first = 0.0f; /* of the finite ones */
    bool uniform = true, infinite = false, replaced[PITH_SKIPS];
    for (int i = 0; i < PITH_SKIPS; i++) {
        numbers[i] = skips_number_of(skips, i, &replaced[i]);
        if (!happens[i]) continue;
        infinite = infinite || isinf(numbers[i]);
        if (isinf(numbers[i])) continue;
        /* Where nothing is left of the scores, and the number is the same for all, all keys count alike. */
        if (first == 0.0f) first = numbers[i];
        uniform = uniform && numbers[i] == first && (replaced[i] || first <= PITH_ABSORBS);
    }
    *none_left = first == 0.0f && skips->count ? (zero_if_none ? PITH_NONE_LEFT_ZERO : PITH_NONE_LEFT_NAN)
                 : uniform && !infinite        ? PITH_NONE_LEFT_MEAN
                                               : PITH_NONE_LEFT_SCORES;
    for (int i = 0; i < PITH_SKIPS && *none_left == PITH_NONE_LEFT_SCORES; i++) {
        if (!happens[i] || isinf(numbers[i]) || numbers[i] <= PITH_ABSORBS) continue;
        if (replaced[i] && !uniform) return false; /* without its score it is no match for one that kept it */
        if (replaced[i]) numbers[i] = PITH_ABSORBS;
    }
    return (*none_left != PITH_NONE_LEFT_SCORES || !skips->windows_differ) && !skips_sides_differ(skips);
}

/* attention_mask.h - recognising attention masks: what a value means that is added to attention
 * scores, or selects among them.
 *
 * Exporters write "skip padded keys", "no key after the query" and "keys in a window" in dozens of
 * ways. Recognition has two steps. First, the value must depend only on the attention mask and on
 * positions, through operators that move elements or map them one by one. Then it is computed for
 * small masks, and every element must agree with the assumed meaning. A value that passes is
 * replaced by its meaning; any other value stays an added bias. */
#ifndef PITH_ENGINE_OPT_ATTENTION_MASK_H
#define PITH_ENGINE_OPT_ATTENTION_MASK_H

#include "engine/kernels/attention.h"
#include "engine/opt/pass.h"

typedef enum pith__mask_form {
    PITH_MASK_ADDED, /* 0 keeps, -10000 and less skips */
    PITH_MASK_KEEPS, /* bool: true keeps */
    PITH_MASK_SKIPS  /* bool: true skips */
} pith__mask_form;

/* Why a key is skipped. */
typedef enum pith__mask_skip {
    PITH_SKIP_PADDED,
    PITH_SKIP_OUTSIDE,
    PITH_SKIP_BOTH,
    PITH_SKIPS
} pith__mask_skip;

/* The reason for a key that is skipped: it is padding, outside of the window, or both. */
static inline pith__mask_skip pith__mask_skip_of(bool padded, bool outside) {
    if (padded && outside) return PITH_SKIP_BOTH;
    return padded ? PITH_SKIP_PADDED : PITH_SKIP_OUTSIDE;
}

typedef struct pith__mask {
    pith__value *key_mask;             /* the graph's input [batch, keys], 1 keeps, 0 skips; NULL:
                                          all keys are kept */
    int64_t window_left, window_right; /* as in pith.Attention; -1: no limit */
    float added[PITH_SKIPS];           /* ADDED: what is added to a skipped key's score; 0: this
                                          does not skip it */
    int numbers;                       /* what other numbers in key_mask mean, a
                                          pith__mask_numbers */
} pith__mask;

typedef enum pith__mask_kind {
    PITH_MASK_NO,      /* not recognised; *why is the reason */
    PITH_MASK_YES,     /* *mask is its complete meaning */
    PITH_MASK_CONSTANT /* a function of positions and constants alone, but no mask: a bias */
} pith__mask_kind;

/* v broadcasts to [batch, heads, queries, keys]. Fails only if memory is out. */
pith_status pith__mask_recognize(pith__mask_kind *kind, pith__mask *mask, const char **why,
                                 const pith__value *v, pith__mask_form form, pith__opt *o);

#endif

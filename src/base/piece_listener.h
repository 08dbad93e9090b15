/* piece_listener.h - who listens to which pieces of a build are used.
 *
 * A piece is an entry of a list under src/select: an operator, a kernel, a pass, a tokenizer step
 * and so on, known by the address of its descriptor. Each place that looks a piece up tells when it
 * takes one. Nobody listens but `pith select` (select/used_pieces.c), so telling costs one load. */
#ifndef PITH_BASE_PIECE_LISTENER_H
#define PITH_BASE_PIECE_LISTENER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* What else is known of an operator that was used: bit d is set if it works on dtype d. */
#define PITH_PIECE_UPGRADED                                                                        \
    (UINT32_C(1) << 31) /* a node was written in an older form of the operator */

typedef void pith__piece_fn(const void *piece, uint32_t facts);

/* NULL: nobody listens. It may be called by any thread. */
extern _Atomic(pith__piece_fn *) pith__piece_listener;

static inline void pith__piece_used_with(const void *piece, uint32_t facts) {
    pith__piece_fn *listener = atomic_load_explicit(&pith__piece_listener, memory_order_relaxed);
    if (listener) listener(piece, facts);
}

static inline void pith__piece_used(const void *piece) { pith__piece_used_with(piece, 0); }

/* Whether somebody listens: then a choice by the processor's features tells its alternatives too,
 * so that a list made on one processor is right for all. */
static inline int pith__piece_heard(void) {
    return atomic_load_explicit(&pith__piece_listener, memory_order_relaxed) != NULL;
}

#endif

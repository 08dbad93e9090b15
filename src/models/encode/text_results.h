/* text_results.h - calls that go on after bad texts and tell how each text went
 * (pith_embed_options.results).
 *
 * It is a part that selective builds leave out, unless their list names it. */
#ifndef PITH_MODELS_ENCODE_TEXT_RESULTS_H
#define PITH_MODELS_ENCODE_TEXT_RESULTS_H

#include "models/encode/call_state.h"

/* The functions of part "results". */
struct pith__text_results_part {
    /* Notes for the caller how a text of the window went; fault: NULL if it has its row. */
    void (*note)(const encode_call *c, size_t text, const pith_error *fault);
    /* Runs a chunk again that failed: so those texts are known that the network cannot compute, and
     * the others have their results. */
    void (*apart)(encode_call *c, encode_worker *w, const encode_chunk *k);
    /* Gives the window's bad texts to the heads, in place of what a head may have made of one
     * before another head failed. */
    pith_status (*emit_bad)(encode_call *c, pith_error *err);
};

void pith__encode_run_apart(encode_call *c, encode_worker *w, const encode_chunk *k);

#endif

/* given_tokens.h - texts that a caller brings as tokens (pith_token_ids), as rows of a call.
 *
 * An encoder comes here through two pointers, so that a program whose texts are all texts does not
 * link it. */
#ifndef PITH_MODELS_ENCODE_GIVEN_TOKENS_H
#define PITH_MODELS_ENCODE_GIVEN_TOKENS_H

#include "models/encode/call_state.h"

struct pith__given_tokens {
    const pith_token_ids *texts; /* of the caller, one for each text of the job */
    /* Makes a row of text i of the window. */
    pith_status (*take)(encode_call *c, encode_worker *w, size_t i, pith_error *err);
    /* Runs a chunk again that failed, so that an error names its text. */
    void (*apart)(encode_call *c, encode_worker *w, const encode_chunk *k);
};

/* Prepares a call. max_length and prompt_name are those of the caller's options, which texts that
 * are tokens have no use for: PITH_ERR_ARGUMENT if they are set. */
pith_status pith__given_tokens_begin(pith__given_tokens *given, const pith_token_ids *texts,
                                     int32_t max_length, const char *prompt_name, pith_error *err);

#endif

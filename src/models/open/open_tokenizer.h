/* open_tokenizer.h - the implementation of pith_tokenizer_open, _close and _limit. The caller has
 * set the floating-point mode. */
#ifndef PITH_MODELS_OPEN_OPEN_TOKENIZER_H
#define PITH_MODELS_OPEN_OPEN_TOKENIZER_H

#include "models/modules/modules.h"
#include "pith/tokens.h"

pith_status pith__lone_tokenizer_open(pith_tokenizer **tokenizer, const char *path,
                                      const pith_open_options *options, pith_error *err);
void pith__lone_tokenizer_close(pith_tokenizer *tokenizer); /* NULL is allowed */
pith_status pith__lone_tokenizer_limit(int32_t *tokens, const pith_tokenizer *tokenizer,
                                       const char *path, pith_error *err);

/* How a model with these modules reads its tokenizer: bits for pith__tokenizer_load_as. */
unsigned pith__lone_tokenizer_how(const pith__modules *modules);

#endif

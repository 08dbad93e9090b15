/* tokenizer_only.h - the implementation of pith_tokenizer_open, _close and _limit. The caller has
 * set the floating-point mode. */
#ifndef PITH_MODELS_OPEN_TOKENIZER_ONLY_H
#define PITH_MODELS_OPEN_TOKENIZER_ONLY_H

#include "models/modules/modules.h"
#include "pith/tokens.h"

pith_status pith__tokenizer_only_open(pith_tokenizer **tokenizer, const char *path,
                                      const pith_open_options *options, pith_error *err);
void pith__tokenizer_only_close(pith_tokenizer *tokenizer); /* NULL is allowed */
pith_status pith__tokenizer_only_limit(int32_t *tokens, const pith_tokenizer *tokenizer,
                                       const char *path, pith_error *err);

/* How a model with these modules reads its tokenizer: bits for pith__tokenizer_load_as. */
unsigned pith__tokenizer_only_how(const pith__modules *modules);

#endif

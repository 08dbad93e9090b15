/* pre_bytelevel.h - the ByteLevel pre-tokenizer, for models that can read bytes as they are. */
#ifndef PITH_TEXT_PRETOKENIZERS_PRE_BYTELEVEL_H
#define PITH_TEXT_PRETOKENIZERS_PRE_BYTELEVEL_H

#include "text/pipeline.h"

/* The step that spells bytes as characters. Parsing it adds those for the space and the cuts before
 * it. */
extern const pith__pretokenizer_desc pith__pretokenizer_ByteLevel;

#endif

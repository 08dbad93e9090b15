/* first_tokens.h - the first tokens of a long text from its beginning alone.
 *
 * A text that is cut off at some number of tokens need not be read to its end. Its beginning up to
 * a place before a single space between two ASCII letters gives the same tokens as the whole, if no
 * step looks beyond that place and one of them always cuts there. Opening a tokenizer finds out
 * whether this holds for it. */
#ifndef PITH_TEXT_FIRST_TOKENS_H
#define PITH_TEXT_FIRST_TOKENS_H

#include "text/pipeline.h"

/* Sets tokenizer->begins_alone. Call it after everything else is loaded. */
pith_status pith__first_tokens_find_out(pith__loader *loader);

/* pith__encode_text; but if the tokenizer allows it, encodes only as much of the text as gives more
 * than enc->limit tokens. */
pith_status pith__first_tokens_encode(pith__encoding *enc, pith_str text, bool offsets);

#endif

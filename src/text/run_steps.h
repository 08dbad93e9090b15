/* run_steps.h - running a tokenizer's steps on an encoding. */
#ifndef PITH_TEXT_RUN_STEPS_H
#define PITH_TEXT_RUN_STEPS_H

#include "text/pipeline.h"

/* The normalizers, on every piece of the encoding without id. Empty pieces stay. */
pith_status pith__normalize(pith__encoding *enc);
/* Appends the tokens of one text to the encoding, offsets in source bytes (zero where they are not
 * wanted). */
pith_status pith__encode_text(pith__encoding *enc, pith_str text, bool offsets);

#endif

/* steps.h - running a tokenizer's steps on a call. */
#ifndef PITH_TEXT_STEPS_H
#define PITH_TEXT_STEPS_H

#include "text/pipeline.h"

/* The normalizers, on every piece of the call without id. Empty pieces stay. */
pith_status pith_normalize(pith_call *call);
/* Appends the tokens of one text to the call, offsets in source bytes (zero where they are not wanted). */
pith_status pith_encode_text(pith_call *call, pith_str text, bool offsets);

#endif

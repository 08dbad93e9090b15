/* pith.h - text to vectors, and any ONNX model, in one small library.
 *
 *     pith_model *model;
 *     pith_error err = PITH_ERROR_INIT;
 *     if (pith_model_open(&model, "all-MiniLM-L6-v2", NULL, &err)) puts(err.message);
 *
 * Rules that hold for every declaration here:
 *   - A function that can fail returns a pith_status; 0 is success. On failure it fills the
 *     pith_error, which may be NULL.
 *   - Outputs are the first parameters, inputs follow, the error is last. After a failure every
 *     handle stays usable, and outputs are unchanged unless the function says otherwise.
 *   - Option structs begin with their size. Initialise them with their _INIT macro. NULL means the
 *     defaults. No other pointer may be NULL unless the comment says so.
 *   - A parameter with a name in the plural is an array of count elements, unless the comment says
 *     another number in brackets. Strings, const char *, end with a NUL.
 *   - A pith_model, a pith_tokenizer and a pith_search_index do not change once they are open, and
 *     any number of threads may use one at the same time. Every other handle may be used by one
 *     thread at a time, unless its functions say otherwise.
 *   - The library prints nothing, never ends the process and keeps no thread-local state. It leaves
 *     errno, signals and the floating-point mode of the caller as they were.
 *   - A build that was made without something (docs/selective-build.md) refuses what needs it or
 *     asks for it by an option with PITH_ERR_UNSUPPORTED; the message names what to add to the
 *     build.
 *   - Text is UTF-8 with a length in bytes; it may hold NUL bytes. */
#ifndef PITH_PITH_H
#define PITH_PITH_H

#include "pith/bm25.h"
#include "pith/build.h"
#include "pith/chunk.h"
#include "pith/cpu.h"
#include "pith/embed.h"
#include "pith/encode.h"
#include "pith/export.h"
#include "pith/memory.h"
#include "pith/model.h"
#include "pith/op.h"
#include "pith/profile.h"
#include "pith/quantize.h"
#include "pith/queue.h"
#include "pith/runtime.h"
#include "pith/score.h"
#include "pith/search.h"
#include "pith/select.h"
#include "pith/session.h"
#include "pith/session_pool.h"
#include "pith/source.h"
#include "pith/statistics.h"
#include "pith/tensor.h"
#include "pith/tokens.h"
#include "pith/transform.h"
#include "pith/types.h"

#endif

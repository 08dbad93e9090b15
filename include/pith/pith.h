/* pith.h - text to vectors, and any ONNX model, in one small library.
 *
 *     pith_model *model;
 *     pith_error err = PITH_ERROR_INIT;
 *     if (pith_model_open(&model, "all-MiniLM-L6-v2", NULL, &err)) puts(err.message);
 *
 * Rules that hold for every declaration here:
 *   - A function that can fail returns pith_status, 0 is success, and fills the caller's pith_error if one is given.
 *     Outputs come first, inputs follow, the error is last. After a failure every handle stays usable, and outputs are
 *     untouched unless the function says otherwise.
 *   - Option structs begin with their size and are made by their _INIT macro; NULL means the defaults.
 *   - A pith_model is immutable once open and may be used by any number of threads at once.
 *     Every other handle is for one thread at a time.
 *   - The library prints nothing, ends no process, keeps no thread-local state and leaves errno, signals and the
 *     floating point mode of the caller as they were.
 *   - Text is UTF-8 with a length; it may hold NUL bytes.
 */
#ifndef PITH_PITH_H
#define PITH_PITH_H

#include "pith/embed.h"
#include "pith/model.h"
#include "pith/profile.h"
#include "pith/session.h"
#include "pith/tokens.h"
#include "pith/types.h"

#endif

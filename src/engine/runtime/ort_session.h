/* ort_session.h - making a session of ONNX Runtime with the options of a model. */
#ifndef PITH_ENGINE_RUNTIME_ORT_SESSION_H
#define PITH_ENGINE_RUNTIME_ORT_SESSION_H

#include "base/text_out.h"
#include "engine/runtime/ort_library.h"
#include "engine/runtime/runtime.h"

/* Makes a session with so many threads. The caller releases it. `providers` gets the names of the
 * providers that were set up. Those that the library lacks are passed over with a warning, unless
 * `quiet` is set. */
pith_status pith__ort_session_create(ort_session **session, pith__text_out *providers,
                                     const pith__ort *ort, const pith__program_source *source,
                                     int threads, bool quiet, pith_error *err);

#endif

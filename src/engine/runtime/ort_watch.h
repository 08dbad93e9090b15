/* ort_watch.h - ends a run of ONNX Runtime when the caller wants to stop.
 *
 * ONNX Runtime has a function that ends a run from another thread, and no flag that it reads
 * itself. So a run that can be stopped goes to a thread of its own, while the caller's thread looks
 * every few milliseconds whether the run must end: only there may the caller's function be asked. A
 * run that cannot be stopped stays on the caller's thread. */
#ifndef PITH_ENGINE_RUNTIME_ORT_WATCH_H
#define PITH_ENGINE_RUNTIME_ORT_WATCH_H

#include "base/stop.h"
#include "engine/runtime/ort_library.h"

typedef struct pith__ort_watched {
    const pith__ort *ort;
    ort_run_options *options;
    ort_status *(*run)(void *context); /* ends early when the options are told to terminate */
    void *context;
} pith__ort_watched;

/* Runs w->run and sets *result to what it returned. Fails if the run was stopped; then there may be
 * a result as well. The options can be used again. stop may be NULL. */
pith_status pith__ort_watch(ort_status **result, const pith__ort_watched *w, pith__stop *stop,
                            pith_error *err);

#endif

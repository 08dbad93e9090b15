/* ort_watch.h - ends a run of ONNX Runtime when the caller's cancel flag is set.
 *
 * The library has a function that ends a run from another thread, and no flag that it reads itself.
 * So a run that can be cancelled has a thread that looks at the flag every few milliseconds; a run
 * that cannot has none. */
#ifndef PITH_ENGINE_RUNTIME_ORT_WATCH_H
#define PITH_ENGINE_RUNTIME_ORT_WATCH_H

#include <pthread.h>

#include "engine/runtime/ort_library.h"

typedef struct pith__ort_watch {
    const pith__ort *ort;
    ort_run_options *run;
    const volatile int *cancel; /* NULL: nothing is watched */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
    bool over;      /* guarded by the lock: the run has ended */
    bool cancelled; /* read after the thread has ended */
} pith__ort_watch;

pith_status pith__ort_watch_begin(pith__ort_watch *watch, const pith__ort *ort,
                                  ort_run_options *run, const volatile int *cancel,
                                  pith_error *err);
/* Returns true if the flag was set; the run options can be used again. */
bool pith__ort_watch_end(pith__ort_watch *watch, pith_error *err);

#endif

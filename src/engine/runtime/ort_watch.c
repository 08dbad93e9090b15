/* ort_watch.c - see ort_watch.h. */
#include "engine/runtime/ort_watch.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/cancel.h"
#include "base/error.h"

/* How often the flag is looked at. */
#define WATCH_NANOSECONDS 5000000

static void *watch_run(void *context) {
    pith__ort_watch *w = context;
    pthread_mutex_lock(&w->lock);
    while (!w->over && !w->cancelled) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WATCH_NANOSECONDS;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
        pthread_cond_timedwait(&w->end, &w->lock, &until);
        if (!pith__is_cancelled(w->cancel)) continue;
        pith_error ignored;
        w->cancelled = true;
        (void)pith__ort_check(w->ort, w->ort->RunOptionsSetTerminate(w->run), "cancel", &ignored);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

pith_status pith__ort_watch_begin(pith__ort_watch *w, const pith__ort *ort, ort_run_options *run,
                                  const volatile int *cancel, pith_error *err) {
    sigset_t all, before;
    *w = (pith__ort_watch){ .ort = ort, .run = run, .cancel = cancel };
    if (!cancel) return PITH_OK;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->end, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&w->thread, NULL, watch_run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) return PITH_OK;
    pthread_cond_destroy(&w->end);
    pthread_mutex_destroy(&w->lock);
    w->cancel = NULL;
    return pith__fail(err, PITH_ERR_MEMORY, "no thread could be made that watches the cancel flag");
}

bool pith__ort_watch_end(pith__ort_watch *w, pith_error *err) {
    if (!w->cancel) return false;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->end);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->end);
    pthread_mutex_destroy(&w->lock);
    if (w->cancelled)
        (void)pith__ort_check(w->ort, w->ort->RunOptionsUnsetTerminate(w->run), "cancel", err);
    return w->cancelled;
}

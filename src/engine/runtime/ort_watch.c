/* ort_watch.c - see ort_watch.h. */
#include "engine/runtime/ort_watch.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/error.h"

/* How often it is looked whether the run must end. */
#define WATCH_NANOSECONDS 5000000

typedef struct watched_run {
    const pith__ort_watched *what;
    ort_status *result;
    pthread_mutex_t lock;
    pthread_cond_t end;
    bool over; /* guarded by the lock */
} watched_run;

static void *watch_run(void *context) {
    watched_run *w = context;
    w->result = w->what->run(w->what->context);
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->end);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Waits for the end of the run, and asks for it when the caller wants to stop. */
static pith_status watch_wait(watched_run *w, pith__stop *stop, pith_error *err) {
    const pith__ort *ort = w->what->ort;
    pith_error ignored;
    bool told = false;
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WATCH_NANOSECONDS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&w->end, &w->lock, &until);
        if (told || !pith__stop_asked(stop)) continue;
        told = true;
        (void)pith__ort_check(ort, ort->RunOptionsSetTerminate(w->what->options), "stop", &ignored);
    }
    pthread_mutex_unlock(&w->lock);
    if (!told) return PITH_OK;
    (void)pith__ort_check(ort, ort->RunOptionsUnsetTerminate(w->what->options), "stop", &ignored);
    return pith__stop_check(stop, err);
}

pith_status pith__ort_watch(ort_status **result, const pith__ort_watched *w, pith__stop *stop,
                            pith_error *err) {
    watched_run run = { .what = w };
    sigset_t all, before;
    pthread_t thread;
    if (!stop) {
        *result = w->run(w->context);
        return PITH_OK;
    }
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.end, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, watch_run, &run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pith_status status = PITH_OK;
    if (failed) {
        status =
            pith__fail(err, PITH_ERR_MEMORY,
                       "no thread could be made for a run of ONNX Runtime that can be stopped");
    } else {
        status = watch_wait(&run, stop, err);
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&run.end);
    pthread_mutex_destroy(&run.lock);
    *result = run.result;
    return status;
}

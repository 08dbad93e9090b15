/* work.h - what long work is given of the call context (pith/call.h): how many threads it may use,
 * when it must end, and whom it tells how far it is. Functions take a pointer to it, which is not
 * NULL; zeros stand for a call whose context says nothing. */
#ifndef PITH_BASE_WORK_H
#define PITH_BASE_WORK_H

#include "base/caller_options.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/stop.h"

typedef struct pith__work {
    int32_t threads;
    pith__stop *stop;                /* NULL: nothing can stop it */
    pith__progress *progress;        /* NULL: nobody wants to know */
    const pith_allocator *allocator; /* NULL: the caller named none */
} pith__work;

/* What a work points to. It stays where it is during the call. */
typedef struct pith__work_own {
    pith__stop stop;
    pith__progress progress;
} pith__work_own;

/* Rows between two looks at whether the call must end. Smaller: calls end sooner, and a row costs
 * more. With 1024 the look costs a tenth of a nanosecond a row. A power of two. */
#define PITH_WORK_ROWS 1024
/* Bytes between two looks where they are read one after the other: some milliseconds. */
#define PITH_WORK_BYTES ((size_t)4 << 20)
/* What a checked context says. */
static inline pith__work pith__work_of(pith__work_own *own, const pith_call *call) {
    return (pith__work){ call->threads, pith__stop_begin(&own->stop, call),
                         pith__progress_begin(&own->progress, call), call->allocator };
}

/* The same of a context that a caller gives, which may be NULL. Fails if the call must end
 * already. */
static inline pith_status pith__work_take(pith__work *work, pith__work_own *own,
                                          const pith_call *call, pith_error *err) {
    pith_call taken = PITH_CALL_INIT;
    *work = (pith__work){ .threads = 0 };
    PITH_TAKE_OPTIONS(taken, call, err);
    *work = pith__work_of(own, &taken);
    return pith__stop_check(work->stop, err);
}

/* Any thread may say how far work is; see base/progress.h. */
static inline void pith__work_tell(const pith__work *work, const char *what, uint64_t done,
                                   uint64_t total) {
    pith__progress_tell(work->progress, what, done, total);
}

/* Whether the call must end, asked for one row of many. stop may be NULL. */
static inline bool pith__row_stops(pith__stop *stop, size_t row) {
    return stop && !(row & (PITH_WORK_ROWS - 1)) && pith__stop_look(stop);
}

/* Returns from a loop over rows with the error that ends the call. */
#define PITH_TRY_ROW(stop, row, err)                                                               \
    if (pith__row_stops(stop, row)) return pith__stop_check(stop, err)

#endif

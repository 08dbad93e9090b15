/* profile.h - recording the steps and phases of runs, each thread for itself.
 *
 * A lane is the record of one thread. Code that works for a call with a profile gets the lane of
 * its thread once per piece of work, and writes to it without a lock. The lanes are merged when the
 * profile is written. Without a profile all these pointers are NULL. Events hold copies, so a model
 * may be closed before its profile is written. After EVENTS_MAX events, further events are only
 * counted. */
#ifndef PITH_ENGINE_EXEC_PROFILE_H
#define PITH_ENGINE_EXEC_PROFILE_H

#include "base/os/clock.h"
#include "engine/exec/executor.h"
#include "pith/profile.h"

/* The implementation of pith_profile_create, _destroy, _phase and _write (pith/profile.h). */
pith_status pith__profiling_create(pith_profile **profile, const pith_allocator *allocator,
                                   pith_error *err);
void pith__profiling_destroy(pith_profile *profile);
void pith__profiling_phase(pith_profile *profile, const char *name, uint64_t begin_ns);
void pith__profiling_tell(pith_profile *profile, void (*told)(void *user, const pith_phase *phase),
                          void *user, bool only);
pith_status pith__profiling_write(const pith_profile *profile, const pith_call *call,
                                  const pith_writer *writer, pith_error *err);

typedef struct pith__lane pith__lane;

/* What profiles and lanes begin with. So a program that makes no profile does not link the code
 * that records. */
typedef struct pith__recorder {
    pith__lane *(*lane)(pith_profile *profile);
    void (*phase)(pith__lane *lane, const char *name, uint64_t begin_ns, int64_t items);
    pith__trace_fn *(*trace)(const pith__lane *lane);
} pith__recorder;

static inline const pith__recorder *pith__recorder_of(const void *profile_or_lane) {
    return *(const pith__recorder *const *)profile_or_lane;
}

/* Returns the lane of the calling thread, or NULL if profile is NULL or memory is out. Valid in
 * this thread until the profile is destroyed. */
static inline pith__lane *pith__profile_lane(pith_profile *profile) {
    return profile ? pith__recorder_of(profile)->lane(profile) : NULL;
}
/* Returns the current time, or 0 if lane is NULL. */
static inline uint64_t pith__lane_now(const pith__lane *lane) {
    return lane ? pith__clock_ns() : 0;
}
/* Records a phase from begin_ns until now. name must be a literal. items is the number of texts or
 * tokens it handled; -1: not given. */
static inline void pith__lane_phase(pith__lane *lane, const char *name, uint64_t begin_ns,
                                    int64_t items) {
    if (lane) pith__recorder_of(lane)->phase(lane, name, begin_ns, items);
}
/* Returns the function that records steps in the lane, which is its context; NULL if lane is NULL.
 */
static inline pith__trace_fn *pith__lane_trace(const pith__lane *lane) {
    return lane ? pith__recorder_of(lane)->trace(lane) : NULL;
}

#endif

/* profile.h - what ran when: steps and phases of any number of runs, recorded by each thread for itself.
 *
 * A lane is the record of one thread. Whoever works for a caller who wants a profile asks for the lane of its thread
 * once per piece of work and writes to it without a lock; the lanes are put together when the profile is written. A
 * profile that nobody wants is a NULL pointer all the way down. Events hold copies, so a model may be closed before
 * its profile is written. Beyond EVENTS_MAX events are counted, not kept. */
#ifndef PITH_EXEC_PROFILE_H
#define PITH_EXEC_PROFILE_H

#include "exec/executor.h"
#include "pith/profile.h"

/* What pith_profile_create, _destroy, _phase and _write do (pith/profile.h). */
pith_status pith_profiling_create(pith_profile **profile, const pith_allocator *allocator, pith_error *err);
void pith_profiling_destroy(pith_profile *profile);
void pith_profiling_phase(pith_profile *profile, const char *name, uint64_t begin_ns);
pith_status pith_profiling_write(const pith_profile *profile, void (*write)(void *user, const char *text, size_t size),
                                 void *user, pith_error *err);

typedef struct pith_lane pith_lane;

/* The calling thread's; NULL if profile is NULL or memory is out. Valid in this thread until the profile goes. */
pith_lane *pith_profile_lane(pith_profile *profile);
/* Now, or 0 without a lane. */
uint64_t pith_lane_now(const pith_lane *lane);
/* A phase from begin_ns to now; name is a literal; items: how many texts, tokens, … it did, -1: not said. */
void pith_lane_phase(pith_lane *lane, const char *name, uint64_t begin_ns, int64_t items);
/* What runs on this executor is recorded in the lane from now on; NULL ends it. */
void pith_lane_listen(pith_lane *lane, pith_executor *executor);

#endif

/* profile.h - recording what ran when, and writing the record as a trace. */
#ifndef PITH_PROFILE_H
#define PITH_PROFILE_H

#include "pith/call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A record of what ran when. It holds the steps of runs, each with its operator, shapes, kernel,
 * bytes, operations and thread, and the phases around them (open, tokenise, bind, run, pool).
 *   - One profile may be passed to any number of calls, also to calls that run at the same time in
 *     different threads.
 *   - Calls without a profile record nothing and pay nothing.
 *   - A profile holds copies, so models may be closed before it is written.
 *   - After a million events, further events are only counted. */
typedef struct pith_profile pith_profile;

/* Makes an empty profile, which the caller owns. The allocator is copied; NULL means malloc and
 * free. */
PITH_API pith_status pith_profile_create(pith_profile **profile, const pith_allocator *allocator,
                                         pith_error *err);
/* Frees the profile; NULL is allowed. No call that was given the profile may be running. */
PITH_API void pith_profile_destroy(pith_profile *profile);
/* Returns the time of the profiles' clock, which is monotonic, in nanoseconds. Thread-safe. */
PITH_API uint64_t pith_profile_now(void);
/* Adds a phase of the host program, which ran in the calling thread from begin_ns (a
 * pith_profile_now) until now. name is copied. If profile is NULL, nothing happens. Thread-safe. */
PITH_API void pith_profile_phase(pith_profile *profile, const char *name, uint64_t begin_ns);
/* A phase that has ended. name is valid during the call that reports it. */
typedef struct pith_phase {
    const char *name; /* "open", "read", "tokenise", "picture", "run", "pool" …; docs/cli.md lists
                         them */
    uint64_t begin_ns, end_ns;
    int64_t items; /* texts, tokens or pictures that it handled; -1: not given */
} pith_phase;
/* From now on `told` is called for each phase when it ends, on the thread that ran it, so by
 * several threads at once. only: 1 records nothing, so the profile costs next to nothing; 0 records
 * as well. No call may be running. */
PITH_API void pith_profile_tell(pith_profile *profile,
                                void (*told)(void *user, const pith_phase *phase), void *user,
                                int32_t only);
/* Writes the record in the Chrome trace format (JSON), which ui.perfetto.dev opens; docs/cli.md
 * lists the keys. No call that was given the profile may be running. In call, which may be NULL,
 * the three ways to end it have an effect. */
PITH_API pith_status pith_profile_write(const pith_profile *profile, const pith_call *call,
                                        const pith_writer *writer, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

/* profile.h - what ran when: recording steps and phases, and writing them as a trace. */
#ifndef PITH_PROFILE_H
#define PITH_PROFILE_H

#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What ran when: the steps of runs, each with operator, shapes, kernel, bytes, operations and thread, and the phases
 * around them (open, tokenise, bind, run, pool). One profile may be given to any number of opens, runs and embeds, also
 * to several at the same time in different threads; without one nothing is recorded and nothing is paid for it. It
 * holds copies, so models may be closed before it is written. Beyond a million events only their number is kept. */
typedef struct pith_profile pith_profile;

/* allocator: NULL is malloc and free; copied. */
PITH_API pith_status pith_profile_create(pith_profile **profile, const pith_allocator *allocator, pith_error *err);
/* NULL is allowed. No call that was given the profile may be under way; the same holds for pith_profile_write. */
PITH_API void pith_profile_destroy(pith_profile *profile);
/* The clock of profiles: nanoseconds, monotonic. */
PITH_API uint64_t pith_profile_now(void);
/* Adds a phase of the host's own in the calling thread, from begin_ns to now. profile may be NULL; name is copied. */
PITH_API void pith_profile_phase(pith_profile *profile, const char *name, uint64_t begin_ns);
/* The Chrome trace format (JSON), which Perfetto reads; docs/cli.md lists the keys. write receives it in pieces. */
PITH_API pith_status pith_profile_write(const pith_profile *profile,
                                        void (*write)(void *user, const char *text, size_t size), void *user,
                                        pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

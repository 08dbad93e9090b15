/* api_profile.c - the public functions of pith/profile.h. */
#include "api/entry.h"
#include "base/os/clock.h"
#include "engine/exec/profile.h"

pith_status pith_profile_create(pith_profile **profile, const pith_allocator *allocator,
                                pith_error *err) {
    return pith__profiling_create(profile, allocator, err);
}

void pith_profile_destroy(pith_profile *profile) { pith__profiling_destroy(profile); }

uint64_t pith_profile_now(void) { return pith__clock_ns(); }

void pith_profile_phase(pith_profile *profile, const char *name, uint64_t begin_ns) {
    pith__profiling_phase(profile, name, begin_ns);
}

void pith_profile_tell(pith_profile *profile, void (*told)(void *user, const pith_phase *phase),
                       void *user, int32_t only) {
    pith__profiling_tell(profile, told, user, only);
}

pith_status pith_profile_write(const pith_profile *profile, const pith_call *call,
                               const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__profiling_write(profile, call, writer, err));
}

/* device_runs.h - what runs need where a plan has other memories than the host's: copies that go on
 * beside other steps, and inputs and outputs in the memory of a device.
 *
 * The executor calls these functions through pith__run_devices_used. Programs without other devices
 * than the CPU do not link them, and plans without other memories do not call them. */
#ifndef PITH_ENGINE_EXEC_DEVICE_RUNS_H
#define PITH_ENGINE_EXEC_DEVICE_RUNS_H

#include "engine/exec/run_state.h"

/* Copies under way whose ends are watched at the same time; one more waits for the oldest. */
enum { PITH_FLIGHTS_MOST = 32 };

/* Work of a device that was begun and is not known to be done. */
typedef struct pith__flight {
    const pith__device *device;
    uint64_t mark;
    size_t step;
    const char *host; /* host memory that it reads or writes; NULL: none */
    size_t bytes;
    bool writes;
    bool beside; /* another step began meanwhile */
    uint64_t begin_ns;
} pith__flight;

/* What an executor of a plan with several memories has besides. In its arena. */
typedef struct pith__executor_devices {
    pith_tensor *ports; /* [ports] of this run, as they were given; only those in the memory of a
                           device have a meaning */
    uint64_t *readers;  /* [ports] bit m: a port that lies in memory m is read in host memory too;
                           made when first needed */
    bool readers_known;
    uint8_t *ends;  /* [ports + outputs]: the memory of each in this run; 0: the host's */
    bool any;       /* one of them is not 0 */
    uint64_t *left; /* [memories] mark of work that the last run left under way; 0: none */
    pith__flight flights[PITH_FLIGHTS_MOST]; /* the oldest first */
    size_t flight_count;
    uint64_t *programs, *copies, *beside; /* [memories] of this run: steps, copies, and copies that
                                             other steps ran beside */
} pith__executor_devices;

typedef pith_status pith__next_step(pith__running *r, const pith__region *region, size_t *end,
                                    pith_error *err);

struct pith__run_devices {
    pith_status (*make)(pith__executor *e, pith_error *err);
    /* Waits for work that a run left under way, before the executor ends. */
    void (*end)(pith__executor *e);
    /* Before the ports of a run are taken: waits for such work, and finds where outputs go. This
     * and take_port are called where there is only host memory, too, and refuse what is
     * elsewhere. */
    pith_status (*begin)(pith__executor *e, pith_error *err);
    /* Takes a port that is in the memory of a device. */
    pith_status (*take_port)(pith__executor *e, size_t port, const pith_tensor *given,
                             pith_error *err);
    /* Whether a binding has its ports and outputs where this run has them. */
    bool (*fits)(const pith__executor *e, const pith__binding *b);
    /* For a binding with ports or outputs in other memories: keeps their memories, and makes values
     * that become outputs there last to the end. */
    pith_status (*keep)(pith__binder *k);
    /* Whether a copy step has nothing to do, since its input or its output is where it should be.
     */
    bool (*settle_copy)(pith__binder *k, const pith__step *step, const pith__bound_step *bound,
                        pith_status *status);
    /* The value that an output of the graph has its memory from. */
    const pith__value *(*source)(const pith__plan *plan, const uint8_t *ends, size_t output);
    /* Whether an output that may be moved within `memory` can be computed in its target. */
    bool (*takes)(const pith__executor *e, size_t output, int memory);
    void (*set_addresses)(const pith__executor *e, pith__binding *b);
    /* Runs all steps, each by `next`. */
    pith_status (*run)(pith__running *r, pith__next_step *next, pith_error *err);
    /* Puts the outputs that belong there into the memory of a device. */
    pith_status (*finish)(pith__executor *e, pith__binding *b, pith_tensor *outputs,
                          pith_error *err);
    /* Whether an input or output of a run lies in the memory of this device, so that no other can
     * do it: the error then says so too. */
    bool (*is_bound)(const pith__executor *e, const pith_tensor *inputs, const pith_tensor *targets,
                     const pith__device_choice *choice, pith_error *err);
};

#endif

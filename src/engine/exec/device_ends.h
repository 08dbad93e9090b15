/* device_ends.h - inputs and outputs of a run that lie in the memory of a device. The functions are
 * those of pith__run_devices (engine/exec/device_runs.h). */
#ifndef PITH_ENGINE_EXEC_DEVICE_ENDS_H
#define PITH_ENGINE_EXEC_DEVICE_ENDS_H

#include "engine/exec/device_runs.h"

pith_status pith__device_ends_begin(pith__executor *e, pith_error *err);
pith_status pith__device_ends_take_port(pith__executor *e, size_t port, const pith_tensor *given,
                                        pith_error *err);
bool pith__device_ends_fit(const pith__executor *e, const pith__binding *b);
pith_status pith__device_ends_keep(pith__binder *k);
bool pith__device_ends_settle_copy(pith__binder *k, const pith__step *step,
                                   const pith__bound_step *bound, pith_status *status);
const pith__value *pith__device_ends_source(const pith__plan *plan, const uint8_t *ends,
                                            size_t output);
bool pith__device_ends_take(const pith__executor *e, size_t output, int memory);
void pith__device_ends_set_addresses(const pith__executor *e, pith__binding *b);
pith_status pith__device_ends_finish(pith__executor *e, pith__binding *b, pith_tensor *outputs,
                                     pith_error *err);
bool pith__device_ends_bound(const pith__executor *e, const pith_tensor *inputs,
                             const pith_tensor *targets, const pith__device_choice *choice,
                             pith_error *err);

/* Waits for all work of devices that this thread has given, whatever comes of it (device_runs.c).
 */
void pith__device_drain(const pith__executor *e);
/* Waits for work of a device, or until the run must stop (device_runs.c). */
pith_status pith__device_wait(const pith__executor *e, const pith__device *device, uint64_t mark,
                              pith__stop *stop, pith_error *err);

#endif

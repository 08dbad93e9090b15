/* api_call.c - the public functions of pith/call.h. */
#include "api/entry.h"
#include "base/os/clock.h"
#include "base/os/threads.h"

static const char call_is_busy[] = "a call of the library is running";

uint64_t pith_clock_now(void) { return pith__clock_ns(); }

pith_status pith_set_threads(int32_t threads, pith_error *err) {
    return pith__threads_set_count(threads, err);
}

void pith_pin_threads(int32_t pin) { pith__threads_pin(pin != 0); }

void pith_set_spin(int32_t microseconds) { pith__threads_set_spin(microseconds); }

pith_status pith_stop_threads(pith_error *err) {
    return pith__threads_stop() ? PITH_OK : pith__fail(err, PITH_ERR_BUSY, call_is_busy);
}

pith_status pith_set_executor(const pith_executor *executor, pith_error *err) {
    if (executor && !executor->run)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the executor has no function that runs");
    return pith__threads_set_host(executor) ? PITH_OK
                                            : pith__fail(err, PITH_ERR_BUSY, call_is_busy);
}

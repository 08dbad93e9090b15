/* devices.c - opening and closing the backends of a plan. */
#include "backend/backend.h"

static pith_status device_open(pith_devices *d, const pith_backend *backend, const pith_allocator *allocator,
                               const pith_log *log, pith_error *err) {
    pith_error why = PITH_ERROR_INIT;
    pith_device *device = &d->items[d->count];
    *device = (pith_device){ .backend = backend };
    pith_status status = backend->open ? backend->open(&device->context, allocator, &why) : PITH_OK;
    if (status == PITH_ERR_NOT_FOUND) {
        pith_log_write(log, PITH_LOG_WARNING, "backend '%s' is not used: %s", backend->name, why.message);
        return PITH_OK;
    }
    if (status) return pith_fail(err, status, "backend '%s': %s", backend->name, why.message);
    if (backend->alloc) {
        device->memory = (int)d->memory_count;
        d->memories[d->memory_count++] = device;
    }
    d->count++;
    return PITH_OK;
}

pith_status pith_devices_open(pith_devices *d, pith_arena *arena, const pith_log *log, pith_error *err) {
    *d = (pith_devices){ .memory_count = 1 };
    d->items = pith_arena_array(arena, pith_backend_table_count, sizeof *d->items);
    d->memories = pith_arena_array(arena, pith_backend_table_count + 1, sizeof *d->memories);
    if (!d->items || !d->memories) return pith_fail_memory(err, pith_backend_table_count * sizeof *d->items);
    pith_status status = PITH_OK;
    for (size_t i = 0; i < pith_backend_table_count && !status; i++)
        status = device_open(d, pith_backend_table[i], arena->allocator, log, err);
    if (status) pith_devices_close(d);
    return status;
}

void pith_devices_close(pith_devices *d) {
    for (; d->count > 0; d->count--) {
        const pith_device *device = &d->items[d->count - 1];
        if (device->backend->close) device->backend->close(device->context);
    }
}

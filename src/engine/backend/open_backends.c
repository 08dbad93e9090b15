/* open_backends.c - lists of backends, and opening and closing those of a plan. */
#include <string.h>

#include "base/str.h"
#include "base/text_out.h"
#include "engine/backend/backend.h"

/* ---- lists ---- */

static const pith__backend *device_find(pith_str name) {
    for (size_t i = 0; i < pith__backend_table_count; i++)
        if (pith__str_is(name, pith__backend_table[i]->name)) return pith__backend_table[i];
    return NULL;
}

/* The item that begins at *at, without blanks around it. */
static pith_str device_item(const char **at) {
    const char *begin = *at, *end = begin + strcspn(begin, ",");
    *at = *end ? end + 1 : NULL;
    while (begin < end && *begin == ' ') begin++;
    while (end > begin && end[-1] == ' ') end--;
    return (pith_str){ begin, (size_t)(end - begin) };
}

static pith_status device_list_add(pith__device_list *list, pith_str name, const pith_log *log,
                                   pith_error *err) {
    const pith__backend *backend = device_find(name);
    if (!name.size)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the list of devices has an empty name");
    if (pith__str_is(name, "auto"))
        return pith__fail(err, PITH_ERR_ARGUMENT, "'auto' stands for all devices; give it alone");
    if (!backend) {
        pith__count(list->counters, PITH_COUNT_device_choices, 1);
        pith__count(list->counters, PITH_COUNT_device_fallbacks, 1);
        pith__log_write(log, PITH_LOG_WARNING,
                        "backend '" PITH_STR_FMT "' is not used: this build does not have it",
                        PITH_STR_ARG(name));
        return PITH_OK;
    }
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == backend)
            return pith__fail(err, PITH_ERR_ARGUMENT, "the list of devices has '%s' twice",
                              backend->name);
    list->items[list->count++] = backend;
    return PITH_OK;
}

pith_status pith__device_list_read(pith__device_list *list, const char *names,
                                   pith__counters *counters, pith__arena *arena,
                                   const pith_log *log, pith_error *err) {
    bool all = !names || !strcmp(names, "auto");
    char text[300];
    *list = (pith__device_list){ .falls_back = names != NULL, .counters = counters };
    list->items = pith__arena_array(arena, pith__backend_table_count, sizeof *list->items);
    if (!list->items)
        return pith__fail_memory(err, pith__backend_table_count * sizeof *list->items);
    if (all)
        for (size_t i = 0; i < pith__backend_table_count; i++)
            list->items[list->count++] = pith__backend_table[i];
    else
        for (const char *at = names; at;)
            PITH_TRY(device_list_add(list, device_item(&at), log, err));
    if (list->count) return PITH_OK;
    pith__text_out out = pith__text_begin(text, sizeof text);
    for (size_t i = 0; i < pith__backend_table_count; i++)
        pith__text_put(&out, "%s%s", i ? ", " : "", pith__backend_table[i]->name);
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "the list of devices '%s' has none of this build, which has %s", names, text);
}

pith_status pith__device_list_without(pith__device_list *rest, const pith__device_list *list,
                                      const pith__backend *backend, pith__arena *arena,
                                      pith_error *err) {
    *rest = *list;
    rest->count = 0;
    if (!list->count || list->items[list->count - 1] == backend)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "there is no device behind '%s'", backend->name);
    rest->items = pith__arena_array(arena, list->count, sizeof *rest->items);
    if (!rest->items) return pith__fail_memory(err, list->count * sizeof *rest->items);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] != backend) rest->items[rest->count++] = list->items[i];
    return PITH_OK;
}

/* ---- opening ---- */

static pith_status device_open(pith__devices *d, const pith__backend *backend,
                               const pith__device_list *list, const pith_allocator *allocator,
                               const pith_log *log, pith_error *err) {
    pith_error why = PITH_ERROR_INIT;
    pith__device *device = &d->items[d->count];
    *device = (pith__device){ .backend = backend };
    pith__count(list->counters, PITH_COUNT_device_choices, 1);
    pith_status status = backend->open ? backend->open(&device->context, allocator, &why) : PITH_OK;
    if (status && (status == PITH_ERR_NOT_FOUND || list->falls_back)) {
        pith__log_write(log, PITH_LOG_WARNING, "backend '%s' is not used: %s", backend->name,
                        why.message);
        pith__count(list->counters, PITH_COUNT_device_fallbacks, 1);
        pith__fail(err, PITH_ERR_UNSUPPORTED, "none of the devices can be used; backend '%s': %s",
                   backend->name, why.message);
        return PITH_OK;
    }
    if (status) return pith__fail(err, status, "backend '%s': %s", backend->name, why.message);
    if (backend->alloc) {
        device->memory = (int)d->memory_count;
        d->memories[d->memory_count++] = device;
    }
    d->count++;
    return PITH_OK;
}

pith_status pith__devices_open(pith__devices *d, const pith__device_list *list, pith__arena *arena,
                               const pith_log *log, pith_error *err) {
    const pith__device_list all = { .items = (const pith__backend **)(uintptr_t)pith__backend_table,
                                    .count = pith__backend_table_count };
    if (!list) list = &all;
    *d = (pith__devices){ .memory_count = 1 };
    d->items = pith__arena_array(arena, list->count, sizeof *d->items);
    d->memories = pith__arena_array(arena, list->count + 1, sizeof *d->memories);
    if (!d->items || !d->memories) return pith__fail_memory(err, list->count * sizeof *d->items);
    pith_error fault = PITH_ERROR_INIT;
    pith_status status = PITH_OK;
    for (size_t i = 0; i < list->count && !status; i++)
        status = device_open(d, list->items[i], list, arena->allocator, log, &fault);
    if (!status && !d->count) status = PITH_ERR_UNSUPPORTED;
    if (!status) return PITH_OK;
    pith__devices_close(d);
    return pith__fail(err, status, "%s", fault.message);
}

void pith__devices_close(pith__devices *d) {
    for (; d->count > 0; d->count--) {
        const pith__device *device = &d->items[d->count - 1];
        if (device->backend->close) device->backend->close(device->context);
    }
}

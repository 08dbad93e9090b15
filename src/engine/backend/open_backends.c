/* open_backends.c - lists of devices, and opening and closing those of a plan. */
#include <string.h>

#include "base/str.h"
#include "base/text_out.h"
#include "engine/backend/backend.h"

/* ---- lists ---- */

typedef struct list_reader {
    pith__device_list *list;
    pith__device_choice *last; /* whose settings may follow; NULL: there is none */
    bool unknown;              /* the last item is of a kind that this build does not have */
    int32_t number;            /* of items so far */
    pith__arena *arena;
    const pith_log *log;
    pith_error *err;
} list_reader;

static const pith__backend *device_find(pith_str name) {
    for (size_t i = 0; i < pith__backend_table_count; i++)
        if (pith__str_is(name, pith__backend_table[i]->name)) return pith__backend_table[i];
    return NULL;
}

static pith_str device_trim(const char *begin, const char *end) {
    while (begin < end && *begin == ' ') begin++;
    while (end > begin && end[-1] == ' ') end--;
    return (pith_str){ begin, (size_t)(end - begin) };
}

/* The item that begins at *at, without blanks around it. */
static pith_str device_item(const char **at) {
    const char *begin = *at, *end = begin + strcspn(begin, ",");
    *at = *end ? end + 1 : NULL;
    return device_trim(begin, end);
}

static pith_status device_list_room(pith__device_list *list, size_t most, pith__arena *arena,
                                    pith_error *err) {
    list->items = pith__arena_array(arena, most, sizeof *list->items);
    return list->items ? PITH_OK : pith__fail_memory(err, most * sizeof *list->items);
}

static void device_list_put(pith__device_list *list, const pith__backend *backend, int32_t number) {
    list->items[list->count++] =
        (pith__device_choice){ .backend = backend, .name = backend->name, .number = number };
}

static pith_status device_list_add(list_reader *r, pith_str name) {
    pith__device_list *list = r->list;
    const pith__backend *backend = device_find(name);
    r->last = NULL;
    r->unknown = false;
    r->number++;
    if (!name.size)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "the list of devices has an empty name");
    if (pith__str_is(name, "auto"))
        return pith__fail(r->err, PITH_ERR_ARGUMENT,
                          "'auto' stands for all devices; give it alone");
    if (!backend) {
        r->unknown = true;
        pith__count(list->counters, PITH_COUNT_device_choices, 1);
        pith__count(list->counters, PITH_COUNT_device_fallbacks, 1);
        pith__log_write(r->log, PITH_LOG_WARNING,
                        "backend '" PITH_STR_FMT "' is not used: this build does not have it",
                        PITH_STR_ARG(name));
        return PITH_OK;
    }
    if (list->count == PITH_DEVICES_MOST)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "the list has more than %d devices",
                          PITH_DEVICES_MOST);
    device_list_put(list, backend, r->number);
    r->last = &list->items[list->count - 1];
    return PITH_OK;
}

/* Without other devices than the CPU there is nothing to set. */
static pith_status device_list_set(const list_reader *r, pith_str text) {
    if (r->unknown) return PITH_OK;
    if (r->last && pith__device_functions_used)
        return pith__device_functions_used->set(r->last, text, r->arena, r->err);
    return pith__fail(r->err, PITH_ERR_ARGUMENT,
                      "the setting '" PITH_STR_FMT "' has no device before it that has settings",
                      PITH_STR_ARG(text));
}

/* An item with '=' and no name in front of it is one more setting of the device before it. */
static pith_status device_list_take(list_reader *r, pith_str item) {
    const char *colon = item.size ? memchr(item.data, ':', item.size) : NULL;
    const char *equal = item.size ? memchr(item.data, '=', item.size) : NULL;
    if (equal && (!colon || colon > equal)) return device_list_set(r, item);
    if (!colon) return device_list_add(r, item);
    PITH_TRY(device_list_add(r, device_trim(item.data, colon)));
    return device_list_set(r, device_trim(colon + 1, item.data + item.size));
}

static pith_status device_list_distinct(const pith__device_list *list, pith_error *err) {
    for (size_t i = 1; i < list->count; i++)
        for (size_t j = 0; j < i; j++)
            if (list->items[i].backend == list->items[j].backend &&
                list->items[i].ordinal == list->items[j].ordinal)
                return pith__fail(err, PITH_ERR_ARGUMENT, "the list of devices has '%s' twice",
                                  list->items[i].name);
    return PITH_OK;
}

pith_status pith__device_list_read(pith__device_list *list, const char *names,
                                   pith__counters *counters, pith__arena *arena,
                                   const pith_log *log, pith_error *err) {
    bool all = !names || !strcmp(names, "auto");
    char text[300];
    size_t most = pith__backend_table_count;
    *list = (pith__device_list){ .falls_back = names != NULL, .counters = counters };
    if (!all)
        for (const char *at = names; *at; at++) most += *at == ',';
    PITH_TRY(device_list_room(list, most, arena, err));
    list_reader r = { .list = list, .arena = arena, .log = log, .err = err };
    if (all)
        for (size_t i = 0; i < pith__backend_table_count; i++)
            device_list_put(list, pith__backend_table[i], (int32_t)i + 1);
    else
        for (const char *at = names; at;) PITH_TRY(device_list_take(&r, device_item(&at)));
    if (list->count) return device_list_distinct(list, err);
    pith__text_out out = pith__text_begin(text, sizeof text);
    for (size_t i = 0; i < pith__backend_table_count; i++)
        pith__text_put(&out, "%s%s", i ? ", " : "", pith__backend_table[i]->name);
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "the list of devices '%s' has none of this build, which has %s", names, text);
}

pith_status pith__device_list_without(pith__device_list *rest, const pith__device_list *list,
                                      const pith__device_choice *choice, pith__arena *arena,
                                      pith_error *err) {
    *rest = *list;
    rest->count = 0;
    if (!list->count || list->items[list->count - 1].number == choice->number)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "there is no device behind '%s'", choice->name);
    PITH_TRY(device_list_room(rest, list->count, arena, err));
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].number != choice->number) rest->items[rest->count++] = list->items[i];
    return PITH_OK;
}

/* ---- opening ---- */

static pith_status device_begin(pith__device *device, const pith__device_list *list,
                                const pith_allocator *allocator, const pith_log *log,
                                pith_error *err) {
    const pith__backend *backend = device->backend;
    if (backend->open) PITH_TRY(backend->open(&device->context, device->choice, allocator, err));
    if (!pith__device_functions_used) return PITH_OK;
    const pith_status status = pith__device_functions_used->accept(device, list->exact, log, err);
    if (status && backend->close) backend->close(device->context);
    return status;
}

static pith_status device_open(pith__devices *d, const pith__device_choice *choice,
                               const pith__device_list *list, const pith_allocator *allocator,
                               const pith_log *log, pith_error *err) {
    pith_error why = PITH_ERROR_INIT;
    pith__device *device = &d->items[d->count];
    *device = (pith__device){ .backend = choice->backend, .choice = choice };
    pith__count(list->counters, PITH_COUNT_device_choices, 1);
    pith_status status = device_begin(device, list, allocator, log, &why);
    if (status && (status == PITH_ERR_NOT_FOUND || list->falls_back)) {
        pith__log_write(log, PITH_LOG_WARNING, "backend '%s' is not used: %s", choice->name,
                        why.message);
        pith__count(list->counters, PITH_COUNT_device_fallbacks, 1);
        pith__fail(err, PITH_ERR_UNSUPPORTED, "none of the devices can be used; backend '%s': %s",
                   choice->name, why.message);
        return PITH_OK;
    }
    if (status) return pith__fail(err, status, "backend '%s': %s", choice->name, why.message);
    if (choice->backend->alloc) {
        device->memory = (int)d->memory_count;
        d->memories[d->memory_count++] = device;
    }
    d->count++;
    return PITH_OK;
}

pith_status pith__devices_open(pith__devices *d, const pith__device_list *list, pith__arena *arena,
                               const pith_log *log, pith_error *err) {
    pith__device_list all = { .count = 0 };
    if (!list) {
        PITH_TRY(device_list_room(&all, pith__backend_table_count, arena, err));
        for (size_t i = 0; i < pith__backend_table_count; i++)
            device_list_put(&all, pith__backend_table[i], (int32_t)i + 1);
        list = &all;
    }
    *d = (pith__devices){ .memory_count = 1 };
    d->items = pith__arena_array(arena, list->count, sizeof *d->items);
    d->memories = pith__arena_array(arena, list->count + 1, sizeof *d->memories);
    if (!d->items || !d->memories) return pith__fail_memory(err, list->count * sizeof *d->items);
    pith_error fault = PITH_ERROR_INIT;
    pith_status status = PITH_OK;
    for (size_t i = 0; i < list->count && !status; i++)
        status = device_open(d, &list->items[i], list, arena->allocator, log, &fault);
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

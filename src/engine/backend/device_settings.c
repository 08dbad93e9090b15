/* device_settings.c - settings of the devices of a list, and their memory, counted against the
 * limit that such a setting gives. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "engine/backend/backend.h"

/* ---- settings ---- */

/* A whole number up to `most`; wanted says so in the error. */
static pith_status setting_number(uint64_t *number, uint64_t most, const char *wanted,
                                  const pith__device_choice *c, pith_str key, pith_str value,
                                  pith_error *err) {
    bool good = value.size > 0;
    *number = 0;
    for (size_t i = 0; i < value.size && good; i++) {
        const unsigned digit = (unsigned)(value.data[i] - '0');
        good = digit <= 9 && *number <= (most - digit) / 10;
        if (good) *number = *number * 10 + digit;
    }
    if (good) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "device '%s': " PITH_STR_FMT " is %s; not '" PITH_STR_FMT "'", c->name,
                      PITH_STR_ARG(key), wanted, PITH_STR_ARG(value));
}

static pith_status setting_ordinal(pith__device_choice *c, pith_str key, pith_str value,
                                   pith__arena *arena, pith_error *err) {
    uint64_t number;
    PITH_TRY(setting_number(&number, INT32_MAX, "a number from 0", c, key, value, err));
    c->ordinal = (int32_t)number;
    c->name = pith__arena_printf(arena, "%s:%" PRIu64, c->backend->name, number).data;
    return c->name ? PITH_OK : pith__fail_memory(err, 32);
}

static pith_status setting_limit(pith__device_choice *c, pith_str key, pith_str value,
                                 pith__arena *arena, pith_error *err) {
    uint64_t number;
    PITH_TRY(setting_number(&number, SIZE_MAX, "a number of bytes", c, key, value, err));
    c->memory_limit = (size_t)number;
    c->held = pith__arena_array(arena, 1, sizeof *c->held);
    return c->held ? PITH_OK : pith__fail_memory(err, sizeof *c->held);
}

static pith_status setting_unknown(const pith__device_choice *c, pith_str key, pith_error *err) {
    const pith__backend *b = c->backend;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "device '%s' has no setting '" PITH_STR_FMT "'; it has %s%s%s", b->name,
                      PITH_STR_ARG(key), b->alloc ? "device_id, memory_limit" : "",
                      b->alloc && b->settings ? ", " : "", b->settings ? b->settings : "");
}

static pith_status setting_own(pith__device_choice *c, pith_str key, pith_str value,
                               pith__arena *arena, pith_error *err) {
    pith_error why = PITH_ERROR_INIT;
    pith__device_setting *all = pith__arena_array(arena, c->setting_count + 1, sizeof *all);
    const char *name = pith__arena_str(arena, key).data, *text = pith__arena_str(arena, value).data;
    if (!all || !name || !text) return pith__fail_memory(err, sizeof *all);
    for (size_t i = 0; i < c->setting_count; i++) {
        all[i] = c->settings[i];
        if (!strcmp(all[i].key, name))
            return pith__fail(err, PITH_ERR_ARGUMENT, "device '%s' has the setting '%s' twice",
                              c->name, name);
    }
    const pith_status status =
        c->backend->check ? c->backend->check(name, text, &why) : PITH_ERR_NOT_FOUND;
    if (status == PITH_ERR_NOT_FOUND) return setting_unknown(c, key, err);
    if (status) return pith__fail(err, status, "device '%s': %s", c->name, why.message);
    all[c->setting_count++] = (pith__device_setting){ name, text };
    c->settings = all;
    return PITH_OK;
}

static pith_str setting_trim(const char *begin, const char *end) {
    while (begin < end && *begin == ' ') begin++;
    while (end > begin && end[-1] == ' ') end--;
    return (pith_str){ begin, (size_t)(end - begin) };
}

static pith_status device_set(pith__device_choice *c, pith_str text, pith__arena *arena,
                              pith_error *err) {
    const bool has_memory = c->backend->alloc != NULL;
    const char *equal = text.size ? memchr(text.data, '=', text.size) : NULL;
    if (!equal)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "device '%s' needs settings as key=value; not '" PITH_STR_FMT "'",
                          c->backend->name, PITH_STR_ARG(text));
    const pith_str key = setting_trim(text.data, equal),
                   value = setting_trim(equal + 1, text.data + text.size);
    if (!has_memory && !c->backend->check)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "device '%s' has no settings; '" PITH_STR_FMT "' is given",
                          c->backend->name, PITH_STR_ARG(key));
    if (has_memory && pith__str_is(key, "device_id"))
        return setting_ordinal(c, key, value, arena, err);
    if (has_memory && (pith__str_is(key, "memory_limit") || pith__str_is(key, "gpu_mem_limit")))
        return setting_limit(c, key, value, arena, err);
    return setting_own(c, key, value, arena, err);
}

/* ---- opening ---- */

static pith_status device_accept(const pith__device *d, bool exact, const pith_log *log,
                                 pith_error *err) {
    const pith__accuracy own = pith__device_accuracy(d);
    if (!strcmp(own.precision, "float32")) return PITH_OK;
    if (exact)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "it computes in %s; float32 was asked for",
                          own.precision);
    pith__log_write(log, PITH_LOG_INFO, "device '%s' computes in %s", d->choice->name,
                    own.precision);
    return PITH_OK;
}

/* ---- memory ---- */

static bool device_take(const pith__device_choice *c, size_t bytes) {
    if (!c->held) return true;
    size_t held = atomic_load_explicit(c->held, memory_order_relaxed);
    do {
        if (c->memory_limit && (held > c->memory_limit || bytes > c->memory_limit - held))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(c->held, &held, held + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void device_give(const pith__device_choice *c, size_t bytes) {
    if (c->held) atomic_fetch_sub_explicit(c->held, bytes, memory_order_relaxed);
}

static void *device_alloc(const pith__device *d, size_t bytes) {
    if (!device_take(d->choice, bytes)) return NULL;
    void *memory = d->backend->alloc(d->context, bytes);
    if (!memory) device_give(d->choice, bytes);
    return memory;
}

static void device_free(const pith__device *d, void *memory, size_t bytes) {
    d->backend->free(d->context, memory);
    device_give(d->choice, bytes);
}

static pith_status device_no_memory(const pith__device *d, size_t bytes, const char *what,
                                    pith_error *err) {
    const pith__device_choice *c = d->choice;
    const size_t held = c->held ? atomic_load_explicit(c->held, memory_order_relaxed) : 0;
    if (c->memory_limit &&
        bytes > c->memory_limit - (held < c->memory_limit ? held : c->memory_limit))
        return pith__fail(
            err, PITH_ERR_MEMORY,
            "backend '%s' has no %zu bytes for %s: %zu of the %zu of its memory_limit "
            "are in use",
            c->name, bytes, what, held, c->memory_limit);
    return pith__fail(err, PITH_ERR_MEMORY, "backend '%s' has no %zu bytes for %s", c->name, bytes,
                      what);
}

const pith__device_functions pith__device_functions_all = { .set = device_set,
                                                            .accept = device_accept,
                                                            .alloc = device_alloc,
                                                            .free = device_free,
                                                            .no_memory = device_no_memory };

/* hf_settings.c - settings of config.json that only some architectures have, by name. A setting
 * that is there but cannot be honoured is an error that names it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/text_out.h"
#include "models/architectures/hf_builder.h"
#include "models/architectures/hf_keys.h"

void pith__hf_fail(pith__hf_builder *b, pith_status code, const char *format, ...) {
    char message[PITH_ERROR_MESSAGE_SIZE];
    va_list arguments;
    if (b->status) return;
    va_start(arguments, format);
    pith__text_format(message, sizeof message, format, arguments);
    va_end(arguments);
    b->status = pith__fail(b->err, code, "%s", message);
}

/* The same in the family's list of defaults. */
static bool hf_settings_default(pith__json *j, pith__hf_builder *b, const char *path,
                                pith_error *err) {
    pith_str value;
    if (!pith__hf_keys_default(&value, b->config->reads, pith__str_of(path)) ||
        pith__str_is(value, "null"))
        return false;
    bool word = (value.data[0] >= 'a' && value.data[0] <= 'z') && !pith__str_is(value, "true") &&
                !pith__str_is(value, "false");
    if (word)
        value = pith__arena_printf(b->graph->arena, "\"" PITH_STR_FMT "\"", PITH_STR_ARG(value));
    if (!value.data) pith__hf_made(b, NULL);
    pith__json_init(j, value, "config.json", b->graph->arena, err);
    return value.data;
}

/* Puts the scanner in front of the value of a key or path; false if there is none, or null. */
static bool hf_settings_find(pith__json *j, pith__hf_builder *b, const char *path,
                             pith_error *err) {
    if (b->status) return false;
    pith__json_init(j, b->config->text, "config.json", b->graph->arena, err);
    j->python = true;
    for (bool whole = true;;) { /* defaults are those of whole paths that begin with an absent
                                   key */
        size_t size = strcspn(path, ".");
        pith_str key, part = { path, size };
        bool found = false;
        if (pith__json_peek(j) != PITH_JSON_OBJECT) return false;
        for (pith__json_object(j); !found && pith__json_next_key(j, &key);) {
            found = pith__str_eq(key, part);
            if (!found) pith__json_skip(j);
        }
        /* the text was read before: memory is out */
        if (j->failed) pith__hf_fail(b, err->code, "%s", err->message);
        if (j->failed) return false;
        if (!found) return whole && hf_settings_default(j, b, path, err);
        if (!path[size]) return pith__json_peek(j) != PITH_JSON_NULL;
        path += size + 1;
        whole = false;
    }
}

bool pith__hf_has(pith__hf_builder *b, const char *key) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    return hf_settings_find(&j, b, key, &err);
}

bool pith__hf_is_null(pith__hf_builder *b, const char *key) {
    return pith__hf_config_has(b->config, key) && !pith__hf_has(b, key);
}

/* Is it of this kind? If it is of another, that is a fault. */
static bool hf_settings_is(pith__hf_builder *b, pith__json *j, const char *key,
                           pith__json_kind kind, const char *what) {
    if (pith__json_peek(j) == kind) return true;
    pith__hf_fail(b, PITH_ERR_FORMAT, "config.json: %s must be %s", key, what);
    return false;
}

int64_t pith__hf_int(pith__hf_builder *b, const char *key, int64_t fallback, int64_t min,
                     int64_t max) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    if (!hf_settings_find(&j, b, key, &err) ||
        !hf_settings_is(b, &j, key, PITH_JSON_NUMBER, "a number"))
        return fallback;
    int64_t value = pith__json_int(&j);
    if (!j.failed && value >= min && value <= max) return value;
    if (j.failed)
        pith__hf_fail(b, err.code, "config.json: %s must be a whole number", key);
    else
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: %s is %lld; it must be between %lld and %lld", key,
                      (long long)value, (long long)min, (long long)max);
    return fallback;
}

double pith__hf_real(pith__hf_builder *b, const char *key, double fallback) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    if (!hf_settings_find(&j, b, key, &err) ||
        !hf_settings_is(b, &j, key, PITH_JSON_NUMBER, "a number"))
        return fallback;
    double value = pith__json_double(&j);
    if (j.failed) pith__hf_fail(b, err.code, "config.json: %s is not a number that fits", key);
    return j.failed ? fallback : value;
}

bool pith__hf_bool(pith__hf_builder *b, const char *key, bool fallback) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    if (!hf_settings_find(&j, b, key, &err) ||
        !hf_settings_is(b, &j, key, PITH_JSON_BOOL, "true or false"))
        return fallback;
    return pith__json_bool(&j);
}

pith_str pith__hf_string(pith__hf_builder *b, const char *key, const char *fallback) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    if (!hf_settings_find(&j, b, key, &err) ||
        !hf_settings_is(b, &j, key, PITH_JSON_STRING, "a string"))
        return pith__str_of(fallback);
    pith_str value = pith__json_string(&j);
    if (j.failed) pith__hf_fail(b, err.code, "%s", err.message);
    return value;
}

int64_t pith__hf_ints(pith__hf_builder *b, const char *key, int64_t limit, int64_t *items) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    int64_t count = 0;
    if (!hf_settings_find(&j, b, key, &err) ||
        !hf_settings_is(b, &j, key, PITH_JSON_ARRAY, "a list"))
        return 0;
    for (pith__json_array(&j); pith__json_next_item(&j); count++) {
        if (!hf_settings_is(b, &j, key, PITH_JSON_NUMBER, "a list of numbers")) return 0;
        int64_t item = pith__json_int(&j);
        if (count < limit) items[count] = item;
    }
    if (j.failed || count < 1 || count > limit)
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: %s must be a list of 1 to %lld whole numbers", key,
                      (long long)limit);
    return j.failed || count > limit ? 0 : count;
}

/* The parts of a string between bars. */
static int64_t hf_settings_cut(pith_str *items, int64_t limit, pith_str all) {
    int64_t count = 0;
    for (size_t at = 0, end; at < all.size && count < limit; at = end + 1) {
        for (end = at; end < all.size && all.data[end] != '|';) end++;
        items[count++] = (pith_str){ all.data + at, end - at };
    }
    return count;
}

pith_str *pith__hf_strings(pith__hf_builder *b, const char *key, int64_t limit, int64_t *count) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    pith_str *items =
        b->status ? NULL : pith__arena_array(b->graph->arena, (size_t)limit, sizeof *items);
    *count = 0;
    if (!items) {
        pith__hf_made(b, NULL);
        return NULL;
    }
    if (!hf_settings_find(&j, b, key, &err)) return items;
    if (pith__json_peek(&j) == PITH_JSON_STRING) {
        *count = hf_settings_cut(items, limit, pith__json_string(&j));
    } else if (hf_settings_is(b, &j, key, PITH_JSON_ARRAY, "a list")) {
        pith__json_array(&j);
        while (*count < limit && pith__json_next_item(&j)) {
            if (!hf_settings_is(b, &j, key, PITH_JSON_STRING, "a list of strings")) break;
            items[(*count)++] = pith__json_string(&j);
        }
    }
    if (j.failed) pith__hf_fail(b, err.code, "%s", err.message);
    return items;
}

pith_str *pith__hf_keys_of(pith__hf_builder *b, const char *key, int64_t *count) {
    enum { KEYS_MOST = 64 };
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    pith_str name,
        *names = b->status ? NULL : pith__arena_array(b->graph->arena, KEYS_MOST, sizeof *names);
    *count = 0;
    if (!names) pith__hf_made(b, NULL);
    if (!names || !hf_settings_find(&j, b, key, &err) ||
        !hf_settings_is(b, &j, key, PITH_JSON_OBJECT, "an object"))
        return names;
    pith__json_object(&j);
    while (*count < KEYS_MOST && pith__json_next_key(&j, &name)) {
        names[(*count)++] = name;
        pith__json_skip(&j);
    }
    return names;
}

void pith__hf_want_bool(pith__hf_builder *b, const char *key, bool wanted) {
    if (pith__hf_bool(b, key, wanted) != wanted)
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED, "config.json: %s is %s; only %s is supported", key,
                      wanted ? "false" : "true", wanted ? "true" : "false");
}

void pith__hf_want_string(pith__hf_builder *b, const char *key, const char *wanted) {
    pith_str value = pith__hf_string(b, key, wanted);
    if (!pith__str_is(value, wanted))
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                      "config.json: %s \"" PITH_STR_FMT "\"; only \"%s\" is supported", key,
                      PITH_STR_ARG(value), wanted);
}

void pith__hf_want_absent(pith__hf_builder *b, const char *key) {
    if (pith__hf_has(b, key))
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED, "config.json: %s is not supported", key);
}

void pith__hf_check_size(pith__hf_builder *b, const char *name, int64_t value, int64_t limit) {
    if (value < 1 || value > limit)
        pith__hf_fail(b, PITH_ERR_FORMAT, "config.json: %s is %lld; it must be between 1 and %lld",
                      name, (long long)value, (long long)limit);
}

void pith__hf_check_sizes(pith__hf_builder *b) {
    const pith__hf_config *c = b->config;
    pith__hf_check_size(b, "hidden_size", c->hidden_size, 1 << 20);
    pith__hf_check_size(b, "num_hidden_layers", c->layers, 1 << 12);
    pith__hf_check_size(b, "num_attention_heads", c->heads, c->hidden_size);
    pith__hf_check_size(b, "intermediate_size", c->intermediate_size, 1 << 24);
    pith__hf_check_size(b, "vocab_size", c->vocab_size, INT32_MAX);
    pith__hf_check_size(b, "max_position_embeddings", c->positions, 1 << 20);
}

void pith__hf_check_heads(pith__hf_builder *b) {
    const pith__hf_config *c = b->config;
    if (!b->status && c->hidden_size % c->heads)
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: hidden_size %lld is not a multiple of num_attention_heads %lld",
                      (long long)c->hidden_size, (long long)c->heads);
}

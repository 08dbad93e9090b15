/* Any bytes as JSON: skipping the whole and walking into it must agree on whether it is valid. */
#include <stdint.h>
#include <stdlib.h>

#include "base/formats/json.h"
#include "base/unicode/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads any value with the functions for its kind. */
static void walk(pith__json *j) {
    pith_str key;
    switch (pith__json_peek(j)) {
    case PITH_JSON_OBJECT:
        for (pith__json_object(j); pith__json_next_key(j, &key);) {
            if (pith__utf8_valid_prefix(key.data, key.size) != key.size) abort();
            walk(j);
        }
        break;
    case PITH_JSON_ARRAY:
        for (pith__json_array(j); pith__json_next_item(j);) walk(j);
        break;
    case PITH_JSON_STRING:
        key = pith__json_string(j);
        if (pith__utf8_valid_prefix(key.data, key.size) != key.size) abort();
        break;
    case PITH_JSON_NUMBER: pith__json_double(j); break;
    case PITH_JSON_BOOL: pith__json_bool(j); break;
    case PITH_JSON_NULL: pith__json_null(j); break;
    case PITH_JSON_END: pith__json_skip(j); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith__arena arena;
    pith_error err = PITH_ERROR_INIT;
    pith__json skipped, walked;
    pith_str text = { (const char *)data, size };
    pith__arena_init(&arena, NULL);
    pith__json_init(&skipped, text, "fuzz", &arena, &err);
    pith__json_skip(&skipped);
    pith__json_finish(&skipped);
    if (skipped.failed != (err.code != PITH_OK)) abort();
    pith__json_init(&walked, text, "fuzz", &arena, &err);
    walk(&walked);
    pith__json_finish(&walked);
    if (walked.failed != skipped.failed) abort();
    pith__arena_free(&arena);
    return 0;
}

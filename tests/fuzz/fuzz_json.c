/* Any bytes as JSON: skipping the whole and walking into it must agree on whether it is valid. */
#include <stdint.h>
#include <stdlib.h>

#include "base/formats/json.h"
#include "base/unicode/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads any value with the functions for its kind. */
static void walk(pith_json *j) {
    pith_str key;
    switch (pith_json_peek(j)) {
    case PITH_JSON_OBJECT:
        for (pith_json_object(j); pith_json_next_key(j, &key);) {
            if (pith_utf8_valid_prefix(key.data, key.size) != key.size) abort();
            walk(j);
        }
        break;
    case PITH_JSON_ARRAY:
        for (pith_json_array(j); pith_json_next_item(j);) walk(j);
        break;
    case PITH_JSON_STRING:
        key = pith_json_string(j);
        if (pith_utf8_valid_prefix(key.data, key.size) != key.size) abort();
        break;
    case PITH_JSON_NUMBER: pith_json_double(j); break;
    case PITH_JSON_BOOL: pith_json_bool(j); break;
    case PITH_JSON_NULL: pith_json_null(j); break;
    case PITH_JSON_END: pith_json_skip(j); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith_arena arena;
    pith_error err = PITH_ERROR_INIT;
    pith_json skipped, walked;
    pith_str text = { (const char *)data, size };
    pith_arena_init(&arena, NULL);
    pith_json_init(&skipped, text, "fuzz", &arena, &err);
    pith_json_skip(&skipped);
    pith_json_finish(&skipped);
    if (skipped.failed != (err.code != PITH_OK)) abort();
    pith_json_init(&walked, text, "fuzz", &arena, &err);
    walk(&walked);
    pith_json_finish(&walked);
    if (walked.failed != skipped.failed) abort();
    pith_arena_free(&arena);
    return 0;
}

/* json.h - a pull scanner for JSON in memory: no tree, no copies, one pass.
 *
 *   pith_json j; pith_json_init(&j, text, "config.json", arena, err);
 *   pith_json_object(&j);
 *   pith_str key;
 *   while (pith_json_next_key(&j, &key)) {
 *       if (pith_str_is(key, "hidden_size")) n = pith_json_int(&j);
 *       else pith_json_skip(&j);
 *   }
 *   if (j.failed) return j.err->code;
 *
 * A value must be consumed after each key. The first fault is stored in err with file, line and JSON path
 * ("tokenizer.json:12: model.vocab: …"; without a name only the path), `failed` stays set and every later call returns
 * zero, so loops end and one check at the end is enough. RFC 8259 with nothing added but `python`; depth is limited to
 * 256. Strings without escapes are returned as spans of the input; others are decoded into the arena. Lone surrogates
 * become U+FFFD. */
#ifndef PITH_BASE_FORMATS_JSON_H
#define PITH_BASE_FORMATS_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

typedef enum pith_json_kind {
    PITH_JSON_END,
    PITH_JSON_NULL,
    PITH_JSON_BOOL,
    PITH_JSON_NUMBER,
    PITH_JSON_STRING,
    PITH_JSON_ARRAY,
    PITH_JSON_OBJECT
} pith_json_kind;

#define PITH_JSON_DEPTH 256

typedef struct pith_json {
    const char *p, *begin, *end;
    const char *name; /* of the file, for messages */
    pith_arena *arena;
    pith_error *err;
    bool failed;
    bool python; /* may be set after init, for files that Python programs wrote: NaN, Infinity and -Infinity are
                  * numbers, and 2048.0 is a whole one */
    int depth;
    struct {
        pith_str key;
        int64_t index;
        bool is_object, started;
    } stack[PITH_JSON_DEPTH]; /* open containers */
} pith_json;

void pith_json_init(pith_json *j, pith_str text, const char *name, pith_arena *arena, pith_error *err);
pith_json_kind pith_json_peek(pith_json *j); /* what the next value is, without consuming it */
void pith_json_object(pith_json *j);         /* enters an object; then next_key until it returns false */
bool pith_json_next_key(pith_json *j, pith_str *key);
void pith_json_array(pith_json *j); /* enters an array; then next_item until it returns false */
bool pith_json_next_item(pith_json *j);
pith_str pith_json_string(pith_json *j); /* data is never NULL, "" after a failure */
int64_t pith_json_int(pith_json *j);     /* fails on fractions and on overflow */
double pith_json_double(pith_json *j);
/* Reads a whole number from 1 to limit. Returns 0, which means no limit, if the value is null or larger than limit:
 * files write "no limit" as numbers such as 1e30. Fails on anything else. */
int64_t pith_json_limit(pith_json *j, int64_t limit);
bool pith_json_bool(pith_json *j);
bool pith_json_null(pith_json *j);    /* true and consumed if the next value is null */
void pith_json_skip(pith_json *j);    /* consumes any value */
pith_str pith_json_raw(pith_json *j); /* consumes any value and returns its text */
/* Copies s, which was read from j, and adds a NUL. Returns "" if j has failed; j fails if memory is out. */
pith_str pith_json_copy(pith_json *j, pith_arena *arena, pith_str s);
void pith_json_finish(pith_json *j); /* fails if anything but white space is left */
/* Fails with the scanner's current place in front of the message, unless j has failed already. */
pith_status pith_json_fail(pith_json *j, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#endif

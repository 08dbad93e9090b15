/* json.h - a pull scanner for JSON in memory: no tree, no copies, one pass.
 *
 *   pith__json j; pith__json_init(&j, text, "config.json", arena, err);
 *   pith__json_object(&j);
 *   pith_str key;
 *   while (pith__json_next_key(&j, &key)) {
 *       if (pith__str_is(key, "hidden_size")) n = pith__json_int(&j);
 *       else pith__json_skip(&j);
 *   }
 *   if (j.failed) return j.err->code;
 *
 * A value must be consumed after each key. The first fault is stored in err with file, line and
 * JSON path ("tokenizer.json:12: model.vocab: …"; without a name only the path), `failed` stays set
 * and every later call returns zero, so loops end and one check at the end is enough. RFC 8259 with
 * nothing added but `python`; the depth is at most 256. Strings without escapes are returned as
 * spans of the input; others are decoded into the arena. Lone surrogates become U+FFFD. */
#ifndef PITH_BASE_FORMATS_JSON_H
#define PITH_BASE_FORMATS_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"
#include "base/private_symbol.h"
#include "base/stop.h"

typedef enum pith__json_kind {
    PITH_JSON_END,
    PITH_JSON_NULL,
    PITH_JSON_BOOL,
    PITH_JSON_NUMBER,
    PITH_JSON_STRING,
    PITH_JSON_ARRAY,
    PITH_JSON_OBJECT
} pith__json_kind;

#define PITH_JSON_DEPTH 256

typedef struct pith__json {
    const char *at, *begin, *end;
    const char *name; /* of the file, for messages */
    pith__arena *arena;
    pith_error *err;
    pith__stop *stop; /* reading fails when the call must end; NULL: it cannot be stopped. It is
                         that of the opening whose memory the arena is, unless it is set after
                         init */
    const char *look; /* where stop is asked next */
    bool failed;
    bool python; /* may be set after init, for files that Python programs wrote: NaN, Infinity and
                    -Infinity are numbers, and 2048.0 is a whole one */
    bool halves; /* a string that was decoded had half of a surrogate pair; never reset */
    int depth;
    struct {
        pith_str key;
        int64_t index;
        bool is_object, started;
    } stack[PITH_JSON_DEPTH]; /* open containers */
} pith__json;

PITH_PRIVATE void pith__json_init(pith__json *j, pith_str text, const char *name,
                                  pith__arena *arena, pith_error *err);
/* What the next value is, without consuming it. */
PITH_PRIVATE pith__json_kind pith__json_peek(pith__json *j);
/* Enters an object; then next_key until it returns false. */
PITH_PRIVATE void pith__json_object(pith__json *j);
PITH_PRIVATE bool pith__json_next_key(pith__json *j, pith_str *key);
/* Enters an array; then next_item until it returns false. */
PITH_PRIVATE void pith__json_array(pith__json *j);
PITH_PRIVATE bool pith__json_next_item(pith__json *j);
PITH_PRIVATE pith_str pith__json_string(pith__json *j); /* data is never NULL, "" after a failure */
PITH_PRIVATE int64_t pith__json_int(pith__json *j);     /* fails on fractions and on overflow */
PITH_PRIVATE double pith__json_double(pith__json *j);
/* Reads a whole number from 1 to limit. Returns 0, which means no limit, if the value is null or
 * larger than limit: files write "no limit" as numbers such as 1e30. Fails on anything else. */
int64_t pith__json_limit(pith__json *j, int64_t limit);
PITH_PRIVATE bool pith__json_bool(pith__json *j);
bool pith__json_null(pith__json *j);              /* true and consumed if the next value is null */
PITH_PRIVATE void pith__json_skip(pith__json *j); /* consumes any value */
pith_str pith__json_raw(pith__json *j);           /* consumes any value and returns its text */
/* Copies s, which was read from j, and adds a NUL. Returns "" if j has failed; j fails if memory is
 * out. */
pith_str pith__json_copy(pith__json *j, pith__arena *arena, pith_str s);
PITH_PRIVATE void pith__json_finish(pith__json *j); /* fails if anything but white space is left */
/* Fails with the scanner's current place in front of the message, unless j has failed already. */
PITH_PRIVATE pith_status pith__json_fail(pith__json *j, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#endif

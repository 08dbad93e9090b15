/* json_write.h - writing JSON text in pieces to a callback. Commas are added; nothing is kept in memory.
 *
 *   pith_json_out out = { write, user, false };
 *   pith_json_open(&out, "{");
 *   pith_json_key_int(&out, "count", 3);
 *   pith_json_close(&out, "}");
 *
 * The caller must close what it opens and give each key a value. */
#ifndef PITH_BASE_FORMATS_JSON_WRITE_H
#define PITH_BASE_FORMATS_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef struct pith_json_out {
    void (*write)(void *user, const char *text, size_t size);
    void *user;
    bool comma; /* the next key or item needs one before it */
} pith_json_out;

void pith_json_put(pith_json_out *out, const char *text);       /* text as it is */
void pith_json_put_string(pith_json_out *out, pith_str string); /* quoted; invalid UTF-8 becomes U+FFFD */
void pith_json_separate(pith_json_out *out);                    /* call it before each item of an array */
void pith_json_key(pith_json_out *out, const char *name);
void pith_json_open(pith_json_out *out, const char *bracket);
void pith_json_close(pith_json_out *out, const char *bracket);
void pith_json_key_int(pith_json_out *out, const char *name, int64_t number);
void pith_json_key_bool(pith_json_out *out, const char *name, bool yes);
void pith_json_key_string(pith_json_out *out, const char *name, pith_str string);

#endif

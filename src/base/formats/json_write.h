/* json_write.h - writing JSON text in pieces to a writer. Commas are added; nothing is kept in
 * memory.
 *
 *   pith__out bytes = { writer, false };
 *   pith__json_out out = { &bytes, false };
 *   pith__json_open(&out, "{");
 *   pith__json_key_int(&out, "count", 3);
 *   pith__json_close(&out, "}");
 *
 * The caller must close what it opens and give each key a value. */
#ifndef PITH_BASE_FORMATS_JSON_WRITE_H
#define PITH_BASE_FORMATS_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/private_symbol.h"
#include "base/str.h"
#include "base/writer.h"

typedef struct pith__json_out {
    pith__out *out;
    bool comma; /* the next key or item needs one before it */
} pith__json_out;

void pith__json_put(pith__json_out *out, const char *text); /* text as it is */
/* quoted; invalid UTF-8 becomes U+FFFD */
PITH_PRIVATE void pith__json_put_string(pith__json_out *out, pith_str string);
/* call it before each item of an array */
PITH_PRIVATE void pith__json_separate(pith__json_out *out);
PITH_PRIVATE void pith__json_key(pith__json_out *out, const char *name);
PITH_PRIVATE void pith__json_open(pith__json_out *out, const char *bracket);
PITH_PRIVATE void pith__json_close(pith__json_out *out, const char *bracket);
PITH_PRIVATE void pith__json_key_int(pith__json_out *out, const char *name, int64_t number);
/* nine digits; null for a number that is not finite */
PITH_PRIVATE void pith__json_key_double(pith__json_out *out, const char *name, double x);
PITH_PRIVATE void pith__json_key_bool(pith__json_out *out, const char *name, bool yes);
PITH_PRIVATE void pith__json_key_string(pith__json_out *out, const char *name, pith_str string);

#endif

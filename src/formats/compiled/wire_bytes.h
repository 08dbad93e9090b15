/* wire_bytes.h - numbers and strings to bytes and back: little-endian, without gaps.
 *
 * The reader treats its bytes as hostile. After the first fault it returns zeros only, and keeps
 * the place of the fault. */
#ifndef PITH_FORMATS_COMPILED_WIRE_BYTES_H
#define PITH_FORMATS_COMPILED_WIRE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

typedef struct pith__bytes_out {
    pith__arena *arena;
    char *data;
    size_t size, capacity;
    bool failed; /* memory was out */
} pith__bytes_out;

void pith__put_bytes(pith__bytes_out *out, const void *data, size_t size);
void pith__put_u32(pith__bytes_out *out, uint32_t x);
void pith__put_i64(pith__bytes_out *out, int64_t x);
/* size, then bytes; data NULL is read back as "" */
void pith__put_str(pith__bytes_out *out, pith_str s);

typedef struct pith__bytes_in {
    pith_str bytes;
    size_t at;
    const char *what; /* "graph", for messages */
    pith_error *err;
    pith_status status; /* of the first fault */
} pith__bytes_in;

/* Fails with "graph: byte 123: <fault>", unless a fault was found before. Returns the code of the
 * first fault. */
pith_status pith__bytes_fail(pith__bytes_in *in, const char *fault);
uint32_t pith__get_u32(pith__bytes_in *in);
int64_t pith__get_i64(pith__bytes_in *in);
pith_str pith__get_str(pith__bytes_in *in); /* a span of the bytes; no NUL follows */
const void *pith__get_bytes(pith__bytes_in *in, size_t size);
/* Reads a count of items that take at least item_bytes each. A count that the remaining bytes
 * cannot hold is a fault, so memory for the items is bounded by the file's size. */
size_t pith__get_count(pith__bytes_in *in, size_t item_bytes);
/* Reads a number, which must be below limit. */
uint32_t pith__get_below(pith__bytes_in *in, uint32_t limit, const char *fault);
/* Fails if bytes are left. */
pith_status pith__bytes_end(pith__bytes_in *in);

#endif

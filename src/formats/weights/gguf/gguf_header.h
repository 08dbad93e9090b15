/* gguf_header.h - the header of a GGUF file: settings, each a key with a value, and how many tensors follow.
 *
 * Source: ggml, docs/gguf.md, versions 2 and 3. Every count and length is compared with what is left of the file before
 * it is used. Strings are spans of the file, and may hold any bytes. */
#ifndef PITH_FORMATS_WEIGHTS_GGUF_GGUF_HEADER_H
#define PITH_FORMATS_WEIGHTS_GGUF_GGUF_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* A place in the file. */
typedef struct pith_gguf {
    const char *p, *begin, *end;
    const char *name; /* of the file, for messages */
    uint64_t tensors;
    uint64_t entries; /* settings that are still to be read */
    pith_error *err;
} pith_gguf;

typedef enum pith_gguf_kind {
    PITH_GGUF_OTHER,
    PITH_GGUF_COUNT,
    PITH_GGUF_REAL,
    PITH_GGUF_TEXT,
    PITH_GGUF_TEXTS,
    PITH_GGUF_NUMBERS
} pith_gguf_kind;

typedef struct pith_gguf_entry {
    pith_str key;
    pith_gguf_kind kind;
    uint64_t count;  /* COUNT: an integer or boolean that is not negative; TEXTS and NUMBERS: how many */
    double real;     /* REAL, and COUNT */
    pith_str text;   /* TEXT; NUMBERS: the bytes of the list */
    pith_gguf texts; /* TEXTS: at the first, for pith_gguf_text */
    uint32_t item;   /* NUMBERS: the file's number of their type */
} pith_gguf_entry;

/* True if the bytes begin like a GGUF file. */
bool pith_gguf_is(pith_str bytes);
/* Goes to the first setting. PITH_ERR_FORMAT for a file that is none, PITH_ERR_UNSUPPORTED for another version. */
pith_status pith_gguf_begin(pith_gguf *g, pith_str bytes, const char *name, pith_error *err);
/* Reads a setting; g->entries is greater than 0. Behind the last one g->p is at the list of tensors. */
pith_status pith_gguf_next(pith_gguf *g, pith_gguf_entry *entry);
/* Number i of NUMBERS; i must be below count. */
double pith_gguf_number(const pith_gguf_entry *entry, uint64_t i);
/* Read a string, or bytes, and go on behind them. */
pith_status pith_gguf_text(pith_gguf *g, pith_str *text);
pith_status pith_gguf_take(pith_gguf *g, void *to, size_t size);
/* Returns PITH_ERR_FORMAT with the place. */
pith_status pith_gguf_fail(const pith_gguf *g, const char *what);

#endif

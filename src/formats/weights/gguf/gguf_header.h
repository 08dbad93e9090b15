/* gguf_header.h - the header of a GGUF file: settings, each a key with a value, and how many
 * tensors follow.
 *
 * Source: ggml, docs/gguf.md, versions 2 and 3. Every count and length is compared with what is
 * left of the file before it is used. Strings are spans of the file, and may hold any bytes. */
#ifndef PITH_FORMATS_WEIGHTS_GGUF_GGUF_HEADER_H
#define PITH_FORMATS_WEIGHTS_GGUF_GGUF_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define PITH_GGUF_MAGIC "GGUF"

/* A place in the file. */
typedef struct pith__gguf {
    const char *next, *begin, *end;
    const char *name; /* of the file, for messages */
    uint64_t tensors;
    uint64_t entries; /* settings that are still to be read */
    pith_error *err;
} pith__gguf;

typedef enum pith__gguf_kind {
    PITH_GGUF_OTHER,
    PITH_GGUF_COUNT,
    PITH_GGUF_REAL,
    PITH_GGUF_TEXT,
    PITH_GGUF_TEXTS,
    PITH_GGUF_NUMBERS
} pith__gguf_kind;

typedef struct pith__gguf_entry {
    pith_str key;
    pith__gguf_kind kind;
    uint64_t count;   /* COUNT: an integer or boolean that is not negative; TEXTS and NUMBERS: how
                         many */
    double real;      /* REAL, and COUNT */
    pith_str text;    /* TEXT; NUMBERS: the bytes of the list */
    pith__gguf texts; /* TEXTS: at the first, for pith__gguf_text */
    uint32_t item;    /* NUMBERS: the file's number of their type */
} pith__gguf_entry;

/* True if the bytes begin like a GGUF file. */
bool pith__gguf_is(pith_str bytes);
/* Goes to the first setting. PITH_ERR_FORMAT for a file that is none, PITH_ERR_UNSUPPORTED for
 * another version. */
pith_status pith__gguf_begin(pith__gguf *g, pith_str bytes, const char *name, pith_error *err);
/* Reads a setting; g->entries is greater than 0. Behind the last one g->next is at the list of
 * tensors. */
pith_status pith__gguf_next(pith__gguf *g, pith__gguf_entry *entry);
/* Number i of NUMBERS; i must be below count. */
double pith__gguf_number(const pith__gguf_entry *entry, uint64_t i);
/* Read a string, or bytes, and go on behind them. */
pith_status pith__gguf_text(pith__gguf *g, pith_str *text);
pith_status pith__gguf_take(pith__gguf *g, void *to, size_t size);
/* Returns PITH_ERR_FORMAT with the place. */
pith_status pith__gguf_fail(const pith__gguf *g, const char *what);

#endif

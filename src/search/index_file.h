/* index_file.h - the file of an index (.pix): a header, a table of sections, the sections.
 *
 *   0   8 bytes  magic, "\x89PIX\r\n\x1a\n"
 *   8   u32      version of the format; another one is refused, not converted
 *   12  u32      number of sections, at most 1024
 *   16  u64      size of the file
 *   24  u64      hash (base/checksum.h) of bytes [32, end of the table)
 *   32  16 bytes version of the writer as text, padded with zeros; for people only
 *   48  table    per section 32 bytes: u32 kind, u32 segment, u64 offset, u64 size, u64 hash of its
 *       contents
 *
 * Numbers are little-endian, and so are the arrays, which are mapped. Sections ascend, do not
 * overlap, and begin at multiples of 64, rows at multiples of 4096. A kind occurs once in a
 * segment. Writers of today have one segment, number 0. A reader refuses a segment and a kind that
 * it does not know, since hits would be wrong without them, but for kinds from 0x80000000 on, which
 * it skips.
 *
 * Only the hash of the header and that of the settings are compared when a file is opened;
 * pith__search_index_verify compares the others. */
#ifndef PITH_SEARCH_INDEX_FILE_H
#define PITH_SEARCH_INDEX_FILE_H

#include <stdint.h>

#include "base/memory/memory.h"

#define PITH_INDEX_MAGIC "\x89PIX\r\n\x1a\n"
#define PITH_INDEX_VERSION 1u

typedef enum pith__index_section {
    PITH_INDEX_SETTINGS = 1, /* u32 metric, dtype, bits, first pass; u64 dim, rows, documents (0
                                without maxsim), bytes of a row, bytes of a row of the copy; u64 0.
                                It may be longer: what is behind is skipped. */
    PITH_INDEX_ROWS = 2,     /* in the order of their ids, without gaps */
    PITH_INDEX_IDS = 3,      /* i64 for each row, or document, ascending; without the section they
                                are numbered from 0 on */
    PITH_INDEX_OFFSETS = 4,  /* maxsim: i64[documents + 1] */
    PITH_INDEX_COPY = 5,     /* first pass: its rows */
    PITH_INDEX_FACTORS = 6,  /* int8: f32 for each row */
    PITH_INDEX_SHIFTS = 7,   /* int8 with l2: f32 for each row */
    PITH_INDEX_KINDS = 8
} pith__index_section;
#define PITH_INDEX_SKIPPED 0x80000000u
enum { PITH_INDEX_SETTINGS_SIZE = 64 };

/* The places of the header, in bytes. */
enum {
    PITH_INDEX_HEADER = 48,
    PITH_INDEX_ENTRY = 32,
    PITH_INDEX_HASHED_FROM = 32,
    PITH_INDEX_WRITER_SIZE = 16,
    PITH_INDEX_SECTIONS_MAX = 1024
};

static inline uint64_t pith__index_get(const char *p, int bytes) {
    uint64_t x = 0;
    while (bytes-- > 0) x = x << 8 | (unsigned char)p[bytes];
    return x;
}

static inline void pith__index_put(char *p, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++, x >>= 8) p[i] = (char)(x & 0xFF);
}

/* "rows", for messages. */
const char *pith__index_section_name(uint32_t kind);

#endif

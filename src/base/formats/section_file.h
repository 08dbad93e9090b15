/* section_file.h - files of sections: a header, a table, and the sections, which are mapped.
 * Compiled models (formats/compiled/compiled.h) and indexes (search/index_file.h) are such files.
 *
 *   0   8 bytes  magic
 *   8   u32      version of the format; another one is refused, not converted
 *   12  u32      number of sections
 *   16  u64      size of the file
 *   24  u64      hash (base/checksum.h) of bytes [32, end of the table)
 *   32  16 bytes version of the writer as text, padded with zeros; for people only
 *   48  table    per section 32 bytes: u32 kind, u32 part, u64 offset, u64 size, u64 hash of its
 *       contents
 *
 * Numbers are little-endian. Where sections may lie, and what a part is, the kind of file says. */
#ifndef PITH_BASE_FORMATS_SECTION_FILE_H
#define PITH_BASE_FORMATS_SECTION_FILE_H

#include <stdint.h>

#include "base/progress.h"
#include "base/stop.h"

/* Places in the header, in bytes. */
enum {
    PITH_SECTIONS_HEADER = 48,
    PITH_SECTIONS_ENTRY = 32,
    PITH_SECTIONS_HASHED_FROM = 32,
    PITH_SECTIONS_WRITER_SIZE = 16
};

/* A kind of file. */
typedef struct pith__section_form {
    const char *magic;      /* [8] */
    uint32_t version, most; /* most: sections; more are hostile */
    const char *other;      /* "not an index": of a file with another magic */
    const char *newer;      /* what to do with a file of another version */
    const char *cut;        /* what to do with one that is cut off, with "; " before it, or "" */
    const char *wrong_hash; /* likewise, if the hash does not match */
    const char *(*name)(uint32_t kind); /* for messages */
} pith__section_form;

typedef struct pith__section_entry {
    uint32_t kind, part;
    uint64_t offset, size, hash;
} pith__section_entry;

static inline uint64_t pith__section_get(const char *p, int bytes) {
    uint64_t x = 0;
    while (bytes-- > 0) x = x << 8 | (unsigned char)p[bytes];
    return x;
}

static inline void pith__section_put(char *p, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++, x >>= 8) p[i] = (char)(x & 0xFF);
}

/* Checks the header in the order in which its fields can be trusted, so that another file, one of
 * another version and one that is cut off are named as that and not as damaged. *count: entries of
 * the table, which lies in the file and is whole. What it says is not checked: anyone can compute
 * its hash. */
pith_status pith__sections_check(size_t *count, pith_str file, const pith__section_form *form,
                                 pith_error *err);
/* i is below the count. */
pith__section_entry pith__sections_entry(pith_str file, size_t i);
/* Compares the hashes of all contents, whose places have been checked. Progress tells of "bytes".
 */
pith_status pith__sections_verify(pith_str file, size_t count, const pith__section_form *form,
                                  pith__stop *stop, pith__progress *told, pith_error *err);
/* Makes header and table of a file of `size` bytes at head, which has room for them. */
void pith__sections_head(char *head, const pith__section_form *form,
                         const pith__section_entry *entries, size_t count, uint64_t size);

#endif

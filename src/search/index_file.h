/* index_file.h - the file of an index (.pix): a header, a table of sections, the sections.
 *
 * The layout is that of base/formats/section_file.h; a part is a segment. The magic is
 * "\x89PIX\r\n\x1a\n".
 *
 * The arrays are little-endian, as the numbers are, and mapped. Sections ascend, do not
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

#include "base/formats/section_file.h"

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
enum { PITH_INDEX_SETTINGS_SIZE = 64, PITH_INDEX_SECTIONS_MAX = 1024 };

/* What the header and the table of an index are checked against. */
extern const pith__section_form pith__index_form;
#endif

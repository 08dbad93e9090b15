/* zip.h - zip archives: the directory at their end, and where members lie.
 *
 * Zip64 is known. Faults of an archive are numbers, which the caller words with its own place.
 * Members may share bytes and names; who needs it otherwise checks that. Source: PKWARE,
 * APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3. */
#ifndef PITH_BASE_FORMATS_ZIP_H
#define PITH_BASE_FORMATS_ZIP_H

#include <stdint.h>

#include "base/memory/memory.h"
#include "base/private_symbol.h"

typedef enum pith__zip_fault {
    PITH_ZIP_OK,
    PITH_ZIP_MEMORY,
    PITH_ZIP_SHORT,       /* fewer bytes than the record that ends an archive */
    PITH_ZIP_NO_END,      /* there is no such record */
    PITH_ZIP_NO_END64,    /* the record of zip64 is not where the archive says */
    PITH_ZIP_OUTSIDE,     /* the directory does not lie in front of that record */
    PITH_ZIP_BROKEN,      /* an entry of the directory is cut off or none */
    PITH_ZIP_FIELD64,     /* zip->members[zip->count] has no field of zip64, or a damaged one */
    PITH_ZIP_NOT_THERE,   /* no member begins where the directory says */
    PITH_ZIP_REACHES_OUT, /* a member reaches beyond the file */
} pith__zip_fault;

typedef struct pith__zip_member {
    pith_str name;                 /* a span of the file */
    uint64_t size, packed, offset; /* bytes unpacked and in the file; of its local header */
    uint32_t crc;
    uint16_t flags, method; /* PITH_ZIP_ENCRYPTED; PITH_ZIP_STORED, PITH_ZIP_DEFLATED or another */
} pith__zip_member;

enum { PITH_ZIP_ENCRYPTED = 1, PITH_ZIP_STORED = 0, PITH_ZIP_DEFLATED = 8 };

typedef struct pith__zip {
    pith_str file;
    pith__zip_member *members; /* as the directory has them */
    size_t count;
    size_t trailing; /* bytes behind the archive, which are none of its comment */
    size_t unpacked; /* bytes of the members that pith__zip_unpack was asked for */
} pith__zip;

/* Reads the directory of a file, which must outlive the archive; the members are in the arena. */
PITH_PRIVATE pith__zip_fault pith__zip_read(pith__zip *zip, pith_str file, pith__arena *arena);
/* Finds the bytes of a member, as they are in the file. */
PITH_PRIVATE pith__zip_fault pith__zip_packed(pith_str *bytes, const pith__zip *zip,
                                              const pith__zip_member *m);

#endif

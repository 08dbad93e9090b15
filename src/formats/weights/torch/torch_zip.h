/* torch_zip.h - the directory of a zip archive whose members are stored as they are.
 *
 * Zip64 is known. Checksums are not compared. Compressed and encrypted members, members that
 * overlap and members that reach beyond the file are errors. Source: PKWARE, APPNOTE 6.3, sections
 * 4.3 and 4.5.3. */
#ifndef PITH_FORMATS_WEIGHTS_TORCH_TORCH_ZIP_H
#define PITH_FORMATS_WEIGHTS_TORCH_TORCH_ZIP_H

#include "base/memory/memory.h"
#include "base/memory/span_map.h"

typedef struct pith__zip_member {
    pith_str name, bytes; /* spans of the file */
} pith__zip_member;

typedef struct pith__zip {
    pith__zip_member *members;
    size_t count;
    pith__map names; /* to the index in members */
} pith__zip;

bool pith__zip_is(pith_str file); /* by its first bytes */
/* Reads the directory; the arrays are in the arena. Errors do not name the file. */
pith_status pith__zip_read(pith__zip *zip, pith_str file, pith__arena *arena, pith_error *err);
/* data is NULL if there is no such member. */
pith_str pith__zip_find(const pith__zip *zip, pith_str name);

#endif

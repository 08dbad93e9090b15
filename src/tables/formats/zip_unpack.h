/* zip_unpack.h - unpacks the members of zip archives. */
#ifndef PITH_TABLES_FORMATS_ZIP_UNPACK_H
#define PITH_TABLES_FORMATS_ZIP_UNPACK_H

#include "base/formats/zip.h"
#include "base/stop.h"

/* Unpacks a stored or deflated member, whose bytes pith__zip_packed has found, and compares its
 * size and CRC-32. All members together unpack to at most pith__unpacked_most of the file. archive,
 * member: paths for messages. stop may be NULL. */
pith_status pith__zip_unpack(pith_str *bytes, pith__zip *zip, const pith__zip_member *m,
                             pith_str packed, const char *archive, const char *member,
                             pith__stop *stop, pith__arena *arena, pith_error *err);

#endif

/* rdb_file.h - the header of a database file. */
#ifndef PITH_TABLES_DATABASE_RDB_FILE_H
#define PITH_TABLES_DATABASE_RDB_FILE_H

#include "tables/database/rdb.h"

#define PITH_RDB_MAGIC "PITHRDB"
#define PITH_RDB_ORDER 0x01020304u

typedef struct pith__rdb_header {
    char magic[8];
    uint32_t version, order;
    uint64_t bytes, checksum; /* of all that follows the header */
    uint32_t sections, unused;
    uint64_t reserved[3];
} pith__rdb_header;

#endif

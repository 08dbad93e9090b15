/* rdb_figures.h - figures of whole columns of a database, which preprocessing does not keep. */
#ifndef PITH_TABLES_DATABASE_RDB_FIGURES_H
#define PITH_TABLES_DATABASE_RDB_FIGURES_H

#include "tables/database/rdb.h"

typedef struct pith__rdb_figures {
    uint64_t distinct;      /* different values; nulls are none */
    double least, greatest; /* of numbers, if there are any */
    int64_t first, last;    /* of times, if there are any */
    pith_str warning;       /* of a column of one value that the database does not warn of; size 0:
                               none */
} pith__rdb_figures;

/* Sets *figures to [rdb->column_count] figures from the arena. stop may be NULL. */
pith_status pith__rdb_figures_of(pith__rdb_figures **figures, const pith__rdb *rdb,
                                 pith__stop *stop, pith__arena *arena, pith_error *err);

#endif

/* database.h - what stands behind the public functions of databases. */
#ifndef PITH_TABLES_DATABASE_DATABASE_H
#define PITH_TABLES_DATABASE_DATABASE_H

#include "pith/tables.h"
#include "tables/database/rdb.h"

struct pith_database {
    pith_allocator allocator;
    pith__rdb rdb;
};

pith_status pith__database_draft_run(const char *source, const pith_call *call,
                                     const pith_writer *writer, pith_error *err);
pith_status pith__database_make_run(const char *source, const pith_database_options *options,
                                    const pith_writer *writer, pith_error *err);
pith_status pith__database_open_run(pith_database **database, const char *path,
                                    const pith_call *call, pith_error *err);
pith_status pith__database_describe_run(const pith_database *database, const pith_call *call,
                                        const pith_writer *writer, pith_error *err);
void pith__database_free(pith_database *database);

#endif

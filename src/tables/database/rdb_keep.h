/* rdb_keep.h - what a model keeps of its database, to answer about rows that come later: a database
 * file without rows.
 *
 * It holds the names and kinds of all columns, statistics, links, the model's task with its split
 * and classes or ranks of the training labels, and the vectors of the columns' names. A later
 * database follows it: what was learned from the rows of training stays as it was, and only rows,
 * keys and texts are the later one's. */
#ifndef PITH_TABLES_DATABASE_RDB_KEEP_H
#define PITH_TABLES_DATABASE_RDB_KEEP_H

#include "tables/database/task_target.h"

/* Hands such a file of the target's database to the writer. origin: the checksum that the model's
 * file names. */
pith_status pith__rdb_keep(const pith__target *target, uint64_t origin, const pith_writer *writer,
                           pith__stop *stop, const pith_allocator *allocator, pith_error *err);
/* Gives an open database the statistics, the split and the target of what a model keeps, so that
 * the model can be loaded over it. PITH_ERR_ARGUMENT names the first difference if the schemas
 * differ, or if texts have other vectors. `kept` may be closed afterwards. */
pith_status pith__rdb_follow(pith__rdb *rdb, const pith__rdb *kept, pith__stop *stop,
                             pith_error *err);

#endif

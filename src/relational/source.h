/* source.h - the tables of a directory: .csv and .tsv files, plain or as .gz. */
#ifndef PITH_RELATIONAL_SOURCE_H
#define PITH_RELATIONAL_SOURCE_H

#include "base/file.h"
#include "relational/csv.h"

typedef struct pith_table_source {
    const char *path;
    pith_arena *arena;
    pith_files files; /* stay open: cells are spans of them */
} pith_table_source;

pith_status pith_table_source_open(pith_table_source *source, const char *path, pith_arena *arena, pith_error *err);
void pith_table_source_close(pith_table_source *source);
/* Lists the files that hold tables, sorted by name. */
pith_status pith_table_source_list(pith_str **files, size_t *count, pith_table_source *source, pith_error *err);
/* The name of the table that a file holds: the file's without its endings. */
pith_str pith_table_source_table_name(pith_str file);
/* Reads a table of the source. */
pith_status pith_table_source_read(pith_text_table *table, pith_table_source *source, pith_str file, pith_error *err);

#endif

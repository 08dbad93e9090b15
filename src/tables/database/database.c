/* database.c - see database.h. */
#include "tables/database/database.h"

#include "base/caller_options.h"
#include "base/error.h"
#include "tables/database/build_database.h"

pith_status pith__database_draft_run(const char *source,
                                     const pith_writer *writer, pith_error *err) {
    pith__arena arena;
    pith__table_source s;
    pith__schema schema;
    pith__arena_init(&arena, &pith__allocator_default);
    pith_status status = pith__table_source_open(&s, source, &arena, err);
    if (!status) {
        status = pith__schema_draft(&schema, &s, err);
        if (!status) pith__schema_write(&schema, writer);
        pith__table_source_close(&s);
    }
    pith__arena_free(&arena);
    return status;
}

pith_status pith__database_make_run(const char *source, const pith_database_options *options,
                                    const pith_writer *writer, pith_error *err) {
    pith_database_options o = PITH_DATABASE_OPTIONS_INIT;
    pith__rdb rdb = { .table_count = 0 };
    PITH_TAKE_OPTIONS(o, options, err);
    pith__arena_init(&rdb.arena, o.allocator ? o.allocator : &pith__allocator_default);
    const pith_status status = pith__build_run(&rdb, source, &o, writer, err);
    pith__rdb_close(&rdb);
    return status;
}

pith_status pith__database_open_run(pith_database **database, const char *path,
                                    const pith_allocator *allocator, pith_error *err) {
    if (!allocator) allocator = &pith__allocator_default;
    pith_database *d = pith__memory_alloc(allocator, sizeof *d, 64);
    if (!d) return pith__fail_memory(err, sizeof *d);
    d->allocator = *allocator;
    const pith_status status = pith__rdb_open(&d->rdb, path, &d->allocator, err);
    if (status) {
        pith__memory_free(allocator, d);
        return status;
    }
    *database = d;
    return PITH_OK;
}

void pith__database_free(pith_database *database) {
    if (!database) return;
    const pith_allocator allocator = database->allocator;
    pith__rdb_close(&database->rdb);
    pith__memory_free(&allocator, database);
}

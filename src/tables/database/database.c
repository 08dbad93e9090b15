/* database.c - see database.h. */
#include "tables/database/database.h"

#include "base/caller_options.h"
#include "base/error.h"
#include "tables/database/build.h"

pith_status pith_database_draft_run(const char *source, void (*write)(void *user, const char *text, size_t size),
                                    void *user, pith_error *err) {
    pith_arena arena;
    pith_table_source s;
    pith_schema schema;
    pith_arena_init(&arena, &pith_allocator_default);
    pith_status status = pith_table_source_open(&s, source, &arena, err);
    if (!status) {
        status = pith_schema_draft(&schema, &s, err);
        if (!status) pith_schema_write(&schema, write, user);
        pith_table_source_close(&s);
    }
    pith_arena_free(&arena);
    return status;
}

pith_status pith_database_make_run(const char *source, const pith_database_options *options,
                                   int (*write)(void *user, const void *data, size_t size), void *user,
                                   pith_error *err) {
    pith_database_options o = PITH_DATABASE_OPTIONS_INIT;
    pith_rdb rdb = { .table_count = 0 };
    PITH_TAKE_OPTIONS(o, options, err);
    pith_arena_init(&rdb.arena, o.allocator ? o.allocator : &pith_allocator_default);
    const pith_status status = pith_build_run(&rdb, source, &o, write, user, err);
    pith_rdb_close(&rdb);
    return status;
}

pith_status pith_database_open_run(pith_database **database, const char *path, const pith_allocator *allocator,
                                   pith_error *err) {
    if (!allocator) allocator = &pith_allocator_default;
    pith_database *d = pith_memory_alloc(allocator, sizeof *d, 64);
    if (!d) return pith_fail_memory(err, sizeof *d);
    d->allocator = *allocator;
    const pith_status status = pith_rdb_open(&d->rdb, path, &d->allocator, err);
    if (status) {
        pith_memory_free(allocator, d);
        return status;
    }
    *database = d;
    return PITH_OK;
}

void pith_database_free(pith_database *database) {
    if (!database) return;
    const pith_allocator allocator = database->allocator;
    pith_rdb_close(&database->rdb);
    pith_memory_free(&allocator, database);
}

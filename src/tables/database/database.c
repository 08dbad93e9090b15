/* database.c - see database.h. */
#include "tables/database/database.h"

#include "base/caller_options.h"
#include "base/error.h"
#include "base/work.h"
#include "base/writer.h"
#include "tables/database/build_database.h"

/* Libraries that read a source say in their own words that a call was ended early. */
static pith_status database_ended(pith_status status, pith__stop *stop, pith_error *err) {
    return status && pith__stop_asked(stop) ? pith__stop_check(stop, err) : status;
}

static pith_status draft_run(pith__out *out, const char *source, const pith__work *work,
                             pith__arena *arena, pith_error *err) {
    pith__table_source s;
    pith__schema schema;
    PITH_TRY(pith__table_source_open(&s, source, work->stop, arena, err));
    pith_status status = pith__schema_draft(&schema, &s, work, err);
    if (!status) pith__schema_write(&schema, out);
    if (!status) status = pith__out_status(out, "the schema", err);
    pith__table_source_close(&s);
    return status;
}

pith_status pith__database_draft_run(const char *source, const pith_call *call,
                                     const pith_writer *writer, pith_error *err) {
    pith__arena arena;
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__writer_check(writer, err));
    PITH_TRY(pith__work_take(&work, &own, call, err));
    pith__out out = { .writer = writer, .stop = work.stop };
    pith__arena_init(&arena, work.allocator ? work.allocator : &pith__allocator_default);
    const pith_status status = draft_run(&out, source, &work, &arena, err);
    pith__arena_free(&arena);
    return database_ended(status, work.stop, err);
}

pith_status pith__database_make_run(const char *source, const pith_database_options *options,
                                    const pith_writer *writer, pith_error *err) {
    pith_database_options o = PITH_DATABASE_OPTIONS_INIT;
    pith__rdb rdb = { .table_count = 0 };
    pith__work_own own;
    PITH_TRY(pith__writer_check(writer, err));
    PITH_TAKE_OPTIONS(o, options, err);
    const pith__work work = pith__work_of(&own, &o.call);
    PITH_TRY(pith__stop_check(work.stop, err));
    pith__arena_init(&rdb.arena, work.allocator ? work.allocator : &pith__allocator_default);
    const pith_status status = pith__build_run(&rdb, source, &o, &work, writer, err);
    pith__rdb_close(&rdb);
    return database_ended(status, work.stop, err);
}

pith_status pith__database_open_run(pith_database **database, const char *path,
                                    const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    const pith_allocator *allocator = work.allocator ? work.allocator : &pith__allocator_default;
    pith_database *d = pith__memory_alloc(allocator, sizeof *d, 64);
    if (!d) return pith__fail_memory(err, sizeof *d);
    d->allocator = *allocator;
    const pith_status status = pith__rdb_open(&d->rdb, path, work.stop, &d->allocator, err);
    if (status) {
        pith__memory_free(allocator, d);
        return status;
    }
    *database = d;
    return PITH_OK;
}

pith_status pith__database_describe_run(const pith_database *database, const pith_call *call,
                                        const pith_writer *writer, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__writer_check(writer, err));
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__rdb_describe(&database->rdb, work.stop, &database->allocator, writer, err);
}

void pith__database_free(pith_database *database) {
    if (!database) return;
    const pith_allocator allocator = database->allocator;
    pith__rdb_close(&database->rdb);
    pith__memory_free(&allocator, database);
}

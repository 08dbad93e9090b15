/* build_database.c - preprocessing from end to end; each step is a file build_<step>.c. */
#include "tables/database/build_database.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "base/text_out.h"
#include "base/unicode/utf8.h"

static pith_status build_note(pith__build *b, bool tell, const char *format, va_list args,
                              pith_error *err) {
    char text[800];
    pith__text_format(text, sizeof text, format, args);
    if (tell && b->options->warn) b->options->warn(b->options->call.user, text);
    if (!pith__arena_grow(PITH_BUILD_ARENA(b), (void **)&b->rdb->warnings, b->rdb->warning_count,
                          &b->warning_room, sizeof *b->rdb->warnings))
        return pith__fail_memory(err, sizeof text);
    const pith_str copy = pith__arena_str(PITH_BUILD_ARENA(b), pith__str_of(text));
    if (!copy.data) return pith__fail_memory(err, sizeof text);
    b->rdb->warnings[b->rdb->warning_count++] = copy;
    return PITH_OK;
}

pith_status pith__build_warn(pith__build *b, pith_error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const pith_status status = build_note(b, false, format, args, err);
    va_end(args);
    return status;
}

pith_status pith__build_tell(pith__build *b, pith_error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const pith_status status = build_note(b, true, format, args, err);
    va_end(args);
    return status;
}

pith_status pith__build_string(uint32_t *number, pith__build *b, pith_str text, pith_error *err) {
    *number = pith__map_get(&b->strings, text);
    if (*number != PITH_RDB_NONE) return PITH_OK;
    if (b->rdb->string_count == PITH_RDB_NONE - 1)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "more than 4294967294 texts");
    if (!pith__arena_grow(PITH_BUILD_ARENA(b), (void **)&b->string_list, b->rdb->string_count,
                          &b->string_room, sizeof *b->string_list) ||
        !pith__map_put(&b->strings, text, b->rdb->string_count, NULL))
        return pith__fail_memory(err, sizeof text);
    *number = b->rdb->string_count++;
    b->string_list[*number] = text;
    return PITH_OK;
}

/* The text of the schema: the file that is named, the source's schema.json, or nothing. */
static pith_status build_schema_text(pith_str *text, pith__build *b, pith_error *err) {
    pith_str path = { NULL, 0 };
    *text = (pith_str){ NULL, 0 };
    b->schema_path = b->options->schema;
    if (b->schema_path) return pith__files_open(text, &b->source.files, b->schema_path, err);
    if (!b->source.kind->schema) return PITH_OK;
    PITH_TRY(b->source.kind->schema(text, &path, &b->source, err));
    b->schema_path = path.data;
    return PITH_OK;
}

static pith_status build_schema(pith__schema *schema, pith__build *b, pith_error *err) {
    pith_str text;
    PITH_TRY(build_schema_text(&text, b, err));
    if (text.data) {
        PITH_TRY(pith__schema_read(schema, text, b->schema_path, PITH_BUILD_ARENA(b), err));
        return pith__schema_compact(&b->rdb->schema, text, PITH_BUILD_ARENA(b), err);
    }
    b->schema_path = b->source.path;
    PITH_TRY(pith__schema_draft(schema, &b->source, b->work, err));
    return pith__build_warn(b, err,
                            "the schema was inferred; pith_database_draft of pith/tables.h writes "
                            "it for you to check");
}

static pith_status build_steps(pith__build *b, pith_error *err) {
    pith__schema schema;
    PITH_TRY(build_schema(&schema, b, err));
    b->schema = &schema;
    b->rdb->name = schema.name;
    PITH_TRY(pith__map_init(&b->strings, PITH_BUILD_ARENA(b), 1024));
    PITH_TRY(pith__build_columns(b, err));
    PITH_TRY(pith__build_links(b, err));
    PITH_TRY(pith__build_tasks(b, err));
    PITH_TRY(pith__build_statistics(b, err));
    return pith__build_vectors(b, err);
}

pith_status pith__build_run(pith__rdb *rdb, const char *source,
                            const pith_database_options *options, const pith__work *work,
                            const pith_writer *writer, pith_error *err) {
    pith__build b = { .rdb = rdb, .options = options, .work = work, .train_until = INT64_MAX };
    PITH_TRY(pith__table_source_open(&b.source, source, work->stop, PITH_BUILD_ARENA(&b), err));
    /* Names are spans of the open files, so the database is written before these are closed. */
    pith_status status = build_steps(&b, err);
    if (!status) status = pith__rdb_write(rdb, writer, work->stop, PITH_BUILD_ARENA(&b), err);
    pith__build_queries_close(&b);
    pith__table_source_close(&b.source);
    return status;
}

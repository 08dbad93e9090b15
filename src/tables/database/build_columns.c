/* build_columns.c - the cells of all tables as typed columns. A cell that does not fit its column's
 * kind is an error that names the file, the row and the column. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "tables/database/build_database.h"

static pith_status column_fail(const pith__text_table *t, size_t row, pith_str column,
                               pith_str cell, const char *what, pith_error *err) {
    return pith__fail(err, PITH_ERR_FORMAT,
                      "%s: row %zu, column '" PITH_STR_FMT "': '" PITH_STR_FMT
                      "' is no %s; correct the cell or the column's stype",
                      t->path, row + 1, PITH_STR_ARG(column), PITH_STR_ARG(cell), what);
}

static pith_status column_numbers(pith__build *b, pith__rdb_column *c, const pith__text_table *t,
                                  size_t at, pith_error *err) {
    double *x = (double *)c->data;
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        const pith_str cell = t->cells[r * t->columns + at];
        x[r] = NAN;
        if (pith__cell_is_null(cell))
            c->nulls++;
        else if (!pith__cell_number(&x[r], cell))
            return column_fail(t, r, c->name, cell, "finite number", err);
    }
    return PITH_OK;
}

/* What to write in the schema where several forms read all cells of a column. */
static pith_status column_contradicts(pith_str name, const pith__text_table *t, pith_str cell,
                                      unsigned possible, pith_error *err) {
    char list[160] = "";
    for (int f = PITH_TIME_ISO; f < PITH_TIME_FORMATS; f++)
        if (possible & 1u << f)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"format\": \"%s\"",
                     *list ? " or " : "", pith__time_format_names[f]);
    return pith__fail(err, PITH_ERR_FORMAT,
                      "%s: column '" PITH_STR_FMT "': its times, as '" PITH_STR_FMT
                      "', can be read in several ways; write %s for the column in the schema",
                      t->path, PITH_STR_ARG(name), PITH_STR_ARG(cell), list);
}

pith_status pith__build_format(pith__time_format *format, pith__build *b, pith_str name,
                               const pith__text_table *t, size_t at, pith_error *err) {
    unsigned possible = PITH_TIME_ANY;
    pith_str some = { NULL, 0 };
    *format = PITH_TIME_ISO;
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        const pith_str cell = t->cells[r * t->columns + at];
        if (pith__cell_is_null(cell)) continue;
        const unsigned before = possible;
        possible = pith__time_formats(possible, cell);
        some = cell;
        if (possible) continue;
        if (before == PITH_TIME_ANY)
            return column_fail(t, r, name, cell,
                               "date or time like 2023-05-30T15:13:52 from the years 1 to 9999, "
                               "nor in another form that "
                               "is recognised without a format in the schema",
                               err);
        for (int f = PITH_TIME_ISO; f < PITH_TIME_FORMATS; f++)
            if (before & 1u << f) *format = (pith__time_format)f;
        return PITH_OK; /* parsing names the cell */
    }
    if (!some.data) return PITH_OK;
    *format = pith__time_format_of(possible);
    return *format ? PITH_OK : column_contradicts(name, t, some, possible, err);
}

static pith_status column_times(pith__build *b, pith__rdb_column *c, pith__time_format format,
                                const pith__text_table *t, size_t at, pith_error *err) {
    int64_t *x = (int64_t *)c->data;
    char what[120];
    if (!format) PITH_TRY(pith__build_format(&format, b, c->name, t, at, err));
    snprintf(what, sizeof what, "date or time %s%s from the years 1 to 9999",
             format == PITH_TIME_ISO ? "like 2023-05-30T15:13:52" : "of the format ",
             format == PITH_TIME_ISO ? "" : pith__time_format_names[format]);
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        const pith_str cell = t->cells[r * t->columns + at];
        x[r] = PITH_TIME_NULL;
        if (pith__cell_is_null(cell))
            c->nulls++;
        else if (!pith__time_parse(&x[r], cell, format))
            return column_fail(t, r, c->name, cell, what, err);
    }
    return PITH_OK;
}

static pith_status column_booleans(pith__build *b, pith__rdb_column *c, const pith__text_table *t,
                                   size_t at, pith_error *err) {
    uint8_t *x = (uint8_t *)c->data;
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        const pith_str cell = t->cells[r * t->columns + at];
        bool yes = false;
        x[r] = 2;
        if (pith__cell_is_null(cell))
            c->nulls++;
        else if (!pith__cell_boolean(&yes, cell))
            return column_fail(t, r, c->name, cell, "boolean (true, false, yes, no, 1, 0)", err);
        else
            x[r] = yes;
    }
    return PITH_OK;
}

/* All of the texts, of any size, one behind the other. */
static pith_str column_joined(pith__arena *arena, const pith_str *parts, size_t count) {
    size_t size = 0, n = 0;
    for (size_t i = 0; i < count; i++) size += parts[i].size;
    char *text = pith__arena_alloc(arena, size + 1);
    if (!text) return (pith_str){ NULL, 0 };
    for (size_t i = 0; i < count; i++) {
        if (parts[i].size) memcpy(text + n, parts[i].data, parts[i].size);
        n += parts[i].size;
    }
    text[n] = 0;
    return (pith_str){ text, n };
}

/* Numbers the distinct cells of the column first, so that the text of a category is made once. */
static pith_status column_strings(pith__build *b, pith__rdb_column *c, const pith__text_table *t,
                                  size_t at, pith_error *err) {
    uint32_t *x = (uint32_t *)c->data;
    pith__map seen;
    PITH_TRY(pith__map_init(&seen, PITH_BUILD_ARENA(b), 64));
    for (size_t r = 0; r < t->rows; r++) {
        PITH_TRY_ROW(b->work->stop, r, err);
        const pith_str cell = t->cells[r * t->columns + at];
        x[r] = PITH_RDB_NONE;
        if (!cell.size) {
            c->nulls++;
            continue;
        }
        x[r] = pith__map_get(&seen, cell);
        if (x[r] != PITH_RDB_NONE) continue;
        pith_str text = cell;
        if (c->stype == PITH_STYPE_CATEGORICAL)
            text = column_joined(PITH_BUILD_ARENA(b),
                                 (pith_str[]){ c->name, PITH_STR(" is "), cell }, 3);
        if (!text.data) return pith__fail_memory(err, cell.size);
        PITH_TRY(pith__build_string(&x[r], b, text, err));
        if (!pith__map_put(&seen, cell, x[r], NULL)) return pith__fail_memory(err, cell.size);
    }
    return PITH_OK;
}

/* "price of products: price in euro" */
static pith_status column_name_string(pith__build *b, const pith__rdb_table *t, pith__rdb_column *c,
                                      pith_error *err) {
    const pith_str parts[] = { c->name, PITH_STR(" of "), t->name, PITH_STR(": "), c->description };
    const pith_str text = column_joined(PITH_BUILD_ARENA(b), parts, c->description.size ? 5 : 3);
    if (!text.data) return pith__fail_memory(err, c->description.size);
    return pith__build_string(&c->name_string, b, text, err);
}

pith_status pith__build_cells(pith__build *b, pith__rdb_column *c, pith__time_format format,
                              const pith__text_table *t, size_t at, pith_error *err) {
    c->data = pith__arena_array(PITH_BUILD_ARENA(b), t->rows + 1, pith__rdb_value_bytes(c->stype));
    if (!c->data) return pith__fail_memory(err, t->rows * pith__rdb_value_bytes(c->stype));
    if (t->blobs && t->blobs[at])
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: row %zu, column '" PITH_STR_FMT
                          "': the cell is a blob; give the column the stype ignored",
                          t->path, t->blobs[at], PITH_STR_ARG(c->name));
    switch (c->stype) {
    case PITH_STYPE_NUMERICAL: return column_numbers(b, c, t, at, err);
    case PITH_STYPE_TIMESTAMP: return column_times(b, c, format, t, at, err);
    case PITH_STYPE_BOOLEAN: return column_booleans(b, c, t, at, err);
    default: return column_strings(b, c, t, at, err);
    }
}

/* The place of a column in the file, or an error. */
static pith_status column_place(size_t *at, const pith__text_table *t, pith_str name,
                                const char *schema, pith_error *err) {
    for (*at = 0; *at < t->columns; ++*at)
        if (pith__str_eq(t->names[*at], name)) return PITH_OK;
    return pith__fail(err, PITH_ERR_FORMAT, "%s has no column '" PITH_STR_FMT "', which %s names",
                      t->path, PITH_STR_ARG(name), schema);
}

static int32_t table_column(const pith__rdb_table *t, pith_str name) {
    if (!name.size) return -1;
    for (uint32_t i = 0; i < t->column_count; i++)
        if (pith__str_eq(t->columns[i].name, name)) return (int32_t)i;
    return -1;
}

/* A time that says when another cell is known often is written no earlier itself, and then tells
 * what comes. */
static pith_status columns_early(pith__build *b, const pith__table_schema *t, pith_error *err) {
    for (size_t i = 0; i < t->column_count; i++) {
        const size_t at = pith__schema_column(t, t->columns[i].known_at.column);
        bool first = at != SIZE_MAX && at != i && !t->columns[at].known_at.set &&
                     !pith__str_eq(t->columns[at].name, t->temporal_column);
        for (size_t k = 0; k < i; k++)
            first &= !pith__str_eq(t->columns[k].known_at.column, t->columns[i].known_at.column);
        if (!first) continue;
        PITH_TRY(pith__build_tell(
            b, err,
            PITH_STR_FMT ": column '" PITH_STR_FMT "' says when '" PITH_STR_FMT
                         "' is known, and is itself known with its row; if it is written when it "
                         "has come, give it \"known_at\": {\"column\": \"" PITH_STR_FMT
                         "\"}, if it is planned, {\"delay_seconds\": 0}",
            PITH_STR_ARG(t->name), PITH_STR_ARG(t->columns[at].name),
            PITH_STR_ARG(t->columns[i].name), PITH_STR_ARG(t->columns[at].name)));
    }
    return PITH_OK;
}

static pith_status table_columns(pith__build *b, pith__rdb_table *t,
                                 const pith__table_schema *schema, const pith__text_table *text,
                                 pith_error *err) {
    for (size_t i = 0; i < schema->column_count; i++) {
        const pith__column_schema *from = &schema->columns[i];
        size_t at;
        PITH_TRY(column_place(&at, text, from->name, b->schema_path, err));
        if (!pith__rdb_value_bytes(from->stype)) continue;
        pith__rdb_column *c = &t->columns[t->column_count++];
        *c = (pith__rdb_column){ .name = from->name,
                                 .description = from->description,
                                 .stype = from->stype,
                                 .sd = 1,
                                 .log = from->transform == PITH_TRANSFORM_LOG,
                                 .known_column = PITH_KNOWN_WITH_ROW };
        PITH_TRY(column_name_string(b, t, c, err));
        PITH_TRY(pith__build_cells(b, c, from->format, text, at, err));
        if (text->rows && c->nulls == text->rows)
            PITH_TRY(pith__build_warn(b, err,
                                      PITH_STR_FMT ": column '" PITH_STR_FMT "' holds nulls only",
                                      PITH_STR_ARG(t->name), PITH_STR_ARG(c->name)));
    }
    t->time_column = table_column(t, schema->temporal_column);
    for (size_t i = 0; i < schema->column_count; i++) {
        const pith__column_schema *from = &schema->columns[i];
        const int32_t at = table_column(t, from->name);
        if (at < 0 || !from->known_at.set) continue;
        t->columns[at].known_column = from->known_at.column.size
                                          ? table_column(t, from->known_at.column)
                                          : PITH_KNOWN_ROW_TIME;
        t->columns[at].known_delay = from->known_at.delay;
    }
    return PITH_OK;
}

static pith_status columns_unnamed(pith__build *b, const pith__table_schema *schema,
                                   const pith__text_table *t, pith_error *err) {
    for (size_t i = 0; i < t->columns; i++)
        if (pith__schema_column(schema, t->names[i]) == SIZE_MAX)
            PITH_TRY(pith__build_warn(b, err,
                                      PITH_STR_FMT ": column '" PITH_STR_FMT
                                                   "' is not in the schema and is ignored",
                                      PITH_STR_ARG(schema->name), PITH_STR_ARG(t->names[i])));
    return PITH_OK;
}

/* Tables that windows and queries make come after those of the source. */
static size_t columns_made(const pith__schema *schema) {
    size_t n = 0;
    for (size_t i = 0; i < schema->task_count; i++)
        n += schema->tasks[i].window.set || schema->tasks[i].query.size;
    return n;
}

pith_status pith__build_columns(pith__build *b, pith_error *err) {
    const pith__schema *schema = b->schema;
    const size_t count = schema->table_count + columns_made(schema);
    pith__arena *arena = PITH_BUILD_ARENA(b);
    b->rdb->tables = pith__arena_array(arena, count, sizeof *b->rdb->tables);
    b->texts = pith__arena_array(arena, count, sizeof *b->texts);
    if (!b->rdb->tables || !b->texts) return pith__fail_memory(err, count * sizeof *b->rdb->tables);
    for (size_t i = 0; i < schema->table_count; i++) {
        const pith__table_schema *from = &schema->tables[i];
        pith__rdb_table *t = &b->rdb->tables[i];
        pith__work_tell(b->work, "tables", i, schema->table_count);
        PITH_TRY(pith__stop_check(b->work->stop, err));
        PITH_TRY(b->source.kind->read(&b->texts[i], &b->source, from->file, err));
        b->rows_read += b->texts[i].rows;
        pith__work_tell(b->work, "rows", b->rows_read, 0);
        *t = (pith__rdb_table){ .name = from->name,
                                .rows = (uint32_t)b->texts[i].rows,
                                .time_column = -1 };
        t->columns = pith__arena_array(arena, from->column_count, sizeof *t->columns);
        if (!t->columns) return pith__fail_memory(err, from->column_count * sizeof *t->columns);
        PITH_TRY(table_columns(b, t, from, &b->texts[i], err));
        PITH_TRY(columns_unnamed(b, from, &b->texts[i], err));
        PITH_TRY(columns_early(b, from, err));
        b->rdb->table_count++;
    }
    return PITH_OK;
}

/* csv_records.c - see csv_records.h. */
#include "cli/base/csv_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/formats/json_write.h"
#include "base/text_out.h"

/* Columns of a table. The bound keeps what a hostile header takes small. */
#define CSV_COLUMNS 16384

void csv_records_open(csv_records *r, char usual) {
    *r = (csv_records){ .delimiter = usual, .next_line = 1 };
    pith__arena_init(&r->arena, &pith__allocator_default);
}

void csv_records_close(csv_records *r) {
    free(r->text.data);
    free(r->names.data);
    free(r->ends);
    pith__arena_free(&r->arena);
    *r = (csv_records){ .row = 0 };
}

bool csv_records_waiting(const csv_records *r) { return r->at < r->text.size; }

/* ---- lines ---- */

/* Follows the quotation marks as pith__csv_next reads them. */
static void records_follow(csv_records *r, const char *p, const char *end) {
    while (p < end) {
        if (r->state == CSV_IN_QUOTES) {
            const char *quote = memchr(p, '"', (size_t)(end - p));
            if (!quote) return;
            p = quote + 1;
            if (p < end && *p == '"')
                p++;
            else
                r->state = CSV_IN_CELL;
            continue;
        }
        const char c = *p++;
        if (c == '"' && r->state == CSV_CELL_BEGINS)
            r->state = CSV_IN_QUOTES;
        else
            r->state = c == r->delimiter || c == '\n' || c == '\r' ? CSV_CELL_BEGINS : CSV_IN_CELL;
    }
}

bool csv_records_line(csv_records *r, size_t from) {
    bytes_add(&r->text, "\n", 1);
    if (!r->headed && !from) {
        const pith__csv_scan s = pith__csv_begin(bytes_text(&r->text, 0, r->text.size), ',');
        r->at = from = (size_t)(s.at - r->text.data);
        r->delimiter =
            pith__csv_delimiter((pith_str){ s.at, (size_t)(s.end - s.at) }, r->delimiter);
    }
    records_follow(r, r->text.data + from, r->text.data + r->text.size);
    return r->too_long || r->state != CSV_IN_QUOTES;
}

/* Forgets the rows that were taken. */
static void records_forget(csv_records *r) {
    if (r->at < r->text.size) return;
    r->text.size = r->at = 0;
    r->state = CSV_CELL_BEGINS;
    r->too_long = false;
}

/* ---- rows ---- */

static pith__csv_scan records_scan(csv_records *r) {
    pith__arena_reset(&r->arena);
    return (pith__csv_scan){ .at = r->text.data + r->at,
                             .end = r->text.data + r->text.size,
                             .delimiter = r->delimiter,
                             .loose = true,
                             .arena = &r->arena };
}

/* Goes behind what the scanner has read, or, after a fault, behind everything. */
static void records_pass(csv_records *r, const char *at) {
    const size_t end = at ? (size_t)(at - r->text.data) : r->text.size;
    r->line = r->next_line;
    for (size_t i = r->at; i < end; i++) r->next_line += r->text.data[i] == '\n';
    r->at = end;
    records_forget(r);
}

static bool records_ends_line(char c) { return c == '\n' || c == '\r'; }

/* Passes over lines without anything. */
static void records_pass_blank(csv_records *r) {
    while (csv_records_waiting(r) && records_ends_line(r->text.data[r->at])) {
        const char *p = r->text.data + r->at;
        records_pass(r, p + 1 + (p[0] == '\r' && p[1] == '\n'));
    }
}

static void records_put(bytes *out, pith_str text) {
    const pith_writer writer = bytes_writer(out);
    pith__out to = { .writer = &writer };
    pith__json_out json = { &to, false };
    pith__json_put_string(&json, text);
}

/* A name that occurs twice makes objects of which only one value can be had. */
static bool records_twice(const csv_records *r) {
    const size_t begin = r->columns > 1 ? r->ends[r->columns - 2] : 0,
                 size = r->ends[r->columns - 1] - begin;
    for (size_t i = 0, at = 0; i + 1 < r->columns; at = r->ends[i++])
        if (r->ends[i] - at == size && !memcmp(r->names.data + at, r->names.data + begin, size))
            return true;
    return false;
}

/* NULL, or what is wrong with the name of the next column. */
static const char *records_name(csv_records *r, pith_str name) {
    if (!name.size && !r->columns)
        name = PITH_STR(PITH_CSV_UNNAMED); /* as pandas writes its index */
    if (r->columns == CSV_COLUMNS) return "there are too many";
    if (!name.size) return "it has no name";
    if (memchr(name.data, 0, name.size)) return "there is a NUL byte; the file must be text";
    if (pith_text_valid(name) < name.size) return "its name is not UTF-8";
    records_put(&r->names, name);
    r->ends = grow_for(r->ends, r->columns, sizeof *r->ends);
    r->ends[r->columns++] = r->names.size;
    return records_twice(r) ? "another one has the same name" : NULL;
}

static bool is_utf16(const csv_records *r) {
    const unsigned char *p = (const unsigned char *)r->text.data;
    return r->text.size > 1 && ((p[0] == 0xFF && p[1] == 0xFE) || (p[0] == 0xFE && p[1] == 0xFF));
}

/* Reads the names of the columns. NULL, or what is wrong. */
static const char *records_header(csv_records *r, char *message, size_t size) {
    if (is_utf16(r)) return "the file is UTF-16; save it as UTF-8, or convert it with iconv";
    records_pass_blank(r);
    if (!csv_records_waiting(r)) return NULL;
    pith__csv_scan s = records_scan(r);
    for (pith__csv_after after = PITH_CSV_CELL; after == PITH_CSV_CELL;) {
        pith_str name;
        const size_t column = r->columns;
        after = pith__csv_next(&s, &name);
        const char *why = NULL;
        if (after == PITH_CSV_FAULT)
            why = s.fault;
        else if (after == PITH_CSV_MEMORY)
            why = "out of memory";
        else
            why = records_name(r, name);
        if (!why) continue;
        pith__text_print(message, size, "the header, column %zu: %s", column + 1, why);
        return message;
    }
    r->headed = true;
    records_pass(r, s.at);
    return NULL;
}

/* Appends a cell, `,"name":"cell"`. NULL, or what is wrong with it. */
static const char *records_cell(csv_records *r, bytes *out, pith_str cell, size_t column,
                                bool replace, char *message, size_t size) {
    const size_t begin = column ? r->ends[column - 1] : 0;
    const pith_str name = bytes_text(&r->names, begin, r->ends[column]);
    const size_t valid = pith_text_valid(cell);
    if (memchr(cell.data, 0, cell.size)) {
        pith__text_print(message, size, "column " PITH_CUT_FMT ": there is a NUL byte",
                         PITH_CUT(name, 100));
        return message;
    }
    if (valid < cell.size && !replace) {
        pith__text_print(message, size,
                         "column " PITH_CUT_FMT
                         ": not UTF-8 at byte %zu (--invalid replace puts U+FFFD in its place)",
                         PITH_CUT(name, 100), valid + 1);
        return message;
    }
    bytes_add(out, column ? "," : "{", 1);
    bytes_add(out, name.data, name.size);
    bytes_add(out, ":", 1);
    if (valid == cell.size) {
        records_put(out, cell);
        return NULL;
    }
    bytes copy = { NULL, 0, 0 };
    bytes_add(&copy, cell.data, cell.size);
    bytes_replace_invalid(&copy, 0);
    records_put(out, (pith_str){ copy.data, copy.size });
    free(copy.data);
    return NULL;
}

/* Reads the row that begins here. NULL, or what is wrong with it. */
static const char *records_row(csv_records *r, bytes *out, bool replace, char *message,
                               size_t size) {
    pith__csv_scan s = records_scan(r);
    const char *why = r->too_long ? "the row is longer than 64 MiB" : NULL;
    bool whole = !why;
    size_t count = 0;
    for (pith__csv_after after = PITH_CSV_CELL; whole && after == PITH_CSV_CELL; count++) {
        pith_str cell;
        after = pith__csv_next(&s, &cell);
        whole = after != PITH_CSV_FAULT && after != PITH_CSV_MEMORY;
        if (!whole) why = after == PITH_CSV_FAULT ? s.fault : "out of memory";
        if (whole && !why && count < r->columns)
            why = records_cell(r, out, cell, count, replace, message, size);
    }
    bytes_add(out, "}", 1);
    r->row++;
    records_pass(r, whole ? s.at : NULL);
    if (why || count == r->columns) return why;
    pith__text_print(message, size, "the row has %zu cell%s, but the header has %zu", count,
                     count == 1 ? "" : "s", r->columns);
    return message;
}

csv_found csv_records_next(csv_records *r, bytes *out, bool replace, char *message, size_t size) {
    const size_t from = out->size;
    if (!r->headed && csv_records_waiting(r)) {
        const char *why = records_header(r, message, size);
        if (why && why != message) pith__text_print(message, size, "%s", why);
        if (why) return CSV_FAULT;
    }
    if (r->columns > 1) records_pass_blank(r);
    if (!csv_records_waiting(r)) {
        records_forget(r);
        return CSV_NONE;
    }
    const char *why = records_row(r, out, replace, message, size);
    if (!why) return CSV_ROW;
    out->size = from;
    if (why != message) pith__text_print(message, size, "%s", why);
    return CSV_BAD;
}

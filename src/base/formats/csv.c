/* csv.c - see csv.h. A table is read in two passes with one scanner: the first counts cells and
 * finds faults, the second stores spans, so that the memory is allocated once. */
#include "base/formats/csv.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

pith__csv_scan pith__csv_begin(pith_str bytes, char delimiter) {
    const size_t mark = bytes.size >= 3 && !memcmp(bytes.data, "\xEF\xBB\xBF", 3) ? 3 : 0;
    return (pith__csv_scan){ .at = bytes.data + mark,
                             .end = bytes.data + bytes.size,
                             .delimiter = delimiter };
}

static pith__csv_after csv_after_cell(pith__csv_scan *s) {
    if (s->at == s->end) return PITH_CSV_ROW_END;
    const char c = *s->at++;
    if (c == s->delimiter) return PITH_CSV_CELL;
    if (c == '\r' && s->at < s->end && *s->at == '\n') s->at++;
    return PITH_CSV_ROW_END;
}

/* Moves behind what belongs to a cell without quotation marks. */
static pith_str csv_plain(pith__csv_scan *s) {
    const char *begin = s->at;
    while (s->at < s->end && *s->at != s->delimiter && *s->at != '\n' && *s->at != '\r') s->at++;
    return (pith_str){ begin, (size_t)(s->at - begin) };
}

/* The text of a cell with doubled quotation marks, or with a tail behind the closing one. */
static bool csv_decode(pith__csv_scan *s, pith_str *cell, size_t doubled, pith_str tail) {
    if (!s->arena || (!doubled && !tail.size)) return true;
    char *text = pith__arena_alloc(s->arena, cell->size - doubled + tail.size + 1);
    if (!text) return false;
    size_t n = 0;
    for (size_t i = 0; i < cell->size; i++) {
        text[n++] = cell->data[i];
        if (cell->data[i] == '"') i++;
    }
    if (tail.size) memcpy(text + n, tail.data, tail.size);
    *cell = (pith_str){ text, n + tail.size };
    return true;
}

/* The cell at s->at, which is a quotation mark. */
static pith__csv_after csv_quoted(pith__csv_scan *s, pith_str *cell) {
    const char *begin = ++s->at;
    size_t doubled = 0;
    for (;; s->at += 2, doubled++) {
        const char *quote = memchr(s->at, '"', (size_t)(s->end - s->at));
        if (!quote) {
            s->fault = "the quotation mark that opens the cell is never closed";
            return PITH_CSV_FAULT;
        }
        s->at = quote;
        if (quote + 1 == s->end || quote[1] != '"') break;
    }
    *cell = (pith_str){ begin, (size_t)(s->at - begin) };
    s->at++;
    const pith_str tail = csv_plain(s);
    if (tail.size && !s->loose) {
        s->fault = "text follows the closing quotation mark; a quotation mark within a cell is "
                   "written twice";
        return PITH_CSV_FAULT;
    }
    if (!csv_decode(s, cell, doubled, tail)) return PITH_CSV_MEMORY;
    return csv_after_cell(s);
}

pith__csv_after pith__csv_next(pith__csv_scan *s, pith_str *cell) {
    if (s->at < s->end && *s->at == '"') return csv_quoted(s, cell);
    *cell = csv_plain(s);
    return csv_after_cell(s);
}

bool pith__csv_blank(pith__csv_scan *s) {
    if (s->at == s->end || (*s->at != '\n' && *s->at != '\r')) return false;
    csv_after_cell(s);
    return true;
}

static pith_status csv_header(pith__text_table *t, pith__csv_scan *s, pith_error *err) {
    pith__map seen;
    size_t room = 0;
    pith__csv_after after;
    PITH_TRY(pith__map_init(&seen, s->arena, 16));
    do {
        pith_str name;
        uint32_t old;
        if (!pith__arena_grow(s->arena, (void **)&t->names, t->columns, &room, sizeof *t->names))
            return pith__fail_memory(err, (t->columns + 1) * sizeof *t->names);
        after = pith__csv_next(s, &name);
        if (after == PITH_CSV_FAULT)
            return pith__fail(err, PITH_ERR_FORMAT, "%s: header, column %zu: %s", t->path,
                              t->columns + 1, s->fault);
        if (after == PITH_CSV_MEMORY) return pith__fail_memory(err, name.size);
        /* as pandas writes its index */
        if (!name.size && !t->columns) name = PITH_STR(PITH_CSV_UNNAMED);
        if (!name.size)
            return pith__fail(err, PITH_ERR_FORMAT, "%s: column %zu has no name", t->path,
                              t->columns + 1);
        if (!pith__map_put(&seen, name, (uint32_t)t->columns, &old))
            return pith__fail_memory(err, name.size);
        if (old != UINT32_MAX)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: columns %u and %zu are both named '" PITH_STR_FMT "'", t->path,
                              old + 1, t->columns + 1, PITH_STR_ARG(name));
        t->names[t->columns++] = name;
    } while (after == PITH_CSV_CELL);
    return PITH_OK;
}

static pith_status csv_fail(const pith__text_table *t, size_t row, size_t column, const char *fault,
                            pith_error *err) {
    if (column < t->columns)
        return pith__fail(err, PITH_ERR_FORMAT, "%s: row %zu, column '" PITH_STR_FMT "': %s",
                          t->path, row + 1, PITH_STR_ARG(t->names[column]), fault);
    return pith__fail(err, PITH_ERR_FORMAT, "%s: row %zu, column %zu: %s", t->path, row + 1,
                      column + 1, fault);
}

/* Reads all rows; stores the cells if t->cells is there, else counts the rows. */
static pith_status csv_rows(pith__text_table *t, pith__csv_scan *s, pith__stop *stop,
                            pith_error *err) {
    size_t row = 0;
    while (s->at < s->end) {
        size_t n = 0;
        pith__csv_after after;
        PITH_TRY_ROW(stop, row, err);
        if (t->columns > 1 && pith__csv_blank(s)) continue;
        do {
            pith_str cell;
            after = pith__csv_next(s, &cell);
            if (after == PITH_CSV_FAULT) return csv_fail(t, row, n, s->fault, err);
            if (after == PITH_CSV_MEMORY) return pith__fail_memory(err, cell.size);
            if (t->cells && n < t->columns) t->cells[row * t->columns + n] = cell;
            n++;
        } while (after == PITH_CSV_CELL);
        if (n != t->columns)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: row %zu has %zu cells, but the header has %zu", t->path, row + 1,
                              n, t->columns);
        row++;
    }
    t->rows = row;
    return PITH_OK;
}

/* Text is looked at in pieces; a piece may end within a character, which begins the next one. */
static pith_status csv_check_text(const pith__text_table *t, pith_str bytes, pith__stop *stop,
                                  pith_error *err) {
    size_t valid = 0, line = 1;
    while (valid < bytes.size) {
        const size_t left = bytes.size - valid,
                     piece = left < PITH_WORK_BYTES ? left : PITH_WORK_BYTES,
                     right = pith__utf8_valid_prefix(bytes.data + valid, piece);
        PITH_TRY(pith__stop_check(stop, err));
        valid += right;
        if (right < piece && (piece == left || piece - right > 3)) break;
    }
    if (valid == bytes.size) return PITH_OK;
    for (size_t i = 0; i < valid; i++) line += bytes.data[i] == '\n';
    return pith__fail(
        err, PITH_ERR_FORMAT,
        "%s: line %zu: the text is not UTF-8; convert the file, for example with iconv", t->path,
        line);
}

char pith__csv_delimiter(pith_str bytes, char usual) {
    static const char others[] = ";\t|";
    bool quoted = false, there[sizeof others] = { false };
    for (size_t i = 0; i < bytes.size; i++) {
        const char c = bytes.data[i];
        if (c == '"') quoted = !quoted;
        if (quoted) continue;
        if (c == usual) return usual;
        if (c == '\n' || c == '\r') break;
        for (size_t k = 0; others[k]; k++) there[k] |= c == others[k];
    }
    for (size_t k = 0; others[k]; k++)
        if (there[k]) return others[k];
    return usual;
}

pith_status pith__csv_parse(pith__text_table *table, pith_str bytes, char delimiter,
                            const char *path, pith__stop *stop, pith__arena *arena,
                            pith_error *err) {
    pith__text_table t = { .path = path };
    size_t count, size;
    pith__csv_scan s = pith__csv_begin(bytes, delimiter);
    s.arena = arena;
    PITH_TRY(csv_check_text(&t, (pith_str){ s.at, (size_t)(s.end - s.at) }, stop, err));
    if (s.at == s.end)
        return pith__fail(err, PITH_ERR_FORMAT, "%s is empty; its first line names the columns",
                          path);
    PITH_TRY(csv_header(&t, &s, err));
    pith__csv_scan first = s;
    first.arena = NULL;
    PITH_TRY(csv_rows(&t, &first, stop, err));
    if (t.rows >= UINT32_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s has more than 4294967294 rows", path);
    if (pith__mul_overflows(t.rows, t.columns, &count) ||
        pith__mul_overflows(count, sizeof *t.cells, &size))
        return pith__fail_memory(err, SIZE_MAX);
    t.cells = pith__arena_array(arena, count + 1, sizeof *t.cells);
    if (!t.cells) return pith__fail_memory(err, size);
    PITH_TRY(csv_rows(&t, &s, stop, err));
    *table = t;
    return PITH_OK;
}

bool pith__text_table_room(pith__text_table *t, size_t *room, pith__arena *arena) {
    const size_t used = t->rows * t->columns;
    if (*room - used >= t->columns && t->cells) return true;
    const size_t wanted = 2 * *room + 64 * t->columns;
    pith_str *cells = pith__arena_array(arena, wanted, sizeof *cells);
    if (!cells) return false;
    if (used) memcpy(cells, t->cells, used * sizeof *cells);
    t->cells = cells;
    *room = wanted;
    return true;
}

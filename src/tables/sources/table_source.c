/* table_source.c - see table_source.h. */
#include "tables/sources/table_source.h"

#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "tables/formats/gzip.h"
#include "tables/formats/zstandard.h"
#include "tables/schema/cell_value.h"

#define TABLE_SOURCE(name) extern const pith__source_kind pith__source_kind_##name;
#include "tables/sources/table_sources.def"
#undef TABLE_SOURCE

static const pith__source_kind *const source_kinds[] = {
#define TABLE_SOURCE(name) &pith__source_kind_##name,
#include "tables/sources/table_sources.def"
#undef TABLE_SOURCE
    NULL
};

/* Where a '?' stands before the last '@', either may be a part of a password, so that only the
 * beginning is shown. */
pith_str pith__source_shown(pith__arena *arena, const char *address) {
    const char *scheme = strstr(address, "//"), *begin = scheme ? scheme + 2 : address;
    const char *at = strrchr(begin, '@'), *parameters = strchr(begin, '?');
    const bool keys = !scheme && strcasestr(address, "password");
    if (keys || (parameters && at && parameters < at))
        return pith__arena_printf(
            arena, "%.*s…", (int)(keys ? 0 : strcspn(begin, ":@/?") + (size_t)(begin - address)),
            address);
    if (!scheme) return pith__arena_str(arena, pith__str_of(address));
    const size_t user = at ? strcspn(begin, ":@") : 0,
                 shown = parameters ? (size_t)(parameters - begin) : strlen(begin);
    if (!at) at = begin;
    return pith__arena_printf(arena, "%.*s%.*s", (int)((size_t)(begin - address) + user), address,
                              (int)(shown - (size_t)(at - begin)), at);
}

pith_status pith__table_source_open(pith__table_source *source, const char *path, pith__stop *stop,
                                    pith__arena *arena, pith_error *err) {
    *source = (pith__table_source){
        .path = path, .arena = arena, .files = { .arena = arena }, .stop = stop
    };
    for (size_t i = 0; source_kinds[i] && !source->kind; i++)
        if (source_kinds[i]->takes(path)) source->kind = source_kinds[i];
    if (!source->kind) {
        const pith_str shown = pith__source_shown(arena, path);
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "%s is no source of tables: no directory, zip archive, SQLite file or "
                          "postgresql:// address",
                          shown.data ? shown.data : "it");
    }
    const pith_status status = source->kind->open(source, err);
    if (status) pith__files_close(&source->files);
    return status;
}

void pith__table_source_close(pith__table_source *source) {
    if (source->kind->close) source->kind->close(source);
    pith__files_close(&source->files);
}

bool pith__source_begins(const char *path, const char *bytes, size_t size) {
    char begin[64];
    FILE *f = pith__dir_exists(path) ? NULL : fopen(path, "rb");
    if (!f) return false;
    const size_t n = fread(begin, 1, size < sizeof begin ? size : sizeof begin, f);
    fclose(f);
    return n == size && !memcmp(begin, bytes, size);
}

pith_status pith__source_take_columns(pith__source_table *to, const pith__text_table *rows,
                                      pith__declared (*declared)(pith_str type), pith__arena *arena,
                                      pith_error *err) {
    to->types = pith__arena_array(arena, rows->rows + 1, sizeof *to->types);
    to->primary_key.items = pith__arena_array(arena, rows->rows + 1, sizeof(pith_str));
    to->columns.items = pith__arena_array(arena, rows->rows + 1, sizeof(pith_str));
    if (!to->types || !to->primary_key.items || !to->columns.items)
        return pith__fail_memory(err, rows->rows * sizeof(pith_str));
    for (size_t r = 0; r < rows->rows; r++) {
        const pith_str *row = &rows->cells[r * 3];
        double key = 0;
        to->columns.items[to->columns.count++] = row[0];
        to->types[r] = declared(row[1]);
        if (!pith__cell_number(&key, row[2]) || key < 1 || key > (double)rows->rows) continue;
        to->primary_key.items[(size_t)key - 1] = row[0];
        to->primary_key.count++;
    }
    return PITH_OK;
}

pith_status pith__source_take_link(pith__link_schema **link, pith__source_table *to,
                                   const pith__text_table *rows, size_t r, pith__arena *arena,
                                   pith_error *err) {
    const pith_str *row = &rows->cells[r * 4];
    if (!r) to->links = pith__arena_array(arena, rows->rows, sizeof *to->links);
    if (!to->links) return pith__fail_memory(err, rows->rows * sizeof *to->links);
    if (!r || !pith__str_eq(row[0], row[-4])) {
        pith__link_schema *next = &to->links[to->link_count++];
        next->parent = row[1];
        next->columns.items = pith__arena_array(arena, rows->rows, 2 * sizeof(pith_str));
        if (!next->columns.items) return pith__fail_memory(err, rows->rows * sizeof(pith_str));
        next->parent_columns.items = next->columns.items + rows->rows;
    }
    *link = &to->links[to->link_count - 1];
    return PITH_OK;
}

static bool source_ends(pith_str *name, const char *end) {
    const size_t n = strlen(end);
    if (name->size <= n || strncasecmp(name->data + name->size - n, end, n) != 0) return false;
    name->size -= n;
    return true;
}

static void source_unpacked(pith_str *file) {
    if (!source_ends(file, ".gz")) source_ends(file, ".zst");
}

pith_str pith__source_plain(pith_str file) {
    source_unpacked(&file);
    if (!source_ends(&file, ".csv")) source_ends(&file, ".tsv");
    return file;
}

pith_str pith__source_table_name(pith_str file) {
    return pith__source_plain(pith__path_name(file));
}

pith_status pith__source_twice(pith_str one, pith_str other, pith_error *err) {
    return pith__fail(err, PITH_ERR_FORMAT,
                      "the schema does not say which of '" PITH_STR_FMT "' and '" PITH_STR_FMT
                      "' holds the table; name the file in a schema",
                      PITH_STR_ARG(one), PITH_STR_ARG(other));
}

const char *const pith__source_endings[PITH_SOURCE_ENDINGS] = {
    "", ".gz", ".zst", ".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".CSV", ".TSV"
};

bool pith__source_is_table(pith_str file) {
    source_unpacked(&file);
    return source_ends(&file, ".csv") || source_ends(&file, ".tsv");
}

pith_status pith__source_parse(pith__text_table *table, pith_str bytes, pith_str file,
                               const char *path, const pith__table_source *source,
                               pith_error *err) {
    pith__arena *arena = source->arena;
    if (pith__gzip_is(bytes))
        PITH_TRY(pith__gzip_unpack(&bytes, bytes, path, source->stop, arena, err));
    else if (pith__zstandard_is(bytes))
        PITH_TRY(pith__zstandard_unpack(&bytes, bytes, path, source->stop, arena, err));
    source_unpacked(&file);
    const char delimiter = pith__csv_delimiter(bytes, source_ends(&file, ".tsv") ? '\t' : ',');
    return pith__csv_parse(table, bytes, delimiter, path, source->stop, arena, err);
}

pith_str pith__source_quoted(pith__arena *arena, pith_str name) {
    char *text = pith__arena_alloc(arena, 2 * name.size + 3), *p = text;
    if (!text) return (pith_str){ NULL, 0 };
    *p++ = '"';
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '"') *p++ = '"';
        *p++ = name.data[i];
    }
    *p++ = '"';
    *p = 0;
    return (pith_str){ text, (size_t)(p - text) };
}

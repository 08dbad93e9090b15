/* source.c - see source.h. */
#include "relational/source.h"

#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "relational/gzip.h"
#include "relational/zstandard.h"

pith_status pith_table_source_open(pith_table_source *source, const char *path, pith_arena *arena, pith_error *err) {
    *source = (pith_table_source){ .path = path, .arena = arena, .files = { .arena = arena } };
    for (size_t i = 0; pith_source_kind_table[i] && !source->kind; i++)
        if (pith_source_kind_table[i]->takes(path)) source->kind = pith_source_kind_table[i];
    if (!source->kind)
        return pith_fail(err, PITH_ERR_NOT_FOUND,
                         "%s is no source of tables: no directory, zip archive, SQLite file or postgresql:// address",
                         path);
    const pith_status status = source->kind->open(source, err);
    if (status) pith_files_close(&source->files);
    return status;
}

void pith_table_source_close(pith_table_source *source) {
    if (source->kind->close) source->kind->close(source);
    pith_files_close(&source->files);
}

bool pith_source_begins(const char *path, const char *bytes, size_t size) {
    char begin[64];
    FILE *f = pith_dir_exists(path) ? NULL : fopen(path, "rb");
    if (!f) return false;
    const size_t n = fread(begin, 1, size < sizeof begin ? size : sizeof begin, f);
    fclose(f);
    return n == size && !memcmp(begin, bytes, size);
}

static bool source_ends(pith_str *name, const char *end) {
    const size_t n = strlen(end);
    if (name->size <= n || memcmp(name->data + name->size - n, end, n) != 0) return false;
    name->size -= n;
    return true;
}

static void source_unpacked(pith_str *file) {
    if (!source_ends(file, ".gz")) source_ends(file, ".zst");
}

pith_str pith_source_table_name(pith_str file) {
    file = pith_path_name(file);
    source_unpacked(&file);
    if (!source_ends(&file, ".csv")) source_ends(&file, ".tsv");
    return file;
}

bool pith_source_is_table(pith_str file) {
    source_unpacked(&file);
    return source_ends(&file, ".csv") || source_ends(&file, ".tsv");
}

pith_status pith_source_parse(pith_text_table *table, pith_str bytes, pith_str file, const char *path,
                              pith_arena *arena, pith_error *err) {
    if (pith_gzip_is(bytes))
        PITH_TRY(pith_gzip_unpack(&bytes, bytes, path, arena, err));
    else if (pith_zstandard_is(bytes))
        PITH_TRY(pith_zstandard_unpack(&bytes, bytes, path, arena, err));
    source_unpacked(&file);
    return pith_csv_parse(table, bytes, source_ends(&file, ".tsv") ? '\t' : ',', path, arena, err);
}

pith_str pith_source_quoted(pith_arena *arena, pith_str name) {
    char *text = pith_arena_alloc(arena, 2 * name.size + 3), *p = text;
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

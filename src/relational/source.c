/* source.c - see source.h. */
#include "relational/source.h"

#include "base/error.h"
#include "base/str.h"
#include "relational/gzip.h"

pith_status pith_table_source_open(pith_table_source *source, const char *path, pith_arena *arena, pith_error *err) {
    if (!pith_dir_exists(path))
        return pith_fail(err, PITH_ERR_NOT_FOUND,
                         "%s is no directory; a source is a directory of .csv and .tsv files, which may be .gz", path);
    *source = (pith_table_source){ path, arena, { .arena = arena } };
    return PITH_OK;
}

void pith_table_source_close(pith_table_source *source) { pith_files_close(&source->files); }

static bool source_ends(pith_str *name, const char *end) {
    const size_t n = strlen(end);
    if (name->size <= n || memcmp(name->data + name->size - n, end, n) != 0) return false;
    name->size -= n;
    return true;
}

pith_str pith_table_source_table_name(pith_str file) {
    source_ends(&file, ".gz");
    if (!source_ends(&file, ".csv")) source_ends(&file, ".tsv");
    return file;
}

static bool source_is_table(pith_str file) {
    source_ends(&file, ".gz");
    return source_ends(&file, ".csv") || source_ends(&file, ".tsv");
}

pith_status pith_table_source_list(pith_str **files, size_t *count, pith_table_source *source, pith_error *err) {
    pith_str *names;
    size_t all, n = 0;
    PITH_TRY(pith_dir_names(&names, &all, source->path, source->arena, err));
    for (size_t i = 0; i < all; i++)
        if (source_is_table(names[i])) names[n++] = names[i];
    if (!n) return pith_fail(err, PITH_ERR_NOT_FOUND, "%s holds no .csv or .tsv file", source->path);
    *files = names;
    *count = n;
    return PITH_OK;
}

pith_status pith_table_source_read(pith_text_table *table, pith_table_source *source, pith_str file, pith_error *err) {
    pith_str path, bytes;
    PITH_TRY(pith_path_join(&path, source->arena, source->path, file, err));
    PITH_TRY(pith_files_open(&bytes, &source->files, path.data, err));
    if (pith_gzip_is(bytes)) PITH_TRY(pith_gzip_unpack(&bytes, bytes, path.data, source->arena, err));
    source_ends(&file, ".gz");
    return pith_csv_parse(table, bytes, source_ends(&file, ".tsv") ? '\t' : ',', path.data, source->arena, err);
}

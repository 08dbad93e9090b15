/* source_directory.c - the .csv and .tsv files of a directory, plain or packed. */
#include "base/error.h"
#include "base/str.h"
#include "tables/sources/table_source.h"

static bool directory_takes(const char *path) { return pith__dir_exists(path); }

static pith_status directory_open(pith__table_source *source, pith_error *err) {
    (void)source, (void)err;
    return PITH_OK;
}

static pith_status directory_list(pith__source_table **tables, size_t *count,
                                  pith__table_source *source, pith_error *err) {
    pith_str *names;
    size_t all, n = 0;
    PITH_TRY(pith__dir_names(&names, &all, source->path, source->arena, err));
    pith__source_table *list = pith__arena_array(source->arena, all + 1, sizeof *list);
    if (!list) return pith__fail_memory(err, all * sizeof *list);
    for (size_t i = 0; i < all; i++)
        if (pith__source_is_table(names[i]))
            list[n++] =
                (pith__source_table){ .name = pith__source_table_name(names[i]), .file = names[i] };
    if (!n)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "%s holds no .csv or .tsv file", source->path);
    *tables = list;
    *count = n;
    return PITH_OK;
}

/* The path of the file, or where the name has no ending of the one file that has one. */
static pith_status directory_find(pith_str *path, const pith__table_source *source, pith_str file,
                                  pith_error *err) {
    pith_str found = { NULL, 0 };
    for (size_t i = 0; i < PITH_SOURCE_ENDINGS; i++) {
        const pith_str name = pith__arena_printf(source->arena, PITH_STR_FMT "%s",
                                                 PITH_STR_ALL(file), pith__source_endings[i]);
        pith_str one;
        bool there;
        if (!name.data) return pith__fail_memory(err, file.size);
        PITH_TRY(pith__path_join(&one, source->arena, source->path, name, err));
        there = false; /* a folder may have the name without an ending */
        if (i || !pith__dir_exists(one.data))
            PITH_TRY(pith__file_there(&there, one.data, NULL, err));
        if (there && found.data) return pith__source_twice(found, one, err);
        if (there) found = one;
        if (there && !i) break;
    }
    *path = found;
    return found.data ? PITH_OK : pith__path_join(path, source->arena, source->path, file, err);
}

static pith_status directory_read(pith__text_table *table, pith__table_source *source,
                                  pith_str file, pith_error *err) {
    pith_str path, bytes;
    PITH_TRY(directory_find(&path, source, file, err));
    PITH_TRY(pith__files_open(&bytes, &source->files, path.data, err));
    return pith__source_parse(table, bytes, path, path.data, source, err);
}

static pith_status directory_schema(pith_str *text, pith_str *path, pith__table_source *source,
                                    pith_error *err) {
    bool there;
    PITH_TRY(pith__file_find(&there, path, source->arena, source->path, "schema.json", err));
    return there ? pith__files_open(text, &source->files, path->data, err) : PITH_OK;
}

const pith__source_kind pith__source_kind_directory = {
    directory_takes, directory_open, directory_list, directory_read, directory_schema, NULL, NULL
};

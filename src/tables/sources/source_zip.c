/* source_zip.c - a zip archive whose members are .csv and .tsv files, stored or deflated. */
#include <stdlib.h>

#include "base/error.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "tables/formats/zip_unpack.h"
#include "tables/sources/table_source.h"

/* A read looks at all names, so the number of members is bounded. */
enum { ZIP_MEMBERS = 65534 };

static bool zip_takes(const char *path) {
    return pith__source_begins(path, "PK\3\4", 4) || pith__source_begins(path, "PK\5\6", 4);
}

static pith_status zip_damaged(const pith__table_source *source, pith__zip_fault fault,
                               pith_error *err) {
    static const char *const says[] = {
        [PITH_ZIP_SHORT] = "it has no directory at its end",
        [PITH_ZIP_NO_END] = "it has no directory at its end",
        [PITH_ZIP_NO_END64] = "its zip64 directory is not there",
        [PITH_ZIP_OUTSIDE] = "its directory is outside the file",
        [PITH_ZIP_BROKEN] = "its directory is broken",
        [PITH_ZIP_FIELD64] = "a member has a damaged zip64 field",
        [PITH_ZIP_NOT_THERE] = "a member is outside the file",
        [PITH_ZIP_REACHES_OUT] = "a member is outside the file",
    };
    if (fault == PITH_ZIP_MEMORY) return pith__fail_memory(err, 0);
    return pith__fail(err, PITH_ERR_FORMAT, "%s is a damaged zip archive: %s", source->path,
                      says[fault]);
}

static pith_status zip_open(pith__table_source *source, pith_error *err) {
    pith__zip *z = pith__arena_array(source->arena, 1, sizeof *z);
    pith_str file;
    if (!z) return pith__fail_memory(err, sizeof *z);
    PITH_TRY(pith__files_open(&file, &source->files, source->path, err));
    const pith__zip_fault fault = pith__zip_read(z, file, source->arena);
    if (fault) return zip_damaged(source, fault, err);
    if (z->trailing) return zip_damaged(source, PITH_ZIP_NO_END, err);
    if (z->count > ZIP_MEMBERS)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s has %zu members, but at most %d are read; unpack it", source->path,
                          z->count, ZIP_MEMBERS);
    source->state = z;
    return PITH_OK;
}

/* The bytes of a member, unpacked and checked. */
static pith_status zip_extract(pith_str *bytes, pith__table_source *source,
                               const pith__zip_member *m, const char *path, pith_error *err) {
    pith_str packed;
    const pith__zip_fault fault = pith__zip_packed(&packed, source->state, m);
    if (fault) return zip_damaged(source, fault, err);
    return pith__zip_unpack(bytes, source->state, m, packed, source->path, path, source->stop,
                            source->arena, err);
}

static int zip_compare(const void *a, const void *b) {
    const pith__source_table *x = a, *y = b;
    const size_t n = x->name.size < y->name.size ? x->name.size : y->name.size;
    const int order = memcmp(x->name.data, y->name.data, n);
    return order ? order : (x->name.size > y->name.size) - (x->name.size < y->name.size);
}

/* Members are sorted by name, so that the database does not depend on the order of the archive. */
static pith_status zip_list(pith__source_table **tables, size_t *count, pith__table_source *source,
                            pith_error *err) {
    const pith__zip *z = source->state;
    pith__source_table *list = pith__arena_array(source->arena, z->count + 1, sizeof *list);
    size_t n = 0;
    if (!list) return pith__fail_memory(err, z->count * sizeof *list);
    for (size_t i = 0; i < z->count; i++) {
        const pith_str name = z->members[i].name;
        if (!pith__source_is_table(name)) continue;
        if (pith__utf8_valid_prefix(name.data, name.size) != name.size)
            return pith__fail(err, PITH_ERR_FORMAT, "%s: the name of member %zu is not UTF-8",
                              source->path, i + 1);
        list[n++] = (pith__source_table){ .name = pith__source_table_name(name), .file = name };
    }
    if (!n)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "%s holds no .csv or .tsv file", source->path);
    qsort(list, n, sizeof *list, zip_compare);
    *tables = list;
    *count = n;
    return PITH_OK;
}

static pith_status zip_member_read(pith_str *bytes, pith_str *path, pith__table_source *source,
                                   pith_str name, bool *there, pith_error *err) {
    const pith__zip *z = source->state;
    *there = false;
    *path = pith__arena_printf(source->arena, "%s/" PITH_STR_FMT, source->path, PITH_STR_ALL(name));
    if (!path->data) return pith__fail_memory(err, name.size);
    for (size_t i = 0; i < z->count && !*there; i++) {
        if (!pith__str_eq(z->members[i].name, name)) continue;
        *there = true;
        PITH_TRY(zip_extract(bytes, source, &z->members[i], path->data, err));
    }
    return PITH_OK;
}

/* Completes a name without an ending, if one member has one. */
static pith_status zip_find(pith_str *file, const pith__zip *z, pith__arena *arena,
                            pith_error *err) {
    pith_str found = { NULL, 0 };
    for (size_t k = 0; k < PITH_SOURCE_ENDINGS; k++) {
        const pith_str name = pith__arena_printf(arena, PITH_STR_FMT "%s", PITH_STR_ALL(*file),
                                                 pith__source_endings[k]);
        bool there = false;
        if (!name.data) return pith__fail_memory(err, file->size);
        for (size_t i = 0; i < z->count && !there; i++)
            there = pith__str_eq(z->members[i].name, name);
        if (there && found.data) return pith__source_twice(found, name, err);
        if (there) found = name;
        if (there && !k) break;
    }
    if (found.data) *file = found;
    return PITH_OK;
}

static pith_status zip_read(pith__text_table *table, pith__table_source *source, pith_str file,
                            pith_error *err) {
    pith_str path, bytes;
    bool there;
    PITH_TRY(zip_find(&file, source->state, source->arena, err));
    PITH_TRY(zip_member_read(&bytes, &path, source, file, &there, err));
    if (!there)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "%s has no member '" PITH_STR_FMT "'",
                          source->path, PITH_STR_ARG(file));
    return pith__source_parse(table, bytes, file, path.data, source, err);
}

static pith_status zip_schema(pith_str *text, pith_str *path, pith__table_source *source,
                              pith_error *err) {
    bool there;
    PITH_TRY(zip_member_read(text, path, source, PITH_STR("schema.json"), &there, err));
    return PITH_OK;
}

const pith__source_kind pith__source_kind_zip = { zip_takes,  zip_open, zip_list, zip_read,
                                                  zip_schema, NULL,     NULL };

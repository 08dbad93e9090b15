/* source_zip.c - a zip archive whose members are .csv and .tsv files. Source of the format:
 * APPNOTE.TXT of PKWARE, version 6.3.10. Members are found by the directory at the end, stored or
 * deflated; sizes that need zip64 are refused, as are encrypted members. */
#include <stdlib.h>

#include "base/error.h"
#include "base/formats/zlib_library.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "tables/sources/source.h"

enum {
    ZIP_END_BYTES = 22,
    ZIP_ENTRY_BYTES = 46,
    ZIP_LOCAL_BYTES = 30,
    ZIP_COMMENT = 65535,
    ZIP_DENSEST = 1032
};

typedef struct zip_member {
    pith_str name;
    uint32_t crc, packed, size, offset;
    uint16_t flags, method;
} zip_member;

typedef struct zip_archive {
    pith_str bytes;
    zip_member *members;
    size_t count, unpacked; /* bytes of the members that were read; members may share their packed
                               bytes */
} zip_archive;

static uint32_t zip_number(const char *p, int bytes) {
    uint32_t x = 0;
    for (int i = bytes; i-- > 0;) x = x << 8 | (uint8_t)p[i];
    return x;
}

static pith_status zip_damaged(const pith__table_source *source, const char *what,
                               pith_error *err) {
    return pith__fail(err, PITH_ERR_FORMAT, "%s is a damaged zip archive: %s", source->path, what);
}

static bool zip_takes(const char *path) {
    return pith__source_begins(path, "PK\3\4", 4) || pith__source_begins(path, "PK\5\6", 4);
}

/* The record that ends an archive, or NULL. */
static const char *zip_end(pith_str bytes) {
    if (bytes.size < ZIP_END_BYTES) return NULL;
    const size_t first = bytes.size - ZIP_END_BYTES,
                 back = first < ZIP_COMMENT ? first : ZIP_COMMENT;
    for (size_t i = 0; i <= back; i++) {
        const char *p = bytes.data + first - i;
        if (!memcmp(p, "PK\5\6", 4) && zip_number(p + 20, 2) == i) return p;
    }
    return NULL;
}

static pith_status zip_directory(zip_archive *z, pith__table_source *source, const char *end,
                                 pith_error *err) {
    const size_t count = zip_number(end + 10, 2), size = zip_number(end + 12, 4),
                 offset = zip_number(end + 16, 4);
    const size_t limit = (size_t)(end - z->bytes.data);
    if (count == 0xFFFF || offset == UINT32_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s needs zip64, which is not read; unpack it",
                          source->path);
    if (offset > limit || size > limit - offset)
        return zip_damaged(source, "its directory is outside the file", err);
    z->members = pith__arena_array(source->arena, count + 1, sizeof *z->members);
    if (!z->members) return pith__fail_memory(err, count * sizeof *z->members);
    const char *p = z->bytes.data + offset, *const stop = p + size;
    for (size_t i = 0; i < count; i++) {
        zip_member *m = &z->members[z->count++];
        if (stop - p < ZIP_ENTRY_BYTES || memcmp(p, "PK\1\2", 4) != 0)
            return zip_damaged(source, "its directory is broken", err);
        const size_t name = zip_number(p + 28, 2),
                     more = zip_number(p + 30, 2) + zip_number(p + 32, 2);
        if ((size_t)(stop - p) - ZIP_ENTRY_BYTES < name + more)
            return zip_damaged(source, "its directory is broken", err);
        *m = (zip_member){ { p + ZIP_ENTRY_BYTES, name },  zip_number(p + 16, 4),
                           zip_number(p + 20, 4),          zip_number(p + 24, 4),
                           zip_number(p + 42, 4),          (uint16_t)zip_number(p + 8, 2),
                           (uint16_t)zip_number(p + 10, 2) };
        p += ZIP_ENTRY_BYTES + name + more;
    }
    return PITH_OK;
}

static pith_status zip_open(pith__table_source *source, pith_error *err) {
    zip_archive *z = pith__arena_array(source->arena, 1, sizeof *z);
    if (!z) return pith__fail_memory(err, sizeof *z);
    PITH_TRY(pith__files_open(&z->bytes, &source->files, source->path, err));
    const char *end = zip_end(z->bytes);
    if (!end) return zip_damaged(source, "it has no directory at its end", err);
    source->state = z;
    return zip_directory(z, source, end, err);
}

/* The bytes of a member, unpacked and checked. */
static pith_status zip_extract(pith_str *bytes, pith__table_source *source, const zip_member *m,
                               const char *path, pith_error *err) {
    zip_archive *z = source->state;
    uint32_t crc;
    if (m->flags & 1)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s is encrypted; unpack it", path);
    if (m->packed == UINT32_MAX || m->size == UINT32_MAX || m->offset == UINT32_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s needs zip64, which is not read; unpack it",
                          path);
    if (z->bytes.size < ZIP_LOCAL_BYTES || m->offset > z->bytes.size - ZIP_LOCAL_BYTES ||
        memcmp(z->bytes.data + m->offset, "PK\3\4", 4) != 0)
        return zip_damaged(source, "a member is outside the file", err);
    const char *local = z->bytes.data + m->offset;
    const size_t begin =
        m->offset + ZIP_LOCAL_BYTES + zip_number(local + 26, 2) + zip_number(local + 28, 2);
    if (begin > z->bytes.size || m->packed > z->bytes.size - begin)
        return zip_damaged(source, "a member is outside the file", err);
    const pith_str packed = { z->bytes.data + begin, m->packed };
    pith__unpacked t = { .arena = source->arena };
    *bytes = packed;
    if (m->method == 8 && m->size / ZIP_DENSEST > m->packed)
        return zip_damaged(source, "a member's size cannot be", err);
    z->unpacked += m->size;
    if (z->unpacked > pith__unpacked_most(z->bytes.size))
        return pith__unpacked_fail(source->path, err);
    if (m->method == 8) {
        if (!pith__unpacked_room(&t, (size_t)m->size + 1)) return pith__fail_memory(err, m->size);
        PITH_TRY(pith__inflate(&t, packed, PITH_INFLATE_RAW, m->size, "zip member", path, err));
        *bytes = (pith_str){ t.data, t.size };
    } else if (m->method) {
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s is packed by method %u; deflate is read",
                          path, m->method);
    }
    if (bytes->size != m->size)
        return pith__fail(err, PITH_ERR_FORMAT, "%s is damaged: its size is wrong", path);
    PITH_TRY(pith__crc32(&crc, *bytes, path, err));
    return crc == m->crc
               ? PITH_OK
               : pith__fail(err, PITH_ERR_FORMAT, "%s is damaged: its CRC-32 is wrong", path);
}

static int zip_compare(const void *a, const void *b) {
    const pith__source_table *x = a, *y = b;
    const size_t n = x->name.size < y->name.size ? x->name.size : y->name.size;
    const int order = memcmp(x->name.data, y->name.data, n);
    return order ? order : (x->name.size > y->name.size) - (x->name.size < y->name.size);
}

static pith_status zip_list(pith__source_table **tables, size_t *count, pith__table_source *source,
                            pith_error *err) {
    const zip_archive *z = source->state;
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
    const zip_archive *z = source->state;
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
static pith_status zip_find(pith_str *file, const zip_archive *z, pith__arena *arena,
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
    return pith__source_parse(table, bytes, file, path.data, source->arena, err);
}

static pith_status zip_schema(pith_str *text, pith_str *path, pith__table_source *source,
                              pith_error *err) {
    bool there;
    PITH_TRY(zip_member_read(text, path, source, PITH_STR("schema.json"), &there, err));
    return PITH_OK;
}

const pith__source_kind pith__source_kind_zip = { zip_takes,  zip_open, zip_list, zip_read,
                                                  zip_schema, NULL,     NULL };

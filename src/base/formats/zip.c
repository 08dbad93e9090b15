/* zip.c - see zip.h. The directory is found from the end of the file, and every number in it is
 * compared with the bytes that are there. */
#include "base/formats/zip.h"

#include <string.h>

#define ZIP_LOCAL "PK\3\4"
#define ZIP_CENTRAL "PK\1\2"
#define ZIP_END "PK\5\6"
#define ZIP_END64 "PK\6\6"
#define ZIP_LOCATOR64 "PK\6\7"
enum {
    ZIP_LOCAL_SIZE = 30,
    ZIP_CENTRAL_SIZE = 46,
    ZIP_END_SIZE = 22,
    ZIP_END64_SIZE = 56,
    ZIP_LOCATOR64_SIZE = 20,
    ZIP_COMMENT_MOST = 65535
};

static uint64_t zip_number(const char *p, int bytes) {
    uint64_t n = 0;
    for (int i = bytes; i-- > 0;) n = n << 8 | (uint8_t)p[i];
    return n;
}

static bool zip_signed(const char *p, const char *signature) { return !memcmp(p, signature, 4); }

/* Where the directory is. */
typedef struct zip_end {
    uint64_t offset, size, count, limit; /* limit: where it must have ended */
} zip_end;

/* The record that ends the archive: the last one whose comment ends with the file, else the last
 * one. */
static pith__zip_fault zip_find_record(size_t *at, pith__zip *zip) {
    const pith_str file = zip->file;
    bool found = false;
    if (file.size < ZIP_END_SIZE) return PITH_ZIP_SHORT;
    const size_t first = file.size - ZIP_END_SIZE,
                 back = first < ZIP_COMMENT_MOST ? first : ZIP_COMMENT_MOST;
    for (size_t i = 0; i <= back; i++) {
        const char *p = file.data + first - i;
        if (!zip_signed(p, ZIP_END)) continue;
        const size_t comment = (size_t)zip_number(p + 20, 2);
        if (comment != i && found) continue;
        *at = first - i;
        zip->trailing = comment < i ? i - comment : comment - i;
        if (comment == i) return PITH_ZIP_OK;
        found = true;
    }
    return found ? PITH_ZIP_OK : PITH_ZIP_NO_END;
}

/* The end record, or the zip64 one that a locator right before it points to, whose numbers then
 * count. All numbers are compared with the file's size before they are used; a count may not be
 * larger than what its directory can hold. Source: PKWARE's APPNOTE, sections 4.3.14 to 4.3.16. */
static pith__zip_fault zip_find_end(zip_end *end, pith__zip *zip) {
    const pith_str file = zip->file;
    size_t at = 0;
    const pith__zip_fault fault = zip_find_record(&at, zip);
    if (fault) return fault;
    const char *p = file.data + at;
    *end = (zip_end){ zip_number(p + 16, 4), zip_number(p + 12, 4), zip_number(p + 10, 2), at };
    if (at >= ZIP_LOCATOR64_SIZE && zip_signed(p - ZIP_LOCATOR64_SIZE, ZIP_LOCATOR64)) {
        const size_t locator = at - ZIP_LOCATOR64_SIZE;
        const uint64_t at64 = zip_number(file.data + locator + 8, 8);
        if (at64 > locator || locator - at64 < ZIP_END64_SIZE ||
            !zip_signed(file.data + at64, ZIP_END64))
            return PITH_ZIP_NO_END64;
        p = file.data + at64;
        *end =
            (zip_end){ zip_number(p + 48, 8), zip_number(p + 40, 8), zip_number(p + 32, 8), at64 };
    }
    const bool inside = end->offset <= end->limit && end->size <= end->limit - end->offset &&
                        end->count <= end->size / ZIP_CENTRAL_SIZE;
    return inside ? PITH_ZIP_OK : PITH_ZIP_OUTSIDE;
}

/* Replaces numbers of 0xffffffff by those of the zip64 extra field, which holds only the ones that
 * were replaced, in a fixed order. False if such a field is missing or too short. Source: APPNOTE,
 * section 4.5.3. */
static bool zip_widen(uint64_t *const *numbers, size_t count, pith_str extra) {
    bool wide = false;
    for (size_t i = 0; i < count; i++) wide = wide || *numbers[i] == UINT32_MAX;
    if (!wide) return true;
    for (size_t at = 0; extra.size - at >= 4;) {
        const uint64_t id = zip_number(extra.data + at, 2),
                       size = zip_number(extra.data + at + 2, 2);
        if (size > extra.size - at - 4) return false;
        const char *p = extra.data + at + 4, *const stop = p + size;
        if (id == 1) {
            for (size_t i = 0; i < count; i++) {
                if (*numbers[i] != UINT32_MAX) continue;
                if (stop - p < 8) return false;
                *numbers[i] = zip_number(p, 8);
                p += 8;
            }
            return true;
        }
        at += 4 + size;
    }
    return false;
}

/* The entry at p of the directory, with `left` bytes; *used: its size. */
static pith__zip_fault zip_read_entry(pith__zip_member *m, size_t *used, const char *p,
                                      size_t left) {
    if (left < ZIP_CENTRAL_SIZE || !zip_signed(p, ZIP_CENTRAL)) return PITH_ZIP_BROKEN;
    const size_t name = (size_t)zip_number(p + 28, 2), extra = (size_t)zip_number(p + 30, 2),
                 comment = (size_t)zip_number(p + 32, 2);
    *used = ZIP_CENTRAL_SIZE + name + extra + comment;
    if (*used > left) return PITH_ZIP_BROKEN;
    *m = (pith__zip_member){ .name = { p + ZIP_CENTRAL_SIZE, name },
                             .size = zip_number(p + 24, 4),
                             .packed = zip_number(p + 20, 4),
                             .offset = zip_number(p + 42, 4),
                             .crc = (uint32_t)zip_number(p + 16, 4),
                             .flags = (uint16_t)zip_number(p + 8, 2),
                             .method = (uint16_t)zip_number(p + 10, 2) };
    uint64_t *const numbers[] = { &m->size, &m->packed, &m->offset };
    return zip_widen(numbers, 3, (pith_str){ p + ZIP_CENTRAL_SIZE + name, extra })
               ? PITH_ZIP_OK
               : PITH_ZIP_FIELD64;
}

pith__zip_fault pith__zip_read(pith__zip *zip, pith_str file, pith__arena *arena) {
    zip_end end = { 0, 0, 0, 0 };
    *zip = (pith__zip){ .file = file };
    const pith__zip_fault fault = zip_find_end(&end, zip);
    if (fault) return fault;
    const size_t count = (size_t)end.count;
    zip->members = pith__arena_array(arena, count, sizeof *zip->members);
    if (!zip->members) return PITH_ZIP_MEMORY;
    const char *p = file.data + end.offset, *const stop = p + end.size;
    for (; zip->count < count; zip->count++) {
        size_t used = 0;
        const pith__zip_fault broken =
            zip_read_entry(&zip->members[zip->count], &used, p, (size_t)(stop - p));
        if (broken) return broken;
        p += used;
    }
    return PITH_ZIP_OK;
}

pith__zip_fault pith__zip_packed(pith_str *bytes, const pith__zip *zip, const pith__zip_member *m) {
    const pith_str file = zip->file;
    if (m->offset > file.size || file.size - m->offset < ZIP_LOCAL_SIZE ||
        !zip_signed(file.data + m->offset, ZIP_LOCAL))
        return PITH_ZIP_NOT_THERE;
    const char *local = file.data + m->offset;
    const uint64_t begin =
        m->offset + ZIP_LOCAL_SIZE + zip_number(local + 26, 2) + zip_number(local + 28, 2);
    if (begin > file.size || m->packed > file.size - begin) return PITH_ZIP_REACHES_OUT;
    *bytes = (pith_str){ file.data + begin, (size_t)m->packed };
    return PITH_ZIP_OK;
}

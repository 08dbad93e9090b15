/* torch_zip.c - reads the central directory at the end of the file, then checks the local header of
 * each member. */
#include "formats/weights/torch/torch_zip.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

enum {
    LOCAL_SIGNATURE = 0x04034b50,
    CENTRAL_SIGNATURE = 0x02014b50,
    END_SIGNATURE = 0x06054b50,
    END64_SIGNATURE = 0x06064b50,
    LOCATOR64_SIGNATURE = 0x07064b50,
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR64_SIZE = 20,
    COMMENT_MAX = 65535
};

static uint64_t zip_number(const char *at, int bytes) {
    uint64_t n = 0;
    for (int i = 0; i < bytes; i++) n |= (uint64_t)(uint8_t)at[i] << (8 * i);
    return n;
}

bool pith__zip_is(pith_str file) {
    return file.size >= 4 && zip_number(file.data, 4) == LOCAL_SIGNATURE;
}

/* Where the central directory is. */
typedef struct zip_end {
    uint64_t offset, size, count;
} zip_end;

static pith_status zip_find_end(zip_end *end, pith_str file, pith_error *err) {
    size_t at = file.size < END_SIZE ? 0 : file.size - END_SIZE,
           low = at > COMMENT_MAX ? at - COMMENT_MAX : 0;
    if (file.size < END_SIZE)
        return pith__fail(err, PITH_ERR_FORMAT, "the zip archive is cut short");
    while (at > low && zip_number(file.data + at, 4) != END_SIGNATURE) at--;
    const char *p = file.data + at;
    if (zip_number(p, 4) != END_SIGNATURE)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the zip archive has no directory; it may be cut short");
    *end = (zip_end){ zip_number(p + 16, 4), zip_number(p + 12, 4), zip_number(p + 10, 2) };
    bool is64 = at >= LOCATOR64_SIZE && zip_number(p - LOCATOR64_SIZE, 4) == LOCATOR64_SIGNATURE;
    if (is64) {
        uint64_t at64 = zip_number(p - LOCATOR64_SIZE + 8, 8);
        if (at64 > file.size || file.size - at64 < END64_SIZE ||
            zip_number(file.data + at64, 4) != END64_SIGNATURE)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "the zip archive's directory is damaged: its zip64 end is not there");
        p = file.data + at64;
        *end = (zip_end){ zip_number(p + 48, 8), zip_number(p + 40, 8), zip_number(p + 32, 8) };
    }
    if (end->offset > file.size || end->size > file.size - end->offset ||
        end->count > end->size / CENTRAL_SIZE)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the zip archive's directory reaches beyond the file");
    return PITH_OK;
}

/* Replaces sizes and offset of 0xffffffff by those of the zip64 extra field. */
static bool zip_widen(uint64_t *numbers, size_t count, pith_str extra) {
    bool wide = false;
    for (size_t i = 0; i < count; i++) wide = wide || numbers[i] == UINT32_MAX;
    if (!wide) return true;
    for (size_t at = 0; extra.size - at >= 4;) {
        uint64_t id = zip_number(extra.data + at, 2), size = zip_number(extra.data + at + 2, 2);
        if (size > extra.size - at - 4) return false;
        const char *p = extra.data + at + 4, *stop = p + size;
        for (size_t i = 0; id == 1 && i < count; i++) {
            if (numbers[i] != UINT32_MAX) continue;
            if (stop - p < 8) return false;
            numbers[i] = zip_number(p, 8);
            p += 8;
        }
        if (id == 1) return true;
        at += 4 + size;
    }
    return false;
}

/* The entry at p of the central directory, with `left` bytes; *used: its size. */
static pith_status zip_read_entry(pith__zip_member *m, size_t *used, pith_str file, const char *p,
                                  size_t left, pith_error *err) {
    if (left < CENTRAL_SIZE || zip_number(p, 4) != CENTRAL_SIGNATURE)
        return pith__fail(err, PITH_ERR_FORMAT, "the zip archive's directory is damaged");
    size_t name = zip_number(p + 28, 2), extra = zip_number(p + 30, 2),
           comment = zip_number(p + 32, 2);
    *used = CENTRAL_SIZE + name + extra + comment;
    if (*used > left)
        return pith__fail(err, PITH_ERR_FORMAT, "the zip archive's directory is damaged");
    m->name = (pith_str){ p + CENTRAL_SIZE, name };
    uint64_t numbers[] = { zip_number(p + 24, 4), zip_number(p + 20, 4), zip_number(p + 42, 4) };
    if (!zip_widen(numbers, 3, (pith_str){ p + CENTRAL_SIZE + name, extra }))
        return pith__fail(err, PITH_ERR_FORMAT,
                          "member '" PITH_STR_FMT "' has a damaged zip64 field",
                          PITH_STR_ARG(m->name));
    if (zip_number(p + 8, 2) & 1)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "member '" PITH_STR_FMT "' is encrypted",
                          PITH_STR_ARG(m->name));
    if (zip_number(p + 10, 2) || numbers[0] != numbers[1])
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "member '" PITH_STR_FMT
                          "' is compressed; torch.save writes members as they are",
                          PITH_STR_ARG(m->name));
    uint64_t at = numbers[2];
    if (at > file.size || file.size - at < LOCAL_SIZE ||
        zip_number(file.data + at, 4) != LOCAL_SIGNATURE)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "member '" PITH_STR_FMT "' is not where the zip directory says",
                          PITH_STR_ARG(m->name));
    uint64_t begin =
        at + LOCAL_SIZE + zip_number(file.data + at + 26, 2) + zip_number(file.data + at + 28, 2);
    if (begin > file.size || numbers[0] > file.size - begin)
        return pith__fail(err, PITH_ERR_FORMAT, "member '" PITH_STR_FMT "' reaches beyond the file",
                          PITH_STR_ARG(m->name));
    m->bytes = (pith_str){ file.data + begin, (size_t)numbers[0] };
    return PITH_OK;
}

static int zip_compare(const void *a, const void *b) {
    const pith__zip_member *x = a, *y = b;
    if (x->bytes.data != y->bytes.data) return x->bytes.data < y->bytes.data ? -1 : 1;
    return x->bytes.size < y->bytes.size ? -1 : x->bytes.size > y->bytes.size;
}

/* Sorts the members by place and makes the map of names. */
static pith_status zip_index(pith__zip *zip, pith__arena *arena, pith_error *err) {
    if (pith__map_init(&zip->names, arena, zip->count + 1))
        return pith__fail_memory(err, zip->count);
    if (zip->count) qsort(zip->members, zip->count, sizeof *zip->members, zip_compare);
    for (size_t i = 0; i < zip->count; i++) {
        const pith__zip_member *m = &zip->members[i], *last = i ? m - 1 : NULL;
        uint32_t old;
        if (last && last->bytes.data + last->bytes.size > m->bytes.data)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "members '" PITH_STR_FMT "' and '" PITH_STR_FMT
                              "' of the zip archive overlap",
                              PITH_STR_ARG(last->name), PITH_STR_ARG(m->name));
        if (!pith__map_put(&zip->names, m->name, (uint32_t)i, &old))
            return pith__fail_memory(err, zip->count);
        if (old != UINT32_MAX)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "member '" PITH_STR_FMT "' is twice in the zip archive",
                              PITH_STR_ARG(m->name));
    }
    return PITH_OK;
}

pith_status pith__zip_read(pith__zip *zip, pith_str file, pith__arena *arena, pith_error *err) {
    zip_end end = { 0, 0, 0 };
    PITH_TRY(zip_find_end(&end, file, err));
    *zip = (pith__zip){ .count = (size_t)end.count };
    zip->members = pith__arena_array(arena, zip->count, sizeof *zip->members);
    if (!zip->members) return pith__fail_memory(err, zip->count * sizeof *zip->members);
    const char *p = file.data + end.offset, *stop = p + end.size;
    for (size_t i = 0; i < zip->count; i++) {
        size_t used = 0;
        PITH_TRY(zip_read_entry(&zip->members[i], &used, file, p, (size_t)(stop - p), err));
        p += used;
    }
    return zip_index(zip, arena, err);
}

pith_str pith__zip_find(const pith__zip *zip, pith_str name) {
    uint32_t at = pith__map_get(&zip->names, name);
    return at == UINT32_MAX ? (pith_str){ NULL, 0 } : zip->members[at].bytes;
}

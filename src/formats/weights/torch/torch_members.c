/* torch_members.c - see torch_members.h. */
#include "formats/weights/torch/torch_members.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/formats/zip.h"
#include "base/str.h"

bool pith__torch_is_zip(pith_str file) { return file.size >= 4 && !memcmp(file.data, "PK\3\4", 4); }

/* m: the member that the fault is about, if it is about one. */
static pith_status members_fail(pith__zip_fault fault, const pith__zip *zip,
                                const pith__zip_member *m, pith_error *err) {
    static const char *const says[] = {
        [PITH_ZIP_SHORT] = "the zip archive is cut short",
        [PITH_ZIP_NO_END] = "the zip archive has no directory; it may be cut short",
        [PITH_ZIP_NO_END64] = "the zip archive's directory is damaged: its zip64 end is not there",
        [PITH_ZIP_OUTSIDE] = "the zip archive's directory reaches beyond the file",
        [PITH_ZIP_BROKEN] = "the zip archive's directory is damaged",
        [PITH_ZIP_FIELD64] = "has a damaged zip64 field",
        [PITH_ZIP_NOT_THERE] = "is not where the zip directory says",
        [PITH_ZIP_REACHES_OUT] = "reaches beyond the file",
    };
    if (fault == PITH_ZIP_MEMORY) return pith__fail_memory(err, zip->file.size);
    if (fault < PITH_ZIP_FIELD64) return pith__fail(err, PITH_ERR_FORMAT, "%s", says[fault]);
    return pith__fail(err, PITH_ERR_FORMAT, "member '" PITH_STR_FMT "' %s", PITH_STR_ARG(m->name),
                      says[fault]);
}

static pith_status members_add(pith__torch_members *members, const pith__zip *zip,
                               const pith__zip_member *m, pith_error *err) {
    pith__torch_member *to = &members->at[members->count++];
    if (m->flags & PITH_ZIP_ENCRYPTED)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "member '" PITH_STR_FMT "' is encrypted",
                          PITH_STR_ARG(m->name));
    if (m->method != PITH_ZIP_STORED || m->size != m->packed)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "member '" PITH_STR_FMT
                          "' is compressed; torch.save writes members as they are",
                          PITH_STR_ARG(m->name));
    to->name = m->name;
    const pith__zip_fault fault = pith__zip_packed(&to->bytes, zip, m);
    return fault ? members_fail(fault, zip, m, err) : PITH_OK;
}

static int members_compare(const void *a, const void *b) {
    const pith__torch_member *x = a, *y = b;
    if (x->bytes.data != y->bytes.data) return x->bytes.data < y->bytes.data ? -1 : 1;
    return x->bytes.size < y->bytes.size ? -1 : x->bytes.size > y->bytes.size;
}

/* Sorts the members by place and makes the map of names. Members that overlap, and names that occur
 * twice, are refused: two readers could see different contents in such an archive. */
static pith_status members_index(pith__torch_members *members, pith__arena *arena,
                                 pith_error *err) {
    const size_t count = members->count;
    if (pith__map_init(&members->names, arena, count + 1)) return pith__fail_memory(err, count);
    if (count) qsort(members->at, count, sizeof *members->at, members_compare);
    for (size_t i = 0; i < count; i++) {
        const pith__torch_member *m = &members->at[i], *last = i ? m - 1 : NULL;
        uint32_t old;
        if (last && last->bytes.data + last->bytes.size > m->bytes.data)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "members '" PITH_STR_FMT "' and '" PITH_STR_FMT
                              "' of the zip archive overlap",
                              PITH_STR_ARG(last->name), PITH_STR_ARG(m->name));
        if (!pith__map_put(&members->names, m->name, (uint32_t)i, &old))
            return pith__fail_memory(err, count);
        if (old != UINT32_MAX)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "member '" PITH_STR_FMT "' is twice in the zip archive",
                              PITH_STR_ARG(m->name));
    }
    return PITH_OK;
}

pith_status pith__torch_members_read(pith__torch_members *members, pith_str file,
                                     pith__arena *arena, pith_error *err) {
    pith__zip zip;
    const pith__zip_fault fault = pith__zip_read(&zip, file, arena);
    if (fault == PITH_ZIP_FIELD64) return members_fail(fault, &zip, &zip.members[zip.count], err);
    if (fault) return members_fail(fault, &zip, NULL, err);
    *members =
        (pith__torch_members){ .at = pith__arena_array(arena, zip.count, sizeof *members->at) };
    if (!members->at) return pith__fail_memory(err, zip.count * sizeof *members->at);
    for (size_t i = 0; i < zip.count; i++)
        PITH_TRY(members_add(members, &zip, &zip.members[i], err));
    return members_index(members, arena, err);
}

pith_str pith__torch_members_find(const pith__torch_members *members, pith_str name) {
    const uint32_t at = pith__map_get(&members->names, name);
    return at == UINT32_MAX ? (pith_str){ NULL, 0 } : members->at[at].bytes;
}

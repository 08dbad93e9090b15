/* section_file.c - see section_file.h. */
#include "base/formats/section_file.h"

#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"

pith_status pith__sections_check(size_t *count, pith_str file, const pith__section_form *form,
                                 pith_error *err) {
    if (file.size < 8 || memcmp(file.data, form->magic, 8) != 0)
        return pith__fail(err, PITH_ERR_FORMAT, "%s", form->other);
    if (file.size < PITH_SECTIONS_HEADER)
        return pith__fail(err, PITH_ERR_FORMAT, "the file is cut off within its header%s",
                          form->cut);
    const uint32_t version = (uint32_t)pith__section_get(file.data + 8, 4);
    if (version != form->version)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the file has format version %u, but this build reads version %u; %s",
                          version, form->version, form->newer);
    *count = (size_t)pith__section_get(file.data + 12, 4);
    if (*count > form->most)
        return pith__fail(err, PITH_ERR_FORMAT, "the header is damaged: it lists %zu sections",
                          *count);
    const size_t end = PITH_SECTIONS_HEADER + *count * PITH_SECTIONS_ENTRY;
    const uint64_t whole = pith__section_get(file.data + 16, 8);
    if (whole != file.size || file.size < end)
        return pith__fail(err, PITH_ERR_FORMAT, "the file is cut off: it has %zu of %llu bytes%s",
                          file.size, (unsigned long long)whole, form->cut);
    if (pith__section_get(file.data + 24, 8) !=
        pith__hash_of(file.data + PITH_SECTIONS_HASHED_FROM, end - PITH_SECTIONS_HASHED_FROM))
        return pith__fail(err, PITH_ERR_FORMAT, "the header is damaged: its hash does not match%s",
                          form->wrong_hash);
    return PITH_OK;
}

pith__section_entry pith__sections_entry(pith_str file, size_t i) {
    const char *p = file.data + PITH_SECTIONS_HEADER + i * PITH_SECTIONS_ENTRY;
    return (pith__section_entry){ (uint32_t)pith__section_get(p, 4),
                                  (uint32_t)pith__section_get(p + 4, 4),
                                  pith__section_get(p + 8, 8), pith__section_get(p + 16, 8),
                                  pith__section_get(p + 24, 8) };
}

pith_status pith__sections_verify(pith_str file, size_t count, const pith__section_form *form,
                                  pith__stop *stop, pith__progress *told, pith_error *err) {
    enum { PIECE = 1 << 22 };
    for (size_t i = 0; i < count; i++) {
        const pith__section_entry e = pith__sections_entry(file, i);
        pith__hash hash;
        pith__hash_init(&hash);
        for (uint64_t at = 0, n; at < e.size; at += n) {
            n = e.size - at < PIECE ? e.size - at : PIECE;
            PITH_TRY(pith__stop_check(stop, err));
            pith__hash_add(&hash, file.data + e.offset + at, (size_t)n);
            pith__progress_tell(told, "bytes", e.offset + at + n, file.size);
        }
        if (pith__hash_end(&hash) != e.hash)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "section %zu (%s), bytes %llu to %llu, is damaged", i,
                              form->name(e.kind), (unsigned long long)e.offset,
                              (unsigned long long)(e.offset + e.size));
    }
    return PITH_OK;
}

void pith__sections_head(char *head, const pith__section_form *form,
                         const pith__section_entry *entries, size_t count, uint64_t size) {
    const size_t end = PITH_SECTIONS_HEADER + count * PITH_SECTIONS_ENTRY;
    memset(head, 0, end);
    memcpy(head, form->magic, 8);
    pith__section_put(head + 8, form->version, 4);
    pith__section_put(head + 12, count, 4);
    pith__section_put(head + 16, size, 8);
    snprintf(head + PITH_SECTIONS_HASHED_FROM, PITH_SECTIONS_WRITER_SIZE, "%s", pith_version());
    for (size_t i = 0; i < count; i++) {
        char *p = head + PITH_SECTIONS_HEADER + i * PITH_SECTIONS_ENTRY;
        pith__section_put(p, entries[i].kind, 4);
        pith__section_put(p + 4, entries[i].part, 4);
        pith__section_put(p + 8, entries[i].offset, 8);
        pith__section_put(p + 16, entries[i].size, 8);
        pith__section_put(p + 24, entries[i].hash, 8);
    }
    pith__section_put(
        head + 24, pith__hash_of(head + PITH_SECTIONS_HASHED_FROM, end - PITH_SECTIONS_HASHED_FROM),
        8);
}

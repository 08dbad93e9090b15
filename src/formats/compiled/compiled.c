/* compiled.c - header and section table of a compiled file: writing, checking, verifying. See
 * compiled.h. */
#include "formats/compiled/compiled.h"

#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/formats/section_file.h"
#include "base/writer.h"
#include "base/str.h"
#include "formats/compiled/wire_bytes.h"

/* SECTIONS_MAX bounds the table of a hostile file and leaves room for new kinds. */
enum { WRITER_AT = PITH_SECTIONS_HASHED_FROM, SECTIONS_MAX = 64 };

const char *pith__section_name(pith__section kind) {
    static const char *const names[PITH_SECTION_COUNT] = { "unknown",    "model",    "graph",
                                                           "text graph", "weights",  "tokenizer",
                                                           "heads",      "words",    "pictures",
                                                           "routes",     "networks", "info" };
    return names[(unsigned)kind < PITH_SECTION_COUNT ? kind : 0];
}

static uint64_t compiled_alignment_of(pith__section kind) {
    return kind == PITH_SECTION_WEIGHTS ? PITH_COMPILED_PAGE : PITH_COMPILED_ALIGNMENT;
}

static const char *compiled_name(uint32_t kind) { return pith__section_name((pith__section)kind); }

static const pith__section_form compiled_form = { .magic = PITH_COMPILED_MAGIC,
                                                  .version = PITH_COMPILED_VERSION,
                                                  .most = SECTIONS_MAX,
                                                  .other = "not a compiled model",
                                                  .newer = "compile the model again",
                                                  .cut = "; copy or compile it again",
                                                  .wrong_hash = "; copy or compile the file again",
                                                  .name = compiled_name };

/* ---- reading ---- */

bool pith__compiled_is(pith_str file) {
    return file.size >= 8 && !memcmp(file.data, PITH_COMPILED_MAGIC, 8);
}

static pith_status check_header(size_t *count, pith_str file, pith_error *err) {
    PITH_TRY(pith__sections_check(count, file, &compiled_form, err));
    if (file.data[WRITER_AT + PITH_SECTIONS_WRITER_SIZE - 1])
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the header is damaged: the writer's version has no end");
    return PITH_OK;
}

static bool entry_is_known(const pith__section_entry *e) {
    return e->kind > 0 && e->kind < PITH_SECTION_COUNT;
}

/* Sections that all routes share. */
static bool entry_is_shared(const pith__section_entry *e) {
    return e->kind == PITH_SECTION_WEIGHTS || e->kind == PITH_SECTION_ROUTES;
}

static bool entry_occurs_before(pith_str file, size_t i, const pith__section_entry *e) {
    for (size_t k = 0; k < i; k++) {
        const pith__section_entry before = pith__sections_entry(file, k);
        if (before.kind == e->kind && before.part == e->part) return true;
    }
    return false;
}

/* The hash of the header and the table is right by now, but anyone can compute it, so the table is
 * checked as if it were hostile: sections ascend, do not overlap, lie within the file at their
 * alignment, and no kind occurs twice in a route. Only the sections of route 0 are noted;
 * pith__compiled_take changes to another route. */
pith_status pith__compiled_open(pith__compiled *compiled, pith_str file, pith_error *err) {
    size_t count;
    pith__compiled c = { .size = file.size, .file = file, .writer = file.data + WRITER_AT };
    PITH_TRY(check_header(&count, file, err));
    uint64_t end = PITH_SECTIONS_HEADER + count * PITH_SECTIONS_ENTRY;
    for (size_t i = 0; i < count; i++) {
        const pith__section_entry e = pith__sections_entry(file, i);
        bool known = entry_is_known(&e), routed = known && !entry_is_shared(&e);
        if (e.offset < end || e.offset > file.size || e.size > file.size - e.offset ||
            e.offset % compiled_alignment_of((pith__section)e.kind) ||
            (known && (e.part >= (routed ? PITH_COMPILED_ROUTES : 1u) ||
                       entry_occurs_before(file, i, &e)))) {
            return pith__fail(err, PITH_ERR_FORMAT,
                              "the header is damaged: section %zu (%s) is out of place", i,
                              pith__section_name((pith__section)e.kind));
        }
        end = e.offset + e.size;
        if (known && !e.part)
            c.sections[e.kind] = (pith_str){ file.data + e.offset, (size_t)e.size };
    }
    *compiled = c;
    return PITH_OK;
}

/* Sections of another route take the place of those of the default. */
pith_status pith__compiled_take(pith__compiled *c, uint32_t route, pith_error *err) {
    size_t count;
    PITH_TRY(check_header(&count, c->file, err));
    for (int kind = 0; kind < PITH_SECTION_COUNT; kind++)
        if (!entry_is_shared(&(pith__section_entry){ .kind = (uint32_t)kind }))
            c->sections[kind] = (pith_str){ NULL, 0 };
    for (size_t i = 0; i < count; i++) {
        const pith__section_entry e = pith__sections_entry(c->file, i);
        if (!entry_is_known(&e) || entry_is_shared(&e) || e.part != route) continue;
        c->sections[e.kind] = (pith_str){ c->file.data + e.offset, (size_t)e.size };
    }
    return PITH_OK;
}

/* The section "routes" is one list for the whole file: names, each with the number of its route. A
 * route may have several names. A file without the section has one route, which any name means
 * here; the caller compares the name with that of the model. */
pith_status pith__compiled_choose(pith__compiled *c, const char *route, pith_error *err) {
    pith__bytes_in in = { .bytes = c->sections[PITH_SECTION_ROUTES], .what = "routes", .err = err };
    char known[256] = "";
    size_t used = 0;
    if (!route || !in.bytes.data) return PITH_OK;
    size_t count = pith__get_count(&in, 8);
    for (size_t i = 0; i < count && !in.status; i++) {
        const pith_str name = pith__get_str(&in);
        const uint32_t number =
            pith__get_below(&in, PITH_COMPILED_ROUTES, "a number that no route has");
        if (in.status) break;
        if (pith__str_is(name, route)) return pith__compiled_take(c, number, err);
        int wrote = snprintf(known + used, sizeof known - used, "%s" PITH_STR_FMT, used ? ", " : "",
                             PITH_STR_ARG(name));
        if (wrote > 0 && (size_t)wrote < sizeof known - used) used += (size_t)wrote;
    }
    if (in.status) return in.status;
    return pith__fail(err, PITH_ERR_ARGUMENT, "there is no route '%s'; the file has: %s", route,
                      known);
}

/* The only reader of the hashes of contents: opening must not touch all pages of a large file. */
pith_status pith__compiled_verify(pith_str file, pith__stop *stop, pith__progress *told,
                                  pith_error *err) {
    pith__compiled c;
    size_t count;
    PITH_TRY(pith__compiled_open(&c, file, err));
    PITH_TRY(check_header(&count, file, err));
    return pith__sections_verify(file, count, &compiled_form, stop, told, err);
}

/* ---- writing ---- */

typedef struct sink {
    pith__out *out; /* NULL: only the hash is wanted */
    pith__hash hash;
    pith__stop *stop; /* of the hash */
    pith_error *err;
} sink;

static pith_status send(sink *s, const void *data, size_t size) {
    if (!s->out) return pith__hash_add_until(&s->hash, data, size, s->stop, s->err);
    pith__out_put(s->out, data, size);
    return pith__out_status(s->out, "the model", s->err);
}

static pith_status send_zeros(sink *s, uint64_t size) {
    static const char zeros[PITH_COMPILED_PAGE];
    while (size) {
        size_t n = size < sizeof zeros ? (size_t)size : sizeof zeros;
        PITH_TRY(send(s, zeros, n));
        size -= n;
    }
    return PITH_OK;
}

/* The pieces of a section with zeros between them, where the next one begins at a multiple. */
static pith_status send_section(sink *s, const pith__section_out *section) {
    uint64_t at = 0;
    for (size_t i = 0; i < section->count; i++) {
        const pith__piece_out *piece = &section->pieces[i];
        PITH_TRY(send_zeros(s, piece->offset - at));
        PITH_TRY(send(s, piece->data, piece->size));
        at = piece->offset + piece->size;
    }
    return send_zeros(s, section->size - at);
}

/* Sections are walked twice: once for their hashes, which the table in front of them holds, and
 * once to be written. So nothing is kept in memory, and the writer gets the bytes in order. */
pith_status pith__compiled_write(const pith__section_out *sections, size_t count,
                                 const pith_writer *writer, pith__stop *stop, pith__progress *told,
                                 pith_error *err) {
    char head[PITH_SECTIONS_HEADER + SECTIONS_MAX * PITH_SECTIONS_ENTRY];
    pith__section_entry entries[SECTIONS_MAX] = { { 0 } };
    if (count > SECTIONS_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "a compiled file has room for %d sections, not %zu", SECTIONS_MAX, count);
    const size_t head_size = PITH_SECTIONS_HEADER + count * PITH_SECTIONS_ENTRY;
    uint64_t end = head_size;
    for (size_t i = 0; i < count; i++) {
        const uint64_t alignment = compiled_alignment_of(sections[i].kind);
        sink hasher = { .stop = stop, .err = err };
        pith__hash_init(&hasher.hash);
        PITH_TRY(send_section(&hasher, &sections[i]));
        end = (end + alignment - 1) & ~(alignment - 1);
        entries[i] = (pith__section_entry){ sections[i].kind, sections[i].route, end,
                                            sections[i].size, pith__hash_end(&hasher.hash) };
        end += sections[i].size;
    }
    pith__sections_head(head, &compiled_form, entries, count, end);
    pith__out written = { .writer = writer, .stop = stop, .told = told, .total = end };
    sink out = { .out = &written, .err = err };
    pith__out_begin(&written, end);
    PITH_TRY(send(&out, head, head_size));
    uint64_t at = head_size;
    for (size_t i = 0; i < count; i++) {
        PITH_TRY(send_zeros(&out, entries[i].offset - at));
        PITH_TRY(send_section(&out, &sections[i]));
        at = entries[i].offset + sections[i].size;
    }
    return PITH_OK;
}

/* compiled.c - header and section table of a compiled file: writing, checking, verifying. See
 * compiled.h. */
#include "formats/compiled/compiled.h"

#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/writer.h"
#include "base/str.h"
#include "formats/compiled/wire_bytes.h"

/* The layout of compiled.h: bytes of the header and of a table entry, where the hash begins, where
 * the writer's name is and how long. SECTIONS_MAX bounds the table of a hostile file and leaves
 * room for new kinds. */
enum {
    HEADER = 48,
    ENTRY = 32,
    HASHED_FROM = 32,
    WRITER_AT = 32,
    WRITER_SIZE = 16,
    SECTIONS_MAX = 64
};

static const char magic[] = PITH_COMPILED_MAGIC;

static uint64_t compiled_get(const char *p, int bytes) {
    uint64_t x = 0;
    while (bytes-- > 0) x = x << 8 | (unsigned char)p[bytes];
    return x;
}

static void compiled_put(char *p, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++, x >>= 8) p[i] = (char)(x & 0xFF);
}

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

/* ---- reading ---- */

typedef struct entry {
    uint32_t kind, route;
    uint64_t offset, size, hash;
} entry;

static entry entry_at(pith_str file, size_t i) {
    const char *p = file.data + HEADER + i * ENTRY;
    return (entry){ (uint32_t)compiled_get(p, 4), (uint32_t)compiled_get(p + 4, 4),
                    compiled_get(p + 8, 8), compiled_get(p + 16, 8), compiled_get(p + 24, 8) };
}

bool pith__compiled_is(pith_str file) {
    return file.size >= sizeof magic - 1 && !memcmp(file.data, magic, sizeof magic - 1);
}

/* Checks the header in the order in which its fields can be trusted: magic number, room for a
 * header, version, number of sections, whole size, and only then the hash over the header and the
 * table. So an old or a cut file is named as that and not as damaged. *count: sections of the
 * table, which lies in the file and is whole. */
static pith_status check_header(size_t *count, pith_str file, pith_error *err) {
    if (!pith__compiled_is(file)) return pith__fail(err, PITH_ERR_FORMAT, "not a compiled model");
    if (file.size < HEADER)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the file is cut off within its header; copy or compile it again");
    uint32_t version = (uint32_t)compiled_get(file.data + 8, 4);
    if (version != PITH_COMPILED_VERSION) {
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the file has format version %u, but this build reads version %u; "
                          "compile the model again",
                          version, PITH_COMPILED_VERSION);
    }
    *count = (size_t)compiled_get(file.data + 12, 4);
    if (*count > SECTIONS_MAX)
        return pith__fail(err, PITH_ERR_FORMAT, "the header is damaged: it lists %zu sections",
                          *count);
    size_t end = HEADER + *count * ENTRY;
    if (compiled_get(file.data + 16, 8) != file.size || file.size < end) {
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the file is cut off: it has %zu of %llu bytes; copy or compile it again",
                          file.size, (unsigned long long)compiled_get(file.data + 16, 8));
    }
    if (compiled_get(file.data + 24, 8) !=
        pith__hash_of(file.data + HASHED_FROM, end - HASHED_FROM)) {
        return pith__fail(
            err, PITH_ERR_FORMAT,
            "the header is damaged: its hash does not match; copy or compile the file again");
    }
    if (file.data[WRITER_AT + WRITER_SIZE - 1])
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the header is damaged: the writer's version has no end");
    return PITH_OK;
}

static bool entry_is_known(const entry *e) { return e->kind > 0 && e->kind < PITH_SECTION_COUNT; }

/* Sections that all routes share. */
static bool entry_is_shared(const entry *e) {
    return e->kind == PITH_SECTION_WEIGHTS || e->kind == PITH_SECTION_ROUTES;
}

static bool entry_occurs_before(pith_str file, size_t i, const entry *e) {
    for (size_t k = 0; k < i; k++) {
        const entry before = entry_at(file, k);
        if (before.kind == e->kind && before.route == e->route) return true;
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
    uint64_t end = HEADER + count * ENTRY;
    for (size_t i = 0; i < count; i++) {
        entry e = entry_at(file, i);
        bool known = entry_is_known(&e), routed = known && !entry_is_shared(&e);
        if (e.offset < end || e.offset > file.size || e.size > file.size - e.offset ||
            e.offset % compiled_alignment_of((pith__section)e.kind) ||
            (known && (e.route >= (routed ? PITH_COMPILED_ROUTES : 1u) ||
                       entry_occurs_before(file, i, &e)))) {
            return pith__fail(err, PITH_ERR_FORMAT,
                              "the header is damaged: section %zu (%s) is out of place", i,
                              pith__section_name((pith__section)e.kind));
        }
        end = e.offset + e.size;
        if (known && !e.route)
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
        if (!entry_is_shared(&(entry){ .kind = (uint32_t)kind }))
            c->sections[kind] = (pith_str){ NULL, 0 };
    for (size_t i = 0; i < count; i++) {
        const entry e = entry_at(c->file, i);
        if (!entry_is_known(&e) || entry_is_shared(&e) || e.route != route) continue;
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

/* A file whose bytes are compared, and who asked for it. */
typedef struct compiled_pieces {
    pith_str file;
    pith__stop *stop;
    pith__progress *told;
} compiled_pieces;

static pith_status compiled_hash(uint64_t *hash, const compiled_pieces *p, entry e,
                                 pith_error *err) {
    enum { PIECE = 1 << 22 };
    pith__hash h;
    pith__hash_init(&h);
    for (uint64_t at = 0, n; at < e.size; at += n) {
        n = e.size - at < PIECE ? e.size - at : PIECE;
        PITH_TRY(pith__stop_check(p->stop, err));
        pith__hash_add(&h, p->file.data + e.offset + at, (size_t)n);
        pith__progress_tell(p->told, "bytes", e.offset + at + n, p->file.size);
    }
    *hash = pith__hash_end(&h);
    return PITH_OK;
}

/* The only reader of the hashes of contents: opening must not touch all pages of a large file. */
pith_status pith__compiled_verify(pith_str file, pith__stop *stop, pith__progress *told,
                                  pith_error *err) {
    const compiled_pieces pieces = { file, stop, told };
    pith__compiled c;
    size_t count;
    PITH_TRY(pith__compiled_open(&c, file, err));
    PITH_TRY(check_header(&count, file, err));
    for (size_t i = 0; i < count; i++) {
        entry e = entry_at(file, i);
        uint64_t hash;
        PITH_TRY(compiled_hash(&hash, &pieces, e, err));
        if (hash == e.hash) continue;
        return pith__fail(err, PITH_ERR_FORMAT, "section %zu (%s), bytes %llu to %llu, is damaged",
                          i, pith__section_name((pith__section)e.kind),
                          (unsigned long long)e.offset, (unsigned long long)(e.offset + e.size));
    }
    return PITH_OK;
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
    char head[HEADER + SECTIONS_MAX * ENTRY] = { 0 };
    if (count > SECTIONS_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "a compiled file has room for %d sections, not %zu", SECTIONS_MAX, count);
    size_t head_size = HEADER + count * ENTRY;
    uint64_t end = head_size;
    for (size_t i = 0; i < count; i++) {
        uint64_t alignment = compiled_alignment_of(sections[i].kind);
        char *p = head + HEADER + i * ENTRY;
        sink hasher = { .stop = stop, .err = err };
        pith__hash_init(&hasher.hash);
        PITH_TRY(send_section(&hasher, &sections[i]));
        end = (end + alignment - 1) & ~(alignment - 1);
        compiled_put(p, sections[i].kind, 4);
        compiled_put(p + 4, sections[i].route, 4);
        compiled_put(p + 8, end, 8);
        compiled_put(p + 16, sections[i].size, 8);
        compiled_put(p + 24, pith__hash_end(&hasher.hash), 8);
        end += sections[i].size;
    }
    memcpy(head, magic, sizeof magic - 1);
    compiled_put(head + 8, PITH_COMPILED_VERSION, 4);
    compiled_put(head + 12, count, 4);
    compiled_put(head + 16, end, 8);
    snprintf(head + WRITER_AT, WRITER_SIZE, "%s", pith_version());
    compiled_put(head + 24, pith__hash_of(head + HASHED_FROM, head_size - HASHED_FROM), 8);
    pith__out written = { .writer = writer, .stop = stop, .told = told, .total = end };
    sink out = { .out = &written, .err = err };
    pith__out_begin(&written, end);
    PITH_TRY(send(&out, head, head_size));
    uint64_t at = head_size;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = compiled_get(head + HEADER + i * ENTRY + 8, 8);
        PITH_TRY(send_zeros(&out, offset - at));
        PITH_TRY(send_section(&out, &sections[i]));
        at = offset + sections[i].size;
    }
    return PITH_OK;
}

/* index_open.c - opening and verifying the file of an index; the layout is in index_file.h.
 *
 * A file may be hostile. Its header and table are checked as a whole before anything is used, and
 * each array must have just the size that the settings ask for, so that a search stays within the
 * file whatever it holds. Offsets of documents are the only contents that lead somewhere, so they
 * are checked one by one. Nothing is allocated but the index. */
#include "search/index_file.h"

#include <stdint.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/os/file.h"
#include "search/search.h"

static const char *index_section_name(uint32_t kind) {
    static const char *const names[PITH_INDEX_KINDS] = {
        "unknown", "settings", "rows", "ids", "offsets", "copy", "factors", "shifts"
    };
    return names[kind < PITH_INDEX_KINDS ? kind : 0];
}

const pith__section_form pith__index_form = { .magic = PITH_INDEX_MAGIC,
                                              .version = PITH_INDEX_VERSION,
                                              .most = PITH_INDEX_SECTIONS_MAX,
                                              .other = "not an index of vectors",
                                              .newer = "save the index again",
                                              .cut = "",
                                              .wrong_hash = "",
                                              .name = index_section_name };

typedef struct open_section {
    pith_str bytes; /* data NULL: there is none */
    uint64_t hash;
} open_section;

typedef struct open_file {
    pith_str file;
    size_t entries;
    open_section sections[PITH_INDEX_KINDS];
    pith_search_index_options how;
    size_t dim, count, documents, row_bytes;
} open_file;

/* ---- the header ---- */

/* Anyone can compute the hash of the table, so it is checked as if it were hostile. */
static pith_status open_table(open_file *f, pith_error *err) {
    PITH_TRY(pith__sections_check(&f->entries, f->file, &pith__index_form, err));
    uint64_t end = PITH_SECTIONS_HEADER + f->entries * PITH_SECTIONS_ENTRY;
    for (size_t i = 0; i < f->entries; i++) {
        const pith__section_entry e = pith__sections_entry(f->file, i);
        const bool skipped = e.kind >= PITH_INDEX_SKIPPED;
        const bool known = e.kind > 0 && e.kind < PITH_INDEX_KINDS;
        if (e.offset < end || e.offset > f->file.size || e.size > f->file.size - e.offset ||
            e.offset % 64 || (known && !e.part && f->sections[e.kind].bytes.data))
            return pith__fail(err, PITH_ERR_FORMAT,
                              "the header is damaged: section %zu (%s) is out of place", i,
                              index_section_name(e.kind));
        end = e.offset + e.size;
        if (skipped) continue;
        if (!known || e.part)
            return pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "section %zu has kind %u in segment %u, which this build does not "
                              "know; use a newer one",
                              i, e.kind, e.part);
        f->sections[e.kind] = (open_section){ { f->file.data + e.offset, (size_t)e.size }, e.hash };
    }
    return PITH_OK;
}

/* ---- the contents ---- */

static pith_status open_settings(open_file *f, pith_error *err) {
    const open_section *s = &f->sections[PITH_INDEX_SETTINGS];
    pith_error why = PITH_ERROR_INIT;
    pith_search_index_options how = PITH_SEARCH_INDEX_OPTIONS_INIT;
    if (!s->bytes.data || s->bytes.size < PITH_INDEX_SETTINGS_SIZE)
        return pith__fail(err, PITH_ERR_FORMAT, "the file has no settings");
    if (pith__hash_of(s->bytes.data, s->bytes.size) != s->hash)
        return pith__fail(err, PITH_ERR_FORMAT, "the settings are damaged");
    const char *p = s->bytes.data;
    how.metric = (int32_t)pith__section_get(p, 4);
    how.dtype = (int32_t)pith__section_get(p + 4, 4);
    how.bits = (int32_t)pith__section_get(p + 8, 4);
    how.first_pass = (int32_t)pith__section_get(p + 12, 4);
    const uint64_t dim = pith__section_get(p + 16, 8), count = pith__section_get(p + 24, 8),
                   documents = pith__section_get(p + 32, 8);
    const bool maxsim = how.metric == PITH_METRIC_MAXSIM;
    if (!how.dtype || pith__search_take_options(&f->how, &how, &why) ||
        pith__search_row_bytes(&f->row_bytes, dim > INT32_MAX ? 0 : (size_t)dim, &how, &why))
        return pith__fail(err, PITH_ERR_FORMAT, "the settings are damaged: %s",
                          why.message[0] ? why.message : "there is no dtype");
    if (count > PTRDIFF_MAX || documents >= PTRDIFF_MAX || (!maxsim && documents))
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the settings are damaged: %llu rows of %llu "
                          "documents",
                          (unsigned long long)count, (unsigned long long)documents);
    f->dim = (size_t)dim;
    f->count = (size_t)count;
    f->documents = (size_t)documents;
    if (pith__section_get(p + 40, 8) != f->row_bytes)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the settings are damaged: rows of dim %zu have %zu bytes, not %llu",
                          f->dim, f->row_bytes, (unsigned long long)pith__section_get(p + 40, 8));
    return PITH_OK;
}

/* A section is there just if it must be, with a width for each of count items; optional: it need
 * not be. */
static pith_status open_check(const open_file *f, uint32_t kind, bool needed, bool optional,
                              size_t count, size_t width, pith_error *err) {
    const pith_str bytes = f->sections[kind].bytes;
    size_t size;
    if (!bytes.data && (!needed || optional)) return PITH_OK;
    if (!bytes.data || !needed)
        return pith__fail(err, PITH_ERR_FORMAT, "the file has %s section '%s'",
                          needed ? "no" : "an unexpected", index_section_name(kind));
    if (pith__mul_overflows(count, width, &size) || bytes.size != size)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "section '%s' has %zu bytes, not %zu items of %zu bytes",
                          index_section_name(kind), bytes.size, count, width);
    return PITH_OK;
}

static pith_status open_arrays(const open_file *f, const pith_search_index *x, pith_error *err) {
    const bool maxsim = x->metric == PITH_METRIC_MAXSIM,
               int8 = x->first_pass == PITH_FIRST_PASS_INT8,
               shifts = int8 && x->metric == PITH_METRIC_L2;
    const size_t items = maxsim ? f->documents : f->count;
    PITH_TRY(open_check(f, PITH_INDEX_ROWS, true, false, f->count, f->row_bytes, err));
    PITH_TRY(open_check(f, PITH_INDEX_IDS, true, true, items, sizeof(int64_t), err));
    PITH_TRY(
        open_check(f, PITH_INDEX_OFFSETS, maxsim, false, f->documents + 1, sizeof(int64_t), err));
    PITH_TRY(open_check(f, PITH_INDEX_COPY, x->first_pass != 0, false, f->count, x->copy_row_bytes,
                        err));
    PITH_TRY(open_check(f, PITH_INDEX_FACTORS, int8, false, f->count, sizeof(float), err));
    return open_check(f, PITH_INDEX_SHIFTS, shifts, false, f->count, sizeof(float), err);
}

static const void *open_array(const open_file *f, uint32_t kind) {
    return f->sections[kind].bytes.data;
}

/* The copy is never written to: only an index that owns its rows changes it. */
static pith_status open_fill(pith_search_index *x, const open_file *f, pith_error *err) {
    PITH_TRY(open_arrays(f, x, err));
    const int64_t *offsets = open_array(f, PITH_INDEX_OFFSETS);
    pith_error why = PITH_ERROR_INIT;
    if (offsets && pith__search_check_offsets(offsets, f->documents, f->count, &why))
        return pith__fail(err, PITH_ERR_FORMAT, "section 'offsets' is damaged: %s", why.message);
    x->whole = (pith__search_segment){
        .rows = open_array(f, PITH_INDEX_ROWS),
        .ids = open_array(f, PITH_INDEX_IDS),
        .copy = { .rows = (void *)(uintptr_t)open_array(f, PITH_INDEX_COPY),
                  .factors = (void *)(uintptr_t)open_array(f, PITH_INDEX_FACTORS),
                  .shifts = (void *)(uintptr_t)open_array(f, PITH_INDEX_SHIFTS) }
    };
    x->count = f->count;
    x->offsets = offsets;
    x->documents = f->documents;
    return PITH_OK;
}

/* ---- the index ---- */

static pith_status open_check_wanted(const open_file *f, size_t dim,
                                     const pith_search_index_options *o, pith_error *err) {
    if (dim && dim != f->dim)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the rows have dim %zu, not %zu", f->dim, dim);
    if (o->first_pass && o->first_pass != f->how.first_pass)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the file has first_pass %d, not %d; make the index again with it",
                          (int)f->how.first_pass, (int)o->first_pass);
    return PITH_OK;
}

/* Where the bytes come from, which the index holds. */
typedef struct open_source {
    pith_str bytes;
    pith__file file; /* of bytes in the caller's memory: all zero */
} open_source;

static void open_drop(pith_search_index *x) {
    open_source *source = x->file;
    x->whole = (pith__search_segment){ .rows = NULL };
    pith__file_close(&source->file);
    pith__memory_free(&x->allocator, source);
}

/* Makes an index that takes the source over. */
static pith_status open_make(pith_search_index **index, const open_source *source,
                             const open_file *f, pith_error *err) {
    pith_search_index *x;
    PITH_TRY(pith__search_index_new(&x, f->dim, f->row_bytes, &f->how, err));
    pith_status status = open_fill(x, f, err);
    open_source *held = NULL;
    if (!status) held = pith__memory_alloc(&x->allocator, sizeof *held, 16);
    if (!status && !held) status = pith__fail_memory(err, sizeof *held);
    if (status) {
        x->whole = (pith__search_segment){ .rows = NULL };
        pith__search_index_free(x);
        return status;
    }
    *held = *source;
    x->bytes += sizeof *held;
    x->file = held;
    x->drop = open_drop;
    *index = x;
    return PITH_OK;
}

static pith_status open_index(pith_search_index **index, const open_source *source, size_t dim,
                              const pith_search_index_options *o, pith_error *err) {
    open_file f = { .file = source->bytes };
    PITH_TRY(open_table(&f, err));
    PITH_TRY(open_settings(&f, err));
    PITH_TRY(open_check_wanted(&f, dim, o, err));
    f.how.call = o->call;
    return open_make(index, source, &f, err);
}

static pith_status open_take_options(pith_search_index_options *o,
                                     const pith_search_index_options *given, pith_error *err) {
    *o = (pith_search_index_options)PITH_SEARCH_INDEX_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    pith__stop own;
    return pith__stop_check(pith__stop_begin(&own, &o->call), err);
}

pith_status pith__search_index_open(pith_search_index **index, const char *path, size_t dim,
                                    const pith_search_index_options *options, pith_error *err) {
    pith_search_index_options o;
    open_source source = { .bytes = { NULL, 0 } };
    PITH_TRY(open_take_options(&o, options, err));
    if (!path) return pith__fail(err, PITH_ERR_ARGUMENT, "path is NULL");
    PITH_TRY(pith__file_open(&source.file, path, false, NULL, err));
    source.bytes = (pith_str){ (const char *)source.file.data, source.file.size };
    const pith_status status = open_index(index, &source, dim, &o, err);
    if (!status) return PITH_OK;
    pith__file_close(&source.file);
    return pith__fail_at(err, status, "%s: ", path);
}

pith_status pith__search_index_open_memory(pith_search_index **index, const void *data, size_t size,
                                           size_t dim, const pith_search_index_options *options,
                                           pith_error *err) {
    pith_search_index_options o;
    PITH_TRY(open_take_options(&o, options, err));
    if (!data || (uintptr_t)data % 8)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the data is %s",
                          data ? "not aligned to 8 bytes" : "NULL");
    open_source source = { .bytes = { data, size } };
    return open_index(index, &source, dim, &o, err);
}

/* ---- verifying ---- */

static pith_status open_verify(pith_str bytes, pith__stop *stop, pith_error *err) {
    open_file f = { .file = bytes };
    PITH_TRY(open_table(&f, err));
    return pith__sections_verify(bytes, f.entries, &pith__index_form, stop, NULL, err);
}

pith_status pith__search_index_verify(const char *path, const pith_call *call, pith_error *err) {
    pith_call c = PITH_CALL_INIT;
    pith__stop own;
    pith__file file;
    PITH_TAKE_OPTIONS(c, call, err);
    pith__stop *stop = pith__stop_begin(&own, &c);
    PITH_TRY(pith__stop_check(stop, err));
    if (!path) return pith__fail(err, PITH_ERR_ARGUMENT, "path is NULL");
    PITH_TRY(pith__file_open(&file, path, false, NULL, err));
    const pith_status status =
        open_verify((pith_str){ (const char *)file.data, file.size }, stop, err);
    pith__file_close(&file);
    return status && !pith__status_stops(status) ? pith__fail_at(err, status, "%s: ", path)
                                                 : status;
}

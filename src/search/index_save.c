/* index_save.c - writing an index to a file; the layout is in index_file.h.
 *
 * Contents are walked twice: once for their hashes, which the table in front of them holds, and
 * once to be written. So the file is never in memory as a whole. Rows are written in the order of
 * their ids, so what an index went through cannot be seen in its file. */
#include "search/index_file.h"

#include <stdio.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/writer.h"
#include "search/search.h"

/* Rows are gathered to pieces of this many bytes, at most. After each one the call may end. */
enum { SAVE_PIECE = 1 << 16, SAVE_PAGE = 4096, SAVE_ALIGNMENT = 64 };
/* Numbers that are sorted between two looks at whether the call must end. */
enum { SAVE_STOP_EVERY = 1 << 14 };

typedef struct save_id {
    int64_t id;
    size_t row;
} save_id;

typedef struct save_job {
    const pith_search_index *index;
    const save_id *order; /* [count], ascending; NULL: rows are in order */
    size_t row_bytes;     /* without a gap */
    bool ids;             /* whether they are not simply 0, 1, 2 and so on */
    pith__section_entry sections[PITH_INDEX_KINDS];
    size_t section_count;
    char settings[PITH_INDEX_SETTINGS_SIZE];
    /* where the bytes go */
    pith__out *out; /* NULL: only the hash is wanted */
    pith__hash hash;
    char *piece; /* [SAVE_PIECE] */
    size_t used;
    pith__stop *stop;
    pith_error *err;
} save_job;

/* ---- bytes ---- */

static pith_status save_flush(save_job *j, const char *data, size_t size) {
    if (!size) return PITH_OK;
    PITH_TRY(pith__stop_check(j->stop, j->err));
    if (!j->out) {
        pith__hash_add(&j->hash, data, size);
        return PITH_OK;
    }
    pith__out_put(j->out, data, size);
    return pith__out_status(j->out, "the index", j->err);
}

static pith_status save_end(save_job *j) {
    const size_t used = j->used;
    j->used = 0;
    return save_flush(j, j->piece, used);
}

static pith_status save_put(save_job *j, const void *data, size_t size) {
    const char *from = data;
    for (size_t n; size; from += n, size -= n) {
        if (j->used == SAVE_PIECE) PITH_TRY(save_end(j));
        n = size < SAVE_PIECE - j->used ? size : SAVE_PIECE - j->used;
        memcpy(j->piece + j->used, from, n);
        j->used += n;
    }
    return PITH_OK;
}

static pith_status save_zeros(save_job *j, uint64_t size) {
    static const char zeros[SAVE_PAGE];
    for (size_t n; size; size -= n) {
        n = size < sizeof zeros ? (size_t)size : sizeof zeros;
        PITH_TRY(save_put(j, zeros, n));
    }
    return PITH_OK;
}

/* ---- contents ---- */

/* What a section of arrays has of one row. */
static const char *save_row(const save_job *j, uint32_t kind, size_t row, int64_t *id) {
    const pith_search_index *x = j->index;
    const pith__search_segment *s = pith__search_segment_of(x, row);
    const size_t at = pith__search_place(x, row);
    switch (kind) {
    case PITH_INDEX_ROWS: return s->rows + at * x->row_bytes;
    case PITH_INDEX_COPY: return (const char *)s->copy.rows + at * x->copy_row_bytes;
    case PITH_INDEX_FACTORS: return (const char *)(s->copy.factors + at);
    case PITH_INDEX_SHIFTS: return (const char *)(s->copy.shifts + at);
    default: *id = pith__search_id(x, row); return (const char *)id;
    }
}

static size_t save_width(const save_job *j, uint32_t kind) {
    switch (kind) {
    case PITH_INDEX_ROWS: return j->row_bytes;
    case PITH_INDEX_COPY: return j->index->copy_row_bytes;
    case PITH_INDEX_FACTORS:
    case PITH_INDEX_SHIFTS: return sizeof(float);
    default: return sizeof(int64_t);
    }
}

static pith_status save_contents(save_job *j, uint32_t kind) {
    const pith_search_index *x = j->index;
    if (kind == PITH_INDEX_SETTINGS) return save_put(j, j->settings, sizeof j->settings);
    if (kind == PITH_INDEX_OFFSETS)
        return save_put(j, x->offsets, (x->documents + 1) * sizeof *x->offsets);
    const size_t count = kind == PITH_INDEX_IDS ? pith__search_index_items(x) : x->count,
                 width = save_width(j, kind);
    for (size_t i = 0; i < count; i++) {
        int64_t id;
        const size_t row = j->order ? j->order[i].row : i;
        PITH_TRY(save_put(j, save_row(j, kind, row, &id), width));
    }
    return PITH_OK;
}

/* ---- the order of ids ---- */

/* Merges the two halves of 2 * half items of `from`, the last of which may be fewer, into `to`. */
static pith_status save_merge(save_job *j, save_id *to, const save_id *from, size_t count,
                              size_t half) {
    size_t a = 0, b = half < count ? half : count;
    const size_t a_end = b;
    for (size_t i = 0; i < count; i++) {
        if (i % SAVE_STOP_EVERY == 0) PITH_TRY(pith__stop_check(j->stop, j->err));
        const bool first = a < a_end && (b == count || from[a].id < from[b].id);
        to[i] = from[first ? a++ : b++];
    }
    return PITH_OK;
}

/* Sets j->order by merging ever longer runs. Rows that are in order need none. */
static pith_status save_sort(save_job *j, pith__arena *arena) {
    const pith_search_index *x = j->index;
    const size_t count = x->count;
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++) {
        if (i % SAVE_STOP_EVERY == 0) PITH_TRY(pith__stop_check(j->stop, j->err));
        sorted = pith__search_id(x, i - 1) < pith__search_id(x, i);
    }
    if (sorted) return PITH_OK;
    size_t bytes;
    save_id *from, *to;
    if (pith__mul_overflows(count, sizeof *from, &bytes) ||
        !(from = pith__arena_alloc64(arena, bytes)) || !(to = pith__arena_alloc64(arena, bytes)))
        return pith__fail(j->err, PITH_ERR_MEMORY, "out of memory for the order of %zu ids", count);
    for (size_t i = 0; i < count; i++) {
        if (i % SAVE_STOP_EVERY == 0) PITH_TRY(pith__stop_check(j->stop, j->err));
        from[i] = (save_id){ pith__search_id(x, i), i };
    }
    for (size_t half = 1; half < count; half *= 2) {
        PITH_TRY(pith__stop_check(j->stop, j->err));
        for (size_t at = 0; at < count; at += 2 * half) {
            const size_t n = count - at < 2 * half ? count - at : 2 * half;
            PITH_TRY(save_merge(j, to + at, from + at, n, half));
        }
        save_id *swap = from;
        from = to;
        to = swap;
    }
    j->order = from;
    return PITH_OK;
}

static pith_status save_look_at_ids(save_job *j) {
    const pith_search_index *x = j->index;
    const size_t items = pith__search_index_items(x);
    for (size_t i = 0; i < items && !j->ids; i++) {
        if (i % SAVE_STOP_EVERY == 0) PITH_TRY(pith__stop_check(j->stop, j->err));
        j->ids = pith__search_id(x, j->order ? j->order[i].row : i) != (int64_t)i;
    }
    return PITH_OK;
}

/* ---- the file ---- */

static void save_list(save_job *j, uint32_t kind, size_t count) {
    j->sections[j->section_count++] =
        (pith__section_entry){ .kind = kind, .size = (uint64_t)count * save_width(j, kind) };
}

/* The sections that this index has. */
static void save_list_all(save_job *j) {
    const pith_search_index *x = j->index;
    const bool int8 = x->first_pass == PITH_FIRST_PASS_INT8;
    const uint64_t numbers[] = { (uint64_t)x->dim, x->count, x->offsets ? x->documents : 0,
                                 j->row_bytes, x->copy_row_bytes };
    const int codes[] = { x->metric, x->dtype, x->bits, x->first_pass };
    for (int i = 0; i < 4; i++) pith__section_put(j->settings + 4 * i, (uint64_t)codes[i], 4);
    for (int i = 0; i < 5; i++) pith__section_put(j->settings + 16 + 8 * i, numbers[i], 8);
    j->sections[j->section_count++] =
        (pith__section_entry){ .kind = PITH_INDEX_SETTINGS, .size = sizeof j->settings };
    save_list(j, PITH_INDEX_ROWS, x->count);
    if (j->ids) save_list(j, PITH_INDEX_IDS, pith__search_index_items(x));
    if (x->offsets) save_list(j, PITH_INDEX_OFFSETS, x->documents + 1);
    if (x->first_pass) save_list(j, PITH_INDEX_COPY, x->count);
    if (int8) save_list(j, PITH_INDEX_FACTORS, x->count);
    if (int8 && x->metric == PITH_METRIC_L2) save_list(j, PITH_INDEX_SHIFTS, x->count);
}

/* Places and hashes of the sections; returns the size of the file. */
static pith_status save_measure(save_job *j, uint64_t *size) {
    uint64_t end = PITH_SECTIONS_HEADER + j->section_count * PITH_SECTIONS_ENTRY;
    for (size_t i = 0; i < j->section_count; i++) {
        pith__section_entry *s = &j->sections[i];
        const uint64_t align = s->kind == PITH_INDEX_ROWS ? SAVE_PAGE : SAVE_ALIGNMENT;
        end = (end + align - 1) & ~(align - 1);
        s->offset = end;
        end += s->size;
        pith__hash_init(&j->hash);
        PITH_TRY(save_contents(j, s->kind));
        PITH_TRY(save_end(j));
        s->hash = pith__hash_end(&j->hash);
    }
    *size = end;
    return PITH_OK;
}

static pith_status save_write(save_job *j, const pith_writer *writer, uint64_t size) {
    char head[PITH_SECTIONS_HEADER + PITH_INDEX_KINDS * PITH_SECTIONS_ENTRY];
    const size_t head_size = PITH_SECTIONS_HEADER + j->section_count * PITH_SECTIONS_ENTRY;
    pith__sections_head(head, &pith__index_form, j->sections, j->section_count, size);
    pith__out out = { .writer = writer };
    j->out = &out;
    pith__out_begin(&out, size);
    PITH_TRY(pith__out_status(&out, "the index", j->err));
    PITH_TRY(save_put(j, head, head_size));
    uint64_t at = head_size;
    for (size_t i = 0; i < j->section_count; i++) {
        PITH_TRY(save_zeros(j, j->sections[i].offset - at));
        PITH_TRY(save_contents(j, j->sections[i].kind));
        at = j->sections[i].offset + j->sections[i].size;
    }
    return save_end(j);
}

static pith_status save_run(save_job *j, pith__arena *arena, const pith_writer *writer) {
    uint64_t size;
    j->piece = pith__arena_alloc(arena, SAVE_PIECE);
    if (!j->piece) return pith__fail_memory(j->err, SAVE_PIECE);
    if (j->index->own) PITH_TRY(save_sort(j, arena));
    PITH_TRY(save_look_at_ids(j));
    save_list_all(j);
    PITH_TRY(save_measure(j, &size));
    return save_write(j, writer, size);
}

pith_status pith__search_index_save(const pith_search_index *index, const pith_call *call,
                                    const pith_writer *writer, pith_error *err) {
    pith_call c = PITH_CALL_INIT;
    pith__stop own;
    PITH_TAKE_OPTIONS(c, call, err);
    PITH_TRY(pith__writer_check(writer, err));
    const pith_search_index_options o = { .dtype = index->dtype, .bits = index->bits };
    save_job j = { .index = index, .err = err };
    j.stop = pith__stop_begin(&own, &c);
    PITH_TRY(pith__stop_check(j.stop, err));
    PITH_TRY(pith__search_row_bytes(&j.row_bytes, index->dim, &o, err));
    pith__arena arena;
    pith__arena_init(&arena, &index->allocator);
    const pith_status status = save_run(&j, &arena, writer);
    pith__arena_free(&arena);
    return status;
}

/* search_own.c - an index that owns its rows: built from a source, with rows added and removed.
 *
 * Rows lie in segments of one size, in any order; the last row moves into the place of one that is
 * removed, so rows are dense and a search reads nothing else. A table finds the place of an id.
 * Hits are ordered by ids (pith__search_number), so the order of rows cannot be seen.
 *
 * Adding has three steps. What can fail or be stopped is done behind the last row that is counted;
 * then rows are put where they belong, which cannot fail. */
#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/mix.h"
#include "base/os/clock.h"
#include "base/os/threads.h"
#include "search/search.h"

/* Bytes of a segment's rows, at most, unless one row has more. Larger ones leave more memory unused
 * at the end; smaller ones interrupt the runs of addresses that the processor's prefetching
 * follows. */
#define OWN_SEGMENT_BYTES ((size_t)1 << 20)
enum { OWN_SEGMENT_ROWS = 1 << 16 /* at most: ids of short rows take memory too */ };
/* Rows that a build takes at a time, and steps between two looks at whether the call must end. */
enum { OWN_PART = 8192, OWN_STOP_EVERY = 4096 };
enum { OWN_TABLE_LEAST = 64 };

struct pith__search_own {
    size_t segments, room; /* that there are; room: that index->segments has room for */
    size_t given_bytes;    /* from one row of the caller to the next */
    size_t segment_bytes;  /* of its one block: rows, ids, and the copy of the first pass */
    size_t ids_at, copy_at, factors_at, shifts_at; /* in this block */
    size_t *table;     /* places + 1 of ids, open addressing with linear steps; 0: free */
    size_t table_size; /* a power of two; 0: there is none */
    uint64_t seed;     /* of the table, so that nobody can choose ids that collide */
    uint64_t next_id;  /* for rows without an id */
};

/* ---- the table ---- */

static size_t own_home(const struct pith__search_own *own, int64_t id) {
    return (size_t)pith__mix64((uint64_t)id ^ own->seed) & (own->table_size - 1);
}

/* Where an id is in the table, or the free place where it belongs. */
static size_t own_slot(const pith_search_index *x, int64_t id) {
    const struct pith__search_own *own = x->own;
    size_t at = own_home(own, id);
    while (own->table[at] && pith__search_id(x, own->table[at] - 1) != id)
        at = (at + 1) & (own->table_size - 1);
    return at;
}

/* Only for ids that are there. */
static size_t own_find(const pith_search_index *x, int64_t id) {
    return x->own->table[own_slot(x, id)] - 1;
}

/* Frees a place, and moves those behind it up that would not be found any more. */
static void own_clear(const pith_search_index *x, size_t at) {
    const struct pith__search_own *own = x->own;
    const size_t mask = own->table_size - 1;
    for (size_t next = (at + 1) & mask; own->table[next]; next = (next + 1) & mask) {
        const size_t home = own_home(own, pith__search_id(x, own->table[next] - 1));
        if (((next - home) & mask) < ((next - at) & mask)) continue;
        own->table[at] = own->table[next];
        at = next;
    }
    own->table[at] = 0;
}

static void *own_alloc(pith_search_index *x, size_t bytes) {
    void *memory = bytes > SIZE_MAX / 2 ? NULL : pith__memory_alloc(&x->allocator, bytes, 64);
    if (memory) x->bytes += bytes;
    return memory;
}

static void own_free(pith_search_index *x, void *memory, size_t bytes) {
    if (memory) x->bytes -= bytes;
    pith__memory_free(&x->allocator, memory);
}

/* Makes the table large enough for so many ids: three quarters of it at most are in use. The old
 * one stays until the new one is complete. */
static pith_status own_grow_table(pith_search_index *x, size_t ids, pith__stop *stop,
                                  pith_error *err) {
    struct pith__search_own *own = x->own;
    size_t size = own->table_size ? own->table_size : OWN_TABLE_LEAST;
    while (size / 4 * 3 < ids && size <= SIZE_MAX / 4) size *= 2;
    if (size == own->table_size) return PITH_OK;
    size_t bytes;
    if (size / 4 * 3 < ids || pith__mul_overflows(size, sizeof *own->table, &bytes))
        return pith__fail_memory(err, SIZE_MAX);
    struct pith__search_own old = *own;
    size_t *table = own_alloc(x, bytes);
    if (!table) return pith__fail_memory(err, bytes);
    memset(table, 0, bytes);
    own->table = table;
    own->table_size = size;
    for (size_t row = 0; row < x->count; row++) {
        if (row % OWN_STOP_EVERY == 0 && pith__stop_asked(stop)) {
            own_free(x, table, bytes);
            own->table = old.table;
            own->table_size = old.table_size;
            return pith__stop_check(stop, err);
        }
        own->table[own_slot(x, pith__search_id(x, row))] = row + 1;
    }
    own_free(x, old.table, old.table_size * sizeof *old.table);
    return PITH_OK;
}

/* ---- segments ---- */

/* Where the parts of a segment's block begin; PITH_ERR_MEMORY if it would be too large. */
static pith_status own_lay_out(pith_search_index *x, pith_error *err) {
    struct pith__search_own *own = x->own;
    const bool int8 = x->first_pass == PITH_FIRST_PASS_INT8;
    const size_t widths[] = { x->row_bytes, sizeof(int64_t), x->copy_row_bytes,
                              int8 ? sizeof(float) : 0,
                              int8 && x->metric == PITH_METRIC_L2 ? sizeof(float) : 0 };
    size_t *const starts[] = { NULL, &own->ids_at, &own->copy_at, &own->factors_at,
                               &own->shifts_at };
    size_t at = 0, rows = (size_t)1 << x->shift;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        size_t bytes;
        if (starts[i]) *starts[i] = at;
        if (pith__mul_overflows(rows, widths[i], &bytes) || bytes > SIZE_MAX / 16)
            return pith__fail_memory(err, SIZE_MAX);
        at += pith__round64(bytes);
    }
    own->segment_bytes = at;
    return PITH_OK;
}

static pith_status own_add_segment(pith_search_index *x, pith_error *err) {
    struct pith__search_own *own = x->own;
    if (own->segments == own->room) {
        const size_t room = own->room ? own->room * 2 : 8;
        pith__search_segment *grown = own_alloc(x, room * sizeof *grown);
        if (!grown) return pith__fail_memory(err, room * sizeof *grown);
        if (own->room) memcpy(grown, x->segments, own->room * sizeof *grown);
        if (own->room) own_free(x, x->segments, own->room * sizeof *grown);
        x->segments = grown;
        own->room = room;
    }
    char *block = own_alloc(x, own->segment_bytes);
    if (!block)
        return pith__fail(err, PITH_ERR_MEMORY, "out of memory for more than %zu rows",
                          own->segments << x->shift);
    const bool int8 = x->first_pass == PITH_FIRST_PASS_INT8;
    pith__search_segment s = { .rows = block, .ids = (void *)(block + own->ids_at) };
    if (x->first_pass) s.copy.rows = block + own->copy_at;
    if (int8) s.copy.factors = (void *)(block + own->factors_at);
    if (int8 && x->metric == PITH_METRIC_L2) s.copy.shifts = (void *)(block + own->shifts_at);
    x->segments[own->segments++] = s;
    return PITH_OK;
}

/* Frees segments that no row is in. */
static void own_trim(pith_search_index *x) {
    struct pith__search_own *own = x->own;
    while (own->segments && (own->segments - 1) << x->shift >= x->count)
        own_free(x, (void *)(uintptr_t)x->segments[--own->segments].rows, own->segment_bytes);
}

static void own_put(const pith_search_index *x, size_t at, const void *row, int64_t id) {
    const pith__search_segment *s = pith__search_segment_of(x, at);
    const size_t place = pith__search_place(x, at);
    memcpy((char *)(uintptr_t)s->rows + place * x->row_bytes, row, x->row_bytes);
    ((int64_t *)(uintptr_t)s->ids)[place] = id;
}

static void own_move(const pith_search_index *x, size_t to, size_t from) {
    const pith__search_segment *s = pith__search_segment_of(x, from),
                               *t = pith__search_segment_of(x, to);
    const size_t a = pith__search_place(x, from), b = pith__search_place(x, to);
    own_put(x, to, s->rows + a * x->row_bytes, s->ids[a]);
    if (s->copy.rows)
        memcpy((char *)t->copy.rows + b * x->copy_row_bytes,
               (const char *)s->copy.rows + a * x->copy_row_bytes, x->copy_row_bytes);
    if (s->copy.factors) t->copy.factors[b] = s->copy.factors[a];
    if (s->copy.shifts) t->copy.shifts[b] = s->copy.shifts[a];
}

/* ---- adding ---- */

/* Memory for more rows: afterwards, putting them in cannot fail. */
static pith_status own_reserve(pith_search_index *x, size_t more, pith__stop *stop,
                               pith_error *err) {
    size_t rows;
    if (pith__add_overflows(x->count, more, &rows) || rows > INT64_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT, "%zu rows are larger than memory", more);
    PITH_TRY(own_grow_table(x, rows, stop, err));
    while (x->own->segments << x->shift < rows) PITH_TRY(own_add_segment(x, err));
    return PITH_OK;
}

/* Copies rows behind the last one that is counted, and makes their copies of the first pass. */
static pith_status own_bring(pith_search_index *x, const char *rows, const int64_t *ids,
                             size_t count, int threads, pith__stop *stop, pith_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (i % 64 == 0) PITH_TRY(pith__stop_check(stop, err));
        own_put(x, x->count + i, rows + i * x->own->given_bytes,
                ids ? ids[i] : (int64_t)(x->own->next_id + i));
    }
    if (!x->first_pass) return PITH_OK;
    return pith__search_copy_rows(x, x->count, x->count + count, threads, stop, err);
}

/* Puts the rows behind the last one where they belong: an id that is new goes behind it, one that
 * is there gets its new row. *twice: the first id that is there already, if there is one; a build
 * does not want it, and gives the index up. */
static void own_settle(pith_search_index *x, size_t count, int64_t *twice) {
    struct pith__search_own *own = x->own;
    const size_t begin = x->count;
    size_t end = begin;
    for (size_t from = begin; from < begin + count; from++) {
        const int64_t id = pith__search_id(x, from);
        const size_t slot = own_slot(x, id);
        if (own->table[slot]) {
            if (*twice < 0) *twice = id;
            own_move(x, own->table[slot] - 1, from);
            continue;
        }
        if (from != end) own_move(x, end, from);
        own->table[slot] = ++end;
        if ((uint64_t)id >= own->next_id) own->next_id = (uint64_t)id + 1;
    }
    x->count = end;
}

static pith_status own_check_ids(const pith_search_index *x, const int64_t *ids, size_t count,
                                 pith__stop *stop, pith_error *err) {
    if (!ids) {
        if (count > (uint64_t)INT64_MAX + 1 - x->own->next_id)
            return pith__fail(err, PITH_ERR_ARGUMENT, "no ids are left above %lld",
                              (long long)(x->own->next_id - 1));
        return PITH_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (i % OWN_STOP_EVERY == 0) PITH_TRY(pith__stop_check(stop, err));
        if (ids[i] < 0)
            return pith__fail(err, PITH_ERR_ARGUMENT, "ids[%zu] is %lld, less than 0", i,
                              (long long)ids[i]);
    }
    return PITH_OK;
}

static pith_status own_add(pith_search_index *x, const void *rows, const int64_t *ids, size_t count,
                           int64_t *twice, int threads, pith__stop *stop, pith_error *err) {
    *twice = -1;
    if (count && !rows) return pith__fail(err, PITH_ERR_ARGUMENT, "rows is NULL");
    PITH_TRY(own_check_ids(x, ids, count, stop, err));
    pith_status status = own_reserve(x, count, stop, err);
    if (!status) status = own_bring(x, rows, ids, count, threads, stop, err);
    if (!status) own_settle(x, count, twice);
    own_trim(x);
    return status;
}

/* ---- making one ---- */

static void own_drop(pith_search_index *x) {
    struct pith__search_own *own = x->own;
    x->count = 0;
    own_trim(x);
    if (own->room) pith__memory_free(&x->allocator, x->segments);
    pith__memory_free(&x->allocator, own->table);
    pith__memory_free(&x->allocator, own);
}

/* Gives an index without rows what it needs to own some. */
static pith_status own_begin(pith_search_index *x, size_t given_bytes, pith_error *err) {
    struct pith__search_own *own = own_alloc(x, sizeof *own);
    if (!own) return pith__fail_memory(err, sizeof *own);
    *own = (struct pith__search_own){ .given_bytes = given_bytes,
                                      .seed = pith__clock_ns() ^ (uint64_t)(uintptr_t)own };
    x->own = own;
    x->find = own_find;
    x->drop = own_drop;
    x->segments = NULL;
    x->shift = 0;
    while (x->row_bytes << (x->shift + 1) <= OWN_SEGMENT_BYTES && 1 << x->shift < OWN_SEGMENT_ROWS)
        x->shift++;
    return own_lay_out(x, err);
}

/* One page, in parts, so that a large one can be stopped too. */
static pith_status own_take_page(pith_search_index *x, const char *rows, const int64_t *ids,
                                 size_t count, int threads, pith__stop *stop, pith_error *err) {
    for (size_t at = 0, n; at < count; at += n) {
        int64_t twice;
        n = count - at < OWN_PART ? count - at : OWN_PART;
        const pith_status status = own_add(x, rows ? rows + at * x->own->given_bytes : NULL,
                                           ids ? ids + at : NULL, n, &twice, threads, stop, err);
        if (status) return status;
        if (twice >= 0)
            return pith__fail(err, PITH_ERR_ARGUMENT, "id %lld comes twice", (long long)twice);
    }
    return PITH_OK;
}

static pith_status own_take_rows(pith_search_index *x, const pith_row_source *source, int threads,
                                 pith__stop *stop, pith_error *err) {
    for (;;) {
        const void *rows = NULL;
        const int64_t *ids = NULL;
        size_t count = 0;
        pith_error why = PITH_ERROR_INIT;
        PITH_TRY(pith__stop_check(stop, err));
        const size_t before = x->count;
        pith_status status = source->next(source->user, &rows, &ids, &count, &why);
        if (status)
            return pith__fail(err, status, "the source of rows, after %zu: %s", before,
                              why.message[0] ? why.message : "it failed");
        if (!count) return PITH_OK;
        status = own_take_page(x, rows, ids, count, threads, stop, err);
        if (status)
            return pith__status_stops(status)
                       ? status
                       : pith__fail_at(err, status, "the page after %zu rows: ", before);
    }
}

pith_status pith__search_index_build(pith_search_index **index, const pith_row_source *source,
                                     size_t dim, const pith_search_index_options *options,
                                     pith_error *err) {
    pith_search_index_options o;
    pith_search_index *x;
    size_t row_bytes;
    PITH_TRY(pith__search_take_options(&o, options, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    PITH_TRY(pith__stop_check(stop, err));
    if (!source || !source->next)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no source of rows");
    if (o.metric == PITH_METRIC_MAXSIM)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "an index of documents (maxsim) cannot be built from a source; make it "
                          "of all rows with pith_search_index_create");
    if (o.offsets)
        return pith__fail(err, PITH_ERR_ARGUMENT, "offsets are for the metric maxsim only");
    PITH_TRY(pith__search_row_bytes(&row_bytes, dim, &o, err));
    PITH_TRY(pith__search_index_new(&x, dim, row_bytes, &o, err));
    pith_status status = own_begin(x, o.row_bytes ? o.row_bytes : row_bytes, err);
    const int threads = pith__threads_count(o.call.threads);
    if (!status) status = own_take_rows(x, source, threads, stop, err);
    if (status)
        pith__search_index_free(x);
    else
        *index = x;
    return status;
}

/* ---- changing one ---- */

/* Brings the rows of a file into `to`, an index without rows. */
static pith_status own_thaw_rows(pith_search_index *to, const pith_search_index *from,
                                 pith__stop *stop, pith_error *err) {
    PITH_TRY(own_reserve(to, from->count, stop, err));
    int64_t last = -1;
    const pith__search_copy *copy = &from->whole.copy;
    for (size_t row = 0; row < from->count; row++) {
        if (row % 64 == 0) PITH_TRY(pith__stop_check(stop, err));
        const int64_t id = pith__search_id(from, row);
        if (id <= last)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "the file of the index is damaged: its ids do not ascend");
        last = id;
        own_put(to, row, from->whole.rows + row * from->row_bytes, id);
        const pith__search_copy *into = &pith__search_segment_of(to, row)->copy;
        const size_t at = pith__search_place(to, row);
        if (copy->rows)
            memcpy((char *)into->rows + at * to->copy_row_bytes,
                   (const char *)copy->rows + row * to->copy_row_bytes, to->copy_row_bytes);
        if (copy->factors) into->factors[at] = copy->factors[row];
        if (copy->shifts) into->shifts[at] = copy->shifts[row];
        to->own->table[own_slot(to, id)] = row + 1;
        to->count = row + 1;
    }
    to->own->next_id = (uint64_t)last + 1;
    return PITH_OK;
}

/* Before its first change, an index that was opened becomes one that owns its rows. */
static pith_status own_thaw(pith_search_index *x, pith__stop *stop, pith_error *err) {
    pith_search_index made = *x;
    made.bytes = sizeof made;
    made.count = 0;
    made.file = NULL;
    made.drop = NULL;
    made.whole = (pith__search_segment){ .rows = NULL };
    pith_status status = own_begin(&made, x->row_bytes, err);
    if (!status) status = own_thaw_rows(&made, x, stop, err);
    if (!status) {
        x->drop(x);
        *x = made;
    } else if (made.drop) {
        made.drop(&made);
    }
    return status;
}

static pith_status own_begin_change(pith_search_index *x, pith_call *call, const pith_call *given,
                                    pith__stop **stop, pith__stop *room, pith_error *err) {
    *call = (pith_call)PITH_CALL_INIT;
    PITH_TAKE_OPTIONS(*call, given, err);
    PITH_TRY(pith__threads_check(call->threads, err));
    *stop = pith__stop_begin(room, call);
    PITH_TRY(pith__stop_check(*stop, err));
    if (x->own) return PITH_OK;
    if (x->metric == PITH_METRIC_MAXSIM)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "an index of documents (maxsim) cannot change; make another one");
    if (!x->file)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the index is over rows of the caller and cannot change; make it with "
                          "pith_search_index_build");
    return own_thaw(x, *stop, err);
}

pith_status pith__search_index_add(pith_search_index *index, const void *rows, const int64_t *ids,
                                   size_t count, const pith_call *call, pith_error *err) {
    pith_call c;
    pith__stop room, *stop;
    int64_t twice;
    PITH_TRY(own_begin_change(index, &c, call, &stop, &room, err));
    return own_add(index, rows, ids, count, &twice, pith__threads_count(c.threads), stop, err);
}

static bool own_remove(pith_search_index *x, int64_t id) {
    if (!x->count) return false;
    const size_t slot = own_slot(x, id), row = x->own->table[slot] - 1, last = x->count - 1;
    if (!x->own->table[slot]) return false;
    own_clear(x, slot);
    if (row != last) {
        x->own->table[own_slot(x, pith__search_id(x, last))] = row + 1;
        own_move(x, row, last);
    }
    x->count = last;
    return true;
}

pith_status pith__search_index_remove(pith_search_index *index, size_t *removed, const int64_t *ids,
                                      size_t count, const pith_call *call, pith_error *err) {
    pith_call c;
    pith__stop room, *stop;
    size_t gone = 0;
    PITH_TRY(own_begin_change(index, &c, call, &stop, &room, err));
    if (count && !ids) return pith__fail(err, PITH_ERR_ARGUMENT, "ids is NULL");
    for (size_t i = 0; i < count; i++) gone += own_remove(index, ids[i]);
    own_trim(index);
    if (removed) *removed = gone;
    return PITH_OK;
}

/* constant_spans.c - see constant_spans.h. */
#include "formats/compiled/constant_spans.h"

#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/str.h"
#include "formats/compiled/wire_bytes.h"

/* Spans below this size, a page, come first in the section, so that opening touches few pages. */
#define SMALL_BYTES ((size_t)4096)
#define ROW 16

pith_status pith__constant_spans_begin(pith__constant_spans_out *out, pith__arena *arena,
                                       pith_error *err) {
    *out = (pith__constant_spans_out){ .arena = arena };
    return pith__map_init(&out->by_hash, arena, 256) ? pith__fail_memory(err, 256) : PITH_OK;
}

/* Compared piece by piece, as long as the call need not end. */
static bool spans_equal(pith_str a, pith_str b, pith__stop *stop) {
    enum { PIECE = 4 << 20 };
    bool equal = a.size == b.size;
    for (size_t at = 0, n; equal && at < a.size; at += n) {
        if (pith__stop_asked(stop)) break;
        n = a.size - at < PIECE ? a.size - at : PIECE;
        equal = !memcmp(a.data + at, b.data + at, n);
    }
    return equal;
}

/* Spans with the same hash and size are chained through `same`, and compared byte by byte: a hash
 * alone would make a wrong model of two weights that collide. */
pith_status pith__constant_spans_add(uint32_t *number, pith__constant_spans_out *out,
                                     const void *data, size_t size, pith_error *err) {
    pith_str span = { size ? data : "", size };
    uint64_t sum[2] = { 0, size };
    pith__hash hash;
    pith__hash_init(&hash);
    PITH_TRY(pith__hash_add_until(&hash, span.data, size, out->stop, err));
    sum[0] = pith__hash_end(&hash);
    pith_str key = pith__arena_str(out->arena, (pith_str){ (const char *)sum, sizeof sum });
    if (!key.data) return pith__fail_memory(err, sizeof sum);
    uint32_t last = pith__map_get(&out->by_hash, key);
    for (uint32_t i = last; i != UINT32_MAX; i = out->same[i]) {
        if (!spans_equal(out->spans[i], span, out->stop)) continue;
        *number = i;
        return PITH_OK;
    }
    if (!pith__arena_grow(out->arena, (void **)&out->spans, out->count, &out->capacity,
                          sizeof *out->spans) ||
        !pith__arena_grow(out->arena, (void **)&out->same, out->count, &out->same_capacity,
                          sizeof *out->same) ||
        out->count >= UINT32_MAX || !pith__map_put(&out->by_hash, key, (uint32_t)out->count, NULL))
        return pith__fail_memory(err, sizeof *out->spans);
    out->same[out->count] = last;
    out->spans[out->count] = span;
    *number = (uint32_t)out->count++;
    return PITH_OK;
}

static uint64_t spans_round_up(uint64_t x) {
    return (x + PITH_COMPILED_ALIGNMENT - 1) & ~(uint64_t)(PITH_COMPILED_ALIGNMENT - 1);
}

/* The table comes first, then two rounds over the spans: those of less than a page, then the
 * others. Offsets are relative to the section. */
pith_status pith__constant_spans_end(pith__section_out *section,
                                     const pith__constant_spans_out *out, pith_error *err) {
    pith__piece_out *pieces = pith__arena_array(out->arena, out->count + 1, sizeof *pieces);
    uint64_t *offsets = pith__arena_array(out->arena, out->count, sizeof *offsets);
    pith__bytes_out table = { .arena = out->arena };
    if (!pieces || !offsets) return pith__fail_memory(err, out->count * sizeof *pieces);
    uint64_t end = 8 + ROW * (uint64_t)out->count;
    size_t n = 1;
    for (int large = 0; large < 2; large++)
        for (size_t i = 0; i < out->count; i++) {
            if ((out->spans[i].size >= SMALL_BYTES) != large) continue;
            offsets[i] = spans_round_up(end);
            pieces[n++] = (pith__piece_out){ out->spans[i].data, out->spans[i].size, offsets[i] };
            end = offsets[i] + out->spans[i].size;
        }
    pith__put_i64(&table, (int64_t)out->count);
    for (size_t i = 0; i < out->count; i++) {
        pith__put_i64(&table, (int64_t)offsets[i]);
        pith__put_i64(&table, (int64_t)out->spans[i].size);
    }
    if (table.failed) return pith__fail_memory(err, table.size);
    pieces[0] = (pith__piece_out){ table.data, table.size, 0 };
    *section = (pith__section_out){ PITH_SECTION_WEIGHTS, 0, end, pieces, out->count + 1 };
    return PITH_OK;
}

static pith__bytes_in spans_row_of(pith_str section, size_t number) {
    return (pith__bytes_in){ .bytes = section, .at = 8 + ROW * number };
}

/* All rows are checked once, so that pith__constant_spans_get need not. */
pith_status pith__constant_spans_open(pith__constant_spans_in *in, pith_str section,
                                      pith_error *err) {
    pith__bytes_in table = { .bytes = section, .what = "weights", .err = err };
    int64_t count = pith__get_i64(&table);
    if (table.status) return table.status;
    if (count < 0 || (uint64_t)count > (section.size - 8) / ROW || count >= UINT32_MAX)
        return pith__bytes_fail(&table, "more spans than the section has room for");
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = pith__get_i64(&table), size = pith__get_i64(&table);
        if (offset < 0 || size < 0 || (uint64_t)offset > section.size ||
            (uint64_t)size > section.size - (size_t)offset || offset % PITH_COMPILED_ALIGNMENT)
            return pith__bytes_fail(&table, "a span outside the section");
    }
    *in = (pith__constant_spans_in){ section, (size_t)count };
    return PITH_OK;
}

pith_str pith__constant_spans_get(const pith__constant_spans_in *in, uint32_t number) {
    pith__bytes_in row = spans_row_of(in->section, number);
    int64_t offset = pith__get_i64(&row), size = pith__get_i64(&row);
    return (pith_str){ in->section.data + offset, (size_t)size };
}

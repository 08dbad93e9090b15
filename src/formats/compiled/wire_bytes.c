/* wire_bytes.c - see wire_bytes.h. */
#include "formats/compiled/wire_bytes.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* ---- out ---- */

void pith__put_bytes(pith__bytes_out *out, const void *data, size_t size) {
    size_t wanted;
    if (out->failed || !size) return;
    if (pith__add_overflows(out->size, size, &wanted)) {
        out->failed = true;
        return;
    }
    if (wanted > out->capacity) {
        size_t capacity = wanted > SIZE_MAX / 2 ? wanted : wanted * 2;
        char *grown = pith__arena_alloc(out->arena, capacity);
        if (!grown) {
            out->failed = true;
            return;
        }
        if (out->size) memcpy(grown, out->data, out->size);
        out->data = grown;
        out->capacity = capacity;
    }
    memcpy(out->data + out->size, data, size);
    out->size = wanted;
}

static void wire_bytes_put_number(pith__bytes_out *out, uint64_t x, size_t size) {
    unsigned char bytes[8];
    for (size_t i = 0; i < size; i++, x >>= 8) bytes[i] = (unsigned char)(x & 0xFF);
    pith__put_bytes(out, bytes, size);
}

void pith__put_u32(pith__bytes_out *out, uint32_t x) { wire_bytes_put_number(out, x, 4); }

void pith__put_i64(pith__bytes_out *out, int64_t x) { wire_bytes_put_number(out, (uint64_t)x, 8); }

void pith__put_str(pith__bytes_out *out, pith_str s) {
    if (s.size > UINT32_MAX) out->failed = true;
    pith__put_u32(out, (uint32_t)s.size);
    pith__put_bytes(out, s.data, s.size);
}

/* ---- in ---- */

pith_status pith__bytes_fail(pith__bytes_in *in, const char *fault) {
    if (!in->status)
        in->status =
            pith__fail(in->err, PITH_ERR_FORMAT, "%s: byte %zu: %s", in->what, in->at, fault);
    return in->status;
}

const void *pith__get_bytes(pith__bytes_in *in, size_t size) {
    if (!in->status && size > in->bytes.size - in->at) pith__bytes_fail(in, "the data ends here");
    if (in->status) return NULL;
    const char *p = in->bytes.data + in->at;
    in->at += size;
    return p;
}

static uint64_t get_number(pith__bytes_in *in, size_t size) {
    const unsigned char *p = pith__get_bytes(in, size);
    uint64_t x = 0;
    if (p)
        for (size_t i = size; i-- > 0;) x = x << 8 | p[i];
    return x;
}

uint32_t pith__get_u32(pith__bytes_in *in) { return (uint32_t)get_number(in, 4); }

int64_t pith__get_i64(pith__bytes_in *in) { return (int64_t)get_number(in, 8); }

pith_str pith__get_str(pith__bytes_in *in) {
    size_t size = pith__get_u32(in);
    const char *data = pith__get_bytes(in, size);
    return data ? (pith_str){ data, size } : (pith_str){ "", 0 };
}

size_t pith__get_count(pith__bytes_in *in, size_t item_bytes) {
    size_t count = pith__get_u32(in);
    if (count <= (in->bytes.size - in->at) / item_bytes) return count;
    pith__bytes_fail(in, "a count of more items than the remaining bytes hold");
    return 0;
}

uint32_t pith__get_below(pith__bytes_in *in, uint32_t limit, const char *fault) {
    uint32_t x = pith__get_u32(in);
    if (x < limit || in->status) return in->status ? 0 : x;
    pith__bytes_fail(in, fault);
    return 0;
}

pith_status pith__bytes_end(pith__bytes_in *in) {
    if (!in->status && in->at != in->bytes.size) pith__bytes_fail(in, "unread bytes at the end");
    return in->status;
}

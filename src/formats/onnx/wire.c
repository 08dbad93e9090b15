/* wire.c - reads protobuf fields. Every length is compared with what is left of the span; nothing
 * is trusted. */
#include "formats/onnx/wire.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "ONNX data is used in place and is little endian");

void pith__wire_init(pith__wire *w, pith_str bytes, const void *base, pith_error *err) {
    const uint8_t *begin = (const uint8_t *)(bytes.data ? bytes.data : "");
    *w = (pith__wire){ begin, begin + bytes.size, base, err, false };
}

static bool wire_fault(pith__wire *w, const char *what) {
    pith__fail(w->err, PITH_ERR_FORMAT, "%s at byte %td", what, w->at - w->base);
    w->failed = true;
    return false;
}

/* Ten bytes at most; bits beyond 64 are dropped, as protobuf's own readers do. */
static bool wire_read_varint(pith__wire *w, uint64_t *value) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end) return wire_fault(w, "the file is cut short");
        uint8_t b = *w->at++;
        v |= shift < 64 ? (uint64_t)(b & 0x7F) << shift : 0;
        if (b < 0x80) {
            *value = v;
            return true;
        }
    }
    return wire_fault(w, "a number is too long");
}

bool pith__wire_next_varint(pith__wire *w, uint64_t *value) {
    return !w->failed && w->at < w->end && wire_read_varint(w, value);
}

/* Groups, wire types 3 and 4, are not read: ONNX never had any. Field 0 is not a field. */
bool pith__wire_next(pith__wire *w, pith__wire_field *field) {
    uint64_t tag;
    if (w->failed || w->at == w->end || !wire_read_varint(w, &tag)) return false;
    if (tag >> 3 == 0 || tag > UINT32_MAX) return wire_fault(w, "not a protobuf field");
    *field = (pith__wire_field){ .tag = (uint32_t)tag, .bytes = { "", 0 } };
    size_t left = (size_t)(w->end - w->at);
    switch (tag & 7) {
    case 0: return wire_read_varint(w, &field->value);
    case 1:
    case 5: {
        size_t size = (tag & 7) == 1 ? 8 : 4;
        if (left < size) return wire_fault(w, "the file is cut short");
        memcpy(&field->value, w->at, size);
        w->at += size;
        return true;
    }
    case 2: {
        uint64_t size;
        if (!wire_read_varint(w, &size)) return false;
        if (size > (uint64_t)(w->end - w->at))
            return wire_fault(w, "a length reaches beyond the end");
        field->bytes = (pith_str){ (const char *)w->at, (size_t)size };
        w->at += size;
        return true;
    }
    default: return wire_fault(w, "not a protobuf field");
    }
}

uint64_t pith__wire_count_varints(pith_str bytes) {
    uint64_t count = 0;
    for (size_t i = 0; i < bytes.size; i++) count += (uint8_t)bytes.data[i] < 0x80;
    return count;
}

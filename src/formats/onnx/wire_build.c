/* wire_build.c - see wire_build.h. Source: protobuf.dev, "Encoding". */
#include "formats/onnx/wire_build.h"

#include <string.h>

#include "base/checked.h"
#include "formats/onnx/wire.h"

/* The first block; each further one is twice as large. */
#define BUILD_FIRST ((size_t)4096)
enum { VARINT_MAX = 10 };

void pith__wire_build_free(pith__wire_build *b) {
    pith__memory_free(b->allocator, b->bytes);
    b->bytes = NULL;
    b->size = b->capacity = 0;
}

/* Doubling keeps the work in proportion to the size. After a failure all calls return at once. */
static bool build_reserve(pith__wire_build *b, size_t more) {
    size_t need, capacity;
    if (b->failed) return false;
    if (!pith__add_overflows(b->size, more, &need) && need <= b->capacity && b->bytes) return true;
    capacity = b->capacity ? b->capacity : BUILD_FIRST;
    while (capacity < need && capacity <= SIZE_MAX / 2) capacity *= 2;
    char *bytes =
        need >= more && capacity >= need ? pith__memory_alloc(b->allocator, capacity, 16) : NULL;
    if (!bytes) {
        b->failed = true;
        return false;
    }
    if (b->size) memcpy(bytes, b->bytes, b->size);
    pith__memory_free(b->allocator, b->bytes);
    b->bytes = bytes;
    b->capacity = capacity;
    return true;
}

void pith__wire_build_raw(pith__wire_build *b, const void *bytes, size_t size) {
    if (!size || !build_reserve(b, size)) return;
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static size_t build_varint(unsigned char *text, uint64_t n) {
    size_t size = 0;
    for (; n > 127; n >>= 7) text[size++] = (unsigned char)(n | 128);
    text[size++] = (unsigned char)n;
    return size;
}

static void build_number(pith__wire_build *b, uint64_t n) {
    unsigned char text[VARINT_MAX];
    pith__wire_build_raw(b, text, build_varint(text, n));
}

void pith__wire_build_varint(pith__wire_build *b, int number, uint64_t value) {
    build_number(b, PITH_WIRE_VARINT(number));
    build_number(b, value);
}

void pith__wire_build_float(pith__wire_build *b, int number, float value) {
    build_number(b, PITH_WIRE_FIXED32(number));
    pith__wire_build_raw(b, &value, sizeof value); /* the wire is little endian, and so are all
                                                      hosts (wire.c) */
}

void pith__wire_build_bytes(pith__wire_build *b, int number, pith_str bytes) {
    build_number(b, PITH_WIRE_BYTES(number));
    build_number(b, bytes.size);
    pith__wire_build_raw(b, bytes.data, bytes.size);
}

size_t pith__wire_build_open(pith__wire_build *b, int number) {
    build_number(b, PITH_WIRE_BYTES(number));
    return b->size;
}

/* The length of a message is known when it ends, so its bytes are moved by that of the length: one
 * to five bytes for each level of nesting. */
void pith__wire_build_close(pith__wire_build *b, size_t place) {
    unsigned char text[VARINT_MAX];
    if (b->failed) return;
    const size_t size = b->size - place, length = build_varint(text, size);
    if (!build_reserve(b, length)) return;
    memmove(b->bytes + place + length, b->bytes + place, size);
    memcpy(b->bytes + place, text, length);
    b->size += length;
}

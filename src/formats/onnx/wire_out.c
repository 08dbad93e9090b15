/* wire_out.c - see wire_out.h. */
#include "formats/onnx/wire_out.h"

#include <string.h>

#include "formats/onnx/wire.h"

static void wire_put(pith__wire_out *out, const void *bytes, size_t size) {
    if (out->out && !pith__stop_asked(out->stop)) pith__out_put(out->out, bytes, size);
    out->size += size;
}

static void wire_put_number(pith__wire_out *out, uint64_t n) {
    unsigned char text[10];
    size_t size = 0;
    for (; n > 127; n >>= 7) text[size++] = (unsigned char)(n | 128);
    text[size++] = (unsigned char)n;
    wire_put(out, text, size);
}

void pith__wire_put_varint(pith__wire_out *out, int number, uint64_t value) {
    wire_put_number(out, PITH_WIRE_VARINT(number));
    wire_put_number(out, value);
}

void pith__wire_put_float(pith__wire_out *out, int number, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned char text[] = { (unsigned char)bits, (unsigned char)(bits >> 8),
                                   (unsigned char)(bits >> 16), (unsigned char)(bits >> 24) };
    wire_put_number(out, PITH_WIRE_FIXED32(number));
    wire_put(out, text, sizeof text);
}

void pith__wire_put_bytes(pith__wire_out *out, int number, const void *bytes, size_t size) {
    wire_put_number(out, PITH_WIRE_BYTES(number));
    wire_put_number(out, size);
    wire_put(out, bytes, size);
}

void pith__wire_put_message(pith__wire_out *out, int number,
                            void (*put)(pith__wire_out *out, const void *message),
                            const void *message) {
    pith__wire_out counted = { NULL, NULL, 0 };
    put(&counted, message);
    wire_put_number(out, PITH_WIRE_BYTES(number));
    wire_put_number(out, counted.size);
    if (out->out)
        put(out, message);
    else
        out->size += counted.size;
}

/* wire_out.h - writes the protobuf wire format without buffers: a nested message is walked twice, first for its length.
 * Source: protobuf.dev, "Encoding". */
#ifndef PITH_FORMATS_ONNX_WIRE_OUT_H
#define PITH_FORMATS_ONNX_WIRE_OUT_H

#include <stddef.h>
#include <stdint.h>

typedef struct pith_wire_out {
    void (*write)(void *user, const char *bytes, size_t size); /* NULL: bytes are only counted */
    void *user;
    size_t size; /* bytes so far */
} pith_wire_out;

void pith_wire_put_varint(pith_wire_out *out, int number, uint64_t value);
void pith_wire_put_float(pith_wire_out *out, int number, float value);
void pith_wire_put_bytes(pith_wire_out *out, int number, const void *bytes, size_t size);
/* A nested message: `put` writes its fields, the same each time it is called. */
void pith_wire_put_message(pith_wire_out *out, int number, void (*put)(pith_wire_out *out, const void *message),
                           const void *message);

#endif

/* wire_out.h - writes the protobuf wire format without buffers: a nested message is walked twice,
 * first for its length. Source: protobuf.dev, "Encoding". */
#ifndef PITH_FORMATS_ONNX_WIRE_OUT_H
#define PITH_FORMATS_ONNX_WIRE_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/stop.h"
#include "base/writer.h"

typedef struct pith__wire_out {
    pith__out *out;   /* NULL: bytes are only counted */
    pith__stop *stop; /* once it says so, nothing more is written; may be NULL */
    size_t size;      /* bytes so far */
} pith__wire_out;

void pith__wire_put_varint(pith__wire_out *out, int number, uint64_t value);
void pith__wire_put_float(pith__wire_out *out, int number, float value);
void pith__wire_put_bytes(pith__wire_out *out, int number, const void *bytes, size_t size);
/* A nested message: `put` writes its fields, the same each time it is called. */
void pith__wire_put_message(pith__wire_out *out, int number,
                            void (*put)(pith__wire_out *out, const void *message),
                            const void *message);

#endif

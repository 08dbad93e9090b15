/* wire.h - the protobuf wire format, as a cursor over a span: no tree, no copies.
 *
 *   pith__wire w;
 *   pith__wire_field f;
 *   pith__wire_init(&w, bytes, base, err);
 *   while (pith__wire_next(&w, &f)) {
 *       switch (f.tag) {
 *       case PITH_WIRE_BYTES(7): graph = f.bytes; break;
 *       case PITH_WIRE_VARINT(1): version = (int64_t)f.value; break;
 *       }
 *   }
 *   if (w.failed) return PITH_ERR_FORMAT;
 *
 * A field of an unexpected wire type has another tag and is skipped like an unknown one, as
 * protobuf requires. Source: protobuf.dev, "Encoding". Groups are refused: no ONNX message has
 * any. */
#ifndef PITH_FORMATS_ONNX_WIRE_H
#define PITH_FORMATS_ONNX_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "pith/types.h"

#define PITH_WIRE_VARINT(number) ((uint32_t)(number) << 3 | 0)
#define PITH_WIRE_FIXED64(number) ((uint32_t)(number) << 3 | 1)
#define PITH_WIRE_BYTES(number) ((uint32_t)(number) << 3 | 2)
#define PITH_WIRE_FIXED32(number) ((uint32_t)(number) << 3 | 5)

typedef struct pith__wire {
    const uint8_t *at, *end;
    const uint8_t *base; /* start of the file, for messages */
    pith_error *err;
    bool failed;
} pith__wire;

typedef struct pith__wire_field {
    uint32_t tag;   /* PITH_WIRE_VARINT(number) … */
    uint64_t value; /* of a varint or fixed field */
    pith_str bytes; /* of a length-delimited field; inside the span, data is never NULL */
} pith__wire_field;

void pith__wire_init(pith__wire *w, pith_str bytes, const void *base, pith_error *err);
/* The next field; false at the end and on a fault, which is in err then. */
bool pith__wire_next(pith__wire *w, pith__wire_field *field);
/* The next number of a packed field. */
bool pith__wire_next_varint(pith__wire *w, uint64_t *value);
/* How many varints a packed field holds: its bytes without continuation bit. */
uint64_t pith__wire_count_varints(pith_str bytes);

#endif

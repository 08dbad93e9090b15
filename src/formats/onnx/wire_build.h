/* wire_build.h - protobuf messages put together in memory, in one pass: a nested message gets its
 * length when it ends.
 *
 *   size_t graph = pith__wire_build_open(&b, 7);
 *   pith__wire_build_bytes(&b, 2, name);
 *   pith__wire_build_close(&b, graph);
 *
 * When memory is out `failed` stays set and calls have no effect. wire_out.h writes messages whose
 * parts can be walked twice, without memory. */
#ifndef PITH_FORMATS_ONNX_WIRE_BUILD_H
#define PITH_FORMATS_ONNX_WIRE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

typedef struct pith__wire_build {
    char *bytes; /* NULL at first */
    size_t size, capacity;
    const pith_allocator *allocator;
    bool failed;
} pith__wire_build;

void pith__wire_build_free(pith__wire_build *b);
void pith__wire_build_varint(pith__wire_build *b, int number, uint64_t value);
void pith__wire_build_float(pith__wire_build *b, int number, float value);
void pith__wire_build_bytes(pith__wire_build *b, int number, pith_str bytes);
/* Bytes of an open message that has no fields of its own, such as raw_data. */
void pith__wire_build_raw(pith__wire_build *b, const void *bytes, size_t size);
/* Returns the place that close needs. Messages are closed in the opposite order. */
size_t pith__wire_build_open(pith__wire_build *b, int number);
void pith__wire_build_close(pith__wire_build *b, size_t place);

#endif

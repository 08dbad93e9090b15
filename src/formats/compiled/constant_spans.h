/* constant_spans.h - constants as numbered spans of one section.
 *
 * The section begins with an i64 count, then the i64 offset and size of each span. The spans follow
 * at multiples of 64, small ones first, so that the bytes that opening reads are close together.
 * Equal spans are stored once. */
#ifndef PITH_FORMATS_COMPILED_CONSTANT_SPANS_H
#define PITH_FORMATS_COMPILED_CONSTANT_SPANS_H

#include "base/memory/span_map.h"
#include "formats/compiled/compiled.h"

typedef struct pith__constant_spans_out {
    pith__arena *arena;
    pith_str *spans;
    size_t count, capacity;
    pith__map by_hash; /* hash and size to the last span that has them */
    uint32_t *same;    /* by span: the previous one with the same hash and size; UINT32_MAX: none */
    size_t same_capacity;
    pith__stop *stop; /* of the call that makes the section; may be NULL */
} pith__constant_spans_out;

pith_status pith__constant_spans_begin(pith__constant_spans_out *out, pith__arena *arena,
                                       pith_error *err);
/* Sets *number to the number of the span. data must stay valid until the file is written. */
pith_status pith__constant_spans_add(uint32_t *number, pith__constant_spans_out *out,
                                     const void *data, size_t size, pith_error *err);
/* Makes the section, in the arena. */
pith_status pith__constant_spans_end(pith__section_out *section,
                                     const pith__constant_spans_out *out, pith_error *err);

typedef struct pith__constant_spans_in {
    pith_str section;
    size_t count;
} pith__constant_spans_in;

/* Checks that all spans are within the section. */
pith_status pith__constant_spans_open(pith__constant_spans_in *in, pith_str section,
                                      pith_error *err);
/* Returns a span; number must be below the count. */
pith_str pith__constant_spans_get(const pith__constant_spans_in *in, uint32_t number);

#endif

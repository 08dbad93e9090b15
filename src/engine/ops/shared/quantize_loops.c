/* quantize_loops.c - see quantize_loops.h. */
#include "engine/ops/shared/quantize_loops.h"

pith_status pith__quantize_loops_find(pith__prepare *c, pith__quantize_loops **out) {
    pith__quantize_loops *s = c->state = *out = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->quantize = PITH_PREPARE_KERNEL(pith__quantize_fn, "quantize", PITH_U8, c);
    s->dequantize_u8 = PITH_PREPARE_KERNEL(pith__dequantize_fn, "dequantize", PITH_U8, c);
    s->dequantize_i8 = PITH_PREPARE_KERNEL(pith__dequantize_fn, "dequantize", PITH_I8, c);
    s->range = PITH_PREPARE_KERNEL(pith__range_fn, "range", PITH_F32, c);
    if (!s->dequantize_u8 || !s->dequantize_i8 || !s->range) s->quantize = NULL;
    return PITH_OK;
}

pith_status pith__quantize_loops_prepare(pith__prepare *c) {
    pith__quantize_loops *s;
    PITH_TRY(pith__quantize_loops_find(c, &s));
    return s->quantize ? PITH_OK : pith__fail_dtype(c->err, c->in[0]->dtype);
}

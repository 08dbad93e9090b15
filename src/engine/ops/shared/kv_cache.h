/* kv_cache.h - rows of keys or values in a cache of floats, or of 8- or 4-bit numbers with a scale
 * for all or for each column of a head. 4-bit numbers are stored with 8 added, two per byte, the
 * even column in the low bits. Source: GroupQueryAttention in ONNX Runtime's
 * ContribOperators.md. */
#ifndef PITH_ENGINE_OPS_SHARED_KV_CACHE_H
#define PITH_ENGINE_OPS_SHARED_KV_CACHE_H

#include "engine/ops/op.h"

typedef struct pith__kv_cache {
    int bits;           /* 0: f32 */
    const float *scale; /* of head h and column i: scale[(h * size + i) * by_column] */
    int by_column;      /* 0 or 1 */
    int64_t size;       /* columns of a row */
} pith__kv_cache;

/* From the attribute `type` (NONE, PER_TENSOR, PER_CHANNEL) and kv_cache_bit_width; scale is left
 * to the caller. */
pith_status pith__kv_cache_read(pith__kv_cache *cache, const pith__node *node, const char *type,
                                int64_t size, pith_error *err);
/* Bytes of a row. */
int64_t pith__kv_row_bytes(const pith__kv_cache *cache);
/* Rows of head h, from a cache; to a cache (NULL: to nowhere), after which `rows` holds what is
 * stored there. */
void pith__kv_get(const pith__kv_cache *cache, float *rows, const void *stored, int64_t h,
                  int64_t count);
void pith__kv_put(const pith__kv_cache *cache, void *stored, float *rows, int64_t h, int64_t count);

#endif

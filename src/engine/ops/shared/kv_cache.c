/* kv_cache.c - see kv_cache.h. */
#include "engine/ops/shared/kv_cache.h"

#include <math.h>

/* The form of a cache. type names the attribute, that of keys or of values. */
pith_status pith__kv_cache_read(pith__kv_cache *cache, const pith__node *node, const char *type,
                                int64_t size, pith_error *err) {
    pith_str kind = pith__node_str(node, type, "NONE");
    *cache = (pith__kv_cache){ .size = size, .by_column = pith__str_is(kind, "PER_CHANNEL") };
    if (pith__str_is(kind, "NONE")) return PITH_OK;
    int64_t bits = pith__node_int(node, "kv_cache_bit_width", 0);
    if (!cache->by_column && !pith__str_is(kind, "PER_TENSOR"))
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s '" PITH_STR_FMT "' is unknown", type,
                          PITH_STR_ARG(kind));
    if ((bits != 4 && bits != 8) || (bits == 4 && size % 2))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "a cache of %lld-bit numbers and rows of %lld is not supported",
                          (long long)bits, (long long)size);
    cache->bits = (int)bits;
    return PITH_OK;
}

int64_t pith__kv_row_bytes(const pith__kv_cache *cache) {
    return cache->bits ? cache->size * cache->bits / 8 : cache->size * (int64_t)sizeof(float);
}

static float kv_scale_of(const pith__kv_cache *cache, int64_t h, int64_t i) {
    return cache->scale[(h * cache->size + i) * cache->by_column];
}

void pith__kv_get(const pith__kv_cache *cache, float *rows, const void *stored, int64_t h,
                  int64_t count) {
    const int8_t *bytes = stored;
    const uint8_t *pairs = stored;
    if (!cache->bits && count) memcpy(rows, stored, (size_t)(count * pith__kv_row_bytes(cache)));
    if (cache->bits) {
        for (int64_t i = 0; i < count * cache->size; i++) {
            int number = cache->bits == 8 ? bytes[i] : (pairs[i / 2] >> i % 2 * 4 & 15) - 8;
            rows[i] = (float)number * kv_scale_of(cache, h, i % cache->size);
        }
    }
}

/* Rounds to the cache's numbers and back: rows then hold what a later run will read. Two numbers of
 * 4 bits share a byte, the first one low, plus 8. */
void pith__kv_put(const pith__kv_cache *cache, void *stored, float *rows, int64_t h,
                  int64_t count) {
    int8_t *bytes = stored;
    uint8_t *pairs = stored;
    float high = cache->bits == 8 ? 127 : 7;
    if (!cache->bits && stored && count)
        memcpy(stored, rows, (size_t)(count * pith__kv_row_bytes(cache)));
    if (cache->bits) {
        for (int64_t i = 0; i < count * cache->size; i++) {
            float scale = kv_scale_of(cache, h, i % cache->size), x = rintf(rows[i] / scale);
            int number = x == x ? (int)fminf(fmaxf(x, -high - 1), high) : 0;
            rows[i] = (float)number * scale;
            if (stored && cache->bits == 8) bytes[i] = (int8_t)number;
            if (stored && cache->bits == 4)
                pairs[i / 2] = (uint8_t)(i % 2 ? pairs[i / 2] | (number + 8) << 4 : number + 8);
        }
    }
}

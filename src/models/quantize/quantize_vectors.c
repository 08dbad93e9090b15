/* quantize_vectors.c - see pith/quantize.h. Each row is written on its own, so a row's bytes depend
 * on its vector alone.
 *
 * Formulas: sentence_transformers.quantize_embeddings of version 5.7, whose steps are computed in
 * f32 in the same order. */
#include "models/quantize/quantize_vectors.h"

#include <math.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/half.h"
#include "base/stop.h"

/* The ranges that whole numbers stand for; flip 0x80 makes the byte of an int8 that is 128 less. */
typedef struct quantize_scale {
    uint8_t flip;
    const float *ranges;
    size_t dim;
} quantize_scale;

size_t pith__quantize_vectors_row_bytes(int32_t type, size_t dim) {
    size_t bytes;
    switch (type) {
    case PITH_VECTOR_F32: return pith__mul_overflows(dim, sizeof(float), &bytes) ? 0 : bytes;
    case PITH_VECTOR_F16: return pith__mul_overflows(dim, sizeof(uint16_t), &bytes) ? 0 : bytes;
    case PITH_VECTOR_INT8:
    case PITH_VECTOR_UINT8: return dim;
    case PITH_VECTOR_BINARY:
    case PITH_VECTOR_UBINARY: return dim / 8 + (dim % 8 != 0);
    default: return 0;
    }
}

static void quantize_row_f16(uint16_t *row, const float *x, size_t dim) {
    for (size_t i = 0; i < dim; i++) row[i] = pith__f16_of_f32(x[i]);
}

static void quantize_row_bits(uint8_t *row, const float *x, size_t dim, uint8_t flip) {
    for (size_t i = 0; i < dim; i += 8) {
        uint8_t byte = 0;
        for (size_t k = 0; k < 8; k++) byte = (uint8_t)(byte << 1 | (i + k < dim && x[i + k] > 0));
        *row++ = byte ^ flip;
    }
}

/* Returns the first component that is not a number, or dim. */
static size_t quantize_row_bytes8(uint8_t *row, const float *x, const quantize_scale *s) {
    for (size_t i = 0; i < s->dim; i++) {
        const float min = s->ranges ? s->ranges[i] : -1.0f,
                    max = s->ranges ? s->ranges[s->dim + i] : 1.0f;
        const float step = max > min ? (max - min) / 255.0f : 1.0f;
        if (isnan(x[i])) return i;
        float y = floorf((x[i] - min) / step);
        if (y < 0) y = 0;
        if (y > 255) y = 255;
        row[i] = (uint8_t)((uint8_t)y ^ s->flip);
    }
    return s->dim;
}

static pith_status quantize_check_ranges(const float *ranges, size_t dim, pith_error *err) {
    for (size_t i = 0; i < dim; i++) {
        const float min = ranges[i], max = ranges[dim + i];
        if (!isfinite(min) || !isfinite(max) || min > max || !isfinite(max - min))
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "the range of component %zu is %g to %g; give two finite numbers, "
                              "the smaller one first",
                              i, (double)min, (double)max);
    }
    return PITH_OK;
}

/* Whether the call must end, asked before row r of so many components: every LOOK of them. */
static pith_status quantize_look(pith__stop *stop, size_t r, size_t dim, pith_error *err) {
    enum { LOOK = 1 << 17 };
    return r % (LOOK / dim + 1) ? PITH_OK : pith__stop_check(stop, err);
}

static pith_status quantize_bytes8(uint8_t *rows, const float *vectors, size_t count,
                                   const quantize_scale *s, pith__stop *stop, pith_error *err) {
    if (s->ranges) PITH_TRY(quantize_check_ranges(s->ranges, s->dim, err));
    for (size_t r = 0; r < count; r++) {
        PITH_TRY(quantize_look(stop, r, s->dim, err));
        const size_t bad = quantize_row_bytes8(rows + r * s->dim, vectors + r * s->dim, s);
        if (bad < s->dim)
            return pith__fail(err, PITH_ERR_ARGUMENT, "component %zu of vector %zu is not a number",
                              bad, r);
    }
    return PITH_OK;
}

pith_status pith__quantize_vectors(void *rows, const float *vectors, size_t count, size_t dim,
                                   const pith_quantize_options *options, pith_error *err) {
    pith_quantize_options o = PITH_QUANTIZE_OPTIONS_INIT;
    size_t bytes, all;
    PITH_TAKE_OPTIONS(o, options, err);
    if (o.type < PITH_VECTOR_F32 || o.type > PITH_VECTOR_UBINARY)
        return pith__fail(err, PITH_ERR_ARGUMENT, "type is %d, which is not a PITH_VECTOR_* value",
                          (int)o.type);
    bytes = pith__quantize_vectors_row_bytes(o.type, dim);
    if (!dim || !bytes || pith__mul_overflows(dim, 2 * sizeof(float), &all) ||
        pith__mul_overflows(all, count, &all))
        return pith__fail(err, PITH_ERR_ARGUMENT, "%zu vectors of %zu components: %s", count, dim,
                          dim ? "they are more than memory can hold" : "there must be one or more");
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    const quantize_scale scale = { o.type == PITH_VECTOR_INT8 ? 0x80 : 0, o.ranges, dim };
    if (o.type == PITH_VECTOR_INT8 || o.type == PITH_VECTOR_UINT8)
        return quantize_bytes8(rows, vectors, count, &scale, stop, err);
    for (size_t r = 0; r < count; r++) {
        PITH_TRY(quantize_look(stop, r, dim, err));
        char *row = (char *)rows + r * bytes;
        const float *x = vectors + r * dim;
        if (o.type == PITH_VECTOR_F32)
            memcpy(row, x, bytes);
        else if (o.type == PITH_VECTOR_F16)
            quantize_row_f16((uint16_t *)(void *)row, x, dim);
        else
            quantize_row_bits((uint8_t *)row, x, dim, o.type == PITH_VECTOR_BINARY ? 0x80 : 0);
    }
    return PITH_OK;
}

pith_status pith__quantize_vectors_ranges(float *ranges, const float *vectors, size_t count,
                                          size_t dim, const pith_call *call, pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    PITH_TAKE_OPTIONS(o, call, err);
    pith__stop own, *stop = pith__stop_begin(&own, &o);
    if (!count || !dim)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "ranges need one vector of one component or more");
    for (size_t r = 0; r < count; r++) {
        PITH_TRY(quantize_look(stop, r, dim, err));
        for (size_t i = 0; i < dim; i++)
            if (!isfinite(vectors[r * dim + i]))
                return pith__fail(err, PITH_ERR_ARGUMENT,
                                  "component %zu of vector %zu is not finite", i, r);
    }
    for (size_t i = 0; i < dim; i++) ranges[i] = ranges[dim + i] = vectors[i];
    for (size_t r = 1; r < count; r++) {
        PITH_TRY(quantize_look(stop, r, dim, err));
        for (size_t i = 0; i < dim; i++) {
            const float x = vectors[r * dim + i];
            if (x < ranges[i]) ranges[i] = x;
            if (x > ranges[dim + i]) ranges[dim + i] = x;
        }
    }
    return PITH_OK;
}

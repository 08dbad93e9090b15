/* half.c - small floating point formats, each described by one row of a table.
 *
 * Encoding goes through double, which holds every source exactly, and rounds once: to nearest, ties
 * to even. f16 from and to f32 has functions of its own, because they convert whole tensors. */
#include "base/half.h"

#include <string.h>

#include "pith/types.h"

typedef enum {
    WITH_INF,  /* as IEEE: the largest exponent holds infinity and NaN */
    ONLY_NAN,  /* "fn": all bits set is NaN, no infinity */
    NEG_ZERO,  /* "fnuz": the pattern of -0 is NaN, no infinity, no -0 */
    NO_SPECIAL /* neither infinity nor NaN */
} special;

typedef struct format {
    int mantissa, bias, bits;
    special special;
    unsigned max; /* pattern of the largest finite value */
} format;

static const format f16 = { 10, 15, 16, WITH_INF, 0x7BFF };
static const format e4m3fn = { 3, 7, 8, ONLY_NAN, 0x7E };
static const format e4m3fnuz = { 3, 8, 8, NEG_ZERO, 0x7F };
static const format e5m2 = { 2, 15, 8, WITH_INF, 0x7B };
static const format e5m2fnuz = { 2, 16, 8, NEG_ZERO, 0x7F };
static const format e2m1 = { 1, 1, 4, NO_SPECIAL, 0x7 };

static const format *format_of(int dtype) {
    switch (dtype) {
    case PITH_F8E4M3FN: return &e4m3fn;
    case PITH_F8E4M3FNUZ: return &e4m3fnuz;
    case PITH_F8E5M2: return &e5m2;
    case PITH_F8E5M2FNUZ: return &e5m2fnuz;
    default: return &e2m1;
    }
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The pattern of x; overflow gives the largest finite value if `saturate`, else infinity or NaN if
 * there is one. */
static unsigned half_encode(double x, const format *f, bool saturate) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    unsigned sign = (unsigned)(bits >> 63) << (f->bits - 1);
    uint64_t magnitude = bits & (UINT64_MAX >> 1);
    if (magnitude > 0x7FF0000000000000u) {
        switch (f->special) {
        case WITH_INF: return sign | (f->max + 1) | 1u << (f->mantissa - 1);
        case ONLY_NAN: return sign | (f->max + 1);
        case NEG_ZERO: return 1u << (f->bits - 1);
        case NO_SPECIAL: return 1u << (f->bits - 1);
        }
    }
    /* Value = mantissa * 2^(exponent - 52), hidden bit included; what is below 2^(1 - bias) is
     * shifted more. */
    int exponent = (int)(magnitude >> 52) - 1023;
    uint64_t mantissa = (magnitude & 0xFFFFFFFFFFFFFu) | (uint64_t)1 << 52;
    int biased = exponent + f->bias, drop = 52 - f->mantissa;
    if (biased < 1) drop += 1 - biased, biased = 1;
    uint64_t pattern = 0;
    if (drop <= 54 && magnitude >> 52) {
        pattern = mantissa >> drop;
        uint64_t rest = mantissa & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
        if (rest > half || (rest == half && (pattern & 1))) pattern++;
        /* The hidden bit, if it is there, adds one to the exponent field; rounding up carries into
         * it by itself. */
        pattern += (uint64_t)(biased - 1) << f->mantissa;
    }
    if (pattern > f->max) {
        if (saturate || f->special == NO_SPECIAL) return sign | f->max;
        return f->special == NEG_ZERO ? 1u << (f->bits - 1) : sign | (f->max + 1);
    }
    if (f->special == NEG_ZERO && pattern == 0) return 0;
    return sign | (unsigned)pattern;
}

/* Decodes any of the small formats by its row: patterns above `max` are infinity and NaN, the
 * exponent field 0 is subnormal. mantissa * 2^e is exact in f32, since it has more of both. */
static float half_decode(unsigned bits, const format *f) {
    unsigned sign = bits >> (f->bits - 1) & 1, pattern = bits & ((1u << (f->bits - 1)) - 1);
    uint32_t nan = 0x7FC00000u | sign << 31;
    if (f->special == NEG_ZERO && sign && !pattern) return float_of(0x7FC00000u);
    if (pattern > f->max) {
        if (f->special == WITH_INF && pattern == f->max + 1)
            return float_of(0x7F800000u | sign << 31);
        return float_of(nan);
    }
    int exponent = (int)(pattern >> f->mantissa);
    unsigned mantissa = pattern & ((1u << f->mantissa) - 1);
    if (exponent)
        mantissa |= 1u << f->mantissa;
    else
        exponent = 1;
    /* All of these formats' values are normal in f32, and so is the scale. */
    float scale = float_of((uint32_t)(127 + exponent - f->bias - f->mantissa) << 23);
    float value = (float)mantissa * scale;
    return sign ? -value : value;
}

float pith__f32_of_f16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
    if (magnitude >= 0x7C00) return float_of(sign | 0x7F800000u | ((magnitude & 0x3FF) << 13));
    if (magnitude >= 0x0400) return float_of(sign | ((magnitude << 13) + ((127 - 15) << 23)));
    float value = (float)magnitude * 0x1p-24f;
    return float_of(sign | bits_of(value));
}

/* Rounding by the addition itself: half of the last place kept, and one if that place is odd. */
uint16_t pith__f16_of_f32(float x) {
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) return (uint16_t)(sign | 0x7E00);
    if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7C00);
    if (magnitude < 0x38800000) { /* below the smallest normal number: 0.5 has its last place where
                                     f16 has it */
        return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3F000000));
    }
    magnitude -= (uint32_t)(127 - 15) << 23;
    return (uint16_t)(sign | (magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}

uint16_t pith__f16_of_f64(double x) { return (uint16_t)half_encode(x, &f16, false); }

float pith__f32_of_bf16(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t pith__bf16_of_f32(float x) {
    uint32_t bits = bits_of(x);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float pith__f32_of_f8(uint8_t bits, int dtype) {
    if (dtype == PITH_F8E8M0) { /* an exponent alone: 255 is NaN, 0 a subnormal number */
        if (bits == 0xFF) return float_of(0x7FC00000u);
        return float_of(bits ? (uint32_t)bits << 23 : 0x00400000u);
    }
    return half_decode(bits, format_of(dtype));
}

/* Exponent only: the sign is dropped and fractions go up. */
static uint8_t e8m0_of_f32(float x, bool saturate) {
    uint32_t bits = bits_of(x) & 0x7FFFFFFF, exponent = bits >> 23;
    if (exponent == 0xFF) return 0xFF;
    if (bits & 0x7FFFFF && !(saturate && exponent == 0xFE)) exponent++;
    return (uint8_t)exponent;
}

uint8_t pith__f8_of_f32(float x, int dtype, bool saturate) {
    if (dtype == PITH_F8E8M0) return e8m0_of_f32(x, saturate);
    return (uint8_t)half_encode(x, format_of(dtype), saturate);
}

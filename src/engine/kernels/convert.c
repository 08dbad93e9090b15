/* convert.c - see convert.h.
 *
 * A type is a row of four functions: elements to double or to int64, and back. A pair of types goes
 * through double if one side is a float, else through int64, in blocks. The pairs that models use a
 * lot have a direct loop. */
#include "engine/kernels/convert.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "engine/kernels/cast.h"
#include "engine/kernels/small_floats.h"

/* Elements that go through double or int64 at a time. The block stays in the L1 cache and is long
 * enough that calling two functions per block costs little. */
enum { BLOCK = 256 };

static int32_t to_i32(double x) {
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
static int64_t to_i64(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}
static uint64_t to_u64(double x) {
    return x >= 9223372036854775808.0 && x < 18446744073709551616.0 ? (uint64_t)x
                                                                    : (uint64_t)to_i64(x);
}

#define ROW(name, T, FROM_F, FROM_I)                                                               \
    static void load_f_##name(double *y, const void *x, int64_t first, int64_t n) {                \
        const T *p = (const T *)x + first;                                                         \
        for (int64_t i = 0; i < n; i++) y[i] = (double)p[i];                                       \
    }                                                                                              \
    static void load_i_##name(int64_t *y, const void *x, int64_t first, int64_t n) {               \
        const T *p = (const T *)x + first;                                                         \
        for (int64_t i = 0; i < n; i++) y[i] = (int64_t)p[i];                                      \
    }                                                                                              \
    static void store_f_##name(void *y, int64_t first, const double *x, int64_t n,                 \
                               bool saturate) {                                                    \
        T *p = (T *)y + first;                                                                     \
        (void)saturate;                                                                            \
        for (int64_t i = 0; i < n; i++) p[i] = FROM_F(x[i]);                                       \
    }                                                                                              \
    static void store_i_##name(void *y, int64_t first, const int64_t *x, int64_t n) {              \
        T *p = (T *)y + first;                                                                     \
        for (int64_t i = 0; i < n; i++) p[i] = FROM_I(x[i]);                                       \
    }
#define CAST_F32(v) (float)(v)
#define CAST_F64(v) (double)(v)
#define NARROW_U8(v) (uint8_t) to_i32(v)
#define NARROW_I8(v) (int8_t) to_i32(v)
#define NARROW_U16(v) (uint16_t) to_i32(v)
#define NARROW_I16(v) (int16_t) to_i32(v)
#define NARROW_U32(v) (uint32_t) to_i64(v)
#define KEEP_U8(v) (uint8_t)(v)
#define KEEP_I8(v) (int8_t)(v)
#define KEEP_U16(v) (uint16_t)(v)
#define KEEP_I16(v) (int16_t)(v)
#define KEEP_U32(v) (uint32_t)(v)
#define KEEP_I32(v) (int32_t)(v)
#define KEEP_U64(v) (uint64_t)(v)
#define KEEP_I64(v) (int64_t)(v)
#define NOT_ZERO(v) ((v) != 0)
ROW(u8, uint8_t, NARROW_U8, KEEP_U8)
ROW(i8, int8_t, NARROW_I8, KEEP_I8)
ROW(u16, uint16_t, NARROW_U16, KEEP_U16)
ROW(i16, int16_t, NARROW_I16, KEEP_I16)
ROW(u32, uint32_t, NARROW_U32, KEEP_U32)
ROW(i32, int32_t, to_i32, KEEP_I32)
ROW(u64, uint64_t, to_u64, KEEP_U64)
ROW(i64, int64_t, to_i64, KEEP_I64)
ROW(bool, uint8_t, NOT_ZERO, NOT_ZERO)

/* Floats: no load_i, an integer never comes from one but through double. */
#define FLOAT_ROW(name, T, TO_F, FROM_F, FROM_I)                                                   \
    static void load_f_##name(double *y, const void *x, int64_t first, int64_t n) {                \
        const T *p = (const T *)x + first;                                                         \
        for (int64_t i = 0; i < n; i++) y[i] = TO_F(p[i]);                                         \
    }                                                                                              \
    static void store_f_##name(void *y, int64_t first, const double *x, int64_t n,                 \
                               bool saturate) {                                                    \
        T *p = (T *)y + first;                                                                     \
        (void)saturate;                                                                            \
        for (int64_t i = 0; i < n; i++) p[i] = FROM_F(x[i]);                                       \
    }                                                                                              \
    static void store_i_##name(void *y, int64_t first, const int64_t *x, int64_t n) {              \
        T *p = (T *)y + first;                                                                     \
        for (int64_t i = 0; i < n; i++) p[i] = FROM_I(x[i]);                                       \
    }

/* Rounds a double to odd: towards zero, with the last bit set if anything was cut off. A second
 * rounding, to at least two bits fewer, then gives what one rounding of x would, because no tie can
 * appear that x does not have. Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly
 * rounded sums: proved algorithms using rounding to odd". */
static float round_to_odd(double x) {
    float f = (float)x;
    if ((double)f == x || isnan(x) || isinf(f)) return f;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (fabs((double)f) > fabs(x)) bits--; /* now truncated */
    bits |= 1;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static uint16_t bf16_of(double x) { return pith__bf16_of_f32(round_to_odd(x)); }
#define BF16_OF_INT(v) bf16_of((double)(v))
#define F16_OF_INT(v) pith__f16_of_f64((double)(v))
FLOAT_ROW(f32, float, CAST_F64, CAST_F32, CAST_F32)
FLOAT_ROW(f64, double, CAST_F64, CAST_F64, CAST_F64)
FLOAT_ROW(f16, uint16_t, pith__f32_of_f16, pith__f16_of_f64, F16_OF_INT)
FLOAT_ROW(bf16, uint16_t, pith__f32_of_bf16, bf16_of, BF16_OF_INT)

#define F8_ROW(name, DTYPE)                                                                        \
    static void load_f_##name(double *y, const void *x, int64_t first, int64_t n) {                \
        const uint8_t *p = (const uint8_t *)x + first;                                             \
        for (int64_t i = 0; i < n; i++) y[i] = pith__f32_of_f8(p[i], DTYPE);                       \
    }                                                                                              \
    static void store_f_##name(void *y, int64_t first, const double *x, int64_t n,                 \
                               bool saturate) {                                                    \
        uint8_t *p = (uint8_t *)y + first;                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            p[i] = pith__f8_of_f32(round_to_odd(x[i]), DTYPE, saturate);                           \
    }                                                                                              \
    static void store_i_##name(void *y, int64_t first, const int64_t *x, int64_t n) {              \
        uint8_t *p = (uint8_t *)y + first;                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            p[i] = pith__f8_of_f32(round_to_odd((double)x[i]), DTYPE, true);                       \
    }
F8_ROW(e4m3fn, PITH_F8E4M3FN)
F8_ROW(e4m3fnuz, PITH_F8E4M3FNUZ)
F8_ROW(e5m2, PITH_F8E5M2)
F8_ROW(e5m2fnuz, PITH_F8E5M2FNUZ)

/* The exponent alone, 2^(bits - 127); 255 is NaN. Source: OCP Microscaling Formats, E8M0. */
static void load_f_e8m0(double *y, const void *x, int64_t first, int64_t n) {
    const uint8_t *p = (const uint8_t *)x + first;
    for (int64_t i = 0; i < n; i++) y[i] = p[i] == 255 ? (double)NAN : ldexp(1.0, (int)p[i] - 127);
}
static void store_f_e8m0(void *y, int64_t first, const double *x, int64_t n, bool saturate) {
    uint8_t *p = (uint8_t *)y + first;
    for (int64_t i = 0; i < n; i++) p[i] = pith__convert_e8m0((float)x[i], 1, saturate);
}
static void store_i_e8m0(void *y, int64_t first, const int64_t *x, int64_t n) {
    uint8_t *p = (uint8_t *)y + first;
    for (int64_t i = 0; i < n; i++) p[i] = pith__convert_e8m0((float)x[i], 1, true);
}

uint8_t pith__convert_e8m0(float x, int mode, bool saturate) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t exponent = bits >> 23 & 255, fraction = bits & 0x7FFFFF;
    if (exponent == 255) return isinf(x) && saturate ? 254 : 255;
    const bool normal = exponent > 0 || fraction > 0x400000; /* above 2^-127, the least result */
    bool up = false;
    if (mode == 1) up = fraction != 0 && normal;
    if (mode == 0) up = (fraction & 0x400000) && ((fraction & 0x3FFFFF) || normal);
    if (!up) return (uint8_t)exponent;
    if (exponent == 254) return saturate ? 254 : 255;
    return (uint8_t)(exponent + 1);
}

/* Packed types: `bits` wide, low bits first. */
#define PACKED(x, i, bits)                                                                         \
    ((unsigned)((const uint8_t *)(x))[(i) * (bits) / 8] >> ((i) * (bits) % 8) &                    \
     ((1u << (bits)) - 1))
static void convert_put(void *y, int64_t i, int bits, unsigned v) {
    uint8_t *p = (uint8_t *)y + i * bits / 8;
    int shift = (int)(i * bits % 8);
    unsigned mask = ((1u << bits) - 1) << shift;
    *p = (uint8_t)((*p & ~mask) | (v << shift & mask));
}
static int64_t extend(unsigned v, int bits) {
    return (int64_t)(v ^ (1u << (bits - 1))) - (int64_t)(1u << (bits - 1));
}
#define PLAIN_BITS(v, bits) (int64_t)(v)
#define PACKED_ROW(name, BITS, VALUE)                                                              \
    static void load_f_##name(double *y, const void *x, int64_t first, int64_t n) {                \
        for (int64_t i = 0; i < n; i++) y[i] = (double)VALUE(PACKED(x, first + i, BITS), BITS);    \
    }                                                                                              \
    static void load_i_##name(int64_t *y, const void *x, int64_t first, int64_t n) {               \
        for (int64_t i = 0; i < n; i++) y[i] = VALUE(PACKED(x, first + i, BITS), BITS);            \
    }                                                                                              \
    static void store_f_##name(void *y, int64_t first, const double *x, int64_t n,                 \
                               bool saturate) {                                                    \
        (void)saturate;                                                                            \
        for (int64_t i = 0; i < n; i++) convert_put(y, first + i, BITS, (unsigned)to_i32(x[i]));   \
    }                                                                                              \
    static void store_i_##name(void *y, int64_t first, const int64_t *x, int64_t n) {              \
        for (int64_t i = 0; i < n; i++) convert_put(y, first + i, BITS, (unsigned)x[i]);           \
    }
PACKED_ROW(u4, 4, PLAIN_BITS)
PACKED_ROW(i4, 4, extend)
PACKED_ROW(u2, 2, PLAIN_BITS)
PACKED_ROW(i2, 2, extend)

static void load_f_e2m1(double *y, const void *x, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = pith__f32_of_f8((uint8_t)PACKED(x, first + i, 4), PITH_F4E2M1);
}
static void store_f_e2m1(void *y, int64_t first, const double *x, int64_t n, bool saturate) {
    for (int64_t i = 0; i < n; i++)
        convert_put(y, first + i, 4, pith__f8_of_f32(round_to_odd(x[i]), PITH_F4E2M1, saturate));
}
static void store_i_e2m1(void *y, int64_t first, const int64_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        convert_put(y, first + i, 4, pith__f8_of_f32((float)x[i], PITH_F4E2M1, true));
}

typedef struct row {
    void (*load_f)(double *y, const void *x, int64_t first, int64_t n);
    void (*load_i)(int64_t *y, const void *x, int64_t first, int64_t n);
    void (*store_f)(void *y, int64_t first, const double *x, int64_t n, bool saturate);
    void (*store_i)(void *y, int64_t first, const int64_t *x, int64_t n);
} row;
#define INT_FNS(name)                                                                              \
    { load_f_##name, load_i_##name, store_f_##name, store_i_##name }
#define FLOAT_FNS(name)                                                                            \
    { load_f_##name, NULL, store_f_##name, store_i_##name }
static const row rows[PITH_DTYPE_COUNT] = {
    [PITH_F32] = FLOAT_FNS(f32),
    [PITH_U8] = INT_FNS(u8),
    [PITH_I8] = INT_FNS(i8),
    [PITH_U16] = INT_FNS(u16),
    [PITH_I16] = INT_FNS(i16),
    [PITH_I32] = INT_FNS(i32),
    [PITH_I64] = INT_FNS(i64),
    [PITH_BOOL] = INT_FNS(bool),
    [PITH_F16] = FLOAT_FNS(f16),
    [PITH_F64] = FLOAT_FNS(f64),
    [PITH_U32] = INT_FNS(u32),
    [PITH_U64] = INT_FNS(u64),
    [PITH_BF16] = FLOAT_FNS(bf16),
    [PITH_F8E4M3FN] = FLOAT_FNS(e4m3fn),
    [PITH_F8E4M3FNUZ] = FLOAT_FNS(e4m3fnuz),
    [PITH_F8E5M2] = FLOAT_FNS(e5m2),
    [PITH_F8E5M2FNUZ] = FLOAT_FNS(e5m2fnuz),
    [PITH_U4] = INT_FNS(u4),
    [PITH_I4] = INT_FNS(i4),
    [PITH_F4E2M1] = FLOAT_FNS(e2m1),
    [PITH_F8E8M0] = FLOAT_FNS(e8m0),
    [PITH_U2] = INT_FNS(u2),
    [PITH_I2] = INT_FNS(i2),
};

/* The pairs with a loop of their own. */
#define DIRECT(name, FROM, TO, EXPR)                                                               \
    static void name(void *y, const void *x, int64_t n) {                                          \
        const FROM *p = x;                                                                         \
        TO *q = y;                                                                                 \
        for (int64_t i = 0; i < n; i++) q[i] = (TO)(EXPR(p[i]));                                   \
    }
#define SAME(v) (v)
DIRECT(f16_f32_plain, uint16_t, float, pith__f32_of_f16)
DIRECT(f32_f16_plain, float, uint16_t, pith__f16_of_f32)

/* From this many elements on, the tuned loop is looked up in the kernel table. Shorter ones are
 * done before the look-up would be. */
enum { LOOK_UP = 64 };
static void f16_f32(void *y, const void *x, int64_t n) {
    pith__widen_f16_fn *fn =
        n < LOOK_UP ? NULL
                    : PITH_KERNEL_FIND(pith__widen_f16_fn, "widen", PITH_F16, pith__cpu_get()->isa);
    if (fn)
        fn(x, y, (size_t)n);
    else
        f16_f32_plain(y, x, n);
}
static void f32_f16(void *y, const void *x, int64_t n) {
    pith__narrow_f16_fn *fn = n < LOOK_UP ? NULL
                                          : PITH_KERNEL_FIND(pith__narrow_f16_fn, "narrow",
                                                             PITH_F16, pith__cpu_get()->isa);
    if (fn)
        fn(x, y, (size_t)n);
    else
        f32_f16_plain(y, x, n);
}
DIRECT(bf16_f32, uint16_t, float, pith__f32_of_bf16)
DIRECT(f32_bf16, float, uint16_t, pith__bf16_of_f32)
DIRECT(f32_f64, float, double, SAME)
DIRECT(f64_f32, double, float, SAME)
DIRECT(i64_f32, int64_t, float, SAME)
DIRECT(i32_f32, int32_t, float, SAME)
DIRECT(u8_f32, uint8_t, float, SAME)
DIRECT(i8_f32, int8_t, float, SAME)
DIRECT(i32_i64, int32_t, int64_t, SAME)
DIRECT(i64_i32, int64_t, int32_t, SAME)
DIRECT(u8_i64, uint8_t, int64_t, SAME)
DIRECT(f32_bool, float, uint8_t, NOT_ZERO)
DIRECT(i64_bool, int64_t, uint8_t, NOT_ZERO)

static const struct {
    int from, to;
    void (*run)(void *y, const void *x, int64_t n);
} pairs[] = {
    { PITH_F16, PITH_F32, f16_f32 },   { PITH_F32, PITH_F16, f32_f16 },
    { PITH_BF16, PITH_F32, bf16_f32 }, { PITH_F32, PITH_BF16, f32_bf16 },
    { PITH_F32, PITH_F64, f32_f64 },   { PITH_F64, PITH_F32, f64_f32 },
    { PITH_I64, PITH_F32, i64_f32 },   { PITH_I32, PITH_F32, i32_f32 },
    { PITH_U8, PITH_F32, u8_f32 },     { PITH_BOOL, PITH_F32, u8_f32 },
    { PITH_I8, PITH_F32, i8_f32 },     { PITH_I32, PITH_I64, i32_i64 },
    { PITH_I64, PITH_I32, i64_i32 },   { PITH_BOOL, PITH_I64, u8_i64 },
    { PITH_F32, PITH_BOOL, f32_bool }, { PITH_I64, PITH_BOOL, i64_bool },
};

/* Through the kernel of the pair, if there is one. */
static bool convert_by_kernel(void *y, int to, const void *x, int from, int64_t n) {
    const int dtype = from == PITH_BOOL ? PITH_U8 : from; /* its bytes are 0 and 1 */
    pith__cast_fn *fn =
        n < LOOK_UP ? NULL : PITH_KERNEL_FIND(pith__cast_fn, "cast", dtype, pith__cpu_get()->isa);
    return fn && fn(y, to, x, (size_t)n);
}

static bool has_row(int dtype) {
    return dtype > 0 && dtype < PITH_DTYPE_COUNT && rows[dtype].load_f;
}

bool pith__convert_known(int from, int to) { return has_row(from) && has_row(to); }

/* The first of these that knows the pair: a copy for equal types, the kernel of this CPU, a loop
 * for the pair, and at last blocks that go through int64 or double. int64 is taken wherever the
 * source is an integer, so that a number above 2^53 is rounded once. Only u64 to a float goes
 * through double, since int64 does not hold its upper half. */
void pith__convert(void *y, int to, int64_t y_first, const void *x, int from, int64_t x_first,
                   int64_t n, bool saturate) {
    if (n <= 0) return; /* there may be no memory */
    int from_bits = pith__dtype_bits(from), to_bits = pith__dtype_bits(to);
    if (!pith__convert_known(from, to) && from != to) {
        size_t size = (size_t)to_bits / 8;
        if (size && n > 0) memset((char *)y + (size_t)y_first * size, 0, (size_t)n * size);
        return;
    }
    if (from == to && from_bits >= 8) {
        size_t size = (size_t)from_bits / 8;
        memmove((char *)y + (size_t)y_first * size, (const char *)x + (size_t)x_first * size,
                (size_t)n * size);
        return;
    }
    void *y_at = (char *)y + y_first * (to_bits / 8);
    const void *x_at = (const char *)x + x_first * (from_bits / 8);
    if (convert_by_kernel(y_at, to, x_at, from, n)) return;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].from != from || pairs[i].to != to) continue;
        pairs[i].run(y_at, x_at, n);
        return;
    }
    const row *in = &rows[from], *out = &rows[to];
    union {
        double f[BLOCK];
        int64_t i[BLOCK];
    } block;
    bool exact = in->load_i && (out->load_i || from != PITH_U64);
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        if (exact) {
            in->load_i(block.i, x, x_first + i, m);
            out->store_i(y, y_first + i, block.i, m);
        } else {
            in->load_f(block.f, x, x_first + i, m);
            out->store_f(y, y_first + i, block.f, m, saturate);
        }
    }
}

/* Source: ONNX DynamicQuantizeLinear. The range includes 0, so that 0 is exact; a range of nothing
 * gets the scale 1. */
void pith__dynamic_scale(float *scale, float *zero, const float *x, size_t n,
                         pith__range_fn *range) {
    float low = 0, high = 0;
    range(x, n, &low, &high);
    *scale = high == low ? 1.0f : (high - low) / 255.0f;
    *zero = rintf(fminf(255.0f, fmaxf(0.0f, 0.0f - low / *scale)));
}

/* k_cast.c - see cast.h. Loops of plain C over blocks of one size, which compilers make vectors of.
 */
#include "engine/kernels/cast.h"

#include "engine/kernels/vec.h"

/* Elements of a block. Its loop has constant bounds, so that compilers unroll it into whole
 * vectors: a larger block has more code and longer tails, a smaller one does not fill the widest
 * registers of bytes. The scalar level has no such registers and takes the least code. */
#if defined(PITH_LEVEL_scalar)
enum { CAST_BLOCK = 4 };
#else
enum { CAST_BLOCK = 64 };
#endif

/* Out of range and NaN: the smallest integer. */
#define CAST_PLAIN(v) (v)
#define CAST_NOT_ZERO(v) ((v) != 0)
#define CAST_I64(v) (int64_t)(((v) >= -0x1p63f) & ((v) < 0x1p63f) ? (v) : -0x1p63f)
#define CAST_F32_I32(v) (int32_t)(((v) >= -0x1p31f) & ((v) < 0x1p31f) ? (v) : -0x1p31f)
#define CAST_F64_I32(v) (int32_t)(((v) > -0x1.00000002p31) & ((v) < 0x1p31) ? (v) : -0x1p31)

#define CAST_LOOP(from, to, FROM, TO, EXPR)                                                        \
    static void cast_##from##_##to(void *y, const void *x, size_t n) {                             \
        const FROM *p = x;                                                                         \
        TO *q = y, block[CAST_BLOCK];                                                              \
        for (; n >= CAST_BLOCK; n -= CAST_BLOCK, p += CAST_BLOCK, q += CAST_BLOCK) {               \
            for (int i = 0; i < CAST_BLOCK; i++) block[i] = (TO)EXPR(p[i]);                        \
            memcpy(q, block, sizeof block);                                                        \
        }                                                                                          \
        for (size_t i = 0; i < n; i++) q[i] = (TO)EXPR(p[i]);                                      \
    }
CAST_LOOP(f32, i64, float, int64_t, CAST_I64)
CAST_LOOP(f32, i32, float, int32_t, CAST_F32_I32)
CAST_LOOP(f32, i8, float, int8_t, CAST_F32_I32)
CAST_LOOP(f32, bool, float, uint8_t, CAST_NOT_ZERO)
CAST_LOOP(f64, i64, double, int64_t, CAST_I64)
CAST_LOOP(f64, i32, double, int32_t, CAST_F64_I32)
CAST_LOOP(f64, f32, double, float, CAST_PLAIN)
CAST_LOOP(i32, f32, int32_t, float, CAST_PLAIN)
CAST_LOOP(i32, f64, int32_t, double, CAST_PLAIN)
CAST_LOOP(i32, i64, int32_t, int64_t, CAST_PLAIN)
CAST_LOOP(i32, i8, int32_t, int8_t, CAST_PLAIN)
CAST_LOOP(i32, bool, int32_t, uint8_t, CAST_NOT_ZERO)
CAST_LOOP(i64, f32, int64_t, float, CAST_PLAIN)
CAST_LOOP(i64, f64, int64_t, double, CAST_PLAIN)
CAST_LOOP(i64, i32, int64_t, int32_t, CAST_PLAIN)
CAST_LOOP(i64, bool, int64_t, uint8_t, CAST_NOT_ZERO)
CAST_LOOP(u8, f32, uint8_t, float, CAST_PLAIN)
CAST_LOOP(u8, i32, uint8_t, int32_t, CAST_PLAIN)
CAST_LOOP(u8, i64, uint8_t, int64_t, CAST_PLAIN)
CAST_LOOP(i8, f32, int8_t, float, CAST_PLAIN)
CAST_LOOP(i8, i32, int8_t, int32_t, CAST_PLAIN)
CAST_LOOP(i8, i64, int8_t, int64_t, CAST_PLAIN)

#define CAST_CASE(dtype, from, to)                                                                 \
    case dtype: cast_##from##_##to(y, x, n); return true;

bool PITH_K(cast_f32)(void *y, int to, const void *x, size_t n) {
    switch (to) {
        CAST_CASE(PITH_I64, f32, i64)
        CAST_CASE(PITH_I32, f32, i32)
        CAST_CASE(PITH_I8, f32, i8)
        CAST_CASE(PITH_U8, f32, i8)
        CAST_CASE(PITH_BOOL, f32, bool)
    default: return false;
    }
}

bool PITH_K(cast_f64)(void *y, int to, const void *x, size_t n) {
    switch (to) {
        CAST_CASE(PITH_I64, f64, i64)
        CAST_CASE(PITH_I32, f64, i32)
        CAST_CASE(PITH_F32, f64, f32)
    default: return false;
    }
}

bool PITH_K(cast_i32)(void *y, int to, const void *x, size_t n) {
    switch (to) {
        CAST_CASE(PITH_F32, i32, f32)
        CAST_CASE(PITH_F64, i32, f64)
        CAST_CASE(PITH_I64, i32, i64)
        CAST_CASE(PITH_I8, i32, i8)
        CAST_CASE(PITH_U8, i32, i8)
        CAST_CASE(PITH_BOOL, i32, bool)
    default: return false;
    }
}

bool PITH_K(cast_i64)(void *y, int to, const void *x, size_t n) {
    switch (to) {
        CAST_CASE(PITH_F32, i64, f32)
        CAST_CASE(PITH_F64, i64, f64)
        CAST_CASE(PITH_I32, i64, i32)
        CAST_CASE(PITH_BOOL, i64, bool)
    default: return false;
    }
}

#define CAST_BYTES(from)                                                                           \
    bool PITH_K(cast_##from)(void *y, int to, const void *x, size_t n) {                           \
        switch (to) {                                                                              \
            CAST_CASE(PITH_F32, from, f32)                                                         \
            CAST_CASE(PITH_I32, from, i32)                                                         \
            CAST_CASE(PITH_I64, from, i64)                                                         \
        default: return false;                                                                     \
        }                                                                                          \
    }
CAST_BYTES(u8)
CAST_BYTES(i8)

/* axis_scan.c - see axis_scan.h. */
#include "engine/kernels/axis_scan.h"

/* A running sum or product. A: the type it is made in, without sign for integers, since their sums
 * wrap. START: the value before the first element. STEP: the next value of a, given the element v.
 */
#define SCAN(name, suffix, T, A, START, STEP)                                                      \
    pith__scan_fn pith__k_scan_##name##_##suffix;                                                  \
    void pith__k_scan_##name##_##suffix(const void *x, void *y, int64_t n, int64_t stride,         \
                                        bool exclusive, bool reverse) {                            \
        const T *p = x;                                                                            \
        T *q = y;                                                                                  \
        A a = START;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t at = (reverse ? n - 1 - i : i) * stride;                                       \
            A v = (A)p[at], before = a;                                                            \
            a = STEP;                                                                              \
            q[at] = (T)(exclusive ? before : a);                                                   \
        }                                                                                          \
    }
#define BOTH(suffix, T, A) SCAN(sum, suffix, T, A, 0, a + v) SCAN(prod, suffix, T, A, 1, a *v)
BOTH(f32, float, float)
BOTH(f64, double, double)
BOTH(i32, int32_t, uint32_t)
BOTH(u32, uint32_t, uint32_t)
BOTH(i64, int64_t, uint64_t)
BOTH(u64, uint64_t, uint64_t)

/* OP says when v is better than best. The first NaN wins and stays, since nothing compares as
 * better and only a number is replaced by a NaN. */
#define ARG(name, suffix, T, OP)                                                                   \
    pith__arg_fn pith__k_arg_##name##_##suffix;                                                    \
    int64_t pith__k_arg_##name##_##suffix(const void *x, int64_t n, int64_t stride, bool last) {   \
        const T *p = x;                                                                            \
        T best = p[0];                                                                             \
        int64_t at = 0;                                                                            \
        for (int64_t i = 1; i < n; i++) {                                                          \
            T v = p[i * stride];                                                                   \
            if (!(v OP best || (last && v == best) || (v != v && best == best))) continue;         \
            best = v;                                                                              \
            at = i;                                                                                \
        }                                                                                          \
        return at;                                                                                 \
    }
#define ARGS(suffix, T) ARG(max, suffix, T, >) ARG(min, suffix, T, <)
ARGS(f32, float)
ARGS(f64, double)
ARGS(u8, uint8_t)
ARGS(i8, int8_t)
ARGS(u16, uint16_t)
ARGS(i16, int16_t)
ARGS(u32, uint32_t)
ARGS(i32, int32_t)
ARGS(u64, uint64_t)
ARGS(i64, int64_t)

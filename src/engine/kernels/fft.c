/* fft.c - the Fourier transform as Stockham's self-sorting steps, one per factor of n: 4, 2 and odd
 * primes.
 *
 * A step of radix p takes n / p transforms of length p, multiplies their results by powers of the
 * root and writes them in the order in which the next step reads. Odd radices pair x[j] with x[p -
 * j], which halves the multiplications. Everything is computed in the type of the data, as in the
 * reference implementation of ONNX, so that rounding agrees. Sources: G. H. Golub, C. F. Van Loan,
 * Matrix Computations, on Stockham's form; C. Temperton, self-sorting mixed-radix transforms. */
#include "engine/kernels/fft.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Multiplications between two looks whether to stop, about a millisecond; roots likewise.
 * LOOK_STEPS: transforms of a step after which they are counted. SHORT: in the middle of a
 * transform of so many elements nobody looks. Powers of two. */
enum { LOOK = 1 << 18, LOOK_ROOTS = 1 << 13, LOOK_STEPS = 1 << 10, SHORT = 64 };

/* Whether to stop, looked at once that much work has been done. */
static bool fft_stops(pith__stop *stop, int64_t *spent, int64_t work) {
    *spent += work;
    if (*spent < LOOK) return false;
    *spent = 0;
    return pith__stop_asked(stop);
}

/* Small factors first, but a lone 2 before the fours; 0 once length is 1. */
static int64_t next_factor(int64_t length, bool first) {
    if (first && length % 2 == 0 && length % 4) return 2;
    if (length % 4 == 0) return length == 8 ? 2 : 4;
    if (length % 2 == 0) return 2;
    for (int64_t p = 3; p * p <= length; p += 2) {
        if (length % p == 0) return p;
    }
    return length > 1 ? length : 0;
}

#define DEFINE_FFT(T, suffix)                                                                      \
    typedef struct pair_##suffix {                                                                 \
        T re, im;                                                                                  \
    } pair_##suffix;                                                                               \
                                                                                                   \
    void pith__k_fft_roots_##suffix(void *roots_, int64_t n, pith__stop *stop) {                   \
        pair_##suffix *roots = roots_;                                                             \
        for (int64_t k = 0; k < n; k++) {                                                          \
            if (!(k & (LOOK_ROOTS - 1)) && pith__stop_asked(stop)) return;                         \
            double angle = 2 * PI * (double)k / (double)n;                                         \
            roots[k] = (pair_##suffix){ (T)cos(angle), (T)sin(angle) };                            \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static pair_##suffix turned_##suffix(pair_##suffix x, pair_##suffix root, T sign) {            \
        T im = sign * root.im;                                                                     \
        return (pair_##suffix){ x.re * root.re - x.im * im, x.re * im + x.im * root.re };          \
    }                                                                                              \
                                                                                                   \
    /* The transform of p inputs at x[j * step], results in y[q * out]; pairs: p - 1 entries. */   \
    static void odd_##suffix(pair_##suffix *y, int64_t out, const pair_##suffix *x, int64_t step,  \
                             int64_t p, pair_##suffix *pairs, const pair_##suffix *roots,          \
                             int64_t root_step, T sign, int64_t *spent, pith__stop *stop) {        \
        pair_##suffix first = x[0], all = first;                                                   \
        int64_t half = (p - 1) / 2;                                                                \
        for (int64_t j = 1; j <= half; j++) {                                                      \
            pair_##suffix a = x[j * step], b = x[(p - j) * step];                                  \
            pairs[2 * j - 2] = (pair_##suffix){ a.re + b.re, a.im + b.im };                        \
            pairs[2 * j - 1] = (pair_##suffix){ a.re - b.re, a.im - b.im };                        \
            all.re += a.re + b.re;                                                                 \
            all.im += a.im + b.im;                                                                 \
        }                                                                                          \
        y[0] = all;                                                                                \
        for (int64_t q = 1; q <= half; q++) {                                                      \
            pair_##suffix even = first, odd = { 0, 0 };                                            \
            if (p > SHORT && fft_stops(stop, spent, p)) return;                                    \
            for (int64_t j = 1, at = q; j <= half; j++, at = (at + q) % p) {                       \
                pair_##suffix root = roots[at * root_step];                                        \
                even.re += root.re * pairs[2 * j - 2].re;                                          \
                even.im += root.re * pairs[2 * j - 2].im;                                          \
                odd.im += sign * root.im * pairs[2 * j - 1].re;                                    \
                odd.re -= sign * root.im * pairs[2 * j - 1].im;                                    \
            }                                                                                      \
            y[q * out] = (pair_##suffix){ even.re + odd.re, even.im + odd.im };                    \
            y[(p - q) * out] = (pair_##suffix){ even.re - odd.re, even.im - odd.im };              \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void even_##suffix(pair_##suffix *y, int64_t out, const pair_##suffix *x, int64_t step, \
                              int64_t p, T sign) {                                                 \
        pair_##suffix a = x[0], b = x[step];                                                       \
        if (p == 2) {                                                                              \
            y[0] = (pair_##suffix){ a.re + b.re, a.im + b.im };                                    \
            y[out] = (pair_##suffix){ a.re - b.re, a.im - b.im };                                  \
            return;                                                                                \
        }                                                                                          \
        pair_##suffix c = x[2 * step], d = x[3 * step];                                            \
        pair_##suffix ac = { a.re + c.re, a.im + c.im }, bd = { b.re + d.re, b.im + d.im };        \
        pair_##suffix a_c = { a.re - c.re, a.im - c.im },                                          \
                      b_d = { sign * (d.im - b.im), sign * (b.re - d.re) };                        \
        y[0] = (pair_##suffix){ ac.re + bd.re, ac.im + bd.im };                                    \
        y[out] = (pair_##suffix){ a_c.re + b_d.re, a_c.im + b_d.im };                              \
        y[2 * out] = (pair_##suffix){ ac.re - bd.re, ac.im - bd.im };                              \
        y[3 * out] = (pair_##suffix){ a_c.re - b_d.re, a_c.im - b_d.im };                          \
    }                                                                                              \
                                                                                                   \
    void pith__k_fft_##suffix(void *y_, void *x_, void *rest, const void *roots_, int64_t n,       \
                              bool inverse, pith__stop *stop) {                                    \
        pair_##suffix *from = x_, *to = y_;                                                        \
        const pair_##suffix *roots = roots_;                                                       \
        T sign = inverse ? 1 : -1;                                                                 \
        int64_t done = 1, spent = 0; /* done: product of the radices so far */                     \
        for (int64_t left = n, p; (p = next_factor(left, left == n)) != 0; left /= p, done *= p) { \
            int64_t inner = left / p;                                                              \
            for (int64_t k = 0; k < done; k++) {                                                   \
                for (int64_t i = 0; i < inner; i++) {                                              \
                    if (!(i & (LOOK_STEPS - 1)) &&                                                 \
                        fft_stops(stop, &spent,                                                    \
                                  4 * p * (inner < LOOK_STEPS ? inner : LOOK_STEPS)))              \
                        return;                                                                    \
                    const pair_##suffix *x = from + i + inner * p * k;                             \
                    pair_##suffix *y = to + i + inner * k;                                         \
                    if (p % 2)                                                                     \
                        odd_##suffix(y, inner *done, x, inner, p, rest, roots, n / p, sign,        \
                                     &spent, stop);                                                \
                    else                                                                           \
                        even_##suffix(y, inner *done, x, inner, p, sign);                          \
                    if (i == 0) continue; /* its turns are by 1 */                                 \
                    for (int64_t q = 1; q < p; q++)                                                \
                        y[q * inner * done] =                                                      \
                            turned_##suffix(y[q * inner * done], roots[q * done * i], sign);       \
                }                                                                                  \
            }                                                                                      \
            pair_##suffix *swap = from;                                                            \
            from = to;                                                                             \
            to = swap;                                                                             \
        }                                                                                          \
        if (from != y_) memcpy(y_, from, (size_t)n * sizeof *from);                                \
    }

DEFINE_FFT(float, f32)
DEFINE_FFT(double, f64)

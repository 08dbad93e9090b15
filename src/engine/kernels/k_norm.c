/* k_norm.c - normalisations and softmax of rows. A row is read two or three times while it is in
 * the L1 cache: statistics by the 16-lane rule, then the result. Sums are chains of additions, so
 * several rows are normalised at a time and their chains overlap. */
#include "engine/kernels/norm.h"

#include <stdbool.h>

#include "engine/kernels/vmath.h"

/* The n (1 to 16) lanes at p. */
PITH_INLINE vf norm_take(const float *p, int64_t n) {
    return n >= 16 ? vf_load(p) : vf_load_n(p, (size_t)n);
}
PITH_INLINE void norm_put(float *p, vf a, int64_t n) {
    if (n >= 16)
        vf_store(p, a);
    else
        vf_store_n(p, a, (size_t)n);
}
/* a with zeros from lane n on. */
PITH_INLINE vf norm_keep(vf a, int64_t n) {
    return n >= 16 ? a : vf_select(vm_first((size_t)n), a, vf_zero());
}

PITH_INLINE float sum_of_squares(const float *x, int64_t n, float mean) {
    vf sum = vf_zero(), m = vf_set1(mean);
    for (int64_t i = 0; i < n; i += 16) {
        vf d = norm_keep(vf_sub(norm_take(x + i, n - i), m), n - i);
        sum = vf_fma(d, d, sum);
    }
    return vf_sum(sum);
}

/* Rows normalised at a time: a sum is a chain of additions with a latency of four cycles, so four
 * chains fill the gaps. */
enum { ROWS = 4 };

/* What is done to `count` (1 to 16) elements of each row from element i on. x: the rows to
 * normalise, as they come or as `gather` leaves them. */
typedef struct block {
    const pith__layer_norm *a;
    const float *x[ROWS];
    int64_t row; /* the first */
    vf sum[ROWS], mean[ROWS], inverse[ROWS];
} block;

/* x + bias + residual, kept in sum or, failing that, in y, and added up. */
PITH_INLINE void norm_gather(const int rows, block *b, float *out, int64_t i, int64_t count) {
    const pith__layer_norm *a = b->a;
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        int64_t at = (b->row + r) * a->n + i;
        vf v = norm_take(a->x + at, count);
        if (a->bias) v = vf_add(v, norm_take(a->bias + i, count));
        if (a->residual) v = vf_add(v, norm_take(a->residual + at, count));
        norm_put(out + at, v, count);
        b->sum[r] = vf_add(b->sum[r], v);
    }
}
PITH_INLINE void norm_add(const int rows, block *b, int64_t i, int64_t count) {
    PITH_UNROLL
    for (int r = 0; r < rows; r++) b->sum[r] = vf_add(b->sum[r], norm_take(b->x[r] + i, count));
}
PITH_INLINE void add_squares(const int rows, block *b, int64_t i, int64_t count) {
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        vf d = norm_keep(vf_sub(norm_take(b->x[r] + i, count), b->mean[r]), count);
        b->sum[r] = vf_fma(d, d, b->sum[r]);
    }
}
PITH_INLINE void write(const int rows, const block *b, const float *beta, int64_t i,
                       int64_t count) {
    const float *gamma = b->a->gamma;
    vf scale = gamma ? norm_take(gamma + i, count) : vf_zero(),
       shift = beta ? norm_take(beta + i, count) : vf_zero();
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        vf v = vf_mul(vf_sub(norm_take(b->x[r] + i, count), b->mean[r]), b->inverse[r]);
        if (gamma && beta)
            v = vf_fma(v, scale, shift);
        else if (gamma)
            v = vf_mul(v, scale);
        else if (beta)
            v = vf_add(v, shift);
        norm_put(b->a->y + (b->row + r) * b->a->n + i, v, count);
    }
}

/* Calls step(..., i, count) for all elements of the rows. */
#define EACH(n, step, ...)                                                                         \
    do {                                                                                           \
        const int64_t whole_ = (n) / 16 * 16;                                                      \
        for (int64_t i_ = 0; i_ < whole_; i_ += 16) step(__VA_ARGS__, i_, 16);                     \
        if (whole_ < (n)) step(__VA_ARGS__, whole_, (n)-whole_);                                   \
    } while (0)

/* Two passes for the statistics, since the mean of squares less the square of the mean would
 * cancel, and one for the result. If there is anything to add, the sums are stored on the first
 * pass, in `sum` or in y, and read from there. centred: the mean is taken off (LayerNormalization),
 * else not (RMSNormalization). */
PITH_INLINE void norm_normalise(const int rows, const bool centred, const pith__layer_norm *a,
                                int64_t row) {
    const bool gathered = a->residual || a->bias || a->sum;
    const float *beta = centred ? a->beta : NULL;
    float *out = a->sum ? a->sum : a->y;
    block b = { .a = a, .row = row };
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        b.x[r] = (gathered ? out : a->x) + (row + r) * a->n;
        b.sum[r] = b.mean[r] = vf_zero();
    }
    if (gathered)
        EACH(a->n, norm_gather, rows, &b, out);
    else if (centred)
        EACH(a->n, norm_add, rows, &b);
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        if (centred) b.mean[r] = vf_set1(vf_sum(b.sum[r]) / (float)a->n);
        if (centred && a->mean_out) vf_store_n(a->mean_out + row + r, b.mean[r], 1);
        b.sum[r] = vf_zero();
    }
    EACH(a->n, add_squares, rows, &b);
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        b.inverse[r] =
            vf_div(vf_set1(1.0f), vf_sqrt(vf_set1(vf_sum(b.sum[r]) / (float)a->n + a->epsilon)));
        if (a->inv_out) vf_store_n(a->inv_out + row + r, b.inverse[r], 1);
    }
    EACH(a->n, write, rows, &b, beta);
}

PITH_INLINE void normalise_all(const bool centred, const pith__layer_norm *a) {
    int64_t row = 0;
    for (; a->rows - row >= ROWS; row += ROWS) norm_normalise(ROWS, centred, a, row);
    for (; row < a->rows; row++) norm_normalise(1, centred, a, row);
}

void PITH_K(layer_norm_f32)(const pith__layer_norm *a) { normalise_all(true, a); }

void PITH_K(rms_norm_f32)(const pith__layer_norm *a) { normalise_all(false, a); }

PITH_INLINE float row_max(const float *x, int64_t n) {
    vf m = vf_set1(-INFINITY);
    for (int64_t i = 0; i < n; i += 16) {
        vf v = norm_take(x + i, n - i);
        m = vf_max(m, n - i >= 16 ? v : vf_select(vm_first((size_t)(n - i)), v, m));
    }
    return vf_hmax(m);
}

/* The largest element is taken off first, so that no exponential overflows and the sum is at least
 * 1. Results are divided, not multiplied by a reciprocal, which would round twice. */
void PITH_K(softmax_f32)(const float *x, float *y, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
        vf m = vf_set1(row_max(x, n)), sum = vf_zero();
        for (int64_t i = 0; i < n; i += 16) {
            vf e = norm_keep(vf_exp(vf_sub(norm_take(x + i, n - i), m)), n - i);
            sum = vf_add(sum, e);
            norm_put(y + i, e, n - i);
        }
        vf total = vf_set1(vf_sum(sum));
        for (int64_t i = 0; i < n; i += 16)
            norm_put(y + i, vf_div(norm_take(y + i, n - i), total), n - i);
    }
}

/* (x - m) - log(sum of exp(x - m)). The logarithm of a softmax would lose small probabilities,
 * which may round to 0. */
void PITH_K(log_softmax_f32)(const float *x, float *y, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
        vf m = vf_set1(row_max(x, n)), sum = vf_zero();
        for (int64_t i = 0; i < n; i += 16) {
            sum = vf_add(sum, norm_keep(vf_exp(vf_sub(norm_take(x + i, n - i), m)), n - i));
        }
        vf total = vf_log(vf_set1(vf_sum(sum)));
        for (int64_t i = 0; i < n; i += 16)
            norm_put(y + i, vf_sub(vf_sub(norm_take(x + i, n - i), m), total), n - i);
    }
}

void PITH_K(l2_normalize_f32)(const float *x, float *y, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
        vf norm = vf_max(vf_set1(1e-12f), vf_sqrt(vf_set1(sum_of_squares(x, n, 0.0f))));
        for (int64_t i = 0; i < n; i += 16)
            norm_put(y + i, vf_div(norm_take(x + i, n - i), norm), n - i);
    }
}

/* ---- norms in double: loops over 16 numbers, which compilers make vectors of ---- */

PITH_INLINE void lp_add(double *sums, const float *x, const bool square) {
    for (int i = 0; i < 16; i++) {
        const double v = (double)x[i];
        sums[i] += square ? v * v : fabs(v);
    }
}

PITH_INLINE void lp_scale(float *y, const float *x, const double *factors) {
    float scaled[16];
    for (int i = 0; i < 16; i++) scaled[i] = (float)((double)x[i] * factors[i]);
    memcpy(y, scaled, sizeof scaled);
}

static double lp_factor(double sum, bool square) {
    if (sum == 0) return 0;
    return 1 / (square ? sqrt(sum) : sum);
}

/* Up to 16 lines side by side. */
PITH_INLINE void lp_columns(const float *x, float *y, int64_t n, int64_t inner, int64_t columns,
                            const bool square) {
    double sums[16] = { 0 };
    float some[16] = { 0 };
    const size_t bytes = (size_t)columns * sizeof *some;
    for (int64_t k = 0; k < n; k++) {
        if (columns < 16) memcpy(some, x + k * inner, bytes);
        lp_add(sums, columns < 16 ? some : x + k * inner, square);
    }
    for (int i = 0; i < 16; i++) sums[i] = lp_factor(sums[i], square);
    for (int64_t k = 0; k < n; k++) {
        if (columns < 16) {
            memcpy(some, x + k * inner, bytes);
            lp_scale(some, some, sums);
            memcpy(y + k * inner, some, bytes);
        } else {
            lp_scale(y + k * inner, x + k * inner, sums);
        }
    }
}

/* Sixteen sums in double, one for each lane, which are added in halves at the end. The rest of a
 * row is filled up with zeros, which add nothing. */
PITH_INLINE void lp_row(const float *x, float *y, int64_t n, const bool square) {
    double sums[16] = { 0 };
    float some[16] = { 0 };
    const int64_t whole = n / 16 * 16;
    const size_t bytes = (size_t)(n - whole) * sizeof *some;
    for (int64_t i = 0; i < whole; i += 16) lp_add(sums, x + i, square);
    if (bytes) memcpy(some, x + whole, bytes);
    lp_add(sums, some, square);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) sums[i] += sums[i + half];
    const double factor = lp_factor(sums[0], square);
    for (int i = 0; i < 16; i++) sums[i] = factor;
    for (int64_t i = 0; i < whole; i += 16) lp_scale(y + i, x + i, sums);
    lp_scale(some, some, sums);
    if (bytes) memcpy(y + whole, some, bytes);
}

PITH_INLINE void lp_lines(const float *x, float *y, int64_t n, int64_t inner, int64_t columns,
                          const bool square) {
    if (inner == 1) {
        lp_row(x, y, n, square);
        return;
    }
    for (int64_t j = 0; j < columns; j += 16)
        lp_columns(x + j, y + j, n, inner, columns - j < 16 ? columns - j : 16, square);
}

void PITH_K(lp_normalize_f32)(const float *x, float *y, int64_t n, int64_t inner, int64_t columns,
                              bool square) {
    if (square)
        lp_lines(x, y, n, inner, columns, true);
    else
        lp_lines(x, y, n, inner, columns, false);
}

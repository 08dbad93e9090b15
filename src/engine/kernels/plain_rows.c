/* plain_rows.c - see plain_rows.h. */
#include "engine/kernels/plain_rows.h"

#include <math.h>

#include "engine/kernels/norm.h"

pith__row_f64_fn pith__k_softmax_f64, pith__k_log_softmax_f64, pith__k_hardmax_f64;
pith__row_f32_fn pith__k_hardmax_f32;
pith__norm_f64_fn pith__k_layer_norm_f64, pith__k_rms_norm_f64;

/* The largest of a row, NaN if there is one. */
static double top_of(const double *x, int64_t n) {
    double top = -INFINITY;
    for (int64_t i = 0; i < n; i++) top = x[i] > top || x[i] != x[i] ? x[i] : top;
    return top;
}

void pith__k_softmax_f64(const double *x, double *y, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        double top = top_of(x, n), sum = 0;
        for (int64_t i = 0; i < n; i++) sum += y[i] = exp(x[i] - top);
        for (int64_t i = 0; i < n; i++) y[i] /= sum;
    }
}

void pith__k_log_softmax_f64(const double *x, double *y, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        double top = top_of(x, n), sum = 0;
        for (int64_t i = 0; i < n; i++) sum += exp(x[i] - top);
        sum = log(sum);
        for (int64_t i = 0; i < n; i++) y[i] = x[i] - top - sum;
    }
}

#define HARDMAX(suffix, T)                                                                         \
    void pith__k_hardmax_##suffix(const T *x, T *y, int64_t rows, int64_t n) {                     \
        for (int64_t r = 0; r < rows; r++, x += n, y += n) {                                       \
            int64_t best = 0;                                                                      \
            for (int64_t i = 1; i < n; i++) best = x[i] > x[best] ? i : best;                      \
            for (int64_t i = 0; i < n; i++) y[i] = i == best;                                      \
        }                                                                                          \
    }
HARDMAX(f32, float)
HARDMAX(f64, double)

/* Two walks: the squares of differences from the mean lose nothing to cancellation, which a
 * difference of sums of squares would. */
void pith__k_layer_norm_f64(const pith__norm_f64 *a) {
    for (int64_t r = 0; r < a->rows; r++) {
        const double *x = a->x + r * a->n;
        double *y = a->y + r * a->n, mean = 0, variance = 0;
        for (int64_t i = 0; i < a->n; i++) mean += x[i];
        mean /= (double)a->n;
        for (int64_t i = 0; i < a->n; i++) variance += (x[i] - mean) * (x[i] - mean);
        double inv = 1.0 / sqrt(variance / (double)a->n + a->epsilon);
        for (int64_t i = 0; i < a->n; i++) {
            y[i] =
                (x[i] - mean) * inv * (a->gamma ? a->gamma[i] : 1.0) + (a->beta ? a->beta[i] : 0.0);
        }
        if (a->mean_out) a->mean_out[r] = mean;
        if (a->inv_out) a->inv_out[r] = inv;
    }
}

void pith__k_rms_norm_f64(const pith__norm_f64 *a) {
    for (int64_t r = 0; r < a->rows; r++) {
        const double *x = a->x + r * a->n;
        double *y = a->y + r * a->n, square = 0;
        for (int64_t i = 0; i < a->n; i++) square += x[i] * x[i];
        double inv = 1.0 / sqrt(square / (double)a->n + a->epsilon);
        for (int64_t i = 0; i < a->n; i++) y[i] = x[i] * inv * (a->gamma ? a->gamma[i] : 1.0);
        if (a->inv_out) a->inv_out[r] = inv;
    }
}

/* k_norm.c - normalisations and softmax of rows. A row is passed over two or three times while it is in the first level
 * cache: statistics by the 16-lane rule, then the result. */
#include "kernels/norm.h"

#include "kernels/vmath.h"

/* The n (1 to 16) lanes at p. */
PITH_INLINE vf take(const float *p, int64_t n) { return n >= 16 ? vf_load(p) : vf_load_n(p, (size_t)n); }
PITH_INLINE void put(float *p, vf a, int64_t n) {
    if (n >= 16)
        vf_store(p, a);
    else
        vf_store_n(p, a, (size_t)n);
}
/* a with zeros from lane n on. */
PITH_INLINE vf keep(vf a, int64_t n) { return n >= 16 ? a : vf_select(vm_first((size_t)n), a, vf_zero()); }

PITH_INLINE float sum_of_squares(const float *x, int64_t n, float mean) {
    vf sum = vf_zero(), m = vf_set1(mean);
    for (int64_t i = 0; i < n; i += 16) {
        vf d = keep(vf_sub(take(x + i, n - i), m), n - i);
        sum = vf_fma(d, d, sum);
    }
    return vf_sum(sum);
}

/* The row to normalise: x + bias + residual, kept in sum or, failing that, in y; or x itself. */
PITH_INLINE const float *input_row(const pith_layer_norm *a, int64_t row) {
    const float *x = a->x + row * a->n;
    if (!a->residual && !a->bias && !a->sum) return x;
    const float *residual = a->residual ? a->residual + row * a->n : NULL;
    float *out = (a->sum ? a->sum : a->y) + row * a->n;
    for (int64_t i = 0; i < a->n; i += 16) {
        int64_t n = a->n - i;
        vf v = take(x + i, n);
        if (a->bias) v = vf_add(v, take(a->bias + i, n));
        if (residual) v = vf_add(v, take(residual + i, n));
        put(out + i, v, n);
    }
    return out;
}

PITH_INLINE void write_row(const pith_layer_norm *a, const float *x, int64_t row, float mean, float inverse,
                           const float *beta) {
    float *y = a->y + row * a->n;
    vf m = vf_set1(mean), s = vf_set1(inverse);
    for (int64_t i = 0; i < a->n; i += 16) {
        int64_t n = a->n - i;
        vf v = vf_mul(vf_sub(take(x + i, n), m), s);
        if (a->gamma && beta)
            v = vf_fma(v, take(a->gamma + i, n), take(beta + i, n));
        else if (a->gamma)
            v = vf_mul(v, take(a->gamma + i, n));
        else if (beta)
            v = vf_add(v, take(beta + i, n));
        put(y + i, v, n);
    }
    if (a->mean_out) a->mean_out[row] = mean;
    if (a->inv_out) a->inv_out[row] = inverse;
}

PITH_INLINE float inverse_root(float squares, float n, float epsilon) {
    float t[16];
    vf_store(t, vf_div(vf_set1(1.0f), vf_sqrt(vf_set1(squares / n + epsilon))));
    return t[0];
}

void PITH_K(layer_norm_f32)(const pith_layer_norm *a) {
    for (int64_t row = 0; row < a->rows; row++) {
        const float *x = input_row(a, row);
        vf sum = vf_zero();
        for (int64_t i = 0; i < a->n; i += 16) sum = vf_add(sum, take(x + i, a->n - i));
        float mean = vf_sum(sum) / (float)a->n;
        write_row(a, x, row, mean, inverse_root(sum_of_squares(x, a->n, mean), (float)a->n, a->epsilon), a->beta);
    }
}

void PITH_K(rms_norm_f32)(const pith_layer_norm *a) {
    for (int64_t row = 0; row < a->rows; row++) {
        const float *x = input_row(a, row);
        write_row(a, x, row, 0.0f, inverse_root(sum_of_squares(x, a->n, 0.0f), (float)a->n, a->epsilon), NULL);
    }
}

PITH_INLINE float row_max(const float *x, int64_t n) {
    vf m = vf_set1(-INFINITY);
    for (int64_t i = 0; i < n; i += 16) {
        vf v = take(x + i, n - i);
        m = vf_max(m, n - i >= 16 ? v : vf_select(vm_first((size_t)(n - i)), v, m));
    }
    return vf_hmax(m);
}

void PITH_K(softmax_f32)(const float *x, float *y, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
        vf m = vf_set1(row_max(x, n)), sum = vf_zero();
        for (int64_t i = 0; i < n; i += 16) {
            vf e = keep(vf_exp(vf_sub(take(x + i, n - i), m)), n - i);
            sum = vf_add(sum, e);
            put(y + i, e, n - i);
        }
        vf total = vf_set1(vf_sum(sum));
        for (int64_t i = 0; i < n; i += 16) put(y + i, vf_div(take(y + i, n - i), total), n - i);
    }
}

void PITH_K(log_softmax_f32)(const float *x, float *y, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
        vf m = vf_set1(row_max(x, n)), sum = vf_zero();
        for (int64_t i = 0; i < n; i += 16) { sum = vf_add(sum, keep(vf_exp(vf_sub(take(x + i, n - i), m)), n - i)); }
        vf total = vf_log(vf_set1(vf_sum(sum)));
        for (int64_t i = 0; i < n; i += 16) put(y + i, vf_sub(vf_sub(take(x + i, n - i), m), total), n - i);
    }
}

void PITH_K(l2_normalize_f32)(const float *x, float *y, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
        vf norm = vf_max(vf_set1(1e-12f), vf_sqrt(vf_set1(sum_of_squares(x, n, 0.0f))));
        for (int64_t i = 0; i < n; i += 16) put(y + i, vf_div(take(x + i, n - i), norm), n - i);
    }
}

/* quantized_error.c - see quantized_error.h. */
#include "formats/export/quantized_error.h"

#include <math.h>
#include <string.h>

/* Rows that are multiplied together, so that their sums do not wait for each other. */
enum { BLOCK = 16 };

static float error_original(const pith__weight_code_source *s, int64_t i, int64_t j) {
    float x;
    memcpy(&x, (const char *)s->data + (i * s->row + j * s->column) * (int64_t)sizeof x, sizeof x);
    return x;
}

static float error_rounded(const pith__weight_codes *c, int64_t i, int64_t j) {
    const int64_t at = j * c->blocks + i / c->block;
    return ((float)c->codes[j * c->k + i] - (float)c->zeros[at]) * c->scales[at];
}

static double error_of_weight(const pith__quantized_weight *w, pith__stop *stop) {
    double off = 0, all = 0;
    for (int64_t j = 0; j < w->source.n; j++) {
        if (pith__stop_asked(stop)) break;
        for (int64_t i = 0; i < w->source.k; i++) {
            const double x = (double)error_original(&w->source, i, j),
                         d = (double)error_rounded(&w->codes, i, j) - x;
            off += d * d;
            all += x * x;
        }
    }
    return all > 0 ? off / all : 0;
}

/* Numbers as 8 bits between low and high, as QuantizeLinear rounds them. */
static void error_quantise(float *to, const float *x, int64_t count, float low, float high) {
    const float scale = (high - low) / 255, zero = scale > 0 ? rintf(-low / scale) : 0;
    for (int64_t i = 0; i < count; i++)
        to[i] =
            scale > 0 ? (fminf(fmaxf(rintf(x[i] / scale) + zero, 0), 255) - zero) * scale : x[i];
}

static void error_peak(float *low, float *high, const float *x, int64_t count) {
    *low = *high = 0;
    for (int64_t i = 0; i < count; i++) {
        *low = fminf(*low, x[i]);
        *high = fmaxf(*high, x[i]);
    }
}

/* The rows as the written graph will have them. Blocks multiply f32, and so do weights that are
 * dequantised for all their readers: theirs are unchanged. The kinds with a range for a whole
 * tensor get the fixed limits, or, for limits that each run finds for itself, those of all rows
 * that were kept, which stand for a run's tensor. With scales of rows, each row is divided by
 * `smooth` and rounded around its middle, by the formula of quantized_rows_of in
 * quantized_weights.c. */
static void error_inputs(float *to, const pith__quantized *q, const pith__quantized_weight *w,
                         const float *rows, int64_t count) {
    const int64_t k = w->source.k;
    float low = w->low, high = w->high;
    memcpy(to, rows, (size_t)(count * k) * sizeof *to);
    if (q->form->kind == PITH_QUANTIZED_BLOCKS || w->other) return;
    if (q->form->kind == PITH_QUANTIZED_DYNAMIC) error_peak(&low, &high, rows, count * k);
    if (q->form->kind != PITH_QUANTIZED_ROWS) {
        error_quantise(to, rows, count * k, low, high);
        return;
    }
    for (int64_t r = 0; r < count; r++) {
        float *row = to + r * k;
        if (w->smooth)
            for (int64_t i = 0; i < k; i++) row[i] /= w->smooth[i];
        low = high = row[0];
        for (int64_t i = 0; i < k; i++) {
            low = fminf(low, row[i]);
            high = fmaxf(high, row[i]);
        }
        const float middle = (low + high) * 0.5f, scale = (high - low) / 254;
        if (scale > 0)
            for (int64_t i = 0; i < k; i++)
                row[i] = rintf((row[i] - middle) / scale) * scale + middle;
    }
}

/* Blocks of rows, each as [k, BLOCK]; rows that are not there are zeros. */
static void error_turn(float *to, const float *rows, int64_t count, int64_t k) {
    for (int64_t first = 0; first < count; first += BLOCK, to += k * BLOCK)
        for (int64_t i = 0; i < k; i++)
            for (int64_t r = 0; r < BLOCK; r++)
                to[i * BLOCK + r] = first + r < count ? rows[(first + r) * k + i] : 0;
}

/* The sum of each row of a block times a column of weights. */
static void error_products(float sums[BLOCK], const float *block, const float *column, int64_t k) {
    for (int r = 0; r < BLOCK; r++) sums[r] = 0;
    for (int64_t i = 0; i < k; i++)
        for (int r = 0; r < BLOCK; r++) sums[r] += block[i * BLOCK + r] * column[i];
}

/* Compares results and not weights, since an error in a channel that the inputs hardly use counts
 * for little. A column of the weight is dequantised when it is its turn, so that no second copy of
 * the weight is needed in f32. The rows are turned into blocks of [k, BLOCK] once, which makes the
 * inner loop one over BLOCK independent sums. */
bool pith__quantized_error(double *error, const pith__quantized *q, size_t weight,
                           const float *rows, int64_t count, pith__arena *scratch) {
    const pith__quantized_weight *w = &q->weights[weight];
    const int64_t k = w->source.k;
    pith__stop *stop = pith__graph_stop(q->graph);
    double off = 0, all = 0;
    if (w->table || !count) {
        *error = error_of_weight(w, stop);
        return !pith__stop_asked(stop);
    }
    const size_t blocks = (size_t)((count + BLOCK - 1) / BLOCK * k * BLOCK);
    float *x = pith__arena_array(scratch, (size_t)(count * k), sizeof *x);
    float *exact = pith__arena_array(scratch, blocks, sizeof *exact);
    float *rounded = pith__arena_array(scratch, blocks, sizeof *rounded);
    float *before = pith__arena_array(scratch, (size_t)k, sizeof *before);
    float *after = pith__arena_array(scratch, (size_t)k, sizeof *after);
    if (!x || !exact || !rounded || !before || !after) return false;
    error_inputs(x, q, w, rows, count);
    error_turn(exact, rows, count, k);
    error_turn(rounded, x, count, k);
    for (int64_t j = 0; j < w->source.n; j++) {
        if (pith__stop_asked(stop)) return false;
        for (int64_t i = 0; i < k; i++) {
            before[i] = error_original(&w->source, i, j);
            after[i] = error_rounded(&w->codes, i, j);
            if (w->smooth) before[i] /= w->smooth[i]; /* the source was multiplied */
        }
        for (int64_t first = 0; first < count; first += BLOCK) {
            float y[BLOCK], z[BLOCK];
            error_products(y, exact + first * k, before, k);
            error_products(z, rounded + first * k, after, k);
            for (int64_t r = 0; r < BLOCK && first + r < count; r++) {
                off += (double)(z[r] - y[r]) * (double)(z[r] - y[r]);
                all += (double)y[r] * (double)y[r];
            }
        }
    }
    *error = all > 0 ? off / all : 0;
    return true;
}

/* quantized_smooth.c - see quantized_smooth.h. */
#include "formats/export/quantized_smooth.h"

#include <math.h>
#include <string.h>

#include "formats/export/quantized_error.h"

/* Channels are not divided by less than this share of the largest s: a channel that was 0 in all
 * rows may not stay so. */
#define SMOOTH_LEAST 1e-3f

/* Whether the weight multiplies the same inputs as the one called `of`, as codes: one that is
 * dequantised for all its readers multiplies inputs that nothing divides. */
static bool smooth_is_member(const pith__quantized *q, size_t i, size_t of) {
    const pith__quantized_weight *w = &q->weights[i];
    return !w->table && !w->other && w->input == q->weights[of].input &&
           w->source.k == q->weights[of].source.k;
}

static float smooth_weight_peak(const pith__weight_code_source *s, int64_t i) {
    float peak = 0;
    for (int64_t j = 0; j < s->n; j++) {
        float x;
        memcpy(&x, (const char *)s->data + (i * s->row + j * s->column) * (int64_t)sizeof x,
               sizeof x);
        peak = fmaxf(peak, fabsf(x));
    }
    return peak;
}

/* s of channel i: sqrt(max |x_i| / max |w_i|), over the rows that were kept and over all weights
 * that multiply the same inputs, since they share the inputs that are divided. Then x / s and s w
 * reach equally far, sqrt(max |x_i| max |w_i|): neither side takes all of the range. A channel
 * whose weights are all 0 gets the least s. */
static void smooth_choose(float *s, const pith__quantized *q, size_t of, const float *rows,
                          int64_t count) {
    const int64_t k = q->weights[of].source.k;
    pith__stop *stop = pith__graph_stop(q->graph);
    float largest = 0;
    for (int64_t i = 0; i < k; i++) {
        float peak = 0, weight = 0;
        s[i] = 0;
        if (pith__stop_asked(stop)) continue; /* nobody rounds any more */
        for (int64_t r = 0; r < count; r++) peak = fmaxf(peak, fabsf(rows[r * k + i]));
        for (size_t m = 0; m < q->count; m++)
            if (smooth_is_member(q, m, of))
                weight = fmaxf(weight, smooth_weight_peak(&q->weights[m].source, i));
        s[i] = weight > 0 ? sqrtf(peak / weight) : 0;
        largest = fmaxf(largest, s[i]);
    }
    if (!(largest > 0)) largest = 1;
    for (int64_t i = 0; i < k; i++) s[i] = fmaxf(s[i], SMOOTH_LEAST * largest);
}

/* The weight times s, in the layout that it has. False: memory is out, or the call must end. */
static bool smooth_multiply(pith__quantized_weight *w, const float *s, pith__stop *stop,
                            pith__arena *arena) {
    const pith__weight_code_source *from = &w->source;
    float *to = pith__arena_array(arena, (size_t)(from->k * from->n), sizeof *to);
    if (!to) return false;
    for (int64_t i = 0; i < from->k; i++) {
        if (pith__stop_asked(stop)) return false;
        for (int64_t j = 0; j < from->n; j++) {
            const int64_t at = i * from->row + j * from->column;
            float x;
            memcpy(&x, (const char *)from->data + at * (int64_t)sizeof x, sizeof x);
            to[at] = x * s[i];
        }
    }
    w->source.data = to;
    w->smooth = s;
    return true;
}

/* Rounds the members and adds their errors. */
static bool smooth_round(double *errors, pith__quantized *q, size_t of, const float *rows,
                         int64_t count, pith__arena *scratch) {
    *errors = 0;
    for (size_t m = of; m < q->count; m++) {
        double error;
        if (!smooth_is_member(q, m, of)) continue;
        pith__arena_reset(scratch);
        if (pith__quantized_round(q, m, NULL, scratch, NULL) ||
            !pith__quantized_error(&error, q, m, rows, count, scratch))
            return false;
        *errors += error;
    }
    return true;
}

/* Rounds the weights twice, with s and without, and keeps what gives the smaller sum of errors:
 * smoothing moves range from the inputs into the weights, which may round worse by that. Each
 * rounding makes codes of its own, so the copies of the structs in `before` are enough to go back.
 */
bool pith__quantized_smooth(pith__quantized *q, size_t weight, const float *rows, int64_t count,
                            pith__arena *scratch) {
    pith__arena *arena = q->graph->arena;
    float *s = pith__arena_array(arena, (size_t)q->weights[weight].source.k, sizeof *s);
    pith__quantized_weight *before = pith__arena_array(arena, q->count, sizeof *before);
    double plain, smooth;
    if (!s || !before || !smooth_round(&plain, q, weight, rows, count, scratch)) return false;
    memcpy(before, q->weights, q->count * sizeof *before);
    smooth_choose(s, q, weight, rows, count);
    for (size_t m = weight; m < q->count; m++)
        if (smooth_is_member(q, m, weight) &&
            !smooth_multiply(&q->weights[m], s, pith__graph_stop(q->graph), arena))
            return false;
    if (!smooth_round(&smooth, q, weight, rows, count, scratch)) return false;
    if (smooth >= plain) memcpy(q->weights, before, q->count * sizeof *before);
    return true;
}

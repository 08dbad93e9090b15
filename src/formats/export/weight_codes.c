/* weight_codes.c - see weight_codes.h.
 *
 * A panel of 16 columns is one part for the threads. Scales come first, from the numbers as they
 * are; then the codes are rounded from the last of the factor's order to the first. Sums are plain
 * loops in a fixed order, without fused operations.
 *
 * The scale of given codes with the least error is sum(w q) / sum(q q); codes are tried for several
 * scales. Rounding with compensation: Frantar et al., GPTQ, in the form of Babai's nearest
 * plane. */
#include "formats/export/weight_codes.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/os/threads.h"
#include "engine/kernels/quantize.h"

enum { PANEL = 16 };
/* Scales that are tried for codes of 4 bits: from the one that reaches the largest number down to 1
 * - 0.02 * 20 of it. More find little; codes of 8 bits gain nothing. */
enum { TRIES = 20 };
#define TRY_STEP 0.02f

typedef struct weight_code_job {
    pith__weight_codes *codes;
    const pith__weight_code_form *form;
    const pith__weight_code_source *source;
    const pith__factor *factor;
    pith__stop *stop;
    float *work; /* of each worker: [k, PANEL] with a factor, else [k] */
    int64_t work_size;
} weight_code_job;

/* What codes q - zero are possible, and the zero point. */
typedef struct weight_code_range {
    float low, high, zero;
} weight_code_range;

/* Adding and taking away 1.5 * 2^23 rounds to nearest, ties to even, for what is far below 2^22. */
static float weight_code_nearest(float x) {
    const float shift = 12582912.0f;
    float y = x + shift;
    return y - shift;
}

static float weight_code_of(float x, float inverse, const weight_code_range *r) {
    float q = weight_code_nearest(fminf(fmaxf(x * inverse, -1024.0f), 1024.0f));
    if (q < r->low) return r->low;
    return q > r->high ? r->high : q;
}

/* Sets *scale to the best one for the codes that `from` gives, and *gain to what they take off the
 * squared error. With codes q the error is sum(w w) - sum(w q)^2 / sum(q q) at the best scale; the
 * first sum is the same for all tries, so the second term is the gain. A `from` whose inverse is no
 * number in f32 has none. */
static void weight_code_try(float *scale, double *gain, float from, const float *w, int64_t m,
                            const weight_code_range *r) {
    const float inverse = 1.0f / from;
    double wq = 0, qq = 0;
    *gain = -1;
    *scale = 0;
    if (!(fabsf(inverse) <= 1e37f)) return;
    for (int64_t i = 0; i < m; i++) {
        const double q = (double)weight_code_of(w[i], inverse, r);
        wq += (double)w[i] * q;
        qq += q * q;
    }
    if (!(qq > 0)) return;
    *gain = wq * wq / qq;
    *scale = (float)(wq / qq);
}

static weight_code_range weight_code_symmetric_range(const pith__weight_code_form *form) {
    const float half = (float)(1 << (form->bits - 1));
    if (form->reach) return (weight_code_range){ -(float)form->reach, (float)form->reach, half };
    return (weight_code_range){ -half, half - 1.0f, half };
}

/* The scale and zero point of one block. For 4 bits, a range that does not reach the largest number
 * can have less error, since all other numbers get finer steps; so TRIES shorter ones are tried,
 * each with its best scale. The symmetric range without `reach` has one code more below 0 than
 * above; the number farthest from 0 takes that end, and the scale is negative if the number is
 * positive. */
static void weight_code_choose(float *scale, float *zero, const pith__weight_code_form *form,
                               const float *w, int64_t m) {
    const int tries = form->bits == 4 ? TRIES : 0;
    const float codes = (float)((1 << form->bits) - 1);
    weight_code_range r = weight_code_symmetric_range(form);
    float most = 0, least = 0, far, best_scale = 0;
    double best = 0;
    for (int64_t i = 0; i < m; i++) {
        most = w[i] > most ? w[i] : most;
        least = w[i] < least ? w[i] : least;
    }
    far = most > -least ? most : least;
    *zero = r.zero;
    for (int t = 0; t <= tries; t++) {
        const float share = 1.0f - TRY_STEP * (float)t;
        float from = far * share / (form->reach ? copysignf(r.high, far) : r.low), s;
        double gain;
        if (!form->symmetric) {
            from = (most - least) * share / codes;
            r.zero = from > 0 ? weight_code_nearest(-least * share / from) : 0;
            r.low = -r.zero;
            r.high = codes - r.zero;
        }
        weight_code_try(&s, &gain, from, w, m, &r);
        if (gain <= best) continue;
        best = gain;
        best_scale = tries ? s : from;
        *zero = r.zero;
    }
    *scale = best_scale;
}

static float weight_code_load(const pith__weight_code_source *s, int64_t i, int64_t j) {
    float x;
    memcpy(&x, (const char *)s->data + (i * s->row + j * s->column) * (int64_t)sizeof x, sizeof x);
    return x;
}

static weight_code_range weight_code_range_of(const pith__weight_code_form *form, float zero) {
    if (form->symmetric) return weight_code_symmetric_range(form);
    return (weight_code_range){ -zero, (float)((1 << form->bits) - 1) - zero, zero };
}

/* One number: its code, and what it lacks. */
static float weight_code_round(const weight_code_job *j, int64_t column, int64_t i, float x) {
    pith__weight_codes *c = j->codes;
    const int64_t at = column * c->blocks + i / c->block;
    const float scale = c->scales[at], inverse = 1.0f / scale;
    const weight_code_range r = weight_code_range_of(j->form, (float)c->zeros[at]);
    const float q = fabsf(inverse) <= 1e37f ? weight_code_of(x, inverse, &r) : 0.0f;
    c->codes[column * c->k + i] = (uint8_t)(q + r.zero);
    return x - q * scale;
}

static void weight_code_scales(const weight_code_job *j, int64_t column, const float *w) {
    pith__weight_codes *c = j->codes;
    for (int64_t b = 0; b < c->blocks; b++) {
        const int64_t first = b * c->block, m = c->k - first < c->block ? c->k - first : c->block;
        float zero;
        weight_code_choose(&c->scales[column * c->blocks + b], &zero, j->form, w + first, m);
        c->zeros[column * c->blocks + b] = (uint8_t)zero;
    }
}

/* Rounds a panel with compensation. With the Gram matrix as U^T D U (engine/kernels/quantize.h),
 * the error of the results is the sum over s of D_s (e_s + sum of U_st e_t for t > s)^2, e the
 * original less the rounded numbers. So the numbers are rounded from the last of the order to the
 * first, each after the sum of what is behind it was added. That keeps every term within half a
 * step, unless a code is at the end of its range, and is Babai's nearest plane. errors holds e; it
 * and the sums are [k, PANEL] in the factor's order. */
static void weight_code_feed_back(const weight_code_job *j, int64_t first, int64_t count,
                                  float *errors) {
    const int64_t k = j->codes->k, stride = pith__factor_stride(k);
    for (int64_t s = k - 1; s >= 0; s--) {
        const float *u = j->factor->u + s * stride;
        const int64_t i = j->factor->order[s];
        float sums[PANEL] = { 0 };
        if (s % 64 == 0 && pith__stop_asked(j->stop)) return;
        for (int64_t t = s + 1; t < k; t++)
            for (int p = 0; p < PANEL; p++) sums[p] += u[t] * errors[t * PANEL + p];
        for (int p = 0; p < PANEL; p++) errors[s * PANEL + p] = 0;
        for (int64_t p = 0; p < count; p++) {
            const float x = weight_code_load(j->source, i, first + p);
            errors[s * PANEL + p] = weight_code_round(j, first + p, i, x + sums[p]) - sums[p];
        }
    }
}

static void weight_code_panel(void *context, size_t part, int worker) {
    const weight_code_job *j = context;
    const pith__weight_code_source *s = j->source;
    const int64_t first = (int64_t)part * PANEL,
                  count = s->n - first < PANEL ? s->n - first : PANEL;
    float *work = j->work + worker * j->work_size;
    for (int64_t p = 0; p < count; p++) {
        for (int64_t i = 0; i < s->k; i++) work[i] = weight_code_load(s, i, first + p);
        weight_code_scales(j, first + p, work);
        if (!j->factor)
            for (int64_t i = 0; i < s->k; i++) (void)weight_code_round(j, first + p, i, work[i]);
    }
    if (j->factor) weight_code_feed_back(j, first, count, work);
}

bool pith__weight_codes_round(pith__weight_codes *codes, const pith__weight_code_form *form,
                              const pith__weight_code_source *source, const pith__factor *factor,
                              const pith__graph *graph, pith__arena *arena, pith__arena *scratch) {
    const int threads = pith__graph_threads(graph);
    const int64_t block = form->block && form->block < source->k ? form->block : source->k;
    weight_code_job j = { .codes = codes,
                          .form = form,
                          .source = source,
                          .factor = factor,
                          .stop = pith__graph_stop(graph) };
    size_t count;
    *codes = (pith__weight_codes){ .k = source->k,
                                   .n = source->n,
                                   .block = form->block ? form->block : source->k };
    codes->blocks = (source->k + block - 1) / block;
    if (pith__mul_overflows((size_t)source->k, (size_t)source->n, &count)) return false;
    codes->codes = pith__arena_alloc64(arena, count);
    codes->scales =
        pith__arena_array(arena, (size_t)codes->blocks, (size_t)source->n * sizeof *codes->scales);
    codes->zeros = pith__arena_array(arena, (size_t)codes->blocks, (size_t)source->n);
    j.work_size = source->k * (factor ? PANEL : 1);
    j.work = pith__arena_array(scratch, (size_t)threads, (size_t)j.work_size * sizeof *j.work);
    if (!codes->codes || !codes->scales || !codes->zeros || !j.work) return false;
    pith__threads_run_until(j.stop, weight_code_panel, &j,
                            (size_t)((source->n + PANEL - 1) / PANEL), threads);
    return true;
}

uint8_t *pith__weight_codes_pack(size_t *bytes, const pith__weight_codes *c, int64_t size,
                                 int32_t bits, pith__arena *arena) {
    const int64_t row = size * bits / 8;
    uint8_t *packed;
    if (pith__mul_overflows((size_t)row, (size_t)c->n, bytes)) return NULL;
    packed = pith__arena_alloc64(arena, *bytes);
    if (!packed) return NULL;
    memset(packed, 0, *bytes);
    for (int64_t j = 0; j < c->n; j++) {
        const uint8_t *from = c->codes + j * c->k;
        uint8_t *to = packed + j * row;
        for (int64_t i = 0; i < size; i++) {
            const uint8_t q = i < c->k ? from[i] : c->zeros[j * c->blocks + c->blocks - 1];
            to[i * bits / 8] |= (uint8_t)(bits == 4 && i % 2 ? q << 4 : q);
        }
    }
    return packed;
}

uint8_t *pith__weight_codes_pack_zeros(size_t *bytes, const pith__weight_codes *c, int32_t bits,
                                       pith__arena *arena) {
    const int64_t row = (c->blocks * bits + 7) / 8;
    uint8_t *packed;
    *bytes = (size_t)(row * c->n);
    packed = pith__arena_array(arena, *bytes, 1);
    if (!packed) return NULL;
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t b = 0; b < c->blocks; b++) {
            const uint8_t q = c->zeros[j * c->blocks + b];
            packed[j * row + b * bits / 8] |= (uint8_t)(bits == 4 && b % 2 ? q << 4 : q);
        }
    return packed;
}

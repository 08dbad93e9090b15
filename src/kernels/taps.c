/* taps.c - see taps.h: the padded plane in phases. */
#include "kernels/taps.h"

#include <string.h>

#include "base/checked.h"

typedef struct plane {
    int64_t rows, phase; /* floats of a phase of a row */
    int last;            /* the axis of columns; axis 0 is that of rows if last is 1 */
} plane;

static bool plane_of(plane *p, const pith_window *w) {
    int64_t reach;
    p->last = w->rank - 1;
    p->rows = 1;
    if (p->last == 1) {
        if (pith_mul_overflows(w->out[0] - 1, w->stride[0], &p->rows) ||
            pith_mul_overflows(w->kernel[0] - 1, w->dilation[0], &reach) ||
            pith_add_overflows(p->rows, reach + 1, &p->rows))
            return false;
    }
    return !pith_mul_overflows(w->kernel[p->last] - 1, w->dilation[p->last], &reach) &&
           !pith_add_overflows(w->out[p->last], reach / w->stride[p->last] + 1, &p->phase);
}

int64_t pith_taps_floats(const pith_window *w) {
    plane p;
    int64_t floats;
    if (!plane_of(&p, w) || pith_mul_overflows(p.rows, p.phase, &floats) ||
        pith_mul_overflows(floats, w->stride[p.last], &floats) || floats > INT64_MAX / 8 - PITH_TAPS_BLOCK)
        return -1;
    return floats + PITH_TAPS_BLOCK;
}

/* One row in phases; from NULL: padding. */
static void put_row(float *to, const float *from, const plane *p, const pith_window *w, float padding) {
    int64_t stride = w->stride[p->last], size = w->in[p->last];
    for (int64_t phase = 0; phase < stride; phase++, to += p->phase) {
        int64_t at = phase - w->begin[p->last]; /* of the first place */
        int64_t first = at >= 0 ? 0 : (-at + stride - 1) / stride, end = at >= size ? 0 : (size - 1 - at) / stride + 1;
        if (!from) first = end = 0;
        if (first > p->phase) first = p->phase;
        if (end > p->phase) end = p->phase;
        if (end < first) end = first;
        for (int64_t i = 0; i < first; i++) to[i] = padding;
        if (stride == 1 && end > first)
            memcpy(to + first, from + at + first, (size_t)(end - first) * sizeof *to);
        else
            for (int64_t i = first; i < end; i++) to[i] = from[at + i * stride];
        for (int64_t i = end; i < p->phase; i++) to[i] = padding;
    }
}

void pith_taps_plane(float *to, int64_t *offsets, int64_t *step, const float *x, const pith_window *w, float padding) {
    plane p;
    if (!plane_of(&p, w)) return; /* pith_taps_floats has said so */
    int64_t stride = w->stride[p.last], row_floats = stride * p.phase, kernel_rows = p.last ? w->kernel[0] : 1;
    for (int64_t r = 0; r < p.rows; r++) {
        int64_t from = p.last ? r - w->begin[0] : 0;
        bool inside = !p.last || (from >= 0 && from < w->in[0]);
        put_row(to + r * row_floats, inside ? x + from * w->in[p.last] : NULL, &p, w, padding);
    }
    for (int64_t i = 0; i < PITH_TAPS_BLOCK; i++) to[p.rows * row_floats + i] = padding;
    for (int64_t r = 0; r < kernel_rows; r++) {
        for (int64_t c = 0; c < w->kernel[p.last]; c++) {
            int64_t place = c * w->dilation[p.last];
            *offsets++ = (p.last ? r * w->dilation[0] * row_floats : 0) + place % stride * p.phase + place / stride;
        }
    }
    *step = p.last ? w->stride[0] * row_floats : 0;
}

/* sliding_windows.c - see sliding_windows.h: the padded plane in phases. */
#include "engine/kernels/sliding_windows.h"

#include "base/checked.h"

/* Places of one phase along an axis, and the phases that the kernel needs. With dilated taps fewer
 * than `stride` apart in all, some phases are read by no tap and are left out. */
static bool plane_axis(int64_t *size, int64_t *phases, const pith__window *w, int d) {
    int64_t reach;
    if (pith__mul_overflows(w->kernel[d] - 1, w->dilation[d], &reach) || reach == INT64_MAX)
        return false;
    *phases = w->stride[d] < reach + 1 ? w->stride[d] : reach + 1;
    return !pith__add_overflows(w->out[d], reach / w->stride[d], size);
}

bool pith__depthwise_fits(pith__depthwise *a, const pith__window *w) {
    bool fits =
        w->rank == 2 && w->stride[0] == w->stride[1] && (w->stride[0] == 1 || w->stride[0] == 2);
    for (int d = 0; d < 2 && fits; d++)
        fits = w->kernel[d] == 3 && w->dilation[d] == 1 && w->begin[d] >= 0 && w->begin[d] <= 1 &&
               (w->stride[d] == 2 || (w->begin[d] == 1 && w->in[d] == w->out[d]));
    if (!fits) return false;
    a->rows = w->in[0], a->columns = w->in[1];
    a->out_rows = w->out[0], a->out_columns = w->out[1];
    a->stride = w->stride[0];
    a->begin[0] = w->begin[0], a->begin[1] = w->begin[1];
    return true;
}

bool pith__taps_layout_of(pith__taps_layout *p, const pith__window *w) {
    p->last = w->rank - 1;
    p->rows = p->row_phases = 1;
    return (!p->last || plane_axis(&p->rows, &p->row_phases, w, 0)) &&
           plane_axis(&p->columns, &p->column_phases, w, p->last);
}

int64_t pith__taps_floats(const pith__window *w) {
    pith__taps_layout p;
    int64_t floats;
    if (!pith__taps_layout_of(&p, w) || pith__mul_overflows(p.rows, p.columns, &floats) ||
        pith__mul_overflows(floats, p.row_phases, &floats) ||
        pith__mul_overflows(floats, p.column_phases, &floats) ||
        floats > INT64_MAX / 8 - PITH_TAPS_BLOCK)
        return -1;
    return floats + PITH_TAPS_BLOCK;
}

/* Tap (r, c) of every window lies in the phase of its place modulo the strides, and there at the
 * place divided by them. So all windows of a row read a tap at neighbouring places, whatever the
 * stride. */
void pith__taps_offsets(int64_t *offsets, int64_t *step, const pith__window *w) {
    pith__taps_layout p;
    if (!pith__taps_layout_of(&p, w)) return; /* pith__taps_floats has said so */
    for (int64_t r = 0; r < (p.last ? w->kernel[0] : 1); r++) {
        const int64_t row = p.last ? r * w->dilation[0] : 0, high = p.last ? w->stride[0] : 1;
        for (int64_t c = 0; c < w->kernel[p.last]; c++) {
            const int64_t column = c * w->dilation[p.last], wide = w->stride[p.last];
            const int64_t phase = row % high * p.column_phases + column % wide;
            *offsets++ = (phase * p.rows + row / high) * p.columns + column / wide;
        }
    }
    *step = p.columns;
}

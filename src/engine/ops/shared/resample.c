/* resample.c - see resample.h. */
#include "engine/ops/shared/resample.h"

enum { GRAIN = 8192 }; /* results that are worth a thread */

void pith__resample_find(pith__resample *s, pith__prepare *c) {
    s->rows = PITH_PREPARE_KERNEL(pith__mix_rows_fn, "mix_rows", PITH_F32, c);
    s->columns = PITH_PREPARE_KERNEL(pith__mix_columns_fn, "mix_columns", PITH_F32, c);
}

typedef struct job {
    const pith__resample *s;
    const pith__resample_axis *a;
    const float *x;
    float *y;
    int64_t rows, per_part; /* rows: [outer] of the last axis, else [outer, size] */
} job;

/* Along the last axis a kernel gathers; along another one whole rows are combined with the same
 * weights. */
static void resample_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const pith__resample_axis *a = j->a;
    int64_t first = (int64_t)part * j->per_part,
            end = first + j->per_part < j->rows ? first + j->per_part : j->rows;
    (void)worker;
    for (int64_t row = first; row < end; row++) {
        if (a->inner == 1) {
            j->s->columns(j->y + row * a->size, j->x + row * a->length, a->index, a->weights,
                          a->taps, a->size);
            continue;
        }
        int64_t i = row % a->size, offsets[PITH_RESAMPLE_TAPS];
        float weights[PITH_RESAMPLE_TAPS];
        for (int64_t t = 0; t < a->taps; t++) {
            offsets[t] = a->index[t * a->size + i] * a->inner;
            weights[t] = a->weights[t * a->size + i];
        }
        j->s->rows(j->y + row * a->inner, j->x + row / a->size * a->length * a->inner, offsets,
                   weights, a->taps, a->inner);
    }
}

void pith__resample_run(pith__run *r, const pith__resample *s, const pith__resample_axis *axes,
                        int count, const float *x, float *y, float *const buffers[2]) {
    for (int k = 0; k < count; k++) {
        const pith__resample_axis *a = &axes[k];
        job j = { .s = s, .a = a, .x = x, .y = k == count - 1 ? y : buffers[k % 2] };
        j.rows = a->inner == 1 ? a->outer : a->outer * a->size;
        j.per_part = pith__run_chunk(r, j.rows, a->inner == 1 ? a->size : a->inner, GRAIN);
        if (j.rows > 0)
            pith__run_parallel(r, resample_run_part, &j,
                               (size_t)((j.rows + j.per_part - 1) / j.per_part));
        x = j.y;
    }
}

/* op_pith_max_pool_last.c - pith.MaxPoolLast: MaxPool of 8-bit pictures [batch, rows, columns,
 * channels].
 *
 *   input       x, u8 or i8
 *   output      the largest number of each window and channel
 *   attributes  those of MaxPool */
#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/window_attrs.h"

/* Bytes that are worth a thread. */
enum { GRAIN = 1 << 15 };

/* As MaxPool, with the channels last. */
static pith_status pool_last_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim dims[PITH_MAX_RANK];
    pith__window w;
    if (x->rank >= 0 && x->rank != 4)
        return pith__op_fail(c, "input has rank %d, expected 4", x->rank);
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    if (x->rank == 4) {
        PITH_TRY(pith__windows_attributes(&w, c->node, 2, NULL, c->err));
        PITH_TRY(pith__windows_output(dims + 1, c->dims, &w, c->node, x->dims + 1, 0, c->err));
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

typedef struct job {
    pith__window w;
    const uint8_t *x;
    uint8_t *y;
    int64_t channels, rows_per_part, rows; /* of all pictures */
    bool is_signed;
} job;

typedef uint8_t plain_bytes __attribute__((vector_size(16)));
typedef int8_t signed_bytes __attribute__((vector_size(16)));

#define POOL_LAST_LARGER(T, vectors, to, from, n)                                                  \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        for (; (n)-i >= 16; i += 16) {                                                             \
            vectors p, q;                                                                          \
            memcpy(&p, (to) + i, 16);                                                              \
            memcpy(&q, (from) + i, 16);                                                            \
            const vectors more = (vectors)(q > p);                                                 \
            p = (q & more) | (p & ~more);                                                          \
            memcpy((to) + i, &p, 16);                                                              \
        }                                                                                          \
        for (; i < (n); i++)                                                                       \
            if ((T)(from)[i] > (T)(to)[i]) (to)[i] = (from)[i];                                    \
    } while (0)

/* The places of window o along an axis that are inside the picture: first, first + dilation, …,
 * below end. */
typedef struct span {
    int64_t first, end;
} span;

static span pool_last_span(const pith__window *w, int axis, int64_t o) {
    const int64_t step = w->dilation[axis], begin = o * w->stride[axis] - w->begin[axis];
    const int64_t reach = (w->kernel[axis] - 1) * step + 1, left = w->in[axis] - begin;
    const int64_t first = begin >= 0 ? begin : begin + (-begin + step - 1) / step * step;
    return (span){ first, left < reach ? w->in[axis] : begin + reach };
}

/* One row of windows. */
static void pool_last_row(const job *j, int64_t row) {
    const pith__window *w = &j->w;
    const int64_t n = j->channels, image = row / w->out[0];
    const span rows = pool_last_span(w, 0, row % w->out[0]);
    const uint8_t *x = j->x + image * w->in[0] * w->in[1] * n;
    uint8_t *y = j->y + row * w->out[1] * n;
    memset(y, j->is_signed ? 0x80 : 0, (size_t)(w->out[1] * n));
    for (int64_t o = 0; o < w->out[1]; o++) {
        const span columns = pool_last_span(w, 1, o);
        uint8_t *to = y + o * n;
        for (int64_t r = rows.first; r < rows.end; r += w->dilation[0]) {
            for (int64_t c = columns.first; c < columns.end; c += w->dilation[1]) {
                const uint8_t *from = x + (r * w->in[1] + c) * n;
                if (j->is_signed)
                    POOL_LAST_LARGER(int8_t, signed_bytes, to, from, n);
                else
                    POOL_LAST_LARGER(uint8_t, plain_bytes, to, from, n);
            }
        }
    }
}

static void pool_last_part(void *context, size_t part, int worker) {
    const job *j = context;
    const int64_t begin = (int64_t)part * j->rows_per_part, end = begin + j->rows_per_part;
    (void)worker;
    for (int64_t row = begin; row < end && row < j->rows; row++) pool_last_row(j, row);
}

/* Threads share the rows of all output pictures. */
static pith_status pool_last_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    job j = {
        .x = x->data, .y = y->data, .channels = x->dims[3], .is_signed = x->dtype == PITH_I8
    };
    if (!pith__tensor_count(y)) return PITH_OK;
    PITH_TRY(pith__windows_attributes(&j.w, r->node, 2, NULL, r->err));
    pith__windows_complete(&j.w, r->node, x->dims + 1, y->dims + 1);
    j.rows = y->dims[0] * j.w.out[0];
    int64_t work;
    if (pith__mul_overflows(j.w.out[1] * j.channels, pith__window_count(j.w.kernel, 2), &work))
        work = INT64_MAX;
    j.rows_per_part = pith__run_chunk(r, j.rows, work, GRAIN);
    pith__run_parallel(r, pool_last_part, &j,
                       (size_t)((j.rows + j.rows_per_part - 1) / j.rows_per_part));
    return PITH_OK;
}

const pith__op pith__op_MaxPoolLast_pith = {
    .domain = "pith",
    .name = "MaxPoolLast",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "q",
    .attrs = "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; ceil_mode bool = 0; "
             "dilations ints 1..; "
             "kernel_shape ints! 1..; pads ints; storage_order bool = 0; strides ints 1..",
    .infer = pool_last_infer,
    .run = pool_last_run,
};

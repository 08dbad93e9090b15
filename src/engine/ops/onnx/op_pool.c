/* op_pool.c - MaxPool, AveragePool, LpPool, and the same over whole channels (Global…). */
#include <math.h>

#include "base/checked.h"
#include "engine/kernels/binary.h"
#include "engine/kernels/pool_rows.h"
#include "engine/kernels/reduce.h"
#include "engine/kernels/sliding_windows.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"
#include "engine/ops/shared/window_attrs.h"

/* The largest window that is walked tap by tap from a padded copy. Larger ones are mostly padding.
 */
enum { MOST_TAPS = 1024 };

typedef struct state {
    pith__pool_fn *fn;
    pith__taps_fn *taps;        /* of f32 maxima and sums; NULL */
    pith__taps_plane_fn *plane; /* with taps */
    pith__pool_rows_fn *direct; /* with taps, for windows that pith__pool_rows_fits */
    pith__binary_fn *div;       /* of sums by the counts of their places; NULL: maxima */
    pith__reduce_rows_fn *rows; /* of whole channels in f32; NULL */
    int64_t p;
    bool global;
} state;

static bool pool_is_global(const pith__node *node) { return node->op_type.data[0] == 'G'; }

/* MaxPool may have a second output, of indices into the flattened input. */
static pith_status pool_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim dims[PITH_MAX_RANK];
    if (x->rank >= 0 && x->rank < 3)
        return pith__op_fail(c, "input has rank %d, expected 3 or more", x->rank);
    for (int i = 0; i < x->rank; i++) dims[i] = i < 2 ? x->dims[i] : 1;
    if (x->rank >= 0 && !pool_is_global(c->node)) {
        pith__window w;
        PITH_TRY(pith__windows_attributes(&w, c->node, x->rank - 2, NULL, c->err));
        PITH_TRY(pith__windows_output(dims + 2, c->dims, &w, c->node, x->dims + 2, 0, c->err));
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    pith__infer_set(c, 1, PITH_I64, x->rank, dims);
    return PITH_OK;
}

/* Maxima and means of f32 have faster kernels: by whole channels (rows), by windows where they lie
 * (direct), or tap by tap from a padded copy of the plane. The general loop serves other dtypes,
 * LpPool, indices and three axes. A build without one of the faster kernels uses the next. */
static pith_status pool_prepare(pith__prepare *c) {
    pith__kernel_fn *fn;
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->global = pool_is_global(c->node);
    pith_str name = c->node->op_type;
    if (s->global) name = (pith_str){ name.data + 6, name.size - 6 };
    bool max = pith__str_is(name, "MaxPool"), lp = pith__str_is(name, "LpPool");
    if (lp)
        s->p = pith__node_int(c->node, "p", 2);
    else
        s->p = !max && pith__node_int(c->node, "count_include_pad", 0) != 0;
    if (lp && s->p < 1) return pith__op_fail(c, "attribute p is %lld", (long long)s->p);
    const char *family = lp ? "pool_lp" : "pool_mean";
    if (max) family = "pool_max";
    PITH_TRY(pith__prepare_kernel(c, family, pith__compute_dtype(c->in[0]->dtype), &fn));
    s->fn = (pith__pool_fn *)fn;
    bool f32 = pith__compute_dtype(c->in[0]->dtype) == PITH_F32 && !lp;
    if (f32 && s->global)
        s->rows =
            PITH_PREPARE_KERNEL(pith__reduce_rows_fn, max ? "row_max" : "row_mean", PITH_F32, c);
    if (f32 && !s->global)
        s->plane = PITH_PREPARE_KERNEL(pith__taps_plane_fn, "taps_plane", PITH_F32, c);
    if (s->plane)
        s->taps = PITH_PREPARE_KERNEL(pith__taps_fn, max ? "taps_max" : "taps_sum", PITH_F32, c);
    if (s->plane)
        s->direct = PITH_PREPARE_KERNEL(pith__pool_rows_fn,
                                        max ? "pool_rows_max" : "pool_rows_mean", PITH_F32, c);
    if (f32 && !s->global && !max)
        s->div = PITH_PREPARE_KERNEL(pith__binary_fn, "div", PITH_F32, c);
    c->state = s;
    return PITH_OK;
}

/* Windows whose values alone are wanted, read where they lie or by pith__taps from a padded plane.
 * The floats of a worker, or 0: the counts of a row; offsets and weights of the taps, the counts of
 * a row, the plane. */
static int64_t pool_floats(const state *s, const pith__window *w, bool indices) {
    if (!s->taps || indices || w->rank > 2) return 0;
    if (s->direct && pith__pool_rows_fits(w)) return (w->out[w->rank - 1] + 15) & ~(int64_t)15;
    int64_t floats = pith__taps_floats(w), taps = pith__window_count(w->kernel, w->rank);
    if (floats < 0 || taps > MOST_TAPS || pith__add_overflows(floats, 3 * taps + 63, &floats) ||
        pith__add_overflows(floats, w->out[w->rank - 1], &floats))
        return 0;
    return floats & ~(int64_t)15; /* the next one is aligned */
}

static pith_status pool_scratch(const pith__infer *c, const void *state_, int threads,
                                size_t *bytes) {
    const state *s = state_;
    const pith__type *x = c->in[0];
    *bytes = 0;
    if (s->taps) {
        pith__window w;
        PITH_TRY(pith__windows_attributes(&w, c->node, x->rank - 2, NULL, c->err));
        pith__windows_complete(&w, c->node, x->dims + 2, c->out[0].dims + 2);
        int64_t floats = pool_floats(s, &w, false);
        if (pith__mul_overflows((size_t)floats, (size_t)threads * sizeof(float), bytes))
            return pith__fail_memory(c->err, SIZE_MAX);
    }
    return pith__widen_scratch(c, 0, bytes);
}

typedef struct job {
    const pith__run *r;
    pith__window w;
    int64_t floats; /* of a worker; 0: fn does it */
    int64_t in, out, channels, per_part;
    size_t size;
} job;

/* Sums of the windows of a channel become means: rows that have the same number of places above and
 * below share their counts. */
static void pool_divide(const job *j, const pith__taps *a, float *counts) {
    const state *s = j->r->state;
    int last = j->w.rank - 1;
    int64_t known = -1;
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t outer = last ? pith__window_places(&j->w, 0, row, s->p != 0) : 1;
        if (outer != known) {
            for (int64_t i = 0; i < a->columns; i++)
                counts[i] =
                    (float)((double)outer * (double)pith__window_places(&j->w, last, i, s->p != 0));
        }
        known = outer;
        float *y = a->y + row * a->columns;
        s->div(y, y, counts, a->columns, 1, 1);
    }
}

/* Every tap of all windows is one shifted read of the padded plane, so a pool is a sum (or maximum)
 * of shifted planes, as a depthwise convolution with weights of 1 is. */
static void pool_run_taps(const job *j, int64_t first, int64_t last, int worker) {
    const state *s = j->r->state;
    float *own = (float *)j->r->scratch + worker * j->floats;
    int64_t *offsets = (int64_t *)(void *)own;
    pith__taps a = { .offsets = offsets,
                     .taps = pith__window_count(j->w.kernel, j->w.rank),
                     .rows = j->w.rank == 2 ? j->w.out[0] : 1,
                     .columns = j->w.out[j->w.rank - 1] };
    float *weights = own + 2 * a.taps, *counts = weights + a.taps;
    float *plane = own + (3 * a.taps + a.columns + 15) / 16 * 16;
    for (int64_t i = 0; i < a.taps; i++) weights[i] = 1.0f;
    a.x = plane;
    a.weights = weights;
    pith__taps_offsets(offsets, &a.step, &j->w);
    for (int64_t c = first; c < last; c++) {
        s->plane(plane, (const float *)j->r->in[0]->data + c * j->in, &j->w,
                 s->div ? 0 : -INFINITY);
        a.y = (float *)j->r->out[0]->data + c * j->out;
        s->taps(&a);
        if (s->div) pool_divide(j, &a, counts);
    }
}

/* Means need how many places each window of a row has, which is the same for all rows; the kernel
 * counts along the other axis. */
static void pool_run_direct(const job *j, int64_t first, int64_t last, int worker) {
    const state *s = j->r->state;
    const int axis = j->w.rank - 1;
    float *own = (float *)j->r->scratch + worker * j->floats;
    if (s->div) {
        for (int64_t i = 0; i < j->w.out[axis]; i++)
            own[i] = (float)pith__window_places(&j->w, axis, i, s->p != 0);
    }
    s->direct(&(pith__pool_planes){ .window = &j->w,
                                    .x = (const float *)j->r->in[0]->data + first * j->in,
                                    .y = (float *)j->r->out[0]->data + first * j->out,
                                    .channels = last - first,
                                    .counts = own,
                                    .padded = s->p != 0 });
}

/* Channels [first, last), by the fastest way that the windows allow. Indices count in the whole
 * tensor, or column by column with storage_order. */
static void pool_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const state *s = j->r->state;
    int64_t first = (int64_t)part * j->per_part,
            last = first + j->per_part < j->channels ? first + j->per_part : j->channels;
    int64_t *indices = j->r->out_count > 1 && j->r->out[1] ? j->r->out[1]->data : NULL;
    if (s->rows) {
        s->rows((const float *)j->r->in[0]->data + first * j->in,
                (float *)j->r->out[0]->data + first, last - first, j->in);
        return;
    }
    if (j->floats && s->direct && pith__pool_rows_fits(&j->w)) {
        pool_run_direct(j, first, last, worker);
        return;
    }
    if (j->floats) {
        pool_run_taps(j, first, last, worker);
        return;
    }
    bool columns_first = pith__node_int(j->r->node, "storage_order", 0) != 0 && j->w.rank == 2;
    for (int64_t c = first; c < last; c++) {
        int64_t *own = indices ? indices + c * j->out : NULL;
        s->fn((char *)j->r->out[0]->data + (size_t)(c * j->out) * j->size, own,
              (const char *)j->r->in[0]->data + (size_t)(c * j->in) * j->size, &j->w, s->p);
        if (own) {
            for (int64_t i = 0; i < j->out; i++) {
                if (columns_first) own[i] = own[i] % j->w.in[1] * j->w.in[0] + own[i] / j->w.in[1];
                own[i] += c * j->in;
            }
        }
    }
}

/* Global pools are one window as large as the plane, seen as one axis. */
static pith_status pool_run_plain(pith__run *r) {
    const state *s = r->state;
    const pith_tensor *x = r->in[0], *y = r->out[0];
    job j = { .r = r, .channels = x->dims[0] * x->dims[1], .size = pith__element_size(x->dtype) };
    if (!pith__tensor_count(y)) return PITH_OK;
    if (s->global) {
        j.w.rank = 1; /* all places are one row */
        j.w.in[0] = j.w.kernel[0] = pith__window_count(x->dims + 2, x->rank - 2);
        j.w.out[0] = j.w.stride[0] = j.w.dilation[0] = 1;
    } else {
        PITH_TRY(pith__windows_attributes(&j.w, r->node, x->rank - 2, NULL, r->err));
        pith__windows_complete(&j.w, r->node, x->dims + 2, y->dims + 2);
    }
    j.floats = pool_floats(s, &j.w, r->out_count > 1 && r->out[1]);
    j.in = pith__window_count(j.w.in, j.w.rank);
    j.out = pith__window_count(j.w.out, j.w.rank);
    int64_t work;
    if (pith__mul_overflows(j.out, pith__window_count(j.w.kernel, j.w.rank), &work))
        work = INT64_MAX;
    j.per_part = pith__run_chunk(r, j.channels, work, 8192);
    pith__run_parallel(r, pool_run_part, &j, (size_t)((j.channels + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

static pith_status pool_run(pith__run *r) { return pith__widen_run(r, 0, pool_run_plain); }

#define POOL(symbol, types_, outputs, attrs_)                                                      \
    const pith__op pith__op_##symbol = { .domain = "",                                             \
                                         .name = #symbol,                                          \
                                         .since = 1,                                               \
                                         .min_inputs = 1,                                          \
                                         .max_inputs = 1,                                          \
                                         .max_outputs = outputs,                                   \
                                         .types = types_,                                          \
                                         .newest = 22,                                             \
                                         .attrs = attrs_,                                          \
                                         .infer = pool_infer,                                      \
                                         .prepare = pool_prepare,                                  \
                                         .scratch = pool_scratch,                                  \
                                         .run = pool_run };
POOL(AveragePool, "f", 1,
     "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
     "ceil_mode bool = 0 @10; count_include_pad bool = 0 @7; "
     "dilations ints 1.. @19; kernel_shape ints! 1..; pads ints; strides ints 1..")
POOL(GlobalAveragePool, "f", 1, "")
POOL(GlobalLpPool, "f", 1, "p float = 2 @-1; p int 1.. = 2 @2")
POOL(GlobalMaxPool, "f", 1, "")
POOL(LpPool, "f", 1,
     "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
     "ceil_mode bool = 0 @18; dilations ints 1.. @18; kernel_shape ints 1.. @-1; "
     "kernel_shape ints! 1.. @2; p float = 2 @-1; p int 1.. = 2 @2; pads ints; "
     "strides ints 1..")
POOL(MaxPool, "y", 2,
     "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
     "ceil_mode bool = 0 @10; dilations ints 1.. @10; kernel_shape ints! 1..; "
     "pads ints; storage_order bool = 0 @8; strides ints 1..")

/* op_arg_max.c - ArgMax and ArgMin: the place of the largest or smallest element along an axis.
 *
 * f32 has a kernel that walks 16 neighbouring lines at a time (arg_lanes.h); other types walk one
 * line after another. The first of equal elements counts, or the last with select_last_index.
 * Source: ONNX ArgMax and ArgMin (opset 13). */
#include "engine/kernels/arg_lanes.h"
#include "engine/kernels/axis_scan.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"

/* The axis becomes 1 or goes. An empty axis has no largest element, which is an error before the
 * run. */
static pith_status arg_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    bool keep = pith__node_int(c->node, "keepdims", 1) != 0;
    if (x->rank < 0) {
        pith__infer_set(c, 0, PITH_I64, -1, NULL);
        return PITH_OK;
    }
    int axis, rank = 0;
    pith__dim dims[PITH_MAX_RANK];
    PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), x->rank, &axis, c->err));
    if (pith__dim_known(x->dims[axis]) && x->dims[axis] == 0)
        return pith__op_fail(c, "axis %d has no element", axis);
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    pith__infer_set(c, 0, PITH_I64, rank, dims);
    return PITH_OK;
}

typedef struct arg_state {
    pith__arg_fn *fn;
    pith__arg_lanes_fn *lanes; /* in f32; NULL */
} arg_state;

static pith_status arg_prepare(pith__prepare *c, const char *family, const char *lanes) {
    pith__kernel_fn *fn;
    arg_state *s = pith__arena_array(c->arena, 1, sizeof *s);
    const int dtype = pith__compute_dtype(c->in[0]->dtype);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    c->state = s;
    PITH_TRY(pith__prepare_kernel(c, family, dtype, &fn));
    s->fn = (pith__arg_fn *)fn;
    if (dtype == PITH_F32) s->lanes = PITH_PREPARE_KERNEL(pith__arg_lanes_fn, lanes, PITH_F32, c);
    return PITH_OK;
}

static pith_status arg_prepare_max(pith__prepare *c) {
    return arg_prepare(c, "arg_max", "arg_max_lanes");
}
static pith_status arg_prepare_min(pith__prepare *c) {
    return arg_prepare(c, "arg_min", "arg_min_lanes");
}

/* Results [outer, inner] of lines of n. A part has some of the results; those of one outer place
 * lie side by side. */
typedef struct arg_job {
    const arg_state *s;
    const char *x;
    int64_t *y;
    int64_t n, inner, total, per_part;
    size_t size;
    bool last;
} arg_job;

static void arg_run_part(void *context, size_t part, int worker) {
    const arg_job *j = context;
    const int64_t first = (int64_t)part * j->per_part,
                  end = first + j->per_part < j->total ? first + j->per_part : j->total;
    (void)worker;
    for (int64_t i = first, next; i < end; i = next) {
        const int64_t outer = i / j->inner, column = i % j->inner;
        const char *x = j->x + (size_t)(outer * j->n * j->inner + column) * j->size;
        next = (outer + 1) * j->inner < end ? (outer + 1) * j->inner : end;
        if (j->s->lanes && j->n <= INT32_MAX) {
            j->s->lanes((const float *)(const void *)x, j->y + i, j->n, j->inner, next - i,
                        j->last);
            continue;
        }
        for (int64_t k = i; k < next; k++, x += j->size)
            j->y[k] = j->s->fn(x, j->n, j->inner, j->last);
    }
}

/* Lines are numbered [outer, inner]. A part takes neighbouring lines, since those read neighbouring
 * memory. */
static pith_status arg_run(pith__run *r) {
    enum { GRAIN = 16384 }; /* elements that are worth a thread */
    const pith_tensor *x = r->in[0];
    int64_t form[3];
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    pith__axis_split(x->dims, x->rank, axis, form);
    arg_job j = { .s = r->state,
                  .x = x->data,
                  .y = r->out[0]->data,
                  .n = form[1],
                  .inner = form[2],
                  .total = form[0] * form[2],
                  .size = pith__element_size(x->dtype),
                  .last = pith__node_int(r->node, "select_last_index", 0) != 0 };
    j.per_part = pith__run_chunk(r, j.total, j.n, GRAIN);
    if (j.total > 0)
        pith__run_parallel(r, arg_run_part, &j, (size_t)((j.total + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

static pith_status arg_run_any(pith__run *r) { return pith__widen_run(r, 0, arg_run); }

const pith__op pith__op_ArgMax = {
    .domain = "",
    .name = "ArgMax",
    .since = 1,
    .newest = 13,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "n",
    .attrs = "axis int = 0; keepdims bool = 1; select_last_index bool = 0 @12",
    .infer = arg_infer,
    .prepare = arg_prepare_max,
    .scratch = pith__widen_scratch_only,
    .run = arg_run_any
};
const pith__op pith__op_ArgMin = {
    .domain = "",
    .name = "ArgMin",
    .since = 1,
    .newest = 13,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "n",
    .attrs = "axis int = 0; keepdims bool = 1; select_last_index bool = 0 @12",
    .infer = arg_infer,
    .prepare = arg_prepare_min,
    .scratch = pith__widen_scratch_only,
    .run = arg_run_any
};

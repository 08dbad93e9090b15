/* op_scan_axis.c - CumSum and CumProd along an axis; ArgMax and ArgMin. */
#include "engine/kernels/arg_lanes.h"
#include "engine/kernels/axis_scan.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"

/* [outer, n, inner] around the axis. */
static void scan_axis_split_at(const int64_t *dims, int rank, int axis, int64_t form[3]) {
    form[0] = form[1] = form[2] = 1;
    for (int i = 0; i < rank; i++) form[i < axis ? 0 : i == axis ? 1 : 2] *= dims[i];
}

static pith_status find_kernel(pith__prepare *c, const char *family) {
    pith__kernel_fn **fn = pith__arena_array(c->arena, 1, sizeof *fn);
    if (!fn) return pith__fail_memory(c->err, sizeof *fn);
    c->state = fn;
    return pith__prepare_kernel(c, family, pith__compute_dtype(c->in[0]->dtype), fn);
}

static pith_status widened(const pith__infer *c, const void *state, int threads, size_t *bytes) {
    (void)state;
    (void)threads;
    *bytes = 0;
    return pith__widen_scratch(c, 0, bytes);
}

static pith_status infer_cumulate(pith__infer *c) {
    pith__dim axis;
    int normal;
    if (c->in[0]->rank >= 0 && pith__infer_number(c, 1, &axis)) {
        PITH_TRY(pith__axis_normalize(axis, c->in[0]->rank, &normal, c->err));
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status prepare_cumsum(pith__prepare *c) { return find_kernel(c, "scan_sum"); }
static pith_status prepare_cumprod(pith__prepare *c) { return find_kernel(c, "scan_prod"); }

static pith_status run_cumulate(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith__scan_fn *fn = (pith__scan_fn *)*(pith__kernel_fn *const *)r->state;
    pith__numbers axes;
    int axis;
    int64_t form[3];
    PITH_TRY(pith__run_numbers(r, 1, &axes));
    if (axes.count != 1) return pith__op_fail(r, "axis is not a scalar");
    PITH_TRY(pith__axis_normalize(axes.items[0], x->rank, &axis, r->err));
    scan_axis_split_at(x->dims, x->rank, axis, form);
    bool exclusive = pith__node_int(r->node, "exclusive", 0) != 0,
         reverse = pith__node_int(r->node, "reverse", 0) != 0;
    size_t size = pith__element_size(x->dtype);
    for (int64_t o = 0; o < form[0]; o++) {
        for (int64_t i = 0; i < form[2]; i++) {
            size_t at = (size_t)(o * form[1] * form[2] + i) * size;
            fn((const char *)x->data + at, (char *)r->out[0]->data + at, form[1], form[2],
               exclusive, reverse);
        }
    }
    return PITH_OK;
}

static pith_status run_cumulate_any(pith__run *r) { return pith__widen_run(r, 2, run_cumulate); }

const pith__op pith__op_CumSum = { .domain = "",
                                   .name = "CumSum",
                                   .since = 11,
                                   .newest = 14,
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .max_outputs = 1,
                                   .types = "ri",
                                   .attrs = "exclusive bool = 0; reverse bool = 0",
                                   .infer = infer_cumulate,
                                   .prepare = prepare_cumsum,
                                   .scratch = widened,
                                   .run = run_cumulate_any };
const pith__op pith__op_CumProd = { .domain = "",
                                    .name = "CumProd",
                                    .since = 26,
                                    .newest = 26,
                                    .min_inputs = 2,
                                    .max_inputs = 2,
                                    .max_outputs = 1,
                                    .types = "ri",
                                    .attrs = "exclusive bool = 0; reverse bool = 0",
                                    .infer = infer_cumulate,
                                    .prepare = prepare_cumprod,
                                    .scratch = widened,
                                    .run = run_cumulate_any };

static pith_status infer_arg(pith__infer *c) {
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

static pith_status prepare_arg(pith__prepare *c, const char *family, const char *lanes) {
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

static pith_status prepare_arg_max(pith__prepare *c) {
    return prepare_arg(c, "arg_max", "arg_max_lanes");
}
static pith_status prepare_arg_min(pith__prepare *c) {
    return prepare_arg(c, "arg_min", "arg_min_lanes");
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

static pith_status run_arg(pith__run *r) {
    enum { GRAIN = 16384 }; /* elements that are worth a thread */
    const pith_tensor *x = r->in[0];
    int64_t form[3];
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    scan_axis_split_at(x->dims, x->rank, axis, form);
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

static pith_status run_arg_any(pith__run *r) { return pith__widen_run(r, 0, run_arg); }

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
    .infer = infer_arg,
    .prepare = prepare_arg_max,
    .scratch = widened,
    .run = run_arg_any
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
    .infer = infer_arg,
    .prepare = prepare_arg_min,
    .scratch = widened,
    .run = run_arg_any
};

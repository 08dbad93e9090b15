/* op_softmax.c - Softmax, LogSoftmax, Hardmax along an axis; before opset 13 over all axes from it
 * on. Rows that are not contiguous are moved into scratch and back. f64 has loops of its own in
 * engine/kernels/plain_rows.h. */
#include "base/checked.h"
#include "engine/kernels/move.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/plain_rows.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/widen_types.h"

typedef struct state {
    pith__kernel_fn *fn;
    int compute;
} state;

/* The old meaning stays with the node: from the axis on, all axes are one row. */
static pith_status softmax_upgrade(pith__node *node, pith_error *err) {
    if (pith__node_set_int(node, "axis", pith__node_int(node, "axis", 1)) ||
        pith__node_set_int(node, "flatten", 1)) {
        return pith__fail_memory(err, 0);
    }
    return PITH_OK;
}

static pith_status softmax_infer(pith__infer *c) {
    int axis;
    if (c->in[0]->rank > 0) {
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", -1), c->in[0]->rank, &axis,
                                      c->err));
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status softmax_prepare(pith__prepare *c) {
    const char *family = "softmax";
    if (pith__str_is(c->node->op_type, "LogSoftmax")) family = "log_softmax";
    if (pith__str_is(c->node->op_type, "Hardmax")) family = "hardmax";
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->compute = pith__compute_dtype(c->in[0]->dtype);
    PITH_TRY(pith__prepare_kernel(c, family, s->compute, &s->fn));
    c->state = s;
    return PITH_OK;
}

/* [outer, n, inner]: a row is n elements, inner apart. */
static pith_status softmax_get_form(const pith__node *node, const int64_t *dims, int rank,
                                    int64_t form[3], pith_error *err) {
    int axis = 0;
    form[0] = form[1] = form[2] = 1;
    if (rank == 0) return PITH_OK;
    PITH_TRY(pith__axis_normalize(pith__node_int(node, "axis", -1), rank, &axis, err));
    pith__axis_split(dims, rank, axis, form);
    if (pith__node_int(node, "flatten", 0)) {
        form[1] *= form[2];
        form[2] = 1;
    }
    return PITH_OK;
}

static pith_status softmax_scratch(const pith__infer *c, const void *state_, int threads,
                                   size_t *bytes) {
    const state *s = state_;
    int64_t form[3];
    (void)threads;
    *bytes = 0;
    PITH_TRY(softmax_get_form(c->node, c->in[0]->dims, c->in[0]->rank, form, c->err));
    if (form[2] != 1 && !pith__dtype_bytes(s->compute, pith__type_count(c->in[0]), bytes)) {
        return pith__fail_memory(c->err, SIZE_MAX);
    }
    return pith__widen_scratch(c, 0, bytes);
}

typedef struct job {
    const state *s;
    const char *x;
    char *y;
    int64_t rows, n, per_part;
} job;

/* Rows [first, first + rows), each contiguous. */
static void softmax_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part,
            rows = j->rows - first < j->per_part ? j->rows - first : j->per_part;
    size_t at = (size_t)(first * j->n) * pith__element_size(j->s->compute);
    if (j->s->compute == PITH_F32) {
        ((pith__row_f32_fn *)j->s->fn)((const float *)(const void *)(j->x + at),
                                       (float *)(void *)(j->y + at), rows, j->n);
    } else {
        ((pith__row_f64_fn *)j->s->fn)((const double *)(const void *)(j->x + at),
                                       (double *)(void *)(j->y + at), rows, j->n);
    }
}

/* [outer, n, inner] with inner > 1 is turned into rows in scratch, and back: a strided softmax
 * would read a cache line per element. */
static pith_status softmax_run_plain(pith__run *r) {
    const state *s = r->state;
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int64_t form[3];
    size_t size = pith__element_size(s->compute);
    PITH_TRY(softmax_get_form(r->node, x->dims, x->rank, form, r->err));
    job j = { s, x->data, y->data, form[0] * form[2], form[1], 0 };
    if (j.rows * j.n == 0) return PITH_OK;
    int64_t moved[3] = { form[0], form[2], form[1] }, dense[3] = { form[1] * form[2], form[1], 1 };
    int64_t across[3] = { form[1] * form[2], 1, form[2] };
    if (form[2] != 1) {
        pith__run_move(r, r->scratch, dense, x->data, across, moved, 3, size);
        j.x = j.y = r->scratch;
    }
    j.per_part = pith__run_chunk(r, j.rows, j.n, 4096);
    pith__run_parallel(r, softmax_run_part, &j, (size_t)((j.rows + j.per_part - 1) / j.per_part));
    if (form[2] != 1) pith__run_move(r, y->data, across, r->scratch, dense, moved, 3, size);
    return PITH_OK;
}

static pith_status softmax_run(pith__run *r) { return pith__widen_run(r, 0, softmax_run_plain); }

/* symbol: the operator's name, which also chooses the kernels (softmax_prepare). */
#define SOFTMAX(symbol, types_)                                                                    \
    const pith__op pith__op_##symbol = {                                                           \
        .domain = "",                                                                              \
        .name = #symbol,                                                                           \
        .since = 13,                                                                               \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .max_outputs = 1,                                                                          \
        .types = types_,                                                                           \
        .newest = 13,                                                                              \
        .attrs = "axis int = 1 @-12; axis int = -1 @13; flatten bool = 0 @own",                    \
        .flags = PITH_OP_IN_PLACE,                                                                 \
        .upgrade = softmax_upgrade,                                                                \
        .infer = softmax_infer,                                                                    \
        .prepare = softmax_prepare,                                                                \
        .scratch = softmax_scratch,                                                                \
        .run = softmax_run                                                                         \
    };
SOFTMAX(Hardmax, "f")
SOFTMAX(LogSoftmax, "f")
SOFTMAX(Softmax, "f")

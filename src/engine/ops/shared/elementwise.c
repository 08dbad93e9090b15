/* elementwise.c - see elementwise.h. */
#include "engine/ops/shared/elementwise.h"

#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/kernels/maps.h"
#include "engine/kernels/unary.h"

/* BLOCK: elements converted at a time, which stay in the L1 cache. GRAIN: elements that are worth a
 * thread, a few microseconds; smaller parts cost more to hand out than they save. TAIL_BLOCK:
 * elements after which the tail follows. */
enum { BLOCK = 256, GRAIN = 16384, TAIL_BLOCK = 4096 };

typedef pith__elementwise_job job;

/* Axes that every operand crosses with one stride become one, and axes of 1 go. Most calls end with
 * one axis, which one loop runs through. */
static void elementwise_merge_dims(job *j) {
    const pith__elementwise *e = j->elementwise;
    const pith_tensor *out = e->out;
    int64_t full[PITH_ELEMENTWISE_MAX][PITH_MAX_RANK];
    for (int k = 0; k < e->count; k++) {
        int64_t stride = 1;
        for (int i = out->rank - 1; i >= 0; i--) {
            int own = i - (out->rank - e->in[k]->rank);
            int64_t dim = own >= 0 ? e->in[k]->dims[own] : 1;
            full[k][i] = dim == 1 ? 0 : stride;
            stride *= dim;
        }
    }
    j->rank = 0;
    for (int i = 0; i < out->rank; i++) {
        if (out->dims[i] == 1) continue;
        bool merge = j->rank > 0;
        for (int k = 0; merge && k < e->count; k++)
            merge = j->strides[k][j->rank - 1] == full[k][i] * out->dims[i];
        int at = merge ? j->rank - 1 : j->rank++;
        j->dims[at] = merge ? j->dims[at] * out->dims[i] : out->dims[i];
        for (int k = 0; k < e->count; k++) j->strides[k][at] = full[k][i];
    }
    if (j->rank == 0) {
        j->rank = 1;
        j->dims[0] = 1;
        for (int k = 0; k < e->count; k++) j->strides[k][0] = 0;
    }
}

/* n elements along the innermost dimension; at: element index of each operand. */
static void elementwise_run_row(const job *j, int64_t y_at, const int64_t *at, int64_t n) {
    const pith__elementwise *e = j->elementwise;
    int strides[PITH_ELEMENTWISE_MAX];
    const void *x[PITH_ELEMENTWISE_MAX];
    size_t out_size = pith__element_size(e->out->dtype);
    for (int k = 0; k < e->count; k++) strides[k] = j->strides[k][j->rank - 1] != 0;
    if (!j->converts) {
        for (int k = 0; k < e->count; k++) {
            x[k] =
                (const char *)e->in[k]->data + (size_t)at[k] * pith__element_size(e->in[k]->dtype);
        }
        e->loop(e->context, (char *)e->out->data + (size_t)y_at * out_size, x, strides, n);
        return;
    }
    _Alignas(64) char blocks[PITH_ELEMENTWISE_MAX + 1][BLOCK * 8];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        for (int k = 0; k < e->count; k++) {
            int64_t first = at[k] + i * strides[k];
            if (e->compute[k] == e->in[k]->dtype) {
                x[k] = (const char *)e->in[k]->data +
                       (size_t)first * pith__element_size(e->in[k]->dtype);
                continue;
            }
            pith__convert(blocks[k], e->compute[k], 0, e->in[k]->data, e->in[k]->dtype, first,
                          strides[k] ? m : 1, true);
            x[k] = blocks[k];
        }
        bool direct = e->result == e->out->dtype;
        void *y = direct ? (char *)e->out->data + (size_t)(y_at + i) * out_size
                         : blocks[PITH_ELEMENTWISE_MAX];
        e->loop(e->context, y, x, strides, m);
        if (!direct) pith__convert(e->out->data, e->out->dtype, y_at + i, y, e->result, 0, m, true);
    }
}

/* Elements [begin, end) of the output. */
static void elementwise_range(const job *j, int64_t begin, int64_t end) {
    int64_t index[PITH_MAX_RANK], at[PITH_ELEMENTWISE_MAX] = { 0 }, rest = begin;
    int inner = j->rank - 1;
    for (int i = inner; i >= 0; i--) {
        index[i] = rest % j->dims[i];
        rest /= j->dims[i];
        for (int k = 0; k < j->elementwise->count; k++) at[k] += index[i] * j->strides[k][i];
    }
    for (int64_t y = begin; y < end;) {
        int64_t n = j->dims[inner] - index[inner];
        if (n > end - y) n = end - y;
        elementwise_run_row(j, y, at, n);
        y += n;
        index[inner] += n;
        for (int k = 0; k < j->elementwise->count; k++) at[k] += n * j->strides[k][inner];
        for (int i = inner; i > 0 && index[i] == j->dims[i]; i--) {
            index[i] = 0;
            index[i - 1]++;
            for (int k = 0; k < j->elementwise->count; k++) {
                at[k] += j->strides[k][i - 1] - j->dims[i] * j->strides[k][i];
            }
        }
    }
}

static void elementwise_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    (void)worker;
    int64_t begin = (int64_t)part * j->per_part;
    int64_t end = j->total - begin < j->per_part ? j->total : begin + j->per_part;
    for (int64_t at = begin, n; at < end; at += n) {
        n = j->tail && end - at > TAIL_BLOCK ? TAIL_BLOCK : end - at;
        elementwise_range(j, at, at + n);
        pith__tail_apply(j->tail, at, n);
    }
}

static job elementwise_job(const pith__elementwise *e) {
    job j = { .elementwise = e, .total = pith__tensor_count(e->out) };
    if (j.total <= 0) return j;
    elementwise_merge_dims(&j);
    j.converts = e->result != e->out->dtype;
    for (int k = 0; k < e->count; k++) j.converts |= e->compute[k] != e->in[k]->dtype;
    return j;
}

static void elementwise_share(pith__run *r, job *j) {
    if (j->total <= 0) return;
    j->per_part = pith__run_chunk(r, j->total, 1, GRAIN);
    pith__run_parallel(r, elementwise_run_part, j,
                       (size_t)((j->total + j->per_part - 1) / j->per_part));
}

void pith__elementwise_run(pith__run *r, const pith__elementwise *e) {
    job j = elementwise_job(e);
    j.tail = r->tail;
    elementwise_share(r, &j);
}

pith_status pith__elementwise_op_run(pith__run *r) {
    pith__elementwise e = { 0 };
    if (!r->node->op->elementwise(r, &e)) return pith__op_fail(r, "operands that do not fit");
    pith__elementwise_run(r, &e);
    return PITH_OK;
}

void pith__tail_add(pith__tail *tail, const pith__run *run) {
    pith__elementwise *e = &tail->stages[tail->count];
    *e = (pith__elementwise){ 0 };
    if (!run->node->op->elementwise(run, e)) return;
    tail->names[tail->count] = run->node->op->name;
    tail->jobs[tail->count++] = elementwise_job(e);
}

void pith__tail_apply(const pith__tail *tail, int64_t begin, int64_t n) {
    if (tail) {
        for (int i = 0; i < tail->count; i++) elementwise_range(&tail->jobs[i], begin, begin + n);
    }
}

void pith__run_tail(pith__run *r) {
    if (r->tail) {
        for (int i = 0; i < r->tail->count; i++) {
            job j = r->tail->jobs[i];
            elementwise_share(r, &j);
        }
    }
}

int pith__compute_dtype(int dtype) {
    return dtype == PITH_F16 || dtype == PITH_BF16 ? PITH_F32 : dtype;
}

/* f32 kernels that exist under the family's own name work on arrays (direct); others are applied
 * element by element. An f32 operator without one computes in f64. */
pith_status pith__map_find(pith__map_state *state, const char *family, int dtype,
                           pith__prepare *c) {
    char name[64];
    size_t n = strlen(family);
    memcpy(name, "map_", 4);
    memcpy(name + 4, family, n < sizeof name - 5 ? n + 1 : 0);
    state->compute = pith__compute_dtype(dtype);
    if (state->compute == PITH_F32) {
        state->fn = pith__prepare_find(c, family, PITH_F32);
        state->direct = state->fn != NULL;
    }
    if (!state->fn && !c->lacking) state->fn = pith__prepare_find(c, name, state->compute);
    if (!state->fn && !c->lacking && state->compute == PITH_F32) {
        state->compute = PITH_F64;
        state->fn = pith__prepare_find(c, name, PITH_F64);
    }
    return state->fn ? PITH_OK : pith__fail_dtype(c->err, dtype);
}

static void elementwise_map1_loop(const void *context, void *y, const void *const *x,
                                  const int *strides, int64_t n) {
    const pith__map_state *s = context;
    (void)strides;
    if (s->direct)
        ((pith__unary_f32_fn *)s->fn)(x[0], y, (size_t)n);
    else
        ((pith__map_fn *)s->fn)(y, x[0], n, s->parameters);
}

static pith__elementwise elementwise_map1_of(const pith__map_state *state, pith_tensor *out,
                                             const pith_tensor *x) {
    return (pith__elementwise){ .count = 1,
                                .in = { x },
                                .out = out,
                                .compute = { state->compute },
                                .result = state->result,
                                .loop = elementwise_map1_loop,
                                .context = state };
}

void pith__map1_apply(pith__run *r, const pith__map_state *state, pith_tensor *out,
                      const pith_tensor *x) {
    const pith__elementwise e = elementwise_map1_of(state, out, x);
    pith__elementwise_run(r, &e);
}

bool pith__map1_elementwise(const pith__run *r, pith__elementwise *e) {
    *e = elementwise_map1_of(r->state, r->out[0], r->in[0]);
    return true;
}

static void elementwise_map2_loop(const void *context, void *y, const void *const *x,
                                  const int *strides, int64_t n) {
    const pith__map_state *s = context;
    ((pith__map2_fn *)s->fn)(y, x[0], x[1], n, strides[0], strides[1]);
}

pith__elementwise pith__map2_of(const pith__map_state *state, pith_tensor *out,
                                const pith_tensor *a, const pith_tensor *b) {
    return (pith__elementwise){ .count = 2,
                                .in = { a, b },
                                .out = out,
                                .compute = { state->compute, state->compute },
                                .result = state->result,
                                .loop = elementwise_map2_loop,
                                .context = state };
}

void pith__map2_apply(pith__run *r, const pith__map_state *state, pith_tensor *out,
                      const pith_tensor *a, const pith_tensor *b) {
    const pith__elementwise e = pith__map2_of(state, out, a, b);
    pith__elementwise_run(r, &e);
}

/* op_reduce.c - ReduceSum and its family: a function of all elements along some axes.
 *
 * Axes are brought into the form [outer, reduced, inner]: one loop over rows (inner is 1) or
 * columns. If the reduced axes are not adjacent, the tensor is first moved so that they come last.
 * A row per operator names its family in reduce.h and plain_reduce.h, and what is done with the
 * result. Types without a loop of their own are converted as a whole and computed in f32 (f16,
 * bf16) or f64. */
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/move.h"
#include "engine/kernels/plain_reduce.h"
#include "engine/kernels/reduce.h"
#include "engine/ops/shared/elementwise.h"

typedef struct row {
    const char *name, *family;
    const char *finish; /* a family of maps.h applied to the result, or NULL */
    pith__elem_fn *elem;
} row;

#define ELEM(name, op, empty)                                                                      \
    static pith__dim name(pith__dims *dims, const pith__dim *x, int count) {                       \
        pith__dim r = count ? x[0] : empty;                                                        \
        for (int i = 1; i < count; i++) r = pith__dim_apply(dims, op, r, x[i]);                    \
        return r;                                                                                  \
    }
ELEM(elem_sum, PITH_DIM_ADD, 0)
ELEM(elem_prod, PITH_DIM_MUL, 1)
ELEM(reduce_elem_max, PITH_DIM_MAX, PITH_DIM_UNKNOWN)
ELEM(reduce_elem_min, PITH_DIM_MIN, PITH_DIM_UNKNOWN)

static const row rows[] = {
    { "ReduceL1", "l1", NULL, NULL },
    { "ReduceL2", "sumsq", "sqrt", NULL },
    { "ReduceLogSum", "sum", "log", NULL },
    { "ReduceLogSumExp", "log_sum_exp", NULL, NULL },
    { "ReduceMax", "max", NULL, reduce_elem_max },
    { "ReduceMean", "mean", NULL, NULL },
    { "ReduceMin", "min", NULL, reduce_elem_min },
    { "ReduceProd", "prod", NULL, elem_prod },
    { "ReduceSum", "sum", NULL, elem_sum },
    { "ReduceSumSquare", "sumsq", NULL, NULL },
};

typedef struct state {
    pith__kernel_fn *fold_rows, *fold_columns;
    int compute;
    bool finishes;
    pith__map_state finish;
} state;

static const row *reduce_find_row(const pith__node *node) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (pith__str_is(node->op_type, rows[i].name)) return &rows[i];
    }
    return NULL;
}

static pith_status reduce_upgrade(pith__node *node, pith_error *err) {
    return pith__upgrade_ints(node, "axes", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

/* Marks the reduced axes; *known is false if they are not known. */
static pith_status reduce_mark_axes(bool *reduced, bool *known, const pith__node *node,
                                    pith__numbers *axes, int rank, pith_error *err) {
    bool all = axes->count == 0 && !pith__node_int(node, "noop_with_empty_axes", 0);
    *known = axes->count >= 0;
    for (int i = 0; i < axes->count; i++) *known &= pith__dim_known(axes->items[i]);
    for (int i = 0; i < rank; i++) reduced[i] = all;
    if (!*known || all) return PITH_OK;
    PITH_TRY(pith__axes_normalize(axes->items, axes->count, rank, err));
    for (int i = 0; i < axes->count; i++) reduced[axes->items[i]] = true;
    return PITH_OK;
}

/* Sums, products and extremes of a known vector stay known, which shapes computed by exporters
 * need. */
static pith_status reduce_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    bool keep = pith__node_int(c->node, "keepdims", 1) != 0, known, reduced[PITH_MAX_RANK];
    pith__numbers axes;
    pith__dim dims[PITH_MAX_RANK];
    PITH_TRY(pith__infer_numbers(c, 1, &axes));
    if (x->rank < 0) {
        pith__infer_set(c, 0, x->dtype, -1, NULL);
        return PITH_OK;
    }
    PITH_TRY(reduce_mark_axes(reduced, &known, c->node, &axes, x->rank, c->err));
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!known)
            dims[rank++] = PITH_DIM_UNKNOWN;
        else if (!reduced[i])
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    pith__infer_set(c, 0, x->dtype, known || keep ? rank : -1, dims);
    const row *found = reduce_find_row(c->node);
    int64_t count;
    if (!found->elem || !known || x->rank != 1 || !reduced[0] || !(x->data || x->elems))
        return PITH_OK;
    pith__dim *elems = pith__infer_new_elems(c, &count), items[PITH_ELEMS_MAX];
    int64_t n = pith__type_count(x);
    if (!elems || n < 0 || n > PITH_ELEMS_MAX) return PITH_OK;
    for (int64_t i = 0; i < n; i++) {
        if (!pith__type_elem(x, i, &items[i])) return PITH_OK;
    }
    elems[0] = found->elem(c->dims, items, (int)n);
    c->out[0].elems = elems;
    return PITH_OK;
}

/* Kernels of a dtype come in pairs: rows and columns. Where the dtype has none, everything is
 * converted: f16 and bf16 to f32, the others to f64. A result that has a last step (a root, a
 * logarithm) gets that as a loop of its own. */
static pith_status reduce_prepare(pith__prepare *c) {
    const row *found = reduce_find_row(c->node);
    int dtype = c->in[0]->dtype;
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    char by_rows[64] = "row_", by_columns[64] = "column_";
    strcat(by_rows, found->family);
    strcat(by_columns, found->family);
    s->compute = pith__compute_dtype(dtype);
    s->fold_rows = pith__prepare_find(c, by_rows, s->compute);
    if (!s->fold_rows && !c->lacking && pith__convert_known(dtype, PITH_F64)) {
        s->compute = PITH_F64;
        s->fold_rows = pith__prepare_find(c, by_rows, PITH_F64);
    }
    s->fold_columns = pith__prepare_find(c, by_columns, s->compute);
    if (!s->fold_rows || !s->fold_columns) return pith__fail_dtype(c->err, dtype);
    if (found->finish) {
        s->finishes = true;
        PITH_TRY(pith__map_find(&s->finish, found->finish,
                                pith__dtype_is_float(dtype) ? s->compute : PITH_F64, c));
        s->finish.result = s->finish.compute;
    }
    c->state = s;
    return PITH_OK;
}

/* [outer, reduced, inner], or an order of axes that makes it so. */
typedef struct form {
    int64_t outer, reduced, inner;
    bool moves;
    int order[PITH_MAX_RANK];
} form;

/* Axes of size 1 do not matter. If the reduced ones are neighbours, the tensor already is [outer,
 * reduced, inner]; otherwise `order` brings them to the end. */
static void reduce_find_form(form *f, const bool *reduced, const int64_t *dims, int rank) {
    int groups = 0, at = 0;
    *f = (form){ .outer = 1, .reduced = 1, .inner = 1 };
    bool inside = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        if (reduced[i] && !inside) groups++;
        inside = reduced[i];
    }
    f->moves = groups > 1;
    bool seen = false; /* axes before the first reduced one longer than 1 are outer, the others
                          inner */
    for (int i = 0; i < rank; i++) {
        if (reduced[i]) {
            f->reduced *= dims[i];
            seen |= dims[i] != 1;
        } else if (seen && !f->moves)
            f->inner *= dims[i];
        else
            f->outer *= dims[i];
    }
    for (int i = 0; i < rank; i++) {
        if (!reduced[i]) f->order[at++] = i;
    }
    for (int i = 0; i < rank; i++) {
        if (reduced[i]) f->order[at++] = i;
    }
}

/* A converted tensor, a moved one, and results in the converted type. */
static pith_status reduce_scratch(const pith__infer *c, const void *state_, int threads,
                                  size_t *bytes) {
    const state *s = state_;
    size_t whole, results;
    (void)threads;
    if (!pith__dtype_bytes(s->compute, pith__type_count(c->in[0]), &whole) ||
        !pith__dtype_bytes(s->compute, pith__type_count(&c->out[0]), &results) ||
        pith__mul_overflows(whole, (size_t)2, bytes) ||
        pith__add_overflows(*bytes, results + 256, bytes)) {
        return pith__fail_memory(c->err, SIZE_MAX);
    }
    return PITH_OK;
}

typedef struct job {
    const state *s;
    const char *x;
    char *y;
    form f;
    size_t size;
    int64_t per_part;
} job;

/* Outer rows [first, first + n), along memory if the reduced axes are the last, else by columns. */
static void reduce_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const form *f = &j->f;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part,
            n = f->outer - first < j->per_part ? f->outer - first : j->per_part;
    const char *x = j->x + (size_t)(first * f->reduced * f->inner) * j->size;
    char *y = j->y + (size_t)(first * f->inner) * j->size;
    bool f32 = j->s->compute == PITH_F32; /* then the loops are those of reduce.h, which say so in
                                             their types */
    if (f->inner == 1) {
        if (f32)
            ((pith__reduce_rows_fn *)j->s->fold_rows)((const float *)x, (float *)y, n, f->reduced);
        else
            ((pith__fold_rows_fn *)j->s->fold_rows)(x, y, n, f->reduced);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (f32) {
            ((pith__reduce_columns_fn *)j->s->fold_columns)((const float *)x, (float *)y,
                                                            f->reduced, f->inner, f->inner);
        } else {
            ((pith__fold_columns_fn *)j->s->fold_columns)(x, y, f->reduced, f->inner, f->inner);
        }
        x += (size_t)(f->reduced * f->inner) * j->size;
        y += (size_t)f->inner * j->size;
    }
}

/* Convert, move, reduce, finish, convert back: each step only where it is needed. */
static pith_status reduce_run(pith__run *r) {
    const state *s = r->state;
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    pith__numbers axes;
    bool reduced[PITH_MAX_RANK], known;
    job j = { .s = s, .x = x->data, .y = y->data, .size = pith__element_size(s->compute) };
    int64_t total = pith__tensor_count(x), results = pith__tensor_count(y);
    if (results == 0) return PITH_OK;
    PITH_TRY(pith__run_numbers(r, 1, &axes));
    PITH_TRY(reduce_mark_axes(reduced, &known, r->node, &axes, x->rank, r->err));
    reduce_find_form(&j.f, reduced, x->dims, x->rank);
    char *next = r->scratch;
    if (s->compute != x->dtype) {
        pith__convert(next, s->compute, 0, x->data, x->dtype, 0, total, true);
        j.x = next;
        next += pith__round64((size_t)total * j.size);
    }
    if (j.f.moves && total) {
        int64_t own[PITH_MAX_RANK], from[PITH_MAX_RANK], to[PITH_MAX_RANK], dims[PITH_MAX_RANK];
        pith__strides(own, x->dims, x->rank);
        for (int i = 0; i < x->rank; i++) {
            from[i] = own[j.f.order[i]];
            dims[i] = x->dims[j.f.order[i]];
        }
        pith__strides(to, dims, x->rank);
        pith__run_move(r, next, to, j.x, from, dims, x->rank, j.size);
        j.x = next;
        next += pith__round64((size_t)total * j.size);
    }
    if (s->compute != x->dtype) j.y = next;
    j.per_part = pith__run_chunk(r, j.f.outer, j.f.reduced * j.f.inner, 16384);
    pith__run_parallel(r, reduce_run_part, &j, (size_t)((j.f.outer + j.per_part - 1) / j.per_part));
    if (s->compute != x->dtype) {
        pith_tensor wide = *y;
        wide.dtype = s->compute;
        wide.data = j.y;
        if (s->finishes) pith__map1_apply(r, &s->finish, &wide, &wide);
        pith__convert(y->data, y->dtype, 0, j.y, s->compute, 0, results, true);
        return PITH_OK;
    }
    if (s->finishes) pith__map1_apply(r, &s->finish, y, y);
    return PITH_OK;
}

#define ATTRS "axes ints @-17; keepdims bool = 1; noop_with_empty_axes bool = 0 @18"
#define REDUCE(symbol, types_, since_, newest_, attrs_)                                            \
    const pith__op pith__op_##symbol = { .domain = "",                                             \
                                         .name = #symbol,                                          \
                                         .since = since_,                                          \
                                         .min_inputs = 1,                                          \
                                         .max_inputs = 2,                                          \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = newest_,                                        \
                                         .attrs = attrs_,                                          \
                                         .upgrade = reduce_upgrade,                                \
                                         .shape_inputs = 1u << 1,                                  \
                                         .infer = reduce_infer,                                    \
                                         .prepare = reduce_prepare,                                \
                                         .scratch = reduce_scratch,                                \
                                         .run = reduce_run };
REDUCE(ReduceL1, "rl", 18, 18, ATTRS)
REDUCE(ReduceL2, "rl", 18, 18, ATTRS)
REDUCE(ReduceLogSum, "rl", 18, 28, ATTRS)
REDUCE(ReduceLogSumExp, "rl", 18, 28, ATTRS)
REDUCE(ReduceMax, "vl", 18, 20, ATTRS)
REDUCE(ReduceMean, "rl", 18, 18, ATTRS)
REDUCE(ReduceMin, "vl", 18, 20, ATTRS)
REDUCE(ReduceProd, "rl", 18, 18, ATTRS)
REDUCE(ReduceSum, "rl", 13, 13,
       "axes ints @-12; keepdims bool = 1; noop_with_empty_axes bool = 0 @13")
REDUCE(ReduceSumSquare, "rl", 18, 18, ATTRS)

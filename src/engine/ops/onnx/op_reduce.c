/* op_reduce.c - ReduceSum and its family: a function of all elements along some axes.
 *
 * Axes are brought into the form [outer, reduced, inner]: one loop over rows (inner is 1) or columns. If the reduced
 * axes are not adjacent, the tensor is first moved so that they come last. A row per operator names its family in
 * reduce.h and plain_reduce.h, and what is done with the result. Types without a loop of their own are converted as a whole
 * and computed in f32 (f16, bf16) or f64. */
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/plain_reduce.h"
#include "engine/kernels/move.h"
#include "engine/kernels/reduce.h"
#include "engine/ops/shared/elementwise.h"

typedef struct row {
    const char *name, *family;
    const char *finish; /* a family of maps.h applied to the result, or NULL */
    pith_elem_fn *elem;
} row;

#define ELEM(name, op, empty)                                                                                          \
    static pith_dim name(pith_dims *dims, const pith_dim *x, int count) {                                              \
        pith_dim r = count ? x[0] : empty;                                                                             \
        for (int i = 1; i < count; i++) r = pith_dim_apply(dims, op, r, x[i]);                                         \
        return r;                                                                                                      \
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
    pith_kernel_fn *fold_rows, *fold_columns;
    int compute;
    bool finishes;
    pith_map_state finish;
} state;

static const row *reduce_find_row(const pith_node *node) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (pith_str_is(node->op_type, rows[i].name)) return &rows[i];
    }
    return NULL;
}

static pith_status reduce_upgrade(pith_node *node, pith_error *err) {
    return pith_upgrade_ints(node, "axes", 1) ? pith_fail_memory(err, 0) : PITH_OK;
}

/* Marks the reduced axes; *known is false if they are not known. */
static pith_status mark_axes(bool *reduced, bool *known, const pith_node *node, pith_numbers *axes, int rank,
                             pith_error *err) {
    bool all = axes->count == 0 && !pith_node_int(node, "noop_with_empty_axes", 0);
    *known = axes->count >= 0;
    for (int i = 0; i < axes->count; i++) *known &= pith_dim_known(axes->items[i]);
    for (int i = 0; i < rank; i++) reduced[i] = all;
    if (!*known || all) return PITH_OK;
    PITH_TRY(pith_axes_normalize(axes->items, axes->count, rank, err));
    for (int i = 0; i < axes->count; i++) reduced[axes->items[i]] = true;
    return PITH_OK;
}

static pith_status reduce_infer(pith_infer *c) {
    const pith_type *x = c->in[0];
    bool keep = pith_node_int(c->node, "keepdims", 1) != 0, known, reduced[PITH_MAX_RANK];
    pith_numbers axes;
    pith_dim dims[PITH_MAX_RANK];
    PITH_TRY(pith_infer_numbers(c, 1, &axes));
    if (x->rank < 0) {
        pith_infer_set(c, 0, x->dtype, -1, NULL);
        return PITH_OK;
    }
    PITH_TRY(mark_axes(reduced, &known, c->node, &axes, x->rank, c->err));
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!known)
            dims[rank++] = PITH_DIM_UNKNOWN;
        else if (!reduced[i])
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    pith_infer_set(c, 0, x->dtype, known || keep ? rank : -1, dims);
    const row *found = reduce_find_row(c->node);
    int64_t count;
    if (!found->elem || !known || x->rank != 1 || !reduced[0] || !(x->data || x->elems)) return PITH_OK;
    pith_dim *elems = pith_infer_new_elems(c, &count), items[PITH_ELEMS_MAX];
    int64_t n = pith_type_count(x);
    if (!elems || n < 0 || n > PITH_ELEMS_MAX) return PITH_OK;
    for (int64_t i = 0; i < n; i++) {
        if (!pith_type_elem(x, i, &items[i])) return PITH_OK;
    }
    elems[0] = found->elem(c->dims, items, (int)n);
    c->out[0].elems = elems;
    return PITH_OK;
}

static pith_status reduce_prepare(pith_prepare *c) {
    const row *found = reduce_find_row(c->node);
    int dtype = c->in[0]->dtype;
    state *s = pith_arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith_fail_memory(c->err, sizeof *s);
    char by_rows[64] = "row_", by_columns[64] = "column_";
    strcat(by_rows, found->family);
    strcat(by_columns, found->family);
    s->compute = pith_compute_dtype(dtype);
    s->fold_rows = pith_prepare_find(c, by_rows, s->compute);
    if (!s->fold_rows && !c->lacking && pith_convert_known(dtype, PITH_F64)) {
        s->compute = PITH_F64;
        s->fold_rows = pith_prepare_find(c, by_rows, PITH_F64);
    }
    s->fold_columns = pith_prepare_find(c, by_columns, s->compute);
    if (!s->fold_rows || !s->fold_columns) return pith_fail_dtype(c->err, dtype);
    if (found->finish) {
        s->finishes = true;
        PITH_TRY(pith_map_find(&s->finish, found->finish, pith_dtype_is_float(dtype) ? s->compute : PITH_F64, c));
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

static void find_form(form *f, const bool *reduced, const int64_t *dims, int rank) {
    int groups = 0, at = 0;
    *f = (form){ .outer = 1, .reduced = 1, .inner = 1 };
    bool inside = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        if (reduced[i] && !inside) groups++;
        inside = reduced[i];
    }
    f->moves = groups > 1;
    bool seen = false; /* axes before the first reduced one longer than 1 are outer, the others inner */
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
static pith_status reduce_scratch(const pith_infer *c, const void *state_, int threads, size_t *bytes) {
    const state *s = state_;
    size_t whole, results;
    (void)threads;
    if (!pith_dtype_bytes(s->compute, pith_type_count(c->in[0]), &whole) ||
        !pith_dtype_bytes(s->compute, pith_type_count(&c->out[0]), &results) ||
        pith_mul_overflows(whole, (size_t)2, bytes) || pith_add_overflows(*bytes, results + 256, bytes)) {
        return pith_fail_memory(c->err, SIZE_MAX);
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

static void reduce_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const form *f = &j->f;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part, n = f->outer - first < j->per_part ? f->outer - first : j->per_part;
    const char *x = j->x + (size_t)(first * f->reduced * f->inner) * j->size;
    char *y = j->y + (size_t)(first * f->inner) * j->size;
    bool f32 = j->s->compute == PITH_F32; /* then the loops are those of reduce.h, which say so in their types */
    if (f->inner == 1) {
        if (f32)
            ((pith_reduce_rows_fn *)j->s->fold_rows)((const float *)x, (float *)y, n, f->reduced);
        else
            ((pith_fold_rows_fn *)j->s->fold_rows)(x, y, n, f->reduced);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (f32) {
            ((pith_reduce_columns_fn *)j->s->fold_columns)((const float *)x, (float *)y, f->reduced, f->inner,
                                                           f->inner);
        } else {
            ((pith_fold_columns_fn *)j->s->fold_columns)(x, y, f->reduced, f->inner, f->inner);
        }
        x += (size_t)(f->reduced * f->inner) * j->size;
        y += (size_t)f->inner * j->size;
    }
}

static pith_status reduce_run(pith_run *r) {
    const state *s = r->state;
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    pith_numbers axes;
    bool reduced[PITH_MAX_RANK], known;
    job j = { .s = s, .x = x->data, .y = y->data, .size = pith_element_size(s->compute) };
    int64_t total = pith_tensor_count(x), results = pith_tensor_count(y);
    if (results == 0) return PITH_OK;
    PITH_TRY(pith_run_numbers(r, 1, &axes));
    PITH_TRY(mark_axes(reduced, &known, r->node, &axes, x->rank, r->err));
    find_form(&j.f, reduced, x->dims, x->rank);
    char *next = r->scratch;
    if (s->compute != x->dtype) {
        pith_convert(next, s->compute, 0, x->data, x->dtype, 0, total, true);
        j.x = next;
        next += pith_round64((size_t)total * j.size);
    }
    if (j.f.moves && total) {
        int64_t own[PITH_MAX_RANK], from[PITH_MAX_RANK], to[PITH_MAX_RANK], dims[PITH_MAX_RANK];
        pith_strides(own, x->dims, x->rank);
        for (int i = 0; i < x->rank; i++) {
            from[i] = own[j.f.order[i]];
            dims[i] = x->dims[j.f.order[i]];
        }
        pith_strides(to, dims, x->rank);
        pith_run_move(r, next, to, j.x, from, dims, x->rank, j.size);
        j.x = next;
        next += pith_round64((size_t)total * j.size);
    }
    if (s->compute != x->dtype) j.y = next;
    j.per_part = pith_run_chunk(r, j.f.outer, j.f.reduced * j.f.inner, 16384);
    pith_run_parallel(r, reduce_run_part, &j, (size_t)((j.f.outer + j.per_part - 1) / j.per_part));
    if (s->compute != x->dtype) {
        pith_tensor wide = *y;
        wide.dtype = s->compute;
        wide.data = j.y;
        if (s->finishes) pith_map1_apply(r, &s->finish, &wide, &wide);
        pith_convert(y->data, y->dtype, 0, j.y, s->compute, 0, results, true);
        return PITH_OK;
    }
    if (s->finishes) pith_map1_apply(r, &s->finish, y, y);
    return PITH_OK;
}

#define ATTRS "axes ints @-17; keepdims bool = 1; noop_with_empty_axes bool = 0 @18"
#define REDUCE(symbol, types_, since_, newest_, attrs_)                                                                \
    const pith_op pith_op_##symbol = { .domain = "",                                                                   \
                                       .name = #symbol,                                                                \
                                       .since = since_,                                                                \
                                       .min_inputs = 1,                                                                \
                                       .max_inputs = 2,                                                                \
                                       .max_outputs = 1,                                                               \
                                       .types = types_,                                                                \
                                       .newest = newest_,                                                              \
                                       .attrs = attrs_,                                                                \
                                       .upgrade = reduce_upgrade,                                                      \
                                       .shape_inputs = 1u << 1,                                                        \
                                       .infer = reduce_infer,                                                          \
                                       .prepare = reduce_prepare,                                                      \
                                       .scratch = reduce_scratch,                                                      \
                                       .run = reduce_run };
REDUCE(ReduceL1, "rl", 18, 18, ATTRS)
REDUCE(ReduceL2, "rl", 18, 18, ATTRS)
REDUCE(ReduceLogSum, "rl", 18, 28, ATTRS)
REDUCE(ReduceLogSumExp, "rl", 18, 28, ATTRS)
REDUCE(ReduceMax, "vl", 18, 20, ATTRS)
REDUCE(ReduceMean, "rl", 18, 18, ATTRS)
REDUCE(ReduceMin, "vl", 18, 20, ATTRS)
REDUCE(ReduceProd, "rl", 18, 18, ATTRS)
REDUCE(ReduceSum, "rl", 13, 13, "axes ints @-12; keepdims bool = 1; noop_with_empty_axes bool = 0 @13")
REDUCE(ReduceSumSquare, "rl", 18, 18, ATTRS)

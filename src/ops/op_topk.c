/* op_topk.c - TopK along an axis, and Unique: both from one sort of indices. */
#include <string.h>

#include "kernels/convert.h"
#include "kernels/maps.h"
#include "kernels/move.h"
#include "kernels/order.h"
#include "ops/elementwise.h"
#include "ops/widen.h"

typedef struct state {
    pith_sort_fn *sort;
} state;

static pith_status upgrade_topk(pith_node *node, pith_error *err) {
    return pith_upgrade_int(node, "k", 1) ? pith_fail_memory(err, 0) : PITH_OK;
}

static pith_status infer_topk(pith_infer *c) {
    const pith_type *x = c->in[0];
    pith_dim k = PITH_DIM_UNKNOWN, dims[PITH_MAX_RANK];
    int axis = 0;
    pith_infer_number(c, 1, &k);
    if (x->rank >= 0) PITH_TRY(pith_axis_normalize(pith_node_int(c->node, "axis", -1), x->rank, &axis, c->err));
    for (int i = 0; i < x->rank; i++) dims[i] = i == axis ? k : x->dims[i];
    if (pith_dim_known(k) && (k < 0 || (x->rank > 0 && pith_dim_known(x->dims[axis]) && k > x->dims[axis]))) {
        return pith_op_fail(c, "k is %lld, but the axis has %lld elements", (long long)k,
                            (long long)(x->rank > 0 ? x->dims[axis] : 0));
    }
    pith_infer_set(c, 0, x->dtype, x->rank, dims);
    pith_infer_set(c, 1, PITH_I64, x->rank, dims);
    return PITH_OK;
}

static pith_status topk_prepare(pith_prepare *c) {
    pith_kernel_fn *fn;
    state *s = pith_arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith_fail_memory(c->err, sizeof *s);
    PITH_TRY(pith_prepare_kernel(c, "sort", pith_compute_dtype(pith_part_dtype(c->in[0]->dtype)), &fn));
    s->sort = (pith_sort_fn *)fn;
    c->state = s;
    return PITH_OK;
}

/* Two arrays of indices as long as the axis. */
static pith_status scratch_topk(const pith_infer *c, const void *state_, int threads, size_t *bytes) {
    int axis;
    (void)state_;
    (void)threads;
    if (c->in[0]->rank == 0) return pith_op_fail(c, "input is a scalar");
    PITH_TRY(pith_axis_normalize(pith_node_int(c->node, "axis", -1), c->in[0]->rank, &axis, c->err));
    if (!pith_dtype_bytes(PITH_C128, c->in[0]->dims[axis], bytes)) return pith_fail_memory(c->err, SIZE_MAX);
    *bytes += 64;
    return pith_widen_scratch(c, 2, bytes);
}

static pith_status run_topk_plain(pith_run *r) {
    const state *s = r->state;
    const pith_tensor *x = r->in[0];
    pith_tensor *values = r->out[0], *places = r->out_count > 1 ? r->out[1] : NULL;
    const pith_tensor *y = values ? values : places;
    int axis;
    PITH_TRY(pith_axis_normalize(pith_node_int(r->node, "axis", -1), x->rank, &axis, r->err));
    if (!y || !pith_tensor_count(y)) return PITH_OK;
    int64_t outer = 1, n = x->dims[axis], k = y->dims[axis], inner = 1, *indices = r->scratch;
    bool largest = pith_node_int(r->node, "largest", 1) != 0;
    size_t size = pith_element_size(x->dtype);
    for (int i = 0; i < x->rank; i++) *(i < axis ? &outer : i > axis ? &inner : &(int64_t){ 1 }) *= x->dims[i];
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            const char *row = (const char *)x->data + (size_t)(o * n * inner + i) * size;
            s->sort(indices, indices + n, row, n, inner, largest);
            for (int64_t e = 0; e < k; e++) {
                int64_t to = (o * k + e) * inner + i;
                if (values)
                    memcpy((char *)values->data + (size_t)to * size, row + (size_t)(indices[e] * inner) * size, size);
                if (places) ((int64_t *)places->data)[to] = indices[e];
            }
        }
    }
    return PITH_OK;
}

static pith_status run_topk(pith_run *r) { return pith_widen_run(r, 2, run_topk_plain); }

const pith_op pith_op_TopK = { .domain = "",
                               .name = "TopK",
                               .since = 10,
                               .newest = 24,
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .max_outputs = 2,
                               .types = "ni",
                               .attrs = "axis int = -1; k int! 0.. @-9; largest bool = 1 @11; sorted bool = 1 @11",
                               .upgrade = upgrade_topk,
                               .infer = infer_topk,
                               .prepare = topk_prepare,
                               .scratch = scratch_topk,
                               .run = run_topk };

/* ---- Unique: along an axis, slices are what is compared ---- */

static pith_status infer_unique(pith_infer *c) {
    const pith_type *x = c->in[0];
    pith_dim dims[PITH_MAX_RANK], unknown = PITH_DIM_UNKNOWN;
    int axis = 0, rank = 1;
    dims[0] = unknown;
    if (pith_node_attr(c->node, "axis")) {
        rank = x->rank;
        if (rank >= 0) PITH_TRY(pith_axis_normalize(pith_node_int(c->node, "axis", 0), rank, &axis, c->err));
        for (int i = 0; i < rank; i++) dims[i] = i == axis ? unknown : x->dims[i];
    }
    pith_infer_set(c, 0, x->dtype, rank, dims);
    for (int i = 1; i < c->out_count; i++) pith_infer_set(c, i, PITH_I64, 1, &unknown);
    return PITH_OK;
}

/* Moves slices to rows of `length`, sorts them by their elements (of complex ones: real, then imaginary part) from the
 * last to the first, then walks equal neighbours. */
static pith_status run_unique(pith_run *r) {
    const state *s = r->state;
    const pith_tensor *x = r->in[0];
    bool flat = !pith_node_attr(r->node, "axis");
    int axis = 0;
    if (!flat) PITH_TRY(pith_axis_normalize(pith_node_int(r->node, "axis", 0), x->rank, &axis, r->err));
    int64_t total = pith_tensor_count(x), n = flat ? total : x->dims[axis], inner = 1, outer = 1;
    for (int i = 0; !flat && i < x->rank; i++) *(i < axis ? &outer : i > axis ? &inner : &(int64_t){ 1 }) *= x->dims[i];
    int64_t length = outer * inner;
    size_t size = pith_element_size(x->dtype), row = (size_t)length * size;
    int64_t *order = r->exec->alloc(r->exec, (size_t)(n + 1) * 5 * sizeof(int64_t));
    if (!order) return pith_fail_memory(r->err, (size_t)n * 5 * sizeof(int64_t));
    int64_t *sorted = order + n, *spare = sorted + n, *group = spare + n, *first = group + n;
    char *rows = r->exec->alloc(r->exec, x->bytes + 1);
    if (!rows) return pith_fail_memory(r->err, x->bytes);
    int64_t dims[3] = { n, outer, inner }, from[3] = { inner, n * inner, 1 }, to[3] = { length, inner, 1 };
    if (total) pith_move(rows, to, x->data, from, dims, 3, size);
    for (int64_t i = 0; i < n; i++) order[i] = i;
    char *column = r->exec->alloc(r->exec, (size_t)n * size + 1);
    bool half = x->dtype == PITH_F16 || x->dtype == PITH_BF16;
    float *wide = half ? r->exec->alloc(r->exec, (size_t)n * sizeof *wide + 1) : NULL;
    if (!column || (half && !wide)) return pith_fail_memory(r->err, (size_t)n * size);
    int64_t parts = pith_parts(x->dtype);
    size_t part = size / (size_t)parts;
    for (int64_t e = length * parts - 1; e >= 0; e--) { /* stable, so that earlier elements weigh more */
        for (int64_t i = 0; i < n; i++)
            memcpy(column + (size_t)i * part, rows + (size_t)order[i] * row + (size_t)e * part, part);
        if (wide) pith_convert(wide, PITH_F32, 0, column, x->dtype, 0, n, true);
        s->sort(sorted, spare, wide ? (const void *)wide : column, n, 1, false);
        for (int64_t i = 0; i < n; i++) spare[i] = order[sorted[i]];
        memcpy(order, spare, (size_t)n * sizeof *order);
    }
    int64_t groups = 0; /* group[i]: number of row i's group; first[g]: its first row */
    const pith_str *strings = (const pith_str *)(const void *)rows;
    for (int64_t i = 0; i < n; i++) {
        bool same = i > 0;
        for (int64_t e = 0; same && x->dtype == PITH_STRING && e < length; e++) {
            same = pith_str_eq(strings[order[i] * length + e], strings[order[i - 1] * length + e]);
        }
        if (same && x->dtype != PITH_STRING)
            same = memcmp(rows + (size_t)order[i] * row, rows + (size_t)order[i - 1] * row, row) == 0;
        if (!same)
            first[groups++] = order[i];
        else if (order[i] < first[groups - 1])
            first[groups - 1] = order[i];
        group[order[i]] = groups - 1;
    }
    int64_t *place = sorted; /* of a group in the output */
    for (int64_t g = 0; g < groups; g++) place[g] = g;
    if (!pith_node_int(r->node, "sorted", 1)) {
        int64_t next = 0;
        for (int64_t i = 0; i < n; i++) {
            if (first[group[i]] == i) place[group[i]] = next++;
        }
    }
    int64_t shape[PITH_MAX_RANK] = { groups };
    for (int i = 0; !flat && i < x->rank; i++) shape[i] = i == axis ? groups : x->dims[i];
    if (r->out[0]) {
        PITH_TRY(pith_run_alloc(r, 0, x->dtype, flat ? 1 : x->rank, shape));
        int64_t one[2] = { outer, inner }, in[2] = { inner, 1 }, out[2] = { groups * inner, 1 };
        for (int64_t g = 0; g < groups && length; g++) {
            pith_move((char *)r->out[0]->data + (size_t)(place[g] * inner) * size, out, rows + (size_t)first[g] * row,
                      in, one, 2, size);
        }
    }
    for (int i = 1; i < r->out_count; i++) {
        if (!r->out[i]) continue;
        PITH_TRY(pith_run_alloc(r, i, PITH_I64, 1, i == 2 ? &n : &groups));
        int64_t *y = r->out[i]->data;
        if (i == 3) memset(y, 0, (size_t)groups * sizeof *y);
        for (int64_t g = 0; i == 1 && g < groups; g++) y[place[g]] = first[g];
        for (int64_t k = 0; i > 1 && k < n; k++) {
            if (i == 2)
                y[k] = place[group[k]];
            else
                y[place[group[k]]]++;
        }
    }
    return PITH_OK;
}

const pith_op pith_op_Unique = { .domain = "",
                                 .name = "Unique",
                                 .since = 11,
                                 .newest = 28,
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .max_outputs = 4,
                                 .types = "Z",
                                 .attrs = "axis int; sorted bool = 1",
                                 .flags = PITH_OP_LATE,
                                 .infer = infer_unique,
                                 .prepare = topk_prepare,
                                 .run = run_unique };

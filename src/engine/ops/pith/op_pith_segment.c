/* op_pith_segment.c - operators along the sequence axis of a padded graph, over packed texts.
 *
 * offsets is i64 [texts + 1]: text t owns rows offsets[t] to offsets[t + 1] of x [tokens, …].
 *
 *   pith.Segment      one row per text: the sum, mean, max, min, l1 or sumsq of its rows, or its
 *                     first or last row (`how`). Sums are sequential in ascending order, like a
 *                     padded reduction along a strided axis. f32; first and last any type; sum also
 *                     integers
 *   pith.SegmentScan  running sums within each text; exclusive and reverse as in CumSum. Integers
 *   pith.SegmentTop   the place in its text of the largest element of x [tokens], the first of
 *                     equal ones; integers to i64
 *   pith.Longest      the number of rows of the longest text, i64 [1] */
#include <stdio.h>

#include "base/dtype.h"
#include "engine/kernels/reduce.h"
#include "engine/ops/op.h"

static pith_status segment_infer_offsets(const pith__infer *c, const pith__type *offsets) {
    if (offsets->dtype != PITH_I64 || offsets->rank != 1)
        return pith__op_fail(c, "offsets must be an int64 vector");
    return PITH_OK;
}

/* Offsets rise from 0 to the number of tokens. */
static pith_status segment_check_offsets(const pith__run *r, const pith_tensor *offsets,
                                         int64_t tokens) {
    const int64_t *at = offsets->data;
    int64_t texts = offsets->dims[0] - 1;
    for (int64_t t = 0; t < texts; t++) {
        if (at[t] > at[t + 1]) return pith__op_fail(r, "offsets descend");
    }
    if (texts < 0 || at[0] != 0 || (tokens >= 0 && at[texts] != tokens))
        return pith__op_fail(r, "offsets do not cover the tokens");
    return PITH_OK;
}

/* ---- Segment ---- */

typedef struct segment {
    pith__reduce_columns_fn *reduce; /* NULL: first, last or an integer sum */
    bool first, last;
} segment;

/* One row per text in place of the rows of tokens. */
static pith_status segment_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    PITH_TRY(segment_infer_offsets(c, c->in[1]));
    if (x->rank == 0) return pith__op_fail(c, "x is a scalar");
    if (x->dtype != PITH_UNDEFINED && pith__dtype_bits(x->dtype) < 8)
        return pith__op_fail(c, "x has no whole bytes");
    pith__type_set(&c->out[0], x->dtype, x->rank, x->dims);
    if (x->rank > 0)
        c->out[0].dims[0] = pith__dim_apply(c->dims, PITH_DIM_SUB, c->in[1]->dims[0], 1);
    return PITH_OK;
}

/* first, last and integer sums need no kernel; the others use those of reductions along columns,
 * whose order of additions they keep. */
static pith_status segment_prepare(pith__prepare *c) {
    segment *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    pith_str how = pith__node_str(c->node, "how", "sum");
    int dtype = c->in[0]->dtype;
    s->first = pith__str_is(how, "first");
    s->last = pith__str_is(how, "last");
    c->state = s;
    if (s->first || s->last) return PITH_OK;
    if ((dtype == PITH_I64 || dtype == PITH_I32) && pith__str_is(how, "sum")) return PITH_OK;
    char family[32];
    snprintf(family, sizeof family, "column_" PITH_STR_FMT, PITH_STR_ARG(how));
    s->reduce = PITH_PREPARE_KERNEL(pith__reduce_columns_fn, family, dtype, c);
    if (!s->reduce)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "no kernel %s for %s", family,
                          pith__dtype_name(dtype));
    return PITH_OK;
}

/* Column by column; unsigned, because signed overflow is not defined in C. */
static void segment_sum_integers(const pith_tensor *x, pith_tensor *y, int64_t text, int64_t from,
                                 int64_t to, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        uint64_t sum = 0; /* wraps, as the padded sum does */
        for (int64_t i = from; i < to; i++) {
            sum += x->dtype == PITH_I64 ? (uint64_t)((const int64_t *)x->data)[i * n + j]
                                        : (uint64_t)((const int32_t *)x->data)[i * n + j];
        }
        if (x->dtype == PITH_I64)
            ((int64_t *)y->data)[text * n + j] = (int64_t)sum;
        else
            ((int32_t *)y->data)[text * n + j] = (int32_t)(uint32_t)sum;
    }
}

typedef struct segment_work {
    const segment *s;
    const pith_tensor *x, *y;
    const int64_t *offsets;
    int64_t n;
    size_t row_bytes;
} segment_work;

/* One text. An empty one has no first and no last row: zeros. */
static void segment_part(void *context, size_t text, int worker) {
    const segment_work *w = context;
    (void)worker;
    int64_t t = (int64_t)text, from = w->offsets[t], to = w->offsets[t + 1];
    char *row = (char *)w->y->data + text * w->row_bytes;
    if (w->s->reduce) {
        w->s->reduce((const float *)w->x->data + from * w->n, (float *)(void *)row, to - from, w->n,
                     w->n);
    } else if (!w->s->first && !w->s->last) {
        segment_sum_integers(w->x, (pith_tensor *)w->y, t, from, to, w->n);
    } else if (from == to) {
        memset(row, 0, w->row_bytes);
    } else {
        memcpy(row, (const char *)w->x->data + (size_t)(w->s->first ? from : to - 1) * w->row_bytes,
               w->row_bytes);
    }
}

/* Texts are independent. */
static pith_status segment_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *offsets = r->in[1];
    PITH_TRY(segment_check_offsets(r, offsets, x->dims[0]));
    int64_t texts = offsets->dims[0] - 1, n = 1;
    for (int d = 1; d < x->rank; d++) n *= x->dims[d];
    if (texts == 0 || n == 0) return PITH_OK;
    segment_work w = { .s = r->state,
                       .x = x,
                       .y = r->out[0],
                       .offsets = offsets->data,
                       .n = n,
                       .row_bytes = r->out[0]->bytes / (size_t)texts };
    pith__run_parallel(r, segment_part, &w, (size_t)texts);
    return PITH_OK;
}

const pith__op pith__op_Segment_pith = {
    .domain = "pith",
    .name = "Segment",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .attrs = "how string first|last|sum|mean|max|min|l1|sumsq = sum",
    .infer = segment_infer,
    .prepare = segment_prepare,
    .run = segment_run,
};

/* ---- SegmentScan ---- */

/* The shape and the type of x. */
static pith_status segment_scan_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    PITH_TRY(segment_infer_offsets(c, c->in[1]));
    if (x->rank == 0 || (x->dtype != PITH_I64 && x->dtype != PITH_I32))
        return pith__op_fail(c, "x must hold integers by token");
    pith__type_set(&c->out[0], x->dtype, x->rank, x->dims);
    return PITH_OK;
}

/* Each column of each text from its first row on, or from the last in reverse. */
static pith_status segment_scan_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *offsets = r->in[1];
    const int64_t *at = offsets->data;
    PITH_TRY(segment_check_offsets(r, offsets, x->dims[0]));
    bool exclusive = pith__node_int(r->node, "exclusive", 0) != 0,
         reverse = pith__node_int(r->node, "reverse", 0) != 0;
    int64_t n = 1;
    for (int d = 1; d < x->rank; d++) n *= x->dims[d];
    for (int64_t t = 0; t + 1 < offsets->dims[0]; t++) {
        for (int64_t j = 0; j < n; j++) {
            uint64_t sum = 0;
            for (int64_t step = 0; step < at[t + 1] - at[t]; step++) {
                int64_t i = (reverse ? at[t + 1] - 1 - step : at[t] + step) * n + j;
                bool wide = x->dtype == PITH_I64;
                uint64_t item = wide ? (uint64_t)((const int64_t *)x->data)[i]
                                     : (uint64_t)((const int32_t *)x->data)[i];
                uint64_t out = exclusive ? sum : sum + item;
                sum += item;
                if (wide)
                    ((int64_t *)r->out[0]->data)[i] = (int64_t)out;
                else
                    ((int32_t *)r->out[0]->data)[i] = (int32_t)(uint32_t)out;
            }
        }
    }
    return PITH_OK;
}

const pith__op pith__op_SegmentScan_pith = {
    .domain = "pith",
    .name = "SegmentScan",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .attrs = "exclusive bool = 0; reverse bool = 0",
    .infer = segment_scan_infer,
    .run = segment_scan_run,
};

/* ---- SegmentTop ---- */

/* One place per text. */
static pith_status segment_top_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    PITH_TRY(segment_infer_offsets(c, c->in[1]));
    if (x->rank != 1 || (x->dtype != PITH_I64 && x->dtype != PITH_I32))
        return pith__op_fail(c, "x must hold one integer per token");
    pith__type_set(&c->out[0], PITH_I64, 1,
                   (pith__dim[]){ pith__dim_apply(c->dims, PITH_DIM_SUB, c->in[1]->dims[0], 1) });
    return PITH_OK;
}

/* The first of equal ones, as ArgMax does. An empty text gives 0. */
static pith_status segment_top_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *offsets = r->in[1];
    PITH_TRY(segment_check_offsets(r, offsets, x->dims[0]));
    const int64_t *at = offsets->data;
    for (int64_t t = 0; t + 1 < offsets->dims[0]; t++) {
        int64_t best = 0, top = INT64_MIN;
        for (int64_t i = at[t]; i < at[t + 1]; i++) {
            int64_t v = x->dtype == PITH_I64 ? ((const int64_t *)x->data)[i]
                                             : ((const int32_t *)x->data)[i];
            if (v > top) top = v, best = i - at[t];
        }
        ((int64_t *)r->out[0]->data)[t] = best;
    }
    return PITH_OK;
}

const pith__op pith__op_SegmentTop_pith = {
    .domain = "pith",
    .name = "SegmentTop",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .attrs = "",
    .infer = segment_top_infer,
    .run = segment_top_run,
};

/* ---- Longest ---- */

static pith_status segment_longest_infer(pith__infer *c) {
    PITH_TRY(segment_infer_offsets(c, c->in[0]));
    pith__type_set(&c->out[0], PITH_I64, 1, (pith__dim[]){ 1 });
    return PITH_OK;
}

static pith_status segment_longest_run(pith__run *r) {
    const int64_t *at = r->in[0]->data;
    PITH_TRY(segment_check_offsets(r, r->in[0], -1));
    int64_t longest = 0;
    for (int64_t t = 0; t + 1 < r->in[0]->dims[0]; t++) {
        if (at[t + 1] - at[t] > longest) longest = at[t + 1] - at[t];
    }
    *(int64_t *)r->out[0]->data = longest;
    return PITH_OK;
}

const pith__op pith__op_Longest_pith = {
    .domain = "pith",
    .name = "Longest",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .attrs = "",
    .infer = segment_longest_infer,
    .run = segment_longest_run,
};

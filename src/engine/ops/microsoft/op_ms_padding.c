/* op_ms_padding.c - com.microsoft's RemovePadding and RestorePadding: the rows of a batch packed
 * without padding, and back.
 *
 * token_offset lists the places of all real tokens, then of all padding, by rows. Padding is on the
 * right. Source: ONNX Runtime's ContribOperators.md; ONNX Runtime itself has no kernel for CPUs. */
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

static pith_status padding_prepare(pith__prepare *c) { return pith__prepare_movable(c); }

/* ---- RemovePadding ---- */

/* How many tokens there are is known in the run only. */
static pith_status padding_infer_remove(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 3)
        return pith__op_fail(c, "input has %d dimensions, not 3", x->rank);
    if (c->in[1]->dtype && c->in[1]->dtype != PITH_I32)
        return pith__fail_dtype(c->err, c->in[1]->dtype);
    pith__dim batch = x->rank == 3 ? x->dims[0] : PITH_DIM_UNKNOWN,
              rows = x->rank == 3 ? x->dims[1] : PITH_DIM_UNKNOWN;
    pith__infer_set(
        c, 0, x->dtype, 2,
        (pith__dim[]){ PITH_DIM_UNKNOWN, x->rank == 3 ? x->dims[2] : PITH_DIM_UNKNOWN });
    pith__infer_set(c, 1, PITH_I32, 2, (pith__dim[]){ batch, rows });
    pith__infer_set(c, 2, PITH_I32, 1,
                    (pith__dim[]){ pith__dim_apply(c->dims, PITH_DIM_ADD, batch, 1) });
    pith__infer_set(c, 3, PITH_I32, 1, (pith__dim[]){ 1 });
    return PITH_OK;
}

/* Counts are added up first, for the shape. Then tokens are copied sequence by sequence, and their
 * places, the running sums and the longest length are written if they are read. */
static pith_status padding_run_remove(pith__run *r) {
    const pith_tensor *x = r->in[0];
    int64_t batch = x->dims[0], rows = x->dims[1], total = 0, longest = 0;
    const int32_t *counts = r->in[1]->data;
    size_t row_bytes = (size_t)x->dims[2] * pith__element_size(x->dtype);
    if (pith__tensor_count(r->in[1]) != batch)
        return pith__op_fail(r, "sequence_token_count does not fit the input");
    if (batch * rows > INT32_MAX)
        return pith__op_fail(r, "%lld rows are too many", (long long)(batch * rows));
    for (int64_t b = 0; b < batch; b++) {
        if (counts[b] < 0 || counts[b] > rows)
            return pith__op_fail(r, "sequence %lld has %d tokens", (long long)b, counts[b]);
        total += counts[b];
        if (counts[b] > longest) longest = counts[b];
    }
    PITH_TRY(pith__run_alloc(r, 0, x->dtype, 2, (int64_t[]){ total, x->dims[2] }));
    const int64_t shapes[3][2] = { { batch, rows }, { batch + 1, 0 }, { 1, 0 } };
    for (int i = 1; i < r->out_count; i++) {
        if (r->out[i]) PITH_TRY(pith__run_alloc(r, i, PITH_I32, i == 1 ? 2 : 1, shapes[i - 1]));
    }
    int32_t *places = r->out_count > 1 && r->out[1] ? r->out[1]->data : NULL;
    int32_t *sums = r->out_count > 2 && r->out[2] ? r->out[2]->data : NULL;
    int64_t kept = 0, padded = total;
    if (sums) sums[0] = 0;
    for (int64_t b = 0; b < batch; b++) {
        const char *from = (const char *)x->data + (size_t)(b * rows) * row_bytes;
        PITH_TRY(pith__run_step(r, b * 64));
        PITH_TRY(pith__run_bytes(r, (char *)r->out[0]->data + (size_t)kept * row_bytes, from,
                                 (size_t)counts[b] * row_bytes));
        if (places) {
            for (int64_t i = 0; i < rows; i++)
                places[i < counts[b] ? kept + i : padded++] = (int32_t)(b * rows + i);
        }
        kept += counts[b];
        if (sums) sums[b + 1] = (int32_t)kept;
    }
    if (r->out_count > 3 && r->out[3]) *(int32_t *)r->out[3]->data = (int32_t)longest;
    return PITH_OK;
}

/* ---- RestorePadding ---- */

/* token_offset has the shape of the padded batch. */
static pith_status padding_infer_restore(pith__infer *c) {
    const pith__type *x = c->in[0], *places = c->in[1];
    if (x->rank >= 0 && x->rank != 2)
        return pith__op_fail(c, "input has %d dimensions, not 2", x->rank);
    if (places->rank >= 0 && places->rank != 2)
        return pith__op_fail(c, "token_offset has %d dimensions", places->rank);
    if (places->dtype && places->dtype != PITH_I32) return pith__fail_dtype(c->err, places->dtype);
    pith__dim dims[3] = { PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN,
                          x->rank == 2 ? x->dims[1] : PITH_DIM_UNKNOWN };
    for (int i = 0; i < places->rank; i++) dims[i] = places->dims[i];
    pith__infer_set(c, 0, x->dtype, 3, dims);
    return PITH_OK;
}

/* Rows without a token are zero. */
static pith_status padding_run_restore(pith__run *r) {
    const pith_tensor *x = r->in[0];
    int64_t total = x->dims[0], rows = pith__tensor_count(r->in[1]);
    const int32_t *places = r->in[1]->data;
    size_t row_bytes = (size_t)x->dims[1] * pith__element_size(x->dtype);
    if (total > rows)
        return pith__op_fail(r, "%lld tokens do not fill %lld places", (long long)total,
                             (long long)rows);
    PITH_TRY(pith__run_bytes(r, r->out[0]->data, NULL, r->out[0]->bytes));
    for (int64_t i = 0; i < total; i++) {
        PITH_TRY(pith__run_step(r, i));
        if (places[i] < 0 || places[i] >= rows)
            return pith__op_fail(r, "token_offset %d is out of range", places[i]);
        if (row_bytes)
            memcpy((char *)r->out[0]->data + (size_t)places[i] * row_bytes,
                   (const char *)x->data + (size_t)i * row_bytes, row_bytes);
    }
    return PITH_OK;
}

const pith__op pith__op_RemovePadding_ms = {
    .domain = "com.microsoft",
    .name = "RemovePadding",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 4,
    .types = "mw",
    .attrs = "",
    .flags = PITH_OP_LATE,
    .infer = padding_infer_remove,
    .prepare = padding_prepare,
    .run = padding_run_remove,
};
const pith__op pith__op_RestorePadding_ms = {
    .domain = "com.microsoft",
    .name = "RestorePadding",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "mw",
    .attrs = "",
    .infer = padding_infer_restore,
    .prepare = padding_prepare,
    .run = padding_run_restore,
};

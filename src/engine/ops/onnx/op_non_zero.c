/* op_non_zero.c - NonZero: the places of all elements other than 0 (or ""), one row per axis.
 *
 * Their number is known in the run only: elements are tested in blocks twice, once to count and
 * once to write. Source: ONNX NonZero (opset 13). */
#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"

static pith_status non_zero_infer(pith__infer *c) {
    pith__dim dims[2] = { c->in[0]->rank >= 0 ? c->in[0]->rank : PITH_DIM_UNKNOWN,
                          PITH_DIM_UNKNOWN };
    pith__infer_set(c, 0, PITH_I64, 2, dims);
    return PITH_OK;
}

/* Numbers but 0, strings but "". */
static bool non_zero_is_set(const pith_tensor *x, int64_t i) {
    int part = pith__part_dtype(x->dtype), parts = pith__parts(x->dtype);
    uint8_t set[2] = { 0 };
    if (x->dtype == PITH_STRING) return ((const pith_str *)x->data)[i].size > 0;
    pith__convert(set, PITH_BOOL, 0, x->data, part, i * parts, parts, true);
    return set[0] || set[1];
}

enum { SELECTED = 256 }; /* elements that are looked at together */

/* set[i] = select_is_set of element first + i, for i < n. */
static void non_zero_block(uint8_t *set, const pith_tensor *x, int64_t first, int64_t n) {
    if (x->dtype != PITH_STRING && pith__parts(x->dtype) == 1) {
        pith__convert(set, PITH_BOOL, 0, x->data, x->dtype, first, n, true);
        return;
    }
    for (int64_t i = 0; i < n; i++) set[i] = non_zero_is_set(x, first + i);
}

/* The second walk keeps the places of all axes but the last in an odometer that moves only when a
 * new row begins. */
static pith_status non_zero_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    const int last = x->rank - 1;
    const int64_t total = pith__tensor_count(x), row = x->rank ? x->dims[last] : 1;
    int64_t found = 0, at = 0, row_begin = 0, place[PITH_MAX_RANK] = { 0 };
    uint8_t set[SELECTED];
    int64_t spent = 0;
    for (int64_t i = 0, n; i < total; i += n) {
        PITH_TRY(pith__run_spend(r, &spent, SELECTED));
        n = total - i < SELECTED ? total - i : SELECTED;
        non_zero_block(set, x, i, n);
        for (int64_t k = 0; k < n; k++) found += set[k];
    }
    PITH_TRY(pith__run_alloc(r, 0, PITH_I64, 2, (int64_t[]){ x->rank, found }));
    int64_t *y = r->out[0]->data;
    if (x->rank) {
        for (int64_t i = 0, n; i < total; i += n) {
            PITH_TRY(pith__run_spend(r, &spent, SELECTED * (8 + 4 * last)));
            n = total - i < SELECTED ? total - i : SELECTED;
            non_zero_block(set, x, i, n);
            for (int64_t k = 0; k < n; k++) {
                if (!set[k]) continue;
                for (; i + k >= row_begin + row; row_begin += row)
                    for (int d = last - 1; d >= 0 && ++place[d] == x->dims[d]; d--) place[d] = 0;
                for (int d = 0; d < last; d++) y[d * found + at] = place[d];
                y[last * found + at++] = i + k - row_begin;
            }
        }
    }
    return PITH_OK;
}

const pith__op pith__op_NonZero = { .domain = "",
                                    .name = "NonZero",
                                    .since = 9,
                                    .newest = 13,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .max_outputs = 1,
                                    .types = "Z",
                                    .attrs = "",
                                    .flags = PITH_OP_LATE,
                                    .infer = non_zero_infer,
                                    .run = non_zero_run };

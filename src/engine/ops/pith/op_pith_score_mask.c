/* op_pith_score_mask.c - pith.ScoreMask: a mask of keys, in any form that com.microsoft's attention
 * knows, as numbers to add to scores.
 *
 * Inputs: the mask (int32), query and key [batch, rows, …] or [batch, heads, rows, size], past keys
 * [batch, heads, rows, size] or absent. The mask is one of: [batch] lengths; [2 batch] ends, then
 * starts; [3 batch + 2] lengths, then two running sums; [batch, keys]; [batch, queries, keys]; or
 * [batch, 1, longest, longest], of which the rows after the past keys are taken. The output is
 * [batch, 1, 1 or queries, keys]: 0 keeps a key, the attribute `filter` skips it. */
#include "engine/ops/shared/infer_shapes.h"

enum { MASK, QUERY, KEY, PAST };

static pith__dim score_mask_rows_of(const pith__type *t) {
    if (t->rank == 4) return t->dims[2];
    return t->rank == 3 ? t->dims[1] : PITH_DIM_UNKNOWN;
}

/* Masks of rank 1 and 2 are the same for all queries, so they give one row. */
static pith_status score_mask_infer(pith__infer *c) {
    const pith__type *m = c->in[MASK], *q = c->in[QUERY],
                     *past = pith__has_input(c, PAST) ? c->in[PAST] : NULL;
    if (m->dtype && m->dtype != PITH_I32) return pith__fail_dtype(c->err, m->dtype);
    if (m->rank == 0 || m->rank > 4) return pith__op_fail(c, "the mask has rank %d", m->rank);
    pith__dim keys = score_mask_rows_of(c->in[KEY]);
    if (past) keys = pith__dim_apply(c->dims, PITH_DIM_ADD, keys, score_mask_rows_of(past));
    pith__dim queries = m->rank < 3 ? 1 : score_mask_rows_of(q);
    if (m->rank < 0) queries = PITH_DIM_UNKNOWN;
    pith__infer_set(c, 0, PITH_F32, 4,
                    (pith__dim[]){ q->rank > 0 ? q->dims[0] : PITH_DIM_UNKNOWN, 1, queries, keys });
    return PITH_OK;
}

/* Which form a mask has follows from its rank and its sizes; without a fitting one the run fails.
 */
static pith_status score_mask_run(pith__run *r) {
    const pith_tensor *m = r->in[MASK], *past = pith__has_input(r, PAST) ? r->in[PAST] : NULL;
    const int32_t *mask = m->data;
    int64_t batch = r->out[0]->dims[0], queries = r->out[0]->dims[2], keys = r->out[0]->dims[3];
    int64_t first = past ? past->dims[2] : 0;
    bool starts = m->rank == 1 && batch && m->dims[0] == 2 * batch;
    bool lengths = m->rank == 1 && (m->dims[0] == batch || m->dims[0] == 3 * batch + 2);
    bool fits = starts || lengths;
    if (m->rank == 2) fits = m->dims[0] == batch && m->dims[1] == keys;
    if (m->rank == 3) fits = m->dims[0] == batch && m->dims[1] == queries && m->dims[2] == keys;
    if (m->rank == 4)
        fits = m->dims[0] == batch && m->dims[1] == 1 && m->dims[2] >= first + queries &&
               m->dims[3] >= keys;
    if (!fits) return pith__op_fail(r, "the mask does not have the shape of the keys");
    float filter = pith__node_float(r->node, "filter", -10000.0f), *y = r->out[0]->data;
    int64_t spent = 0;
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t i = 0; i < queries; i++, y += keys) {
            PITH_TRY(pith__run_spend(r, &spent, 16 + 2 * keys));
            int64_t row =
                m->rank == 4 ? (b * m->dims[2] + first + i) * m->dims[3] : (b * queries + i) * keys;
            for (int64_t k = 0; k < keys; k++) {
                bool kept = m->rank > 1 ? mask[row + k] != 0
                                        : k < mask[b] && (!starts || k >= mask[batch + b]);
                y[k] = kept ? 0.0f : filter;
            }
        }
    }
    return PITH_OK;
}

const pith__op pith__op_ScoreMask_pith = {
    .domain = "pith",
    .name = "ScoreMask",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = 4,
    .max_outputs = 1,
    .attrs = "filter float = -10000",
    .infer = score_mask_infer,
    .run = score_mask_run,
};

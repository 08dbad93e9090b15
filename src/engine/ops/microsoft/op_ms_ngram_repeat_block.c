/* op_ms_ngram_repeat_block.c - com.microsoft's NGramRepeatBlock: tokens that would repeat an n-gram
 * of their text get a score of -infinity. Source: ONNX Runtime's ContribOperators.md. */
#include <math.h>
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

/* The scores keep their shape. */
static pith_status repeat_infer(pith__infer *c) {
    const pith__type *ids = c->in[0], *scores = c->in[1];
    if ((ids->rank >= 0 && ids->rank != 2) || (scores->rank >= 0 && scores->rank != 2))
        return pith__op_fail(c, "input_ids and scores must have two dimensions");
    if (ids->rank == 2 && scores->rank == 2 && pith__dim_known(ids->dims[0]) &&
        pith__dim_known(scores->dims[0]) && ids->dims[0] != scores->dims[0])
        return pith__op_fail(c, "input_ids has %lld rows, scores has %lld", (long long)ids->dims[0],
                             (long long)scores->dims[0]);
    pith__infer_set(c, 0, scores->dtype, scores->rank, scores->dims);
    return PITH_OK;
}

/* The last n - 1 tokens are compared with every place before; where they occur, the token after
 * them would repeat an n-gram. */
static pith_status repeat_run(pith__run *r) {
    int64_t n = pith__node_int(r->node, "ngram_size", 0), length = r->in[0]->dims[1],
            words = r->in[1]->dims[1];
    PITH_TRY(pith__run_bytes(r, r->out[0]->data, r->in[1]->data, r->out[0]->bytes));
    if (length + 1 < n) return PITH_OK;
    for (int64_t row = 0; row < r->in[0]->dims[0]; row++) {
        const int64_t *ids = (const int64_t *)r->in[0]->data + row * length,
                      *last = ids + length + 1 - n;
        float *scores = (float *)r->out[0]->data + row * words;
        for (int64_t i = 0; i + n <= length; i++) {
            PITH_TRY(pith__run_step(r, i));
            if (memcmp(ids + i, last, (size_t)(n - 1) * sizeof *ids) != 0) continue;
            int64_t token = ids[i + n - 1];
            if (token < 0 || token >= words)
                return pith__fail(r->err, PITH_ERR_RUN,
                                  "token %lld is outside of a vocabulary of %lld", (long long)token,
                                  (long long)words);
            scores[token] = -INFINITY;
        }
    }
    return PITH_OK;
}

const pith__op pith__op_NGramRepeatBlock_ms = { .domain = "com.microsoft",
                                                .name = "NGramRepeatBlock",
                                                .since = 1,
                                                .newest = 1,
                                                .min_inputs = 2,
                                                .max_inputs = 2,
                                                .max_outputs = 1,
                                                .types = "le",
                                                .attrs = "ngram_size int! 1..",
                                                .infer = repeat_infer,
                                                .run = repeat_run };

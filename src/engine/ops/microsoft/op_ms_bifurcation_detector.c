/* op_ms_bifurcation_detector.c - com.microsoft's BifurcationDetector: the predicted tokens that
 * agree with the source, and where the end of the text occurs in it, for speculative decoding.
 * Source: ONNX Runtime's ContribOperators.md. */
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

static pith_status bifurcation_infer(pith__infer *c) {
    for (int i = 0; i < c->in_count; i++) {
        if (c->in[i] && c->in[i]->rank > 1)
            return pith__op_fail(c, "input %d has %d dimensions", i, c->in[i]->rank);
    }
    pith__infer_set(c, 0, PITH_I64, 1, (pith__dim[]){ PITH_DIM_UNKNOWN });
    pith__infer_set(c, 1, PITH_I64, 1, (pith__dim[]){ 1 });
    return PITH_OK;
}

/* First place from `from` on where `count` tokens lie in text; length if there is none. */
static int64_t bifurcation_find(const int64_t *text, int64_t length, int64_t from,
                                const int64_t *what, int64_t count) {
    for (int64_t i = from; i + count <= length; i++)
        if (memcmp(text + i, what, (size_t)count * sizeof *what) == 0) return i;
    return length;
}

/* Behind the only place of the longest n-gram that ends the tokens, or -1. */
static int64_t bifurcation_suffix(const pith__run *r, const int64_t *tokens, int64_t count) {
    const int64_t *source = r->in[0]->data;
    int64_t length = pith__tensor_count(r->in[0]), found = -1;
    int64_t least = pith__node_int(r->node, "min_ngram_size", 1),
            most = pith__node_int(r->node, "max_ngram_size", 3);
    for (int64_t n = least; n <= most && n <= count; n++) {
        const int64_t *gram = tokens + count - n;
        int64_t at = bifurcation_find(source, length, 0, gram, n);
        if (at == length) break;
        found = at + n;
        if (found >= length) break;
        if (bifurcation_find(source, length, at + 1, gram, n) == length) break;
        found = -1;
    }
    return found;
}

/* Predicted tokens count as long as they repeat the source, and one more does: the model's own
 * continuation. The suffix of the joined text is then looked up in the source. */
static pith_status bifurcation_run(pith__run *r) {
    const pith_tensor *source = r->in[0], *now = r->in[1],
                      *more = pith__has_input(r, 3) ? r->in[3] : NULL;
    int64_t length = pith__tensor_count(source), count = pith__tensor_count(now), taken = 0;
    if (pith__tensor_count(r->in[2]) != 1)
        return pith__op_fail(r, "prev_suffix_match_idx is not a single number");
    int64_t from = ((const int64_t *)r->in[2]->data)[0];
    const int64_t *text = source->data, *predicted = more ? more->data : NULL;
    if (more) {
        if (from < 0 || from > length || pith__tensor_count(more) != length + 1 - from)
            return pith__op_fail(r, "%lld predicted tokens for a source of %lld from %lld on",
                                 (long long)pith__tensor_count(more), (long long)length,
                                 (long long)from);
        while (taken < length - from && predicted[taken] == text[from + taken]) taken++;
        taken++;
    }
    int64_t *scratch = r->exec->alloc(r->exec, (size_t)(count + taken) * sizeof *scratch + 1);
    if (!scratch) return pith__fail_memory(r->err, (size_t)(count + taken) * sizeof *scratch);
    if (count) memcpy(scratch, now->data, (size_t)count * sizeof *scratch);
    if (taken) memcpy(scratch + count, predicted, (size_t)taken * sizeof *scratch);
    if (r->out[0]) {
        PITH_TRY(pith__run_alloc(r, 0, PITH_I64, 1, (int64_t[]){ count + taken }));
        if (count + taken)
            memcpy(r->out[0]->data, scratch, (size_t)(count + taken) * sizeof *scratch);
    }
    if (r->out_count < 2 || !r->out[1]) return PITH_OK;
    PITH_TRY(pith__run_alloc(r, 1, PITH_I64, 1, (int64_t[]){ 1 }));
    *(int64_t *)r->out[1]->data = bifurcation_suffix(r, scratch, count + taken);
    return PITH_OK;
}

const pith__op pith__op_BifurcationDetector_ms = {
    .domain = "com.microsoft",
    .name = "BifurcationDetector",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = 4,
    .max_outputs = 2,
    .types = "l",
    .flags = PITH_OP_LATE,
    .attrs = "max_ngram_size int 1.. = 3; min_ngram_size int 1.. = 1",
    .infer = bifurcation_infer,
    .run = bifurcation_run
};

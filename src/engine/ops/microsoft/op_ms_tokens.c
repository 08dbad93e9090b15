/* op_ms_tokens.c - com.microsoft's operators on token ids and strings: MurmurHash3,
 * NGramRepeatBlock, BifurcationDetector and DynamicTimeWarping. Source: ONNX Runtime's
 * ContribOperators.md. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/murmur.h"
#include "engine/ops/shared/infer_shapes.h"

/* ---- MurmurHash3 ---- */

static pith_status murmur_infer(pith__infer *c) {
    pith__infer_set(c, 0, pith__node_int(c->node, "positive", 1) ? PITH_U32 : PITH_I32,
                    c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status murmur_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    uint32_t seed = (uint32_t)pith__node_int(r->node, "seed", 0), *y = r->out[0]->data;
    size_t size = pith__element_size(x->dtype);
    for (int64_t i = 0; i < pith__tensor_count(x); i++) {
        const pith_str *s = (const pith_str *)x->data + i;
        y[i] = x->dtype == PITH_STRING
                   ? pith__murmur3_32(s->data, s->size, seed)
                   : pith__murmur3_32((const char *)x->data + (size_t)i * size, size, seed);
    }
    return PITH_OK;
}

const pith__op pith__op_MurmurHash3_ms = { .domain = "com.microsoft",
                                           .name = "MurmurHash3",
                                           .since = 1,
                                           .newest = 1,
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .max_outputs = 1,
                                           .types = "H",
                                           .attrs = "positive bool = 1; seed int 0..4294967295 = 0",
                                           .infer = murmur_infer,
                                           .run = murmur_run };

/* ---- NGramRepeatBlock: tokens that would repeat an n-gram get a score of -infinity ---- */

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

static pith_status repeat_run(pith__run *r) {
    int64_t n = pith__node_int(r->node, "ngram_size", 0), length = r->in[0]->dims[1],
            words = r->in[1]->dims[1];
    if (r->out[0]->bytes) memcpy(r->out[0]->data, r->in[1]->data, r->out[0]->bytes);
    if (length + 1 < n) return PITH_OK;
    for (int64_t row = 0; row < r->in[0]->dims[0]; row++) {
        const int64_t *ids = (const int64_t *)r->in[0]->data + row * length,
                      *last = ids + length + 1 - n;
        float *scores = (float *)r->out[0]->data + row * words;
        for (int64_t i = 0; i + n <= length; i++) {
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

/* ---- BifurcationDetector ---- */

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

/* ---- DynamicTimeWarping: the cheapest way through a matrix of costs ---- */

static pith_status warping_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 2 &&
        !(x->rank == 3 && (!pith__dim_known(x->dims[0]) || x->dims[0] == 1)))
        return pith__op_fail(c, "input must be [M, N] or [1, M, N]");
    pith__infer_set(c, 0, PITH_I32, 2, (pith__dim[]){ 2, PITH_DIM_UNKNOWN });
    return PITH_OK;
}

/* A row of costs, then for each point the step that led to it: 0 both, 1 a row, 2 a column. */
static pith_status warping_scratch(const pith__infer *c, const void *state, int threads,
                                   size_t *bytes) {
    const pith__type *x = c->in[0];
    size_t columns = (size_t)x->dims[x->rank - 1], rows = (size_t)x->dims[x->rank - 2];
    (void)state, (void)threads;
    if (pith__mul_overflows(rows, columns, bytes) ||
        pith__add_overflows(*bytes, columns * 8 + 128, bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return PITH_OK;
}

static pith_status warping_run(pith__run *r) {
    const pith_tensor *t = r->in[0];
    int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1], count = 0;
    if (t->rank == 3 && t->dims[0] != 1)
        return pith__op_fail(r, "input must be [M, N] or [1, M, N]");
    if (rows < 1 || columns < 1) return pith__op_fail(r, "the matrix is empty");
    const float *x = t->data;
    float *above = r->scratch; /* above[j]: cost up to (i - 1, j - 1), of the row above the first
                                  one too */
    uint8_t *steps = (uint8_t *)(above + columns + 1);
    for (int64_t j = 0; j <= columns; j++) above[j] = j ? INFINITY : 0;
    for (int64_t i = 0; i < rows; i++) {
        float corner = above[0], left = INFINITY;
        above[0] = INFINITY;
        for (int64_t j = 0; j < columns; j++) {
            float up = above[j + 1], least;
            uint8_t *step = &steps[i * columns + j];
            *step = corner < up && corner < left ? 0 : up < corner && up < left ? 1 : 2;
            least = *step == 0 ? corner : *step == 1 ? up : left;
            corner = up;
            above[j + 1] = left = x[i * columns + j] + least;
        }
    }
    for (int pass = 0; pass < 2; pass++) { /* the length, then the way from its end */
        int64_t i = rows - 1, j = columns - 1, at = 0;
        if (pass) PITH_TRY(pith__run_alloc(r, 0, PITH_I32, 2, (int64_t[]){ 2, count }));
        for (;;) {
            int32_t *y = pass ? r->out[0]->data : NULL;
            if (pass) y[count - 1 - at] = (int32_t)i, y[2 * count - 1 - at] = (int32_t)j;
            at++;
            if (i == 0 && j == 0) break;
            uint8_t step = i == 0 ? 2 : j == 0 ? 1 : steps[i * columns + j];
            i -= step != 2;
            j -= step != 1;
        }
        count = at;
    }
    return PITH_OK;
}

const pith__op pith__op_DynamicTimeWarping_ms = { .domain = "com.microsoft",
                                                  .name = "DynamicTimeWarping",
                                                  .since = 1,
                                                  .newest = 1,
                                                  .min_inputs = 1,
                                                  .max_inputs = 1,
                                                  .max_outputs = 1,
                                                  .types = "e",
                                                  .flags = PITH_OP_LATE,
                                                  .attrs = "",
                                                  .infer = warping_infer,
                                                  .scratch = warping_scratch,
                                                  .run = warping_run };

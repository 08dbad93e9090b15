/* op_ms_word_conv_embedding.c - com.microsoft's WordConvEmbedding: words as vectors, the largest
 * response of each filter of a convolution over the vectors of a word's characters, after tanh. A
 * word ends at its first character 0. Source: ONNX Runtime's ContribOperators.md. */
#include <math.h>

#include "engine/ops/shared/infer_shapes.h"

static pith_status word_conv_infer(pith__infer *c) {
    const pith__type *ids = c->in[0], *w = c->in[1], *chars = c->in[3];
    pith__dim dims[PITH_MAX_RANK];
    if (ids->rank == 0 || (w->rank >= 0 && w->rank != 4) || (chars->rank >= 0 && chars->rank != 2))
        return pith__op_fail(c, "Sequence must have a dimension, W four and C two");
    for (int i = 0; i < ids->rank; i++) dims[i] = ids->dims[i];
    if (ids->rank > 0) dims[ids->rank - 1] = w->rank == 4 ? w->dims[0] : PITH_DIM_UNKNOWN;
    pith__infer_set(c, 0, PITH_F32, ids->rank, dims);
    return PITH_OK;
}

/* A word shorter than the window has one place, at its start, which reads the characters 0 behind
 * it; an empty word gives zeros. */
static pith_status word_conv_run(pith__run *r) {
    const pith_tensor *ids = r->in[0], *w = r->in[1], *chars = r->in[3];
    int64_t length = ids->dims[ids->rank - 1], maps = w->dims[0], window = w->dims[2],
            width = w->dims[3];
    int64_t known = chars->dims[0], words = length ? pith__tensor_count(ids) / length : 0;
    if (w->dims[1] != 1 || chars->dims[1] != width || window < 1 || window > length ||
        pith__tensor_count(r->in[2]) != maps)
        return pith__op_fail(r, "W, B and C do not fit words of %lld characters",
                             (long long)length);
    const float *table = chars->data, *filters = w->data, *bias = r->in[2]->data;
    for (int64_t word = 0; word < words; word++) {
        const int32_t *id = (const int32_t *)ids->data + word * length;
        float *y = (float *)r->out[0]->data + word * maps;
        int64_t used = 0;
        while (used < length && id[used] > 0) used++;
        for (int64_t i = 0; i < length; i++)
            if (id[i] < 0 || id[i] >= known)
                return pith__op_fail(r, "character %d is outside of %lld", id[i], (long long)known);
        for (int64_t m = 0; m < maps; m++) {
            PITH_TRY(pith__run_look(r));
            float most = used ? -INFINITY : 0;
            if (used) {
                for (int64_t at = 0; (at == 0 || at + window <= used); at++) {
                    double sum = (double)bias[m];
                    for (int64_t k = 0; k < window; k++)
                        for (int64_t i = 0; i < width; i++)
                            sum += (double)filters[(m * window + k) * width + i] *
                                   (double)table[id[at + k] * width + i];
                    most = fmaxf(most, (float)tanh(sum));
                }
            }
            y[m] = most;
        }
    }
    return PITH_OK;
}

const pith__op pith__op_WordConvEmbedding_ms = {
    .domain = "com.microsoft",
    .name = "WordConvEmbedding",
    .since = 1,
    .newest = 1,
    .min_inputs = 4,
    .max_inputs = 4,
    .max_outputs = 1,
    .types = "we",
    .attrs = "char_embedding_size int; conv_window_size int; embedding_size int",
    .infer = word_conv_infer,
    .run = word_conv_run
};

/* op_rotary_embedding.c - RotaryEmbedding: pairs of a head's elements rotated by the angles of
 * their position.
 *
 * The input is [batch, heads, sequence, head] or [batch, sequence, heads * head]. A pair is (i, i +
 * half) or, interleaved, (2i, 2i + 1). Elements after rotary_embedding_dim pass through. Without
 * num_heads, the size of a head follows from the caches, which com.microsoft allows. Source: ONNX
 * RotaryEmbedding (opset 23). */
#include "engine/ops/shared/as_doubles.h"

static pith_status rotary_embedding_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 3 && x->rank != 4)
        return pith__op_fail(c, "input has %d dimensions, not 3 or 4", x->rank);
    pith__type_set(&c->out[0], x->dtype, x->rank, x->dims);
    return PITH_OK;
}

/* Without position ids, the caches have one row per batch element and step; with them, a row per
 * position. Pairs are rotated by (cos, sin) of their row. */
static pith_status rotary_embedding_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *ids = r->in_count > 3 ? r->in[3] : NULL;
    bool packed = x->rank == 3, interleaved = pith__node_int(r->node, "interleaved", 0) != 0;
    int64_t batch = x->dims[0], seq = x->dims[packed ? 1 : 2],
            turned = pith__node_int(r->node, "rotary_embedding_dim", 0);
    int64_t heads = packed ? pith__node_int(r->node, "num_heads", 0) : x->dims[1];
    int64_t cached = r->in[1]->rank ? 2 * r->in[1]->dims[r->in[1]->rank - 1] : 0;
    if (packed && heads < 1) heads = cached > 0 ? x->dims[2] / cached : 0;
    if (heads < 1)
        return pith__op_fail(r, "neither num_heads nor the caches say how many heads there are");
    int64_t size = packed ? x->dims[2] / heads : x->dims[3];
    if (!turned) turned = size;
    int64_t half = turned / 2, cache = pith__tensor_count(r->in[1]);
    if (turned < 0 || turned > size || turned % 2 || (packed && x->dims[2] % heads) || !half ||
        cache % half || pith__tensor_count(r->in[2]) != cache ||
        (ids ? pith__tensor_count(ids) != batch * seq : cache != batch * seq * half))
        return pith__fail(r->err, PITH_ERR_ARGUMENT,
                          "caches and position ids do not fit the input");
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t spent = 0;
    for (int64_t i = 0; i < batch * heads * seq; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 32 + 4 * size));
        int64_t b = i / (heads * seq), s = packed ? i / heads % seq : i % seq, row = b * seq + s;
        if (ids) row = ((const int64_t *)ids->data)[row];
        if (row < 0 || row >= cache / half)
            return pith__fail(r->err, PITH_ERR_RUN, "position %lld is outside of a cache of %lld",
                              (long long)row, (long long)(cache / half));
        const double *from = w.in[0] + i * size, *cosine = w.in[1] + row * half,
                     *sine = w.in[2] + row * half;
        double *to = w.out[0] + i * size;
        for (int64_t k = 0; k < half; k++) {
            int64_t p = interleaved ? 2 * k : k, q = interleaved ? 2 * k + 1 : k + half;
            to[p] = cosine[k] * from[p] - sine[k] * from[q];
            to[q] = sine[k] * from[p] + cosine[k] * from[q];
        }
        for (int64_t k = turned; k < size; k++) to[k] = from[k];
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_RotaryEmbedding = {
    .domain = "",
    .name = "RotaryEmbedding",
    .since = 23,
    .newest = 23,
    .min_inputs = 3,
    .max_inputs = 4,
    .max_outputs = 1,
    .types = "hhhl",
    .attrs = "interleaved bool = 0; num_heads int 0..; rotary_embedding_dim int 0.. = 0",
    .infer = rotary_embedding_infer,
    .scratch = pith__wide_scratch,
    .run = rotary_embedding_run,
};

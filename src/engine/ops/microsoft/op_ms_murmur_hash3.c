/* op_ms_murmur_hash3.c - com.microsoft's MurmurHash3: a 32-bit hash of each number or string.
 * Source: ONNX Runtime's ContribOperators.md. */
#include "base/murmur.h"
#include "engine/ops/shared/infer_shapes.h"

static pith_status murmur_infer(pith__infer *c) {
    pith__infer_set(c, 0, pith__node_int(c->node, "positive", 1) ? PITH_U32 : PITH_I32,
                    c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* Numbers are hashed as their bytes, strings as theirs without an end mark. */
static pith_status murmur_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    uint32_t seed = (uint32_t)pith__node_int(r->node, "seed", 0), *y = r->out[0]->data;
    size_t size = pith__element_size(x->dtype);
    for (int64_t i = 0; i < pith__tensor_count(x); i++) {
        PITH_TRY(pith__run_step(r, i * 4));
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

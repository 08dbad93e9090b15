/* op_dropout.c - Dropout: the input as it is, unless training_mode is set. Then a generator that
 * starts from the seed drops elements, so a run can be repeated. */
#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/random_numbers.h"

/* ratio was an attribute before 12 and training a mode of the file; from 7 on a file is made for
 * inference. */
static pith_status dropout_upgrade(pith__node *node, pith_error *err) {
    return pith__upgrade_float(node, "ratio", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

static pith_status dropout_infer(pith__infer *c) {
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    pith__infer_set(c, 1, PITH_BOOL, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status dropout_prepare(pith__prepare *c) {
    int dtype = c->in[0]->dtype;
    return pith__element_size(dtype) && pith__convert_known(dtype, PITH_F64)
               ? PITH_OK
               : pith__fail_dtype(c->err, dtype);
}

/* Outside of training, and for a ratio of 0, the input passes and the mask is all true. Kept
 * elements are divided by the probability to be kept. */
static pith_status dropout_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0], *mask = r->out_count > 1 ? r->out[1] : NULL;
    int64_t n = pith__tensor_count(x);
    float ratio = 0.5f;
    uint8_t training = 0;
    if (pith__has_input(r, 1))
        pith__convert(&ratio, PITH_F32, 0, r->in[1]->data, r->in[1]->dtype, 0, 1, true);
    if (pith__has_input(r, 2))
        pith__convert(&training, PITH_BOOL, 0, r->in[2]->data, r->in[2]->dtype, 0, 1, true);
    if (!training || ratio == 0) {
        if (y && y->data != x->data) PITH_TRY(pith__run_bytes(r, y->data, x->data, x->bytes));
        if (mask && n) memset(mask->data, 1, (size_t)n);
        return PITH_OK;
    }
    if (!(ratio > 0 && ratio < 1))
        return pith__op_fail(r, "ratio is %g; it must be at least 0 and below 1", (double)ratio);
    pith__random g;
    pith__random_seed(&g, (uint32_t)pith__node_int(r->node, "seed", 0));
    for (int64_t i = 0; i < n; i++) {
        PITH_TRY(pith__run_step(r, i));
        bool kept = pith__random_uniform(&g) >= (double)ratio;
        double v;
        pith__convert(&v, PITH_F64, 0, x->data, x->dtype, i, 1, true);
        v = kept ? v / (1.0 - (double)ratio) : 0;
        if (y) pith__convert(y->data, y->dtype, i, &v, PITH_F64, 0, 1, true);
        if (mask) ((uint8_t *)mask->data)[i] = kept;
    }
    return PITH_OK;
}

const pith__op pith__op_Dropout = {
    .domain = "",
    .name = "Dropout",
    .since = 12,
    .newest = 22,
    .min_inputs = 1,
    .max_inputs = 3,
    .max_outputs = 2,
    .types = "xxb",
    .attrs = "consumed_inputs ints @-5; is_test bool = 0 @-6; ratio float = 0.5 @-11; "
             "seed int any @12",
    .upgrade = dropout_upgrade,
    .infer = dropout_infer,
    .prepare = dropout_prepare,
    .run = dropout_run
};

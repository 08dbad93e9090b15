/* op_optional.c - optionals: a value that may be absent. A present one is the tensor or sequence
 * itself. */
#include "base/dtype.h"
#include "engine/ops/op.h"

static pith_status optional_infer_same(pith__infer *c) {
    if (c->in_count == 0 || !c->in[0]) return PITH_OK;
    c->out[0].dtype = c->in[0]->dtype == PITH_NONE ? PITH_UNDEFINED : c->in[0]->dtype;
    c->out[0].item_dtype = c->in[0]->item_dtype;
    return PITH_OK;
}

static pith_status optional_run(pith__run *r) {
    if (!r->out[0]) return PITH_OK;
    if (r->in_count && r->in[0]) return pith__run_copy(r, r->out[0], r->in[0]);
    *r->out[0] = (pith_tensor){ .dtype = PITH_NONE };
    return PITH_OK;
}

const pith__op pith__op_Optional = { .domain = "",
                                     .name = "Optional",
                                     .since = 15,
                                     .newest = 28,
                                     .min_inputs = 0,
                                     .max_inputs = 1,
                                     .max_outputs = 1,
                                     .attrs = "type type",
                                     .flags = PITH_OP_LATE | PITH_OP_SEQUENCES,
                                     .infer = optional_infer_same,
                                     .run = optional_run };

static pith_status optional_run_get(pith__run *r) {
    if (r->in[0]->dtype == PITH_NONE)
        return pith__fail(r->err, PITH_ERR_RUN, "the optional has no element");
    return r->out[0] ? pith__run_copy(r, r->out[0], r->in[0]) : PITH_OK;
}

const pith__op pith__op_OptionalGetElement = { .domain = "",
                                               .name = "OptionalGetElement",
                                               .since = 15,
                                               .newest = 28,
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .max_outputs = 1,
                                               .attrs = "",
                                               .flags = PITH_OP_LATE | PITH_OP_SEQUENCES,
                                               .infer = optional_infer_same,
                                               .run = optional_run_get };

static pith_status optional_infer_has(pith__infer *c) {
    pith__type_set(&c->out[0], PITH_BOOL, 0, NULL);
    return PITH_OK;
}

static pith_status optional_run_has(pith__run *r) {
    *(uint8_t *)r->out[0]->data = r->in_count && r->in[0] && r->in[0]->dtype != PITH_NONE;
    return PITH_OK;
}

const pith__op pith__op_OptionalHasElement = { .domain = "",
                                               .name = "OptionalHasElement",
                                               .since = 15,
                                               .newest = 28,
                                               .min_inputs = 0,
                                               .max_inputs = 1,
                                               .max_outputs = 1,
                                               .attrs = "",
                                               .flags = PITH_OP_SEQUENCES,
                                               .infer = optional_infer_has,
                                               .run = optional_run_has };

/* calibrate.c - re-quantises int8 weights for the inputs they will see (GPTQ).
 *
 * Texts are run, and each matmul's inputs are summed (models/quantize/gram_matrices.h). The weights
 * are read again from their source and packed with the factor of the sum. */
#include "models/quantize/calibrate.h"

#include "engine/ops/shared/linear.h"
#include "models/quantize/gram_matrices.h"

/* Weights that are multiplied somewhere. */
typedef struct product {
    const void *source; /* the contents of the first weight: equal ones are the same matmul */
    const pith__linear *linear;
} product;

typedef struct calibration {
    const pith__calibrate_parts *parts;
    pith__stop *stop; /* may be NULL */
    product *products;
    int64_t *k;
    size_t count;
} calibration;

/* The state of a step if it is a matmul whose weights can be fitted. Other backends have states of
 * their own. */
static const pith__linear *calibrate_linear_of(const pith__step *step) {
    if (step->device->backend != &pith__backend_cpu) return NULL;
    const pith__linear *linear = pith__linear_state(step->node, step->state);
    return linear && linear->way->fit ? linear : NULL;
}

static const void *calibrate_source_of(const pith__step *step) {
    return step->node->inputs[1]->type.data->data;
}

static size_t calibrate_find(void *user, const pith__step *step) {
    const calibration *c = user;
    const pith__linear *linear = calibrate_linear_of(step);
    if (linear)
        for (size_t i = 0; i < c->count; i++)
            if (c->products[i].source == calibrate_source_of(step) &&
                c->products[i].linear->k == linear->k)
                return i;
    return SIZE_MAX;
}

static pith_status calibrate_find_products(calibration *c, pith__arena *arena, pith_error *err) {
    const pith__plan *plan = c->parts->plans[0];
    c->products = pith__arena_array(arena, plan->step_count, sizeof *c->products);
    c->k = pith__arena_array(arena, plan->step_count, sizeof *c->k);
    if (!c->products || !c->k)
        return pith__fail_memory(err, plan->step_count * sizeof *c->products);
    for (size_t i = 0; i < plan->step_count; i++) {
        const pith__step *step = &plan->steps[i];
        if (!calibrate_linear_of(step) || calibrate_find(c, step) != SIZE_MAX) continue;
        c->k[c->count] = calibrate_linear_of(step)->k;
        c->products[c->count++] = (product){ calibrate_source_of(step), calibrate_linear_of(step) };
    }
    return c->count
               ? PITH_OK
               : pith__fail(err, PITH_ERR_ARGUMENT, "the model has no int8 matmuls to calibrate");
}

/* Columns are packed by themselves, so a call that must end in between leaves weights that work. */
static pith_status calibrate_pack_again(pith__packed_step step, const pith__linear *linear,
                                        const pith__factor *factor, pith__arena *scratch,
                                        pith__stop *stop, pith_error *err) {
    pith__packer packer = { .arena = scratch, .steps = &step, .count = 1, .stop = stop };
    linear->way->fit(linear, factor);
    pith_status status = pith__packer_fill(&packer, NULL, NULL, err);
    linear->way->fit(linear, NULL);
    return status;
}

/* Packs the weights of a matmul wherever they are, in both plans. */
static pith_status calibrate_round(void *user, size_t at, const pith__factor *factor,
                                   pith__arena *scratch, pith_error *err) {
    const calibration *c = user;
    for (size_t n = 0; n < 2 && c->parts->plans[n]; n++) {
        const pith__plan *plan = c->parts->plans[n];
        const pith__step *step = plan->steps;
        for (size_t i = 0; i < plan->packed_count; i++) { /* in the order of the steps */
            while (step->node != plan->packed[i].node) step++;
            if (calibrate_find(user, step) == at)
                PITH_TRY(calibrate_pack_again(plan->packed[i], calibrate_linear_of(step), factor,
                                              scratch, c->stop, err));
        }
    }
    return PITH_OK;
}

pith_status pith__calibrate(const pith__calibrate_parts *parts,
                            const pith_calibrate_options *options, pith_error *err) {
    pith__stop own;
    calibration c = { .parts = parts, .stop = pith__stop_begin(&own, &options->call) };
    pith__arena arena;
    pith__arena_init(&arena, parts->allocator);
    pith_status status = calibrate_find_products(&c, &arena, err);
    const pith__gram_matrices grams = { .encoder = parts->encoder,
                                        .tokenizer = parts->tokenizer,
                                        .allocator = parts->allocator,
                                        .options = options,
                                        .isa = parts->plans[0]->isa,
                                        .row_lengths = c.k,
                                        .count = c.count,
                                        .user = &c,
                                        .find = calibrate_find,
                                        .round = calibrate_round };
    if (!status) status = pith__gram_matrices_run(&grams, err);
    pith__arena_free(&arena);
    return status;
}

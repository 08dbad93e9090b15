/* head_scores.c - the scores of a classifier: one row of logits per text, through an activation.
 *
 * A text without tokens gives zeros, since the model says nothing about it. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/unary.h"
#include "models/heads/scores_request.h"
#include "models/modules/answer_logit.h"

typedef struct scores_state {
    pith__unary_f32_fn *sigmoid;
    pith__row_f32_fn *softmax;
    float *scores;
} scores_state;

static pith_status scores_open(const void **state, const pith__head_model *model,
                               const void *request, pith__arena *arena, pith_error *err) {
    const pith__scores_request *r = request;
    scores_state *s = pith__arena_array(arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(err, sizeof *s);
    s->scores = r->scores;
    pith__lacks lacks = { .count = 0 };
    if (r->activation == PITH_ACTIVATION_SIGMOID)
        s->sigmoid = PITH_KERNEL_NEED(pith__unary_f32_fn, "sigmoid", PITH_F32, model->isa, &lacks);
    if (r->activation == PITH_ACTIVATION_SOFTMAX)
        s->softmax = PITH_KERNEL_NEED(pith__row_f32_fn, "softmax", PITH_F32, model->isa, &lacks);
    PITH_TRY(pith__lacks_check(&lacks, err));
    *state = s;
    return PITH_OK;
}

static pith_status scores_emit(const void *state, const pith__head_rows *x, pith_error *err) {
    const scores_state *s = state;
    float *place = s->scores + (int64_t)x->text * x->width;
    (void)err;
    if (x->bad)
        for (int64_t i = 0; i < x->width; i++) place[i] = NAN;
    else if (!x->count)
        memset(place, 0, (size_t)x->width * sizeof *place);
    else if (s->sigmoid)
        s->sigmoid(x->rows, place, (size_t)x->width);
    else if (s->softmax)
        s->softmax(x->rows, place, 1, x->width);
    else
        memcpy(place, x->rows, (size_t)x->width * sizeof *place);
    return PITH_OK;
}

const pith__head pith__head_scores = { .name = "scores",
                                       .phase = "score",
                                       .outputs = PITH_ANSWER_OUTPUT " logits scores",
                                       .takes = PITH_HEAD_TEXTS,
                                       .open = scores_open,
                                       .emit = scores_emit };

/* head_scores.c - the scores of a classifier: one row of logits per text, through an activation.
 *
 * A text without tokens gives zeros, since the model says nothing about it. */
#include <string.h>

#include "base/error.h"
#include "models/heads/score_request.h"
#include "models/modules/answer_logit.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/unary.h"

typedef struct scores_state {
    pith_unary_f32_fn *sigmoid;
    pith_row_f32_fn *softmax;
    float *scores;
} scores_state;

static pith_status scores_open(const void **state, const pith_head_model *model, const void *request, pith_arena *arena,
                               pith_error *err) {
    const pith_scores *r = request;
    scores_state *s = pith_arena_array(arena, 1, sizeof *s);
    if (!s) return pith_fail_memory(err, sizeof *s);
    s->scores = r->scores;
    pith_lacks lacks = { .count = 0 };
    if (r->activation == PITH_ACTIVATION_SIGMOID)
        s->sigmoid = PITH_KERNEL_NEED(pith_unary_f32_fn, "sigmoid", PITH_F32, model->isa, &lacks);
    if (r->activation == PITH_ACTIVATION_SOFTMAX)
        s->softmax = PITH_KERNEL_NEED(pith_row_f32_fn, "softmax", PITH_F32, model->isa, &lacks);
    PITH_TRY(pith_lacks_check(&lacks, err));
    *state = s;
    return PITH_OK;
}

static pith_status scores_emit(const void *state, const pith_head_rows *x, pith_error *err) {
    const scores_state *s = state;
    float *place = s->scores + (int64_t)x->text * x->width;
    (void)err;
    if (!x->count)
        memset(place, 0, (size_t)x->width * sizeof *place);
    else if (s->sigmoid)
        s->sigmoid(x->rows, place, (size_t)x->width);
    else if (s->softmax)
        s->softmax(x->rows, place, 1, x->width);
    else
        memcpy(place, x->rows, (size_t)x->width * sizeof *place);
    return PITH_OK;
}

const pith_head pith_head_scores = { .name = "scores",
                                     .phase = "score",
                                     .outputs = PITH_ANSWER_OUTPUT " logits scores",
                                     .takes = PITH_HEAD_TEXTS,
                                     .open = scores_open,
                                     .emit = scores_emit };

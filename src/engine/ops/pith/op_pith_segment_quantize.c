/* op_pith_segment_quantize.c - pith.SegmentQuantize: DynamicQuantizeLinear for each text of packed
 * tokens.
 *
 *   inputs      x f32 [tokens, …]; offsets i64 [texts + 1], where each text begins (absent: each
 *               row is a text)
 *   outputs     y u8, as x; scale f32 and zero point u8 [tokens], the text's at each of its tokens
 *
 * The scale of a text is that of its own numbers, so its bits do not depend on the batch. */
#include "engine/kernels/small_floats.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/quantize_loops.h"

/* Scale and zero point have one number per token, so that they follow their rows through other
 * steps. */
static pith_status segment_quantize_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *offsets = pith__has_input(c, 1) ? c->in[1] : NULL;
    if (x->rank == 0 || x->dtype != PITH_F32) return pith__op_fail(c, "x must be float32 by token");
    if (offsets && (offsets->dtype != PITH_I64 || offsets->rank != 1))
        return pith__op_fail(c, "offsets must be an int64 vector");
    pith__infer_set(c, 0, PITH_U8, x->rank, x->dims);
    pith__infer_set(c, 1, PITH_F32, x->rank < 0 ? -1 : 1, x->dims);
    pith__infer_set(c, 2, PITH_U8, x->rank < 0 ? -1 : 1, x->dims);
    return PITH_OK;
}

typedef struct segments {
    const pith__quantize_loops *loops;
    const float *x;
    const int64_t *offsets; /* NULL: a row each */
    int64_t width;
    uint8_t *y, *zeros; /* these three: NULL if the output is absent */
    float *scales;
} segments;

/* The range of the text's numbers, then its bytes. */
static void segment_quantize_text(void *context, size_t text, int worker) {
    const segments *s = context;
    (void)worker;
    int64_t from = s->offsets ? s->offsets[text] : (int64_t)text,
            to = s->offsets ? s->offsets[text + 1] : from + 1;
    float scale, zero;
    pith__dynamic_scale(&scale, &zero, s->x + from * s->width, (size_t)((to - from) * s->width),
                        s->loops->range);
    if (s->scales) {
        for (int64_t i = from; i < to; i++) s->scales[i] = scale;
    }
    if (s->zeros) {
        for (int64_t i = from; i < to; i++) s->zeros[i] = (uint8_t)zero;
    }
    if (s->y)
        s->loops->quantize(s->x + from * s->width, s->y + from * s->width,
                           (size_t)((to - from) * s->width), scale, 0.0f - zero, 255.0f - zero,
                           (int32_t)zero);
}

/* Texts are independent. Offsets must cover every token once. */
static pith_status segment_quantize_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *offsets = pith__has_input(r, 1) ? r->in[1] : NULL;
    int64_t rows = x->dims[0], texts = offsets ? offsets->dims[0] - 1 : rows;
    const int64_t *at = offsets ? offsets->data : NULL;
    bool covers = texts >= 0 && (!at || (at[0] == 0 && at[texts] == rows));
    const int64_t pairs = covers && at ? texts : 0;
    for (int64_t t = 0; t < pairs; t++) covers &= at[t] <= at[t + 1];
    if (!covers) return pith__op_fail(r, "offsets do not cover the tokens");
    if (!rows) return PITH_OK;
    segments s = { .loops = r->state,
                   .x = x->data,
                   .offsets = at,
                   .width = pith__tensor_count(x) / rows,
                   .y = r->out[0] ? r->out[0]->data : NULL,
                   .scales = r->out_count > 1 && r->out[1] ? r->out[1]->data : NULL,
                   .zeros = r->out_count > 2 && r->out[2] ? r->out[2]->data : NULL };
    pith__run_parallel(r, segment_quantize_text, &s, (size_t)texts);
    return PITH_OK;
}

const pith__op pith__op_SegmentQuantize_pith = { .domain = "pith",
                                                 .name = "SegmentQuantize",
                                                 .since = 1,
                                                 .newest = 1,
                                                 .min_inputs = 1,
                                                 .max_inputs = 2,
                                                 .max_outputs = 3,
                                                 .attrs = "",
                                                 .infer = segment_quantize_infer,
                                                 .prepare = pith__quantize_loops_prepare,
                                                 .run = segment_quantize_run };

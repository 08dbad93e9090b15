/* op_stft.c - STFT: the DFT of frames of a signal, each weighted by a window. Frames begin
 * frame_step apart; a last one that does not fit is left out. Source: ONNX STFT (opset 17). */
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/fourier_transform.h"

/* The frame length: given, else the window's, else the signal's. */
static bool stft_frame_of(const pith__infer *c, pith__dim *frame) {
    if (c->in_count > 3 && c->in[3]) return pith__type_elem(c->in[3], 0, frame);
    const pith__type *t = c->in_count > 2 && c->in[2] ? c->in[2] : c->in[0];
    if (t->rank < 1) return false;
    *frame = t == c->in[0] ? t->dims[1] : t->dims[0];
    return true;
}

/* floor((signal - frame) / step) + 1 frames; onesided keeps floor(frame / 2) + 1 bins. */
static pith_status stft_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 3)
        return pith__op_fail(c, "the signal has %d dimensions, not 3", x->rank);
    pith__dim dims[4] = { x->rank == 3 ? x->dims[0] : PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN,
                          PITH_DIM_UNKNOWN, 2 },
              frame, step;
    if (x->rank == 3 && stft_frame_of(c, &frame) && pith__type_elem(c->in[1], 0, &step)) {
        if ((pith__dim_known(step) && step < 1) || (pith__dim_known(frame) && frame < 1))
            return pith__op_fail(c, "frame step and frame length must be positive");
        if (pith__dim_known(frame) && pith__dim_known(x->dims[1]) && frame > x->dims[1])
            return pith__op_fail(c, "a frame of %lld is longer than the signal", (long long)frame);
        pith__dim room = pith__dim_apply(c->dims, PITH_DIM_SUB, x->dims[1], frame);
        dims[1] = pith__dim_apply(c->dims, PITH_DIM_ADD,
                                  pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, room, step), 1);
        dims[2] = pith__node_int(c->node, "onesided", 1) == 0
                      ? frame
                      : pith__dim_apply(c->dims, PITH_DIM_ADD,
                                        pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, frame, 2), 1);
    }
    pith__type_set(&c->out[0], x->dtype, 4, dims);
    return PITH_OK;
}

static pith_status stft_scratch(const pith__infer *c, const void *state, int threads,
                                size_t *bytes) {
    pith__dim frame;
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    return stft_frame_of(c, &frame) ? pith__transform_bytes(c, frame, bytes) : PITH_OK;
}

/* Frame by frame of each signal, weighted as it is loaded. A complex signal has two parts. */
static pith_status stft_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0], *window = r->in_count > 2 ? r->in[2] : NULL;
    const pith_tensor *length = r->in_count > 3 ? r->in[3] : NULL;
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t step = pith__transform_index(r->in[1]), parts = x->dims[2], frames = y->dims[1],
            bins = y->dims[2];
    int64_t n = window ? window->dims[0] : x->dims[1];
    if (length) n = pith__transform_index(length);
    if (window && pith__tensor_count(window) < n)
        return pith__op_fail(r, "the window is shorter than a frame");
    if (parts != 1 && parts != 2)
        return pith__op_fail(r, "the last dimension is %lld, not 1 or 2", (long long)parts);
    pith__transform t;
    int64_t spent = 0;
    PITH_TRY(pith__transform_init(&t, r, w.rest, n, false));
    for (int64_t f = 0; f < x->dims[0] * frames; f++) {
        PITH_TRY(pith__run_spend(r, &spent, 16 * n));
        const double *from = w.in[0] + (f / frames * x->dims[1] + f % frames * step) * parts;
        double *to = w.out[0] + f * bins * 2;
        for (int64_t i = 0; i < n; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 4));
            double weight = window ? w.in[2][i] : 1;
            pith__transform_put(&t, i, weight * from[i * parts],
                                parts == 2 ? weight * from[i * parts + 1] : 0);
        }
        PITH_TRY(pith__transform_run(&t, false));
        for (int64_t i = 0; i < 2 * bins; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 4));
            to[i] = pith__transform_get(&t, i / 2, (int)(i % 2));
        }
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_STFT = {
    .domain = "",
    .name = "STFT",
    .since = 17,
    .newest = 17,
    .min_inputs = 2,
    .max_inputs = 4,
    .max_outputs = 1,
    .types = "fifi",
    .attrs = "onesided bool = 1",
    .shape_inputs = 1u << 1 | 1u << 3,
    .infer = stft_infer,
    .scratch = stft_scratch,
    .run = stft_run,
};

/* op_window_functions.c - HannWindow, HammingWindow and BlackmanWindow: tables of a sum of cosines
 * of the place in the window. Source: ONNX operators of these names (opset 17). */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

#define PI 3.14159265358979323846

/* The size is the content of the input, so the shape is known as far as that is. */
static pith_status window_infer(pith__infer *c) {
    pith__dim size;
    if (!pith__type_elem(c->in[0], 0, &size)) size = PITH_DIM_UNKNOWN;
    int dtype = pith__node_choice(c->node, "output_datatype", PITH_F32);
    if (dtype != PITH_F64 && !pith__convert_known(PITH_F64, dtype))
        return pith__op_fail(c, "output_datatype %d is not a supported dtype", dtype);
    pith__type_set(&c->out[0], dtype, 1, &size);
    return PITH_OK;
}

/* a - b cos(2 pi i / n) + c cos(4 pi i / n). */
static pith_status window_run(pith__run *r, double a, double b, double c) {
    const pith_tensor *y = r->out[0];
    double n = (double)y->dims[0] - (pith__node_int(r->node, "periodic", 1) ? 0 : 1);
    for (int64_t i = 0; i < y->dims[0]; i++) {
        PITH_TRY(pith__run_step(r, i));
        double angle = 2 * PI * (double)i / n;
        pith__wide_put(y, i, a - b * cos(angle) + c * cos(2 * angle));
    }
    return PITH_OK;
}

static pith_status window_run_hann(pith__run *r) { return window_run(r, 0.5, 0.5, 0); }
static pith_status window_run_hamming(pith__run *r) {
    return window_run(r, 25.0 / 46, 21.0 / 46, 0);
}
static pith_status window_run_blackman(pith__run *r) { return window_run(r, 0.42, 0.5, 0.08); }

const pith__op pith__op_BlackmanWindow = {
    .domain = "",
    .name = "BlackmanWindow",
    .since = 17,
    .newest = 17,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "i",
    .attrs = "output_datatype dtype = 1; periodic bool = 1",
    .shape_inputs = 1u << 0,
    .infer = window_infer,
    .run = window_run_blackman,
};

const pith__op pith__op_HammingWindow = {
    .domain = "",
    .name = "HammingWindow",
    .since = 17,
    .newest = 17,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "i",
    .attrs = "output_datatype dtype = 1; periodic bool = 1",
    .shape_inputs = 1u << 0,
    .infer = window_infer,
    .run = window_run_hamming,
};

const pith__op pith__op_HannWindow = {
    .domain = "",
    .name = "HannWindow",
    .since = 17,
    .newest = 17,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "i",
    .attrs = "output_datatype dtype = 1; periodic bool = 1",
    .shape_inputs = 1u << 0,
    .infer = window_infer,
    .run = window_run_hann,
};

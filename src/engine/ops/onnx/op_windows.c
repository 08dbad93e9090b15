/* op_windows.c - HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: tables from a few
 * numbers. Source: ONNX operators of these names. */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

#define PI 3.14159265358979323846

static double windows_number(const pith_tensor *t) {
    return pith__tensor_count(t) > 0 ? pith__wide_get(t, 0) : 0;
}

static pith_status infer_window(pith__infer *c) {
    pith__dim size;
    if (!pith__type_elem(c->in[0], 0, &size)) size = PITH_DIM_UNKNOWN;
    int dtype = pith__node_choice(c->node, "output_datatype", PITH_F32);
    if (dtype != PITH_F64 && !pith__convert_known(PITH_F64, dtype))
        return pith__op_fail(c, "output_datatype %d is not a supported dtype", dtype);
    pith__type_set(&c->out[0], dtype, 1, &size);
    return PITH_OK;
}

/* a - b cos(2 pi i / n) + c cos(4 pi i / n). */
static pith_status run_window(pith__run *r, double a, double b, double c) {
    const pith_tensor *y = r->out[0];
    double n = (double)y->dims[0] - (pith__node_int(r->node, "periodic", 1) ? 0 : 1);
    for (int64_t i = 0; i < y->dims[0]; i++) {
        double angle = 2 * PI * (double)i / n;
        pith__wide_put(y, i, a - b * cos(angle) + c * cos(2 * angle));
    }
    return PITH_OK;
}

static pith_status run_hann(pith__run *r) { return run_window(r, 0.5, 0.5, 0); }
static pith_status run_hamming(pith__run *r) { return run_window(r, 25.0 / 46, 21.0 / 46, 0); }
static pith_status run_blackman(pith__run *r) { return run_window(r, 0.42, 0.5, 0.08); }

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
    .infer = infer_window,
    .run = run_blackman,
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
    .infer = infer_window,
    .run = run_hamming,
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
    .infer = infer_window,
    .run = run_hann,
};

static pith_status infer_mel(pith__infer *c) {
    pith__dim bins, length;
    if (!pith__type_elem(c->in[0], 0, &bins)) bins = PITH_DIM_UNKNOWN;
    if (!pith__type_elem(c->in[1], 0, &length)) length = PITH_DIM_UNKNOWN;
    pith__dim rows = pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, length, 2);
    pith__dim dims[2] = { pith__dim_apply(c->dims, PITH_DIM_ADD, rows, 1), bins };
    int dtype = pith__node_choice(c->node, "output_datatype", PITH_F32);
    if (dtype != PITH_F64 && !pith__convert_known(PITH_F64, dtype))
        return pith__op_fail(c, "output_datatype %d is not a supported dtype", dtype);
    pith__type_set(&c->out[0], dtype, 2, dims);
    return PITH_OK;
}

static double mel(double hertz) { return 2595 * log10(1 + hertz / 700); }
static double hertz(double m) { return 700 * (pow(10, m / 2595) - 1); }

static pith_status run_mel(pith__run *r) {
    const pith_tensor *y = r->out[0];
    double length = windows_number(r->in[1]), rate = windows_number(r->in[2]),
           low = mel(windows_number(r->in[3])), high = mel(windows_number(r->in[4]));
    int64_t rows = y->dims[0], bins = y->dims[1];
    double step = (high - low) / (double)(bins + 2);
    for (int64_t i = 0; i < rows * bins; i++) pith__wide_put(y, i, 0);
    for (int64_t b = 0; b < bins; b++) {
        int64_t edge[3]; /* left, centre and right of the triangle, in spectrogram bins */
        for (int k = 0; k < 3; k++) {
            double e = floor((length + 1) * hertz((double)(b + k) * step + low) / rate);
            if (!(e >= 0 && e < (double)rows))
                return pith__fail(r->err, PITH_ERR_RUN,
                                  "the frequency edges are outside of the spectrogram");
            edge[k] = (int64_t)e;
        }
        if (edge[0] == edge[1]) pith__wide_put(y, edge[1] * bins + b, 1);
        for (int64_t j = edge[0]; edge[1] > edge[0] && j <= edge[1]; j++)
            pith__wide_put(y, j * bins + b, (double)(j - edge[0]) / (double)(edge[1] - edge[0]));
        for (int64_t j = edge[1]; j < edge[2]; j++)
            pith__wide_put(y, j * bins + b, (double)(edge[2] - j) / (double)(edge[2] - edge[1]));
    }
    return PITH_OK;
}

const pith__op pith__op_MelWeightMatrix = {
    .domain = "",
    .name = "MelWeightMatrix",
    .since = 17,
    .newest = 17,
    .min_inputs = 5,
    .max_inputs = 5,
    .max_outputs = 1,
    .types = "iiif",
    .attrs = "output_datatype dtype = 1",
    .shape_inputs = 1u << 0 | 1u << 1,
    .infer = infer_mel,
    .run = run_mel,
};

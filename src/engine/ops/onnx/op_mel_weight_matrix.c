/* op_mel_weight_matrix.c - MelWeightMatrix: the weights that turn a spectrogram into mel bands, one
 * triangle per band between three edges that are even on the mel scale. Source: ONNX
 * MelWeightMatrix (opset 17). */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

static double mel_number(const pith_tensor *t) {
    return pith__tensor_count(t) > 0 ? pith__wide_get(t, 0) : 0;
}

static pith_status mel_infer(pith__infer *c) {
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

static double mel(double mel_hertz) { return 2595 * log10(1 + mel_hertz / 700); }
static double mel_hertz(double m) { return 700 * (pow(10, m / 2595) - 1); }

/* Edges are rounded down to bins, so two may fall together: a triangle without a left side then has
 * its peak set alone. */
static pith_status mel_run(pith__run *r) {
    const pith_tensor *y = r->out[0];
    double length = mel_number(r->in[1]), rate = mel_number(r->in[2]),
           low = mel(mel_number(r->in[3])), high = mel(mel_number(r->in[4]));
    int64_t rows = y->dims[0], bins = y->dims[1];
    double step = (high - low) / (double)(bins + 2);
    for (int64_t i = 0; i < rows * bins; i++) {
        PITH_TRY(pith__run_step(r, i));
        pith__wide_put(y, i, 0);
    }
    for (int64_t b = 0; b < bins; b++) {
        PITH_TRY(pith__run_look(r));
        int64_t edge[3]; /* left, centre and right of the triangle, in spectrogram bins */
        for (int k = 0; k < 3; k++) {
            double e = floor((length + 1) * mel_hertz((double)(b + k) * step + low) / rate);
            if (!(e >= 0 && e < (double)rows))
                return pith__fail(r->err, PITH_ERR_RUN,
                                  "the frequency edges are outside of the spectrogram");
            edge[k] = (int64_t)e;
        }
        if (edge[0] == edge[1]) pith__wide_put(y, edge[1] * bins + b, 1);
        if (edge[1] > edge[0]) {
            for (int64_t j = edge[0]; j <= edge[1]; j++)
                pith__wide_put(y, j * bins + b,
                               (double)(j - edge[0]) / (double)(edge[1] - edge[0]));
        }
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
    .infer = mel_infer,
    .run = mel_run,
};

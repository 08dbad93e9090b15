/* calibrate.h - GPTQ for int8 weights: rounding errors are moved into directions that real inputs rarely use.
 *
 * Source: Frantar et al., GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers. */
#ifndef PITH_QUANTIZE_CALIBRATE_H
#define PITH_QUANTIZE_CALIBRATE_H

#include "encode/encoder.h"

/* What is calibrated. All of it outlives the call, and nobody else uses it meanwhile. */
typedef struct pith_calibrate_parts {
    pith_encoder *encoder;     /* runs the texts */
    const pith_plan *plans[2]; /* whose weights are rounded: the encoder's own first; the other may be NULL */
    const pith_tokenizer *tokenizer;
    const pith_allocator *allocator;
} pith_calibrate_parts;

/* Rounds the weights of both plans in place. See pith_model_calibrate. PITH_ERR_ARGUMENT: nothing is in 8 bits. */
pith_status pith_calibrate(const pith_calibrate_parts *parts, const pith_calibrate_options *options, pith_error *err);

#endif

/* calibrate.h - GPTQ for int8 weights: rounding errors are moved into directions that real inputs
 * rarely use.
 *
 * Source: Frantar et al., GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
 * Transformers. */
#ifndef PITH_MODELS_QUANTIZE_CALIBRATE_H
#define PITH_MODELS_QUANTIZE_CALIBRATE_H

#include "models/encode/encoder.h"

/* The parts of the model to calibrate. They must outlive the call, and no other call may use them
 * meanwhile. */
typedef struct pith__calibrate_parts {
    pith__encoder *encoder;     /* runs the texts */
    const pith__plan *plans[2]; /* the plans whose weights are calibrated: the encoder's first; the
                                   other may be NULL */
    const pith_tokenizer *tokenizer;
    const pith_allocator *allocator;
} pith__calibrate_parts;

/* Rounds the weights of both plans in place. See pith_model_calibrate. Returns PITH_ERR_ARGUMENT if
 * no weights are in int8. */
pith_status pith__calibrate(const pith__calibrate_parts *parts,
                            const pith_calibrate_options *options, pith_error *err);

#endif

/* gram_matrices.h - what texts bring to matmuls: the sum of x^T x over the rows x that each one
 * gets, its gram matrix.
 *
 * The factor of the matrix says which rounding errors cost most and how one weight compensates for
 * another (engine/kernels/quantize.h). */
#ifndef PITH_MODELS_QUANTIZE_GRAM_MATRICES_H
#define PITH_MODELS_QUANTIZE_GRAM_MATRICES_H

#include "models/encode/encoder.h"

struct pith__factor; /* engine/kernels/quantize.h */

typedef struct pith__gram_matrices {
    pith__encoder *encoder;          /* runs the texts; no other call may use it meanwhile */
    const pith_tokenizer *tokenizer; /* makes texts up, if there are none */
    const pith_allocator *allocator;
    const pith_calibrate_options *options; /* the texts, and the call's stop and progress */
    pith__isa isa;
    const int64_t *row_lengths; /* [count] of each matmul */
    size_t count;
    void *user;
    /* The matmul that a step is; count or more: none that counts. Input 0 of the step has its rows,
     * in f32. */
    size_t (*find)(void *user, const pith__step *step);
    /* Gets the factor of a matmul, which lives until it returns. Matmuls without a row are left
     * out. Texts that run later see what it changed. scratch is reset after it. */
    pith_status (*round)(void *user, size_t product, const struct pith__factor *factor,
                         pith__arena *scratch, pith_error *err);
} pith__gram_matrices;

pith_status pith__gram_matrices_run(const pith__gram_matrices *job, pith_error *err);

#endif

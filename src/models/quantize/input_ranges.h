/* input_ranges.h - the range of the numbers that matmuls get, over texts or tensors, for scales
 * that are fixed beforehand; and some of these rows, to measure errors with. */
#ifndef PITH_MODELS_QUANTIZE_INPUT_RANGES_H
#define PITH_MODELS_QUANTIZE_INPUT_RANGES_H

#include "models/encode/encoder.h"
#include "pith/transform.h"

/* Rows of a matmul that are kept. More make measured errors steadier; fewer take less memory and
 * time. */
enum { PITH_INPUT_RANGE_ROWS = 96 };

typedef struct pith__input_range {
    float low, high; /* low <= 0 <= high */
    float *rows;     /* [row_count, k], in the arena */
    int64_t row_count;
} pith__input_range;

typedef struct pith__input_ranges {
    /* Either texts … */
    pith__encoder *encoder; /* NULL: tensors are run; no other call may use it meanwhile */
    const pith_tokenizer *tokenizer;
    const pith_calibrate_options *options; /* and the call's stop, of tensors too */
    /* … or tensors: [sets, inputs of the program] */
    const pith__program *program;
    const pith_tensor *inputs;
    size_t sets;
    const pith_allocator *allocator;
    const int64_t *row_lengths; /* [count] of each matmul */
    size_t count;
    void *user;
    size_t (*find)(void *user, const pith__step *step); /* as in gram_matrices.h */
    bool rows_only;   /* limits are not wanted: it ends when each matmul that got rows has all that
                         are kept */
    int32_t method;   /* a pith_range_method */
    float percentile; /* of the numbers that are inside, such as 99.99 */
} pith__input_ranges;

/* ranges: [count]; a matmul without a row gets a row_count of 0. The arena gets the rows. The same
 * texts or tensors give the same ranges on every processor and any number of threads. */
pith_status pith__input_ranges_run(pith__input_range *ranges, const pith__input_ranges *job,
                                   pith__arena *arena, pith_error *err);

#endif

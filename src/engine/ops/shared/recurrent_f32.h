/* recurrent_f32.h - RNN, GRU and LSTM in f32 with constant weights and the usual functions.
 *
 * Steps are taken in blocks. All input projections of a block are one matmul per row of the batch;
 * then the cells go step by step, the states of all rows of a part times the packed recurrent
 * weights. Directions and rows of the batch are independent of each other, so threads share
 * them. */
#ifndef PITH_ENGINE_OPS_SHARED_RECURRENT_F32_H
#define PITH_ENGINE_OPS_SHARED_RECURRENT_F32_H

#include "engine/kernels/binary.h"
#include "engine/kernels/cells.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/unary.h"
#include "engine/ops/shared/infer_shapes.h"

typedef enum pith__cell { PITH_CELL_RNN, PITH_CELL_GRU, PITH_CELL_LSTM } pith__cell;

typedef struct pith__recur {
    bool possible;
    pith__cell cell;
    bool first_is_reverse, batch_first, linear_before_reset;
    int64_t directions, inputs, hidden;
    pith__gemm_f32_fn *gemm;
    pith__lstm_cell_fn *lstm;
    pith__gru_cell_fn *gru;
    pith__gru_gates_fn *gates;
    pith__gru_finish_fn *finish;
    pith__unary_f32_fn *rnn; /* the function of RNN */
    pith__binary_fn *add;
    const void *w, *r;              /* packed, a direction after the other; R of GRU may be two
                                       matrices */
    int64_t w_size, r_size, r_rest; /* floats of a direction's; where the candidate's matrix
                                       begins */
} pith__recur;

static inline int64_t pith__cell_gates(pith__cell c) {
    if (c == PITH_CELL_RNN) return 1;
    return c == PITH_CELL_GRU ? 3 : 4;
}

/* The caller has set the fields up to linear_before_reset, and `directions`. Inputs are X, W, R, B,
 * lengths, h0, c0. rnn: name of RNN's function, a family of unary.h. Sets p->possible, and packs W
 * and R if so. */
pith_status pith__recur_prepare(pith__recur *p, pith__prepare *c, const char *rnn);
/* Sets *bytes to the scratch for X [steps, batch, inputs], dims in this order; false on overflow.
 */
bool pith__recur_scratch(const pith__recur *p, int64_t steps, int64_t batch, int threads,
                         size_t *bytes);
/* Sizes of the inputs were checked. */
pith_status pith__recur_run(pith__run *r, const pith__recur *p);

#endif

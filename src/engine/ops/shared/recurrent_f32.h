/* recurrent_f32.h - RNN, GRU and LSTM in f32 with constant weights and the usual functions.
 *
 * Steps are taken in blocks. All input projections of a block are one matmul per row of the batch; then the cells go
 * step by step, the states of all rows of a part times the packed recurrent weights. Directions and rows of the batch
 * are independent of each other, so threads share them. */
#ifndef PITH_ENGINE_OPS_SHARED_RECURRENT_F32_H
#define PITH_ENGINE_OPS_SHARED_RECURRENT_F32_H

#include "engine/kernels/binary.h"
#include "engine/kernels/cells.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/unary.h"
#include "engine/ops/shared/infer_shapes.h"

typedef enum pith_cell { PITH_CELL_RNN, PITH_CELL_GRU, PITH_CELL_LSTM } pith_cell;

typedef struct pith_recur {
    bool possible;
    pith_cell cell;
    bool first_is_reverse, batch_first, linear_before_reset;
    int64_t directions, inputs, hidden;
    pith_gemm_f32_fn *gemm;
    pith_lstm_cell_fn *lstm;
    pith_gru_cell_fn *gru;
    pith_gru_gates_fn *gates;
    pith_gru_finish_fn *finish;
    pith_unary_f32_fn *rnn; /* the function of RNN */
    pith_binary_fn *add;
    const void *w, *r;              /* packed, a direction after the other; R of GRU may be two matrices */
    int64_t w_size, r_size, r_rest; /* floats of a direction's; where the candidate's matrix begins */
} pith_recur;

static inline int64_t pith_cell_gates(pith_cell c) { return c == PITH_CELL_RNN ? 1 : c == PITH_CELL_GRU ? 3 : 4; }

/* The caller has set the fields up to linear_before_reset, and `directions`. Inputs are X, W, R, B, lengths, h0, c0.
 * rnn: name of RNN's function, a family of unary.h. Sets p->possible, and packs W and R if so. */
pith_status pith_recur_prepare(pith_recur *p, pith_prepare *c, const char *rnn);
/* Sets *bytes to the scratch for X [steps, batch, inputs], dims in this order; false on overflow. */
bool pith_recur_scratch(const pith_recur *p, int64_t steps, int64_t batch, int threads, size_t *bytes);
/* Sizes of the inputs were checked. */
pith_status pith_recur_run(pith_run *r, const pith_recur *p);

#endif

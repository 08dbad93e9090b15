/* cells.h - one step of the cells of LSTM and GRU with their usual functions. x: the gates from the
 * input, g: those from the state, gate after gate, n each. Every element by itself; sums are fused
 * where said. */
#ifndef PITH_ENGINE_KERNELS_CELLS_H
#define PITH_ENGINE_KERNELS_CELLS_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* Gates i, o, f, c: c = fma(sigmoid f, c, sigmoid i * tanh c'), h = sigmoid o * tanh c. Family
 * "lstm_cell". */
typedef void pith__lstm_cell_fn(float *h, float *c, const float *x, const float *g, int64_t n);
PITH_KERNEL_DECLARE(lstm_cell_f32, pith__lstm_cell_fn)

/* Gates z, r, h: z = sigmoid(x + g), r = sigmoid(x + g). Family "gru_cell", with the candidate
 * tanh(fma(r, g + bias, x)), bias NULL: 0; h = fma(z, h - candidate, candidate). */
typedef void pith__gru_cell_fn(float *h, const float *x, const float *g, const float *bias,
                               int64_t n);
PITH_KERNEL_DECLARE(gru_cell_f32, pith__gru_cell_fn)
/* Family "gru_gates": z, and reset = r * h, which is multiplied for the candidate. g: two gates. */
typedef void pith__gru_gates_fn(float *z, float *reset, const float *h, const float *x,
                                const float *g, int64_t n);
PITH_KERNEL_DECLARE(gru_gates_f32, pith__gru_gates_fn)
/* Family "gru_finish": the candidate is tanh(x + g); h as above. */
typedef void pith__gru_finish_fn(float *h, const float *z, const float *x, const float *g,
                                 int64_t n);
PITH_KERNEL_DECLARE(gru_finish_f32, pith__gru_finish_fn)

#endif

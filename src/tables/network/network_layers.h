/* network_layers.h - the parts of a network, forwards and backwards, on packs of cells. */
#ifndef PITH_TABLES_NETWORK_NETWORK_LAYERS_H
#define PITH_TABLES_NETWORK_NETWORK_LAYERS_H

#include "engine/kernels/gemm.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/train.h"
#include "tables/network/network.h"

typedef struct pith_network_kernels {
    pith_gemm_f32_fn *gemm;
    pith_gemm_pack_f32_fn *pack;
    pith_layer_norm_f32_fn *norm;
    pith_rms_norm_back_fn *norm_back;
    pith_key_attention_fn *attention, *attention_back;
    pith_swiglu_fn *swiglu;
    pith_swiglu_back_fn *swiglu_back;
    pith_adamw_fn *adamw;
} pith_network_kernels;

/* The work of one pack. `failed` is set when memory is out; layers then return zeros or NULL, which nobody reads. */
typedef struct pith_network_work {
    const pith_network *network;
    const pith_pack *pack;
    float *d; /* gradient of the parameters; NULL: not wanted */
    pith_arena *arena;
    bool failed;
} pith_network_work;

/* Zeroed floats. */
float *pith_work_floats(pith_network_work *w, size_t count);
/* Floats that the caller writes all of. */
float *pith_work_room(pith_network_work *w, size_t count);

/* y [rows, out] = x W^T (+ bias, the next parameter). */
float *pith_linear(pith_network_work *w, int parameter, bool bias, const float *x, size_t rows);
/* The gradient of it: adds to that of W (and the bias), and returns that of x unless wanted is false. */
float *pith_linear_back(pith_network_work *w, int parameter, bool bias, const float *x, const float *d_y, size_t rows,
                        bool wanted);

typedef struct pith_normed {
    const float *x;
    float *y, *inverse;
    size_t rows;
    int parameter;
} pith_normed;
/* x stays as it is until the backward pass. */
pith_normed pith_norm(pith_network_work *w, int parameter, const float *x, size_t rows);
/* Adds the gradient to d_x. */
void pith_norm_back(pith_network_work *w, const pith_normed *n, const float *d_y, float *d_x);

/* A residual layer: h becomes h + layer(norm(h)). What the backward pass needs is in *kept. */
typedef struct pith_residual {
    pith_normed normed;
    float *inner, *middle; /* attention: qkv and what is attended; feed-forward: gate and up, and their product */
    pith_key_attention attention;
} pith_residual;
void pith_attend(pith_network_work *w, pith_residual *kept, const pith_network_layer *layer, int kind, float *h);
void pith_attend_back(pith_network_work *w, const pith_residual *kept, const pith_network_layer *layer, float *d_h);
void pith_feed(pith_network_work *w, pith_residual *kept, const pith_network_layer *layer, float *h);
void pith_feed_back(pith_network_work *w, const pith_residual *kept, const pith_network_layer *layer, float *d_h);

#endif

/* network_layers.h - the parts of a network, forwards and backwards, on packs of cells. */
#ifndef PITH_TABLES_NETWORK_NETWORK_LAYERS_H
#define PITH_TABLES_NETWORK_NETWORK_LAYERS_H

#include "engine/kernels/gemm.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/train.h"
#include "tables/network/network.h"

typedef struct pith__network_kernels {
    pith__gemm_f32_fn *gemm;
    pith__gemm_pack_f32_fn *pack;
    pith__layer_norm_f32_fn *norm;
    pith__rms_norm_back_fn *norm_back;
    pith__key_attention_fn *attention, *attention_back;
    pith__swiglu_fn *swiglu;
    pith__swiglu_back_fn *swiglu_back;
    pith__adamw_fn *adamw;
} pith__network_kernels;

/* The work of one pack. `failed` is set when memory is out; layers then return zeros or NULL, which
 * nobody reads. */
typedef struct pith__network_work {
    const pith__network *network;
    const pith__pack *pack;
    float *gradient; /* of the parameters; NULL: not wanted */
    pith__arena *arena;
    bool failed;
} pith__network_work;

/* Zeroed floats. */
float *pith__work_floats(pith__network_work *w, size_t count);
/* Floats that the caller writes all of. */
float *pith__work_room(pith__network_work *w, size_t count);

/* y [rows, out] = x W^T (+ bias, the next parameter). */
float *pith__linear(pith__network_work *w, int parameter, bool bias, const float *x, size_t rows);
/* The gradient of it: adds to that of W (and the bias), and returns that of x unless wanted is
 * false. */
float *pith__linear_back(pith__network_work *w, int parameter, bool bias, const float *x,
                         const float *d_y, size_t rows, bool wanted);

typedef struct pith__normed {
    const float *x;
    float *y, *inverse;
    size_t rows;
    int parameter;
} pith__normed;
/* x stays as it is until the backward pass. */
pith__normed pith__norm(pith__network_work *w, int parameter, const float *x, size_t rows);
/* Adds the gradient to d_x. */
void pith__norm_back(pith__network_work *w, const pith__normed *n, const float *d_y, float *d_x);

/* A residual layer: h becomes h + layer(norm(h)). What the backward pass needs is in *kept. */
typedef struct pith__residual {
    pith__normed normed;
    float *inner, *middle; /* attention: qkv and what is attended; feed-forward: gate and up, and
                              their product */
    pith__key_attention attention;
} pith__residual;
void pith__attend(pith__network_work *w, pith__residual *kept, const pith__network_layer *layer,
                  int kind, float *h);
void pith__attend_back(pith__network_work *w, const pith__residual *kept,
                       const pith__network_layer *layer, float *d_h);
void pith__feed(pith__network_work *w, pith__residual *kept, const pith__network_layer *layer,
                float *h);
void pith__feed_back(pith__network_work *w, const pith__residual *kept,
                     const pith__network_layer *layer, float *d_h);

#endif

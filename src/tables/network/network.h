/* network.h - a transformer over cells, and its gradient.
 *
 * A cell is RMSNorm(name of its column) + RMSNorm(value), both projected to `dim`; instead of the
 * value stands a learned vector where it is masked or null. Each block attends over the cells of
 * the same column, over the cells of the own row and its parents, and over the cells of children,
 * each on RMSNorm of the sum so far, and ends in SwiGLU. RMSNorm of the masked cell and a linear
 * layer give the answer: see task_target.h. Source of the design: Relational Transformer, arXiv
 * 2510.06377, without its full attention.
 *
 * Sequences are computed in packs of PITH_NETWORK_PACK. Each pack has a gradient of its own, and
 * these are added in order, so that the number of threads changes no bit. */
#ifndef PITH_TABLES_NETWORK_NETWORK_H
#define PITH_TABLES_NETWORK_NETWORK_H

#include "tables/database/task_target.h"
#include "tables/network/cell_sampler.h"

enum { PITH_NETWORK_PACK = 4, PITH_NETWORK_BLOCKS = 12 };
#define PITH_NORM_EPSILON 1e-6f

typedef struct pith__network_shape {
    int32_t dim, heads, ff, blocks, text, outputs; /* text: components of a text's vector; outputs:
                                                      of an answer */
    unsigned attend;                               /* set of PITH_ATTEND_* */
} pith__network_shape;

/* One parameter: a matrix [out, in], of which the products read packed copies, or a vector (out is
 * 1). */
typedef struct pith__parameter {
    size_t offset;
    int32_t out, in;
    enum {
        PITH_PARAMETER_MATRIX,
        PITH_PARAMETER_BIAS,
        PITH_PARAMETER_ONES,
        PITH_PARAMETER_SMALL
    } kind;
    int32_t fan;               /* inputs of the layer, which bound its first values */
    float *forward, *backward; /* packed for x W^T and for dy W */
} pith__parameter;

typedef struct pith__network_layer {
    int norm, in, out; /* numbers of parameters */
} pith__network_layer;

typedef struct pith__network_block {
    pith__network_layer attend[PITH_ATTEND_KINDS], ff;
} pith__network_block;

typedef struct pith__network {
    pith__network_shape shape;
    pith__parameter parameters[30 + PITH_NETWORK_BLOCKS * 15];
    int parameter_count;
    size_t size;                           /* floats of all parameters */
    float *weights;                        /* [size] */
    int name, text, number, boolean, time; /* each a matrix, then its bias */
    int mask, null, name_norm, value_norm, last_norm, head;
    pith__network_block blocks[PITH_NETWORK_BLOCKS];
    const struct pith__network_kernels *kernels;
    pith__arena *arena;
} pith__network;

/* Lays out a network and draws its first values from the seed: uniform within 1 / sqrt(inputs). */
pith_status pith__network_make(pith__network *network, const pith__network_shape *shape,
                               uint64_t seed, pith__arena *arena, pith_error *err);
/* Packs the matrices again, after the weights have changed. */
void pith__network_pack(pith__network *network);

/* Answers the questions of a pack: answers[sequences][outputs]. If d is not NULL, targets are known
 * and it gets the gradient of the sum of all losses [size], and losses[sequences] the losses.
 * `slots` is [strings of the database], all PITH_RDB_NONE before and after. False if memory is out
 * or the call must end. stop may be NULL. */
bool pith__network_run(float *answers, float *d, double *losses, const pith__network *network,
                       const pith__rdb *rdb, const pith__target *target, const pith__pack *pack,
                       const pith__sample_options *options, uint32_t *slots, pith__stop *stop,
                       pith__arena *arena);

#endif

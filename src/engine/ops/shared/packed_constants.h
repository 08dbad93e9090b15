/* packed_constants.h - constants in the layout that a kernel needs, packed once per plan.
 *
 * An operator's prepare states the size of the packed form and the function that fills it. The
 * memory comes from one of three places:
 *   - In a graph from a compiled file, node->packed has the packed form. The plan points to it and
 *     computes nothing.
 *   - In any other plan, the packed forms of all steps share one block in the plan's arena, because
 *     few large pages are read faster than many small ones. They are filled in parallel after all
 *     steps are prepared. If only packing reads
 * a constant, the pages of its file are released as soon as it is packed, so the weights are never
 * in memory twice.
 *   - An operator that is run alone while the graph is optimised is packed at once.
 * prepare must therefore read neither the constant nor the packed form. The constant's contents may
 * be missing (PITH_VALUE_PACKED); only its dtype and shape are known. */
#ifndef PITH_ENGINE_OPS_SHARED_PACKED_CONSTANTS_H
#define PITH_ENGINE_OPS_SHARED_PACKED_CONSTANTS_H

#include "engine/ops/op.h"

/* Writes one part of the packed form. Parts may be written in any order and in parallel. scratch is
 * aligned to 64 bytes. */
typedef void pith__pack_fn(void *packed, const void *context, size_t part, void *scratch);

typedef struct pith__pack {
    const char *layout; /* a literal that names this content and order. Compiled files store it, so
                           change the name whenever either changes. */
    size_t bytes;       /* of the packed form, 64-byte aligned */
    uint32_t inputs;    /* bit i: input i, a constant; neither run nor the rest of prepare reads its
                           contents */
    pith__pack_fn *fill;
    const void *context;   /* lives as long as the plan: in c->arena, or a constant */
    size_t parts, scratch; /* scratch: bytes that a part needs */
} pith__pack;

/* True if input i is a constant that can be packed: its contents or its packed form are available.
 */
bool pith__pack_can(const pith__prepare *c, int input);

/* Requests a packed form. *packed is set to its address, usually after all steps are prepared, and
 * must therefore be in memory that lives as long as the plan; it is NULL until then. Compiled files
 * identify the n-th call of a node's prepare by n and the layout, so the calls must depend on the
 * node only. */
pith_status pith__prepare_pack(pith__prepare *c, const void **packed, const pith__pack *pack);

/* A matrix [k, n] of f32, f16 or bf16, or [n, k] if transposed, for the f32 GEMM: from element
 * `first` of an input to float `to` of the packed form. */
typedef struct pith__pack_matrix {
    int32_t input;
    bool transposed;
    int64_t first, n, to;
} pith__pack_matrix;

/* Packs matrices that all have k rows into `floats` floats. */
pith_status pith__prepare_pack_f32(pith__prepare *c, const void **packed,
                                   const pith__pack_matrix *matrices, size_t count, int64_t k,
                                   size_t floats);

/* A packed form that is computed from the f32 form, one panel at a time. `panel` receives the
 * [k][16] floats of columns [16 * index, 16 * index + 16) and writes their part of the packed form;
 * work has room for as many floats. */
typedef struct pith__pack_form {
    const char *layout;
    size_t bytes;
    void (*panel)(void *packed, const void *context, int64_t index, const float *panel,
                  float *work);
    const void *context; /* as pith__pack's */
} pith__pack_form;

/* The same matrices in another form; k is at least 1. */
pith_status pith__prepare_pack_panels(pith__prepare *c, const void **packed,
                                      const pith__pack_matrix *matrices, size_t count, int64_t k,
                                      const pith__pack_form *form);

/* ---- for the plan ---- */

typedef struct pith__packed_step {
    const pith__node *node;
    pith__pack pack;
    const void **packed; /* prepare's */
    bool ready;          /* the graph had the packed form */
} pith__packed_step;

/* The requests of a plan's prepare calls, in order. */
typedef struct pith__packer {
    pith__arena *arena;
    pith__stop *stop; /* may be NULL */
    int32_t threads;  /* see pith__threads_count */
    pith__packed_step *steps;
    size_t count, capacity;
} pith__packer;

/* Called when a step's packed form is filled, possibly by several threads at once. */
typedef void pith__packed_fn(void *context, const pith__packed_step *step);

/* Allocates the packed forms that are not ready and sets all addresses. */
pith_status pith__packer_place(pith__packer *packer, pith_error *err);

/* Fills the packed forms that are not ready, on the packer's threads. */
pith_status pith__packer_fill(pith__packer *packer, pith__packed_fn *filled, void *context,
                              pith_error *err);

#endif

/* pack.h - constants in the layout a kernel wants, packed once a plan.
 *
 * prepare says how many bytes a packed form takes and who fills them; where they come from is not its business:
 *   - a graph of a compiled file brings them along (node->packed): they are pointed at, nothing is computed
 *   - otherwise they lie in the plan's arena, those of the whole plan in one block, since few large pages are read
 *     faster than many small ones, and are filled in parallel when all steps are prepared. A source that only packing
 *     reads gives its file's pages back as soon as it is packed, so that packing never holds the weights twice
 *   - an operator that is run alone while the graph is optimised has them filled at once
 * So prepare reads neither what it packs nor where the packed form is: the contents of a source may be gone
 * (PITH_VALUE_PACKED), only its dtype and shape are sure. */
#ifndef PITH_OPS_PACK_H
#define PITH_OPS_PACK_H

#include "ops/op.h"

/* Writes part `part` of the packed form. Parts come in any order and in parallel. scratch: 64-byte aligned. */
typedef void pith_pack_fn(void *packed, const void *context, size_t part, void *scratch);

typedef struct pith_pack {
    const char *layout; /* a literal that stands for exactly this content and order: files hold it, so a change of
                           either takes another name */
    size_t bytes;       /* of the packed form, 64-byte aligned */
    uint32_t inputs;    /* bit i: input i, a constant; neither run nor the rest of prepare reads its contents */
    pith_pack_fn *fill;
    const void *context;   /* lives as long as the plan: in c->arena, or a constant */
    size_t parts, scratch; /* scratch: bytes a part wants */
} pith_pack;

/* Input i is a constant that can be packed: its contents are at hand, or nothing but its packed form is left. */
bool pith_pack_can(const pith_prepare *c, int input);

/* *packed: where the packed form is, NULL until all steps are prepared (or at once), so it lives as long as the plan.
 * The n-th call of a node's prepare is told from the others by n and the layout, so the calls must depend on the node
 * alone. */
pith_status pith_prepare_pack(pith_prepare *c, const void **packed, const pith_pack *pack);

/* A matrix [k, n] of f32, f16 or bf16, or [n, k] if transposed, for the f32 GEMM: from element `first` of an input to
 * float `to` of the packed form. */
typedef struct pith_pack_matrix {
    int32_t input;
    bool transposed;
    int64_t first, n, to;
} pith_pack_matrix;

/* All of them have k rows; they take `floats` floats together. */
pith_status pith_prepare_pack_f32(pith_prepare *c, const void **packed, const pith_pack_matrix *matrices, size_t count,
                                  int64_t k, size_t floats);

/* A form made of that f32 form panel by panel: `panel` gets the [k][16] floats of columns [16 * index, 16 * index + 16)
 * and writes what belongs to them; work: as many floats again. */
typedef struct pith_pack_form {
    const char *layout;
    size_t bytes;
    void (*panel)(void *packed, const void *context, int64_t index, const float *panel, float *work);
    const void *context; /* as pith_pack's */
} pith_pack_form;

/* The same matrices in another form; k is at least 1. */
pith_status pith_prepare_pack_panels(pith_prepare *c, const void **packed, const pith_pack_matrix *matrices,
                                     size_t count, int64_t k, const pith_pack_form *form);

/* ---- for the plan ---- */

typedef struct pith_packed_step {
    const pith_node *node;
    pith_pack pack;
    const void **packed; /* prepare's */
    bool ready;          /* it came with the graph */
} pith_packed_step;

/* What the prepares of a plan asked for, in their order. */
typedef struct pith_packer {
    pith_arena *arena;
    pith_packed_step *steps;
    size_t count, capacity;
} pith_packer;

/* Called, maybe by several threads, for each step when it is filled. */
typedef void pith_packed_fn(void *context, const pith_packed_step *step);

/* Takes the memory of what is not ready and says where everything is. */
pith_status pith_packer_place(pith_packer *packer, pith_error *err);

/* Fills what is not ready, on all the process's threads. */
pith_status pith_packer_fill(pith_packer *packer, pith_packed_fn *filled, void *context, pith_error *err);

#endif

/* pooling_nodes.h - pooling and the modules behind it, as nodes of the graph. */
#ifndef PITH_FORMATS_EXPORT_POOLING_NODES_H
#define PITH_FORMATS_EXPORT_POOLING_NODES_H

#include "models/modules/modules.h"

typedef struct pith__pooling_nodes {
    const pith__modules *modules; /* settings, and the steps behind the pooling */
    uint32_t pooling;             /* PITH_POOL_*; not read if rows are one per text already */
    bool normalize;               /* to length 1 */
    int64_t dim;                  /* components that are kept, before the normalisation; 0: all */
} pith__pooling_nodes;

/* Appends to the graph what makes one vector per text of its output `output`: f32 [batch, width].
 * It becomes the only output, "sentence_embedding". mask is the graph's attention mask [batch,
 * sequence]. Types are inferred again by the caller. */
pith_status pith__pooling_nodes_append(pith__graph *graph, int output, pith__value *mask,
                                       const pith__pooling_nodes *pool, pith_error *err);

#endif

/* attention_heads.h - finding the rows from which the heads of a query, key or value are cut.
 *
 * Exporters split rows into heads, and repeat the heads of grouped attention, by any chain of
 * Reshape, Transpose, Slice, Expand and the like. The chain is followed as a view (tensor_view.h)
 * up to the value whose rows contain the heads, so that a step can read them in place. */
#ifndef PITH_ENGINE_OPT_ATTENTION_HEADS_H
#define PITH_ENGINE_OPT_ATTENTION_HEADS_H

#include "engine/opt/pass.h"

typedef enum pith__heads_layout {
    PITH_HEADS_FIRST,  /* [batch, heads, sequence, size] */
    PITH_HEADS_SECOND, /* [batch, sequence, heads, size] */
    PITH_HEADS_TURNED  /* [batch, heads, size, sequence]: keys before the product */
} pith__heads_layout;

typedef struct pith__heads {
    pith__value *root; /* [batch, sequence, columns] or [batch, sequence, heads, size]; head_major:
                          [batch, heads, …] */
    int64_t heads, size, column, pitch; /* of root's own heads; head h begins at column + h * pitch
                                           of a row */
    bool head_major;
} pith__heads;

/* Follows v, which has this layout and this many heads, up through moves to the highest root that
 * reads well; root's heads may be fewer, each repeated. With scale, factors on the way are taken
 * into it. false: not cut from f32 rows. */
bool pith__heads_trace(pith__heads *from, pith__value *v, pith__heads_layout layout, int64_t heads,
                       double *scale);

/* Rows [batch, sequence, heads * size] brought to FIRST or SECOND by nodes before `before`. */
pith_status pith__heads_split(pith__value **split, pith__value *rows, int64_t heads, int64_t size,
                              pith__heads_layout layout, pith__node *before, pith_error *err);

#endif

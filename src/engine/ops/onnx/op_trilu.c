/* op_trilu.c - Trilu: one triangle of each matrix, zeros elsewhere. */
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

static pith_status trilu_infer(pith__infer *c) {
    if (c->in[0]->rank >= 0 && c->in[0]->rank < 2)
        return pith__op_fail(c, "input has rank %d, expected 2 or more", c->in[0]->rank);
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* Each row is copied and then cleared up to, or from, its cut. The diagonal is clamped so that the
 * sum with a row number cannot overflow. */
static pith_status trilu_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    pith__numbers k;
    PITH_TRY(pith__run_numbers(r, 1, &k));
    int64_t shift = k.count > 0 ? k.items[0] : 0, rows = x->dims[x->rank - 2],
            columns = x->dims[x->rank - 1];
    bool upper = pith__node_int(r->node, "upper", 1) != 0;
    size_t size = pith__element_size(x->dtype);
    if (shift < -rows - columns) shift = -rows - columns;
    if (shift > rows + columns) shift = rows + columns;
    if (!pith__tensor_count(x)) return PITH_OK;
    int64_t spent = 0;
    for (int64_t i = 0; i < pith__tensor_count(x) / columns; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 16 + columns));
        int64_t cut = i % rows + shift + !upper; /* first column of the upper part, one after the
                                                    last of the lower */
        if (cut < 0) cut = 0;
        if (cut > columns) cut = columns;
        char *row = (char *)y->data + (size_t)(i * columns) * size;
        if (x->data != y->data)
            memcpy(row, (const char *)x->data + (size_t)(i * columns) * size,
                   (size_t)columns * size);
        if (upper)
            memset(row, 0, (size_t)cut * size);
        else
            memset(row + (size_t)cut * size, 0, (size_t)(columns - cut) * size);
    }
    return PITH_OK;
}

const pith__op pith__op_Trilu = { .domain = "",
                                  .name = "Trilu",
                                  .since = 14,
                                  .newest = 14,
                                  .min_inputs = 1,
                                  .max_inputs = 2,
                                  .max_outputs = 1,
                                  .types = "ml",
                                  .attrs = "upper bool = 1",
                                  .flags = PITH_OP_IN_PLACE,
                                  .infer = trilu_infer,
                                  .prepare = pith__prepare_movable,
                                  .run = trilu_run };

/* attention_row.c - see attention_row.h. Source: fastembed 0.9, sparse/bm42.py:
 * np.mean(attention[:, :, 0], axis=1). */
#include "models/modules/attention_row.h"

#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

#define ATTENTION_PLACE PITH_STR("attention_row")

static pith__value *attention_row_make(pith__graph *graph, pith__value *x) {
    static const int64_t zero = 0, one = 1, order[] = { 0, 2, 1 };
    const pith_tensor scalar = {
        .data = (void *)(uintptr_t)&zero, .bytes = sizeof zero, .dtype = PITH_I64, .rank = 0
    };
    pith__value *first = pith__graph_add_const(graph, PITH_STR(""), &scalar);
    pith__value *heads = pith__graph_add_i64s(graph, PITH_STR(""), &one, 1);
    if (!first || !heads) return NULL;
    if (x->type.dtype != PITH_F32) {
        x = pith__row_node(graph, ATTENTION_PLACE, "Cast", &x, 1);
        if (!x || pith__node_set_int(x->producer, "to", PITH_F32)) return NULL;
    }
    /* [b, heads, n] */
    x = pith__row_node(graph, ATTENTION_PLACE, "Gather", (pith__value *[]){ x, first }, 2);
    if (!x || pith__node_set_int(x->producer, "axis", 2)) return NULL;
    /* [b, 1, n] */
    x = pith__row_node(graph, ATTENTION_PLACE, "ReduceMean", (pith__value *[]){ x, heads }, 2);
    x = pith__row_node(graph, ATTENTION_PLACE, "Transpose", &x, 1);
    return !x || pith__node_set_ints(x->producer, "perm", order, 3) ? NULL : x;
}

pith_status pith__attention_row_append(int *output, pith__graph *graph, const char *name,
                                       pith_error *err) {
    *output = -1;
    int attention = pith__graph_find_output(graph, "attention_6");
    if (attention < 0 || graph->outputs[attention]->type.rank != 4) return PITH_OK;
    pith__value *x = attention_row_make(graph, graph->outputs[attention]);
    return x ? pith__row_output(output, graph, x, pith__str_of(name), err)
             : pith__fail_memory(err, 0);
}

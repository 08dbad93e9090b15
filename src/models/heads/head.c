/* head.c - finds heads by name, and the output that a head reads. */
#include "models/heads/head.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/str.h"

pith_status pith__head_find(const pith__head **head, const char *name, pith_error *err) {
    for (size_t i = 0; i < pith__head_table_count; i++)
        if (!strcmp(pith__head_table[i]->name, name)) {
            *head = pith__head_table[i];
            return PITH_OK;
        }
    PITH_TRY(pith__piece_check("heads", pith__str_of(name), err));
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "this build does not have the head '%s'", name);
}

static bool head_takes(const pith__head *head, const pith__value *v) {
    return pith__dtype_is_float(v->type.dtype) &&
           ((v->type.rank == 2 && head->takes & PITH_HEAD_TEXTS) ||
            (v->type.rank == 3 && head->takes & PITH_HEAD_TOKENS));
}

static bool head_names(const pith__graph *graph, size_t output, pith_str name) {
    return pith__str_eq(pith__graph_output_name(graph, output), name);
}

bool pith__head_is_named(const pith__head *head, const pith__graph *graph, int output) {
    for (const char *name = head->outputs; *name;) {
        size_t size = strcspn(name, " ");
        if (head_names(graph, (size_t)output, (pith_str){ name, size })) return true;
        name += size + strspn(name + size, " ");
    }
    return false;
}

int pith__head_output(const pith__head *head, const pith__graph *graph) {
    for (const char *name = head->outputs; *name;) {
        size_t size = strcspn(name, " ");
        for (size_t i = 0; i < graph->output_count; i++)
            if (head_names(graph, i, (pith_str){ name, size }) &&
                head_takes(head, graph->outputs[i]))
                return (int)i;
        name += size + strspn(name + size, " ");
    }
    for (size_t i = 0; i < graph->output_count; i++)
        if (head_takes(head, graph->outputs[i])) return (int)i;
    return -1;
}

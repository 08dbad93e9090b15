/* head.c - finds heads by name, and the output that a head reads. */
#include "models/heads/head.h"

#include <string.h>

#include "base/left_out_pieces.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/str.h"

pith_status pith_head_find(const pith_head **head, const char *name, pith_error *err) {
    for (size_t i = 0; i < pith_head_table_count; i++)
        if (!strcmp(pith_head_table[i]->name, name)) {
            *head = pith_head_table[i];
            return PITH_OK;
        }
    PITH_TRY(pith_piece_check("heads", pith_str_of(name), err));
    return pith_fail(err, PITH_ERR_UNSUPPORTED, "this build does not have the head '%s'", name);
}

static bool head_takes(const pith_head *head, const pith_value *v) {
    return pith_dtype_is_float(v->type.dtype) && ((v->type.rank == 2 && head->takes & PITH_HEAD_TEXTS) ||
                                                  (v->type.rank == 3 && head->takes & PITH_HEAD_TOKENS));
}

static bool head_names(const pith_graph *graph, size_t output, pith_str name) {
    return pith_str_eq(pith_graph_output_name(graph, output), name);
}

bool pith_head_is_named(const pith_head *head, const pith_graph *graph, int output) {
    for (const char *name = head->outputs; *name;) {
        size_t size = strcspn(name, " ");
        if (head_names(graph, (size_t)output, (pith_str){ name, size })) return true;
        name += size + strspn(name + size, " ");
    }
    return false;
}

int pith_head_output(const pith_head *head, const pith_graph *graph) {
    for (const char *name = head->outputs; *name;) {
        size_t size = strcspn(name, " ");
        for (size_t i = 0; i < graph->output_count; i++)
            if (head_names(graph, i, (pith_str){ name, size }) && head_takes(head, graph->outputs[i])) return (int)i;
        name += size + strspn(name + size, " ");
    }
    for (size_t i = 0; i < graph->output_count; i++)
        if (head_takes(head, graph->outputs[i])) return (int)i;
    return -1;
}

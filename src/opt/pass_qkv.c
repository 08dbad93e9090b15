/* pass_qkv.c - linears of one input that feed one attention become one linear with their weights side by side: its
 * input is read once, and query, key and value rows lie in one row. Columns must begin at a GEMM panel. */
#include "kernels/gemm.h"
#include "opt/match.h"
#include "opt/pass.h"

/* A linear of one weight without activation, read by the attention alone. */
static pith_node *linear_of(const pith_node *attention, int i) {
    const pith_value *v = attention->inputs[i];
    pith_node *linear = v->producer;
    if (!pith_match_is_own(linear, "Linear") || pith_match_user(v) != attention || linear->input_count > 3) return NULL;
    return pith_node_int(linear, "activation", PITH_ACT_NONE) == PITH_ACT_NONE ? linear : NULL;
}

static int64_t columns_of(const pith_node *linear) {
    return linear->inputs[1]->type.dims[!pith_node_int(linear, "transposed", 0)];
}

static pith_status run(pith_opt *o, size_t *changes) {
    for (pith_node *node = o->graph->first; node; node = node->next) {
        if (!pith_match_is_own(node, "Attention") || pith_node_int(node, "head_major", 0)) continue;
        pith_node *part[3];
        pith_value *inputs[7];
        size_t count;
        const int64_t *columns = pith_node_ints(node, "columns", &count);
        int64_t begin[3], transposed = 0, n = 0;
        bool fits = columns && count == 3;
        for (int i = 0; i < 3 && fits; i++) {
            part[i] = linear_of(node, i);
            fits = part[i] && part[i]->inputs[0] == part[0]->inputs[0] && n % PITH_GEMM_PANEL == 0;
            if (!fits) break;
            begin[i] = n + columns[i];
            n += columns_of(part[i]);
            transposed |= pith_node_int(part[i], "transposed", 0) << i;
            inputs[1 + 2 * i] = part[i]->inputs[1];
            inputs[2 + 2 * i] = pith_match_input(part[i], 2);
        }
        if (!fits) continue;
        inputs[0] = part[0]->inputs[0];
        pith_node *made = pith_graph_add_node(o->graph, part[0], "pith", "Linear", inputs, 7, NULL, 1);
        if (!made || pith_node_set_int(made, "transposed", transposed) ||
            pith_node_set_int(made, "activation", PITH_ACT_NONE) || pith_node_set_ints(node, "columns", begin, 3))
            return pith_fail_memory(o->err, 0);
        made->name = part[0]->name;
        PITH_TRY(pith_op_bind_node(made, o->err));
        for (int i = 0; i < 3; i++) {
            if (pith_node_set_input(node, i, made->outputs[0])) return pith_fail_memory(o->err, 0);
        }
        pith_report_add(o->report, true, "qkv", "query, key and value of '" PITH_STR_FMT "' in one linear",
                        PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith_pass pith_pass_qkv = { "qkv", 3, false, run };

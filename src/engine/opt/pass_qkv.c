/* pass_qkv.c - linears of one input that feed one attention become one linear with their weights
 * next to each other. Its input is read once, and query, key and value rows lie in one row. Query
 * and key may pass a pith.Rotary on their way. Columns must begin at a GEMM panel. */
#include "engine/kernels/gemm.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

typedef struct part {
    pith__node *reader; /* of the linear's output: the attention, or the rotary step before it */
    int input;          /* which of the reader's */
    pith__node *linear;
    int64_t begin; /* column of the heads in the merged row */
} part;

/* A linear of one weight without activation, read by the attention alone. */
static bool find_part(part *p, pith__node *attention, int i, int64_t column) {
    pith__value *v = attention->inputs[i];
    *p = (part){ .reader = attention, .input = i };
    if (pith__match_is_own(v->producer, "Rotary")) {
        if (pith__match_user(v) != attention || column) return false;
        p->reader = v->producer;
        p->input = 0;
        v = p->reader->inputs[0];
        column = pith__node_int(p->reader, "column", 0);
    }
    p->begin = column;
    p->linear = v->producer;
    return pith__match_is_own(p->linear, "Linear") && pith__match_user(v) == p->reader &&
           p->linear->input_count <= 3 &&
           pith__node_int(p->linear, "activation", PITH_ACT_NONE) == PITH_ACT_NONE;
}

static int64_t qkv_columns_of(const pith__node *linear) {
    return linear->inputs[1]->type.dims[!pith__node_int(linear, "transposed", 0)];
}

/* The first of the linears in the graph's order. */
static pith__node *earliest(const part *parts) {
    pith__node *first = parts[0].linear;
    for (int i = 1; i < 3; i++) {
        if (parts[i].linear->mark < first->mark) first = parts[i].linear;
    }
    return first;
}

/* The readers take their columns from the merged row. */
static pith_status redirect(pith__node *attention, const part *parts, pith__value *merged) {
    int64_t begin[3] = { 0 };
    for (int i = 0; i < 3; i++) {
        if (parts[i].reader == attention)
            begin[i] = parts[i].begin;
        else
            PITH_TRY(pith__node_set_int(parts[i].reader, "column", parts[i].begin));
        PITH_TRY(pith__node_set_input(parts[i].reader, parts[i].input, merged));
    }
    return pith__node_set_ints(attention, "columns", begin, 3);
}

/* Weights stay as three inputs of the merged linear, which packs them next to each other: nothing
 * is copied here. It stands at the first of the three, where its input is made already. */
static pith_status qkv_run(pith__opt *o, size_t *changes) {
    pith__graph_number(o->graph);
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!pith__match_is_own(node, "Attention") || pith__node_int(node, "head_major", 0))
            continue;
        part parts[3];
        pith__value *inputs[7];
        size_t count;
        const int64_t *columns = pith__node_ints(node, "columns", &count);
        int64_t transposed = 0, n = 0;
        bool fits = columns && count == 3;
        for (int i = 0; i < 3 && fits; i++) {
            fits = find_part(&parts[i], node, i, columns[i]) && n % PITH_GEMM_PANEL == 0 &&
                   parts[i].linear->inputs[0] == parts[0].linear->inputs[0];
            if (!fits) break;
            const pith__node *linear = parts[i].linear;
            parts[i].begin += n;
            n += qkv_columns_of(linear);
            transposed |= pith__node_int(linear, "transposed", 0) << i;
            inputs[1 + 2 * i] = linear->inputs[1];
            inputs[2 + 2 * i] = pith__match_input(linear, 2);
        }
        if (!fits) continue;
        inputs[0] = parts[0].linear->inputs[0];
        pith__node *first = earliest(parts);
        pith__node *made =
            pith__graph_add_node(o->graph, first, "pith", "Linear", inputs, 7, NULL, 1);
        if (!made || pith__node_set_int(made, "transposed", transposed) ||
            pith__node_set_int(made, "activation", PITH_ACT_NONE))
            return pith__fail_memory(o->err, 0);
        made->mark = first->mark;
        made->name = first->name;
        PITH_TRY(pith__op_bind_node(made, o->err));
        if (redirect(node, parts, made->outputs[0])) return pith__fail_memory(o->err, 0);
        pith__report_add(o->report, true, "qkv",
                         "query, key and value of '" PITH_STR_FMT "' in one linear",
                         PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_qkv = { "qkv", 3, false, qkv_run };

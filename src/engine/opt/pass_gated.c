/* pass_gated.c - gated feed-forward rows become pith.Gated: activation(a) * b for the halves a and
 * b of a row. GEGLU, SwiGLU and the like are written so when one linear makes both halves. Halves
 * may come from Slice or Split, in either order. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"
#include "engine/opt/tensor_view.h"

/* The rows v is a half of, cut along their last axis by one node. */
static pith__value *rows_of_half(const pith__value *v, bool *second) {
    const pith__node *node = v->producer;
    if (!pith__match_is(node, "Slice") && !pith__match_is(node, "Split")) return NULL;
    pith__value *rows = node->inputs[0];
    int last = rows->type.rank - 1;
    pith__view view;
    if (last < 0 || !pith__dim_known(rows->type.dims[last]) || v->type.rank != rows->type.rank)
        return NULL;
    for (int d = 0; d < last; d++) {
        if (!pith__dim_equal(v->type.dims[d], rows->type.dims[d])) return NULL;
    }
    int64_t n = rows->type.dims[last] / 2;
    pith__view_init(&view, &rows->type);
    if (n < 2 || rows->type.dims[last] != 2 * n || v->type.dims[last] != n ||
        !pith__view_apply(&view, node, v) || view.atoms[view.count - 1].stride != 1)
        return NULL;
    *second = view.offset[last] == n;
    return *second || view.offset[last] == 0 ? rows : NULL;
}

typedef struct gated {
    pith__value *rows;
    pith__gemm_activation activation;
    bool second; /* the second half is activated */
} gated;

static bool gated_match(const pith__node *mul, gated *m) {
    for (int i = 0; i < 4; i++) {
        pith__value *activated = mul->inputs[i & 1], *plain = mul->inputs[!(i & 1)];
        const pith__node *last = activated->producer;
        if (!last || (i >> 1) >= last->input_count || activated == plain) continue;
        const pith__value *gate = last->inputs[i >> 1];
        bool other;
        if (!gate || pith__match_activation(gate, &m->activation) != last) continue;
        m->rows = rows_of_half(gate, &m->second);
        if (m->rows && rows_of_half(plain, &other) == m->rows && other != m->second) return true;
    }
    return false;
}

static pith_status pass_gated_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        gated m;
        if (!pith__match_is(node, "Mul") || !pith__match_live(node) ||
            !pith__match_f32(node->inputs[0]) || !gated_match(node, &m))
            continue;
        pith__node *made;
        PITH_TRY(
            pith__match_put(&made, node->outputs[0], node, "pith", "Gated", &m.rows, 1, o->err));
        if (pith__node_set_int(made, "activation", m.activation) ||
            pith__node_set_int(made, "second", m.second))
            return pith__fail_memory(o->err, 0);
        made->name = node->name;
        pith__report_add(o->report, true, "gated", "gated rows '" PITH_STR_FMT "'",
                         PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_gated = { "gated", 2, false, pass_gated_run };

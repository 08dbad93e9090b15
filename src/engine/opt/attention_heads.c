/* attention_heads.c - see attention_heads.h. */
#include "engine/opt/attention_heads.h"

#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"

/* The longest chain of views that is followed. Exporters write up to about five; the bound only
 * limits the work. */
#define CHAIN_MAX 16

/* [batch, sequence, heads…, size] in the order of FIRST: the sequence's atom goes behind those of
 * the heads. */
static void put_heads_first(pith__view *view) {
    for (int i = 1; i + 2 < view->count; i++) {
        pith__view_atom sequence = view->atoms[i];
        view->atoms[i] = view->atoms[i + 1];
        view->atoms[i + 1] = sequence;
    }
}

/* The heads' atoms, between batch and sequence: at most a root axis (or a part of it) and a
 * repetition of it. */
static bool read_heads(pith__heads *r, const pith__view_atom *atoms, int count, int heads_axis,
                       int of, int64_t heads) {
    int64_t repeats = 1;
    r->heads = 1;
    r->pitch = 0;
    for (int i = 0; i < count; i++) {
        if (!pith__dim_known(atoms[i].size) || atoms[i].of != of) return false;
        if (atoms[i].axis < 0) {
            if (repeats != 1) return false;
            repeats = atoms[i].size;
        } else {
            if (i > 0 || atoms[i].axis != heads_axis) return false;
            r->heads = atoms[i].size;
            r->pitch = atoms[i].stride;
        }
    }
    return r->heads * repeats == heads;
}

/* Heads that lie in rows [batch, sequence, columns], or [batch, sequence, heads, size], which are
 * the same rows. */
static bool read_rows(pith__heads *r, const pith__view *view, const pith__type *type) {
    int64_t row = type->rank == 4 ? type->dims[3] : 1;
    if (!pith__dim_known(row)) return false;
    r->pitch = r->heads > 1 ? r->pitch * row : r->size;
    r->column = view->offset[2] * row + (type->rank == 4 ? view->offset[3] : 0);
    return true;
}

/* Heads [batch, heads, sequence, size] as they are. */
static bool read_whole_heads(pith__heads *r, const pith__type *type) {
    if (type->dims[1] != r->heads || type->dims[3] != r->size || (r->heads > 1 && r->pitch != 1))
        return false;
    r->pitch = r->size;
    r->column = 0;
    return true;
}

/* Reads a view as heads that a step can cut from the root's rows: (batch) (heads…) (sequence)
 * (size) in the order of the layout, batch and sequence as they are in the root, and the elements
 * of a head next to each other. Axes that are there in whole begin with their first element, so
 * only the heads need an offset. head_major: the root is [batch, heads, sequence, size]. */
static bool read_view(pith__heads *r, const pith__view *view, const pith__type *type,
                      pith__heads_layout layout, int64_t heads, bool head_major) {
    static const int sequence_of[] = { 2, 1, 3 }, size_of[] = { 3, 3, 2 };
    int sequence_axis = head_major ? 2 : 1, count = view->count,
        turned = layout == PITH_HEADS_TURNED;
    if (view->rank != 4 || (type->rank != 4 && (type->rank != 3 || head_major)) || count < 3)
        return false;
    const pith__view_atom *batch = &view->atoms[0],
                          *sequence = &view->atoms[count - (turned ? 1 : 2)],
                          *size = &view->atoms[count - (turned ? 2 : 1)];
    if (batch->axis != 0 || batch->of != 0 || !pith__dim_equal(batch->size, type->dims[0]))
        return false;
    if (sequence->axis != sequence_axis || sequence->of != sequence_of[layout] ||
        sequence->stride != 1 || !pith__dim_equal(sequence->size, type->dims[sequence_axis]))
        return false;
    if (size->axis != type->rank - 1 || size->of != size_of[layout] || size->stride != 1 ||
        !pith__dim_known(size->size))
        return false;
    r->size = size->size;
    r->head_major = head_major;
    if (!read_heads(r, view->atoms + 1, count - 3, head_major ? 1 : 2,
                    layout == PITH_HEADS_SECOND ? 2 : 1, heads))
        return false;
    return head_major ? read_whole_heads(r, type) : read_rows(r, view, type);
}

/* The value a Mul or Div by a number was made of, and the factor. */
static pith__value *scaled(const pith__value *v, double *factor) {
    pith__node *mul = pith__match_maker(v, "Mul"), *div = pith__match_maker(v, "Div");
    for (int i = 0; i < 2; i++)
        if (mul && pith__match_scalar(mul->inputs[i], factor)) return mul->inputs[1 - i];
    if (!div || !pith__match_scalar(div->inputs[1], factor)) return NULL;
    *factor = 1.0 / *factor;
    return div->inputs[0];
}

/* First v is followed up through moves and factors to where the chain ends. Then each value on the
 * way is tried as the root, from the top down: the view is made from there to v and read. The
 * highest that fits wins, because the more moves a step reads through, the fewer are left to run. A
 * chain has at most CHAIN_MAX nodes, so trying all is cheap. */
bool pith__heads_trace(pith__heads *from, pith__value *v, pith__heads_layout layout, int64_t heads,
                       double *scale) {
    const pith__node *chain[CHAIN_MAX];
    pith__value *values[CHAIN_MAX + 1] = { v };
    double factors[CHAIN_MAX];
    int length = 0;
    while (length < CHAIN_MAX) {
        pith__node *node = values[length]->producer;
        factors[length] = 1.0;
        pith__value *up = scale ? scaled(values[length], &factors[length]) : NULL;
        if (!up && node && pith__view_moves(node)) up = node->inputs[0];
        if (!up || pith__match_const(up)) break;
        chain[length++] = node;
        values[length] = up;
    }
    for (int top = length; top >= 0; top--) {
        const pith__type *type = &values[top]->type;
        if (type->rank < 0 || !pith__match_f32(values[top])) continue;
        pith__view view;
        pith__view_init(&view, type);
        bool follows = true;
        double product = 1.0;
        for (int i = top - 1; i >= 0 && follows; i--) {
            product *= factors[i];
            if (pith__view_moves(chain[i])) follows = pith__view_apply(&view, chain[i], values[i]);
        }
        if (layout == PITH_HEADS_SECOND) put_heads_first(&view);
        if (!follows || (!read_view(from, &view, type, layout, heads, false) &&
                         !read_view(from, &view, type, layout, heads, true)))
            continue;
        from->root = values[top];
        if (scale) *scale *= product;
        return true;
    }
    return false;
}

pith_status pith__heads_split(pith__value **split, pith__value *rows, int64_t heads, int64_t size,
                              pith__heads_layout layout, pith__node *before, pith_error *err) {
    pith__graph *graph = before->graph;
    int64_t shape[] = { 0, 0, heads, size }, perm[] = { 0, 2, 1, 3 };
    pith__value *inputs[] = { rows, pith__graph_add_i64s(graph, PITH_STR(""), shape, 4) };
    pith__node *node =
        inputs[1] ? pith__graph_add_node(graph, before, "", "Reshape", inputs, 2, NULL, 1) : NULL;
    if (!node) return pith__fail_memory(err, 0);
    PITH_TRY(pith__op_bind_node(node, err));
    if (layout == PITH_HEADS_FIRST) {
        node = pith__graph_add_node(graph, before, "", "Transpose", node->outputs, 1, NULL, 1);
        if (!node || pith__node_set_ints(node, "perm", perm, 4)) return pith__fail_memory(err, 0);
        PITH_TRY(pith__op_bind_node(node, err));
    }
    *split = node->outputs[0];
    return PITH_OK;
}

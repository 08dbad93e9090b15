/* pass_rotary.c - rotary positions become pith.Rotary, in both layouts.
 *
 *   x * cos + turned * sin,  turned = [-b, a] for the halves x = [a, b], or the pairs (-x[2i + 1],
 *                            x[2i])
 *
 * The way a file cuts x, negates it and joins it again is read as a view of x (tensor_view.h), so
 * every spelling is one. The rows that the heads of x are cut from (attention_heads.h) are read
 * where they lie. The operator RotaryEmbedding becomes the same step. */
#include "engine/opt/attention_heads.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"

/* The longest chain of cuts, negations and joins that is followed; the bound only limits the work.
 */
#define CHAIN_MAX 8

typedef struct rotary {
    pith__value *x, *cosine, *sine;
    pith__heads from;
    pith__heads_layout layout;
    int64_t heads, turned; /* elements of a head; the others after them stay */
    bool interleaved;
    pith__node *last; /* whose output is the heads turned */
} rotary;

/* Is v the elements begin, begin + stride, … of x's last axis, half of them, all in their order,
 * negated or not? The chain from v up to x may cut, reshape and negate in any order. It is then
 * read as a view of x, in which every axis but the last must be whole. */
static bool is_part(pith__value *v, const pith__value *x, bool negated, int64_t begin,
                    int64_t stride) {
    const pith__node *chain[CHAIN_MAX];
    pith__value *values[CHAIN_MAX + 1] = { v };
    int length = 0, last = x->type.rank - 1;
    for (; values[length] != x; length++) {
        const pith__node *node = values[length]->producer;
        bool negates = pith__match_is(node, "Neg");
        if (length == CHAIN_MAX || !node || (!negates && !pith__view_moves(node)) ||
            (negates && !negated))
            return false;
        if (negates) negated = false;
        chain[length] = node;
        values[length + 1] = node->inputs[0];
    }
    pith__view view, whole;
    pith__view_init(&view, &x->type);
    whole = view;
    for (int i = length - 1; i >= 0; i--) {
        if (pith__view_moves(chain[i]) && !pith__view_apply(&view, chain[i], values[i]))
            return false;
    }
    if (negated || view.count != whole.count) return false;
    for (int i = 0; i < view.count - 1; i++) {
        const pith__view_atom *a = &view.atoms[i], *b = &whole.atoms[i];
        if (a->axis != b->axis || a->of != b->of || a->stride != 1 ||
            !pith__dim_equal(a->size, b->size))
            return false;
    }
    for (int d = 0; d < last; d++) {
        if (view.offset[d]) return false;
    }
    const pith__view_atom *end = &view.atoms[view.count - 1];
    return end->axis == last && end->of == last && end->stride == stride &&
           end->size == x->type.dims[last] / 2 && view.offset[last] == begin;
}

/* Is v the turned form of x: [-b, a] of its halves, joined by a Concat, or pairs that a Concat
 * makes along a new last axis and a Reshape lays flat? */
static bool is_turned(const pith__value *v, const pith__value *x, bool *interleaved) {
    int64_t half = x->type.dims[x->type.rank - 1] / 2;
    pith__node *concat = pith__match_maker(v, "Concat");
    if (half > 1 && concat && concat->input_count == 2) {
        int64_t axis = pith__node_int(concat, "axis", 0);
        *interleaved = false;
        return (axis == -1 || axis == x->type.rank - 1) &&
               is_part(concat->inputs[0], x, true, half, 1) &&
               is_part(concat->inputs[1], x, false, 0, 1);
    }
    pith__node *joined = pith__match_maker(v, "Reshape");
    concat = joined ? pith__match_maker(joined->inputs[0], "Concat") : NULL;
    if (half < 2 || !concat || concat->input_count != 2 ||
        !pith__match_same_shape(&v->type, &x->type))
        return false;
    const pith__type *pairs = &concat->outputs[0]->type;
    int64_t axis = pith__node_int(concat, "axis", 0);
    *interleaved = true;
    return pairs->rank == x->type.rank + 1 && (axis == -1 || axis == pairs->rank - 1) &&
           pairs->dims[pairs->rank - 1] == 2 && is_part(concat->inputs[0], x, true, 1, 2) &&
           is_part(concat->inputs[1], x, false, 0, 2);
}

/* Is the table a row of numbers a position, whatever batch and head, for x [batch, heads, sequence,
 * size] or with heads and sequence the other way round? */
static bool rotary_is_table(const pith__value *v, const pith__type *x, pith__heads_layout layout) {
    int sequence = layout == PITH_HEADS_FIRST ? 2 : 1, heads = 3 - sequence,
        lead = 4 - v->type.rank;
    if (v->type.rank < 2 || lead < 0 || !pith__match_f32(v) ||
        !pith__dim_equal(v->type.dims[3 - lead], x->dims[3]))
        return false;
    for (int axis = lead; axis < 3; axis++) {
        pith__dim have = v->type.dims[axis - lead];
        if (axis == heads && have != 1) return false;
        if (axis == sequence && !pith__dim_equal(have, x->dims[axis])) return false;
        if (axis == 0 && have != 1 && !pith__dim_equal(have, x->dims[0])) return false;
    }
    return sequence >= lead;
}

/* Do both broadcast alike, so that one row of each belongs to a position? */
static bool same_tables(const rotary *m) {
    return pith__match_same_shape(&m->cosine->type, &m->sine->type);
}

static bool rotary_find_layout(rotary *m) {
    const pith__type *x = &m->x->type;
    for (int layout = PITH_HEADS_FIRST; layout <= PITH_HEADS_SECOND; layout++) {
        m->layout = (pith__heads_layout)layout;
        m->heads = x->dims[layout == PITH_HEADS_FIRST ? 1 : 2];
        if (pith__dim_known(m->heads) && same_tables(m) && rotary_is_table(m->cosine, x, m->layout))
            return true;
    }
    return false;
}

/* x * cos + turned * sin, in any operand order. */
static bool match_sum(rotary *m, const pith__node *add) {
    if (!pith__match_is(add, "Add")) return false;
    for (int i = 0; i < 8; i++) {
        pith__node *straight = pith__match_maker(add->inputs[i & 1], "Mul");
        pith__node *turned = pith__match_maker(add->inputs[!(i & 1)], "Mul");
        if (!straight || !turned) return false;
        m->x = straight->inputs[i >> 1 & 1];
        m->cosine = straight->inputs[!(i >> 1 & 1)];
        m->sine = turned->inputs[!(i >> 2 & 1)];
        if (m->x->type.rank == 4 && pith__match_f32(m->x) && pith__dim_known(m->x->type.dims[3]) &&
            is_turned(turned->inputs[i >> 2 & 1], m->x, &m->interleaved))
            return true;
    }
    return false;
}

/* The tables' rows of the positions: looked up if there are position ids. */
static pith_status rows_of_table(pith__value **rows, pith__value *table, pith__value *ids,
                                 pith__node *before, pith_error *err) {
    *rows = table;
    if (!ids) return PITH_OK;
    pith__value *inputs[] = { table, ids };
    pith__node *gather =
        pith__graph_add_node(before->graph, before, "", "Gather", inputs, 2, NULL, 1);
    if (!gather) return pith__fail_memory(err, 0);
    *rows = gather->outputs[0];
    return pith__op_bind_node(gather, err);
}

/* The operator, where it turns whole heads. */
static bool rotary_match_operator(rotary *m, const pith__node *node) {
    if (!pith__match_is(node, "RotaryEmbedding")) return false;
    const pith__type *x = &node->inputs[0]->type, *table = &node->inputs[1]->type;
    m->x = node->inputs[0];
    m->cosine = node->inputs[1];
    m->sine = node->inputs[2];
    m->interleaved = pith__node_int(node, "interleaved", 0) != 0;
    m->layout = PITH_HEADS_FIRST;
    m->heads = x->rank == 4 ? x->dims[1] : pith__node_int(node, "num_heads", 0);
    if (!pith__match_f32(m->x) || !same_tables(m) ||
        table->rank != (pith__match_input(node, 3) ? 2 : 3) || !pith__match_f32(m->cosine) ||
        (x->rank != 3 && x->rank != 4) || table->rank < 1 || !pith__dim_known(m->heads) ||
        m->heads < 1 || !pith__dim_known(x->dims[x->rank - 1]))
        return false;
    int64_t size = x->rank == 4 ? x->dims[3] : x->dims[2] / m->heads,
            turned = table->dims[table->rank - 1];
    if (turned != size / 2 || size % 2 || (x->rank == 3 && size * m->heads != x->dims[2]))
        return false;
    m->from = (pith__heads){ .root = m->x, .heads = m->heads, .size = size, .pitch = size };
    return true;
}

/* Where the elements after the turned ones are joined to them again, the step makes the whole
 * heads. */
static void take_rest(rotary *m) {
    pith__node *concat = pith__match_user(m->last->outputs[0]);
    pith__heads rest;
    if (!pith__match_is(concat, "Concat") || concat->input_count != 2 ||
        concat->inputs[0] != m->last->outputs[0])
        return;
    int64_t axis = pith__node_int(concat, "axis", 0);
    if ((axis != -1 && axis != 3) || concat->outputs[0]->type.rank != 4 ||
        !pith__heads_trace(&rest, concat->inputs[1], m->layout, m->heads, NULL) ||
        rest.root != m->from.root || rest.head_major || rest.heads != m->from.heads ||
        (rest.pitch != m->from.pitch && m->heads > 1) ||
        rest.column != m->from.column + m->from.size)
        return;
    m->from.size += rest.size;
    m->last = concat;
}

static pith_status rotary_fuse(pith__opt *o, const pith__node *at, rotary *m) {
    pith__value *inputs[] = { m->from.root, m->cosine, m->sine };
    pith__node *node = m->last;
    pith__node *made = pith__graph_add_node(o->graph, node, "pith", "Rotary", inputs, 3, NULL, 1);
    if (!made || pith__node_set_int(made, "heads", m->heads) ||
        pith__node_set_int(made, "size", m->from.size) ||
        pith__node_set_int(made, "column", m->from.column) ||
        pith__node_set_int(made, "pitch", m->from.pitch) ||
        pith__node_set_int(made, "turned", m->turned) ||
        pith__node_set_int(made, "interleaved", m->interleaved))
        return pith__fail_memory(o->err, 0);
    made->name = at->name;
    PITH_TRY(pith__op_bind_node(made, o->err));
    pith__value *by = made->outputs[0];
    if (m->x->type.rank == 4)
        PITH_TRY(pith__heads_split(&by, by, m->heads, m->from.size, m->layout, node, o->err));
    return pith__match_replace(node->outputs[0], by, o->err);
}

static pith_status pass_rotary_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        rotary m = { 0 };
        if (!pith__match_live(node)) continue;
        bool written_out = match_sum(&m, node);
        if (!written_out && !rotary_match_operator(&m, node)) continue;
        bool fits =
            (!written_out || rotary_find_layout(&m)) &&
            (m.x->type.rank == 3 || pith__heads_trace(&m.from, m.x, m.layout, m.heads, NULL));
        if (!fits || m.from.head_major || m.from.heads != m.heads) {
            pith__report_add(
                o->report, false, "rotary", "'" PITH_STR_FMT "': %s", PITH_STR_ARG(node->name),
                fits ? "its rows are laid out by head" : "its heads are not cut from rows");
            continue;
        }
        m.last = node;
        m.turned = m.from.size;
        if (m.x->type.rank == 4) take_rest(&m);
        pith__value *ids = written_out ? NULL : pith__match_input(node, 3);
        PITH_TRY(rows_of_table(&m.cosine, m.cosine, ids, node, o->err));
        PITH_TRY(rows_of_table(&m.sine, m.sine, ids, node, o->err));
        PITH_TRY(rotary_fuse(o, node, &m));
        pith__report_add(o->report, true, "rotary", "%lld heads of %lld%s%s '" PITH_STR_FMT "'",
                         (long long)m.heads, (long long)m.from.size,
                         m.turned < m.from.size ? ", in part" : "",
                         m.interleaved ? ", interleaved" : "", PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_rotary = { "rotary", 3, false, pass_rotary_run };

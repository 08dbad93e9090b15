/* older_opset.c - see older_opset.h.
 *
 * A node has the newest form of its operator, which is valid from opset op->since on. Each line of
 * `lowerings` writes such a node with older operators, as exporters do for that opset, so that
 * other engines fuse the result. */
#include "formats/export/older_opset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "engine/ops/op.h"
#include "formats/export/new_nodes.h"
#include "formats/export/opset_rules.h"

/* Returns what replaces output 0 of the node; nodes are made before it. */
typedef pith__value *older_fn(pith__new_nodes *m, pith__node *node);

/* A number of the type of x. */
static pith__value *older_number(pith__new_nodes *m, const pith__value *x, float number) {
    pith__value *v = pith__new_node_f32(m, number);
    const int dtype = x->type.dtype;
    return dtype == PITH_F32 || dtype == PITH_UNDEFINED ? v : pith__new_node_cast(m, v, dtype);
}

/* 0.5 x (1 + erf(x / sqrt(2))), or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)). */
static pith__value *older_gelu(pith__new_nodes *m, pith__node *node) {
    pith__value *x = node->inputs[0], *inner;
    if (pith__str_is(pith__node_str(node, "approximate", "none"), "tanh")) {
        pith__value *cube = PITH_NEW_NODE(m, "Pow", x, older_number(m, x, 3.0f));
        cube = PITH_NEW_NODE(m, "Mul", cube, older_number(m, x, 0.044715f));
        inner = PITH_NEW_NODE(m, "Mul", PITH_NEW_NODE(m, "Add", x, cube),
                              older_number(m, x, (float)sqrt(M_2_PI)));
        inner = PITH_NEW_NODE(m, "Tanh", inner);
    } else {
        inner =
            PITH_NEW_NODE(m, "Erf", PITH_NEW_NODE(m, "Div", x, older_number(m, x, (float)M_SQRT2)));
    }
    inner = PITH_NEW_NODE(m, "Mul", x, PITH_NEW_NODE(m, "Add", inner, older_number(m, x, 1.0f)));
    return PITH_NEW_NODE(m, "Mul", inner, older_number(m, x, 0.5f));
}

/* x / sqrt(mean(x^2) + epsilon) * scale over the last axes. */
static pith__value *older_rms_norm(pith__new_nodes *m, pith__node *node) {
    pith__value *x = node->inputs[0];
    const int64_t axis = pith__node_int(node, "axis", -1);
    if (axis != -1 && axis != x->type.rank - 1) return NULL;
    pith__value *mean =
        PITH_NEW_NODE(m, "ReduceMean", PITH_NEW_NODE(m, "Pow", x, older_number(m, x, 2.0f)),
                      pith__new_node_i64(m, -1));
    mean =
        PITH_NEW_NODE(m, "Add", mean, older_number(m, x, pith__node_float(node, "epsilon", 1e-5f)));
    pith__value *y = PITH_NEW_NODE(m, "Div", x, PITH_NEW_NODE(m, "Sqrt", mean)),
                *scale = node->inputs[1];
    if (scale->type.dtype != x->type.dtype && scale->type.dtype != PITH_UNDEFINED)
        y = pith__new_node_cast(m, y, scale->type.dtype);
    return PITH_NEW_NODE(m, "Mul", y, scale);
}

static pith__value *older_swish(pith__new_nodes *m, pith__node *node) {
    pith__value *x = node->inputs[0], *inner = x;
    const float alpha = pith__node_float(node, "alpha", 1.0f);
    if (alpha != 1.0f) inner = PITH_NEW_NODE(m, "Mul", x, older_number(m, x, alpha));
    return PITH_NEW_NODE(m, "Mul", x, PITH_NEW_NODE(m, "Sigmoid", inner));
}

static pith__value *older_hard_swish(pith__new_nodes *m, pith__node *node) {
    pith__value *x = node->inputs[0], *gate = PITH_NEW_NODE(m, "HardSigmoid", x);
    pith__new_node_set_float(m, gate, "alpha", 1.0f / 6.0f);
    pith__new_node_set_float(m, gate, "beta", 0.5f);
    return PITH_NEW_NODE(m, "Mul", x, gate);
}

static pith__value *older_mish(pith__new_nodes *m, pith__node *node) {
    pith__value *x = node->inputs[0];
    return PITH_NEW_NODE(m, "Mul", x, PITH_NEW_NODE(m, "Tanh", PITH_NEW_NODE(m, "Softplus", x)));
}

/* Softmax before opset 13 works on all axes from one on, as if they were one. The opsets that are
 * written have no such form, so the input is flattened to a matrix, the newest form works on its
 * rows, and the shape is put back. Over the last axis alone both forms are the same. */
static pith__value *older_flattened(pith__new_nodes *m, pith__node *node) {
    pith__value *x = node->inputs[0], *y, *shape;
    const int64_t given = pith__node_int(node, "axis", 1),
                  axis = given < 0 ? given + x->type.rank : given;
    const char *name = pith__arena_str(m->graph->arena, node->op_type).data;
    if (!name) m->status = pith__fail_memory(m->err, node->op_type.size);
    if (x->type.rank < 0 || !name) return NULL;
    if (axis >= x->type.rank - 1) {
        y = PITH_NEW_NODE(m, name, x);
        pith__new_node_set_int(m, y, "axis", -1);
        return y;
    }
    y = PITH_NEW_NODE(m, "Flatten", x);
    pith__new_node_set_int(m, y, "axis", axis);
    y = PITH_NEW_NODE(m, name, y);
    pith__new_node_set_int(m, y, "axis", -1);
    shape = PITH_NEW_NODE(m, "Shape", x);
    return PITH_NEW_NODE(m, "Reshape", y, shape);
}

typedef struct lowering {
    const char *op;
    older_fn *lower;
} lowering;

static const lowering lowerings[] = {
    { "Gelu", older_gelu },         { "HardSwish", older_hard_swish },
    { "Hardmax", older_flattened }, { "LogSoftmax", older_flattened },
    { "Mish", older_mish },         { "RMSNormalization", older_rms_norm },
    { "Softmax", older_flattened }, { "Swish", older_swish },
};

/* Reductions have their axes as an input from opset 18 on (ReduceSum from 13), as an attribute
 * before. */
static bool has_axes_to_lower(const pith__node *node) {
    const pith__value *axes = pith__node_input(node, 1);
    const pith_tensor *t = axes ? axes->type.data : NULL;
    if (node->op_type.size < 6 || memcmp(node->op_type.data, "Reduce", 6) || node->op->since != 18)
        return false;
    return axes ? t && t->dtype == PITH_I64 : !pith__node_int(node, "noop_with_empty_axes", 0);
}

static bool older_axes(pith__node *node) {
    const pith__value *axes = pith__node_input(node, 1);
    const pith_tensor *t = axes ? axes->type.data : NULL;
    if (t && pith__node_set_ints(node, "axes", t->data, t->bytes / sizeof(int64_t))) return false;
    pith__node_unset(node, "noop_with_empty_axes");
    return !pith__node_set_input_count(node, 1);
}

static const lowering *lowering_of(const pith__node *node) {
    for (size_t i = 0; i < sizeof lowerings / sizeof *lowerings; i++)
        if (pith__str_is(node->op_type, lowerings[i].op)) return &lowerings[i];
    return NULL;
}

/* A scale for each group instead of each channel, as opsets 18 to 20 have it. */
static bool is_by_group(const pith__node *node) {
    if (node->domain.size || !pith__str_is(node->op_type, "GroupNormalization") ||
        node->opset >= 21)
        return false;
    const pith__type *x = &node->inputs[0]->type, *scale = &node->inputs[1]->type;
    return x->rank < 2 || scale->rank < 1 || !pith__dim_equal(x->dims[1], scale->dims[0]);
}

/* The first opset that has the node's form, if that can be told by its operator. */
static int32_t form_since(const pith__node *node) {
    return is_by_group(node) ? 18 : node->op->since;
}

/* ONNX Runtime has no Swish (1.32): one that a pass made of its parts becomes them again. */
static bool is_made_swish(const pith__node *node) {
    return node->opset == PITH_OPSET_NEWEST && pith__str_is(node->op_type, "Swish");
}

static bool is_newer(const pith__node *node, int32_t opset) {
    return !node->domain.size && (form_since(node) > opset || is_made_swish(node));
}

/* Forms of old opsets that no newer opset has: Softmax over several axes, Scan over a batch. */
static bool is_inner(const pith__node *node) {
    return !node->domain.size &&
           (pith__node_int(node, "flatten", 0) || pith__node_int(node, "batched", 0));
}

/* [groups, channels / groups], from the channels of x. */
static pith__value *older_group_shape(pith__new_nodes *m, pith__value *x, pith__value *groups) {
    const int64_t channels = x->type.rank > 1 ? x->type.dims[1] : PITH_DIM_UNKNOWN,
                  count = *(const int64_t *)groups->type.data->data;
    if (pith__dim_known(channels)) {
        pith__value *shape =
            pith__graph_add_i64s(m->graph, PITH_STR(""), (int64_t[]){ count, channels / count }, 2);
        if (!shape) m->status = pith__fail_memory(m->err, 0);
        return shape;
    }
    pith__value *size = PITH_NEW_NODE(m, "Shape", x);
    pith__new_node_set_int(m, size, "start", 1);
    pith__new_node_set_int(m, size, "end", 2);
    pith__value *shape = PITH_NEW_NODE(m, "Concat", groups, PITH_NEW_NODE(m, "Div", size, groups));
    pith__new_node_set_int(m, shape, "axis", 0);
    return shape;
}

/* From opset 21 on, scale and bias have a number per channel: each is repeated for the channels of
 * its group. */
static pith_status older_groups(pith__node *node, int32_t opset, pith_error *err) {
    if (opset < 21 || !is_by_group(node)) return PITH_OK;
    pith__new_nodes m = { node->graph, node, node->name, PITH_OK, err };
    pith__value *groups = pith__new_node_i64(&m, pith__node_int(node, "num_groups", 1));
    pith__value *shape = groups ? older_group_shape(&m, node->inputs[0], groups) : NULL;
    for (int i = 1; i < 3; i++) {
        pith__value *column =
            PITH_NEW_NODE(&m, "Unsqueeze", node->inputs[i], pith__new_node_i64(&m, -1));
        pith__value *y = PITH_NEW_NODE(&m, "Reshape", PITH_NEW_NODE(&m, "Expand", column, shape),
                                       pith__new_node_i64(&m, -1));
        if (m.status) return m.status;
        if (pith__node_set_input(node, i, y)) return pith__fail_memory(err, 0);
    }
    node->opset = 21;
    return PITH_OK;
}

/* What upgrades left, and files do not have. */
static void older_own_attrs(pith__node *node) {
    static const char *const own[] = { "flatten", "batched", "lengths" };
    if (!node->domain.size)
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            if (!pith__node_int(node, own[i], 0)) pith__node_unset(node, own[i]);
}

/* Scatter ended with opset 10, and is ScatterElements from 11 on. */
static bool older_scatter(pith__node *node) {
    if (node->domain.size || !pith__str_is(node->op_type, "Scatter")) return true;
    node->op_type = PITH_STR("ScatterElements");
    node->opset = PITH_OPSET_NEWEST;
    return !pith__op_bind_node(node, NULL);
}

/* The modes of GridSample have other names from opset 20 on. */
static bool older_names(pith__node *node, int32_t opset) {
    static const char *const names[][2] = { { "bilinear", "linear" }, { "bicubic", "cubic" } };
    const bool new = opset >= 20;
    if (!older_scatter(node)) return false;
    if (node->domain.size || !pith__str_is(node->op_type, "GridSample")) return true;
    const pith_str mode = pith__node_str(node, "mode", new ? "linear" : "bilinear");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pith__str_is(mode, names[i][!new]))
            return !pith__node_set_str(node, "mode", pith__str_of(names[i][new]));
    return true;
}

/* Replaces one node by what its line of `lowerings` makes of it. Reductions are left for
 * pith__older_opset_axes: with axes as an attribute they could not be inferred. */
static pith_status older_node(pith__node *node, int32_t opset, pith_error *err) {
    const lowering *l = lowering_of(node);
    char place[256];
    if (has_axes_to_lower(node)) return PITH_OK;
    pith__new_nodes m = { node->graph, node, node->name, PITH_OK, err };
    pith__value *y = l ? l->lower(&m, node) : NULL;
    if (m.status) return m.status;
    if (!y && is_inner(node))
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s: no opset from %d on has its form",
                          pith__node_place(node, place, sizeof place), PITH_EXPORT_OPSET_LEAST);
    if (!y)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: its operator needs opset %d, and %d is asked for",
                          pith__node_place(node, place, sizeof place), form_since(node), opset);
    y->type = node->outputs[0]->type;
    if (pith__value_replace(node->outputs[0], y)) return pith__fail_memory(err, 0);
    pith__node_remove(node);
    return PITH_OK;
}

/* Subgraphs first, then the node that has them. New nodes stand before the one they replace, so
 * they are not visited again. */
pith_status pith__older_opset(pith__graph *graph, int32_t opset, pith_error *err) {
    for (pith__node *node = graph->first, *next; node; node = next) {
        next = node->next;
        for (size_t a = 0; a < node->attr_count; a++) {
            if (node->attrs[a].kind == PITH_ATTR_GRAPH)
                PITH_TRY(pith__older_opset(node->attrs[a].graph, opset, err));
        }
        older_own_attrs(node);
        if (!older_names(node, opset)) return pith__fail_memory(err, 0);
        PITH_TRY(older_groups(node, opset, err));
        if (is_newer(node, opset) || is_inner(node)) PITH_TRY(older_node(node, opset, err));
    }
    return PITH_OK;
}

pith_status pith__older_opset_axes(pith__graph *graph, int32_t opset, pith_error *err) {
    for (pith__node *node = graph->first; node; node = node->next) {
        for (size_t a = 0; a < node->attr_count; a++)
            if (node->attrs[a].kind == PITH_ATTR_GRAPH)
                PITH_TRY(pith__older_opset_axes(node->attrs[a].graph, opset, err));
        if (is_newer(node, opset) && !older_axes(node)) return pith__fail_memory(err, 0);
    }
    return PITH_OK;
}

/* ---- the opset ---- */

/* A reduction whose axes will be an attribute. */
static bool reduction_holds(const pith__node *node, int32_t opset, char *why, size_t size) {
    const pith__opset_rule *form = pith__opset_rule_find(node->domain, node->op_type, opset);
    const int dtype = node->inputs[0]->type.dtype;
    if (form && (dtype == PITH_UNDEFINED ||
                 pith__opset_rule_takes(form, pith__opset_rule_letter(form->inputs, 0), dtype)))
        return true;
    snprintf(why, size, "input 0 of type %s", pith__dtype_name(dtype));
    return false;
}

/* What is looked for in a graph, and found. */
typedef struct opset_look {
    int32_t opset;
    bool asked; /* the caller named this opset, so a form that is deprecated in it is taken, too; an
                    opset that is chosen has none of those */
    bool memory; /* it is out */
    char why[128];
} opset_look;

/* Whether the node, or what it is lowered to, may stand in the opset. */
static bool node_holds(pith__node *node, opset_look *l) {
    const int32_t opset = l->opset;
    const bool newer = is_newer(node, opset);
    if ((newer || is_inner(node)) && lowering_of(node)) return true;
    if (newer && has_axes_to_lower(node))
        return reduction_holds(node, opset, l->why, sizeof l->why);
    if (newer || is_inner(node)) {
        snprintf(l->why, sizeof l->why, "the operator, or a form of it that no newer opset has");
        return is_inner(node); /* it is refused when it is lowered */
    }
    /* deprecated there; engines have it all the same */
    if (l->asked && is_by_group(node) && opset < 21) return true;
    older_own_attrs(node);
    l->memory = !older_names(node, opset);
    return !l->memory && pith__opset_rule_holds(node, opset, l->why, sizeof l->why);
}

/* The first node that may not stand in the opset; NULL: all may. */
static const pith__node *graph_lacks(const pith__graph *graph, opset_look *l) {
    for (pith__node *node = graph->first; node; node = node->next) {
        for (size_t a = 0; a < node->attr_count; a++) {
            const pith__node *inner = node->attrs[a].kind == PITH_ATTR_GRAPH
                                          ? graph_lacks(node->attrs[a].graph, l)
                                          : NULL;
            if (inner) return inner;
        }
        if (!node_holds(node, l)) return node;
    }
    return NULL;
}

/* Opsets are tried upwards: the oldest one that has everything can be read by the most engines. The
 * last failure is the one that is told. */
pith_status pith__older_opset_choose(int32_t *opset, const pith__graph *graph,
                                     const pith__opset_choice *choice, pith_error *err) {
    opset_look look = { .asked = choice->given != 0 };
    char place[256];
    const pith__node *lacking = NULL;
    for (*opset = choice->given ? choice->given : choice->least; *opset <= choice->most; ++*opset) {
        look.opset = *opset;
        lacking = graph_lacks(graph, &look);
        if (!lacking) return PITH_OK;
        if (look.memory) return pith__fail_memory(err, 0);
        if (!choice->given) continue;
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s: opset %d, which is asked for, lacks %s",
                          pith__node_place(lacking, place, sizeof place), *opset, look.why);
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "%s: no opset from %d to %d has all of the model; the last one lacks %s",
                      lacking ? pith__node_place(lacking, place, sizeof place) : "the model",
                      choice->least, choice->most, look.why);
}

/* ragged.c - the ragged form of a text encoder: ragged.h says what the result is, and rule.h how
 * values are classified.
 *
 * The nodes are taken in order, and each is translated by the rule of its operator. The level 1
 * passes then clean up the result. */
#include "engine/ragged/ragged.h"

#include <stdio.h>

#include "base/dtype.h"
#include "base/piece_listener.h"
#include "engine/opt/match_nodes.h"
#include "engine/ragged/rule.h"

/* How deep the nodes of a value that depends on pairs of positions only may be nested. It bounds
 * the recursion of pith__ragged_pair, hence the stack, on a hostile model; a deeper bias leaves the
 * model without a ragged form. */
#define PAIR_DEPTH_MAX 256

static bool ragged_out_of_memory(pith__ragged *r) {
    r->status = pith__fail_memory(r->err, 0);
    return false;
}

/* The form that a value of this type must have: which of its axes are the batch and the sequence.
 * Any other size that is not a number makes it NONE, since such an axis could be batch * sequence.
 */
pith__ragged_form pith__ragged_form_of(const pith__ragged *r, const pith__type *type) {
    pith__ragged_form form = { .kind = PITH_RAGGED_NONE, .sequence = -1 };
    int sequences = 0;
    if (type->rank < 0) return form;
    for (int i = 0; i < type->rank; i++) {
        if (pith__dim_equal(type->dims[i], r->sequence)) {
            form.sequence = i;
            sequences++;
        } else if (pith__dim_equal(type->dims[i], r->batch) && i == 0) {
            form.batch = true;
        } else if (!pith__dim_known(type->dims[i])) {
            return form;
        }
    }
    if (sequences == 1)
        form.kind = PITH_RAGGED_TOKEN;
    else if (sequences == 0)
        form.kind = form.batch ? PITH_RAGGED_TEXT : PITH_RAGGED_CONST;
    else if (sequences == 2)
        form.kind = PITH_RAGGED_PAIR;
    return form;
}

pith__node *pith__ragged_emit(pith__ragged *r, const char *domain, const char *op_type,
                              pith__value *const *inputs, int count) {
    for (int i = 0; i < count; i++) {
        if (!inputs[i] && r->status) return NULL;
    }
    pith__node *node = pith__graph_add_node(r->to, NULL, domain, op_type, inputs, count, NULL, 1);
    if (!node)
        ragged_out_of_memory(r);
    else if (pith__op_bind_node(node, r->err))
        r->status = PITH_ERR_UNSUPPORTED;
    return r->status ? NULL : node;
}

pith__node *pith__ragged_clone(pith__ragged *r, const pith__node *like, pith__value *const *inputs,
                               int count) {
    pith__node *node = pith__graph_add_like(r->to, NULL, like, inputs, count);
    if (!node) ragged_out_of_memory(r);
    return node;
}

bool pith__ragged_set(pith__ragged *r, const pith__value *v, pith__value *value) {
    if (!value) return false;
    r->forms[v->id] = pith__ragged_form_of(r, &v->type);
    r->values[v->id] = value;
    return true;
}

pith__value *pith__ragged_ints(pith__ragged *r, const int64_t *items, int count) {
    pith__value *v = pith__graph_add_i64s(r->to, PITH_STR(""), items, count);
    if (!v) ragged_out_of_memory(r);
    return v;
}

static pith__value *constant(pith__ragged *r, const pith__value *v) {
    if (!r->values[v->id]) {
        r->values[v->id] = pith__graph_add_const(r->to, v->name, v->type.data);
        if (!r->values[v->id]) ragged_out_of_memory(r);
    }
    return r->values[v->id];
}

/* True if v was not translated. The blame goes to the node that could not be, not to the one that
 * reads v, so that the reason which `inspect` shows names the cause. */
static bool missing(pith__ragged *r, const pith__value *v) {
    if (r->forms[v->id].kind != PITH_RAGGED_NONE) return false;
    r->culprit = r->blame[v->id];
    r->why = r->whys[v->id];
    return true;
}

pith__value *pith__ragged_const(pith__ragged *r, const pith__value *v) {
    if (v->kind == PITH_VALUE_CONST) return constant(r, v);
    if (missing(r, v)) return NULL;
    if (r->forms[v->id].kind == PITH_RAGGED_CONST) return r->values[v->id];
    r->why = r->forms[v->id].kind == PITH_RAGGED_SIZE ? "it uses the batch size as a number"
                                                      : "a parameter is computed";
    return NULL;
}

/* Drops (squeeze) or puts in (unsqueeze) axes of size 1. */
static pith__value *change_axes(pith__ragged *r, const char *op_type, pith__value *v,
                                const int64_t *axes, int count) {
    if (count == 0) return v;
    pith__value *inputs[] = { v, pith__ragged_ints(r, axes, count) };
    pith__node *node = inputs[1] ? pith__ragged_emit(r, "", op_type, inputs, 2) : NULL;
    return node ? node->outputs[0] : NULL;
}

/* An operand by token as another value by token needs it: packed rows first, and the rest axes
 * aligned from the right, as broadcasting does. Both values must have their sequence at the same
 * axis, counted from the right, or row i of one would meet another token's row of the other. Axes
 * that stand at the place of the batch go, missing ones in front are put in with size 1. */
static pith__value *token_operand(pith__ragged *r, const pith__value *v,
                                  const pith__ragged_form *form, int rank) {
    const pith__ragged_form *own = &r->forms[v->id];
    int lead = rank - v->type.rank, at = 1, drop_count = 0, put_count = 0;
    int64_t drop[PITH_MAX_RANK], put[PITH_MAX_RANK];
    if (lead < 0 || own->sequence + lead != form->sequence || (own->batch && lead > 0)) {
        r->why = "the sequence axes of its inputs differ";
        return NULL;
    }
    for (int axis = 0; axis < v->type.rank; axis++) {
        if (axis == own->sequence || (own->batch && axis == 0)) continue;
        if (axis + lead == 0 && form->batch) drop[drop_count++] = at;
        at++;
    }
    for (int axis = form->batch; axis < lead; axis++) {
        if (axis == form->sequence) continue;
        put[put_count] = 1 + put_count;
        put_count++;
    }
    pith__value *x = change_axes(r, "Squeeze", r->values[v->id], drop, drop_count);
    return x ? change_axes(r, "Unsqueeze", x, put, put_count) : NULL;
}

/* A constant as an operand by token. Its axes at the places of batch and sequence must have size 1,
 * and are removed, because one row then serves all tokens. A constant with a row per position is
 * not handled here but by the rule for slices (rule_positions.c). */
static pith__value *const_operand(pith__ragged *r, const pith__value *v,
                                  const pith__ragged_form *form, int rank) {
    pith__value *x = pith__ragged_const(r, v);
    if (!x || form->kind != PITH_RAGGED_TOKEN) return x;
    int lead = rank - v->type.rank, count = 0;
    int64_t drop[2];
    for (int axis = 0; axis < v->type.rank; axis++) {
        if (axis + lead != form->sequence && !(axis + lead == 0 && form->batch)) continue;
        if (v->type.dims[axis] != 1) {
            r->why = "a constant depends on the position";
            return NULL;
        }
        drop[count++] = axis;
    }
    return change_axes(r, "Squeeze", x, drop, count);
}

pith__value *pith__ragged_operand(pith__ragged *r, const pith__value *v,
                                  const pith__ragged_form *form, int rank) {
    if (!v) {
        r->why = "an operand is missing";
        return NULL;
    }
    pith__ragged_kind kind = v->kind == PITH_VALUE_CONST ? PITH_RAGGED_CONST : r->forms[v->id].kind;
    if (kind == PITH_RAGGED_TOKEN && form->kind == PITH_RAGGED_TOKEN)
        return token_operand(r, v, form, rank);
    if (kind == PITH_RAGGED_TEXT && form->kind == PITH_RAGGED_TEXT) return r->values[v->id];
    if (kind == PITH_RAGGED_SHARED) return pith__ragged_shared_operand(r, v, form, rank);
    if (kind == PITH_RAGGED_CONST || kind == PITH_RAGGED_SIZE)
        return const_operand(r, v, form, rank);
    if (missing(r, v)) return NULL;
    r->why = "it combines values per text with values per token";
    return NULL;
}

/* ---- for the longest text ---- */

static pith__value *ragged_longest(pith__ragged *r) {
    if (!r->longest) {
        pith__node *node = pith__ragged_emit(r, "pith", "Longest", &r->offsets, 1);
        r->longest = node ? node->outputs[0] : NULL;
    }
    return r->longest;
}

/* Integers that follow from shapes, computed for one text as long as the longest: the batch becomes
 * 1, the sequence pith.Longest. Other expressions over the two, such as a product, are refused. */
static pith__value *pair_sizes(pith__ragged *r, const pith__value *v) {
    pith__value *parts[PITH_ELEMS_MAX];
    int64_t count = pith__type_count(&v->type);
    if (count < 1 || count > PITH_ELEMS_MAX || v->type.rank > 1 || v->type.dtype != PITH_I64) {
        r->why = "a size is not an int64 vector";
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        pith__dim d;
        if (!pith__type_elem(&v->type, i, &d)) return NULL;
        if (pith__dim_equal(d, r->batch)) d = 1;
        if (!pith__dim_known(d) && !pith__dim_equal(d, r->sequence)) {
            r->why = "a size is neither the batch nor the sequence";
            return NULL;
        }
        parts[i] = pith__dim_known(d) ? pith__ragged_ints(r, &d, 1) : ragged_longest(r);
        if (!parts[i]) return NULL;
    }
    if (v->type.rank == 0) return change_axes(r, "Squeeze", parts[0], (int64_t[]){ 0 }, 1);
    if (count == 1) return parts[0];
    pith__node *node = pith__ragged_emit(r, "", "Concat", parts, (int)count);
    if (!node) return NULL;
    if (pith__node_set_int(node, "axis", 0)) {
        ragged_out_of_memory(r);
        return NULL;
    }
    return node->outputs[0];
}

/* A value that depends on pairs of positions alone, computed for the longest text by copying its
 * nodes. Each value is copied once, so shared parts of a bias are not computed again for every
 * reader. */
pith__value *pith__ragged_pair(pith__ragged *r, const pith__value *v, int depth) {
    if (v->kind == PITH_VALUE_CONST) return constant(r, v);
    if (r->pairs[v->id]) return r->pairs[v->id];
    const pith__node *node = v->producer;
    pith__value *made = NULL;
    if (r->forms[v->id].kind == PITH_RAGGED_SIZE) {
        made = pair_sizes(r, v);
    } else if (v->kind != PITH_VALUE_NODE || node->capture_count || depth > PAIR_DEPTH_MAX) {
        r->why = "the bias depends on an input";
    } else {
        pith__value **inputs =
            pith__arena_array(r->to->arena, (size_t)node->input_count, sizeof *inputs);
        if (!inputs) {
            ragged_out_of_memory(r);
            return NULL;
        }
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] && !(inputs[i] = pith__ragged_pair(r, node->inputs[i], depth + 1)))
                return NULL;
        }
        pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
        const int outputs = clone ? node->output_count : 0;
        for (int i = 0; i < outputs; i++)
            if (node->outputs[i]) r->pairs[node->outputs[i]->id] = clone->outputs[i];
        made = clone ? r->pairs[v->id] : NULL;
    }
    r->pairs[v->id] = made;
    return made;
}

/* ---- the graph ---- */

static pith__value *add_input(pith__ragged *r, pith_str name, int dtype, const char *symbol) {
    pith__value *v = pith__graph_add_value(r->to, name, PITH_VALUE_INPUT);
    pith__type *hint = pith__arena_array(r->to->arena, 1, sizeof *hint);
    pith__dim dim = pith__dim_symbol(r->to->dims, pith__str_of(symbol));
    if (!v || !hint || dim == PITH_DIM_UNKNOWN) {
        ragged_out_of_memory(r);
        return NULL;
    }
    pith__type_init(hint);
    pith__type_set(hint, dtype, 1, &dim);
    v->hint = hint;
    v->type = *hint;
    r->to->inputs[r->to->input_count++] = v;
    return v;
}

static pith__value *ones(pith__ragged *r, int dtype) {
    static const int64_t one = 1;
    pith__node *shape = pith__ragged_emit(r, "", "Shape", &r->ids, 1);
    pith__value *inputs[] = { pith__ragged_ints(r, &one, 1), shape ? shape->outputs[0] : NULL };
    pith__node *expand =
        inputs[0] && inputs[1] ? pith__ragged_emit(r, "", "Expand", inputs, 2) : NULL;
    if (!expand || dtype == PITH_I64) return expand ? expand->outputs[0] : NULL;
    pith__node *cast = pith__ragged_emit(r, "", "Cast", expand->outputs, 1);
    if (cast && pith__node_set_int(cast, "to", dtype)) {
        ragged_out_of_memory(r);
        return NULL;
    }
    return cast ? cast->outputs[0] : NULL;
}

static bool is_mask(const pith__value *v) {
    return pith__str_is(v->name, "attention_mask") || pith__str_is(v->name, "input_mask");
}

/* The inputs of the packed graph: ids by token, then positions and offsets. What a mask would say
 * is known there (all ones), and position_ids are the positions. */
static bool make_inputs(pith__ragged *r) {
    const pith__graph *from = r->from;
    r->to->inputs = pith__arena_array(r->to->arena, from->input_count + 2, sizeof *r->to->inputs);
    if (!r->to->inputs) return ragged_out_of_memory(r);
    for (size_t i = 0; i < from->input_count; i++) {
        pith__value *v = from->inputs[i];
        pith__ragged_form form = pith__ragged_form_of(r, &v->type);
        if (form.kind != PITH_RAGGED_TOKEN || !form.batch || v->type.rank != 2) {
            r->why = "an input does not have the shape [batch, sequence]";
            return false;
        }
        if (is_mask(v) || pith__str_is(v->name, "position_ids")) continue;
        pith__value *made = add_input(r, v->name, v->type.dtype, "tokens");
        if (!pith__ragged_set(r, v, made)) return false;
        if (pith__str_is(v->name, "input_ids")) r->ids = made;
    }
    r->positions = add_input(r, PITH_STR("pith.positions"), PITH_I64, "tokens");
    r->offsets =
        r->positions ? add_input(r, PITH_STR("pith.offsets"), PITH_I64, "texts + 1") : NULL;
    if (!r->offsets) return false;
    for (size_t i = 0; i < from->input_count; i++) {
        pith__value *v = from->inputs[i];
        if (!r->values[v->id] &&
            !pith__ragged_set(r, v, is_mask(v) ? ones(r, v->type.dtype) : r->positions))
            return false;
    }
    return true;
}

static bool ragged_is_size(const pith__value *v) {
    return v->type.elems && !v->type.data && pith__dtype_is_int(v->type.dtype) &&
           pith__type_count(&v->type) >= 0;
}

/* A node of constants alone, as it is. */
static bool copy_node(pith__ragged *r, const pith__node *node) {
    pith__value **inputs =
        pith__arena_array(r->to->arena, (size_t)node->input_count, sizeof *inputs);
    if (!inputs) return ragged_out_of_memory(r);
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && !(inputs[i] = pith__ragged_const(r, node->inputs[i]))) return false;
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
    if (!clone) return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && !pith__ragged_set(r, node->outputs[i], clone->outputs[i]))
            return false;
    }
    return true;
}

/* Translates one node. In this order: sizes and pairs stay unmade until a reader asks for them,
 * because most readers are replaced by steps that need neither; a node of constants is copied; the
 * rest is up to the operator's rule. */
static bool ragged_translate(pith__ragged *r, const pith__node *node) {
    bool sizes = true, pairs = true,
         constants = node->capture_count == 0 && !(node->op->flags & PITH_OP_RANDOM);
    for (int i = 0; i < node->output_count; i++) {
        const pith__value *out = node->outputs[i];
        if (!out) continue;
        pith__ragged_form form = pith__ragged_form_of(r, &out->type);
        sizes = sizes && ragged_is_size(out);
        pairs = pairs && form.kind == PITH_RAGGED_PAIR;
    }
    if (sizes || pairs) {
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i])
                r->forms[node->outputs[i]->id].kind = sizes ? PITH_RAGGED_SIZE : PITH_RAGGED_PAIR;
        return true;
    }
    for (int i = 0; i < node->input_count; i++) {
        if (!node->inputs[i] || node->inputs[i]->kind == PITH_VALUE_CONST) continue;
        constants = constants && r->forms[node->inputs[i]->id].kind == PITH_RAGGED_CONST;
    }
    if (constants) return copy_node(r, node);
    const pith__ragged_rule *rule =
        node->output_count > 0 && node->outputs[0] ? pith__ragged_find(node) : NULL;
    if (rule) {
        bool done = rule->translate(r, node);
        if (done) pith__piece_used(rule);
        return done;
    }
    r->why = "this operator may not work row by row";
    return false;
}

/* A node that needs what could not be translated is not to blame itself, whatever else its rule
 * found. */
static void find_culprit(pith__ragged *r, const pith__node *node) {
    for (int i = 0; i < node->input_count; i++) {
        if (r->culprit) return;
        if (node->inputs[i] && node->inputs[i]->kind != PITH_VALUE_CONST)
            (void)missing(r, node->inputs[i]);
    }
}

/* only: indices of the wanted outputs; NULL: all. */
static bool ragged_make_outputs(pith__ragged *r, const int *only, size_t count) {
    const pith__graph *from = r->from;
    pith__graph *to = r->to;
    to->output_count = only ? count : from->output_count;
    to->outputs = pith__arena_array(to->arena, to->output_count, sizeof *to->outputs);
    pith_str *names = pith__arena_array(to->arena, to->output_count, sizeof *names);
    to->output_names = names;
    if (!to->outputs || !names) return ragged_out_of_memory(r);
    for (size_t i = 0; i < to->output_count; i++) {
        size_t index = only ? (size_t)only[i] : i;
        const pith__value *v = from->outputs[index];
        const pith__ragged_form *form = &r->forms[v->id];
        if (missing(r, v)) return false;
        bool token = form->kind == PITH_RAGGED_TOKEN && form->batch && form->sequence == 1;
        if (!token && form->kind != PITH_RAGGED_TEXT) {
            r->why = "an output has neither one row per token nor one row per text";
            return false;
        }
        pith__value *made = r->values[v->id];
        if (made->kind == PITH_VALUE_NODE) made->name = v->name;
        made->output_uses++;
        to->outputs[i] = made;
        names[i] = pith__graph_output_name(from, index);
    }
    return true;
}

/* Translates all nodes, then the outputs. A node without a translation is remembered with its
 * reason: it matters only if an output needs it. Each such node is also tried as the end of a part
 * that runs text by text, since the nodes before it may have failed for the same reason. */
static bool ragged_build(pith__ragged *r, const int *outputs, size_t count) {
    if (!make_inputs(r)) return false;
    for (const pith__node *node = r->from->first; node; node = node->next) {
        r->culprit = NULL;
        if (ragged_translate(r, node)) continue;
        if (r->status) return false;
        find_culprit(r, node);
        bool each_text = pith__ragged_each_text(r, node);
        if (r->status) return false;
        for (int i = 0; i < node->output_count; i++) {
            if (!node->outputs[i]) continue;
            if (!each_text) r->forms[node->outputs[i]->id].kind = PITH_RAGGED_NONE;
            r->blame[node->outputs[i]->id] = r->culprit ? r->culprit : node;
            r->whys[node->outputs[i]->id] = r->why;
        }
    }
    r->culprit = NULL;
    return ragged_make_outputs(r, outputs, count);
}

/* What goes text by text, of that which is used. */
static void report_each_text(const pith__ragged *r, pith__report *report) {
    char place[256];
    for (size_t i = 0; i < r->from->value_count; i++) {
        const pith__node *made = r->values[i] ? r->values[i]->producer : NULL;
        if (!r->whys[i] || !pith__match_is_own(made, "EachText")) continue;
        pith__report_add(report, false, "each_text",
                         "texts run one at a time up to '" PITH_STR_FMT "': %s: %s",
                         PITH_STR_ARG(r->from->values[i]->name),
                         pith__node_place(r->blame[i], place, sizeof place), r->whys[i]);
    }
}

static pith_status explain(pith_str *reason, const pith__ragged *r, pith__arena *arena) {
    char place[256];
    if (r->culprit)
        *reason = pith__arena_printf(arena, "%s: %s",
                                     pith__node_place(r->culprit, place, sizeof place), r->why);
    else
        *reason = pith__arena_printf(arena, "%s", r->why);
    return reason->data ? PITH_OK : pith__fail_memory(r->err, 0);
}

/* Builds the packed graph next to the other one, which stays as it is. If it cannot be built,
 * *ragged stays NULL and *reason names the node to blame; that is no failure. */
pith_status pith__ragged_make(pith__graph **ragged, pith_str *reason, const int *outputs,
                              size_t count, pith__opt *o, pith__arena *arena) {
    const pith__graph *from = o->graph;
    pith__ragged r = { .from = from, .err = o->err };
    *ragged = NULL;
    *reason = PITH_STR("the model has no input 'input_ids' of shape [batch, sequence]");
    for (size_t i = 0; i < from->input_count; i++) {
        const pith__type *type = &from->inputs[i]->type;
        if (!pith__str_is(from->inputs[i]->name, "input_ids") || type->rank != 2) continue;
        r.batch = type->dims[0];
        r.sequence = type->dims[1];
    }
    if (pith__dim_known(r.batch) || pith__dim_known(r.sequence)) return PITH_OK;
    PITH_TRY(pith__graph_create(&r.to, arena, NULL, o->err));
    r.to->log = from->log;
    r.to->making = from->making;
    r.to->operators = from->operators;
    r.to->ir_version = from->ir_version;
    r.to->producer = from->producer;
    r.forms = pith__arena_array(arena, from->value_count, sizeof *r.forms);
    r.values = pith__arena_array(arena, from->value_count, sizeof *r.values);
    r.pairs = pith__arena_array(arena, from->value_count, sizeof *r.pairs);
    r.blame = pith__arena_array(arena, from->value_count, sizeof *r.blame);
    r.whys = pith__arena_array(arena, from->value_count, sizeof *r.whys);
    if (!r.forms || !r.values || !r.pairs || !r.blame || !r.whys)
        return pith__fail_memory(o->err, from->value_count);
    if (!ragged_build(&r, outputs, count)) return r.status ? r.status : explain(reason, &r, arena);
    pith__graph_sweep(r.to);
    report_each_text(&r, o->report);
    PITH_TRY(pith__ops_infer(r.to, false, o->err));
    pith__opt clean = { .graph = r.to, .level = 1, .allocator = o->allocator, .err = o->err };
    PITH_TRY(pith__opt_run(&clean, NULL));
    *reason = PITH_STR("");
    *ragged = r.to;
    return PITH_OK;
}

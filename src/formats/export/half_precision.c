/* half_precision.c - see half_precision.h.
 *
 * A node is "wide" if it computes in f32. Every f32 value has up to two forms, made when the first
 * node asks for one: the one that its producer gives, and a Cast of it. Constants are converted
 * when they are needed narrow. */
#include "formats/export/half_precision.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "engine/ops/shared/call_op.h"
#include "formats/export/new_nodes.h"
#include "formats/export/opset_rules.h"

/* Operators that stay in f32: their results leave the range of f16 (sums of squares), need more
 * digits than it has (positions and their angles), have inputs that the standard wants in f32, or
 * look at their bits. */
static const char *const wide_ops[] = { "BitCast",
                                        "Cos",
                                        "Sin",
                                        "Pow",
                                        "ReduceMean",
                                        "ReduceSum",
                                        "ReduceSumSquare",
                                        "ReduceL2",
                                        "ReduceProd",
                                        "ReduceLogSumExp",
                                        "CumSum",
                                        "Range",
                                        "Exp",
                                        "Log",
                                        "Resize",
                                        "NonMaxSuppression",
                                        "QuantizeLinear",
                                        "DequantizeLinear",
                                        "DynamicQuantizeLinear",
                                        "QLinearMatMul",
                                        "QLinearConv",
                                        "MatMulInteger",
                                        "ConvInteger",
                                        "RandomNormal",
                                        "RandomUniform",
                                        "NegativeLogLikelihoodLoss",
                                        "SoftmaxCrossEntropyLoss" };

/* Operators that go with their inputs: they are wide if all inputs that are no constants come from
 * wide nodes. */
static const char *const following_ops[] = {
    "Add",     "Sub",       "Mul",       "Div",         "Sqrt",     "Reciprocal",    "Neg",
    "Max",     "Min",       "Where",     "Abs",         "Concat",   "Slice",         "Reshape",
    "Squeeze", "Unsqueeze", "Transpose", "Expand",      "Identity", "Tile",          "Split",
    "Cast",    "Equal",     "Less",      "LessOrEqual", "Greater",  "GreaterOrEqual"
};

typedef struct half_forms {
    pith__value *wide, *narrow; /* NULL: not made yet */
    bool from_wide;             /* its node computes in f32 */
} half_forms;

typedef struct narrower {
    pith__graph *graph;
    const pith__half_precision_form *how;
    int dtype;
    half_forms *forms; /* by id of the values that the graph had */
    size_t count;
    pith__half_precision_report *report;
    pith_error *err;
} narrower;

static bool op_is_among(const pith__node *node, const char *const *ops, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (pith__str_is(node->op_type, ops[i])) return true;
    return false;
}
#define OP_IS_AMONG(node, ops) op_is_among(node, ops, sizeof(ops) / sizeof *(ops))

static bool is_f32(const pith__value *v) { return v && v->type.dtype == PITH_F32; }

/* ---- constants ---- */

/* The largest finite numbers of the types, (2 - 2^-10) 2^15 and (2 - 2^-7) 2^127: what is beyond
 * them would be rounded to infinity. A number below -F16_MOST, or below -BF16_MASK in bf16, is
 * taken for one of a mask (half_mask_number). bf16 has nearly the range of f32, so two numbers well
 * inside its limit may overflow in a sum; 1e30 is far from that, and far beyond any score. */
#define F16_MOST 65504.0f
#define BF16_MOST 0x1.fep127f
#define BF16_MASK 1e30f

/* Numbers that are rounded between two looks whether to stop: less than a millisecond. */
enum { HALF_LOOK = 1 << 16 };

static uint16_t half_rounded(const narrower *n, float x) {
    return n->dtype == PITH_F16 ? pith__f16_of_f32(x) : pith__bf16_of_f32(x);
}

/* The number in the narrow type. One beyond its range becomes the largest finite one, since an
 * infinity among weights would spread; infinities that the file has stay, as masks have them. A
 * number that becomes 0 is counted as lost. A limit, such as the epsilon under a root, becomes the
 * least number above 0 instead: something may be divided by it. */
static uint16_t half_number(narrower *n, float x, bool limit, pith_str name) {
    const float most = n->dtype == PITH_F16 ? F16_MOST : BF16_MOST;
    if (fabsf(x) > most && !isinf(x)) {
        x = copysignf(most, x);
        if (!n->report->clamped++) n->report->clamped_in = name;
    }
    const uint16_t bits = half_rounded(n, x);
    const bool zero = x != 0.0f && !(bits & 0x7fff);
    n->report->lost += zero && !limit;
    return zero && limit ? bits | 1 : bits; /* the least number above 0 */
}

/* A number by itself, or numbers that others are compared with or divided by. */
static bool half_is_limit(const pith__value *v) {
    static const char *const ops[] = { "Max", "Min", "Clip" };
    if (v->type.data->bytes == sizeof(float)) return true;
    for (size_t i = 0; i < v->user_count; i++) {
        const pith__node *user = v->users[i].node;
        if (OP_IS_AMONG(user, ops) ||
            (pith__str_is(user->op_type, "Div") && v->users[i].input == 1))
            return true;
    }
    return false;
}

/* Made when the first node asks for it. NaN has no meaning in a weight and would spread without
 * notice, so it is an error; infinities stay, as masks have them. */
static pith_status half_constant(pith__value **narrow, narrower *n, const pith__value *v) {
    const pith_tensor *t = v->type.data;
    pith_tensor made = *t;
    const size_t count = t->bytes / sizeof(float);
    const bool limit = half_is_limit(v);
    uint16_t *to = pith__arena_alloc64(n->graph->arena, count * sizeof *to + 1);
    if (!to) return pith__fail_memory(n->err, count * sizeof *to);
    for (size_t i = 0; i < count; i++) {
        float x;
        if (i % HALF_LOOK == 0) PITH_TRY(pith__stop_check(pith__graph_stop(n->graph), n->err));
        /* mapped weights lie at any address */
        memcpy(&x, (const char *)t->data + i * sizeof x, sizeof x);
        if (isnan(x))
            return pith__fail(n->err, PITH_ERR_ARGUMENT,
                              "constant '" PITH_STR_FMT "' has a NaN at element %zu",
                              PITH_STR_ARG(v->name), i);
        to[i] = half_number(n, x, limit, v->name);
    }
    made.data = to;
    made.dtype = n->dtype;
    made.bytes = count * sizeof *to;
    *narrow = pith__graph_add_const(n->graph, v->name, &made);
    return *narrow ? PITH_OK : pith__fail_memory(n->err, 0);
}

/* A number of a mask, such as the least of f32, would become minus infinity in a sum, and rows of
 * those NaN. */
static pith_status half_mask_number(narrower *n, pith__value *v) {
    const pith_tensor *t = v->type.data;
    float x;
    if (t->bytes != sizeof x) return PITH_OK;
    memcpy(&x, t->data, sizeof x);
    if (!(x < -(n->dtype == PITH_F16 ? F16_MOST : BF16_MASK)) || isinf(x)) return PITH_OK;
    pith_tensor made = *t;
    float *to = pith__arena_alloc64(n->graph->arena, sizeof *to);
    if (!to) return pith__fail_memory(n->err, sizeof *to);
    *to = PITH_HALF_PRECISION_MASK;
    made.data = to;
    half_forms *f = &n->forms[v->id];
    f->wide = pith__graph_add_const(n->graph, v->name, &made);
    if (!f->wide) return pith__fail_memory(n->err, 0);
    f->wide->type.dtype = PITH_F32;
    return PITH_OK;
}

/* ---- nodes ---- */

/* Sets *form to the value in the type that is wanted; nodes are made before `before` (NULL: at the
 * end). */
static pith_status half_form(pith__value **form, narrower *n, pith__value *v, bool wide,
                             pith__node *before) {
    half_forms *f = &n->forms[v->id];
    pith__value **wanted = wide ? &f->wide : &f->narrow;
    if (!*wanted && !wide && v->kind == PITH_VALUE_CONST) {
        PITH_TRY(half_constant(wanted, n, f->wide ? f->wide : v));
    } else if (!*wanted) {
        pith__new_nodes m = { n->graph, before, v->name, PITH_OK, n->err };
        *wanted = pith__new_node_cast(&m, wide ? f->narrow : f->wide, wide ? PITH_F32 : n->dtype);
        if (m.status) return m.status;
        (*wanted)->type = v->type;
        (*wanted)->type.dtype = wide ? PITH_F32 : n->dtype;
    }
    *form = *wanted;
    return PITH_OK;
}

/* The caller names operators, or parts of node names. */
static bool half_is_kept(const narrower *n, const pith__node *node) {
    for (size_t i = 0; i < n->how->keep_count; i++) {
        const size_t size = strlen(n->how->keep[i]);
        if (pith__str_is(node->op_type, n->how->keep[i])) return true;
        if (size)
            for (size_t at = 0; at + size <= node->name.size; at++)
                if (!memcmp(node->name.data + at, n->how->keep[i], size)) return true;
    }
    return false;
}

/* Whether the input may be of the narrow type, by the standard and for Pith. form: of the node's
 * operator. */
static bool half_is_taken(const narrower *n, const pith__opset_rule *form, const pith__node *node,
                          int input) {
    return is_f32(node->inputs[input]) &&
           pith__opset_rule_takes(form, pith__opset_rule_letter(form->inputs, input), n->dtype) &&
           (!node->op || pith__op_takes(node->op, input, n->dtype));
}

/* A subgraph, or a sequence or optional whose items keep their type. */
static bool half_is_opaque(const pith__node *node) {
    for (size_t a = 0; a < node->attr_count; a++)
        if (node->attrs[a].kind == PITH_ATTR_GRAPH || node->attrs[a].kind == PITH_ATTR_GRAPHS)
            return true;
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        const pith__value *v =
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (v && (v->type.dtype == PITH_SEQUENCE || v->type.dtype == PITH_NONE)) return true;
    }
    return node->capture_count != 0;
}

/* Whether some output of f32 has the type of an input that may be narrow, or there are none of f32.
 */
static bool half_reaches(const narrower *n, const pith__opset_rule *form, const pith__node *node) {
    bool any = false;
    for (int k = 0; k < node->output_count; k++) {
        const char letter = pith__opset_rule_letter(form->outputs, k);
        if (!is_f32(node->outputs[k])) continue;
        any = true;
        if (letter >= 'a')
            for (int i = 0; i < node->input_count; i++)
                if (pith__opset_rule_letter(form->inputs, i) == letter &&
                    half_is_taken(n, form, node, i))
                    return true;
    }
    return !any;
}

/* Scattering that adds or compares: sums need more digits than f16 has, and ONNX Runtime has no
 * such operator of f16 for CPUs. */
static bool half_reduces(const pith__node *node) {
    static const char *const ops[] = { "ScatterElements", "ScatterND" };
    return OP_IS_AMONG(node, ops) &&
           !pith__str_is(pith__node_str(node, "reduction", "none"), "none");
}

/* Whether a node computes in f32. By the standard, the first floating-point input decides; then
 * come operators that need the range, and nodes the caller keeps. An operator that only passes
 * values on follows its inputs: casts around it would gain nothing. */
static bool half_is_wide(const narrower *n, const pith__opset_rule *form, const pith__node *node) {
    size_t inputs = 0, computed = 0, wide = 0;
    if (!form) return true;
    for (int i = 0; i < node->input_count; i++) {
        const pith__value *v = node->inputs[i];
        if (!is_f32(v)) continue;
        if (!inputs++ && !half_is_taken(n, form, node, i)) return true;
        if (v->kind == PITH_VALUE_CONST) continue;
        computed++;
        wide += n->forms[v->id].from_wide;
    }
    if (!inputs || !half_reaches(n, form, node) || half_is_opaque(node) ||
        OP_IS_AMONG(node, wide_ops) || half_reduces(node) || half_is_kept(n, node))
        return true;
    return computed && computed == wide && OP_IS_AMONG(node, following_ops);
}

/* What was declared of a value, with the type that it has now. */
static pith_status half_hint(narrower *n, pith__value *v, const pith__type *declared,
                             int32_t dtype) {
    pith__type *hint = pith__arena_alloc(n->graph->arena, sizeof *hint);
    if (!hint) return pith__fail_memory(n->err, sizeof *hint);
    *hint = *declared;
    hint->dtype = dtype;
    v->hint = hint;
    return PITH_OK;
}

/* Numbers of masks in attributes; see PITH_HALF_PRECISION_MASK. */
static pith_status half_attrs(narrower *n, pith__node *node) {
    const float given = pith__node_float(node, "mask_filter_value", 0);
    if (!(given < -(n->dtype == PITH_F16 ? F16_MOST : BF16_MASK))) return PITH_OK;
    return pith__node_set_float(node, "mask_filter_value", PITH_HALF_PRECISION_MASK)
               ? pith__fail_memory(n->err, 0)
               : PITH_OK;
}

/* Puts the inputs into their forms. Returns the letters of those that are narrow as bits in
 * *letters. */
static pith_status half_node_inputs(uint32_t *letters, narrower *n, pith__node *node,
                                    const pith__opset_rule *form, bool wide) {
    *letters = 0;
    for (int i = 0; i < node->input_count; i++) {
        pith__value *v = node->inputs[i], *made;
        if (!is_f32(v) || v->id >= n->count) continue;
        const bool narrow = !wide && half_is_taken(n, form, node, i);
        const char letter = narrow ? pith__opset_rule_letter(form->inputs, i) : '\0';
        if (letter >= 'a') *letters |= 1u << (letter - 'a');
        PITH_TRY(half_form(&made, n, v, !narrow, node));
        if (made != v && pith__node_set_input(node, i, made)) return pith__fail_memory(n->err, 0);
    }
    return PITH_OK;
}

/* The type that a value will have; NULL: it is absent. Until inference runs again, narrow ones say
 * f32. */
static const pith__type *half_type_of(pith__type *type, const narrower *n, const pith__value *v) {
    if (!v) return NULL;
    *type = v->type;
    if (v->id < n->count && n->forms[v->id].narrow == v) {
        type->dtype = n->dtype;
        type->data = NULL;
    }
    return type;
}

/* Notes in which type the node gives its output i. */
static pith_status half_output(narrower *n, const pith__node *node, int i, bool narrow) {
    pith__value *v = node->outputs[i];
    if (!is_f32(v)) return PITH_OK;
    half_forms *f = &n->forms[v->id];
    *(narrow ? &f->narrow : &f->wide) = v;
    f->from_wide = !narrow;
    return narrow && v->hint ? half_hint(n, v, v->hint, n->dtype) : PITH_OK;
}

/* Notes the types of the outputs for the inputs' forms: what inference says, or, of an operator
 * that Pith does not run, those of the inputs with the same letter. */
static pith_status half_node_outputs(narrower *n, const pith__node *node,
                                     const pith__opset_rule *form, uint32_t letters) {
    if (!node->op) {
        for (int i = 0; i < node->output_count; i++) {
            const char letter = pith__opset_rule_letter(form->outputs, i);
            PITH_TRY(half_output(n, node, i, letter >= 'a' && letters >> (letter - 'a') & 1));
        }
        return PITH_OK;
    }
    pith__arena scratch;
    pith__arena_init(&scratch, n->graph->arena->allocator);
    const pith__type **in = pith__arena_array(&scratch, pith__node_in_room(node), sizeof *in);
    pith__type *out = pith__arena_array(&scratch, pith__node_out_room(node), sizeof *out);
    pith__type *given = pith__arena_array(&scratch, (size_t)node->input_count + 1, sizeof *given);
    pith_status status = in && out && given ? PITH_OK : pith__fail_memory(n->err, 0);
    if (!status) {
        pith__infer c = pith__invoke_infer(node, in, out, &scratch, n->err);
        c.dims = n->graph->dims;
        for (int i = 0; i < node->input_count; i++)
            in[i] = half_type_of(&given[i], n, node->inputs[i]);
        status = pith__op_infer_node(&c);
    }
    for (int i = 0; i < node->output_count && !status; i++)
        status = half_output(n, node, i, out[i].dtype == n->dtype);
    pith__arena_free(&scratch);
    return status;
}

/* Visits a node; the forms of its inputs are known, because nodes stand behind those that they
 * read. First comes the type that it computes in, then each input in the form that fits, then the
 * types of its outputs for these. A wide node has outputs of f32. An output of a narrow node is
 * narrow if it has the type of an input that is, which inference tells. A reader that wants an
 * output in the other form gets a Cast when it is visited. */
static pith_status half_node(narrower *n, pith__node *node) {
    const pith__opset_rule *form =
        pith__opset_rule_find(node->domain, node->op_type, n->how->opset);
    const bool wide = half_is_wide(n, form, node);
    uint32_t letters;
    PITH_TRY(half_node_inputs(&letters, n, node, form, wide));
    if (!wide) {
        PITH_TRY(half_attrs(n, node));
        return half_node_outputs(n, node, form, letters);
    }
    for (int i = 0; i < node->output_count; i++) PITH_TRY(half_output(n, node, i, false));
    return PITH_OK;
}

/* A value that is an output in its other type hands its name on. */
static pith_status half_outputs(narrower *n) {
    pith__graph *g = n->graph;
    pith__value **values = pith__arena_array(g->arena, g->output_count + 1, sizeof *values);
    pith_str *names = pith__arena_array(g->arena, g->output_count + 1, sizeof *names);
    if (!values || !names) return pith__fail_memory(n->err, 0);
    for (size_t i = 0; i < g->output_count; i++) {
        pith__value *v = g->outputs[i];
        names[i] = pith__graph_output_name(g, i);
        values[i] = v;
        if (!is_f32(v)) continue;
        PITH_TRY(half_form(&values[i], n, v, !n->how->ports, NULL));
        if (values[i] == v) continue;
        v->name = PITH_STR("");
        /* its sizes */
        if (v->hint) PITH_TRY(half_hint(n, values[i], v->hint, values[i]->type.dtype));
    }
    return pith__new_node_outputs(g, values, names, g->output_count, n->err);
}

/* An input of the narrow type takes the place of one of f32; nodes that are wide read a Cast of it.
 */
static pith_status half_input(narrower *n, pith__value **input) {
    pith__graph *graph = n->graph;
    pith__value *v = *input, *narrow = n->forms[v->id].narrow;
    pith__value *given = pith__graph_add_value(graph, v->name, PITH_VALUE_INPUT);
    pith__type *hint = pith__arena_alloc(graph->arena, sizeof *hint);
    if (!given || !hint) return pith__fail_memory(n->err, 0);
    given->type = v->type;
    given->type.dtype = n->dtype;
    *hint = v->hint ? *v->hint : v->type;
    hint->dtype = n->dtype;
    given->hint = hint;
    if (narrow && pith__value_replace(narrow, given)) return pith__fail_memory(n->err, 0);
    pith__new_nodes m = { graph, graph->first, v->name, PITH_OK, n->err };
    v->name = PITH_STR("");
    pith__value *wide = pith__new_node_cast(&m, given, PITH_F32);
    if (m.status) return m.status;
    wide->type = v->type;
    *input = given;
    return pith__value_replace(v, wide) ? pith__fail_memory(n->err, 0) : PITH_OK;
}

/* Only with `ports`. A default is a constant of f32 that the file says callers may replace;
 * changing its type would change what they may give. */
static pith_status half_inputs(narrower *n) {
    for (size_t i = 0; i < n->graph->input_count; i++) {
        pith__value *v = n->graph->inputs[i];
        if (!is_f32(v)) continue;
        if (v->type.data)
            return pith__fail(n->err, PITH_ERR_UNSUPPORTED,
                              "input '" PITH_STR_FMT
                              "' has a default; inputs and outputs have to keep their types",
                              PITH_STR_ARG(v->name));
        PITH_TRY(half_input(n, &n->graph->inputs[i]));
    }
    pith__graph_sweep(n->graph);
    return PITH_OK;
}

/* Whether a Cast of the constant gives the numbers of its narrow form (half_number). */
static bool half_casts(const narrower *n, const pith_tensor *t, const pith_tensor *narrow) {
    const float most = n->dtype == PITH_F16 ? F16_MOST : BF16_MOST;
    const uint16_t *numbers = narrow->data;
    pith__stop *stop = pith__graph_stop(n->graph);
    for (size_t i = 0; i < t->bytes / sizeof(float); i++) {
        float x;
        if (i % HALF_LOOK == 0 && pith__stop_asked(stop)) return false;
        memcpy(&x, (const char *)t->data + i * sizeof x, sizeof x);
        if (!(fabsf(x) <= most) || half_rounded(n, x) != numbers[i]) return false;
    }
    return true;
}

/* Constants that are needed in both types are stored as f32 and cast: two of them would be larger
 * than before. Those of less than WORTH bytes are stored twice, since there is little to gain; and
 * so are those with a number that a Cast would make an infinity, or a limit that it would make 0.
 */
static pith_status half_store_once(narrower *n) {
    enum { WORTH = 1024 };
    for (size_t i = 0; i < n->count; i++) {
        PITH_TRY(pith__stop_check(pith__graph_stop(n->graph), n->err));
        pith__value *v = n->graph->values[i], *narrow = n->forms[i].narrow;
        if (v->kind != PITH_VALUE_CONST || !narrow || !narrow->user_count ||
            n->forms[i].wide != v || !(v->user_count || v->output_uses) ||
            v->type.data->bytes < WORTH || !half_casts(n, v->type.data, narrow->type.data))
            continue;
        pith__new_nodes m = { n->graph, n->graph->first, v->name, PITH_OK, n->err };
        pith__value *cast = pith__new_node_cast(&m, v, n->dtype);
        if (m.status) return m.status;
        cast->type = narrow->type;
        cast->type.data = NULL;
        if (pith__value_replace(narrow, cast)) return pith__fail_memory(n->err, 0);
    }
    return PITH_OK;
}

/* Nodes are visited in order, so the forms of their inputs are known. Masks are corrected first, in
 * f32, since both forms are made of the corrected number. */
pith_status pith__half_precision(pith__half_precision_report *report, pith__graph *graph,
                                 const pith__half_precision_form *form, pith_error *err) {
    narrower n = { .graph = graph,
                   .how = form,
                   .dtype = form->dtype,
                   .count = graph->value_count,
                   .report = report,
                   .err = err };
    *report = (pith__half_precision_report){ .clamped_in = PITH_STR("") };
    n.forms = pith__arena_array(graph->arena, n.count + 1, sizeof *n.forms);
    if (!n.forms) return pith__fail_memory(err, n.count * sizeof *n.forms);
    for (size_t i = 0; i < n.count; i++) {
        pith__value *v = graph->values[i];
        if (v->kind == PITH_VALUE_NODE || !is_f32(v)) continue;
        n.forms[i].wide = v;
        if (v->kind == PITH_VALUE_CONST) PITH_TRY(half_mask_number(&n, v));
    }
    for (pith__node *node = graph->first, *next; node; node = next) {
        next = node->next;
        PITH_TRY(pith__stop_check(pith__graph_stop(graph), err));
        PITH_TRY(half_node(&n, node));
    }
    PITH_TRY(half_outputs(&n));
    PITH_TRY(half_store_once(&n));
    for (size_t i = 0; i < n.count; i++) { /* inference passes over nodes without operator */
        pith__value *v = graph->values[i];
        if (v->producer && !v->producer->op && n.forms[i].narrow == v) v->type.dtype = n.dtype;
    }
    return form->ports ? half_inputs(&n) : PITH_OK;
}

/* pass_widen.c - values stored in f16 or bf16 are computed in f32.
 *
 * Each float operator on narrow values gets its operands cast to f32 and its result cast back.
 * Casts to a narrow type and back again then cancel, so a network of such operators keeps f32 from
 * one narrow input to the next narrow output. Weights and tables stay as they are stored:
 * pith.Linear and pith.EmbedNorm read them through the cast. Results are nearer to the exact ones
 * than the file's own arithmetic. Levels below 3 keep that arithmetic. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

static bool widen_is_narrow(const pith__value *v) {
    return v && (v->type.dtype == PITH_F16 || v->type.dtype == PITH_BF16);
}

/* Operators that mean the same in every float type and give floats of their operands' type, or
 * none. */
static bool widens(const pith__node *node) {
    static const char *const names[] = {
        "Abs",        "Add",       "Clip",       "Concat",
        "Cos",        "Div",       "Erf",        "Exp",
        "Expand",     "Flatten",   "Gather",     "Gelu",
        "Gemm",       "Identity",  "IsNaN",      "LayerNormalization",
        "Log",        "MatMul",    "Max",        "Min",
        "Mul",        "Neg",       "Pow",        "RMSNormalization",
        "Reciprocal", "ReduceMax", "ReduceMean", "ReduceSum",
        "Relu",       "Reshape",   "Sigmoid",    "Sin",
        "Slice",      "Softmax",   "Split",      "Sqrt",
        "Squeeze",    "Sub",       "Tanh",       "Transpose",
        "Unsqueeze",  "Where",
    };
    /* Rows of a constant table are looked up as they are stored. */
    if (node->capture_count ||
        (pith__match_is(node, "Gather") && pith__match_const(node->inputs[0])))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (pith__match_is(node, names[i])) return true;
    }
    return false;
}

static bool touches_narrow(const pith__node *node) {
    for (int i = 0; i < node->input_count; i++) {
        if (widen_is_narrow(node->inputs[i])) return true;
    }
    return false;
}

static pith_status widen_cast(pith__value **out, pith__opt *o, pith__node *before, pith__value *v,
                              int dtype) {
    pith__node *node = pith__graph_add_node(o->graph, before, "", "Cast", &v, 1, NULL, 1);
    if (!node || pith__node_set_int(node, "to", dtype)) return pith__fail_memory(o->err, 0);
    *out = node->outputs[0];
    return pith__op_bind_node(node, o->err);
}

static pith_status pass_widen_widen(pith__opt *o, pith__node *node) {
    pith__node *made = pith__graph_add_like(o->graph, node, node, node->inputs, node->input_count);
    if (!made) return pith__fail_memory(o->err, 0);
    for (int i = 0; i < made->input_count; i++) {
        pith__value *wide;
        if (!widen_is_narrow(made->inputs[i])) continue;
        PITH_TRY(widen_cast(&wide, o, made, made->inputs[i], PITH_F32));
        if (pith__node_set_input(made, i, wide)) return pith__fail_memory(o->err, 0);
    }
    for (int i = 0; i < node->output_count; i++) {
        pith__value *old = node->outputs[i], *by = made->outputs[i];
        if (!old) continue;
        if (widen_is_narrow(old))
            PITH_TRY(widen_cast(&by, o, node, by, old->type.dtype));
        else
            by->type = old->type;
        PITH_TRY(pith__match_replace(old, by, o->err));
    }
    return PITH_OK;
}

/* The f32 value that a cast to a narrow type and back began with; NULL if the node does not end
 * such a pair. Leaving the pair out keeps more digits than the file asks for: that is the point of
 * the pass. */
static pith__value *cancelled(const pith__node *node) {
    if (!pith__match_is(node, "Cast") || pith__node_int(node, "to", 0) != PITH_F32 ||
        !pith__match_live(node))
        return NULL;
    pith__node *narrow = pith__match_maker(node->inputs[0], "Cast");
    int64_t to = narrow ? pith__node_int(narrow, "to", 0) : 0;
    if (to != PITH_F16 && to != PITH_BF16) return NULL;
    pith__node *origin = narrow->inputs[0]->producer;
    bool is_wide = pith__match_f32(narrow->inputs[0]) ||
                   (origin && narrow->inputs[0]->type.dtype == PITH_UNDEFINED);
    return is_wide && pith__match_replaceable(node->outputs[0], narrow->inputs[0])
               ? narrow->inputs[0]
               : NULL;
}

static pith_status widen_run(pith__opt *o, size_t *changes) {
    size_t widened = 0;
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!pith__match_live(node) || !widens(node) || !touches_narrow(node)) continue;
        PITH_TRY(pass_widen_widen(o, node));
        widened++;
    }
    for (pith__node *node = o->graph->first; node; node = node->next) {
        pith__value *x = cancelled(node);
        if (!x) continue;
        PITH_TRY(pith__match_replace(node->outputs[0], x, o->err));
        ++*changes;
    }
    if (widened)
        pith__report_add(o->report, true, "widen",
                         "%zu operators on float16 or bfloat16 compute in float32", widened);
    *changes += widened;
    return PITH_OK;
}

const pith__pass pith__pass_widen = { "widen", 3, false, widen_run };

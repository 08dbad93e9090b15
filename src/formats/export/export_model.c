/* export_model.c - see export_model.h.
 *
 * The model is opened at level 1, whose passes leave standard operators only, and its graph is then
 * changed step by step: cut to the outputs that are wanted, lowered to the opset, narrowed, pooled
 * in f32, given other inputs. The model is not run any more. */
#include "formats/export/export_model.h"

#include <string.h>

#include "base/progress.h"
#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "formats/export/fuse_operators.h"
#include "formats/export/export_graph.h"
#include "formats/export/new_nodes.h"
#include "formats/export/older_opset.h"
#include "formats/export/pooling_nodes.h"
#include "models/heads/dense_request.h"
#include "models/open/open_model.h"

/* The newest opset that can be asked for. Without one, newer opsets are tried if the model needs
 * them, up to PITH_EXPORT_OPSET_MOST. */
enum { EXPORT_MODEL_OPSET_MOST = 25 };

typedef struct exported {
    pith_model *m;
    const pith_export_options *o;
    int32_t opset;
    pith_export_report *report;
    pith__fuse_state fused;
    pith_error *err;
} exported;

/* What can be told from the options alone. Opsets end where other engines do. */
static pith_status export_check(const pith_export_options *o, pith_error *err) {
    if (o->opset && (o->opset < PITH_EXPORT_OPSET_LEAST || o->opset > EXPORT_MODEL_OPSET_MOST))
        return pith__fail(err, PITH_ERR_ARGUMENT, "opset %d is not between %d and %d", o->opset,
                          PITH_EXPORT_OPSET_LEAST, EXPORT_MODEL_OPSET_MOST);
    if (o->dtype != PITH_F32 && o->dtype != PITH_F16 && o->dtype != PITH_BF16)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the dtype of an export is f32, f16 or bf16, not %s",
                          pith__dtype_name(o->dtype));
    if (o->dim < 0)
        return pith__fail(err, PITH_ERR_ARGUMENT, "dim is %d; it must not be negative", o->dim);
    if (!o->pool && (o->dim || o->pooling || o->normalize))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pooling, normalize and dim need pith_export_options.pool");
    return pith__export_graph_check_name(o->data_name, err);
}

static pith_status export_infer(const exported *x) {
    return pith__ops_infer(x->m->graph, false, x->err);
}

/* ---- outputs ---- */

static pith__value *export_input(const pith__graph *graph, const char *name) {
    for (size_t i = 0; i < graph->input_count; i++)
        if (pith__str_is(graph->inputs[i]->name, name)) return graph->inputs[i];
    return NULL;
}

/* The attention mask; a graph that needs none gets the input. */
static pith_status export_mask(pith__value **mask, const exported *x) {
    pith__graph *graph = x->m->graph;
    const pith__value *ids = export_input(graph, "input_ids");
    *mask = export_input(graph, "attention_mask");
    if (*mask) return PITH_OK;
    if (!ids)
        return pith__fail(
            x->err, PITH_ERR_UNSUPPORTED,
            "the graph has no input attention_mask, which pooling needs, and no input_ids");
    pith__value **inputs = pith__arena_array(graph->arena, graph->input_count + 1, sizeof *inputs);
    *mask = pith__graph_add_value(graph, PITH_STR("attention_mask"), PITH_VALUE_INPUT);
    if (!inputs || !*mask) return pith__fail_memory(x->err, 0);
    memcpy(inputs, graph->inputs, graph->input_count * sizeof *inputs);
    (*mask)->type = ids->type;
    inputs[graph->input_count++] = *mask;
    graph->inputs = inputs;
    return PITH_OK;
}

/* Modules whose work is not written as nodes. */
static pith_status export_check_modules(const exported *x) {
    const pith__modules *s = &x->m->modules;
    bool known = !s->weighted && !s->bag.words && !s->sparse.code;
    for (size_t i = 0; i < s->step_count; i++)
        known =
            known && s->steps[i].kind != PITH_STEP_STANDARDIZE && s->steps[i].kind != PITH_STEP_TOP;
    if (known) return PITH_OK;
    return pith__fail(x->err, PITH_ERR_UNSUPPORTED,
                      "the model has a module behind the pooling, or weights of words, that cannot "
                      "be exported; export it "
                      "without pooling (leave out pith_export_options.pool)");
}

/* Appended after the graph was lowered and narrowed: pooling runs in f32, and its nodes are lowered
 * by themselves. */
static pith_status export_pool(const exported *x) {
    pith_model *m = x->m;
    const pith_export_options *o = x->o;
    pith__value *mask;
    pith__pooling_nodes pool = { .modules = &m->modules };
    PITH_TRY(pith__dense_choose(
        &pool.pooling, &pool.normalize, &pool.dim, pith__encoder_model(m->text.encoder, 0),
        &(pith__dense_request){ .pooling = o->pooling, .normalize = o->normalize, .dim = o->dim },
        x->err));
    PITH_TRY(export_mask(&mask, x));
    PITH_TRY(pith__pooling_nodes_append(m->graph, 0, mask, &pool, x->err));
    PITH_TRY(export_infer(x));
    return pith__older_opset(m->graph, x->opset, x->err);
}

/* The one output that is pooled later. */
static pith_status export_rows(const exported *x) {
    const pith_model *m = x->m;
    if (!m->text.encoder)
        return pith__fail(x->err, m->no_text.code ? m->no_text.code : PITH_ERR_UNSUPPORTED,
                          "there are no vectors of texts to pool: %s", m->no_text.message);
    PITH_TRY(export_check_modules(x));
    const int output = m->text.outputs[0];
    const pith_str name = pith__graph_output_name(m->graph, (size_t)output);
    return pith__new_node_outputs(m->graph, &m->graph->outputs[output], &name, 1, x->err);
}

/* ---- types and operators ---- */

static pith_status export_narrow(const exported *x) {
    const pith__half_precision_form form = { .dtype = x->o->dtype,
                                             .opset = x->o->opset ? x->o->opset
                                                                  : EXPORT_MODEL_OPSET_MOST };
    if (x->o->dtype == PITH_F32) return PITH_OK;
    PITH_TRY(pith__export_graph_narrow(&x->report->clamped, &x->report->lost, x->m, &form, x->err));
    return export_infer(x);
}

/* What the file declares of an input, for the one in its place. */
static pith_status export_hint(pith__value *given, const pith__value *input, pith_error *err) {
    if (!input->hint) return PITH_OK;
    pith__type *hint = pith__arena_alloc(given->graph->arena, sizeof *hint);
    if (!hint) return pith__fail_memory(err, sizeof *hint);
    *hint = *input->hint;
    hint->dtype = given->type.dtype;
    given->hint = hint;
    return PITH_OK;
}

/* Nodes that made int32 of the int64 input take the one in its place as it is. */
static pith_status export_skip_casts(const pith__value *input, pith__value *given,
                                     pith_error *err) {
    for (size_t i = input->user_count; i-- > 0;) {
        pith__node *user = input->users[i].node;
        if (user->domain.size || !pith__str_is(user->op_type, "Cast") ||
            pith__node_int(user, "to", 0) != PITH_I32 || user->graph != input->graph ||
            user->outputs[0]->output_uses)
            continue;
        if (pith__value_replace(user->outputs[0], given)) return pith__fail_memory(err, 0);
        pith__node_remove(user);
    }
    return PITH_OK;
}

/* Each int64 input gets an int32 one in its place and a Cast. Graphs that began with a Cast to
 * int32 read the new input directly. */
static pith_status export_int32_inputs(const exported *x) {
    pith__graph *graph = x->m->graph;
    if (x->o->int32_inputs)
        for (size_t i = 0; i < graph->input_count; i++) {
            pith__value *input = graph->inputs[i];
            if (input->type.dtype != PITH_I64) continue;
            pith__value *given = pith__graph_add_value(graph, input->name, PITH_VALUE_INPUT);
            pith__new_nodes m = { graph, graph->first, input->name, PITH_OK, x->err };
            if (!given) return pith__fail_memory(x->err, 0);
            given->type = input->type;
            given->type.dtype = PITH_I32;
            PITH_TRY(export_hint(given, input, x->err));
            PITH_TRY(export_skip_casts(input, given, x->err));
            pith__value *wide = pith__new_node_cast(&m, given, PITH_I64);
            if (m.status) return m.status;
            wide->type = input->type;
            if (pith__value_replace(input, wide)) return pith__fail_memory(x->err, 0);
            input->name = PITH_STR("");
            wide->name = PITH_STR("");
            graph->inputs[i] = given;
        }
    if (x->o->int32_inputs) pith__graph_sweep(graph);
    return PITH_OK;
}

/* ---- the whole ---- */

/* The order of the steps matters. Outputs are cut first, since what only other outputs need may
 * have no form. Passes run before the opset is chosen, because they decide which operators there
 * are. Operators of Pith's own are written back, and newer ones are lowered, in f32: the narrowing
 * then sees the operators that the file will have. Pooling comes behind the narrowing, as it stays
 * in f32. The opset is settled once more at the end, since narrow types, Casts and pooling may need
 * a later one. Axes of reductions become attributes last, because types cannot be inferred after
 * that. Sets *again if a pass has to be left out; the graph is of no use then. */
static pith_status export_run(exported *x, const pith__onnx_sinks *sinks, bool *again) {
    pith__graph *graph = x->m->graph;
    *again = false;
    PITH_TRY(x->o->pool ? export_rows(x) : pith__export_graph_own_outputs(x->m->graph, x->err));
    if (x->o->contrib) PITH_TRY(pith__fuse_operators(&x->fused, x->m, again, x->err));
    if (*again) return PITH_OK;
    pith__opset_choice choice = { x->o->opset, PITH_EXPORT_OPSET_LEAST, PITH_EXPORT_OPSET_MOST };
    x->opset = x->o->opset;
    if (!x->opset) PITH_TRY(pith__older_opset_choose(&x->opset, graph, &choice, x->err));
    PITH_TRY(pith__fuse_write_back(&x->fused, graph, x->opset, x->err));
    PITH_TRY(pith__older_opset(graph, x->opset, x->err));
    PITH_TRY(export_infer(x));
    PITH_TRY(export_narrow(x));
    if (x->o->pool) PITH_TRY(export_pool(x));
    PITH_TRY(export_int32_inputs(x));
    PITH_TRY(export_infer(x));
    choice.least = x->opset;
    PITH_TRY(pith__export_graph_settle(&x->opset, x->m, &choice, x->err));
    PITH_TRY(pith__older_opset_axes(graph, x->opset, x->err));
    PITH_TRY(pith__export_graph_declare(graph, x->err));
    const pith__export_graph_form form = { x->opset, x->o->data_name, x->o->data_always != 0 };
    pith__export_graph_report w;
    PITH_TRY(pith__export_graph_write(&w, x->m, &form, sinks, x->err));
    x->report->opset = x->opset;
    x->report->model_bytes = w.model_bytes;
    x->report->data_bytes = w.data_bytes;
    x->report->parameters = w.parameters;
    x->report->fusions = pith__fuse_tell(&x->fused, NULL, NULL);
    return PITH_OK;
}

/* The model is opened again for each try, since passes change its graph for good. */
pith_status pith__model_write_onnx(const pith_source *source, const pith_export_options *options,
                                   const pith__onnx_sinks *sinks, pith_export_report *report,
                                   pith_error *err) {
    pith_export_options o = PITH_EXPORT_OPTIONS_INIT;
    pith_export_report own = PITH_EXPORT_REPORT_INIT;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    if (!o.dtype) o.dtype = PITH_F32;
    PITH_TRY(export_check(&o, err));
    PITH_TRY(pith__export_graph_check_sinks(sinks, o.data_name, err));
    if (report && report->size < sizeof report->size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the report has no size; initialise it with PITH_EXPORT_REPORT_INIT");
    PITH_TRY(pith__threads_check(o.call.threads, err));
    pith__stop asked;
    pith__progress told;
    const pith__making making = { pith__stop_begin(&asked, &o.call), o.call.threads,
                                  pith__progress_begin(&told, &o.call) };
    pith__export_graph_take_call(&open.call, &o.call);
    exported x = { .o = &o,
                   .report = &own,
                   .err = err,
                   .fused = { .kind = o.contrib ? PITH_FUSE_ALL : PITH_FUSE_STANDARD,
                              .level = 3 } };
    pith_status status = PITH_OK;
    for (bool again = true; again && !status;) {
        status = pith__export_graph_open(&x.m, source, 1, &open, err);
        if (status) return status;
        open.call.progress = NULL; /* of one opening */
        x.m->graph->making = &making;
        status = export_run(&x, sinks, &again);
        pith__model_destroy(x.m);
    }
    if (status || !report) return status;
    own.size = report->size;
    memcpy(report, &own, report->size < sizeof own ? report->size : sizeof own);
    return PITH_OK;
}

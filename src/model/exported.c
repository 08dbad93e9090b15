/* exported.c - see exported.h.
 *
 * The model is opened at level 1, whose passes leave standard operators only, and its graph is then changed step by
 * step: cut to the outputs that are wanted, lowered to the opset, narrowed, pooled in f32, given other inputs. The
 * model is not run any more. */
#include "model/exported.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"
#include "export/lower.h"
#include "export/made.h"
#include "export/narrow.h"
#include "export/pooled.h"
#include "heads/dense.h"
#include "model/open.h"

/* Versions of the format that engines of an opset's time read. Source: onnx/helper.py, VERSION_TABLE. */
static const struct {
    int32_t opset, ir;
} exported_versions[] = { { 18, 8 }, { 20, 9 }, { 22, 10 }, { 23, 11 }, { 24, 12 }, { 25, 13 } };
enum { EXPORTED_VERSIONS = sizeof exported_versions / sizeof *exported_versions, EXPORTED_OPSET_MOST = 25 };

typedef struct exported {
    pith_model *m;
    const pith_export_options *o;
    int32_t opset;
    pith_export_report *report;
    pith_error *err;
} exported;

static pith_status exported_check(const pith_export_options *o, pith_error *err) {
    if (o->opset && (o->opset < PITH_EXPORT_OPSET_LEAST || o->opset > EXPORTED_OPSET_MOST))
        return pith_fail(err, PITH_ERR_ARGUMENT, "opset %d is not between %d and %d", o->opset, PITH_EXPORT_OPSET_LEAST,
                         EXPORTED_OPSET_MOST);
    if (o->dtype != PITH_F32 && o->dtype != PITH_F16 && o->dtype != PITH_BF16)
        return pith_fail(err, PITH_ERR_ARGUMENT, "the dtype of an export is f32, f16 or bf16, not %s",
                         pith_dtype_name(o->dtype));
    if (o->dim < 0) return pith_fail(err, PITH_ERR_ARGUMENT, "dim is %d; it must not be negative", o->dim);
    if (!o->pool && (o->dim || o->pooling || o->normalize >= 0))
        return pith_fail(err, PITH_ERR_ARGUMENT, "pooling, normalize and dim need pool (--pool)");
    if (o->data_name && (!*o->data_name || strchr(o->data_name, '/') || *o->data_name == '.'))
        return pith_fail(err, PITH_ERR_ARGUMENT, "'%s' is no name of a file beside the model", o->data_name);
    return PITH_OK;
}

static pith_status exported_infer(const exported *x) { return pith_ops_infer(x->m->graph, false, x->err); }

/* ---- outputs ---- */

static pith_value *exported_input(const pith_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->input_count; i++)
        if (pith_str_is(graph->inputs[i]->name, name)) return graph->inputs[i];
    return NULL;
}

/* The attention mask; a graph that needs none gets the input. */
static pith_status exported_mask(pith_value **mask, const exported *x) {
    pith_graph *graph = x->m->graph;
    const pith_value *ids = exported_input(graph, "input_ids");
    *mask = exported_input(graph, "attention_mask");
    if (*mask) return PITH_OK;
    if (!ids)
        return pith_fail(x->err, PITH_ERR_UNSUPPORTED,
                         "the graph has no input attention_mask, which pooling needs, and no input_ids");
    pith_value **inputs = pith_arena_array(graph->arena, graph->input_count + 1, sizeof *inputs);
    *mask = pith_graph_add_value(graph, PITH_STR("attention_mask"), PITH_VALUE_INPUT);
    if (!inputs || !*mask) return pith_fail_memory(x->err, 0);
    memcpy(inputs, graph->inputs, graph->input_count * sizeof *inputs);
    (*mask)->type = ids->type;
    inputs[graph->input_count++] = *mask;
    graph->inputs = inputs;
    return PITH_OK;
}

/* Modules whose work is not written as nodes. */
static pith_status exported_check_modules(const exported *x) {
    const pith_modules *s = &x->m->modules;
    bool known = !s->weighted && !s->bag.words && !s->sparse.code;
    for (size_t i = 0; i < s->step_count; i++)
        known = known && s->steps[i].kind != PITH_STEP_STANDARDIZE && s->steps[i].kind != PITH_STEP_TOP;
    if (known) return PITH_OK;
    return pith_fail(
        x->err, PITH_ERR_UNSUPPORTED,
        "the model has a module behind the pooling, or weights of words, that cannot be exported; export it "
        "without pooling (leave out --pool)");
}

static pith_status exported_pool(const exported *x) {
    pith_model *m = x->m;
    const pith_export_options *o = x->o;
    pith_value *mask;
    pith_export_pool pool = { .modules = &m->modules };
    PITH_TRY(pith_dense_choose(&pool.pooling, &pool.normalize, &pool.dim, pith_encoder_model(m->text.encoder, 0),
                               &(pith_dense){ .pooling = o->pooling, .normalize = o->normalize, .dim = o->dim },
                               x->err));
    PITH_TRY(exported_mask(&mask, x));
    PITH_TRY(pith_export_append_pool(m->graph, 0, mask, &pool, x->err));
    PITH_TRY(exported_infer(x));
    return pith_export_lower(m->graph, x->opset, x->err);
}

/* The one output that is pooled later. */
static pith_status exported_rows(const exported *x) {
    const pith_model *m = x->m;
    if (!m->text.encoder)
        return pith_fail(x->err, m->no_text.code ? m->no_text.code : PITH_ERR_UNSUPPORTED,
                         "there are no vectors of texts to pool: %s", m->no_text.message);
    PITH_TRY(exported_check_modules(x));
    const int output = m->text.outputs[0];
    const pith_str name = pith_graph_output_name(m->graph, (size_t)output);
    return pith_export_set_outputs(m->graph, &m->graph->outputs[output], &name, 1, x->err);
}

/* Without the outputs that opening added. */
static pith_status exported_own_outputs(const exported *x) {
    pith_graph *graph = x->m->graph;
    pith_value **values = pith_arena_array(graph->arena, graph->output_count + 1, sizeof *values);
    pith_str *names = pith_arena_array(graph->arena, graph->output_count + 1, sizeof *names);
    size_t count = 0;
    if (!values || !names) return pith_fail_memory(x->err, 0);
    for (size_t i = 0; i < graph->output_count; i++) {
        pith_str name = pith_graph_output_name(graph, i);
        if (name.size > 5 && !memcmp(name.data, "pith.", 5)) continue;
        values[count] = graph->outputs[i];
        names[count++] = name;
    }
    return pith_export_set_outputs(graph, values, names, count, x->err);
}

/* ---- types and operators ---- */

static pith_status exported_narrow(const exported *x) {
    pith_narrow_report report;
    if (x->o->dtype == PITH_F32) return PITH_OK;
    PITH_TRY(pith_export_narrow(&report, x->m->graph, x->o->dtype, x->err));
    x->report->clamped = report.clamped;
    x->report->lost = report.lost;
    if (report.clamped)
        pith_log_write(x->m->options.log, PITH_LOG_WARNING,
                       "%zu numbers are too large for %s and become its largest; the first is in '" PITH_STR_FMT "'",
                       report.clamped, pith_dtype_name(x->o->dtype), PITH_STR_ARG(report.clamped_in));
    return exported_infer(x);
}

static pith_status exported_int32_inputs(const exported *x) {
    pith_graph *graph = x->m->graph;
    for (size_t i = 0; i < graph->input_count && x->o->int32_inputs; i++) {
        pith_value *input = graph->inputs[i];
        if (input->type.dtype != PITH_I64) continue;
        pith_value *given = pith_graph_add_value(graph, input->name, PITH_VALUE_INPUT);
        pith_maker m = { graph, graph->first, input->name, PITH_OK, x->err };
        if (!given) return pith_fail_memory(x->err, 0);
        given->type = input->type;
        given->type.dtype = PITH_I32;
        pith_value *wide = pith_make_cast(&m, given, PITH_I64);
        if (m.status) return m.status;
        wide->type = input->type;
        if (pith_value_replace(input, wide)) return pith_fail_memory(x->err, 0);
        input->name = PITH_STR("");
        wide->name = PITH_STR("");
        graph->inputs[i] = given;
    }
    return PITH_OK;
}

/* The versions of domains that the nodes have; counts numbers in constants. */
static size_t exported_opsets(const exported *x, pith_opset *opsets) {
    bool contrib = false, ml = false;
    size_t count = 0;
    opsets[count++] = (pith_opset){ PITH_STR(""), x->opset };
    for (const pith_node *node = x->m->graph->first; node; node = node->next) {
        contrib |= pith_str_is(node->domain, "com.microsoft");
        ml |= pith_str_is(node->domain, "ai.onnx.ml");
    }
    if (contrib) opsets[count++] = (pith_opset){ PITH_STR("com.microsoft"), 1 };
    if (ml) opsets[count++] = (pith_opset){ PITH_STR("ai.onnx.ml"), 3 };
    for (size_t i = 0; i < x->m->graph->value_count; i++) {
        const pith_value *v = x->m->graph->values[i];
        if (v->kind == PITH_VALUE_CONST && v->user_count && v->type.data)
            x->report->parameters += (uint64_t)pith_dims_count(v->type.data->dims, v->type.data->rank);
    }
    return count;
}

/* ---- the whole ---- */

typedef struct exported_sinks {
    const pith_onnx_sinks *caller;
    pith_export_report *report;
} exported_sinks;

static int exported_write(void *user, const void *bytes, size_t size) {
    const exported_sinks *s = user;
    s->report->model_bytes += size;
    return s->caller->model(s->caller->user, bytes, size);
}

static int exported_write_data(void *user, const void *bytes, size_t size) {
    const exported_sinks *s = user;
    s->report->data_bytes += size;
    return s->caller->data(s->caller->user, bytes, size);
}

static pith_status exported_file(const exported *x, const pith_onnx_sinks *sinks) {
    pith_opset opsets[3];
    size_t version = 0;
    while (version + 1 < EXPORTED_VERSIONS && exported_versions[version].opset < x->opset) version++;
    const size_t count = exported_opsets(x, opsets);
    pith_onnx_model model = { .graph = x->m->graph,
                              .ir_version = exported_versions[version].ir,
                              .producer = "pith",
                              .producer_version = pith_version(),
                              .opsets = opsets,
                              .opset_count = count,
                              .data_name = x->o->data_name,
                              .data_always = x->o->data_always != 0 };
    exported_sinks counted = { sinks, x->report };
    pith_onnx_sinks own = { exported_write, exported_write_data, &counted };
    x->report->opset = x->opset;
    return pith_onnx_write_model(&model, &own, &x->m->arena, x->err);
}

static pith_status exported_run(exported *x, const pith_onnx_sinks *sinks) {
    pith_graph *graph = x->m->graph;
    if (x->m->compiled.writer)
        return pith_fail(x->err, PITH_ERR_UNSUPPORTED,
                         "a compiled model cannot be exported; export the directory that it was made from");
    PITH_TRY(x->o->pool ? exported_rows(x) : exported_own_outputs(x));
    x->opset = x->o->opset ? x->o->opset : pith_export_needs(graph);
    PITH_TRY(pith_export_lower(graph, x->opset, x->err));
    PITH_TRY(exported_infer(x));
    PITH_TRY(exported_narrow(x));
    if (x->o->pool) PITH_TRY(exported_pool(x));
    PITH_TRY(exported_int32_inputs(x));
    PITH_TRY(exported_infer(x));
    PITH_TRY(pith_export_lower_axes(graph, x->opset, x->err));
    return exported_file(x, sinks);
}

pith_status pith_model_write_onnx(const char *model, const pith_export_options *options, const pith_onnx_sinks *sinks,
                                  pith_export_report *report, pith_error *err) {
    pith_export_options o = PITH_EXPORT_OPTIONS_INIT;
    pith_export_report own = PITH_EXPORT_REPORT_INIT;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    PITH_TRY(exported_check(&o, err));
    if (report && report->size < sizeof report->size)
        return pith_fail(err, PITH_ERR_ARGUMENT, "the report has no size; initialise it with PITH_EXPORT_REPORT_INIT");
    open.optimization = 1;
    open.model_file = o.model_file;
    open.route = o.route;
    open.log = o.log;
    open.allocator = o.allocator;
    exported x = { .o = &o, .report = &own, .err = err };
    PITH_TRY(pith_model_open_limited(&x.m, model, (pith_str){ NULL, 0 }, &open, NULL, err));
    pith_status status = exported_run(&x, sinks);
    pith_model_destroy(x.m);
    if (status || !report) return status;
    own.size = report->size;
    memcpy(report, &own, report->size < sizeof own ? report->size : sizeof own);
    return PITH_OK;
}

/* export_graph.c - see export_graph.h. */
#include "formats/export/export_graph.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "formats/export/new_nodes.h"
#include "models/open/source.h"

/* Versions of the format that engines of an opset's time read. Source: onnx/helper.py,
 * VERSION_TABLE. */
static const struct {
    int32_t opset, ir;
} export_graph_versions[] = { { 18, 8 },
                              { 20, 9 },
                              { 22, 10 },
                              { 23, 11 },
                              { 24, 12 },
                              { 27, 13 },
                              { PITH_EXPORT_OPSET_MOST, 14 } };
enum {
    EXPORT_GRAPH_VERSIONS = sizeof export_graph_versions / sizeof *export_graph_versions,
    EXPORT_GRAPH_DOMAINS = 9
};

/* The domains of a model's nodes, with the versions that they need. */
typedef struct export_graph_domains {
    pith__opset list[EXPORT_GRAPH_DOMAINS];
    size_t count;
} export_graph_domains;

static int64_t export_graph_own_version(const pith__graph *graph, pith_str domain) {
    for (size_t i = 0; i < graph->opset_count; i++)
        if (pith__str_eq(graph->opsets[i].domain, domain)) return graph->opsets[i].version;
    return 1;
}

/* An upgraded node has the newest form of its operator. */
static pith_status export_graph_add_domain(export_graph_domains *d, const pith__graph *main,
                                           const pith__node *node, pith_error *err) {
    size_t i = 0;
    if (!node->domain.size || pith__str_is(node->domain, "ai.onnx")) return PITH_OK;
    while (i < d->count && !pith__str_eq(d->list[i].domain, node->domain)) i++;
    if (i == EXPORT_GRAPH_DOMAINS)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model has operators of more than %d domains",
                          EXPORT_GRAPH_DOMAINS - 1);
    if (i == d->count)
        d->list[d->count++] =
            (pith__opset){ node->domain, export_graph_own_version(main, node->domain) };
    const int32_t since = node->op ? node->op->since : 0;
    if (since > d->list[i].version && since != PITH_OPSET_NEWEST) d->list[i].version = since;
    return PITH_OK;
}

/* Subgraphs may have operators of domains that the main graph does not have; the model imports them
 * all. */
static pith_status export_graph_find_domains(export_graph_domains *d, const pith__graph *main,
                                             const pith__graph *graph, pith_error *err) {
    for (const pith__node *node = graph->first; node; node = node->next) {
        PITH_TRY(export_graph_add_domain(d, main, node, err));
        for (size_t a = 0; a < node->attr_count; a++)
            if (node->attrs[a].kind == PITH_ATTR_GRAPH)
                PITH_TRY(export_graph_find_domains(d, main, node->attrs[a].graph, err));
    }
    return PITH_OK;
}

/* Constants that a node reads. Those of subgraphs do not count, as in other tools. */
static uint64_t export_graph_parameters(const pith__graph *graph) {
    uint64_t count = 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        const pith__value *v = graph->values[i];
        if (v->kind == PITH_VALUE_CONST && v->user_count && v->type.data)
            count += (uint64_t)pith__dims_count(v->type.data->dims, v->type.data->rank);
    }
    return count;
}

/* `to_write` keeps away passes whose results only Pith's kernels take. A compiled model has no
 * graph that could be written: its constants are packed. */
pith_status pith__export_graph_open(pith_model **model, const pith_source *source, int level,
                                    const pith_open_options *open, pith_error *err) {
    static const pith__opt_limits limits = { .runs = SIZE_MAX, .to_write = true };
    pith_open_options own = *open;
    const pith__origin origin = pith__model_source_origin(source);
    own.optimization = level ? level : PITH_OPTIMIZATION_NONE;
    PITH_TRY(pith__model_source_options(&own, source, err));
    PITH_TRY(pith__model_open_limited(model, &origin, &own, &limits, err));
    if (!(*model)->compiled.writer) return PITH_OK;
    pith__model_destroy(*model);
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "a compiled model cannot be exported; use the directory or the file that it "
                      "was made from");
}

void pith__export_graph_take_call(pith_call *inner, const pith_call *call) {
    const size_t size = inner->size;
    *inner = *call;
    inner->size = size;
}

/* Names that begin with "pith." are those that opening gave to outputs it added, such as the
 * attention of BM42. */
pith_status pith__export_graph_own_outputs(pith__graph *graph, pith_error *err) {
    pith__value **values = pith__arena_array(graph->arena, graph->output_count + 1, sizeof *values);
    pith_str *names = pith__arena_array(graph->arena, graph->output_count + 1, sizeof *names);
    size_t count = 0;
    if (!values || !names) return pith__fail_memory(err, 0);
    for (size_t i = 0; i < graph->output_count; i++) {
        pith_str name = pith__graph_output_name(graph, i);
        if (name.size > 5 && !memcmp(name.data, "pith.", 5)) continue;
        values[count] = graph->outputs[i];
        names[count++] = name;
    }
    return pith__new_node_outputs(graph, values, names, count, err);
}

/* A number that became the largest of its type is a warning and no error: such weights exist in
 * published models, and the caller can keep their nodes in f32. */
pith_status pith__export_graph_narrow(uint64_t *clamped, uint64_t *lost, pith_model *model,
                                      const pith__half_precision_form *form, pith_error *err) {
    pith__half_precision_report report;
    PITH_TRY(pith__half_precision(&report, model->graph, form, err));
    *clamped = report.clamped;
    *lost = report.lost;
    if (report.clamped)
        pith__log_write(model->options.call.log, PITH_LOG_WARNING,
                        "%zu numbers are too large for %s and become its largest; the first is in "
                        "'" PITH_STR_FMT "'",
                        report.clamped, pith__dtype_name(form->dtype),
                        PITH_STR_ARG(report.clamped_in));
    return PITH_OK;
}

pith_status pith__export_graph_settle(int32_t *opset, pith_model *model,
                                      const pith__opset_choice *choice, pith_error *err) {
    PITH_TRY(pith__older_opset_choose(opset, model->graph, choice, err));
    PITH_TRY(pith__older_opset(model->graph, *opset, err));
    return pith__ops_infer(model->graph, false, err);
}

/* The symbols of an input's axes, which stand for what the file declares. */
static void export_graph_take_sizes(pith__dim *sizes, const pith__dims *dims,
                                    const pith__value *input) {
    const pith__type *t = &input->type, *hint = input->hint;
    if (!hint || hint->rank != t->rank) return;
    for (int d = 0; d < t->rank; d++) {
        const int32_t symbol = pith__dim_symbol_index(dims, t->dims[d]);
        if (symbol >= 0 && pith__dim_known(hint->dims[d])) sizes[symbol] = hint->dims[d];
    }
}

/* A rank that does not follow is the declared one. */
static void export_graph_declare_rank(pith__value *v) {
    if (v->type.rank >= 0 || !v->hint || v->hint->rank < 0 || v->type.dtype == PITH_SEQUENCE)
        return;
    v->type.rank = v->hint->rank;
    for (int d = 0; d < v->type.rank; d++) v->type.dims[d] = PITH_DIM_UNKNOWN;
}

/* Numbers that follow from the sizes; else what the file declares; else what follows of the
 * symbols. */
static void export_graph_declare_port(pith__value *v, const pith__dims *dims,
                                      const pith__dim *sizes) {
    const pith__type *hint = v->hint && v->hint->rank >= 0 ? v->hint : NULL;
    export_graph_declare_rank(v);
    for (int d = 0; d < v->type.rank; d++) {
        const pith__dim size = pith__dim_eval(dims, v->type.dims[d], sizes);
        const bool declared =
            hint && hint->rank == v->type.rank && hint->dims[d] != PITH_DIM_UNKNOWN;
        if (pith__dim_known(size))
            v->type.dims[d] = size;
        else if (declared && !v->fixed)
            v->type.dims[d] = hint->dims[d];
    }
}

/* Subgraphs share the symbols of the main graph, so the same sizes hold in them. */
static void export_graph_declare_graph(pith__graph *graph, const pith__dim *sizes) {
    for (size_t i = 0; i < graph->input_count + graph->output_count; i++)
        export_graph_declare_port(i < graph->input_count ? graph->inputs[i]
                                                         : graph->outputs[i - graph->input_count],
                                  graph->dims, sizes);
    for (const pith__node *node = graph->first; node; node = node->next)
        for (size_t a = 0; a < node->attr_count; a++)
            if (node->attrs[a].kind == PITH_ATTR_GRAPH)
                export_graph_declare_graph(node->attrs[a].graph, sizes);
}

/* Whether a node reads its shape from the value, whose length then is a rank and never free. */
static bool export_graph_is_shape(const pith__value *v) {
    for (size_t i = 0; i < v->user_count; i++) {
        const pith__node *node = v->users[i].node;
        if (node->op && v->users[i].input < 32 && node->op->shape_inputs >> v->users[i].input & 1)
            return true;
    }
    return false;
}

void pith__export_graph_declare_ranks(pith__graph *graph) {
    for (size_t i = 0; i < graph->output_count; i++) export_graph_declare_rank(graph->outputs[i]);
    for (size_t i = 0; i < graph->input_count; i++) {
        pith__value *v = graph->inputs[i];
        const bool declared = v->hint && v->hint->rank == v->type.rank && !v->fixed;
        if (!declared || !export_graph_is_shape(v)) continue;
        for (int d = 0; d < v->type.rank; d++)
            if (pith__dim_known(v->hint->dims[d])) v->type.dims[d] = v->hint->dims[d];
    }
}

/* A symbol has the size that an input declares for it, unless the caller fixed the input's shape,
 * which is in its type already. Everything else follows by evaluating the sizes. */
pith_status pith__export_graph_declare(pith__graph *graph, pith_error *err) {
    const size_t symbols = pith__dims_symbol_count(graph->dims);
    pith__dim *sizes = pith__arena_array(graph->arena, symbols + 1, sizeof *sizes);
    if (!sizes) return pith__fail_memory(err, symbols * sizeof *sizes);
    for (size_t i = 0; i < symbols; i++) sizes[i] = PITH_DIM_UNKNOWN;
    for (size_t i = 0; i < graph->input_count; i++)
        if (!graph->inputs[i]->fixed) export_graph_take_sizes(sizes, graph->dims, graph->inputs[i]);
    export_graph_declare_graph(graph, sizes);
    return PITH_OK;
}

pith_status pith__export_graph_check_sinks(const pith__onnx_sinks *sinks, const char *data_name,
                                           pith_error *err) {
    PITH_TRY(pith__writer_check(sinks->model, err));
    return data_name ? pith__writer_check(sinks->data, err) : PITH_OK;
}

pith_status pith__export_graph_check_name(const char *data_name, pith_error *err) {
    if (data_name && (!*data_name || strchr(data_name, '/') || *data_name == '.'))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "data_name is '%s', which is no name of a file next to the model",
                          data_name);
    return PITH_OK;
}

/* The IR version is the first one that knows the opset, since older readers refuse a file by its IR
 * version. */
pith_status pith__export_graph_write(pith__export_graph_report *written, pith_model *model,
                                     const pith__export_graph_form *form,
                                     const pith__onnx_sinks *sinks, pith_error *err) {
    export_graph_domains domains = { .list = { { PITH_STR(""), form->opset } }, .count = 1 };
    size_t version = 0;
    PITH_TRY(export_graph_find_domains(&domains, model->graph, model->graph, err));
    while (version + 1 < EXPORT_GRAPH_VERSIONS &&
           export_graph_versions[version].opset < form->opset)
        version++;
    pith__onnx_model file = { .graph = model->graph,
                              .ir_version = export_graph_versions[version].ir,
                              .producer = "pith",
                              .producer_version = pith_version(),
                              .about = pith__model_about(model),
                              .opsets = domains.list,
                              .opset_count = domains.count,
                              .data_name = form->data_name,
                              .data_always = form->data_always };
    pith__onnx_sizes sizes;
    pith__onnx_sinks own = { sinks->model, sinks->data, &sizes };
    PITH_TRY(pith__onnx_write_model(&file, &own, &model->arena, err));
    *written = (pith__export_graph_report){ .parameters = export_graph_parameters(model->graph),
                                            .model_bytes = sizes.model,
                                            .data_bytes = sizes.data };
    return PITH_OK;
}

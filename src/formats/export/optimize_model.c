/* optimize_model.c - see optimize_model.h.
 *
 * The model is opened as it is written. The part that is wanted is cut out, the passes run that
 * have a form in other engines, and their operators are written back. If one attention has no such
 * form, all of it is done again without that pass: the graph of a fused one is gone
 * (formats/export/fuse_operators.h). */
#include "formats/export/optimize_model.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"
#include "formats/export/fuse_operators.h"
#include "formats/export/graph_cut.h"
#include "formats/export/model_graph.h"
#include "formats/export/older_opset.h"
#include "models/open/open.h"

typedef struct optimized {
    pith_model *m;
    const pith_optimize_options *o;
    pith_optimize_report *report;
    pith__fused fused;
    pith_error *err;
} optimized;

/* ---- options ---- */

static pith_status optimized_check(const pith_optimize_options *o, pith_error *err) {
    if (o->level < 1 || o->level > 3)
        return pith__fail(err, PITH_ERR_ARGUMENT, "level %d is not between 1 and 3", o->level);
    if (o->opset && (o->opset < PITH_EXPORT_OPSET_LEAST || o->opset > PITH_WRITTEN_OPSET_MOST))
        return pith__fail(err, PITH_ERR_ARGUMENT, "opset %d is not between %d and %d", o->opset,
                          PITH_EXPORT_OPSET_LEAST, PITH_WRITTEN_OPSET_MOST);
    if (o->dtype != PITH_F32 && o->dtype != PITH_F16 && o->dtype != PITH_BF16)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the dtype is f32, f16 or bf16, not %s",
                          pith__dtype_name(o->dtype));
    if (o->dtype == PITH_F32 && (o->narrow_ports || o->keep_count))
        return pith__fail(err, PITH_ERR_ARGUMENT, "narrow_ports and keep need a dtype of 16 bits");
    if (o->gpu && o->standard)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "gpu and standard exclude each other: what is made for GPUs is not standard");
    if (o->contrib && o->standard)
        return pith__fail(err, PITH_ERR_ARGUMENT, "contrib and standard exclude each other");
    return pith__written_check_name(o->data_name, err);
}

/* ---- steps ---- */

static pith_status optimized_infer(const optimized *x) {
    return pith__ops_infer(x->m->graph, false, x->err);
}

static pith_status optimized_open(optimized *x, const char *path) {
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    open.model_file = x->o->model_file;
    open.route = x->o->route;
    open.input_shapes = x->o->input_shapes;
    open.input_shape_count = x->o->input_shape_count;
    open.log = x->o->log;
    open.allocator = x->o->allocator;
    return pith__written_open(&x->m, path, 0, &open, x->err);
}

static pith_status optimized_cut(const optimized *x) {
    const pith__export_part cut = { x->o->inputs, x->o->outputs, x->o->input_count,
                                    x->o->output_count };
    PITH_TRY(pith__written_own_outputs(x->m->graph, x->err));
    PITH_TRY(pith__export_cut(x->m->graph, &cut, x->err));
    x->report->nodes_before = x->m->graph->node_count;
    return cut.input_count ? optimized_infer(x) : PITH_OK;
}

/* That of the model's file or later, if none is given. */
static pith__opset_choice optimized_choice(const optimized *x) {
    const pith__graph *graph = x->m->graph;
    pith__opset_choice choice = { x->o->opset, PITH_EXPORT_OPSET_LEAST, PITH_WRITTEN_OPSET_MOST };
    for (size_t i = 0; i < graph->opset_count; i++) {
        const pith__opset *own = &graph->opsets[i];
        const bool main = !own->domain.size || pith__str_is(own->domain, "ai.onnx");
        if (main && own->version > choice.least && own->version <= choice.most)
            choice.least = (int32_t)own->version;
    }
    return choice;
}

static pith_status optimized_narrow(const optimized *x) {
    const pith__narrow_form form = { .dtype = x->o->dtype,
                                     .opset = x->o->opset ? x->o->opset : PITH_WRITTEN_OPSET_MOST,
                                     .ports = x->o->narrow_ports != 0,
                                     .keep = x->o->keep,
                                     .keep_count = x->o->keep_count };
    if (x->o->dtype == PITH_F32) return PITH_OK;
    PITH_TRY(pith__written_narrow(&x->report->clamped, &x->report->lost, x->m, &form, x->err));
    return optimized_infer(x);
}

static size_t optimized_count(const pith__graph *graph) {
    size_t count = 0;
    for (const pith__node *node = graph->first; node; node = node->next) count++;
    return count;
}

static pith_status optimized_write(const optimized *x, const pith__onnx_sinks *sinks) {
    pith__graph *graph = x->m->graph;
    const pith__opset_choice choice = optimized_choice(x);
    size_t shared;
    pith__written w;
    PITH_TRY(pith__export_lower(graph, x->report->opset, x->err));
    PITH_TRY(optimized_infer(x));
    PITH_TRY(optimized_narrow(x));
    PITH_TRY(pith__written_settle(&x->report->opset, x->m, &choice, x->err));
    PITH_TRY(pith__export_lower_axes(graph, x->report->opset, x->err));
    PITH_TRY(pith__export_share_constants(&shared, graph, x->err));
    if (x->o->free_shapes)
        pith__written_declare_ranks(graph);
    else
        PITH_TRY(pith__written_declare(graph, x->err));
    pith__graph_sweep(graph);
    const pith__written_form form = { x->report->opset, x->o->data_name, x->o->data_always != 0 };
    PITH_TRY(pith__written_write(&w, x->m, &form, sinks, x->err));
    x->report->shared = shared;
    x->report->nodes = optimized_count(graph);
    x->report->model_bytes = w.model_bytes;
    x->report->data_bytes = w.data_bytes;
    return PITH_OK;
}

/* Sets *again if a pass has to be left out. */
static pith_status optimized_once(optimized *x, const pith__onnx_sinks *sinks, bool *again) {
    PITH_TRY(optimized_cut(x));
    PITH_TRY(pith__fused_run(&x->fused, x->m, again, x->err));
    if (*again) return PITH_OK;
    const pith__opset_choice choice = optimized_choice(x);
    x->report->opset = choice.given;
    if (!choice.given)
        PITH_TRY(pith__export_settle(&x->report->opset, x->m->graph, &choice, x->err));
    PITH_TRY(pith__fused_write_back(&x->fused, x->m->graph, x->report->opset, x->err));
    PITH_TRY(optimized_write(x, sinks));
    x->report->fusions = pith__fused_tell(&x->fused, x->o->tell, x->o->tell_user);
    return PITH_OK;
}

static pith__fused_kind optimized_kind(const pith_optimize_options *o) {
    if (o->contrib) return PITH_FUSED_ALL;
    return o->standard ? PITH_FUSED_STANDARD : o->gpu ? PITH_FUSED_GPU : PITH_FUSED_FAST;
}

pith_status pith__model_write_optimized(const char *model, const pith_optimize_options *options,
                                        const pith__onnx_sinks *sinks, pith_optimize_report *report,
                                        pith_error *err) {
    pith_optimize_options o = PITH_OPTIMIZE_OPTIONS_INIT;
    pith_optimize_report own = PITH_OPTIMIZE_REPORT_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    PITH_TRY(optimized_check(&o, err));
    if (report && report->size < sizeof report->size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the report has no size; initialise it with PITH_OPTIMIZE_REPORT_INIT");
    optimized x = { .o = &o,
                    .report = &own,
                    .err = err,
                    .fused = { .kind = optimized_kind(&o), .level = o.level } };
    pith_status status = PITH_OK;
    for (bool again = true; again && !status;) {
        status = optimized_open(&x, model);
        if (status) return status;
        status = optimized_once(&x, sinks, &again);
        pith__model_destroy(x.m);
    }
    if (status || !report) return status;
    own.size = report->size;
    memcpy(report, &own, report->size < sizeof own ? report->size : sizeof own);
    return PITH_OK;
}

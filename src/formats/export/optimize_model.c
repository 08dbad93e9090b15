/* optimize_model.c - see optimize_model.h.
 *
 * The model is opened as it is written. The part that is wanted is cut out, the passes run that
 * have a form in other engines, and their operators are written back. If one attention has no such
 * form, all of it is done again without that pass: the graph of a fused one is gone
 * (formats/export/fuse_operators.h). */
#include "formats/export/optimize_model.h"

#include <string.h>

#include "base/progress.h"
#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "formats/export/fuse_operators.h"
#include "formats/export/graph_cut.h"
#include "formats/export/export_graph.h"
#include "formats/export/older_opset.h"
#include "models/open/open_model.h"

typedef struct optimized {
    pith_model *m;
    const pith_optimize_options *o;
    pith_optimize_report *report;
    pith__fuse_state fused;
    pith_error *err;
} optimized;

/* ---- options ---- */

/* What can be told from the options alone, before a model is opened. */
static pith_status optimize_check(const pith_optimize_options *o, pith_error *err) {
    if (o->level < 1 || o->level > 3)
        return pith__fail(err, PITH_ERR_ARGUMENT, "level %d is not between 1 and 3", o->level);
    if (o->opset && (o->opset < PITH_EXPORT_OPSET_LEAST || o->opset > PITH_EXPORT_OPSET_MOST))
        return pith__fail(err, PITH_ERR_ARGUMENT, "opset %d is not between %d and %d", o->opset,
                          PITH_EXPORT_OPSET_LEAST, PITH_EXPORT_OPSET_MOST);
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
    return pith__export_graph_check_name(o->data_name, err);
}

/* ---- steps ---- */

static pith_status optimize_infer(const optimized *x) {
    return pith__ops_infer(x->m->graph, false, x->err);
}

/* At level 0: which passes run is decided here, not by opening. */
/* The caller hears of the steps of the first opening alone. */
static pith_status optimize_open(optimized *x, const pith_source *source, bool first) {
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    open.input_shapes = x->o->input_shapes;
    open.input_shape_count = x->o->input_shape_count;
    pith__export_graph_take_call(&open.call, &x->o->call);
    if (!first) open.call.progress = NULL;
    return pith__export_graph_open(&x->m, source, 0, &open, x->err);
}

static pith_status optimize_cut(const optimized *x) {
    const pith__graph_cut_part cut = { x->o->inputs, x->o->outputs, x->o->input_count,
                                       x->o->output_count };
    PITH_TRY(pith__export_graph_own_outputs(x->m->graph, x->err));
    PITH_TRY(pith__graph_cut(x->m->graph, &cut, x->err));
    x->report->nodes_before = x->m->graph->node_count;
    return cut.input_count ? optimize_infer(x) : PITH_OK;
}

/* That of the model's file or later, if none is given. */
static pith__opset_choice optimize_choice(const optimized *x) {
    const pith__graph *graph = x->m->graph;
    pith__opset_choice choice = { x->o->opset, PITH_EXPORT_OPSET_LEAST, PITH_EXPORT_OPSET_MOST };
    for (size_t i = 0; i < graph->opset_count; i++) {
        const pith__opset *own = &graph->opsets[i];
        const bool main = !own->domain.size || pith__str_is(own->domain, "ai.onnx");
        if (main && own->version > choice.least && own->version <= choice.most)
            choice.least = (int32_t)own->version;
    }
    return choice;
}

/* Which operators take the type depends on the opset; without one the newest decides, and settling
 * finds one that holds it. */
static pith_status optimize_narrow(const optimized *x) {
    const pith__half_precision_form form = { .dtype = x->o->dtype,
                                             .opset =
                                                 x->o->opset ? x->o->opset : PITH_EXPORT_OPSET_MOST,
                                             .ports = x->o->narrow_ports != 0,
                                             .keep = x->o->keep,
                                             .keep_count = x->o->keep_count };
    if (x->o->dtype == PITH_F32) return PITH_OK;
    PITH_TRY(pith__export_graph_narrow(&x->report->clamped, &x->report->lost, x->m, &form, x->err));
    return optimize_infer(x);
}

static size_t optimize_count(const pith__graph *graph) {
    size_t count = 0;
    for (const pith__node *node = graph->first; node; node = node->next) count++;
    return count;
}

/* Lowered and narrowed first, then settled on an opset, since narrowing adds Cast nodes and types
 * that the first choice need not have. Constants are shared last, when all of them are there. */
static pith_status optimize_write(const optimized *x, const pith__onnx_sinks *sinks) {
    pith__graph *graph = x->m->graph;
    const pith__opset_choice choice = optimize_choice(x);
    size_t shared;
    pith__export_graph_report w;
    PITH_TRY(pith__older_opset(graph, x->report->opset, x->err));
    PITH_TRY(optimize_infer(x));
    PITH_TRY(optimize_narrow(x));
    PITH_TRY(pith__export_graph_settle(&x->report->opset, x->m, &choice, x->err));
    PITH_TRY(pith__older_opset_axes(graph, x->report->opset, x->err));
    PITH_TRY(pith__graph_cut_share_constants(&shared, graph, x->err));
    if (x->o->free_shapes)
        pith__export_graph_declare_ranks(graph);
    else
        PITH_TRY(pith__export_graph_declare(graph, x->err));
    pith__graph_sweep(graph);
    const pith__export_graph_form form = { x->report->opset, x->o->data_name,
                                           x->o->data_always != 0 };
    PITH_TRY(pith__export_graph_write(&w, x->m, &form, sinks, x->err));
    x->report->shared = shared;
    x->report->nodes = optimize_count(graph);
    x->report->model_bytes = w.model_bytes;
    x->report->data_bytes = w.data_bytes;
    return PITH_OK;
}

/* Sets *again if a pass has to be left out. */
static pith_status optimize_once(optimized *x, const pith__onnx_sinks *sinks, bool *again) {
    PITH_TRY(optimize_cut(x));
    PITH_TRY(pith__fuse_operators(&x->fused, x->m, again, x->err));
    if (*again) return PITH_OK;
    const pith__opset_choice choice = optimize_choice(x);
    x->report->opset = choice.given;
    if (!choice.given)
        PITH_TRY(pith__older_opset_choose(&x->report->opset, x->m->graph, &choice, x->err));
    PITH_TRY(pith__fuse_write_back(&x->fused, x->m->graph, x->report->opset, x->err));
    PITH_TRY(optimize_write(x, sinks));
    x->report->fusions = pith__fuse_tell(&x->fused, x->o->tell, x->o->tell_user);
    return PITH_OK;
}

static pith__fuse_kind optimize_kind(const pith_optimize_options *o) {
    if (o->contrib) return PITH_FUSE_ALL;
    if (o->standard) return PITH_FUSE_STANDARD;
    return o->gpu ? PITH_FUSE_GPU : PITH_FUSE_FAST;
}

/* As in export_model.c, each try opens the model again. */
pith_status pith__model_write_optimized(const pith_source *source,
                                        const pith_optimize_options *options,
                                        const pith__onnx_sinks *sinks, pith_optimize_report *report,
                                        pith_error *err) {
    pith_optimize_options o = PITH_OPTIMIZE_OPTIONS_INIT;
    pith_optimize_report own = PITH_OPTIMIZE_REPORT_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    if (!o.level) o.level = 3;
    if (!o.dtype) o.dtype = PITH_F32;
    PITH_TRY(optimize_check(&o, err));
    PITH_TRY(pith__export_graph_check_sinks(sinks, o.data_name, err));
    if (report && report->size < sizeof report->size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the report has no size; initialise it with PITH_OPTIMIZE_REPORT_INIT");
    optimized x = { .o = &o,
                    .report = &own,
                    .err = err,
                    .fused = { .kind = optimize_kind(&o), .level = o.level } };
    PITH_TRY(pith__threads_check(o.call.threads, err));
    pith__stop asked;
    pith__progress told;
    const pith__making making = { pith__stop_begin(&asked, &o.call), o.call.threads,
                                  pith__progress_begin(&told, &o.call) };
    pith_status status = PITH_OK;
    for (bool again = true, first = true; again && !status; first = false) {
        status = optimize_open(&x, source, first);
        if (status) return status;
        x.m->graph->making = &making;
        status = optimize_once(&x, sinks, &again);
        pith__model_destroy(x.m);
    }
    if (status || !report) return status;
    own.size = report->size;
    memcpy(report, &own, report->size < sizeof own ? report->size : sizeof own);
    return PITH_OK;
}

/* open_graph.c - what becomes of a graph that a file holds as it was written: operators, types,
 * passes. Compiled files have that behind them. */
#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/str.h"
#include "models/open/inner_outputs.h"
#include "models/open/chosen_runtime.h"
#include "models/open/open_model.h"
#include "models/open/reader.h"
#include "models/open/second_plan.h"

static pith__opt open_graph_optimizer(pith_model *m, pith_error *err) {
    pith__opt o = pith__model_optimizer(m, m->graph, err);
    o.report = m->options.flags & PITH_OPEN_DESCRIBE ? &m->report : NULL;
    return o;
}

/* Dense layers in another precision take a pass, and kernels that a list made for f32 does not
 * have. */
static pith_status open_graph_check_precision(const pith_model *m, pith_error *err) {
    const bool int8 = m->options.precision == PITH_PRECISION_INT8;
    const pith_str kernel = int8 ? PITH_STR("gemm i8") : PITH_STR("gemm bf16");
    const char *place = int8 ? "precision int8" : "precision bf16";
    pith__lacks lacks = { .count = 0 };
    if (m->options.precision <= PITH_PRECISION_F32 ||
        !pith__piece_is_dropped("passes", PITH_STR("precision")))
        return PITH_OK;
    pith__lacks_note(&lacks, "passes", PITH_STR("precision"), place);
    if (pith__piece_is_dropped("kernels", kernel))
        pith__lacks_note(&lacks, "kernels", kernel, place);
    return pith__lacks_check(&lacks, err);
}

static pith_status open_graph_optimize(pith_model *m, pith_error *err) {
    PITH_TRY(open_graph_check_precision(m, err));
    pith__opt o = open_graph_optimizer(m, err);
    return pith__model_level(m) ? pith__opt_run(&o, m->options.stop_after) : PITH_OK;
}

/* Inner values become outputs; what the file calls outputs is noted first. */
static pith_status open_graph_inner(pith_model *m, pith_error *err) {
    if (strcmp(m->reader->name, "onnx") != 0)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "inner values are those of an .onnx file; this model is another format");
    pith_str *names = pith__arena_array(&m->arena, m->graph->output_count, sizeof *names);
    if (!names) return pith__fail_memory(err, m->graph->output_count * sizeof *names);
    for (size_t i = 0; i < m->graph->output_count; i++)
        names[i] = pith__graph_output_name(m->graph, i);
    m->chosen_runtime.file_names = names;
    return pith__inner_add(m->graph, err);
}

/* Operators and types, as far as Pith knows them. */
static pith_status open_graph_operators(pith_model *m, pith_error *err) {
    const bool inner = m->options.flags & PITH_OPEN_INNER;
    m->chosen_runtime.file_outputs = m->graph->output_count;
    if (inner) PITH_TRY(open_graph_inner(m, err));
    PITH_TRY(pith__ops_bind(m->graph, err));
    PITH_TRY(pith__ops_infer(m->graph, m->options.flags & PITH_OPEN_STRICT_SHAPES, err));
    PITH_TRY(pith__ops_check_declared(m->graph, m->options.flags & PITH_OPEN_STRICT_SHAPES, err));
    if (!inner && m->text_modules) PITH_TRY(m->text_modules->rows(m, err));
    if (!inner) return PITH_OK;
    pith__inner_settle(m->graph);
    return m->runtime->as_written ? pith__inner_file(&m->chosen_runtime.inner, m, err) : PITH_OK;
}

/* What was read becomes what is run. */
static pith_status open_graph_finish(pith_model *m, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    if (m->options.flags & PITH_OPEN_DESCRIBE) PITH_TRY(pith__model_count_ops(m, m->graph, err));
    PITH_TRY(pith__model_fix_inputs(m, err));
    const pith_status known = open_graph_operators(m, &fault);
    if (known && m->options.flags & PITH_OPEN_INNER)
        return pith__fail(err, known, "%s", fault.message);
    PITH_TRY(pith__chosen_runtime_choose(m, known, &fault, err));
    PITH_TRY(pith__model_make_ports(&m->inputs, m, m->graph->inputs, m->graph->input_count, err));
    PITH_TRY(
        pith__model_make_ports(&m->outputs, m, m->graph->outputs, m->graph->output_count, err));
    return m->runtime->as_written ? PITH_OK : open_graph_optimize(m, err);
}

/* The graph that the reader made again: bound, inferred and optimised like the first. */
static pith_status open_graph_again(pith__graph *graph, const pith_model *m,
                                    const pith_allocator *allocator, pith_error *err) {
    if (m->options.flags & PITH_OPEN_INNER) PITH_TRY(pith__inner_add(graph, err));
    graph->operators = m->options.operators;
    PITH_TRY(pith__ops_bind(graph, err));
    PITH_TRY(pith__ops_infer(graph, m->options.flags & PITH_OPEN_STRICT_SHAPES, err));
    if (m->options.flags & PITH_OPEN_INNER) pith__inner_settle(graph);
    int output;
    if (graph->output_count < m->graph->output_count && m->text_modules)
        PITH_TRY(m->text_modules->output(&output, m, graph, err));
    pith__opt o = pith__model_optimizer(m, graph, err);
    o.allocator = allocator;
    return pith__model_level(m) ? pith__opt_run(&o, NULL) : PITH_OK;
}

const pith__reader_stages pith__open_graph_stages = { .finish = open_graph_finish,
                                                      .again = open_graph_again,
                                                      .second_plan = &pith__second_plan_calls };

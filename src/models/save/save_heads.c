/* save_heads.c - see save_heads.h. */
#include "models/save/save_heads.h"

#include <string.h>

#include "base/error.h"
#include "engine/ragged/ragged.h"
#include "formats/compiled/graph_bytes.h"
#include "models/texts/encode_texts.h"
#include "models/texts/score_pairs.h"

enum { HEADS_OUTPUTS = PITH_ENCODE_KINDS + 1 };

/* ---- reading ---- */

/* The place of an output in the section's list; count if it is not there. */
static size_t heads_place(const uint32_t *list, size_t count, int output) {
    size_t place = 0;
    while (place < count && list[place] != (uint32_t)output) place++;
    return place;
}

/* What callers are told of an output is of the model's own graph; rows of another width would not
 * fit. */
static pith_status heads_check_width(const pith__graph *graph, size_t place, const pith_model *m,
                                     int output, pith_error *err) {
    const pith__type *wanted = &m->graph->outputs[output]->type,
                     *type = &graph->outputs[place]->type;
    const pith__dim width = wanted->rank > 0 ? wanted->dims[wanted->rank - 1] : PITH_DIM_UNKNOWN;
    if (!pith__dim_known(width) || (type->rank > 0 && type->dims[type->rank - 1] == width))
        return PITH_OK;
    return pith__fail(err, PITH_ERR_FORMAT,
                      "heads: output %d has another width than in the model's graph", output);
}

static pith_status heads_choose(pith__graph *graph, const uint32_t *list, size_t listed,
                                const int *outputs, size_t count, pith_error *err) {
    pith__value **chosen = pith__arena_array(graph->arena, count, sizeof *chosen);
    pith_str *names = pith__arena_array(graph->arena, count, sizeof *names);
    if (!chosen || !names) return pith__fail_memory(err, count * sizeof *names);
    for (size_t i = 0; i < count; i++) {
        const size_t place = heads_place(list, listed, outputs[i]);
        chosen[i] = graph->outputs[place];
        names[i] = graph->output_names[place];
    }
    for (size_t i = 0; i < listed; i++) graph->outputs[i]->output_uses--;
    for (size_t i = 0; i < count; i++) chosen[i]->output_uses++;
    graph->outputs = chosen;
    graph->output_names = names;
    graph->output_count = count;
    pith__graph_sweep(graph);
    return PITH_OK;
}

pith_status pith__save_heads_read(pith__graph **graph, const pith_model *m, const int *outputs,
                                  size_t count, pith__arena *arena, pith_error *err) {
    pith__bytes_in in = { .bytes = m->compiled.sections[PITH_SECTION_HEADS],
                          .what = "heads",
                          .err = err };
    uint32_t list[HEADS_OUTPUTS];
    pith__constant_spans_in weights;
    *graph = NULL;
    if (!in.bytes.data) return PITH_OK;
    const size_t listed = pith__get_count(&in, 4);
    if (listed > HEADS_OUTPUTS) return pith__bytes_fail(&in, "more outputs than heads read");
    for (size_t i = 0; i < listed; i++) list[i] = pith__get_u32(&in);
    if (in.status) return in.status;
    for (size_t i = 0; i < count; i++)
        if (heads_place(list, listed, outputs[i]) == listed) return PITH_OK;
    PITH_TRY(pith__constant_spans_open(&weights, m->compiled.sections[PITH_SECTION_WEIGHTS], err));
    PITH_TRY(pith__graph_read(graph, &in, &weights, arena, m->options.call.log));
    if ((*graph)->output_count != listed)
        return pith__fail(err, PITH_ERR_FORMAT, "heads: another number of outputs");
    PITH_TRY(heads_choose(*graph, list, listed, outputs, count, err));
    (*graph)->operators = m->options.operators;
    pith_status status = pith__ops_bind(*graph, err);
    if (!status) status = pith__ops_infer(*graph, false, err);
    for (size_t i = 0; !status && i < count; i++)
        status = heads_check_width(*graph, i, m, outputs[i], err);
    return status == PITH_ERR_FORMAT || !status ? status : pith__fail_at(err, status, "heads: ");
}

/* ---- writing ---- */

/* The graph of these outputs; NULL if there is none. */
static pith_status heads_make(pith__graph **graph, const pith_model *m, const int *outputs,
                              size_t count, pith__stop *stop, pith__arena *arena, pith_error *err) {
    pith_str reason;
    if (m->compiled.writer) return pith__save_heads_read(graph, m, outputs, count, arena, err);
    pith__making before;
    PITH_TRY(pith__model_begin_making(&before, m, stop, err));
    pith__opt o = pith__model_optimizer(m, m->graph, err);
    o.allocator = arena->allocator;
    const pith_status status = pith__ragged_make(graph, &reason, outputs, count, &o, arena);
    pith__model_end_making(m, before);
    if (!status && *graph) (*graph)->making = NULL;
    return status;
}

static size_t heads_add(int *outputs, size_t count, int output) {
    size_t at = 0;
    while (at < count && outputs[at] < output) at++;
    if (output < 0 || (at < count && outputs[at] == output)) return count;
    memmove(outputs + at + 1, outputs + at, (count - at) * sizeof *outputs);
    outputs[at] = output;
    return count + 1;
}

/* Outputs that some head reads and for which there is a graph of packed texts, ascending. */
static pith_status heads_list(int *outputs, size_t *count, const pith_model *m, pith__stop *stop,
                              const pith_allocator *allocator, pith_error *err) {
    int read[HEADS_OUTPUTS];
    size_t found = 0;
    for (int kind = 0; kind < PITH_ENCODE_KINDS; kind++)
        found = heads_add(read, found, pith__model_encode_output(m, kind));
    found = heads_add(read, found, pith__model_score_output(m));
    *count = 0;
    for (size_t i = 0; i < found; i++) {
        pith__arena arena;
        pith__graph *graph;
        pith__arena_init(&arena, allocator);
        pith_status status = heads_make(&graph, m, &read[i], 1, stop, &arena, err);
        if (!status && graph) outputs[(*count)++] = read[i];
        pith__arena_free(&arena);
        PITH_TRY(status);
    }
    return PITH_OK;
}

pith_status pith__save_heads_write(pith__bytes_out *out, pith__program *program,
                                   pith__constant_spans_out *weights, const pith_model *m,
                                   pith__stop *stop, pith_error *err) {
    const pith__making making = { .stop = stop };
    int outputs[HEADS_OUTPUTS];
    size_t count;
    pith__graph *graph;
    if (!m->text.encoder || !pith__model_level(m) || m->no_ragged) return PITH_OK;
    PITH_TRY(heads_list(outputs, &count, m, stop, out->arena->allocator, err));
    if (!count || (count == 1 && m->text.ragged && outputs[0] == m->text.outputs[0]))
        return PITH_OK;
    PITH_TRY(heads_make(&graph, m, outputs, count, stop, out->arena, err));
    if (!graph) return PITH_OK;
    graph->making = &making;
    const pith_status status = pith__model_open_program(program, m, graph, out->arena, err);
    graph->making = NULL;
    PITH_TRY(status);
    pith__put_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) pith__put_u32(out, (uint32_t)outputs[i]);
    return pith__graph_write(out, weights, graph, pith__program_plan(program), err);
}

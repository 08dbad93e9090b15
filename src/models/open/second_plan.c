/* second_plan.c - sessions that need the graph planned again. There are two cases: an input with a
 * default (an initializer that the file also lists as an input) is fed another value, or axes that
 * share a symbol get different sizes.
 *
 * The model's plan is made with the defaults as constants: folded, fused and packed, at no cost for
 * callers that never feed them. A session that feeds another value reads the graph again from the
 * bytes of the file. There, the inputs it feeds are ordinary ones. It keeps that plan next to the
 * model's: the model stays immutable, and sessions share nothing. When it later feeds a further
 * input, it opens that one as well, so it makes at most one plan per such input. A symbol in a file
 * is a hint: with `apart`, every axis of every input has a symbol of its own. */
#include "models/open/second_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "models/open/chosen_runtime.h"
#include "models/open/reader.h"

struct pith__second_plan {
    const pith_model *model;
    pith__account account; /* in the model's: whether memory was refused while this was made */
    pith__arena arena;
    pith__program program;
    pith__runner runner;
    bool *open; /* by input */
    bool apart;
    pith__making making; /* of its graph: the call that makes it */
};

static const pith_tensor *default_of(const pith_model *m, size_t input) {
    return m->graph->inputs[input]->type.data;
}

/* Calls visit for each axis of a given tensor whose size has a name; stops when that gives false.
 */
static bool each_named_axis(const pith_model *m, const pith_tensor *inputs,
                            pith__named_sizes *sizes,
                            bool (*visit)(pith__named_sizes *sizes, int32_t symbol, size_t input,
                                          int axis, int64_t size)) {
    for (size_t i = 0; i < m->graph->input_count; i++) {
        const pith__type *type = &m->graph->inputs[i]->type;
        const pith_tensor *t = &inputs[i];
        if (!t->dtype || t->dtype >= PITH_DTYPE_COUNT || type->data || t->rank != type->rank)
            continue;
        for (int d = 0; d < t->rank; d++) {
            int32_t symbol = pith__dim_symbol_index(m->graph->dims, type->dims[d]);
            if (symbol >= 0 && !visit(sizes, symbol, i, d, t->dims[d])) return false;
        }
    }
    return true;
}

static bool compare_size(pith__named_sizes *s, int32_t symbol, size_t input, int axis,
                         int64_t size) {
    pith__named_size *known = &s->items[symbol];
    if (!known->given) {
        *known = (pith__named_size){ true, input, size };
        return true;
    }
    s->symbol = symbol;
    s->input = input;
    s->axis = axis;
    s->size = size;
    return known->size == size;
}

static bool forget_size(pith__named_sizes *s, int32_t symbol, size_t input, int axis,
                        int64_t size) {
    (void)input, (void)axis, (void)size;
    s->items[symbol].given = false;
    return true;
}

static bool second_plan_apart(const pith_model *m, const pith_tensor *inputs,
                              pith__named_sizes *sizes) {
    if (!m->reader->again || m->options.flags & PITH_OPEN_STRICT_SHAPES) return false;
    bool agree = each_named_axis(m, inputs, sizes, compare_size);
    each_named_axis(m, inputs, sizes, forget_size);
    return !agree;
}

static const char *second_plan_sizes_text(const pith__named_sizes *n, const pith_model *m,
                                          char *buffer, size_t size) {
    const pith__named_size *other = &n->items[n->symbol];
    pith_str name = pith__dims_symbol_name(m->graph->dims, n->symbol);
    snprintf(buffer, size,
             "input '%s' has size %lld at axis %d, but input '%s' sets " PITH_STR_FMT " to %lld",
             m->inputs[n->input].name, (long long)n->size, n->axis, m->inputs[other->input].name,
             PITH_STR_ARG(name), (long long)other->size);
    return buffer;
}

static bool second_plan_has(const pith__second_plan *second, const bool *open, bool apart) {
    if (apart && !second->apart) return false;
    for (size_t i = 0; i < second->model->graph->input_count; i++)
        if (open[i] && !second->open[i]) return false;
    return true;
}

/* Shapes that the caller fixed at open stay so. */
static void keep_fixed(pith__graph *graph, const pith__graph *from) {
    for (size_t i = 0; i < graph->input_count; i++) {
        if (!from->inputs[i]->fixed) continue;
        graph->inputs[i]->hint = from->inputs[i]->hint;
        graph->inputs[i]->fixed = true;
    }
}

/* The graph as it was read, bound, inferred and optimised, but with the inputs open. Its external
 * data is mapped already, so the list of the model's files is only looked at. */
static pith_status second_plan_make_graph(pith__graph **graph, pith__second_plan *second,
                                          pith_error *err) {
    const pith_model *m = second->model;
    pith__files files = m->files;
    pith__source source = { m->source_bytes, m->source_folder, m->path.data };
    PITH_TRY(m->reader->again(graph, m, &source, &files, &second->arena, err));
    (*graph)->making = &second->making;
    for (size_t i = 0; i < (*graph)->input_count; i++)
        if (second->open[i]) (*graph)->inputs[i]->type.data = NULL;
    (*graph)->apart = second->apart;
    keep_fixed(*graph, m->graph);
    return m->reader->stages->again(*graph, m, &second->account.allocator, err);
}

static pith_status second_plan_make(pith__second_plan *second, const bool *open, bool apart,
                                    pith__executor_options options, pith_error *err) {
    const pith_model *m = second->model;
    pith__graph *graph;
    size_t count = m->graph->input_count;
    second->open = pith__arena_alloc(&second->arena, count * sizeof *open);
    if (!second->open) return pith__fail_memory(err, count * sizeof *open);
    memcpy(second->open, open, count * sizeof *open);
    second->apart = apart;
    PITH_TRY(second_plan_make_graph(&graph, second, err));
    PITH_TRY(pith__model_open_program(&second->program, m, graph, &second->arena, err));
    options.allocator = &second->account.allocator;
    return pith__runner_create(&second->runner, &second->program, &options, err);
}

static void second_plan_destroy(pith__second_plan *second) {
    if (!second) return;
    pith__runner_destroy(&second->runner);
    pith__program_close(&second->program);
    pith__arena_free(&second->arena);
    pith__memory_free(second->model->options.call.allocator, second);
}

static pith_status second_plan_create(pith__second_plan **second, const pith_model *m,
                                      const bool *open, bool apart,
                                      const pith__executor_options *options, pith__stop *stop,
                                      pith_error *err) {
    pith__second_plan *f = pith__memory_alloc(m->options.call.allocator, sizeof *f, 64);
    if (!f) return pith__fail_memory(err, sizeof *f);
    *f = (pith__second_plan){ .model = m, .making = { .stop = stop } };
    pith__account_init(&f->account, m->options.call.allocator, 0, 0);
    pith__arena_init(&f->arena, &f->account.allocator);
    pith_status status =
        pith__account_settle(&f->account, second_plan_make(f, open, apart, *options, err), err);
    f->making.stop = NULL;
    if (status)
        second_plan_destroy(f);
    else
        *second = f;
    return status;
}

static pith__runner second_plan_ready(const pith__second_plan *second, pith_tensor *inputs) {
    for (size_t i = 0; i < second->model->graph->input_count; i++)
        if (second->open[i] && inputs[i].dtype == PITH_UNDEFINED)
            inputs[i] = *default_of(second->model, i);
    return second->runner;
}

const pith__second_plan_functions pith__second_plan_calls = { .create = second_plan_create,
                                                              .destroy = second_plan_destroy,
                                                              .ready = second_plan_ready,
                                                              .apart = second_plan_apart,
                                                              .sizes_text = second_plan_sizes_text,
                                                              .has = second_plan_has };

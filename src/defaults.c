/* defaults.c - sessions that need the graph planned again: inputs with a default (initializers that the file lists as
 * inputs too) that are fed other values, and axes that share a symbol by accident and are given different sizes.
 *
 * The model's plan is made with the defaults as constants: folded, fused and packed at no cost for those who never feed
 * them. A session that feeds another value reads the graph from the file's bytes again, in which the inputs it feeds
 * are ordinary ones, and keeps that plan beside the model's: the model stays immutable, sessions share nothing. A
 * further input that it feeds later opens that one as well, so there are at most as many plans made as such inputs.
 * A symbol in a file is a hint: with `apart` every axis of every input has one of its own. */
#include <string.h>

#include "base/error.h"
#include "model.h"
#include "onnx/onnx.h"

struct pith_fed {
    const pith_model *model;
    pith_account account; /* in the model's: whether memory was refused while this was made */
    pith_arena arena;
    pith_executor *executor;
    bool *open; /* by input */
    bool apart;
};

static const pith_tensor *default_of(const pith_model *m, size_t input) { return m->graph->inputs[input]->type.data; }

bool pith_fed_needs(const pith_model *m, size_t input, const pith_tensor *t) {
    const pith_tensor *own = default_of(m, input);
    bool same = t->dtype == own->dtype && t->rank == own->rank;
    for (int d = 0; same && d < own->rank; d++) same = t->dims[d] == own->dims[d];
    return !same || t->dtype == PITH_STRING || (own->bytes && memcmp(t->data, own->data, own->bytes));
}

bool pith_fed_apart(const pith_model *m, const pith_tensor *inputs) {
    const pith_graph *g = m->graph;
    if (!m->onnx.data || m->options.flags & PITH_OPEN_STRICT_SHAPES) return false;
    for (size_t i = 0; i < g->input_count; i++)
        for (int d = 0; d < inputs[i].rank && inputs[i].dtype < PITH_DTYPE_COUNT && inputs[i].dtype; d++)
            for (size_t k = 0; k <= i; k++)
                for (int e = 0; e < (k < i ? inputs[k].rank : d) && inputs[k].dtype < PITH_DTYPE_COUNT; e++) {
                    const pith_type *a = &g->inputs[i]->type, *b = &g->inputs[k]->type;
                    bool both = inputs[k].dtype && a->rank == inputs[i].rank && b->rank == inputs[k].rank;
                    if (both && pith_dim_equal(a->dims[d], b->dims[e]) && inputs[i].dims[d] != inputs[k].dims[e])
                        return true;
                }
    return false;
}

bool pith_fed_has(const pith_fed *fed, const bool *open, bool apart) {
    if (apart && !fed->apart) return false;
    for (size_t i = 0; i < fed->model->graph->input_count; i++)
        if (open[i] && !fed->open[i]) return false;
    return true;
}

/* Gives each axis of each input a symbol of its own. */
static pith_status part_symbols(pith_graph *graph, pith_arena *arena, pith_error *err) {
    for (size_t i = 0; i < graph->input_count; i++) {
        pith_type *types[] = { graph->inputs[i]->hint, &graph->inputs[i]->type };
        for (int t = 0; t < 2; t++)
            for (int d = 0; types[t] && d < types[t]->rank; d++) {
                if (pith_dim_known(types[t]->dims[d])) continue;
                pith_str name = pith_arena_printf(arena, "input %zu axis %d", i, d);
                if (!name.data) return pith_fail_memory(err, 32);
                types[t]->dims[d] = pith_dim_symbol(graph->dims, name);
            }
    }
    return PITH_OK;
}

/* The graph as it was read, bound, inferred and optimised, but with the inputs open. Its external data is mapped
 * already, so the list of the model's files is only looked at. */
static pith_status make_graph(pith_graph **graph, pith_fed *fed, pith_error *err) {
    const pith_model *m = fed->model;
    pith_files files = m->files;
    PITH_TRY(pith_onnx_read(graph, m->onnx, m->onnx_dir, &files, &fed->arena, m->options.log, err));
    for (size_t i = 0; i < (*graph)->input_count; i++)
        if (fed->open[i]) (*graph)->inputs[i]->type.data = NULL;
    if (fed->apart) PITH_TRY(part_symbols(*graph, &fed->arena, err));
    PITH_TRY(pith_ops_bind(*graph, err));
    PITH_TRY(pith_ops_infer(*graph, m->options.flags & PITH_OPEN_STRICT_SHAPES, err));
    pith_opt o = pith_model_optimizer(m, *graph, err);
    o.allocator = &fed->account.allocator;
    return m->options.optimization ? pith_opt_run(&o, NULL) : PITH_OK;
}

static pith_status make(pith_fed *fed, const bool *open, bool apart, pith_executor_options options, pith_error *err) {
    const pith_model *m = fed->model;
    pith_graph *graph;
    pith_plan *plan;
    size_t count = m->graph->input_count;
    fed->open = pith_arena_alloc(&fed->arena, count * sizeof *open);
    if (!fed->open) return pith_fail_memory(err, count * sizeof *open);
    memcpy(fed->open, open, count * sizeof *open);
    fed->apart = apart;
    PITH_TRY(make_graph(&graph, fed, err));
    PITH_TRY(pith_plan_build(&plan, graph, &m->files, &fed->arena, err));
    options.allocator = &fed->account.allocator;
    return pith_executor_create(&fed->executor, plan, &options, err);
}

pith_status pith_fed_create(pith_fed **fed, const pith_model *m, const bool *open, bool apart,
                            const pith_executor_options *options, pith_error *err) {
    if (!m->onnx.data)
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "a compiled model has the defaults of its inputs built in; feed other values to the ONNX file "
                         "it was compiled from");
    pith_fed *f = pith_memory_alloc(m->options.allocator, sizeof *f, 64);
    if (!f) return pith_fail_memory(err, sizeof *f);
    *f = (pith_fed){ .model = m };
    pith_account_init(&f->account, m->options.allocator, 0, 0);
    pith_arena_init(&f->arena, &f->account.allocator);
    pith_status status = pith_account_settle(&f->account, make(f, open, apart, *options, err), err);
    if (status)
        pith_fed_destroy(f);
    else
        *fed = f;
    return status;
}

void pith_fed_destroy(pith_fed *fed) {
    if (!fed) return;
    pith_executor_destroy(fed->executor);
    pith_arena_free(&fed->arena);
    pith_memory_free(fed->model->options.allocator, fed);
}

pith_executor *pith_fed_ready(const pith_fed *fed, pith_tensor *inputs) {
    for (size_t i = 0; i < fed->model->graph->input_count; i++)
        if (fed->open[i] && inputs[i].dtype == PITH_UNDEFINED) inputs[i] = *default_of(fed->model, i);
    return fed->executor;
}

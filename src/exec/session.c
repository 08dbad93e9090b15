/* session.c - the executor: find or make the binding, point the values at their memory, run the steps. */
#include "exec/session.h"

#include <string.h>
#include <time.h>

#include "base/dtype.h"
#include "exec/bind.h"

#define BINDINGS 8

/* The executor of one subgraph; its outputs are copied to the two arenas in turn, so that what one call gave can be
 * the next call's input. */
typedef struct child {
    const pith_subplan *sub;
    struct pith_executor *executor;
    pith_arena outputs[2];
    int turn;
    struct child *next;
} child;

struct pith_executor {
    pith_exec exec; /* first: ops get a pointer to it */
    const pith_plan *plan;
    pith_executor_options options;
    pith_binding bindings[BINDINGS];
    uint64_t clock;
    void *backend;
    void *buffer;
    size_t buffer_bytes, peak_bytes;
    pith_arena late;
    pith_arena *memory; /* where exec.alloc takes from: the late arena, or the binding's while it is made */
    child *children;
    pith_arena own;     /* the children's structs */
};

/* ---- what operators may ask for ---- */

static void *exec_alloc(pith_exec *exec, size_t bytes) {
    struct pith_executor *e = (struct pith_executor *)exec;
    return pith_arena_alloc64(e->memory, bytes);
}

static pith_status run_graph(struct pith_executor *e, const pith_tensor *inputs, pith_error *err);

/* A copy in the arena, sequences with their items. */
static pith_status copy_tensor(pith_tensor *to, const pith_tensor *from, pith_arena *arena, pith_error *err) {
    *to = *from;
    if (!from->bytes && from->dtype != PITH_SEQUENCE) return PITH_OK;
    to->data = pith_arena_alloc64(arena, from->bytes);
    if (!to->data) return pith_fail_memory(err, from->bytes);
    if (from->bytes) memcpy(to->data, from->data, from->bytes);
    if (from->dtype == PITH_SEQUENCE) {
        const pith_tensor *items = from->data;
        for (int64_t i = 0; i < from->dims[0]; i++)
            PITH_TRY(copy_tensor((pith_tensor *)to->data + i, &items[i], arena, err));
    } else if (from->dtype == PITH_STRING) {
        pith_str *strings = to->data;
        for (size_t i = 0; i < from->bytes / sizeof *strings; i++) {
            strings[i] = pith_arena_str(arena, strings[i]);
            if (!strings[i].data) return pith_fail_memory(err, strings[i].size);
        }
    }
    return PITH_OK;
}

static const pith_binding *newest_binding(const struct pith_executor *e) {
    const pith_binding *newest = &e->bindings[0];
    for (int i = 1; i < BINDINGS; i++)
        if (e->bindings[i].last_used > newest->last_used) newest = &e->bindings[i];
    return newest;
}

static child *child_of(struct pith_executor *e, const pith_subplan *sub, pith_error *err) {
    for (child *c = e->children; c; c = c->next)
        if (c->sub == sub) return c;
    child *c = pith_arena_array(&e->own, 1, sizeof *c);
    if (!c) {
        pith_fail_memory(err, sizeof *c);
        return NULL;
    }
    c->sub = sub;
    if (pith_executor_create(&c->executor, sub->plan, &e->options, err)) return NULL;
    pith_arena_init(&c->outputs[0], e->options.allocator);
    pith_arena_init(&c->outputs[1], e->options.allocator);
    c->next = e->children;
    e->children = c;
    return c;
}

static pith_status exec_subgraph(pith_exec *exec, const pith_run *run, const char *attribute, const pith_tensor *inputs,
                                 size_t input_count, pith_tensor *outputs, size_t output_count) {
    struct pith_executor *e = (struct pith_executor *)exec;
    const pith_step *step = run->plan;
    const pith_subplan *sub = NULL;
    for (size_t i = 0; i < step->subplan_count; i++)
        if (pith_str_is(step->subplans[i].attribute, attribute)) sub = &step->subplans[i];
    if (!sub) return pith_fail(run->err, PITH_ERR_FORMAT, "attribute '%s' is missing", attribute);
    const pith_graph *graph = sub->plan->graph;
    if (input_count != graph->input_count || output_count != graph->output_count)
        return pith_fail(run->err, PITH_ERR_FORMAT, "subgraph '%s' has %zu inputs and %zu outputs, %zu and %zu are wanted",
                         attribute, graph->input_count, graph->output_count, input_count, output_count);
    child *c = child_of(e, sub, run->err);
    if (!c) return run->err ? run->err->code : PITH_ERR_MEMORY;
    struct pith_executor *sub_e = c->executor;
    sub_e->exec.threads = e->exec.threads;
    sub_e->exec.cancel = e->exec.cancel;

    /* Captures of this subgraph are the node's trailing inputs; with several subgraphs each has all of them in order. */
    size_t captures = graph->capture_count;
    pith_tensor *all = pith_arena_array(e->memory, input_count + captures + 1, sizeof *all);
    if (!all) return pith_fail_memory(run->err, (input_count + captures) * sizeof *all);
    memcpy(all, inputs, input_count * sizeof *all);
    size_t first = (size_t)run->in_count - captures;
    for (size_t i = 0; i < captures; i++) all[input_count + i] = *run->in[first + i];
    PITH_TRY(run_graph(sub_e, all, run->err));

    c->turn ^= 1;
    pith_arena_reset(&c->outputs[c->turn]);
    const pith_binding *b = newest_binding(sub_e);
    for (size_t i = 0; i < output_count; i++)
        PITH_TRY(copy_tensor(&outputs[i], &b->tensors[graph->outputs[i]->id], &c->outputs[c->turn], run->err));
    return PITH_OK;
}

/* ---- life ---- */

pith_status pith_executor_create(pith_executor **executor, const pith_plan *plan, const pith_executor_options *options,
                                 pith_error *err) {
    const pith_allocator *allocator = options && options->allocator ? options->allocator : &pith_allocator_default;
    struct pith_executor *e = pith_memory_alloc(allocator, sizeof *e, 64);
    if (!e) return pith_fail_memory(err, sizeof *e);
    *e = (struct pith_executor){ .plan = plan };
    if (options) e->options = *options;
    e->options.allocator = allocator;
    if (!e->options.loop_limit) e->options.loop_limit = (int64_t)1 << 31;
    e->exec = (pith_exec){ .threads = 1, .isa = plan->isa, .loop_limit = e->options.loop_limit, .alloc = exec_alloc,
                           .subgraph = exec_subgraph };
    for (int i = 0; i < BINDINGS; i++) pith_arena_init(&e->bindings[i].arena, allocator);
    pith_arena_init(&e->late, allocator);
    pith_arena_init(&e->own, allocator);
    e->late.limit = e->options.memory_limit;
    e->memory = &e->late;
    pith_status status = plan->backend->open(&e->backend, allocator, err);
    if (status) {
        pith_memory_free(allocator, e);
        return status;
    }
    *executor = e;
    return PITH_OK;
}

void pith_executor_destroy(pith_executor *e) {
    if (!e) return;
    for (child *c = e->children; c; c = c->next) {
        pith_executor_destroy(c->executor);
        pith_arena_free(&c->outputs[0]);
        pith_arena_free(&c->outputs[1]);
    }
    for (int i = 0; i < BINDINGS; i++) pith_arena_free(&e->bindings[i].arena);
    pith_arena_free(&e->late);
    pith_arena_free(&e->own);
    if (e->buffer) e->plan->backend->free(e->backend, e->buffer);
    e->plan->backend->close(e->backend);
    pith_memory_free(e->options.allocator, e);
}

/* ---- running ---- */

static bool same_inputs(const pith_binding *b, const pith_tensor *inputs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const pith_tensor *a = &b->inputs[i], *t = &inputs[i];
        if (a->dtype != t->dtype || a->rank != t->rank || memcmp(a->dims, t->dims, sizeof *t->dims * (size_t)t->rank) != 0)
            return false;
    }
    return true;
}

static pith_status find_binding(pith_binding **binding, struct pith_executor *e, const pith_tensor *inputs, pith_error *err) {
    size_t count = e->plan->graph->input_count + e->plan->graph->capture_count;
    pith_binding *oldest = &e->bindings[0];
    for (int i = 0; i < BINDINGS; i++) {
        pith_binding *b = &e->bindings[i];
        if (b->last_used && b->threads == e->exec.threads && same_inputs(b, inputs, count)) {
            b->last_used = ++e->clock;
            *binding = b;
            return PITH_OK;
        }
        if (b->last_used < oldest->last_used) oldest = b;
    }
    e->memory = &oldest->arena;
    pith_status status = pith_bind(oldest, e->plan, inputs, &e->exec, e->options.memory_limit, err);
    e->memory = &e->late;
    if (status) return status;
    oldest->last_used = ++e->clock;
    *binding = oldest;
    return PITH_OK;
}

static pith_status grow_buffer(struct pith_executor *e, size_t bytes, pith_error *err) {
    if (bytes <= e->buffer_bytes) return PITH_OK;
    void *buffer = e->plan->backend->alloc(e->backend, bytes);
    if (!buffer) return pith_fail_memory(err, bytes);
    if (e->buffer) e->plan->backend->free(e->backend, e->buffer);
    e->buffer = buffer;
    e->buffer_bytes = bytes;
    return PITH_OK;
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static pith_status run_step(struct pith_executor *e, pith_binding *b, pith_bound_step *s, pith_error *err) {
    const pith_step *step = &e->plan->steps[s->index];
    const pith_node *node = step->node;
    pith_run *r = &s->run;
    r->exec = &e->exec;
    r->err = err;
    uint64_t begin = e->options.trace ? now() : 0;
    if (s->kind == PITH_BOUND_LATE) {
        PITH_TRY(pith_bind_late(b, e->plan, s, &e->exec, &e->late, err));
    } else {
        for (int i = 0; i < r->out_count; i++) {
            if (!r->out[i]) continue;
            uint32_t id = node->outputs[i]->id;
            r->out[i]->data = b->places[id] == PITH_PLACE_VIEW ? b->tensors[b->aliases[id]].data
                                                               : (char *)e->buffer + b->offsets[id];
        }
        r->scratch = s->scratch_bytes ? (char *)e->buffer + s->scratch_offset : NULL;
    }
    if (!(node->op->flags & PITH_OP_VIEW)) {
        pith_status status = step->backend->run(e->backend, r);
        if (status) {
            char place[256];
            return pith_fail_at(err, status, "%s: ", pith_node_place(node, place, sizeof place));
        }
    }
    if (e->options.trace) {
        pith_trace_event event = { .step = step, .begin_ns = begin, .end_ns = now(), .run = r };
        e->options.trace(e->options.trace_context, &event);
    }
    return PITH_OK;
}

/* inputs: the graph's, then its captures. The results stay in the newest binding's tensors. */
static pith_status run_graph(struct pith_executor *e, const pith_tensor *inputs, pith_error *err) {
    const pith_graph *graph = e->plan->graph;
    pith_binding *b;
    pith_arena_reset(&e->late);
    PITH_TRY(find_binding(&b, e, inputs, err));
    PITH_TRY(grow_buffer(e, b->buffer_bytes, err));
    for (size_t i = 0; i < graph->input_count + graph->capture_count; i++) {
        const pith_value *value = i < graph->input_count ? graph->inputs[i] : graph->captures[i - graph->input_count];
        if (b->places[value->id] != PITH_PLACE_INPUT) continue;
        b->tensors[value->id] = inputs[i];
    }
    for (size_t i = 0; i < b->step_count; i++) {
        if (e->exec.cancel && *e->exec.cancel) return pith_fail(err, PITH_ERR_CANCELLED, "cancelled");
        PITH_TRY(run_step(e, b, &b->steps[i], err));
    }
    PITH_TRY(e->plan->backend->finish(e->backend, err));
    size_t bytes = pith_executor_bytes(e);
    if (bytes > e->peak_bytes) e->peak_bytes = bytes;
    return PITH_OK;
}

pith_status pith_executor_run(pith_executor *e, pith_tensor *outputs, const pith_tensor *inputs, int threads,
                              const volatile int *cancel, pith_error *err) {
    const pith_graph *graph = e->plan->graph;
    e->exec.threads = threads < 1 ? 1 : threads;
    e->exec.cancel = cancel;
    PITH_TRY(run_graph(e, inputs, err));
    const pith_binding *b = newest_binding(e);
    for (size_t i = 0; i < graph->output_count; i++) {
        uint32_t id = graph->outputs[i]->id, root = id;
        while (b->places[root] == PITH_PLACE_VIEW) root = b->aliases[root];
        if (b->places[root] == PITH_PLACE_INPUT) PITH_TRY(copy_tensor(&outputs[i], &b->tensors[id], &e->late, err));
        else outputs[i] = b->tensors[id];
    }
    return PITH_OK;
}

size_t pith_executor_bytes(const pith_executor *e) {
    size_t bytes = e->buffer_bytes + e->late.total;
    for (const child *c = e->children; c; c = c->next)
        bytes += pith_executor_bytes(c->executor) + c->outputs[0].total + c->outputs[1].total;
    return bytes;
}

size_t pith_executor_peak_bytes(const pith_executor *e) { return e->peak_bytes; }

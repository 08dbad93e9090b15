/* bind.c - shapes to memory.
 *
 * One walk over the steps with the operators' own infer, now on numbers. What follows from shapes alone is computed on
 * the way (its contents steer the shapes behind it); a step whose outputs stay unknown is late. Then one buffer is laid
 * out by life times: a view or an in-place result shares its root's block, blocks go into the tightest gap. */
#include "exec/bind.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"

/* Larger results are not computed ahead, so that a binding stays small. */
#define KNOWN_BYTES_MAX ((size_t)64 << 10)
#define ALIGNMENT 64

typedef struct binder {
    pith_binding *b;
    const pith_plan *plan;
    pith_exec *exec;
    pith_error *err;
    pith_dim *symbols;
    uint32_t *root; /* by value id: the value whose block it lies in */
    uint32_t *end;  /* by value id, for roots: the last step that reads the block */
} binder;

/* ---- inputs ---- */

static pith_status bind_symbol(binder *w, int32_t *giver, size_t input, int d, pith_dim declared, int64_t actual) {
    const pith_graph *graph = w->plan->graph;
    int32_t symbol = pith_dim_symbol_index(graph->dims, declared);
    if (symbol < 0) return PITH_OK;
    if (w->symbols[symbol] == PITH_DIM_UNKNOWN) {
        w->symbols[symbol] = actual;
        giver[symbol] = (int32_t)input;
        return PITH_OK;
    }
    if (w->symbols[symbol] == actual) return PITH_OK;
    return pith_fail(w->err, PITH_ERR_ARGUMENT,
                     "input '" PITH_STR_FMT "': dimension %d is %lld, but '" PITH_STR_FMT "' of input '" PITH_STR_FMT
                     "' is %lld",
                     PITH_STR_ARG(graph->inputs[input]->name), d, (long long)actual,
                     PITH_STR_ARG(pith_dims_symbol_name(graph->dims, symbol)),
                     PITH_STR_ARG(graph->inputs[giver[symbol]]->name), (long long)w->symbols[symbol]);
}

static pith_status bind_input(binder *w, int32_t *giver, size_t i, const pith_tensor *actual) {
    const pith_graph *graph = w->plan->graph;
    const pith_value *value = i < graph->input_count ? graph->inputs[i] : graph->captures[i - graph->input_count];
    pith_type *type = &w->b->types[value->id];
    if (actual->dtype == PITH_UNDEFINED) {
        if (!value->type.data)
            return pith_fail(w->err, PITH_ERR_ARGUMENT, "input '" PITH_STR_FMT "' is missing", PITH_STR_ARG(value->name));
        *type = value->type;
        w->b->places[value->id] = PITH_PLACE_KNOWN;
        w->b->tensors[value->id] = *value->type.data;
        return PITH_OK;
    }
    bool special = actual->dtype == PITH_SEQUENCE || actual->dtype == PITH_NONE || value->type.dtype == PITH_SEQUENCE;
    if (!special && value->type.dtype != PITH_UNDEFINED && value->type.dtype != actual->dtype)
        return pith_fail(w->err, PITH_ERR_ARGUMENT, "input '" PITH_STR_FMT "' is %s, the model wants %s",
                         PITH_STR_ARG(value->name), pith_dtype_name(actual->dtype), pith_dtype_name(value->type.dtype));
    if (!special && value->type.rank >= 0 && value->type.rank != actual->rank)
        return pith_fail(w->err, PITH_ERR_ARGUMENT, "input '" PITH_STR_FMT "' has %d dimensions, the model wants %d",
                         PITH_STR_ARG(value->name), actual->rank, value->type.rank);
    pith_type_of_tensor(type, actual);
    type->data = NULL;
    if (type->dtype == PITH_SEQUENCE) type->item_dtype = value->type.item_dtype;
    w->b->places[value->id] = PITH_PLACE_INPUT;
    w->b->tensors[value->id] = *actual;
    if (graph->parent || special) return PITH_OK;
    for (int d = 0; d < value->type.rank; d++)
        PITH_TRY(bind_symbol(w, giver, i, d, value->type.dims[d], actual->dims[d]));
    return PITH_OK;
}

static pith_status bind_inputs(binder *w, const pith_tensor *inputs) {
    const pith_graph *graph = w->plan->graph;
    size_t symbols = pith_dims_symbol_count(graph->dims), count = graph->input_count + graph->capture_count;
    w->symbols = pith_arena_array(&w->b->arena, symbols + 1, sizeof *w->symbols);
    int32_t *giver = pith_arena_array(&w->b->arena, symbols + 1, sizeof *giver);
    w->b->inputs = pith_arena_array(&w->b->arena, count + 1, sizeof *w->b->inputs);
    if (!w->symbols || !giver || !w->b->inputs) return pith_fail_memory(w->err, count * sizeof *w->b->inputs);
    for (size_t i = 0; i < symbols; i++) w->symbols[i] = PITH_DIM_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        w->b->inputs[i] = inputs[i];
        w->b->inputs[i].data = NULL;
        PITH_TRY(bind_input(w, giver, i, &inputs[i]));
    }
    return PITH_OK;
}

/* ---- known contents ---- */

static void store_elem(void *data, int dtype, int64_t i, pith_dim value) {
    switch (dtype) {
    case PITH_I64: case PITH_U64: ((int64_t *)data)[i] = value; break;
    case PITH_I32: case PITH_U32: ((int32_t *)data)[i] = (int32_t)value; break;
    case PITH_I16: case PITH_U16: ((int16_t *)data)[i] = (int16_t)value; break;
    case PITH_BOOL: ((uint8_t *)data)[i] = value != 0; break;
    default: ((uint8_t *)data)[i] = (uint8_t)value; break;
    }
}

/* Gives a tensor its dims, checked bytes and, if alloc, memory from the binding. */
static pith_status set_tensor(binder *w, pith_tensor *t, const pith_type *type, bool alloc) {
    t->dtype = type->dtype;
    t->rank = type->rank;
    memcpy(t->dims, type->dims, sizeof *t->dims * (size_t)type->rank);
    int64_t count = pith_dims_count(t->dims, t->rank);
    if (count < 0 || !pith_dtype_bytes(t->dtype, count, &t->bytes)) {
        char dims[256];
        return pith_fail(w->err, PITH_ERR_MEMORY, "a tensor of %s %s is too large", pith_dtype_name(t->dtype),
                         pith_dims_text(t->dims, t->rank, dims, sizeof dims));
    }
    t->data = NULL;
    if (!alloc) return PITH_OK;
    t->data = pith_arena_alloc64(&w->b->arena, t->bytes);
    if (!t->data) return pith_fail_memory(w->err, t->bytes);
    if (t->dtype == PITH_STRING) memset(t->data, 0, t->bytes);
    return PITH_OK;
}

/* The value's contents from its elements, every one a number. */
static pith_status make_known(binder *w, uint32_t id, const pith_dim *elems) {
    pith_type *type = &w->b->types[id];
    pith_tensor *t = &w->b->tensors[id];
    PITH_TRY(set_tensor(w, t, type, true));
    int64_t count = pith_type_count(type);
    for (int64_t i = 0; i < count; i++) store_elem(t->data, type->dtype, i, elems[i]);
    type->data = t;
    w->b->places[id] = PITH_PLACE_KNOWN;
    return PITH_OK;
}

static bool elems_are_numbers(const pith_type *type) {
    if (!type->elems || !pith_type_concrete(type) || !pith_dtype_holds_elems(type->dtype)) return false;
    int64_t count = pith_type_count(type);
    if (count < 0 || count > PITH_ELEMS_MAX) return false;
    for (int64_t i = 0; i < count; i++)
        if (!pith_dim_known(type->elems[i])) return false;
    return true;
}

static pith_status bind_from_shapes(binder *w) {
    const pith_graph *graph = w->plan->graph;
    for (size_t id = 0; id < graph->value_count; id++) {
        const pith_value *value = graph->values[id];
        if (value->kind == PITH_VALUE_CONST) {
            w->b->types[id] = value->type;
            w->b->places[id] = PITH_PLACE_KNOWN;
            w->b->tensors[id] = *value->type.data;
        } else if (w->plan->from_shapes[id]) {
            pith_type *type = &w->b->types[id];
            *type = value->type;
            pith_dim elems[PITH_ELEMS_MAX];
            int64_t count = pith_type_count(&value->type);
            for (int64_t i = 0; i < count; i++) {
                elems[i] = pith_dim_eval(graph->dims, value->type.elems[i], w->symbols);
                if (!pith_dim_known(elems[i]))
                    return pith_fail(w->err, PITH_ERR_ARGUMENT, "value '" PITH_STR_FMT "': its shape arithmetic overflows",
                                     PITH_STR_ARG(value->name));
            }
            type->elems = NULL;
            PITH_TRY(make_known(w, (uint32_t)id, elems));
        }
    }
    return PITH_OK;
}

/* ---- steps ---- */

static bool is_wanted(const pith_plan *plan, const pith_value *value) {
    return value && plan->last_use[value->id] != PITH_NEVER_USED;
}

static pith_status fail_at_node(pith_error *err, pith_status status, const pith_node *node) {
    char place[256];
    return pith_fail_at(err, status, "%s: ", pith_node_place(node, place, sizeof place));
}

static pith_status infer_step(pith_binding *b, const pith_node *node, const pith_type ***in_out, pith_type **out_out,
                              pith_arena *arena, pith_error *err) {
    const pith_type **in = pith_arena_array(arena, (size_t)node->input_count + 1, sizeof *in);
    pith_type *out = pith_arena_array(arena, (size_t)node->output_count + 1, sizeof *out);
    if (!in || !out) return pith_fail_memory(err, sizeof *out * (size_t)node->output_count);
    for (int i = 0; i < node->input_count; i++) in[i] = node->inputs[i] ? &b->types[node->inputs[i]->id] : NULL;
    for (int i = 0; i < node->output_count; i++) pith_type_init(&out[i]);
    pith_infer c = { .node = node, .in = in, .out = out, .in_count = node->input_count, .out_count = node->output_count,
                     .arena = arena, .err = err };
    *in_out = in;
    *out_out = out;
    return pith_op_infer_node(&c);
}

static bool inputs_are_known(const pith_binding *b, const pith_node *node) {
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && b->places[node->inputs[i]->id] != PITH_PLACE_KNOWN) return false;
    return true;
}

static pith_status scratch_of(const pith_step *step, const pith_type **in, pith_type *out, int threads, size_t *bytes,
                              pith_arena *arena, pith_error *err) {
    *bytes = 0;
    const pith_op *op = step->node->op;
    if (!op->scratch) return PITH_OK;
    pith_infer c = { .node = step->node, .in = in, .out = out, .in_count = step->node->input_count,
                     .out_count = step->node->output_count, .arena = arena, .err = err };
    pith_status status = op->scratch(&c, step->state, threads, bytes);
    return status ? fail_at_node(err, status, step->node) : PITH_OK;
}

static pith_status make_run(binder *w, pith_bound_step *s, const pith_step *step) {
    const pith_node *node = step->node;
    const pith_tensor **in = pith_arena_array(&w->b->arena, (size_t)node->input_count + 1, sizeof *in);
    pith_tensor **out = pith_arena_array(&w->b->arena, (size_t)node->output_count + 1, sizeof *out);
    if (!in || !out) return pith_fail_memory(w->err, sizeof *in * (size_t)node->input_count);
    for (int i = 0; i < node->input_count; i++) in[i] = node->inputs[i] ? &w->b->tensors[node->inputs[i]->id] : NULL;
    for (int i = 0; i < node->output_count; i++)
        out[i] = is_wanted(w->plan, node->outputs[i]) ? &w->b->tensors[node->outputs[i]->id] : NULL;
    s->run = (pith_run){ .node = node, .state = step->state, .in = in, .out = out, .in_count = node->input_count,
                         .out_count = node->output_count, .plan = step };
    return PITH_OK;
}

/* Runs a step whose inputs are all known; its results become known. */
static pith_status run_ahead(binder *w, pith_bound_step *s, const pith_step *step, const pith_type **in, pith_type *out) {
    const pith_node *node = step->node;
    size_t scratch;
    PITH_TRY(scratch_of(step, in, out, 1, &scratch, &w->b->arena, w->err));
    for (int i = 0; i < node->output_count; i++) {
        if (!s->run.out[i]) continue;
        if (node->op->flags & PITH_OP_VIEW && i == 0) {
            PITH_TRY(set_tensor(w, s->run.out[0], &out[0], false));
            s->run.out[0]->data = s->run.in[0]->data;
        } else if (pith_type_concrete(&out[i])) {
            PITH_TRY(set_tensor(w, s->run.out[i], &out[i], true));
        }
    }
    if (!(node->op->flags & PITH_OP_VIEW)) {
        int threads = w->exec->threads;
        w->exec->threads = 1;
        s->run.exec = w->exec;
        s->run.err = w->err;
        s->run.scratch = scratch ? pith_arena_alloc64(&w->b->arena, scratch) : NULL;
        pith_status status = scratch && !s->run.scratch ? pith_fail_memory(w->err, scratch) : step->backend->run(NULL, &s->run);
        w->exec->threads = threads;
        if (status) return fail_at_node(w->err, status, node);
    }
    for (int i = 0; i < node->output_count; i++) {
        if (!s->run.out[i]) continue;
        uint32_t id = node->outputs[i]->id;
        pith_type_of_tensor(&w->b->types[id], s->run.out[i]);
        w->b->types[id].data = s->run.out[i];
        w->b->places[id] = PITH_PLACE_KNOWN;
    }
    return PITH_OK;
}

/* Whether the step may be run at bind, given what infer found. */
static bool may_run_ahead(const binder *w, const pith_step *step, const pith_type *out) {
    const pith_node *node = step->node;
    if (step->subplan_count || node->op->flags & PITH_OP_RANDOM) return false;
    if (!(node->op->flags & PITH_OP_SHAPE_ONLY) && !inputs_are_known(w->b, node)) return false;
    for (int i = 0; i < node->output_count; i++) {
        if (!is_wanted(w->plan, node->outputs[i])) continue;
        if (out[i].dtype == PITH_SEQUENCE || out[i].dtype == PITH_STRING || out[i].dtype == PITH_NONE) return false;
        if (!pith_type_concrete(&out[i])) {
            if (!(node->op->flags & PITH_OP_LATE)) return false;
            continue;
        }
        size_t bytes;
        if (!pith_dtype_bytes(out[i].dtype, pith_type_count(&out[i]), &bytes) || bytes > KNOWN_BYTES_MAX) return false;
    }
    return true;
}

/* The input whose block output 0 may take over at step `index`, or NULL. */
static const pith_value *in_place_input(const binder *w, const pith_node *node, uint32_t index) {
    if (!(node->op->flags & PITH_OP_IN_PLACE) || !is_wanted(w->plan, node->outputs[0])) return NULL;
    const pith_tensor *out = &w->b->tensors[node->outputs[0]->id];
    bool elementwise = node->op->flags & PITH_OP_ELEMENTWISE;
    for (int i = 0; i < (elementwise ? 2 : 1) && i < node->input_count; i++) {
        const pith_value *x = node->inputs[i];
        if (!x || (w->b->places[x->id] != PITH_PLACE_BUFFER && w->b->places[x->id] != PITH_PLACE_VIEW)) continue;
        uint32_t root = w->root[x->id];
        const pith_tensor *t = &w->b->tensors[x->id];
        if (root == UINT32_MAX || w->end[root] != index || t->bytes != out->bytes || w->b->tensors[root].bytes != t->bytes ||
            pith_dtype_bits(t->dtype) != pith_dtype_bits(out->dtype))
            continue;
        if (t->rank != out->rank || memcmp(t->dims, out->dims, sizeof *t->dims * (size_t)t->rank) != 0) continue;
        bool shared = false; /* another input in the same block, read at other places than it is written */
        for (int k = 0; k < node->input_count; k++) {
            const pith_value *y = node->inputs[k];
            if (k == i || !y || w->root[y->id] != root) continue;
            shared |= !elementwise || w->b->tensors[y->id].bytes != t->bytes;
        }
        if (!shared) return x;
    }
    return NULL;
}

static pith_status place_outputs(binder *w, const pith_node *node, const pith_type *out, uint32_t index) {
    for (int i = 0; i < node->output_count; i++) {
        if (!is_wanted(w->plan, node->outputs[i])) continue;
        uint32_t id = node->outputs[i]->id;
        w->b->types[id] = out[i];
        PITH_TRY(set_tensor(w, &w->b->tensors[id], &out[i], false));
        w->b->places[id] = PITH_PLACE_BUFFER;
        w->root[id] = id;
        w->end[id] = w->plan->last_use[id];
    }
    const pith_value *x = NULL, *first = node->outputs[0];
    if (node->op->flags & PITH_OP_VIEW) {
        x = node->inputs[0];
        w->b->places[first->id] = PITH_PLACE_VIEW;
    } else if ((x = in_place_input(w, node, index))) {
        w->b->places[first->id] = PITH_PLACE_VIEW;
    }
    if (x) {
        uint32_t root = w->root[x->id];
        w->root[first->id] = root;
        w->b->aliases[first->id] = x->id;
        if (root != UINT32_MAX && w->end[root] < w->plan->last_use[first->id]) w->end[root] = w->plan->last_use[first->id];
    }
    return PITH_OK;
}

static void place_late(binder *w, const pith_node *node, const pith_type *out) {
    for (int i = 0; i < node->output_count; i++) {
        if (!is_wanted(w->plan, node->outputs[i])) continue;
        uint32_t id = node->outputs[i]->id;
        w->b->types[id] = out[i];
        w->b->types[id].data = NULL;
        w->b->types[id].elems = NULL;
        if (w->b->types[id].dtype == PITH_UNDEFINED) w->b->types[id].dtype = node->outputs[i]->type.dtype;
        if (!w->b->types[id].item_dtype) w->b->types[id].item_dtype = node->outputs[i]->type.item_dtype;
        w->b->places[id] = PITH_PLACE_LATE;
    }
}

static bool any_input_is_late(const binder *w, const pith_node *node) {
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && (w->b->places[node->inputs[i]->id] == PITH_PLACE_LATE ||
                                w->b->types[node->inputs[i]->id].dtype == PITH_SEQUENCE))
            return true;
    return false;
}

static pith_status bind_step(binder *w, uint32_t index) {
    const pith_step *step = &w->plan->steps[index];
    const pith_node *node = step->node;
    pith_bound_step *s = &w->b->steps[w->b->step_count];
    *s = (pith_bound_step){ .index = index };
    const pith_type **in;
    pith_type *out;
    PITH_TRY(infer_step(w->b, node, &in, &out, &w->b->arena, w->err));
    bool concrete = !(node->op->flags & PITH_OP_LATE), elems = true;
    for (int i = 0; i < node->output_count; i++) {
        if (!is_wanted(w->plan, node->outputs[i])) continue;
        concrete &= pith_type_concrete(&out[i]);
        elems &= elems_are_numbers(&out[i]);
    }
    PITH_TRY(make_run(w, s, step));
    if (concrete && elems) { /* infer has computed it */
        for (int i = 0; i < node->output_count; i++) {
            if (!is_wanted(w->plan, node->outputs[i])) continue;
            w->b->types[node->outputs[i]->id] = out[i];
            PITH_TRY(make_known(w, node->outputs[i]->id, out[i].elems));
        }
        return PITH_OK;
    }
    if (may_run_ahead(w, step, out)) return run_ahead(w, s, step, in, out);
    if (!concrete || (node->op->flags & PITH_OP_VIEW && any_input_is_late(w, node))) {
        s->kind = PITH_BOUND_LATE;
        place_late(w, node, out);
    } else {
        s->kind = PITH_BOUND_RUN;
        PITH_TRY(scratch_of(step, in, out, w->exec->threads, &s->scratch_bytes, &w->b->arena, w->err));
        PITH_TRY(place_outputs(w, node, out, index));
    }
    w->b->step_count++;
    return PITH_OK;
}

/* ---- layout ---- */

typedef struct block {
    size_t offset, bytes;
    uint32_t end;
} block;

/* Live blocks, sorted by offset. */
typedef struct layout {
    block *live;
    size_t count, top;
} layout;

static pith_status take_block(layout *l, size_t bytes, uint32_t end, size_t *offset, pith_error *err) {
    size_t rounded;
    if (pith_add_overflows(bytes, (size_t)ALIGNMENT - 1, &rounded))
        return pith_fail(err, PITH_ERR_MEMORY, "%zu bytes are too many", bytes);
    rounded &= ~(size_t)(ALIGNMENT - 1);
    size_t best = 0, best_gap = SIZE_MAX, at = l->count, from = 0;
    for (size_t i = 0; i < l->count; i++) {
        size_t gap = l->live[i].offset - from;
        if (gap >= rounded && gap < best_gap) best_gap = gap, best = from, at = i;
        from = l->live[i].offset + l->live[i].bytes;
    }
    if (best_gap == SIZE_MAX) best = from;
    size_t top;
    if (pith_add_overflows(best, rounded, &top) || top > PTRDIFF_MAX)
        return pith_fail(err, PITH_ERR_MEMORY, "%zu bytes of activations are too many", bytes);
    memmove(l->live + at + 1, l->live + at, (l->count - at) * sizeof *l->live);
    l->live[at] = (block){ best, rounded, end };
    l->count++;
    if (top > l->top) l->top = top;
    *offset = best;
    return PITH_OK;
}

static void drop_blocks(layout *l, uint32_t before) {
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->live[i].end >= before) l->live[kept++] = l->live[i];
    l->count = kept;
}

static pith_status lay_out(binder *w) {
    pith_binding *b = w->b;
    layout l = { .live = pith_arena_array(&b->arena, w->plan->graph->value_count + 2, sizeof(block)) };
    if (!l.live) return pith_fail_memory(w->err, w->plan->graph->value_count * sizeof(block));
    for (size_t i = 0; i < b->step_count; i++) {
        pith_bound_step *s = &b->steps[i];
        if (s->kind != PITH_BOUND_RUN) continue;
        drop_blocks(&l, s->index);
        const pith_node *node = w->plan->steps[s->index].node;
        for (int k = 0; k < node->output_count; k++) {
            if (!s->run.out[k]) continue;
            uint32_t id = node->outputs[k]->id;
            if (b->places[id] == PITH_PLACE_BUFFER)
                PITH_TRY(take_block(&l, b->tensors[id].bytes, w->end[id], &b->offsets[id], w->err));
        }
        if (s->scratch_bytes) PITH_TRY(take_block(&l, s->scratch_bytes, s->index, &s->scratch_offset, w->err));
    }
    b->buffer_bytes = l.top;
    return PITH_OK;
}

pith_status pith_bind(pith_binding *b, const pith_plan *plan, const pith_tensor *inputs, pith_exec *exec,
                      size_t memory_limit, pith_error *err) {
    pith_arena_reset(&b->arena);
    size_t count = plan->graph->value_count;
    b->last_used = 0;
    b->threads = exec->threads;
    b->step_count = 0;
    b->types = pith_arena_array(&b->arena, count + 1, sizeof *b->types);
    b->places = pith_arena_array(&b->arena, count + 1, sizeof *b->places);
    b->tensors = pith_arena_array(&b->arena, count + 1, sizeof *b->tensors);
    b->offsets = pith_arena_array(&b->arena, count + 1, sizeof *b->offsets);
    b->aliases = pith_arena_array(&b->arena, count + 1, sizeof *b->aliases);
    b->steps = pith_arena_array(&b->arena, plan->step_count + 1, sizeof *b->steps);
    binder w = { .b = b, .plan = plan, .exec = exec, .err = err };
    w.root = pith_arena_array(&b->arena, count + 1, sizeof *w.root);
    w.end = pith_arena_array(&b->arena, count + 1, sizeof *w.end);
    if (!b->types || !b->places || !b->tensors || !b->offsets || !b->aliases || !b->steps || !w.root || !w.end)
        return pith_fail_memory(err, count * sizeof *b->types);
    for (size_t i = 0; i < count; i++) {
        pith_type_init(&b->types[i]);
        w.root[i] = UINT32_MAX;
    }
    PITH_TRY(bind_inputs(&w, inputs));
    PITH_TRY(bind_from_shapes(&w));
    for (uint32_t i = 0; i < plan->step_count; i++) PITH_TRY(bind_step(&w, i));
    PITH_TRY(lay_out(&w));
    if (memory_limit && b->buffer_bytes > memory_limit)
        return pith_fail(err, PITH_ERR_MEMORY, "this input needs %zu bytes of activations, the limit is %zu",
                         b->buffer_bytes, memory_limit);
    return PITH_OK;
}

pith_status pith_bind_late(pith_binding *b, const pith_plan *plan, pith_bound_step *s, pith_exec *exec, pith_arena *arena,
                           pith_error *err) {
    const pith_step *step = &plan->steps[s->index];
    const pith_node *node = step->node;
    for (int i = 0; i < node->input_count; i++) {
        if (!node->inputs[i]) continue;
        uint32_t id = node->inputs[i]->id;
        if (b->places[id] == PITH_PLACE_KNOWN) continue;
        int item = b->types[id].item_dtype;
        pith_type_of_tensor(&b->types[id], &b->tensors[id]);
        if (b->types[id].dtype == PITH_SEQUENCE) b->types[id].item_dtype = item;
        b->types[id].data = &b->tensors[id];
    }
    const pith_type **in;
    pith_type *out;
    pith_status status = infer_step(b, node, &in, &out, arena, err);
    for (int i = 0; !status && i < node->output_count; i++) {
        pith_tensor *t = s->run.out[i];
        if (!t) continue;
        bool view = i == 0 && node->op->flags & PITH_OP_VIEW;
        int dtype = out[i].dtype ? out[i].dtype : b->types[node->outputs[i]->id].dtype;
        *t = (pith_tensor){ .dtype = dtype };
        if (!pith_type_concrete(&out[i]) || node->op->flags & PITH_OP_LATE) continue;
        t->rank = out[i].rank;
        memcpy(t->dims, out[i].dims, sizeof *t->dims * (size_t)t->rank);
        int64_t count = pith_dims_count(t->dims, t->rank);
        if (count < 0 || !pith_dtype_bytes(t->dtype, count, &t->bytes)) {
            char dims[256];
            status = pith_fail(err, PITH_ERR_MEMORY, "output %d of %s %s is too large", i, pith_dtype_name(t->dtype),
                               pith_dims_text(t->dims, t->rank, dims, sizeof dims));
            status = fail_at_node(err, status, node);
            break;
        }
        if (view) t->data = s->run.in[0]->data;
        else if (!(t->data = exec->alloc(exec, t->bytes))) status = pith_fail_memory(err, t->bytes);
        else if (t->dtype == PITH_STRING) memset(t->data, 0, t->bytes);
    }
    size_t scratch = 0;
    if (!status) status = scratch_of(step, in, out, exec->threads, &scratch, arena, err);
    s->run.scratch = NULL;
    if (!status && scratch && !(s->run.scratch = exec->alloc(exec, scratch))) status = pith_fail_memory(err, scratch);
    /* Contents of this run must not be taken for known by the next. */
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && b->places[node->inputs[i]->id] != PITH_PLACE_KNOWN) b->types[node->inputs[i]->id].data = NULL;
    return status;
}

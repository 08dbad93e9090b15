/* op.c - finds operators, and what operator files share. */
#include "engine/ops/op.h"

#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "engine/ops/custom/custom.h"

static const pith__op *op_find_in(const pith_operator_set *set, pith_str domain, pith_str name) {
    if (pith__str_is(domain, "ai.onnx")) domain = PITH_STR("");
    for (size_t i = 0; i < pith__op_table_count; i++) {
        if (pith__str_is(name, pith__op_table[i]->name) &&
            pith__str_is(domain, pith__op_table[i]->domain)) {
            return pith__op_table[i];
        }
    }
    return pith__custom_find(set, domain, name);
}

const pith__op *pith__op_find(pith_str domain, pith_str name) {
    return op_find_in(NULL, domain, name);
}

const pith__op *pith__op_of_node(const pith__node *node) {
    const pith__graph *graph = node->graph;
    while (graph->parent) graph = graph->parent;
    return op_find_in(graph->operators, node->domain, node->op_type);
}

const pith__op_checks *pith__op_checks_of(const pith__op *op) {
    return op->flags & PITH_OP_CUSTOM ? pith__custom_of(op)->checks : pith__op_checks_used;
}

bool pith__op_takes(const pith__op *op, int input, int dtype) {
    const pith__op_checks *checks = pith__op_checks_of(op);
    return !checks || checks->takes(op, input, dtype);
}

const char *pith__op_types_text(const pith__op *op, int input) {
    const pith__op_checks *checks = pith__op_checks_of(op);
    return checks ? checks->types_text(op, input) : "any";
}

/* Two sizes that meet: 1 gives way, and what is a number other than 1 decides over what is not
 * known yet. */
static bool op_broadcast_dim(pith__dim a, pith__dim b, pith__dim *out) {
    if (a == 1 || b == 1)
        *out = a == 1 ? b : a;
    else if (pith__dim_known(a) && pith__dim_known(b))
        *out = a;
    else if (pith__dim_known(a) || pith__dim_known(b))
        *out = pith__dim_known(a) ? a : b;
    else
        *out = pith__dim_equal(a, b) ? a : PITH_DIM_UNKNOWN;
    return !(pith__dim_known(a) && pith__dim_known(b) && a != b && a != 1 && b != 1);
}

/* Aligned at the right; axes that one side does not have count as 1. */
pith_status pith__infer_broadcast(pith__infer *c, const pith__type *a, const pith__type *b,
                                  pith__type *out) {
    if (a->rank < 0 || b->rank < 0) {
        out->rank = -1;
        return PITH_OK;
    }
    int rank = a->rank > b->rank ? a->rank : b->rank;
    pith__dim dims[PITH_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int from_a = i - (rank - a->rank), from_b = i - (rank - b->rank);
        if (op_broadcast_dim(from_a < 0 ? 1 : a->dims[from_a], from_b < 0 ? 1 : b->dims[from_b],
                             &dims[i]))
            continue;
        char text_a[256], text_b[256];
        return pith__op_fail(c, "shapes %s and %s do not broadcast",
                             pith__shape_text(c->dims, a->dims, a->rank, text_a, sizeof text_a),
                             pith__shape_text(c->dims, b->dims, b->rank, text_b, sizeof text_b));
    }
    out->rank = rank;
    for (int i = 0; i < rank; i++) out->dims[i] = dims[i];
    return PITH_OK;
}

pith_status pith__axis_normalize(int64_t axis, int rank, int *result, pith_error *err) {
    if (axis < -(int64_t)rank || axis >= rank) {
        return pith__fail(err, PITH_ERR_ARGUMENT, "axis %" PRId64 " is outside of rank %d", axis,
                          rank);
    }
    *result = (int)(axis < 0 ? axis + rank : axis);
    return PITH_OK;
}

pith__kernel_fn *pith__prepare_find(pith__prepare *c, const char *family, int dtype) {
    pith__kernel_fn *fn = pith__kernel_find(family, dtype, c->isa);
    char place[PITH_PLACE_SHOWN];
    if (fn || !c->lacks || !pith__kernel_is_dropped(family, dtype)) return fn;
    c->lacking = true;
    return pith__kernel_need(family, dtype, c->isa, pith__node_place(c->node, place, sizeof place),
                             c->lacks);
}

static size_t op_room(int32_t own, int32_t least, int32_t most) {
    int32_t entries = own > least ? own : least;
    return (size_t)(entries > most ? entries : most);
}

size_t pith__node_in_room(const pith__node *node) {
    return op_room(node->input_count, node->op->min_inputs, node->op->max_inputs);
}

size_t pith__node_out_room(const pith__node *node) {
    return op_room(node->output_count, 1, node->op->max_outputs);
}

/* For outputs whose shape only the run knows. Sequences are arrays of tensors. */
pith_status pith__run_alloc(pith__run *r, int output, int dtype, int rank, const int64_t *dims) {
    pith_tensor *t = r->out[output];
    size_t bytes;
    if (rank > PITH_MAX_RANK)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED, "output %d has rank %d", output, rank);
    if (dtype == PITH_SEQUENCE || dtype == PITH_NONE) {
        int64_t items = dtype == PITH_SEQUENCE ? dims[0] : 0;
        if (items < 0 || (uint64_t)items > SIZE_MAX / sizeof(pith_tensor)) {
            return pith__op_fail(r, "sequence is too long");
        }
        bytes = (size_t)items * sizeof(pith_tensor);
    } else if (!pith__dtype_bytes(dtype, pith__dims_count(dims, rank), &bytes)) {
        char text[256];
        return pith__fail(r->err, PITH_ERR_RUN, "output %d of shape %s is too large", output,
                          pith__dims_text(dims, rank, text, sizeof text));
    }
    void *data = r->exec->alloc(r->exec, bytes);
    if (!data) return pith__fail_memory(r->err, bytes);
    *t = (pith_tensor){ .data = data, .bytes = bytes, .dtype = dtype, .rank = rank };
    for (int i = 0; i < rank; i++) t->dims[i] = dims[i];
    return PITH_OK;
}

/* Deep: a sequence's tensors and the bytes of strings are copied too, since what is copied may
 * outlive its source. */
pith_status pith__tensor_copy(pith_tensor *to, const pith_tensor *from, pith__alloc_fn *alloc,
                              void *context, pith__stop *stop, pith_error *err) {
    pith_tensor made = *from;
    made.data = alloc(context, from->bytes);
    if (!made.data) return pith__fail_memory(err, from->bytes);
    if (from->bytes) PITH_TRY(pith__copy_until(stop, made.data, from->data, from->bytes, err));
    if (from->dtype == PITH_SEQUENCE) {
        pith_tensor *items = made.data;
        const pith_tensor *old = from->data;
        for (int64_t i = 0; i < from->dims[0]; i++) {
            if (i % 1024 == 1023) PITH_TRY(pith__stop_check(stop, err));
            PITH_TRY(pith__tensor_copy(&items[i], &old[i], alloc, context, stop, err));
        }
    } else if (from->dtype == PITH_STRING) {
        pith_str *strings = made.data;
        for (size_t i = 0; i < from->bytes / sizeof *strings; i++) {
            if (i % 1024 == 1023) PITH_TRY(pith__stop_check(stop, err));
            if (!strings[i].size) continue;
            char *text = alloc(context, strings[i].size);
            if (!text) return pith__fail_memory(err, strings[i].size);
            strings[i].data = memcpy(text, strings[i].data, strings[i].size);
        }
    }
    *to = made;
    return PITH_OK;
}

static void *op_run_memory(void *context, size_t bytes) {
    return ((pith__exec *)context)->alloc(context, bytes);
}

pith_status pith__run_copy(pith__run *r, pith_tensor *to, const pith_tensor *from) {
    PITH_TRY(pith__run_look(r));
    if (from->dtype >= PITH_DTYPE_COUNT || from->dtype == PITH_STRING)
        return pith__tensor_copy(to, from, op_run_memory, r->exec, r->exec->stop, r->err);
    void *data = r->exec->alloc(r->exec, from->bytes);
    if (!data) return pith__fail_memory(r->err, from->bytes);
    const void *old = from->data; /* from and to may be one */
    *to = *from;
    to->data = data;
    return pith__run_bytes(r, data, old, from->bytes);
}

/* A long step ends between two of its parts; the executor then sees that the run must end, and
 * nobody reads what the step left unfinished. */
void pith__run_parallel(pith__run *r, pith__task *task, void *context, size_t parts) {
    pith__threads_run_until(r->exec->stop, task, context, parts, r->exec->threads);
}

int64_t pith__run_chunk(const pith__run *r, int64_t rows, int64_t work_per_row, int64_t grain) {
    /* Long steps get several parts per thread, so that a delayed thread can leave parts to others.
     * In short steps one part per thread is better: a thread then finds its rows in its cache. A
     * step is long if a thread has LONG grains. One thread does all at once. If the run may have to
     * stop, a part has at most MOST grains, some milliseconds. */
    enum { PARTS_PER_THREAD = 4, LONG = 16, MOST = 64 };
    if (rows <= 1 || (r->exec->threads <= 1 && !r->exec->stop)) return rows > 0 ? rows : 1;
    int64_t least = rows;
    if (work_per_row > 0)
        least = work_per_row >= grain ? 1 : (grain + work_per_row - 1) / work_per_row;
    int64_t parts = r->exec->threads;
    if ((rows + parts - 1) / parts / LONG >= least) parts *= PARTS_PER_THREAD;
    int64_t even = (rows + parts - 1) / parts, chunk = least > even ? least : even;
    if (r->exec->stop && work_per_row > 0 && chunk > MOST * grain / work_per_row)
        chunk = MOST * grain / work_per_row;
    if (chunk < 1) return 1;
    return chunk > rows ? rows : chunk;
}

int64_t pith__run_parts_least(const pith__run *r, double products) {
    enum { MOST = 1 << 20 };
    const double parts = products / PITH_STOP_PRODUCTS;
    if (!r->exec->stop || parts < 1) return 1;
    return parts < MOST ? (int64_t)parts + 1 : MOST;
}

void pith__tensor_clear_tail(const pith_tensor *t) {
    int bits = pith__dtype_bits(t->dtype);
    if (bits && bits < 8 && t->bytes) ((uint8_t *)t->data)[t->bytes - 1] = 0;
}

int64_t pith__tensor_count(const pith_tensor *t) {
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++) count *= t->dims[i];
    return count;
}

/* Only operators that decide shapes in the run (PITH_OP_LATE) may come here with an open one. */
pith_status pith__op_scratch(const pith__infer *c, const void *state, int threads, size_t *bytes) {
    const pith__op *op = c->node->op;
    *bytes = 0;
    if (!op->scratch) return PITH_OK;
    if (!(op->flags & PITH_OP_LATE)) {
        for (size_t i = 0; i < pith__node_out_room(c->node); i++) {
            const pith__type *type = &c->out[i];
            if (!type->dtype || type->dtype >= PITH_DTYPE_COUNT || pith__type_concrete(type))
                continue;
            return pith__fail(c->err, PITH_ERR_RUN,
                              "the shape of output %zu does not follow from the inputs", i);
        }
    }
    return op->scratch(c, state, threads, bytes);
}

pith__cost pith__run_cost(const pith__run *r) {
    pith__cost cost = { .operations = r->out[0] ? (double)pith__tensor_count(r->out[0]) : 0 };
    for (int i = 0; i < r->in_count; i++)
        if (r->in[i]) cost.bytes += (double)r->in[i]->bytes;
    for (int i = 0; i < r->out_count; i++)
        if (r->out[i]) cost.bytes += (double)r->out[i]->bytes;
    return cost;
}

void pith__cost_product(pith__cost *cost, int64_t k, const char *kernel) {
    cost->operations *= 2.0 * (double)k;
    cost->kernel = kernel;
}

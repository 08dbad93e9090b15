/* pass_share.c - nodes that compute the same from the same inputs become one. Exporters ask for the
 * same Shape, cast the same mask and take the same square root in every layer.
 *
 * Nodes are visited in order. Each one is written as bytes that are equal for equal nodes, and
 * looked up among those before it. An input is written as its id, a small constant as its contents.
 * Inputs are replaced at once, so equal chains become one in a single walk. */
#include <stdlib.h>

#include "base/memory/span_map.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* A node as bytes. */
typedef struct writer {
    pith__arena *arena;
    char *bytes;
    size_t size, capacity;
    bool full; /* out of memory */
} writer;

static void share_put(writer *w, const void *data, size_t size) {
    if (w->size + size > w->capacity) {
        size_t capacity = 2 * (w->size + size);
        char *bytes = pith__arena_alloc(w->arena, capacity);
        w->full = w->full || !bytes;
        if (!bytes) return;
        if (w->size) memcpy(bytes, w->bytes, w->size);
        w->bytes = bytes;
        w->capacity = capacity;
    }
    if (size) memcpy(w->bytes + w->size, data, size);
    w->size += size;
}

static void share_put_number(writer *w, uint64_t number) { share_put(w, &number, sizeof number); }

static void share_put_str(writer *w, pith_str s) {
    share_put_number(w, s.size);
    share_put(w, s.data, s.size);
}

static void put_tensor(writer *w, const pith_tensor *t) {
    share_put_number(w, (uint64_t)t->dtype);
    share_put_number(w, (uint64_t)t->rank);
    share_put(w, t->dims, (size_t)t->rank * sizeof t->dims[0]);
    share_put_number(w, t->bytes);
    share_put(w, t->data, t->bytes);
}

static void share_put_input(writer *w, const pith__value *v) {
    const pith_tensor *t = pith__match_const(v) ? v->type.data : NULL;
    bool small = t && t->dtype != PITH_STRING && t->bytes <= PITH_ELEMS_MAX * sizeof(int64_t);
    uint64_t kind = small; /* 0: left out; 1: its content follows; else a value's number */
    if (v && !small) kind = 2 + (uint64_t)v->id;
    share_put_number(w, kind);
    if (small) put_tensor(w, t);
}

/* false if attributes of its kind are not compared. */
static bool share_put_attr(writer *w, const pith__attr *a) {
    share_put_str(w, a->name);
    share_put_number(w, (uint64_t)a->kind);
    switch (a->kind) {
    case PITH_ATTR_INT: share_put(w, &a->integer, sizeof a->integer); return true;
    case PITH_ATTR_FLOAT: share_put(w, &a->real, sizeof a->real); return true;
    case PITH_ATTR_STRING: share_put_str(w, a->string); return true;
    case PITH_ATTR_INTS:
        share_put_number(w, a->count);
        share_put(w, a->ints, a->count * sizeof *a->ints);
        return true;
    case PITH_ATTR_TENSOR:
        if (a->tensor->dtype == PITH_STRING) return false;
        put_tensor(w, a->tensor);
        return true;
    default: return false;
    }
}

static int order_of_names(const void *a, const void *b) {
    const pith__attr *x = *(const pith__attr *const *)a, *y = *(const pith__attr *const *)b;
    size_t common = x->name.size < y->name.size ? x->name.size : y->name.size;
    int order = common ? memcmp(x->name.data, y->name.data, common) : 0;
    return order ? order : (x->name.size > y->name.size) - (x->name.size < y->name.size);
}

/* Writes a node as bytes: operator, opset, inputs and attributes. Attributes come in the order of
 * their names, since a file may list them in any order. Small constants are written by content,
 * because exporters repeat them for every node. False if an attribute is of a kind that is not
 * compared, or if memory is out. */
static bool put_node(writer *w, const pith__node *node) {
    w->size = 0;
    share_put(w, &node->op, sizeof(const void *));
    share_put_number(w, (uint64_t)node->opset);
    share_put_number(w, (uint64_t)node->input_count);
    for (int i = 0; i < node->input_count; i++) share_put_input(w, node->inputs[i]);
    const pith__attr **sorted = pith__arena_array(w->arena, node->attr_count, sizeof *sorted);
    w->full = w->full || !sorted;
    if (w->full) return false;
    for (size_t i = 0; i < node->attr_count; i++) sorted[i] = &node->attrs[i];
    if (node->attr_count) qsort(sorted, node->attr_count, sizeof *sorted, order_of_names);
    for (size_t i = 0; i < node->attr_count; i++)
        if (!share_put_attr(w, sorted[i])) return false;
    return !w->full;
}

/* Constants alone are folded, not shared. */
static bool is_candidate(const pith__node *node) {
    bool varies = false;
    if (node->op->flags & PITH_OP_RANDOM || node->capture_count > 0 || node->output_count != 1)
        return false;
    for (int i = 0; i < node->input_count; i++)
        varies |= node->inputs[i] && !pith__match_const(node->inputs[i]);
    return varies && pith__match_live(node);
}

static pith_status share_nodes(pith__opt *o, pith__arena *scratch, size_t *changes) {
    writer w = { .arena = scratch };
    pith__map seen;
    if (pith__map_init(&seen, scratch, 16)) return pith__fail_memory(o->err, 0);
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (!is_candidate(node)) continue;
        if (!put_node(&w, node)) {
            if (w.full) return pith__fail_memory(o->err, w.capacity);
            continue;
        }
        uint32_t first = pith__map_get(&seen, (pith_str){ w.bytes, w.size });
        pith__value *own = node->outputs[0],
                    *kept = first == UINT32_MAX ? NULL : o->graph->values[first];
        if (kept && pith__match_replaceable(own, kept)) {
            PITH_TRY(pith__match_replace(own, kept, o->err));
            ++*changes;
        } else if (!kept) {
            pith_str key = pith__arena_str(scratch, (pith_str){ w.bytes, w.size });
            if (!key.data || !pith__map_put(&seen, key, own->id, NULL))
                return pith__fail_memory(o->err, w.size);
        }
    }
    return PITH_OK;
}

static pith_status share_run(pith__opt *o, size_t *changes) {
    pith__arena scratch;
    pith__arena_init(&scratch, o->allocator);
    pith_status status = share_nodes(o, &scratch, changes);
    pith__arena_free(&scratch);
    return status;
}

const pith__pass pith__pass_share = { "share", 1, false, share_run };

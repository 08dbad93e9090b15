/* api_op.c - the public functions of pith/op.h. */
#include "pith/op.h"

#include "engine/ops/custom/custom.h"

static const pith__node *api_node(const pith_op_node *node) { return (const pith__node *)node; }

pith_status pith_register_op(const pith_operator *op, pith_error *err) {
    return pith__custom_register(op, err);
}

pith_status pith_operator_set_create(pith_operator_set **set, const pith_operator *const *list,
                                     size_t count, const pith_call *call, pith_error *err) {
    return pith__custom_set_create(set, list, count, call, err);
}

void pith_operator_set_destroy(pith_operator_set *set) { pith__custom_set_release(set); }

int64_t pith_op_int(const pith_op_node *node, const char *name) {
    return pith__custom_int(node, name);
}

float pith_op_float(const pith_op_node *node, const char *name) {
    return pith__custom_float(node, name);
}

pith_str pith_op_string(const pith_op_node *node, const char *name) {
    return pith__custom_string(node, name);
}

const int64_t *pith_op_ints(size_t *count, const pith_op_node *node, const char *name) {
    return pith__node_ints(api_node(node), name, count);
}

const float *pith_op_floats(size_t *count, const pith_op_node *node, const char *name) {
    return pith__node_floats(api_node(node), name, count);
}

const pith_str *pith_op_strings(size_t *count, const pith_op_node *node, const char *name) {
    return pith__node_strs(api_node(node), name, count);
}

const pith_tensor *pith_op_tensor(const pith_op_node *node, const char *name) {
    return pith__node_tensor(api_node(node), name);
}

void *pith_op_state(pith_op_prepare *c, size_t bytes) {
    return pith__arena_alloc64(((pith__prepare *)c->engine)->arena, bytes);
}

pith_status pith_op_output(pith_op_run *r, int32_t output, int32_t dtype, int32_t rank,
                           const int64_t *dims) {
    return pith__custom_output(r, output, dtype, rank, dims);
}

/* All parts run even if the run must stop: the operator may rely on what they write. */
void pith_op_parallel(pith_op_run *r, void (*task)(void *context, size_t part, int worker),
                      void *context, size_t parts) {
    const pith__run *own = r->engine;
    pith__threads_run(task, context, parts, own->exec->threads);
}

/* infer_shapes.c - see infer_shapes.h. */
#include "engine/ops/shared/infer_shapes.h"

#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/kernels/move.h"

void pith_infer_set(pith_infer *c, int output, int dtype, int rank, const pith_dim *dims) {
    if ((size_t)output >= pith_node_out_room(c->node)) return;
    pith_type_set(&c->out[output], dtype, rank, dims);
}

pith_status pith_infer_same(pith_infer *c) {
    const pith_type *x = c->in[0];
    if (c->out_count < 1) return PITH_OK;
    c->out[0] = *x;
    return PITH_OK;
}

pith_status pith_infer_equal_dtypes(pith_infer *c, int first, int last) {
    int dtype = PITH_UNDEFINED;
    for (int i = first; i <= last && i < c->in_count; i++) {
        if (!c->in[i] || c->in[i]->dtype == PITH_UNDEFINED) continue;
        if (dtype == PITH_UNDEFINED) dtype = c->in[i]->dtype;
        if (dtype != c->in[i]->dtype) {
            return pith_op_fail(c, "inputs have different dtypes: %s, then input %d %s", pith_dtype_name(dtype), i,
                                pith_dtype_name(c->in[i]->dtype));
        }
    }
    return PITH_OK;
}

pith_status pith_infer_numbers(pith_infer *c, int input, pith_numbers *numbers) {
    numbers->count = 0;
    if (!pith_has_input(c, input)) return PITH_OK;
    const pith_type *t = c->in[input];
    if (t->dtype != PITH_UNDEFINED && t->dtype != PITH_I64 && t->dtype != PITH_I32) {
        return pith_op_fail(c, "input %d has dtype %s, expected int64", input, pith_dtype_name(t->dtype));
    }
    if (t->rank > 1) return pith_op_fail(c, "input %d has rank %d, expected 1", input, t->rank);
    int64_t count = pith_type_count(t);
    if (count > 2 * PITH_MAX_RANK) {
        return pith_op_fail(c, "input %d has %lld elements, more than a shape can have", input, (long long)count);
    }
    numbers->count = (int)count;
    for (int i = 0; i < numbers->count; i++) {
        if (!pith_type_elem(t, i, &numbers->items[i]))
            numbers->items[i] = PITH_DIM_UNKNOWN;
        else if (t->data && numbers->items[i] == PITH_DIM_UNKNOWN)
            numbers->items[i] = PITH_DIM_LIMIT + 1;
    }
    return PITH_OK;
}

pith_status pith_run_numbers(pith_run *r, int input, pith_numbers *numbers) {
    numbers->count = 0;
    if (!pith_has_input(r, input)) return PITH_OK;
    const pith_tensor *t = r->in[input];
    int64_t count = pith_tensor_count(t);
    if (t->rank > 1 || count > 2 * PITH_MAX_RANK || (t->dtype != PITH_I64 && t->dtype != PITH_I32)) {
        return pith_op_fail(r, "input %d is not a list of at most %d integers", input, 2 * PITH_MAX_RANK);
    }
    numbers->count = (int)count;
    for (int i = 0; i < numbers->count; i++) {
        int64_t v = t->dtype == PITH_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
        numbers->items[i] = v > PITH_DIM_LIMIT ? v : PITH_DIM_LIMIT + 1;
    }
    return PITH_OK;
}

bool pith_infer_number(const pith_infer *c, int input, pith_dim *number) {
    if (!pith_has_input(c, input) || pith_type_count(c->in[input]) != 1) return false;
    return pith_type_elem(c->in[input], 0, number) && *number != PITH_DIM_UNKNOWN;
}

bool pith_infer_scalar(const pith_infer *c, int input, double *scalar) {
    pith_dim number;
    if (!pith_has_input(c, input)) return false;
    const pith_type *t = c->in[input];
    if (t->data && pith_type_count(t) == 1 && pith_convert_known(t->dtype, PITH_F64)) {
        pith_convert(scalar, PITH_F64, 0, t->data->data, t->dtype, 0, 1, true);
        return true;
    }
    if (!pith_infer_number(c, input, &number) || !pith_dim_known(number)) return false;
    *scalar = (double)number;
    return true;
}

void pith_infer_keep_elems(pith_infer *c) {
    int64_t count;
    if (!c->in[0]->data && !c->in[0]->elems) return;
    pith_dim *elems = pith_infer_new_elems(c, &count);
    if (!elems || pith_type_count(c->in[0]) != count) return;
    for (int64_t i = 0; i < count; i++) {
        if (!pith_type_elem(c->in[0], i, &elems[i])) return;
    }
    c->out[0].elems = elems;
}

pith_dim *pith_infer_new_elems(pith_infer *c, int64_t *count) {
    if (c->out_count < 1) return NULL;
    pith_type *out = &c->out[0];
    if (!pith_dtype_is_int(out->dtype) && out->dtype != PITH_BOOL) return NULL;
    *count = pith_type_count(out);
    if (*count < 0 || *count > PITH_ELEMS_MAX) return NULL;
    return pith_arena_array(c->arena, (size_t)*count + 1, sizeof(pith_dim));
}

pith_status pith_infer_elems(pith_infer *c, pith_elem_fn *fn) {
    int64_t count;
    for (int i = 0; i < c->in_count; i++) {
        if (!c->in[i] || (!c->in[i]->data && !c->in[i]->elems)) return PITH_OK;
        if (!pith_dtype_is_int(c->in[i]->dtype) && c->in[i]->dtype != PITH_BOOL) return PITH_OK;
    }
    if (c->in_count > 8 || c->out_count < 1 || c->out[0].rank < 0) return PITH_OK;
    pith_dim *elems = pith_infer_new_elems(c, &count);
    if (!elems) return PITH_OK;
    const pith_type *out = &c->out[0];
    for (int64_t e = 0; e < count; e++) {
        pith_dim operands[8];
        bool known = true;
        for (int i = 0; i < c->in_count && known; i++) {
            const pith_type *t = c->in[i];
            int64_t at = 0, stride = 1, rest = e;
            for (int k = out->rank - 1; k >= 0; k--) {
                int64_t place = rest % out->dims[k];
                rest /= out->dims[k];
                int own = k - (out->rank - t->rank);
                if (own < 0) continue;
                if (t->dims[own] != 1) at += place * stride;
                stride *= t->dims[own];
            }
            known = pith_type_elem(t, at, &operands[i]) && operands[i] != PITH_DIM_UNKNOWN;
        }
        elems[e] = known ? fn(c->dims, operands, c->in_count) : PITH_DIM_UNKNOWN;
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

pith_status pith_axes_normalize(pith_dim *axes, int count, int rank, pith_error *err) {
    uint32_t seen = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        PITH_TRY(pith_axis_normalize(axes[i], rank, &axis, err));
        if (seen >> axis & 1) return pith_fail(err, PITH_ERR_ARGUMENT, "axis %d is named twice", axis);
        seen |= 1u << axis;
        axes[i] = axis;
    }
    return PITH_OK;
}

static pith_status infer_put_input(pith_node *node, int input, pith_value *value) {
    if (!value) return PITH_ERR_MEMORY;
    if (node->input_count <= input) PITH_TRY(pith_node_set_input_count(node, input + 1));
    return pith_node_set_input(node, input, value);
}

pith_status pith_upgrade_ints(pith_node *node, const char *attribute, int input) {
    size_t count;
    const int64_t *items = pith_node_ints(node, attribute, &count);
    if (!items && !pith_node_attr(node, attribute)) return PITH_OK;
    pith_value *value = pith_graph_add_i64s(node->graph, PITH_STR(""), items, (int64_t)count);
    pith_node_unset(node, attribute);
    return infer_put_input(node, input, value);
}

pith_status pith_upgrade_int(pith_node *node, const char *attribute, int input) {
    if (!pith_node_attr(node, attribute)) return PITH_OK;
    int64_t item = pith_node_int(node, attribute, 0);
    pith_node_unset(node, attribute);
    return infer_put_input(node, input, pith_graph_add_i64s(node->graph, PITH_STR(""), &item, 1));
}

pith_status pith_upgrade_float(pith_node *node, const char *attribute, int input) {
    if (!pith_node_attr(node, attribute)) return PITH_OK;
    float item = pith_node_float(node, attribute, 0);
    pith_node_unset(node, attribute);
    return infer_put_input(node, input, pith_graph_add_f32(node->graph, PITH_STR(""), item));
}

pith_status pith_fail_dtype(pith_error *err, int dtype) {
    return pith_fail(err, PITH_ERR_UNSUPPORTED, "dtype %s is not supported", pith_dtype_name(dtype));
}

pith_status pith_prepare_kernel(pith_prepare *c, const char *family, int dtype, pith_kernel_fn **fn) {
    *fn = pith_prepare_find(c, family, dtype);
    return *fn ? PITH_OK : pith_fail_dtype(c->err, dtype);
}

size_t pith_element_size(int dtype) {
    int bits = pith_dtype_bits(dtype);
    return bits >= 8 ? (size_t)bits / 8 : 0;
}

pith_status pith_prepare_movable(pith_prepare *c) {
    int dtype = c->in[0]->dtype;
    return pith_element_size(dtype) ? PITH_OK : pith_fail_dtype(c->err, dtype);
}

typedef struct move_job {
    char *to;
    const char *from;
    const int64_t *to_strides, *from_strides, *dims;
    int64_t per_part;
    int rank;
    size_t size;
    pith_turn_fn *turn;
} move_job;

static void move_part(void *context, size_t part, int worker) {
    const move_job *j = context;
    (void)worker;
    int64_t dims[PITH_MAX_RANK + 1], first = (int64_t)part * j->per_part;
    memcpy(dims, j->dims, (size_t)j->rank * sizeof *dims);
    dims[0] = j->dims[0] - first < j->per_part ? j->dims[0] - first : j->per_part;
    pith_move(j->to + first * j->to_strides[0] * (int64_t)j->size, j->to_strides,
              j->from + first * j->from_strides[0] * (int64_t)j->size, j->from_strides, dims, j->rank, j->size,
              j->turn);
}

void pith_run_move(pith_run *r, void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides,
                   const int64_t *dims, int rank, size_t size) {
    pith_run_turn(r, NULL, to, to_strides, from, from_strides, dims, rank, size);
}

void pith_run_turn(pith_run *r, pith_turn_fn *turn, void *to, const int64_t *to_strides, const void *from,
                   const int64_t *from_strides, const int64_t *dims, int rank, size_t size) {
    while (rank > 1 && dims[0] == 1) {
        dims++;
        to_strides++;
        from_strides++;
        rank--;
    }
    int64_t inner = 1;
    for (int i = 1; i < rank; i++) inner *= dims[i];
    if (rank == 0 || dims[0] <= 1 || inner == 0) {
        pith_move(to, to_strides, from, from_strides, dims, rank, size, turn);
        return;
    }
    move_job j = {
        to, from, to_strides, from_strides, dims, pith_run_chunk(r, dims[0], inner, 32768), rank, size, turn
    };
    pith_run_parallel(r, move_part, &j, (size_t)((dims[0] + j.per_part - 1) / j.per_part));
}

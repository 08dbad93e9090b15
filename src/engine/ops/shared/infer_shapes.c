/* infer_shapes.c - see infer_shapes.h. */
#include "engine/ops/shared/infer_shapes.h"

#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/kernels/move.h"

void pith__infer_set(pith__infer *c, int output, int dtype, int rank, const pith__dim *dims) {
    if ((size_t)output >= pith__node_out_room(c->node)) return;
    pith__type_set(&c->out[output], dtype, rank, dims);
}

pith_status pith__infer_same(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (c->out_count < 1) return PITH_OK;
    c->out[0] = *x;
    return PITH_OK;
}

pith_status pith__infer_equal_dtypes(pith__infer *c, int first, int last) {
    int dtype = PITH_UNDEFINED;
    for (int i = first; i <= last && i < c->in_count; i++) {
        if (!c->in[i] || c->in[i]->dtype == PITH_UNDEFINED) continue;
        if (dtype == PITH_UNDEFINED) dtype = c->in[i]->dtype;
        if (dtype != c->in[i]->dtype) {
            return pith__op_fail(c, "inputs have different dtypes: %s, then input %d %s",
                                 pith__dtype_name(dtype), i, pith__dtype_name(c->in[i]->dtype));
        }
    }
    return PITH_OK;
}

/* The content of a list input as sizes, unknown where it is not known. A constant below the range
 * of numbers is raised to its least one. */
pith_status pith__infer_numbers(pith__infer *c, int input, pith__numbers *numbers) {
    numbers->count = 0;
    if (!pith__has_input(c, input)) return PITH_OK;
    const pith__type *t = c->in[input];
    if (t->dtype != PITH_UNDEFINED && t->dtype != PITH_I64 && t->dtype != PITH_I32) {
        return pith__op_fail(c, "input %d has dtype %s, expected int64", input,
                             pith__dtype_name(t->dtype));
    }
    if (t->rank > 1) return pith__op_fail(c, "input %d has rank %d, expected 1", input, t->rank);
    int64_t count = pith__type_count(t);
    if (count > 2 * PITH_MAX_RANK) {
        return pith__op_fail(c, "input %d has %lld elements, more than a shape can have", input,
                             (long long)count);
    }
    numbers->count = (int)count;
    for (int i = 0; i < numbers->count; i++) {
        if (!pith__type_elem(t, i, &numbers->items[i]))
            numbers->items[i] = PITH_DIM_UNKNOWN;
        else if (t->data && numbers->items[i] == PITH_DIM_UNKNOWN)
            numbers->items[i] = PITH_DIM_LIMIT + 1;
    }
    return PITH_OK;
}

/* The same in a run, where everything is known. Numbers below the range of sizes are raised to its
 * least one, which no operator takes for a symbol. */
pith_status pith__run_numbers(pith__run *r, int input, pith__numbers *numbers) {
    numbers->count = 0;
    if (!pith__has_input(r, input)) return PITH_OK;
    const pith_tensor *t = r->in[input];
    int64_t count = pith__tensor_count(t);
    if (t->rank > 1 || count > 2 * PITH_MAX_RANK ||
        (t->dtype != PITH_I64 && t->dtype != PITH_I32)) {
        return pith__op_fail(r, "input %d is not a list of at most %d integers", input,
                             2 * PITH_MAX_RANK);
    }
    numbers->count = (int)count;
    for (int i = 0; i < numbers->count; i++) {
        int64_t v =
            t->dtype == PITH_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
        numbers->items[i] = v > PITH_DIM_LIMIT ? v : PITH_DIM_LIMIT + 1;
    }
    return PITH_OK;
}

bool pith__infer_number(const pith__infer *c, int input, pith__dim *number) {
    if (!pith__has_input(c, input) || pith__type_count(c->in[input]) != 1) return false;
    return pith__type_elem(c->in[input], 0, number) && *number != PITH_DIM_UNKNOWN;
}

bool pith__infer_scalar(const pith__infer *c, int input, double *scalar) {
    pith__dim number;
    if (!pith__has_input(c, input)) return false;
    const pith__type *t = c->in[input];
    if (t->data && pith__type_count(t) == 1 && pith__convert_known(t->dtype, PITH_F64)) {
        pith__convert(scalar, PITH_F64, 0, t->data->data, t->dtype, 0, 1, true);
        return true;
    }
    if (!pith__infer_number(c, input, &number) || !pith__dim_known(number)) return false;
    *scalar = (double)number;
    return true;
}

void pith__infer_keep_elems(pith__infer *c) {
    int64_t count;
    if (!c->in[0]->data && !c->in[0]->elems) return;
    pith__dim *elems = pith__infer_new_elems(c, &count);
    if (!elems || pith__type_count(c->in[0]) != count) return;
    for (int64_t i = 0; i < count; i++) {
        if (!pith__type_elem(c->in[0], i, &elems[i])) return;
    }
    c->out[0].elems = elems;
}

pith__dim *pith__infer_new_elems(pith__infer *c, int64_t *count) {
    if (c->out_count < 1) return NULL;
    pith__type *out = &c->out[0];
    if (!pith__dtype_is_int(out->dtype) && out->dtype != PITH_BOOL) return NULL;
    *count = pith__type_count(out);
    if (*count < 0 || *count > PITH_ELEMS_MAX) return NULL;
    return pith__arena_array(c->arena, (size_t)*count + 1, sizeof(pith__dim));
}

/* Applies fn to the known contents of all operands, element by element with broadcasting; elements
 * with an unknown operand stay unknown. Only integers: these are sizes on their way. */
pith_status pith__infer_elems(pith__infer *c, pith__elem_fn *fn) {
    int64_t count;
    for (int i = 0; i < c->in_count; i++) {
        if (!c->in[i] || (!c->in[i]->data && !c->in[i]->elems)) return PITH_OK;
        if (!pith__dtype_is_int(c->in[i]->dtype) && c->in[i]->dtype != PITH_BOOL) return PITH_OK;
    }
    if (c->in_count > 8 || c->out_count < 1 || c->out[0].rank < 0) return PITH_OK;
    pith__dim *elems = pith__infer_new_elems(c, &count);
    if (!elems) return PITH_OK;
    const pith__type *out = &c->out[0];
    for (int64_t e = 0; e < count; e++) {
        pith__dim operands[8];
        bool known = true;
        for (int i = 0; i < c->in_count && known; i++) {
            const pith__type *t = c->in[i];
            int64_t at = 0, stride = 1, rest = e;
            for (int k = out->rank - 1; k >= 0; k--) {
                int64_t place = rest % out->dims[k];
                rest /= out->dims[k];
                int own = k - (out->rank - t->rank);
                if (own < 0) continue;
                if (t->dims[own] != 1) at += place * stride;
                stride *= t->dims[own];
            }
            known = pith__type_elem(t, at, &operands[i]) && operands[i] != PITH_DIM_UNKNOWN;
        }
        elems[e] = known ? fn(c->dims, operands, c->in_count) : PITH_DIM_UNKNOWN;
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

pith_status pith__axes_normalize(pith__dim *axes, int count, int rank, pith_error *err) {
    uint32_t seen = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        PITH_TRY(pith__axis_normalize(axes[i], rank, &axis, err));
        if (seen >> axis & 1)
            return pith__fail(err, PITH_ERR_ARGUMENT, "axis %d is named twice", axis);
        seen |= 1u << axis;
        axes[i] = axis;
    }
    return PITH_OK;
}

static pith_status infer_put_input(pith__node *node, int input, pith__value *value) {
    if (!value) return PITH_ERR_MEMORY;
    if (node->input_count <= input) PITH_TRY(pith__node_set_input_count(node, input + 1));
    return pith__node_set_input(node, input, value);
}

pith_status pith__upgrade_ints(pith__node *node, const char *attribute, int input) {
    size_t count;
    const int64_t *items = pith__node_ints(node, attribute, &count);
    if (!items && !pith__node_attr(node, attribute)) return PITH_OK;
    pith__value *value = pith__graph_add_i64s(node->graph, PITH_STR(""), items, (int64_t)count);
    pith__node_unset(node, attribute);
    return infer_put_input(node, input, value);
}

pith_status pith__upgrade_int(pith__node *node, const char *attribute, int input) {
    if (!pith__node_attr(node, attribute)) return PITH_OK;
    int64_t item = pith__node_int(node, attribute, 0);
    pith__node_unset(node, attribute);
    return infer_put_input(node, input, pith__graph_add_i64s(node->graph, PITH_STR(""), &item, 1));
}

pith_status pith__upgrade_float(pith__node *node, const char *attribute, int input) {
    if (!pith__node_attr(node, attribute)) return PITH_OK;
    float item = pith__node_float(node, attribute, 0);
    pith__node_unset(node, attribute);
    return infer_put_input(node, input, pith__graph_add_f32(node->graph, PITH_STR(""), item));
}

pith_status pith__fail_dtype(pith_error *err, int dtype) {
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "dtype %s is not supported",
                      pith__dtype_name(dtype));
}

pith_status pith__prepare_kernel(pith__prepare *c, const char *family, int dtype,
                                 pith__kernel_fn **fn) {
    *fn = pith__prepare_find(c, family, dtype);
    return *fn ? PITH_OK : pith__fail_dtype(c->err, dtype);
}

size_t pith__element_size(int dtype) {
    int bits = pith__dtype_bits(dtype);
    return bits >= 8 ? (size_t)bits / 8 : 0;
}

pith_status pith__prepare_movable(pith__prepare *c) {
    int dtype = c->in[0]->dtype;
    return pith__element_size(dtype) ? PITH_OK : pith__fail_dtype(c->err, dtype);
}

typedef struct move_job {
    char *to;
    const char *from;
    const int64_t *to_strides, *from_strides, *dims;
    int64_t per_part;
    int rank;
    size_t size;
    pith__turn_fn *turn;
} move_job;

static void infer_move_part(void *context, size_t part, int worker) {
    const move_job *j = context;
    (void)worker;
    int64_t dims[PITH_MAX_RANK + 1], first = (int64_t)part * j->per_part;
    memcpy(dims, j->dims, (size_t)j->rank * sizeof *dims);
    dims[0] = j->dims[0] - first < j->per_part ? j->dims[0] - first : j->per_part;
    pith__move(j->to + first * j->to_strides[0] * (int64_t)j->size, j->to_strides,
               j->from + first * j->from_strides[0] * (int64_t)j->size, j->from_strides, dims,
               j->rank, j->size, j->turn);
}

void pith__run_move(pith__run *r, void *to, const int64_t *to_strides, const void *from,
                    const int64_t *from_strides, const int64_t *dims, int rank, size_t size) {
    pith__run_turn(r, NULL, to, to_strides, from, from_strides, dims, rank, size);
}

pith_status pith__run_fill(const pith__run *r, void *to, const void *value, int64_t n,
                           size_t size) {
    enum { PIECE = 1 << 18 };
    for (int64_t at = 0, part; at < n; at += part) {
        part = n - at < PIECE ? n - at : PIECE;
        if (at) PITH_TRY(pith__run_look(r));
        pith__fill((char *)to + (size_t)at * size, value, part, size);
    }
    return PITH_OK;
}

/* Moves by strides, shared by threads along the first axis that is longer than 1. Of a run that may
 * have to stop, long rows of it are moved one after the other, each in parts of its own. */
void pith__run_turn(pith__run *r, pith__turn_fn *turn, void *to, const int64_t *to_strides,
                    const void *from, const int64_t *from_strides, const int64_t *dims, int rank,
                    size_t size) {
    while (rank > 1 && dims[0] == 1) {
        dims++;
        to_strides++;
        from_strides++;
        rank--;
    }
    int64_t inner = 1;
    for (int i = 1; i < rank; i++) inner *= dims[i];
    if (rank == 0 || dims[0] <= 1 || inner == 0) {
        pith__move(to, to_strides, from, from_strides, dims, rank, size, turn);
        return;
    }
    enum { LONG = 1 << 21 };
    if (r->exec->stop && inner > LONG && (rank > 2 || !turn)) {
        for (int64_t i = 0; i < dims[0]; i++) {
            if (pith__stop_asked(r->exec->stop)) break;
            pith__run_turn(r, turn, (char *)to + i * to_strides[0] * (int64_t)size, to_strides + 1,
                           (const char *)from + i * from_strides[0] * (int64_t)size,
                           from_strides + 1, dims + 1, rank - 1, size);
        }
        return;
    }
    move_job j = { to,           from, to_strides,
                   from_strides, dims, pith__run_chunk(r, dims[0], inner, 32768),
                   rank,         size, turn };
    pith__run_parallel(r, infer_move_part, &j, (size_t)((dims[0] + j.per_part - 1) / j.per_part));
}

void pith__axis_split(const int64_t *dims, int rank, int axis, int64_t form[3]) {
    form[0] = form[2] = 1;
    form[1] = dims[axis];
    for (int i = 0; i < axis; i++) form[0] *= dims[i];
    for (int i = axis + 1; i < rank; i++) form[2] *= dims[i];
}

/* op_constant.c - tensors from attributes and shapes: Constant, ConstantOfShape, EyeLike, Range. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/move.h"
#include "engine/ops/shared/infer_shapes.h"

/* The value that one of Constant's attributes describes, in *t; data of lists and scalars points
 * into the node. */
static pith_status constant_value(const pith__node *node, pith_tensor *t, pith_error *err) {
    for (size_t i = 0; i < node->attr_count; i++) {
        const pith__attr *a = &node->attrs[i];
        bool list = a->kind == PITH_ATTR_FLOATS || a->kind == PITH_ATTR_INTS ||
                    a->kind == PITH_ATTR_STRINGS;
        *t = (pith_tensor){ .rank = list, .dims = { (int64_t)a->count } };
        switch (a->kind) {
        case PITH_ATTR_TENSOR: *t = *a->tensor; return PITH_OK;
        case PITH_ATTR_FLOAT:
            t->dtype = PITH_F32;
            t->data = (void *)&a->f;
            break;
        case PITH_ATTR_INT:
            t->dtype = PITH_I64;
            t->data = (void *)&a->i;
            break;
        case PITH_ATTR_STRING:
            t->dtype = PITH_STRING;
            t->data = (void *)&a->s;
            break;
        case PITH_ATTR_FLOATS:
            t->dtype = PITH_F32;
            t->data = (void *)a->floats;
            break;
        case PITH_ATTR_INTS:
            t->dtype = PITH_I64;
            t->data = (void *)a->ints;
            break;
        case PITH_ATTR_STRINGS:
            t->dtype = PITH_STRING;
            t->data = (void *)a->strings;
            break;
        default: continue;
        }
        t->bytes = pith__element_size(t->dtype) * (list ? a->count : 1);
        return PITH_OK;
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "has no dense value (sparse_value is not supported)");
}

static pith_status infer_constant(pith__infer *c) {
    pith_tensor *t = pith__arena_array(c->arena, 1, sizeof *t);
    if (!t) return pith__fail_memory(c->err, sizeof *t);
    PITH_TRY(constant_value(c->node, t, c->err));
    if (c->out_count > 0) pith__type_of_tensor(&c->out[0], t);
    return PITH_OK;
}

static pith_status run_constant(pith__run *r) {
    pith_tensor t;
    PITH_TRY(constant_value(r->node, &t, r->err));
    if (t.bytes) memcpy(r->out[0]->data, t.data, t.bytes);
    return PITH_OK;
}

const pith__op pith__op_Constant = {
    .domain = "",
    .name = "Constant",
    .since = 1,
    .newest = 25,
    .min_inputs = 0,
    .max_inputs = 0,
    .max_outputs = 1,
    .attrs = "value tensor! @-10; value tensor @11; value_float float @12; "
             "value_floats floats @12; value_int int any @12; value_ints ints any @12; "
             "value_string string @12; value_strings strings @12",
    .infer = infer_constant,
    .run = run_constant
};

/* ---- ConstantOfShape ---- */

static pith_status infer_of_shape(pith__infer *c) {
    pith__numbers shape;
    PITH_TRY(pith__infer_numbers(c, 0, &shape));
    if (shape.count > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", shape.count, PITH_MAX_RANK);
    for (int i = 0; i < shape.count; i++) {
        if (pith__dim_known(shape.items[i]) && shape.items[i] < 0) {
            return pith__op_fail(c, "shape[%d] is %lld; it must not be negative", i,
                                 (long long)shape.items[i]);
        }
    }
    const pith_tensor *value = pith__node_tensor(c->node, "value");
    if (value && pith__tensor_count(value) != 1)
        return pith__op_fail(c, "attribute value must have exactly one element");
    pith__infer_set(c, 0, value ? value->dtype : PITH_F32, shape.count, shape.items);
    int64_t count;
    pith__dim *elems = value ? pith__infer_new_elems(c, &count) : NULL;
    if (!elems) return PITH_OK;
    pith__type type;
    pith__dim item;
    pith__type_of_tensor(&type, value);
    if (!pith__type_elem(&type, 0, &item)) return PITH_OK;
    for (int64_t i = 0; i < count; i++) elems[i] = item;
    c->out[0].elems = elems;
    return PITH_OK;
}

static pith_status run_of_shape(pith__run *r) {
    const pith_tensor *value = pith__node_tensor(r->node, "value");
    pith_tensor *y = r->out[0];
    size_t size = pith__element_size(y->dtype);
    if (!value) {
        if (y->bytes) memset(y->data, 0, y->bytes);
        return PITH_OK;
    }
    if (size) {
        pith__fill(y->data, value->data, pith__tensor_count(y), size);
        return PITH_OK;
    }
    for (int64_t i = 0; i < pith__tensor_count(y); i++) {
        pith__convert(y->data, y->dtype, i, value->data, value->dtype, 0, 1, true);
    }
    return PITH_OK;
}

const pith__op pith__op_ConstantOfShape = { .domain = "",
                                            .name = "ConstantOfShape",
                                            .since = 9,
                                            .newest = 25,
                                            .min_inputs = 1,
                                            .max_inputs = 1,
                                            .max_outputs = 1,
                                            .types = "l",
                                            .attrs = "value tensor",
                                            .shape_inputs = 1u << 0,
                                            .infer = infer_of_shape,
                                            .run = run_of_shape };

/* ---- EyeLike ---- */

static pith_status infer_eye(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank != 2)
        return pith__op_fail(c, "input has rank %d, expected 2", x->rank);
    int dtype = pith__node_choice(c->node, "dtype", x->dtype);
    if (dtype != PITH_UNDEFINED && !pith__convert_known(PITH_F64, dtype))
        return pith__fail_dtype(c->err, dtype);
    pith__infer_set(c, 0, dtype, x->rank, x->dims);
    return PITH_OK;
}

static pith_status run_eye(pith__run *r) {
    pith_tensor *y = r->out[0];
    double one = 1;
    int64_t k = pith__node_int(r->node, "k", 0);
    if (y->bytes) memset(y->data, 0, y->bytes);
    for (int64_t i = 0; i < y->dims[0]; i++) {
        int64_t j;
        if (pith__add_overflows(i, k, &j) || j < 0 || j >= y->dims[1]) continue;
        pith__convert(y->data, y->dtype, i * y->dims[1] + j, &one, PITH_F64, 0, 1, true);
    }
    return PITH_OK;
}

const pith__op pith__op_EyeLike = { .domain = "",
                                    .name = "EyeLike",
                                    .since = 9,
                                    .newest = 22,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .max_outputs = 1,
                                    .attrs = "dtype dtype; k int = 0",
                                    .flags = PITH_OP_SHAPE_ONLY,
                                    .infer = infer_eye,
                                    .run = run_eye };

/* ---- Range ---- */

/* Start, limit and delta as the exact integers they are: 64 bits of contents, or a followed number.
 */
static bool exact_bounds(const pith__infer *c, int64_t bounds[3]) {
    for (int i = 0; i < 3; i++) {
        const pith__type *t = c->in[i];
        if (!pith__dtype_is_int(t->dtype) || t->dtype == PITH_U64 || pith__type_count(t) != 1)
            return false;
        if (t->data && t->data->data)
            pith__convert(&bounds[i], PITH_I64, 0, t->data->data, t->dtype, 0, 1, true);
        else if (!pith__infer_number(c, i, &bounds[i]) || !pith__dim_known(bounds[i]))
            return false;
    }
    return true;
}

/* How many elements there are, if that is known. */
static pith_status range_count(pith__infer *c, pith__dim *n) {
    const double most = 4503599627370496.0; /* that many have no address */
    int64_t bounds[3];
    double first, last, step, count;
    if (exact_bounds(c, bounds)) {
        step = (double)bounds[2];
        __int128 span = (__int128)bounds[1] - bounds[0], delta = bounds[2] ? bounds[2] : 1,
                 whole = span / delta;
        count = (double)(whole + (span % delta && (span > 0) == (delta > 0)));
    } else if (pith__infer_scalar(c, 0, &first) && pith__infer_scalar(c, 1, &last) &&
               pith__infer_scalar(c, 2, &step)) {
        count = ceil((last - first) / step);
    } else {
        return PITH_OK;
    }
    if (step == 0) return pith__op_fail(c, "delta is 0");
    if (!(count < most))
        return pith__op_fail(c, "the result has more elements than memory can hold");
    *n = count > 0 ? (pith__dim)count : 0;
    return PITH_OK;
}

static pith_status infer_range(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 0, 2));
    int dtype = c->in[0]->dtype;
    pith__dim n = PITH_DIM_UNKNOWN, start, limit, delta;
    bool numbers = pith__infer_number(c, 0, &start) && pith__infer_number(c, 1, &limit) &&
                   pith__infer_number(c, 2, &delta);
    PITH_TRY(range_count(c, &n));
    if (n == PITH_DIM_UNKNOWN && numbers && delta == 1)
        n = pith__dim_apply(c->dims, PITH_DIM_MAX,
                            pith__dim_apply(c->dims, PITH_DIM_SUB, limit, start), 0);
    pith__infer_set(c, 0, dtype, 1, &n);
    int64_t count;
    pith__dim *elems = numbers && pith__dim_known(delta) ? pith__infer_new_elems(c, &count) : NULL;
    if (!elems) return PITH_OK;
    for (int64_t i = 0; i < count; i++) {
        elems[i] = pith__dim_apply(c->dims, PITH_DIM_ADD, start,
                                   pith__dim_apply(c->dims, PITH_DIM_MUL, delta, i));
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

static pith_status run_range(pith__run *r) {
    pith_tensor *y = r->out[0];
    int dtype = y->dtype;
    int64_t n = pith__tensor_count(y);
    if (dtype == PITH_I64 || dtype == PITH_I32 || dtype == PITH_I16) {
        int64_t start, delta;
        pith__convert(&start, PITH_I64, 0, r->in[0]->data, dtype, 0, 1, true);
        pith__convert(&delta, PITH_I64, 0, r->in[2]->data, dtype, 0, 1, true);
        for (int64_t i = 0; i < n; i++) {
            int64_t item = (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);
            pith__convert(y->data, dtype, i, &item, PITH_I64, 0, 1, true);
        }
        return PITH_OK;
    }
    double start, delta;
    pith__convert(&start, PITH_F64, 0, r->in[0]->data, dtype, 0, 1, true);
    pith__convert(&delta, PITH_F64, 0, r->in[2]->data, dtype, 0, 1, true);
    for (int64_t i = 0; i < n; i++) {
        double item = start + (double)i * delta;
        pith__convert(y->data, dtype, i, &item, PITH_F64, 0, 1, true);
    }
    return PITH_OK;
}

static pith_status prepare_range(pith__prepare *c) {
    int dtype = c->in[0]->dtype;
    return pith__convert_known(dtype, PITH_F64) ? PITH_OK : pith__fail_dtype(c->err, dtype);
}

const pith__op pith__op_Range = { .domain = "",
                                  .name = "Range",
                                  .since = 11,
                                  .newest = 27,
                                  .min_inputs = 3,
                                  .max_inputs = 3,
                                  .max_outputs = 1,
                                  .types = "n",
                                  .attrs = "stash_type dtype = 1 @27",
                                  .shape_inputs = 1u << 0 | 1u << 1 | 1u << 2,
                                  .infer = infer_range,
                                  .prepare = prepare_range,
                                  .run = run_range };

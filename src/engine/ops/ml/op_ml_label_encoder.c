/* op_ml_label_encoder.c - LabelEncoder and CategoryMapper of ai.onnx.ml: a table from keys to
 * values.
 *
 * Keys and values become two plain lists once. A look-up compares the keys in order, and the first
 * match wins. NaN equals NaN. Source: ONNX operators of these names. */
#include <math.h>

#include "base/dtype.h"
#include "engine/kernels/convert.h"
#include "engine/ops/op.h"

/* One side of the table: strings, or numbers as double with the dtype they stand for. */
typedef struct labels {
    int dtype;
    const pith_str *strings;
    double *numbers;
    int64_t count;
} labels;

typedef struct encoder {
    labels keys, values;
    labels fallback; /* one element */
} encoder;

/* Numbers become doubles, in which float and 32-bit keys are exact. */
static pith_status label_of_tensor(labels *l, const pith_tensor *t, pith__arena *arena,
                                   pith_error *err) {
    *l = (labels){ .dtype = t->dtype, .count = pith__tensor_count(t) };
    if (t->dtype == PITH_STRING) {
        l->strings = t->data;
        return PITH_OK;
    }
    if (t->dtype != PITH_F64 && !pith__convert_known(t->dtype, PITH_F64))
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "a table of %s", pith__dtype_name(t->dtype));
    l->numbers = pith__arena_array(arena, (size_t)l->count + 1, sizeof *l->numbers);
    if (!l->numbers) return pith__fail_memory(err, (size_t)l->count * sizeof *l->numbers);
    pith__convert(l->numbers, PITH_F64, 0, t->data, t->dtype, 0, l->count, true);
    return PITH_OK;
}

/* The attribute that is given of prefix_strings, prefix_int64s, prefix_floats, prefix_tensor. */
static pith_status label_read_labels(labels *l, const pith__node *node, const char *const names[4],
                                     pith__arena *arena, pith_error *err) {
    size_t n;
    const pith_str *strings = pith__node_strs(node, names[0], &n);
    if (strings) {
        *l = (labels){ .dtype = PITH_STRING, .strings = strings, .count = (int64_t)n };
        return PITH_OK;
    }
    const int64_t *ints = pith__node_ints(node, names[1], &n);
    if (ints)
        return label_of_tensor(l,
                               &(pith_tensor){ .data = (void *)(uintptr_t)ints,
                                               .dtype = PITH_I64,
                                               .rank = 1,
                                               .dims = { (int64_t)n } },
                               arena, err);
    const float *floats = pith__node_floats(node, names[2], &n);
    if (floats)
        return label_of_tensor(l,
                               &(pith_tensor){ .data = (void *)(uintptr_t)floats,
                                               .dtype = PITH_F32,
                                               .rank = 1,
                                               .dims = { (int64_t)n } },
                               arena, err);
    const pith_tensor *t = pith__node_tensor(node, names[3]);
    if (t) return label_of_tensor(l, t, arena, err);
    return pith__fail(err, PITH_ERR_ARGUMENT, "attribute '%s' (or %s, %s) is missing", names[0],
                      names[1], names[2]);
}

static const char *const key_names[4] = { "keys_strings", "keys_int64s", "keys_floats",
                                          "keys_tensor" };
static const char *const value_names[4] = { "values_strings", "values_int64s", "values_floats",
                                            "values_tensor" };

static int label_values_dtype(const pith__node *node) {
    const pith_tensor *t = pith__node_tensor(node, "values_tensor");
    if (t) return t->dtype;
    if (pith__node_attr(node, "values_strings")) return PITH_STRING;
    return pith__node_attr(node, "values_int64s") ? PITH_I64 : PITH_F32;
}

/* Opset 1 knew only a list of strings, numbered from 0. */
static bool label_is_plain_list(const pith__node *node) {
    return pith__node_attr(node, "classes_strings") != NULL;
}

static pith_status label_infer_encoder(pith__infer *c) {
    int dtype = c->in[0]->dtype == PITH_STRING ? PITH_I64 : PITH_STRING;
    if (!label_is_plain_list(c->node)) dtype = label_values_dtype(c->node);
    pith__type_set(&c->out[0], dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* What a missing key gives: default_tensor, else the default of the values' type. */
static pith_status label_make_fallback(encoder *e, const pith__node *node, pith__arena *arena,
                                       pith_error *err) {
    const pith_tensor *t = pith__node_tensor(node, "default_tensor");
    if (t && pith__tensor_count(t) == 1) return label_of_tensor(&e->fallback, t, arena, err);
    pith_str *s = pith__arena_array(arena, 1, sizeof *s);
    double *x = pith__arena_array(arena, 1, sizeof *x);
    if (!s || !x) return pith__fail_memory(err, sizeof *s);
    *s = pith__node_str(node, "default_string", "_Unused");
    *x = e->values.dtype == PITH_F32 ? pith__node_float(node, "default_float", -0.0f)
                                     : (double)pith__node_int(node, "default_int64", -1);
    e->fallback = (labels){ .dtype = e->values.dtype, .strings = s, .numbers = x, .count = 1 };
    return PITH_OK;
}

/* list[i] ↔ numbers[i]; the input's dtype says which way. */
static pith_status label_make_mapper(encoder *e, pith__prepare *c, const char *strings_name,
                                     const char *ints_name) {
    size_t n, ints;
    const pith_str *strings = pith__node_strs(c->node, strings_name, &n);
    const int64_t *numbers = ints_name ? pith__node_ints(c->node, ints_name, &ints) : NULL;
    if (ints_name && ints != n)
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "%zu strings and %zu numbers", n, ints);
    labels list = { .dtype = PITH_STRING, .strings = strings, .count = (int64_t)n },
           index = { .dtype = PITH_I64, .count = (int64_t)n };
    index.numbers = pith__arena_array(c->arena, n + 1, sizeof *index.numbers);
    if (!index.numbers) return pith__fail_memory(c->err, n * sizeof *index.numbers);
    for (size_t i = 0; i < n; i++) index.numbers[i] = numbers ? (double)numbers[i] : (double)i;
    bool from_strings = c->in[0]->dtype == PITH_STRING;
    e->keys = from_strings ? list : index;
    e->values = from_strings ? index : list;
    return PITH_OK;
}

/* The oldest form has one list of strings, whose places are the other side. */
static pith_status label_prepare_encoder(pith__prepare *c) {
    encoder *e = pith__arena_array(c->arena, 1, sizeof *e);
    if (!e) return pith__fail_memory(c->err, sizeof *e);
    if (label_is_plain_list(c->node)) {
        PITH_TRY(label_make_mapper(e, c, "classes_strings", NULL));
    } else {
        PITH_TRY(label_read_labels(&e->keys, c->node, key_names, c->arena, c->err));
        PITH_TRY(label_read_labels(&e->values, c->node, value_names, c->arena, c->err));
    }
    if (e->keys.count != e->values.count)
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "%lld keys and %lld values",
                          (long long)e->keys.count, (long long)e->values.count);
    if ((c->in[0]->dtype == PITH_STRING) != (e->keys.dtype == PITH_STRING))
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "keys are %s, the input is %s",
                          pith__dtype_name(e->keys.dtype), pith__dtype_name(c->in[0]->dtype));
    c->state = e;
    return label_make_fallback(e, c->node, c->arena, c->err);
}

static pith_status label_prepare_mapper(pith__prepare *c) {
    encoder *e = pith__arena_array(c->arena, 1, sizeof *e);
    if (!e) return pith__fail_memory(c->err, sizeof *e);
    c->state = e;
    PITH_TRY(label_make_mapper(e, c, "cats_strings", "cats_int64s"));
    return label_make_fallback(e, c->node, c->arena, c->err);
}

static pith_status label_infer_mapper(pith__infer *c) {
    pith__type_set(&c->out[0], c->in[0]->dtype == PITH_STRING ? PITH_I64 : PITH_STRING,
                   c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* In order: tables are short, and the first match has to win. */
static int64_t label_find(const labels *keys, const pith_tensor *x, int64_t i) {
    if (keys->dtype == PITH_STRING) {
        for (int64_t k = 0; k < keys->count; k++)
            if (pith__str_eq(((const pith_str *)x->data)[i], keys->strings[k])) return k;
        return -1;
    }
    double number;
    pith__convert(&number, PITH_F64, 0, x->data, x->dtype, i, 1, true);
    for (int64_t k = 0; k < keys->count; k++)
        if (number == keys->numbers[k] || (isnan(number) && isnan(keys->numbers[k]))) return k;
    return -1;
}

/* Element by element; values are converted to the type of the output. */
static pith_status label_run(pith__run *r) {
    const encoder *e = r->state;
    pith_tensor *y = r->out[0];
    for (int64_t i = 0; i < pith__tensor_count(r->in[0]); i++) {
        PITH_TRY(pith__run_step(r, i * 8));
        int64_t at = label_find(&e->keys, r->in[0], i);
        const labels *from = at < 0 ? &e->fallback : &e->values;
        if (at < 0) at = 0;
        if (y->dtype == PITH_STRING)
            ((pith_str *)y->data)[i] = from->strings[at];
        else
            pith__convert(y->data, y->dtype, i, from->numbers, PITH_F64, at, 1, true);
    }
    return PITH_OK;
}

const pith__op pith__op_ml_CategoryMapper = {
    .domain = "ai.onnx.ml",
    .name = "CategoryMapper",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "t",
    .attrs = "cats_int64s ints any; cats_strings strings; default_int64 int any = -1; "
             "default_string string = _Unused",
    .infer = label_infer_mapper,
    .prepare = label_prepare_mapper,
    .run = label_run,
};

const pith__op pith__op_ml_LabelEncoder = {
    .domain = "ai.onnx.ml",
    .name = "LabelEncoder",
    .since = 1,
    .newest = 4,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "k",
    .attrs = "classes_strings strings @-1; default_float float = -0 @2; "
             "default_int64 int any = -1; default_string string = _Unused; "
             "default_tensor tensor @4; keys_floats floats @2; keys_int64s ints any @2; "
             "keys_strings strings @2; keys_tensor tensor @4; values_floats floats @2; "
             "values_int64s ints any @2; values_strings strings @2; "
             "values_tensor tensor @4",
    .infer = label_infer_encoder,
    .prepare = label_prepare_encoder,
    .run = label_run,
};

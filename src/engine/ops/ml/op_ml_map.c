/* op_ml_map.c - ZipMap, CastMap and DictVectorizer of ai.onnx.ml: rows to maps and maps to rows.
 *
 * A map is a sequence of two tensors [n], its keys and its values. So a sequence of maps is a
 * sequence of sequences. Source: ONNX operators of these names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/formats/decimal.h"
#include "engine/ops/shared/ml_scores.h"
#include "engine/ops/shared/number_of_text.h"

static void map_set_sequence(pith__type *type, int item_dtype) {
    pith__type_init(type);
    type->dtype = PITH_SEQUENCE;
    type->item_dtype = item_dtype;
}

/* Keys and values of a map. */
static pith_status map_open(pith__run *r, const pith_tensor **keys, const pith_tensor **values) {
    const pith_tensor *map = r->in[0], *items = map->data;
    if (map->dtype != PITH_SEQUENCE || map->dims[0] != 2 ||
        pith__tensor_count(&items[0]) != pith__tensor_count(&items[1]) ||
        (items[0].dtype != PITH_I64 && items[0].dtype != PITH_STRING))
        return pith__op_fail(r, "the input is not a map, which is a sequence of keys (int64 or "
                                "string) and as many values");
    *keys = &items[0];
    *values = &items[1];
    return PITH_OK;
}

/* ---- ZipMap ---- */

static pith_status map_infer_zip(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__labels labels = pith__labels_read(c->node, "classlabels_strings", "classlabels_int64s");
    if (!labels.count) return pith__op_fail(c, "there are no class labels");
    if (x->dtype && x->dtype != PITH_F32)
        return pith__op_fail(c, "an input of %s is not supported", pith__dtype_name(x->dtype));
    if (x->rank == 0 || x->rank > 2)
        return pith__op_fail(c, "the input has %d dimensions", x->rank);
    map_set_sequence(&c->out[0], labels.strings ? PITH_MAP_STRING : PITH_MAP_I64);
    return PITH_OK;
}

/* Keys are those of the attribute, values a row of the input: both are copied, as maps may outlive
 * this run's inputs. */
static pith_status map_run_zip(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith__labels labels = pith__labels_read(r->node, "classlabels_strings", "classlabels_int64s");
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, columns = x->dims[x->rank - 1];
    if (columns != labels.count)
        return pith__op_fail(r, "%lld columns for %lld labels", (long long)columns,
                             (long long)labels.count);
    PITH_TRY(pith__run_alloc(r, 0, PITH_SEQUENCE, 1, &rows));
    pith_tensor *maps = r->out[0]->data;
    int dtype = labels.strings ? PITH_STRING : PITH_I64;
    const void *names = labels.strings ? (const void *)labels.strings : labels.ints;
    pith_tensor keys = {
        .data = (void *)(uintptr_t)names, .dtype = dtype, .rank = 1, .dims = { columns }
    };
    keys.bytes = (size_t)columns * (size_t)pith__dtype_bits(dtype) / 8;
    for (int64_t row = 0; row < rows; row++) {
        PITH_TRY(pith__run_step(r, row * 16));
        pith_tensor pair[2] = { keys,
                                { .data = (float *)x->data + row * columns,
                                  .bytes = (size_t)columns * sizeof(float),
                                  .dtype = PITH_F32,
                                  .rank = 1,
                                  .dims = { columns } } };
        pith_tensor map = {
            .data = pair, .bytes = sizeof pair, .dtype = PITH_SEQUENCE, .rank = 1, .dims = { 2 }
        };
        PITH_TRY(pith__run_copy(r, &maps[row], &map));
    }
    return PITH_OK;
}

const pith__op pith__op_ml_ZipMap = {
    .domain = "ai.onnx.ml",
    .name = "ZipMap",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "e",
    .attrs = "classlabels_int64s ints any; classlabels_strings strings",
    .flags = PITH_OP_LATE,
    .infer = map_infer_zip,
    .run = map_run_zip,
    .note = "a map is a sequence of keys and values",
};

/* ---- CastMap ---- */

static int map_cast_dtype(const pith__node *node) {
    pith_str to = pith__node_str(node, "cast_to", "TO_FLOAT");
    if (pith__str_is(to, "TO_FLOAT")) return PITH_F32;
    if (pith__str_is(to, "TO_INT64")) return PITH_I64;
    return pith__str_is(to, "TO_STRING") ? PITH_STRING : PITH_UNDEFINED;
}

static pith_status map_infer_cast(pith__infer *c) {
    pith_str form = pith__node_str(c->node, "map_form", "DENSE");
    bool sparse = pith__str_is(form, "SPARSE");
    if (!map_cast_dtype(c->node) || (!sparse && !pith__str_is(form, "DENSE")) ||
        (sparse && pith__node_int(c->node, "max_map", 1) < 1))
        return pith__op_fail(c, "cast_to, map_form or max_map is out of range");
    pith__dim dims[2] = { 1, sparse ? pith__node_int(c->node, "max_map", 1) : PITH_DIM_UNKNOWN };
    pith__type_set(&c->out[0], map_cast_dtype(c->node), 2, dims);
    return PITH_OK;
}

/* Value `from` of a map, or nothing (from < 0), as element `to` of y. */
static pith_status map_cast_one(pith__run *r, pith_tensor *y, int64_t to, const pith_tensor *values,
                                int64_t from) {
    if (y->dtype != PITH_STRING && values->dtype != PITH_STRING) {
        pith__wide_put(y, to, from < 0 ? 0 : pith__wide_get(values, from));
        return PITH_OK;
    }
    if (y->dtype != PITH_STRING) {
        pith_str text = from < 0 ? PITH_STR("0") : ((const pith_str *)values->data)[from];
        char buffer[64];
        double number;
        if (text.size >= sizeof buffer) return pith__op_fail(r, "a value is not a number");
        memcpy(buffer, text.data, text.size);
        buffer[text.size] = '\0';
        if (!pith__number_of_text(&number, buffer))
            return pith__op_fail(r, "a value is not a number");
        pith__wide_put(y, to, number);
        return PITH_OK;
    }
    pith_str *out = (pith_str *)y->data + to;
    if (from < 0) {
        *out = values->dtype == PITH_STRING ? PITH_STR("") : PITH_STR("0");
        return PITH_OK;
    }
    if (values->dtype == PITH_STRING) {
        *out = ((const pith_str *)values->data)[from];
        return PITH_OK;
    }
    char *text = r->exec->alloc(r->exec, PITH_DECIMAL_CHARS);
    if (!text) return pith__fail_memory(r->err, PITH_DECIMAL_CHARS);
    *out = (pith_str){ text, pith__decimal_print(text, 6, pith__wide_get(values, from)) };
    return PITH_OK;
}

/* DENSE: values in ascending order of their keys, found by selection, since maps are short. SPARSE:
 * each at its key, -1 at the others. */
static pith_status map_run_cast(pith__run *r) {
    const pith_tensor *keys, *values;
    PITH_TRY(map_open(r, &keys, &values));
    if (keys->dtype != PITH_I64)
        return pith__op_fail(r, "the keys are %s, not int64", pith__dtype_name(keys->dtype));
    int64_t n = pith__tensor_count(keys), size = n, last = INT64_MIN;
    bool sparse = pith__str_is(pith__node_str(r->node, "map_form", "DENSE"), "SPARSE");
    if (sparse) size = pith__node_int(r->node, "max_map", 1);
    PITH_TRY(pith__run_alloc(r, 0, map_cast_dtype(r->node), 2, (int64_t[]){ 1, size }));
    const int64_t *key = keys->data;
    if (sparse) {
        for (int64_t i = 0; i < size; i++) PITH_TRY(map_cast_one(r, r->out[0], i, values, -1));
    }
    for (int64_t i = 0; i < n; i++) {
        if (sparse) {
            if (key[i] < 0 || key[i] >= size)
                return pith__op_fail(r, "key %lld is outside of %lld", (long long)key[i],
                                     (long long)size);
            PITH_TRY(map_cast_one(r, r->out[0], key[i], values, i));
            continue;
        }
        int64_t next = -1; /* by ascending keys */
        for (int64_t k = 0; k < n; k++) {
            PITH_TRY(pith__run_step(r, k));
            if (key[k] > last && (next < 0 || key[k] < key[next])) next = k;
        }
        if (next < 0) return pith__op_fail(r, "a key occurs twice");
        PITH_TRY(map_cast_one(r, r->out[0], i, values, next));
        last = key[next];
    }
    return PITH_OK;
}

const pith__op pith__op_ml_CastMap = {
    .domain = "ai.onnx.ml",
    .name = "CastMap",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .attrs = "cast_to string TO_FLOAT|TO_STRING|TO_INT64 = TO_FLOAT; "
             "map_form string DENSE|SPARSE = DENSE; max_map int 1.. = 1",
    .flags = PITH_OP_LATE | PITH_OP_SEQUENCES,
    .infer = map_infer_cast,
    .run = map_run_cast,
    .note = "a map is a sequence of keys and values",
};

/* ---- DictVectorizer ---- */

static pith_status map_infer_dict(pith__infer *c) {
    pith__labels words = pith__labels_read(c->node, "string_vocabulary", "int64_vocabulary");
    if (!words.count) return pith__op_fail(c, "the vocabulary is missing");
    pith__type_set(&c->out[0], PITH_UNDEFINED, 2, (pith__dim[]){ 1, words.count });
    return PITH_OK;
}

static int64_t map_find(const pith_tensor *keys, const pith__labels *words, int64_t word) {
    for (int64_t i = 0; i < pith__tensor_count(keys); i++) {
        if (words->strings ? pith__str_eq(((const pith_str *)keys->data)[i], words->strings[word])
                           : ((const int64_t *)keys->data)[i] == words->ints[word])
            return i;
    }
    return -1;
}

/* Values of the vocabulary's words, 0 for those that are not in the map. */
static pith_status map_run_dict(pith__run *r) {
    const pith_tensor *keys, *values;
    pith__labels words = pith__labels_read(r->node, "string_vocabulary", "int64_vocabulary");
    PITH_TRY(map_open(r, &keys, &values));
    if (keys->dtype != (words.strings ? PITH_STRING : PITH_I64))
        return pith__op_fail(r, "the keys are %s", pith__dtype_name(keys->dtype));
    size_t size = (size_t)pith__dtype_bits(values->dtype) / 8;
    PITH_TRY(pith__run_alloc(r, 0, values->dtype, 2, (int64_t[]){ 1, words.count }));
    memset(r->out[0]->data, 0, r->out[0]->bytes);
    int64_t spent = 0;
    for (int64_t i = 0; i < words.count; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 16 + 8 * pith__tensor_count(keys)));
        int64_t at = map_find(keys, &words, i);
        if (at >= 0 && size)
            memcpy((char *)r->out[0]->data + (size_t)i * size,
                   (const char *)values->data + (size_t)at * size, size);
    }
    return PITH_OK;
}

const pith__op pith__op_ml_DictVectorizer = {
    .domain = "ai.onnx.ml",
    .name = "DictVectorizer",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .attrs = "int64_vocabulary ints any; string_vocabulary strings",
    .flags = PITH_OP_LATE | PITH_OP_SEQUENCES,
    .infer = map_infer_dict,
    .run = map_run_dict,
    .note = "a map is a sequence of keys and values",
};

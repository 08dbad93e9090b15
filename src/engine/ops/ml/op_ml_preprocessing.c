/* op_ml_preprocessing.c - the element- and column-wise operators of ai.onnx.ml:
 * ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer, OneHotEncoder, Scaler.
 * Source: ONNX operators of these names. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/as_doubles.h"

static int64_t preprocess_columns_of(const pith_tensor *t) {
    return t->rank ? t->dims[t->rank - 1] : 1;
}

static pith_status preprocess_infer_same(pith__infer *c) {
    pith__type_set(&c->out[0], c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

static pith_status preprocess_infer_same_f32(pith__infer *c) {
    pith__type_set(&c->out[0], PITH_F32, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* ---- ArrayFeatureExtractor: columns picked by index ---- */

/* Picks columns; a vector counts as one row, so the result has rank 2. */
static pith_status preprocess_infer_extractor(pith__infer *c) {
    const pith__type *x = c->in[0], *index = c->in[1];
    if (x->rank == 0) return pith__op_fail(c, "the input is a scalar");
    pith__dim dims[PITH_MAX_RANK],
        count = index->rank < 0 ? PITH_DIM_UNKNOWN
                                : pith__dim_product(c->dims, index->dims, index->rank);
    for (int i = 0; i + 1 < x->rank; i++) dims[i] = x->dims[i];
    if (x->rank == 1) dims[0] = 1;
    int rank = x->rank == 1 ? 2 : x->rank;
    if (rank > 0) dims[rank - 1] = count;
    pith__type_set(&c->out[0], x->dtype, rank, dims);
    return PITH_OK;
}

/* Column by column, any type of whole bytes. */
static pith_status preprocess_run_extractor(pith__run *r) {
    const pith_tensor *x = r->in[0], *index = r->in[1];
    int64_t columns = preprocess_columns_of(x), picked = pith__tensor_count(index),
            rows = columns ? pith__tensor_count(x) / columns : 0;
    size_t item = (size_t)pith__dtype_bits(x->dtype) / 8;
    for (int64_t k = 0; k < picked; k++) {
        int64_t column = ((const int64_t *)index->data)[k];
        if (column < 0 || column >= columns)
            return pith__fail(r->err, PITH_ERR_RUN, "index %lld is outside of %lld columns",
                              (long long)column, (long long)columns);
        for (int64_t row = 0; row < rows; row++) {
            PITH_TRY(pith__run_step(r, row));
            memcpy((char *)r->out[0]->data + (size_t)(row * picked + k) * item,
                   (const char *)x->data + (size_t)(row * columns + column) * item, item);
        }
    }
    return PITH_OK;
}

/* ---- Binarizer: x > threshold ---- */

static pith_status preprocess_run_binarizer(pith__run *r) {
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    double threshold = pith__node_float(r->node, "threshold", 0);
    for (int64_t i = 0; i < pith__tensor_count(r->in[0]); i++) {
        PITH_TRY(pith__run_step(r, i));
        w.out[0][i] = w.in[0][i] > threshold;
    }
    return pith__wide_close(&w, r);
}

/* ---- FeatureVectorizer: columns side by side ---- */

/* Widths come from inputdimensions, else from the inputs. */
static pith_status preprocess_infer_vectorizer(pith__infer *c) {
    size_t count;
    const int64_t *widths = pith__node_ints(c->node, "inputdimensions", &count);
    pith__dim dims[2] = { 1, 0 };
    if (c->in[0]->rank == 2) dims[0] = c->in[0]->dims[0];
    for (int i = 0; i < c->in_count; i++) {
        const pith__type *x = c->in[i];
        pith__dim width = x->rank > 0 ? x->dims[x->rank - 1] : PITH_DIM_UNKNOWN;
        if ((size_t)i < count) width = widths[i];
        if (pith__dim_known(width) && width < 0)
            return pith__op_fail(c, "inputdimensions[%d] is negative", i);
        dims[1] = pith__dim_apply(c->dims, PITH_DIM_ADD, dims[1], width);
    }
    pith__type_set(&c->out[0], PITH_F32, 2, dims);
    return PITH_OK;
}

/* Inputs side by side; one that is narrower than its width is followed by zeros, a wider one is
 * cut. */
static pith_status preprocess_run_vectorizer(pith__run *r) {
    size_t count;
    const int64_t *widths = pith__node_ints(r->node, "inputdimensions", &count);
    int64_t rows = r->out[0]->dims[0], total = r->out[0]->dims[1], at = 0, spent = 0;
    PITH_TRY(pith__run_bytes(r, r->out[0]->data, NULL, r->out[0]->bytes));
    for (int i = 0; i < r->in_count; i++) {
        const pith_tensor *x = r->in[i];
        int64_t columns = preprocess_columns_of(x), width = (size_t)i < count ? widths[i] : columns;
        if (pith__tensor_count(x) != rows * columns)
            return pith__op_fail(r, "input %d does not have %lld rows", i, (long long)rows);
        for (int64_t row = 0; row < rows; row++) {
            PITH_TRY(pith__run_spend(r, &spent, 16 + columns));
            pith__convert(r->out[0]->data, PITH_F32, row * total + at, x->data, x->dtype,
                          row * columns, width < columns ? width : columns, true);
        }
        at += width;
    }
    return PITH_OK;
}

/* ---- Imputer: one value (NaN, say) replaced ---- */

/* Attribute entry for a column; lists of one serve all columns. */
static bool preprocess_column_value(const pith__node *node, const char *floats, const char *ints,
                                    int64_t column, double *value) {
    size_t n;
    const float *f = pith__node_floats(node, floats, &n);
    const int64_t *i = NULL;
    if ((!f || !n) && ints) i = pith__node_ints(node, ints, &n);
    if ((!f && !i) || !n) return false;
    int64_t at = n == 1 ? 0 : column;
    if ((size_t)at >= n) return false;
    *value = i ? (double)i[at] : f[at];
    return true;
}

/* NaN as the value to replace means NaN itself, which equals nothing. */
static pith_status preprocess_run_imputer(pith__run *r) {
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    bool ints = r->in[0]->dtype == PITH_I64;
    double replaced = ints ? (double)pith__node_int(r->node, "replaced_value_int64", 0)
                           : pith__node_float(r->node, "replaced_value_float", 0);
    int64_t columns = preprocess_columns_of(r->in[0]);
    for (int64_t i = 0; i < pith__tensor_count(r->in[0]); i++) {
        PITH_TRY(pith__run_step(r, i));
        double x = w.in[0][i];
        if (isnan(replaced) ? isnan(x) : x == replaced) {
            if (!preprocess_column_value(r->node, "imputed_value_floats", "imputed_value_int64s",
                                         i % columns, &x))
                return pith__op_fail(r, "no value to impute for column %lld",
                                     (long long)(i % columns));
        }
        w.out[0][i] = x;
    }
    return pith__wide_close(&w, r);
}

/* ---- Normalizer: rows divided by their norm ---- */

/* By rows. MAX divides by the largest element, not the largest magnitude. A sum of 0 leaves the
 * row. */
static pith_status preprocess_run_normalizer(pith__run *r) {
    pith_str norm = pith__node_str(r->node, "norm", "MAX");
    int kind = pith__str_is(norm, "L1") ? 1 : 0;
    if (pith__str_is(norm, "L2")) kind = 2;
    if (!kind && !pith__str_is(norm, "MAX"))
        return pith__op_fail(r, "norm '" PITH_STR_FMT "' is unknown", PITH_STR_ARG(norm));
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t columns = preprocess_columns_of(r->in[0]), count = pith__tensor_count(r->in[0]),
            spent = 0;
    if (columns) {
        for (int64_t row = 0; row < count / columns; row++) {
            PITH_TRY(pith__run_spend(r, &spent, 8 * columns));
            const double *x = w.in[0] + row * columns;
            double sum = kind ? 0 : -INFINITY;
            for (int64_t i = 0; i < columns; i++) {
                if (kind == 0)
                    sum = fmax(sum, x[i]);
                else
                    sum += kind == 1 ? fabs(x[i]) : x[i] * x[i];
            }
            if (kind == 2) sum = sqrt(sum);
            for (int64_t i = 0; i < columns; i++)
                w.out[0][row * columns + i] = sum != 0 ? x[i] / sum : x[i];
        }
    }
    return pith__wide_close(&w, r);
}

/* ---- OneHotEncoder ---- */

/* One more axis, as long as there are categories of the input's kind. */
static pith_status preprocess_infer_one_hot(pith__infer *c) {
    size_t ints, strings;
    pith__node_ints(c->node, "cats_int64s", &ints);
    pith__node_strs(c->node, "cats_strings", &strings);
    int rank = c->in[0]->rank;
    if (rank >= PITH_MAX_RANK) return pith__op_fail(c, "rank %d is too large", rank);
    pith__dim dims[PITH_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = c->in[0]->dims[i];
    if (rank >= 0) dims[rank] = (pith__dim)(c->in[0]->dtype == PITH_STRING ? strings : ints);
    pith__type_set(&c->out[0], PITH_F32, rank < 0 ? -1 : rank + 1, dims);
    return PITH_OK;
}

/* Numbers are compared as doubles. zeros 0 makes an element without a category an error. */
static pith_status preprocess_run_one_hot(pith__run *r) {
    const pith_tensor *x = r->in[0];
    size_t int_count, string_count;
    const int64_t *ints = pith__node_ints(r->node, "cats_int64s", &int_count);
    const pith_str *strings = pith__node_strs(r->node, "cats_strings", &string_count);
    size_t count = x->dtype == PITH_STRING ? string_count : int_count;
    float *y = r->out[0]->data;
    PITH_TRY(pith__run_bytes(r, y, NULL, r->out[0]->bytes));
    int64_t spent = 0;
    for (int64_t i = 0; i < pith__tensor_count(x); i++, y += count) {
        PITH_TRY(pith__run_spend(r, &spent, 32 + 8 * (int64_t)count));
        bool found = false;
        double number = 0;
        if (x->dtype != PITH_STRING)
            pith__convert(&number, PITH_F64, 0, x->data, x->dtype, i, 1, true);
        for (size_t k = 0; k < count; k++) {
            bool same = x->dtype == PITH_STRING
                            ? pith__str_eq(((const pith_str *)x->data)[i], strings[k])
                            : number == (double)ints[k];
            y[k] = same;
            found |= same;
        }
        if (!found && !pith__node_int(r->node, "zeros", 1))
            return pith__fail(r->err, PITH_ERR_RUN, "element %lld is in no category", (long long)i);
    }
    return PITH_OK;
}

/* ---- Scaler: (x - offset) * scale ---- */

/* (x - offset) scale, in double. */
static pith_status preprocess_run_scaler(pith__run *r) {
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t columns = preprocess_columns_of(r->in[0]);
    for (int64_t i = 0; i < pith__tensor_count(r->in[0]); i++) {
        PITH_TRY(pith__run_step(r, i));
        double offset = 0, scale = 1;
        preprocess_column_value(r->node, "offset", NULL, i % columns, &offset);
        preprocess_column_value(r->node, "scale", NULL, i % columns, &scale);
        w.out[0][i] = (w.in[0][i] - offset) * scale;
    }
    return pith__wide_close(&w, r);
}

/* ---- the operators ---- */

#define FEATURES(symbol, name_, types_, attrs_, min, max, flags_, infer_, scratch_, run_)          \
    const pith__op pith__op_##symbol = { .domain = "ai.onnx.ml",                                   \
                                         .name = name_,                                            \
                                         .since = 1,                                               \
                                         .min_inputs = min,                                        \
                                         .max_inputs = max,                                        \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = 1,                                              \
                                         .attrs = attrs_,                                          \
                                         .flags = flags_,                                          \
                                         .infer = infer_,                                          \
                                         .scratch = scratch_,                                      \
                                         .run = run_ };
FEATURES(ml_ArrayFeatureExtractor, "ArrayFeatureExtractor", "kl", "", 2, 2, 0,
         preprocess_infer_extractor, NULL, preprocess_run_extractor)
FEATURES(ml_Binarizer, "Binarizer", "g", "threshold float = 0", 1, 1, PITH_OP_ELEMENTWISE,
         preprocess_infer_same, pith__wide_scratch, preprocess_run_binarizer)
FEATURES(ml_FeatureVectorizer, "FeatureVectorizer", "g", "inputdimensions ints 1..", 1, -1, 0,
         preprocess_infer_vectorizer, NULL, preprocess_run_vectorizer)
FEATURES(ml_Imputer, "Imputer", "g",
         "imputed_value_floats floats; imputed_value_int64s ints any; "
         "replaced_value_float float = 0; replaced_value_int64 int any = 0",
         1, 1, 0, preprocess_infer_same, pith__wide_scratch, preprocess_run_imputer)
FEATURES(ml_Normalizer, "Normalizer", "g", "norm string MAX|L1|L2 = MAX", 1, 1, 0,
         preprocess_infer_same_f32, pith__wide_scratch, preprocess_run_normalizer)
FEATURES(ml_OneHotEncoder, "OneHotEncoder", "k",
         "cats_int64s ints any; cats_strings strings; zeros bool = 1", 1, 1, 0,
         preprocess_infer_one_hot, NULL, preprocess_run_one_hot)
FEATURES(ml_Scaler, "Scaler", "g", "offset floats; scale floats", 1, 1, 0,
         preprocess_infer_same_f32, pith__wide_scratch, preprocess_run_scaler)

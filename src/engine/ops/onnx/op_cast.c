/* op_cast.c - Cast and CastLike: one element type into another.
 *
 * Numbers go through engine/kernels/convert.h. Strings are read by strtod, and numbers are written
 * with the fewest digits that read back as the same value; the bytes belong to the run. CastLike
 * takes the dtype from its second input. Source: ONNX Cast (opset 28). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/formats/decimal.h"
#include "base/formats/read_double.h"
#include "base/str.h"
#include "base/text_out.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/number_of_text.h"

/* GRAIN: elements that are worth a thread. TEXT_MAX: bytes of the longest number as text, with room
 * to spare. */
enum { GRAIN = 16384, TEXT_MAX = 64 };

typedef struct job {
    const pith_tensor *x;
    pith_tensor *y;
    bool saturate;
    int e8m0_mode;
    int64_t total, per_part;
} job;

/* Elements [first, first + n). Float8 with 8 exponent bits has rounding modes of its own and goes
 * through f32 one by one. */
static void cast_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part;
    int64_t n = j->total - first < j->per_part ? j->total - first : j->per_part;
    if (j->y->dtype == PITH_F8E8M0 && j->x->dtype != PITH_F8E8M0) {
        for (int64_t i = first; i < first + n; i++) {
            float v;
            pith__convert(&v, PITH_F32, 0, j->x->data, j->x->dtype, i, 1, true);
            ((uint8_t *)j->y->data)[i] = pith__convert_e8m0(v, j->e8m0_mode, j->saturate);
        }
        return;
    }
    pith__convert(j->y->data, j->y->dtype, first, j->x->data, j->x->dtype, first, n, j->saturate);
}

/* Integers are read as such first, since a double would round those beyond 2^53; what strtoll does
 * not read as a whole is read as a float. The text is copied because a string has no end mark. */
static pith_status cast_from_string(pith__run *r, const pith_tensor *x, pith_tensor *y,
                                    int64_t total) {
    const pith_str *p = x->data;
    for (int64_t i = 0; i < total; i++) {
        char text[TEXT_MAX * 4];
        if (p[i].size >= sizeof text)
            return pith__op_fail(r, "element %lld is not a number", (long long)i);
        if (p[i].size) memcpy(text, p[i].data, p[i].size);
        text[p[i].size] = '\0';
        char *end;
        if (pith__dtype_is_int(y->dtype)) {
            long long v = strtoll(text, &end, 10);
            if (*end == '\0' && end != text) {
                int64_t item = v;
                pith__convert(y->data, y->dtype, i, &item, PITH_I64, 0, 1, true);
                continue;
            }
        }
        double v;
        if (!pith__number_of_text(&v, text))
            return pith__op_fail(r, "element %lld '" PITH_CUT_FMT "' is not a number", (long long)i,
                                 PITH_CUT(pith__str_of(text), 40));
        pith__convert(y->data, y->dtype, i, &v, PITH_F64, 0, 1, true);
    }
    return PITH_OK;
}

/* The fewest digits that read back as the same value of this dtype; `most` digits always do. */
static int cast_print_float(char *text, double v, int dtype) {
    if (isnan(v)) return snprintf(text, TEXT_MAX, "NaN");
    if (isinf(v)) return snprintf(text, TEXT_MAX, v > 0 ? "INF" : "-INF");
    int most = dtype == PITH_F32 ? 9 : 5;
    if (dtype == PITH_F64) most = 17;
    for (int digits = 1;; digits++) {
        const size_t n = pith__decimal_print(text, digits, v);
        if (digits == most) return (int)n;
        double back = 0, rounded;
        pith__read_number(&back, (pith_str){ text, n });
        uint64_t bits = 0;
        pith__convert(&bits, dtype, 0, &back, PITH_F64, 0, 1, true);
        pith__convert(&rounded, PITH_F64, 0, &bits, dtype, 0, 1, true);
        if (rounded == v) return (int)n;
    }
}

/* Texts lie TEXT_MAX bytes apart in one block of the run's memory. */
static pith_status cast_to_string(pith__run *r, const pith_tensor *x, pith_tensor *y,
                                  int64_t total) {
    size_t bytes;
    if (pith__mul_overflows((size_t)total, (size_t)TEXT_MAX, &bytes))
        return pith__fail_memory(r->err, SIZE_MAX);
    char *text = r->exec->alloc(r->exec, bytes);
    if (!text) return pith__fail_memory(r->err, bytes);
    pith_str *q = y->data;
    for (int64_t i = 0; i < total; i++, text += TEXT_MAX) {
        int n;
        PITH_TRY(pith__run_step(r, i * 8));
        if (x->dtype == PITH_U64) {
            n = snprintf(text, TEXT_MAX, "%llu",
                         (unsigned long long)((const uint64_t *)x->data)[i]);
        } else if (pith__dtype_is_float(x->dtype)) {
            double v;
            pith__convert(&v, PITH_F64, 0, x->data, x->dtype, i, 1, true);
            n = cast_print_float(text, v, x->dtype);
        } else {
            int64_t v;
            pith__convert(&v, PITH_I64, 0, x->data, x->dtype, i, 1, true);
            if (x->dtype == PITH_BOOL)
                n = snprintf(text, TEXT_MAX, v ? "True" : "False");
            else
                n = snprintf(text, TEXT_MAX, "%lld", (long long)v);
        }
        q[i] = (pith_str){ text, (size_t)n };
    }
    return PITH_OK;
}

/* Strings to strings share their bytes. Packed parts must begin at a byte, so parts are multiples
 * of 8 elements. */
static pith_status cast_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int64_t total = pith__tensor_count(x);
    if (total == 0) return PITH_OK;
    if (x->dtype == PITH_STRING && y->dtype == PITH_STRING) {
        return x->data == y->data ? PITH_OK : pith__run_bytes(r, y->data, x->data, x->bytes);
    }
    if (x->data != y->data) pith__tensor_clear_tail(y);
    if (x->dtype == PITH_STRING) return cast_from_string(r, x, y, total);
    if (y->dtype == PITH_STRING) return cast_to_string(r, x, y, total);
    pith_str mode = pith__node_str(r->node, "round_mode", "up");
    job j = { .x = x,
              .y = y,
              .saturate = pith__node_int(r->node, "saturate", 1) != 0,
              .e8m0_mode = 1, /* up */
              .total = total };
    if (pith__str_is(mode, "nearest")) j.e8m0_mode = 0;
    if (pith__str_is(mode, "down")) j.e8m0_mode = 2;
    /* packed parts begin at a byte */
    j.per_part = (pith__run_chunk(r, total, 1, GRAIN) + 7) & ~(int64_t)7;
    pith__run_parallel(r, cast_run_part, &j, (size_t)((total + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

/* Contents stay known between integers that can hold them: 64 bits, the dtype they had, or 32 bits
 * for numbers that were computed from shapes. Constants cast to 32 bits are folded instead. */
static pith_status cast_infer_to(pith__infer *c, int to) {
    const pith__type *x = c->in[0];
    pith__infer_set(c, 0, to, x->rank, x->dims);
    bool kept = to == PITH_I64 || (to == PITH_I32 && x->data == NULL) || to == x->dtype;
    if (!kept || !(pith__dtype_is_int(x->dtype) || x->dtype == PITH_BOOL)) return PITH_OK;
    int64_t count;
    pith__dim *elems = pith__infer_new_elems(c, &count);
    if (!elems || pith__type_count(x) != count) return PITH_OK;
    for (int64_t i = 0; i < count; i++) {
        if (!pith__type_elem(x, i, &elems[i])) return PITH_OK;
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

/* Opsets below 6 name the type in words. */
static pith_status cast_upgrade(pith__node *node, pith_error *err) {
    const pith__attr *to = pith__node_attr(node, "to");
    if (!to || to->kind != PITH_ATTR_STRING) return PITH_OK;
    static const struct {
        const char *name;
        int dtype;
    } names[] = {
        { "FLOAT", PITH_F32 },   { "UINT8", PITH_U8 },      { "INT8", PITH_I8 },
        { "UINT16", PITH_U16 },  { "INT16", PITH_I16 },     { "INT32", PITH_I32 },
        { "INT64", PITH_I64 },   { "STRING", PITH_STRING }, { "BOOL", PITH_BOOL },
        { "FLOAT16", PITH_F16 }, { "DOUBLE", PITH_F64 },    { "UINT32", PITH_U32 },
        { "UINT64", PITH_U64 },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!pith__str_is(to->string, names[i].name)) continue;
        return pith__node_set_int(node, "to", names[i].dtype) ? pith__fail_memory(err, 0) : PITH_OK;
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "attribute to: unknown type '" PITH_STR_FMT "'",
                      PITH_STR_ARG(to->string));
}

static pith_status cast_infer_cast(pith__infer *c) {
    int64_t to = pith__node_int(c->node, "to", 0);
    if (to <= 0 || to >= PITH_DTYPE_COUNT) {
        return pith__op_fail(c, "attribute to is missing or not an element type: %lld",
                             (long long)to);
    }
    return cast_infer_to(c, (int)to);
}

static pith_status cast_infer_like(pith__infer *c) { return cast_infer_to(c, c->in[1]->dtype); }

static pith_status cast_prepare(pith__prepare *c) {
    int from = c->in[0]->dtype, to = c->out[0].dtype;
    if (from != PITH_STRING && !pith__convert_known(from, PITH_F64))
        return pith__fail_dtype(c->err, from);
    if (to != PITH_STRING && !pith__convert_known(PITH_F64, to))
        return pith__fail_dtype(c->err, to);
    return PITH_OK;
}

const pith__op pith__op_Cast = {
    .domain = "",
    .name = "Cast",
    .since = 6,
    .newest = 28,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "C",
    .attrs = "round_mode string up|down|nearest = up @24; saturate bool = 1 @19; "
             "to string! @-5; to dtype! @6",
    .flags = PITH_OP_ELEMENTWISE,
    .upgrade = cast_upgrade,
    .infer = cast_infer_cast,
    .prepare = cast_prepare,
    .run = cast_run
};
const pith__op pith__op_CastLike = {
    .domain = "",
    .name = "CastLike",
    .since = 15,
    .newest = 25,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "C",
    .attrs = "round_mode string up|down|nearest = up @24; saturate bool = 1 @19",
    .infer = cast_infer_like,
    .prepare = cast_prepare,
    .run = cast_run
};

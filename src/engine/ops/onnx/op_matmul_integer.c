/* op_matmul_integer.c - matmuls of 8-bit matrices: MatMulInteger, QLinearMatMul, and
 * com.microsoft's DynamicQuantizeMatMul and MatMulIntegerToFloat.
 *
 * The sums are exact (see int_matmul.h). The operators differ in the names of their inputs and in
 * what is done with the sums. QLinearMatMul with 8-bit floats is the matmul of the dequantised
 * matrices, in double. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "engine/kernels/small_floats.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/int_matmul.h"

/* Numbers of the inputs; -1: there is none. */
typedef struct layout {
    const char *name;
    int a, b, a_zero, b_zero, a_scale, b_scale, y_scale, y_zero, bias;
} layout;

static const layout layouts[] = {
    { "MatMulInteger", 0, 1, 2, 3, -1, -1, -1, -1, -1 },
    { "QLinearMatMul", 0, 3, 2, 5, 1, 4, 6, 7, -1 },
    { "MatMulIntegerToFloat", 0, 1, 4, 5, 2, 3, -1, -1, 6 },
    { "DynamicQuantizeMatMul", 0, 1, -1, 3, -1, 2, -1, -1, 4 },
};

typedef struct state {
    pith__int_product product;
    const layout *inputs;
    pith__sums_scale_fn *scale;  /* of all but MatMulInteger */
    pith__quantize_fn *quantize; /* of QLinearMatMul's result, and of what DynamicQuantizeMatMul is
                                    given */
    pith__range_fn *range;       /* of DynamicQuantizeMatMul */
    bool floats;                 /* a, b or y are 8-bit floats */
} state;

static const layout *matmul_integer_find_layout(const pith__node *node) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (pith__str_is(node->op_type, layouts[i].name)) return &layouts[i];
    }
    return NULL;
}

/* Scales, zero points and bias have one element, or one for each row or column. */
static pith_status matmul_integer_check_numbers(const pith__infer *c, const layout *l, pith__dim m,
                                                pith__dim n) {
    const int inputs[] = { l->a_scale, l->a_zero, l->b_scale, l->b_zero,
                           l->y_scale, l->y_zero, l->bias };
    const pith__dim wanted[] = { m, m, n, n, 1, 1, n };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (inputs[i] < 0 || !pith__has_input(c, inputs[i])) continue;
        int64_t count = pith__type_count(c->in[inputs[i]]);
        if (count == 0 || (count > 1 && pith__dim_known(wanted[i]) && count < wanted[i]))
            return pith__op_fail(c, "input %d has %lld elements; it must have 1 or %lld", inputs[i],
                                 (long long)count,
                                 (long long)(pith__dim_known(wanted[i]) ? wanted[i] : 1));
    }
    return PITH_OK;
}

/* As MatMul; the result's dtype is that of the output's zero point, f32 if there are scales, else
 * i32. */
static pith_status matmul_integer_infer(pith__infer *c) {
    const layout *l = matmul_integer_find_layout(c->node);
    pith__type a = *c->in[l->a], b = *c->in[l->b], out;
    int dtype = l->b_scale >= 0 ? PITH_F32 : PITH_I32;
    if (l->y_zero >= 0) dtype = c->in[l->y_zero]->dtype;
    if (a.rank == 0 || b.rank == 0) return pith__op_fail(c, "an operand is a scalar");
    if (a.rank < 0 || b.rank < 0) {
        pith__infer_set(c, 0, dtype, -1, NULL);
        return PITH_OK;
    }
    pith__dim k = a.dims[a.rank - 1], k2 = b.dims[b.rank > 1 ? b.rank - 2 : 0];
    if (pith__dim_known(k) && pith__dim_known(k2) && k != k2) {
        return pith__op_fail(c, "the left side has %lld columns, the right side %lld rows",
                             (long long)k, (long long)k2);
    }
    pith__dim m = a.rank > 1 ? a.dims[a.rank - 2] : 1, n = b.rank > 1 ? b.dims[b.rank - 1] : 1;
    PITH_TRY(matmul_integer_check_numbers(c, l, m, n));
    int a_rank = a.rank, b_rank = b.rank;
    a.rank = a.rank > 2 ? a.rank - 2 : 0;
    b.rank = b.rank > 2 ? b.rank - 2 : 0;
    pith__type_init(&out);
    PITH_TRY(pith__infer_broadcast(c, &a, &b, &out));
    if (out.rank + 2 > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", out.rank + 2, PITH_MAX_RANK);
    if (a_rank > 1) out.dims[out.rank++] = m;
    if (b_rank > 1) out.dims[out.rank++] = n;
    pith__infer_set(c, 0, dtype, out.rank, out.dims);
    return PITH_OK;
}

/* 8-bit floats take the wide way. Of the kernels only those that the operator uses are asked for,
 * so that a selective build links no others. */
static pith_status matmul_integer_prepare(pith__prepare *c) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->inputs = matmul_integer_find_layout(c->node);
    int dtype = c->in[s->inputs->a]->dtype;
    bool dynamic = s->inputs->a_zero < 0;
    if (dynamic && dtype != PITH_F32) return pith__fail_dtype(c->err, dtype);
    s->floats = !dynamic &&
                (!pith__dtype_is_int(dtype) || !pith__dtype_is_int(c->in[s->inputs->b]->dtype) ||
                 (s->inputs->y_zero >= 0 && !pith__dtype_is_int(c->out[0].dtype)));
    c->state = s;
    if (s->floats) return PITH_OK;
    pith__kernel_fn *fn;
    if (s->inputs->b_scale >= 0) {
        PITH_TRY(pith__prepare_kernel(c, "sums_scale", PITH_I32, &fn));
        s->scale = (pith__sums_scale_fn *)fn;
    }
    if (s->inputs->y_scale >= 0 || dynamic) {
        PITH_TRY(pith__prepare_kernel(c, "quantize", PITH_U8, &fn));
        s->quantize = (pith__quantize_fn *)fn;
    }
    if (dynamic) {
        PITH_TRY(pith__prepare_kernel(c, "range", PITH_F32, &fn));
        s->range = (pith__range_fn *)fn;
    }
    return pith__int_product_prepare(&s->product, c, s->inputs->b);
}

typedef struct sizes {
    int64_t count, m, n, k;
    int rank;
} sizes;

/* A right side without batches takes all rows of the left one at once. */
static sizes matmul_integer_sizes_of(const int64_t *a, int a_rank, const int64_t *b, int b_rank) {
    sizes s = { 1, a_rank > 1 ? a[a_rank - 2] : 1, b_rank > 1 ? b[b_rank - 1] : 1, a[a_rank - 1],
                a_rank > b_rank ? a_rank : b_rank };
    for (int i = 3; i <= s.rank; i++) {
        int64_t da = i <= a_rank ? a[a_rank - i] : 1, db = i <= b_rank ? b[b_rank - i] : 1;
        s.count *= da == 1 ? db : da;
    }
    if (b_rank <= 2) {
        s.m *= s.count;
        s.count = 1;
    }
    return s;
}

/* Bytes of a left side that is quantised here, sums that are not the output itself, and what the
 * matmul needs. */
static pith_status matmul_integer_scratch(const pith__infer *c, const void *state_, int threads,
                                          size_t *bytes) {
    const state *s = state_;
    const pith__type *a = c->in[s->inputs->a], *b = c->in[s->inputs->b];
    sizes z = matmul_integer_sizes_of(a->dims, a->rank, b->dims, b->rank);
    size_t quantized, sums;
    if (s->floats) return pith__wide_scratch(c, state_, threads, bytes);
    bool fits = pith__int_product_scratch(&s->product, z.m, z.n, z.k, bytes) &&
                pith__dtype_bytes(PITH_U8, pith__type_count(a), &quantized) &&
                pith__dtype_bytes(PITH_I32, pith__type_count(&c->out[0]), &sums) &&
                !pith__add_overflows(*bytes, quantized, bytes) &&
                !pith__add_overflows(*bytes, sums + 256, bytes);
    return fits ? PITH_OK : pith__fail_memory(c->err, SIZE_MAX);
}

static float matmul_integer_number(const pith__run *r, int input, int64_t i) {
    float v;
    const pith_tensor *t = r->in[input];
    pith__convert(&v, PITH_F32, 0, t->data, t->dtype, pith__tensor_count(t) == 1 ? 0 : i, 1, true);
    return v;
}

/* The sums, scaled, with bias or rounded to the output's type: rows of n columns on the run's
 * threads. */
typedef struct finish {
    const pith__run *r;
    const layout *l;
    const state *s;
    const int32_t *sums;
    int64_t rows, m, n, per_part;
    float a_scale, y_scale;
    int y_zero, low;
} finish;

enum { COLUMNS = 256 }; /* whose scales and bias are at hand together */

/* Numbers [j, j + n) of an input that has one number for each column, or one for all. */
static void matmul_integer_columns(float *to, const pith__run *r, int input, int64_t j, int64_t n) {
    const pith_tensor *t = r->in[input];
    const bool one = pith__tensor_count(t) == 1;
    pith__convert(to, PITH_F32, 0, t->data, t->dtype, one ? 0 : j, one ? 1 : n, true);
    if (one) {
        for (int64_t i = 1; i < n; i++) to[i] = to[0];
    }
}

/* Row i of columns j to j + n as f32, or as bytes. Sums are multiplied by a_scale * b_scale /
 * y_scale, in this order, before they are rounded to bytes, as the standard writes it: ties are
 * decided by it. `scales` are those of b. */
static void matmul_integer_finish_row(const finish *f, int64_t i, int64_t j, int64_t n,
                                      float a_scale, const float *scales, const float *bias) {
    const int32_t *sums = f->sums + i * f->n + j;
    float whole[COLUMNS], values[COLUMNS];
    if (f->l->y_scale < 0) {
        f->s->scale((float *)f->r->out[0]->data + i * f->n + j, sums, n, a_scale, scales, bias);
        return;
    }
    for (int64_t k = 0; k < n; k++) whole[k] = a_scale * scales[k] / f->y_scale;
    f->s->scale(values, sums, n, 1.0f, whole, NULL);
    f->s->quantize(values, (uint8_t *)f->r->out[0]->data + i * f->n + j, (size_t)n, 1.0f,
                   (float)(f->low - f->y_zero), (float)(f->low + 255 - f->y_zero), f->y_zero);
}

/* Rows [first, end), COLUMNS columns at a time, whose scales and bias are converted once for all
 * rows. */
static void matmul_integer_finish_part(void *context, size_t part, int worker) {
    const finish *f = context;
    const pith__run *r = f->r;
    const layout *l = f->l;
    const bool has_bias = l->bias >= 0 && pith__has_input(r, l->bias);
    const int64_t first = (int64_t)part * f->per_part,
                  end = first + f->per_part < f->rows ? first + f->per_part : f->rows;
    const int64_t a_scales = l->a_scale >= 0 ? pith__tensor_count(r->in[l->a_scale]) : 1;
    float scales[COLUMNS], bias[COLUMNS];
    (void)worker;
    for (int64_t j = 0; j < f->n; j += COLUMNS) {
        const int64_t n = f->n - j < COLUMNS ? f->n - j : COLUMNS;
        matmul_integer_columns(scales, r, l->b_scale, j, n);
        if (has_bias) matmul_integer_columns(bias, r, l->bias, j, n);
        for (int64_t i = first; i < end; i++) {
            float a_scale = f->a_scale;
            if (l->a_scale >= 0)
                a_scale = matmul_integer_number(r, l->a_scale, a_scales == f->m ? i % f->m : 0);
            matmul_integer_finish_row(f, i, j, n, a_scale, scales, has_bias ? bias : NULL);
        }
    }
}

static void matmul_integer_finish(pith__run *r, const state *s, const int32_t *sums, int64_t rows,
                                  int64_t m, int64_t n, float a_scale) {
    enum { GRAIN = 8192 };
    const layout *l = s->inputs;
    finish f = { .r = r,
                 .l = l,
                 .s = s,
                 .sums = sums,
                 .rows = rows,
                 .m = m,
                 .n = n,
                 .a_scale = a_scale,
                 .y_scale = 1,
                 .low = r->out[0]->dtype == PITH_I8 ? -128 : 0 };
    if (l->y_scale >= 0) f.y_scale = matmul_integer_number(r, l->y_scale, 0);
    if (l->y_zero >= 0) f.y_zero = (int)matmul_integer_number(r, l->y_zero, 0);
    f.per_part = pith__run_chunk(r, rows, n, GRAIN);
    pith__run_parallel(r, matmul_integer_finish_part, &f,
                       (size_t)((rows + f.per_part - 1) / f.per_part));
}

/* Where matrix i of the result takes its matrices from. */
static void matmul_integer_find_matrices(int64_t at[2], const sizes *z, const pith_tensor *a,
                                         const pith_tensor *b, int64_t i) {
    int64_t stride[2] = { z->m * z->k, z->k * z->n };
    at[0] = at[1] = 0;
    if (z->count > 1) {
        for (int d = 3; d <= z->rank; d++) {
            int64_t own[2] = { d <= a->rank ? a->dims[a->rank - d] : 1,
                               d <= b->rank ? b->dims[b->rank - d] : 1 };
            int64_t size = own[0] == 1 ? own[1] : own[0];
            for (int o = 0; o < 2; o++) {
                if (own[o] != 1) at[o] += i % size * stride[o];
                stride[o] *= own[o];
            }
            i /= size;
        }
    }
}

/* Of a's row or b's column i: the scale, and the zero point. */
static double matmul_integer_scale_at(const double *scales, const pith_tensor *t, int64_t i) {
    return scales[pith__tensor_count(t) == 1 ? 0 : i];
}

/* QLinearMatMul on 8-bit floats, which have no exact integer sums: everything in double, element by
 * element, in the order of the standard's reference. */
static pith_status matmul_integer_run_floats(pith__run *r, const layout *l, const sizes *z,
                                             int64_t m) {
    const pith_tensor *a = r->in[l->a], *b = r->in[l->b];
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t spent = 0;
    for (int64_t i = 0; i < z->count * z->m * z->n; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 64 + 4 * z->k));
        int64_t at[2], row = i / z->n % z->m, column = i % z->n, own = row % m;
        matmul_integer_find_matrices(at, z, a, b, i / (z->m * z->n));
        double sum = 0, a_zero = matmul_integer_scale_at(w.in[l->a_zero], r->in[l->a_zero], own),
               b_zero = matmul_integer_scale_at(w.in[l->b_zero], r->in[l->b_zero], column);
        for (int64_t k = 0; k < z->k; k++)
            sum += (w.in[l->a][at[0] + row * z->k + k] - a_zero) *
                   (w.in[l->b][at[1] + k * z->n + column] - b_zero);
        sum *= matmul_integer_scale_at(w.in[l->a_scale], r->in[l->a_scale], own) *
               matmul_integer_scale_at(w.in[l->b_scale], r->in[l->b_scale], column) /
               w.in[l->y_scale][0];
        bool integer = pith__dtype_is_int(r->out[0]->dtype);
        double low = r->out[0]->dtype == PITH_I8 ? -128 : 0;
        sum = (integer ? rint(sum) : sum) + w.in[l->y_zero][0];
        w.out[0][i] = integer ? fmin(fmax(sum, low), low + 255) : sum;
    }
    return pith__wide_close(&w, r);
}

/* DynamicQuantizeMatMul first quantises its left side as DynamicQuantizeLinear would. Sums go to
 * the output if that is i32, else to scratch, from where they are scaled. */
static pith_status matmul_integer_run(pith__run *r) {
    const state *s = r->state;
    const layout *l = s->inputs;
    const pith_tensor *a = r->in[l->a], *b = r->in[l->b];
    pith_tensor *y = r->out[0], quantized, zero;
    int64_t total = pith__tensor_count(y);
    if (!total) return PITH_OK;
    sizes z = matmul_integer_sizes_of(a->dims, a->rank, b->dims, b->rank);
    int64_t m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    if (s->floats) return matmul_integer_run_floats(r, l, &z, m);
    char *rest = r->scratch;
    float a_scale = 1;
    uint8_t a_zero_byte = 0;
    const pith_tensor *a_zero =
        l->a_zero >= 0 && pith__has_input(r, l->a_zero) ? r->in[l->a_zero] : NULL;
    const pith_tensor *b_zero =
        l->b_zero >= 0 && pith__has_input(r, l->b_zero) ? r->in[l->b_zero] : NULL;
    if (l->a_zero < 0) {
        quantized = (pith_tensor){ .data = rest, .dtype = PITH_U8, .rank = a->rank };
        memcpy(quantized.dims, a->dims, sizeof quantized.dims);
        const size_t n = (size_t)pith__tensor_count(a);
        float point;
        pith__dynamic_scale(&a_scale, &point, a->data, n, s->range);
        s->quantize(a->data, quantized.data, n, a_scale, 0.0f - point, 255.0f - point,
                    (int32_t)point);
        a_zero_byte = (uint8_t)point;
        zero = (pith_tensor){ .data = &a_zero_byte, .dtype = PITH_U8 };
        a_zero = &zero;
        rest += pith__round64(n);
        a = &quantized;
    }
    int32_t *sums = y->data;
    if (y->dtype != PITH_I32) {
        sums = (int32_t *)(void *)rest;
        rest += pith__round64((size_t)total * sizeof(int32_t));
    }
    for (int64_t i = 0; i < z.count; i++) {
        int64_t at[2];
        matmul_integer_find_matrices(at, &z, a, b, i);
        pith__int_product_run(r, &s->product, rest, sums + i * z.m * z.n, a, at[0], b, at[1],
                              a_zero, b_zero, z.m, z.n, z.k);
    }
    if (y->dtype != PITH_I32) matmul_integer_finish(r, s, sums, z.count * z.m, m, z.n, a_scale);
    return PITH_OK;
}

static void matmul_integer_cost(const pith__run *r, pith__cost *cost) {
    const pith_tensor *a = r->in[((const state *)r->state)->inputs->a];
    pith__cost_product(cost, a->dims[a->rank - 1], "gemm i8");
}

#define PRODUCT(symbol, types_, domain_, name_, since_, newest_, min, max)                         \
    const pith__op pith__op_##symbol = { .domain = domain_,                                        \
                                         .name = name_,                                            \
                                         .since = since_,                                          \
                                         .min_inputs = min,                                        \
                                         .max_inputs = max,                                        \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = newest_,                                        \
                                         .attrs = "",                                              \
                                         .infer = matmul_integer_infer,                            \
                                         .prepare = matmul_integer_prepare,                        \
                                         .scratch = matmul_integer_scratch,                        \
                                         .run = matmul_integer_run,                                \
                                         .cost = matmul_integer_cost };
PRODUCT(MatMulInteger, "q", "", "MatMulInteger", 10, 10, 2, 4)
PRODUCT(QLinearMatMul, "WfWWfWfW", "", "QLinearMatMul", 10, 21, 8, 8)
PRODUCT(DynamicQuantizeMatMul_ms, "eqeqe", "com.microsoft", "DynamicQuantizeMatMul", 1, 1, 3, 5)
PRODUCT(MatMulIntegerToFloat_ms, "qqeeqqe", "com.microsoft", "MatMulIntegerToFloat", 1, 1, 4, 7)

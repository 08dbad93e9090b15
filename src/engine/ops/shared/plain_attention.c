/* plain_attention.c - see plain_attention.h. */
#include "engine/ops/shared/plain_attention.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/maps.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/plain_rows.h"
#include "engine/kernels/unary.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/elementwise.h"

pith_status pith__attend_prepare(pith__attend_kernels *k, pith__prepare *c, int dtype) {
    k->dtype = pith__compute_dtype(dtype);
    if (k->dtype != PITH_F32 && k->dtype != PITH_F64) return pith__fail_dtype(c->err, dtype);
    PITH_TRY(pith__product_prepare(&k->product, c, k->dtype, -1, false));
    PITH_TRY(pith__prepare_kernel(c, "softmax", k->dtype, &k->softmax));
    return pith__prepare_kernel(c, k->dtype == PITH_F32 ? "tanh" : "map_tanh", k->dtype, &k->tanh);
}

void pith__attend_strides(int64_t at[3], bool head_major, int64_t heads, int64_t rows,
                          int64_t size) {
    at[0] = heads * rows * size;
    at[1] = head_major ? rows * size : size;
    at[2] = head_major ? size : heads * size;
}

static int64_t attend_round16(int64_t n) { return (n + 15) & ~(int64_t)15; }

/* Elements: keys packed, values packed (f64: a head's result), scores with room for a sink. */
int64_t pith__attend_scratch(const pith__attend *a) {
    bool plain = a->kernels->dtype == PITH_F64;
    int64_t keys = plain ? 0 : pith__gemm_f32_packed_size(a->d, a->keys), values, scores, sum;
    values = pith__gemm_f32_packed_size(plain ? a->rows : a->keys, a->dv);
    if (keys < 0 || values < 0 || pith__mul_overflows(a->rows, a->keys + 1, &scores) ||
        pith__add_overflows(keys, values, &sum) || pith__add_overflows(sum, scores, &sum) ||
        sum > INT64_MAX / 64)
        return -1;
    return (attend_round16(keys) + attend_round16(values) + attend_round16(scores)) *
           (plain ? 8 : 4);
}

typedef struct job {
    const pith__attend *a;
    char *scratch;
    int64_t worker_bytes, mask_at[4], mask_keys, stride; /* stride: of the rows of scores */
    pith__stop *stop;
} job;

/* The keys [*begin, *end) that row i of batch b may see, the mask aside. */
static void attend_span(const pith__attend *a, int64_t b, int64_t i, int64_t *begin, int64_t *end) {
    int64_t own = i + (a->first ? a->first[b] : a->past);
    if (a->at_end) own = i + a->lengths[b] - a->rows;
    *end = a->lengths && a->lengths[b] < a->keys ? a->lengths[b] : a->keys;
    if (a->causal && own < *end) *end = own + 1;
    if (a->right >= 0 && *end - own > a->right) *end = own + a->right + 1;
    if (*end < 0) *end = 0;
    *begin = a->left >= 0 && own > a->left ? own - a->left : 0;
    if (*begin > *end) *begin = *end;
}

/* Masks the keys [begin, end) of a row, and all outside. Returns whether a key is left. */
#define DEFINE_ROWS(T, suffix, number)                                                             \
    static bool mask_##suffix(const job *j, T *row, int64_t b, int64_t h, int64_t i) {             \
        const pith_tensor *m = j->a->mask;                                                         \
        int64_t at = b * j->mask_at[0] + h * j->mask_at[1] + i * j->mask_at[2],                    \
                step = j->mask_at[3], begin, end;                                                  \
        attend_span(j->a, b, i, &begin, &end);                                                     \
        bool any = false;                                                                          \
        if (m && end > j->mask_keys) end = begin > j->mask_keys ? begin : j->mask_keys;            \
        for (int64_t n = 0; n < begin; n++) row[n] = -(T)INFINITY;                                 \
        for (int64_t n = end; n < j->a->keys; n++) row[n] = -(T)INFINITY;                          \
        if (!m) return begin < end;                                                                \
        for (int64_t n = begin; n < end; n++) {                                                    \
            T bias = -(T)INFINITY;                                                                 \
            if (m->dtype == PITH_BOOL)                                                             \
                bias = ((const uint8_t *)m->data)[at + n * step] ? 0 : bias;                       \
            else                                                                                   \
                bias = m->dtype == number ? ((const T *)m->data)[at + n * step]                    \
                                          : (T)pith__wide_get(m, at + n * step);                   \
            row[n] += bias;                                                                        \
            any |= !(bias <= (T)j->a->masked);                                                     \
        }                                                                                          \
        return any;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void round_##suffix(const job *j, T *row) {                                             \
        T part[64];                                                                                \
        if (!j->a->precision) return;                                                              \
        for (int64_t n = 0, count; n < j->a->keys; n += count) {                                   \
            count = j->a->keys - n < 64 ? j->a->keys - n : 64;                                     \
            pith__convert(part, j->a->precision, 0, row + n, number, 0, count, false);             \
            pith__convert(row + n, number, 0, part, j->a->precision, 0, count, false);             \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void probabilities_##suffix(const job *j, T *scores, int64_t b, int64_t h) {            \
        const pith__attend *a = j->a;                                                              \
        T *out = a->scores ? (T *)a->scores + (b * a->heads + h) * a->rows * a->keys : NULL;       \
        T scale = (T)a->scale, cap = (T)a->softcap;                                                \
        for (int64_t i = 0; i < a->rows; i++) {                                                    \
            if (pith__stop_asked(j->stop)) return;                                                 \
            T *row = scores + i * j->stride;                                                       \
            size_t bytes = (size_t)a->keys * sizeof *row;                                          \
            int64_t keys = a->keys;                                                                \
            for (int64_t n = 0; n < keys; n++) row[n] *= scale;                                    \
            if (out && a->mode == 0) memcpy(out + i * keys, row, bytes);                           \
            if (cap > 0) {                                                                         \
                for (int64_t n = 0; n < keys; n++) row[n] /= cap;                                  \
                attend_tanh_##suffix(a, row, keys);                                                \
                for (int64_t n = 0; n < keys; n++) row[n] *= cap;                                  \
            }                                                                                      \
            if (out && a->mode == 1) memcpy(out + i * keys, row, bytes);                           \
            bool any = mask_##suffix(j, row, b, h, i);                                             \
            if (out && a->mode == 2) memcpy(out + i * keys, row, bytes);                           \
            round_##suffix(j, row);                                                                \
            if (j->stride > keys) row[keys] = a->sinks ? (T)a->sinks[h] : 0;                       \
            if (any)                                                                               \
                attend_softmax_##suffix(a, row, j->stride);                                        \
            else                                                                                   \
                memset(row, 0, bytes);                                                             \
            round_##suffix(j, row);                                                                \
            if (out && a->mode == 3) memcpy(out + i * keys, row, bytes);                           \
        }                                                                                          \
    }

static void attend_tanh_f32(const pith__attend *a, float *row, int64_t n) {
    ((pith__unary_f32_fn *)a->kernels->tanh)(row, row, (size_t)n);
}
static void attend_softmax_f32(const pith__attend *a, float *row, int64_t n) {
    ((pith__row_f32_fn *)a->kernels->softmax)(row, row, 1, n);
}
static void attend_tanh_f64(const pith__attend *a, double *row, int64_t n) {
    static const double none[2];
    ((pith__map_fn *)a->kernels->tanh)(row, row, n, none);
}
static void attend_softmax_f64(const pith__attend *a, double *row, int64_t n) {
    ((pith__row_f64_fn *)a->kernels->softmax)(row, row, 1, n);
}

DEFINE_ROWS(float, f32, PITH_F32)
DEFINE_ROWS(double, f64, PITH_F64)

/* The rows of a product; the rest is left out if the run must stop. */
enum { ROWS = 48 };
static void attend_product(const job *j, const pith__gemm *g) {
    for (int64_t m0 = 0, m1; m0 < g->m; m0 = m1) {
        if (pith__stop_asked(j->stop)) return;
        m1 = j->stop && g->m - m0 > ROWS ? m0 + ROWS : g->m;
        j->a->kernels->product.gemm(g, m0, m1, 0, g->n);
    }
}

/* One head: keys and values as panels, q k^T, the probabilities in place, times the values. The
 * GEMM has the bits of every other matmul of the engine. */
static void attend_run_f32(const job *j, float *scratch, int64_t b, int64_t h, int64_t kv) {
    const pith__attend *a = j->a;
    const pith__product *p = &a->kernels->product;
    float *keys = scratch,
          *values = keys + attend_round16(pith__gemm_f32_packed_size(a->d, a->keys));
    float *scores = values + attend_round16(pith__gemm_f32_packed_size(a->keys, a->dv));
    p->pack(keys, (const float *)a->k + b * a->k_at[0] + kv * a->k_at[1], 1, a->k_at[2], a->d,
            a->keys, 0, a->keys);
    p->pack(values, (const float *)a->v + b * a->v_at[0] + kv * a->v_at[1], a->v_at[2], 1, a->keys,
            a->dv, 0, a->dv);
    pith__gemm g = { .a = (const float *)a->q + b * a->q_at[0] + h * a->q_at[1],
                     .b = keys,
                     .c = scores,
                     .m = a->rows,
                     .n = a->keys,
                     .k = a->d,
                     .lda = a->q_at[2],
                     .ldc = j->stride };
    attend_product(j, &g);
    probabilities_f32(j, scores, b, h);
    g = (pith__gemm){ .a = scores,
                      .b = values,
                      .c = (float *)a->y + b * a->y_at[0] + h * a->y_at[1],
                      .m = a->rows,
                      .n = a->dv,
                      .k = a->keys,
                      .lda = j->stride,
                      .ldc = a->y_at[2] };
    attend_product(j, &g);
}

static void attend_product_plain(const job *j, const pith__matmul *m) {
    pith__matmul_fn *product = (pith__matmul_fn *)j->a->kernels->product.plain;
    const int64_t rows = j->a->rows;
    for (int64_t m0 = 0, m1; m0 < rows; m0 = m1) {
        if (pith__stop_asked(j->stop)) return;
        m1 = j->stop && rows - m0 > ROWS ? m0 + ROWS : rows;
        product(m, m0, m1);
    }
}

/* The same by the plain kernel; its result is contiguous and copied to the rows of y. */
static void attend_run_f64(const job *j, double *scratch, int64_t b, int64_t h, int64_t kv) {
    const pith__attend *a = j->a;
    double *result = scratch,
           *scores = result + attend_round16(pith__gemm_f32_packed_size(a->rows, a->dv));
    pith__matmul m = { .a = (const double *)a->q + b * a->q_at[0] + h * a->q_at[1],
                       .b = (const double *)a->k + b * a->k_at[0] + kv * a->k_at[1],
                       .c = scores,
                       .n = a->keys,
                       .k = a->d,
                       .a_row = a->q_at[2],
                       .a_column = 1,
                       .b_row = 1,
                       .b_column = a->k_at[2] };
    attend_product_plain(j, &m);
    probabilities_f64(j, scores, b, h);
    m = (pith__matmul){ .a = scores,
                        .b = (const double *)a->v + b * a->v_at[0] + kv * a->v_at[1],
                        .c = result,
                        .n = a->dv,
                        .k = a->keys,
                        .a_row = j->stride,
                        .a_column = 1,
                        .b_row = a->v_at[2],
                        .b_column = 1 };
    attend_product_plain(j, &m);
    double *y = (double *)a->y + b * a->y_at[0] + h * a->y_at[1];
    if (a->dv) {
        for (int64_t i = 0; i < a->rows; i++)
            memcpy(y + i * a->y_at[2], result + i * a->dv, (size_t)a->dv * sizeof *y);
    }
}

static void attend_run_head(void *context, size_t part, int worker) {
    const job *j = context;
    const pith__attend *a = j->a;
    int64_t b = (int64_t)part / a->heads, h = (int64_t)part % a->heads,
            kv = h / (a->heads / a->kv_heads);
    void *scratch = j->scratch + worker * j->worker_bytes;
    if (a->kernels->dtype == PITH_F64)
        attend_run_f64(j, scratch, b, h, kv);
    else
        attend_run_f32(j, scratch, b, h, kv);
}

/* Threads share heads. The mask broadcasts to [batch, heads, rows, keys] from the right; one with
 * fewer keys masks the rest. A sink is one more score per row. */
void pith__attend_run(pith__run *r, const pith__attend *a, void *scratch) {
    job j = { .a = a,
              .scratch = scratch,
              .worker_bytes = pith__attend_scratch(a),
              .stride = a->keys,
              .stop = r->exec->stop };
    if (a->batch * a->heads * a->rows == 0) return;
    j.stride += a->sinks || a->smooth;
    const pith_tensor *m = a->mask;
    if (m) {
        int64_t stride = 1;
        for (int i = 3, own = m->rank - 1; own >= 0; i--, own--) {
            j.mask_at[i] = m->dims[own] == 1 && i < 3 ? 0 : stride;
            stride *= m->dims[own];
        }
        j.mask_keys = m->dims[m->rank - 1];
        if (j.mask_keys == 1 && a->keys != 1) {
            j.mask_at[3] = 0;
            j.mask_keys = a->keys;
        }
    }
    pith__run_parallel(r, attend_run_head, &j, (size_t)(a->batch * a->heads));
}

void pith__attend_cost(const pith__attend *a, pith__cost *cost) {
    cost->operations =
        2.0 * (double)(a->batch * a->heads * a->rows) * (double)(a->keys * (a->d + a->dv));
    cost->kernel = a->kernels->dtype == PITH_F64 ? "matmul" : "gemm";
}

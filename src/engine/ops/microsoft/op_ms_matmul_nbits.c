/* op_ms_matmul_nbits.c - com.microsoft's matmuls with weights in blocks: MatMulNBits (2, 4 or 8
 * bits along k) and MatMulBnb4 (4 bits that stand for 16 floats).
 *
 * MatMulNBits: b is [n, blocks, bytes of a block], low bits first. scales is [n * blocks]. Zero
 * points are packed like b, or have the type of the scales, or are absent (the middle of the
 * range). groups [k] names the block of a column. MatMulBnb4: b is [n * k / 2] bytes, high bits
 * first, with a factor for every `block_size` of all elements. Constant weights become packed f32
 * once, others in each run; the matmuls are those of MatMul. With accuracy_level 4 inputs are taken
 * in 8 bits where nbits_int8.h can. Sources: ONNX Runtime's ContribOperators.md; T. Dettmers and
 * others, QLoRA, for the tables. */
#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/nbits_int8.h"
#include "engine/ops/shared/packed_constants.h"
#include "engine/ops/shared/tensor_matmul.h"
#include "engine/ops/shared/widen_types.h"

enum {
    A = PITH_NBITS_A,
    B = PITH_NBITS_B,
    SCALES = PITH_NBITS_SCALES,
    ZEROS = PITH_NBITS_ZEROS,
    GROUPS = PITH_NBITS_GROUPS,
    BIAS = PITH_NBITS_BIAS
};

static const float fp4_values[16] = {
    0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f
};
static const float nf4_values[16] = { -1.0f,
                                      -0.6961928009986877f,
                                      -0.5250730514526367f,
                                      -0.39491748809814453f,
                                      -0.28444138169288635f,
                                      -0.18477343022823334f,
                                      -0.09105003625154495f,
                                      0.0f,
                                      0.07958029955625534f,
                                      0.16093020141124725f,
                                      0.24611230194568634f,
                                      0.33791524171829224f,
                                      0.44070982933044434f,
                                      0.5626170039176941f,
                                      0.7229568362236023f,
                                      1.0f };

/* Attributes; n and k are those of the stored weights, [n, k]. */
typedef struct form {
    int64_t n, k, block, bits, blocks;
    const float *values; /* of MatMulBnb4; else NULL */
    bool transposed;     /* the matmul is with weights^T: k is summed over */
} form;

/* Reads the attributes. The bounds keep n k 8 inside of 63 bits, which all sizes below rely on. */
static pith_status matmul_nbits_form_of(form *f, const pith__node *node, pith_error *err) {
    bool bnb4 = pith__str_is(node->op_type, "MatMulBnb4");
    *f = (form){ .n = pith__node_int(node, "N", 0),
                 .k = pith__node_int(node, "K", 0),
                 .block = pith__node_int(node, "block_size", 32),
                 .bits = bnb4 ? 4 : pith__node_int(node, "bits", 4),
                 .transposed = !bnb4 || pith__node_int(node, "transB", 1) };
    int64_t count;
    if (f->n < 1 || f->k < 1 || pith__mul_overflows(f->n, f->k, &count) || count > INT64_MAX / 8)
        return pith__fail(err, PITH_ERR_ARGUMENT, "attributes N and K are %lld and %lld",
                          (long long)f->n, (long long)f->k);
    if ((f->bits != 2 && f->bits != 4 && f->bits != 8) || f->block < 16 || f->block > 1 << 20)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%lld bits in blocks of %lld are not supported", (long long)f->bits,
                          (long long)f->block);
    f->blocks = ((bnb4 ? count : f->k) + f->block - 1) / f->block;
    if (bnb4) f->values = pith__node_int(node, "quant_type", 1) ? nf4_values : fp4_values;
    return PITH_OK;
}

static bool matmul_nbits_counts_to(const pith__type *t, int64_t count) {
    int64_t own = t ? pith__type_count(t) : -1;
    return own < 0 || own == count;
}

/* Weights, scales and zero points are checked by their number of elements only: exporters shape
 * them differently. */
static pith_status matmul_nbits_infer(pith__infer *c) {
    const pith__type *a = c->in[A], *zeros = pith__has_input(c, ZEROS) ? c->in[ZEROS] : NULL;
    form f;
    PITH_TRY(matmul_nbits_form_of(&f, c->node, c->err));
    int64_t zero_row = zeros && zeros->dtype == PITH_U8 ? (f.blocks * f.bits + 7) / 8 : f.blocks;
    bool fits = f.values
                    ? matmul_nbits_counts_to(c->in[B], (f.n * f.k + 1) / 2) &&
                          matmul_nbits_counts_to(c->in[SCALES], f.blocks)
                    : matmul_nbits_counts_to(c->in[B], f.n * f.blocks * (f.block * f.bits / 8)) &&
                          matmul_nbits_counts_to(c->in[SCALES], f.n * f.blocks) &&
                          (!zeros || matmul_nbits_counts_to(zeros, f.n * zero_row));
    const pith__type *groups = pith__has_input(c, GROUPS) ? c->in[GROUPS] : NULL;
    int64_t named = groups ? pith__type_count(groups) : -1;
    if (!fits || (named >= 0 && named < f.k) ||
        (groups && groups->dtype && groups->dtype != PITH_I32) ||
        (c->in[B]->dtype && c->in[B]->dtype != PITH_U8)) {
        return pith__op_fail(c, "weights, scales or zero points do not have the sizes that N, K "
                                "and block_size ask for");
    }
    pith__infer_set(c, 0, a->dtype, -1, NULL);
    if (a->rank < 0) return PITH_OK;
    int64_t k = f.transposed ? f.k : f.n;
    if (a->rank < 1 || (pith__dim_known(a->dims[a->rank - 1]) && a->dims[a->rank - 1] != k))
        return pith__op_fail(c, "the last axis of a is not %lld", (long long)k);
    pith__dim dims[PITH_MAX_RANK];
    for (int i = 0; i < a->rank - 1; i++) dims[i] = a->dims[i];
    dims[a->rank - 1] = f.transposed ? f.n : f.k;
    pith__infer_set(c, 0, a->dtype, a->rank, dims);
    return PITH_OK;
}

typedef struct weights {
    form f;
    pith__gemm_pack_f32_fn *pack;
    const pith_tensor *b, *scales, *zeros; /* zeros may be NULL */
    const int32_t *groups;                 /* [k] below blocks; NULL */
} weights;

typedef struct state {
    pith__product product; /* packed, if the weights are constants */
    weights w;
    int64_t k, n, panels;   /* of the matmul */
    pith__nbits_int8 *int8; /* inputs are taken in 8 bits; else NULL */
} state;

static float matmul_nbits_number_of(const pith_tensor *t, int64_t i) {
    float x;
    pith__convert(&x, PITH_F32, 0, t->data, t->dtype, i, 1, true);
    return x;
}

/* Columns [begin, end) of row j of the stored weights as floats. */
static void matmul_nbits_unpack(float *to, const weights *w, int64_t j, int64_t begin,
                                int64_t end) {
    const form *f = &w->f;
    const uint8_t *bytes = w->b->data;
    int64_t bits = f->bits, row = j * f->blocks, zero_row = (f->blocks * bits + 7) / 8, last = -1;
    unsigned mask = (1u << bits) - 1;
    float scale = 0, zero = 0;
    for (int64_t i = begin; i < end; i++) {
        if (f->values) {
            int64_t e = j * f->k + i, at = e / f->block;
            if (at != last) scale = matmul_nbits_number_of(w->scales, at);
            last = at;
            to[i - begin] = f->values[bytes[e / 2] >> (e % 2 ? 0 : 4) & 15] * scale;
            continue;
        }
        int64_t block = i / f->block, bit = i % f->block * bits,
                at = w->groups ? w->groups[i] : block;
        if (at != last) {
            scale = matmul_nbits_number_of(w->scales, row + at);
            zero = (float)(1 << (bits - 1));
            if (w->zeros && w->zeros->dtype == PITH_U8) {
                uint8_t byte = ((const uint8_t *)w->zeros->data)[j * zero_row + at * bits / 8];
                zero = (float)(byte >> (at * bits % 8) & mask);
            } else if (w->zeros) {
                zero = matmul_nbits_number_of(w->zeros, row + at);
            }
            last = at;
        }
        unsigned q = bytes[(row + block) * (f->block * bits / 8) + bit / 8] >> (bit % 8) & mask;
        to[i - begin] = ((float)q - zero) * scale;
    }
}

/* A panel of the matmul's columns; scratch: k rows of a panel. */
static void matmul_nbits_fill_panel(void *packed, const void *context, size_t part, void *scratch) {
    const weights *w = context;
    const form *f = &w->f;
    float *plain = scratch;
    int64_t k = f->transposed ? f->k : f->n, columns = f->transposed ? f->n : f->k;
    int64_t n0 = (int64_t)part * PITH_GEMM_PANEL,
            n = columns - n0 < PITH_GEMM_PANEL ? columns - n0 : PITH_GEMM_PANEL;
    if (f->transposed) {
        for (int64_t j = 0; j < n; j++) matmul_nbits_unpack(plain + j * k, w, n0 + j, 0, k);
    }
    if (!f->transposed) {
        for (int64_t i = 0; i < k; i++) matmul_nbits_unpack(plain + i * n, w, i, n0, n0 + n);
    }
    w->pack((float *)packed + n0 * k, plain, f->transposed ? 1 : n, f->transposed ? k : 1, k, n, 0,
            n);
}

static pith_status matmul_nbits_check_groups(const weights *w, const pith_tensor *groups,
                                             pith_error *err) {
    const int32_t *items = groups->data;
    for (int64_t i = 0; i < w->f.k; i++) {
        if (items[i] < 0 || items[i] >= w->f.blocks)
            return pith__fail(err, PITH_ERR_ARGUMENT, "group %d is out of range", items[i]);
    }
    return PITH_OK;
}

/* Constant weights become f32 panels once. `inputs` names all that the panels depend on. */
static pith_status matmul_nbits_pack(pith__prepare *c, state *s) {
    weights *w = &s->w;
    bool zeros = pith__has_input(c, ZEROS);
    w->b = c->in[B]->data;
    w->scales = c->in[SCALES]->data;
    w->zeros = zeros ? c->in[ZEROS]->data : NULL;
    if (pith__has_input(c, GROUPS)) {
        PITH_TRY(matmul_nbits_check_groups(w, c->in[GROUPS]->data, c->err));
        w->groups = c->in[GROUPS]->data->data;
    }
    pith__pack pack = { .layout = w->f.values ? "bnb4-f32x16" : "nbits-f32x16",
                        .inputs = 1u << B | 1u << SCALES | (zeros ? 1u << ZEROS : 0),
                        .fill = matmul_nbits_fill_panel,
                        .context = w,
                        .parts = (size_t)s->panels };
    if (pith__mul_overflows((size_t)s->product.packed_size, sizeof(float), &pack.bytes) ||
        pith__mul_overflows((size_t)s->k, PITH_GEMM_PANEL * sizeof(float), &pack.scratch))
        return pith__fail_memory(c->err, SIZE_MAX);
    return pith__prepare_pack(c, &s->product.packed, &pack);
}

/* Three ways: 8-bit inputs, if accuracy_level asks and the machine can; f32 panels of constant
 * weights; panels made anew in each run. */
static pith_status matmul_nbits_prepare(pith__prepare *c) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    PITH_TRY(matmul_nbits_form_of(&s->w.f, c->node, c->err));
    int dtype = c->in[A]->dtype;
    if (dtype != PITH_F32 && dtype != PITH_F16 && dtype != PITH_BF16)
        return pith__fail_dtype(c->err, dtype);
    bool constant = !pith__has_input(c, GROUPS) || c->in[GROUPS]->data;
    for (int i = B; i <= ZEROS && i < c->in_count; i++) {
        if (!c->in[i]) continue;
        constant &= pith__pack_can(c, i);
        if (!pith__convert_known(c->in[i]->dtype, PITH_F32))
            return pith__fail_dtype(c->err, c->in[i]->dtype);
    }
    pith__nbits_int8 int8 = { 0 };
    if (pith__nbits_int8_takes(&int8, c)) {
        s->int8 = pith__arena_array(c->arena, 1, sizeof *s->int8);
        if (!s->int8) return pith__fail_memory(c->err, sizeof *s->int8);
        *s->int8 = int8;
        s->n = int8.n;
        s->k = int8.form.k;
        c->state = s;
        return pith__nbits_int8_prepare(s->int8, c);
    }
    PITH_TRY(pith__product_prepare(&s->product, c, PITH_F32, -1, false));
    s->w.pack = s->product.pack;
    s->k = s->w.f.transposed ? s->w.f.k : s->w.f.n;
    s->n = s->w.f.transposed ? s->w.f.n : s->w.f.k;
    s->panels = (s->n + PITH_GEMM_PANEL - 1) / PITH_GEMM_PANEL;
    s->product.matrices = 1;
    s->product.packed_size = pith__gemm_f32_packed_size(s->k, s->n);
    if (s->product.packed_size < 0) return pith__fail_memory(c->err, SIZE_MAX);
    c->state = s;
    return constant ? matmul_nbits_pack(c, s) : PITH_OK;
}

enum { SKIPPED = 1 << B | 1 << SCALES | 1 << ZEROS };

/* Weights that are not constant need their panels and, per worker, one of them unpacked. The
 * scratch of conversions to f32 leaves out the weights, which have a form of their own. */
static pith_status matmul_nbits_scratch(const pith__infer *c, const void *state_, int threads,
                                        size_t *bytes) {
    const state *s = state_;
    *bytes = 0;
    int64_t workers;
    if (s->int8) {
        if (!pith__nbits_int8_scratch(s->int8, pith__type_count(c->in[A]) / s->k, bytes))
            return pith__fail_memory(c->err, SIZE_MAX);
        return pith__widen_scratch(c, SKIPPED, bytes);
    }
    if (!s->product.packed &&
        (pith__mul_overflows(s->k * PITH_GEMM_PANEL, (int64_t)threads, &workers) ||
         pith__add_overflows(workers, s->product.packed_size, &workers) ||
         pith__mul_overflows((size_t)workers, sizeof(float), bytes)))
        return pith__fail_memory(c->err, SIZE_MAX);
    return pith__widen_scratch(c, SKIPPED, bytes);
}

typedef struct job {
    const weights *w;
    float *packed, *plain;
    int64_t plain_size;
} job;

static void matmul_nbits_fill_part(void *context, size_t part, int worker) {
    const job *j = context;
    matmul_nbits_fill_panel(j->packed, j->w, part, j->plain + worker * j->plain_size);
}

/* All leading axes of a are rows of one matmul. */
static pith_status matmul_nbits_run_plain(pith__run *r) {
    const state *s = r->state;
    pith_tensor *y = r->out[0];
    const float *bias = pith__has_input(r, BIAS) ? r->in[BIAS]->data : NULL;
    if (s->int8) {
        pith__nbits_int8_run(r, s->int8, y->data, r->in[A]->data, bias,
                             pith__tensor_count(y) / s->n);
        return PITH_OK;
    }
    pith__product product = s->product;
    if (!product.packed) {
        weights w = s->w;
        w.b = r->in[B];
        w.scales = r->in[SCALES];
        w.zeros = pith__has_input(r, ZEROS) ? r->in[ZEROS] : NULL;
        if (pith__has_input(r, GROUPS)) {
            PITH_TRY(matmul_nbits_check_groups(&w, r->in[GROUPS], r->err));
            w.groups = r->in[GROUPS]->data;
        }
        float *packed = r->scratch;
        job j = { &w, packed, packed + product.packed_size, s->k * PITH_GEMM_PANEL };
        pith__run_parallel(r, matmul_nbits_fill_part, &j, (size_t)s->panels);
        product.packed = packed;
    }
    pith__product_job j = { .product = &product,
                            .a = r->in[A]->data,
                            .c = y->data,
                            .bias = bias,
                            .count = 1,
                            .m = pith__tensor_count(y) / s->n,
                            .n = s->n,
                            .k = s->k,
                            .a_row = s->k,
                            .a_column = 1 };
    pith__product_run(r, NULL, &j);
    return PITH_OK;
}

static pith_status matmul_nbits_run(pith__run *r) {
    return pith__widen_run(r, SKIPPED, matmul_nbits_run_plain);
}

static void matmul_nbits_cost(const pith__run *r, pith__cost *cost) {
    const state *s = r->state;
    pith__cost_product(cost, s->k, s->int8 ? "gemm blocks" : "gemm");
}

#define BLOCK_PRODUCT(symbol, name_, types_, attrs_, max)                                          \
    const pith__op pith__op_##symbol = { .domain = "com.microsoft",                                \
                                         .name = name_,                                            \
                                         .since = 1,                                               \
                                         .min_inputs = 3,                                          \
                                         .max_inputs = max,                                        \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = 1,                                              \
                                         .attrs = attrs_,                                          \
                                         .infer = matmul_nbits_infer,                              \
                                         .prepare = matmul_nbits_prepare,                          \
                                         .scratch = matmul_nbits_scratch,                          \
                                         .run = matmul_nbits_run,                                  \
                                         .cost = matmul_nbits_cost };
BLOCK_PRODUCT(MatMulBnb4_ms, "MatMulBnb4", "hBh",
              "K int! 1..; N int! 1..; block_size int! 0..; quant_type int! 0|1; "
              "training_mode bool = 0; transB bool = 1",
              3)
BLOCK_PRODUCT(MatMulNBits_ms, "MatMulNBits", "hBhywh",
              "K int! 1..; N int! 1..; accuracy_level int 0..4 = 0; bits int 2..8 = 4; "
              "block_size int! 0..; weight_prepacked int 0 = 0",
              6)

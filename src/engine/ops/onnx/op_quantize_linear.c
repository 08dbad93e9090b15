/* op_quantize_linear.c - QuantizeLinear and DequantizeLinear, of ai.onnx and of com.microsoft.
 *
 * y = saturate(round(x / scale) + zero_point) and back, with one scale for all, one per index of an
 * axis, or one per block along an axis. A tensor is walked in segments in which the index of the
 * scale either stays or moves with the element. Segments are computed in f32 in blocks, whatever
 * the types; f32 and 8 bits with one scale have kernels. Source: ONNX QuantizeLinear and
 * DequantizeLinear (opset 28). */
#include <math.h>

#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/quantize_loops.h"

/* BLOCK: elements converted at a time, which stay in the L1 cache. GRAIN: elements that are worth a
 * thread. */
enum { BLOCK = 256, GRAIN = 4096 };

typedef struct form {
    int64_t segments, length; /* of x */
    int64_t inner, n, block;  /* [outer, n, inner]; block: along n */
    int scale_stride;         /* inside a segment */
    enum { PER_TENSOR, PER_AXIS, PER_ROW, BLOCKED, BLOCKED_ROW } kind;
} form;

/* Which of the five forms the scales have. If the axis is the last one, a segment is a whole row
 * whose scales move with the element; otherwise it is a run of elements that share their scale.
 * Blocks are cut along the axis, and the last one may be shorter. */
static pith_status quantize_get_form(form *f, const pith__node *node, const int64_t *dims, int rank,
                                     const int64_t *scale_dims, int scale_rank, pith_error *err) {
    int64_t total = pith__dims_count(dims, rank), scales = pith__dims_count(scale_dims, scale_rank);
    int64_t block = pith__node_int(node, "block_size", 0);
    int axis = 0;
    *f = (form){ .segments = 1, .length = total, .inner = 1, .n = 1, .kind = PER_TENSOR };
    if (scales == 1 && block == 0) return PITH_OK;
    if (rank > 0) PITH_TRY(pith__axis_normalize(pith__node_int(node, "axis", 1), rank, &axis, err));
    int64_t outer = 1;
    if (rank > 0) {
        int64_t around[3];
        pith__axis_split(dims, rank, axis, around);
        outer = around[0], f->n = around[1], f->inner = around[2];
    }
    if (block == 0) {
        if (scale_rank != 1 || scales != f->n) {
            return pith__fail(err, PITH_ERR_ARGUMENT, "%lld scales for axis %d of size %lld",
                              (long long)scales, axis, (long long)f->n);
        }
        f->kind = f->inner == 1 ? PER_ROW : PER_AXIS;
        f->scale_stride = f->inner == 1;
        f->length = f->inner == 1 ? f->n : f->inner;
        f->segments = f->inner == 1 ? outer : outer * f->n;
        return PITH_OK;
    }
    bool fits = block > 0 && scale_rank == rank;
    for (int i = 0; fits && i < rank; i++) {
        fits = scale_dims[i] == (i == axis ? dims[i] / block + (dims[i] % block != 0) : dims[i]);
    }
    if (!fits)
        return pith__fail(err, PITH_ERR_ARGUMENT, "scales do not fit blocks of %lld along axis %d",
                          (long long)block, axis);
    f->block = block;
    f->kind = f->inner == 1 ? BLOCKED_ROW : BLOCKED;
    f->scale_stride = f->inner != 1;
    f->length = f->inner == 1 ? block : f->inner;
    f->segments = f->inner == 1 ? outer * (f->n / block + (f->n % block != 0)) : outer * f->n;
    return PITH_OK;
}

/* First element, length and first scale of a segment. */
static void quantize_segment_at(const form *f, int64_t i, int64_t *first, int64_t *length,
                                int64_t *scale) {
    int64_t blocks = f->block ? f->n / f->block + (f->n % f->block != 0) : 1;
    *scale = 0;
    *first = i * f->length;
    *length = f->length;
    switch (f->kind) {
    case PER_TENSOR:
    case PER_ROW: break;
    case PER_AXIS: *scale = i % f->n; break;
    case BLOCKED: *scale = (i / f->n * blocks + i % f->n / f->block) * f->inner; break;
    case BLOCKED_ROW:
        *scale = i;
        *first = i / blocks * f->n + i % blocks * f->block;
        if (f->n - i % blocks * f->block < *length) *length = f->n - i % blocks * f->block;
        break;
    }
}

typedef struct job {
    form f;
    const pith__quantize_loops *s;
    const pith_tensor *x, *scale, *zero;
    pith_tensor *y;
    double low, high; /* of an integer result */
    bool integer, saturate, quantize;
    int64_t per_part, units;
} job;

static bool quantize_is_byte(const pith_tensor *t) {
    return t->dtype == PITH_U8 || t->dtype == PITH_I8;
}

/* Does a span with one scale of the common types; false if it is another. */
static bool quantize_run_bytes(const job *j, int64_t first, int64_t n, int64_t scale_at) {
    float scale, zero = 0;
    const pith_tensor *bytes = j->quantize ? j->y : j->x, *floats = j->quantize ? j->x : j->y;
    if (j->f.scale_stride || !j->s->quantize || !quantize_is_byte(bytes) ||
        floats->dtype != PITH_F32)
        return false;
    pith__convert(&scale, PITH_F32, 0, j->scale->data, j->scale->dtype, scale_at, 1, true);
    if (j->zero)
        pith__convert(&zero, PITH_F32, 0, j->zero->data, j->zero->dtype, scale_at, 1, true);
    if (j->quantize) {
        j->s->quantize((const float *)j->x->data + first, (uint8_t *)j->y->data + first, (size_t)n,
                       scale, (float)j->low - zero, (float)j->high - zero, (int32_t)zero);
    } else {
        (j->x->dtype == PITH_I8 ? j->s->dequantize_i8 : j->s->dequantize_u8)(
            (const uint8_t *)j->x->data + first, (float *)j->y->data + first, (size_t)n, scale,
            zero);
    }
    return true;
}

/* n elements from `first` on, scales from `scale` on. */
static void quantize_run_span(const job *j, int64_t first, int64_t n, int64_t scale) {
    if (quantize_run_bytes(j, first, n, scale)) return;
    int s = j->f.scale_stride;
    double x[BLOCK], zero[BLOCK] = { 0 };
    float scales[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        pith__convert(x, PITH_F64, 0, j->x->data, j->x->dtype, first + i, m, true);
        pith__convert(scales, PITH_F32, 0, j->scale->data, j->scale->dtype, scale + i * s,
                      s ? m : 1, true);
        if (j->zero)
            pith__convert(zero, PITH_F64, 0, j->zero->data, j->zero->dtype, scale + i * s,
                          s ? m : 1, true);
        for (int64_t k = 0; k < m; k++) {
            if (j->quantize) {
                float v = (float)x[k] / scales[k * s];
                x[k] = j->integer ? (double)rintf(v) + zero[k * s] : (double)v;
                if (j->integer) {
                    const double capped = x[k] < j->high ? x[k] : j->high;
                    x[k] = x[k] > j->low ? capped : j->low;
                }
            } else {
                x[k] = (double)((float)(x[k] - zero[k * s]) * scales[k * s]);
            }
        }
        pith__convert(j->y->data, j->y->dtype, first + i, x, PITH_F64, 0, m, j->saturate);
    }
}

/* Units [begin, end): elements for one scale, else segments. */
static void quantize_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    (void)worker;
    int64_t begin = (int64_t)part * j->per_part,
            end = begin + j->per_part < j->units ? begin + j->per_part : j->units;
    if (j->f.kind == PER_TENSOR) { /* units are elements */
        quantize_run_span(j, begin, end - begin, 0);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t first, length, scale;
        quantize_segment_at(&j->f, i, &first, &length, &scale);
        quantize_run_span(j, first, length, scale);
    }
}

/* With one scale for all, elements are the unit of work, else segments. Dtypes below a byte share
 * bytes between segments and are done by one thread. */
static pith_status quantize_run_linear(pith__run *r, bool quantize) {
    job j = { .s = r->state,
              .x = r->in[0],
              .scale = r->in[1],
              .zero = pith__has_input(r, 2) ? r->in[2] : NULL,
              .y = r->out[0],
              .quantize = quantize,
              .saturate = pith__node_int(r->node, "saturate", 1) != 0 };
    PITH_TRY(quantize_get_form(&j.f, r->node, j.x->dims, j.x->rank, j.scale->dims, j.scale->rank,
                               r->err));
    if (!pith__tensor_count(j.x)) return PITH_OK;
    if (j.zero && pith__tensor_count(j.zero) != pith__tensor_count(j.scale)) {
        return pith__op_fail(r, "zero points and scales differ in number");
    }
    int bits = pith__dtype_bits(j.y->dtype);
    if (!pith__dtype_is_float(j.y->dtype)) {
        bool is_signed = j.y->dtype == PITH_I8 || j.y->dtype == PITH_I16 || j.y->dtype == PITH_I4 ||
                         j.y->dtype == PITH_I2 || j.y->dtype == PITH_I32;
        j.integer = true;
        j.low = is_signed ? -ldexp(1, bits - 1) : 0;
        j.high = ldexp(1, bits - is_signed) - 1;
    }
    j.units = j.f.kind == PER_TENSOR ? j.f.length : j.f.segments;
    j.per_part = pith__run_chunk(r, j.units, j.f.kind == PER_TENSOR ? 1 : j.f.length, GRAIN);
    if (j.f.kind == PER_TENSOR) j.per_part = (j.per_part + 7) & ~(int64_t)7;
    if (j.f.kind != PER_TENSOR && (bits < 8 || pith__dtype_bits(j.x->dtype) < 8))
        j.per_part = j.units; /* bytes are shared */
    pith__tensor_clear_tail(j.y);
    pith__run_parallel(r, quantize_run_part, &j, (size_t)((j.units + j.per_part - 1) / j.per_part));
    return PITH_OK;
}

static pith_status quantize_check_form(pith__infer *c) {
    form f;
    if (!pith__type_concrete(c->in[0]) || !pith__type_concrete(c->in[1])) return PITH_OK;
    return quantize_get_form(&f, c->node, c->in[0]->dims, c->in[0]->rank, c->in[1]->dims,
                             c->in[1]->rank, c->err);
}

static pith_status quantize_infer(pith__infer *c) {
    int named = pith__node_choice(c->node, "output_dtype", 0);
    int dtype = named ? named : PITH_U8;
    if (pith__has_input(c, 2)) dtype = c->in[2]->dtype;
    if (named && pith__has_input(c, 2) && dtype && named != dtype) {
        return pith__op_fail(c, "output_dtype %d is not the zero point's", named);
    }
    if (dtype && !pith__convert_known(PITH_F64, dtype)) return pith__fail_dtype(c->err, dtype);
    pith__infer_set(c, 0, dtype, c->in[0]->rank, c->in[0]->dims);
    return quantize_check_form(c);
}

/* The result has the dtype of the scale unless output_dtype names one. */
static pith_status quantize_infer_dequantize(pith__infer *c) {
    int named = pith__node_choice(c->node, "output_dtype", 0);
    PITH_TRY(pith__infer_equal_dtypes(c, 2, 2));
    if (pith__has_input(c, 2) && c->in[2]->dtype && c->in[0]->dtype &&
        c->in[2]->dtype != c->in[0]->dtype) {
        return pith__op_fail(c, "zero point has dtype %s, input %s",
                             pith__dtype_name(c->in[2]->dtype), pith__dtype_name(c->in[0]->dtype));
    }
    int dtype = named ? named : c->in[1]->dtype;
    if (dtype && !pith__convert_known(PITH_F64, dtype)) return pith__fail_dtype(c->err, dtype);
    pith__infer_set(c, 0, dtype, c->in[0]->rank, c->in[0]->dims);
    return quantize_check_form(c);
}

static pith_status quantize_prepare_any(pith__prepare *c) {
    for (int i = 0; i < c->in_count; i++) {
        if (c->in[i] && !pith__convert_known(c->in[i]->dtype, PITH_F64))
            return pith__fail_dtype(c->err, c->in[i]->dtype);
    }
    pith__quantize_loops *s;
    return pith__quantize_loops_find(c, &s);
}

static pith_status quantize_run(pith__run *r) { return quantize_run_linear(r, true); }
static pith_status quantize_run_dequantize(pith__run *r) { return quantize_run_linear(r, false); }

#define LINEAR(symbol, types_, domain_, name_, since_, newest_, attrs_, infer_, run_)              \
    const pith__op pith__op_##symbol = { .domain = domain_,                                        \
                                         .name = name_,                                            \
                                         .since = since_,                                          \
                                         .min_inputs = 2,                                          \
                                         .max_inputs = 3,                                          \
                                         .max_outputs = 1,                                         \
                                         .types = types_,                                          \
                                         .newest = newest_,                                        \
                                         .attrs = attrs_,                                          \
                                         .infer = infer_,                                          \
                                         .prepare = quantize_prepare_any,                          \
                                         .run = run_ };
LINEAR(DequantizeLinear, "QEQ", "", "DequantizeLinear", 10, 28,
       "axis int = 1 @13; block_size int 0.. = 0 @21; output_dtype dtype = 0 @23",
       quantize_infer_dequantize, quantize_run_dequantize)
LINEAR(DequantizeLinear_ms, "QEQ", "com.microsoft", "DequantizeLinear", 1, 1, "axis int",
       quantize_infer_dequantize, quantize_run_dequantize)
LINEAR(QuantizeLinear, "oEQ", "", "QuantizeLinear", 10, 28,
       "axis int = 1 @13; block_size int 0.. = 0 @21; output_dtype dtype = 0 @21; "
       "precision dtype = 0 @23; saturate bool = 1 @19",
       quantize_infer, quantize_run)
LINEAR(QuantizeLinear_ms, "oEQ", "com.microsoft", "QuantizeLinear", 1, 1, "axis int",
       quantize_infer, quantize_run)

/* widen_types.c - see widen_types.h. */
#include "engine/ops/shared/widen_types.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "engine/kernels/convert.h"

/* The most inputs and outputs of an operator that is computed in a wider type; GRAIN: elements that
 * are worth a thread. */
enum { MAX_IN = 16, MAX_OUT = 8, GRAIN = 16384 };

/* What a dtype is converted to; 0: it stays. */
typedef int wide_fn(int dtype);

static int widen_wide_half(int dtype) {
    return dtype == PITH_F16 || dtype == PITH_BF16 ? PITH_F32 : 0;
}

static int widen_wide_f64(int dtype) {
    return widen_wide_half(dtype) || dtype == PITH_F32 ? PITH_F64 : 0;
}

static int widen_wide_packed(int dtype) {
    int bits = pith__dtype_bits(dtype);
    return bits && bits < 8 ? PITH_U8 : 0;
}

/* Packed types are patterns of bits. */
static int widen_pattern(int dtype) {
    int bits = pith__dtype_bits(dtype);
    if (bits == 4) return PITH_U4;
    return bits == 2 ? PITH_U2 : dtype;
}

static bool widen_add_type(const pith__type *t, wide_fn *wide, size_t *bytes) {
    size_t own;
    if (!t || !wide(t->dtype)) return true;
    return pith__dtype_bytes(wide(t->dtype), pith__type_count(t), &own) &&
           !pith__add_overflows(*bytes, own + 64, bytes);
}

static pith_status widen_scratch_as(const pith__infer *c, wide_fn *wide, uint32_t skip,
                                    size_t *bytes) {
    bool fits = c->in_count <= MAX_IN && c->out_count <= MAX_OUT;
    for (int i = 0; fits && i < c->in_count; i++)
        fits = (skip >> i & 1) || widen_add_type(c->in[i], wide, bytes);
    for (int i = 0; fits && i < c->out_count; i++) fits = widen_add_type(&c->out[i], wide, bytes);
    return fits ? PITH_OK : pith__fail_memory(c->err, SIZE_MAX);
}

pith_status pith__widen_scratch(const pith__infer *c, uint32_t skip, size_t *bytes) {
    return widen_scratch_as(c, widen_wide_half, skip, bytes);
}

pith_status pith__widen_scratch_to(const pith__infer *c, int compute, uint32_t skip,
                                   size_t *bytes) {
    return widen_scratch_as(c, compute == PITH_F64 ? widen_wide_f64 : widen_wide_half, skip, bytes);
}

pith_status pith__unpack_scratch(const pith__infer *c, size_t *bytes) {
    return widen_scratch_as(c, widen_wide_packed, 0, bytes);
}

typedef struct job {
    const pith_tensor *from, *to;
    int64_t total, per_part;
} job;

static void widen_convert_part(void *context, size_t part, int worker) {
    const job *j = context;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part,
            n = j->total - first < j->per_part ? j->total - first : j->per_part;
    pith__convert(j->to->data, widen_pattern(j->to->dtype), first, j->from->data,
                  widen_pattern(j->from->dtype), first, n, true);
}

static void widen_convert(pith__run *r, const pith_tensor *to, const pith_tensor *from) {
    job j = { from, to, pith__tensor_count(from), 0 };
    if (j.total == 0) return;
    pith__tensor_clear_tail(to);
    /* packed elements share bytes */
    j.per_part = (pith__run_chunk(r, j.total, 1, GRAIN) + 7) & ~(int64_t)7;
    pith__run_parallel(r, widen_convert_part, &j,
                       (size_t)((j.total + j.per_part - 1) / j.per_part));
}

/* The wide form of t, its data taken from *next. */
static void widen_take(pith_tensor *wide, const pith_tensor *t, int dtype, char **next) {
    *wide = *t;
    wide->dtype = dtype;
    wide->bytes = (size_t)pith__tensor_count(t) * (size_t)pith__dtype_bits(dtype) / 8;
    wide->data = *next;
    *next += pith__round64(wide->bytes);
}

/* Runs an operator on copies: inputs of narrow types are widened, outputs computed wide and rounded
 * once at the end. skip has a bit for each input that the operator reads as it is. */
static pith_status widen_run_as(pith__run *r, wide_fn *wide, uint32_t skip,
                                pith_status (*run)(pith__run *r)) {
    pith_tensor wide_in[MAX_IN], wide_out[MAX_OUT], *out[MAX_OUT];
    const pith_tensor *in[MAX_IN];
    char *next = r->scratch;
    bool any = false;
    for (int i = 0; i < r->in_count; i++) any |= r->in[i] && wide(r->in[i]->dtype);
    for (int i = 0; i < r->out_count; i++) any |= r->out[i] && wide(r->out[i]->dtype);
    if (!any) return run(r);
    for (int i = 0; i < r->in_count; i++) {
        in[i] = r->in[i];
        if (!in[i] || (skip >> i & 1) || !wide(in[i]->dtype)) continue;
        widen_take(&wide_in[i], in[i], wide(in[i]->dtype), &next);
        widen_convert(r, &wide_in[i], in[i]);
        in[i] = &wide_in[i];
    }
    for (int i = 0; i < r->out_count; i++) {
        out[i] = r->out[i];
        if (!out[i] || !wide(out[i]->dtype)) continue;
        widen_take(&wide_out[i], out[i], wide(out[i]->dtype), &next);
        out[i] = &wide_out[i];
    }
    pith__run inner = *r;
    inner.in = in;
    inner.out = out;
    inner.scratch = next;
    PITH_TRY(run(&inner));
    for (int i = 0; i < r->out_count; i++) {
        if (out[i] != r->out[i]) widen_convert(r, r->out[i], out[i]);
    }
    return PITH_OK;
}

pith_status pith__widen_run(pith__run *r, uint32_t skip, pith_status (*run)(pith__run *r)) {
    return widen_run_as(r, widen_wide_half, skip, run);
}

pith_status pith__widen_run_to(pith__run *r, int compute, uint32_t skip,
                               pith_status (*run)(pith__run *r)) {
    return widen_run_as(r, compute == PITH_F64 ? widen_wide_f64 : widen_wide_half, skip, run);
}

pith_status pith__unpack_run(pith__run *r, pith_status (*run)(pith__run *r)) {
    return widen_run_as(r, widen_wide_packed, 0, run);
}

pith_status pith__widen_scratch_only(const pith__infer *c, const void *state, int threads,
                                     size_t *bytes) {
    (void)state;
    (void)threads;
    *bytes = 0;
    return pith__widen_scratch(c, 0, bytes);
}

/* widen.c - see widen.h. */
#include "ops/widen.h"

#include "base/checked.h"
#include "kernels/convert.h"

enum { MAX_IN = 16, MAX_OUT = 8, GRAIN = 16384 };

static bool is_half(int dtype) { return dtype == PITH_F16 || dtype == PITH_BF16; }

static bool add_type(const pith_type *t, size_t *bytes) {
    size_t own;
    if (!t || !is_half(t->dtype)) return true;
    return pith_dtype_bytes(PITH_F32, pith_type_count(t), &own) && !pith_add_overflows(*bytes, own + 64, bytes);
}

pith_status pith_widen_scratch(const pith_infer *c, uint32_t skip, size_t *bytes) {
    bool fits = c->in_count <= MAX_IN && c->out_count <= MAX_OUT;
    for (int i = 0; fits && i < c->in_count; i++) fits = (skip >> i & 1) || add_type(c->in[i], bytes);
    for (int i = 0; fits && i < c->out_count; i++) fits = add_type(&c->out[i], bytes);
    return fits ? PITH_OK : pith_fail_memory(c->err, SIZE_MAX);
}

typedef struct job {
    const pith_tensor *from, *to;
    int64_t total, per_part;
} job;

static void convert_part(void *context, size_t part, int worker) {
    const job *j = context;
    (void)worker;
    int64_t first = (int64_t)part * j->per_part, n = j->total - first < j->per_part ? j->total - first : j->per_part;
    pith_convert(j->to->data, j->to->dtype, first, j->from->data, j->from->dtype, first, n, true);
}

static void convert(pith_run *r, const pith_tensor *to, const pith_tensor *from) {
    job j = { from, to, pith_tensor_count(from), 0 };
    if (j.total == 0) return;
    j.per_part = pith_run_chunk(r, j.total, 1, GRAIN);
    pith_run_parallel(r, convert_part, &j, (size_t)((j.total + j.per_part - 1) / j.per_part));
}

/* The f32 form of t, its data taken from *next. */
static void take(pith_tensor *wide, const pith_tensor *t, char **next) {
    *wide = *t;
    wide->dtype = PITH_F32;
    wide->bytes = (size_t)pith_tensor_count(t) * sizeof(float);
    wide->data = *next;
    *next += (wide->bytes + 63) & ~(size_t)63;
}

pith_status pith_widen_run(pith_run *r, uint32_t skip, pith_status (*run)(pith_run *r)) {
    pith_tensor wide_in[MAX_IN], wide_out[MAX_OUT], *out[MAX_OUT];
    const pith_tensor *in[MAX_IN];
    char *next = r->scratch;
    bool any = false;
    for (int i = 0; i < r->in_count; i++) any |= r->in[i] && is_half(r->in[i]->dtype);
    for (int i = 0; i < r->out_count; i++) any |= r->out[i] && is_half(r->out[i]->dtype);
    if (!any) return run(r);
    for (int i = 0; i < r->in_count; i++) {
        in[i] = r->in[i];
        if (!in[i] || (skip >> i & 1) || !is_half(in[i]->dtype)) continue;
        take(&wide_in[i], in[i], &next);
        convert(r, &wide_in[i], in[i]);
        in[i] = &wide_in[i];
    }
    for (int i = 0; i < r->out_count; i++) {
        out[i] = r->out[i];
        if (!out[i] || !is_half(out[i]->dtype)) continue;
        take(&wide_out[i], out[i], &next);
        out[i] = &wide_out[i];
    }
    pith_run inner = *r;
    inner.in = in;
    inner.out = out;
    inner.scratch = next;
    PITH_TRY(run(&inner));
    for (int i = 0; i < r->out_count; i++) {
        if (out[i] != r->out[i]) convert(r, r->out[i], out[i]);
    }
    return PITH_OK;
}

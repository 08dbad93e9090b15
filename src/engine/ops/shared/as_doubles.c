/* as_doubles.c - see as_doubles.h. */
#include "engine/ops/shared/as_doubles.h"

#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"

static bool is_number(int dtype) {
    int part = pith_part_dtype(dtype);
    return part == PITH_F64 || pith_convert_known(part, PITH_F64);
}

static pith_status wide_add_type(const pith_infer *c, const pith_type *type, size_t *bytes) {
    if (!type || !pith_type_concrete(type) || !is_number(type->dtype)) return PITH_OK;
    size_t more;
    if (!pith_dtype_bytes(pith_parts(type->dtype) > 1 ? PITH_C128 : PITH_F64, pith_type_count(type), &more) ||
        pith_add_overflows(*bytes, more, bytes) || pith_add_overflows(*bytes, (size_t)64, bytes))
        return pith_fail(c->err, PITH_ERR_MEMORY, "tensors are too large");
    return PITH_OK;
}

pith_status pith_wide_scratch(const pith_infer *c, const void *state, int threads, size_t *bytes) {
    (void)state, (void)threads;
    *bytes = 64;
    for (int i = 0; i < c->in_count && i < PITH_WIDE_MAX; i++) PITH_TRY(wide_add_type(c, c->in[i], bytes));
    for (int i = 0; i < c->out_count && i < PITH_WIDE_MAX; i++) PITH_TRY(wide_add_type(c, &c->out[i], bytes));
    return PITH_OK;
}

static int64_t count_parts(const pith_tensor *t) { return pith_tensor_count(t) * pith_parts(t->dtype); }

static double *wide_take(char **at, const pith_tensor *t) {
    if (!t || !is_number(t->dtype)) return NULL;
    double *array = (double *)*at;
    *at += pith_round64((size_t)count_parts(t) * sizeof *array);
    return array;
}

void pith_wide_open(pith_wide *w, const pith_run *r) {
    char *at = r->scratch;
    memset(w, 0, sizeof *w);
    for (int i = 0; i < r->in_count && i < PITH_WIDE_MAX; i++) {
        w->in[i] = wide_take(&at, r->in[i]);
        if (w->in[i])
            pith_convert(w->in[i], PITH_F64, 0, r->in[i]->data, pith_part_dtype(r->in[i]->dtype), 0,
                         count_parts(r->in[i]), true);
    }
    for (int i = 0; i < r->out_count && i < PITH_WIDE_MAX; i++) {
        w->out[i] = wide_take(&at, r->out[i]);
        if (w->out[i]) memset(w->out[i], 0, (size_t)count_parts(r->out[i]) * sizeof(double));
    }
    w->rest = at;
}

void pith_wide_close(const pith_wide *w, const pith_run *r) {
    for (int i = 0; i < r->out_count && i < PITH_WIDE_MAX; i++)
        if (w->out[i])
            pith_convert(r->out[i]->data, pith_part_dtype(r->out[i]->dtype), 0, w->out[i], PITH_F64, 0,
                         count_parts(r->out[i]), true);
}

/* as_doubles.c - see as_doubles.h. */
#include "engine/ops/shared/as_doubles.h"

#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/infer_shapes.h"

static bool wide_is_number(int dtype) {
    int part = pith__part_dtype(dtype);
    return part == PITH_F64 || pith__convert_known(part, PITH_F64);
}

static pith_status wide_add_type(const pith__infer *c, const pith__type *type, size_t *bytes) {
    if (!type || !pith__type_concrete(type) || !wide_is_number(type->dtype)) return PITH_OK;
    size_t more;
    if (!pith__dtype_bytes(pith__parts(type->dtype) > 1 ? PITH_C128 : PITH_F64,
                           pith__type_count(type), &more) ||
        pith__add_overflows(*bytes, more, bytes) || pith__add_overflows(*bytes, (size_t)64, bytes))
        return pith__fail(c->err, PITH_ERR_MEMORY, "tensors are too large");
    return PITH_OK;
}

pith_status pith__wide_scratch(const pith__infer *c, const void *state, int threads,
                               size_t *bytes) {
    (void)state, (void)threads;
    *bytes = 64;
    for (int i = 0; i < c->in_count && i < PITH_WIDE_MAX; i++)
        PITH_TRY(wide_add_type(c, c->in[i], bytes));
    for (int i = 0; i < c->out_count && i < PITH_WIDE_MAX; i++)
        PITH_TRY(wide_add_type(c, &c->out[i], bytes));
    return PITH_OK;
}

static int64_t wide_count_parts(const pith_tensor *t) {
    return pith__tensor_count(t) * pith__parts(t->dtype);
}

static double *wide_take(char **at, const pith_tensor *t) {
    if (!t || !wide_is_number(t->dtype)) return NULL;
    double *array = (double *)*at;
    *at += pith__round64((size_t)wide_count_parts(t) * sizeof *array);
    return array;
}

pith_status pith__run_convert(const pith__run *r, void *to, int to_dtype, const void *from,
                              int from_dtype, int64_t count) {
    for (int64_t at = 0, n; at < count; at += n) {
        n = count - at < PITH_LOOK_STEPS ? count - at : PITH_LOOK_STEPS;
        PITH_TRY(pith__run_look(r));
        pith__convert(to, to_dtype, at, from, from_dtype, at, n, true);
    }
    return PITH_OK;
}

/* Complex numbers count as two doubles. Outputs begin as zero, so that operators can add to them.
 */
pith_status pith__wide_open(pith__wide *w, const pith__run *r) {
    char *at = r->scratch;
    memset(w, 0, sizeof *w);
    for (int i = 0; i < r->in_count && i < PITH_WIDE_MAX; i++) {
        w->in[i] = wide_take(&at, r->in[i]);
        if (w->in[i])
            PITH_TRY(pith__run_convert(r, w->in[i], PITH_F64, r->in[i]->data,
                                       pith__part_dtype(r->in[i]->dtype),
                                       wide_count_parts(r->in[i])));
    }
    for (int i = 0; i < r->out_count && i < PITH_WIDE_MAX; i++) {
        w->out[i] = wide_take(&at, r->out[i]);
        if (w->out[i])
            PITH_TRY(pith__run_bytes(r, w->out[i], NULL,
                                     (size_t)wide_count_parts(r->out[i]) * sizeof(double)));
    }
    w->rest = at;
    return PITH_OK;
}

pith_status pith__wide_close(const pith__wide *w, const pith__run *r) {
    for (int i = 0; i < r->out_count && i < PITH_WIDE_MAX; i++)
        if (w->out[i])
            PITH_TRY(pith__run_convert(r, r->out[i]->data, pith__part_dtype(r->out[i]->dtype),
                                       w->out[i], PITH_F64, wide_count_parts(r->out[i])));
    return PITH_OK;
}

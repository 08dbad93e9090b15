/* fourier_transform.c - see fourier_transform.h. */
#include "engine/ops/shared/fourier_transform.h"

#include "base/checked.h"

/* x, y, rest and roots of a transform, each of n pairs of doubles at most. */
enum { ARRAYS = 4 };

pith_status pith__transform_init(pith__transform *t, const pith__run *run, char *memory, int64_t n,
                                 bool single) {
    size_t bytes = (size_t)n * 2 * sizeof(double);
    *t = (pith__transform){ .n = n,
                            .x = memory,
                            .y = memory + bytes,
                            .rest = memory + 2 * bytes,
                            .roots = memory + 3 * bytes,
                            .run = run,
                            .single = single };
    t->fft = t->single ? pith__k_fft_f32 : pith__k_fft_f64;
    (t->single ? pith__k_fft_roots_f32 : pith__k_fft_roots_f64)(t->roots, n, run->exec->stop);
    return pith__run_look(run);
}

pith_status pith__transform_run(pith__transform *t, bool inverse) {
    t->fft(t->y, t->x, t->rest, t->roots, t->n, inverse, t->run->exec->stop);
    if (inverse) {
        for (int64_t i = 0; i < 2 * t->n; i++) {
            PITH_TRY(pith__run_step(t->run, i));
            if (t->single)
                ((float *)t->y)[i] *= 1.0f / (float)t->n;
            else
                ((double *)t->y)[i] /= (double)t->n;
        }
    }
    return PITH_OK;
}

pith_status pith__transform_bytes(const pith__infer *c, pith__dim n, size_t *bytes) {
    size_t more;
    if (!pith__dim_known(n) || n < 0) return PITH_OK;
    if (pith__mul_overflows((size_t)n, ARRAYS * 2 * sizeof(double), &more) ||
        pith__add_overflows(*bytes, more, bytes))
        return pith__fail(c->err, PITH_ERR_MEMORY, "length %lld is too large", (long long)n);
    return PITH_OK;
}

int64_t pith__transform_index(const pith_tensor *t) {
    return t->dtype == PITH_I32 ? *(const int32_t *)t->data : *(const int64_t *)t->data;
}

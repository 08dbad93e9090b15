/* k_train.c - see train.h. A head's 16 components are one vector. */
#include "engine/kernels/train.h"

#include <math.h>

#include "engine/kernels/vec.h"
#include "engine/kernels/vmath.h"

PITH_INLINE float head_dot(const float *a, const float *b, int64_t n) {
    vf sum = vf_mul(vf_load(a), vf_load(b));
    for (int64_t i = 16; i < n; i += 16) sum = vf_fma(vf_load(a + i), vf_load(b + i), sum);
    return vf_sum(sum);
}

PITH_INLINE void head_add(float *y, float factor, const float *x, int64_t n) {
    const vf f = vf_set1(factor);
    for (int64_t i = 0; i < n; i += 16) vf_store(y + i, vf_fma(f, vf_load(x + i), vf_load(y + i)));
}

/* Softmax of n numbers in place. */
static void share_softmax(float *p, int64_t n) {
    vf top = vf_set1(-INFINITY), sum = vf_zero();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) top = vf_max(vf_load(p + i), top);
    if (i < n)
        top = vf_select(vm_first((size_t)(n - i)), vf_max(vf_load_n(p + i, (size_t)(n - i)), top),
                        top);
    const vf most = vf_set1(vf_hmax(top));
    for (i = 0; i + 16 <= n; i += 16) {
        const vf e = vf_exp(vf_sub(vf_load(p + i), most));
        vf_store(p + i, e);
        sum = vf_add(sum, e);
    }
    if (i < n) {
        const size_t rest = (size_t)(n - i);
        const vf e = vf_keep(vm_first(rest), vf_exp(vf_sub(vf_load_n(p + i, rest), most)));
        vf_store_n(p + i, e, rest);
        sum = vf_add(sum, e);
    }
    const vf factor = vf_set1(1.0f / vf_sum(sum));
    for (i = 0; i + 16 <= n; i += 16) vf_store(p + i, vf_mul(vf_load(p + i), factor));
    if (i < n)
        vf_store_n(p + i, vf_mul(vf_load_n(p + i, (size_t)(n - i)), factor), (size_t)(n - i));
}

void PITH_K(key_attention_f32)(const pith__key_attention *a) {
    const int64_t row = 3 * a->dim, heads = a->dim / a->head, pairs = a->begin[a->cells];
    const float scale = 1.0f / sqrtf((float)a->head);
    for (int64_t i = 0; i < a->cells; i++) {
        const uint32_t *keys = a->keys + a->begin[i];
        const int64_t n = a->begin[i + 1] - a->begin[i];
        for (int64_t h = 0; h < heads; h++) {
            const float *q = a->qkv + i * row + h * a->head;
            float *p = a->share + h * pairs + a->begin[i], *o = a->out + i * a->dim + h * a->head;
            for (int64_t j = 0; j < n; j++)
                p[j] = scale * head_dot(q, a->qkv + keys[j] * row + a->dim + h * a->head, a->head);
            share_softmax(p, n);
            for (int64_t c = 0; c < a->head; c += 16) vf_store(o + c, vf_zero());
            for (int64_t j = 0; j < n; j++)
                head_add(o, p[j], a->qkv + keys[j] * row + 2 * a->dim + h * a->head, a->head);
        }
    }
}

/* With p the softmax and s the scores: d_v = p d_o, d_p = d_o . v, and d_s = p (d_p - sum of p
 * d_p). That sum over the keys equals o . d_o, which needs no pass of its own. Gradients of keys
 * and values are added up, because a cell is a key of several others; cells go in order, so the
 * sums do too. */
void PITH_K(key_attention_back_f32)(const pith__key_attention *a) {
    const int64_t row = 3 * a->dim, heads = a->dim / a->head, pairs = a->begin[a->cells];
    const float scale = 1.0f / sqrtf((float)a->head);
    for (int64_t i = 0; i < a->cells; i++) {
        const uint32_t *keys = a->keys + a->begin[i];
        const int64_t n = a->begin[i + 1] - a->begin[i];
        for (int64_t h = 0; h < heads; h++) {
            const int64_t at = h * a->head;
            const float *q = a->qkv + i * row + at, *d_o = a->d_out + i * a->dim + at;
            const float *p = a->share + h * pairs + a->begin[i];
            /* The sum of p[j] d_p[j] is o . d_o. */
            const float mean = head_dot(a->out + i * a->dim + at, d_o, a->head);
            for (int64_t j = 0; j < n; j++) {
                const int64_t key = keys[j] * row + at;
                const float d_p = head_dot(d_o, a->qkv + key + 2 * a->dim, a->head);
                const float d_s = p[j] * (d_p - mean) * scale;
                head_add(a->d_qkv + key + 2 * a->dim, p[j], d_o, a->head);
                head_add(a->d_qkv + i * row + at, d_s, a->qkv + key + a->dim, a->head);
                head_add(a->d_qkv + key + a->dim, d_s, q, a->head);
            }
        }
    }
}

/* y = x * inv * gamma, where inv depends on all x of the row: d_x = gamma d_y inv - x inv^3 / n *
 * (sum of gamma d_y x). */
void PITH_K(rms_norm_back_f32)(const float *x, const float *inverse, const float *gamma,
                               const float *d_y, float *d_x, float *d_gamma, int64_t rows,
                               int64_t n) {
    for (int64_t r = 0; r < rows; r++, x += n, d_y += n, d_x += n) {
        vf sum = vf_zero();
        for (int64_t i = 0; i < n; i += 16)
            sum = vf_fma(vf_mul(vf_load(gamma + i), vf_load(d_y + i)), vf_load(x + i), sum);
        const vf inv = vf_set1(inverse[r]);
        const vf pull = vf_set1(-vf_sum(sum) * inverse[r] * inverse[r] * inverse[r] / (float)n);
        for (int64_t i = 0; i < n; i += 16) {
            const vf xi = vf_load(x + i), dy = vf_load(d_y + i);
            const vf own = vf_fma(vf_mul(vf_load(gamma + i), dy), inv, vf_mul(xi, pull));
            vf_store(d_x + i, vf_add(vf_load(d_x + i), own));
            vf_store(d_gamma + i, vf_fma(vf_mul(xi, inv), dy, vf_load(d_gamma + i)));
        }
    }
}

void PITH_K(swiglu_f32)(const float *x, float *y, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++, x += 2 * n, y += n)
        for (int64_t i = 0; i < n; i += 16)
            vf_store(y + i, vf_mul(vf_silu(vf_load(x + i)), vf_load(x + n + i)));
}

void PITH_K(swiglu_back_f32)(const float *x, const float *d_y, float *d_x, int64_t rows,
                             int64_t n) {
    const vf one = vf_set1(1.0f);
    for (int64_t r = 0; r < rows; r++, x += 2 * n, d_x += 2 * n, d_y += n) {
        for (int64_t i = 0; i < n; i += 16) {
            const vf gate = vf_load(x + i), up = vf_load(x + n + i), dy = vf_load(d_y + i),
                     s = vf_sigmoid(gate);
            const vf silu = vf_mul(gate, s);
            /* silu' = s + silu * (1 - s) */
            vf_store(d_x + i, vf_mul(vf_mul(dy, up), vf_fma(silu, vf_sub(one, s), s)));
            vf_store(d_x + n + i, vf_mul(dy, silu));
        }
    }
}

void PITH_K(adamw_f32)(const pith__adamw *a, int64_t n) {
    const vf b1 = vf_set1(a->beta1), c1 = vf_set1(1.0f - a->beta1), b2 = vf_set1(a->beta2),
             c2 = vf_set1(1.0f - a->beta2);
    const vf keep = vf_set1(1.0f - a->rate * a->decay), rate = vf_set1(a->rate1),
             fix = vf_set1(a->fix2);
    for (int64_t i = 0; i < n; i += 16) {
        const size_t k = n - i < 16 ? (size_t)(n - i) : 16;
        const vf g = vf_mul(vf_load_n(a->g + i, k), vf_set1(a->g_scale));
        const vf m = vf_fma(b1, vf_load_n(a->m + i, k), vf_mul(c1, g));
        const vf v = vf_fma(b2, vf_load_n(a->v + i, k), vf_mul(c2, vf_mul(g, g)));
        const vf down = vf_add(vf_sqrt(vf_mul(v, fix)), vf_set1(a->epsilon));
        vf_store_n(a->m + i, m, k);
        vf_store_n(a->v + i, v, k);
        vf_store_n(a->w + i,
                   vf_sub(vf_mul(vf_load_n(a->w + i, k), keep), vf_div(vf_mul(rate, m), down)), k);
    }
}

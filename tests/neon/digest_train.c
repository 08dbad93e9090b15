/* digest_train.c - the kernels of engine/kernels/train.h on fixed input. */
#include "kernel_digest.h"

#include "engine/kernels/train.h"

/* Cells with one key to twenty. The backward pass reads any numbers as the forward pass's results.
 */
static void run_key_attention(const call *c) {
    enum { CELLS = 5, MOST = 20 };
    static uint32_t begin[CELLS + 1], keys[CELLS * MOST];
    pith__key_attention a = {
        .qkv = y, .begin = begin, .keys = keys, .cells = CELLS, .head = c->round % 2 ? 32 : 16
    };
    a.dim = 2 * a.head;
    for (uint32_t i = 0; i < CELLS; i++)
        begin[i + 1] = begin[i] + 1 + ((uint32_t)c->round + 7 * i) % MOST;
    for (uint32_t j = 0; j < begin[CELLS]; j++) keys[j] = (j * 3 + j / 4) % CELLS;
    if (is(c, "key_attention")) {
        a.out = out, a.share = out + CELLS * a.dim;
    } else {
        a.out = z, a.share = z + CELLS * a.dim, a.d_out = y + N;
        a.d_qkv = out;
    }
    ((pith__key_attention_fn *)c->fn)(&a);
}

int run_train(const call *c) {
    enum { ROWS = 3 };
    const int64_t n = 16 * (1 + c->round % 6), all = ROWS * n;
    if (is(c, "key_attention") || is(c, "key_attention_back")) {
        run_key_attention(c);
    } else if (is(c, "rms_norm_back")) {
        memcpy(out, z + N, (size_t)(all + n) * sizeof *out); /* gradients are added */
        ((pith__rms_norm_back_fn *)c->fn)(y, z, z + 100, y + N, out, out + all, ROWS, n);
    } else if (is(c, "swiglu")) {
        ((pith__swiglu_fn *)c->fn)(x, out, ROWS, n);
    } else if (is(c, "swiglu_back")) {
        ((pith__swiglu_back_fn *)c->fn)(x, y, out, ROWS, n);
    } else if (is(c, "adamw")) {
        const int64_t count = 1 + 5 * c->round;
        const float rate = 0.01f, beta1 = 0.9f, beta2 = 0.999f;
        pith__adamw a = {
            .w = out, .m = out + count, .v = out + 2 * count, .g = y, .g_scale = 0.25f
        };
        a.beta1 = beta1, a.beta2 = beta2, a.rate = rate, a.decay = 0.1f, a.epsilon = 1e-8f;
        a.rate1 = rate * 10.0f / (float)(1 + c->round), a.fix2 = 1000.0f / (float)(1 + c->round);
        for (int64_t i = 0; i < count; i++)
            a.w[i] = z[i], a.m[i] = y[N + i], a.v[i] = y[N + i] * y[N + i];
        ((pith__adamw_fn *)c->fn)(&a, count);
    } else {
        return 0;
    }
    return 1;
}

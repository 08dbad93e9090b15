/* Conversions to 8 and 16 bits and windows tap by tap: every level gives the bits of the plain loops, and touches no
 * byte beside its arrays. */
#include "kernel_test.h"

#include <math.h>

#include "base/half.h"
#include "kernels/small.h"
#include "kernels/taps.h"

enum { LENGTHS = 70 };

#define FIND(type, family, suffix, level) PITH_KERNEL_FIND(type, family, suffix, (pith_isa)(level))

static void halves(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int64_t n = 0; level_usable(level) && n < LENGTHS; n++) {
            guarded x = guarded_floats(n), wide = guarded_floats(n), small = guarded_alloc((size_t)n * 2, n & 1);
            float *p = x.data, *back = wide.data;
            uint16_t *h = small.data;
            fill_floats(p, n);
            for (int64_t i = 0; i < n; i++) p[i] *= i % 3 ? 1.0f : 0x1p-20f; /* subnormal halves too */
            FIND(pith_narrow_f16_fn, "narrow", PITH_F16, level)(p, h, (size_t)n);
            FIND(pith_widen_f16_fn, "widen", PITH_F16, level)(h, back, (size_t)n);
            for (int64_t i = 0; i < n; i++) {
                if (isnan(p[i])) {
                    assert_true(isnan(back[i]));
                    continue;
                }
                assert_int_equal(h[i], pith_f16_of_f32(p[i]));
                assert_true(same_float(back[i], pith_f32_of_f16(h[i])));
            }
            guarded_free(x), guarded_free(wide), guarded_free(small);
        }
    }
}

static void bytes(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int64_t n = 0; level_usable(level) && n < LENGTHS; n++) {
            guarded x = guarded_floats(n), back = guarded_floats(n), q = guarded_alloc((size_t)n, n & 1);
            float *p = x.data, *y = back.data, scale = 0.03f + random_float() * 0.01f;
            uint8_t *b = q.data;
            int zero = (int)random_below(256);
            fill_floats(p, n);
            FIND(pith_quantize_fn, "quantize", PITH_U8, level)
            (p, b, (size_t)n, scale, (float)-zero, (float)(255 - zero), zero);
            for (int64_t i = 0; i < n; i++) {
                float v = p[i] / scale;
                v = v > (float)-zero ? v : (float)-zero;
                v = v < (float)(255 - zero) ? v : (float)(255 - zero);
                assert_int_equal(b[i], (int)rintf(v) + zero);
            }
            FIND(pith_dequantize_fn, "dequantize", PITH_U8, level)(b, y, (size_t)n, scale, (float)zero);
            for (int64_t i = 0; i < n; i++) assert_true(same_float(y[i], ((float)b[i] - (float)zero) * scale));
            FIND(pith_dequantize_fn, "dequantize", PITH_I8, level)(b, y, (size_t)n, scale, 3.0f);
            for (int64_t i = 0; i < n; i++) assert_true(same_float(y[i], ((float)(int8_t)b[i] - 3.0f) * scale));
            float low = 0, high = 0, least = 0, most = 0;
            FIND(pith_range_fn, "range", PITH_F32, level)(p, (size_t)n, &low, &high);
            for (int64_t i = 0; i < n; i++) {
                least = p[i] < least ? p[i] : least;
                most = p[i] > most ? p[i] : most;
            }
            assert_true(low == least && high == most);
            guarded_free(x), guarded_free(back), guarded_free(q);
        }
    }
}

/* One plane by the definition: places outside count as `padding`. */
static float at(const float *x, const pith_window *w, int64_t r, int64_t c, float padding) {
    return r < 0 || r >= w->in[0] || c < 0 || c >= w->in[1] ? padding : x[r * w->in[1] + c];
}

static void check_window(const pith_window *w, int level) {
    int64_t taps = w->kernel[0] * w->kernel[1], plane_floats = pith_taps_floats(w), step;
    guarded plane = guarded_floats(plane_floats), y = guarded_floats(w->out[0] * w->out[1]);
    float *x = floats(w->in[0] * w->in[1]), *weights = floats(taps);
    int64_t offsets[64];
    for (int max = 0; max < 2; max++) {
        float padding = max ? -INFINITY : 0;
        pith_taps_plane(plane.data, offsets, &step, x, w, padding);
        pith_taps a = { .x = plane.data,
                        .y = y.data,
                        .offsets = offsets,
                        .weights = weights,
                        .taps = taps,
                        .rows = w->out[0],
                        .columns = w->out[1],
                        .step = step };
        FIND(pith_taps_fn, max ? "taps_max" : "taps_sum", PITH_F32, level)(&a);
        for (int64_t o = 0; o < w->out[0] * w->out[1]; o++) {
            float want = max ? -INFINITY : 0.0f;
            for (int64_t t = 0; t < taps; t++) {
                int64_t r = o / w->out[1] * w->stride[0] - w->begin[0] + t / w->kernel[1] * w->dilation[0];
                int64_t c = o % w->out[1] * w->stride[1] - w->begin[1] + t % w->kernel[1] * w->dilation[1];
                float v = at(x, w, r, c, padding);
                want = max ? fmaxf(want, v) : fmaf(weights[t], v, want);
            }
            if (!same_float(((float *)y.data)[o], want)) fail_msg("level %d, window %d", level, (int)o);
        }
    }
    guarded_free(plane), guarded_free(y);
    free(x), free(weights);
}

static void windows(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        pith_window w = { .rank = 2 };
        for (int d = 0; d < 2; d++) {
            w.in[d] = 1 + random_below(d ? 150 : 6);
            w.kernel[d] = 1 + random_below(5);
            w.stride[d] = 1 + random_below(3);
            w.dilation[d] = 1 + random_below(2);
            w.begin[d] = random_below(3);
            w.end[d] = random_below(3);
            int64_t room = w.in[d] + w.begin[d] + w.end[d] - (w.kernel[d] - 1) * w.dilation[d] - 1;
            w.out[d] = room < 0 ? 0 : room / w.stride[d] + 1;
        }
        if (w.out[0] < 1 || w.out[1] < 1) continue;
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (level_usable(level)) check_window(&w, level);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(halves), cmocka_unit_test(bytes), cmocka_unit_test(windows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

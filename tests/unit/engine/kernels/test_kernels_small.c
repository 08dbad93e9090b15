/* Conversions to 8 and 16 bits and windows tap by tap: every level gives the bits of the plain
 * loops, and touches no byte beside its arrays. */
#include "support/kernel_test.h"

#include <math.h>

#include "base/half.h"
#include "engine/kernels/arg_lanes.h"
#include "engine/kernels/axis_scan.h"
#include "engine/kernels/binary.h"
#include "engine/kernels/cast.h"
#include "engine/kernels/cells.h"
#include "engine/kernels/conv.h"
#include "engine/kernels/conv_bytes.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/grid_sample.h"
#include "engine/kernels/interpolate.h"
#include "engine/kernels/lrn.h"
#include "engine/kernels/maps.h"
#include "engine/kernels/move.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/pool_rows.h"
#include "engine/kernels/sliding_windows.h"
#include "engine/kernels/small_floats.h"
#include "engine/kernels/unary.h"

enum { LENGTHS = 70 };

#define FIND(type, family, suffix, level) PITH_KERNEL_FIND(type, family, suffix, (pith__isa)(level))

static void halves(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int64_t n = 0; level_usable(level) && n < LENGTHS; n++) {
            guarded x = guarded_floats(n), wide = guarded_floats(n),
                    small = guarded_alloc((size_t)n * 2, n & 1);
            float *p = x.data, *back = wide.data;
            uint16_t *h = small.data;
            fill_floats(p, n);
            /* subnormal halves too */
            for (int64_t i = 0; i < n; i++) p[i] *= i % 3 ? 1.0f : 0x1p-20f;
            FIND(pith__narrow_f16_fn, "narrow", PITH_F16, level)(p, h, (size_t)n);
            FIND(pith__widen_f16_fn, "widen", PITH_F16, level)(h, back, (size_t)n);
            for (int64_t i = 0; i < n; i++) {
                if (isnan(p[i])) {
                    assert_true(isnan(back[i]));
                    continue;
                }
                assert_int_equal(h[i], pith__f16_of_f32(p[i]));
                assert_true(same_float(back[i], pith__f32_of_f16(h[i])));
            }
            guarded_free(x), guarded_free(wide), guarded_free(small);
        }
    }
}

/* Every pair of types by every level, against the conversion of one element after the other, which
 * uses no kernel. */
static void casts(void **state) {
    static const int from[] = { PITH_F32, PITH_F64, PITH_I32, PITH_I64, PITH_U8, PITH_I8 };
    static const int to[] = { PITH_F32, PITH_F64, PITH_I32, PITH_I64, PITH_U8, PITH_I8, PITH_BOOL };
    size_t known = 0;
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (size_t k = 0; level_usable(level) && k < COUNT(from) * COUNT(to) * 3; k++) {
            const int in = from[k % COUNT(from)], out = to[k / COUNT(from) % COUNT(to)];
            const size_t n = (size_t)random_below(200), in_size = (size_t)pith__dtype_bits(in) / 8,
                         out_size = (size_t)pith__dtype_bits(out) / 8;
            guarded x = guarded_alloc(n * in_size, 0), y = guarded_alloc(n * out_size, 1);
            float values[200];
            fill_floats(values, 200);
            for (size_t i = 0; i < n; i++) {
                double v = values[i] * (i % 3 ? 1.0 : i % 2 ? 0x1p29 : 0x1p61);
                float f = (float)v;
                uint32_t bits[2] = { random_u32(), random_u32() };
                memcpy((char *)x.data + i * in_size,
                       in == PITH_F32   ? (void *)&f
                       : in == PITH_F64 ? (void *)&v
                                        : bits,
                       in_size);
            }
            if (!FIND(pith__cast_fn, "cast", in, level)(y.data, out, x.data, n)) {
                guarded_free(x), guarded_free(y);
                continue;
            }
            known++;
            for (size_t i = 0; i < n; i++) {
                double plain = 0;
                pith__convert(&plain, out, 0, x.data, in, (int64_t)i, 1, true);
                const char *got = (const char *)y.data + i * out_size;
                float f, g;
                memcpy(&f, &plain, sizeof f),
                    memcpy(&g, got, sizeof g < out_size ? sizeof g : out_size);
                if (out != PITH_F32 || !isnan(f)) assert_memory_equal(got, &plain, out_size);
                if (out == PITH_F32) assert_true(same_float(f, g));
            }
            guarded_free(x), guarded_free(y);
        }
    }
    assert_true(known >= 3 * 24);
}

/* Every level against plain loops. */
static void channel_norms(void **state) {
    enum { CHANNELS = 7 };
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int64_t n = 1; level_usable(level) && n < LENGTHS; n++) {
            guarded x = guarded_floats(CHANNELS * n), y = guarded_floats(CHANNELS * n);
            const pith__lrn a = { .x = x.data,
                                  .y = y.data,
                                  .channels = CHANNELS,
                                  .inner = n,
                                  .before = n % 3,
                                  .behind = n % 4,
                                  .alpha = 0.2f,
                                  .bias = 1.5f,
                                  .quarters = 1 + (int)(n % PITH_LRN_QUARTERS) };
            fill_floats(x.data, CHANNELS * n);
            FIND(pith__lrn_fn, "lrn", PITH_F32, level)(&a, 0, 3);
            FIND(pith__lrn_fn, "lrn", PITH_F32, level)(&a, 3, CHANNELS);
            for (int64_t i = 0; i < CHANNELS * n; i++) {
                const int64_t c = i / n;
                float sum = 0;
                for (int64_t k = c - a.before; k <= c + a.behind; k++)
                    if (k >= 0 && k < CHANNELS)
                        sum = fmaf(a.x[k * n + i % n], a.x[k * n + i % n], sum);
                const float v = fmaf(sum, a.alpha, a.bias);
                float power = a.quarters & 1 ? sqrtf(sqrtf(v)) : 1.0f;
                if (a.quarters & 2) power *= sqrtf(v);
                for (int q = 4; q <= a.quarters; q += 4) power *= v;
                assert_true(same_float(a.y[i], a.x[i] / power));
            }
            guarded_free(x), guarded_free(y);
        }
    }
}

/* Weighted sums of places, some of which are outside, against plain loops. */
static void grids(void **state) {
    enum { TAPS = 9, ELEMENTS = 50, CHANNELS = 3, MOST = 80 };
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int64_t n = 1; level_usable(level) && n < MOST; n++) {
            const int64_t taps = n % 3 ? 4 : 1 + n % TAPS, stride = (n + 15) / 16 * 16;
            guarded x = guarded_floats(CHANNELS * ELEMENTS),
                    weights = guarded_floats(taps * stride);
            guarded y = guarded_floats((CHANNELS - 1) * MOST + n),
                    at = guarded_alloc((size_t)(taps * stride) * 4, 0);
            const float *p = x.data, *w = weights.data;
            int32_t *places = at.data;
            fill_floats(x.data, CHANNELS * ELEMENTS);
            for (int64_t i = 0; i < taps * stride; i++) {
                ((float *)weights.data)[i] = random_float();
                places[i] = n % 4 == 0 && i % 7 == 0 ? -1 : (int32_t)random_below(ELEMENTS);
            }
            FIND(pith__grid_fn, "grid", PITH_F32, level)
            (&(pith__grid){ .x = p,
                            .weights = w,
                            .at = places,
                            .y = y.data,
                            .taps = taps,
                            .stride = stride,
                            .n = n,
                            .channels = CHANNELS,
                            .x_step = ELEMENTS,
                            .y_step = MOST });
            for (int64_t i = 0; i < n * CHANNELS; i++) {
                float sum = 0;
                for (int64_t k = 0; k < taps; k++) {
                    const int64_t tap = k * stride + i % n;
                    if (places[tap] >= 0)
                        sum = fmaf(w[tap], p[i / n * ELEMENTS + places[tap]], sum);
                }
                assert_true(same_float(((const float *)y.data)[i / n * MOST + i % n], sum));
            }
            guarded_free(x), guarded_free(weights), guarded_free(y), guarded_free(at);
        }
    }
}

/* Quotients beside those that are half-way between two integers; scales beyond those that are
 * multiplied by too. */
static void quotients(void **state) {
    enum { COUNT_OF = 64 };
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int round = 0; level_usable(level) && round < 4000; round++) {
            const float scale = ldexpf(round % 9 ? 1 + fabsf(random_float()) : 0x1.fffffep0f,
                                       round % 10 ? round % 41 - 20 : round / 10 % 250 - 125);
            const int zero = (int)random_below(256);
            float x[COUNT_OF];
            uint8_t y[COUNT_OF];
            fill_floats(x, COUNT_OF);
            for (int i = 0; i < COUNT_OF - 8; i++) {
                x[i] = (float)((double)scale * ((double)random_below(300) - zero - 20 + 0.5));
                for (int64_t step = random_below(4); step > 0; step--)
                    x[i] = nextafterf(x[i], i % 2 ? 1e38f : -1e38f);
            }
            FIND(pith__quantize_fn, "quantize", PITH_U8, level)
            (x, y, COUNT_OF, scale, (float)-zero, (float)(255 - zero), zero);
            for (int i = 0; i < COUNT_OF; i++) {
                float v = x[i] / scale;
                v = v > (float)-zero ? v : (float)-zero;
                v = v < (float)(255 - zero) ? v : (float)(255 - zero);
                if (y[i] != (int)rintf(v) + zero) fail_msg("%a / %a", (double)x[i], (double)scale);
            }
        }
    }
}

/* A sum of bytes is that of its parts. */
static void byte_sums(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (size_t n = 0; level_usable(level) && n < LENGTHS; n++) {
            const float scale = 0.05f + 0.02f * random_float();
            const bool a_signed = n % 2, b_signed = n % 3 == 0;
            guarded a = guarded_alloc(n, 0), b = guarded_alloc(n, 1), y = guarded_alloc(n, 0);
            float wide[3][LENGTHS];
            uint8_t expected[LENGTHS];
            for (size_t i = 0; i < n; i++)
                ((uint8_t *)a.data)[i] = (uint8_t)random_u32(),
                          ((uint8_t *)b.data)[i] = (uint8_t)random_u32();
            FIND(pith__dequantize_fn, "dequantize", a_signed ? PITH_I8 : PITH_U8, level)
            (a.data, wide[0], n, 0.03f, 7.0f);
            FIND(pith__dequantize_fn, "dequantize", b_signed ? PITH_I8 : PITH_U8, level)
            (b.data, wide[1], n, 0.04f, 20.0f);
            for (size_t i = 0; i < n; i++) wide[2][i] = wide[0][i] + wide[1][i];
            FIND(pith__quantize_fn, "quantize", PITH_U8, level)
            (wide[2], expected, n, scale, -100.0f, 155.0f, 100);
            pith__quantized_sum s = {
                .a = { a.data, 0.03f, a_signed ? 135.0f : 7.0f, a_signed ? 0x80 : 0 },
                .b = { b.data, 0.04f, b_signed ? 148.0f : 20.0f, b_signed ? 0x80 : 0 },
                .y = y.data,
                .scale = scale,
                .low = -100,
                .high = 155,
                .zero = 100
            };
            FIND(pith__quantized_add_fn, "quantized_add", PITH_U8, level)(&s, 0, n);
            if (n) assert_memory_equal(y.data, expected, n);
            guarded_free(a), guarded_free(b), guarded_free(y);
        }
    }
}

/* Lines of n numbers, side by side or one along its elements, against sums made one number after
 * the other. */
static void lp_norms(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int64_t n = 1; level_usable(level) && n < LENGTHS; n++) {
            const int64_t inner = n % 3 ? 1 + random_below(40) : 1,
                          columns = 1 + random_below(inner);
            const int square = (int)(n & 1);
            guarded x = guarded_floats((n - 1) * inner + columns),
                    y = guarded_floats((n - 1) * inner + columns);
            const float *p = x.data;
            float *q = y.data;
            fill_floats(x.data, (n - 1) * inner + columns);
            if (n % 7 == 0) memset(x.data, 0, (size_t)((n - 1) * inner + columns) * sizeof *p);
            FIND(pith__lp_normalize_fn, "lp_normalize", PITH_F32, level)
            (p, q, n, inner, columns, square);
            for (int64_t j = 0; j < columns; j++) {
                double lanes[16] = { 0 };
                for (int64_t k = 0; k < n; k++) {
                    const double v = (double)p[k * inner + j];
                    lanes[inner == 1 ? k % 16 : 0] += square ? v * v : fabs(v);
                }
                for (int half = 8; half; half /= 2)
                    for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
                const double norm = square ? sqrt(lanes[0]) : lanes[0];
                for (int64_t k = 0; k < n; k++) {
                    const double v = (double)p[k * inner + j];
                    assert_true(same_float(q[k * inner + j],
                                           norm == 0 ? (float)v : (float)(v * (1 / norm))));
                }
            }
            guarded_free(x), guarded_free(y);
        }
    }
}

static void bytes(void **state) {
    (void)state;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        for (int64_t n = 0; level_usable(level) && n < LENGTHS; n++) {
            guarded x = guarded_floats(n), back = guarded_floats(n),
                    q = guarded_alloc((size_t)n, n & 1);
            float *p = x.data, *y = back.data, scale = 0.03f + random_float() * 0.01f;
            uint8_t *b = q.data;
            int zero = (int)random_below(256);
            fill_floats(p, n);
            FIND(pith__quantize_fn, "quantize", PITH_U8, level)
            (p, b, (size_t)n, scale, (float)-zero, (float)(255 - zero), zero);
            for (int64_t i = 0; i < n; i++) {
                float v = p[i] / scale;
                v = v > (float)-zero ? v : (float)-zero;
                v = v < (float)(255 - zero) ? v : (float)(255 - zero);
                assert_int_equal(b[i], (int)rintf(v) + zero);
            }
            FIND(pith__dequantize_fn, "dequantize", PITH_U8, level)
            (b, y, (size_t)n, scale, (float)zero);
            for (int64_t i = 0; i < n; i++)
                assert_true(same_float(y[i], ((float)b[i] - (float)zero) * scale));
            FIND(pith__dequantize_fn, "dequantize", PITH_I8, level)(b, y, (size_t)n, scale, 3.0f);
            for (int64_t i = 0; i < n; i++)
                assert_true(same_float(y[i], ((float)(int8_t)b[i] - 3.0f) * scale));
            float low = 0, high = 0, least = 0, most = 0;
            FIND(pith__range_fn, "range", PITH_F32, level)(p, (size_t)n, &low, &high);
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
static float at(const float *x, const pith__window *w, int64_t r, int64_t c, float padding) {
    return r < 0 || r >= w->in[0] || c < 0 || c >= w->in[1] ? padding : x[r * w->in[1] + c];
}

static void check_window(const pith__window *w, int level) {
    int64_t taps = w->kernel[0] * w->kernel[1], plane_floats = pith__taps_floats(w), step;
    guarded plane = guarded_floats(plane_floats), y = guarded_floats(w->out[0] * w->out[1]);
    float *x = floats(w->in[0] * w->in[1]), *weights = floats(taps);
    int64_t offsets[64];
    for (int max = 0; max < 2; max++) {
        float padding = max ? -INFINITY : 0;
        pith__taps_offsets(offsets, &step, w);
        FIND(pith__taps_plane_fn, "taps_plane", PITH_F32, level)(plane.data, x, w, padding);
        pith__taps a = { .x = plane.data,
                         .y = y.data,
                         .offsets = offsets,
                         .weights = weights,
                         .taps = taps,
                         .rows = w->out[0],
                         .columns = w->out[1],
                         .step = step };
        FIND(pith__taps_fn, max ? "taps_max" : "taps_sum", PITH_F32, level)(&a);
        for (int64_t o = 0; o < w->out[0] * w->out[1]; o++) {
            float want = max ? -INFINITY : 0.0f;
            for (int64_t t = 0; t < taps; t++) {
                int64_t r =
                    o / w->out[1] * w->stride[0] - w->begin[0] + t / w->kernel[1] * w->dilation[0];
                int64_t c =
                    o % w->out[1] * w->stride[1] - w->begin[1] + t % w->kernel[1] * w->dilation[1];
                float v = at(x, w, r, c, padding);
                want = max ? fmaxf(want, v) : fmaf(weights[t], v, want);
            }
            if (!same_float(((float *)y.data)[o], want))
                fail_msg("level %d, window %d", level, (int)o);
        }
    }
    guarded_free(plane), guarded_free(y);
    free(x), free(weights);
}

/* The sums of taps_sum, without a plane; nothing beside x is read. */
static void depthwise_windows(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        const int64_t rows = 1 + random_below(7), columns = 1 + random_below(i % 4 ? 40 : 200),
                      step = 1 + i / 2 % 2;
        pith__window w = {
            .rank = 2, .in = { rows, columns }, .kernel = { 3, 3 }, .dilation = { 1, 1 }
        };
        pith__depthwise a;
        for (int d = 0; d < 2; d++) {
            w.stride[d] = step;
            w.begin[d] = step == 1 ? 1 : random_below(2);
            w.out[d] = step == 1 ? w.in[d] : (w.in[d] + w.begin[d] + random_below(4)) / 2;
        }
        const int64_t count = w.out[0] * w.out[1];
        guarded x = guarded_floats(rows * columns), y = guarded_floats(count),
                weights = guarded_floats(9);
        assert_true(pith__depthwise_fits(&a, &w));
        const float bias = (float)random_below(100) / 7;
        for (int64_t k = 0; k < rows * columns; k++)
            ((float *)x.data)[k] = (float)random_below(2001) / 1000 - 1;
        for (int64_t k = 0; k < 9; k++)
            ((float *)weights.data)[k] = i == 3 ? INFINITY : (float)random_below(2001) / 1000 - 1;
        a.x = x.data, a.y = y.data, a.weights = weights.data, a.bias = i & 1 ? &bias : NULL;
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            FIND(pith__depthwise_fn, "depthwise", PITH_F32, level)(&a);
            for (int64_t o = 0; o < count; o++) {
                float want = 0;
                for (int64_t t = 0; t < 9; t++)
                    want = fmaf(((float *)weights.data)[t],
                                at(x.data, &w, o / w.out[1] * step - w.begin[0] + t / 3,
                                   o % w.out[1] * step - w.begin[1] + t % 3, 0),
                                want);
                if (a.bias) want += bias;
                if (!same_float(((float *)y.data)[o], want))
                    fail_msg("level %d, place %d", level, (int)o);
            }
        }
        guarded_free(x), guarded_free(y), guarded_free(weights);
    }
}

static void windows(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        pith__window w = { .rank = 2 };
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

/* Maxima and means of three channels that end and begin at memory which cannot be read. */
static void check_pool(const pith__window *w, int mean, int padded, int level) {
    enum { CHANNELS = 3 };
    const int64_t in = w->in[0] * w->in[1], out = w->out[0] * w->out[1];
    guarded x = guarded_floats(CHANNELS * in), y = guarded_floats(CHANNELS * out);
    guarded own = guarded_floats(w->out[1]);
    fill_floats(x.data, CHANNELS * in);
    for (int64_t i = 0; i < CHANNELS * in; i += 1 + random_below(9))
        ((float *)x.data)[i] = random_below(4) ? -0.0f * (float)random_below(2) : -INFINITY;
    for (int64_t j = 0; mean && j < w->out[1]; j++)
        ((float *)own.data)[j] = (float)pith__window_places(w, 1, j, padded);
    const char *family = mean ? "pool_rows_mean" : "pool_rows_max";
    FIND(pith__pool_rows_fn, family, PITH_F32, level)
    (&(pith__pool_planes){ .window = w,
                           .x = x.data,
                           .y = y.data,
                           .channels = CHANNELS,
                           .counts = own.data,
                           .padded = padded });
    for (int64_t o = 0; o < CHANNELS * out; o++) {
        const float *plane = (float *)x.data + o / out * in;
        const int64_t top = o % out / w->out[1] * w->stride[0] - w->begin[0];
        const int64_t left = o % w->out[1] * w->stride[1] - w->begin[1];
        float want = mean ? 0 : -INFINITY;
        int places = 0;
        for (int64_t t = 0; t < w->kernel[0] * w->kernel[1]; t++) {
            int64_t r = top + t / w->kernel[1] * w->dilation[0], c = left + t % w->kernel[1];
            int64_t row_pad = padded ? w->begin[0] : 0, pad = padded ? w->begin[1] : 0;
            int64_t row_end = w->in[0] + (padded ? w->end[0] : 0),
                    end = w->in[1] + (padded ? w->end[1] : 0);
            float v = at(plane, w, r, c, mean ? 0 : -INFINITY);
            want = mean ? want + v : v > want || v != v ? v : want;
            places += r >= -row_pad && r < row_end && c >= -pad && c < end;
        }
        if (mean) want /= (float)places;
        if (!same_float(((float *)y.data)[o], want))
            fail_msg("level %d, mean %d, window %d", level, mean, (int)o);
    }
    guarded_free(x), guarded_free(y), guarded_free(own);
}

static void pools(void **state) {
    (void)state;
    int count = 0;
    for (int i = 0; i < 1500; i++) {
        pith__window w = { .rank = 2,
                           .stride = { 1 + random_below(3), 1 + random_below(2) },
                           .dilation = { 1, 1 } };
        if (i % 4 == 0) w.dilation[0] = 2;
        for (int d = 0; d < 2; d++) {
            w.in[d] = 1 + random_below(d ? i % 3 ? 40 : 200 : i % 5 ? 9 : 60);
            w.kernel[d] = 1 + random_below(i % 8 ? 5 : 13);
            w.begin[d] = random_below(i % 8 ? 4 : 20);
            w.end[d] = random_below(i % 8 ? 4 : 20);
            if (d && i % 16 == 5) { /* wider than vectors */
                w.kernel[1] = 1 + random_below(400);
                w.begin[1] = random_below(w.kernel[1]), w.end[1] = random_below(w.kernel[1]);
            }
            int64_t room = w.in[d] + w.begin[d] + w.end[d] - (w.kernel[d] - 1) * w.dilation[d] - 1;
            w.out[d] = room < 0 ? 0 : room / w.stride[d] + 1 + random_below(2);
        }
        if (w.out[0] < 1 || w.out[1] < 1 || !pith__pool_rows_fits(&w)) continue;
        count++;
        for (int level = 0; level < PITH_ISA_COUNT; level++)
            if (level_usable(level)) check_pool(&w, i % 2, i / 2 % 2, level);
    }
    assert_true(count > 500);
}

/* What the pass "swish" relies on: one step rounds where the two or three that it replaces do. */
static void swish_is_its_parts(void **state) {
    (void)state;
    static const float factors[] = { 1.0f, 1.702f, -0.3f };
    for (int i = 0; i < 60; i++) {
        const int64_t n = 1 + random_below(100);
        const float factor = factors[i % 3];
        float *x = floats(n), *gate = floats(n), *y = floats(n);
        fill_floats(x, n);
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            pith__binary_fn *mul = FIND(pith__binary_fn, "mul", PITH_F32, level);
            FIND(pith__map_fn, "map_swish", PITH_F32, level)
            (y, x, n, (double[]){ (double)factor, 0 });
            mul(gate, x, &factor, n, 1, 0);
            FIND(pith__unary_f32_fn, "sigmoid", PITH_F32, level)
            (factor == 1.0f ? x : gate, gate, (size_t)n);
            mul(gate, x, gate, n, 1, 1);
            for (int64_t k = 0; k < n; k++) assert_true(same_float(y[k], gate[k]));
        }
        free(x), free(gate), free(y);
    }
}

static void check_arg(int64_t n, int64_t columns, int64_t stride, int min, bool last, int level) {
    guarded x = guarded_floats((n - 1) * stride + columns);
    guarded y = guarded_alloc((size_t)columns * sizeof(int64_t), 1);
    float *p = x.data;
    fill_floats(p, (n - 1) * stride + columns);
    for (int64_t i = 0; i < (n - 1) * stride + columns; i += 1 + random_below(5))
        p[i] = (float)random_below(3) * -4.0f;
    if (random_below(3) == 0) p[random_below((n - 1) * stride + columns)] = NAN;
    FIND(pith__arg_lanes_fn, min ? "arg_min_lanes" : "arg_max_lanes", PITH_F32, level)
    (p, y.data, n, stride, columns, last);
    for (int64_t j = 0; j < columns; j++) {
        const int64_t want = PITH_KERNEL_FIND(pith__arg_fn, min ? "arg_min" : "arg_max", PITH_F32,
                                              PITH_ISA_scalar)(p + j, n, stride, last);
        if (((int64_t *)y.data)[j] != want)
            fail_msg("level %d, column %d of %d", level, (int)j, (int)columns);
    }
    guarded_free(x), guarded_free(y);
}

static void arguments(void **state) {
    (void)state;
    for (int i = 0; i < 600; i++) {
        const int64_t n = 1 + random_below(i % 2 ? 9 : 200),
                      columns = i % 3 ? 1 + random_below(150) : 1;
        const int64_t stride = columns == 1 ? 1 : columns + random_below(3);
        for (int level = 0; level < PITH_ISA_COUNT; level++)
            if (level_usable(level)) check_arg(n, columns, stride, i / 2 % 2, i / 4 % 2, level);
    }
}

#define CONV_WAY(isa, name) [PITH_ISA_##isa] = pith__k_##name##_##isa,
static pith__conv_fn *const conv_ways[3][PITH_ISA_COUNT] = {
    { PITH_ISAS(CONV_WAY, conv_f32) },
    { PITH_ISAS(CONV_WAY, conv_positions_f32) },
    { PITH_ISAS(CONV_WAY, conv_maps_f32) }
};

/* A convolution of `k` steps and `maps` maps over positions in rows of `step`, in three parts: only
 * columns below `columns` are written. */
static void check_convolution(int64_t k, int64_t maps, int64_t rows, int64_t step, int64_t columns,
                              int level) {
    const int64_t positions = (rows - 1) * step + columns, half = positions / 2,
                  cut = maps / 32 * 16;
    guarded x = guarded_floats(positions + 9), y = guarded_floats(maps * rows * columns);
    float *weights = floats((maps + 15) / 16 * 16 * k), *bias = floats(maps);
    int64_t *offsets = malloc((size_t)k * sizeof *offsets + 1);
    fill_floats(x.data, positions + 9);
    for (int64_t i = 0; i < k; i++) offsets[i] = random_below(10);
    pith__conv c = { .x = x.data,
                     .offsets = offsets,
                     .weights = weights,
                     .bias = k % 2 ? bias : NULL,
                     .y = y.data,
                     .k = k,
                     .y_map = rows * columns,
                     .step = step,
                     .columns = columns };
    for (int way = 0; way < 3; way++) {
        pith__conv_fn *conv = conv_ways[way][level];
        fill_floats(y.data, maps * rows * columns);
        conv(&c, 0, cut, 0, positions);
        conv(&c, cut, maps, half, positions);
        conv(&c, cut, maps, 0, half);
        for (int64_t m = 0; m < maps; m++) {
            for (int64_t o = 0; o < rows * columns; o++) {
                const int64_t n = o / columns * step + o % columns;
                const float *w = weights + m / 16 * 16 * k + m % 16;
                float want = 0;
                for (int64_t i = 0; i < k; i++)
                    want = fmaf(w[16 * i], ((float *)x.data)[offsets[i] + n], want);
                if (c.bias) want += bias[m];
                if (!same_float(((float *)y.data)[m * rows * columns + o], want))
                    fail_msg("way %d, level %d, map %d, window %d", way, level, (int)m, (int)o);
            }
        }
    }
    guarded_free(x), guarded_free(y);
    free(weights), free(bias), free(offsets);
}

static void convolutions(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        const int64_t k = random_below(i % 5 ? 30 : 70), maps = 1 + random_below(60);
        const int64_t columns = 1 + random_below(i % 3 == 0 ? 4 : i % 4 ? 20 : 150);
        const int64_t rows = 1 + random_below(6), step = columns + random_below(5);
        for (int level = 0; level < PITH_ISA_COUNT; level++)
            if (level_usable(level)) check_convolution(k, maps, rows, step, columns, level);
    }
}

/* The result of one family of cells, in h[n], and in c[n]. */
static void cell_step(const char *family, int level, float *h, float *c, const float *x,
                      const float *g, int64_t n) {
    if (strcmp(family, "lstm_cell") == 0)
        FIND(pith__lstm_cell_fn, family, PITH_F32, level)(h, c, x, g, n);
    else if (strcmp(family, "gru_cell") == 0)
        FIND(pith__gru_cell_fn, family, PITH_F32, level)(h, x, g, n % 2 ? c : NULL, n);
    else if (strcmp(family, "gru_gates") == 0)
        FIND(pith__gru_gates_fn, family, PITH_F32, level)(h, c, h, x, g, n);
    else
        FIND(pith__gru_finish_fn, family, PITH_F32, level)(h, c, x, g, n);
}

static double logistic(double x) { return 1 / (1 + exp(-x)); }

/* Every level has the bits of scalar; LSTM and GRU with the reset gate last are as in double. */
static void cells(void **state) {
    (void)state;
    static const char *const families[] = { "gru_cell", "gru_finish", "gru_gates", "lstm_cell" };
    for (int64_t n = 1; n < LENGTHS; n++) {
        for (size_t f = 0; f < COUNT(families); f++) {
            guarded x = guarded_floats(4 * n), g = guarded_floats(4 * n), h = guarded_floats(n),
                    c = guarded_floats(n);
            float *h0 = floats(n), *c0 = floats(n), *h1 = floats(n), *c1 = floats(n);
            const float *gx = x.data, *gh = g.data;
            for (int level = 0; level < PITH_ISA_COUNT; level++) {
                if (!level_usable(level)) continue;
                memcpy(h.data, h0, (size_t)n * sizeof *h0),
                    memcpy(c.data, c0, (size_t)n * sizeof *c0);
                cell_step(families[f], level, h.data, c.data, gx, gh, n);
                if (level == PITH_ISA_scalar)
                    memcpy(h1, h.data, (size_t)n * sizeof *h1),
                        memcpy(c1, c.data, (size_t)n * sizeof *c1);
                assert_same_floats((const float *)h.data, h1, n, "%s", families[f]);
                assert_same_floats((const float *)c.data, c1, n, "%s", families[f]);
            }
            for (int64_t i = 0; i < n; i++) {
                double first = logistic((double)gx[i] + gh[i]),
                       second = logistic((double)gx[n + i] + gh[n + i]);
                if (f == 3) {
                    double now = logistic((double)gx[2 * n + i] + gh[2 * n + i]) * c0[i] +
                                 first * tanh((double)gx[3 * n + i] + gh[3 * n + i]);
                    assert_float_equal(c1[i], now, 1e-6);
                    assert_float_equal(h1[i], second * tanh(now), 1e-6);
                } else if (f == 0) {
                    double from_h = gh[2 * n + i] + (n % 2 ? (double)c0[i] : 0);
                    double candidate = tanh(gx[2 * n + i] + second * from_h);
                    assert_float_equal(h1[i], (1 - first) * candidate + first * h0[i], 1e-6);
                } else if (f == 2) {
                    assert_float_equal(h1[i], first, 1e-6);
                } else {
                    double candidate = tanh((double)gx[i] + gh[i]);
                    assert_float_equal(
                        h1[i], (1 - (double)c0[i]) * candidate + (double)c0[i] * h0[i], 1e-6);
                }
            }
            free(h0), free(c0), free(h1), free(c1);
            guarded_free(x), guarded_free(g), guarded_free(h), guarded_free(c);
        }
    }
}

/* Interpolation against chains of fmaf, at every level. */
static void mixes(void **state) {
    (void)state;
    enum { TAPS = 3 };
    for (int64_t n = 1; n < 2 * LENGTHS; n++) {
        guarded x = guarded_floats(2 * n + TAPS), y = guarded_floats(n),
                weights = guarded_floats(TAPS * n);
        guarded index = guarded_alloc((size_t)(TAPS * n) * sizeof(int32_t), (int)(n & 1));
        const float *from = x.data, *w = weights.data, *to = y.data;
        const int64_t offsets[TAPS] = { 2, 0, 3 };
        for (int64_t i = 0; i < TAPS * n; i++) /* every other column has its taps 2 apart */
            ((int32_t *)index.data)[i] =
                (int32_t)(n % 2 ? random_below(2 * n + TAPS) : 2 * (i % n) + i / n);
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            FIND(pith__mix_rows_fn, "mix_rows", PITH_F32, level)(y.data, from, offsets, w, TAPS, n);
            for (int64_t i = 0; i < n; i++) {
                float sum = 0;
                for (int t = 0; t < TAPS; t++) sum = fmaf(w[t], from[offsets[t] + i], sum);
                assert_true(same_float(to[i], sum));
            }
            FIND(pith__mix_columns_fn, "mix_columns", PITH_F32, level)
            (y.data, from, index.data, w, TAPS, n);
            for (int64_t i = 0; i < n; i++) {
                float sum = 0;
                for (int t = 0; t < TAPS; t++)
                    sum = fmaf(w[t * n + i], from[((int32_t *)index.data)[t * n + i]], sum);
                assert_true(same_float(to[i], sum));
            }
        }
        guarded_free(x), guarded_free(y), guarded_free(weights), guarded_free(index);
    }
}

/* The steps of byte convolutions against their definitions, at every level. */
static void convolution_bytes(void **state) {
    (void)state;
    for (int round = 0; round < 40; round++) {
        int64_t n = 1 + random_below(70), m = 1 + random_below(40), gap = random_below(3);
        guarded x = guarded_alloc((size_t)(m * (n + gap)), round & 1),
                y = guarded_alloc((size_t)(n * m), round & 1);
        guarded sums = guarded_alloc((size_t)(m * n) * 4, round & 1),
                add = guarded_alloc((size_t)n * 4, 0);
        guarded wide = guarded_alloc((size_t)(n * m) * 4, 1);
        guarded scale = guarded_floats(n), rows = guarded_alloc((size_t)m * 4, 1);
        int32_t zeros[70];
        for (size_t i = 0; i < (size_t)(m * (n + gap)); i++)
            ((uint8_t *)x.data)[i] = (uint8_t)random_u32();
        for (int64_t i = 0; i < m * n; i++) ((int32_t *)sums.data)[i] = (int32_t)random_u32() >> 12;
        for (int64_t i = 0; i < n; i++) ((int32_t *)add.data)[i] = (int32_t)random_u32() >> 12;
        for (int64_t i = 0; i < m; i++) ((int32_t *)rows.data)[i] = (int32_t)random_u32() >> 20;
        for (int64_t i = 0; i < n; i++) zeros[i] = (int32_t)random_below(511) - 255;
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            const uint8_t *from = x.data, flip = round & 2 ? 0x80 : 0;
            uint8_t *to = y.data;
            FIND(pith__turn_bytes_fn, "turn_bytes", PITH_U8, level)
            (to, m, from, n + gap, n, m, flip);
            for (int64_t i = 0; i < n * m; i++)
                assert_int_equal(to[i], from[i % m * (n + gap) + i / m] ^ flip);
            int32_t *found = wide.data;
            pith__requantize a = { .add = add.data, .row_sums = rows.data, .y = to, .wide = found };
            a.zeros = round & 4 ? zeros : NULL;
            a.scale = round & 8 ? scale.data : NULL;
            a.plane = m;
            a.step = n;
            a.low = -100, a.high = 155, a.zero = 100;
            const int32_t *from_sums = sums.data;
            const int64_t half = random_below(m), part = random_below(n); /* in four parts */
            for (int q = 0; q < 4; q++) {
                const int64_t i0 = q / 2 ? half : 0, j0 = q % 2 ? part : 0;
                FIND(pith__requantize_fn, "requantize", PITH_I32, level)
                (&a, from_sums + i0 * n + j0, n, i0, q / 2 ? m : half, j0, q % 2 ? n : part);
            }
            for (int64_t i = 0; i < n * m; i++) {
                int64_t map = i / m, window = i % m;
                int32_t v = from_sums[window * n + map] + a.add[map] -
                            (a.zeros ? a.row_sums[window] * a.zeros[map] : 0);
                float scaled = a.scale ? rintf((float)v * a.scale[map]) : 0;
                scaled = scaled < a.low ? a.low : scaled > a.high ? a.high : scaled;
                assert_int_equal(a.scale ? to[window * n + map] : found[i],
                                 a.scale ? (int)scaled + 100 : v);
            }
        }
        guarded_free(x), guarded_free(y), guarded_free(sums), guarded_free(add);
        guarded_free(wide), guarded_free(scale), guarded_free(rows);
    }
}

/* Windows of bytes over one channel each, beside plain sums: as they are, and as bytes. */
static void depthwise_bytes(void **state) {
    (void)state;
    for (int round = 0; round < 120; round++) {
        enum { TAPS = 28, CHANNELS = 150, WINDOWS = 3 * 5 };
        const int64_t n = 1 + random_below(CHANNELS), taps = round % 3 ? 9 : 1 + random_below(TAPS);
        const int64_t rows = 1 + random_below(3), columns = 1 + random_below(5),
                      step = n + random_below(3);
        const int64_t row_step = columns * step + random_below(40), quads = (taps + 3) / 4;
        const int64_t reach = (rows - 1) * row_step + (columns - 1) * step + n;
        guarded x = guarded_alloc((size_t)(reach + 300), 1);
        guarded weights = guarded_alloc((size_t)((n + 63) / 64 * 64 * quads * 4), 1),
                sums = guarded_alloc(WINDOWS * (size_t)n * 4, 0);
        guarded add = guarded_alloc((size_t)n * 4, 1), scale = guarded_floats(n),
                y = guarded_alloc((size_t)(rows * columns * (n + 3) - 3), 1);
        int64_t offsets[TAPS];
        static int8_t plain[TAPS][CHANNELS];
        memset(weights.data, 0, (size_t)((n + 63) / 64 * 64 * quads * 4));
        for (int64_t i = 0; i < reach + 300; i++) ((uint8_t *)x.data)[i] = (uint8_t)random_u32();
        for (int64_t t = 0; t < taps; t++) {
            offsets[t] = t ? random_below(301) : 300;
            for (int64_t c = 0; c < n; c++)
                ((int8_t *)weights.data)[pith__depthwise_place(t, c, taps) * 4 + t % 4] =
                    plain[t][c] = (int8_t)random_u32();
        }
        for (int64_t c = 0; c < n; c++) ((int32_t *)add.data)[c] = (int32_t)random_u32() >> 14;
        for (int64_t c = 0; c < n; c++) ((float *)scale.data)[c] *= 0.001f;
        pith__requantize out = { .add = add.data,
                                 .scale = round & 1 ? scale.data : NULL,
                                 .y = y.data,
                                 .step = n + 3,
                                 .low = -100,
                                 .high = 155,
                                 .zero = 100 };
        const pith__depthwise_bytes a = { x.data,  offsets,  weights.data, taps, n,        rows,
                                          columns, row_step, step,         &out, sums.data };
        for (int form = 0; form < 2 * PITH_ISA_COUNT; form++) {
            const int level = form / 2;
            if (!level_usable(level) || (form % 2 && !level_has_vnni(level))) continue;
            FIND(pith__depthwise_bytes_fn, form % 2 ? "depthwise_vnni" : "depthwise", PITH_U8,
                 level)
            (&a);
            for (int64_t i = 0; i < rows * columns * n; i++) {
                const int64_t window = i / n, c = i % n;
                const uint8_t *at = a.x + window / columns * row_step + window % columns * step + c;
                int32_t sum = 0;
                for (int64_t t = 0; t < taps; t++) sum += at[offsets[t]] * plain[t][c];
                float scaled = rintf((float)(sum + out.add[c]) * ((float *)scale.data)[c]);
                scaled = scaled < out.low ? out.low : scaled > out.high ? out.high : scaled;
                if (out.scale)
                    assert_int_equal(out.y[window * out.step + c], (int)scaled + 100);
                else
                    assert_int_equal(a.sums[i], sum);
            }
        }
        guarded_free(x), guarded_free(weights), guarded_free(sums), guarded_free(add),
            guarded_free(scale), guarded_free(y);
    }
}

/* Words become columns, whatever their bits are; nothing else is read or written. */
static void turned_words(void **state) {
    (void)state;
    for (int round = 0; round < 60; round++) {
        const int64_t rows = 1 + random_below(round % 3 ? 40 : 200), columns = 1 + random_below(50);
        const int64_t gap = random_below(3), wide = columns + random_below(3);
        guarded from = guarded_alloc((size_t)(columns * (rows + gap) - gap) * 4, round & 1);
        guarded to = guarded_alloc((size_t)((rows - 1) * wide + columns) * 4, round & 1);
        for (int64_t i = 0; i < columns * (rows + gap) - gap; i++)
            ((uint32_t *)from.data)[i] = random_u32();
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            memset(to.data, 0x5A, (size_t)((rows - 1) * wide + columns) * 4);
            FIND(pith__turn_fn, "turn", PITH_F32, level)
            (to.data, wide, from.data, rows + gap, rows, columns);
            for (int64_t i = 0; i < (rows - 1) * wide + columns; i++) {
                const int64_t r = i / wide, c = i % wide;
                assert_int_equal(((uint32_t *)to.data)[i],
                                 c < columns ? ((uint32_t *)from.data)[c * (rows + gap) + r]
                                             : 0x5A5A5A5Au);
            }
        }
        guarded_free(from), guarded_free(to);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(casts),
                                        cmocka_unit_test(halves),
                                        cmocka_unit_test(arguments),
                                        cmocka_unit_test(swish_is_its_parts),
                                        cmocka_unit_test(bytes),
                                        cmocka_unit_test(channel_norms),
                                        cmocka_unit_test(grids),
                                        cmocka_unit_test(quotients),
                                        cmocka_unit_test(byte_sums),
                                        cmocka_unit_test(lp_norms),
                                        cmocka_unit_test(cells),
                                        cmocka_unit_test(convolution_bytes),
                                        cmocka_unit_test(convolutions),
                                        cmocka_unit_test(mixes),
                                        cmocka_unit_test(windows),
                                        cmocka_unit_test(pools),
                                        cmocka_unit_test(depthwise_windows),
                                        cmocka_unit_test(depthwise_bytes),
                                        cmocka_unit_test(turned_words) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

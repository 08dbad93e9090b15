/* Attention at every level: equal bits to the definition in attention.h, close to the same in
 * double. */
#include "support/kernel_test.h"

#include <math.h>

#include "engine/kernels/attention.h"

typedef struct problem {
    pith__attention a;
    guarded q, k, v, bias, mask, scratch;
} problem;

static int kept(const pith__attention *a, int64_t i, int64_t j) {
    int64_t at = i;
    if (a->key_mask && !a->key_mask[j]) return 0;
    if (a->causal_offset != INT64_MAX) {
        at += a->causal_offset;
        if (j > at) return 0;
    }
    if (a->window_left >= 0 && j < at - a->window_left) return 0;
    return a->window_right < 0 || j <= at + a->window_right;
}

/* 2^x, x <= 0, operation by operation as vmath.h has it. */
static float exp2_f32(float x) {
    static const float c[] = { 0x1.5bba14p-10f, 0x1.3cea88p-7f, 0x1.c6b752p-5f,
                               0x1.ebf9bcp-3f,  0x1.62e42ap-1f, 1.0f };
    if (x < -126.0f) return 0.0f;
    float n = rintf(x), f = x - n, q = c[0];
    for (int i = 1; i < 6; i++) q = fmaf(q, f, c[i]);
    return ldexpf(q, (int)n);
}

/* The definition. exact: the formula in double. */
static void define(const pith__attention *a, float *o, double *exact) {
    const int raw = !a->bias && a->scale > 0;
    const float log2e = 0x1.715476p0f * (raw ? a->scale : 1.0f);
    float *p = floats(a->keys);
    double *pd = malloc((size_t)(a->keys + 1) * sizeof *pd);
    int64_t first = 0;
    while (a->key_mask && first < a->keys && !a->key_mask[first]) first++;
    for (int64_t i = 0; i < a->queries; i++) {
        float top = -INFINITY, lanes[16] = { 0 };
        double top_exact = -INFINITY, sum_exact = 0;
        int64_t count = 0;
        for (int64_t j = 0; j < a->keys; j++) {
            if (!kept(a, i, j)) continue;
            float s = 0.0f;
            double sd = 0;
            for (int64_t d = 0; d < a->d; d++) {
                s = fmaf(a->q[i * a->q_stride + d], a->k[j * a->k_stride + d], s);
                sd += (double)a->q[i * a->q_stride + d] * (double)a->k[j * a->k_stride + d];
            }
            if (!raw) s *= a->scale;
            sd *= (double)a->scale;
            if (a->bias)
                s += a->bias[i * a->bias_stride + j], sd += (double)a->bias[i * a->bias_stride + j];
            p[j] = s;
            pd[j] = sd;
            if (s > top) top = s;
            top_exact = fmax(top_exact, sd);
            count++;
        }
        if (fabsf(log2e * top) >= 0x1p30f) { /* its rounding would be too much */
            for (int64_t j = 0; j < a->keys; j++) p[j] -= top;
            top = 0.0f;
        }
        for (int64_t j = 0; j < a->keys; j++) {
            if (!kept(a, i, j)) continue;
            p[j] = exp2_f32(fmaf(p[j], log2e, -log2e * top));
            lanes[(j - first) % 16] += p[j];
            pd[j] = exp(pd[j] - top_exact);
            sum_exact += pd[j];
        }
        for (int step = 8; step > 0; step /= 2) {
            for (int l = 0; l < step; l++) lanes[l] += lanes[l + step];
        }
        for (int64_t c = 0; c < a->dv; c++) {
            float sum = 0.0f;
            double sd = 0;
            for (int64_t j = 0; j < a->keys; j++) {
                float v = a->v[j * a->v_stride + c];
                if (count == 0)
                    sum += v;
                else if (kept(a, i, j))
                    sum = fmaf(p[j], v, sum), sd += pd[j] * (double)v;
            }
            float none[] = { NAN, sum / (float)a->keys, 0.0f };
            o[i * a->o_stride + c] = count == 0 ? none[a->none_left] : sum * (1.0f / lanes[0]);
            exact[i * a->o_stride + c] =
                count == 0 ? (double)o[i * a->o_stride + c] : sd / sum_exact;
        }
    }
    free(p);
    free(pd);
}

static int64_t extent(int64_t rows, int64_t stride, int64_t n) {
    return rows > 0 ? (rows - 1) * stride + n : 0;
}

static problem make(int64_t queries, int64_t keys, int64_t d, int64_t dv) {
    problem p = { .a = { .queries = queries,
                         .keys = keys,
                         .d = d,
                         .dv = dv,
                         .scale = 1.0f / sqrtf((float)(d + 1)) * 4,
                         .causal_offset = INT64_MAX,
                         .window_left = -1,
                         .window_right = -1 } };
    pith__attention *a = &p.a;
    a->q_stride = d + random_below(9), a->k_stride = d + random_below(9),
    a->v_stride = dv + random_below(9);
    a->o_stride = dv + random_below(9);
    a->q = (p.q = guarded_floats(extent(queries, a->q_stride, d))).data;
    a->k = (p.k = guarded_floats(extent(keys, a->k_stride, d))).data;
    a->v = (p.v = guarded_floats(extent(keys, a->v_stride, dv))).data;
    p.bias = guarded_floats(queries * keys);
    p.mask = guarded_alloc((size_t)keys, (int)random_below(2));
    p.scratch = guarded_floats(pith__attention_f32_scratch(keys, d, dv));
    return p;
}

static void check_and_free(problem *p) {
    pith__attention *a = &p->a;
    int64_t size = extent(a->queries, a->o_stride, a->dv);
    float *expected = floats(size);
    double *exact = malloc((size_t)(size + 1) * sizeof *exact);
    define(a, expected, exact);
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level)) continue;
        guarded o = guarded_floats(size);
        a->o = o.data;
        PITH_KERNEL_FIND(pith__attention_f32_fn, "attention", PITH_F32, (pith__isa)level)
        (a, p->scratch.data);
        for (int64_t i = 0; i < a->queries; i++) {
            const float *row = a->o + i * a->o_stride;
            assert_same_floats(row, expected + i * a->o_stride, a->dv,
                               "%s queries %d keys %d d %d dv %d row %d",
                               pith__isa_name((pith__isa)level), (int)a->queries, (int)a->keys,
                               (int)a->d, (int)a->dv, (int)i);
            for (int64_t c = 0; c < a->dv; c++) {
                if (row[c] == row[c])
                    assert_true(fabs((double)row[c] - exact[i * a->o_stride + c]) < 3e-6);
            }
        }
        guarded_free(o);
    }
    free(expected);
    free(exact);
    guarded_free(p->q), guarded_free(p->k), guarded_free(p->v), guarded_free(p->bias),
        guarded_free(p->mask);
    guarded_free(p->scratch);
}

static void test_sizes(void **state) {
    (void)state;
    for (int64_t keys = 0; keys <= 67; keys++) {
        problem p = make(1 + keys % 31, keys, 1 + random_below(70), 1 + random_below(70));
        check_and_free(&p);
    }
    problem none = make(0, 5, 32, 32), wide = make(29, 600, 32, 32), odd = make(15, 530, 64, 64),
            rest = make(3, 600, 7, 40);
    check_and_free(&none), check_and_free(&wide), check_and_free(&odd), check_and_free(&rest);
}

static void test_masks(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t keys = 1 + random_below(90), left = random_below(keys),
                right = random_below(keys - left + 1);
        problem p = make(1 + random_below(40), keys, 16, 1 + random_below(40));
        uint8_t *mask = p.mask.data;
        for (int64_t j = 0; j < keys; j++) {
            mask[j] = j >= left && j < keys - right && (round % 2 || random_below(4) > 0);
            for (int64_t i = 0; i < p.a.queries; i++) ((float *)p.bias.data)[i * keys + j] *= 3.0f;
        }
        p.a.none_left = (pith__none_left)random_below(3);
        if (round % 3) p.a.key_mask = mask;
        if (random_below(2)) p.a.bias = p.bias.data, p.a.bias_stride = random_below(2) ? keys : 0;
        if (random_below(2)) p.a.causal_offset = random_below(keys + 3) - 3;
        if (random_below(2)) p.a.window_left = random_below(20);
        if (random_below(2)) p.a.window_right = random_below(20);
        check_and_free(&p);
    }
}

/* Down to where e^x is subnormal, zero, and of -infinity. */
static void test_low_scores(void **state) {
    (void)state;
    static const float low[] = { 0.0f,    -20.0f, -87.0f, -95.0f, -103.5f,
                                 -150.0f, -1e4f,  -9e6f,  -1e30f, -INFINITY };
    for (int round = 0; round < 40; round++) {
        int64_t keys = 2 + random_below(60);
        problem p = make(1 + random_below(20), keys, 8, 1 + random_below(20));
        p.a.bias = p.bias.data, p.a.bias_stride = keys;
        for (int64_t i = 0; i < p.a.queries * keys; i++)
            ((float *)p.bias.data)[i] = low[random_below(10)];
        for (int64_t i = 0; i < p.a.queries; i++)
            ((float *)p.bias.data)[i * keys + random_below(keys)] = 0.0f;
        check_and_free(&p);
    }
}

/* Rows of which every score is so large that its products leave the range of floats. */
static void test_far_scores(void **state) {
    (void)state;
    static const float far[] = { -1e30f, -3.4028235e38f, -INFINITY, 1e30f, -1e35f };
    for (int round = 0; round < 40; round++) {
        int64_t keys = 1 + random_below(40), count = round % 2 ? 2 : 5;
        problem p = make(1 + random_below(20), keys, 8, 1 + random_below(20));
        if (round % 3 == 0) {
            p.a.scale = 1e25f; /* without a bias all keys but one are left behind */
        } else {
            p.a.bias = p.bias.data, p.a.bias_stride = keys;
            for (int64_t i = 0; i < p.a.queries * keys; i++)
                ((float *)p.bias.data)[i] = far[random_below(count)];
            for (int64_t i = 0; i < p.a.queries; i++) ((float *)p.bias.data)[i * keys] = far[1];
        }
        if (round % 4 == 0) p.a.causal_offset = keys;
        check_and_free(&p);
    }
}

/* A masked key is skipped, whatever it holds, and padding changes no bit. */
static void test_masked_keys_are_not_read_into_sums(void **state) {
    (void)state;
    enum { KEYS = 40, D = 16, QUERIES = 20 };
    problem p = make(QUERIES, KEYS, D, D);
    pith__attention plain = p.a, *a = &p.a;
    uint8_t *mask = p.mask.data;
    float first[QUERIES * D], second[QUERIES * D];
    for (int64_t j = 0; j < KEYS; j++) mask[j] = j >= 5 && j < 33;
    for (int64_t j = 0; j < KEYS; j++) {
        if (!mask[j])
            ((float *)p.v.data)[j * a->v_stride] = INFINITY,
                                    ((float *)p.k.data)[j * a->k_stride] = NAN;
    }
    plain.k += 5 * a->k_stride, plain.v += 5 * a->v_stride, plain.keys = 28;
    a->key_mask = mask;
    a->o = first, plain.o = second;
    a->o_stride = plain.o_stride = D;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level)) continue;
        pith__attention_f32_fn *fn =
            PITH_KERNEL_FIND(pith__attention_f32_fn, "attention", PITH_F32, (pith__isa)level);
        fn(a, p.scratch.data);
        fn(&plain, p.scratch.data);
        assert_memory_equal(first, second, sizeof first);
        for (size_t i = 0; i < QUERIES * D; i++) assert_true(isfinite(first[i]));
    }
    guarded_free(p.q), guarded_free(p.k), guarded_free(p.v), guarded_free(p.bias),
        guarded_free(p.mask);
    guarded_free(p.scratch);
}

/* round(x * inverse) by the sum with 1.5 * 2^23, as the kernel has it. */
static int32_t rounded(float x, float inverse) {
    return (int32_t)(fmaf(x, inverse, 0x1.8p23f) - 0x1.8p23f);
}

/* 2^-(difference * unit) in units of 2^-15, rounded as the kernel does. */
static int32_t weight_of(int32_t difference, float unit) {
    int exponent;
    const uint32_t factor = (uint32_t)ldexpf(frexpf(unit, &exponent), 16); /* 2^15 to 2^16 */
    const int shift = unit > 0.0f ? 16 - 28 - exponent + 1 : 31;
    uint32_t u = (uint32_t)difference >> (shift < 0 ? 0 : shift > 31 ? 31 : shift);
    u = (u < 65535 ? u : 65535) * (shift < 0 ? 65535 : factor) >> 16;
    const uint32_t f = u % 2048 * 32;
    uint32_t y = 1251 * f >> 16;
    y = (7494 - y) * f >> 16;
    y = (22624 - y) * f >> 16;
    const int32_t weight = (int32_t)((32763 - y) >> u / 2048);
    if (shift >= 0 && shift < 31) {
        const double exact = 32768.0 * exp2(-(double)difference * (double)unit);
        /* u and what it is made from are rounded down, 2^-11 of an exponent each; the polynomial */
        assert_true(fabs(weight - exact) < 1.5 + (2.0 * 3.4e-4 + 1.3e-4) * exact);
    }
    return weight;
}

/* The definition of i16 for an open call of the keys [first, first + keys). */
static void define_i16(const pith__attention *a, int64_t first, int64_t keys, float *o) {
    const float *k = a->k + first * a->k_stride, *v = a->v + first * a->v_stride;
    const float steps = floorf(sqrtf(0x1.fffffep29f / (float)a->d));
    float key_most = 0.0f;
    int32_t *s = malloc((size_t)keys * sizeof *s);
    for (int64_t j = 0; j < keys; j++) {
        for (int64_t d = 0; d < a->d; d++)
            key_most = fmaxf(key_most, fabsf(k[j * a->k_stride + d]));
    }
    const bool no_key = key_most < 0x1p-100f;
    for (int64_t i = 0; i < a->queries; i++) {
        const float *q = a->q + i * a->q_stride;
        float most = 0.0f;
        int32_t top = INT32_MIN, sum_of_weights = 0;
        for (int64_t d = 0; d < a->d; d++) most = fmaxf(most, fabsf(q[d]));
        const bool none = most < 0x1p-100f;
        const float unit = 0x1.715476p0f * a->scale * (no_key ? 0.0f : key_most / steps) *
                           (none ? 0.0f : most / steps);
        for (int64_t j = 0; j < keys; j++) {
            s[j] = 0;
            for (int64_t d = 0; d < a->d; d++) {
                s[j] += rounded(q[d], none ? 0.0f : steps / most) *
                        rounded(k[j * a->k_stride + d], no_key ? 0.0f : steps / key_most);
            }
            if (s[j] > top) top = s[j];
        }
        for (int64_t j = 0; j < keys; j++) sum_of_weights += s[j] = weight_of(top - s[j], unit);
        for (int64_t column = 0; column < a->dv; column++) {
            float low = v[column], high = low, sum = 0.0f;
            for (int64_t j = 1; j < keys; j++) {
                low = fminf(low, v[j * a->v_stride + column]),
                high = fmaxf(high, v[j * a->v_stride + column]);
            }
            const float middle = (high + low) * 0.5f, half = (high - low) * 0.5f;
            const bool flat = half < 0x1p-100f;
            for (int64_t block = 0; block < keys; block += 256) {
                int32_t part = 0;
                for (int64_t j = block; j < keys && j < block + 256; j++)
                    part += s[j] * rounded(v[j * a->v_stride + column] - middle,
                                           flat ? 0.0f : 255.0f / half);
                sum = block ? sum + (float)part : (float)part;
            }
            o[i * a->o_stride + column] =
                fmaf(sum, 1.0f / (float)sum_of_weights * (flat ? 0.0f : half / 255.0f), middle);
        }
    }
    free(s);
}

static double most_of(const float *x, int64_t rows, int64_t stride, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < rows * n; i++)
        most = fmax(most, fabs((double)x[i / n * stride + i % n]));
    return most;
}

/* Every level gives the bits of the definition, for every split of the queries, and is close to the
 * formula: half a step of v, 2^-10 of probabilities, and what half a step of each q and k makes of
 * an exponent. The first and the last keys are masked. */
static void check_i16(problem p, int64_t before, int64_t behind) {
    pith__attention *a = &p.a;
    const int64_t keys = a->keys - before - behind, size = extent(a->queries, a->o_stride, a->dv),
                  part = random_below(a->queries + 1);
    float *expected = floats(size), *whole = floats(size), *parts = floats(size);
    double *exact = malloc((size_t)(size + 1) * sizeof *exact);
    for (int64_t j = 0; j < a->keys; j++)
        ((uint8_t *)p.mask.data)[j] = j >= before && j < before + keys;
    if (before + behind > 0) a->key_mask = p.mask.data;
    const double scores = (double)(a->scale * (float)a->d) *
                          most_of(a->q, a->queries, a->q_stride, a->d) *
                          most_of(a->k, a->keys, a->k_stride, a->d);
    const double change = expm1(2 * scores / (sqrt(0x1p30 / (double)a->d) - 1)) + 0x1p-10;
    const double tolerance =
        most_of(a->v, a->keys, a->v_stride, a->dv) * (1.0 / 510 + 2 * (change < 1 ? change : 1)) +
        1e-30;
    define(a, expected, exact);
    define_i16(a, before, keys, expected);
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        const uint32_t vnni = level == PITH_ISA_avx512 ? PITH_CPU_AVX512_VNNI : PITH_CPU_AVX_VNNI;
        for (int way = 0; way < 2; way++) {
            if (!level_usable(level) || (way == 1 && !(pith__cpu_get()->features & vnni))) continue;
            pith__attention_f32_fn *fn =
                PITH_KERNEL_FIND(pith__attention_f32_fn, way ? "attention_vnni" : "attention",
                                 PITH_I16, (pith__isa)level);
            pith__attention first = *a, rest = *a;
            a->o = whole, first.o = parts, rest.o = parts + part * a->o_stride;
            first.queries = part, rest.queries = a->queries - part, rest.q += part * a->q_stride;
            fn(a, p.scratch.data);
            fn(&rest, p.scratch.data);
            fn(&first, p.scratch.data);
            for (int64_t i = 0; i < a->queries; i++) {
                const int64_t at = i * a->o_stride;
                assert_same_floats(whole + at, expected + at, a->dv,
                                   "%s %d queries %d keys %d d %d dv %d row %d",
                                   pith__isa_name((pith__isa)level), way, (int)a->queries,
                                   (int)keys, (int)a->d, (int)a->dv, (int)i);
                assert_memory_equal(whole + at, parts + at, (size_t)a->dv * sizeof *whole);
                for (int64_t c = 0; c < a->dv; c++)
                    assert_true(fabs((double)whole[at + c] - exact[at + c]) < tolerance);
            }
        }
    }
    free(expected), free(whole), free(parts), free(exact);
    guarded_free(p.q), guarded_free(p.k), guarded_free(p.v), guarded_free(p.bias),
        guarded_free(p.mask);
    guarded_free(p.scratch);
}

static void test_i16(void **state) {
    (void)state;
    for (int64_t keys = 1; keys <= 67; keys++) {
        int64_t before = random_below(3), behind = random_below(3);
        check_i16(make(1 + keys % 31, before + keys + behind, 16 * (1 + random_below(5)),
                       16 * (1 + random_below(5))),
                  before, behind);
    }
    check_i16(make(29, 256, 32, 32), 0, 0);
    check_i16(make(29, 257, 32, 32), 0, 0);
    check_i16(make(14, 513, 32, 32), 0, 0);
    check_i16(make(15, 1300, 64, 48), 0, 0);
    check_i16(make(1, 2, 256, 16), 1, 0);
}

/* Numbers without range, sharp and flat distributions, and a magnitude whose scores leave all but
 * one key behind. */
static void test_i16_extremes(void **state) {
    (void)state;
    static const float factors[] = { 0.0f, 0x1p-110f, 1e-3f, 30.0f, 1e6f };
    for (int round = 0; round < 125; round++) {
        problem p = make(9, 40, 16, 16);
        const float q = factors[round % 5], k = factors[round / 5 % 5], v = factors[round / 25];
        for (int64_t i = 0; i < extent(9, p.a.q_stride, 16); i++) ((float *)p.q.data)[i] *= q;
        for (int64_t i = 0; i < extent(40, p.a.k_stride, 16); i++) ((float *)p.k.data)[i] *= k;
        for (int64_t i = 0; i < extent(40, p.a.v_stride, 16); i++)
            ((float *)p.v.data)[i] = p.a.v[i] * v + 3.0f;
        check_i16(p, round % 3, 0);
    }
}

/* Calls that are not open are those of f32. */
static void test_i16_elsewhere(void **state) {
    (void)state;
    for (int round = 0; round < 4; round++) {
        problem p = make(9, 20, round == 3 ? 24 : 16, 16);
        float first[9 * 16], second[9 * 16];
        for (int64_t j = 0; j < 20; j++) ((uint8_t *)p.mask.data)[j] = j % 5 != 2;
        if (round == 0) p.a.causal_offset = 0;
        if (round == 1) p.a.bias = p.bias.data, p.a.bias_stride = 20;
        if (round == 2) p.a.key_mask = p.mask.data;
        p.a.o_stride = 16;
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            p.a.o = first;
            PITH_KERNEL_FIND(pith__attention_f32_fn, "attention", PITH_I16, (pith__isa)level)
            (&p.a, p.scratch.data);
            p.a.o = second;
            PITH_KERNEL_FIND(pith__attention_f32_fn, "attention", PITH_F32, (pith__isa)level)
            (&p.a, p.scratch.data);
            assert_memory_equal(first, second, sizeof first);
        }
        guarded_free(p.q), guarded_free(p.k), guarded_free(p.v), guarded_free(p.bias),
            guarded_free(p.mask);
        guarded_free(p.scratch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_low_scores),
        cmocka_unit_test(test_far_scores),
        cmocka_unit_test(test_masked_keys_are_not_read_into_sums),
        cmocka_unit_test(test_i16),
        cmocka_unit_test(test_i16_extremes),
        cmocka_unit_test(test_i16_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

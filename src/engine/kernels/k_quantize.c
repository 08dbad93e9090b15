/* k_quantize.c - f32 to integers by row or column. x / scale is x times one reciprocal. Adding 1.5
 * * 2^23 in the same fused step rounds it and leaves the integer in the low bits. */
#include "engine/kernels/quantize.h"

#include <float.h>
#include <stdbool.h>

#include "engine/kernels/gemm_int8.h"
#include "engine/kernels/vmath.h"

PITH_INLINE vf quantize_take(const float *p, int64_t n) {
    return n >= 16 ? vf_load(p) : vf_load_n(p, (size_t)n);
}

/* round(x * inverse + zero) within [low, high]; zero, low and high are integers plus
 * PITH_ROUND_MAGIC, NaN gives low. */
PITH_INLINE vi quantize_rounded(vf x, vf inverse, vf zero, vf low, vf high) {
    return vi_bits(vf_min(vf_max(vf_fma(x, inverse, zero), low), high));
}

PITH_INLINE int32_t first_lane(vi v) {
    int32_t lanes[16];
    vi_store(lanes, v);
    return lanes[0];
}

/* ROWS: rows whose ranges are computed side by side, since those of one row are chains of dependent
 * operations. SEARCHED: rows whose extremes are searched at a time, as many as the registers
 * allow. */
#if defined(PITH_LEVEL_avx512)
enum { ROWS = 4, SEARCHED = 4 };
#elif defined(PITH_LEVEL_avx2)
enum { ROWS = 4, SEARCHED = 1 };
#else
enum { ROWS = 1, SEARCHED = 1 };
#endif

/* The two largest and the two least of a row's elements and 0, by lane. */
typedef struct extremes {
    vf high, next_high, low, next_low;
} extremes;

PITH_VMATH void quantize_widen(extremes *e, vf v) {
    e->next_high = vf_max(e->next_high, vf_min(e->high, v));
    e->high = vf_max(e->high, v);
    e->next_low = vf_min(e->next_low, vf_max(e->low, v));
    e->low = vf_min(e->low, v);
}

/* Those of rows of n numbers that lie ldx apart. */
PITH_INLINE void find_extremes(extremes *found, const int rows, const float *x, int64_t ldx,
                               int64_t n) {
    const int64_t whole = n / 16 * 16;
    extremes e[SEARCHED];
    PITH_UNROLL
    for (int r = 0; r < rows; r++)
        e[r].high = e[r].next_high = e[r].low = e[r].next_low = vf_zero();
    for (int64_t i = 0; i < whole; i += 16) {
        PITH_UNROLL
        for (int r = 0; r < rows; r++) quantize_widen(&e[r], vf_load(x + r * ldx + i));
    }
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        if (whole < n) /* missing lanes are 0 */
            quantize_widen(&e[r], vf_load_n(x + r * ldx + whole, (size_t)(n - whole)));
        found[r] = e[r];
    }
}

/* How a row becomes steps. */
typedef struct steps_of {
    float inverse, scale; /* 0: a row without range */
    int32_t zero;
} steps_of;

/* Least and largest: of the range of a row without outliers, 0 included; farthest: its element
 * farthest from 0. The range is at least a hundredth of the farthest, which keeps what an outlier
 * lacks within 16 bits. Half a step less than there is, so that nothing within the range is rounded
 * out of it. */
PITH_INLINE steps_of find_steps(float least, float largest, float farthest) {
    const float most = (float)PITH_NARROW_A - 0.5f;
    float width = largest - least;
    if (!(width >= farthest * 0.01f)) width = farthest * 0.01f;
    if (!(width >= PITH_RANGE_MIN)) return (steps_of){ 0 };
    const vf bottom = vf_set1(PITH_ROUND_MAGIC),
             top = vf_set1(PITH_ROUND_MAGIC + (float)PITH_NARROW_A);
    const float inverse = most / width;
    const vi zero = quantize_rounded(vf_set1(-least), vf_set1(inverse), bottom, bottom, top);
    return (steps_of){ inverse, width / most, first_lane(vi_sub(zero, vi_bits(bottom))) };
}

/* Finds the steps of rows without the elements farthest from 0. In each turn the farthest of all
 * lanes goes, and the next in its lane takes its place; that is exact as long as no lane loses more
 * than it has noted (extremes). Rows go side by side, since each turn is a chain of dependent
 * operations. */
PITH_INLINE void leave_out(steps_of *steps, extremes *e, const int rows) {
    vf depth[ROWS], next[ROWS]; /* of what is below 0 */
    float farthest[ROWS] = { 0 };
    PITH_UNROLL
    for (int r = 0; r < rows; r++) {
        depth[r] = vf_sub(vf_zero(), e[r].low);
        next[r] = vf_sub(vf_zero(), e[r].next_low);
    }
    for (int i = 0; i < PITH_I8_EXTRAS; i++) {
        PITH_UNROLL
        for (int r = 0; r < rows; r++) {
            const vf size = vf_max(e[r].high, depth[r]);
            const float largest = vf_hmax(size);
            const vm lane = vm_lowest(vf_eq(size, vf_set1(largest))),
                     above = vf_ge(e[r].high, depth[r]);
            e[r].high = vf_select(vm_and(lane, above), e[r].next_high, e[r].high);
            depth[r] = vf_select(vm_and(lane, vm_not(above)), next[r], depth[r]);
            if (!i) farthest[r] = largest;
        }
    }
    PITH_UNROLL
    for (int r = 0; r < rows; r++)
        steps[r] = find_steps(-vf_hmax(depth[r]), vf_hmax(e[r].high), farthest[r]);
}

/* Elements that are searched together for outliers: one bit each of a 64-bit mask. */
enum { BLOCK = 64 };

/* Steps of n elements of a row, at most BLOCK; bit i: 8 bits do not hold element i. */
PITH_INLINE uint64_t round_block(uint8_t *q, const float *x, vf inverse, vf zero, const int64_t n) {
    const vf bottom = vf_set1(PITH_ROUND_MAGIC),
             top = vf_set1(PITH_ROUND_MAGIC + (float)PITH_NARROW_A);
    uint64_t cut = 0;
    PITH_UNROLL
    for (int64_t i = 0; i < n; i += 16) {
        const vf v = vf_fma(quantize_take(x + i, n - i), inverse, zero),
                 within = vf_min(vf_max(v, bottom), top);
        if (n - i >= 16)
            vi_store_8(q + i, vi_bits(within));
        else
            vi_store_8_n(q + i, vi_bits(within), (size_t)(n - i));
        cut |= (uint64_t)vm_lanes(vm_not(vf_eq(v, within))) << i;
    }
    return cut;
}

/* Rounds a row in blocks and notes the elements that 8 bits do not hold; then makes an extra of
 * each. Both loops are without branches that depend on the numbers, since outliers cannot be
 * foreseen and a wrong guess costs more than an extra of 0. */
static void quantize_row(const pith__quantize_rows *a, int64_t row, steps_of steps) {
    const float *x = a->x + row * a->ldx;
    const vf inverse = vf_set1(steps.inverse), zero = vf_set1(PITH_ROUND_MAGIC + (float)steps.zero);
    uint8_t *q = a->q + row * a->ldq;
    pith__i8_extra *extras = a->extra + row * PITH_I8_EXTRAS;
    struct {
        int64_t first;
        uint64_t elements;
    } cut[PITH_I8_EXTRAS + 1] = { 0 };
    int blocks = 0;
    for (int64_t i = 0; i < a->n; i += BLOCK) {
        cut[blocks].first = i;
        cut[blocks].elements = a->n - i >= BLOCK
                                   ? round_block(q + i, x + i, inverse, zero, BLOCK)
                                   : round_block(q + i, x + i, inverse, zero, a->n - i);
        /* no branch: it could not be foreseen */
        blocks += cut[blocks].elements != 0 && blocks < PITH_I8_EXTRAS;
    }
    /* As many turns for every row and no branch in them. */
    uint64_t left = cut[0].elements;
    for (int e = 0, b = 0; e < PITH_I8_EXTRAS; e++) {
        const int64_t at = left ? cut[b].first + __builtin_ctzll(left) : 0;
        const vi exact = vi_bits(vf_fma(vf_set1(x[at]), inverse, zero));
        const int32_t lacks = first_lane(vi_sub(exact, vi_bits(vf_set1(PITH_ROUND_MAGIC)))) - q[at];
        extras[e] = pith__i8_extra_of(at, left ? lacks : 0);
        left &= left - 1;
        b += !left;
        left = left ? left : cut[b].elements;
    }
    a->scale[row] = steps.scale;
    a->zero[row] = steps.zero;
}

PITH_INLINE void quantize_rows(const pith__quantize_rows *a, int64_t row, const int rows) {
    extremes e[ROWS];
    steps_of steps[ROWS];
    for (int r = 0; r < rows; r += SEARCHED)
        find_extremes(e + r, rows < SEARCHED ? rows : SEARCHED, a->x + (row + r) * a->ldx, a->ldx,
                      a->n);
    leave_out(steps, e, rows);
    for (int r = 0; r < rows; r++) quantize_row(a, row + r, steps[r]);
}

void PITH_K(quantize_rows_u8)(const pith__quantize_rows *a) {
    int64_t row = 0;
    for (; a->rows - row >= ROWS; row += ROWS) quantize_rows(a, row, ROWS);
    if (ROWS > 1)
        for (; row < a->rows; row++) quantize_rows(a, row, 1);
}

/* The least step of each column of a panel that keeps two bounds: 127 for one weight, and the sum
 * of four for the narrow GEMM. Rows of such a four are 8 i + 0, 1, 4, 5 or 8 i + 2, 3, 6, 7, those
 * whose products meet in one 16-bit sum. */
static vf panel_step(const float *panel, int64_t k) {
    const vf four_most =
        vf_set1((float)PITH_NARROW_FOUR - 2.0f); /* each of the four is rounded by half a step at
                                                    most */
    vf step = vf_zero();
    for (int64_t i = 0; i < k; i += i % 8 ? 6 : 2) {
        vf sum = vf_zero();
        for (int64_t row = i; row < i + 6 && row < k; row += row % 2 ? 3 : 1) {
            vf size = vf_abs(vf_load(panel + 16 * row));
            sum = vf_add(sum, size);
            step = vf_max(vf_div(size, vf_set1(127.0f)), step);
        }
        step = vf_max(vf_div(sum, four_most), step);
    }
    return step;
}

/* What errors [k][16] of weights after the t-th in order change in it; u is its row. Four sums, so
 * that their chains of multiply-adds overlap. */
PITH_INLINE vf made_good(const float *errors, const float *u, int64_t t, int64_t k) {
    vf sum[4] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
    for (; k - t > 4; t += 4) {
        PITH_UNROLL
        for (int s = 0; s < 4; s++)
            sum[s] = vf_fma(vf_set1(u[t + 1 + s]), vf_load(errors + 16 * (t + 1 + s)), sum[s]);
    }
    for (t++; t < k; t++) sum[0] = vf_fma(vf_set1(u[t]), vf_load(errors + 16 * t), sum[0]);
    return vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3]));
}

/* What the bound of row i's four leaves to it; those that are not packed yet are 0. */
PITH_INLINE vf left_of_four(const int32_t *groups, int64_t i) {
    vi sum = vi_set1(0);
    for (int group = 0; group < 2; group++) {
        const vi bytes = vi_load(groups + (i / 8 * 2 + group) * 16),
                 pair = i & 2 ? vi_shr(bytes, 16) : bytes;
        const vi first = vi_sar(vi_shl(pair, 24), 24), second = vi_sar(vi_shl(pair, 16), 24);
        sum = vi_add(sum, vi_max(first, vi_sub(vi_set1(0), first)));
        sum = vi_add(sum, vi_max(second, vi_sub(vi_set1(0), second)));
    }
    return vf_sub(vf_set1((float)PITH_NARROW_FOUR), vf_of_vi(sum));
}

/* Without a factor each weight is rounded to nearest. With one, weights are rounded from the last
 * in order to the first. Each aims at its value plus what the errors of those already rounded ask
 * of it, and is limited to what its four leave free, since a compensated weight may be larger than
 * the one that set the step. `work` keeps the errors, in order. */
void PITH_K(quantize_panel_i8)(void *packed, float *scale, const float *panel, int64_t k,
                               const pith__factor *factor, float *work) {
    const vf zero = vf_set1(PITH_ROUND_MAGIC), most = vf_set1(127.0f), step = panel_step(panel, k);
    const vm flat = vm_not(vf_ge(step, vf_set1(PITH_RANGE_MIN)));
    const vf kept = vf_select(flat, vf_zero(), step);
    const vf inverse = vf_select(flat, vf_zero(), vf_div(vf_set1(1.0f), step));
    int32_t *const groups = packed, *const sums_at = groups + (k + 3) / 4 * 16;
    vi sums = vi_set1(0);
    for (int32_t *at = groups; at <= sums_at; at += 16) vi_store(at, sums);
    vf_store(scale, kept);
    for (int64_t t = k - 1; t >= 0; t--) {
        const int64_t i = factor ? factor->order[t] : t;
        const vf weight = vf_load(panel + 16 * i);
        vf aim = weight, top = most;
        if (factor) {
            aim = vf_add(aim, made_good(work, factor->u + t * pith__factor_stride(k), t, k));
            top = vf_min(left_of_four(groups, i), most);
        }
        const vi v =
            vi_sub(quantize_rounded(aim, inverse, zero, vf_sub(zero, top), vf_add(zero, top)),
                   vi_bits(zero));
        if (factor) vf_store(work + 16 * t, vf_fma(vf_neg(kept), vf_of_vi(v), weight));
        int32_t *const group = groups + i / 4 * 16;
        const vi byte = vi_mul(vi_and(v, vi_set1(255)), vi_set1((int32_t)(1u << 8 * (i % 4))));
        vi_store(group, vi_or(vi_load(group), byte));
        sums = vi_add(sums, v);
    }
    vi_store(sums_at, sums);
}

/* `vectors` of row i from column j on, less what the rows above it have there. */
PITH_INLINE void quantize_reduce(float *a, int64_t stride, int64_t i, int64_t j,
                                 const float *column, const int vectors) {
    vf sum[4];
    PITH_UNROLL
    for (int p = 0; p < vectors; p++) sum[p] = vf_load(a + i * stride + j + 16 * p);
    for (int64_t l = 0; l < i; l++) {
        const vf factor = vf_set1(column[l]);
        PITH_UNROLL
        for (int p = 0; p < vectors; p++)
            sum[p] = vf_fma(factor, vf_load(a + l * stride + j + 16 * p), sum[p]);
    }
    PITH_UNROLL
    for (int p = 0; p < vectors; p++) vf_store(a + i * stride + j + 16 * p, sum[p]);
}

/* Cholesky's factorisation without roots, row by row: row i of D U is row i of a less what the rows
 * above it have in it, and dividing it by its diagonal element gives U. A diagonal element that
 * shrinks to rounding errors means that a is singular as far as f32 can tell: false. */
bool PITH_K(unit_factor_f32)(float *a, int64_t n, float *column, pith__stop *stop) {
    enum {
        TOO_LITTLE = 1 << 22
    }; /* below 1 / TOO_LITTLE of itself, a diagonal element is only
                                      rounding errors */
    const int64_t stride = pith__factor_stride(n);
    for (int64_t i = 0; i < n; i++) {
        float *row = a + i * stride;
        if (pith__stop_asked(stop)) return true;
        const float before = row[i];
        int64_t j = i / 16 * 16;
        for (int64_t l = 0; l < i; l++) column[l] = -a[l * stride + i] * a[l * stride + l];
        for (; stride - j >= 64; j += 64) quantize_reduce(a, stride, i, j, column, 4);
        for (; j < stride; j += 16) quantize_reduce(a, stride, i, j, column, 1);
        const float left = row[i];
        if (!(left > before / (float)TOO_LITTLE) || !(left <= FLT_MAX)) return false;
        const vf inverse = vf_set1(1.0f / left);
        for (j = i / 16 * 16; j < stride; j += 16)
            vf_store(row + j, vf_mul(vf_load(row + j), inverse));
        row[i] = left;
    }
    return true;
}

/* Least and largest of x and what was found before, by lane. */
PITH_INLINE void lanes_of(vf *low, vf *high, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        vf v = quantize_take(x + i, n - i); /* missing lanes are 0 */
        *low = vf_min(v, *low);
        *high = vf_max(v, *high);
    }
}

void PITH_K(quantize_table_i8)(const float *x, int8_t *q, float *scale, int64_t rows, int64_t n) {
    const vf zero = vf_set1(PITH_ROUND_MAGIC), most = vf_set1(127.0f);
    for (int64_t i = 0; i < rows * n;) {
        const int64_t end = i + PITH_TABLE_GROUP, row_end = (i / n + 1) * n,
                      next = end < row_end ? end : row_end;
        vf low = vf_zero(), high = vf_zero();
        lanes_of(&low, &high, x + i, next - i);
        float top = vf_hmax(vf_max(high, vf_sub(vf_zero(), low)));
        bool flat = !(top >= PITH_RANGE_MIN);
        vf inverse = vf_set1(flat ? 0.0f : 127.0f / top);
        *scale++ = flat ? 0.0f : top / 127.0f;
        for (; i < next; i += 16) {
            vi v = quantize_rounded(quantize_take(x + i, next - i), inverse, zero,
                                    vf_sub(zero, most), vf_add(zero, most));
            if (next - i >= 16)
                vi_store_8(q + i, v);
            else
                vi_store_8_n(q + i, v, (size_t)(next - i));
        }
        i = next;
    }
}

void PITH_K(dequantize_row_i8)(const int8_t *q, const float *scale, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        const vf s = vf_set1(scale[i / PITH_TABLE_GROUP]);
        if (n - i >= 16) {
            vf_store(y + i, vf_mul(vf_of_vi(vi_load_i8((const uint8_t *)q + i)), s));
        } else {
            uint8_t rest[16] = { 0 };
            memcpy(rest, q + i, (size_t)(n - i));
            vf_store_n(y + i, vf_mul(vf_of_vi(vi_load_i8(rest)), s), (size_t)(n - i));
        }
    }
}

/* k_pool.c - see pool_rows.h. A plane is walked in strips of sixteen windows, down its rows. Places
 * are offsets into x, because a strip at the edge of a row reads its neighbours too and then leaves
 * out what lies outside the row. */
#include <math.h>

#include "engine/kernels/pool_rows.h"
#include "engine/kernels/vec.h"

enum {
    MOST = PITH_POOL_ROWS_MOST,
    BAND = 4096, /* floats of a plane that all strips go through before the next ones begin: they
                    stay in the cache */
    GROUP = 4    /* rows of windows whose sums are made together: they share what they load */
};

/* Sixteen windows side by side, of which n are wanted. */
typedef struct pool_strip {
    const pith__pool_planes *a;
    int64_t total;               /* readable floats of x */
    int64_t in, at, columns;     /* of a row; the first window's place, and columns of a window */
    int64_t height, rows, plane; /* of the input; of a window; offset of the channel */
    int64_t step, begin;         /* of a window's rows; padding before axis 0 */
    int64_t j;
    size_t n;
    int stride;
    bool whole; /* all places of the n windows are inside the row, and what is read beside them is
                   inside x */
    int64_t first[MOST], end[MOST]; /* of the lanes that are inside the row, by column */
} pool_strip;

PITH_INLINE vf pool_outside(const int max) { return max ? vf_set1(-INFINITY) : vf_zero(); }

/* max: 1, or 2 where there may be NaN. */
PITH_INLINE vf pool_join(vf all, vf v, const int max) {
    if (max == 2) return vf_max_nan(v, all);
    return max ? vf_max(v, all) : vf_add(all, v);
}

PITH_INLINE vf pool_load(const float *p, const int stride) {
    return stride == 1 ? vf_load(p) : vf_even(vf_load(p), vf_load(p + 16));
}

/* How many of sixteen windows `stride` apart begin less than `distance` behind the first one. */
PITH_INLINE int64_t pool_windows_before(int64_t distance, int64_t stride) {
    if (distance <= 0) return 0;
    return distance > 15 * stride ? 16 : (distance + stride - 1) / stride;
}

static void pool_strip_begin(pool_strip *s, int64_t j, int64_t last_row) {
    const int stride = s->stride;
    const pith__window *w = s->a->window;
    const int last = w->rank - 1;
    s->j = j;
    s->n = w->out[last] - j < 16 ? (size_t)(w->out[last] - j) : 16;
    s->at = stride * j - w->begin[last];
    s->whole = s->at >= 0 && s->at + stride * ((int64_t)s->n - 1) + s->columns <= s->in &&
               last_row + s->at + s->columns - 1 + 16 * stride <= s->total;
    for (int64_t c = 0; c < s->columns; c++) {
        const int64_t at = s->at + c, left = s->in - at;
        s->first[c] = pool_windows_before(-at, stride);
        s->end[c] = pool_windows_before(left, stride);
    }
}

/* Column c of the windows at offset `at`, one by one, where a whole vector would reach beyond x. It
 * is rare, and not inlined, so that the usual way stays short. */
static __attribute__((noinline)) vf pool_scattered(const pool_strip *s, int64_t at, int64_t c,
                                                   int stride, float outside) {
    float lanes[16];
    for (int64_t i = 0; i < 16; i++)
        lanes[i] = i < s->first[c] || i >= s->end[c] ? outside : s->a->x[at + i * stride];
    return vf_load(lanes);
}

/* Column c of the windows, in the row at offset `row`, in the cheapest way that reads inside of x:
 * as it lies if all of it is inside the row; with the lanes outside replaced; or one by one. */
PITH_INLINE vf pool_tap(const pool_strip *s, int64_t row, int64_t c, const int max) {
    const float *x = s->a->x;
    const int stride = s->stride;
    const int64_t at = row + s->at + c;
    if (s->whole) return pool_load(x + at, stride);
    if (at >= 0 && at + 16 * stride <= s->total) {
        const vf v =
            vf_select(vm_first((size_t)s->end[c]), pool_load(x + at, stride), pool_outside(max));
        return vf_select(vm_first((size_t)s->first[c]), pool_outside(max), v);
    }
    return pool_scattered(s, at, c, stride, max ? -INFINITY : 0.0f);
}

PITH_INLINE void pool_put(const pool_strip *s, int64_t o, vf v, int64_t channel) {
    const pith__window *w = s->a->window;
    const int last = w->rank - 1;
    float *y = s->a->y + (channel * (last ? w->out[0] : 1) + o) * w->out[last] + s->j;
    if (s->n == 16)
        vf_store(y, v);
    else
        vf_store_n(y, v, s->n);
}

/* The rows inside of window row o: from *first on, so many. */
PITH_INLINE int64_t pool_inside(const pith__window *w, int64_t o, int64_t *first) {
    *first = 0;
    if (w->rank == 1) return 1;
    const int64_t at = o * w->stride[0] - w->begin[0], dilation = w->dilation[0];
    int64_t skip = 0;
    if (at < 0) skip = dilation == 1 ? -at : (dilation - 1 - at) / dilation;
    *first = at + skip * dilation;
    int64_t rows = w->in[0] - *first;
    if (dilation > 1 && rows > 0) rows = (rows - 1) / dilation + 1;
    if (rows > w->kernel[0] - skip) rows = w->kernel[0] - skip;
    if (rows <= 0) *first = 0;
    return rows > 0 ? rows : 0;
}

/* ---- maxima ---- */

/* Rows [o, end) of windows. A ring keeps the maxima of the rows that windows share. */
PITH_INLINE void pool_max_strip(const pool_strip *s, int64_t o, int64_t end, int64_t channel,
                                const int max) {
    const pith__window *w = s->a->window;
    float ring[MOST][16];
    const int64_t step = s->step / s->in;
    for (int64_t known = 0; o < end; o++) {
        int64_t first;
        const int64_t rows = pool_inside(w, o, &first);
        vf most = pool_outside(max);
        for (int64_t i = 0, r = first; i < rows; i++, r += step) {
            vf row;
            if (step == 1 && r < known) {
                row = vf_load(ring[r % MOST]);
            } else {
                row = pool_outside(max);
                for (int64_t c = 0; c < s->columns; c++)
                    row = pool_join(row, pool_tap(s, s->plane + r * s->in, c, max), max);
                vf_store(ring[r % MOST], row);
                known = r + 1;
            }
            most = pool_join(most, row, max);
        }
        pool_put(s, o, most, channel);
    }
}

/* ---- means ---- */

/* Places of window row o along axis 0. */
PITH_INLINE int64_t pool_row_places(const pith__pool_planes *a, int64_t o, int64_t inside) {
    const pith__window *w = a->window;
    if (!a->padded || w->rank == 1) return inside;
    const int64_t left = w->in[0] + w->end[0] - (o * w->stride[0] - w->begin[0]);
    const int64_t places = left <= 0 ? 0 : (left - 1) / w->dilation[0] + 1;
    return places < w->kernel[0] ? places : w->kernel[0];
}

PITH_INLINE vf pool_divide(const pool_strip *s, vf sum, int64_t rows) {
    if (!s->whole)
        return vf_div(sum, vf_mul(vf_load_n(s->a->counts + s->j, s->n), vf_set1((float)rows)));
    const int64_t places = rows * s->columns;
    const vf count = vf_set1((float)places);
    /* The reciprocal of a power of two is exact. */
    return places & (places - 1) || !places ? vf_div(sum, count)
                                            : vf_mul(sum, vf_set1(1.0f / (float)places));
}

static void pool_mean_strip(const pool_strip *s, int64_t o, int64_t end, int64_t channel) {
    const pith__window *w = s->a->window;
    for (; o < end; o++) {
        int64_t first;
        const int64_t rows = pool_inside(w, o, &first);
        int64_t row = s->plane + first * s->in;
        vf sum = vf_zero();
        for (int64_t r = 0; r < rows; r++, row += s->step) {
            for (int64_t c = 0; c < s->columns; c++) sum = vf_add(sum, pool_tap(s, row, c, 0));
        }
        pool_put(s, o, pool_divide(s, sum, pool_row_places(s->a, o, rows)), channel);
    }
}

/* ---- planes ---- */

/* May NaN be among n elements? Also said of infinities. 0 times a finite number is 0 and 0 times
 * anything else is NaN, which stays in the sum. */
static bool pool_odd(const float *x, int64_t n) {
    vf sums[4] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
    int64_t i = 0;
    for (; n - i >= 64; i += 64) {
        PITH_UNROLL
        for (int k = 0; k < 4; k++) sums[k] = vf_fma(vf_load(x + i + 16 * k), vf_zero(), sums[k]);
    }
    for (; i < n; i += 16) {
        const vf v = n - i < 16 ? vf_load_n(x + i, (size_t)(n - i)) : vf_load(x + i);
        sums[0] = vf_fma(v, vf_zero(), sums[0]);
    }
    const vf all = vf_add(vf_add(sums[0], sums[1]), vf_add(sums[2], sums[3]));
    return vm_any(vf_isnan(all));
}

static void pool_max_plain(const pool_strip *s, int64_t o, int64_t end, int64_t channel) {
    pool_max_strip(s, o, end, channel, 1);
}
static void pool_max_odd(const pool_strip *s, int64_t o, int64_t end, int64_t channel) {
    pool_max_strip(s, o, end, channel, 2);
}

/* ---- the same for usual sizes: GROUP rows of windows together, from window row o on ---- */

#if !defined(PITH_LEVEL_scalar)
/* LARGEST: the largest window that has a form of its own. ROWS: input rows below GROUP rows of such
 * windows, two apart. READ: floats that a group reads of each row: 32 for sixteen windows two
 * apart, and a vector from the last column on. */
enum { LARGEST = 3, ROWS = 9, READ = 48 };

/* The rows of a group of which some are outside the plane, or end where x ends. */
static void pool_copy_rows(float copies[ROWS][READ], const pool_strip *s, int64_t top, int rows,
                           int max) {
    const vf outside = pool_outside(max);
    for (int r = 0; r < rows; r++) {
        const int64_t row = top + r, at = s->plane + row * s->in + s->at;
        const bool inside = row >= 0 && row < s->height,
                   readable = inside && at >= 0 && at + READ <= s->total;
        for (int i = 0; i < READ; i += 16)
            vf_store(copies[r] + i, readable ? vf_load(s->a->x + at + i) : outside);
        if (!inside || readable) continue;
        for (int64_t i = 0; i < READ; i++)
            if (at + i >= 0 && at + i < s->total) copies[r][i] = s->a->x[at + i];
    }
}

/* GROUP rows of windows of `size` x `size` places, `stride` apart along both axes. The input's rows
 * are `step` apart. */
PITH_INLINE void pool_group(vf *all, const pool_strip *s, const float *x, int64_t step,
                            const bool whole, const int stride, const int max, const int size) {
    vm inside[LARGEST];
    if (!whole) {
        PITH_UNROLL
        for (int c = 0; c < size; c++)
            inside[c] = vm_and(vm_first((size_t)s->end[c]), vm_not(vm_first((size_t)s->first[c])));
    }
    PITH_UNROLL
    for (int i = 0; i < GROUP; i++) all[i] = pool_outside(max);
    PITH_UNROLL
    for (int r = 0; r < (GROUP - 1) * stride + size; r++) {
        vf row = pool_outside(max);
        PITH_UNROLL
        for (int c = 0; c < size; c++) {
            vf v = pool_load(x + c, stride);
            if (!whole) v = vf_select(inside[c], v, pool_outside(max));
            row = max ? pool_join(row, v, max) : v;
            PITH_UNROLL
            for (int i = 0; i < GROUP; i++)
                if ((!max || c == size - 1) && i * stride <= r && r < i * stride + size)
                    all[i] = pool_join(all[i], row, max);
        }
        x += step;
    }
}

/* Window rows [o, end), GROUP at a time. Where all input rows of a group can be read as they lie,
 * they are; else they are copied, with what counts as nothing around them, and the same code reads
 * the copy. The last group may reach beyond `end`: its surplus rows are computed and not stored. */
PITH_INLINE void pool_groups(const pool_strip *s, int64_t o, int64_t end, int64_t channel,
                             const int stride, const int max, const int size) {
    float copies[ROWS][READ];
    const int rows = (GROUP - 1) * stride + size;
    for (; o < end; o += GROUP) {
        const int64_t top = o * stride - s->begin, at = s->plane + top * s->in + s->at;
        const bool plain = top >= 0 && top + rows <= s->height && at >= 0 &&
                           at + (rows - 1) * s->in + READ <= s->total;
        if (!plain) pool_copy_rows(copies, s, top, rows, max);
        const float *x = plain ? s->a->x + at : copies[0];
        const int64_t step = plain ? s->in : READ;
        vf all[GROUP];
        if (s->whole)
            pool_group(all, s, x, step, true, stride, max, size);
        else
            pool_group(all, s, x, step, false, stride, max, size);
        PITH_UNROLL
        for (int i = 0; i < GROUP; i++) {
            int64_t first;
            if (o + i >= end) break;
            if (!max)
                all[i] = pool_divide(
                    s, all[i],
                    plain ? size
                          : pool_row_places(s->a, o + i, pool_inside(s->a->window, o + i, &first)));
            pool_put(s, o + i, all[i], channel);
        }
    }
}

/* max 2: NaN may come. */
#define POOL_GROUPS(name, stride, max, size)                                                       \
    static void pool_##name(const pool_strip *s, int64_t o, int64_t end, int64_t channel) {        \
        pool_groups(s, o, end, channel, stride, max, size);                                        \
    }
POOL_GROUPS(max_3_two, 2, 1, 3)
POOL_GROUPS(max_2_two, 2, 2, 2)
POOL_GROUPS(mean_3, 1, 0, 3)
POOL_GROUPS(mean_2_two, 2, 0, 2)
#endif

typedef void pool_rows_fn(const pool_strip *s, int64_t o, int64_t end, int64_t channel);

static pool_rows_fn *pool_choose(const pith__window *w, int max) {
#if !defined(PITH_LEVEL_scalar)
    const int64_t size = w->kernel[0], stride = w->stride[0];
    const bool even =
        w->rank == 2 && w->stride[1] == stride && w->dilation[0] == 1 && w->kernel[1] == size;
    if (even && max == 1 && size == 3 && stride == 2) return pool_max_3_two;
    if (even && max == 2 && size == 2 && stride == 2) return pool_max_2_two;
    if (even && !max && size == 3 && stride == 1) return pool_mean_3;
    if (even && !max && size == 2 && stride == 2) return pool_mean_2_two;
#else
    (void)w;
#endif
    if (max == 2) return pool_max_odd;
    return max ? pool_max_plain : pool_mean_strip;
}

static void pool_plane(const pith__pool_planes *a, int64_t channel, int max) {
    const pith__window *w = a->window;
    const int last = w->rank - 1;
    const int64_t outer = last ? w->out[0] : 1;
    pool_rows_fn *const rows = pool_choose(w, max);
    pool_strip s = { .a = a,
                     .stride = (int)w->stride[last],
                     .in = w->in[last],
                     .columns = w->kernel[last],
                     .height = last ? w->in[0] : 1,
                     .begin = last ? w->begin[0] : 0,
                     .step = (last ? w->dilation[0] : 1) * w->in[last] };
    s.total = a->channels * s.height * s.in;
    s.plane = channel * s.height * s.in;
    const int64_t band = BAND / ((s.in + 1) * (last ? w->stride[0] : 1)) / GROUP * GROUP + MOST;
    for (int64_t o = 0; o < outer; o += band) {
        const int64_t end = outer - o < band ? outer : o + band;
        for (int64_t j = 0; j < w->out[last]; j += 16) {
            pool_strip_begin(&s, j, s.plane + (s.height - 1) * s.in);
            rows(&s, o, end, channel);
        }
    }
}

/* ---- maxima of windows one apart: rows and then columns of a padded copy, whose rows lie behind
 * each other, so that narrow planes fill vectors too ---- */

/* FLAT: floats of a band of padded rows. A larger band copies fewer rows twice, where bands meet,
 * but the copy, the maxima of its rows and the result must stay in the L1 cache. SLACK: what is
 * read behind a band, and never used. */
enum { FLAT = 4096, SLACK = 48 };

/* n floats, the last 16 of which may be copied twice. */
PITH_INLINE void pool_flat_copy(float *to, const float *from, int64_t n) {
    if (n < 16) {
        vf_store_n(to, vf_load_n(from, (size_t)n), (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n - 16; i += 16) vf_store(to + i, vf_load(from + i));
    vf_store(to + n - 16, vf_load(from + n - 16));
}

/* Rows [from, from + rows) of the padded plane. */
static void pool_flat_pad(float *to, const pith__window *w, const float *x, int64_t from,
                          int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows * width + SLACK - 15; i += 16)
        vf_store(to + i, vf_set1(-INFINITY));
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = from + r - w->begin[0];
        if (at >= 0 && at < w->in[0])
            pool_flat_copy(to + r * width + w->begin[1], x + at * w->in[1], w->in[1]);
    }
}

/* to[r * to_row + i] = the maximum of count elements `step` apart from from[r * from_row + i] on.
 */
typedef struct pool_joins {
    float *to;
    const float *from;
    int64_t to_row, from_row, rows, n, step;
} pool_joins;

/* known: count, where the loop is unrolled, or 0. */
PITH_INLINE void pool_flat_rows(const pool_joins *j, int64_t count, const int known,
                                const int max) {
    for (int64_t r = 0; r < j->rows; r++) {
        float *to = j->to + r * j->to_row;
        for (int64_t i = 0; i < j->n; i += 16) {
            const float *from = j->from + r * j->from_row + i;
            vf most = vf_load(from);
            PITH_UNROLL
            for (int k = 1; k < known; k++)
                most = pool_join(most, vf_load(from + k * j->step), max);
            if (!known)
                for (int64_t k = 1; k < count; k++)
                    most = pool_join(most, vf_load(from + k * j->step), max);
            if (j->n - i >= 16)
                vf_store(to + i, most);
            else
                vf_store_n(to + i, most, (size_t)(j->n - i));
        }
    }
}

static void pool_flat_join(const pool_joins *j, int64_t count, int max) {
    if (max == 1 && count == 5)
        pool_flat_rows(j, 5, 5, 1);
    else if (max == 1 && count == 3)
        pool_flat_rows(j, 3, 3, 1);
    else if (max == 1)
        pool_flat_rows(j, count, 0, 1);
    else
        pool_flat_rows(j, count, 0, 2);
}

/* The maximum over a window is the maximum over its rows of the maxima over its columns, so the two
 * directions go one after the other: as many operations as rows and columns instead of their
 * product. Padding is -infinity in a copy, which removes all special cases at edges. */
static void pool_flat(const pith__pool_planes *a, int64_t channel, int max) {
    const pith__window *w = a->window;
    const int64_t width = w->out[1] + w->kernel[1] - 1, more = w->kernel[0] - 1,
                  band = FLAT / width - more;
    const float *x = a->x + channel * w->in[0] * w->in[1];
    float *y = a->y + channel * w->out[0] * w->out[1], padded[FLAT + SLACK], joined[FLAT + SLACK];
    for (int64_t o = 0; o < w->out[0]; o += band) {
        const int64_t rows = w->out[0] - o < band ? w->out[0] - o : band,
                      all = (rows + more) * width;
        pool_flat_pad(padded, w, x, o, rows + more, width);
        /* also those from a row to the next, which nobody reads */
        const int64_t windows = all - w->kernel[1] + 1;
        pool_flat_join(
            &(pool_joins){
                .to = joined, .from = padded, .rows = 1, .n = (windows + 15) / 16 * 16, .step = 1 },
            w->kernel[1], max);
        pool_flat_join(&(pool_joins){ .to = y + o * w->out[1],
                                      .from = joined,
                                      .to_row = w->out[1],
                                      .from_row = width,
                                      .rows = rows,
                                      .n = w->out[1],
                                      .step = width },
                       w->kernel[0], max);
    }
}

static bool pool_flat_fits(const pith__window *w) {
    if (w->rank != 2 || w->stride[0] != 1 || w->stride[1] != 1 || w->dilation[0] != 1 ||
        w->begin[0] < 0)
        return false;
    const int64_t width = w->out[1] + w->kernel[1] - 1;
    return width <= FLAT / 3 / w->kernel[0] && width >= w->in[1] + w->begin[1];
}

/* A maximum that keeps NaN takes more instructions than one that does not. Where windows overlap,
 * each element is read several times, and looking for NaN once pays; where they do not, every
 * maximum keeps NaN. */
void PITH_K(pool_rows_max_f32)(const pith__pool_planes *a) {
    const pith__window *w = a->window;
    const int last = w->rank - 1;
    const int64_t plane = pith__window_count(w->in, w->rank);
    const bool shared = w->kernel[last] > w->stride[last] || w->kernel[0] > w->stride[0];
    const bool flat = pool_flat_fits(w);
    for (int64_t c = 0; c < a->channels; c++) {
        const bool odd = !shared || pool_odd(a->x + c * plane, plane);
        (flat ? pool_flat : pool_plane)(a, c, odd ? 2 : 1);
    }
}

void PITH_K(pool_rows_mean_f32)(const pith__pool_planes *a) {
    for (int64_t c = 0; c < a->channels; c++) pool_plane(a, c, 0);
}

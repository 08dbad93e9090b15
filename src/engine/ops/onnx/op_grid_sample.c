/* op_grid_sample.c - GridSample: values of an image (or volume) at given places, interpolated.
 *
 * A place has one coordinate per spatial axis, the last axis first, -1 and 1 at the borders.
 * Interpolation is a product of per-axis taps: 1 (nearest), 2 (linear) or 4 (cubic, a = -0.75); a
 * tap outside is zero, clamped or reflected. Places and weights are computed in double. Sums are
 * those of engine/kernels/grid_sample.h, with weights rounded to f32, where image and grid are f32,
 * and else in double. Source: ONNX operator GridSample and its reference implementation. */
#include <math.h>

#include "engine/kernels/grid_sample.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"

enum { MAX_AXES = 4 };
typedef enum mode { NEAREST, LINEAR, CUBIC } mode;
typedef enum padding { ZEROS, BORDER, REFLECTION } padding;

typedef struct sampler {
    mode mode;
    padding padding;
    bool corners;
    pith__grid_fn *fn; /* NULL: not all is f32 */
} sampler;

/* Opset 16 said bilinear and bicubic. */
static pith_status grid_sample_read_attributes(sampler *s, const pith__node *node,
                                               pith_error *err) {
    pith_str m = pith__node_str(node, "mode", "linear"),
             p = pith__node_str(node, "padding_mode", "zeros");
    s->corners = pith__node_int(node, "align_corners", 0) != 0;
    if (pith__str_is(m, "linear") || pith__str_is(m, "bilinear"))
        s->mode = LINEAR;
    else if (pith__str_is(m, "cubic") || pith__str_is(m, "bicubic"))
        s->mode = CUBIC;
    else if (pith__str_is(m, "nearest"))
        s->mode = NEAREST;
    else
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "mode '" PITH_STR_FMT "' is unknown",
                          PITH_STR_ARG(m));
    if (pith__str_is(p, "zeros"))
        s->padding = ZEROS;
    else if (pith__str_is(p, "border"))
        s->padding = BORDER;
    else if (pith__str_is(p, "reflection"))
        s->padding = REFLECTION;
    else
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "padding_mode '" PITH_STR_FMT "' is unknown",
                          PITH_STR_ARG(p));
    return PITH_OK;
}

/* The spatial axes come from the grid, whose last axis holds the coordinates. */
static pith_status grid_sample_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *grid = c->in[1];
    sampler s;
    PITH_TRY(grid_sample_read_attributes(&s, c->node, c->err));
    if (x->rank >= 0 && (x->rank < 3 || x->rank > MAX_AXES + 2))
        return pith__op_fail(c, "input has %d dimensions", x->rank);
    if (x->rank >= 0 && grid->rank >= 0 && grid->rank != x->rank)
        return pith__op_fail(c, "grid has %d dimensions, the input %d", grid->rank, x->rank);
    pith__dim dims[PITH_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        dims[d] = grid->rank > 0 && d > 0 ? grid->dims[d - 1] : PITH_DIM_UNKNOWN;
        if (d < 2) dims[d] = x->dims[d];
    }
    pith__type_set(&c->out[0], x->dtype, x->rank, dims);
    return PITH_OK;
}

static bool grid_sample_is_f32(const pith__type *x, const pith__type *grid) {
    return x->dtype == PITH_F32 && grid->dtype == PITH_F32;
}

/* The kernel serves f32 image and grid. Strings can be picked, not interpolated. */
static pith_status grid_sample_prepare(pith__prepare *c) {
    sampler *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    c->state = s;
    PITH_TRY(grid_sample_read_attributes(s, c->node, c->err));
    if (s->mode != NEAREST && c->in[0]->dtype == PITH_STRING)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "strings cannot be interpolated");
    if (!grid_sample_is_f32(c->in[0], c->in[1])) return PITH_OK;
    pith__kernel_fn *fn;
    PITH_TRY(pith__prepare_kernel(c, "grid", PITH_F32, &fn));
    s->fn = (pith__grid_fn *)fn;
    return PITH_OK;
}

static pith_status grid_sample_scratch(const pith__infer *c, const void *state, int threads,
                                       size_t *bytes) {
    *bytes = 0;
    return ((const sampler *)state)->fn ? PITH_OK : pith__wide_scratch(c, state, threads, bytes);
}

static double grid_sample_reflect(double x, double low, double high) {
    double range = high - low;
    if (range <= 0 || (x >= low && x <= high)) return range <= 0 ? low : x;
    double over = x < low ? low - x : x - high, turns = trunc(over / range),
           rest = over - turns * range;
    bool from_low = (x < low) == (fmod(turns, 2) == 0);
    return from_low ? low + rest : high - rest;
}

static double grid_sample_within(double x, double low, double high) {
    if (x < low) return low;
    return x > high ? high : x;
}

/* floor and nearbyint of |x| <= 1e15, which are functions of libm on some processors. */
static double grid_sample_floor(double x) {
    const double whole = (double)(int64_t)x;
    return whole > x ? whole - 1 : whole;
}
static double grid_sample_round(double x) {
    const double magic = x < 0 ? -0x1p52 : 0x1p52;
    return x + magic - magic;
}

/* Index of pixel i under the padding; -1: it counts as zero. */
static int64_t grid_sample_pixel(const sampler *s, double i, int64_t n) {
    double last = (double)(n - 1);
    if (s->padding == ZEROS) return i >= 0 && i <= last ? (int64_t)i : -1;
    if (s->padding == REFLECTION)
        i = grid_sample_reflect(i, s->corners ? 0 : -0.5, s->corners ? last : last + 0.5);
    return (int64_t)grid_sample_within(i, 0, last);
}

static double grid_sample_cubic(double x) {
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Taps of one axis for normalised coordinate u; returns how many. */
static int grid_sample_make_taps(const sampler *s, double u, int64_t n, int64_t *index,
                                 double *weight) {
    double x = s->corners ? (u + 1) / 2 * (double)(n - 1) : ((u + 1) * (double)n - 1) / 2;
    x = (float)x; /* the reference rounds places to f32, which decides ties */
    double last = (double)(n - 1);
    if (!(x > -1e15 && x < 1e15)) x = -1e15; /* NaN and beyond: outside */
    if (s->mode == NEAREST) x = grid_sample_round(x);
    bool move = s->mode != CUBIC; /* cubic taps meet the padding one by one */
    if (move && s->padding == BORDER) x = grid_sample_within(x, 0, last);
    if (move && s->padding == REFLECTION)
        x = grid_sample_reflect(x, s->corners ? 0 : -0.5, s->corners ? last : last + 0.5);
    if (s->mode == NEAREST) return index[0] = grid_sample_pixel(s, x, n), weight[0] = 1, 1;
    double base = grid_sample_floor(x);
    int taps = s->mode == LINEAR ? 2 : 4;
    for (int k = 0; k < taps; k++) {
        double at = base + k - (taps / 2 - 1);
        index[k] = grid_sample_pixel(s, at, n);
        weight[k] = s->mode == LINEAR ? 1 - fabs(x - at) : grid_sample_cubic(x - at);
    }
    return taps;
}

/* Points that are done together share LIST taps: 16 or more points, whatever taps they have; in
 * double WIDE_LIST. */
enum { LIST = 4096, WIDE_LIST = 512, GRAIN = 16384 };

typedef struct job {
    const pith__run *r;
    const sampler *s;
    const pith__wide *w;
    int64_t plane, points, channels, per_block, blocks; /* blocks: of the points of one image */
    int64_t taps;                                       /* of a point: at most 256 */
    int axes;
} job;

/* A tap of a point: the element of a channel, -1 if it is outside, and its weight. */
typedef struct tap {
    int64_t at;
    double weight;
} tap;

/* The taps of the point at u, those of the first axis fastest. */
static void grid_sample_list(const job *j, const double *u, tap *list) {
    const pith_tensor *x = j->r->in[0];
    int total = 1;
    list[0] = (tap){ 0, 1 };
    for (int d = 0; d < j->axes; d++) {
        int64_t index[4];
        double weight[4];
        const int taps =
            grid_sample_make_taps(j->s, u[j->axes - 1 - d], x->dims[2 + d], index, weight);
        for (int own = taps - 1; own >= 0; own--) { /* the first one, which overwrites the list,
                                                       last */
            for (int k = 0; k < total; k++) {
                const bool inside = list[k].at >= 0 && index[own] >= 0;
                list[own * total + k] =
                    (tap){ inside ? list[k].at * x->dims[2 + d] + index[own] : -1,
                           list[k].weight * weight[own] };
            }
        }
        total *= taps;
    }
}

/* Points [p, p + n) of an image, all f32. */
static void grid_sample_put_f32(const job *j, int64_t image, int64_t p, int64_t n) {
    const pith_tensor *x = j->r->in[0];
    float weights[LIST];
    int32_t at[LIST];
    tap list[LIST / 16];
    const float *u = (const float *)j->r->in[1]->data + (image * j->points + p) * j->axes;
    const int64_t stride = (n + 15) / 16 * 16;
    for (int64_t i = 0; i < stride; i++, u += j->axes) {
        double wide[MAX_AXES];
        if (i < n) {
            for (int d = 0; d < j->axes; d++) wide[d] = (double)u[d];
        }
        if (i < n) grid_sample_list(j, wide, list);
        for (int64_t k = 0; k < j->taps; k++) {
            at[k * stride + i] = i < n ? (int32_t)list[k].at : -1;
            weights[k * stride + i] = i < n ? (float)list[k].weight : 0;
        }
    }
    const int64_t first = image * j->channels;
    j->s->fn(&(pith__grid){ .x = (const float *)x->data + first * j->plane,
                            .weights = weights,
                            .at = at,
                            .y = (float *)j->r->out[0]->data + first * j->points + p,
                            .taps = j->taps,
                            .stride = stride,
                            .n = n,
                            .channels = j->channels,
                            .x_step = j->plane,
                            .y_step = j->points });
}

/* One point of one channel, at `from` and `to`. */
static void grid_sample_put(const job *j, int64_t from, int64_t to, const tap *list) {
    const pith_tensor *x = j->r->in[0];
    const double *in = j->w->in[0];
    const int parts = pith__parts(x->dtype);
    if (!in) { /* the elements are no numbers */
        ((pith_str *)j->r->out[0]->data)[to] =
            list->at >= 0 ? ((const pith_str *)x->data)[from + list->at] : PITH_STR("");
        return;
    }
    for (int part = 0; part < parts; part++) {
        double sum = 0;
        for (int64_t k = 0; k < j->taps; k++)
            if (list[k].at >= 0) sum += list[k].weight * in[(from + list[k].at) * parts + part];
        j->w->out[0][to * parts + part] = sum;
    }
}

/* Points [p, p + n) of an image, in double. */
static void grid_sample_put_wide(const job *j, int64_t image, int64_t p, int64_t n) {
    tap list[WIDE_LIST];
    for (int64_t i = 0; i < n; i++)
        grid_sample_list(j, j->w->in[1] + (image * j->points + p + i) * j->axes,
                         list + i * j->taps);
    for (int64_t channel = image * j->channels; channel < (image + 1) * j->channels; channel++)
        for (int64_t i = 0; i < n; i++)
            grid_sample_put(j, channel * j->plane, channel * j->points + p + i, list + i * j->taps);
}

/* A block of points of one image, in pieces whose taps fit the lists on the stack. f32 writes all
 * channels of a piece at once, the taps being shared. */
static void grid_sample_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const int64_t image = (int64_t)part / j->blocks,
                  first = (int64_t)part % j->blocks * j->per_block;
    const int64_t end = first + j->per_block < j->points ? first + j->per_block : j->points;
    const int64_t room = (j->s->fn ? LIST : WIDE_LIST) / j->taps;
    const int64_t most = room < PITH_GRID_POINTS ? room : PITH_GRID_POINTS;
    (void)worker;
    for (int64_t p = first, n; p < end; p += n) {
        n = end - p < most ? end - p : most;
        (j->s->fn ? grid_sample_put_f32 : grid_sample_put_wide)(j, image, p, n);
    }
}

/* The taps of a point do not depend on the channel, so threads share points, not channels. f32
 * needs indices of 32 bits. */
static pith_status grid_sample_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *grid = r->in[1], *y = r->out[0];
    const int axes = x->rank - 2;
    if (grid->dims[0] != x->dims[0] || grid->dims[grid->rank - 1] != axes)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "grid must be [%lld, …, %d]",
                          (long long)x->dims[0], axes);
    const sampler *s = r->state;
    pith__wide w;
    job j = { .r = r,
              .s = s,
              .w = &w,
              .plane = 1,
              .points = 1,
              .channels = x->dims[1],
              .taps = 1,
              .axes = axes };
    for (int d = 0; d < axes; d++) {
        j.plane *= x->dims[2 + d], j.points *= y->dims[2 + d];
        if (s->mode != NEAREST) j.taps *= s->mode == LINEAR ? 2 : 4;
    }
    if (!j.plane && pith__tensor_count(y)) return pith__op_fail(r, "the input is empty");
    if (s->fn && j.plane > INT32_MAX)
        return pith__op_fail(r, "a channel has %lld elements", (long long)j.plane);
    if (!s->fn) PITH_TRY(pith__wide_open(&w, r));
    if (pith__tensor_count(y)) {
        j.per_block = pith__run_chunk(r, j.points, j.channels * 4, GRAIN);
        j.blocks = (j.points + j.per_block - 1) / j.per_block;
        pith__run_parallel(r, grid_sample_run_part, &j, (size_t)(x->dims[0] * j.blocks));
    }
    return s->fn ? PITH_OK : pith__wide_close(&w, r);
}

const pith__op pith__op_GridSample = {
    .domain = "",
    .name = "GridSample",
    .since = 16,
    .newest = 22,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "Zf",
    .attrs = "align_corners bool = 0; "
             "mode string bilinear|nearest|bicubic = bilinear @-19; "
             "mode string linear|nearest|cubic = linear @20; "
             "padding_mode string zeros|border|reflection = zeros",
    .infer = grid_sample_infer,
    .prepare = grid_sample_prepare,
    .scratch = grid_sample_scratch,
    .run = grid_sample_run,
    .note = "strings: nearest only",
};

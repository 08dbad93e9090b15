/* op_grid_sample.c - GridSample: values of an image (or volume) at given places, interpolated.
 *
 * A place has one coordinate per spatial axis, the last axis first, -1 and 1 at the borders. Interpolation is a product
 * of per-axis taps: 1 (nearest), 2 (linear) or 4 (cubic, a = -0.75); a tap outside is zero, clamped or reflected.
 * Source: ONNX operator GridSample and its reference implementation. */
#include <math.h>

#include "ops/infer.h"
#include "ops/wide.h"

enum { MAX_AXES = 4 };
typedef enum mode { NEAREST, LINEAR, CUBIC } mode;
typedef enum padding { ZEROS, BORDER, REFLECTION } padding;

typedef struct sampler {
    mode mode;
    padding padding;
    bool corners;
} sampler;

/* Opset 16 said bilinear and bicubic. */
static pith_status grid_sample_read_attributes(sampler *s, const pith_node *node, pith_error *err) {
    pith_str m = pith_node_str(node, "mode", "linear"), p = pith_node_str(node, "padding_mode", "zeros");
    s->corners = pith_node_int(node, "align_corners", 0) != 0;
    if (pith_str_is(m, "linear") || pith_str_is(m, "bilinear"))
        s->mode = LINEAR;
    else if (pith_str_is(m, "cubic") || pith_str_is(m, "bicubic"))
        s->mode = CUBIC;
    else if (pith_str_is(m, "nearest"))
        s->mode = NEAREST;
    else
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "mode '" PITH_STR_FMT "' is unknown", PITH_STR_ARG(m));
    if (pith_str_is(p, "zeros"))
        s->padding = ZEROS;
    else if (pith_str_is(p, "border"))
        s->padding = BORDER;
    else if (pith_str_is(p, "reflection"))
        s->padding = REFLECTION;
    else
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "padding_mode '" PITH_STR_FMT "' is unknown", PITH_STR_ARG(p));
    return PITH_OK;
}

static pith_status grid_sample_infer(pith_infer *c) {
    const pith_type *x = c->in[0], *grid = c->in[1];
    sampler s;
    PITH_TRY(grid_sample_read_attributes(&s, c->node, c->err));
    if (x->rank >= 0 && (x->rank < 3 || x->rank > MAX_AXES + 2))
        return pith_op_fail(c, "input has %d dimensions", x->rank);
    if (x->rank >= 0 && grid->rank >= 0 && grid->rank != x->rank)
        return pith_op_fail(c, "grid has %d dimensions, the input %d", grid->rank, x->rank);
    pith_dim dims[PITH_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        dims[d] = d < 2 ? x->dims[d] : grid->rank > 0 ? grid->dims[d - 1] : PITH_DIM_UNKNOWN;
    pith_type_set(&c->out[0], x->dtype, x->rank, dims);
    return PITH_OK;
}

static pith_status grid_sample_prepare(pith_prepare *c) {
    sampler *s = pith_arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith_fail_memory(c->err, sizeof *s);
    c->state = s;
    PITH_TRY(grid_sample_read_attributes(s, c->node, c->err));
    if (s->mode != NEAREST && c->in[0]->dtype == PITH_STRING)
        return pith_fail(c->err, PITH_ERR_UNSUPPORTED, "strings cannot be interpolated");
    return PITH_OK;
}

static double reflect(double x, double low, double high) {
    double range = high - low;
    if (range <= 0 || (x >= low && x <= high)) return range <= 0 ? low : x;
    double over = x < low ? low - x : x - high, turns = trunc(over / range), rest = over - turns * range;
    bool from_low = (x < low) == (fmod(turns, 2) == 0);
    return from_low ? low + rest : high - rest;
}

/* Index of pixel i under the padding; -1: it counts as zero. */
static int64_t pixel(const sampler *s, double i, int64_t n) {
    double last = (double)(n - 1);
    if (s->padding == ZEROS) return i >= 0 && i <= last ? (int64_t)i : -1;
    if (s->padding == REFLECTION) i = reflect(i, s->corners ? 0 : -0.5, s->corners ? last : last + 0.5);
    return (int64_t)fmin(fmax(i, 0), last);
}

static double grid_sample_cubic(double x) {
    const double a = -0.75;
    x = fabs(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Taps of one axis for normalised coordinate u; returns how many. */
static int grid_sample_make_taps(const sampler *s, double u, int64_t n, int64_t *index, double *weight) {
    double x = s->corners ? (u + 1) / 2 * (double)(n - 1) : ((u + 1) * (double)n - 1) / 2;
    x = (float)x; /* the reference rounds places to f32, which decides ties */
    double last = (double)(n - 1);
    if (s->mode == NEAREST) x = nearbyint(x);
    if (!(x > -1e15 && x < 1e15)) x = -1e15; /* NaN and beyond: outside */
    bool move = s->mode != CUBIC;            /* cubic taps meet the padding one by one */
    if (move && s->padding == BORDER) x = fmin(fmax(x, 0), last);
    if (move && s->padding == REFLECTION) x = reflect(x, s->corners ? 0 : -0.5, s->corners ? last : last + 0.5);
    if (s->mode == NEAREST) return index[0] = pixel(s, x, n), weight[0] = 1, 1;
    double base = floor(x);
    int taps = s->mode == LINEAR ? 2 : 4;
    for (int k = 0; k < taps; k++) {
        double at = base + k - (taps / 2 - 1);
        index[k] = pixel(s, at, n);
        weight[k] = s->mode == LINEAR ? 1 - fabs(x - at) : grid_sample_cubic(x - at);
    }
    return taps;
}

/* Points of one part of the work share LIST taps. */
enum { LIST = 512, POINTS = 64, GRAIN = 16384 };

typedef struct job {
    const pith_run *r;
    const sampler *s;
    const pith_wide *w;
    int64_t plane, points, channels, per_block, blocks; /* blocks: of the points of one image */
    int axes;
} job;

/* A tap of a point: the element of a channel, and its weight. */
typedef struct tap {
    int64_t at;
    double weight;
} tap;

/* The taps of point p that are inside, the first axis fastest; returns how many. */
static int grid_sample_list(const job *j, int64_t p, tap *list) {
    const pith_tensor *x = j->r->in[0];
    int64_t index[MAX_AXES][4];
    double weight[MAX_AXES][4];
    int taps[MAX_AXES], total = 1, count = 0;
    for (int d = 0; d < j->axes; d++) {
        taps[d] = grid_sample_make_taps(j->s, j->w->in[1][p * j->axes + j->axes - 1 - d], x->dims[2 + d], index[d],
                                        weight[d]);
        total *= taps[d];
    }
    for (int k = 0; k < total; k++) {
        tap t = { 0, 1 };
        bool inside = true;
        for (int d = 0, rest = k; d < j->axes; d++) {
            const int own = rest % taps[d];
            rest /= taps[d];
            inside &= index[d][own] >= 0;
            t.at = t.at * x->dims[2 + d] + index[d][own];
            t.weight *= weight[d][own];
        }
        if (inside) list[count++] = t;
    }
    return count;
}

static void grid_sample_put(const job *j, int64_t from, int64_t to, const tap *list, int count) {
    const pith_tensor *x = j->r->in[0];
    const double *in = j->w->in[0];
    const int parts = pith_parts(x->dtype);
    if (!in) { /* the elements are no numbers */
        ((pith_str *)j->r->out[0]->data)[to] =
            count ? ((const pith_str *)x->data)[from + list[count - 1].at] : PITH_STR("");
        return;
    }
    for (int part = 0; part < parts; part++) {
        double sum = 0;
        for (int k = 0; k < count; k++) sum += list[k].weight * in[(from + list[k].at) * parts + part];
        j->w->out[0][to * parts + part] = sum;
    }
}

static void grid_sample_run_part(void *context, size_t part, int worker) {
    const job *j = context;
    const int64_t image = (int64_t)part / j->blocks, first = (int64_t)part % j->blocks * j->per_block;
    const int64_t end = first + j->per_block < j->points ? first + j->per_block : j->points;
    int total = 1;
    for (int d = 0; d < j->axes; d++) total *= j->s->mode == NEAREST ? 1 : j->s->mode == LINEAR ? 2 : 4;
    const int64_t most = LIST / total < POINTS ? LIST / total : POINTS;
    tap list[LIST];
    int counts[POINTS];
    (void)worker;
    for (int64_t p = first, n; p < end; p += n) {
        n = end - p < most ? end - p : most;
        for (int64_t i = 0; i < n; i++) counts[i] = grid_sample_list(j, image * j->points + p + i, list + i * total);
        for (int64_t channel = image * j->channels; channel < (image + 1) * j->channels; channel++)
            for (int64_t i = 0; i < n; i++)
                grid_sample_put(j, channel * j->plane, channel * j->points + p + i, list + i * total, counts[i]);
    }
}

static pith_status grid_sample_run(pith_run *r) {
    const pith_tensor *x = r->in[0], *grid = r->in[1], *y = r->out[0];
    const int axes = x->rank - 2;
    if (grid->dims[0] != x->dims[0] || grid->dims[grid->rank - 1] != axes)
        return pith_fail(r->err, PITH_ERR_ARGUMENT, "grid must be [%lld, …, %d]", (long long)x->dims[0], axes);
    pith_wide w;
    pith_wide_open(&w, r);
    job j = { .r = r, .s = r->state, .w = &w, .plane = 1, .points = 1, .channels = x->dims[1], .axes = axes };
    for (int d = 0; d < axes; d++) j.plane *= x->dims[2 + d], j.points *= y->dims[2 + d];
    if (!j.plane && pith_tensor_count(y)) return pith_op_fail(r, "the input is empty");
    if (pith_tensor_count(y)) {
        j.per_block = pith_run_chunk(r, j.points, j.channels * 4, GRAIN);
        j.blocks = (j.points + j.per_block - 1) / j.per_block;
        pith_run_parallel(r, grid_sample_run_part, &j, (size_t)(x->dims[0] * j.blocks));
    }
    pith_wide_close(&w, r);
    return PITH_OK;
}

const pith_op pith_op_GridSample = {
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
    .scratch = pith_wide_scratch,
    .run = grid_sample_run,
    .note = "strings: nearest only",
};

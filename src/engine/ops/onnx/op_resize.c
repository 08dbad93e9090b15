/* op_resize.c - Resize: a tensor resampled along any of its axes.
 *
 * Interpolation is separable: for every output index, each axis has a list of taps (input index,
 * weight). Axes are applied one after another: f32 as it is (resample.c), other types and cropping
 * in double. The parts of complex numbers are one more axis. Nearest needs one tap per axis and
 * copies elements of any type; strings have only this mode. Source: ONNX operator Resize and its
 * reference implementation; cubic: Keys 1981. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/resample.h"

typedef enum coordinates {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_CROP_AND_RESIZE,
    COORDINATES
} coordinates;
typedef enum mode { NEAREST, LINEAR, CUBIC, MODES } mode;
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, ROUNDINGS } rounding;
typedef enum aspect { STRETCH, NOT_LARGER, NOT_SMALLER, ASPECTS } aspect;

static const char *const coordinates_names[] = { "half_pixel",         "half_pixel_symmetric",
                                                 "pytorch_half_pixel", "align_corners",
                                                 "asymmetric",         "tf_crop_and_resize" };
static const char *const mode_names[] = { "nearest", "linear", "cubic" };
static const char *const rounding_names[] = { "round_prefer_floor", "round_prefer_ceil", "floor",
                                              "ceil" };
static const char *const aspect_names[] = { "stretch", "not_larger", "not_smaller" };

typedef struct resize {
    coordinates coordinates;
    mode mode;
    rounding rounding;
    aspect aspect;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    const int64_t *axes; /* NULL: all */
    size_t axis_count;
    pith__resample resample;
    bool f32;
} resize;

static pith_status resize_choose(const pith__node *node, const char *name, const char *const *names,
                                 int count, int *choice, pith_error *err) {
    pith_str text = pith__node_str(node, name, names[0]);
    for (int i = 0; i < count; i++)
        if (pith__str_is(text, names[i])) return *choice = i, PITH_OK;
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s '" PITH_STR_FMT "' is unknown", name,
                      PITH_STR_ARG(text));
}

/* Names become numbers by their place in the tables above; the first is the default. */
static pith_status resize_read_attributes(resize *s, const pith__node *node, pith_error *err) {
    int c, m, r, a;
    PITH_TRY(resize_choose(node, "coordinate_transformation_mode", coordinates_names, COORDINATES,
                           &c, err));
    PITH_TRY(resize_choose(node, "mode", mode_names, MODES, &m, err));
    PITH_TRY(resize_choose(node, "nearest_mode", rounding_names, ROUNDINGS, &r, err));
    PITH_TRY(resize_choose(node, "keep_aspect_ratio_policy", aspect_names, ASPECTS, &a, err));
    *s = (resize){ .coordinates = (coordinates)c,
                   .mode = (mode)m,
                   .rounding = (rounding)r,
                   .aspect = (aspect)a,
                   .antialias = pith__node_int(node, "antialias", 0) != 0,
                   .exclude_outside = pith__node_int(node, "exclude_outside", 0) != 0,
                   .cubic_a = pith__node_float(node, "cubic_coeff_a", -0.75f),
                   .extrapolation = pith__node_float(node, "extrapolation_value", 0) };
    s->axes = pith__node_ints(node, "axes", &s->axis_count);
    return PITH_OK;
}

/* What is asked of every axis of the input; axes that are not named stay. */
typedef struct target {
    bool known;
    int64_t size[PITH_MAX_RANK];
    double scale[PITH_MAX_RANK], roi_begin[PITH_MAX_RANK], roi_end[PITH_MAX_RANK];
} target;

/* The contents of an input at hand; NULL if it is absent or empty; *known is cleared if it is there
 * but not yet known. */
static const pith_tensor *resize_contents(const pith__type *const *in, int count, int i,
                                          bool *known) {
    if (i >= count || !in[i]) return NULL;
    if (pith__type_count(in[i]) == 0) return NULL;
    if (!in[i]->data) *known = false;
    return in[i]->data;
}

/* One scale for all axes: the smallest of those asked for, or the largest; sizes follow from it,
 * rounded half up. */
static pith_status resize_keep_aspect(const resize *s, target *t, const int *axes, int count,
                                      const int64_t *dims, pith_error *err) {
    double scale = s->aspect == NOT_LARGER ? INFINITY : 0;
    for (int k = 0; k < count; k++) {
        double own = (double)t->size[axes[k]] / (double)dims[axes[k]];
        scale = s->aspect == NOT_LARGER ? fmin(scale, own) : fmax(scale, own);
    }
    for (int k = 0; k < count; k++) {
        double size = floor(scale * (double)dims[axes[k]] + 0.5);
        if (!(size <= INT32_MAX))
            return pith__fail(err, PITH_ERR_ARGUMENT, "size %g of axis %d is out of range", size,
                              axes[k]);
        t->scale[axes[k]] = scale;
        t->size[axes[k]] = (int64_t)size;
    }
    return PITH_OK;
}

/* Sizes and scales come from one of two inputs, for the axes of the attribute or for all.
 * Everything is checked here: counts, signs, and sizes that would not fit 32 bits. */
static pith_status resize_read_target(target *t, const resize *s, const pith__type *const *in,
                                      int count, pith_error *err) {
    const pith__type *x = in[0];
    *t = (target){ .known = true };
    const pith_tensor *roi = resize_contents(in, count, 1, &t->known),
                      *scales = resize_contents(in, count, 2, &t->known);
    const pith_tensor *sizes = resize_contents(in, count, 3, &t->known);
    if (!t->known || !pith__type_concrete(x)) return t->known = false, PITH_OK;
    int axes[PITH_MAX_RANK], n = s->axes ? (int)s->axis_count : x->rank;
    if (n > x->rank) return pith__fail(err, PITH_ERR_ARGUMENT, "%d axes for rank %d", n, x->rank);
    for (int k = 0; k < n; k++) {
        axes[k] = k;
        if (s->axes) PITH_TRY(pith__axis_normalize(s->axes[k], x->rank, &axes[k], err));
    }
    const pith_tensor *given = sizes ? sizes : scales;
    if (!given || (scales && sizes))
        return pith__fail(err, PITH_ERR_ARGUMENT, "one of scales and sizes must be given");
    if (pith__tensor_count(given) != n)
        return pith__fail(err, PITH_ERR_ARGUMENT, "%lld scales or sizes for %d axes",
                          (long long)pith__tensor_count(given), n);
    if (s->coordinates == TF_CROP_AND_RESIZE && (!roi || pith__tensor_count(roi) != 2 * n))
        return pith__fail(err, PITH_ERR_ARGUMENT, "roi must have %d elements", 2 * n);
    for (int d = 0; d < x->rank; d++) t->size[d] = x->dims[d], t->scale[d] = 1, t->roi_end[d] = 1;
    for (int k = 0; k < n; k++) {
        int d = axes[k];
        double value = pith__wide_get(given, k),
               size = sizes ? value : floor(value * (double)x->dims[d]);
        if (!(value >= 0 && size <= (double)INT32_MAX) || (!sizes && value <= 0))
            return pith__fail(err, PITH_ERR_ARGUMENT, "scale or size %g of axis %d is out of range",
                              value, d);
        if (size > 0 && x->dims[d] == 0)
            return pith__fail(err, PITH_ERR_ARGUMENT, "axis %d is empty", d);
        t->size[d] = (int64_t)size;
        t->scale[d] = sizes && x->dims[d] ? value / (double)x->dims[d] : value;
        if (s->coordinates == TF_CROP_AND_RESIZE)
            t->roi_begin[d] = pith__wide_get(roi, k), t->roi_end[d] = pith__wide_get(roi, k + n);
    }
    return sizes && s->aspect != STRETCH ? resize_keep_aspect(s, t, axes, n, x->dims, err)
                                         : PITH_OK;
}

static pith_status resize_infer(pith__infer *c) {
    resize s;
    target t;
    PITH_TRY(resize_read_attributes(&s, c->node, c->err));
    PITH_TRY(resize_read_target(&t, &s, c->in, c->in_count, c->err));
    pith__type_set(&c->out[0], c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    /* sizes may be symbolic */
    bool whole = c->in_count > 3 && c->in[3] && !s.axes && s.aspect == STRETCH;
    for (int d = 0; d < c->in[0]->rank; d++) {
        c->out[0].dims[d] = PITH_DIM_UNKNOWN;
        if (t.known)
            c->out[0].dims[d] = t.size[d];
        else if (whole && c->dims) /* at bind scratch needs the rest too: the step is late */
            pith__type_elem(c->in[3], d, &c->out[0].dims[d]);
    }
    return PITH_OK;
}

/* f32 that is interpolated without cropping runs as filters (resample.h), if this build has their
 * kernels. */
static pith_status resize_prepare(pith__prepare *c) {
    resize *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    c->state = s;
    if (pith__dtype_bits(c->in[0]->dtype) < 8)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "dtype %s",
                          pith__dtype_name(c->in[0]->dtype));
    PITH_TRY(resize_read_attributes(s, c->node, c->err));
    pith__resample_find(&s->resample, c);
    s->f32 = c->in[0]->dtype == PITH_F32 && s->mode != NEAREST &&
             s->coordinates != TF_CROP_AND_RESIZE && s->resample.rows && s->resample.columns;
    if (s->mode != NEAREST && c->in[0]->dtype == PITH_STRING)
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "dtype %s cannot be interpolated",
                          pith__dtype_name(c->in[0]->dtype));
    return PITH_OK;
}

/* Where output index i of an axis lies in the input. */
static double resize_source_place(const resize *s, const target *t, int d, int64_t length,
                                  int64_t i) {
    double n = (double)length, scale = t->scale[d], out = scale * n, at = (double)i;
    switch (s->coordinates) {
    case ALIGN_CORNERS: return out == 1 ? 0 : at * (n - 1) / (out - 1);
    case ASYMMETRIC: return at / scale;
    case TF_CROP_AND_RESIZE: {
        double span = (t->roi_end[d] - t->roi_begin[d]) * (n - 1);
        return (out == 1 ? span / 2 : at * span / (out - 1)) + t->roi_begin[d] * (n - 1);
    }
    case PYTORCH_HALF_PIXEL: return t->size[d] == 1 ? 0 : (at + 0.5) / scale - 0.5;
    case HALF_PIXEL_SYMMETRIC:
        return n / 2 * (1 - (double)t->size[d] / out) + (at + 0.5) / scale - 0.5;
    default: return (at + 0.5) / scale - 0.5;
    }
}

static double resize_cubic(double x, double a) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Half the taps of an output index: it reaches as far as the kernel, widened when shrinking with
 * antialias, though not beyond the input's `length` on either side. */
static int64_t resize_half_taps(const resize *s, double scale, int64_t length) {
    if (s->mode == NEAREST) return 1;
    double reach = s->mode == LINEAR ? 1 : 2;
    if (s->antialias && scale < 1) reach = fmin(reach / scale, reach * (double)length + 1);
    return 1 - (int64_t)(floor(-reach) + 1);
}

/* Fills index[] and weight[] (2 * half entries) for source place x; the pixel left of x is
 * preferred. */
static void resize_make_taps(const resize *s, double x, double scale, int64_t length, int64_t half,
                             int64_t *index, double *weight) {
    double left = ceil(x) - 1, ratio = x - left, sum = 0, width = s->antialias ? fmin(scale, 1) : 1;
    if (s->mode == NEAREST) {
        bool right = s->rounding == CEIL || ratio == 1;
        if (s->rounding == PREFER_FLOOR) right = ratio > 0.5;
        if (s->rounding == PREFER_CEIL) right = ratio >= 0.5;
        weight[0] = !right, weight[1] = right;
    }
    for (int64_t k = 0; k < 2 * half; k++) {
        double at = (double)(k - half + 1); /* relative to left */
        if (s->mode == LINEAR) weight[k] = fmax(1 - fabs((at - ratio) * width), 0);
        if (s->mode == CUBIC) weight[k] = resize_cubic((at - ratio) * width, s->cubic_a);
        double place = left + at;
        bool outside = place < 0 || place > (double)(length - 1);
        index[k] = (int64_t)fmin(fmax(place, 0), (double)(length - 1));
        if (outside && s->exclude_outside) weight[k] = 0;
        sum += weight[k];
    }
    if (s->antialias || s->exclude_outside) {
        for (int64_t k = 0; k < 2 * half; k++) weight[k] /= sum;
    }
}

static void resize_sizes_of(const pith__type *x, const target *t, int64_t *widest, int64_t *taps,
                            const resize *s) {
    *widest = 1, *taps = 0;
    for (int d = 0; d < x->rank; d++) {
        *widest *= t->size[d] > x->dims[d] ? t->size[d] : x->dims[d];
        int64_t n = 2 * resize_half_taps(s, t->scale[d], x->dims[d]);
        if (n > *taps) *taps = n;
    }
}

/* The axes that change, the last one first, without their tables; *most: floats of the largest
 * result before the last. 0: not in f32. */
static int resize_axes(const resize *s, const target *t, const int64_t *dims, int rank,
                       pith__resample_axis *axes, int64_t *most) {
    int64_t shape[PITH_MAX_RANK];
    int count = 0;
    *most = 0;
    for (int d = 0; d < rank; d++) shape[d] = dims[d];
    if (s->f32) {
        for (int d = rank - 1; d >= 0; d--) {
            if (t->size[d] == dims[d] && t->scale[d] == 1) continue;
            pith__resample_axis *a = &axes[count++];
            int64_t result = 1;
            *a = (pith__resample_axis){
                .outer = 1, .length = dims[d], .size = t->size[d], .inner = 1
            };
            a->taps = 2 * resize_half_taps(s, t->scale[d], dims[d]);
            if (a->taps > PITH_RESAMPLE_TAPS || dims[d] > INT32_MAX) return 0;
            for (int i = 0; i < d; i++) a->outer *= shape[i];
            for (int i = d + 1; i < rank; i++) a->inner *= shape[i];
            shape[d] = t->size[d];
            for (int i = 0; i < rank; i++) result *= shape[i];
            if (result > *most) *most = result;
        }
    }
    return count;
}

/* Nearest: an index per output place and axis. Others: two buffers of doubles and the taps of one
 * output index. */
static pith_status resize_scratch(const pith__infer *c, const void *state, int threads,
                                  size_t *bytes) {
    (void)threads;
    const resize *s = state;
    target t;
    PITH_TRY(resize_read_target(&t, s, c->in, c->in_count, c->err));
    if (!t.known) return PITH_OK;
    size_t more = 64;
    if (s->mode == NEAREST) {
        for (int d = 0; d < c->in[0]->rank; d++) more += (size_t)t.size[d] * sizeof(int64_t);
        *bytes = more;
        return PITH_OK;
    }
    int64_t widest, taps;
    double product = 1;
    for (int d = 0; d < c->in[0]->rank; d++)
        product *= (double)(t.size[d] > c->in[0]->dims[d] ? t.size[d] : c->in[0]->dims[d]);
    if (product > 1e12) return pith__fail(c->err, PITH_ERR_MEMORY, "the result is too large");
    pith__resample_axis axes[PITH_MAX_RANK];
    int64_t most;
    int count = resize_axes(s, &t, c->in[0]->dims, c->in[0]->rank, axes, &most);
    if (count) {
        *bytes = count > 1 ? (size_t)most * 2 * sizeof(float) + 128 : 0;
        for (int i = 0; i < count; i++)
            *bytes +=
                (size_t)(axes[i].taps * axes[i].size) * (sizeof(float) + sizeof(int32_t)) + 128;
        return PITH_OK;
    }
    resize_sizes_of(c->in[0], &t, &widest, &taps, s);
    *bytes = ((size_t)(widest * pith__parts(c->in[0]->dtype)) * 2 + (size_t)taps * 2 + 16) *
             sizeof(double);
    return PITH_OK;
}

/* The empty string, or x without an imaginary part. */
static void resize_put_outside(void *to, int dtype, double x) {
    static const double nothing = 0;
    int part = pith__part_dtype(dtype);
    if (dtype == PITH_STRING) *(pith_str *)to = PITH_STR("");
    if (dtype != PITH_STRING) pith__convert(to, part, 0, &x, PITH_F64, 0, 1, true);
    if (part != dtype) pith__convert(to, part, 1, &nothing, PITH_F64, 0, 1, true);
}

typedef struct nearest {
    pith__run *r;
    const resize *s;
    const target *t;
    int64_t *index[PITH_MAX_RANK]; /* elements before each place of an axis; -1: outside */
    int64_t row, rows, per_part;
    bool inside, doubled; /* along the last axis: no place is outside; each element stands twice */
    size_t item;
} nearest;

static void resize_nearest_look(nearest *j) {
    int last = j->r->in[0]->rank - 1;
    const int64_t *index = last >= 0 ? j->index[last] : NULL;
    j->inside = true;
    j->doubled = index && j->row % 2 == 0;
    if (index) {
        for (int64_t k = 0; k < j->row; k++) {
            j->inside &= index[k] >= 0;
            j->doubled &= index[k] == k / 2;
        }
    }
}

typedef uint32_t four __attribute__((vector_size(16)));
#if defined(__clang__)
#define FOUR_TWICE(v, a, b) __builtin_shufflevector(v, v, a, a, b, b)
#else
#define FOUR_TWICE(v, a, b) __builtin_shuffle(v, (four){ a, a, b, b })
#endif

/* Each of n elements of 4 bytes twice. */
static void resize_nearest_double(char *to, const char *from, int64_t n) {
    for (; n >= 4; n -= 4, from += 16, to += 32) {
        four v, low, high;
        memcpy(&v, from, sizeof v);
        low = FOUR_TWICE(v, 0, 1);
        high = FOUR_TWICE(v, 2, 3);
        memcpy(to, &low, sizeof low);
        memcpy(to + 16, &high, sizeof high);
    }
    for (; n > 0; n--, from += 4, to += 8) {
        memcpy(to, from, 4);
        memcpy(to + 4, from, 4);
    }
}

#define NEAREST_ROW(T)                                                                             \
    for (int64_t k = 0; k < n; k++) ((T *)to)[k] = ((const T *)from)[index[k]]

/* One row by its index table. Doubling, which upsampling networks do most, needs no table; else the
 * size of an element decides the loop. */
static void resize_nearest_row(const nearest *j, void *to, const void *from) {
    const int64_t *index = j->index[j->r->in[0]->rank - 1], n = j->row;
    if (j->doubled && j->item == 4) {
        resize_nearest_double(to, from, n / 2);
        return;
    }
    switch (j->item) {
    case 1: NEAREST_ROW(uint8_t); return;
    case 2: NEAREST_ROW(uint16_t); return;
    case 4: NEAREST_ROW(uint32_t); return;
    case 8: NEAREST_ROW(uint64_t); return;
    default:
        for (int64_t k = 0; k < n; k++)
            memcpy((char *)to + (size_t)k * j->item,
                   (const char *)from + (size_t)index[k] * j->item, j->item);
    }
}

/* A row some of whose places are outside. */
static void resize_nearest_row_outside(const nearest *j, char *to, const char *from, bool outside) {
    int last = j->r->in[0]->rank - 1;
    for (int64_t k = 0; k < j->row; k++) {
        int64_t at = last >= 0 ? j->index[last][k] : 0;
        if (outside || at < 0)
            resize_put_outside(to + (size_t)k * j->item, j->r->out[0]->dtype, j->s->extrapolation);
        else
            memcpy(to + (size_t)k * j->item, from + (size_t)at * j->item, j->item);
    }
}

/* Rows [first, end) of the output that have the same places along all axes but the one before the
 * last, from `base` on (NULL: outside). Rows next to each other that have one source are copies. */
static void resize_nearest_run_plane(const nearest *j, char *to, const char *base, int64_t first,
                                     int64_t end) {
    const int rank = j->r->in[0]->rank;
    const int64_t *index = rank > 1 ? j->index[rank - 2] : &(int64_t){ 0 };
    const size_t bytes = (size_t)j->row * j->item;
    for (int64_t i = first, before = -1; i < end; i++, to += bytes) {
        const bool outside = !base || index[i] < 0;
        const char *from = outside ? j->r->in[0]->data : base + (size_t)index[i] * j->item;
        if (outside || !j->inside || rank == 0) {
            resize_nearest_row_outside(j, to, from, outside);
            before = -1;
        } else if (index[i] == before) {
            memcpy(to, to - bytes, bytes);
        } else {
            resize_nearest_row(j, to, from);
            before = index[i];
        }
    }
}

/* Rows [first, end) of the output, plane by plane: rows of a plane share the offset of all outer
 * axes. */
static void resize_nearest_run_part(void *context, size_t part, int worker) {
    const nearest *j = context;
    const int rank = j->r->in[0]->rank;
    const int64_t height = rank > 1 ? j->t->size[rank - 2] : 1;
    int64_t first = (int64_t)part * j->per_part,
            end = first + j->per_part < j->rows ? first + j->per_part : j->rows;
    (void)worker;
    for (int64_t i = first, next; i < end; i = next) {
        int64_t base = 0, rest = i / height, row = i % height;
        bool outside = false;
        next = end - i > height - row ? i + height - row : end;
        for (int d = rank - 3; d >= 0; d--) {
            int64_t own = j->index[d][rest % j->t->size[d]];
            rest /= j->t->size[d];
            outside |= own < 0;
            base += own;
        }
        resize_nearest_run_plane(j, (char *)j->r->out[0]->data + (size_t)(i * j->row) * j->item,
                                 outside ? NULL
                                         : (const char *)j->r->in[0]->data + (size_t)base * j->item,
                                 row, row + next - i);
    }
}

/* Fills the tables, each entry being the offset that a place of its axis adds. Cropping may point
 * outside of the input: -1. */
static void resize_run_nearest(pith__run *r, const resize *s, const target *t) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    int rank = x->rank;
    int64_t *index[PITH_MAX_RANK], *at = r->scratch, in_stride[PITH_MAX_RANK];
    size_t item = (size_t)pith__dtype_bits(x->dtype) / 8;
    int64_t stride = 1, total = pith__tensor_count(y);
    for (int d = rank - 1; d >= 0; d--) in_stride[d] = stride, stride *= x->dims[d];
    for (int d = 0; d < rank; d++) {
        index[d] = at;
        for (int64_t i = 0; i < t->size[d]; i++) {
            int64_t near[2];
            double weight[2], from = resize_source_place(s, t, d, x->dims[d], i);
            bool outside = s->coordinates == TF_CROP_AND_RESIZE &&
                           (from < 0 || from > (double)(x->dims[d] - 1));
            resize_make_taps(s, from, t->scale[d], x->dims[d], 1, near, weight);
            at[i] = outside ? -1 : near[weight[1] != 0] * in_stride[d];
        }
        at += t->size[d];
    }
    nearest j = { .r = r, .s = s, .t = t, .item = item, .row = rank ? t->size[rank - 1] : 1 };
    for (int d = 0; d < rank; d++) j.index[d] = index[d];
    resize_nearest_look(&j);
    j.rows = total / j.row;
    j.per_part = pith__run_chunk(r, j.rows, j.row, 8192);
    pith__run_parallel(r, resize_nearest_run_part, &j,
                       (size_t)((j.rows + j.per_part - 1) / j.per_part));
}

/* One axis of from [outer, length, inner] into to [outer, size, inner], with inner a multiple of
 * parts. */
static pith_status resize_run_axis(const pith__run *r, const resize *s, const target *t, int d,
                                   const double *from, double *to, int64_t outer, int64_t length,
                                   int64_t inner, int parts, void *memory) {
    int64_t half = resize_half_taps(s, t->scale[d], length), *index = memory, size = t->size[d],
            spent = 0;
    double *weight = (double *)(index + 2 * half);
    for (int64_t i = 0; i < size; i++) {
        double x = resize_source_place(s, t, d, length, i);
        bool outside = s->coordinates == TF_CROP_AND_RESIZE && (x < 0 || x > (double)(length - 1));
        resize_make_taps(s, x, t->scale[d], length, half, index, weight);
        for (int64_t o = 0; o < outer; o++) {
            PITH_TRY(pith__run_spend(r, &spent, 16 + 2 * half * (inner + 8)));
            double *row = to + (o * size + i) * inner;
            for (int64_t k = 0; k < inner; k++)
                row[k] = outside && k % parts == 0 ? s->extrapolation : 0;
            if (!outside) {
                for (int64_t tap = 0; tap < 2 * half; tap++) {
                    const double *source = from + (o * length + index[tap]) * inner;
                    if (weight[tap] != 0) {
                        for (int64_t k = 0; k < inner; k++) row[k] += weight[tap] * source[k];
                    }
                }
            }
        }
    }
    return PITH_OK;
}

/* Interpolates in f32; false if that is not for this node. */
static bool resize_run_f32(pith__run *r, const resize *s, const target *t) {
    const pith_tensor *x = r->in[0];
    pith__resample_axis axes[PITH_MAX_RANK];
    int64_t most, index[PITH_RESAMPLE_TAPS];
    double weight[PITH_RESAMPLE_TAPS];
    int count = resize_axes(s, t, x->dims, x->rank, axes, &most), next = 0;
    if (!count) return false;
    char *at = r->scratch;
    float *buffers[2] = { NULL, NULL };
    if (count > 1) {
        for (int i = 0; i < 2; i++) {
            buffers[i] = (float *)(void *)at;
            at += pith__round64((size_t)most * sizeof(float));
        }
    }
    for (int d = x->rank - 1; d >= 0; d--) {
        if (t->size[d] == x->dims[d] && t->scale[d] == 1) continue;
        pith__resample_axis *a = &axes[next++];
        a->index = (int32_t *)(void *)at;
        at += pith__round64((size_t)(a->taps * a->size) * sizeof *a->index);
        a->weights = (float *)(void *)at;
        at += pith__round64((size_t)(a->taps * a->size) * sizeof *a->weights);
        for (int64_t i = 0; i < a->size; i++) {
            resize_make_taps(s, resize_source_place(s, t, d, a->length, i), t->scale[d], a->length,
                             a->taps / 2, index, weight);
            for (int64_t k = 0; k < a->taps; k++) {
                a->index[k * a->size + i] = (int32_t)index[k];
                a->weights[k * a->size + i] = (float)weight[k];
            }
        }
    }
    pith__resample_run(r, &s->resample, axes, count, x->data, r->out[0]->data, buffers);
    return true;
}

/* Nearest, then f32, then the general way: axis after axis between two buffers of doubles, skipping
 * axes that do not change. Integers are rounded to nearest even at the end. */
static pith_status resize_run(pith__run *r) {
    const resize *s = r->state;
    pith__type types[4];
    const pith__type *in[4] = { NULL };
    for (int i = 0; i < r->in_count && i < 4; i++) {
        if (!r->in[i]) continue;
        pith__type_of_tensor(&types[i], r->in[i]);
        types[i].data = r->in[i];
        in[i] = &types[i];
    }
    target t;
    PITH_TRY(resize_read_target(&t, s, in, r->in_count < 4 ? r->in_count : 4, r->err));
    if (!pith__tensor_count(r->out[0])) return PITH_OK;
    if (s->mode == NEAREST) return resize_run_nearest(r, s, &t), PITH_OK;
    if (resize_run_f32(r, s, &t)) return PITH_OK;
    const pith_tensor *x = r->in[0];
    int parts = pith__parts(x->dtype), part = pith__part_dtype(x->dtype);
    int64_t widest, taps, outer = 1, inner = pith__tensor_count(x) * parts;
    resize_sizes_of(in[0], &t, &widest, &taps, s);
    double *from = r->scratch, *to = from + widest * parts;
    void *memory = to + widest * parts;
    PITH_TRY(pith__run_convert(r, from, PITH_F64, x->data, part, inner));
    for (int d = 0; d < x->rank; d++) {
        inner /= x->dims[d];
        bool same =
            t.size[d] == x->dims[d] && t.scale[d] == 1 && s->coordinates != TF_CROP_AND_RESIZE;
        if (!same) {
            PITH_TRY(
                resize_run_axis(r, s, &t, d, from, to, outer, x->dims[d], inner, parts, memory));
            double *swap = from;
            from = to, to = swap;
        }
        outer *= t.size[d];
    }
    if (pith__dtype_is_int(x->dtype)) {
        for (int64_t i = 0; i < outer; i++) {
            PITH_TRY(pith__run_step(r, i));
            from[i] = nearbyint(from[i]);
        }
    }
    return pith__run_convert(r, r->out[0]->data, part, from, PITH_F64, outer * parts);
}

/* Up to opset 10 the inputs were X and scales, and places were those of Upsample. */
static pith_status resize_upgrade(pith__node *node, pith_error *err) {
    if (node->opset >= 11) return PITH_OK;
    PITH_TRY(pith__node_set_str(node, "coordinate_transformation_mode", PITH_STR("asymmetric")));
    PITH_TRY(pith__node_set_str(node, "nearest_mode", PITH_STR("floor")));
    pith__value *scales = pith__node_input(node, 1);
    if (pith__node_set_input_count(node, 3) || pith__node_set_input(node, 2, scales) ||
        pith__node_set_input(node, 1, NULL))
        return pith__fail_memory(err, 0);
    return PITH_OK;
}

const pith__op pith__op_Resize = {
    .domain = "",
    .name = "Resize",
    .since = 13,
    .newest = 19,
    .min_inputs = 1,
    .max_inputs = 4,
    .max_outputs = 1,
    .types = "Zffl",
    .attrs = "antialias bool = 0 @18; axes ints @18; "
             "coordinate_transformation_mode string "
             "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_nn|tf_crop_"
             "and_resize = "
             "half_pixel @11-18; "
             "coordinate_transformation_mode string "
             "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|tf_crop_"
             "and_resize = "
             "half_pixel @19; "
             "cubic_coeff_a float = -0.75 @11; exclude_outside bool = 0 @11; "
             "extrapolation_value float = 0 @11; "
             "keep_aspect_ratio_policy string stretch|not_larger|not_smaller = stretch @18; "
             "mode string nearest|linear = nearest @-10; "
             "mode string nearest|linear|cubic = nearest @11; "
             "nearest_mode string round_prefer_floor|round_prefer_ceil|floor|ceil = "
             "round_prefer_floor @11",
    .upgrade = resize_upgrade,
    .shape_inputs = 1u << 1 | 1u << 2 | 1u << 3,
    .infer = resize_infer,
    .prepare = resize_prepare,
    .scratch = resize_scratch,
    .run = resize_run,
    .note = "strings: nearest only",
};

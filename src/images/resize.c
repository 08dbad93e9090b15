/* resize.c - Pillow's resampling of 8-bit pictures, byte for byte.
 *
 * An output pixel is a weighted sum of input pixels, first along rows, then along columns, rounded
 * to a byte between the two. A filter is a function of the distance from the output pixel's middle;
 * where the picture becomes smaller it is stretched by the factor, so that every input pixel
 * counts. Weights are normalised in double and rounded to 22 binary places; sums are 32-bit
 * integers. With alpha, colours are multiplied by it before and divided by it after.
 *
 * Rows go through a window that holds what the next output row needs. So memory is that of some
 * rows, however high the picture is. */
#include "images/resize.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory/memory.h"
#include "images/resize_sums.h"

#define PI 3.14159265358979323846
enum { PLACES = PITH_RESIZE_PLACES };

/* ---- filters ---- */

static double filter_box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

static double filter_triangle(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Pillow's constants are floats: in double some weights would round to another byte. */
static double filter_hamming(double x) {
    x = fabs(x);
    if (x == 0.0) return 1.0;
    if (x >= 1.0) return 0.0;
    x *= PI;
    return sin(x) / x * (0.54f + 0.46f * cos(x));
}

/* Keys' cubic convolution with a = -0.5. */
static double filter_cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double sinc(double x) {
    x *= PI;
    return x == 0.0 ? 1.0 : sin(x) / x;
}

static double filter_lanczos(double x) {
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

typedef struct resize_filter {
    double (*weight)(double x);
    double support; /* weights are 0 beyond it */
} resize_filter;

static const resize_filter filters[] = {
    [PITH_IMAGE_LANCZOS] = { filter_lanczos, 3.0 },
    [PITH_IMAGE_BILINEAR] = { filter_triangle, 1.0 },
    [PITH_IMAGE_BICUBIC] = { filter_cubic, 2.0 },
    [PITH_IMAGE_BOX] = { filter_box, 0.5 },
    [PITH_IMAGE_HAMMING] = { filter_hamming, 1.0 },
};

/* ---- one axis ---- */

typedef struct resize_axis {
    const resize_filter *filter;
    int32_t in, out;
    double scale, stretch; /* input pixels per output pixel; the same, at least 1 */
    int32_t taps;          /* the most weights of an output pixel */
    double *exact;         /* [taps] before rounding */
} resize_axis;

static void axis_init(resize_axis *a, const resize_filter *filter, int32_t in, int32_t out) {
    a->filter = filter;
    a->in = in;
    a->out = out;
    a->scale = (double)in / out;
    a->stretch = a->scale < 1.0 ? 1.0 : a->scale;
    double taps = ceil(filter->support * a->stretch) * 2 + 1;
    a->taps = taps < in ? (int32_t)taps : in;
}

/* The weights of output pixel i; returns how many there are, *first is the input pixel of the
 * first. */
static int32_t axis_weights(int32_t *weights, int32_t *first, const resize_axis *a, int32_t i) {
    double middle = (i + 0.5) * a->scale, support = a->filter->support * a->stretch,
           narrow = 1.0 / a->stretch;
    double low = middle - support + 0.5, high = middle + support + 0.5, sum = 0.0;
    int32_t begin = low < 0 ? 0 : (int32_t)low, end = high > a->in ? a->in : (int32_t)high,
            count = end - begin;
    for (int32_t k = 0; k < count; k++) {
        a->exact[k] = a->filter->weight((k + begin - middle + 0.5) * narrow);
        sum += a->exact[k];
    }
    for (int32_t k = 0; k < count; k++) {
        double w = (sum != 0.0 ? a->exact[k] / sum : a->exact[k]) * (1 << PLACES);
        weights[k] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
    }
    *first = begin;
    return count;
}

static inline uint8_t resize_byte(int32_t sum) {
    sum >>= PLACES;
    if (sum < 0) sum = 0;
    return (uint8_t)(sum > 255 ? 255 : sum);
}

/* ---- both axes ---- */

typedef struct resizer {
    const pith_image *image;
    pith__resize_window window;
    const resize_filter *filter;
    resize_axis x, y;
    bool along, down;           /* the axes that change size */
    bool columns_first;         /* y before x */
    int32_t *x_weights;         /* [window.width, x.taps] */
    int32_t *x_first, *x_count; /* [window.width] */
    int32_t *y_weights;         /* [y.taps] */
    bool vectors;               /* sums of several bytes at a time (resize_sums.h) */
    int16_t *x_halves;          /* [window.width, pith__resize_halves(x.taps)]; only if `vectors` */
    int16_t *y_halves;          /* [pith__resize_halves(y.taps)]; only if `vectors` */
    uint8_t *last;              /* the last input row, with room after it; only if `vectors` */
    int32_t *sums;              /* [middle] */
    uint8_t *line;              /* [middle] between the passes, if columns are first */
    uint8_t *premultiplied;     /* an input row, with alpha */
    uint8_t *rows; /* [capacity, middle]: input rows first_row up to end_row as the pass over
                      columns wants them */
    int32_t first_row, end_row, capacity;
    size_t middle; /* bytes of a row between the passes */
    size_t row;    /* bytes of an output row */
} resizer;

static inline uint8_t resize_multiply(uint32_t a, uint32_t b) {
    uint32_t t = a * b + 128;
    return (uint8_t)((t + (t >> 8)) >> 8);
}

static void row_premultiply(uint8_t *to, const uint8_t *from, int32_t count) {
    for (int32_t i = 0; i < count; i++, to += 4, from += 4) {
        for (int c = 0; c < 3; c++) to[c] = resize_multiply(from[c], from[3]);
        to[3] = from[3];
    }
}

static void row_divide(uint8_t *pixels, int32_t count) {
    for (int32_t i = 0; i < count; i++, pixels += 4) {
        uint32_t alpha = pixels[3];
        if (alpha == 0 || alpha == 255) continue;
        for (int c = 0; c < 3; c++) {
            uint32_t v = 255u * pixels[c] / alpha;
            pixels[c] = (uint8_t)(v > 255 ? 255 : v);
        }
    }
}

/* channels is a constant at every call, so each gets a loop of its own. */
static inline void row_sum_pixels(uint8_t *to, const uint8_t *from, const resizer *r,
                                  int channels) {
    const int32_t half = 1 << (PLACES - 1), *weights = r->x_weights;
    for (int32_t i = 0; i < r->window.width; i++, weights += r->x.taps, to += channels) {
        const uint8_t *p = from + (size_t)r->x_first[i] * (size_t)channels;
        int32_t a = half, b = half, c = half, d = half;
        for (int32_t k = 0; k < r->x_count[i]; k++, p += channels) {
            int32_t weight = weights[k];
            a += weight * p[0];
            if (channels >= 3) b += weight * p[1], c += weight * p[2];
            if (channels == 4) d += weight * p[3];
        }
        to[0] = resize_byte(a);
        if (channels >= 3) to[1] = resize_byte(b), to[2] = resize_byte(c);
        if (channels == 4) to[3] = resize_byte(d);
    }
}

static void row_along(uint8_t *to, const uint8_t *from, const resizer *r) {
    if (r->x_halves) {
        const pith__resize_row row = { r->x_halves, r->x_first, r->x_count, r->window.width,
                                       r->x.taps };
        const pith__resize_lines lines = { to, from, 0, 0, 1 };
        pith__resize_sum_along(&lines, &row, r->image->channels);
    } else if (r->image->channels == 1)
        row_sum_pixels(to, from, r, 1);
    else if (r->image->channels == 3)
        row_sum_pixels(to, from, r, 3);
    else
        row_sum_pixels(to, from, r, 4);
}

/* Input row y as the pass over columns wants it. */
static void row_prepare(uint8_t *to, const resizer *r, int32_t y) {
    size_t pixel = (size_t)r->image->channels;
    const size_t bytes = (size_t)r->image->width * pixel;
    const uint8_t *from = r->image->pixels + (size_t)y * bytes;
    if (r->premultiplied) {
        row_premultiply(r->premultiplied, from, r->image->width);
        from = r->premultiplied;
    } else if (r->last && (size_t)(r->image->height - 1 - y) * bytes < PITH_RESIZE_OVERREAD) {
        from = memcpy(r->last, from, bytes);
    }
    if (r->along && !r->columns_first)
        row_along(to, from, r);
    else
        memcpy(to, from + (r->along ? 0 : (size_t)r->window.x * pixel), r->middle);
}

/* Input rows y and y + 1 at once, as the pass over columns wants them. False: they must be prepared
 * one by one. */
static bool row_prepare_two(uint8_t *to, const resizer *r, int32_t y) {
    const size_t bytes = (size_t)r->image->width * (size_t)r->image->channels;
    if (!r->x_halves || r->columns_first || r->image->channels != 3) return false;
    if ((size_t)(r->image->height - 2 - y) * bytes < PITH_RESIZE_OVERREAD) return false;
    const pith__resize_row row = { r->x_halves, r->x_first, r->x_count, r->window.width,
                                   r->x.taps };
    const pith__resize_lines lines = { to, r->image->pixels + (size_t)y * bytes, r->middle, bytes,
                                       2 };
    pith__resize_sum_along(&lines, &row, r->image->channels);
    return true;
}

/* Sees to it that rows begin to end are in the window of rows. Both only grow from call to call. */
static const uint8_t *rows_up_to(resizer *r, int32_t begin, int32_t end) {
    if (end - r->first_row > r->capacity) {
        if (begin < r->end_row)
            memmove(r->rows, r->rows + (size_t)(begin - r->first_row) * r->middle,
                    (size_t)(r->end_row - begin) * r->middle);
        else
            r->end_row = begin;
        r->first_row = begin;
    }
    while (r->end_row < end && !pith__stop_asked(r->window.stop)) {
        uint8_t *to = r->rows + (size_t)(r->end_row - r->first_row) * r->middle;
        const bool two = r->end_row + 1 < end && row_prepare_two(to, r, r->end_row);
        if (!two) row_prepare(to, r, r->end_row);
        r->end_row += two ? 2 : 1;
    }
    return r->rows + (size_t)(begin - r->first_row) * r->middle;
}

static void rows_sum(uint8_t *to, const uint8_t *rows, int32_t count, resizer *r) {
    int32_t *restrict sums = r->sums;
    if (r->y_halves) {
        pith__resize_split(r->y_halves, r->y_weights, count, r->y.taps);
        pith__resize_sum_down(to, rows, r->middle, r->y_halves, count);
        return;
    }
    for (size_t i = 0; i < r->middle; i++) sums[i] = 1 << (PLACES - 1);
    for (int32_t k = 0; k < count; k++, rows += r->middle) {
        int32_t weight = r->y_weights[k];
        for (size_t i = 0; i < r->middle; i++) sums[i] += weight * rows[i];
    }
    for (size_t i = 0; i < r->middle; i++) to[i] = resize_byte(sums[i]);
}

static pith_status resize_rows(uint8_t *pixels, resizer *r, pith_error *err) {
    for (int32_t i = 0; i < r->window.height; i++, pixels += r->row) {
        PITH_TRY(pith__stop_check(r->window.stop, err));
        int32_t y = r->window.y + i, first = y;
        if (r->down) {
            int32_t count = axis_weights(r->y_weights, &first, &r->y, y);
            rows_sum(r->columns_first ? r->line : pixels, rows_up_to(r, first, first + count),
                     count, r);
        } else {
            row_prepare(pixels, r, y);
        }
        if (r->columns_first) row_along(pixels, r->line, r);
        if (r->premultiplied) row_divide(pixels, r->window.width);
    }
    return pith__stop_check(r->window.stop, err);
}

/* Pillow adds the step again and again, so positions are those of the rounded sums. */
static void nearest_positions(int32_t *positions, int32_t in, int32_t out, int32_t begin,
                              int32_t count) {
    double step = (double)in / out, at = step * 0.5;
    for (int32_t i = 0; i < begin; i++) at += step;
    for (int32_t i = 0; i < count; i++, at += step) positions[i] = at < in ? (int32_t)at : -1;
}

static pith_status resize_nearest(uint8_t *pixels, const pith_image *image,
                                  const pith__resize_window *w, int32_t *columns, int32_t *rows,
                                  pith_error *err) {
    size_t pixel = (size_t)image->channels;
    nearest_positions(columns, image->width, w->whole_width, w->x, w->width);
    nearest_positions(rows, image->height, w->whole_height, w->y, w->height);
    for (int32_t y = 0; y < w->height; y++) {
        PITH_TRY(pith__stop_check(w->stop, err));
        for (int32_t x = 0; x < w->width; x++, pixels += pixel) {
            if (rows[y] < 0 || columns[x] < 0)
                memset(pixels, 0, pixel);
            else
                memcpy(pixels,
                       image->pixels +
                           ((size_t)rows[y] * (size_t)image->width + (size_t)columns[x]) * pixel,
                       pixel);
        }
    }
    return PITH_OK;
}

static pith_status prepare_along(resizer *r, pith__arena *arena, pith_error *err) {
    size_t width = (size_t)r->window.width, taps = (size_t)r->x.taps;
    r->x.exact = pith__arena_array(arena, taps, sizeof *r->x.exact);
    r->x_weights = pith__arena_array(arena, width * taps, sizeof *r->x_weights);
    r->x_first = pith__arena_array(arena, width, sizeof *r->x_first);
    r->x_count = pith__arena_array(arena, width, sizeof *r->x_count);
    if (!r->x.exact || !r->x_weights || !r->x_first || !r->x_count)
        return pith__fail_memory(err, width * taps * sizeof *r->x_weights);
    for (size_t i = 0; i < width; i++)
        r->x_count[i] =
            axis_weights(r->x_weights + i * taps, &r->x_first[i], &r->x, r->window.x + (int32_t)i);
    if (!r->vectors || r->image->channels == 1) return PITH_OK;
    const size_t halves = pith__resize_halves(r->x.taps);
    r->x_halves = pith__arena_array(arena, width * halves, sizeof *r->x_halves);
    r->last = pith__arena_array(
        arena, (size_t)r->image->width * (size_t)r->image->channels + PITH_RESIZE_OVERREAD, 1);
    if (!r->x_halves || !r->last)
        return pith__fail_memory(err, width * halves * sizeof *r->x_halves);
    for (size_t i = 0; i < width; i++)
        pith__resize_split(r->x_halves + i * halves, r->x_weights + i * taps, r->x_count[i],
                           r->x.taps);
    return PITH_OK;
}

static pith_status prepare_down(resizer *r, pith__arena *arena, pith_error *err) {
    /* Twice what a row needs: rows that stay are moved once in as many rows. */
    r->capacity = r->y.taps > r->image->height / 2 ? r->image->height : r->y.taps * 2;
    if (r->y.taps < 4) r->capacity = 8;
    r->y.exact = pith__arena_array(arena, (size_t)r->y.taps, sizeof *r->y.exact);
    r->y_weights = pith__arena_array(arena, (size_t)r->y.taps, sizeof *r->y_weights);
    r->sums = pith__arena_array(arena, r->middle, sizeof *r->sums);
    r->line = pith__arena_array(arena, r->columns_first ? r->middle + PITH_RESIZE_OVERREAD : 0, 1);
    r->rows = pith__arena_array(arena, (size_t)r->capacity, r->middle);
    if (!r->y.exact || !r->y_weights || !r->sums || !r->line || !r->rows)
        return pith__fail_memory(err, (size_t)r->capacity * r->middle);
    if (!r->vectors || r->middle < PITH_RESIZE_OVERREAD) return PITH_OK;
    r->y_halves = pith__arena_array(arena, pith__resize_halves(r->y.taps), sizeof *r->y_halves);
    if (!r->y_halves)
        return pith__fail_memory(err, pith__resize_halves(r->y.taps) * sizeof *r->y_halves);
    return PITH_OK;
}

static pith_status resize_prepare(resizer *r, uint64_t limit, pith__arena *arena, pith_error *err) {
    const pith_image *image = r->image;
    const pith__resize_window *w = &r->window;
    axis_init(&r->x, r->filter, image->width, w->whole_width);
    axis_init(&r->y, r->filter, image->height, w->whole_height);
    /* Pillow's rule, from version 13 on: the height loses more than twice what the width loses. */
    int64_t lost_height = (int64_t)image->height - w->whole_height,
            lost_width = (int64_t)image->width - w->whole_width;
    r->columns_first = r->along && lost_height > 0 && lost_height > 2 * lost_width;
    int32_t middle = r->columns_first ? image->width : w->width;
    r->middle = (size_t)middle * (size_t)image->channels;
    r->row = (size_t)w->width * (size_t)image->channels;
    uint64_t weights = r->along ? (uint64_t)w->width * (uint64_t)r->x.taps : 0;
    uint64_t kept = r->down ? (uint64_t)middle * (uint64_t)r->y.taps : 0;
    if (weights > limit || kept > limit)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "resizing %d x %d to %d x %d pixels keeps %llu values in memory, "
                          "max_pixels is %llu; crop the "
                          "picture first",
                          image->width, image->height, w->whole_width, w->whole_height,
                          (unsigned long long)(weights > kept ? weights : kept),
                          (unsigned long long)limit);
    if (r->along) PITH_TRY(prepare_along(r, arena, err));
    if (r->down) PITH_TRY(prepare_down(r, arena, err));
    if (image->channels != 4 || !(r->along || r->down)) return PITH_OK;
    r->premultiplied = pith__arena_array(arena, (size_t)image->width * 4 + PITH_RESIZE_OVERREAD, 1);
    return r->premultiplied ? PITH_OK : pith__fail_memory(err, (size_t)image->width * 4);
}

static pith_status resize_in(uint8_t *pixels, const pith_image *image,
                             const pith__resize_window *window, int filter, uint64_t limit,
                             pith__arena *arena, pith_error *err) {
    if (filter == PITH_IMAGE_NEAREST) {
        int32_t *columns = pith__arena_array(arena, (size_t)window->width, sizeof *columns);
        int32_t *rows = pith__arena_array(arena, (size_t)window->height, sizeof *rows);
        if (!columns || !rows)
            return pith__fail_memory(err, (size_t)window->width * sizeof *columns);
        return resize_nearest(pixels, image, window, columns, rows, err);
    }
    resizer r = { .image = image,
                  .window = *window,
                  .filter = &filters[filter],
                  .vectors = pith__resize_sums_usable(),
                  .along = window->whole_width != image->width,
                  .down = window->whole_height != image->height };
    PITH_TRY(resize_prepare(&r, limit, arena, err));
    return resize_rows(pixels, &r, err);
}

pith_status pith__resize_run(uint8_t *pixels, const pith_image *image,
                             const pith__resize_window *window, int filter, uint64_t limit,
                             const pith_allocator *allocator, pith_error *err) {
    if (filter < PITH_IMAGE_NEAREST || filter > PITH_IMAGE_HAMMING)
        return pith__fail(err, PITH_ERR_ARGUMENT, "filter is %d; it must be 0 to %d", filter,
                          PITH_IMAGE_HAMMING);
    pith__arena arena;
    pith__arena_init(&arena, allocator);
    pith_status status = resize_in(pixels, image, window, filter, limit, &arena, err);
    pith__arena_free(&arena);
    return status;
}

/* ---- geometry ---- */

pith_status pith__resize_edges(int32_t *new_width, int32_t *new_height, int32_t width,
                               int32_t height, int32_t shortest, int32_t longest, pith_error *err) {
    bool wide = width > height;
    double small = wide ? height : width, large = wide ? width : height, new_small = shortest,
           new_large;
    if (shortest && longest && longest <= shortest)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "longest_edge %d must be larger than shortest_edge %d", longest,
                          shortest);
    /* The products are whole numbers below 2^53; int() in Python rounds their quotient down. */
    new_large = shortest ? floor(shortest * large / small) : longest;
    if (longest && (!shortest || new_large > longest)) {
        new_small =
            shortest ? floor(longest * new_small / new_large) : floor(longest * small / large);
        new_large = longest;
    }
    if (new_small < 1) new_small = 1;
    if (new_large > PITH_RESIZE_MAX_EDGE)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "with shortest_edge %d and longest_edge %d a picture of %d x %d pixels "
                          "would have %.0f pixels along the other; %d are the most",
                          shortest, longest, width, height, new_large, PITH_RESIZE_MAX_EDGE);
    *new_width = (int32_t)(wide ? new_large : new_small);
    *new_height = (int32_t)(wide ? new_small : new_large);
    return PITH_OK;
}

pith__crop pith__crop_edge(int32_t size, int32_t wanted) {
    if (size >= wanted) return (pith__crop){ (size - wanted) / 2, 0, wanted };
    return (pith__crop){ 0, (wanted - size + 1) / 2, size };
}

/* resize_area.c - see resize_area.h. Source of the formulas: resize.cpp of OpenCV's modules/imgproc
 * (computeResizeAreaTab, and the coefficients of INTER_AREA where a picture grows). */
#include "images/resize_area.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* The pixels along one side that an output pixel is made of: `count` weights from `first` on,
 * within the picture. */
typedef struct area_span {
    int32_t first, count;
    const float *weights;
} area_span;

typedef struct area_side {
    double scale;           /* pixels of the window for each of the result */
    int32_t from, to, size; /* the window's size, and where the picture begins and ends in it */
} area_side;

/* A part of a pixel that is less than this is nothing, as in OpenCV. */
static const double area_least = 1e-3;

static int32_t area_within(int64_t x, int32_t size) {
    if (x < 0) return 0;
    return x > size ? size : (int32_t)x;
}

/* The mean of what [place * scale, (place + 1) * scale) covers. Returns the number of pixels;
 * weights NULL: counts. */
static int32_t area_cover(float *weights, int32_t *first, const area_side *s, int32_t place) {
    const double begin = place * s->scale, end = begin + s->scale;
    const double cell = s->scale < s->size - begin ? s->scale : s->size - begin;
    int32_t last = (int32_t)floor(end), inner = (int32_t)ceil(begin), count = 0;
    if (last > s->size - 1) last = s->size - 1;
    if (inner > last) inner = last;
    *first = inner;
    if (inner - begin > area_least) {
        *first = inner - 1;
        if (weights) weights[count] = (float)((inner - begin) / cell);
        count++;
    }
    for (int32_t i = inner; i < last; i++, count++)
        if (weights) weights[count] = (float)(1.0 / cell);
    if (end - last > area_least) {
        const double part = end - last < 1 ? end - last : 1;
        if (weights) weights[count] = (float)((part < cell ? part : cell) / cell);
        count++;
    }
    return count;
}

/* Between two neighbours. */
static int32_t area_between(float *weights, int32_t *first, const area_side *s, int32_t place) {
    int32_t at = (int32_t)floor(place * s->scale);
    float part = (float)((place + 1) - (at + 1) / s->scale);
    part = part <= 0 ? 0 : part - floorf(part);
    if (at >= s->size - 1) at = s->size - 1, part = 0;
    *first = at;
    if (weights) weights[0] = 1 - part;
    if (weights && part > 0) weights[1] = part;
    return part > 0 ? 2 : 1;
}

static pith_status area_spans(area_span **spans, const area_side *s, int32_t count, bool shrinks,
                              pith__arena *arena, pith_error *err) {
    int32_t (*const weigh)(float *, int32_t *, const area_side *, int32_t) =
        shrinks ? area_cover : area_between;
    *spans = pith__arena_array(arena, (size_t)count, sizeof **spans);
    if (!*spans) return pith__fail_memory(err, (size_t)count * sizeof **spans);
    for (int32_t i = 0; i < count; i++) {
        int32_t first, whole = weigh(NULL, &first, s, i);
        float *weights = pith__arena_array(arena, (size_t)whole, sizeof *weights);
        if (!weights) return pith__fail_memory(err, (size_t)whole * sizeof *weights);
        weigh(weights, &first, s, i);
        const int32_t begin = first < s->from ? s->from : first,
                      end = first + whole > s->to ? s->to : first + whole;
        (*spans)[i] =
            (area_span){ begin, end > begin ? end - begin : 0, weights + (begin - first) };
        if (end <= begin) (*spans)[i].weights = weights;
    }
    return PITH_OK;
}

/* One row of the picture, weighted along it: row[width, 3]. */
static void area_row(double *row, const uint8_t *from, const pith_image *image, int64_t left,
                     const area_span *spans, int32_t width) {
    const int32_t channels = image->channels, step = channels == 1 ? 0 : 1;
    for (int32_t x = 0; x < width; x++) {
        const area_span *s = &spans[x];
        const uint8_t *p = from + (left + s->first) * channels;
        double sum[3] = { 0, 0, 0 };
        for (int32_t i = 0; i < s->count; i++, p += channels)
            for (int c = 0; c < 3; c++) sum[c] += (double)s->weights[i] * p[c * step];
        memcpy(row + (size_t)x * 3, sum, sizeof sum);
    }
}

static area_side area_side_of(int64_t begin, int32_t size, int32_t result, int32_t picture) {
    return (area_side){ .scale = (double)size / result,
                        .size = size,
                        .from = area_within(-begin, size),
                        .to = area_within(picture - begin, size) };
}

pith_status pith__area_resize(float *pixels, int32_t width, int32_t height, const pith_image *image,
                              const pith__area_window *w, bool rounded, pith__arena *arena,
                              pith_error *err) {
    const area_side across = area_side_of(w->left, w->width, width, image->width),
                    down = area_side_of(w->top, w->height, height, image->height);
    const bool shrinks = across.scale >= 1 && down.scale >= 1;
    const size_t line = (size_t)width * 3;
    area_span *columns, *rows;
    PITH_TRY(area_spans(&columns, &across, width, shrinks, arena, err));
    PITH_TRY(area_spans(&rows, &down, height, shrinks, arena, err));
    double *row = pith__arena_array(arena, 2 * line, sizeof *row);
    if (!row) return pith__fail_memory(err, 2 * line * sizeof *row);
    double *sum = row + line;
    for (int32_t y = 0; y < height; y++) {
        memset(sum, 0, line * sizeof *sum);
        for (int32_t i = 0; i < rows[y].count; i++) {
            const size_t place = (size_t)(w->top + rows[y].first + i) * (size_t)image->width;
            area_row(row, image->pixels + place * (size_t)image->channels, image, w->left, columns,
                     width);
            for (size_t x = 0; x < line; x++) sum[x] += (double)rows[y].weights[i] * row[x];
        }
        for (size_t x = 0; x < line; x++)
            pixels[(size_t)y * line + x] = (float)(rounded ? rint(sum[x]) : sum[x]);
    }
    return PITH_OK;
}

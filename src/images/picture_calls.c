/* picture_calls.c - pictures with the options of pith/image.h: decoded, resized, cropped. */
#include "images/picture_calls.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/os/file.h"
#include "images/picture.h"
#include "images/resize.h"

pith_status pith__pictures_decode(pith_image *image, const void *data, size_t size,
                                  const pith_image_options *options, pith_error *err) {
    pith_image_options o = PITH_IMAGE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    if (!o.max_pixels) o.max_pixels = PITH_IMAGE_MAX_PIXELS;
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    return pith__picture_decode(image, data, size, &o, stop, err);
}

pith_status pith__pictures_read(pith_image *image, const char *path,
                                const pith_image_options *options, pith_error *err) {
    pith__file file;
    PITH_TRY(pith__file_open(&file, path, false, NULL, err));
    pith_status status = pith__pictures_decode(image, file.data, file.size, options, err);
    pith__file_close(&file);
    return status ? pith__fail_at(err, status, "%s: ", path) : PITH_OK;
}

/* The size of the result by what the options give. */
static pith_status pictures_resized_size(pith__resize_window *w, const pith_image *image,
                                         const pith_image_resize_options *o, pith_error *err) {
    bool both = o->width > 0 && o->height > 0 && !o->shortest_edge && !o->longest_edge;
    bool edges = !o->width && !o->height && o->shortest_edge >= 0 && o->longest_edge >= 0 &&
                 (o->shortest_edge || o->longest_edge);
    if (!both && !edges)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "give width and height, or shortest_edge or longest_edge, not width %d, "
                          "height %d, shortest_edge "
                          "%d, longest_edge %d",
                          o->width, o->height, o->shortest_edge, o->longest_edge);
    w->whole_width = o->width;
    w->whole_height = o->height;
    if (edges)
        PITH_TRY(pith__resize_edges(&w->whole_width, &w->whole_height, image->width, image->height,
                                    o->shortest_edge, o->longest_edge, err));
    if (w->whole_width > PITH_RESIZE_MAX_EDGE || w->whole_height > PITH_RESIZE_MAX_EDGE ||
        (uint64_t)w->whole_width * (uint64_t)w->whole_height > o->max_pixels)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%s%s%sthe resized picture would have %d x %d pixels; max_pixels is "
                          "%llu, an edge has at most %d",
                          both ? "width and height: " : "",
                          o->shortest_edge ? "shortest_edge: " : "",
                          o->longest_edge ? "longest_edge: " : "", w->whole_width, w->whole_height,
                          (unsigned long long)o->max_pixels, PITH_RESIZE_MAX_EDGE);
    w->width = w->whole_width;
    w->height = w->whole_height;
    return PITH_OK;
}

static pith_status pictures_resize(pith_image *resized, const pith_image *image,
                                   const pith_image_resize_options *o, pith__stop *stop,
                                   pith_error *err) {
    pith__resize_window window = { .stop = stop };
    pith_image result;
    PITH_TRY(pith__picture_check(image, err));
    PITH_TRY(pictures_resized_size(&window, image, o, err));
    PITH_TRY(pith__picture_alloc(&result, window.width, window.height, image->channels,
                                 o->call.allocator, err));
    pith_status status = pith__resize_run(result.pixels, image, &window, o->filter, o->max_pixels,
                                          o->call.allocator, err);
    if (status)
        pith__picture_free(&result);
    else
        *resized = result;
    return status;
}

pith_status pith__pictures_resize(pith_image *resized, const pith_image *image,
                                  const pith_image_resize_options *options, pith_error *err) {
    pith_image_resize_options o = PITH_IMAGE_RESIZE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    if (!o.filter) o.filter = PITH_IMAGE_BICUBIC;
    if (!o.max_pixels) o.max_pixels = PITH_IMAGE_MAX_PIXELS;
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    return pictures_resize(resized, image, &o, stop, err);
}

pith_status pith__pictures_center_crop(pith_image *cropped, const pith_image *image, int32_t width,
                                       int32_t height, const pith_call *call, pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith_image result;
    PITH_TAKE_OPTIONS(o, call, err);
    pith__stop own, *stop = pith__stop_begin(&own, &o);
    PITH_TRY(pith__picture_check(image, err));
    if (width < 1 || height < 1 || width > PITH_RESIZE_MAX_EDGE || height > PITH_RESIZE_MAX_EDGE ||
        (uint64_t)width * (uint64_t)height > PITH_IMAGE_MAX_PIXELS)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "a crop of %d x %d pixels; it has at least 1 and at most %d", width,
                          height, PITH_IMAGE_MAX_PIXELS);
    PITH_TRY(pith__picture_alloc(&result, width, height, image->channels, o.allocator, err));
    size_t pixel = (size_t)image->channels;
    pith__crop x = pith__crop_edge(image->width, width), y = pith__crop_edge(image->height, height);
    pith_status status =
        pith__copy_until(stop, result.pixels, NULL, (size_t)width * (size_t)height * pixel, err);
    for (int32_t i = 0; i < y.count && !status; i++) {
        if (i % 64 == 0) status = pith__stop_check(stop, err);
        memcpy(result.pixels + ((size_t)(y.to + i) * (size_t)width + (size_t)x.to) * pixel,
               image->pixels +
                   ((size_t)(y.from + i) * (size_t)image->width + (size_t)x.from) * pixel,
               (size_t)x.count * pixel);
    }
    if (status)
        pith__picture_free(&result);
    else
        *cropped = result;
    return status;
}

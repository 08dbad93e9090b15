/* processor.c - a picture → the floats a model wants, in one walk after the resize.
 *
 * All steps after the resize work on single bytes, so they are a table from byte to float per
 * channel, computed with the arithmetic of NumPy: rescaling in double, then rounded to float;
 * normalisation in float. Only the part of the resized picture that the crop keeps is computed. */
#include "images/processor.h"

#include <math.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "images/picture.h"
#include "images/resize.h"

/* From a picture to its result: resized, of which a part is placed in zeros. */
typedef struct processor_plan {
    pith__resize_window window;
    int32_t width, height, left, top; /* of the result; where the window is in it */
} processor_plan;

static pith_status plan_resize(processor_plan *plan, int32_t *crop, const pith_image_processor *p,
                               int32_t width, int32_t height, pith_error *err) {
    pith__resize_window *w = &plan->window;
    const pith__processor_size *size = &p->size;
    w->whole_width = width;
    w->whole_height = height;
    if (!p->do_resize) return PITH_OK;
    if (p->kind->rule == PITH_SIZE_CONVNEXT && size->shortest < 384) {
        *crop = size->shortest;
        double shortest = floor(size->shortest / p->crop_pct);
        if (!(shortest <= PITH_RESIZE_MAX_EDGE))
            return pith__fail(err, PITH_ERR_FORMAT, "crop_pct %g is too small", p->crop_pct);
        return pith__resize_edges(&w->whole_width, &w->whole_height, width, height,
                                  (int32_t)shortest, 0, err);
    }
    if (size->shortest && p->kind->rule != PITH_SIZE_CONVNEXT) {
        int32_t shortest = p->kind->rule == PITH_SIZE_LEVIT
                               ? (int32_t)(256.0 / 224 * size->shortest)
                               : size->shortest;
        return pith__resize_edges(&w->whole_width, &w->whole_height, width, height, shortest, 0,
                                  err);
    }
    w->whole_width = size->shortest ? size->shortest : size->width;
    w->whole_height = size->shortest ? size->shortest : size->height;
    return PITH_OK;
}

static pith_status plan_make(processor_plan *plan, const pith_image_processor *p, int32_t width,
                             int32_t height, pith_error *err) {
    int32_t square = 0;
    PITH_TRY(plan_resize(plan, &square, p, width, height, err));
    pith__resize_window *w = &plan->window;
    plan->width = p->do_crop ? p->crop_size.width : w->whole_width;
    plan->height = p->do_crop ? p->crop_size.height : w->whole_height;
    if (square) plan->width = plan->height = square;
    if ((uint64_t)plan->width * (uint64_t)plan->height > PITH_IMAGE_MAX_PIXELS)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the result would have %d x %d pixels, %d are the most", plan->width,
                          plan->height, PITH_IMAGE_MAX_PIXELS);
    pith__crop x = pith__crop_edge(w->whole_width, plan->width),
               y = pith__crop_edge(w->whole_height, plan->height);
    w->x = x.from;
    w->y = y.from;
    w->width = x.count;
    w->height = y.count;
    plan->left = x.to;
    plan->top = y.to;
    return PITH_OK;
}

pith_status pith__processor_shape(int64_t dims[3], const pith_image_processor *p, int32_t width,
                                  int32_t height, pith_error *err) {
    processor_plan plan;
    if (width < 1 || height < 1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the picture is empty: %d x %d pixels", width,
                          height);
    PITH_TRY(plan_make(&plan, p, width, height, err));
    dims[0] = 3;
    dims[1] = plan.height;
    dims[2] = plan.width;
    return PITH_OK;
}

/* pixels: the window's, of 1 or 3 channels. */
static pith_status values_write(float *values, const pith_image_processor *p,
                                const processor_plan *plan, const uint8_t *pixels, int channels,
                                pith_error *err) {
    const pith__resize_window *w = &plan->window;
    for (int c = 0; c < 3; c++) {
        const float *table = p->values[c];
        int from = 0;
        if (channels > 1) from = p->do_flip ? 2 - c : c;
        for (int32_t y = 0; y < plan->height; y++, values += plan->width) {
            PITH_TRY(pith__stop_check(w->stop, err));
            int32_t line = y - plan->top;
            bool inside = line >= 0 && line < w->height;
            if (!inside || w->width < plan->width)
                for (int32_t x = 0; x < plan->width; x++) values[x] = table[0];
            if (!inside) continue;
            const uint8_t *pixel =
                pixels + (size_t)line * (size_t)w->width * (size_t)channels + from;
            for (int32_t x = 0; x < w->width; x++, pixel += channels)
                values[plan->left + x] = table[*pixel];
        }
    }
    return PITH_OK;
}

static pith_status processor_resize(float *values, const pith_image_processor *p,
                                    const processor_plan *plan, const pith_image *image,
                                    pith_error *err) {
    pith_image part;
    PITH_TRY(pith__picture_alloc(&part, plan->window.width, plan->window.height, image->channels,
                                 p->allocator, err));
    /* A picture that keeps its size is only cut; any filter but NEAREST copies it then. */
    int filter = p->do_resize ? p->resample + 1 : PITH_IMAGE_BOX;
    pith_status status = pith__resize_run(part.pixels, image, &plan->window, filter,
                                          PITH_IMAGE_MAX_PIXELS, p->allocator, err);
    if (!status) status = values_write(values, p, plan, part.pixels, image->channels, err);
    pith__picture_free(&part);
    return status;
}

pith_status pith__processor_run(float *pixel_values, const pith_image_processor *p,
                                const pith_image *image, pith__stop *stop, pith_error *err) {
    processor_plan plan;
    PITH_TRY(pith__picture_check(image, err));
    PITH_TRY(plan_make(&plan, p, image->width, image->height, err));
    plan.window.stop = stop;
    if (image->channels != 4) return processor_resize(pixel_values, p, &plan, image, err);
    /* Alpha is dropped before the resize, as Pillow's convert("RGB") does. */
    pith_image rgb;
    PITH_TRY(pith__picture_alloc(&rgb, image->width, image->height, 3, p->allocator, err));
    pith_status status = pith__picture_convert_rows(rgb.pixels, 3, image, stop, err);
    if (!status) status = processor_resize(pixel_values, p, &plan, &rgb, err);
    pith__picture_free(&rgb);
    return status;
}

pith_status pith__processor_process(float *pixel_values, const pith_image_processor *p,
                                    const pith_image *image, const pith_call *call,
                                    pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith__stop own;
    PITH_TAKE_OPTIONS(o, call, err);
    return pith__processor_run(pixel_values, p, image, pith__stop_begin(&own, &o), err);
}

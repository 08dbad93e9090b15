/* save_pictures.c - see save_pictures.h. The section is: u32 code, 0 if there is a processor; the
 * reason; then the processor as the members of its struct, without the tables, which are made
 * again. */
#include "models/save/save_pictures.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "base/text_out.h"
#include "images/resize.h"
#include "models/pictures/picture_view.h"

enum { FLAGS = 7 };

/* ---- writing ---- */

static void write_float(pith__bytes_out *out, float x) { pith__put_bytes(out, &x, sizeof x); }

static void write_size(pith__bytes_out *out, const pith__processor_size *s) {
    const int32_t edges[] = { s->height, s->width, s->shortest, s->longest };
    for (int i = 0; i < 4; i++) pith__put_u32(out, (uint32_t)edges[i]);
}

static void write_processor(pith__bytes_out *out, const pith_image_processor *p) {
    const bool flags[FLAGS] = { p->do_resize, p->do_crop,        p->do_rescale, p->do_normalize,
                                p->do_flip,   p->rescale_offset, p->include_top };
    uint32_t bits = 0;
    for (int i = 0; i < FLAGS; i++) bits |= (uint32_t)flags[i] << i;
    pith__put_str(out, pith__str_of(p->kind->name));
    write_size(out, &p->size);
    write_size(out, &p->crop_size);
    pith__put_bytes(out, &p->crop_pct, sizeof p->crop_pct);
    pith__put_bytes(out, &p->rescale_factor, sizeof p->rescale_factor);
    for (int c = 0; c < 3; c++) write_float(out, p->mean[c]);
    for (int c = 0; c < 3; c++) write_float(out, p->std[c]);
    pith__put_u32(out, (uint32_t)p->resample);
    pith__put_u32(out, bits);
}

pith_status pith__save_pictures_write(pith__bytes_out *out, const pith_model *m, pith_error *err) {
    const pith__picture_view *v = NULL;
    pith_error why = PITH_ERROR_INIT;
    bool pixels = false;
    for (size_t i = 0; i < m->graph->input_count; i++)
        pixels = pixels || pith__model_is_pixels(m->graph->inputs[i]);
    if (!pixels) return PITH_OK;
    pith_status status = pith__picture_view_get(&v, m, false, NULL, &why);
    if (status && status != PITH_ERR_MEMORY)
        status = pith__picture_view_get(&v, m, true, NULL, &why);
    if (status == PITH_ERR_MEMORY) return pith__fail(err, status, "%s", why.message);
    if (status) return PITH_OK;
    pith__put_u32(out, v->processor ? PITH_OK : v->no_processor.code);
    pith__put_str(out,
                  v->processor ? PITH_STR("") : pith__model_reason(m, v->no_processor.message));
    if (v->processor) write_processor(out, v->processor);
    return PITH_OK;
}

/* ---- reading ---- */

static void read_number(pith__bytes_in *in, void *x, size_t size) {
    const void *bytes = pith__get_bytes(in, size);
    if (bytes) memcpy(x, bytes, size);
}

static void read_size(pith__bytes_in *in, pith__processor_size *s) {
    int32_t *const edges[] = { &s->height, &s->width, &s->shortest, &s->longest };
    for (int i = 0; i < 4; i++)
        *edges[i] =
            (int32_t)pith__get_below(in, PITH_RESIZE_MAX_EDGE + 1, "an edge that is too long");
}

static pith_status read_processor(pith_image_processor *p, pith__bytes_in *in) {
    bool *const flags[FLAGS] = { &p->do_resize,    &p->do_crop, &p->do_rescale,
                                 &p->do_normalize, &p->do_flip, &p->rescale_offset,
                                 &p->include_top };
    const pith_str name = pith__get_str(in);
    p->kind = in->status ? NULL : pith__processor_class_find(name);
    if (!p->kind) return pith__bytes_fail(in, "a processor of an unknown class");
    read_size(in, &p->size);
    read_size(in, &p->crop_size);
    read_number(in, &p->crop_pct, sizeof p->crop_pct);
    read_number(in, &p->rescale_factor, sizeof p->rescale_factor);
    for (int c = 0; c < 3; c++) read_number(in, &p->mean[c], sizeof p->mean[c]);
    for (int c = 0; c < 3; c++) read_number(in, &p->std[c], sizeof p->std[c]);
    p->resample = (int)pith__get_below(in, PITH_IMAGE_HAMMING + 1, "an unknown filter");
    const uint32_t bits = pith__get_below(in, 1u << FLAGS, "unknown flags");
    for (int i = 0; i < FLAGS; i++) *flags[i] = bits >> i & 1;
    PITH_TRY(pith__bytes_end(in));
    return pith__processor_complete(p, "pictures", in->err);
}

pith_status pith__save_pictures_read(pith_image_processor **processor, pith_error *why,
                                     pith_str section, const pith_allocator *allocator,
                                     pith_error *err) {
    pith__bytes_in in = { .bytes = section, .what = "pictures", .err = err };
    *processor = NULL;
    if (!section.data) {
        pith__fail(why, PITH_ERR_NOT_FOUND, "the model was not opened from a directory");
        return PITH_OK;
    }
    const pith_status code =
        (pith_status)pith__get_below(&in, PITH_ERR_RUN + 1, "an unknown error");
    const pith_str reason = pith__get_str(&in);
    if (in.status) return in.status;
    if (code) {
        PITH_TRY(pith__bytes_end(&in));
        pith__fail(why, code, PITH_CUT_FMT, PITH_CUT(reason, 4096));
        return PITH_OK;
    }
    pith_image_processor *p = pith__memory_alloc(allocator, sizeof *p, 64);
    if (!p) return pith__fail_memory(err, sizeof *p);
    *p = (pith_image_processor){ .allocator = allocator };
    pith_status status = read_processor(p, &in);
    if (status)
        pith__memory_free(allocator, p);
    else
        *processor = p;
    return status;
}

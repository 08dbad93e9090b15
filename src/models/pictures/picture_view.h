/* picture_view.h - the way of pictures through a model: the part of its graph that one picture
 * needs, and what is done to pictures before it. Made when pictures are first embedded. */
#ifndef PITH_MODELS_PICTURES_PICTURE_VIEW_H
#define PITH_MODELS_PICTURES_PICTURE_VIEW_H

#include "engine/runtime/idle_runners.h"
#include "models/heads/head.h"
#include "pith/image.h"

typedef struct pith__picture_view {
    pith__arena arena;
    pith__program own; /* of a part of the graph; without a runtime if the model's own program is
                          used */
    const pith__program *program;
    int output;                      /* of the program: the one that becomes the vector */
    pith__head_model facts;          /* about it, for the head */
    int32_t dtype;                   /* of the input: f32 or f16 */
    int64_t dims[3];                 /* channels, height, width that the model declares; -1: any */
    pith_image_processor *processor; /* NULL: the directory has none */
    pith_error no_processor;         /* why */
    pith__idle_runners idle;
    pith__making making; /* of the graph of `own`: the call that makes the view */
} pith__picture_view;

/* Returns the view, and makes it on first use. PITH_ERR_UNSUPPORTED if the model takes no pictures.
 * rows: whether it is to read rows of patches, which a caller pools, rather than what the model
 * pools itself. Thread-safe. */
pith_status pith__picture_view_get(const pith__picture_view **view, const pith_model *model,
                                   bool rows, pith__stop *stop, pith_error *err);
/* Frees a view; NULL is allowed. */
void pith__picture_view_free(pith__picture_view *view, const pith_allocator *allocator);

/* True for an input [batch, channels, height, width] of floats. */
bool pith__model_is_pixels(const pith__value *input);

/* Makes the part of the model's graph that computes one output, with its types. */
pith_status pith__model_extract(pith__graph **part, const pith_model *model, size_t output,
                                pith__arena *arena, pith_error *err);

#endif

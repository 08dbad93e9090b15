/* text_view.h - the way of texts through a model to some of its outputs.
 *
 * A view is a graph of packed texts that computes these outputs only, if the model has such a
 * graph, and an encoder. The view that dense vectors need is made at open. Others are made when a
 * head first asks for their outputs. */
#ifndef PITH_MODELS_TEXTS_TEXT_VIEW_H
#define PITH_MODELS_TEXTS_TEXT_VIEW_H

#include "engine/opt/pass.h"
#include "models/encode/encoder.h"

typedef struct pith_model pith_model;

typedef struct pith__text_view {
    int outputs[PITH_ENCODER_OUTPUTS]; /* indexes of outputs of the model's graph, ascending */
    int output_count;
    bool padded;            /* there is no ragged graph, even if there could be one */
    pith__arena arena;      /* holds the ragged graph, unless a compiled file has it, and its
                               program */
    pith__graph *ragged;    /* the graph for packed texts, with these outputs only; or NULL */
    pith_str ragged_reason; /* why there is no such graph */
    pith__program program;  /* of `ragged`; without a runtime if there is none */
    pith__encoder *encoder; /* NULL: not made, or texts cannot run */
    pith__making making;    /* of `ragged`, or of the part that texts run through */
    struct pith__text_view *next;
} pith__text_view;

/* Makes view->ragged and view->ragged_reason. report may be NULL; stop, here and below, too. */
pith_status pith__text_view_make_ragged(pith__text_view *view, const pith_model *model,
                                        pith__report *report, pith__stop *stop, pith_error *err);
/* Makes the program of view->ragged, if there is such a graph. */
pith_status pith__text_view_make_program(pith__text_view *view, const pith_model *model,
                                         pith__stop *stop, pith_error *err);
/* Makes the encoder. The model has its tokenizer and its modules. */
pith_status pith__text_view_make_encoder(pith__text_view *view, const pith_model *model,
                                         pith__stop *stop, pith_error *err);
/* Frees what the view holds; it may be empty. */
void pith__text_view_free(pith__text_view *view);

/* Returns the view of these outputs, ascending, and makes it on first use. The model keeps it. If
 * packed is false, texts run one at a time through the model's own graph, which has an attention
 * mask. Thread-safe. */
pith_status pith__text_view_get(const pith__text_view **view, const pith_model *model,
                                const int *outputs, int count, bool packed, pith__stop *stop,
                                pith_error *err);
/* Frees the buffers that the encoders of the model's views keep for later calls. Thread-safe. */
void pith__text_views_trim(const pith_model *model);
/* Returns the idle runners of all views. Thread-safe. */
size_t pith__text_views_idle(const pith_model *model);

#endif

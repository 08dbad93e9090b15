/* text_view.c - see text_view.h. */
#include "models/texts/text_view.h"

#include <string.h>

#include "base/error.h"
#include "base/os/threads.h"
#include "engine/ragged/ragged.h"
#include "models/open/chosen_runtime.h"
#include "models/pictures/picture_view.h"
#include "models/save/save_heads.h"

/* A model of texts and pictures: texts run through their part of the graph only. */
static bool text_view_needs_part(const pith__text_view *view, const pith_model *m) {
    bool pixels = false;
    for (size_t i = 0; i < m->graph->input_count; i++)
        pixels = pixels || pith__model_is_pixels(m->graph->inputs[i]);
    return pixels && view->output_count == 1 && m->graph->input_count > 1;
}

/* A view without a packed graph is no failure: it has a reason, and its encoder runs one text at a
 * time. Only lack of memory and the like are errors. */
pith_status pith__text_view_make_ragged(pith__text_view *view, const pith_model *m,
                                        pith__report *report, pith__stop *stop, pith_error *err) {
    static const int first[] = { 0 };
    const int *outputs = view->output_count ? view->outputs : NULL;
    pith__graph *graph = m->graph;
    if (m->compiled.writer) {
        view->ragged_reason =
            PITH_STR("the compiled file has no graph of packed texts for these outputs");
        return pith__save_heads_read(&view->ragged, m, view->outputs, (size_t)view->output_count,
                                     &view->arena, err);
    }
    if (m->no_ragged) {
        view->ragged_reason =
            PITH_STR("the graph for packed texts gave other results when it was checked");
        return PITH_OK;
    }
    if (m->runtime->as_written) {
        view->ragged_reason =
            PITH_STR("the model is run by a runtime that runs the file as it is written");
        return PITH_OK;
    }
    if (!pith__model_level(m)) {
        view->ragged_reason = PITH_STR("optimisation level 0 runs the graph as written");
        return PITH_OK;
    }
    pith__making before;
    PITH_TRY(pith__model_begin_making(&before, m, stop, err));
    pith_status status = PITH_OK;
    if (text_view_needs_part(view, m)) {
        status = pith__model_extract(&graph, m, (size_t)view->outputs[0], &view->arena, err);
        outputs = first;
    }
    if (!status) {
        pith__opt o = pith__model_optimizer(m, graph, err);
        o.report = report;
        status = pith__ragged_make(&view->ragged, &view->ragged_reason, outputs,
                                   (size_t)view->output_count, &o, &view->arena);
    }
    pith__model_end_making(m, before);
    return status;
}

static pith_status text_view_open_program(pith__text_view *view, const pith_model *m,
                                          pith__graph *graph, pith__stop *stop, pith_error *err) {
    graph->making = &view->making;
    view->making = (pith__making){ .stop = stop, .threads = m->making.threads };
    pith_status status = pith__model_open_program(&view->program, m, graph, &view->arena, err);
    view->making.stop = NULL;
    return status;
}

pith_status pith__text_view_make_program(pith__text_view *view, const pith_model *m,
                                         pith__stop *stop, pith_error *err) {
    if (!view->ragged) return PITH_OK;
    return text_view_open_program(view, m, view->ragged, stop, err);
}

static pith_status text_view_make_part(pith__text_view *view, const pith_model *m, pith__stop *stop,
                                       pith_error *err) {
    pith__graph *part;
    pith__making before;
    PITH_TRY(pith__model_begin_making(&before, m, stop, err));
    pith_status status = pith__model_extract(&part, m, (size_t)view->outputs[0], &view->arena, err);
    pith__model_end_making(m, before);
    return status ? status : text_view_open_program(view, m, part, stop, err);
}

/* A model of texts and pictures has inputs that texts do not fill; a part of its graph is cut out
 * then, unless the packed graph has done that already. */
pith_status pith__text_view_make_encoder(pith__text_view *view, const pith_model *m,
                                         pith__stop *stop, pith_error *err) {
    /* a ragged graph has no other outputs */
    static const int places[PITH_ENCODER_OUTPUTS] = { 0, 1, 2, 3 };
    PITH_TRY(pith__text_view_make_program(view, m, stop, err));
    const pith__program *program = &view->program;
    bool part = !view->ragged && text_view_needs_part(view, m);
    if (part) PITH_TRY(text_view_make_part(view, m, stop, err));
    if (!view->ragged && !part) PITH_TRY(pith__model_program(&program, m, stop, err));
    pith__encoder_parts parts = {
        .program = *program,
        .ragged = view->ragged != NULL,
        .outputs = view->ragged || part ? places : view->outputs,
        .output_count = view->output_count,
        .tokenizer = m->tokenizer,
        .modules = &m->modules,
        .executor = pith__model_executor_options(m),
        .predicts = m->options.memory_limit && !(m->options.flags & PITH_OPEN_NO_PREDICTION),
        .sessions = (size_t)m->options.sessions,
        .session_patience = (uint64_t)m->options.session_idle_ms * 1000000,
        .gauge = (pith__memory_gauge *)&m->gauge,
        .busy = (pith__busy *)&m->busy
    };
    return pith__encoder_create(&view->encoder, &parts, err);
}

void pith__text_view_free(pith__text_view *view) {
    pith__encoder_destroy(view->encoder);
    pith__program_close(&view->program);
    pith__arena_free(&view->arena);
}

static bool text_view_has(const pith__text_view *view, const int *outputs, int count, bool packed) {
    return view->encoder && view->output_count == count &&
           (packed ? !view->padded : !view->ragged) &&
           !memcmp(view->outputs, outputs, (size_t)count * sizeof *outputs);
}

/* Made in memory of its own, so that a failure leaves the model as it was. */
static pith_status text_view_create(pith__text_view **view, const pith_model *m, const int *outputs,
                                    int count, bool packed, pith__stop *stop, pith_error *err) {
    pith__text_view *v = pith__memory_alloc(m->options.call.allocator, sizeof *v, 64);
    if (!v) return pith__fail_memory(err, sizeof *v);
    *v = (pith__text_view){ .output_count = count, .padded = !packed };
    memcpy(v->outputs, outputs, (size_t)count * sizeof *outputs);
    pith__arena_init(&v->arena, m->options.call.allocator);
    pith_status status = packed ? pith__text_view_make_ragged(v, m, NULL, stop, err) : PITH_OK;
    if (!status) status = pith__text_view_make_encoder(v, m, stop, err);
    if (!status) {
        *view = v;
        return PITH_OK;
    }
    pith__text_view_free(v);
    pith__memory_free(m->options.call.allocator, v);
    return status;
}

/* Views are made once and kept. The one of dense vectors is made at open, and is looked at without
 * the lock. */
pith_status pith__text_view_get(const pith__text_view **view, const pith_model *model,
                                const int *outputs, int count, bool packed, pith__stop *stop,
                                pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model; /* the list is behind the lock */
    pith_status status = PITH_OK;
    *view = &m->text;
    if (text_view_has(*view, outputs, count, packed)) return PITH_OK;
    PITH_TRY(pith__threads_lock(&m->view_lock, stop, err));
    const pith__text_view *found = m->views;
    while (found && !text_view_has(found, outputs, count, packed)) found = found->next;
    if (!found) {
        pith__text_view *made = NULL;
        status = text_view_create(&made, m, outputs, count, packed, stop, err);
        if (!status) {
            made->next = m->views;
            m->views = made;
            found = made;
        }
    }
    *view = found;
    pthread_mutex_unlock(&m->view_lock);
    return status;
}

size_t pith__text_views_idle(const pith_model *model) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    size_t idle = m->text.encoder ? pith__encoder_idle(m->text.encoder) : 0;
    pthread_mutex_lock(&m->view_lock);
    for (pith__text_view *v = m->views; v; v = v->next) idle += pith__encoder_idle(v->encoder);
    pthread_mutex_unlock(&m->view_lock);
    return idle;
}

void pith__text_views_trim(const pith_model *model) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    if (m->text.encoder) pith__encoder_trim(m->text.encoder);
    pthread_mutex_lock(&m->view_lock);
    for (pith__text_view *v = m->views; v; v = v->next) pith__encoder_trim(v->encoder);
    pthread_mutex_unlock(&m->view_lock);
}

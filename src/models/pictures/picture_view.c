/* picture_view.c - see picture_view.h. */
#include "models/pictures/picture_view.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "images/processor.h"
#include "models/open/chosen_runtime.h"
#include "models/save/save_pictures.h"

/* Names of outputs that stand for a picture, the best first; the last is read as rows of patches.
 */
static const char *const picture_outputs[] = { "image_embeds", "sentence_embedding",
                                               "pooler_output" };
static const char picture_rows[] = "last_hidden_state";

/* ---- the graph ---- */

pith_status pith__model_extract(pith__graph **part, const pith_model *m, size_t output,
                                pith__arena *arena, pith_error *err) {
    PITH_TRY(pith__graph_extract(part, m->graph, output, arena, err));
    return pith__ops_infer(*part, false, err);
}

bool pith__model_is_pixels(const pith__value *input) {
    const pith__type *t = &input->type;
    return t->rank == 4 && (t->dtype == PITH_F32 || t->dtype == PITH_F16);
}

/* [batch, width] and [batch, width, 1, 1] stand for pictures, [batch, patches, width] are rows. */
static bool picture_reads(pith__head_model *facts, const pith__type *t) {
    const bool grid = t->rank == 4 && t->dims[2] == 1 && t->dims[3] == 1;
    if (t->dtype != PITH_F32 && t->dtype != PITH_F16) return false;
    if (t->rank != 2 && t->rank != 3 && !grid) return false;
    int64_t width = t->dims[t->rank == 3 ? 2 : 1];
    if (!pith__dim_known(width) || width < 1) return false;
    facts->width = width;
    facts->pooled = t->rank != 3;
    return true;
}

/* Tries an output of the model. *found is false if it does not fit. */
static pith_status picture_try(bool *found, pith__picture_view *v, const pith_model *m, int output,
                               pith_error *err) {
    pith__graph *part;
    *found = false;
    if (output < 0) return PITH_OK;
    pith__making before;
    PITH_TRY(pith__model_begin_making(&before, m, v->making.stop, err));
    const pith_status extracted = pith__model_extract(&part, m, (size_t)output, &v->arena, err);
    pith__model_end_making(m, before);
    if (extracted) return extracted;
    part->making = &v->making;
    if (part->input_count != 1 || !pith__model_is_pixels(part->inputs[0])) return PITH_OK;
    if (!picture_reads(&v->facts, &part->outputs[0]->type)) return PITH_OK;
    *found = true;
    const pith__value *input = part->inputs[0];
    const pith__type *declared = input->hint && input->hint->rank == 4 ? input->hint : &input->type;
    v->dtype = input->type.dtype;
    for (int i = 0; i < 3; i++) {
        pith__dim d = declared->dims[i + 1];
        v->dims[i] = pith__dim_known(d) ? d : -1;
    }
    if (m->graph->input_count == 1) { /* there is nothing else in the model */
        v->output = output;
        return pith__model_program(&v->program, m, v->making.stop, err);
    }
    v->output = 0;
    v->program = &v->own;
    return pith__model_open_program(&v->own, m, part, &v->arena, err);
}

/* The output that stands for a picture: one of the names, else the first that fits. */
static pith_status picture_choose(pith__picture_view *v, const pith_model *m, bool rows,
                                  pith_error *err) {
    bool found = false;
    if (rows) {
        PITH_TRY(picture_try(&found, v, m, pith__graph_find_output(m->graph, picture_rows), err));
        if (found && !v->facts.pooled) return PITH_OK;
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the model has no output last_hidden_state with rows of patches to pool; "
                          "leave pooling to the model");
    }
    for (size_t i = 0; i < sizeof picture_outputs / sizeof *picture_outputs && !found; i++)
        PITH_TRY(
            picture_try(&found, v, m, pith__graph_find_output(m->graph, picture_outputs[i]), err));
    for (size_t i = 0; i < m->graph->output_count && !found; i++)
        PITH_TRY(picture_try(&found, v, m, (int)i, err));
    if (found) return PITH_OK;
    bool pixels = false;
    for (size_t i = 0; i < m->graph->input_count; i++)
        pixels = pixels || pith__model_is_pixels(m->graph->inputs[i]);
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      pixels ? "this model cannot embed pictures: no output [batch, width] or "
                               "[batch, patches, width] "
                               "follows from its pixels alone"
                             : "this model cannot embed pictures: it has no input of pixels "
                               "[batch, 3, height, width]");
}

/* ---- making ---- */

/* A model without a processor can still embed pictures, with one that the caller gives; so its
 * absence is kept as a reason. */
static pith_status picture_make(pith__picture_view *v, const pith_model *m, bool rows,
                                pith_error *err) {
    const pith_open_options *o = &m->options;
    v->facts = (pith__head_model){ .modules = &m->modules, .isa = pith__cpu_get()->isa };
    PITH_TRY(picture_choose(v, m, rows, err));
    PITH_TRY(pith__idle_runners_init(&v->idle, (size_t)o->sessions,
                                     (uint64_t)o->session_idle_ms * 1000000,
                                     (pith__counters *)&m->account.counters, &v->arena, err));
    if (m->compiled.writer)
        return pith__save_pictures_read(&v->processor, &v->no_processor,
                                        m->compiled.sections[PITH_SECTION_PICTURES],
                                        o->call.allocator, err);
    if (!m->dir.data) {
        pith__fail(&v->no_processor, PITH_ERR_NOT_FOUND,
                   "the model was not opened from a directory");
        return PITH_OK;
    }
    pith_str folder = m->dir;
    if (m->modules.folder.size)
        PITH_TRY(pith__path_join(&folder, &v->arena, m->dir.data, m->modules.folder, err));
    pith_status status = pith__processor_open(&v->processor, folder.data, m->options.call.allocator,
                                              &v->no_processor);
    return status == PITH_ERR_MEMORY ? pith__fail(err, status, "%s", v->no_processor.message)
                                     : PITH_OK;
}

void pith__picture_view_free(pith__picture_view *v, const pith_allocator *allocator) {
    if (!v) return;
    if (v->idle.items) pith__idle_runners_destroy(&v->idle);
    if (v->processor) pith__processor_close(v->processor);
    pith__program_close(&v->own);
    pith__arena_free(&v->arena);
    pith__memory_free(allocator, v);
}

/* Made in memory of its own, so that a failure leaves nothing behind. */
static pith_status picture_create(pith__picture_view **view, const pith_model *m, bool rows,
                                  pith__stop *stop, pith_error *err) {
    const pith_allocator *allocator = m->options.call.allocator;
    pith__picture_view *v = pith__memory_alloc(allocator, sizeof *v, 64);
    if (!v) return pith__fail_memory(err, sizeof *v);
    *v = (pith__picture_view){ .no_processor = PITH_ERROR_INIT, .making = { .stop = stop } };
    pith__arena_init(&v->arena, allocator);
    pith_status status = picture_make(v, m, rows, err);
    v->making.stop = NULL;
    if (status)
        pith__picture_view_free(v, allocator);
    else
        *view = v;
    return status;
}

static void picture_close(pith_model *m) {
    for (int i = 0; i < 2; i++) pith__picture_view_free(m->pictures[i], m->options.call.allocator);
}

/* Made when pictures are first embedded, one view for vectors that the model pools and one for rows
 * that are pooled here. */
pith_status pith__picture_view_get(const pith__picture_view **view, const pith_model *model,
                                   bool rows, pith__stop *stop, pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    pith_status status = PITH_OK;
    PITH_TRY(pith__threads_lock(&m->view_lock, stop, err));
    if (!m->pictures[rows]) status = picture_create(&m->pictures[rows], m, rows, stop, err);
    m->close_pictures = picture_close;
    *view = m->pictures[rows];
    pthread_mutex_unlock(&m->view_lock);
    return status;
}

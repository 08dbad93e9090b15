/* model_info.c - what the file of a network says of itself. It is read when it is first asked
 * for. */
#include "models/describe/model_info.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "formats/onnx/info_read.h"

static void info_close(pith_model *m) {
    pith__arena arena = m->info->arena;
    m->info = NULL;
    pith__arena_free(&arena);
}

static pith_status info_make(pith__model_info **made, const pith_model *m, pith_error *err) {
    pith__arena arena;
    pith__arena_init(&arena, &m->account.allocator);
    pith__model_info *i = pith__arena_array(&arena, 1, sizeof *i);
    pith_status status = i ? PITH_OK : pith__fail_memory(err, sizeof *i);
    if (!status) status = pith__onnx_info_read(&i->info, pith__model_about(m), &arena, err);
    if (!status && !i->info.producer[0] && m->graph->producer.size) {
        i->info.producer = pith__arena_str(&arena, m->graph->producer).data;
        if (!i->info.producer) status = pith__fail_memory(err, m->graph->producer.size);
    }
    if (status) {
        pith__arena_free(&arena);
        return status;
    }
    i->arena = arena;
    *made = i;
    return PITH_OK;
}

pith_status pith__model_tell_info(pith_model_info *info, const pith_model *model, pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model; /* the lazily made part is behind the lock */
    size_t size = info->size < sizeof *info ? info->size : sizeof *info;
    pith_status status = PITH_OK;
    if (size < sizeof size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the info has no size; initialise it with its _INIT macro");
    pthread_mutex_lock(&m->view_lock);
    if (!m->info) status = info_make(&m->info, m, err);
    if (!status) m->close_info = info_close;
    if (!status) {
        pith_model_info full = m->info->info;
        full.size = info->size;
        memcpy(info, &full, size);
    }
    pthread_mutex_unlock(&m->view_lock);
    return pith__account_explain(&m->account, status, err);
}

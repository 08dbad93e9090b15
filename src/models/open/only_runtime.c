/* only_runtime.c - the choice of a runtime where this build has but one; where it has more,
 * chosen_runtime.c chooses. */
#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/str.h"
#include "models/open/chosen_runtime.h"
#include "models/open/reader.h"

/* A build with several runtimes goes to chosen_runtime.c from here. */
pith_status pith__chosen_runtime_begin(pith_model *m, pith_error *err) {
    static const pith_runtime_options none = PITH_RUNTIME_OPTIONS_INIT;
    const char *name = m->options.runtime ? m->options.runtime : "builtin";
    if (pith__chosen_runtime_used) return pith__chosen_runtime_used->begin(m, err);
    m->chosen_runtime.options = none;
    m->chosen_runtime.is_auto = !strcmp(name, "auto");
    m->chosen_runtime.reason = "";
    PITH_TRY(pith__runtime_find(&m->runtime, m->chosen_runtime.is_auto ? NULL : name, err));
    m->chosen_runtime.requested = m->chosen_runtime.is_auto ? "auto" : m->runtime->name;
    return PITH_OK;
}

/* "auto" takes ONNX Runtime for what the builtin runtime cannot run; this build is without it. */
static pith_status runtime_fail(const pith_model *m, pith_status status, const char *reason,
                                pith_error *err) {
    pith_error lacks = PITH_ERROR_INIT;
    if (!m->chosen_runtime.is_auto || status != PITH_ERR_UNSUPPORTED)
        return pith__fail(err, status, "%s", reason);
    const bool left_out = pith__piece_check("runtimes", PITH_STR("ort"), &lacks);
    return pith__fail(err, status, "%s; ONNX Runtime, which auto takes, is not in this build: %s",
                      reason, left_out ? lacks.message : "build with PITH_WITH_RUNTIME_ORT");
}

pith_status pith__chosen_runtime_choose(pith_model *m, pith_status known, const pith_error *reason,
                                        pith_error *err) {
    if (pith__chosen_runtime_used) return pith__chosen_runtime_used->choose(m, known, reason, err);
    return known ? runtime_fail(m, known, reason->message, err) : PITH_OK;
}

pith_status pith__chosen_runtime_rescue(pith_model *m, pith_status status, pith_error *err) {
    if (pith__chosen_runtime_used) return pith__chosen_runtime_used->rescue(m, status, err);
    if (!status || !err) return status;
    const pith_error reason = *err;
    return runtime_fail(m, status, reason.message, err);
}

/* Only ONNX files can be handed to another runtime; of these the bytes and, if it is still mapped
 * from it, the path. Bytes with added outputs have no path. */
pith__program_source pith__model_program_source(const pith_model *m, const pith__graph *graph) {
    /* counters may change in a model that does not */
    pith__account *account = &((pith_model *)(uintptr_t)m)->account;
    pith__program_source source = { .graph = graph,
                                    .files = &m->files,
                                    .options = &m->chosen_runtime.options,
                                    .log = m->options.call.log,
                                    .counters = &account->counters };
    if (!m->reader || strcmp(m->reader->name, "onnx")) return source;
    if (m->chosen_runtime.inner.data) {
        source.bytes = m->chosen_runtime.inner;
        source.folder = m->source_folder;
        return source;
    }
    source.bytes = m->source_bytes;
    for (size_t i = 0; i < m->files.count; i++)
        if ((const char *)m->files.items[i].data == m->source_bytes.data)
            source.path = m->files.items[i].path;
    return source;
}

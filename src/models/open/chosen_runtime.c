/* chosen_runtime.c - see chosen_runtime.h.
 *
 * A runtime that runs files as they are written gets its program as soon as the graph is read,
 * before the graph is optimised: if it cannot run the model, the builtin runtime goes on with the
 * same graph. */
#include "models/open/chosen_runtime.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/str.h"
#include "models/open/reader.h"

#define RUNTIME_AUTO "auto"
#define RUNTIME_FOREIGN "ort" /* what "auto" takes for models that Pith cannot run */

/* ---- options ---- */

static pith_status runtime_keep_list(const char *const **list, size_t count, pith__arena *arena,
                                     pith_error *err) {
    const char **copy = pith__arena_array(arena, count, sizeof *copy);
    if (!copy) return pith__fail_memory(err, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        copy[i] = pith__arena_str(arena, pith__str_of((*list)[i])).data;
        if (!copy[i]) return pith__fail_memory(err, strlen((*list)[i]));
    }
    *list = copy;
    return PITH_OK;
}

/* Strings of the caller are copied: the model outlives them, and the report tells them. */
static pith_status runtime_copy_options(pith_model *m, pith_error *err) {
    static const pith_runtime_options none = PITH_RUNTIME_OPTIONS_INIT;
    pith_runtime_options *o = &m->chosen_runtime.options;
    *o = none;
    PITH_TAKE_OPTIONS(*o, m->options.runtime_options, err);
    const char **texts[] = { &o->ort_library, &o->ort_python, &o->ort_profile };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!*texts[i]) continue;
        *texts[i] = pith__arena_str(&m->arena, pith__str_of(*texts[i])).data;
        if (!*texts[i]) return pith__fail_memory(err, 0);
    }
    PITH_TRY(runtime_keep_list(&o->providers, o->provider_count, &m->arena, err));
    return runtime_keep_list(&o->settings, o->setting_count, &m->arena, err);
}

/* ---- choosing ---- */

static pith_status runtime_note(pith_model *m, const char *reason, pith_error *err) {
    m->chosen_runtime.reason = pith__arena_str(&m->arena, pith__str_of(reason)).data;
    return m->chosen_runtime.reason ? PITH_OK : pith__fail_memory(err, strlen(reason));
}

/* The builtin runtime takes the place of the one that was asked for. */
static pith_status runtime_fall_back(pith_model *m, const pith_error *fault, pith_error *err) {
    if (pith__status_stops(fault->code)) return pith__fail(err, fault->code, "%s", fault->message);
    if (m->chosen_runtime.options.strict || fault->code == PITH_ERR_MEMORY)
        return pith__fail(err, fault->code, "runtime %s: %s", m->runtime->name, fault->message);
    pith__log_write(m->options.call.log, PITH_LOG_WARNING,
                    "the builtin runtime runs the model instead of %s: %s", m->runtime->name,
                    fault->message);
    PITH_TRY(pith__runtime_find(&m->runtime, NULL, err));
    m->chosen_runtime.fallback = true;
    return runtime_note(m, fault->message, err);
}

/* Before the file is read, since a runtime that is not there at all is told first. */
static pith_status runtime_begin(pith_model *m, pith_error *err) {
    const char *name = m->options.runtime ? m->options.runtime : "builtin";
    pith_error fault = PITH_ERROR_INIT;
    PITH_TRY(runtime_copy_options(m, err));
    m->chosen_runtime.is_auto = !strcmp(name, RUNTIME_AUTO);
    m->chosen_runtime.reason = "";
    PITH_TRY(pith__runtime_find(&m->runtime, m->chosen_runtime.is_auto ? NULL : name, err));
    m->chosen_runtime.requested = m->chosen_runtime.is_auto ? RUNTIME_AUTO : m->runtime->name;
    if (m->runtime->as_written && m->options.precision > PITH_PRECISION_F32)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "precision int8 and bf16 are the builtin runtime's; %s runs the file as it is", name);
    if (!m->runtime->ready || !m->runtime->ready(NULL, &m->chosen_runtime.options, &fault))
        return PITH_OK;
    return runtime_fall_back(m, &fault, err);
}

/* Opens the program of the whole graph with a runtime that runs files as they are written. */
static pith_status runtime_open_program(pith_model *m, pith_error *err) {
    const pith__program_source source = pith__model_program_source(m, m->graph);
    if (source.bytes.data && !m->chosen_runtime.inner.data &&
        m->graph->output_count != m->chosen_runtime.file_outputs)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model's modules add layers to what the file holds");
    pith_status status =
        pith__program_open(&m->program, m->runtime, &source, &m->program_arena, err);
    if (status) pith__arena_free(&m->program_arena);
    return status;
}

/* Inputs and outputs have the types that the file declares, since Pith could not infer them. */
static void runtime_declare(pith_model *m) {
    for (size_t i = 0; i < m->graph->input_count; i++) {
        pith__value *v = m->graph->inputs[i];
        if (v->hint && v->type.dtype == PITH_UNDEFINED) v->type = *v->hint;
    }
    for (size_t i = 0; i < m->graph->output_count; i++) {
        pith__value *v = m->graph->outputs[i];
        if (v->hint && v->type.dtype == PITH_UNDEFINED) v->type = *v->hint;
    }
}

/* "auto": the builtin runtime cannot run the model for this reason, so the other one tries. */
static pith_status runtime_take_over(pith_model *m, const pith_error *reason, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    const pith__runtime *builtin = m->runtime;
    if (!m->chosen_runtime.is_auto || reason->code != PITH_ERR_UNSUPPORTED ||
        m->options.precision > PITH_PRECISION_F32)
        return pith__fail(err, reason->code, "%s", reason->message);
    PITH_TRY(pith__runtime_find(&m->runtime, RUNTIME_FOREIGN, err));
    pith_status status = m->runtime->ready(NULL, &m->chosen_runtime.options, &fault);
    if (!status) status = runtime_open_program(m, &fault);
    if (!status) return runtime_note(m, reason->message, err);
    m->runtime = builtin;
    if (pith__status_stops(status)) return pith__fail(err, status, "%s", fault.message);
    return pith__fail(err, reason->code, "%s; ONNX Runtime cannot run it either: %s",
                      reason->message, fault.message);
}

/* What the caller asked of the builtin runtime changes nothing where another one runs the file as
 * it is. */
static void runtime_tell_unused(const pith_model *m) {
    const pith_open_options *o = &m->options;
    const struct {
        const char *name;
        bool given;
    } options[] = { { "optimization", pith__model_level(m) != 3 && !(o->flags & PITH_OPEN_INNER) },
                    { "inter_op_threads", o->inter_op_threads > 1 },
                    { "PITH_OPEN_NO_ARENA", o->flags & PITH_OPEN_NO_ARENA },
                    { "PITH_OPEN_NO_PLAN_REUSE", o->flags & PITH_OPEN_NO_PLAN_REUSE } };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given)
            pith__log_write(o->call.log, PITH_LOG_WARNING,
                            "%s is the builtin runtime's; %s runs the file as it is",
                            options[i].name, m->runtime->name);
}

/* A runtime that runs files as they are written needs nothing of Pith's operators, so a graph that
 * could not be bound is no obstacle for it; of memory that is out, or a damaged file, it is. */
static pith_status runtime_choose(pith_model *m, pith_status known, const pith_error *reason,
                                  pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    if (known) runtime_declare(m);
    if (!m->runtime->as_written) return known ? runtime_take_over(m, reason, err) : PITH_OK;
    if (known && known != PITH_ERR_UNSUPPORTED)
        return pith__fail(err, known, "%s", reason->message);
    if (!runtime_open_program(m, &fault)) {
        runtime_tell_unused(m);
        return PITH_OK;
    }
    PITH_TRY(runtime_fall_back(m, &fault, err));
    return known ? pith__fail(err, known, "%s", reason->message) : PITH_OK;
}

static pith_status runtime_rescue(pith_model *m, pith_status status, pith_error *err) {
    if (!status || m->runtime->as_written) return status;
    pith_error reason = { .code = status };
    if (err) memcpy(reason.message, err->message, sizeof reason.message);
    return runtime_take_over(m, &reason, err);
}

const pith__chosen_runtime_functions pith__chosen_runtime_all = { .begin = runtime_begin,
                                                                  .choose = runtime_choose,
                                                                  .rescue = runtime_rescue };

/* What the runtime itself has to say is known once its program is open. */
pith_status pith__model_report_runtime(pith_runtime_report *report, const pith_model *model,
                                       pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model; /* the program is made behind a lock */
    pith_runtime_report full = PITH_RUNTIME_REPORT_INIT;
    full.name = m->runtime->name;
    full.requested = m->chosen_runtime.requested;
    full.fallback = m->chosen_runtime.fallback;
    full.reason = m->chosen_runtime.reason;
    full.library = full.version = full.providers = "";
    pthread_mutex_lock(&m->lock);
    if (m->program.runtime && m->program.runtime->report)
        m->program.runtime->report(m->program.state, &full);
    pthread_mutex_unlock(&m->lock);
    size_t size = report->size < sizeof full ? report->size : sizeof full;
    if (size < sizeof size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the report has no size; initialise it with its _INIT macro");
    full.size = report->size;
    memcpy(report, &full, size);
    return PITH_OK;
}

/* runtime_ort.c - ONNX Runtime as a runtime: a program is its sessions, a runner is the tensors of
 * one run.
 *
 * The library is found at run time (ort_library.h). A session runs on threads of its own, whose
 * number is fixed when it is made; so a program has one session for each number of threads that
 * runs ask for. Threads share sessions. Inputs are used where they are, and outputs are the
 * library's own tensors, which the runner keeps until its next run. Types other than tensors, and
 * strings, are refused. */
#include <pthread.h>
#include <string.h>

#include "base/stop.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "base/str.h"
#include "engine/runtime/ort_session.h"
#include "engine/runtime/ort_watch.h"

/* Sessions of one program. Each holds a copy of the weights; where there are as many, the last one
 * serves. */
enum { ORT_SESSIONS_MOST = 8 };

typedef struct ort_program {
    const pith__ort *ort;
    pith__program_source source;
    const char **inputs, **outputs; /* names, in the order of the graph */
    char providers[200];
    pthread_mutex_t lock; /* guards the members below */
    struct {
        int threads;
        ort_session *session;
    } sessions[ORT_SESSIONS_MOST];
    int count;
} ort_program;

typedef struct ort_runner {
    ort_program *program;
    const pith_allocator *allocator;
    size_t given, bytes;
    const char **names;  /* of the inputs of a run, then of its outputs */
    const bool *wanted;  /* [output_count]; NULL: all */
    ort_value **inputs;  /* [given] */
    ort_value **outputs; /* [output_count], until the next run */
    ort_value **values;  /* [output_count]: those that a run asks for, side by side */
    ort_run_options *run;
} ort_runner;

/* ---- programs ---- */

static pith_status ort_ready(pith_runtime_report *report, const pith_runtime_options *options,
                             pith_error *err) {
    const pith__ort *ort;
    PITH_TRY(pith__ort_load(&ort, options, err));
    if (report) {
        report->library = ort->path;
        report->version = ort->version;
    }
    return PITH_OK;
}

/* The lock is held, or the program is new. */
static pith_status ort_make_session(ort_session **session, ort_program *p, int threads,
                                    pith_error *err) {
    char again[sizeof p->providers];
    pith__text_out out = pith__text_begin(p->count ? again : p->providers, sizeof again);
    PITH_TRY(
        pith__ort_session_create(session, &out, p->ort, &p->source, threads, p->count > 0, err));
    p->sessions[p->count].threads = threads;
    p->sessions[p->count++].session = *session;
    return PITH_OK;
}

static pith_status ort_find_session(ort_session **session, ort_program *p, int threads,
                                    pith_error *err) {
    pith_status status = PITH_OK;
    int i = 0;
    pthread_mutex_lock(&p->lock);
    while (i < p->count && p->sessions[i].threads != threads) i++;
    if (i == ORT_SESSIONS_MOST) i--;
    if (i < p->count)
        *session = p->sessions[i].session;
    else
        status = ort_make_session(session, p, threads, err);
    pthread_mutex_unlock(&p->lock);
    return status;
}

static pith_status ort_copy_names(const char ***names, pith__value *const *values, size_t count,
                                  pith__arena *arena, pith_error *err) {
    *names = pith__arena_array(arena, count, sizeof **names);
    if (!*names) return pith__fail_memory(err, count * sizeof **names);
    for (size_t i = 0; i < count; i++) {
        (*names)[i] = pith__arena_str(arena, values[i]->name).data;
        if (!(*names)[i]) return pith__fail_memory(err, values[i]->name.size);
    }
    return PITH_OK;
}

typedef ort_status *ort_name_fn(const ort_session *session, size_t index, ort_allocator *allocator,
                                char **name);

static bool ort_is_listed(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

/* Each of the session's first `count` names is one of `names`. */
static pith_status ort_check_names(const ort_program *p, ort_session *session, ort_name_fn *get,
                                   size_t count, const char *const *names, size_t known,
                                   pith_error *err) {
    for (size_t i = 0; i < count; i++) {
        char *name;
        pith_error fault = PITH_ERROR_INIT;
        PITH_TRY(pith__ort_check(p->ort, get(session, i, p->ort->allocator, &name), "names", err));
        pith_status status = PITH_OK;
        if (!ort_is_listed(name, names, known))
            status = pith__fail(
                &fault, PITH_ERR_UNSUPPORTED,
                "ONNX Runtime runs whole files only, and this part of the model lacks '%s'", name);
        pith_status freed =
            pith__ort_check(p->ort, p->ort->AllocatorFree(p->ort->allocator, name), "names", err);
        if (status) return pith__fail(err, status, "%s", fault.message);
        PITH_TRY(freed);
    }
    return PITH_OK;
}

/* What the session needs, the graph has. */
static pith_status ort_check_session(const ort_program *p, ort_session *session, pith_error *err) {
    size_t inputs;
    PITH_TRY(
        pith__ort_check(p->ort, p->ort->SessionGetInputCount(session, &inputs), "inputs", err));
    return ort_check_names(p, session, p->ort->SessionGetInputName, inputs, p->inputs,
                           p->source.graph->input_count, err);
}

static pith_status ort_open_program(void **state, const pith__program_source *source,
                                    pith__arena *arena, pith_error *err) {
    const pith__graph *graph = source->graph;
    ort_session *session;
    if (!source->bytes.data)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "ONNX Runtime runs .onnx files; this model is read from another format");
    ort_program *p = pith__arena_array(arena, 1, sizeof *p);
    if (!p) return pith__fail_memory(err, sizeof *p);
    p->source = *source;
    PITH_TRY(pith__ort_load(&p->ort, source->options, err));
    PITH_TRY(ort_copy_names(&p->inputs, graph->inputs, graph->input_count, arena, err));
    PITH_TRY(ort_copy_names(&p->outputs, graph->outputs, graph->output_count, arena, err));
    int threads = source->options->ort_threads;
    PITH_TRY(ort_make_session(&session, p, pith__threads_count(threads), err));
    pith_status status = ort_check_session(p, session, err);
    if (!status && pthread_mutex_init(&p->lock, NULL))
        status = pith__fail_memory(err, sizeof p->lock);
    if (status) {
        p->ort->ReleaseSession(session);
        return status;
    }
    *state = p;
    return PITH_OK;
}

static void ort_close_program(void *state) {
    ort_program *p = state;
    for (int i = 0; i < p->count; i++) p->ort->ReleaseSession(p->sessions[i].session);
    pthread_mutex_destroy(&p->lock);
}

static void ort_report(const void *state, pith_runtime_report *report) {
    const ort_program *p = state;
    report->library = p->ort->path;
    report->version = p->ort->version;
    report->providers = p->providers;
}

/* ---- runners ---- */

static void ort_forget(ort_runner *r) {
    const pith__ort *ort = r->program->ort;
    for (size_t i = 0; i < r->given; i++) ort->ReleaseValue(r->inputs[i]);
    r->given = r->bytes = 0;
    for (size_t i = 0; i < r->program->source.graph->output_count; i++) {
        if (r->outputs[i]) ort->ReleaseValue(r->outputs[i]);
        r->outputs[i] = NULL;
    }
}

static pith_status ort_create_runner(void **state, const void *program,
                                     const pith__executor_options *options, pith_error *err) {
    ort_program *p = (ort_program *)(uintptr_t)program; /* its list of sessions is behind a lock */
    size_t inputs = p->source.graph->input_count, outputs = p->source.graph->output_count;
    size_t bytes = sizeof(ort_runner) + (2 * inputs + 3 * outputs) * sizeof(void *);
    ort_runner *r = pith__memory_alloc(options->allocator, bytes, 64);
    if (!r) return pith__fail_memory(err, bytes);
    memset(r, 0, bytes);
    r->program = p;
    r->allocator = options->allocator;
    r->names = (const char **)(r + 1);
    r->inputs = (ort_value **)(r->names + inputs + outputs);
    r->outputs = r->inputs + inputs;
    r->values = r->outputs + outputs;
    pith_status status =
        pith__ort_check(p->ort, p->ort->CreateRunOptions(&r->run), "run options", err);
    if (status)
        pith__memory_free(options->allocator, r);
    else
        *state = r;
    return status;
}

static void ort_destroy_runner(void *state) {
    ort_runner *r = state;
    ort_forget(r);
    r->program->ort->ReleaseRunOptions(r->run);
    pith__memory_free(r->allocator, r);
}

static pith_status ort_give_inputs(ort_runner *r, const pith_tensor *inputs, pith_error *err) {
    static char nothing[64]; /* tensors without elements need an address, too */
    const ort_program *p = r->program;
    for (size_t i = 0; i < p->source.graph->input_count; i++) {
        const pith_tensor *t = &inputs[i];
        size_t bytes;
        if (t->dtype == PITH_UNDEFINED) continue;
        if (t->dtype >= PITH_DTYPE_COUNT || t->dtype == PITH_STRING ||
            !pith__dtype_bytes(t->dtype, pith__dims_count(t->dims, t->rank), &bytes))
            return pith__fail(
                err, PITH_ERR_UNSUPPORTED,
                "input '%s': %s cannot be given to ONNX Runtime; use the builtin runtime",
                p->inputs[i], pith__dtype_name(t->dtype));
        PITH_TRY(pith__ort_check(p->ort,
                                 p->ort->CreateTensorWithDataAsOrtValue(
                                     p->ort->host, bytes ? t->data : nothing, bytes, t->dims,
                                     (size_t)t->rank, t->dtype, &r->inputs[r->given]),
                                 p->inputs[i], err));
        r->names[r->given++] = p->inputs[i];
    }
    return PITH_OK;
}

static pith_status ort_read_shape(pith_tensor *t, const pith__ort *ort, const ort_shape *shape,
                                  const char *name, pith_error *err) {
    int type;
    size_t rank;
    PITH_TRY(pith__ort_check(ort, ort->GetTensorElementType(shape, &type), name, err));
    PITH_TRY(pith__ort_check(ort, ort->GetDimensionsCount(shape, &rank), name, err));
    if (rank > PITH_MAX_RANK || type <= PITH_UNDEFINED || type >= PITH_DTYPE_COUNT ||
        type == PITH_STRING)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "output '%s': its type or rank cannot be taken from ONNX Runtime; use "
                          "the builtin runtime",
                          name);
    *t = (pith_tensor){ .dtype = type, .rank = (int32_t)rank };
    PITH_TRY(pith__ort_check(ort, ort->GetDimensions(shape, t->dims, rank), name, err));
    if (!pith__dtype_bytes(type, pith__dims_count(t->dims, t->rank), &t->bytes))
        return pith__fail(err, PITH_ERR_RUN, "output '%s': its shape has too many elements", name);
    return PITH_OK;
}

static pith_status ort_take_output(pith_tensor *t, ort_runner *r, size_t i, pith_error *err) {
    const ort_program *p = r->program;
    const pith__ort *ort = p->ort;
    const char *name = p->outputs[i];
    int is_tensor = 0;
    ort_shape *shape;
    if (r->outputs[i])
        PITH_TRY(pith__ort_check(ort, ort->IsTensor(r->outputs[i], &is_tensor), name, err));
    if (!is_tensor)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "output '%s' is not a tensor, which ONNX Runtime's results must be here; "
                          "use the builtin "
                          "runtime",
                          name);
    PITH_TRY(pith__ort_check(ort, ort->GetTensorTypeAndShape(r->outputs[i], &shape), name, err));
    pith_status status = ort_read_shape(t, ort, shape, name, err);
    ort->ReleaseTensorTypeAndShapeInfo(shape);
    PITH_TRY(status);
    r->bytes += t->bytes;
    return pith__ort_check(ort, ort->GetTensorMutableData(r->outputs[i], &t->data), name, err);
}

typedef struct ort_call {
    ort_runner *runner;
    ort_session *session;
} ort_call;

static ort_status *ort_call_run(void *context) {
    const ort_call *c = context;
    ort_runner *r = c->runner;
    const ort_program *p = r->program;
    const size_t count = p->source.graph->output_count;
    const char **outputs = r->names + p->source.graph->input_count;
    ort_value **values = r->values;
    size_t asked = 0;
    for (size_t i = 0; i < count; i++) {
        if (r->wanted && !r->wanted[i]) continue;
        outputs[asked] = p->outputs[i];
        values[asked++] = NULL;
    }
    ort_status *status =
        p->ort->Run(c->session, r->run, r->names, (const ort_value *const *)r->inputs, r->given,
                    outputs, asked, values);
    for (size_t i = count; i-- > 0;)
        if (!r->wanted || r->wanted[i]) r->outputs[i] = values[--asked];
    return status;
}

static pith_status ort_run_session(ort_runner *r, ort_session *session, pith__stop *stop,
                                   pith_error *err) {
    const pith__ort *ort = r->program->ort;
    ort_call call = { r, session };
    const pith__ort_watched watched = { ort, r->run, ort_call_run, &call };
    ort_status *failure = NULL;
    pith_error ignored;
    pith_status stopped = pith__ort_watch(&failure, &watched, stop, err);
    pith_status status = pith__ort_check(ort, failure, "run", stopped ? &ignored : err);
    return stopped ? stopped : status;
}

static pith_status ort_run(void *state, pith_tensor *outputs, const pith_tensor *inputs,
                           int threads, pith__stop *stop, pith_error *err) {
    ort_runner *r = state;
    ort_session *session;
    PITH_TRY(pith__stop_check(stop, err));
    PITH_TRY(ort_find_session(&session, r->program, threads, err));
    ort_forget(r);
    pith_status status = ort_give_inputs(r, inputs, err);
    if (!status) status = ort_run_session(r, session, stop, err);
    for (size_t i = 0; i < r->program->source.graph->output_count && !status; i++) {
        outputs[i] = (pith_tensor){ .dtype = PITH_UNDEFINED };
        if (!r->wanted || r->wanted[i]) status = ort_take_output(&outputs[i], r, i, err);
    }
    if (status)
        ort_forget(r);
    else
        pith__count(r->program->source.counters, PITH_COUNT_device_successes, 1);
    return status;
}

static void ort_set_wanted(void *state, const bool *wanted) {
    ((ort_runner *)state)->wanted = wanted;
}

static size_t ort_bytes(const void *state) { return ((const ort_runner *)state)->bytes; }

const pith__runtime pith__runtime_ort = {
    .name = "ort",
    .as_written = true,
    .ready = ort_ready,
    .open = ort_open_program,
    .report = ort_report,
    .close = ort_close_program,
    .create = ort_create_runner,
    .destroy = ort_destroy_runner,
    .run = ort_run,
    .bytes = ort_bytes,
    .set_wanted = ort_set_wanted,
};

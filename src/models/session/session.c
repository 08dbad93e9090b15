/* session.c - runs a model: inputs by name are checked and put in the graph's order, and a runner
 * of the model's runtime runs.
 *
 * A session runs the model's program. If the inputs contradict what that program assumes
 * (second_plan.h), the session makes a program of its own and keeps it. */
#include "models/session/session.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/os/clock.h"
#include "base/os/cpu.h"
#include "base/os/threads.h"
#include "base/text_out.h"
#include "engine/exec/device_runs.h"
#include "engine/exec/output_subsets.h"
#include "engine/exec/output_target.h"
#include "engine/exec/profile.h"
#include "models/open/reader.h"
#include "models/open/second_plan.h"

struct pith_session {
    const pith_model *model;
    bool holds; /* a reference to the model */
    pith__runner runner;
    pith__second_plan
        *second_plan; /* for inputs with a default that are fed another value; made when first
                       wanted */
    pith__named_sizes sizes;
    pith_tensor *inputs;       /* in the graph's order */
    pith_tensor *bound_inputs; /* the same; dtype 0: not bound */
    pith_tensor *targets;      /* of outputs, in the graph's order; data NULL: not bound */
    size_t target_count;       /* that are bound */
    bool *warned;              /* by input: that its declared shape is wrong */
    bool *open;                /* by input: it has been fed another value than its default */
    pith_tensor *results;      /* of a run of some outputs, in the graph's order */
    size_t *order;             /* of the outputs that are asked for: their places in the graph */
    bool *wanted;              /* by output */
    bool apart;                /* axes that share a symbol have been given different sizes */
};

/* What runs the model's program. */
static pith_status make_runner(pith_session *s, pith__stop *stop, pith_error *err) {
    const pith__program *program;
    const pith__executor_options options = pith__model_executor_options(s->model);
    PITH_TRY(pith__model_program(&program, s->model, stop, err));
    return pith__runner_create(&s->runner, program, &options, err);
}

/* One block holds the session and its arrays, whose sizes are fixed by the graph. A model that
 * embeds texts has no program as long as nobody runs it as tensors, and making it takes long: that
 * is left to the first run, which can be ended. */
pith_status pith__model_create_session(pith_session **session, const pith_model *model,
                                       pith_error *err) {
    size_t count = model->graph->input_count; /* the graph holds as many pointers already */
    size_t outputs = model->graph->output_count;
    size_t symbols = pith__dims_symbol_count(model->graph->dims);
    size_t bytes = sizeof(pith_session) + 2 * (count + outputs) * sizeof(pith_tensor) +
                   (2 * count + outputs) * sizeof(bool) + symbols * sizeof(pith__named_size) +
                   outputs * sizeof(size_t);
    pith_session *s = pith__memory_alloc(&model->account.allocator, bytes, 64);
    if (!s) return pith__account_explain(&model->account, pith__fail_memory(err, bytes), err);
    *s = (pith_session){ .model = model, .inputs = (pith_tensor *)(s + 1) };
    s->bound_inputs = s->inputs + count;
    s->targets = s->bound_inputs + count;
    s->results = s->targets + outputs;
    s->sizes.items = (pith__named_size *)(s->results + outputs);
    s->order = (size_t *)(s->sizes.items + symbols);
    s->warned = (bool *)(s->order + outputs);
    s->open = s->warned + count;
    s->wanted = s->open + count;
    memset(s->inputs, 0, bytes - sizeof *s);
    const pith_status status = model->text.encoder ? PITH_OK : make_runner(s, NULL, err);
    if (status)
        pith__memory_free(&model->account.allocator, s);
    else
        *session = s;
    return pith__account_explain(&model->account, status, err);
}

pith_status pith__model_open_session(pith_session **session, const pith_model *model,
                                     pith_error *err) {
    PITH_TRY(pith__model_create_session(session, model, err));
    (*session)->holds = true;
    pith__model_keep(model);
    return PITH_OK;
}

void pith__model_destroy_session(pith_session *session) {
    if (!session) return;
    const pith_model *model = session->model;
    const bool held = session->holds;
    if (session->second_plan)
        session->model->reader->stages->second_plan->destroy(session->second_plan);
    pith__runner_destroy(&session->runner);
    pith__memory_free(&model->account.allocator, session);
    if (held) pith__model_release(model);
}

/* "name float32 [batch, 3], …" of ports, into buffer. */
static const char *list_ports(char *buffer, size_t size, const pith_port *ports, size_t count,
                              const pith_tensor *given) {
    pith__text_out out = pith__text_begin(buffer, size);
    for (size_t i = 0; i < count; i++) {
        if (given && (given[i].dtype != PITH_UNDEFINED || ports[i].optional)) continue;
        pith__text_put(&out, "%s'%s' %s %s", out.used ? ", " : "", ports[i].name,
                       pith__dtype_name(ports[i].dtype), ports[i].shape);
    }
    return buffer;
}

/* The index of an input. Names mostly come in the model's order: it is looked for from *p on. */
static pith_status find_input(size_t *p, const pith_model *m, const char *name, pith_error *err) {
    size_t wanted = m->graph->input_count, tried = 0;
    char list[700];
    for (; tried < wanted && strcmp(m->inputs[*p % wanted].name, name); tried++) ++*p;
    *p = wanted ? *p % wanted : 0;
    if (tried < wanted) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "the model has no input '%s'; it has %s", name,
                      list_ports(list, sizeof list, m->inputs, wanted, NULL));
}

/* Where the memory of a device is allowed at all. Which devices there are, the plan knows. */
static pith_status check_device(const pith_model *m, const pith_port *port, const pith_tensor *t,
                                pith_error *err) {
    if (!t->device && !t->stream) return PITH_OK;
    if (t->device && m->runtime->devices && !port->optional && pith__run_devices_used)
        return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "'%s' has device %d; here it must be in host memory: device 0, no stream",
                      port->name, t->device);
}

/* The caller's memory must hold what the shape says before anything reads it. A shape that differs
 * from the declared one is a warning, or an error with strict shapes. */
static pith_status check_input(pith_session *s, size_t p, const pith_tensor *t, pith_error *err) {
    const pith_port *port = &s->model->inputs[p];
    char list[700];
    size_t bytes;
    PITH_TRY(check_device(s->model, port, t, err));
    if (port->dtype != PITH_UNDEFINED && port->dtype != PITH_NONE && t->dtype != port->dtype)
        return pith__fail(err, PITH_ERR_ARGUMENT, "input '%s' is %s; the model needs %s %s",
                          port->name, pith__dtype_name(t->dtype), pith__dtype_name(port->dtype),
                          port->shape);
    if (t->dtype != PITH_SEQUENCE && t->dtype != PITH_NONE) {
        if (t->rank < 0 || t->rank > PITH_MAX_RANK)
            return pith__fail(err, PITH_ERR_ARGUMENT, "input '%s' has rank %d", port->name,
                              t->rank);
        if (!pith__dtype_bytes(t->dtype, pith__dims_count(t->dims, t->rank), &bytes) ||
            t->bytes < bytes || (bytes && !t->data))
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "input '%s': %zu bytes of data do not hold the shape %s", port->name,
                              t->bytes, pith__dims_text(t->dims, t->rank, list, sizeof list));
    }
    return pith__model_check_input(s->model, p, t, &s->warned[p], err);
}

/* Inputs that were given go before those that were bound, which go before defaults. */
static pith_status take_inputs(pith_session *s, const char *const *names, const pith_tensor *inputs,
                               size_t count, pith_error *err) {
    const pith_model *m = s->model;
    size_t wanted = m->graph->input_count;
    char list[700];
    size_t p = 0;
    memset(s->inputs, 0, wanted * sizeof *s->inputs);
    for (size_t i = 0; i < count; i++) {
        PITH_TRY(find_input(&p, m, names[i], err));
        if (s->inputs[p].dtype != PITH_UNDEFINED)
            return pith__fail(err, PITH_ERR_ARGUMENT, "input '%s' is given twice", names[i]);
        PITH_TRY(check_input(s, p, &inputs[i], err));
        s->inputs[p] = inputs[i];
    }
    for (p = 0; p < wanted; p++)
        if (s->inputs[p].dtype == PITH_UNDEFINED) s->inputs[p] = s->bound_inputs[p];
    for (p = 0; p < wanted; p++)
        if (s->inputs[p].dtype == PITH_UNDEFINED && !m->inputs[p].optional)
            return pith__fail(err, PITH_ERR_ARGUMENT, "missing inputs: %s",
                              list_ports(list, sizeof list, m->inputs, wanted, s->inputs));
    return PITH_OK;
}

/* Whether the tensor differs from the default of this input. */
static bool session_feeds(const pith_model *m, size_t input, const pith_tensor *t) {
    const pith_tensor *own = m->graph->inputs[input]->type.data;
    bool same = t->dtype == own->dtype && t->rank == own->rank;
    for (int d = 0; same && d < own->rank; d++) same = t->dims[d] == own->dims[d];
    return !same || t->dtype == PITH_STRING ||
           (own->bytes && memcmp(t->data, own->data, own->bytes));
}

/* Notes inputs that are fed another value than their default, and axes of one name that differ:
 * whether the model's plan does not do for this run. */
static bool note_needs(pith_session *s, bool *apart) {
    const pith_model *m = s->model;
    bool fed = false;
    char text[300];
    for (size_t p = 0; p < m->graph->input_count; p++) {
        if (s->inputs[p].dtype == PITH_UNDEFINED || !m->graph->inputs[p]->type.data) continue;
        if (session_feeds(m, p, &s->inputs[p]))
            s->open[p] = fed = true;
        else
            s->inputs[p].dtype = PITH_UNDEFINED; /* what it is anyway */
    }
    const pith__second_plan_functions *f = m->reader->stages->second_plan;
    *apart = f && f->apart(m, s->inputs, &s->sizes);
    if (*apart && !s->apart)
        pith__log_write(m->options.call.log, PITH_LOG_WARNING,
                        "%s; the name is ignored, and the model is planned again",
                        f->sizes_text(&s->sizes, m, text, sizeof text));
    s->apart |= *apart;
    return fed || *apart;
}

static pith_status find_output(size_t *index, const void *model, const char *name,
                               pith_error *err) {
    const pith_model *m = model;
    size_t count = m->graph->output_count, i = 0;
    char list[700];
    while (i < count && strcmp(m->outputs[i].name, name)) i++;
    *index = i;
    if (i < count) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "the model has no output '%s'; it has %s", name,
                      list_ports(list, sizeof list, m->outputs, count, NULL));
}

/* Fills s->wanted and s->order. */
static pith_status take_wanted(pith_session *s, const pith_run_options *o, pith_error *err) {
    const pith__subsets_part *part = pith__part_find("subsets");
    const pith__asked_outputs asked = { o->output_names, o->output_count, find_output, s->model };
    memset(s->wanted, 0, s->model->graph->output_count * sizeof *s->wanted);
    if (part) return part->read(s->wanted, s->order, &asked, err);
    PITH_TRY(pith__piece_check_for("parts", PITH_STR("subsets"), "output_names", err));
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "this build does not run some of the outputs");
}

/* On the model's plan, or on the session's own where that one takes something for granted that the
 * inputs contradict. */
static pith_status run_taken(pith_session *s, pith_tensor *outputs, const bool *wanted, int threads,
                             pith__stop *stop, pith__lane *lane, pith_error *err) {
    const pith_model *m = s->model;
    bool apart = false, own = !m->runtime->as_written && note_needs(s, &apart);
    const pith__second_plan_functions *f = m->reader->stages->second_plan;
    char text[300];
    if (own && (!f || !m->reader->again))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "a compiled model has the defaults of its inputs built in; feed other "
                          "values to the ONNX file "
                          "it was compiled from");
    if (own && (!s->second_plan || !f->has(s->second_plan, s->open, s->apart))) {
        pith__executor_options options = pith__model_executor_options(m);
        f->destroy(s->second_plan);
        s->second_plan = NULL;
        PITH_TRY(f->create(&s->second_plan, m, s->open, s->apart, &options, stop, err));
    }
    if (!own && !s->runner.runtime) PITH_TRY(make_runner(s, stop, err));
    pith__runner runner = own ? f->ready(s->second_plan, s->inputs) : s->runner;
    pith__runner_trace(&runner, pith__lane_trace(lane), lane);
    const pith_tensor *targets = s->target_count ? s->targets : NULL;
    pith_status status = pith__runner_run_into(&runner, outputs, targets, wanted, m->graph,
                                               s->inputs, threads, stop, err);
    bool may_be_sizes = apart && (status == PITH_ERR_ARGUMENT || status == PITH_ERR_RUN);
    if (!may_be_sizes) return status;
    return pith__fail_at(err, status, "%s: ", f->sizes_text(&s->sizes, m, text, sizeof text));
}

/* Checked completely before the first step runs. */
pith_status pith__model_run_session(pith_session *session, pith_tensor *outputs,
                                    const char *const *names, const pith_tensor *inputs,
                                    size_t input_count, const pith_run_options *options,
                                    pith_error *err) {
    pith_run_options o = PITH_RUN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    PITH_TRY(pith__threads_check(o.call.threads, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    const bool some = o.output_names || o.output_count;
    if (some) PITH_TRY(take_wanted(session, &o, err));
    const bool all = !some || o.output_count == session->model->graph->output_count;
    PITH_TRY(take_inputs(session, names, inputs, input_count, err));
    int threads = pith__threads_count(o.call.threads);
    pith__lane *lane = pith__profile_lane(o.call.profile);
    uint64_t begin = pith__lane_now(lane), began = pith__clock_ns();
    pith_status status = run_taken(session, some ? session->results : outputs,
                                   all ? NULL : session->wanted, threads, stop, lane, err);
    if (some && !status)
        for (size_t i = 0; i < o.output_count; i++)
            outputs[i] = session->results[session->order[i]];
    pith__count((pith__counters *)&session->model->account.counters, PITH_COUNT_run_ns,
                pith__clock_ns() - began);
    pith__lane_phase(lane, "run", begin, -1);
    return pith__account_explain(&session->model->account, status, err);
}

/* ---- bound tensors ---- */

pith_status pith__model_bind_session_input(pith_session *s, const char *name,
                                           const pith_tensor *tensor, pith_error *err) {
    size_t p = 0;
    PITH_TRY(find_input(&p, s->model, name, err));
    if (tensor) PITH_TRY(check_input(s, p, tensor, err));
    s->bound_inputs[p] = tensor ? *tensor : (pith_tensor){ .dtype = PITH_UNDEFINED };
    return PITH_OK;
}

/* Memory that is bound to an output is written while the model runs, so it must not overlap that of
 * another one. A rank of -1 means that the caller takes any shape that fits. */
static pith_status check_target(const pith_session *s, size_t output, const pith_tensor *t,
                                pith_error *err) {
    const pith_port *port = &s->model->outputs[output];
    char text[256];
    size_t bytes = 0;
    PITH_TRY(check_device(s->model, port, t, err));
    if (t->dtype <= PITH_UNDEFINED || t->dtype >= PITH_DTYPE_COUNT || t->dtype == PITH_STRING)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "output '%s': memory can be bound for tensors of numbers, not for %s",
                          port->name, pith__dtype_name(t->dtype));
    if (port->dtype != PITH_UNDEFINED && t->dtype != port->dtype)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "output '%s' is %s; the memory bound to it is for %s", port->name,
                          pith__dtype_name(port->dtype), pith__dtype_name(t->dtype));
    if (t->rank < -1 || t->rank > PITH_MAX_RANK)
        return pith__fail(err, PITH_ERR_ARGUMENT, "output '%s': the tensor bound to it has rank %d",
                          port->name, t->rank);
    if (!t->data && t->device && !t->bytes) return PITH_OK; /* the session's own */
    if (!t->data)
        return pith__fail(err, PITH_ERR_ARGUMENT, "output '%s': there is no memory to bind",
                          port->name);
    if (t->rank >= 0 && (!pith__dtype_bytes(t->dtype, pith__dims_count(t->dims, t->rank), &bytes) ||
                         bytes > t->bytes))
        return pith__fail(err, PITH_ERR_ARGUMENT, "output '%s': %zu bytes do not hold the shape %s",
                          port->name, t->bytes,
                          pith__dims_text(t->dims, t->rank, text, sizeof text));
    for (size_t i = 0; i < s->model->graph->output_count; i++)
        if (i != output && s->targets[i].data && pith__target_touches(&s->targets[i], t))
            return pith__fail(err, PITH_ERR_ARGUMENT, "output '%s' shares memory with output '%s'",
                              port->name, s->model->outputs[i].name);
    return PITH_OK;
}

/* An output is bound until it is unbound, over any number of runs. */
pith_status pith__model_bind_session_output(pith_session *s, const char *name,
                                            const pith_tensor *tensor, pith_error *err) {
    size_t i;
    PITH_TRY(find_output(&i, s->model, name, err));
    if (tensor) PITH_TRY(check_target(s, i, tensor, err));
    const pith_tensor *old = &s->targets[i];
    s->target_count = s->target_count - (old->data || old->device) + (tensor != NULL);
    s->targets[i] = tensor ? *tensor : (pith_tensor){ .data = NULL };
    return PITH_OK;
}

void pith__model_unbind_session(pith_session *s) {
    memset(s->bound_inputs, 0, s->model->graph->input_count * sizeof *s->bound_inputs);
    memset(s->targets, 0, s->model->graph->output_count * sizeof *s->targets);
    s->target_count = 0;
}

/* describe.c - what an open model is: as JSON, as a list of nodes, as DOT.
 *
 * The JSON is written straight to the caller's sink, and its keys are a contract (docs/cli.md).
 * "steps" are those of the plan that does the model's main job: the ragged plan of a text encoder,
 * else the graph's own. */
#include "models/describe/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/formats/json_write.h"
#include "base/left_out_pieces.h"
#include "base/os/cpu.h"
#include "images/processor.h"
#include "models/encode/text_inputs.h"
#include "models/open/reader.h"
#include "models/pictures/picture_view.h"
#include "models/texts/embed_texts.h"

/* ---- JSON ---- */

static pith_str domain_name(pith_str domain) { return domain.size ? domain : PITH_STR("ai.onnx"); }

/* As pith_model_input tells them. */
static void put_ports(pith__json_out *w, const char *name, const pith_port *ports, size_t count) {
    pith__json_key(w, name);
    pith__json_open(w, "[");
    for (size_t i = 0; i < count; i++) {
        pith__json_separate(w);
        pith__json_open(w, "{");
        pith__json_key_string(w, "name", pith__str_of(ports[i].name));
        pith__json_key_string(w, "dtype", pith__str_of(pith__dtype_name(ports[i].dtype)));
        pith__json_key_string(w, "shape", pith__str_of(ports[i].shape));
        pith__json_key_bool(w, "optional", ports[i].optional);
        if (ports[i].item_dtype)
            pith__json_key_string(w, "items", pith__str_of(pith__dtype_name(ports[i].item_dtype)));
        pith__json_close(w, "}");
    }
    pith__json_close(w, "]");
}

/* The passes, ragged rules and instruction sets that a selective build was made without. */
static void put_left_out(pith__json_out *w) {
    pith__json_key(w, "left_out");
    pith__json_open(w, "[");
    for (const char *at = pith__dropped_speed; *at; at += strlen(at) + 1) {
        const pith_str kind = { at, strcspn(at, " ") };
        pith__json_separate(w);
        pith__json_open(w, "{");
        pith__json_key_string(w, "kind", kind);
        pith__json_key_string(w, "name", pith__str_of(at + kind.size + (at[kind.size] != 0)));
        pith__json_close(w, "}");
    }
    pith__json_close(w, "]");
}

/* Lines about passes that did something, or about what kept them from it. */
static void put_report(pith__json_out *w, const char *name, const pith__report *report, bool done) {
    pith__json_key(w, name);
    pith__json_open(w, "[");
    for (size_t i = 0; i < report->count; i++) {
        if (report->lines[i].done != done) continue;
        pith__json_separate(w);
        pith__json_open(w, "{");
        pith__json_key_string(w, "what", pith__str_of(report->lines[i].what));
        pith__json_key_string(w, "text", report->lines[i].text);
        pith__json_close(w, "}");
    }
    pith__json_close(w, "]");
}

static void put_devices(pith__json_out *w, const pith__devices *devices) {
    pith__json_key(w, "devices");
    pith__json_open(w, "[");
    for (size_t i = 0; i < devices->count; i++) {
        const pith__device *d = &devices->items[i];
        const pith__accuracy accuracy = pith__device_accuracy(d);
        pith__json_separate(w);
        pith__json_open(w, "{");
        pith__json_key_string(w, "name", pith__str_of(d->choice->name));
        pith__json_key_int(w, "number", d->choice->number);
        pith__json_key_string(w, "precision", pith__str_of(accuracy.precision));
        pith__json_key_int(w, "memory_limit", (int64_t)d->choice->memory_limit);
        pith__json_close(w, "}");
    }
    pith__json_close(w, "]");
}

/* Operators, and the backends they run on; a copy has the backend whose memory it fills or reads.
 * Other runtimes than the builtin one have no plan: NULL, and no steps. */
static void put_steps(pith__json_out *w, const pith__plan *plan) {
    pith__json_key(w, "steps");
    pith__json_open(w, "[");
    if (plan)
        for (size_t i = 0; i < plan->step_count; i++) {
            pith__json_separate(w);
            pith__json_put_string(w, plan->steps[i].node->op_type);
        }
    pith__json_close(w, "]");
    pith__json_key(w, "step_backends");
    pith__json_open(w, "[");
    if (plan)
        for (size_t i = 0; i < plan->step_count; i++) {
            pith__json_separate(w);
            pith__json_put_string(w, pith__str_of(plan->steps[i].device->choice->name));
        }
    pith__json_close(w, "]");
    if (plan && pith__device_functions_used) put_devices(w, plan->devices);
}

/* Constants that some node reads, packed or not. Bytes are those of their type, also where the
 * packed form has others. */
static void put_parameters(pith__json_out *w, const pith__graph *graph) {
    int64_t count = 0, bytes = 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        const pith__value *v = graph->values[i];
        size_t own;
        bool constant =
            v && (v->kind == PITH_VALUE_PACKED || (v->kind == PITH_VALUE_CONST && v->type.data));
        if (!constant || !v->user_count) continue;
        count += pith__type_count(&v->type);
        if (pith__dtype_bytes(v->type.dtype, pith__type_count(&v->type), &own))
            bytes += (int64_t)own;
    }
    pith__json_key_int(w, "parameters", count);
    pith__json_key_int(w, "parameter_bytes", bytes);
}

/* What a call of pith_embed without options would do. */
static void put_embedding(pith__json_out *w, const pith_model *m) {
    static const char *const modes[PITH_POOL_MODES] = { "?",        "cls",           "max",
                                                        "mean",     "mean_sqrt_len", "weightedmean",
                                                        "lasttoken" };
    pith__json_key(w, "embedding");
    pith__json_open(w, "{");
    pith__json_key_bool(w, "possible", m->text.encoder != NULL);
    if (!m->text.encoder) pith__json_key_string(w, "reason", pith__str_of(m->no_text.message));
    if (m->text.encoder) {
        pith__json_key_int(w, "dim", (int64_t)pith__model_embed_dim(m, NULL));
        pith__json_key_int(w, "max_length", (int64_t)pith__model_embed_max_length(m, NULL));
        pith__json_key(w, "pooling");
        pith__json_open(w, "[");
        for (uint32_t left = m->modules.pooling; left; left >>= PITH_POOL_BITS)
            pith__json_separate(w),
                pith__json_put_string(w, pith__str_of(modes[left & ((1u << PITH_POOL_BITS) - 1)]));
        pith__json_close(w, "]");
        pith__json_key_bool(w, "normalize", m->modules.normalize);
        pith__json_key_string(w, "default_prompt", m->modules.default_prompt);
        pith__json_key_int(w, "truncate_dim", m->modules.truncate_dim);
        pith__json_key_string(w, "similarity", m->modules.similarity);
        pith__json_key_string(w, "route", m->modules.route);
        pith__json_key(w, "prompts");
        pith__json_open(w, "{");
        for (size_t i = 0; i < m->modules.prompt_count; i++) {
            pith__json_separate(w);
            pith__json_put_string(w, m->modules.prompts[i].name);
            pith__json_put(w, ": ");
            pith__json_put_string(w, m->modules.prompts[i].text);
        }
        pith__json_close(w, "}");
    }
    pith__json_close(w, "}");
}

/* What the small files of the directory decided, each with the file that says so. */
static void put_decisions(pith__json_out *w, const pith__modules *m) {
    pith__json_key(w, "decisions");
    pith__json_open(w, "[");
    for (size_t i = 0; i < m->decision_count; i++) {
        pith__json_separate(w);
        pith__json_open(w, "{");
        pith__json_key_string(w, "what", pith__str_of(m->decisions[i].what));
        pith__json_key_string(w, "value", m->decisions[i].value);
        pith__json_key_string(w, "file", m->decisions[i].file);
        pith__json_close(w, "}");
    }
    pith__json_close(w, "]");
}

/* ---- the plan of memory ---- */

/* A text of so many tokens. */
static pith_status text_inputs(pith_tensor *inputs, const pith__plan *plan, bool ragged,
                               int32_t tokens, pith__arena *arena, pith_error *err) {
    pith__text_inputs form;
    int32_t *zeros = pith__arena_array(arena, (size_t)tokens, sizeof *zeros);
    if (!zeros) return pith__fail_memory(err, (size_t)tokens * sizeof *zeros);
    const pith__row row = { zeros, zeros, tokens, 0, 0 }, *rows[] = { &row };
    PITH_TRY(pith__text_inputs_init(&form, plan->graph, ragged, 0, arena, err));
    return pith__text_inputs_fill(inputs, &form, rows, 1, arena, err);
}

/* Zeros of the declared shapes, 1 where they are free. */
static pith_status declared_inputs(pith_tensor *inputs, const pith_model *m, pith__arena *arena,
                                   pith_error *err) {
    for (size_t i = 0; i < m->graph->input_count; i++) {
        const pith_port *port = &m->inputs[i];
        pith_tensor *t = &inputs[i];
        *t = (pith_tensor){ .dtype = port->optional ? PITH_UNDEFINED : port->dtype,
                            .rank = port->rank };
        if (port->optional) continue;
        for (int d = 0; d < port->rank; d++) t->dims[d] = port->dims[d] < 0 ? 1 : port->dims[d];
        bool settled =
            port->rank >= 0 && port->dtype != PITH_STRING && port->dtype < PITH_DTYPE_COUNT &&
            pith__dtype_bytes(port->dtype, pith__dims_count(t->dims, t->rank), &t->bytes);
        if (!settled)
            return pith__fail(err, PITH_ERR_UNSUPPORTED, "input '%s' has no shape to plan with",
                              port->name);
        t->data = pith__arena_array(arena, t->bytes, 1);
        if (!t->data) return pith__fail_memory(err, t->bytes);
    }
    return PITH_OK;
}

/* tokens 0: the inputs as declared. Left out where such inputs do not go with the model; only want
 * of memory fails. */
static pith_status put_activations(pith__json_out *out, const pith_model *m, const pith__plan *plan,
                                   int32_t tokens, pith_error *err) {
    pith__executor_options options = { .allocator = m->options.call.allocator };
    pith__executor *executor = NULL;
    pith__arena arena;
    pith_error fault = PITH_ERROR_INIT;
    size_t bytes;
    pith__arena_init(&arena, m->options.call.allocator);
    pith_tensor *inputs = pith__arena_array(&arena, plan->graph->input_count, sizeof *inputs);
    pith_status status = inputs ? PITH_OK : pith__fail_memory(&fault, sizeof *inputs);
    if (!status)
        status = tokens ? text_inputs(inputs, plan, m->text.ragged != NULL, tokens, &arena, &fault)
                        : declared_inputs(inputs, m, &arena, &fault);
    if (!status) status = pith__executor_create(&executor, plan, &options, &fault);
    if (!status) status = pith__executor_plan_bytes(executor, &bytes, inputs, 1, &fault);
    if (!status) {
        pith__json_separate(out);
        pith__json_open(out, "{");
        pith__json_key_int(out, "tokens", tokens);
        pith__json_key_int(out, "bytes", (int64_t)bytes);
        pith__json_close(out, "}");
    }
    pith__executor_destroy(executor);
    pith__arena_free(&arena);
    if (status == PITH_ERR_MEMORY && err) *err = fault;
    return status == PITH_ERR_MEMORY ? status : PITH_OK;
}

static pith_status put_memory(pith__json_out *out, const pith_model *m, const pith__plan *plan,
                              pith_error *err) {
    static const int32_t lengths[] = { 16, 128, 512 };
    pith__json_key(out, "memory");
    pith__json_open(out, "{");
    pith__json_key_int(out, "packed_bytes", plan ? (int64_t)plan->packed_bytes : 0);
    pith__json_key_int(out, "model_bytes",
                       (int64_t)(m->arena.total + m->text.arena.total + m->program_arena.total));
    pith__json_key(out, "activations");
    pith__json_open(out, "[");
    if (plan && m->text.encoder)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            size_t most = pith__model_embed_max_length(m, NULL);
            if (m->text.ragged || !most || (size_t)lengths[i] <= most)
                PITH_TRY(put_activations(out, m, plan, lengths[i], err));
        }
    if (plan && !m->text.encoder) {
        const pith__plan *own; /* of the graph as it stands, whose inputs are the declared ones */
        PITH_TRY(pith__model_plan(&own, m, NULL, err));
        PITH_TRY(put_activations(out, m, own, 0, err));
    }
    pith__json_close(out, "]");
    pith__json_close(out, "}");
    return PITH_OK;
}

/* ---- the model ---- */

/* The file's own parts, of a compiled model. */
static void put_compiled(pith__json_out *w, const pith__compiled *c) {
    pith__json_key(w, "compiled");
    if (!c->writer) {
        pith__json_put(w, "null");
        return;
    }
    pith__json_open(w, "{");
    pith__json_key_string(w, "writer", pith__str_of(c->writer));
    pith__json_key_int(w, "bytes", (int64_t)c->size);
    pith__json_key(w, "sections");
    pith__json_open(w, "[");
    for (int kind = 1; kind < PITH_SECTION_COUNT; kind++) {
        if (!c->sections[kind].data) continue;
        pith__json_separate(w);
        pith__json_open(w, "{");
        pith__json_key_string(w, "name", pith__str_of(pith__section_name((pith__section)kind)));
        pith__json_key_int(w, "bytes", (int64_t)c->sections[kind].size);
        pith__json_close(w, "}");
    }
    pith__json_close(w, "]");
    pith__json_close(w, "}");
}

/* How pictures become vectors; nothing for a model without pixels. */
static pith_status put_pictures(pith__json_out *w, const pith_model *m, pith_error *err) {
    const pith__picture_view *v;
    bool pixels = false;
    for (size_t i = 0; i < m->graph->input_count; i++)
        pixels = pixels || pith__model_is_pixels(m->graph->inputs[i]);
    if (!pixels) return PITH_OK;
    pith_error why = PITH_ERROR_INIT;
    pith_status status = pith__picture_view_get(&v, m, false, NULL, &why);
    if (status == PITH_ERR_MEMORY) return pith__fail(err, status, "%s", why.message);
    pith__json_key(w, "pictures");
    pith__json_open(w, "{");
    pith__json_key_bool(w, "embeds", !status);
    if (status) {
        pith__json_key_string(w, "reason", pith__str_of(why.message));
    } else {
        pith__json_key_int(w, "dim", v->facts.width);
        pith__json_key_int(w, "channels", v->dims[0]);
        pith__json_key_int(w, "height", v->dims[1]);
        pith__json_key_int(w, "width", v->dims[2]);
        pith__json_key_string(w, "processor",
                              v->processor ? pith__str_of(v->processor->kind->name) : PITH_STR(""));
        if (!v->processor)
            pith__json_key_string(w, "reason", pith__str_of(v->no_processor.message));
    }
    pith__json_close(w, "}");
    return PITH_OK;
}

/* A compiled file keeps only whether it was made from ONNX. */
static const char *describe_source(const pith_model *m) {
    if (!m->compiled.writer) return m->reader->name;
    return m->from_safetensors ? "safetensors" : "onnx";
}

/* plan: NULL if another runtime than the builtin one runs the model. */
static pith_status put_model(pith__json_out *w, const pith_model *m, const pith__plan *plan,
                             pith_error *err) {
    const pith__graph *g = m->graph;
    pith__json_open(w, "{");
    pith__json_key_string(w, "path", m->path.data ? m->path : PITH_STR(""));
    pith__json_key_string(w, "source", pith__str_of(describe_source(m)));
    pith__json_key_string(w, "runtime", pith__str_of(m->runtime->name));
    pith__json_key_string(w, "runtime_requested", pith__str_of(m->chosen_runtime.requested));
    pith__json_key_string(w, "runtime_reason", pith__str_of(m->chosen_runtime.reason));
    pith__json_key_string(w, "producer", g->producer.data ? g->producer : PITH_STR(""));
    pith__json_key_int(w, "ir_version", g->ir_version);
    pith__json_key(w, "opsets");
    pith__json_open(w, "{");
    if (!m->from_safetensors)
        for (size_t i = 0; i < g->opset_count; i++) {
            char version[32];
            pith__json_separate(w);
            pith__json_put_string(w, domain_name(g->opsets[i].domain));
            snprintf(version, sizeof version, ": %" PRId64, g->opsets[i].version);
            pith__json_put(w, version);
        }
    pith__json_close(w, "}");
    put_compiled(w, &m->compiled);
    put_ports(w, "inputs", m->inputs, g->input_count);
    put_ports(w, "outputs", m->outputs, g->output_count);
    pith__json_key(w, "ops");
    pith__json_open(w, "[");
    for (size_t i = 0; i < m->op_count; i++) {
        pith__json_separate(w);
        pith__json_open(w, "{");
        pith__json_key_string(w, "domain", domain_name(m->ops[i].domain));
        pith__json_key_string(w, "op", m->ops[i].op_type);
        pith__json_key_int(w, "count", (int64_t)m->ops[i].count);
        pith__json_close(w, "}");
    }
    pith__json_close(w, "]");
    put_parameters(w, g);
    pith__json_key_int(w, "level", pith__model_level(m));
    put_report(w, "fused", &m->report, true);
    put_report(w, "not_fused", &m->report, false);
    put_left_out(w);
    pith__json_key_bool(w, "ragged", m->text.ragged != NULL);
    pith_str reason = m->text.ragged ? PITH_STR("") : pith__str_of(m->no_text.message);
    if (m->text.ragged_reason.data) reason = m->text.ragged_reason;
    pith__json_key_string(w, "ragged_reason", reason);
    put_embedding(w, m);
    PITH_TRY(put_pictures(w, m, err));
    put_decisions(w, &m->modules);
    put_steps(w, plan);
    PITH_TRY(put_memory(w, m, plan, err));
    pith__json_close(w, "}");
    pith__json_put(w, "\n");
    return PITH_OK;
}

static void describe_put(void *out, const char *text, size_t size) {
    pith__out_put(out, text, size);
}

pith_status pith__model_describe(const pith_model *model, pith_description form,
                                 const pith_call *call, const pith_writer *writer,
                                 pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith__stop own;
    PITH_TAKE_OPTIONS(o, call, err);
    const pith__graph *graph = model->text.ragged ? model->text.ragged : model->graph;
    const pith__plan *plan = pith__program_plan(&model->text.program);
    pith__out out = { .writer = writer, .stop = pith__stop_begin(&own, &o) };
    pith__json_out w = { &out, false };
    PITH_TRY(pith__writer_check(writer, err));
    switch (form) {
    case PITH_DESCRIBE_NODES:
        pith__graph_dump(graph, describe_put, &out);
        return pith__out_status(&out, "the description", err);
    case PITH_DESCRIBE_DOT:
        pith__graph_dump_dot(graph, describe_put, &out);
        return pith__out_status(&out, "the description", err);
    case PITH_DESCRIBE_JSON: break;
    default:
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "form is %d, which is not a PITH_DESCRIBE_* value", (int)form);
    }
    if (!(model->options.flags & PITH_OPEN_DESCRIBE))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the model was opened without PITH_OPEN_DESCRIBE, which this form needs");
    if (!plan && model->runtime == &pith__runtime_builtin)
        PITH_TRY(pith__model_plan(&plan, model, out.stop, err));
    PITH_TRY(pith__account_explain(&model->account, put_model(&w, model, plan, err), err));
    return pith__out_status(&out, "the description", err);
}

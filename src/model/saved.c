/* saved.c - an open model to one file and back: puts the sections of compiled/compiled.h together and takes them
 * apart.
 *
 * The section "model" holds what is neither graph nor tokenizer: how the model was made, its ports, what is known
 * about embedding, and what pith_model_describe says about passes, which a compiled file does not run again. write_*
 * and read_* mirror each other. */
#include <limits.h>

#include "base/error.h"
#include "base/str.h"
#include "compiled/graph_bytes.h"
#include "model/saved.h"

/* ---- the section "model" ---- */

static void write_ports(pith_bytes_out *out, const pith_port *ports, size_t count) {
    pith_put_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        pith_put_str(out, pith_str_of(ports[i].name));
        pith_put_str(out, pith_str_of(ports[i].shape));
        pith_put_u32(out, (uint32_t)ports[i].dtype);
        pith_put_u32(out, (uint32_t)ports[i].item_dtype);
        pith_put_u32(out, (uint32_t)ports[i].optional);
        pith_put_u32(out, (uint32_t)(ports[i].rank + 1));
        for (int d = 0; d < ports[i].rank; d++) pith_put_i64(out, ports[i].dims[d]);
    }
}

static void write_floats(pith_bytes_out *out, const float *data, int64_t count) {
    pith_put_str(out, (pith_str){ data ? (const char *)data : "", data ? (size_t)count * sizeof *data : 0 });
}

static void write_steps(pith_bytes_out *out, const pith_modules *m) {
    pith_put_u32(out, (uint32_t)m->step_count);
    for (size_t i = 0; i < m->step_count; i++) {
        const pith_vector_step *s = &m->steps[i];
        pith_put_u32(out, s->kind);
        pith_put_u32(out, (uint32_t)s->in);
        pith_put_u32(out, (uint32_t)s->out);
        pith_put_u32(out, s->activation);
        pith_put_u32(out, s->residual);
        write_floats(out, s->weight, s->kind == PITH_STEP_DENSE ? s->in * s->out : s->in);
        write_floats(out, s->bias, s->out);
        write_floats(out, s->shortcut, s->in * s->out);
    }
}

static void write_modules(pith_bytes_out *out, const pith_modules *m) {
    pith_put_u32(out, m->pooling);
    pith_put_u32(out, m->normalize);
    pith_put_u32(out, m->include_prompt);
    pith_put_u32(out, (uint32_t)m->max_length);
    pith_put_u32(out, (uint32_t)m->positions);
    pith_put_u32(out, (uint32_t)m->pad_token_id);
    pith_put_u32(out, m->no_specials);
    pith_put_u32(out, (m->sparse.only ? 1u : 0) | (m->sparse.sum ? 2u : 0) | (m->sparse.twice ? 4u : 0));
    pith_put_u32(out, m->cuts_characters);
    pith_put_u32(out, (uint32_t)m->truncate_dim);
    pith_put_str(out, m->dropped);
    pith_put_u32(out, (uint32_t)m->dropped_id);
    pith_put_str(out, m->similarity);
    pith_put_str(out, m->route);
    pith_put_u32(out, (uint32_t)m->prompt_count);
    for (size_t i = 0; i < m->prompt_count; i++) {
        pith_put_str(out, m->prompts[i].name);
        pith_put_str(out, m->prompts[i].text);
    }
    pith_put_str(out, m->default_prompt);
    write_steps(out, m);
    pith_put_u32(out, (uint32_t)m->decision_count);
    for (size_t i = 0; i < m->decision_count; i++) {
        pith_put_str(out, pith_str_of(m->decisions[i].what));
        pith_put_str(out, m->decisions[i].value);
        pith_put_str(out, m->decisions[i].file);
    }
}

static void write_labels(pith_bytes_out *out, const pith_hf_labels *l) {
    pith_put_u32(out, (l->classifier ? 1u : 0u) | (l->causal ? 2u : 0u));
    pith_put_u32(out, (uint32_t)l->classify);
    pith_put_u32(out, (uint32_t)l->rerank);
    pith_put_u32(out, (uint32_t)l->count);
    for (size_t i = 0; i < l->count; i++) pith_put_str(out, l->names[i].data ? l->names[i] : PITH_STR(""));
}

static void write_late(pith_bytes_out *out, const pith_hf_late *l) {
    for (int role = 0; role < 2; role++) {
        pith_put_str(out, l->markers[role].data ? l->markers[role] : PITH_STR(""));
        pith_put_u32(out, (uint32_t)l->lengths[role]);
    }
    pith_put_u32(out, l->expands);
    pith_put_u32(out, l->attends);
    pith_put_u32(out, (uint32_t)l->skipped_count);
    for (size_t i = 0; i < l->skipped_count; i++) pith_put_str(out, l->skipped[i]);
}

static void write_report(pith_bytes_out *out, const pith_model *m) {
    pith_put_u32(out, (uint32_t)m->op_count);
    for (size_t i = 0; i < m->op_count; i++) {
        pith_put_str(out, m->ops[i].domain);
        pith_put_str(out, m->ops[i].op_type);
        pith_put_u32(out, (uint32_t)m->ops[i].count);
    }
    pith_put_u32(out, (uint32_t)m->report.count);
    for (size_t i = 0; i < m->report.count; i++) {
        pith_put_u32(out, m->report.lines[i].done);
        pith_put_str(out, pith_str_of(m->report.lines[i].what));
        pith_put_str(out, m->report.lines[i].text);
    }
}

static void write_model(pith_bytes_out *out, const pith_model *m) {
    write_modules(out, &m->modules);
    write_labels(out, &m->labels);
    write_late(out, &m->late);
    pith_put_u32(out, m->from_safetensors);
    pith_put_u32(out, (uint32_t)m->options.optimization);
    pith_put_u32(out, (uint32_t)(m->options.precision ? m->options.precision : PITH_PRECISION_F32));
    pith_put_u32(out, (uint32_t)(m->text.output_count ? m->text.outputs[0] + 1 : 0));
    pith_put_str(out, m->text.ragged_reason);
    pith_put_u32(out, m->text.encoder ? PITH_OK : m->no_text.code);
    pith_put_str(out, pith_str_of(m->text.encoder ? "" : m->no_text.message));
    write_ports(out, m->inputs, m->graph->input_count);
    write_ports(out, m->outputs, m->graph->output_count);
    write_report(out, m);
}

/* A string with a NUL after it. */
static pith_str save_read_text(pith_bytes_in *in, pith_arena *arena) {
    pith_str text = pith_arena_str(arena, pith_get_str(in));
    if (!text.data && !in->status) in->status = pith_fail_memory(in->err, text.size);
    return text;
}

static void *save_read_array(pith_bytes_in *in, pith_arena *arena, size_t *count, size_t item_bytes, size_t size) {
    *count = pith_get_count(in, item_bytes);
    void *array = pith_arena_array(arena, *count, size);
    if (!array && !in->status) in->status = pith_fail_memory(in->err, *count * size);
    if (!array) *count = 0;
    return array;
}

static pith_port *save_read_ports(pith_bytes_in *in, pith_arena *arena, size_t expected) {
    size_t count;
    pith_port *ports = save_read_array(in, arena, &count, 16, sizeof *ports);
    for (size_t i = 0; i < count && !in->status; i++) {
        ports[i].name = save_read_text(in, arena).data;
        ports[i].shape = save_read_text(in, arena).data;
        ports[i].dtype = (int32_t)pith_get_below(in, PITH_NONE + 1, "an unknown dtype");
        ports[i].item_dtype = (int32_t)pith_get_below(in, PITH_NONE + 1, "an unknown dtype");
        ports[i].optional = (int32_t)pith_get_below(in, 2, "a flag other than 0 and 1");
        ports[i].rank = (int32_t)pith_get_below(in, PITH_MAX_RANK + 2, "an impossible rank") - 1;
        for (int d = 0; d < ports[i].rank; d++) ports[i].dims[d] = pith_get_i64(in);
    }
    if (!in->status && count != expected) pith_bytes_fail(in, "another number of ports than the graph has");
    return ports;
}

/* NULL if the string is empty; else exactly count floats, which are copied for their alignment. */
static const float *save_read_floats(pith_bytes_in *in, pith_arena *arena, int64_t count) {
    pith_str bytes = pith_get_str(in);
    if (!bytes.size || in->status) return NULL;
    if (bytes.size != (size_t)count * sizeof(float)) {
        pith_bytes_fail(in, "a step whose weights have another size");
        return NULL;
    }
    float *data = pith_arena_alloc64(arena, bytes.size);
    if (!data) {
        in->status = pith_fail_memory(in->err, bytes.size);
        return NULL;
    }
    return memcpy(data, bytes.data, bytes.size);
}

static void save_read_steps(pith_modules *m, pith_bytes_in *in, pith_arena *arena) {
    m->steps = save_read_array(in, arena, &m->step_count, 32, sizeof *m->steps);
    for (size_t i = 0; i < m->step_count && !in->status; i++) {
        pith_vector_step *s = &m->steps[i];
        s->kind = (pith_step_kind)pith_get_below(in, PITH_STEP_NORMALIZE + 1, "an unknown step");
        s->in = pith_get_below(in, PITH_MODULE_WIDTH_MAX + 1, "an impossible width");
        s->out = pith_get_below(in, PITH_MODULE_WIDTH_MAX + 1, "an impossible width");
        s->activation = (pith_step_activation)pith_get_below(in, PITH_STEP_ACTIVATIONS, "an unknown activation");
        s->residual = pith_get_below(in, 2, "a flag other than 0 and 1");
        s->weight = save_read_floats(in, arena, s->kind == PITH_STEP_DENSE ? s->in * s->out : s->in);
        s->bias = save_read_floats(in, arena, s->out);
        s->shortcut = save_read_floats(in, arena, s->in * s->out);
        bool dense = s->kind == PITH_STEP_DENSE, norm = s->kind == PITH_STEP_LAYER_NORM;
        bool good = dense  ? s->weight && (!s->residual || s->shortcut || s->in == s->out)
                    : norm ? s->weight && s->bias && s->in == s->out
                           : !s->in && !s->out;
        if (!good && !in->status) pith_bytes_fail(in, "a step without its weights");
    }
}

static void save_read_decisions(pith_modules *m, pith_bytes_in *in, pith_arena *arena) {
    m->decisions = save_read_array(in, arena, &m->decision_count, 12, sizeof *m->decisions);
    m->decision_capacity = m->decision_count;
    for (size_t i = 0; i < m->decision_count && !in->status; i++) {
        m->decisions[i].what = save_read_text(in, arena).data;
        m->decisions[i].value = pith_get_str(in);
        m->decisions[i].file = pith_get_str(in);
    }
}

static void save_read_pooling(pith_modules *m, pith_bytes_in *in) {
    m->pooling = pith_get_u32(in);
    for (uint32_t left = m->pooling; left && !in->status; left >>= PITH_POOL_BITS) {
        const uint32_t mode = left & ((1u << PITH_POOL_BITS) - 1);
        if (!mode || mode >= PITH_POOL_MODES) pith_bytes_fail(in, "an unknown pooling");
    }
}

static void save_read_modules(pith_modules *m, pith_bytes_in *in, pith_arena *arena) {
    save_read_pooling(m, in);
    m->normalize = pith_get_below(in, 2, "a flag other than 0 and 1");
    m->include_prompt = pith_get_below(in, 2, "a flag other than 0 and 1");
    m->max_length = (int32_t)pith_get_below(in, INT32_MAX, "an impossible length");
    m->positions = (int32_t)pith_get_below(in, INT32_MAX, "an impossible length");
    m->pad_token_id = (int32_t)pith_get_u32(in);
    m->no_specials = pith_get_below(in, 2, "a flag other than 0 and 1");
    const uint32_t sparse = pith_get_below(in, 8, "unknown settings of sparse vectors");
    m->sparse = (pith_sparse_settings){ sparse & 1, sparse & 2, sparse & 4 };
    m->cuts_characters = pith_get_below(in, 2, "a flag other than 0 and 1");
    m->truncate_dim = (int32_t)pith_get_below(in, INT32_MAX, "an impossible length");
    m->dropped = pith_get_str(in);
    m->dropped_id = (int32_t)pith_get_u32(in);
    m->similarity = pith_get_str(in);
    m->route = pith_get_str(in);
    pith_prompt *prompts = save_read_array(in, arena, &m->prompt_count, 8, sizeof *prompts);
    for (size_t i = 0; i < m->prompt_count; i++) {
        prompts[i].name = pith_get_str(in);
        prompts[i].text = pith_get_str(in);
    }
    m->prompts = prompts;
    m->default_prompt = pith_get_str(in);
    save_read_steps(m, in, arena);
    save_read_decisions(m, in, arena);
}

static pith_activation save_read_activation(pith_bytes_in *in) {
    return (pith_activation)pith_get_below(in, PITH_ACTIVATION_SOFTMAX + 1, "an unknown activation");
}

static void save_read_labels(pith_hf_labels *l, pith_bytes_in *in, pith_arena *arena) {
    uint32_t kinds = pith_get_below(in, 4, "flags other than 0 to 3");
    l->classifier = kinds & 1;
    l->causal = kinds & 2;
    l->classify = save_read_activation(in);
    l->rerank = save_read_activation(in);
    pith_str *names = save_read_array(in, arena, &l->count, 4, sizeof *names);
    for (size_t i = 0; i < l->count; i++) names[i] = save_read_text(in, arena);
    l->names = names;
}

static void save_read_late(pith_hf_late *l, pith_bytes_in *in, pith_arena *arena) {
    for (int role = 0; role < 2; role++) {
        l->markers[role] = pith_get_str(in);
        l->lengths[role] = (int32_t)pith_get_below(in, INT32_MAX, "an impossible length");
    }
    l->expands = pith_get_below(in, 2, "a flag other than 0 and 1");
    l->attends = pith_get_below(in, 2, "a flag other than 0 and 1");
    pith_str *words = save_read_array(in, arena, &l->skipped_count, 4, sizeof *words);
    for (size_t i = 0; i < l->skipped_count; i++) words[i] = pith_get_str(in);
    l->skipped = words;
}

static void read_report(pith_bytes_in *in, pith_model *m) {
    m->ops = save_read_array(in, &m->arena, &m->op_count, 12, sizeof *m->ops);
    for (size_t i = 0; i < m->op_count; i++) {
        m->ops[i].domain = pith_get_str(in);
        m->ops[i].op_type = pith_get_str(in);
        m->ops[i].count = pith_get_u32(in);
    }
    m->report.lines = save_read_array(in, &m->arena, &m->report.count, 12, sizeof *m->report.lines);
    m->report.capacity = m->report.count;
    for (size_t i = 0; i < m->report.count && !in->status; i++) {
        m->report.lines[i].done = pith_get_below(in, 2, "a flag other than 0 and 1");
        m->report.lines[i].what = save_read_text(in, &m->arena).data;
        m->report.lines[i].text = pith_get_str(in);
    }
}

static pith_status save_read_model(pith_model *m, pith_str section, pith_error *err) {
    pith_bytes_in in = { .bytes = section, .what = "model", .err = err };
    save_read_modules(&m->modules, &in, &m->arena);
    save_read_labels(&m->labels, &in, &m->arena);
    save_read_late(&m->late, &in, &m->arena);
    m->from_safetensors = pith_get_below(&in, 2, "a flag other than 0 and 1");
    m->options.optimization = (int32_t)pith_get_below(&in, 4, "an unknown level");
    m->options.precision = (int32_t)pith_get_below(&in, PITH_PRECISION_BF16 + 1, "an unknown precision");
    int output = (int)pith_get_below(&in, (uint32_t)m->graph->output_count + 1, "an output that does not exist");
    m->text.output_count = output > 0;
    m->text.outputs[0] = output ? output - 1 : 0;
    pith_str reason = save_read_text(&in, &m->arena);
    if (reason.size) m->text.ragged_reason = reason;
    m->no_text.code = (pith_status)pith_get_below(&in, PITH_ERR_RUN + 1, "an unknown error");
    pith_str why = pith_get_str(&in);
    if (m->no_text.code && !in.status) pith_fail(&m->no_text, m->no_text.code, PITH_STR_FMT, PITH_STR_ARG(why));
    if (m->no_text.code ? !m->no_text.message[0] : why.size > 0)
        pith_bytes_fail(&in, "an error without a reason, or a reason without an error");
    m->inputs = save_read_ports(&in, &m->arena, m->graph->input_count);
    m->outputs = save_read_ports(&in, &m->arena, m->graph->output_count);
    read_report(&in, m);
    return pith_bytes_end(&in);
}

/* ---- saving ---- */

typedef struct saver {
    const pith_model *model;
    pith_arena arena;
    pith_weights_out weights;
    pith_section_out sections[PITH_SECTION_COUNT];
    size_t count;
    pith_error *err;
} saver;

static pith_status add_section(saver *s, pith_section kind, const void *data, size_t size) {
    pith_piece_out *piece = pith_arena_alloc(&s->arena, sizeof *piece);
    if (!piece) return pith_fail_memory(s->err, sizeof *piece);
    *piece = (pith_piece_out){ data, size, 0 };
    s->sections[s->count++] = (pith_section_out){ kind, size, piece, 1 };
    return PITH_OK;
}

static pith_status add_graph(saver *s, pith_section kind, const pith_graph *graph, const pith_plan *plan) {
    pith_bytes_out out = { .arena = &s->arena };
    PITH_TRY(pith_graph_write(&out, &s->weights, graph, plan, s->err));
    return add_section(s, kind, out.data, out.size);
}

static pith_status make_sections(saver *s) {
    const pith_model *m = s->model;
    const pith_plan *plan;
    pith_bytes_out out = { .arena = &s->arena };
    PITH_TRY(pith_model_plan(&plan, m, s->err));
    write_model(&out, m);
    if (out.failed) return pith_fail_memory(s->err, out.size);
    PITH_TRY(add_section(s, PITH_SECTION_MODEL, out.data, out.size));
    PITH_TRY(pith_weights_begin(&s->weights, &s->arena, s->err));
    PITH_TRY(add_graph(s, PITH_SECTION_GRAPH, m->graph, plan));
    if (m->text.ragged && m->text.encoder)
        PITH_TRY(add_graph(s, PITH_SECTION_TEXT, m->text.ragged, pith_program_plan(&m->text.program)));
    if (m->tokenizer) {
        pith_str frozen;
        PITH_TRY(pith_tokenizer_freeze(&frozen, m->tokenizer, &s->arena, s->err));
        PITH_TRY(add_section(s, PITH_SECTION_TOKENIZER, frozen.data, frozen.size));
    }
    return pith_weights_end(&s->sections[s->count++], &s->weights, s->err);
}

pith_status pith_model_write(const pith_model *model, pith_write_fn *write, void *user, pith_error *err) {
    saver s = { .model = model, .err = err };
    pith_arena_init(&s.arena, model->options.allocator);
    pith_status status = make_sections(&s);
    if (!status) status = pith_compiled_write(s.sections, s.count, write, user, err);
    pith_arena_free(&s.arena);
    return pith_account_explain(&model->account, status, err);
}

pith_status pith_model_verify_file(const char *path, pith_error *err) {
    pith_file file;
    PITH_TRY(pith_file_open(&file, path, false, NULL, err));
    pith_status status = pith_compiled_verify((pith_str){ (const char *)file.data, file.size }, err);
    pith_file_close(&file);
    return status ? pith_fail_at(err, status, "%s: ", path) : PITH_OK;
}

/* ---- loading ---- */

static pith_status load_graph(pith_graph **graph, pith_model *m, pith_section kind, const pith_weights_in *weights,
                              pith_error *err) {
    pith_bytes_in in = { .bytes = m->compiled.sections[kind], .what = pith_section_name(kind), .err = err };
    PITH_TRY(pith_graph_read(graph, &in, weights, &m->arena, m->options.log));
    pith_status status = pith_ops_bind(*graph, err);
    if (!status) status = pith_ops_infer(*graph, false, err);
    return status ? pith_fail_at(err, status, "%s: ", in.what) : PITH_OK;
}

pith_status pith_model_load(pith_model *m, pith_str file, pith_error *err) {
    pith_weights_in weights;
    if ((uintptr_t)file.data % PITH_COMPILED_ALIGNMENT) { /* of a host that did not know better */
        char *copy = pith_arena_alloc64(&m->arena, file.size);
        if (!copy) return pith_fail_memory(err, file.size);
        file.data = memcpy(copy, file.data, file.size);
    }
    PITH_TRY(pith_compiled_open(&m->compiled, file, err));
    const pith_str *sections = m->compiled.sections;
    if (m->options.stop_after)
        return pith_fail(
            err, PITH_ERR_ARGUMENT,
            "the passes of a compiled model have run already; stop_after needs the model it was compiled from");
    static const pith_section wanted[] = { PITH_SECTION_MODEL, PITH_SECTION_GRAPH, PITH_SECTION_WEIGHTS };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!sections[wanted[i]].data)
            return pith_fail(err, PITH_ERR_FORMAT, "section '%s' is missing", pith_section_name(wanted[i]));
    PITH_TRY(pith_weights_open(&weights, sections[PITH_SECTION_WEIGHTS], err));
    PITH_TRY(load_graph(&m->graph, m, PITH_SECTION_GRAPH, &weights, err));
    if (sections[PITH_SECTION_TEXT].data) PITH_TRY(load_graph(&m->text.ragged, m, PITH_SECTION_TEXT, &weights, err));
    int32_t wanted_precision = m->options.precision;
    PITH_TRY(save_read_model(m, sections[PITH_SECTION_MODEL], err));
    if (wanted_precision && wanted_precision != m->options.precision) {
        static const char *const names[] = { "auto", "f32", "int8", "bf16" };
        return pith_fail(
            err, PITH_ERR_ARGUMENT,
            "the file was compiled for precision %s, not %s; open it with precision auto, or compile it again",
            names[m->options.precision], names[wanted_precision]);
    }
    return m->text.ragged && (!m->text.output_count || m->text.ragged->output_count != 1)
               ? pith_fail(err, PITH_ERR_FORMAT, "model: the graph for packed texts has no output")
               : PITH_OK;
}

pith_status pith_compiled_tokenizer(pith_tokenizer **tokenizer, const pith_compiled *compiled,
                                    const pith_open_options *options, pith_arena *arena, pith_error *err) {
    pith_str frozen = compiled->sections[PITH_SECTION_TOKENIZER];
    if (!frozen.data) return pith_fail(err, PITH_ERR_NOT_FOUND, "the model has no tokenizer");
    return pith_tokenizer_open_frozen(tokenizer, frozen.data, frozen.size, options, arena, err);
}

pith_status pith_compiled_modules(pith_modules *modules, const pith_compiled *compiled, pith_arena *arena,
                                  pith_error *err) {
    pith_bytes_in in = { .bytes = compiled->sections[PITH_SECTION_MODEL], .what = "model", .err = err };
    save_read_modules(modules, &in, arena);
    return in.status;
}

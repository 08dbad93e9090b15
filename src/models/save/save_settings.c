/* save_settings.c - the section "model" of a compiled file: all that is neither graph nor
 * tokenizer. How the model was made, its ports, what is known about embedding and scoring, and what
 * pith_model_describe says about passes, which a compiled file does not run again. write_* and
 * read_* mirror each other. */
#include "models/save/save_settings.h"

#include <limits.h>

#include "base/error.h"
#include "base/str.h"
#include "models/save/save_model.h"

/* ---- writing ---- */

/* As pith_model_input and pith_model_output describe them, with the shape's text. */
static void write_ports(pith__bytes_out *out, const pith_port *ports, size_t count) {
    pith__put_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        pith__put_str(out, pith__str_of(ports[i].name));
        pith__put_str(out, pith__str_of(ports[i].shape));
        pith__put_u32(out, (uint32_t)ports[i].dtype);
        pith__put_u32(out, (uint32_t)ports[i].item_dtype);
        pith__put_u32(out, (uint32_t)ports[i].optional);
        pith__put_u32(out, (uint32_t)(ports[i].rank + 1));
        for (int d = 0; d < ports[i].rank; d++) pith__put_i64(out, ports[i].dims[d]);
    }
}

static void write_floats(pith__bytes_out *out, const float *data, int64_t count) {
    pith__put_str(
        out, (pith_str){ data ? (const char *)data : "", data ? (size_t)count * sizeof *data : 0 });
}

/* Weights of steps are few and small, and stand in the section itself. */
static void write_steps(pith__bytes_out *out, const pith__modules *m) {
    pith__put_u32(out, (uint32_t)m->step_count);
    for (size_t i = 0; i < m->step_count; i++) {
        const pith__vector_step *s = &m->steps[i];
        pith__put_u32(out, s->kind);
        pith__put_u32(out, (uint32_t)s->in);
        pith__put_u32(out, (uint32_t)s->out);
        pith__put_u32(out, (uint32_t)s->top);
        pith__put_u32(out, s->activation);
        pith__put_u32(out, s->residual);
        write_floats(out, s->weight, s->kind == PITH_STEP_DENSE ? s->in * s->out : s->in);
        write_floats(out, s->bias, s->out);
        write_floats(out, s->shortcut, s->in * s->out);
    }
}

static bool is_kept(pith_str route, const pith_model *const *models, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (pith__str_eq(models[i]->modules.route, route)) return true;
    return false;
}

/* The names of the routes that are in the file. */
static void write_route_names(pith__bytes_out *out, const pith__modules *m,
                              const pith_model *const *models, size_t model_count) {
    uint32_t count = 0;
    for (size_t i = 0; i < m->route_count; i++)
        count += is_kept(m->routes[i].route, models, model_count);
    pith__put_u32(out, count);
    for (size_t i = 0; i < m->route_count; i++) {
        if (!is_kept(m->routes[i].route, models, model_count)) continue;
        pith__put_str(out, m->routes[i].name);
        pith__put_str(out, m->routes[i].route);
    }
}

static void write_chat(pith__bytes_out *out, const pith__chat_form *form) {
    pith__put_u32(out, (uint32_t)form->count);
    for (size_t i = 0; i < form->count; i++) {
        pith__put_u32(out, form->parts[i].kind);
        pith__put_u32(out, form->parts[i].trimmed);
        pith__put_str(out, form->parts[i].words);
    }
}

static void write_rerank(pith__bytes_out *out, const pith__rerank_prompt *j) {
    pith__put_u32(out, j->form);
    pith__put_u32(out, (j->answers ? 1u : 0) | (j->only ? 2u : 0) | (j->keeps_end ? 4u : 0));
    pith__put_u32(out, (uint32_t)j->yes);
    pith__put_u32(out, (uint32_t)j->no);
    write_chat(out, &j->chat[0]);
    write_chat(out, &j->chat[1]);
}

/* Field by field, in the order of save_read_modules. A field that only matters while a directory is
 * read, such as config_args, is left out. */
static void write_modules(pith__bytes_out *out, const pith__modules *m,
                          const pith_model *const *models, size_t model_count) {
    pith__put_u32(out, m->pooling);
    pith__put_u32(out, m->normalize);
    pith__put_u32(out, m->include_prompt);
    pith__put_u32(out, (uint32_t)m->max_length);
    pith__put_u32(out, (uint32_t)m->positions);
    pith__put_u32(out, (uint32_t)m->pad_token_id);
    pith__put_u32(out, m->no_specials);
    pith__put_u32(out, (m->sparse.only ? 1u : 0) | (m->sparse.sum ? 2u : 0) |
                           (m->sparse.twice ? 4u : 0) | (m->sparse.words ? 8u : 0) |
                           (m->sparse.code ? 16u : 0));
    pith__put_u32(out, (uint32_t)m->sparse.most);
    pith__put_u32(out, m->weighted);
    pith__put_u32(out, (uint32_t)m->bag.words);
    pith__put_u32(out, m->bag.once);
    write_rerank(out, &m->rerank);
    pith__put_u32(out, m->cuts_characters);
    pith__put_u32(out, (uint32_t)m->truncate_dim);
    pith__put_str(out, m->dropped);
    pith__put_u32(out, (uint32_t)m->dropped_id);
    pith__put_str(out, m->similarity);
    pith__put_str(out, m->route);
    write_route_names(out, m, models, model_count);
    pith__put_u32(out, (uint32_t)m->prompt_count);
    for (size_t i = 0; i < m->prompt_count; i++) {
        pith__put_str(out, m->prompts[i].name);
        pith__put_str(out, m->prompts[i].text);
    }
    pith__put_str(out, m->default_prompt);
    write_steps(out, m);
    pith__put_u32(out, (uint32_t)m->decision_count);
    for (size_t i = 0; i < m->decision_count; i++) {
        pith__put_str(out, pith__str_of(m->decisions[i].what));
        pith__put_str(out, m->decisions[i].value);
        pith__put_str(out, m->decisions[i].file);
    }
}

static void write_labels(pith__bytes_out *out, const pith__hf_labels *l) {
    pith__put_u32(out, (l->classifier ? 1u : 0u) | (l->causal ? 2u : 0u));
    pith__put_u32(out, (uint32_t)l->classify);
    pith__put_u32(out, (uint32_t)l->rerank);
    pith__put_u32(out, (uint32_t)l->count);
    for (size_t i = 0; i < l->count; i++)
        pith__put_str(out, l->names[i].data ? l->names[i] : PITH_STR(""));
}

/* The factor is a double, written as its bits in two halves. */
static void write_pool(pith__bytes_out *out, const pith__token_pool_settings *p) {
    uint64_t factor;
    memcpy(&factor, &p->factor, sizeof factor);
    pith__put_u32(out, (uint32_t)factor);
    pith__put_u32(out, (uint32_t)(factor >> 32));
    pith__put_u32(out, (uint32_t)p->protects);
    pith__put_u32(out, p->normalizes);
    pith__put_u32(out, p->roles);
}

/* Flags share a word; what they switch off takes no room. */
static void write_late(pith__bytes_out *out, const pith__late_interaction *l) {
    for (int role = 0; role < 2; role++) {
        pith__put_str(out, l->markers[role].data ? l->markers[role] : PITH_STR(""));
        pith__put_u32(out, (uint32_t)l->lengths[role]);
    }
    pith__put_u32(out, l->expands);
    pith__put_u32(out, l->attends);
    pith__put_u32(out, (uint32_t)l->filled);
    pith__put_str(out, l->filler.data ? l->filler : PITH_STR(""));
    pith__put_u32(out, l->skips);
    pith__put_u32(out, (l->masked ? 1u : 0u) | (l->texts ? 2u : 0u) |
                           (l->pool.factor > 0 ? 4u : 0u) | (l->in_front ? 8u : 0u));
    if (l->pool.factor > 0) write_pool(out, &l->pool);
    pith__put_u32(out, (uint32_t)l->kept_count);
    for (size_t i = 0; i < l->kept_count; i++) pith__put_u32(out, (uint32_t)l->kept[i]);
    pith__put_u32(out, (uint32_t)l->skipped_count);
    for (size_t i = 0; i < l->skipped_count; i++) pith__put_str(out, l->skipped[i]);
}

/* Lines of pith_model_describe: passes do not run again on a compiled graph, so they could not be
 * told otherwise. */
static void write_report(pith__bytes_out *out, const pith_model *m) {
    pith__put_u32(out, (uint32_t)m->op_count);
    for (size_t i = 0; i < m->op_count; i++) {
        pith__put_str(out, m->ops[i].domain);
        pith__put_str(out, m->ops[i].op_type);
        pith__put_u32(out, (uint32_t)m->ops[i].count);
    }
    pith__put_u32(out, (uint32_t)m->report.count);
    for (size_t i = 0; i < m->report.count; i++) {
        pith__put_u32(out, m->report.lines[i].done);
        pith__put_str(out, pith__str_of(m->report.lines[i].what));
        pith__put_str(out, m->report.lines[i].text);
    }
}

/* Nothing that depends on the machine or on paths is written, so the same model gives the same
 * bytes. "auto" precision is written as what it means for a file, f32. */
void pith__save_settings_write(pith__bytes_out *out, const pith_model *m,
                               const pith_model *const *models, size_t model_count) {
    write_modules(out, &m->modules, models, model_count);
    write_labels(out, &m->labels);
    write_late(out, &m->late);
    pith__put_u32(out, m->from_safetensors);
    pith__put_u32(out, (uint32_t)pith__model_level(m));
    pith__put_u32(out,
                  (uint32_t)(m->options.precision ? m->options.precision : PITH_PRECISION_F32));
    pith__put_u32(out, (uint32_t)(m->text.output_count ? m->text.outputs[0] + 1 : 0));
    pith__put_str(out, m->text.ragged_reason);
    pith__put_u32(out, m->text.encoder ? PITH_OK : m->no_text.code);
    pith__put_str(out, m->text.encoder ? PITH_STR("") : pith__model_reason(m, m->no_text.message));
    write_ports(out, m->inputs, m->graph->input_count);
    write_ports(out, m->outputs, m->graph->output_count);
    write_report(out, m);
}

/* ---- reading ---- */

/* A string with a NUL after it. */
static pith_str save_read_text(pith__bytes_in *in, pith__arena *arena) {
    pith_str text = pith__arena_str(arena, pith__get_str(in));
    if (!text.data && !in->status) in->status = pith__fail_memory(in->err, text.size);
    return text;
}

static void *save_read_array(pith__bytes_in *in, pith__arena *arena, size_t *count,
                             size_t item_bytes, size_t size) {
    *count = pith__get_count(in, item_bytes);
    void *array = pith__arena_array(arena, *count, size);
    if (!array && !in->status) in->status = pith__fail_memory(in->err, *count * size);
    if (!array) *count = 0;
    return array;
}

/* The number must be that of the graph, which was read before. */
static pith_port *save_read_ports(pith__bytes_in *in, pith__arena *arena, size_t expected) {
    size_t count;
    pith_port *ports = save_read_array(in, arena, &count, 16, sizeof *ports);
    for (size_t i = 0; i < count; i++) {
        if (in->status) break;
        ports[i].size = sizeof *ports;
        ports[i].name = save_read_text(in, arena).data;
        ports[i].shape = save_read_text(in, arena).data;
        ports[i].dtype = (int32_t)pith__get_below(in, PITH_NONE + 1, "an unknown dtype");
        ports[i].item_dtype = (int32_t)pith__get_below(in, PITH_MAP_STRING + 1, "an unknown dtype");
        ports[i].optional = (int32_t)pith__get_below(in, 2, "a flag other than 0 and 1");
        ports[i].rank = (int32_t)pith__get_below(in, PITH_MAX_RANK + 2, "an impossible rank") - 1;
        for (int d = 0; d < ports[i].rank; d++) ports[i].dims[d] = pith__get_i64(in);
    }
    if (!in->status && count != expected)
        pith__bytes_fail(in, "another number of ports than the graph has");
    return ports;
}

/* NULL if the string is empty; else exactly count floats, which are copied for their alignment. */
static const float *save_read_floats(pith__bytes_in *in, pith__arena *arena, int64_t count) {
    pith_str bytes = pith__get_str(in);
    if (!bytes.size || in->status) return NULL;
    if (bytes.size != (size_t)count * sizeof(float)) {
        pith__bytes_fail(in, "a step whose weights have another size");
        return NULL;
    }
    float *data = pith__arena_alloc64(arena, bytes.size);
    if (!data) {
        in->status = pith__fail_memory(in->err, bytes.size);
        return NULL;
    }
    return memcpy(data, bytes.data, bytes.size);
}

/* Whether a step has the weights that running it reads. A hostile file must not make a step read
 * beyond what it has. */
static bool save_step_fits(const pith__vector_step *s) {
    switch (s->kind) {
    case PITH_STEP_DENSE: return s->weight && (!s->residual || s->shortcut || s->in == s->out);
    case PITH_STEP_LAYER_NORM: return s->weight && s->bias && s->in == s->out;
    case PITH_STEP_STANDARDIZE: return s->in && s->in == s->out;
    case PITH_STEP_TOP: return s->in && s->in == s->out && s->top;
    default: return !s->in && !s->out;
    }
}

/* Widths are bounded before they are multiplied. */
static void save_read_steps(pith__modules *m, pith__bytes_in *in, pith__arena *arena) {
    m->steps = save_read_array(in, arena, &m->step_count, 36, sizeof *m->steps);
    for (size_t i = 0; i < m->step_count; i++) {
        if (in->status) break;
        pith__vector_step *s = &m->steps[i];
        s->kind = (pith__step_kind)pith__get_below(in, PITH_STEP_KINDS, "an unknown step");
        s->in = pith__get_below(in, PITH_MODULE_WIDTH_MAX + 1, "an impossible width");
        s->out = pith__get_below(in, PITH_MODULE_WIDTH_MAX + 1, "an impossible width");
        s->top = pith__get_below(in, PITH_MODULE_WIDTH_MAX + 1, "an impossible width");
        s->activation = (pith__step_activation)pith__get_below(in, PITH_STEP_ACTIVATIONS,
                                                               "an unknown activation");
        s->residual = pith__get_below(in, 2, "a flag other than 0 and 1");
        s->weight =
            save_read_floats(in, arena, s->kind == PITH_STEP_DENSE ? s->in * s->out : s->in);
        s->bias = save_read_floats(in, arena, s->out);
        s->shortcut = save_read_floats(in, arena, s->in * s->out);
        if (!save_step_fits(s) && !in->status) pith__bytes_fail(in, "a step without its weights");
    }
}

/* `what` is a C string elsewhere, so it gets a NUL; the others stay spans of the file. */
static void save_read_decisions(pith__modules *m, pith__bytes_in *in, pith__arena *arena) {
    m->decisions = save_read_array(in, arena, &m->decision_count, 12, sizeof *m->decisions);
    m->decision_capacity = m->decision_count;
    for (size_t i = 0; i < m->decision_count; i++) {
        if (in->status) break;
        m->decisions[i].what = save_read_text(in, arena).data;
        m->decisions[i].value = pith__get_str(in);
        m->decisions[i].file = pith__get_str(in);
    }
}

static void save_read_pooling(pith__modules *m, pith__bytes_in *in) {
    m->pooling = pith__get_u32(in);
    for (uint32_t left = m->pooling; left; left >>= PITH_POOL_BITS) {
        if (in->status) break;
        const uint32_t mode = left & ((1u << PITH_POOL_BITS) - 1);
        if (!mode || mode >= PITH_POOL_MODES) pith__bytes_fail(in, "an unknown pooling");
    }
}

/* After a fault there are no routes: callers look names up without asking whether reading
 * succeeded. */
static void save_read_route_names(pith__modules *m, pith__bytes_in *in, pith__arena *arena) {
    pith__route_name *names = save_read_array(in, arena, &m->route_count, 8, sizeof *names);
    for (size_t i = 0; i < m->route_count; i++) {
        if (in->status) break;
        names[i].name = save_read_text(in, arena);
        names[i].route = pith__get_str(in);
    }
    if (in->status) m->route_count = 0;
    m->routes = names;
}

/* The number of parts is bounded as when a template is run, which bounds what a text can become. */
static void save_read_chat(pith__chat_form *form, pith__bytes_in *in, pith__arena *arena) {
    pith__chat_part *parts = save_read_array(in, arena, &form->count, 12, sizeof *parts);
    if (form->count > 2 * PITH_CHAT_PLACES_MAX + 1)
        pith__bytes_fail(in, "too many parts of a chat template");
    for (size_t i = 0; i < form->count; i++) {
        if (in->status) break;
        parts[i].kind = (pith__chat_kind)pith__get_below(in, PITH_CHAT_KINDS,
                                                         "an unknown part of a chat template");
        parts[i].trimmed = pith__get_below(in, 2, "a flag other than 0 and 1");
        parts[i].words = pith__get_str(in);
    }
    form->parts = parts;
}

/* A form that needs a chat template must have one. */
static void save_read_rerank(pith__rerank_prompt *j, pith__bytes_in *in, pith__arena *arena) {
    j->form = (pith__rerank_form)pith__get_below(in, PITH_RERANK_FORMS, "an unknown form of pairs");
    const uint32_t flags = pith__get_below(in, 8, "unknown settings of a reranker");
    j->answers = flags & 1;
    j->only = flags & 2;
    j->keeps_end = flags & 4;
    j->yes = (int32_t)pith__get_u32(in);
    j->no = (int32_t)pith__get_u32(in);
    save_read_chat(&j->chat[0], in, arena);
    save_read_chat(&j->chat[1], in, arena);
    if (j->form == PITH_RERANK_CHAT && !j->chat[0].count)
        pith__bytes_fail(in, "a chat template without parts");
}

static void save_read_modules(pith__modules *m, pith__bytes_in *in, pith__arena *arena) {
    save_read_pooling(m, in);
    m->normalize = pith__get_below(in, 2, "a flag other than 0 and 1");
    m->include_prompt = pith__get_below(in, 2, "a flag other than 0 and 1");
    m->max_length = (int32_t)pith__get_below(in, INT32_MAX, "an impossible length");
    m->positions = (int32_t)pith__get_below(in, INT32_MAX, "an impossible length");
    m->pad_token_id = (int32_t)pith__get_u32(in);
    m->no_specials = pith__get_below(in, 2, "a flag other than 0 and 1");
    const uint32_t sparse = pith__get_below(in, 32, "unknown settings of sparse vectors");
    m->sparse =
        (pith__sparse_settings){ sparse & 1, sparse & 2, sparse & 4, sparse & 8, sparse & 16, 0 };
    m->sparse.most = (int32_t)pith__get_below(in, INT32_MAX, "an impossible number of weights");
    m->weighted = pith__get_below(in, 2, "a flag other than 0 and 1");
    m->bag.words = (int32_t)pith__get_below(in, PITH_MODULE_WIDTH_MAX + 1, "an impossible width");
    m->bag.once = pith__get_below(in, 2, "a flag other than 0 and 1");
    save_read_rerank(&m->rerank, in, arena);
    m->cuts_characters = pith__get_below(in, 2, "a flag other than 0 and 1");
    m->truncate_dim = (int32_t)pith__get_below(in, INT32_MAX, "an impossible length");
    m->dropped = pith__get_str(in);
    m->dropped_id = (int32_t)pith__get_u32(in);
    m->similarity = pith__get_str(in);
    m->route = save_read_text(in, arena);
    save_read_route_names(m, in, arena);
    pith__prompt *prompts = save_read_array(in, arena, &m->prompt_count, 8, sizeof *prompts);
    for (size_t i = 0; i < m->prompt_count; i++) {
        prompts[i].name = pith__get_str(in);
        prompts[i].text = pith__get_str(in);
    }
    m->prompts = prompts;
    m->default_prompt = pith__get_str(in);
    save_read_steps(m, in, arena);
    save_read_decisions(m, in, arena);
}

static pith_activation save_read_activation(pith__bytes_in *in) {
    return (pith_activation)pith__get_below(in, PITH_ACTIVATION_SOFTMAX + 1,
                                            "an unknown activation");
}

static void save_read_labels(pith__hf_labels *l, pith__bytes_in *in, pith__arena *arena) {
    uint32_t kinds = pith__get_below(in, 4, "flags other than 0 to 3");
    l->classifier = kinds & 1;
    l->causal = kinds & 2;
    l->classify = save_read_activation(in);
    l->rerank = save_read_activation(in);
    pith_str *names = save_read_array(in, arena, &l->count, 4, sizeof *names);
    for (size_t i = 0; i < l->count; i++) names[i] = save_read_text(in, arena);
    l->names = names;
}

static void save_read_pool(pith__token_pool_settings *p, pith__bytes_in *in) {
    const uint64_t low = pith__get_u32(in), factor = low | (uint64_t)pith__get_u32(in) << 32;
    memcpy(&p->factor, &factor, sizeof factor);
    p->protects = (int32_t)pith__get_below(in, INT32_MAX, "an impossible number of vectors");
    p->normalizes = pith__get_below(in, 2, "a flag other than 0 and 1");
    p->roles = pith__get_below(in, 4, "roles other than 0 and 1");
    if (!(p->factor >= 1)) pith__bytes_fail(in, "an impossible pooling of tokens");
}

static void save_read_late(pith__late_interaction *l, pith__bytes_in *in, pith__arena *arena) {
    for (int role = 0; role < 2; role++) {
        l->markers[role] = pith__get_str(in);
        l->lengths[role] = (int32_t)pith__get_below(in, INT32_MAX, "an impossible length");
    }
    l->expands = pith__get_below(in, 2, "a flag other than 0 and 1");
    l->attends = pith__get_below(in, 2, "a flag other than 0 and 1");
    l->filled = (int32_t)pith__get_below(in, INT32_MAX, "an impossible length");
    l->filler = pith__get_str(in);
    l->skips = pith__get_below(in, 4, "roles other than 0 and 1");
    const uint32_t flags = pith__get_below(in, 16, "flags other than 0 to 15");
    l->masked = flags & 1;
    l->texts = flags & 2;
    l->in_front = flags & 8;
    if (flags & 4) save_read_pool(&l->pool, in);
    int32_t *kept = save_read_array(in, arena, &l->kept_count, 4, sizeof *kept);
    for (size_t i = 0; i < l->kept_count; i++) kept[i] = (int32_t)pith__get_u32(in);
    l->kept = kept;
    pith_str *words = save_read_array(in, arena, &l->skipped_count, 4, sizeof *words);
    for (size_t i = 0; i < l->skipped_count; i++) words[i] = pith__get_str(in);
    l->skipped = words;
}

static void read_report(pith__bytes_in *in, pith_model *m) {
    m->ops = save_read_array(in, &m->arena, &m->op_count, 12, sizeof *m->ops);
    for (size_t i = 0; i < m->op_count; i++) {
        m->ops[i].domain = pith__get_str(in);
        m->ops[i].op_type = pith__get_str(in);
        m->ops[i].count = pith__get_u32(in);
    }
    m->report.lines = save_read_array(in, &m->arena, &m->report.count, 12, sizeof *m->report.lines);
    m->report.capacity = m->report.count;
    for (size_t i = 0; i < m->report.count; i++) {
        if (in->status) break;
        m->report.lines[i].done = pith__get_below(in, 2, "a flag other than 0 and 1");
        m->report.lines[i].what = save_read_text(in, &m->arena).data;
        m->report.lines[i].text = pith__get_str(in);
    }
}

static pith_status name_ports(pith_model *m, pith_port *ports, pith__value *const *values,
                              size_t count, pith_error *err) {
    for (size_t i = 0; i < count; i++)
        PITH_TRY(pith__model_name_dims(&ports[i], m, &values[i]->type, err));
    return PITH_OK;
}

pith_status pith__save_settings_read(pith_model *m, pith_str section, pith_error *err) {
    pith__bytes_in in = { .bytes = section, .what = "model", .err = err };
    save_read_modules(&m->modules, &in, &m->arena);
    save_read_labels(&m->labels, &in, &m->arena);
    save_read_late(&m->late, &in, &m->arena);
    m->from_safetensors = pith__get_below(&in, 2, "a flag other than 0 and 1");
    m->options.optimization = (int32_t)pith__get_below(&in, 4, "an unknown level");
    if (!m->options.optimization) m->options.optimization = PITH_OPTIMIZATION_NONE;
    m->options.precision =
        (int32_t)pith__get_below(&in, PITH_PRECISION_BF16 + 1, "an unknown precision");
    int output = (int)pith__get_below(&in, (uint32_t)m->graph->output_count + 1,
                                      "an output that does not exist");
    m->text.output_count = output > 0;
    m->text.outputs[0] = output ? output - 1 : 0;
    pith_str reason = save_read_text(&in, &m->arena);
    if (reason.size) m->text.ragged_reason = reason;
    m->no_text.code = (pith_status)pith__get_below(&in, PITH_ERR_RUN + 1, "an unknown error");
    pith_str why = save_read_text(&in, &m->arena);
    if (m->no_text.code && !in.status) pith__fail(&m->no_text, m->no_text.code, "%s", why.data);
    if (m->no_text.code ? !m->no_text.message[0] : why.size > 0)
        pith__bytes_fail(&in, "an error without a reason, or a reason without an error");
    m->inputs = save_read_ports(&in, &m->arena, m->graph->input_count);
    m->outputs = save_read_ports(&in, &m->arena, m->graph->output_count);
    if (!in.status)
        in.status = name_ports(m, m->inputs, m->graph->inputs, m->graph->input_count, err);
    if (!in.status)
        in.status = name_ports(m, m->outputs, m->graph->outputs, m->graph->output_count, err);
    read_report(&in, m);
    return pith__bytes_end(&in);
}

pith_status pith__compiled_modules(pith__modules *modules, const pith__compiled *compiled,
                                   pith__arena *arena, pith_error *err) {
    pith__bytes_in in = { .bytes = compiled->sections[PITH_SECTION_MODEL],
                          .what = "model",
                          .err = err };
    save_read_modules(modules, &in, arena);
    return in.status;
}

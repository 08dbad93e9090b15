/* pith.c - the public interface, and the table of contents of the library: each stage of opening a model is one line.
 *
 * A model keeps two plans at most. A text encoder runs on the ragged one, made at open; sessions run on the plan of the
 * graph as it stands, made at open where there is no ragged one, otherwise when the first session asks for it.
 * What makes a model embed text (tokenizer, modules, encoder inputs) may be missing or unsupported without making the
 * graph useless: the reason is kept and given by pith_embed. Only want of memory fails the opening there. */
#include "model.h"

#include "check.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/threads.h"
#include "base/str.h"
#include "exec/profile.h"
#include "heads/dense.h"
#include "hf/hf.h"
#include "hub/hub.h"
#include "onnx/onnx.h"
#include "quantize/calibrate.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

const char *pith_version(void) {
    return TEXT(PITH_VERSION_MAJOR) "." TEXT(PITH_VERSION_MINOR) "." TEXT(PITH_VERSION_PATCH);
}

void pith_pin_threads(int32_t pin) { pith_threads_pin(pin != 0); }

/* ---- opening ---- */

bool pith_options_take(void *mine, size_t my_size, const void *theirs) {
    size_t size;
    if (!theirs) return true;
    memcpy(&size, theirs, sizeof size);
    if (size < sizeof size) return false;
    memcpy(mine, theirs, size < my_size ? size : my_size);
    memcpy(mine, &my_size, sizeof my_size);
    return true;
}

static void free_model(pith_model *m) {
    pith_allocator host = m->account.host;
    pith_encoder_destroy(m->encoder);
    pith_tokenizer_unload(m->tokenizer);
    pith_arena_free(&m->text_arena);
    pith_arena_free(&m->plan_arena);
    pith_files_close(&m->files);
    pith_arena_free(&m->arena);
    pthread_mutex_destroy(&m->lock);
    pith_memory_free(&host, m);
}

static pith_status create_model(pith_model **model, const pith_open_options *given, pith_error *err) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(options, given, err);
    if (options.optimization < 0 || options.optimization > 3)
        return pith_fail(err, PITH_ERR_ARGUMENT, "optimization %d is not between 0 and 3", options.optimization);
    if (options.precision < PITH_PRECISION_AUTO || options.precision > PITH_PRECISION_BF16)
        return pith_fail(err, PITH_ERR_ARGUMENT, "precision %d is unknown", options.precision);
    if (options.precision > PITH_PRECISION_F32 && options.optimization < 2)
        return pith_fail(err, PITH_ERR_ARGUMENT, "a precision other than f32 wants optimization 2 or 3");
    const pith_allocator *allocator = options.allocator ? options.allocator : &pith_allocator_default;
    pith_model *m = pith_memory_alloc(allocator, sizeof *m, 64);
    if (!m) return pith_fail_memory(err, sizeof *m);
    *m = (pith_model){ .options = options };
    pith_account_init(&m->account, allocator, options.memory_limit, PITH_MEMORY_COST(sizeof *m, 64));
    if (pthread_mutex_init(&m->lock, NULL)) {
        pith_memory_free(allocator, m);
        return pith_fail_memory(err, sizeof m->lock);
    }
    if (options.log) m->log = *options.log;
    m->options.allocator = &m->account.allocator;
    m->options.log = options.log ? &m->log : NULL;
    pith_arena_init(&m->arena, &m->account.allocator);
    pith_arena_init(&m->text_arena, &m->account.allocator);
    pith_arena_init(&m->plan_arena, &m->account.allocator);
    m->files = (pith_files){ .arena = &m->arena, .copy = options.flags & PITH_OPEN_COPY };
    m->report.arena = &m->arena;
    *model = m;
    return PITH_OK;
}

/* Also a tokenizer.json that cannot be read: opening the tokenizer says why. */
static bool has_tokenizer(pith_model *m, pith_str dir) {
    pith_str path;
    bool there;
    return dir.data && (pith_file_find(&there, &path, &m->arena, dir.data, "tokenizer.json", NULL) || there);
}

/* folder: for external data; NULL: there is none. */
static pith_status pith_read_bytes(pith_model *m, pith_str bytes, const char *folder, pith_error *err) {
    if (pith_compiled_is(bytes)) return pith_model_load(m, bytes, err);
    m->onnx = bytes;
    m->onnx_dir = folder;
    return pith_onnx_read(&m->graph, bytes, folder, &m->files, &m->arena, m->options.log, err);
}

/* A compiled model, or the graph of an ONNX file; where that lies beside a tokenizer (or in onnx/ below one), it is the
 * model's directory. */
static pith_status pith_read_file(pith_model *m, pith_str file, pith_error *err) {
    pith_str bytes, folder = pith_path_parent(&m->arena, file);
    if (!folder.data) return pith_fail_memory(err, file.size);
    PITH_TRY(pith_files_open(&bytes, &m->files, file.data, err));
    if (!m->dir.data && !pith_compiled_is(bytes)) {
        pith_str above = pith_arena_printf(&m->arena, "%s/..", folder.data);
        bool in_onnx = pith_str_is(pith_path_name(folder), "onnx");
        if (has_tokenizer(m, folder))
            m->dir = folder;
        else if (in_onnx && has_tokenizer(m, above))
            m->dir = above;
    }
    pith_status status = pith_read_bytes(m, bytes, folder.data, err);
    return status ? pith_fail_at(err, status, "%s: ", file.data) : PITH_OK;
}

static pith_status read_directory(pith_model *m, pith_error *err) {
    static const char *const names[] = { "model.onnx", "onnx/model.onnx", "config.json", "model.safetensors",
                                         "model.safetensors.index.json" };
    enum { ONNX_NAMES = 2, NAMES = sizeof names / sizeof names[0] };
    bool there[NAMES];
    m->dir = m->path;
    for (size_t i = 0; i < NAMES; i++) {
        pith_str path;
        PITH_TRY(pith_file_find(&there[i], &path, &m->arena, m->dir.data, names[i], err));
        if (i < ONNX_NAMES && there[i]) return pith_read_file(m, path, err);
    }
    if (!there[2] || !(there[3] || there[4]))
        return pith_fail(err, PITH_ERR_NOT_FOUND,
                         "%s: no model in this directory: wanted is model.onnx, onnx/model.onnx, or config.json with "
                         "model.safetensors (or model.safetensors.index.json)",
                         m->dir.data);
    m->from_safetensors = true;
    return pith_hf_build(&m->graph, m->dir.data, &m->files, &m->arena, m->options.log, err);
}

static pith_status read_path(pith_model *m, const char *name, pith_error *err) {
    PITH_TRY(pith_hub_find(&m->path, name, &m->arena, err));
    return pith_dir_exists(m->path.data) ? read_directory(m, err) : pith_read_file(m, m->path, err);
}

pith_opt pith_model_optimizer(const pith_model *m, pith_graph *graph, pith_error *err) {
    return (pith_opt){ .graph = graph,
                       .level = m->options.optimization,
                       .precision = m->options.precision,
                       .allocator = m->options.allocator,
                       .limits = m->limits,
                       .err = err };
}

static pith_opt optimizer(pith_model *m, pith_error *err) {
    pith_opt o = pith_model_optimizer(m, m->graph, err);
    o.report = m->options.flags & PITH_OPEN_DESCRIBE ? &m->report : NULL;
    return o;
}

static pith_status pith_make_ports(pith_port **ports, pith_model *m, pith_value *const *values, size_t count,
                                   pith_error *err) {
    *ports = pith_arena_array(&m->arena, count, sizeof **ports);
    if (!*ports) return pith_fail_memory(err, count * sizeof **ports);
    for (size_t i = 0; i < count; i++) {
        const pith_value *v = values[i];
        const pith_type *type = v->type.rank < 0 && v->hint ? v->hint : &v->type,
                        *declared = v->hint ? v->hint : &v->type;
        bool is_optional = declared->dtype == PITH_UNDEFINED && declared->item_dtype != PITH_UNDEFINED;
        pith_port *port = &(*ports)[i];
        char shape[512] = "?";
        size_t used = 0;
        if (type->rank >= 0) used += (size_t)snprintf(shape, sizeof shape, "[");
        for (int d = 0; d < type->rank; d++) {
            char dim[40]; /* 12 of these and separators fit in shape */
            pith_dim size =
                v->kind == PITH_VALUE_INPUT && declared->rank == type->rank ? declared->dims[d] : type->dims[d];
            if (size == PITH_DIM_UNKNOWN) size = type->dims[d];
            port->dims[d] = pith_dim_known(size) ? size : -1;
            pith_dim_text(m->graph->dims, size, dim, sizeof dim);
            used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%s", d ? ", " : "", dim);
        }
        if (type->rank >= 0) snprintf(shape + used, sizeof shape - used, "]");
        port->name = pith_arena_str(&m->arena, v->name).data;
        port->shape = pith_arena_str(&m->arena, pith_str_of(shape)).data;
        port->dtype = is_optional ? (int)PITH_NONE : v->type.dtype ? v->type.dtype : declared->dtype;
        port->rank = type->rank;
        port->item_dtype = declared->item_dtype;
        port->optional = v->kind == PITH_VALUE_INPUT && v->type.data;
        if (!port->name || !port->shape) return pith_fail_memory(err, v->name.size);
    }
    return PITH_OK;
}

static pith_status make_ragged(pith_model *m, pith_error *err) {
    pith_opt o = optimizer(m, err);
    if (pith_opt_without(m->limits, "ragged")) {
        m->ragged_reason = PITH_STR("the packed form did not hold when it was checked");
        return PITH_OK;
    }
    if (m->options.optimization == 0) {
        m->ragged_reason = PITH_STR("optimisation level 0 runs the graph as written");
        return PITH_OK;
    }
    return pith_opt_ragged(&m->ragged, &m->ragged_reason, m->text_output, &o); /* embedding reads one output */
}

pith_status pith_model_plan(const pith_plan **plan, const pith_model *model, pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model; /* the lazily made part is behind the lock */
    pith_status status = PITH_OK;
    pthread_mutex_lock(&m->lock);
    if (!m->plan) {
        pith_plan *built;
        status = pith_plan_build(&built, m->graph, &m->files, &m->plan_arena, err);
        if (status)
            pith_arena_free(&m->plan_arena);
        else
            m->plan = built;
    }
    *plan = m->plan;
    pthread_mutex_unlock(&m->lock);
    return status;
}

static pith_executor_options executor_options(const pith_model *m) {
    return (pith_executor_options){ .allocator = m->options.allocator,
                                    .log = m->options.log,
                                    .tight = m->options.memory_limit > 0,
                                    .loop_limit = m->options.loop_limit };
}

/* Tokenizer, modules, ragged graph. */
static pith_status pith_read_text(pith_model *m, pith_error *err) {
    if (m->compiled.writer) return pith_compiled_tokenizer(&m->tokenizer, &m->compiled, &m->options, &m->arena, err);
    if (!m->dir.data) return pith_fail(err, PITH_ERR_NOT_FOUND, "the model has no directory with a tokenizer");
    PITH_TRY(pith_tokenizer_load(&m->tokenizer, m->dir.data, &m->options, &m->arena, err));
    PITH_TRY(pith_modules_read(&m->modules, m->dir.data, &m->account.allocator, &m->arena, err));
    return make_ragged(m, err);
}

/* A compiled model may have come with the reason why it does not embed. */
static pith_status open_text(pith_model *m, pith_error *err) {
    if (m->no_text.code) return m->no_text.code;
    PITH_TRY(pith_read_text(m, err));
    const pith_plan *plan;
    if (m->ragged) PITH_TRY(pith_plan_build(&m->text_plan, m->ragged, &m->files, &m->text_arena, err));
    plan = m->text_plan;
    if (!plan) PITH_TRY(pith_model_plan(&plan, m, err));
    int output = m->ragged && m->text_output > 0 ? 0 : m->text_output;
    pith_encoder_parts parts = { plan, m->ragged != NULL, output, m->tokenizer, &m->modules, executor_options(m) };
    return pith_encoder_create(&m->encoder, &parts, err);
}

static pith_status optimize(pith_model *m, pith_error *err) {
    pith_opt o = optimizer(m, err);
    return m->options.optimization ? pith_opt_run(&o, m->options.stop_after) : PITH_OK;
}

/* What was read becomes what is run; in a compiled file it is that already. */
static pith_status pith_make_graph(pith_model *m, pith_error *err) {
    if (m->compiled.writer && m->options.input_shape_count)
        return pith_fail(err, PITH_ERR_ARGUMENT, "a compiled model has the input shapes it was compiled with");
    if (m->compiled.writer) return PITH_OK;
    if (m->options.flags & PITH_OPEN_DESCRIBE) PITH_TRY(pith_model_count_ops(m, m->graph, err));
    PITH_TRY(pith_model_fix_inputs(m, err));
    PITH_TRY(pith_ops_bind(m->graph, err));
    PITH_TRY(pith_ops_infer(m->graph, m->options.flags & PITH_OPEN_STRICT_SHAPES, err));
    PITH_TRY(pith_make_ports(&m->inputs, m, m->graph->inputs, m->graph->input_count, err));
    PITH_TRY(pith_make_ports(&m->outputs, m, m->graph->outputs, m->graph->output_count, err));
    m->text_output = pith_encoder_output(m->graph);
    return optimize(m, err);
}

/* The ragged form of a graph that does not embed, for looking at it. */
static pith_status tell_ragged(pith_model *m, pith_error *err) {
    bool told = m->encoder || m->compiled.writer || m->ragged || m->ragged_reason.data;
    if (told || !(m->options.flags & PITH_OPEN_DESCRIBE)) return PITH_OK;
    PITH_TRY(make_ragged(m, err));
    return m->ragged ? pith_plan_build(&m->text_plan, m->ragged, &m->files, &m->text_arena, err) : PITH_OK;
}

/* What every way of opening ends with; lane: of the profile, or NULL. */
static pith_status pith_finish(pith_model *m, pith_lane *lane, pith_error *err) {
    uint64_t begin = pith_lane_now(lane);
    PITH_TRY(pith_make_graph(m, err));
    pith_lane_phase(lane, "optimise", begin, -1);
    begin = pith_lane_now(lane);
    if (open_text(m, &m->no_text) == PITH_ERR_MEMORY) return pith_fail(err, PITH_ERR_MEMORY, "%s", m->no_text.message);
    const pith_plan *plan;
    pith_status status = m->encoder ? PITH_OK : pith_model_plan(&plan, m, err);
    if (!status) status = tell_ragged(m, err);
    pith_lane_phase(lane, "tokenizer and plan", begin, -1);
    return status;
}

pith_status pith_model_open_limited(pith_model **model, const char *path, pith_str bytes,
                                    const pith_open_options *options, const pith_opt_limits *limits, pith_error *err) {
    pith_model *m = NULL;
    PITH_TRY(create_model(&m, options, err));
    m->limits = limits;
    pith_lane *lane = pith_profile_lane(m->options.profile);
    uint64_t begin = pith_lane_now(lane);
    pith_status status = path ? read_path(m, path, err) : pith_read_bytes(m, bytes, NULL, err);
    pith_lane_phase(lane, "read", begin, -1);
    if (!status) status = pith_finish(m, lane, err);
    status = pith_account_settle(&m->account, status, err);
    pith_lane_phase(lane, "open", begin, -1);
    m->limits = NULL;
    m->options.stop_after = NULL;
    m->options.profile = NULL;
    m->options.input_shapes = NULL;
    if (status)
        free_model(m);
    else
        *model = m;
    return status;
}

static pith_status open_checked_or_not(pith_model **model, const char *path, pith_str bytes,
                                       const pith_open_options *options, pith_error *err) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    return o.flags & PITH_OPEN_CHECK ? pith_model_open_checked(model, path, bytes, options, err)
                                     : pith_model_open_limited(model, path, bytes, options, NULL, err);
}

static pith_status open_model(pith_model **model, const char *path, pith_str bytes, const pith_open_options *options,
                              pith_error *err) {
    pith_fpmode mode = pith_fpmode_enter();
    pith_status status = open_checked_or_not(model, path, bytes, options, err);
    pith_fpmode_leave(mode);
    return status;
}

pith_status pith_model_open(pith_model **model, const char *path, const pith_open_options *options, pith_error *err) {
    return open_model(model, path, (pith_str){ NULL, 0 }, options, err);
}

pith_status pith_model_open_memory(pith_model **model, const void *data, size_t size, const pith_open_options *options,
                                   pith_error *err) {
    return open_model(model, NULL, (pith_str){ data, size }, options, err);
}

void pith_model_close(pith_model *model) {
    if (model) free_model(model);
}

size_t pith_model_input_count(const pith_model *model) { return model->graph->input_count; }
size_t pith_model_output_count(const pith_model *model) { return model->graph->output_count; }
pith_port pith_model_input(const pith_model *model, size_t index) { return model->inputs[index]; }
pith_port pith_model_output(const pith_model *model, size_t index) { return model->outputs[index]; }

/* ---- sessions ---- */

struct pith_session {
    const pith_model *model;
    pith_executor *executor;
    pith_fed *fed; /* for inputs with a default that are fed another value; made when first wanted */
    pith_named_sizes sizes;
    pith_tensor *inputs; /* in the graph's order */
    bool *warned;        /* by input: that its declared shape is wrong */
    bool *open;          /* by input: it has been fed another value than its default */
    bool apart;          /* axes that share a symbol have been given different sizes */
};

static pith_status create_session(pith_session **session, const pith_model *model, pith_error *err) {
    const pith_plan *plan;
    pith_status status = pith_model_plan(&plan, model, err);
    if (status) return pith_account_explain(&model->account, status, err);
    size_t count = model->graph->input_count; /* the graph holds as many pointers already */
    size_t symbols = pith_dims_symbol_count(model->graph->dims);
    size_t bytes = sizeof(pith_session) + count * (sizeof(pith_tensor) + 2 * sizeof(bool)) +
                   symbols * sizeof(struct pith_named_size);
    pith_session *s = pith_memory_alloc(&model->account.allocator, bytes, 64);
    if (!s) return pith_account_explain(&model->account, pith_fail_memory(err, bytes), err);
    *s = (pith_session){ .model = model, .inputs = (pith_tensor *)(s + 1) };
    s->sizes.items = (struct pith_named_size *)(s->inputs + count);
    s->warned = (bool *)(s->sizes.items + symbols);
    s->open = s->warned + count;
    memset(s->sizes.items, 0, symbols * sizeof *s->sizes.items + 2 * count * sizeof *s->warned);
    pith_executor_options options = executor_options(model);
    status = pith_executor_create(&s->executor, plan, &options, err);
    if (status)
        pith_memory_free(&model->account.allocator, s);
    else
        *session = s;
    return pith_account_explain(&model->account, status, err);
}

pith_status pith_session_create(pith_session **session, const pith_model *model, pith_error *err) {
    pith_fpmode mode = pith_fpmode_enter();
    pith_status status = create_session(session, model, err);
    pith_fpmode_leave(mode);
    return status;
}

void pith_session_destroy(pith_session *session) {
    if (!session) return;
    pith_fed_destroy(session->fed);
    pith_executor_destroy(session->executor);
    pith_memory_free(&session->model->account.allocator, session);
}

/* "name float32 [batch, 3], …" of ports, into buffer. */
static const char *list_ports(char *buffer, size_t size, const pith_port *ports, size_t count,
                              const pith_tensor *given) {
    size_t used = 0;
    buffer[0] = 0;
    for (size_t i = 0; i < count && used < size; i++) {
        if (given && (given[i].dtype != PITH_UNDEFINED || ports[i].optional)) continue;
        used += (size_t)snprintf(buffer + used, size - used, "%s'%s' %s %s", used ? ", " : "", ports[i].name,
                                 pith_dtype_name(ports[i].dtype), ports[i].shape);
    }
    return buffer;
}

static pith_status take_inputs(pith_session *s, const char *const *names, const pith_tensor *inputs, size_t count,
                               pith_error *err) {
    const pith_model *m = s->model;
    size_t wanted = m->graph->input_count;
    char list[700];
    size_t p = 0; /* names mostly come in the model's order: each is looked for from where the last one was */
    memset(s->inputs, 0, wanted * sizeof *s->inputs);
    for (size_t i = 0; i < count; i++) {
        size_t bytes, tried = 0;
        for (; tried < wanted && strcmp(m->inputs[p % wanted].name, names[i]); tried++) p++;
        p = wanted ? p % wanted : 0;
        if (tried == wanted)
            return pith_fail(err, PITH_ERR_ARGUMENT, "the model has no input '%s'; it has %s", names[i],
                             list_ports(list, sizeof list, m->inputs, wanted, NULL));
        const pith_port *port = &m->inputs[p];
        const pith_tensor *t = &inputs[i];
        if (s->inputs[p].dtype != PITH_UNDEFINED)
            return pith_fail(err, PITH_ERR_ARGUMENT, "input '%s' is given twice", names[i]);
        if (port->dtype != PITH_UNDEFINED && port->dtype != PITH_NONE && t->dtype != port->dtype)
            return pith_fail(err, PITH_ERR_ARGUMENT, "input '%s' is %s, wanted is %s %s", names[i],
                             pith_dtype_name(t->dtype), pith_dtype_name(port->dtype), port->shape);
        if (t->dtype != PITH_SEQUENCE && t->dtype != PITH_NONE) {
            if (t->rank < 0 || t->rank > PITH_MAX_RANK)
                return pith_fail(err, PITH_ERR_ARGUMENT, "input '%s' has rank %d", names[i], t->rank);
            if (!pith_dtype_bytes(t->dtype, pith_dims_count(t->dims, t->rank), &bytes) || t->bytes < bytes ||
                (bytes && !t->data))
                return pith_fail(err, PITH_ERR_ARGUMENT, "input '%s': %zu bytes of data do not hold the shape %s",
                                 names[i], t->bytes, pith_dims_text(t->dims, t->rank, list, sizeof list));
        }
        PITH_TRY(pith_model_check_input(m, p, t, &s->warned[p], err));
        s->inputs[p] = *t;
    }
    for (p = 0; p < wanted; p++)
        if (s->inputs[p].dtype == PITH_UNDEFINED && !m->inputs[p].optional)
            return pith_fail(err, PITH_ERR_ARGUMENT, "missing inputs: %s",
                             list_ports(list, sizeof list, m->inputs, wanted, s->inputs));
    return PITH_OK;
}

/* Notes inputs that are fed another value than their default, and axes of one name that differ: whether the model's
 * plan does not do for this run. */
static bool note_needs(pith_session *s, bool *apart) {
    const pith_model *m = s->model;
    bool fed = false;
    char text[300];
    for (size_t p = 0; p < m->graph->input_count; p++) {
        if (s->inputs[p].dtype == PITH_UNDEFINED || !m->graph->inputs[p]->type.data) continue;
        if (pith_fed_needs(m, p, &s->inputs[p]))
            s->open[p] = fed = true;
        else
            s->inputs[p].dtype = PITH_UNDEFINED; /* what it is anyway */
    }
    *apart = pith_fed_apart(m, s->inputs, &s->sizes);
    if (*apart && !s->apart)
        pith_log_write(m->options.log, PITH_LOG_WARNING,
                       "%s; the name is taken for a hint, and the model is planned again",
                       pith_named_sizes_text(&s->sizes, m, text, sizeof text));
    s->apart |= *apart;
    return fed || *apart;
}

/* On the model's plan, or on the session's own where that one takes something for granted that the inputs contradict.
 */
static pith_status run_taken(pith_session *s, pith_tensor *outputs, int threads, const pith_run_options *o,
                             pith_lane *lane, pith_error *err) {
    const pith_model *m = s->model;
    bool apart, own = note_needs(s, &apart);
    char text[300];
    if (own && (!s->fed || !pith_fed_has(s->fed, s->open, s->apart))) {
        pith_executor_options options = executor_options(m);
        pith_fed_destroy(s->fed);
        s->fed = NULL;
        PITH_TRY(pith_fed_create(&s->fed, m, s->open, s->apart, &options, err));
    }
    pith_executor *executor = own ? pith_fed_ready(s->fed, s->inputs) : s->executor;
    pith_lane_listen(lane, executor);
    pith_status status = pith_executor_run(executor, outputs, s->inputs, threads, o->cancel, err);
    bool may_be_sizes = apart && (status == PITH_ERR_ARGUMENT || status == PITH_ERR_RUN);
    if (!may_be_sizes) return status;
    return pith_fail_at(err, status, "%s: ", pith_named_sizes_text(&s->sizes, m, text, sizeof text));
}

pith_status pith_session_run(pith_session *session, pith_tensor *outputs, const char *const *names,
                             const pith_tensor *inputs, size_t input_count, const pith_run_options *options,
                             pith_error *err) {
    pith_run_options o = PITH_RUN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    if (o.threads < 0) return pith_fail(err, PITH_ERR_ARGUMENT, "threads must not be negative");
    PITH_TRY(take_inputs(session, names, inputs, input_count, err));
    pith_fpmode mode = pith_fpmode_enter();
    int threads = o.threads ? o.threads : pith_cpu_get()->threads;
    pith_lane *lane = pith_profile_lane(o.profile);
    uint64_t begin = pith_lane_now(lane);
    pith_status status = run_taken(session, outputs, threads, &o, lane, err);
    pith_lane_phase(lane, "run", begin, -1);
    pith_fpmode_leave(mode);
    return pith_account_explain(&session->model->account, status, err);
}

/* ---- values in files ---- */

struct pith_value_file {
    pith_allocator allocator;
    pith_arena arena;
    pith_file file;
};

static pith_status open_value(pith_value_file **file, pith_tensor *tensor, const char **name, const char *path,
                              int32_t kind, pith_error *err) {
    const pith_allocator *allocator = &pith_allocator_default;
    pith_value_file *f = pith_memory_alloc(allocator, sizeof *f, 64);
    if (!f) return pith_fail_memory(err, sizeof *f);
    *f = (pith_value_file){ .allocator = *allocator };
    pith_arena_init(&f->arena, &f->allocator);
    pith_str label = PITH_STR("");
    pith_status status = pith_file_open(&f->file, path, false, &f->allocator, err);
    if (!status) {
        pith_str bytes = { (const char *)f->file.data, f->file.size };
        status = pith_onnx_read_tensor(tensor, &label, bytes, kind, &f->arena, err);
        if (status) pith_fail_at(err, status, "%s: ", path);
    }
    if (!status) {
        label = pith_arena_str(&f->arena, label);
        if (!label.data) status = pith_fail_memory(err, label.size);
    }
    if (status) {
        pith_value_close(f);
        return status;
    }
    if (name) *name = label.data;
    *file = f;
    return PITH_OK;
}

pith_status pith_value_open(pith_value_file **file, pith_tensor *tensor, const char **name, const char *path,
                            int32_t kind, pith_error *err) {
    pith_fpmode mode = pith_fpmode_enter();
    pith_status status = open_value(file, tensor, name, path, kind, err);
    pith_fpmode_leave(mode);
    return status;
}

void pith_value_close(pith_value_file *file) {
    if (!file) return;
    pith_file_close(&file->file);
    pith_arena_free(&file->arena);
    pith_memory_free(&pith_allocator_default, file);
}

/* ---- text ---- */

static pith_status complete(pith_embed_options *o, const pith_embed_options *given, const pith_model *m,
                            pith_error *err) {
    *o = (pith_embed_options)PITH_EMBED_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    return m->encoder ? PITH_OK
                      : pith_fail(err, m->no_text.code, "this model cannot embed text: %s", m->no_text.message);
}

static pith_dense dense_request(const pith_embed_options *o, float *vectors) {
    return (pith_dense){ .pooling = o->pooling, .normalize = o->normalize, .dim = o->dim, .vectors = vectors };
}

static pith_encode_job encode_job(const pith_embed_options *o, const pith_str *texts, size_t count) {
    return (pith_encode_job){ .texts = texts,
                              .count = count,
                              .prompt_name = o->prompt_name,
                              .threads = o->threads,
                              .max_length = o->max_length,
                              .batch_tokens = o->batch_tokens,
                              .cancel = o->cancel,
                              .profile = o->profile,
                              .stats = o->stats };
}

size_t pith_embed_dim(const pith_model *model, const pith_embed_options *options) {
    pith_embed_options o;
    pith_dense dense;
    if (complete(&o, options, model, NULL)) return 0;
    dense = dense_request(&o, NULL);
    return pith_dense_dim(pith_encoder_model(model->encoder), &dense);
}

size_t pith_embed_max_length(const pith_model *model, const pith_embed_options *options) {
    pith_embed_options o;
    return complete(&o, options, model, NULL) ? 0 : (size_t)pith_encoder_max_length(model->encoder, o.max_length);
}

pith_status pith_embed(float *vectors, const pith_model *model, const pith_str *texts, size_t count,
                       const pith_embed_options *options, pith_error *err) {
    pith_embed_options o;
    PITH_TRY(complete(&o, options, model, err));
    pith_fpmode mode = pith_fpmode_enter();
    pith_dense dense = dense_request(&o, vectors);
    pith_encode_job job = encode_job(&o, texts, count);
    const pith_head *head;
    pith_status status = pith_head_find(&head, "dense", err);
    if (!status) status = pith_encoder_run(model->encoder, &job, head, &dense, err);
    pith_fpmode_leave(mode);
    return pith_account_explain(&model->account, status, err);
}

static pith_status check_calibrate(const pith_model *m, pith_error *err) {
    if (m->compiled.writer)
        return pith_fail(err, PITH_ERR_ARGUMENT, "the model is compiled: calibrate before saving it");
    if (m->options.precision != PITH_PRECISION_INT8)
        return pith_fail(err, PITH_ERR_ARGUMENT,
                         "only int8 weights are calibrated: open the model with precision int8");
    if (!m->encoder) return pith_fail(err, m->no_text.code, "this model cannot embed text: %s", m->no_text.message);
    return PITH_OK;
}

pith_status pith_model_calibrate(pith_model *model, const pith_calibrate_options *options, pith_error *err) {
    pith_calibrate_options o = PITH_CALIBRATE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    pith_fpmode mode = pith_fpmode_enter();
    const pith_plan *whole;
    pith_status status = check_calibrate(model, err);
    if (!status) status = pith_model_plan(&whole, model, err);
    if (!status) {
        pith_calibrate_parts parts = { model->encoder, { whole, NULL }, model->tokenizer, model->options.allocator };
        if (model->text_plan) parts.plans[0] = model->text_plan, parts.plans[1] = whole;
        status = pith_calibrate(&parts, &o, err);
    }
    pith_fpmode_leave(mode);
    return pith_account_explain(&model->account, status, err);
}

void pith_model_trim(const pith_model *model) {
    if (model->encoder) pith_encoder_trim(model->encoder);
    if (model->tokenizer) pith_tokenizer_trim(model->tokenizer);
}

size_t pith_model_bytes(const pith_model *model, size_t *peak) {
    if (peak) *peak = atomic_load_explicit(&model->account.peak, memory_order_relaxed);
    return atomic_load_explicit(&model->account.held, memory_order_relaxed);
}

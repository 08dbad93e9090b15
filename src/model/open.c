/* open.c - opens a model; each stage is one line.
 *
 * A model keeps at most two programs. A text encoder runs that of the ragged graph, made at open. Sessions run that of
 * the graph itself. It is made at open if there is no ragged graph, otherwise when the first session asks for it.
 *
 * The parts that make a model embed text (tokenizer, modules, encoder inputs) may be missing or unsupported without
 * making the graph useless. The reason is kept and given by pith_embed. Only a lack of memory there fails the opening.
 */
#include "model/open.h"
#include "ragged/ragged.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/caller_options.h"
#include "base/used.h"
#include "base/str.h"
#include "exec/profile.h"
#include "heads/hybrid_request.h"
#include "hf/answer_logit.h"
#include "hf/attention_row.h"
#include "hub/hub.h"
#include "model/detection.h"
#include "model/engine.h"
#include "model/inner.h"
#include "model/picture_view.h"
#include "model/reader.h"
#include "model/saved.h"

/* The most idle sessions that may be asked for. */
enum { SESSIONS_MOST = 4096 };
/* When memory is short, and how often the system is asked. A look takes about 0.1 ms. */
enum { PRESSURE_PERCENT = 80 };
#define PRESSURE_PAUSE ((uint64_t)1000000000)

/* ---- opening ---- */

void pith_model_destroy(pith_model *m) {
    pith_allocator host = m->account.host;
    while (m->views) {
        pith_text_view *next = m->views->next;
        pith_text_view_free(m->views);
        pith_memory_free(m->options.allocator, m->views);
        m->views = next;
    }
    for (int i = 0; i < 2; i++) pith_picture_view_free(m->pictures[i], m->options.allocator);
    pith_detection_free(m->detection, m->options.allocator);
    pith_text_view_free(&m->text);
    pith_tokenizer_unload(m->tokenizer);
    pith_program_close(&m->program);
    pith_arena_free(&m->program_arena);
    pith_files_close(&m->files);
    pith_arena_free(&m->arena);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->view_lock);
    pthread_mutex_destroy(&m->busy.lock);
    pith_account_end(&m->account);
    pith_memory_free(&host, m);
}

static pith_status check_range(const char *name, int64_t value, int64_t min, int64_t max, pith_error *err) {
    if (value >= min && value <= max) return PITH_OK;
    return pith_fail(err, PITH_ERR_ARGUMENT, "%s is %lld; it must be from %lld to %lld", name, (long long)value,
                     (long long)min, (long long)max);
}

/* Checks what the model keeps between calls, and replaces the numbers that stand for a default or for "none". */
static pith_status complete_options(pith_open_options *o, pith_error *err) {
    PITH_TRY(check_range("pool_blocks", o->pool_blocks, -1, PITH_POOL_BLOCKS_MOST, err));
    PITH_TRY(check_range("sessions", o->sessions, -1, SESSIONS_MOST, err));
    PITH_TRY(check_range("session_idle_ms", o->session_idle_ms, 0, INT32_MAX, err));
    PITH_TRY(check_range("inter_op_threads", o->inter_op_threads, 0, 512, err));
    PITH_TRY(check_range("pressure_percent", o->pressure_percent, -1, 100, err));
    if (!o->pool_blocks) o->pool_blocks = PITH_POOL_BLOCKS;
    if (o->pool_blocks < 0) o->pool_blocks = 0;
    if (!o->pool_bytes) o->pool_bytes = PITH_POOL_BYTES;
    if (!o->sessions) o->sessions = pith_cpu_get()->threads;
    if (o->sessions < 0) o->sessions = 0;
    if (!o->pressure_percent) o->pressure_percent = PRESSURE_PERCENT;
    if (o->pressure_percent < 0) o->pressure_percent = 0;
    return PITH_OK;
}

static pith_status create_model(pith_model **model, const pith_open_options *given, pith_error *err) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(options, given, err);
    if (options.optimization < 0 || options.optimization > 3)
        return pith_fail(err, PITH_ERR_ARGUMENT, "optimization %d is not between 0 and 3", options.optimization);
    if (options.flags & PITH_OPEN_INNER && options.optimization)
        return pith_fail(err, PITH_ERR_ARGUMENT, "inner values are those of the graph as written: optimization 0");
    if (options.precision < PITH_PRECISION_AUTO || options.precision > PITH_PRECISION_BF16)
        return pith_fail(err, PITH_ERR_ARGUMENT, "precision %d is unknown", options.precision);
    if (options.precision > PITH_PRECISION_F32 && options.optimization < 2)
        return pith_fail(err, PITH_ERR_ARGUMENT, "precision int8 and bf16 need optimization 2 or 3");
    PITH_TRY(complete_options(&options, err));
    const pith_allocator *allocator = options.allocator ? options.allocator : &pith_allocator_default;
    pith_model *m = pith_memory_alloc(allocator, sizeof *m, 64);
    if (!m) return pith_fail_memory(err, sizeof *m);
    *m = (pith_model){ .options = options };
    pith_account_init(&m->account, allocator, options.memory_limit, PITH_MEMORY_COST(sizeof *m, 64));
    pthread_mutex_t *locks[] = { &m->lock, &m->view_lock, &m->busy.lock };
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
        if (!pthread_mutex_init(locks[i], NULL)) continue;
        while (i) pthread_mutex_destroy(locks[--i]);
        pith_memory_free(allocator, m);
        return pith_fail_memory(err, sizeof m->lock);
    }
    if (options.log) m->log = *options.log;
    m->options.allocator = &m->account.allocator;
    m->options.log = options.log ? &m->log : NULL;
    pith_arena_init(&m->arena, &m->account.allocator);
    pith_arena_init(&m->text.arena, &m->account.allocator);
    pith_arena_init(&m->program_arena, &m->account.allocator);
    m->files = (pith_files){ .arena = &m->arena, .copy = options.flags & PITH_OPEN_COPY };
    m->report.arena = &m->arena;
    *model = m;
    return PITH_OK;
}

/* Faults of the modules are kept for pith_embed, unless they are the caller's. */
static pith_status open_modules(pith_model *m, pith_error *err) {
    const pith_modules_source source = { m->dir.data, m->options.route, &m->files, m->options.log,
                                         &m->account.allocator };
    pith_error fault = PITH_ERROR_INIT;
    m->modules_read = true;
    pith_status status = pith_modules_read(&m->modules, &source, &m->arena, &fault);
    if (!status) return PITH_OK;
    if (status == PITH_ERR_MEMORY || status == PITH_ERR_ARGUMENT) return pith_fail(err, status, "%s", fault.message);
    m->no_text = fault;
    m->modules = (pith_modules){ .folder = PITH_STR("") };
    return PITH_OK;
}

static pith_status open_path(pith_model *m, const char *name, pith_error *err) {
    PITH_TRY(pith_hub_find(&m->path, name, &m->arena, err));
    if (!pith_dir_exists(m->path.data) && m->options.model_file)
        return pith_fail(err, PITH_ERR_ARGUMENT,
                         "%s: model_file (--model-file) names a file of a directory, but this is a file", name);
    if (!pith_dir_exists(m->path.data)) return pith_readers_file(m, m->path, err);
    m->dir = m->path;
    PITH_TRY(open_modules(m, err));
    return pith_readers_directory(m, err);
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

static pith_status make_ragged(pith_model *m, pith_error *err) {
    return pith_text_view_make_ragged(&m->text, m, m->options.flags & PITH_OPEN_DESCRIBE ? &m->report : NULL, err);
}

pith_status pith_model_open_program(pith_program *program, const pith_model *m, pith_graph *graph, pith_arena *arena,
                                    pith_error *err) {
    graph->devices = &m->devices;
    const pith_program_source source = pith_model_program_source(m, graph);
    return pith_program_open(program, m->runtime, &source, arena, err);
}

pith_status pith_model_program(const pith_program **program, const pith_model *model, pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model; /* the lazily made part is behind the lock */
    pith_status status = PITH_OK;
    pthread_mutex_lock(&m->lock);
    if (!m->program.runtime) {
        status = pith_model_open_program(&m->program, m, m->graph, &m->program_arena, err);
        if (status) pith_arena_free(&m->program_arena);
    }
    *program = &m->program;
    pthread_mutex_unlock(&m->lock);
    return status;
}

pith_status pith_model_plan(const pith_plan **plan, const pith_model *model, pith_error *err) {
    const pith_program *program;
    PITH_TRY(pith_model_program(&program, model, err));
    *plan = pith_program_plan(program);
    return *plan ? PITH_OK
                 : pith_fail(err, PITH_ERR_UNSUPPORTED,
                             "the model is run by the runtime '%s'; this needs the builtin one", model->runtime->name);
}

pith_executor_options pith_model_executor_options(const pith_model *m) {
    return (pith_executor_options){ .allocator = m->options.allocator,
                                    .log = m->options.log,
                                    .tight = m->options.memory_limit > 0,
                                    .loop_limit = m->options.loop_limit,
                                    .separate = m->options.flags & PITH_OPEN_NO_ARENA,
                                    .fresh_plans = m->options.flags & PITH_OPEN_NO_PLAN_REUSE,
                                    .branches = m->options.inter_op_threads,
                                    .tails = m->options.optimization > 0,
                                    .counters = (pith_counters *)&m->account.counters };
}

/* Tokenizer, modules, ragged graph. */
static pith_status open_tokenizer(pith_model *m, pith_error *err) {
    if (m->compiled.writer) return pith_compiled_tokenizer(&m->tokenizer, &m->compiled, &m->options, &m->arena, err);
    if (!m->dir.data) return pith_fail(err, PITH_ERR_NOT_FOUND, "the model has no directory with a tokenizer");
    pith_str dir = m->dir;
    if (m->modules.folder.size) PITH_TRY(pith_path_join(&dir, &m->arena, m->dir.data, m->modules.folder, err));
    PITH_TRY((m->modules.lower_case ? pith_tokenizer_load_lower : pith_tokenizer_load)(&m->tokenizer, dir.data,
                                                                                       &m->options, &m->arena, err));
    PITH_TRY(pith_hf_labels_read(&m->labels, dir.data, &m->account.allocator, &m->arena, err));
    PITH_TRY(pith_hf_late_read(&m->late, &m->modules.late, m->dir.data, &m->account.allocator, &m->arena, err));
    pith_hybrid_kind kind =
        pith_graph_find_output(m->graph, PITH_BM42_OUTPUT) >= 0 ? PITH_HYBRID_BM42 : PITH_HYBRID_NONE;
    PITH_TRY(pith_hybrid_read(&m->hybrid, kind, m->dir.data, &m->files, &m->arena, err));
    return make_ragged(m, err);
}

/* The path relative to the directory, if it lies in it. */
static pith_str within_directory(const pith_model *m, pith_str path) {
    const size_t n = m->dir.size;
    bool within = path.size > n + 1 && !memcmp(path.data, m->dir.data, n) && path.data[n] == '/';
    return within ? (pith_str){ path.data + n + 1, path.size - n - 1 } : path;
}

/* Notes what was decided about texts when all is known. */
static pith_status note_text(pith_model *m, pith_error *err) {
    pith_modules *s = &m->modules;
    const int32_t tokens = pith_tokenizer_max_length(m->tokenizer),
                  length = pith_encoder_max_length(m->text.encoder, 0);
    const bool cut = s->positions && length == s->positions && length != s->max_length && length != tokens;
    const char *file_name = cut ? "config.json" : tokens ? "tokenizer_config.json" : "";
    const char *slash = s->folder.size && file_name[0] ? "/" : "";
    pith_str from = s->max_length_file;
    if (!s->max_length || cut)
        from = pith_arena_printf(&m->arena, "%s%s%s", file_name[0] ? s->folder.data : "", slash, file_name);
    pith_str value = length ? pith_arena_printf(&m->arena, "%d tokens", (int)length) : PITH_STR("none");
    pith_str file = pith_tokenizer_file(m->tokenizer);
    if (!value.data || !from.data) return pith_fail_memory(err, 0);
    PITH_TRY(pith_modules_note(s, "max length", value, length ? from : PITH_STR(""), &m->arena, err));
    if (!s->normalize) PITH_TRY(pith_modules_note(s, "normalize", PITH_STR("no"), PITH_STR(""), &m->arena, err));
    if (!file.data) return PITH_OK;
    return pith_modules_note(s, "tokenizer", within_directory(m, file), PITH_STR(""), &m->arena, err);
}

/* A compiled model may have come with the reason why it does not embed. */
static pith_status open_text(pith_model *m, pith_error *err) {
    if (m->no_text.code) return m->no_text.code;
    if (m->options.flags & PITH_OPEN_INNER)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "the model was opened with its inner values as outputs");
    if (m->graph->input_count == 1 && pith_model_is_pixels(m->graph->inputs[0]))
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "its input is a picture; 'pith embed --images' and pith_embed_images embed pictures");
    PITH_TRY(open_tokenizer(m, err));
    if (!m->text.output_count)
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "not a text encoder: no output has one vector per text or per token");
    PITH_TRY(pith_text_view_make_encoder(&m->text, m, err));
    return m->compiled.writer ? PITH_OK : note_text(m, err);
}

static pith_status optimize(pith_model *m, pith_error *err) {
    pith_opt o = optimizer(m, err);
    return m->options.optimization ? pith_opt_run(&o, m->options.stop_after) : PITH_OK;
}

pith_status pith_model_text_output(int *output, const pith_model *m, pith_graph *graph, pith_error *err) {
    const pith_head *dense;
    PITH_TRY(pith_head_find(&dense, "dense", err));
    *output = pith_head_output(dense, graph);
    if (*output >= 0) pith_piece_used(dense);
    int attention, answer, logits;
    PITH_TRY(pith_attention_row_append(&attention, graph, PITH_BM42_OUTPUT, err));
    PITH_TRY(pith_answer_logit_append(&answer, &logits, graph, &m->modules.judge, err));
    if (*output < 0) *output = attention;
    if (*output == logits) *output = answer; /* logits of a vocabulary are no vectors; both may be -1 */
    if (!m->modules.row_step_count && attention < 0 && answer < 0) return PITH_OK;
    PITH_TRY(pith_modules_append(output, graph, &m->modules, err));
    for (pith_node *node = graph->first; node; node = node->next)
        if (!node->op) PITH_TRY(pith_op_bind_node(node, err));
    return pith_ops_infer(graph, false, err);
}

/* Also for a file that was opened by its own name, whose directory is known by now. */
static pith_status open_rows(pith_model *m, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    if (m->dir.data && !m->modules_read && !m->compiled.writer) PITH_TRY(open_modules(m, err));
    int output = -1;
    pith_status status = pith_model_text_output(&output, m, m->graph, &fault);
    m->text.outputs[0] = output > 0 ? output : 0;
    m->text.output_count = output >= 0;
    if (status == PITH_ERR_MEMORY) return pith_fail(err, status, "%s", fault.message);
    if (status) m->no_text = fault;
    return PITH_OK;
}

/* Inner values become outputs; what the file calls outputs is noted first. */
static pith_status open_inner(pith_model *m, pith_error *err) {
    if (strcmp(m->reader->name, "onnx") != 0)
        return pith_fail(err, PITH_ERR_ARGUMENT,
                         "inner values are those of an .onnx file; this model is another format");
    pith_str *names = pith_arena_array(&m->arena, m->graph->output_count, sizeof *names);
    if (!names) return pith_fail_memory(err, m->graph->output_count * sizeof *names);
    for (size_t i = 0; i < m->graph->output_count; i++) names[i] = pith_graph_output_name(m->graph, i);
    m->engine.file_names = names;
    return pith_inner_add(m->graph, err);
}

/* Operators and types, as far as Pith knows them. */
static pith_status open_operators(pith_model *m, pith_error *err) {
    const bool inner = m->options.flags & PITH_OPEN_INNER;
    m->engine.file_outputs = m->graph->output_count;
    if (inner) PITH_TRY(open_inner(m, err));
    PITH_TRY(pith_ops_bind(m->graph, err));
    PITH_TRY(pith_ops_infer(m->graph, m->options.flags & PITH_OPEN_STRICT_SHAPES, err));
    PITH_TRY(pith_ops_check_declared(m->graph, m->options.flags & PITH_OPEN_STRICT_SHAPES, err));
    if (!inner) return open_rows(m, err);
    pith_inner_settle(m->graph);
    return m->runtime->as_written ? pith_inner_file(&m->engine.inner, m, err) : PITH_OK;
}

/* What was read becomes what is run; in a compiled file it is that already. */
static pith_status open_graph(pith_model *m, pith_error *err) {
    if (m->compiled.writer && m->options.flags & PITH_OPEN_INNER)
        return pith_fail(err, PITH_ERR_ARGUMENT, "a compiled model has no inner values of the file it was made from");
    if (m->compiled.writer && m->options.input_shape_count)
        return pith_fail(err, PITH_ERR_ARGUMENT,
                         "a compiled model keeps the input shapes it was compiled with; give them when you compile it");
    pith_error fault = PITH_ERROR_INIT;
    if (m->compiled.writer) return pith_engine_choose(m, PITH_OK, &fault, err);
    if (m->options.flags & PITH_OPEN_DESCRIBE) PITH_TRY(pith_model_count_ops(m, m->graph, err));
    PITH_TRY(pith_model_fix_inputs(m, err));
    const pith_status known = open_operators(m, &fault);
    if (known && m->options.flags & PITH_OPEN_INNER) return pith_fail(err, known, "%s", fault.message);
    PITH_TRY(pith_engine_choose(m, known, &fault, err));
    PITH_TRY(pith_model_make_ports(&m->inputs, m, m->graph->inputs, m->graph->input_count, err));
    PITH_TRY(pith_model_make_ports(&m->outputs, m, m->graph->outputs, m->graph->output_count, err));
    return m->runtime->as_written ? PITH_OK : optimize(m, err);
}

/* The ragged form of a graph that does not embed, for looking at it. */
static pith_status tell_ragged(pith_model *m, pith_error *err) {
    bool told = m->text.encoder || m->compiled.writer || m->text.ragged || m->text.ragged_reason.data;
    if (told || !(m->options.flags & PITH_OPEN_DESCRIBE)) return PITH_OK;
    PITH_TRY(make_ragged(m, err));
    return pith_text_view_make_program(&m->text, m, err);
}

/* What every way of opening ends with; lane: of the profile, or NULL. */
static pith_status open_finish(pith_model *m, pith_lane *lane, pith_error *err) {
    uint64_t begin = pith_lane_now(lane);
    PITH_TRY(open_graph(m, err));
    pith_lane_phase(lane, "optimise", begin, -1);
    begin = pith_lane_now(lane);
    if (open_text(m, &m->no_text) == PITH_ERR_MEMORY) return pith_fail(err, PITH_ERR_MEMORY, "%s", m->no_text.message);
    const pith_program *program;
    pith_status status = m->text.encoder ? PITH_OK : pith_model_program(&program, m, err);
    status = pith_engine_rescue(m, status, err);
    if (!status) status = tell_ragged(m, err);
    pith_lane_phase(lane, "tokenizer and plan", begin, -1);
    return status;
}

/* What the model keeps and watches between calls begins when it is open. */
static pith_status open_upkeep(pith_model *m, pith_error *err) {
    const pith_open_options *o = &m->options;
    m->gauge.threshold = o->pressure_percent / 100.0;
    m->gauge.pause = PRESSURE_PAUSE;
    m->gauge.next = pith_clock_ns() + (o->system_root ? 0 : PRESSURE_PAUSE);
    if (o->system_root) {
        m->gauge.root = pith_arena_str(&m->arena, pith_str_of(o->system_root)).data;
        if (!m->gauge.root) return pith_fail_memory(err, strlen(o->system_root));
        m->gauge.pause = 0;
    }
    return pith_account_begin_pool(&m->account, (size_t)o->pool_blocks, o->pool_bytes, err);
}

pith_status pith_model_open_limited(pith_model **model, const char *path, pith_str bytes,
                                    const pith_open_options *options, const pith_opt_limits *limits, pith_error *err) {
    pith_model *m = NULL;
    PITH_TRY(create_model(&m, options, err));
    m->limits = limits;
    m->no_ragged = pith_opt_without(limits, "ragged");
    pith_lane *lane = pith_profile_lane(m->options.profile);
    uint64_t begin = pith_lane_now(lane);
    pith_status status =
        pith_device_list_read(&m->devices, m->options.devices, &m->account.counters, &m->arena, m->options.log, err);
    if (!status) status = pith_engine_begin(m, err);
    if (!status) status = path ? open_path(m, path, err) : pith_readers_memory(m, bytes, err);
    pith_lane_phase(lane, "read", begin, -1);
    if (!status) status = open_finish(m, lane, err);
    if (!status) status = open_upkeep(m, err);
    status = pith_account_settle(&m->account, status, err);
    pith_lane_phase(lane, "open", begin, -1);
    m->limits = NULL;
    m->options.stop_after = NULL;
    m->options.profile = NULL;
    m->options.input_shapes = NULL;
    m->options.runtime = NULL;
    m->options.devices = NULL;
    m->options.runtime_options = NULL;
    m->options.model_file = m->options.route = m->options.system_root = NULL;
    if (status)
        pith_model_destroy(m);
    else
        *model = m;
    return status;
}

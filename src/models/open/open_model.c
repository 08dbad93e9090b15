/* open_model.c - opens a model; each stage is one line.
 *
 * A model keeps at most two programs. A text encoder runs that of the ragged graph, made at open.
 * Sessions run that of the graph itself. It is made at open if there is no ragged graph, otherwise
 * when the first session asks for it.
 *
 * The parts that make a model embed text (tokenizer, modules, encoder inputs) may be missing or
 * unsupported without making the graph useless. The reason is kept and given by pith_embed. Only a
 * lack of memory there fails the opening.
 *
 * What not every program needs is reached through pointers, so that a program that opens compiled
 * models in memory links none of it: paths (open_path.c), formats that need passes (open_graph.c),
 * texts (open_texts.c). */
#include "models/open/open_model.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/os/clock.h"
#include "base/os/threads.h"
#include "base/str.h"
#include "engine/exec/profile.h"
#include "engine/ops/custom/custom.h"
#include "models/describe/compare_graphs.h"
#include "models/open/chosen_runtime.h"
#include "models/open/reader.h"

/* What progress counts: reading, passes, texts, the plan. */
enum { OPEN_STEPS = 4 };
/* The most idle sessions that may be asked for. */
enum { SESSIONS_MOST = 4096 };
/* When memory is short, and how often the system is asked. A look takes about 0.1 ms. */
enum { PRESSURE_PERCENT = 80 };
#define PRESSURE_PAUSE ((uint64_t)1000000000)

/* ---- opening ---- */

/* In the opposite order of making: what has threads and runners first, the account that counts all
 * memory last. */
void pith__model_destroy(pith_model *m) {
    pith_allocator host = m->account.host;
    pith__kept_sessions *kept = atomic_load_explicit(&m->kept_sessions, memory_order_acquire);
    if (kept) kept->close(kept, m);
    if (m->close_pictures) m->close_pictures(m);
    if (m->close_detection) m->close_detection(m);
    if (m->close_info) m->close_info(m);
    if (m->texts) m->texts->close(m);
    pith__program_close(&m->program);
    pith__arena_free(&m->program_arena);
    if (m->close_files) m->close_files(m);
    pith__held *held = m->account.files;
    const pith_operator_set *operators = m->options.operators;
    pith__arena_free(&m->arena);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->view_lock);
    pthread_mutex_destroy(&m->busy.lock);
    pith__account_end(&m->account);
    pith__memory_free(&host, m);
    if (held) held->release(held);
    pith__custom_set_release(operators);
}

void pith__model_keep(const pith_model *model) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
}

/* What other threads did with the model before they gave up their references has happened when it
 * is destroyed. */
void pith__model_release(const pith_model *model) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    if (atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) == 1)
        pith__model_destroy(m);
}

static pith_status check_range(const char *name, int64_t value, int64_t min, int64_t max,
                               pith_error *err) {
    if (value >= min && value <= max) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "%s is %lld; it must be from %lld to %lld", name,
                      (long long)value, (long long)min, (long long)max);
}

/* Checks what the model keeps between calls, and replaces the numbers that stand for a default or
 * for "none". */
static pith_status complete_options(pith_open_options *o, pith_error *err) {
    if (!o->optimization) o->optimization = 3;
    if (o->optimization < PITH_OPTIMIZATION_NONE || o->optimization > 3)
        return pith__fail(err, PITH_ERR_ARGUMENT, "optimization is %d; it must be from -1 to 3",
                          o->optimization);
    if (o->flags & PITH_OPEN_INNER && o->optimization > 0)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "PITH_OPEN_INNER needs the graph as it is written: optimization "
                          "PITH_OPTIMIZATION_NONE");
    if (o->precision < PITH_PRECISION_AUTO || o->precision > PITH_PRECISION_BF16)
        return pith__fail(err, PITH_ERR_ARGUMENT, "precision %d is unknown", o->precision);
    if (o->precision > PITH_PRECISION_F32 && o->optimization < 2)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "precision int8 and bf16 need optimization 2 or 3");
    PITH_TRY(pith__threads_check(o->call.threads, err));
    PITH_TRY(check_range("pool_blocks", o->pool_blocks, -1, PITH_POOL_BLOCKS_MOST, err));
    PITH_TRY(check_range("sessions", o->sessions, -1, SESSIONS_MOST, err));
    PITH_TRY(check_range("session_idle_ms", o->session_idle_ms, 0, INT32_MAX, err));
    PITH_TRY(check_range("inter_op_threads", o->inter_op_threads, 0, 512, err));
    PITH_TRY(check_range("pressure_percent", o->pressure_percent, -1, 100, err));
    if (o->inter_op_threads > 1 && !pith__part_find("branches"))
        PITH_TRY(pith__piece_check_for("parts", PITH_STR("branches"), "inter_op_threads", err));
    if (!o->pool_blocks) o->pool_blocks = PITH_POOL_BLOCKS;
    if (o->pool_blocks < 0) o->pool_blocks = 0;
    if (!o->pool_bytes) o->pool_bytes = PITH_POOL_BYTES;
    if (!o->sessions) o->sessions = pith__threads_count(0);
    if (o->sessions < 0) o->sessions = 0;
    if (!o->pressure_percent) o->pressure_percent = PRESSURE_PERCENT;
    if (o->pressure_percent < 0) o->pressure_percent = 0;
    return PITH_OK;
}

/* A model without its contents. Options that exclude each other are told here, before a file is
 * touched. */
static pith_status create_model(pith_model **model, const pith_open_options *given,
                                pith__held *held, pith_error *err) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(options, given, err);
    PITH_TRY(complete_options(&options, err));
    const pith_allocator *allocator =
        options.call.allocator ? options.call.allocator : &pith__allocator_default;
    pith_model *m = pith__memory_alloc(allocator, sizeof *m, 64);
    if (!m) return pith__fail_memory(err, sizeof *m);
    *m = (pith_model){ .options = options };
    atomic_init(&m->references, 1);
    pith__account_init(&m->account, allocator, options.memory_limit,
                       PITH_MEMORY_COST(sizeof *m, 64));
    pthread_mutex_t *locks[] = { &m->lock, &m->view_lock, &m->busy.lock };
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
        if (!pthread_mutex_init(locks[i], NULL)) continue;
        while (i) pthread_mutex_destroy(locks[--i]);
        pith__memory_free(allocator, m);
        return pith__fail_memory(err, sizeof m->lock);
    }
    if (held) m->account.files = held;
    if (m->account.files) m->account.files->keep(m->account.files);
    pith__custom_set_keep(m->options.operators);
    if (options.call.log) m->log = *options.call.log;
    m->options.call.allocator = &m->account.allocator;
    m->options.call.log = options.call.log ? &m->log : NULL;
    pith__arena_init(&m->arena, &m->account.allocator);
    pith__arena_init(&m->text.arena, &m->account.allocator);
    pith__arena_init(&m->program_arena, &m->account.allocator);
    m->files = (pith__files){ .arena = &m->arena, .copy = options.flags & PITH_OPEN_COPY };
    m->report.arena = &m->arena;
    m->texts = pith__part_find("texts");
    m->text_modules = m->texts ? pith__part_find("text_modules") : NULL;
    *model = m;
    return PITH_OK;
}

pith_status pith__model_open_program(pith__program *program, const pith_model *m,
                                     pith__graph *graph, pith__arena *arena, pith_error *err) {
    graph->devices = &m->devices;
    const pith__program_source source = pith__model_program_source(m, graph);
    return pith__program_open(program, m->runtime, &source, arena, err);
}

/* The graph's `making` is read wherever something is made of the graph, so it changes behind the
 * lock only. While the model is opened nobody else knows it. */
pith_status pith__model_begin_making(pith__making *before, const pith_model *model,
                                     pith__stop *stop, pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    PITH_TRY(pith__threads_lock(&m->lock, stop, err));
    *before = m->making;
    m->making.stop = stop;
    return PITH_OK;
}

void pith__model_end_making(const pith_model *model, pith__making before) {
    pith_model *m = (pith_model *)(uintptr_t)model;
    m->making = before;
    pthread_mutex_unlock(&m->lock);
}

/* Made on first use: a model that only embeds text runs the program of its packed graph, and never
 * this one. */
pith_status pith__model_program(const pith__program **program, const pith_model *model,
                                pith__stop *stop, pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model; /* the lazily made part is behind the lock */
    pith_status status = PITH_OK;
    pith__making before;
    PITH_TRY(pith__model_begin_making(&before, m, stop, err));
    if (!m->program.runtime) {
        status = pith__model_open_program(&m->program, m, m->graph, &m->program_arena, err);
        if (status) pith__arena_free(&m->program_arena);
    }
    *program = &m->program;
    pith__model_end_making(m, before);
    return status;
}

pith_status pith__model_plan(const pith__plan **plan, const pith_model *model, pith__stop *stop,
                             pith_error *err) {
    const pith__program *program;
    PITH_TRY(pith__model_program(&program, model, stop, err));
    *plan = pith__program_plan(program);
    return *plan ? PITH_OK
                 : pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "the model is run by the runtime '%s'; this needs the builtin one",
                              model->runtime->name);
}

/* A model with a memory limit runs tight: it gives memory back between runs. */
pith__executor_options pith__model_executor_options(const pith_model *m) {
    return (pith__executor_options){ .allocator = m->options.call.allocator,
                                     .log = m->options.call.log,
                                     .tight = m->options.memory_limit > 0,
                                     .loop_limit = m->options.loop_limit,
                                     .separate = m->options.flags & PITH_OPEN_NO_ARENA,
                                     .fresh_plans = m->options.flags & PITH_OPEN_NO_PLAN_REUSE,
                                     .branches = m->options.inter_op_threads,
                                     .tails = pith__model_level(m) > 0,
                                     .counters = (pith__counters *)&m->account.counters };
}

pith__opt pith__model_optimizer(const pith_model *m, pith__graph *graph, pith_error *err) {
    return (pith__opt){ .graph = graph,
                        .level = pith__model_level(m),
                        .precision = m->options.precision,
                        .allocator = m->options.call.allocator,
                        .files = &m->files,
                        .limits = m->limits,
                        .err = err };
}

/* Without the part that makes texts of it, the graph is of use all the same. */
static pith_status open_text(pith_model *m) {
    if (m->texts) {
        const pith_status opened = m->texts->open(m, &m->no_text);
        if (!opened) pith__part_used("texts");
        return opened;
    }
    const pith_status status = pith__piece_check("parts", PITH_STR("texts"), &m->no_text);
    return status ? status
                  : pith__fail(&m->no_text, PITH_ERR_UNSUPPORTED, "this build is without texts");
}

/* What every way of opening ends with; lane: of the profile, or NULL. */
static pith_status open_finish(pith_model *m, pith__lane *lane, pith_error *err) {
    uint64_t begin = pith__lane_now(lane);
    pith__progress_tell(m->progress, "steps", 1, OPEN_STEPS);
    PITH_TRY(m->reader->stages->finish(m, err));
    pith__progress_tell(m->progress, "steps", 2, OPEN_STEPS);
    PITH_TRY(pith__stop_check(m->making.stop, err));
    pith__lane_phase(lane, "optimise", begin, -1);
    begin = pith__lane_now(lane);
    const pith_status texts = open_text(m);
    if (texts == PITH_ERR_MEMORY || pith__status_stops(texts))
        return pith__fail(err, texts, "%s", m->no_text.message);
    pith__progress_tell(m->progress, "steps", 3, OPEN_STEPS);
    const pith__program *program;
    pith_status status =
        m->text.encoder ? PITH_OK : pith__model_program(&program, m, m->making.stop, err);
    status = pith__chosen_runtime_rescue(m, status, err);
    if (!status && m->text_modules) status = m->text_modules->tell(m, err);
    pith__lane_phase(lane, "tokenizer and plan", begin, -1);
    return status;
}

/* What the model keeps and watches between calls begins when it is open. */
static pith_status open_upkeep(pith_model *m, pith_error *err) {
    const pith_open_options *o = &m->options;
    m->gauge.threshold = o->pressure_percent / 100.0;
    m->gauge.pause = PRESSURE_PAUSE;
    m->gauge.next = pith__clock_ns() + (o->system_root ? 0 : PRESSURE_PAUSE);
    if (o->system_root) {
        m->gauge.root = pith__arena_str(&m->arena, pith__str_of(o->system_root)).data;
        if (!m->gauge.root) return pith__fail_memory(err, strlen(o->system_root));
        m->gauge.pause = 0;
    }
    return pith__account_begin_pool(&m->account, (size_t)o->pool_blocks, o->pool_bytes, err);
}

static pith_status open_memory(pith_model *m, const pith__origin *origin, pith_error *err) {
    return pith__readers_memory(m, origin->bytes, err);
}

pith__origin pith__origin_memory(pith_str bytes) {
    return (pith__origin){ .open = open_memory, .bytes = bytes };
}

/* The call that opens the model is over: log and allocator stay. */
static void open_forget_call(pith_model *m) {
    const pith_call own = { .size = m->options.call.size,
                            .log = m->options.call.log,
                            .allocator = m->options.call.allocator };
    m->options.call = own;
    m->making = (pith__making){ .stop = NULL };
    m->progress = NULL;
}

/* Who could not read on because the call must end may have told another reason, such as a file that
 * is cut off. */
static pith_status open_settle(pith_model *m, pith_status status, pith__stop *stop,
                               pith_error *err) {
    m->account.stop = NULL;
    if (status && pith__stop_is_known(stop)) return pith__stop_check(stop, err);
    return pith__account_settle(&m->account, status, err);
}

/* The order of opening: devices and the runtime that was asked for, the file, the graph's passes,
 * texts, upkeep. Options that point into the caller's memory are dropped at the end. */
pith_status pith__model_open_stoppable(pith_model **model, const pith__origin *origin,
                                       const pith_open_options *options,
                                       const pith__opt_limits *limits, pith__stop *stop,
                                       pith_error *err) {
    pith_model *m = NULL;
    pith__progress told;
    PITH_TRY(create_model(&m, options, origin->held, err));
    m->limits = limits;
    m->making = (pith__making){ .stop = stop, .threads = m->options.call.threads };
    m->account.stop = stop;
    m->progress = pith__progress_begin(&told, &m->options.call);
    pith__lane *lane = pith__profile_lane(m->options.call.profile);
    uint64_t begin = pith__lane_now(lane);
    pith_status status = pith__stop_check(stop, err);
    if (!status)
        status = pith__device_list_read(&m->devices, m->options.devices, &m->account.counters,
                                        &m->arena, m->options.call.log, err);
    m->devices.exact = m->options.precision == PITH_PRECISION_F32;
    if (!status) status = pith__chosen_runtime_begin(m, err);
    if (!status) status = origin->open(m, origin, err);
    pith__lane_phase(lane, "read", begin, -1);
    if (!status) status = open_finish(m, lane, err);
    if (!status) status = open_upkeep(m, err);
    status = open_settle(m, status, stop, err);
    if (!status) pith__progress_tell(m->progress, "steps", OPEN_STEPS, OPEN_STEPS);
    pith__lane_phase(lane, "open", begin, -1);
    m->limits = NULL;
    open_forget_call(m);
    m->options.stop_after = NULL;
    m->options.input_shapes = NULL;
    m->options.runtime = NULL;
    m->options.devices = NULL;
    m->options.runtime_options = NULL;
    m->options.model_file = m->options.route = m->options.system_root = NULL;
    if (status)
        pith__model_destroy(m);
    else
        *model = m;
    return status;
}

pith_status pith__model_identify(
    pith_model **model, const pith__origin *origin, const pith_open_options *options,
    pith_status (*identify)(pith_model *model, const struct pith__source *source, pith_error *err),
    pith__stop *stop, pith_error *err) {
    pith_model *m = NULL;
    PITH_TRY(create_model(&m, options, origin->held, err));
    m->identify = identify;
    m->making = (pith__making){ .stop = stop, .threads = m->options.call.threads };
    m->account.stop = stop;
    pith_status status = pith__stop_check(stop, err);
    if (!status) status = origin->open(m, origin, err);
    status = open_settle(m, status, stop, err);
    if (status)
        pith__model_destroy(m);
    else
        *model = m;
    return status;
}

pith_status pith__model_open_limited(pith_model **model, const pith__origin *origin,
                                     const pith_open_options *options,
                                     const pith__opt_limits *limits, pith_error *err) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    return pith__model_open_stoppable(model, origin, &o, limits, stop, err);
}

/* The check of passes is a part of its own, since it opens the model several times. */
pith_status pith__model_make(pith_model **model, pith__origin origin,
                             const pith_open_options *options, pith_error *err) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    if (!(o.flags & PITH_OPEN_CHECK))
        return pith__model_open_limited(model, &origin, options, NULL, err);
    const pith__compare_graphs_part *checks = pith__part_find("checks");
    pith__part_used("checks");
    if (checks) return checks->open(model, &origin, options, err);
    PITH_TRY(pith__piece_check("parts", PITH_STR("checks"), err));
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "this build is without the check of passes");
}

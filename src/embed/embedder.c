/* embedder.c - texts to vectors through a plan.
 *
 * A call goes through its texts in windows. In a window all texts are tokenised in parallel, the rows are cut into
 * chunks of the token budget in the order they came, and the chunks are run: side by side, one executor and one thread
 * each, when there are enough of them, otherwise one after the other with all threads inside. Each vector is written to
 * its text's place. Nothing that is chosen here (windows, chunks, threads) can change a bit of a vector, so a window
 * that meets the memory limit is run again with less at once.
 * A worker keeps the failure with the lowest text index it met; the lowest of all is reported. */
#include "embed/embedder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/pool.h"
#include "base/str.h"
#include "embed/feed.h"
#include "embed/pooling.h"
#include "exec/profile.h"
#include "kernels/norm.h"

/* Memory of a call beside activations: ids of this many texts or of this much text at a time. Larger windows fill
 * chunks and threads better, up to a point. */
#define WINDOW_TEXTS ((size_t)1024)
#define WINDOW_BYTES ((size_t)2 << 20)
/* Texts a thread tokenises at once: at most so many, and at least so many parts a thread where there are few. */
#define TEXTS_PER_PART ((size_t)8)
#define PARTS_PER_THREAD ((size_t)4)
/* Fewer tokens a thread are better run by all threads together: each chunk reads all the weights. */
#define CHUNK_TOKENS_MIN 128
/* By default the widest rows of all tokens of a chunk (between the products of the feed-forward part, as a rule) fill
 * L2 one and a half times, within these bounds: larger chunks send them through memory, smaller ones read the weights
 * too often. */
#define CHUNK_TOKENS_MAX 512
/* Threads that run one of a call's last chunks: those who find none left help with what others still run. More than two
 * would cut its steps too finely for the one who may stay alone with it. */
#define LAST_CHUNK_THREADS 2
/* More than the thread pool has. */
#define THREADS_MAX 512
/* What it costs to have a byte of a buffer again: pages are mapped and cleared at about 4 GB/s. A call gives its
 * buffers back if that is below a five-hundredth of the time it took. */
#define SECONDS_PER_BYTE 0.25e-9
#define PRICE_SHARE 0.002

struct pith_embedder {
    pith_embedder_parts parts;
    pith_arena arena;
    pith_feed feed;
    bool pooled;   /* it holds a row a text, not a row a token */
    int64_t width; /* of its rows */
    int64_t chunk_tokens;
    pith_row_f32_fn *normalize;
    pith_trace_fn *trace;
    void *trace_context;
    pthread_mutex_t lock; /* of what follows */
    pith_executor **idle;
    size_t idle_count, idle_limit;
};

/* ---- what the graph offers ---- */

static bool usable(const pith_value *v) {
    return pith_dtype_is_float(v->type.dtype) && (v->type.rank == 2 || v->type.rank == 3);
}

int pith_embedder_output(const pith_graph *graph) {
    static const char *const wanted[] = { "sentence_embedding", "last_hidden_state", "token_embeddings" };
    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++)
        for (size_t i = 0; i < graph->output_count; i++)
            if (pith_str_is(graph->outputs[i]->name, wanted[n]) && usable(graph->outputs[i])) return (int)i;
    for (size_t i = 0; i < graph->output_count; i++)
        if (usable(graph->outputs[i])) return (int)i;
    return -1;
}

static pith_status find_output(pith_embedder *e, pith_error *err) {
    const pith_graph *graph = e->parts.plan->graph;
    if (e->parts.output < 0)
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "the model is no text encoder: no output is a vector a text or a token");
    const pith_value *out = graph->outputs[e->parts.output];
    const pith_type *type = &out->type;
    if (type->dtype != PITH_F32 && type->dtype != PITH_F16 && type->dtype != PITH_BF16)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "output '" PITH_STR_FMT "' is %s", PITH_STR_ARG(out->name),
                         pith_dtype_name(type->dtype));
    e->width = type->dims[type->rank - 1];
    if (!pith_dim_known(e->width) || e->width <= 0 || e->width > INT32_MAX)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "the width of output '" PITH_STR_FMT "' is not known",
                         PITH_STR_ARG(out->name));
    e->pooled = type->rank == 2;
    for (size_t i = 0; e->parts.ragged && i < graph->input_count; i++)
        if (pith_str_is(graph->inputs[i]->name, "input_ids"))
            e->pooled = !pith_dim_equal(graph->inputs[i]->type.dims[0], type->dims[0]);
    return PITH_OK;
}

/* The token budget that L2 asks for. */
static int64_t choose_chunk(const pith_graph *graph) {
    pith_dim tokens = PITH_DIM_UNKNOWN;
    int64_t widest = 1;
    for (size_t i = 0; i < graph->input_count; i++)
        if (pith_str_is(graph->inputs[i]->name, "input_ids")) tokens = graph->inputs[i]->type.dims[0];
    for (size_t i = 0; i < graph->value_count; i++) {
        const pith_type *type = &graph->values[i]->type;
        size_t row;
        if (graph->values[i]->kind != PITH_VALUE_NODE || type->rank < 2 || !pith_dim_equal(type->dims[0], tokens))
            continue;
        bool known = true;
        for (int d = 1; d < type->rank; d++) known = known && pith_dim_known(type->dims[d]);
        if (!known || !pith_dtype_bytes(type->dtype, pith_dims_count(type->dims + 1, type->rank - 1), &row)) continue;
        if (row > (size_t)widest) widest = row < INT32_MAX ? (int64_t)row : INT32_MAX;
    }
    int64_t fitting = (int64_t)pith_cpu_get()->l2 * 3 / 2 / widest;
    return fitting < CHUNK_TOKENS_MIN ? CHUNK_TOKENS_MIN : fitting > CHUNK_TOKENS_MAX ? CHUNK_TOKENS_MAX : fitting;
}

pith_status pith_embedder_create(pith_embedder **embedder, const pith_embedder_parts *parts, pith_error *err) {
    pith_arena arena;
    pith_arena_init(&arena, parts->executor.allocator);
    pith_embedder *e = pith_arena_array(&arena, 1, sizeof *e);
    if (!e) return pith_fail_memory(err, sizeof *e);
    e->parts = *parts;
    e->arena = arena;
    e->idle_limit = (size_t)pith_cpu_get()->threads;
    e->chunk_tokens = choose_chunk(parts->plan->graph);
    e->normalize = PITH_KERNEL_FIND(pith_row_f32_fn, "l2_normalize", PITH_F32, parts->plan->isa);
    pith_status status = PITH_OK;
    if (!e->normalize)
        status = pith_fail(err, PITH_ERR_UNSUPPORTED, "this build has no l2_normalize kernel for float32");
    if (!status) status = find_output(e, err);
    if (!status)
        status =
            pith_feed_init(&e->feed, parts->plan->graph, parts->ragged, parts->modules->pad_token_id, &e->arena, err);
    if (!status) {
        e->idle = pith_arena_array(&e->arena, e->idle_limit, sizeof *e->idle);
        if (!e->idle) status = pith_fail_memory(err, e->idle_limit * sizeof *e->idle);
    }
    if (!status && pthread_mutex_init(&e->lock, NULL)) status = pith_fail_memory(err, sizeof e->lock);
    if (status) {
        arena = e->arena;
        pith_arena_free(&arena);
        return status;
    }
    *embedder = e;
    return PITH_OK;
}

void pith_embedder_trim(pith_embedder *e) {
    pthread_mutex_lock(&e->lock);
    while (e->idle_count) pith_executor_destroy(e->idle[--e->idle_count]);
    pthread_mutex_unlock(&e->lock);
}

void pith_embedder_trace(pith_embedder *e, pith_trace_fn *trace, void *context) {
    e->trace = trace;
    e->trace_context = context;
}

void pith_embedder_destroy(pith_embedder *e) {
    if (!e) return;
    pith_embedder_trim(e);
    pthread_mutex_destroy(&e->lock);
    pith_arena arena = e->arena;
    pith_arena_free(&arena);
}

/* ---- options ---- */

static uint32_t pooling_of(const pith_embedder *e, const pith_embed_options *options) {
    switch (options->pooling) {
    case PITH_POOLING_CLS: return PITH_POOL_CLS;
    case PITH_POOLING_MEAN: return PITH_POOL_MEAN;
    case PITH_POOLING_MAX: return PITH_POOL_MAX;
    case PITH_POOLING_LAST: return PITH_POOL_LAST;
    default: return e->parts.modules->pooling;
    }
}

static int64_t full_dim(const pith_embedder *e, const pith_embed_options *options) {
    return e->pooled ? e->width : e->width * pith_pool_parts(pooling_of(e, options));
}

size_t pith_embedder_dim(const pith_embedder *e, const pith_embed_options *options) {
    int64_t full = full_dim(e, options);
    if (options->dim < 0 || options->dim > full) return 0;
    return (size_t)(options->dim ? options->dim : full);
}

int32_t pith_embedder_max_length(const pith_embedder *e, const pith_embed_options *options) {
    int32_t length =
        pith_modules_max_length(e->parts.modules, options->max_length, pith_tokenizer_max_length(e->parts.tokenizer));
    int64_t fixed = e->feed.fixed_length;
    return fixed && (!length || length > fixed) ? (int32_t)fixed : length;
}

static pith_status check_options(const pith_embedder *e, const pith_embed_options *o, pith_error *err) {
    if (o->threads < 0 || o->max_length < 0 || o->batch_tokens < 0)
        return pith_fail(err, PITH_ERR_ARGUMENT, "threads, max_length and batch_tokens must not be negative");
    if (o->pooling < PITH_POOLING_MODEL || o->pooling > PITH_POOLING_LAST)
        return pith_fail(err, PITH_ERR_ARGUMENT, "pooling %d is none of PITH_POOLING_*", o->pooling);
    if (o->pooling != PITH_POOLING_MODEL && e->pooled)
        return pith_fail(err, PITH_ERR_ARGUMENT, "the model's graph pools by itself: pooling cannot be chosen");
    if (!pith_embedder_dim(e, o))
        return pith_fail(err, PITH_ERR_ARGUMENT, "dim %d is not between 1 and the model's %lld", o->dim,
                         (long long)full_dim(e, o));
    return PITH_OK;
}

static pith_status find_prompt(pith_str *prompt, const pith_modules *m, const char *name, pith_error *err) {
    pith_str wanted = name ? pith_str_of(name) : m->default_prompt;
    *prompt = PITH_STR("");
    if (!wanted.size) return PITH_OK;
    size_t i = 0;
    while (i < m->prompt_count && !pith_str_eq(m->prompts[i].name, wanted)) i++;
    if (i == m->prompt_count) {
        char known[300] = "";
        for (size_t p = 0, used = 0; p < m->prompt_count && used + m->prompts[p].name.size + 3 < sizeof known; p++) {
            memcpy(known + used, p ? ", " : "", p ? 2 : 0);
            used += p ? 2 : 0;
            memcpy(known + used, m->prompts[p].name.data, m->prompts[p].name.size);
            used += m->prompts[p].name.size;
            known[used] = 0;
        }
        return pith_fail(err, PITH_ERR_ARGUMENT, "the model has no prompt '" PITH_STR_FMT "' (it has: %s)",
                         PITH_STR_ARG(wanted), known[0] ? known : "none");
    }
    *prompt = m->prompts[i].text;
    if (prompt->size && !m->include_prompt)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "pooling that leaves the prompt out (include_prompt: false)");
    return PITH_OK;
}

/* ---- one call ---- */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct worker {
    pith_tokens tokens;
    pith_arena rows;  /* ids of the window's texts this worker tokenised */
    pith_arena chunk; /* inputs of the chunk at hand */
    pith_executor *executor;
    size_t peak_bytes;
    size_t failed_text; /* SIZE_MAX: none */
    pith_error fault;
} worker;

typedef struct chunk {
    size_t first, count; /* of call.order */
} chunk;

typedef struct call {
    pith_embedder *e;
    const pith_embed_options *options;
    pith_str prompt;
    double began;
    int64_t dim;
    int threads, inner_threads;
    int32_t max_length;
    pith_arena arena;
    worker *workers;
    /* the window */
    const pith_str *texts;
    size_t first_text, count, texts_per_part;
    float *vectors;
    pith_row *rows;
    uint8_t *truncated;
    size_t *order; /* texts that have tokens, in the order they are run */
    const pith_row **ordered;
    size_t ordered_count;
    chunk *chunks;
    size_t chunk_count;
    atomic_size_t failed; /* the first text of the window that has failed so far; SIZE_MAX: none */
    int64_t budget;       /* tokens of a chunk */
    size_t window;        /* texts of a window */
    bool one_by_one;      /* chunks are not run side by side */
} call;

/* Notes the fault in w->fault for a text of the window. */
static void fail_text(call *c, worker *w, const pith_error *fault, size_t text) {
    size_t first = atomic_load_explicit(&c->failed, memory_order_relaxed);
    while (text < first &&
           !atomic_compare_exchange_weak_explicit(&c->failed, &first, text, memory_order_relaxed, memory_order_relaxed))
        continue;
    if (text >= w->failed_text) return;
    w->failed_text = text;
    w->fault = *fault;
}

static size_t first_failed(const call *c) { return atomic_load_explicit(&c->failed, memory_order_relaxed); }

static pith_status encode_text(call *c, worker *w, size_t i, pith_error *err) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.max_length = c->max_length;
    options.no_offsets = 1;
    pith_str text = c->texts[i];
    if (c->prompt.size) {
        size_t size;
        if (pith_add_overflows(c->prompt.size, text.size, &size)) return pith_fail_memory(err, text.size);
        char *both = pith_arena_alloc(&w->rows, size);
        if (!both) return pith_fail_memory(err, size);
        memcpy(both, c->prompt.data, c->prompt.size);
        if (text.size) memcpy(both + c->prompt.size, text.data, text.size);
        text = (pith_str){ both, size };
    }
    pith_status status = pith_tokenizer_encode(&w->tokens, c->e->parts.tokenizer, text, NULL, &options, err);
    if (status) return pith_fail_at(err, status, "text %zu: ", c->first_text + i);
    size_t n = w->tokens.count;
    int32_t *ids = pith_arena_array(&w->rows, n, 2 * sizeof *ids);
    if (!ids || n > INT32_MAX) return pith_fail_memory(err, n * 2 * sizeof *ids);
    if (n) memcpy(ids, w->tokens.ids, n * sizeof *ids);
    if (n) memcpy(ids + n, w->tokens.type_ids, n * sizeof *ids);
    c->rows[i] = (pith_row){ ids, ids + n, (int32_t)n };
    c->truncated[i] = w->tokens.truncated != 0;
    return PITH_OK;
}

static void encode_part(void *context, size_t part, int index) {
    call *c = context;
    worker *w = &c->workers[index];
    const size_t first = part * c->texts_per_part, left = c->count - first;
    const size_t count = left < c->texts_per_part ? left : c->texts_per_part;
    pith_lane *lane = pith_profile_lane(c->options->profile);
    uint64_t begin = pith_lane_now(lane);
    /* Texts before one that has failed are still tried, so that the first of those that fail is named. */
    for (size_t i = first; i < first + count && i < first_failed(c); i++) {
        pith_error fault = PITH_ERROR_INIT;
        if (encode_text(c, w, i, &fault)) fail_text(c, w, &fault, i);
    }
    pith_lane_phase(lane, "tokenise", begin, (int64_t)count);
}

static pith_status borrow_executor(call *c, worker *w, pith_error *err) {
    if (w->executor) return PITH_OK;
    pith_embedder *e = c->e;
    pthread_mutex_lock(&e->lock);
    if (e->idle_count) w->executor = e->idle[--e->idle_count];
    pthread_mutex_unlock(&e->lock);
    return w->executor ? PITH_OK : pith_executor_create(&w->executor, e->parts.plan, &e->parts.executor, err);
}

static void drop_executor(worker *w) {
    pith_executor_destroy(w->executor);
    w->executor = NULL;
}

static void return_executor(call *c, worker *w) {
    pith_embedder *e = c->e;
    if (!w->executor) return;
    bool kept = (double)pith_executor_bytes(w->executor) * SECONDS_PER_BYTE > (seconds() - c->began) * PRICE_SHARE;
    pthread_mutex_lock(&e->lock);
    kept = kept && e->idle_count < e->idle_limit;
    if (kept) e->idle[e->idle_count++] = w->executor;
    pthread_mutex_unlock(&e->lock);
    if (kept)
        w->executor = NULL;
    else
        drop_executor(w);
}

/* The output as f32 rows of the model's width; the shape is what the inputs ask for. */
static pith_status output_rows(const float **x, const pith_embedder *e, const pith_tensor *out, int64_t rows,
                               pith_arena *arena, pith_error *err) {
    if (out->rank < 1 || out->dims[out->rank - 1] != e->width ||
        pith_dims_count(out->dims, out->rank) != rows * e->width) {
        char shape[128];
        return pith_fail(err, PITH_ERR_RUN, "the model's output has shape %s, wanted are %lld rows of %lld",
                         pith_dims_text(out->dims, out->rank, shape, sizeof shape), (long long)rows,
                         (long long)e->width);
    }
    *x = out->data;
    if (out->dtype == PITH_F32) return PITH_OK;
    size_t n = (size_t)(rows * e->width);
    float *wide = pith_arena_array(arena, n, sizeof *wide);
    if (!wide) return pith_fail_memory(err, n * sizeof *wide);
    const uint16_t *half = out->data;
    for (size_t i = 0; i < n; i++)
        wide[i] = out->dtype == PITH_F16 ? pith_f32_of_f16(half[i]) : pith_f32_of_bf16(half[i]);
    *x = wide;
    return PITH_OK;
}

/* How many threads share the steps of the chunk that is begun now. */
static int threads_within(const call *c) {
    const bool last = c->inner_threads < c->threads && pith_pool_left() < (size_t)c->threads;
    return last && !c->e->parts.executor.tight ? LAST_CHUNK_THREADS : c->inner_threads;
}

static pith_status run_chunk(call *c, worker *w, const chunk *k, pith_error *err) {
    pith_embedder *e = c->e;
    const pith_graph *graph = e->parts.plan->graph;
    pith_lane *lane = pith_profile_lane(c->options->profile);
    PITH_TRY(borrow_executor(c, w, err));
    if (e->trace)
        pith_executor_trace(w->executor, e->trace, e->trace_context);
    else
        pith_lane_listen(lane, w->executor);
    const pith_row *const *rows = c->ordered + k->first;
    int64_t tokens = 0;
    for (size_t i = 0; i < k->count; i++) tokens += rows[i]->count;

    pith_arena_reset(&w->chunk);
    pith_tensor *inputs = pith_arena_array(&w->chunk, graph->input_count, sizeof *inputs);
    pith_tensor *outputs = pith_arena_array(&w->chunk, graph->output_count, sizeof *outputs);
    int64_t full = full_dim(e, c->options);
    float *vector = pith_arena_array(&w->chunk, (size_t)full, sizeof *vector);
    if (!inputs || !outputs || !vector) return pith_fail_memory(err, (size_t)full * sizeof *vector);
    PITH_TRY(pith_feed_fill(inputs, &e->feed, rows, k->count, &w->chunk, err));
    uint64_t begin = pith_lane_now(lane);
    PITH_TRY(pith_executor_run(w->executor, outputs, inputs, threads_within(c), c->options->cancel, err));
    pith_lane_phase(lane, "run", begin, tokens);
    size_t bytes = pith_executor_bytes(w->executor);
    if (bytes > w->peak_bytes) w->peak_bytes = bytes;

    int64_t run_tokens = tokens > e->feed.fixed_length ? tokens : e->feed.fixed_length;
    const float *x = NULL;
    PITH_TRY(output_rows(&x, e, &outputs[e->parts.output], e->pooled ? (int64_t)k->count : run_tokens, &w->chunk, err));
    begin = pith_lane_now(lane);
    bool normalize = c->options->normalize < 0 ? e->parts.modules->normalize : c->options->normalize != 0;
    for (size_t i = 0; i < k->count; i++) {
        float *place = c->vectors + (int64_t)c->order[k->first + i] * c->dim;
        if (e->pooled)
            memcpy(vector, x, (size_t)full * sizeof *vector);
        else
            pith_pool_rows(vector, pooling_of(e, c->options), x, rows[i]->count, e->width);
        x += e->pooled ? e->width : rows[i]->count * e->width;
        if (normalize) e->normalize(vector, vector, 1, c->dim);
        memcpy(place, vector, (size_t)c->dim * sizeof *place);
    }
    pith_lane_phase(lane, "pool", begin, (int64_t)k->count);
    return PITH_OK;
}

static void run_part(void *context, size_t part, int index) {
    call *c = context;
    pith_error fault = PITH_ERROR_INIT;
    const chunk *k = &c->chunks[part];
    if (first_failed(c) != SIZE_MAX) return;
    if (c->options->cancel && *c->options->cancel)
        pith_fail(&fault, PITH_ERR_CANCELLED, "cancelled");
    else if (!run_chunk(c, &c->workers[index], k, &fault))
        return;
    fail_text(c, &c->workers[index], &fault, c->order[k->first]);
}

static pith_status first_fault(call *c, pith_error *err) {
    const worker *first = NULL;
    for (int i = 0; i < c->threads; i++) {
        const worker *w = &c->workers[i];
        if (w->failed_text != SIZE_MAX && (!first || w->failed_text < first->failed_text)) first = w;
    }
    if (!first) return PITH_OK;
    if (err) *err = first->fault;
    return first->fault.code;
}

/* Cuts the window's rows, `total` tokens, into about `wanted` equal chunks; more where texts do not fill the budget.
 * Without a ragged form a chunk is one text. */
static void cut_into(call *c, int64_t total, int64_t wanted) {
    int64_t before = 0, tokens = 0;
    c->chunk_count = 0;
    for (size_t i = 0; i < c->ordered_count; i++) {
        int64_t count = c->ordered[i]->count;
        double end = (double)total / (double)wanted * (double)c->chunk_count;
        if (i && c->e->feed.ragged && tokens + count <= c->budget && (double)before + (double)count / 2 <= end) {
            c->chunks[c->chunk_count - 1].count++;
        } else {
            c->chunks[c->chunk_count++] = (chunk){ i, 1 };
            tokens = 0;
        }
        tokens += count;
        before += count;
    }
}

/* As many chunks for each thread, where that leaves none too small: one left over would run alone. */
static void cut_chunks(call *c) {
    enum { TRIES = 4 };
    int64_t total = 0, threads = c->threads;
    for (size_t i = 0; i < c->ordered_count; i++) total += c->ordered[i]->count;
    int64_t wanted = (total + c->budget - 1) / c->budget;
    if (total / threads < CHUNK_TOKENS_MIN) threads = 1;
    wanted = (wanted + threads - 1) / threads * threads;
    for (int i = 0; i < TRIES; i++, wanted += threads) {
        cut_into(c, total, wanted);
        if (c->chunk_count % (size_t)threads == 0) break;
    }
}

static pith_status run_window(call *c, pith_error *err) {
    for (int i = 0; i < c->threads; i++) pith_arena_reset(&c->workers[i].rows);
    c->texts_per_part = c->count / ((size_t)c->threads * PARTS_PER_THREAD) + 1;
    if (c->texts_per_part > TEXTS_PER_PART) c->texts_per_part = TEXTS_PER_PART;
    pith_pool_run(encode_part, c, (c->count + c->texts_per_part - 1) / c->texts_per_part, c->threads);
    PITH_TRY(first_fault(c, err));

    c->ordered_count = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->rows[i].count) {
            c->order[c->ordered_count] = i;
            c->ordered[c->ordered_count++] = &c->rows[i];
        } else {
            memset(c->vectors + (int64_t)i * c->dim, 0, (size_t)c->dim * sizeof *c->vectors);
        }
    }
    cut_chunks(c);
    bool side_by_side = c->chunk_count >= (size_t)c->threads && !c->one_by_one;
    c->inner_threads = side_by_side ? 1 : c->threads;
    if (side_by_side)
        pith_pool_run(run_part, c, c->chunk_count, c->threads);
    else
        for (size_t i = 0; i < c->chunk_count; i++) run_part(c, i, 0);
    return first_fault(c, err);
}

/* After PITH_ERR_MEMORY with a limit: asks for less at once. False if that is impossible. */
static bool ask_for_less(call *c) {
    if (c->e->feed.ragged && c->budget > CHUNK_TOKENS_MIN)
        c->budget /= 2;
    else if (c->threads > 1 && !c->one_by_one)
        c->one_by_one = true;
    else if (c->e->feed.ragged && c->budget > 1)
        c->budget /= 2;
    else if (c->window > TEXTS_PER_PART)
        c->window /= 2;
    else
        return false;
    pith_embedder_trim(c->e);
    pith_tokenizer_trim(c->e->parts.tokenizer);
    for (int i = 0; i < c->threads; i++) {
        worker *w = &c->workers[i];
        if (w->executor) drop_executor(w);
        pith_tokens_free(&w->tokens);
        pith_arena_free(&w->rows);
        pith_arena_free(&w->chunk);
        w->failed_text = SIZE_MAX;
    }
    atomic_store_explicit(&c->failed, SIZE_MAX, memory_order_relaxed);
    return true;
}

static pith_status open_call(call *c, size_t count, pith_error *err) {
    size_t window = count < WINDOW_TEXTS ? count : WINDOW_TEXTS;
    c->window = window;
    c->budget = c->options->batch_tokens ? c->options->batch_tokens : c->e->chunk_tokens;
    const pith_allocator *allocator = c->e->parts.executor.allocator;
    pith_arena_init(&c->arena, allocator);
    c->workers = pith_arena_array(&c->arena, (size_t)c->threads, sizeof *c->workers);
    if (!c->workers) return pith_fail_memory(err, (size_t)c->threads * sizeof *c->workers);
    for (int i = 0; i < c->threads; i++) {
        c->workers[i] = (worker){ .tokens = PITH_TOKENS_INIT, .failed_text = SIZE_MAX };
        pith_arena_init(&c->workers[i].rows, allocator);
        pith_arena_init(&c->workers[i].chunk, allocator);
    }
    c->rows = pith_arena_array(&c->arena, window, sizeof *c->rows);
    c->truncated = pith_arena_array(&c->arena, window, sizeof *c->truncated);
    c->order = pith_arena_array(&c->arena, window, sizeof *c->order);
    c->ordered = pith_arena_array(&c->arena, window, sizeof *c->ordered);
    c->chunks = pith_arena_array(&c->arena, window, sizeof *c->chunks);
    if (!c->rows || !c->truncated || !c->order || !c->ordered || !c->chunks)
        return pith_fail_memory(err, window * sizeof *c->rows);
    return PITH_OK;
}

static void close_call(call *c) {
    for (int i = 0; c->workers && i < c->threads; i++) {
        worker *w = &c->workers[i];
        return_executor(c, w);
        pith_tokens_free(&w->tokens);
        pith_arena_free(&w->rows);
        pith_arena_free(&w->chunk);
    }
    pith_arena_free(&c->arena);
}

static void count_window(pith_embed_stats *stats, const call *c) {
    for (size_t i = 0; i < c->count; i++) {
        int64_t tokens = c->rows[i].count, run = c->e->feed.fixed_length;
        stats->texts++;
        stats->tokens += (uint64_t)tokens;
        stats->padded_tokens += tokens && run > tokens ? (uint64_t)(run - tokens) : 0;
        stats->truncated += c->truncated[i];
    }
}

pith_status pith_embedder_run(float *vectors, pith_embedder *e, const pith_str *texts, size_t count,
                              const pith_embed_options *options, pith_error *err) {
    PITH_TRY(check_options(e, options, err));
    call c = { .e = e, .options = options, .began = seconds(), .dim = (int64_t)pith_embedder_dim(e, options) };
    atomic_init(&c.failed, SIZE_MAX);
    c.max_length = pith_embedder_max_length(e, options);
    c.threads = options->threads ? options->threads : pith_cpu_get()->threads;
    if (c.threads > THREADS_MAX) c.threads = THREADS_MAX;
    PITH_TRY(find_prompt(&c.prompt, e->parts.modules, options->prompt_name, err));

    pith_pool_wake(c.threads); /* while the first texts become tokens */
    pith_status status = open_call(&c, count, err);
    size_t peak = 0;
    for (size_t done = 0; !status && done < count; done += c.count) {
        c.texts = texts + done;
        c.first_text = done;
        c.vectors = vectors + done * (size_t)c.dim;
        do {
            size_t bytes = 0;
            for (c.count = 0; done + c.count < count && c.count < c.window && bytes < WINDOW_BYTES; c.count++)
                bytes += c.texts[c.count].size;
            status = run_window(&c, err);
        } while (status == PITH_ERR_MEMORY && e->parts.executor.tight && ask_for_less(&c));
        if (!status && options->stats) count_window(options->stats, &c);
    }
    for (int i = 0; c.workers && i < c.threads; i++) peak += c.workers[i].peak_bytes;
    if (options->stats && peak > options->stats->peak_bytes) options->stats->peak_bytes = peak;
    close_call(&c);
    return status;
}

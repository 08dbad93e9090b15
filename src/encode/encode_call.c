/* encode_call.c - one call of an encoder: texts become tokens, tokens become chunks, chunks run, and heads get the
 * rows.
 *
 * A call goes through its texts in windows. All texts of a window are tokenized in parallel. Their tokens are cut into
 * chunks of the token budget, in the order they came. With enough chunks, they run at the same time, each with an
 * runner and a thread of its own; otherwise they run one after another, each on all threads.
 *
 * No choice made here (windows, chunks, threads) can change a bit of a result. So a window that meets the memory limit
 * is run again in smaller pieces. Each worker keeps the failure with the lowest text index it met, and the lowest of
 * all is reported. */
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/threads.h"
#include "base/str.h"
#include "encode/encoder_state.h"
#include "exec/profile.h"
#include "text/token_rows.h"

/* A window holds at most this many texts, and ends after this many bytes of text. The tokens of a window are what a
 * call holds besides activations. Larger windows fill chunks and threads better, up to a point. */
#define WINDOW_TEXTS ((size_t)1024)
#define WINDOW_BYTES ((size_t)2 << 20)
/* A thread tokenises at most TEXTS_PER_PART texts at a time, fewer where that would give it less than PARTS_PER_THREAD
 * parts. Smaller parts spread better over threads and cost more locking. */
#define TEXTS_PER_PART ((size_t)8)
#define PARTS_PER_THREAD ((size_t)4)
/* When fewer chunks than threads remain, this many threads share a chunk. With more than two, the pieces would be too
 * small if the helpers never arrive. */
#define LAST_CHUNK_THREADS 2
/* The most threads of a call: as many as base/threads.c starts. It bounds the array of workers. */
#define THREADS_MAX 512
/* Memory that is given back must be mapped and cleared by the system when it is needed again, at about 4 GB/s. A call
 * keeps its buffers for the next one if that price exceeds PRICE_SHARE of the time it took. */
#define SECONDS_PER_BYTE 0.25e-9
#define PRICE_SHARE 0.002

typedef struct encode_worker {
    pith_tokens tokens;
    pith_arena rows;  /* ids of the texts of the window that this worker tokenised */
    pith_arena chunk; /* inputs of its current chunk, and scratch memory of the heads */
    pith_runner runner;
    size_t peak_bytes;
    size_t failed_text; /* of the window; SIZE_MAX: none */
    pith_error fault;
} encode_worker;

typedef struct encode_chunk {
    size_t first, count; /* of call.order */
} encode_chunk;

typedef struct encode_call {
    pith_encoder *e;
    const pith_encode_job *job;
    const pith_head_use *uses;
    size_t use_count;
    const void **states; /* of the heads */
    pith_str prompt;
    int64_t prompt_rows; /* rows of a text that pooling leaves out */
    uint64_t began;
    int threads, inner_threads;
    int32_t max_length;
    pith_arena arena;
    encode_worker *workers;
    /* the window */
    size_t first_text, count, texts_per_part;
    pith_row *rows;
    uint8_t *truncated;
    size_t *order; /* texts of the window that have tokens, in the order they are run */
    const pith_row **ordered;
    size_t ordered_count;
    encode_chunk *chunks;
    size_t chunk_count;
    atomic_size_t failed; /* the first text of the window that has failed so far; SIZE_MAX: none */
    int64_t budget;       /* tokens of a chunk */
    size_t window;        /* texts of a window */
    bool one_by_one;      /* chunks never run at the same time */
} encode_call;

/* ---- failures ---- */

/* Notes the fault in w->fault for a text of the window. */
static void encode_fail_text(encode_call *c, encode_worker *w, const pith_error *fault, size_t text) {
    size_t first = atomic_load_explicit(&c->failed, memory_order_relaxed);
    while (text < first &&
           !atomic_compare_exchange_weak_explicit(&c->failed, &first, text, memory_order_relaxed, memory_order_relaxed))
        continue;
    if (text >= w->failed_text) return;
    w->failed_text = text;
    w->fault = *fault;
}

static size_t encode_first_failed(const encode_call *c) {
    return atomic_load_explicit(&c->failed, memory_order_relaxed);
}

static pith_status encode_first_fault(encode_call *c, pith_error *err) {
    const encode_worker *first = NULL;
    for (int i = 0; i < c->threads; i++) {
        const encode_worker *w = &c->workers[i];
        if (w->failed_text != SIZE_MAX && (!first || w->failed_text < first->failed_text)) first = w;
    }
    if (!first) return PITH_OK;
    if (err) *err = first->fault;
    return first->fault.code;
}

/* ---- texts to tokens ---- */

pith_status pith_encode_prompt(pith_str *prompt, const pith_modules *m, const char *name, pith_error *err) {
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
    return PITH_OK;
}

static pith_tokenize_options encode_tokenize_options(const encode_call *c) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.max_length = c->max_length;
    if (c->job->frame && c->job->frame->marker >= 0 && options.max_length > 1) options.max_length--;
    options.no_offsets = 1;
    options.no_specials = c->e->parts.modules->no_specials;
    return options;
}

/* Counts the rows that belong to the prompt: those of the prompt alone, without a special token at its end. Source:
 * sentence-transformers, Transformer._get_prompt_length. */
static pith_status encode_count_prompt(encode_call *c, pith_error *err) {
    const pith_tokenize_options options = encode_tokenize_options(c);
    pith_tokens tokens = PITH_TOKENS_INIT;
    if (c->e->parts.modules->include_prompt || !c->prompt.size) return PITH_OK;
    pith_status status = pith_tokenizer_encode(&tokens, c->e->parts.tokenizer, c->prompt, NULL, &options, err);
    if (!status) c->prompt_rows = (int64_t)tokens.count;
    if (!status && tokens.count && tokens.special[tokens.count - 1]) c->prompt_rows--;
    pith_token_rows_free(&tokens);
    return status ? pith_fail_at(err, status, "prompt: ") : PITH_OK;
}

/* *text with the prompt in front of it. */
static pith_status encode_add_prompt(pith_str *text, const encode_call *c, pith_arena *arena, pith_error *err) {
    size_t size;
    if (!c->prompt.size) return PITH_OK;
    if (pith_add_overflows(c->prompt.size, text->size, &size)) return pith_fail_memory(err, text->size);
    char *both = pith_arena_alloc(arena, size);
    if (!both) return pith_fail_memory(err, size);
    memcpy(both, c->prompt.data, c->prompt.size);
    if (text->size) memcpy(both + c->prompt.size, text->data, text->size);
    *text = (pith_str){ both, size };
    return PITH_OK;
}

/* A byte that is not UTF-8 counts as part of a character. */
pith_str pith_encode_cut_characters(const pith_encoder *e, int32_t max_length, pith_str text) {
    const int64_t limit = (int64_t)max_length * e->token_characters;
    int64_t n = 0;
    for (size_t i = 0; limit && i < text.size; i++) {
        n += ((uint8_t)text.data[i] & 0xc0) != 0x80;
        if (n > limit) return (pith_str){ text.data, i };
    }
    return text;
}

/* Leaves out the tokens of this id; -1: none. */
static void encode_drop(pith_tokens *tokens, int32_t id) {
    size_t n = 0;
    for (size_t i = 0; id >= 0 && i < tokens->count; i++) {
        if (tokens->ids[i] == id) continue;
        tokens->ids[n] = tokens->ids[i];
        tokens->type_ids[n++] = tokens->type_ids[i];
    }
    if (id >= 0) tokens->count = n;
}

/* Fillers that a text of so many tokens gets. */
static size_t encode_count_fillers(const encode_call *c, size_t tokens) {
    size_t length = c->job->frame ? (size_t)c->job->frame->length : 0;
    if (c->max_length && length > (size_t)c->max_length) length = (size_t)c->max_length;
    return tokens < length ? length - tokens : 0;
}

/* Copies n numbers, with the marker behind the first and fillers at the end. */
static void encode_frame_numbers(int32_t *to, const int32_t *from, size_t n, const pith_encode_frame *f, size_t fillers,
                                 int32_t marker, int32_t filler) {
    size_t head = f && f->marker >= 0 ? n > 0 : n;
    if (head) memcpy(to, from, head * sizeof *to);
    if (f && f->marker >= 0) {
        to[head] = marker;
        if (n > head) memcpy(to + head + 1, from + head, (n - head) * sizeof *to);
        n++;
    }
    for (size_t i = 0; i < fillers; i++) to[n + i] = filler;
}

/* The worker's tokens become a row of the window. */
static pith_status encode_keep_row(const encode_call *c, encode_worker *w, pith_row *row, pith_error *err) {
    const pith_encode_frame *f = c->job->frame;
    const size_t n = w->tokens.count, columns = c->e->feed.typed ? 2 : 1, framed = n + (f && f->marker >= 0);
    const size_t fillers = encode_count_fillers(c, framed), count = framed + fillers;
    int32_t *ids = count <= INT32_MAX ? pith_arena_alloc(&w->rows, count * columns * sizeof *ids) : NULL;
    if (!ids) return pith_fail_memory(err, count * columns * sizeof *ids);
    encode_frame_numbers(ids, w->tokens.ids, n, f, fillers, f ? f->marker : 0, f ? f->filler : 0);
    if (columns == 2) encode_frame_numbers(ids + count, w->tokens.type_ids, n, f, fillers, 0, 0);
    *row = (pith_row){ ids, columns == 2 ? ids + count : NULL, (int32_t)count, 0 };
    if (f && f->hidden) row->hidden = (int32_t)fillers;
    return PITH_OK;
}

static pith_status encode_text(encode_call *c, encode_worker *w, size_t i, pith_error *err) {
    const size_t number = c->first_text + i;
    const pith_tokenize_options options = encode_tokenize_options(c);
    pith_str text = pith_encode_cut_characters(c->e, c->max_length, c->job->texts[number]);
    PITH_TRY(encode_add_prompt(&text, c, &w->rows, err));
    const pith_str *pair = c->job->pairs ? &c->job->pairs[number] : NULL;
    pith_status status = pith_tokenizer_encode(&w->tokens, c->e->parts.tokenizer, text, pair, &options, err);
    if (status) return pith_fail_at(err, status, "text %zu: ", number);
    encode_drop(&w->tokens, c->e->dropped);
    c->truncated[i] = w->tokens.truncated != 0;
    return encode_keep_row(c, w, &c->rows[i], err);
}

static void encode_text_part(void *context, size_t part, int index) {
    encode_call *c = context;
    encode_worker *w = &c->workers[index];
    const size_t first = part * c->texts_per_part, left = c->count - first;
    const size_t count = left < c->texts_per_part ? left : c->texts_per_part;
    pith_lane *lane = pith_profile_lane(c->job->profile);
    uint64_t begin = pith_lane_now(lane);
    /* Texts before one that has failed are still tried, so that the first of those that fail is named. */
    for (size_t i = first; i < first + count && i < encode_first_failed(c); i++) {
        pith_error fault = PITH_ERROR_INIT;
        if (encode_text(c, w, i, &fault)) encode_fail_text(c, w, &fault, i);
    }
    pith_lane_phase(lane, "tokenise", begin, (int64_t)count);
}

/* ---- chunks through the model ---- */

static pith_status encode_borrow_runner(encode_call *c, encode_worker *w, pith_error *err) {
    if (w->runner.runtime) return PITH_OK;
    pith_encoder *e = c->e;
    pthread_mutex_lock(&e->lock);
    if (e->idle_count) w->runner = e->idle[--e->idle_count];
    pthread_mutex_unlock(&e->lock);
    return w->runner.runtime ? PITH_OK : pith_runner_create(&w->runner, &e->parts.program, &e->parts.executor, err);
}

static void encode_drop_runner(encode_worker *w) { pith_runner_destroy(&w->runner); }

static void encode_return_runner(encode_call *c, encode_worker *w) {
    pith_encoder *e = c->e;
    if (!w->runner.runtime) return;
    double price = (double)pith_runner_bytes(&w->runner) * SECONDS_PER_BYTE;
    bool kept = price > (double)(pith_clock_ns() - c->began) * 1e-9 * PRICE_SHARE;
    pthread_mutex_lock(&e->lock);
    kept = kept && e->idle_count < e->idle_limit;
    if (kept) e->idle[e->idle_count++] = w->runner;
    pthread_mutex_unlock(&e->lock);
    if (kept)
        w->runner.runtime = NULL;
    else
        encode_drop_runner(w);
}

/* An output as f32 rows of its width. The output's shape is checked, since it depends on the inputs. Sets *missing to
 * the number of rows that are not there at the beginning: a graph for one text may leave out its first tokens. */
static pith_status encode_output_rows(const float **x, int64_t *missing, const pith_tensor *out, int64_t rows,
                                      const pith_head_model *model, bool ragged, pith_arena *arena, pith_error *err) {
    const int64_t width = model->width, count = pith_dims_count(out->dims, out->rank);
    bool fits = out->rank >= 1 && out->dims[out->rank - 1] == width && count % width == 0;
    *missing = fits ? rows - count / width : 0;
    if (!fits || (*missing && (*missing < 0 || ragged || model->pooled))) {
        char shape[128];
        return pith_fail(err, PITH_ERR_RUN, "the model's output has shape %s; %lld rows of %lld numbers are needed",
                         pith_dims_text(out->dims, out->rank, shape, sizeof shape), (long long)rows, (long long)width);
    }
    *x = out->data;
    if (out->dtype == PITH_F32) return PITH_OK;
    size_t n = (size_t)count;
    float *wide = pith_arena_array(arena, n, sizeof *wide);
    if (!wide) return pith_fail_memory(err, n * sizeof *wide);
    const uint16_t *half = out->data;
    for (size_t i = 0; i < n; i++)
        wide[i] = out->dtype == PITH_F16 ? pith_f32_of_f16(half[i]) : pith_f32_of_bf16(half[i]);
    *x = wide;
    return PITH_OK;
}

/* How many threads share the steps of the chunk that begins now. */
static int encode_threads_within(const encode_call *c) {
    const bool last = c->inner_threads < c->threads && pith_threads_left() < (size_t)c->threads;
    return last && !c->e->parts.executor.tight ? LAST_CHUNK_THREADS : c->inner_threads;
}

/* Hands the rows of each text of the chunk to a head. x: all of them; missing: the first so many of a text are not
 * there. */
static pith_status encode_emit(const encode_call *c, size_t use, const encode_chunk *k, const float *x, int64_t missing,
                               pith_arena *scratch, pith_error *err) {
    const pith_head_model *model = &c->e->models[c->uses[use].output];
    for (size_t i = 0; i < k->count; i++) {
        size_t text = c->first_text + c->order[k->first + i];
        const pith_row *row = c->ordered[k->first + i];
        int64_t skipped = missing < row->count ? missing : row->count;
        int64_t count = model->pooled ? 1 : row->count - skipped;
        pith_arena_mark mark = pith_arena_get_mark(scratch);
        pith_head_rows rows = { text, x, count, model->width, c->prompt_rows, row->ids + skipped, scratch };
        pith_status status = c->uses[use].head->emit(c->states[use], &rows, err);
        if (status) return pith_fail_at(err, status, "text %zu: ", text);
        pith_arena_rewind(scratch, mark);
        x += count * model->width;
    }
    return PITH_OK;
}

/* Reads the outputs of a chunk of so many tokens, padding included, and hands their rows to the heads. */
static pith_status encode_emit_all(const encode_call *c, const encode_chunk *k, const pith_tensor *outputs, int64_t fed,
                                   pith_arena *arena, pith_error *err) {
    pith_encoder *e = c->e;
    pith_lane *lane = pith_profile_lane(c->job->profile);
    for (size_t use = 0; use < c->use_count; use++) {
        int output = c->uses[use].output;
        const pith_head_model *model = &e->models[output];
        const float *x = NULL;
        int64_t missing;
        PITH_TRY(encode_output_rows(&x, &missing, &outputs[e->outputs[output]], model->pooled ? (int64_t)k->count : fed,
                                    model, e->feed.ragged, arena, err));
        uint64_t begin = pith_lane_now(lane);
        PITH_TRY(encode_emit(c, use, k, x, missing, arena, err));
        pith_lane_phase(lane, c->uses[use].head->phase, begin, (int64_t)k->count);
    }
    return PITH_OK;
}

static pith_status encode_run_chunk(encode_call *c, encode_worker *w, const encode_chunk *k, pith_error *err) {
    pith_encoder *e = c->e;
    const pith_graph *graph = e->parts.program.graph;
    pith_lane *lane = pith_profile_lane(c->job->profile);
    PITH_TRY(encode_borrow_runner(c, w, err));
    if (e->trace)
        pith_runner_trace(&w->runner, e->trace, e->trace_context);
    else
        pith_runner_trace(&w->runner, pith_lane_trace(lane), lane);
    const pith_row *const *rows = c->ordered + k->first;
    int64_t tokens = 0;
    for (size_t i = 0; i < k->count; i++) tokens += rows[i]->count;

    pith_arena_reset(&w->chunk);
    pith_tensor *inputs = pith_arena_array(&w->chunk, graph->input_count, sizeof *inputs);
    pith_tensor *outputs = pith_arena_array(&w->chunk, graph->output_count, sizeof *outputs);
    if (!inputs || !outputs) return pith_fail_memory(err, (graph->input_count + graph->output_count) * sizeof *inputs);
    PITH_TRY(pith_feed_fill(inputs, &e->feed, rows, k->count, &w->chunk, err));
    uint64_t begin = pith_lane_now(lane);
    PITH_TRY(pith_runner_run(&w->runner, outputs, inputs, encode_threads_within(c), c->job->cancel, err));
    pith_lane_phase(lane, "run", begin, tokens);
    size_t bytes = pith_runner_bytes(&w->runner);
    if (bytes > w->peak_bytes) w->peak_bytes = bytes;

    return encode_emit_all(c, k, outputs, tokens > e->feed.fixed_length ? tokens : e->feed.fixed_length, &w->chunk,
                           err);
}

static void encode_chunk_part(void *context, size_t part, int index) {
    encode_call *c = context;
    pith_error fault = PITH_ERROR_INIT;
    const encode_chunk *k = &c->chunks[part];
    if (encode_first_failed(c) != SIZE_MAX) return;
    if (c->job->cancel && *c->job->cancel)
        pith_fail(&fault, PITH_ERR_CANCELLED, "cancelled");
    else if (!encode_run_chunk(c, &c->workers[index], k, &fault))
        return;
    encode_fail_text(c, &c->workers[index], &fault, c->order[k->first]);
}

/* ---- windows ---- */

/* Cuts the window's rows, `total` tokens, into about `wanted` equal chunks; into more where texts do not fill the
 * budget. Without a ragged form a chunk is one text. */
static void encode_cut_into(encode_call *c, int64_t total, int64_t wanted) {
    int64_t before = 0, tokens = 0;
    c->chunk_count = 0;
    for (size_t i = 0; i < c->ordered_count; i++) {
        int64_t count = c->ordered[i]->count;
        double end = (double)total / (double)wanted * (double)c->chunk_count;
        if (i && c->e->feed.ragged && tokens + count <= c->budget && (double)before + (double)count / 2 <= end) {
            c->chunks[c->chunk_count - 1].count++;
        } else {
            c->chunks[c->chunk_count++] = (encode_chunk){ i, 1 };
            tokens = 0;
        }
        tokens += count;
        before += count;
    }
}

/* Cuts the window so that each thread gets the same number of chunks: a chunk left over would run alone. Texts
 * are not cut, so the number of chunks may come out higher than wanted; then it tries again with one more per thread.
 */
static void encode_cut(encode_call *c) {
    enum { TRIES = 4 };
    int64_t total = 0, threads = c->threads;
    for (size_t i = 0; i < c->ordered_count; i++) total += c->ordered[i]->count;
    int64_t wanted = (total + c->budget - 1) / c->budget;
    if (total / threads < PITH_CHUNK_TOKENS_MIN) threads = 1;
    wanted = (wanted + threads - 1) / threads * threads;
    for (int i = 0; i < TRIES; i++, wanted += threads) {
        encode_cut_into(c, total, wanted);
        if (c->chunk_count % (size_t)threads == 0) break;
    }
}

/* Puts the texts that have tokens in order, and gives the others to the heads at once. */
static pith_status encode_order(encode_call *c, pith_error *err) {
    c->ordered_count = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->rows[i].count) {
            c->order[c->ordered_count] = i;
            c->ordered[c->ordered_count++] = &c->rows[i];
            continue;
        }
        for (size_t use = 0; use < c->use_count; use++) {
            int64_t width = c->e->models[c->uses[use].output].width;
            pith_head_rows rows = { c->first_text + i, NULL, 0, width, 0, NULL, &c->workers[0].chunk };
            PITH_TRY(c->uses[use].head->emit(c->states[use], &rows, err));
        }
    }
    return PITH_OK;
}

static pith_status encode_window(encode_call *c, pith_error *err) {
    for (int i = 0; i < c->threads; i++) pith_arena_reset(&c->workers[i].rows);
    c->texts_per_part = c->count / ((size_t)c->threads * PARTS_PER_THREAD) + 1;
    if (c->texts_per_part > TEXTS_PER_PART) c->texts_per_part = TEXTS_PER_PART;
    pith_threads_run(encode_text_part, c, (c->count + c->texts_per_part - 1) / c->texts_per_part, c->threads);
    PITH_TRY(encode_first_fault(c, err));

    PITH_TRY(encode_order(c, err));
    encode_cut(c);
    bool side_by_side = c->chunk_count >= (size_t)c->threads && !c->one_by_one;
    c->inner_threads = side_by_side ? 1 : c->threads;
    if (side_by_side)
        pith_threads_run(encode_chunk_part, c, c->chunk_count, c->threads);
    else
        for (size_t i = 0; i < c->chunk_count; i++) encode_chunk_part(c, i, 0);
    return encode_first_fault(c, err);
}

/* After PITH_ERR_MEMORY under a memory limit: makes the pieces smaller. False if they are as small as they can be. */
static bool encode_ask_for_less(encode_call *c) {
    if (c->e->feed.ragged && c->budget > PITH_CHUNK_TOKENS_MIN)
        c->budget /= 2;
    else if (c->threads > 1 && !c->one_by_one)
        c->one_by_one = true;
    else if (c->e->feed.ragged && c->budget > 1)
        c->budget /= 2;
    else if (c->window > TEXTS_PER_PART)
        c->window /= 2;
    else
        return false;
    pith_encoder_trim(c->e);
    pith_tokenizer_trim(c->e->parts.tokenizer);
    for (int i = 0; i < c->threads; i++) {
        encode_worker *w = &c->workers[i];
        if (w->runner.runtime) encode_drop_runner(w);
        pith_token_rows_free(&w->tokens);
        pith_arena_free(&w->rows);
        pith_arena_free(&w->chunk);
        w->failed_text = SIZE_MAX;
    }
    atomic_store_explicit(&c->failed, SIZE_MAX, memory_order_relaxed);
    return true;
}

/* The window that begins at first_text. */
static pith_status encode_next_window(encode_call *c, pith_error *err) {
    pith_status status;
    do {
        const size_t left = c->job->count - c->first_text;
        size_t bytes = 0;
        for (c->count = 0; c->count < left && c->count < c->window && bytes < WINDOW_BYTES; c->count++) {
            bytes += c->job->texts[c->first_text + c->count].size;
            if (c->job->pairs) bytes += c->job->pairs[c->first_text + c->count].size;
        }
        status = encode_window(c, err);
    } while (status == PITH_ERR_MEMORY && c->e->parts.executor.tight && encode_ask_for_less(c));
    return status;
}

/* ---- the call ---- */

static pith_status encode_open(encode_call *c, pith_error *err) {
    const pith_encode_job *job = c->job;
    const pith_allocator *allocator = c->e->parts.executor.allocator;
    size_t window = job->count < WINDOW_TEXTS ? job->count : WINDOW_TEXTS;
    c->window = window;
    c->budget = job->batch_tokens ? job->batch_tokens : c->e->chunk_tokens;
    c->states = pith_arena_array(&c->arena, c->use_count, sizeof *c->states);
    if (!c->states) return pith_fail_memory(err, c->use_count * sizeof *c->states);
    for (size_t i = 0; i < c->use_count; i++) {
        const pith_head_use *use = &c->uses[i];
        PITH_TRY(use->head->open(&c->states[i], &c->e->models[use->output], use->request, &c->arena, err));
    }
    PITH_TRY(pith_encode_prompt(&c->prompt, c->e->parts.modules, job->prompt_name, err));
    PITH_TRY(encode_count_prompt(c, err));
    c->workers = pith_arena_array(&c->arena, (size_t)c->threads, sizeof *c->workers);
    if (!c->workers) return pith_fail_memory(err, (size_t)c->threads * sizeof *c->workers);
    for (int i = 0; i < c->threads; i++) {
        c->workers[i] = (encode_worker){ .tokens = PITH_TOKENS_INIT, .failed_text = SIZE_MAX };
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

static void encode_close(encode_call *c) {
    for (int i = 0; c->workers && i < c->threads; i++) {
        encode_worker *w = &c->workers[i];
        encode_return_runner(c, w);
        pith_token_rows_free(&w->tokens);
        pith_arena_free(&w->rows);
        pith_arena_free(&w->chunk);
    }
    pith_arena_free(&c->arena);
}

static void encode_count_window(pith_embed_stats *stats, const encode_call *c) {
    for (size_t i = 0; i < c->count; i++) {
        int64_t tokens = c->rows[i].count, run = c->e->feed.fixed_length;
        stats->texts++;
        stats->tokens += (uint64_t)tokens;
        stats->padded_tokens += tokens && run > tokens ? (uint64_t)(run - tokens) : 0;
        stats->truncated += c->truncated[i];
    }
    stats->texts_done = c->first_text + c->count;
}

pith_status pith_encoder_run(pith_encoder *e, const pith_encode_job *job, const pith_head_use *uses, size_t count,
                             pith_error *err) {
    if (job->stats) job->stats->texts_done = 0;
    if (job->threads < 0 || job->max_length < 0 || job->batch_tokens < 0)
        return pith_fail(err, PITH_ERR_ARGUMENT, "threads, max_length and batch_tokens must not be negative");
    if (job->frame && job->frame->hidden && (e->feed.ragged || !e->feed.masked))
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "queries are filled up with mask tokens that no token attends to, but the graph has no input "
                         "'attention_mask'");
    encode_call c = { .e = e, .job = job, .uses = uses, .use_count = count, .began = pith_clock_ns() };
    atomic_init(&c.failed, SIZE_MAX);
    c.max_length = pith_encoder_max_length(e, job->max_length);
    c.threads = job->threads ? job->threads : pith_cpu_get()->threads;
    if (c.threads > THREADS_MAX) c.threads = THREADS_MAX;
    pith_arena_init(&c.arena, e->parts.executor.allocator);

    pith_threads_wake(c.threads); /* while the first texts become tokens */
    pith_status status = encode_open(&c, err);
    size_t peak = 0;
    for (; !status && c.first_text < job->count; c.first_text += c.count) {
        status = encode_next_window(&c, err);
        if (!status && job->stats) encode_count_window(job->stats, &c);
    }
    for (int i = 0; c.workers && i < c.threads; i++) peak += c.workers[i].peak_bytes;
    if (job->stats && peak > job->stats->peak_bytes) job->stats->peak_bytes = peak;
    encode_close(&c);
    return status;
}

/* encode_call.c - one call of an encoder: texts become tokens, tokens become chunks, chunks run,
 * and heads get the rows.
 *
 * A call goes through its texts in windows. All texts of a window are tokenized in parallel. Their
 * tokens are cut into chunks of the token budget, in the order they came. With enough chunks, they
 * run at the same time, each with an runner and a thread of its own; otherwise they run one after
 * another, each on all threads.
 *
 * No choice made here (windows, chunks, threads) can change a bit of a result. So a window that
 * meets the memory limit is run again in smaller pieces. Each worker keeps the failure with the
 * lowest text index it met, and the lowest of all is reported. */
#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/memory/account.h"
#include "base/os/clock.h"
#include "base/optional_part.h"
#include "base/os/threads.h"
#include "base/piece_listener.h"
#include "models/encode/call_state.h"
#include "models/encode/given_tokens.h"
#include "models/encode/text_results.h"

/* A window holds at most this many texts, and ends after this many bytes of text. The tokens of a
 * window are what a call holds besides activations. Larger windows fill chunks and threads better,
 * up to a point. */
#define WINDOW_TEXTS 1024
#define WINDOW_BYTES ((size_t)2 << 20)
/* The most texts that a caller may ask for in a window. */
#define WINDOW_TEXTS_MOST 65536
/* A window of a call that prefers latency. */
#define LATENCY_TEXTS 16
/* A thread tokenises at most TEXTS_PER_PART texts at a time, fewer where that would give it less
 * than PARTS_PER_THREAD parts. Smaller parts spread better over threads and cost more locking. */
#define TEXTS_PER_PART ((size_t)8)
#define PARTS_PER_THREAD ((size_t)4)
/* ---- failures ---- */

void pith__encode_fail_text(encode_call *c, encode_worker *w, const pith_error *fault,
                            size_t text) {
    if (c->results && pith__encode_is_of_text(fault->code)) {
        c->results->note(c, text, fault);
        return;
    }
    size_t first = atomic_load_explicit(&c->failed, memory_order_relaxed);
    while (text < first &&
           !atomic_compare_exchange_weak_explicit(&c->failed, &first, text, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
    if (text >= w->failed_text) return;
    w->failed_text = text;
    w->fault = *fault;
}

size_t pith__encode_first_failed(const encode_call *c) {
    return atomic_load_explicit(&c->failed, memory_order_relaxed);
}

/* Each worker keeps the failure of the lowest text that it met, so the lowest of all is found
 * whatever the order they ran in. */
static pith_status encode_first_fault(encode_call *c, pith_error *err) {
    const encode_worker *first = NULL;
    for (int i = 0; i < c->threads; i++) {
        const encode_worker *w = &c->workers[i];
        if (w->failed_text != SIZE_MAX && (!first || w->failed_text < first->failed_text))
            first = w;
    }
    if (!first) return PITH_OK;
    if (err) *err = first->fault;
    return first->fault.code;
}

/* ---- windows ---- */

/* Cuts the window's rows, `total` tokens, into about `wanted` equal chunks; into more where texts
 * do not fill the budget. Without a ragged form a chunk is one text. */
static void encode_cut_into(encode_call *c, int64_t total, int64_t wanted) {
    int64_t before = 0, tokens = 0;
    c->chunk_count = 0;
    for (size_t i = 0; i < c->ordered_count; i++) {
        int64_t count = c->ordered[i]->count;
        double end = (double)total / (double)wanted * (double)c->chunk_count;
        if (i && c->encoder->text_inputs.ragged && tokens + count <= c->budget &&
            (double)before + (double)count / 2 <= end) {
            c->chunks[c->chunk_count - 1].count++;
        } else {
            c->chunks[c->chunk_count++] = (encode_chunk){ i, 1 };
            tokens = 0;
        }
        tokens += count;
        before += count;
    }
}

/* Cuts the window so that each thread gets the same number of chunks: a chunk left over would run
 * alone. Texts are not cut, so the number of chunks may come out higher than wanted; then it tries
 * again with one more per thread. */
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

pith_status pith__encode_emit_empty(encode_call *c, size_t text, bool bad, pith_error *err) {
    for (size_t use = 0; use < c->use_count; use++) {
        int64_t width = c->encoder->models[c->uses[use].output].width;
        pith__head_rows rows = { c->first_text + text, NULL, 0, width, 0, NULL,
                                 &c->workers[0].chunk, bad };
        PITH_TRY(c->uses[use].head->emit(c->states[use], &rows, err));
    }
    return PITH_OK;
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
        PITH_TRY(pith__encode_emit_empty(c, i, false, err));
    }
    return PITH_OK;
}

/* Makes the pieces smaller. False if they are as small as they can be. */
static bool encode_shrink(encode_call *c) {
    if (c->encoder->text_inputs.ragged && c->budget > PITH_CHUNK_TOKENS_MIN)
        c->budget /= 2;
    else if (c->threads > 1 && !c->one_by_one)
        c->one_by_one = true;
    else if (c->encoder->text_inputs.ragged && c->budget > 1)
        c->budget /= 2;
    else if (c->window > TEXTS_PER_PART)
        c->window /= 2;
    else
        return false;
    return true;
}

static bool encode_can_shrink(const encode_call *c) {
    encode_call copy = *c;
    return encode_shrink(&copy);
}

void pith__encode_trim(const encode_call *c) {
    pith__encoder_trim(c->encoder);
    pith__tokenizer_trim(c->encoder->parts.tokenizer);
    pith__account_trim(c->executor.allocator);
}

/* After PITH_ERR_MEMORY under a memory limit: makes the pieces smaller and frees what the window
 * held. */
static bool encode_ask_for_less(encode_call *c) {
    if (!encode_shrink(c)) return false;
    pith__encode_trim(c);
    for (int i = 0; i < c->threads; i++) {
        encode_worker *w = &c->workers[i];
        pith__runner_destroy(&w->runner);
        pith__token_rows_free(&w->tokens);
        pith__arena_free(&w->rows);
        pith__arena_free(&w->chunk);
        w->failed_text = SIZE_MAX;
    }
    pith__account_trim(c->executor.allocator);
    atomic_store_explicit(&c->failed, SIZE_MAX, memory_order_relaxed);
    return true;
}

pith_status pith__encode_plan_window(encode_call *c, pith_error *err) {
    PITH_TRY(encode_order(c, err));
    encode_cut(c);
    c->side_by_side = c->chunk_count >= (size_t)c->threads && !c->one_by_one;
    c->inner_threads = c->side_by_side ? 1 : c->threads;
    return PITH_OK;
}

/* Tokenise, plan, ask whether the memory is there, run. A predicted lack of memory returns as a
 * real one does, and the caller makes the pieces smaller. */
static pith_status encode_window(encode_call *c, pith_error *err) {
    for (int i = 0; i < c->threads; i++) pith__arena_reset(&c->workers[i].rows);
    c->texts_per_part = c->count / ((size_t)c->threads * PARTS_PER_THREAD) + 1;
    if (c->texts_per_part > TEXTS_PER_PART) c->texts_per_part = TEXTS_PER_PART;
    atomic_store_explicit(&c->emitted, 0, memory_order_relaxed);
    pith__threads_run_until(c->job->stop, pith__encode_text_part, c,
                            (c->count + c->texts_per_part - 1) / c->texts_per_part, c->threads);
    PITH_TRY(pith__stop_check(c->job->stop, err));
    PITH_TRY(encode_first_fault(c, err));

    PITH_TRY(pith__encode_plan_window(c, err));
    if (c->encoder->parts.predicts && !c->job->tokens_only && encode_can_shrink(c) &&
        !pith__encode_fits(c)) {
        pith__count(c->executor.counters, PITH_COUNT_batches_predicted_smaller, 1);
        c->predicted++;
        return pith__fail(err, PITH_ERR_MEMORY, "out of memory");
    }
    if (c->side_by_side)
        pith__threads_run_until(c->job->stop, pith__encode_chunk_part, c, c->chunk_count,
                                c->threads);
    else
        for (size_t i = 0; i < c->chunk_count; i++) pith__encode_chunk_part(c, i, 0);
    PITH_TRY(pith__stop_check(c->job->stop, err));
    PITH_TRY(encode_first_fault(c, err));
    return c->results ? c->results->emit_bad(c, err) : PITH_OK;
}

/* Takes texts into the window that begins at first_text. */
static void encode_take_texts(encode_call *c) {
    const size_t left = c->job->count - c->first_text;
    c->bytes = 0;
    for (c->count = 0; c->count < left && c->count < c->window && c->bytes < WINDOW_BYTES;
         c->count++) {
        if (c->count && !pith__window_pace_admits(&c->pace, c->count, c->bytes)) break;
        const size_t text = c->first_text + c->count;
        c->bytes += c->job->given ? c->job->given->texts[text].count * sizeof(int32_t)
                                  : c->job->texts[text].size;
        if (c->job->pairs) c->bytes += c->job->pairs[c->first_text + c->count].size;
    }
}

/* While the system is short of memory: frees what is only kept for speed, and makes chunks small.
 */
static void encode_heed_pressure(encode_call *c) {
    pith__encoder *e = c->encoder;
    char why[200];
    if (!e->parts.gauge || !pith__memory_gauge_short(e->parts.gauge, why, sizeof why)) return;
    pith__encode_trim(c);
    if (e->text_inputs.ragged && c->budget > PITH_CHUNK_TOKENS_MIN)
        c->budget = PITH_CHUNK_TOKENS_MIN;
    pith__count(c->executor.counters, PITH_COUNT_pressure_cleanups, 1);
    pith__log_write(c->executor.log, PITH_LOG_INFO,
                    "%s; kept buffers are freed, and batches made small", why);
}

/* Under a memory limit a window is run again in smaller pieces until it fits or cannot be made
 * smaller; heads emit texts again then, with the same results. */
static pith_status encode_next_window(encode_call *c, pith_error *err) {
    uint64_t begin = pith__clock_ns();
    pith_status status;
    encode_heed_pressure(c);
    for (;;) {
        uint64_t predicted = c->predicted;
        encode_take_texts(c);
        status = encode_window(c, err);
        if (status != PITH_ERR_MEMORY || !c->executor.tight || !encode_ask_for_less(c)) break;
        if (c->predicted == predicted)
            pith__count(c->executor.counters, PITH_COUNT_batches_retried_smaller, 1);
    }
    if (!status)
        pith__window_pace_note(&c->pace, c->count, c->bytes,
                               (double)(pith__clock_ns() - begin) * 1e-9);
    return status;
}

/* ---- the call ---- */

pith_status pith__encode_open_heads(encode_call *c, pith_error *err) {
    const pith__encode_job *job = c->job;
    c->states = pith__arena_array(&c->arena, c->use_count, sizeof *c->states);
    if (!c->states) return pith__fail_memory(err, c->use_count * sizeof *c->states);
    for (size_t i = 0; i < c->use_count; i++) {
        const pith__head_use *use = &c->uses[i];
        pith__piece_used(use->head);
        PITH_TRY(use->head->open(&c->states[i], &c->encoder->models[use->output], use->request,
                                 &c->arena, err));
    }
    PITH_TRY(pith__encode_prompt(&c->prompt, c->encoder->parts.modules, job->prompt_name, err));
    if (job->frame && job->frame->prompt.data) c->prompt = job->frame->prompt;
    return pith__encode_count_prompt(c, err);
}

/* All that does not depend on texts. Arrays have room for the largest window, so that windows
 * allocate nothing but tokens and chunks. */
pith_status pith__encode_open(encode_call *c, pith_error *err) {
    const pith__encode_job *job = c->job;
    const pith_allocator *allocator = c->executor.allocator;
    size_t window = job->count < c->pace.most ? job->count : c->pace.most;
    c->window = window;
    c->budget = job->batch_tokens ? job->batch_tokens : c->encoder->chunk_tokens;
    PITH_TRY(pith__encode_open_heads(c, err));
    c->workers = pith__arena_array(&c->arena, (size_t)c->threads, sizeof *c->workers);
    if (!c->workers) return pith__fail_memory(err, (size_t)c->threads * sizeof *c->workers);
    for (int i = 0; i < c->threads; i++) {
        c->workers[i] = (encode_worker){ .tokens = PITH_TOKENS_INIT, .failed_text = SIZE_MAX };
        pith__arena_init(&c->workers[i].rows, allocator);
        pith__arena_init(&c->workers[i].chunk, allocator);
    }
    c->rows = pith__arena_array(&c->arena, window, sizeof *c->rows);
    c->truncated = pith__arena_array(&c->arena, window, sizeof *c->truncated);
    c->order = pith__arena_array(&c->arena, window, sizeof *c->order);
    c->ordered = pith__arena_array(&c->arena, window, sizeof *c->ordered);
    c->chunks = pith__arena_array(&c->arena, window, sizeof *c->chunks);
    if (!c->rows || !c->truncated || !c->order || !c->ordered || !c->chunks)
        return pith__fail_memory(err, window * sizeof *c->rows);
    return PITH_OK;
}

void pith__encode_end(encode_call *c) {
    if (c->workers)
        for (int i = 0; i < c->threads; i++) {
            encode_worker *w = &c->workers[i];
            pith__encode_return_runner(c, w);
            pith__token_rows_free(&w->tokens);
            pith__arena_free(&w->rows);
            pith__arena_free(&w->chunk);
        }
    pith__arena_free(&c->arena);
    if (c->gives_back) pith__account_trim(c->executor.allocator);
}

/* Counted when a window is done, so that a window that was run twice counts once. */
static void encode_count_window(const encode_call *c) {
    pith_embed_stats n = { .texts = c->count };
    for (size_t i = 0; i < c->count; i++) {
        int64_t tokens = c->rows[i].count, run = c->encoder->text_inputs.fixed_length;
        n.tokens += (uint64_t)tokens;
        n.padded_tokens += tokens && run > tokens ? (uint64_t)(run - tokens) : 0;
        n.truncated += c->truncated[i];
    }
    pith__counters *counters = c->executor.counters;
    pith__count(counters, PITH_COUNT_windows, 1);
    pith__count(counters, PITH_COUNT_texts, n.texts);
    pith__count(counters, PITH_COUNT_tokens, n.tokens);
    pith__count(counters, PITH_COUNT_padded_tokens, n.padded_tokens);
    pith__count(counters, PITH_COUNT_truncated, n.truncated);
    pith_embed_stats *stats = c->job->stats;
    if (!stats) return;
    stats->texts += n.texts;
    stats->tokens += n.tokens;
    stats->padded_tokens += n.padded_tokens;
    stats->truncated += n.truncated;
    stats->texts_done = c->first_text + c->count;
}

/* What can be told before a text is read. A limit that special tokens alone exceed would leave
 * nothing of any text. */
static pith_status encode_check_job(const pith__encoder *e, const pith__encode_job *job,
                                    pith_error *err) {
    if (job->threads < 0 || job->max_length < 0 || job->batch_tokens < 0)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "threads, max_length and batch_tokens must not be negative");
    PITH_TRY(pith__threads_check(job->threads, err));
    const size_t framed = job->frame ? job->frame->before_count + job->frame->after_count : 0;
    const int32_t limit = pith__encoder_max_length(e, job->max_length);
    if (framed && limit && framed >= (size_t)limit)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "texts are cut at %d tokens, but the model's own words around them are "
                          "%zu; raise max_length",
                          limit, framed);
    const size_t specials = pith__encode_is_bare(e, job)
                                ? 0
                                : pith__tokenizer_specials(e->parts.tokenizer, job->pairs != NULL);
    if (limit && specials > (size_t)limit && !job->given)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "texts are cut at %d tokens, but the tokenizer alone adds %zu to each; "
                          "raise max_length",
                          limit, specials);
    if (job->frame && job->frame->hidden && (e->text_inputs.ragged || !e->text_inputs.masked))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "queries are filled up with mask tokens that no token attends to, but "
                          "the graph has no input "
                          "'attention_mask'");
    return PITH_OK;
}

/* Completes the caller's wishes about windows. */
static pith_status encode_take_batching(encode_call *c, pith_error *err) {
    pith_batching b = PITH_BATCHING_INIT;
    PITH_TAKE_OPTIONS(b, c->job->batching, err);
    if (b.prefer != PITH_PREFER_THROUGHPUT && b.prefer != PITH_PREFER_LATENCY)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "prefer is %d, which is not a PITH_PREFER_* value", b.prefer);
    if (b.least < 0 || b.most < 0 || b.least > WINDOW_TEXTS_MOST || b.most > WINDOW_TEXTS_MOST)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "a window's least (%d) and most (%d) texts must be from 1 to %d", b.least,
                          b.most, WINDOW_TEXTS_MOST);
    if (!(b.target_ms >= 0) || b.target_ms > 1e9)
        return pith__fail(err, PITH_ERR_ARGUMENT, "target_ms must be from 0 to 1e9");
    if (!b.most) b.most = b.prefer == PITH_PREFER_LATENCY ? LATENCY_TEXTS : WINDOW_TEXTS;
    if (!b.least) b.least = 1;
    if (b.least > b.most)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "a window's least texts (%d) are above the most (%d)", b.least, b.most);
    c->batching = b;
    c->one_by_one = b.prefer == PITH_PREFER_LATENCY;
    pith__window_pace_begin(&c->pace, b.target_ms / 1000, (size_t)b.least, (size_t)b.most);
    return PITH_OK;
}

static pith_status encode_windows(encode_call *c, pith_error *err) {
    const pith__encode_job *job = c->job;
    PITH_TRY(pith__encode_open(c, err));
    for (; c->first_text < job->count; c->first_text += c->count) {
        PITH_TRY(encode_next_window(c, err));
        encode_count_window(c);
        if (c->batching.done) c->batching.done(c->batching.user, c->first_text, c->count);
        pith__progress_tell(job->progress, "texts", c->first_text + c->count, job->count);
    }
    return PITH_OK;
}

static pith_status encode_find_results(encode_call *c, pith_error *err) {
    c->results = pith__part_find("results");
    pith__part_used("results");
    if (!c->results)
        return pith__piece_check_for("parts", PITH_STR("results"), "results per text", err);
    c->apart = c->results->apart;
    return PITH_OK;
}

pith_status pith__encode_begin(encode_call *c, pith__encoder *e, const pith__encode_job *job,
                               const pith__head_use *uses, size_t count,
                               const pith_allocator *allocator, pith_error *err) {
    PITH_TRY(encode_check_job(e, job, err));
    *c = (encode_call){
        .encoder = e, .job = job, .uses = uses, .use_count = count, .began = pith__clock_thread_ns()
    };
    PITH_TRY(encode_take_batching(c, err));
    if (job->given) c->apart = job->given->apart;
    if (job->results) PITH_TRY(encode_find_results(c, err));
    atomic_init(&c->failed, SIZE_MAX);
    c->executor = e->parts.executor;
    c->executor.allocator = allocator;
    c->max_length = pith__encoder_max_length(e, job->max_length);
    c->threads = pith__threads_count(job->threads);
    if (c->threads > THREADS_MAX) c->threads = THREADS_MAX;
    pith__arena_init(&c->arena, allocator);
    return PITH_OK;
}

/* Peaks are summed over workers: they run at the same time. */
pith_status pith__encoder_run(pith__encoder *e, const pith__encode_job *job,
                              const pith__head_use *uses, size_t count, pith_error *err) {
    encode_call c;
    if (job->stats) job->stats->texts_done = 0;
    PITH_TRY(pith__encode_begin(&c, e, job, uses, count, e->parts.executor.allocator, err));
    pith__count(c.executor.counters, PITH_COUNT_calls, 1);
    if (e->parts.busy) pith__busy_begin(e->parts.busy, c.threads);

    pith__threads_wake(c.threads); /* while the first texts become tokens */
    pith_status status = pith__stop_check(job->stop, err);
    if (!status) status = encode_windows(&c, err);
    size_t peak = 0;
    if (c.workers)
        for (int i = 0; i < c.threads; i++) peak += c.workers[i].peak_bytes;
    if (job->stats && peak > job->stats->peak_bytes) job->stats->peak_bytes = peak;
    pith__encode_end(&c);
    if (e->parts.busy) pith__busy_end(e->parts.busy, c.executor.counters);
    return status;
}

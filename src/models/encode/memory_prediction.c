/* memory_prediction.c - the memory that a call needs, before it runs. */
#include "base/checked.h"
#include "base/error.h"
#include "base/memory/account.h"
#include "models/encode/call_state.h"

/* The chunk with the most tokens. */
static const encode_chunk *prediction_largest(const encode_call *c) {
    const encode_chunk *largest = NULL;
    int64_t most = -1;
    for (size_t k = 0; k < c->chunk_count; k++) {
        int64_t tokens = 0;
        for (size_t i = 0; i < c->chunks[k].count; i++)
            tokens += c->ordered[c->chunks[k].first + i]->count;
        if (tokens > most) {
            most = tokens;
            largest = &c->chunks[k];
        }
    }
    return largest;
}

/* The largest chunk stands for all: what a runner needs grows with its tokens. The prediction may
 * be wrong either way; too large a chunk is caught by the limit itself when it runs. */
bool pith__encode_fits(encode_call *c) {
    const encode_chunk *k = prediction_largest(c);
    pith_error fault = PITH_ERROR_INIT;
    pith_tensor *inputs;
    size_t bytes, before = pith__account_room(c->executor.allocator);
    encode_worker *w = &c->workers[0];
    if (!k) return true;
    if (pith__encode_fill_chunk(&inputs, c, w, k, &fault)) return fault.code != PITH_ERR_MEMORY;
    if (pith__runner_plan_bytes(&w->runner, &bytes, inputs, c->inner_threads, &fault))
        return fault.code != PITH_ERR_MEMORY;
    size_t workers = c->inner_threads == 1 ? (size_t)c->threads : 1, room, missing = 0;
    for (size_t i = 0; i < workers; i++) {
        size_t has = c->workers[i].runner.runtime ? pith__runner_bytes(&c->workers[i].runner) : 0;
        missing += has < bytes ? bytes - has : 0;
    }
    room = pith__account_room(c->executor.allocator);
    /* the other workers need a runner and inputs too, as this one did */
    if (workers > 1 && room < before) missing += (workers - 1) * (before - room);
    return missing <= room;
}

/* ---- for a caller ---- */

/* Rows of so many tokens for all texts of the first window. */
static pith_status prediction_fill(encode_call *c, size_t tokens, pith_error *err) {
    const size_t columns = c->encoder->text_inputs.typed ? 2 : 1;
    size_t numbers, limit = c->max_length ? (size_t)c->max_length : tokens;
    if (tokens > limit) tokens = limit;
    if (tokens > INT32_MAX || pith__mul_overflows(tokens, columns, &numbers))
        return pith__fail_memory(err, tokens);
    for (c->count = 0; c->count < c->window; c->count++) {
        pith__arena *arena = &c->workers[c->count % (size_t)c->threads].rows;
        int32_t *ids = pith__arena_array(arena, numbers, sizeof *ids);
        if (!ids) return pith__fail_memory(err, numbers * sizeof *ids);
        c->rows[c->count] =
            (pith__row){ ids, columns == 2 ? ids + tokens : NULL, (int32_t)tokens, 0, 0 };
    }
    return pith__encode_plan_window(c, err);
}

/* What tokenizing takes, for the largest number of threads that do it at once. A word of one letter
 * stands for a token. */
static pith_status prediction_tokenizing(pith_memory_need *need, encode_call *c, size_t tokens,
                                         pith_error *err) {
    pith_tokens out = PITH_TOKENS_INIT;
    size_t size = 2 * tokens,
           threads = c->window < (size_t)c->threads ? c->window : (size_t)c->threads;
    char *text = pith__arena_alloc(&c->arena, size);
    if (!text) return pith__fail_memory(err, size);
    for (size_t i = 0; i < size; i++) text[i] = i % 2 ? ' ' : 'a';
    PITH_TRY(pith__tokenizer_encode(&out, c->encoder->parts.tokenizer, (pith_str){ text, size },
                                    NULL, NULL, c->job->stop, err));
    pith__token_rows_free(&out);
    need->total += pith__tokenizer_missing_bytes(c->encoder->parts.tokenizer, threads);
    return PITH_OK;
}

/* The activations of a chunk. The last chunks may be shared by more threads than the others. */
static pith_status prediction_chunk(size_t *bytes, const encode_call *c, encode_worker *w,
                                    const pith_tensor *inputs, pith_error *err) {
    size_t shared = 0;
    PITH_TRY(pith__runner_plan_bytes(&w->runner, bytes, inputs, c->inner_threads, err));
    if (c->side_by_side && c->threads > 1 && !c->executor.tight)
        PITH_TRY(pith__runner_plan_bytes(&w->runner, &shared, inputs, LAST_CHUNK_THREADS, err));
    if (shared > *bytes) *bytes = shared;
    return PITH_OK;
}

/* Plans every chunk. Any worker may take any of them, so that at most each of the largest ones has
 * a worker of its own: the workers' peaks are kept in descending order. */
static pith_status prediction_window(pith_memory_need *need, encode_call *c, pith_error *err) {
    for (size_t k = 0; k < c->chunk_count; k++) {
        encode_worker *w = &c->workers[c->side_by_side ? k % (size_t)c->threads : 0];
        pith_tensor *inputs;
        size_t bytes;
        PITH_TRY(pith__encode_fill_chunk(&inputs, c, w, &c->chunks[k], err));
        PITH_TRY(prediction_chunk(&bytes, c, w, inputs, err));
        for (int i = 0; i < (c->side_by_side ? c->threads : 1); i++) {
            const size_t held = c->workers[i].peak_bytes;
            if (bytes <= held) continue;
            c->workers[i].peak_bytes = bytes;
            bytes = held;
        }
    }
    for (int i = 0; i < c->threads; i++) need->activations += c->workers[i].peak_bytes;
    return PITH_OK;
}

/* A call of texts of one length is set up in memory that is counted and then freed; nothing is
 * tokenised and nothing runs. */
pith_status pith__encoder_predict(pith_memory_need *need, pith__encoder *e,
                                  const pith__encode_job *job, size_t tokens, pith_error *err) {
    encode_call c;
    pith__account account; /* whose peak is what the call holds besides its activations */
    *need = (pith_memory_need){ 0, 0 };
    pith__account_init(&account, e->parts.executor.allocator, 0, 0);
    PITH_TRY(pith__encode_begin(&c, e, job, NULL, 0, &account.allocator, err));
    c.makes_runners = true;
    pith_status status = pith__encode_open(&c, err);
    if (!status && job->count) status = prediction_tokenizing(need, &c, tokens, err);
    if (!status && job->count) status = prediction_fill(&c, tokens, err);
    if (!status && job->count) status = prediction_window(need, &c, err);
    if (c.workers)
        for (int i = 0; i < c.threads; i++) pith__runner_destroy(&c.workers[i].runner);
    pith__encode_end(&c);
    pith__account_trim(e->parts.executor.allocator); /* the pool holds what this used */
    need->total += need->activations + atomic_load_explicit(&account.peak, memory_order_relaxed);
    return status;
}

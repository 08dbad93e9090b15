/* tokenizer.c - using a tokenizer: one text or pair, a window of it, many texts in parallel; names
 * of tokens. */
#include "text/tokenizer.h"

#include <pthread.h>

#include "base/memory/account.h"
#include "base/os/cpu.h"
#include "base/os/threads.h"
#include "base/progress.h"
#include "text/added_tokens.h"
#include "text/encoding.h"
#include "text/first_tokens.h"
#include "text/post_processing.h"
#include "text/sources/config_files.h"
#include "text/token_rows.h"

void pith__tokenizer_unload(pith_tokenizer *tokenizer) {
    if (!tokenizer) return;
    pith__encoding_pool_free(tokenizer);
    if (tokenizer->fused && tokenizer->model->unfuse)
        tokenizer->model->unfuse(tokenizer->fused, tokenizer->allocator);
    if (tokenizer->model_self && tokenizer->model->unload)
        tokenizer->model->unload(tokenizer->model_self);
}

void pith__tokenizer_trim(const pith_tokenizer *tokenizer) { pith__encoding_pool_free(tokenizer); }

size_t pith__tokenizer_missing_bytes(const pith_tokenizer *tokenizer, size_t count) {
    return pith__encoding_missing_bytes(tokenizer, count);
}

pith__arena *pith__tokenizer_arena(const pith_tokenizer *tokenizer) { return tokenizer->arena; }

static pith_status check_utf8(pith_str text, pith_error *err) {
    size_t valid = pith__utf8_valid_prefix(text.data, text.size);
    return valid == text.size
               ? PITH_OK
               : pith__fail(err, PITH_ERR_ARGUMENT, "invalid UTF-8 at byte %zu", valid);
}

static pith_status take_options(pith_tokenize_options *o, const pith_tokenize_options *options,
                                pith_error *err) {
    *o = (pith_tokenize_options)PITH_TOKENIZE_OPTIONS_INIT;
    if (!options) return PITH_OK;
    if (options->call.size < sizeof(size_t))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "the options have no size; initialise them with PITH_TOKENIZE_OPTIONS_INIT");
    memcpy(o, options, options->call.size < sizeof *o ? options->call.size : sizeof *o);
    if (o->max_length < 0 || o->stride < 0 || o->call.threads < 0)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "max_length, stride and threads must not be negative");
    PITH_TRY(pith__threads_check(o->call.threads, err));
    if (o->left < -1 || o->left > 1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "left is %d, which is none of -1, 0 and 1",
                          o->left);
    if (o->cut < PITH_CUT_LONGEST || o->cut > PITH_CUT_SECOND)
        return pith__fail(err, PITH_ERR_ARGUMENT, "cut is %d, which is not a PITH_CUT_* value",
                          o->cut);
    return PITH_OK;
}

/* Encodes both texts, each up to the limit at least. *split: where the tokens of the second begin.
 */
static pith_status tokenizer_encode_texts(size_t *split, pith__encoding *enc,
                                          const pith_str texts[2], int count, size_t limit,
                                          bool offsets) {
    pith_status status = PITH_OK;
    enc->count = 0;
    for (int i = 0; !status && i < count; i++) {
        *split = i ? enc->count : 0;
        enc->limit = limit == SIZE_MAX ? SIZE_MAX : *split + limit;
        status = pith__first_tokens_encode(enc, texts[i], offsets);
    }
    return status;
}

/* Appends one text or pair. If the rest of a text is cut off anyway, encoding stops after as many
 * tokens as are kept. A pair under longest_first with an odd maximum is the exception where both
 * texts reach the limit: which of them keeps the odd token depends on their full lengths, so they
 * are encoded again. */
static pith_status tokenizer_encode_framed(pith_tokens *tokens, pith__encoding *enc, pith_str text,
                                           const pith_str *pair, const pith_tokenize_options *o) {
    pith_str texts[2] = { text, pair ? *pair : PITH_STR("") };
    pith__truncation t = pith__truncation_choose(enc->tokenizer, o, pair);
    size_t split = 0, most = (size_t)t.max_length;
    const int count = 1 + (pair != NULL);
    /* Only the beginning of a text is needed if the rest is cut off and the caller does not ask for
     * it. */
    bool bounded = t.on && !t.left && !o->overflow && t.strategy == PITH_CUT_LONGEST;
    for (int i = 0; i < count; i++) PITH_TRY(check_utf8(texts[i], enc->err));
    pith_status status = tokenizer_encode_texts(&split, enc, texts, count,
                                                bounded ? most : SIZE_MAX, !o->no_offsets);
    /* The longer text keeps the odd token, and beginnings do not tell which one that is. */
    if (!status && bounded && pair && most % 2 && split > most && enc->count - split > most)
        status = tokenizer_encode_texts(&split, enc, texts, count, SIZE_MAX, !o->no_offsets);
    const size_t first = tokens->count;
    if (!status)
        status =
            pith__post_process(tokens, enc, texts, pair ? split : enc->count, pair != NULL, &t, o);
    if (!status && enc->tokenizer->untyped && !o->raw && tokens->count > first)
        memset(tokens->type_ids + first, 0, (tokens->count - first) * sizeof *tokens->type_ids);
    if (enc->out_of_memory) status = pith__fail_memory(enc->err, text.size);
    if (enc->stopped) status = pith__stop_check(enc->stop, enc->err);
    return status == PITH_ERR_MEMORY
               ? pith__fail_at(enc->err, status, "a text of %zu bytes: ", text.size)
               : status;
}

/* The same with the rules of the model. */
static pith_status tokenizer_encode(pith_tokens *tokens, pith__encoding *enc, pith_str text,
                                    const pith_str *pair, const pith_tokenize_options *options) {
    const pith__text_rules *h = &enc->tokenizer->rules;
    const size_t first = tokens->count;
    pith_tokenize_options o = *options;
    if (!o.raw && h->bare) o.no_specials = 1;
    if (!o.raw && h->characters && o.max_length && o.left <= 0 && !o.overflow)
        text = pith__text_first_characters(text, (int64_t)o.max_length * h->characters);
    pith_status status = tokenizer_encode_framed(tokens, enc, text, pair, &o);
    if (!status && !o.raw && h->drops) pith__text_drop(tokens, first, h->dropped);
    return status;
}

/* allocator: what tokens grow with. */
static pith_status encode_alone(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text,
                                const pith_str *pair, const pith_tokenize_options *o,
                                const pith_allocator *allocator, pith__stop *stop,
                                pith_error *err) {
    PITH_TRY(pith__tokens_check(tokens, err));
    PITH_TRY(pith__stop_check(stop, err));
    pith__encoding *enc = pith__encoding_acquire(tokenizer);
    if (!enc) return pith__fail_memory(err, sizeof *enc);
    enc->err = err;
    enc->tokens_allocator = allocator;
    enc->stop = stop;
    size_t count = tokens->count;
    int32_t truncated = tokens->truncated;
    tokens->count = 0;
    tokens->truncated = 0;
    pith_status status = tokenizer_encode(tokens, enc, text, pair, o);
    if (status) {
        tokens->count = count;
        tokens->truncated = truncated;
    }
    pith__encoding_release(enc);
    return status;
}

pith_status pith__tokenizer_encode(pith_tokens *tokens, const pith_tokenizer *tokenizer,
                                   pith_str text, const pith_str *pair,
                                   const pith_tokenize_options *options, pith__stop *stop,
                                   pith_error *err) {
    pith_tokenize_options o;
    PITH_TRY(take_options(&o, options, err));
    return encode_alone(tokens, tokenizer, text, pair, &o, tokenizer->allocator, stop, err);
}

/* The caller's tokens may outlive the tokenizer. */
pith_status pith__tokenizer_tokenize(pith_tokens *tokens, const pith_tokenizer *tokenizer,
                                     pith_str text, const pith_str *pair,
                                     const pith_tokenize_options *options, pith_error *err) {
    pith_tokenize_options o;
    PITH_TRY(take_options(&o, options, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    pith_status status = encode_alone(tokens, tokenizer, text, pair, &o,
                                      pith__account_host(tokenizer->allocator), stop, err);
    return pith__account_explain_for(tokenizer->allocator, status, err);
}

/* ---- batches ---- */

/* Threads draw parts and tokenize them into buffers of their own. A part ends after PART_BYTES or
 * PART_TEXTS, about a hundred microseconds of work, so that its buffer nearly fits the L1 cache.
 * Smaller parts cost more to hand out; larger ones leave threads idle at the end. The place of a
 * part in the result is known when all parts before it are done: the thread that finds this out for
 * some parts copies them and gives their buffers back. No thread waits for another, except to make
 * the result larger. */
enum { PART_BYTES = 4096, PART_TEXTS = 128 };

typedef struct batch_part {
    struct batch_part *next;   /* in one of the batch's lists */
    size_t number, begin, end; /* texts begin to end */
    size_t place;              /* where its tokens begin in the result */
    pith_tokens tokens;
    pith_status status;
    pith_error err;
} batch_part;

typedef struct batch {
    const pith_tokenizer *tokenizer;
    const pith_str *texts, *pairs;
    size_t count;
    size_t *ends; /* within the part until it is put in place */
    pith_tokenize_options options;
    pith__stop *stop;
    pith__progress *progress;
    pith_tokens *result;
    pith__encoding **calls;   /* by worker, NULL before its first part: caches of words stay with a
                                 processor */
    pthread_mutex_t lock;     /* of all that follows, and of the result's size */
    pthread_cond_t copied;    /* no thread is copying */
    size_t taken;             /* texts that have been given to parts */
    size_t numbered, placed;  /* parts: those given out, those that have their place */
    size_t total;             /* tokens of the latter */
    size_t ready;             /* and their texts */
    batch_part *empty, *done; /* buffers; parts that have no place yet */
    int copying;              /* threads that write into the result */
    pith_status status;       /* of the first part that failed */
    pith_error err;
} batch;

/* Texts of a range after tokens, which are counted from there. */
static pith_status encode_texts(pith_tokens *tokens, pith__encoding *enc,
                                const pith_allocator *allocator, const batch *b, size_t begin,
                                size_t end, pith_error *err) {
    pith_status status = PITH_OK;
    int32_t truncated = 0;
    enc->err = err;
    enc->tokens_allocator = allocator;
    enc->stop = b->stop;
    tokens->count = 0;
    for (size_t i = begin; i < end && !status; i++) {
        tokens->truncated = 0;
        status = pith__stop_check(b->stop, err);
        if (!status)
            status = tokenizer_encode(tokens, enc, b->texts[i], b->pairs ? &b->pairs[i] : NULL,
                                      &b->options);
        if (status && !pith__status_stops(status)) pith__fail_at(err, status, "text %zu: ", i);
        truncated += tokens->truncated;
        b->ends[i] = tokens->count;
        if (tokens == b->result) pith__progress_tell(b->progress, "texts", i + 1, b->count);
    }
    tokens->truncated = truncated;
    return status;
}

static pith_status encode_serially(batch *b, pith_error *err) {
    pith__encoding *enc = pith__encoding_acquire(b->tokenizer);
    if (!enc) return pith__fail_memory(err, sizeof *enc);
    const pith_allocator *host = pith__account_host(b->tokenizer->allocator);
    pith_status status = encode_texts(b->result, enc, host, b, 0, b->count, err);
    pith__encoding_release(enc);
    return status;
}

/* The end of the part that begins with a text. */
static size_t part_end(const batch *b, size_t begin) {
    size_t i = begin, bytes = 0;
    for (; i < b->count && i - begin < PART_TEXTS && bytes < PART_BYTES; i++)
        bytes += b->texts[i].size + (b->pairs ? b->pairs[i].size : 0);
    return i;
}

/* The next texts, with a buffer; NULL: memory is out, or something has failed. */
static batch_part *take_part(batch *b) {
    pthread_mutex_lock(&b->lock);
    batch_part *part = b->status ? NULL : b->empty;
    if (part) {
        b->empty = part->next;
    } else if (!b->status) {
        part = pith__memory_alloc(b->tokenizer->allocator, sizeof *part, 64);
        if (part)
            *part = (batch_part){ .tokens = PITH_TOKENS_INIT };
        else
            b->status = pith__fail_memory(&b->err, sizeof *part);
    }
    if (part) {
        part->number = b->numbered++;
        part->begin = b->taken;
        part->end = b->taken = part_end(b, part->begin);
    }
    pthread_mutex_unlock(&b->lock);
    return part;
}

static pith_status encode_part(batch *b, batch_part *part, int worker) {
    const pith_allocator *allocator = b->tokenizer->allocator;
    pith__encoding **enc = &b->calls[worker];
    part->tokens.count = 0;
    if ((!*enc && !(*enc = pith__encoding_acquire(b->tokenizer))) ||
        !pith__tokens_reserve(&part->tokens, allocator, PART_BYTES / 3))
        return pith__fail_memory(&part->err, PART_BYTES);
    return encode_texts(&part->tokens, *enc, allocator, b, part->begin, part->end, &part->err);
}

/* Takes the done parts that follow those in place, in order, and makes room for them. Called with
 * the lock held; the caller copies them unless the batch has failed, and is counted as copying. */
static batch_part *place_parts(batch *b) {
    pith_tokens *result = b->result;
    batch_part *placed = NULL, **last = &placed;
    for (batch_part **link = &b->done; *link;) {
        batch_part *part = *link;
        if (part->number != b->placed) {
            link = &part->next;
            continue;
        }
        *link = part->next;
        part->next = NULL;
        *last = part;
        last = &part->next;
        b->placed++;
        if (part->status && !b->status) {
            b->status = part->status;
            b->err = part->err;
        }
        part->place = b->total;
        b->total += part->tokens.count;
        result->truncated += part->tokens.truncated;
        link = &b->done;
    }
    while (b->total > result->capacity && b->copying && !b->status)
        pthread_cond_wait(&b->copied, &b->lock);
    if (!b->status && !pith__tokens_reserve(result, pith__account_host(b->tokenizer->allocator),
                                            b->total - result->count))
        b->status = pith__fail_memory(&b->err, b->total);
    if (!b->status) result->count = b->total;
    b->copying++;
    return placed;
}

/* Encodes the next texts into a buffer of the part's own, then copies to the result all parts that
 * have their place by now. A part has a place when all before it are done, since its tokens follow
 * theirs. Copying happens outside of the lock, and buffers are used again. */
static void tokenizer_run_part(void *context, size_t index, int worker) {
    batch *b = context;
    batch_part *part = take_part(b), *last = NULL;
    (void)index;
    if (!part) return;
    part->status = encode_part(b, part, worker);
    pthread_mutex_lock(&b->lock);
    part->next = b->done;
    b->done = part;
    batch_part *placed = place_parts(b);
    bool failed = b->status;
    for (batch_part *p = placed; p; p = p->next) b->ready += p->end - p->begin;
    const size_t ready = b->ready;
    pthread_mutex_unlock(&b->lock);
    if (placed && !failed) pith__progress_tell(b->progress, "texts", ready, b->count);
    for (part = placed; part; last = part, part = part->next) {
        if (failed) continue;
        pith__tokens_copy(b->result, part->place, &part->tokens, 0, part->tokens.count,
                          !b->options.no_offsets);
        for (size_t i = part->begin; i < part->end; i++) b->ends[i] += part->place;
    }
    pthread_mutex_lock(&b->lock);
    if (last) {
        last->next = b->empty;
        b->empty = placed;
    }
    if (!--b->copying) pthread_cond_broadcast(&b->copied);
    pthread_mutex_unlock(&b->lock);
}

static void free_parts(batch_part *part, const pith_allocator *allocator) {
    for (batch_part *next; part; part = next) {
        next = part->next;
        pith__token_rows_free(&part->tokens);
        pith__memory_free(allocator, part);
    }
}

/* Texts in parallel, in parts of neighbours. Each thread has one call state for all of its parts;
 * results are put together in the order of the texts, whichever thread is first. */
static pith_status encode_parts(batch *b, int threads, pith_error *err) {
    const pith_allocator *allocator = b->tokenizer->allocator;
    size_t parts = 0;
    for (size_t i = 0; i < b->count; i = part_end(b, i)) parts++;
    if ((size_t)threads > parts) threads = (int)parts;
    b->calls = pith__memory_alloc(allocator, (size_t)threads * sizeof *b->calls, 64);
    if (!b->calls) return pith__fail_memory(err, (size_t)threads * sizeof *b->calls);
    memset(b->calls, 0, (size_t)threads * sizeof *b->calls);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->copied, NULL);
    b->result->count = 0;
    b->result->truncated = 0;
    pith__threads_run_until(b->stop, tokenizer_run_part, b, parts, threads);
    pthread_cond_destroy(&b->copied);
    pthread_mutex_destroy(&b->lock);
    for (int i = 0; i < threads; i++)
        if (b->calls[i]) pith__encoding_release(b->calls[i]);
    free_parts(b->empty, allocator);
    free_parts(b->done, allocator);
    pith__memory_free(allocator, b->calls);
    PITH_TRY(pith__stop_check(b->stop, err));
    if (b->status && err) *err = b->err;
    return b->status;
}

/* The end of the window that begins at token `begin` of a text that ends at `end`. */
static size_t window_end(const pith_tokens *tokens, size_t begin, size_t end) {
    size_t i = begin;
    while (i < end && tokens->windows[i] == tokens->windows[begin]) i++;
    return i;
}

/* Pads all windows to the widest first one, where the file asks for that: from the last one on,
 * each to its place. Later windows may be wider, where the first one has no room for any token;
 * they stay. */
static pith_status pad_batch(batch *b, pith_error *err) {
    const pith__padding *p = &b->tokenizer->post_processing->padding;
    pith_tokens *tokens = b->result;
    size_t width = 0, total = 0, from = tokens->count, to;
    if (!b->options.raw || !p->on || p->fixed) return PITH_OK;
    for (size_t i = 0, begin = 0; i < b->count; begin = b->ends[i++]) {
        size_t n = window_end(tokens, begin, b->ends[i]) - begin;
        if (n > width && tokens->windows[begin] == 0) width = n;
    }
    for (size_t i = 0, begin = 0; i < b->count; i++) {
        do {
            size_t end = window_end(tokens, begin, b->ends[i]);
            total += end - begin > width ? end - begin : width;
            begin = end;
        } while (begin < b->ends[i]);
    }
    const pith_allocator *allocator = b->tokenizer->allocator;
    size_t bytes = total * pith__tokens_row_bytes();
    bool admitted = total == tokens->count || pith__account_admits(allocator, bytes);
    if (!admitted ||
        !pith__tokens_reserve(tokens, pith__account_host(allocator), total - tokens->count))
        return pith__fail_memory(err, bytes);
    to = total;
    for (size_t i = b->count; i--;) {
        if (i % 256 == 0) PITH_TRY(pith__stop_check(b->stop, err));
        size_t begin = i ? b->ends[i - 1] : 0;
        b->ends[i] = to;
        do {
            size_t n = 0, more;
            uint32_t window = from > begin ? tokens->windows[from - 1] : 0;
            for (; from > begin && tokens->windows[from - 1] == window; from--) n++;
            more = n < width ? width - n : 0;
            to -= n + more;
            pith__tokens_copy(tokens, to + (p->left ? more : 0), tokens, from, n, true);
            for (size_t k = 0; k < more; k++)
                pith__tokens_put(tokens, to + (p->left ? k : n + k), p->id, p->type_id, window,
                                 false);
        } while (from > begin);
    }
    tokens->count = total;
    return PITH_OK;
}

static pith_status encode_batch(pith_tokens *tokens, size_t *ends, const pith_tokenizer *tokenizer,
                                const pith_str *texts, const pith_str *pairs, size_t count,
                                const pith_tokenize_options *options, pith_error *err) {
    batch b = { .tokenizer = tokenizer,
                .texts = texts,
                .pairs = pairs,
                .count = count,
                .ends = ends,
                .result = tokens };
    PITH_TRY(pith__tokens_check(tokens, err));
    PITH_TRY(take_options(&b.options, options, err));
    pith__stop own;
    pith__progress told;
    b.stop = pith__stop_begin(&own, &b.options.call);
    b.progress = pith__progress_begin(&told, &b.options.call);
    PITH_TRY(pith__stop_check(b.stop, err));
    int threads = pith__threads_count(b.options.call.threads);
    pith_status status =
        threads > 1 && count > 1 ? encode_parts(&b, threads, err) : encode_serially(&b, err);
    if (!status) status = pad_batch(&b, err);
    if (!status) pith__progress_tell(b.progress, "texts", count, count);
    if (status) tokens->count = 0;
    return status;
}

pith_status pith__tokenizer_tokenize_batch(pith_tokens *tokens, size_t *ends,
                                           const pith_tokenizer *tokenizer, const pith_str *texts,
                                           const pith_str *pairs, size_t count,
                                           const pith_tokenize_options *options, pith_error *err) {
    pith_status status = encode_batch(tokens, ends, tokenizer, texts, pairs, count, options, err);
    return pith__account_explain_for(tokenizer->allocator, status, err);
}

/* ---- names ---- */

int32_t pith__tokenizer_id(const pith_tokenizer *t, pith_str token) {
    uint32_t i = pith__map_get(&t->added_tokens->by_content, token);
    return i != UINT32_MAX ? t->added_tokens->tokens[i].id : t->model->id(t->model_self, token);
}

bool pith__tokenizer_is_special(const pith_tokenizer *t, int32_t id) {
    const pith__added_token *added = pith__added_tokens_find(t->added_tokens, id);
    return added && added->flags & PITH_ADDED_SPECIAL;
}

pith_str pith__tokenizer_token(const pith_tokenizer *t, int32_t id) {
    const pith__added_token *added = pith__added_tokens_find(t->added_tokens, id);
    if (added) return added->pattern;
    pith_str token = t->model->token(t->model_self, id);
    bool bad = t->from_frozen && token.data &&
               pith__utf8_valid_prefix(token.data, token.size) != token.size;
    return bad ? (pith_str){ NULL, 0 } : token;
}

int32_t pith__tokenizer_vocab_size(const pith_tokenizer *t) {
    int32_t size = t->model->size(t->model_self);
    if (t->added_tokens->count) {
        int32_t last =
            t->added_tokens->tokens[t->added_tokens->by_id[t->added_tokens->count - 1]].id;
        if (last >= size) size = last + 1;
    }
    return size;
}

int32_t pith__tokenizer_own_length(const pith_tokenizer *t) {
    return t->truncates && t->post_processing->truncation.on
               ? (int32_t)t->post_processing->truncation.max_length
               : 0;
}

bool pith__tokenizer_left(const pith_tokenizer *t) { return t->left; }

pith_str pith__tokenizer_file(const pith_tokenizer *t) { return t->file; }

size_t pith__tokenizer_specials(const pith_tokenizer *t, bool pair) {
    return pith__post_processing_specials(t->post_processing, pair);
}

int32_t pith__tokenizer_max_length(const pith_tokenizer *t) {
    return (int32_t)t->config->model_max_length;
}

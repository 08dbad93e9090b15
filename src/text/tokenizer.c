/* tokenizer.c - using a tokenizer: one text or pair, a window of it, many texts in parallel; names of tokens. */
#include "text/tokenizer.h"

#include "base/account.h"
#include "base/cpu.h"
#include "base/pool.h"
#include "text/added.h"
#include "text/call.h"
#include "text/framing.h"
#include "text/steps.h"
#include "text/tokens.h"

/* Texts one thread takes at a time: small enough to balance, large enough that taking costs nothing. */
#define BATCH_PART 32

void pith_tokenizer_unload(pith_tokenizer *tokenizer) {
    if (!tokenizer) return;
    pith_call_pool_free(tokenizer);
    if (tokenizer->fused && tokenizer->model->unfuse) tokenizer->model->unfuse(tokenizer->fused, tokenizer->allocator);
}

void pith_tokenizer_trim(const pith_tokenizer *tokenizer) { pith_call_pool_free(tokenizer); }

pith_arena *pith_tokenizer_arena(const pith_tokenizer *tokenizer) { return tokenizer->arena; }

static pith_status check_utf8(pith_str text, pith_error *err) {
    size_t valid = pith_utf8_valid_prefix(text.data, text.size);
    return valid == text.size ? PITH_OK : pith_fail(err, PITH_ERR_ARGUMENT, "invalid UTF-8 at byte %zu", valid);
}

static pith_status take_options(pith_tokenize_options *o, const pith_tokenize_options *options, pith_error *err) {
    *o = (pith_tokenize_options)PITH_TOKENIZE_OPTIONS_INIT;
    if (!options) return PITH_OK;
    if (options->size < sizeof(size_t)) return pith_fail(err, PITH_ERR_ARGUMENT, "options without size");
    memcpy(o, options, options->size < sizeof *o ? options->size : sizeof *o);
    if (o->max_length < 0 || o->stride < 0 || o->threads < 0)
        return pith_fail(err, PITH_ERR_ARGUMENT, "max_length, stride and threads must not be negative");
    if (o->cut < PITH_CUT_LONGEST || o->cut > PITH_CUT_SECOND)
        return pith_fail(err, PITH_ERR_ARGUMENT, "cut is %d, no pith_cut", o->cut);
    return PITH_OK;
}

/* Appends one text or pair. */
static pith_status encode(pith_tokens *tokens, pith_call *call, pith_str text, const pith_str *pair,
                          const pith_tokenize_options *o) {
    pith_str texts[2] = { text, pair ? *pair : PITH_STR("") };
    pith_truncation t = pith_truncation_choose(call->tokenizer->framing, o, pair);
    size_t split = 0;
    /* Only the beginning of a text is needed where the rest is cut off and nobody asks for it. */
    bool bounded = t.on && !t.left && !o->overflow && t.strategy == PITH_CUT_LONGEST;
    pith_status status = PITH_OK;
    call->count = 0;
    for (int i = 0; !status && i <= (pair != NULL); i++) {
        PITH_TRY(check_utf8(texts[i], call->err));
        split = i ? call->count : 0;
        call->limit = bounded ? split + (size_t)t.max_length : SIZE_MAX;
        status = pith_encode_text(call, texts[i], !o->no_offsets);
    }
    if (!status) status = pith_frame(tokens, call, texts, pair ? split : call->count, pair != NULL, &t, o);
    return call->out_of_memory ? pith_fail_memory(call->err, text.size) : status;
}

/* allocator: what tokens grow with. */
static pith_status encode_alone(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text,
                                const pith_str *pair, const pith_tokenize_options *options,
                                const pith_allocator *allocator, pith_error *err) {
    pith_tokenize_options o;
    PITH_TRY(pith_tokens_check(tokens, err));
    PITH_TRY(take_options(&o, options, err));
    pith_call *call = pith_call_acquire(tokenizer);
    if (!call) return pith_fail_memory(err, sizeof *call);
    call->err = err;
    call->tokens_allocator = allocator;
    size_t count = tokens->count;
    int32_t truncated = tokens->truncated;
    tokens->count = 0;
    tokens->truncated = 0;
    pith_status status = encode(tokens, call, text, pair, &o);
    if (status) {
        tokens->count = count;
        tokens->truncated = truncated;
    }
    pith_call_release(call);
    return status;
}

pith_status pith_tokenizer_encode(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text,
                                  const pith_str *pair, const pith_tokenize_options *options, pith_error *err) {
    return encode_alone(tokens, tokenizer, text, pair, options, tokenizer->allocator, err);
}

/* The caller's tokens may outlive the tokenizer. */
pith_status pith_tokenize(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text, const pith_str *pair,
                          const pith_tokenize_options *options, pith_error *err) {
    return encode_alone(tokens, tokenizer, text, pair, options, pith_account_host(tokenizer->allocator), err);
}

/* ---- batches ---- */

typedef struct batch_part {
    pith_tokens tokens;
    size_t place; /* where its tokens begin in the result */
    pith_status status;
    pith_error err;
} batch_part;

/* Parts are tokenised side by side, then, when it is known how long each is, put together side by side. */
typedef struct batch {
    const pith_tokenizer *tokenizer;
    const pith_str *texts, *pairs;
    size_t count;
    size_t *ends; /* within the part until the parts are put together */
    pith_tokenize_options options;
    batch_part *parts;
    pith_tokens *result;
    size_t width; /* tokens every window is padded to; 0: none */
} batch;

static size_t part_end(const batch *b, size_t part) {
    return (part + 1) * BATCH_PART < b->count ? (part + 1) * BATCH_PART : b->count;
}

/* Texts [begin, end), one behind the other. */
static pith_status encode_texts(pith_tokens *tokens, const pith_allocator *allocator, const batch *b, size_t begin,
                                size_t end, pith_error *err) {
    pith_call *call = pith_call_acquire(b->tokenizer);
    pith_status status = PITH_OK;
    int32_t truncated = 0;
    if (!call) return pith_fail_memory(err, sizeof *call);
    call->err = err;
    call->tokens_allocator = allocator;
    for (size_t i = begin; i < end && !status; i++) {
        tokens->truncated = 0;
        status = encode(tokens, call, b->texts[i], b->pairs ? &b->pairs[i] : NULL, &b->options);
        if (status) pith_fail_at(err, status, "text %zu: ", i);
        truncated += tokens->truncated;
        b->ends[i] = tokens->count;
    }
    tokens->truncated = truncated;
    pith_call_release(call);
    return status;
}

static void encode_part(void *context, size_t index, int worker) {
    batch *b = context;
    batch_part *part = &b->parts[index];
    (void)worker;
    part->status =
        encode_texts(&part->tokens, b->tokenizer->allocator, b, index * BATCH_PART, part_end(b, index), &part->err);
}

/* The end of the window that begins at token `begin` of a text that ends at `end`. */
static size_t window_end(const pith_tokens *tokens, size_t begin, size_t end) {
    size_t i = begin;
    while (i < end && tokens->windows[i] == tokens->windows[begin]) i++;
    return i;
}

/* Tokens of the part in the result; they are put there if `put` is true, and the ends of its texts changed. */
static size_t place_windows(batch *b, size_t index, bool put) {
    const batch_part *part = &b->parts[index];
    const pith_padding *p = &b->tokenizer->framing->padding;
    size_t at = part->place, begin = 0;
    if (!b->width && !put) return part->tokens.count;
    for (size_t i = index * BATCH_PART; i < part_end(b, index); i++) {
        size_t end = b->ends[i];
        do {
            size_t stop = b->width ? window_end(&part->tokens, begin, end) : end, n = stop - begin;
            size_t more = b->width > n ? b->width - n : 0;
            if (put) {
                pith_tokens_copy(b->result, at + (p->left ? more : 0), &part->tokens, begin, n);
                for (size_t k = 0; k < more; k++)
                    pith_tokens_put(b->result, at + (p->left ? 0 : n) + k, p->id, p->type_id,
                                    n ? part->tokens.windows[begin] : 0, false);
            }
            at += n + more;
            begin = stop;
        } while (begin < end);
        if (put) b->ends[i] = at;
    }
    return at - part->place;
}

static void place_part(void *context, size_t index, int worker) {
    (void)worker;
    place_windows(context, index, true);
}

/* The widest first window, as far as the file asks for padding to it. */
static size_t padded_width(const batch *b) {
    const pith_padding *p = &b->tokenizer->framing->padding;
    size_t widest = 0, begin = 0;
    if (!b->options.raw || !p->on || p->fixed) return 0;
    for (size_t i = 0; i < b->count; i++) {
        if (i % BATCH_PART == 0) begin = 0;
        size_t end = window_end(&b->parts[i / BATCH_PART].tokens, begin, b->ends[i]);
        if (end - begin > widest) widest = end - begin;
        begin = b->ends[i];
    }
    return widest;
}

static pith_status run_parts(batch *b, size_t parts, int threads, pith_error *err) {
    size_t total = 0;
    pith_pool_run(encode_part, b, parts, threads);
    for (size_t k = 0; k < parts; k++) {
        if (!b->parts[k].status) continue;
        if (err) *err = b->parts[k].err;
        return b->parts[k].status;
    }
    b->width = padded_width(b);
    b->result->count = 0;
    b->result->truncated = 0;
    for (size_t k = 0; k < parts; k++) {
        b->parts[k].place = total;
        total += place_windows(b, k, false);
        b->result->truncated += b->parts[k].tokens.truncated;
    }
    if (!pith_tokens_reserve(b->result, pith_account_host(b->tokenizer->allocator), total))
        return pith_fail_memory(err, total);
    pith_pool_run(place_part, b, parts, threads);
    b->result->count = total;
    return PITH_OK;
}

pith_status pith_tokenize_batch(pith_tokens *tokens, size_t *ends, const pith_tokenizer *tokenizer,
                                const pith_str *texts, const pith_str *pairs, size_t count,
                                const pith_tokenize_options *options, pith_error *err) {
    batch b = { tokenizer, texts, pairs, count, ends, PITH_TOKENIZE_OPTIONS_INIT, NULL, tokens, 0 };
    size_t parts = (count + BATCH_PART - 1) / BATCH_PART;
    PITH_TRY(pith_tokens_check(tokens, err));
    PITH_TRY(take_options(&b.options, options, err));
    const pith_padding *padding = &tokenizer->framing->padding;
    int threads = b.options.threads ? b.options.threads : pith_cpu_get()->threads;
    if ((threads == 1 || parts <= 1) && !(b.options.raw && padding->on && !padding->fixed)) {
        tokens->count = 0;
        pith_status status = encode_texts(tokens, pith_account_host(tokenizer->allocator), &b, 0, count, err);
        if (status) tokens->count = 0;
        return status;
    }
    b.parts = pith_memory_alloc(tokenizer->allocator, (parts + 1) * sizeof *b.parts, 64);
    if (!b.parts) return pith_fail_memory(err, parts * sizeof *b.parts);
    for (size_t k = 0; k < parts; k++) b.parts[k] = (batch_part){ .tokens = PITH_TOKENS_INIT };
    pith_status status = run_parts(&b, parts, threads, err);
    for (size_t k = 0; k < parts; k++) pith_tokens_free(&b.parts[k].tokens);
    pith_memory_free(tokenizer->allocator, b.parts);
    return status;
}

/* ---- names ---- */

int32_t pith_tokenizer_id(const pith_tokenizer *t, pith_str token) {
    uint32_t i = pith_map_get(&t->added->by_content, token);
    return i != UINT32_MAX ? t->added->tokens[i].id : t->model->id(t->model_self, token);
}

pith_str pith_tokenizer_token(const pith_tokenizer *t, int32_t id) {
    const pith_added_token *added = pith_added_find(t->added, id);
    if (added) return added->pattern;
    pith_str token = t->model->token(t->model_self, id);
    bool bad = t->from_image && token.data && pith_utf8_valid_prefix(token.data, token.size) != token.size;
    return bad ? (pith_str){ NULL, 0 } : token;
}

int32_t pith_tokenizer_vocab_size(const pith_tokenizer *t) {
    int32_t size = t->model->size(t->model_self);
    if (t->added->count) {
        int32_t last = t->added->tokens[t->added->by_id[t->added->count - 1]].id;
        if (last >= size) size = last + 1;
    }
    return size;
}

int32_t pith_tokenizer_max_length(const pith_tokenizer *t) { return (int32_t)t->config->model_max_length; }

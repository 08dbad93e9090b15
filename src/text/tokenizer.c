/* tokenizer.c - using a tokenizer: one text or pair, a window of it, many texts in parallel; names of tokens. */
#include "text/tokenizer.h"

#include "base/account.h"
#include "base/pool.h"
#include "text/added.h"
#include "text/call.h"
#include "text/framing.h"
#include "text/steps.h"

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
    return PITH_OK;
}

/* Appends one text or pair. */
static pith_status encode(pith_tokens *tokens, bool *more, pith_call *call, pith_str text, const pith_str *pair,
                          const pith_tokenize_options *o, size_t index) {
    pith_str texts[2] = { text, pair ? *pair : PITH_STR("") };
    pith_truncation t = pith_truncation_choose(call->tokenizer->framing, o, pair);
    size_t split = 0;
    /* Only the beginning of a text is needed where the rest is cut off and nobody asks how much there was. */
    bool bounded = t.on && !t.left && !more && t.strategy == PITH_TRUNCATE_LONGEST_FIRST;
    call->count = 0;
    for (int i = 0; i <= (pair != NULL); i++) {
        PITH_TRY(check_utf8(texts[i], call->err));
        split = i ? call->count : 0;
        call->limit = bounded ? split + (size_t)t.max_length : SIZE_MAX;
        PITH_TRY(pith_encode_text(call, texts[i], !o->no_offsets));
    }
    PITH_TRY(pith_frame(tokens, more, call, texts, pair ? split : call->count, pair != NULL, &t, o, index, call->err));
    return call->out_of_memory ? pith_fail_memory(call->err, text.size) : PITH_OK;
}

/* allocator: what tokens grow with. */
static pith_status encode_alone(pith_tokens *tokens, bool *more, const pith_tokenizer *tokenizer, pith_str text,
                                const pith_str *pair, const pith_tokenize_options *options, size_t index,
                                const pith_allocator *allocator, pith_error *err) {
    pith_tokenize_options o;
    PITH_TRY(take_options(&o, options, err));
    pith_call *call = pith_call_acquire(tokenizer);
    if (!call) return pith_fail_memory(err, sizeof *call);
    call->err = err;
    call->tokens_allocator = allocator;
    size_t count = tokens->count;
    int32_t truncated = tokens->truncated;
    tokens->count = 0;
    tokens->truncated = 0;
    pith_status status = encode(tokens, more, call, text, pair, &o, index);
    if (status && call->out_of_memory) status = pith_fail_memory(err, text.size);
    if (status) {
        tokens->count = count;
        tokens->truncated = truncated;
    }
    pith_call_release(call);
    return status;
}

pith_status pith_tokenizer_encode_window(pith_tokens *tokens, bool *more, const pith_tokenizer *tokenizer,
                                         pith_str text, const pith_str *pair, const pith_tokenize_options *options,
                                         size_t index, pith_error *err) {
    return encode_alone(tokens, more, tokenizer, text, pair, options, index, tokenizer->allocator, err);
}

pith_status pith_tokenizer_encode(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text,
                                  const pith_str *pair, const pith_tokenize_options *options, pith_error *err) {
    return encode_alone(tokens, NULL, tokenizer, text, pair, options, 0, tokenizer->allocator, err);
}

/* The caller's tokens may outlive the tokenizer. */
pith_status pith_tokenize(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text, const pith_str *pair,
                          const pith_tokenize_options *options, pith_error *err) {
    return encode_alone(tokens, NULL, tokenizer, text, pair, options, 0, pith_account_host(tokenizer->allocator), err);
}

/* ---- batches ---- */

typedef struct batch_part {
    pith_tokens tokens;
    pith_status status;
    pith_error err;
} batch_part;

typedef struct batch {
    const pith_tokenizer *tokenizer;
    const pith_str *texts;
    size_t count;
    size_t *ends; /* within the part until the parts are joined */
    pith_tokenize_options options;
    batch_part *parts;
} batch;

static void encode_part(void *context, size_t index, int worker) {
    batch *b = context;
    batch_part *part = &b->parts[index];
    size_t end = (index + 1) * BATCH_PART < b->count ? (index + 1) * BATCH_PART : b->count;
    pith_call *call = pith_call_acquire(b->tokenizer);
    (void)worker;
    if (!call) {
        part->status = pith_fail_memory(&part->err, sizeof *call);
        return;
    }
    call->err = &part->err;
    int32_t truncated = 0;
    for (size_t i = index * BATCH_PART; i < end && !part->status; i++) {
        part->tokens.truncated = 0;
        part->status = encode(&part->tokens, NULL, call, b->texts[i], NULL, &b->options, 0);
        if (part->status && call->out_of_memory) part->status = pith_fail_memory(&part->err, b->texts[i].size);
        if (part->status) pith_fail_at(&part->err, part->status, "text %zu: ", i);
        truncated += part->tokens.truncated;
        b->ends[i] = part->tokens.count;
    }
    part->tokens.truncated = truncated;
    pith_call_release(call);
}

static void append(pith_tokens *to, const pith_tokens *from, size_t begin, size_t n) {
    memcpy(to->ids + to->count, from->ids + begin, n * sizeof *to->ids);
    memcpy(to->type_ids + to->count, from->type_ids + begin, n * sizeof *to->type_ids);
    memcpy(to->begin + to->count, from->begin + begin, n * sizeof *to->begin);
    memcpy(to->end + to->count, from->end + begin, n * sizeof *to->end);
    memcpy(to->word_ids + to->count, from->word_ids + begin, n * sizeof *to->word_ids);
    memcpy(to->special + to->count, from->special + begin, n);
    to->count += n;
}

static void append_padding(pith_tokens *to, const pith_padding *p, size_t n) {
    for (size_t i = to->count; i < to->count + n; i++) {
        to->ids[i] = p->id;
        to->type_ids[i] = p->type_id;
        to->begin[i] = to->end[i] = 0;
        to->word_ids[i] = -1;
        to->special[i] = 1;
    }
    to->count += n;
}

/* One array out of the parts; ends become those in it. width: tokens every text is padded to, 0 none. */
static pith_status join(pith_tokens *tokens, batch *b, size_t parts, size_t total, size_t width, pith_error *err) {
    const pith_padding *p = &b->tokenizer->framing->padding;
    if (!pith_tokens_reserve(tokens, b->tokenizer->allocator, width ? width * b->count : total))
        return pith_fail_memory(err, total);
    for (size_t k = 0; k < parts; k++) {
        size_t begin = 0;
        for (size_t i = k * BATCH_PART; i < b->count && i < (k + 1) * BATCH_PART; i++) {
            size_t n = b->ends[i] - begin, more = width > n ? width - n : 0;
            if (p->left) append_padding(tokens, p, more);
            append(tokens, &b->parts[k].tokens, begin, n);
            if (!p->left) append_padding(tokens, p, more);
            begin = b->ends[i];
            b->ends[i] = tokens->count;
        }
        tokens->truncated += b->parts[k].tokens.truncated;
    }
    return PITH_OK;
}

pith_status pith_tokenizer_encode_batch(pith_tokens *tokens, size_t *ends, const pith_tokenizer *tokenizer,
                                        const pith_str *texts, size_t count, const pith_tokenize_options *options,
                                        int threads, pith_error *err) {
    batch b = { .tokenizer = tokenizer, .texts = texts, .count = count, .ends = ends };
    size_t parts = (count + BATCH_PART - 1) / BATCH_PART, total = 0, width = 0;
    pith_status status = PITH_OK;
    PITH_TRY(take_options(&b.options, options, err));
    b.parts = pith_memory_alloc(tokenizer->allocator, (parts + 1) * sizeof *b.parts, 64);
    if (!b.parts) return pith_fail_memory(err, parts * sizeof *b.parts);
    for (size_t k = 0; k < parts; k++) b.parts[k] = (batch_part){ PITH_TOKENS_INIT, PITH_OK, PITH_ERROR_INIT };
    pith_pool_run(encode_part, &b, parts, threads);
    for (size_t k = 0; k < parts && !status; k++) {
        status = b.parts[k].status;
        if (status && err) *err = b.parts[k].err;
        total += b.parts[k].tokens.count;
    }
    if (!status) {
        const pith_padding *p = &tokenizer->framing->padding;
        for (size_t i = 0; b.options.raw && p->on && !p->fixed && i < count; i++) {
            size_t n = ends[i] - (i % BATCH_PART ? ends[i - 1] : 0);
            if (n > width) width = n;
        }
        tokens->count = 0;
        tokens->truncated = 0;
        status = join(tokens, &b, parts, total, width, err);
    }
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

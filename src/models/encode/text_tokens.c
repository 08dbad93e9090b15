/* text_tokens.c - the texts of a window become rows of tokens. */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "engine/exec/profile.h"
#include "models/encode/call_state.h"
#include "models/encode/given_tokens.h"
#include "models/encode/text_results.h"
#include "text/text_rules.h"

/* The error lists the prompts that the model has, as far as the message has room. */
pith_status pith__encode_prompt(pith_str *prompt, const pith__modules *m, const char *name,
                                pith_error *err) {
    pith_str wanted = name ? pith__str_of(name) : m->default_prompt;
    *prompt = PITH_STR("");
    if (!wanted.size) return PITH_OK;
    size_t i = 0;
    while (i < m->prompt_count && !pith__str_eq(m->prompts[i].name, wanted)) i++;
    if (i == m->prompt_count) {
        char known[300] = "";
        for (size_t p = 0, used = 0;
             p < m->prompt_count && used + m->prompts[p].name.size + 3 < sizeof known; p++) {
            memcpy(known + used, p ? ", " : "", p ? 2 : 0);
            used += p ? 2 : 0;
            memcpy(known + used, m->prompts[p].name.data, m->prompts[p].name.size);
            used += m->prompts[p].name.size;
            known[used] = 0;
        }
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pith_embed_options.prompt_name: the model has no prompt '" PITH_STR_FMT
                          "' (it has: %s)",
                          PITH_STR_ARG(wanted), known[0] ? known : "none");
    }
    *prompt = m->prompts[i].text;
    return PITH_OK;
}

bool pith__encode_is_bare(const pith__encoder *e, const pith__encode_job *job) {
    return e->parts.modules->no_specials || (job->frame && job->frame->bare);
}

static pith_tokenize_options encode_tokenize_options(const encode_call *c) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.max_length = c->max_length;
    const pith__encode_frame *f = c->job->frame;
    if (f && f->marker >= 0 && options.max_length > 1) options.max_length--;
    if (f && options.max_length) options.max_length -= (int32_t)(f->before_count + f->after_count);
    options.no_offsets = 1;
    options.no_specials = pith__encode_is_bare(c->encoder, c->job);
    return options;
}

/* Counts the rows that belong to the prompt: those of the prompt alone, without a special token at
 * its end. Source: sentence-transformers, Transformer._get_prompt_length. */
pith_status pith__encode_count_prompt(encode_call *c, pith_error *err) {
    const pith_tokenize_options options = encode_tokenize_options(c);
    pith_tokens tokens = PITH_TOKENS_INIT;
    if (c->encoder->parts.modules->include_prompt || !c->prompt.size) return PITH_OK;
    pith_status status = pith__tokenizer_encode(&tokens, c->encoder->parts.tokenizer, c->prompt,
                                                NULL, &options, c->job->stop, err);
    if (!status) c->prompt_rows = (int64_t)tokens.count;
    if (!status && tokens.count && tokens.special[tokens.count - 1]) c->prompt_rows--;
    pith__token_rows_free(&tokens);
    return status && !pith__status_stops(status) ? pith__fail_at(err, status, "prompt: ") : status;
}

/* *text with the prompt in front of it. */
static pith_status encode_add_prompt(pith_str *text, const encode_call *c, pith__arena *arena,
                                     pith_error *err) {
    size_t size;
    if (!c->prompt.size) return PITH_OK;
    if (pith__add_overflows(c->prompt.size, text->size, &size))
        return pith__fail_memory(err, text->size);
    char *both = pith__arena_alloc(arena, size);
    if (!both) return pith__fail_memory(err, size);
    memcpy(both, c->prompt.data, c->prompt.size);
    if (text->size) memcpy(both + c->prompt.size, text->data, text->size);
    *text = (pith_str){ both, size };
    return PITH_OK;
}

pith_str pith__encode_cut_characters(const pith__encoder *e, int32_t max_length, pith_str text) {
    const int64_t limit = (int64_t)max_length * e->token_characters;
    return limit ? pith__text_first_characters(text, limit) : text;
}

/* Leaves out the tokens of this id; -1: none. */
static void encode_drop(pith_tokens *tokens, int32_t id) {
    size_t n = 0;
    if (id < 0) return;
    for (size_t i = 0; i < tokens->count; i++) {
        if (tokens->ids[i] == id) continue;
        tokens->ids[n] = tokens->ids[i];
        tokens->type_ids[n++] = tokens->type_ids[i];
    }
    tokens->count = n;
}

/* Fillers that a text of so many tokens gets. */
static size_t encode_count_fillers(const encode_call *c, size_t tokens) {
    size_t length = c->job->frame ? (size_t)c->job->frame->length : 0;
    if (c->max_length && length > (size_t)c->max_length) length = (size_t)c->max_length;
    return tokens < length ? length - tokens : 0;
}

/* Copies n numbers, with the marker behind the first and fillers at the end. */
static void encode_frame_numbers(int32_t *to, const int32_t *from, size_t n,
                                 const pith__encode_frame *f, size_t fillers, int32_t marker,
                                 int32_t filler) {
    size_t head = f && f->marker >= 0 ? n > 0 : n;
    if (head) memcpy(to, from, head * sizeof *to);
    if (f && f->marker >= 0) {
        to[head] = marker;
        if (n > head) memcpy(to + head + 1, from + head, (n - head) * sizeof *to);
        n++;
    }
    for (size_t i = 0; i < fillers; i++) to[n + i] = filler;
}

/* n ids become a row of the window, with others before and after them. */
static pith_status encode_keep_between(const encode_call *c, encode_worker *w, pith__row *row,
                                       const int32_t *from, size_t n, pith_error *err) {
    const pith__encode_frame *f = c->job->frame;
    const size_t count = f->before_count + n + f->after_count;
    const size_t columns = c->encoder->text_inputs.typed ? 2 : 1;
    int32_t *ids =
        count <= INT32_MAX ? pith__arena_array(&w->rows, count * columns, sizeof *ids) : NULL;
    if (!ids) return pith__fail_memory(err, count * columns * sizeof *ids);
    if (f->before_count) memcpy(ids, f->before, f->before_count * sizeof *ids);
    if (n) memcpy(ids + f->before_count, from, n * sizeof *ids);
    if (f->after_count) memcpy(ids + f->before_count + n, f->after, f->after_count * sizeof *ids);
    *row = (pith__row){ ids, columns == 2 ? ids + count : NULL, (int32_t)count, 0, 0 };
    return PITH_OK;
}

pith_status pith__encode_keep_row(const encode_call *c, encode_worker *w, pith__row *row,
                                  const int32_t *from, const int32_t *type_ids, size_t n,
                                  pith_error *err) {
    const pith__encode_frame *f = c->job->frame;
    const size_t columns = c->encoder->text_inputs.typed ? 2 : 1;
    if (f && (f->before_count || f->after_count))
        return encode_keep_between(c, w, row, from, n, err);
    const size_t framed = n + (f && f->marker >= 0);
    const size_t fillers = encode_count_fillers(c, framed), count = framed + fillers;
    int32_t *ids =
        count <= INT32_MAX ? pith__arena_alloc(&w->rows, count * columns * sizeof *ids) : NULL;
    if (!ids) return pith__fail_memory(err, count * columns * sizeof *ids);
    encode_frame_numbers(ids, from, n, f, fillers, f ? f->marker : 0, f ? f->filler : 0);
    if (columns == 2) encode_frame_numbers(ids + count, type_ids, n, f, fillers, 0, 0);
    *row = (pith__row){ ids, columns == 2 ? ids + count : NULL, (int32_t)count, 0, 0 };
    if (f && f->hidden) row->hidden = (int32_t)fillers;
    return PITH_OK;
}

/* What a text that is cut has at its end is kept. Source: sentence-transformers 6.2,
 * base/modules/transformer.py, _restore_chat_template_suffix. */
static void encode_keep_end(const encode_call *c, pith_tokens *tokens) {
    const pith__encode_frame *f = c->job->frame;
    if (!f || !f->end_count || !c->max_length || tokens->count < (size_t)c->max_length) return;
    const size_t n = f->end_count < tokens->count ? f->end_count : tokens->count;
    memcpy(tokens->ids + tokens->count - n, f->end + f->end_count - n, n * sizeof *tokens->ids);
}

pith_status pith__encode_text_row(encode_call *c, encode_worker *w, size_t i, pith_error *err) {
    const size_t number = c->first_text + i;
    if (c->job->given) return c->job->given->take(c, w, i, err);
    const pith_tokenize_options options = encode_tokenize_options(c);
    pith_str text = pith__encode_cut_characters(c->encoder, c->max_length, c->job->texts[number]);
    PITH_TRY(encode_add_prompt(&text, c, &w->rows, err));
    const pith_str *pair = c->job->pairs ? &c->job->pairs[number] : NULL;
    pith_status status = pith__tokenizer_encode(&w->tokens, c->encoder->parts.tokenizer, text, pair,
                                                &options, c->job->stop, err);
    if (pith__status_stops(status)) return status;
    if (status) return pith__fail_at(err, status, "text %zu: ", number);
    encode_drop(&w->tokens, c->encoder->dropped);
    encode_keep_end(c, &w->tokens);
    c->truncated[i] = w->tokens.truncated != 0;
    return pith__encode_keep_row(c, w, &c->rows[i], w->tokens.ids, w->tokens.type_ids,
                                 w->tokens.count, err);
}

void pith__encode_text_part(void *context, size_t part, int index) {
    encode_call *c = context;
    encode_worker *w = &c->workers[index];
    const size_t first = part * c->texts_per_part, left = c->count - first;
    const size_t count = left < c->texts_per_part ? left : c->texts_per_part;
    pith__lane *lane = pith__profile_lane(c->job->profile);
    uint64_t begin = pith__clock_ns();
    /* Texts before one that has failed are still tried, so that the first of those that fail is
     * named. */
    for (size_t i = first; i < first + count && i < pith__encode_first_failed(c); i++) {
        pith_error fault = PITH_ERROR_INIT;
        if (pith__stop_asked(c->job->stop)) break;
        if (pith__encode_text_row(c, w, i, &fault))
            pith__encode_fail_text(c, w, &fault, i);
        else if (c->results)
            c->results->note(c, i, NULL);
    }
    pith__lane_phase(lane, "tokenise", begin, (int64_t)count);
    pith__count(c->executor.counters, PITH_COUNT_tokenize_ns, pith__clock_ns() - begin);
}

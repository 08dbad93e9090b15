/* given_tokens.c - see given_tokens.h. */
#include "models/encode/given_tokens.h"

#include "base/error.h"
#include "models/encode/text_results.h"

/* Gather takes a negative index as one from the end, so the network would not find these out. */
static pith_status given_check(const encode_call *c, const pith_token_ids *t, size_t number,
                               pith_error *err) {
    const int32_t vocabulary = pith__tokenizer_vocab_size(c->encoder->parts.tokenizer);
    for (size_t i = 0; i < t->count; i++) {
        if (t->ids[i] < 0 || t->ids[i] >= vocabulary)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "text %zu: id %d at place %zu is not in the vocabulary, which ends "
                              "before %d",
                              number, t->ids[i], i, vocabulary);
        if (t->type_ids && t->type_ids[i] < 0)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "text %zu: type id %d at place %zu is negative", number,
                              t->type_ids[i], i);
    }
    return PITH_OK;
}

/* As many tokens as the network has places for; 0: not known. */
static int64_t given_limit(const encode_call *c) {
    const int64_t positions = c->encoder->parts.modules->positions;
    const int64_t fixed = c->encoder->text_inputs.fixed_length;
    return fixed && (!positions || fixed < positions) ? fixed : positions;
}

/* The row is the caller's own memory, unless something is put into it. */
static pith_status given_take(encode_call *c, encode_worker *w, size_t i, pith_error *err) {
    const size_t number = c->first_text + i;
    const pith_token_ids *t = &c->job->given->texts[number];
    const bool leaves_prompt = !c->encoder->parts.modules->include_prompt;
    const int64_t limit = given_limit(c);
    pith__row *row = &c->rows[i];
    c->truncated[i] = 0;
    if (t->count > INT32_MAX || (limit && t->count > (size_t)limit))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "text %zu: has %zu tokens; the model has positions for %lld", number,
                          t->count, (long long)(limit ? limit : INT32_MAX));
    PITH_TRY(given_check(c, t, number, err));
    const int32_t *types = t->type_ids;
    if (!types && c->encoder->text_inputs.typed) {
        types = pith__arena_array(&w->rows, t->count, sizeof *types); /* zeros */
        if (!types) return pith__fail_memory(err, t->count * sizeof *types);
    }
    if (c->job->frame)
        PITH_TRY(pith__encode_keep_row(c, w, row, t->ids, types, t->count, err));
    else
        *row = (pith__row){ t->ids, types, (int32_t)t->count, 0, 0 };
    if (leaves_prompt) row->prompt = t->prompt < t->count ? (int32_t)t->prompt : (int32_t)t->count;
    if (!limit || row->count <= limit) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "text %zu: has %d tokens with those of its role; the model has positions for "
                      "%lld",
                      number, row->count, (long long)limit);
}

pith_status pith__given_tokens_begin(pith__given_tokens *given, const pith_token_ids *texts,
                                     int32_t max_length, const char *prompt_name, pith_error *err) {
    *given = (pith__given_tokens){ texts, given_take, pith__encode_run_apart };
    if (max_length)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "max_length is %d, but texts that are tokens are never cut; leave it 0",
                          max_length);
    if (prompt_name && *prompt_name)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "prompt_name is '%s', but nothing is put in front of texts that are "
                          "tokens; put the tokens of the prompt there",
                          prompt_name);
    return PITH_OK;
}

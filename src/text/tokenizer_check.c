/* tokenizer_check.c - checks the tables of a loaded tokenizer: ids in range, strings inside of
 * their pool, added tokens findable both ways.
 *
 * The search for added tokens narrows a range of sorted patterns byte by byte, so it rests on three
 * things that are checked here: the order is sorted, `first` splits it by first byte, and every
 * entry is a token of that set. Builds with assertions call it for every tokenizer. A damaged
 * frozen tokenizer must pass or be refused before, so nothing is checked that only a right file
 * has, such as that each token is found under its id. Left out: the tables inside of models that
 * have no pith__vocab. */
#include "text/added_tokens.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

static pith_status tokenizer_wrong(pith_error *err, const char *what, size_t at) {
    return pith__fail(err, PITH_ERR_FORMAT, "tokenizer: %s (at %zu)", what, at);
}

static pith_status check_vocab(const pith__vocab *v, pith_error *err) {
    if ((v->mask & (v->mask + 1)) || v->count > v->mask)
        return tokenizer_wrong(err, "the table of tokens is full, or no power of two", v->mask);
    for (size_t i = 0; i <= v->mask; i++) {
        const pith__vocab_slot *slot = &v->slots[i];
        if (slot->size == UINT32_MAX) continue;
        if (slot->begin > v->pool_size || slot->size > v->pool_size - slot->begin)
            return tokenizer_wrong(err, "a token lies outside of the pool", i);
        if (slot->id < 0 || slot->id >= v->id_count)
            return tokenizer_wrong(err, "a token's id is out of range", i);
    }
    for (int32_t id = 0; id < v->id_count; id++)
        if (v->by_id[id] > v->mask && v->by_id[id] != UINT32_MAX)
            return tokenizer_wrong(err, "an id has a slot outside of the table", (size_t)id);
    return PITH_OK;
}

static pith_status check_added_ids(const pith__added_tokens *added, pith_error *err) {
    for (size_t i = 0; i < added->count; i++) {
        const pith__added_token *token = &added->tokens[i];
        if (token->id < 0 || token->id > PITH_TOKEN_ID_MAX)
            return tokenizer_wrong(err, "an added token's id is out of range", i);
        if (pith__map_get(&added->by_content, token->content) != i)
            return tokenizer_wrong(err, "an added token is not found by its content", i);
        if (added->by_id[i] >= added->count)
            return tokenizer_wrong(err, "an added token of that number is not there", i);
        if (i > 0 && added->tokens[added->by_id[i - 1]].id > added->tokens[added->by_id[i]].id)
            return tokenizer_wrong(err, "the added tokens are not in the order of their ids", i);
    }
    return PITH_OK;
}

static pith_status check_added_set(const pith__added_tokens *added,
                                   const pith__added_tokens_set *set, uint32_t normalized,
                                   pith_error *err) {
    if (set->first[0] != 0 || set->first[256] != set->count || set->count > added->count)
        return tokenizer_wrong(err, "the first bytes do not cover the added tokens", set->count);
    for (int byte = 0; byte < 256; byte++) {
        if (set->first[byte + 1] < set->first[byte] || set->first[byte + 1] > set->count)
            return tokenizer_wrong(err, "the first bytes are not in order", (size_t)byte);
        for (uint32_t i = set->first[byte]; i < set->first[byte + 1]; i++) {
            if (set->order[i] >= added->count)
                return tokenizer_wrong(err, "an added token of that number is not there", i);
            const pith__added_token *token = &added->tokens[set->order[i]];
            const pith_str pattern = token->pattern;
            if ((token->flags & PITH_ADDED_NORMALIZED) != normalized || !pattern.size ||
                (unsigned char)pattern.data[0] != byte)
                return tokenizer_wrong(err, "an added token is in the wrong place", i);
            if (i == 0) continue;
            const pith_str before = added->tokens[set->order[i - 1]].pattern;
            const size_t least = before.size < pattern.size ? before.size : pattern.size;
            const int order = memcmp(before.data, pattern.data, least);
            if (order > 0 || (order == 0 && before.size > pattern.size))
                return tokenizer_wrong(err, "the added tokens are not sorted", i);
        }
    }
    return PITH_OK;
}

pith_status pith__tokenizer_check(const pith_tokenizer *t, pith_error *err) {
    const int32_t size = t->model->size(t->model_self);
    if (size < 0 || size > PITH_TOKEN_ID_MAX)
        return tokenizer_wrong(err, "the vocabulary's size is out of range", 0);
    if (t->unknown_id < -1 || t->unknown_id > PITH_TOKEN_ID_MAX)
        return tokenizer_wrong(err, "the id of unknown tokens is out of range", 0);
    if (t->model->token == pith__vocab_model_token) PITH_TRY(check_vocab(t->model_self, err));
    PITH_TRY(check_added_ids(t->added_tokens, err));
    PITH_TRY(check_added_set(t->added_tokens, &t->added_tokens->raw, 0, err));
    return check_added_set(t->added_tokens, &t->added_tokens->normalized, PITH_ADDED_NORMALIZED,
                           err);
}

/* text_rules.c - see text_rules.h. Source: model2vec 0.10, StaticModel.__init__ and tokenize.
 */
#include "text/text_rules.h"

#include "text/pipeline.h"
#include "text/token_rows.h"

/* A token with more characters counts as one with so many. */
#define TOKEN_CHARACTERS_MAX 256

void pith__tokenizer_take_rules(pith_tokenizer *tokenizer, pith__text_rules rules) {
    tokenizer->rules = rules;
}

static int32_t text_count_characters(pith_str text) {
    int32_t n = 0;
    for (size_t i = 0; i < text.size && n < TOKEN_CHARACTERS_MAX; i++)
        n += ((uint8_t)text.data[i] & 0xc0) != 0x80;
    return n;
}

/* The median by counting, since lengths are small. Of an even number of tokens it is the mean of
 * the middle two, cut to an integer, as model2vec has it. */
int32_t pith__text_median_token(const pith_tokenizer *tokenizer) {
    int64_t counts[TOKEN_CHARACTERS_MAX + 1] = { 0 }, total = 0, before = 0;
    int32_t middle[2] = { -1, -1 };
    for (int32_t id = 0; id < pith__tokenizer_vocab_size(tokenizer); id++) {
        pith_str token = pith__tokenizer_token(tokenizer, id);
        if (!token.data) continue;
        counts[text_count_characters(token)]++;
        total++;
    }
    for (int32_t n = 0; n <= TOKEN_CHARACTERS_MAX; n++) {
        before += counts[n];
        if (middle[0] < 0 && before * 2 >= total) middle[0] = n;
        if (middle[1] < 0 && before * 2 > total) middle[1] = n;
    }
    return total ? (middle[0] + middle[1]) / 2 : 0;
}

pith_str pith__text_first_characters(pith_str text, int64_t characters) {
    int64_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        n += ((uint8_t)text.data[i] & 0xc0) != 0x80;
        if (n > characters) return (pith_str){ text.data, i };
    }
    return text;
}

void pith__text_drop(pith_tokens *tokens, size_t first, int32_t id) {
    size_t n = first;
    for (size_t i = first; i < tokens->count; i++)
        if (tokens->ids[i] != id) pith__tokens_copy(tokens, n++, tokens, i, 1, true);
    tokens->count = n;
}

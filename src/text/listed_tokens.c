/* listed_tokens.c - added tokens that are listed next to a vocabulary: added_tokens_decoder of tokenizer_config.json
 * ({"id": {"content": …, "lstrip": …}}) or, if that is missing, added_tokens.json ({"token": id}); and
 * additional_special_tokens. Only for tokenizers without tokenizer.json, which has all of them. */
#include "text/added.h"
#include "text/framing.h"
#include "text/sources.h"

static int64_t read_id(pith_json *j, pith_str key) {
    int64_t id = 0;
    for (size_t i = 0; i < key.size && id < PITH_TOKEN_ID_MAX; i++) {
        if (key.data[i] < '0' || key.data[i] > '9') id = PITH_TOKEN_ID_MAX;
        id = id * 10 + (key.data[i] - '0');
    }
    if (!key.size || id >= PITH_TOKEN_ID_MAX)
        pith_json_fail(j, PITH_ERR_FORMAT, "\"" PITH_STR_FMT "\" is not a token id", PITH_STR_ARG(key));
    return id;
}

/* Whether the token is one of those with a name: these are special. */
static bool is_named(const pith_tokenizer_config *c, pith_str token) {
    const pith_str names[] = { c->unk_token, c->bos_token, c->eos_token, c->cls_token,
                               c->sep_token, c->pad_token, c->mask_token };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].data && pith_str_eq(names[i], token)) return true;
    return false;
}

typedef struct old_token {
    pith_str content;
    int32_t id;
} old_token;

/* added_tokens.json is in no order; tokens are added in that of their ids. */
static void add_old_tokens(pith_json *j, pith_loader *loader) {
    old_token *tokens = NULL;
    size_t count = 0, capacity = 0;
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (!pith_arena_grow(loader->scratch, (void **)&tokens, count, &capacity, sizeof *tokens)) {
            pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        old_token token = { key, pith_json_id(j) };
        size_t at = count++;
        for (; at && tokens[at - 1].id > token.id; at--) tokens[at] = tokens[at - 1];
        tokens[at] = token;
    }
    for (size_t i = 0; i < count && !j->failed; i++) {
        uint32_t flags = is_named(loader->config, tokens[i].content) ? PITH_ADDED_SPECIAL : PITH_ADDED_NORMALIZED;
        if (pith_added_add_listed(loader, tokens[i].content, tokens[i].id, flags)) j->failed = true;
    }
}

static void add_more_specials(pith_json *j, pith_loader *loader) {
    pith_json_array(j);
    while (pith_json_next_item(j)) {
        if (pith_json_peek(j) == PITH_JSON_STRING) {
            pith_str token = pith_json_string(j);
            uint32_t known = pith_map_get(&loader->tokenizer->added->by_content, token);
            if (known == UINT32_MAX && !j->failed && pith_source_special(loader, token, 0)) j->failed = true;
        } else
            pith_added_parse(j, loader, -1);
    }
}

pith_status pith_listed_tokens_add(pith_loader *loader) {
    const pith_tokenizer_config *c = loader->config;
    pith_str key, json[] = { c->added_tokens, c->added_tokens.data ? (pith_str){ NULL, 0 } : c->old_added_tokens,
                             c->more_specials };
    static const char *const names[] = { "tokenizer_config.json: added_tokens_decoder", "added_tokens.json",
                                         "tokenizer_config.json: additional_special_tokens" };
    for (int i = 0; i < 3; i++) {
        if (!json[i].data) continue;
        pith_json *j = pith_arena_alloc(loader->scratch, sizeof *j);
        if (!j) return pith_fail_memory(loader->err, sizeof *j);
        pith_json_init(j, json[i], names[i], loader->scratch, loader->err);
        if (i == 1)
            add_old_tokens(j, loader);
        else if (i == 2 && pith_json_peek(j) == PITH_JSON_ARRAY)
            add_more_specials(j, loader);
        else if (i == 2 || pith_json_null(j)) /* an object gives names to tokens that are added elsewhere */
            pith_json_skip(j);
        else
            for (pith_json_object(j); pith_json_next_key(j, &key);) pith_added_parse(j, loader, read_id(j, key));
        pith_json_finish(j);
        if (j->failed) return loader->err->code ? loader->err->code : pith_fail_memory(loader->err, 1);
    }
    return PITH_OK;
}

/* listed_tokens.c - added tokens that are listed next to a vocabulary: added_tokens_decoder of
 * tokenizer_config.json ({"id": {"content": …, "lstrip": …}}) or, if that is missing,
 * added_tokens.json ({"token": id}). */
#include <stdlib.h>

#include "text/added_tokens.h"
#include "text/post_processing.h"
#include "text/sources/config_files.h"
#include "text/sources/tokenizer_source.h"

static int64_t read_id(pith__json *j, pith_str key) {
    int64_t id = 0;
    for (size_t i = 0; i < key.size && id < PITH_TOKEN_ID_MAX; i++) {
        if (key.data[i] < '0' || key.data[i] > '9') id = PITH_TOKEN_ID_MAX;
        id = id * 10 + (key.data[i] - '0');
    }
    if (!key.size || id >= PITH_TOKEN_ID_MAX)
        pith__json_fail(j, PITH_ERR_FORMAT, "\"" PITH_STR_FMT "\" is not a token id",
                        PITH_STR_ARG(key));
    return id;
}

/* Whether the token is one of those with a name: these are special. */
static bool is_named(const pith__tokenizer_config *c, pith_str token) {
    for (size_t i = 0; i < c->named_count; i++)
        if (c->named[i].content.data && pith__str_eq(c->named[i].content, token)) return true;
    return false;
}

typedef struct listed_token {
    pith_str content;
    uint32_t flags;
    int64_t id;
    size_t place; /* in the file */
} listed_token;

typedef struct listed_tokens {
    listed_token *tokens;
    size_t count, capacity;
} listed_tokens;

/* By id, those of one id as the file has them. */
static int compare_listed(const void *a, const void *b) {
    const listed_token *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static bool put_listed(listed_tokens *list, pith__json *j, pith__loader *loader,
                       listed_token token) {
    if (!pith__arena_grow(loader->scratch, (void **)&list->tokens, list->count, &list->capacity,
                          sizeof token)) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return false;
    }
    token.place = list->count;
    list->tokens[list->count++] = token;
    return true;
}

/* {"id": {"content": …}} */
static void read_listed(listed_tokens *list, pith__json *j, pith__loader *loader) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        pith__named_token token = { .flags = 0 };
        int64_t id = read_id(j, key);
        pith__named_token_parse(&token, j, loader->scratch);
        if (j->failed || !token.content.data) continue;
        if (!token.special && !is_named(loader->config, token.content))
            token.flags &= ~(uint32_t)PITH_ADDED_SPECIAL;
        if (!put_listed(list, j, loader, (listed_token){ token.content, token.flags, id, 0 }))
            return;
    }
}

/* {"token": id} */
static void read_old(listed_tokens *list, pith__json *j, pith__loader *loader) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        pith_str content = pith__json_copy(j, loader->scratch, key);
        uint32_t flags =
            is_named(loader->config, content) ? PITH_ADDED_SPECIAL : PITH_ADDED_NORMALIZED;
        if (!put_listed(list, j, loader, (listed_token){ content, flags, pith__json_id(j), 0 }))
            return;
    }
}

pith_status pith__listed_tokens_add(pith__loader *loader, bool exact) {
    const pith__tokenizer_config *c = loader->config;
    const bool old = !c->added_tokens.data;
    listed_tokens list = { NULL, 0, 0 };
    pith_str json = old ? c->old_added_tokens : c->added_tokens;
    pith__json *j = pith__arena_alloc(loader->scratch, sizeof *j);
    if (!j) return pith__fail_memory(loader->err, sizeof *j);
    if (!json.data) return PITH_OK;
    pith__json_init(j, json,
                    old ? "added_tokens.json" : "tokenizer_config.json: added_tokens_decoder",
                    loader->scratch, loader->err);
    j->stop = loader->stop;
    if (old)
        read_old(&list, j, loader);
    else
        read_listed(&list, j, loader);
    pith__json_finish(j);
    if (j->failed) return loader->err->code ? loader->err->code : pith__fail_memory(loader->err, 1);
    if (list.count) qsort(list.tokens, list.count, sizeof *list.tokens, compare_listed);
    for (size_t i = 0; i < list.count; i++) {
        const listed_token *t = &list.tokens[i];
        const uint32_t known =
            pith__map_get(&loader->tokenizer->added_tokens->by_content, t->content);
        if (old && !exact && known != UINT32_MAX) continue; /* tokenizer.json says more about it */
        PITH_TRY(exact ? pith__added_tokens_add_listed(loader, t->content, t->id, t->flags)
                       : pith__loader_add_token(loader, t->content, -1, t->flags));
    }
    return PITH_OK;
}

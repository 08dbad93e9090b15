/* source_gguf.c - the tokenizer within a GGUF file: WordPiece as llama.cpp stores it.
 *
 * A token in brackets stays, one that begins a word has U+2581 in front, any other continues one (llama.cpp,
 * conversion of BertModel). The file does not say whether texts are made lower case: they are, unless a token has a
 * capital letter of ASCII; [CLS] and <S> are no such tokens. */
#include "base/gguf_header.h"
#include "text/config_files.h"
#include "text/sources.h"

#define KEY "tokenizer.ggml."

typedef struct gguf_tokens {
    pith_gguf texts;
    uint64_t count;
    pith_str model;
    pith_vocab_builder vocab;
    bool cased;
} gguf_tokens;

static pith_str source_gguf_part(pith_str s, size_t from) { return (pith_str){ s.data + from, s.size - from }; }

static bool source_gguf_in_brackets(pith_str s) { return s.size > 2 && s.data[0] == '[' && s.data[s.size - 1] == ']'; }

/* Whether the token is text with a capital letter: [CLS] and <S>, which all Chinese vocabularies have, are none. */
static bool source_gguf_is_cased(pith_str token) {
    const bool marked = token.size > 2 && token.data[0] == '<' && token.data[token.size - 1] == '>';
    for (size_t i = 0; i < token.size && !marked && !source_gguf_in_brackets(token); i++)
        if (token.data[i] >= 'A' && token.data[i] <= 'Z') return true;
    return false;
}

/* The token as vocab.txt has it. */
static pith_str source_gguf_token(pith_arena *scratch, pith_str stored) {
    if (source_gguf_in_brackets(stored)) return stored;
    if (stored.size >= 3 && !memcmp(stored.data, "\xE2\x96\x81", 3)) return source_gguf_part(stored, 3);
    return pith_arena_printf(scratch, "##" PITH_STR_FMT, PITH_STR_ALL(stored));
}

static pith_status source_gguf_vocab(gguf_tokens *t, pith_loader *loader) {
    for (uint64_t i = 0; i < t->count; i++) {
        pith_str stored;
        PITH_TRY(pith_gguf_text(&t->texts, &stored));
        if (stored.size > PITH_TEXT_MAX || pith_utf8_valid_prefix(stored.data, stored.size) < stored.size)
            return pith_fail(loader->err, PITH_ERR_FORMAT, "%s: token %llu is no UTF-8", t->texts.name,
                             (unsigned long long)i);
        const pith_str token = source_gguf_token(loader->scratch, stored);
        if (!token.data || !pith_vocab_add(&t->vocab, token, (int32_t)i))
            return pith_fail(loader->err, PITH_ERR_MEMORY, "%s: the vocabulary is too large", t->texts.name);
        t->cased = t->cased || source_gguf_is_cased(token);
    }
    return PITH_OK;
}

/* The settings; ids of special tokens are kept in ids and become tokens later, since the vocabulary may follow. */
static pith_status source_gguf_read(gguf_tokens *t, uint64_t *const ids[], const char *const keys[], size_t id_count,
                                    pith_str bytes, pith_loader *loader) {
    pith_gguf g;
    PITH_TRY(pith_gguf_begin(&g, bytes, "GGUF", loader->err));
    while (g.entries) {
        pith_gguf_entry e;
        PITH_TRY(pith_gguf_next(&g, &e));
        for (size_t i = 0; i < id_count; i++)
            if (e.kind == PITH_GGUF_COUNT && pith_str_is(e.key, keys[i])) *ids[i] = e.count;
        if (e.kind == PITH_GGUF_TEXT && pith_str_is(e.key, KEY "model")) t->model = e.text;
        if (e.kind != PITH_GGUF_TEXTS || !pith_str_is(e.key, KEY "tokens")) continue;
        t->texts = e.texts;
        t->count = e.count;
    }
    if (!pith_str_is(t->model, "bert"))
        return pith_fail(loader->err, PITH_ERR_UNSUPPORTED,
                         "GGUF: a tokenizer of the kind '" PITH_STR_FMT "'; bert (WordPiece) is known",
                         PITH_STR_ARG(t->model));
    if (!t->count || t->count > PITH_TOKEN_ID_MAX)
        return pith_fail(loader->err, PITH_ERR_FORMAT, "GGUF: '" KEY "tokens' has %llu tokens",
                         (unsigned long long)t->count);
    return PITH_OK;
}

static pith_status source_gguf_load(pith_loader *loader, const char *path, pith_str bytes) {
    pith_tokenizer_config *c = loader->config;
    uint64_t unk = 100, sep = 102, pad = 0, cls = 101, mask = 103; /* llama.cpp's, where the file says nothing */
    /* "seperator" is how the key is spelled. [CLS] is "bos" in newer files and "cls" in older ones. */
    static const char *const keys[] = { KEY "unknown_token_id", KEY "seperator_token_id", KEY "padding_token_id",
                                        KEY "bos_token_id",     KEY "mask_token_id",      KEY "cls_token_id" };
    uint64_t *const ids[] = { &unk, &sep, &pad, &cls, &mask, &cls };
    pith_str *const tokens[] = { &c->unk_token, &c->sep_token, &c->pad_token, &c->cls_token, &c->mask_token };
    enum { TOKENS = sizeof tokens / sizeof *tokens, IDS = sizeof ids / sizeof *ids };
    gguf_tokens t = { .model = PITH_STR(""), .vocab = { .scratch = loader->scratch } };
    (void)path;
    PITH_TRY(source_gguf_read(&t, ids, keys, IDS, bytes, loader));
    PITH_TRY(source_gguf_vocab(&t, loader));
    for (size_t i = 0; i < TOKENS; i++) {
        if (*ids[i] >= t.vocab.count)
            return pith_fail(loader->err, PITH_ERR_FORMAT, "GGUF: '%s' is %llu, but there are %zu tokens", keys[i],
                             (unsigned long long)*ids[i], t.vocab.count);
        const pith_vocab_entry *e = &t.vocab.entries[*ids[i]];
        *tokens[i] = pith_arena_str(loader->arena, (pith_str){ e->text, e->size });
        if (!tokens[i]->data) return pith_fail_memory(loader->err, e->size);
    }
    c->tokenizer_class = PITH_STR("BertTokenizer");
    c->do_lower_case = !t.cased;
    PITH_TRY(pith_source_wordpiece(loader, &t.vocab, "GGUF"));
    for (size_t i = 0; i < TOKENS; i++) PITH_TRY(pith_source_special(loader, *tokens[i], 0));
    return PITH_OK;
}

const pith_tokenizer_source pith_source_gguf = {
    "gguf", 60, { "model.gguf" }, ".gguf", source_gguf_load, pith_gguf_is
};

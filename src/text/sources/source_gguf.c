/* source_gguf.c - the tokenizer within a GGUF file: its settings, and WordPiece as llama.cpp stores
 * it. Other kinds are in gguf_tokens.c.
 *
 * A control token and one in brackets stays, one that begins a word has U+2581 in front, any other
 * continues one (llama.cpp, conversion of BertModel). Older files do not say whether texts are made
 * lower case: they are, unless a token has a capital letter of ASCII; [CLS] and <S> are no such
 * tokens. */
#include <string.h>

#include "base/log.h"
#include "formats/weights/gguf/gguf_header.h"
#include "text/sources/config_files.h"
#include "text/sources/gguf_tokens.h"
#include "text/sources/key_report.h"
#include "text/sources/tokenizer_source.h"

#define KEY "tokenizer.ggml."

static pith_str source_gguf_part(pith_str s, size_t from) {
    return (pith_str){ s.data + from, s.size - from };
}

static bool source_gguf_in_brackets(pith_str s) {
    return s.size > 2 && s.data[0] == '[' && s.data[s.size - 1] == ']';
}

/* ---- settings ---- */

/* They are about generating text, or repeat what the tokens say. */
static const char *const harmless[] = {
    KEY "eot_token_id",     KEY "eom_token_id",     KEY "fim_pre_token_id",
    KEY "fim_suf_token_id", KEY "fim_mid_token_id", KEY "fim_pad_token_id",
    KEY "fim_rep_token_id", KEY "fim_sep_token_id", KEY "prefix_token_id",
    KEY "suffix_token_id",  KEY "middle_token_id",  KEY "token_type_count",
    KEY "suppress_tokens",  "tokenizer.rwkv.world", "tokenizer.huggingface.json",
};

static bool source_gguf_begins(pith_str key, const char *with) {
    return key.size >= strlen(with) && !memcmp(key.data, with, strlen(with));
}

/* Takes a setting that is read, of the kind that it must have. */
static bool source_gguf_take(pith__gguf_tokens *t, const pith__gguf_entry *e) {
    /* "seperator" is how the key is spelled. [CLS] is "bos" in newer files and "cls" in older ones.
     */
    const struct {
        const char *key;
        int64_t *number;
    } numbers[] = {
        { KEY "unknown_token_id", &t->unk },       { KEY "seperator_token_id", &t->sep },
        { KEY "padding_token_id", &t->pad },       { KEY "bos_token_id", &t->bos },
        { KEY "eos_token_id", &t->eos },           { KEY "mask_token_id", &t->mask },
        { KEY "cls_token_id", &t->cls },           { KEY "add_bos_token", &t->add_bos },
        { KEY "add_eos_token", &t->add_eos },      { KEY "add_sep_token", &t->add_sep },
        { KEY "add_space_prefix", &t->add_space }, { KEY "remove_extra_whitespaces", &t->trims },
        { KEY "normalizer.lowercase", &t->lower }, { KEY "normalizer.strip_accents", &t->accents },
    };
    const struct {
        const char *key;
        pith__gguf_kind kind;
        pith__gguf_entry *entry;
    } lists[] = { { KEY "tokens", PITH_GGUF_TEXTS, &t->list },
                  { KEY "merges", PITH_GGUF_TEXTS, &t->merges },
                  { KEY "scores", PITH_GGUF_NUMBERS, &t->scores },
                  { KEY "token_type", PITH_GGUF_NUMBERS, &t->kinds },
                  { KEY "precompiled_charsmap", PITH_GGUF_NUMBERS, &t->charsmap } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (e->kind == PITH_GGUF_COUNT && pith__str_is(e->key, numbers[i].key)) {
            *numbers[i].number = e->count <= INT32_MAX ? (int64_t)e->count : INT32_MAX;
            return true;
        }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (e->kind == lists[i].kind && pith__str_is(e->key, lists[i].key)) {
            *lists[i].entry = *e;
            return true;
        }
    if (e->kind != PITH_GGUF_TEXT) return false;
    const bool pre = pith__str_is(e->key, KEY "pre");
    if (!pre && !pith__str_is(e->key, KEY "model")) return false;
    *(pre ? &t->pre : &t->model) = e->text;
    return true;
}

static pith_status source_gguf_note(pith__loader *loader, pith_str key, bool read) {
    bool known = read || source_gguf_begins(key, "tokenizer.chat_template");
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        known |= pith__str_is(key, harmless[i]);
    if (!known)
        pith__log_write(loader->log, PITH_LOG_WARNING,
                        "GGUF: '" PITH_STR_FMT
                        "' is not known, or has another type than the known one, and is ignored; "
                        "if it changes tokens, these differ",
                        PITH_STR_ARG(key));
    if (read) return pith__key_note(loader, "GGUF", key, PITH_KEY_READ);
    return pith__key_note(loader, "GGUF", key, known ? PITH_KEY_IGNORED : PITH_KEY_UNKNOWN);
}

/* Tokens as spans of the file, and their kinds. */
static pith_status source_gguf_tokens(pith__gguf_tokens *t, pith__loader *loader) {
    pith__gguf at = t->list.texts;
    const bool typed = t->kinds.kind == PITH_GGUF_NUMBERS;
    if (t->list.kind != PITH_GGUF_TEXTS || !t->list.count || t->list.count > PITH_TOKEN_ID_MAX)
        return pith__fail(loader->err, PITH_ERR_FORMAT, "GGUF: '" KEY "tokens' has %llu tokens",
                          (unsigned long long)t->list.count);
    t->count = (size_t)t->list.count;
    if ((typed && t->kinds.count != t->count) ||
        (t->scores.kind == PITH_GGUF_NUMBERS && t->scores.count != t->count))
        return pith__fail(loader->err, PITH_ERR_FORMAT,
                          "GGUF: '" KEY "scores' and '" KEY "token_type' must be as long as '" KEY
                          "tokens'");
    t->tokens = pith__arena_array(loader->scratch, t->count, sizeof *t->tokens);
    t->types = pith__arena_array(loader->scratch, t->count, sizeof *t->types);
    if (!t->tokens || !t->types) return pith__fail_memory(loader->err, t->count);
    for (size_t i = 0; i < t->count; i++) {
        pith_str *token = &t->tokens[i];
        PITH_TRY(pith__loader_check(loader, i));
        const double kind = typed ? pith__gguf_number(&t->kinds, i) : PITH_GGUF_NORMAL;
        t->types[i] = kind >= 0 && kind <= PITH_GGUF_BYTE ? (uint8_t)kind : 0;
        PITH_TRY(pith__gguf_text(&at, token));
        if (token->size > PITH_TEXT_MAX ||
            pith__utf8_valid_prefix(token->data, token->size) < token->size)
            return pith__fail(loader->err, PITH_ERR_FORMAT, "%s: token %zu is no UTF-8", at.name,
                              i);
    }
    return PITH_OK;
}

static pith_status source_gguf_read(pith__gguf_tokens *t, pith_str bytes, pith__loader *loader) {
    const pith_str none = PITH_STR("");
    pith__gguf g;
    *t = (pith__gguf_tokens){
        .model = none, .pre = none, .unk = -1, .sep = -1, .pad = -1, .cls = -1
    };
    t->mask = t->bos = t->eos = t->add_bos = t->add_eos = t->add_sep = t->add_space = t->trims = -1;
    t->lower = t->accents = -1;
    PITH_TRY(pith__gguf_begin(&g, bytes, "GGUF", loader->err));
    while (g.entries) {
        pith__gguf_entry e;
        PITH_TRY(pith__gguf_next(&g, &e));
        if (!source_gguf_begins(e.key, "tokenizer.")) continue;
        PITH_TRY(source_gguf_note(loader, e.key, source_gguf_take(t, &e)));
    }
    return PITH_OK;
}

/* ---- WordPiece ---- */

/* Whether the token is text with a capital letter: [CLS] and <S>, which all Chinese vocabularies
 * have, are none. */
static bool source_gguf_is_cased(pith_str token) {
    const bool marked = token.size > 2 && token.data[0] == '<' && token.data[token.size - 1] == '>';
    if (marked || source_gguf_in_brackets(token)) return false;
    for (size_t i = 0; i < token.size; i++)
        if (token.data[i] >= 'A' && token.data[i] <= 'Z') return true;
    return false;
}

/* The token as vocab.txt has it. */
static pith_str source_gguf_token(pith__arena *scratch, pith_str stored, uint8_t type) {
    if (source_gguf_begins(stored, "\xE2\x96\x81")) return source_gguf_part(stored, 3);
    if (type == PITH_GGUF_CONTROL || source_gguf_in_brackets(stored)) return stored;
    return pith__arena_printf(scratch, "##" PITH_STR_FMT, PITH_STR_ALL(stored));
}

/* WordPiece as BERT's tokenizer: tokens are spelled as in vocab.txt again, and special tokens are
 * found by their ids, or by those of bert-base where the file says nothing, as in llama.cpp. */
static pith_status source_gguf_words(pith__loader *loader, pith__gguf_tokens *t) {
    pith__tokenizer_config *c = loader->config;
    static const char *const keys[] = { "unknown", "seperator", "padding", "bos", "mask" };
    /* llama.cpp's, where the file says nothing */
    const int64_t cls = t->cls >= 0 ? t->cls : 101;
    const int64_t ids[] = { t->unk >= 0 ? t->unk : 100, t->sep >= 0 ? t->sep : 102,
                            t->pad >= 0 ? t->pad : 0, t->bos >= 0 ? t->bos : cls,
                            t->mask >= 0 ? t->mask : 103 };
    pith_str *const tokens[] = { &c->unk_token, &c->sep_token, &c->pad_token, &c->cls_token,
                                 &c->mask_token };
    enum { TOKENS = sizeof tokens / sizeof *tokens };
    pith__vocab_builder vocab = { .scratch = loader->scratch };
    bool cased = false;
    for (size_t i = 0; i < t->count; i++) {
        PITH_TRY(pith__loader_check(loader, i));
        const pith_str token = source_gguf_token(loader->scratch, t->tokens[i], t->types[i]);
        if (!token.data || !pith__vocab_add(&vocab, token, (int32_t)i))
            return pith__fail(loader->err, PITH_ERR_MEMORY, "GGUF: the vocabulary is too large");
        cased = cased || source_gguf_is_cased(token);
        t->tokens[i] = token;
    }
    for (size_t i = 0; i < TOKENS; i++) {
        if (ids[i] >= (int64_t)vocab.count)
            return pith__fail(loader->err, PITH_ERR_FORMAT,
                              "GGUF: '" KEY "%s_token_id' is %lld, but there are %zu tokens",
                              keys[i], (long long)ids[i], vocab.count);
        const pith__vocab_entry *e = &vocab.entries[ids[i]];
        *tokens[i] = pith__arena_str(loader->arena, (pith_str){ e->text, e->size });
        if (!tokens[i]->data) return pith__fail_memory(loader->err, e->size);
    }
    c->tokenizer_class = PITH_STR("BertTokenizer");
    c->do_lower_case = t->lower < 0 ? !cased : t->lower != 0;
    c->strip_accents = t->accents < 0 ? -1 : t->accents != 0;
    PITH_TRY(pith__source_wordpiece(loader, &vocab, "GGUF"));
    for (size_t i = 0; i < TOKENS; i++) PITH_TRY(pith__source_special(loader, *tokens[i], 0));
    return pith__gguf_add_tokens(loader, t, false);
}

/* ---- the file ---- */

static pith_status source_gguf_load(pith__loader *loader, const char *path, pith_str bytes) {
    pith__gguf_tokens t;
    pith__tokenizer_config *own = pith__tokenizer_config_create(loader->arena);
    if (!own) return pith__fail_memory(loader->err, sizeof *own);
    *loader->config = *own; /* the file says it all: those beside it belong to another tokenizer */
    (void)path;
    PITH_TRY(source_gguf_read(&t, bytes, loader));
    const bool words = pith__str_is(t.model, "bert"), unigram = pith__str_is(t.model, "t5");
    const bool bpe = pith__str_is(t.model, "gpt2"), pieces = pith__str_is(t.model, "llama");
    if (!words && !unigram && !bpe && !pieces)
        return pith__fail(loader->err, PITH_ERR_UNSUPPORTED,
                          "GGUF: a tokenizer of the kind '" PITH_STR_FMT
                          "'; known are bert, t5, gpt2 and llama; put the model's tokenizer.json "
                          "and config.json next to "
                          "the file and give the directory as the model",
                          PITH_STR_ARG(t.model));
    PITH_TRY(source_gguf_tokens(&t, loader));
    if (words) return source_gguf_words(loader, &t);
    if (unigram) return pith__gguf_load_unigram(loader, &t);
    if (bpe) return pith__gguf_load_bpe(loader, &t);
    return pith__gguf_load_pieces(loader, &t);
}

const pith__tokenizer_source pith__source_gguf = { "gguf",           60,
                                                   { "model.gguf" }, ".gguf",
                                                   source_gguf_load, pith__gguf_is };

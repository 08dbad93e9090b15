/* source_vocab_txt.c - vocab.txt, a token a line, as BERT, DistilBERT and MPNet have it; the rest of the tokenizer
 * follows from tokenizer_config.json as Hugging Face's converters have it. */
#include "text/wordpiece.h"

static pith_status read_vocab(pith_vocab_builder *vocab, pith_str bytes, pith_error *err) {
    const char *p = bytes.data, *end = p + bytes.size;
    size_t valid = pith_utf8_valid_prefix(bytes.data, bytes.size);
    if (valid < bytes.size) return pith_fail(err, PITH_ERR_FORMAT, "vocab.txt: invalid UTF-8 at byte %zu", valid);
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop > p && stop[-1] == '\r') stop--;
        if (!pith_vocab_add(vocab, (pith_str){ p, (size_t)(stop - p) }, (int32_t)vocab->count))
            return pith_fail(err, PITH_ERR_MEMORY, "vocab.txt: too large");
        p = next;
    }
    return PITH_OK;
}

static pith_str or_else(pith_str token, const char *usual) { return token.data ? token : pith_str_of(usual); }

static pith_status add_special(pith_loader *loader, pith_str token) {
    const pith_tokenizer *t = loader->tokenizer;
    if (t->model->id(t->model_self, token) < 0) return PITH_OK;
    return pith_loader_add_token(loader, token, -1, PITH_ADDED_SPECIAL);
}

static pith_status add_template(pith_loader *loader, pith_str cls, pith_str sep, bool two_seps) {
    const pith_tokenizer *t = loader->tokenizer;
    int32_t ids[2] = { t->model->id(t->model_self, cls), t->model->id(t->model_self, sep) };
    for (int i = 0; i < 2; i++)
        if (ids[i] < 0)
            return pith_fail(loader->err, PITH_ERR_FORMAT, "vocab.txt: no token \"" PITH_STR_FMT "\"",
                             PITH_STR_ARG(i ? sep : cls));
#define SPECIAL(name, type) "{\"SpecialToken\":{\"id\":\"" name "\",\"type_id\":" type "}}"
#define TEXT(name, type) "{\"Sequence\":{\"id\":\"" name "\",\"type_id\":" type "}}"
    pith_str json = pith_arena_printf(
        loader->scratch,
        "{\"type\":\"TemplateProcessing\",\"single\":[" SPECIAL("cls", "0") "," TEXT("A", "0") "," SPECIAL(
            "sep",
            "0") "],"
                 "\"pair\":[" SPECIAL("cls", "0") "," TEXT("A", "0") "," SPECIAL("sep", "0") ",%s" TEXT(
                     "B", "1") "," SPECIAL("sep",
                                           "1") "],\"special_tokens\":{\"cls\":{\"ids\":[%d]},\"sep\":{\"ids\":[%d]}}}",
        two_seps ? SPECIAL("sep", "0") "," : "", ids[0], ids[1]);
#undef SPECIAL
#undef TEXT
    return json.data ? pith_loader_add(loader, "post_processor", json) : pith_fail_memory(loader->err, 1024);
}

static pith_status load(pith_loader *loader, const char *path, pith_str bytes) {
    static const char *const flags[] = { "null", "false", "true" };
    const pith_tokenizer_config *c = loader->config;
    pith_vocab_builder vocab = { .scratch = loader->scratch };
    const pith_wordpiece *model = NULL;
    pith_str unk = or_else(c->unk_token, "[UNK]"), cls = or_else(c->cls_token, "[CLS]"),
             sep = or_else(c->sep_token, "[SEP]");
    (void)path;
    PITH_TRY(read_vocab(&vocab, bytes, loader->err));
    PITH_TRY(pith_wordpiece_build(&model, loader, &vocab, unk, PITH_STR("##"), 100));
    pith_loader_set_model(loader, &pith_model_WordPiece, model);
    pith_str normalizer = pith_arena_printf(
        loader->scratch,
        "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":%s,"
        "\"strip_accents\":%s,\"lowercase\":%s}",
        flags[c->tokenize_chinese_chars ? 2 : 1], flags[c->strip_accents + 1], flags[c->do_lower_case ? 2 : 1]);
    if (!normalizer.data) return pith_fail_memory(loader->err, 256);
    PITH_TRY(pith_loader_add(loader, "normalizer", normalizer));
    PITH_TRY(pith_loader_add(loader, "pre_tokenizer", PITH_STR("{\"type\":\"BertPreTokenizer\"}")));
    PITH_TRY(
        pith_loader_add(loader, "decoder", PITH_STR("{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}")));
    pith_str specials[] = { unk, sep, or_else(c->pad_token, "[PAD]"), cls, or_else(c->mask_token, "[MASK]") };
    for (int i = 0; i < 5; i++) PITH_TRY(add_special(loader, specials[i]));
    bool mpnet = c->tokenizer_class.size >= 5 && memcmp(c->tokenizer_class.data, "MPNet", 5) == 0;
    return add_template(loader, cls, sep, mpnet);
}

const pith_tokenizer_source pith_source_vocab_txt = { "vocab.txt", 40, { "vocab.txt" }, "vocab.txt", load, NULL };

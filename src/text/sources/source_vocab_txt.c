/* source_vocab_txt.c - vocab.txt of BERT, DistilBERT and MPNet, one token per line. The rest of the
 * tokenizer follows from tokenizer_config.json, as in Hugging Face's converters. */
#include "text/models/model_wordpiece.h"
#include "text/sources/tokenizer_source.h"
#include "text/sources/token_class.h"

static pith_status source_vocab_txt_read_vocab(pith__vocab_builder *vocab, pith_str bytes,
                                               pith_error *err) {
    const char *p = bytes.data, *end = p + bytes.size;
    size_t valid = pith__utf8_valid_prefix(bytes.data, bytes.size);
    if (valid < bytes.size)
        return pith__fail(err, PITH_ERR_FORMAT, "vocab.txt: invalid UTF-8 at byte %zu", valid);
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop > p && stop[-1] == '\r') stop--;
        if (!pith__vocab_add(vocab, (pith_str){ p, (size_t)(stop - p) }, (int32_t)vocab->count))
            return pith__fail(err, PITH_ERR_MEMORY, "vocab.txt: too large");
        p = next;
    }
    return PITH_OK;
}

/* The classes that read a vocab.txt, with their usual tokens. */
typedef struct family {
    const char *name; /* the first member: see pith__source_class */
    const char *cls, *sep, *unk;
    bool mask_strips, two_seps;
    char cls_type;
} family;

#define BERT "[CLS]", "[SEP]", "[UNK]", false, false, '0'

static const family families[] = {
    { "BertTokenizer", BERT },
    { "ConvBertTokenizer", BERT },
    { "DPRContextEncoderTokenizer", BERT },
    { "DPRQuestionEncoderTokenizer", BERT },
    { "DPRReaderTokenizer", BERT },
    { "DistilBertTokenizer", BERT },
    { "ElectraTokenizer", BERT },
    { "FunnelTokenizer", "<cls>", "<sep>", "<unk>", false, false, '2' },
    { "LayoutLMTokenizer", BERT },
    { "LxmertTokenizer", BERT },
    { "MPNetTokenizer", "<s>", "</s>", "[UNK]", true, true, '0' },
    { "MobileBertTokenizer", BERT },
    { "RetriBertTokenizer", BERT },
    { "SqueezeBertTokenizer", BERT },
};

static pith_status source_vocab_txt_add_frame(pith__loader *loader, const family *f, pith_str cls,
                                              pith_str sep, const char *file) {
    const pith_tokenizer *t = loader->tokenizer;
    const pith_str tokens[] = { cls, sep };
    const char single[] = { f->cls_type, '0', '0', 0 };
    const char pair[] = { f->cls_type, '0', '0', f->two_seps ? '0' : '1', '1', '1', 0 };
    const pith__source_template frame = { "0A1", single, f->two_seps ? "0A11B1" : "0A1B1", pair };
    for (int i = 0; i < 2; i++)
        if (t->model->id(t->model_self, tokens[i]) < 0)
            return pith__fail(loader->err, PITH_ERR_FORMAT, "%s: no token \"" PITH_STR_FMT "\"",
                              file, PITH_STR_ARG(tokens[i]));
    return pith__source_frame(loader, tokens, &frame);
}

pith_status pith__source_wordpiece(pith__loader *loader, const pith__vocab_builder *vocab,
                                   const char *file) {
    static const char *const flags[] = { "null", "false", "true" };
    const pith__tokenizer_config *c = loader->config;
    const pith__wordpiece *model = NULL;
    const void *row;
    PITH_TRY(pith__source_class(&row, loader, families, sizeof families / sizeof *families,
                                sizeof *families, file));
    const family *f = row ? row : &families[0];
    pith_str unk = pith__source_token(c->unk_token, f->unk),
             cls = pith__source_token(c->cls_token, f->cls),
             sep = pith__source_token(c->sep_token, f->sep);
    PITH_TRY(pith__wordpiece_build(&model, loader, vocab, unk, PITH_STR("##"), 100));
    pith__loader_set_model(loader, &pith__model_WordPiece, model);
    pith_str normalizer = pith__arena_printf(
        loader->scratch,
        "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":%s,"
        "\"strip_accents\":%s,\"lowercase\":%s}",
        flags[c->tokenize_chinese_chars ? 2 : 1], flags[c->strip_accents + 1],
        flags[c->do_lower_case ? 2 : 1]);
    if (!normalizer.data) return pith__fail_memory(loader->err, 256);
    PITH_TRY(pith__loader_add(loader, "normalizer", normalizer));
    PITH_TRY(
        pith__loader_add(loader, "pre_tokenizer", PITH_STR("{\"type\":\"BertPreTokenizer\"}")));
    PITH_TRY(
        pith__loader_add(loader, "decoder",
                         PITH_STR("{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}")));
    loader->class = pith__token_class_find(pith__str_of(f->name));
    loader->mask_flags = f->mask_strips ? PITH_ADDED_LSTRIP : 0;
    return source_vocab_txt_add_frame(loader, f, cls, sep, file);
}

static pith_status source_vocab_txt_load(pith__loader *loader, const char *path, pith_str bytes) {
    pith__vocab_builder vocab = { .scratch = loader->scratch };
    (void)path;
    PITH_TRY(source_vocab_txt_read_vocab(&vocab, bytes, loader->err));
    return pith__source_wordpiece(loader, &vocab, "vocab.txt");
}

const pith__tokenizer_source pith__source_vocab_txt = { "vocab.txt",           40,
                                                        { "vocab.txt" },       "vocab.txt",
                                                        source_vocab_txt_load, NULL };

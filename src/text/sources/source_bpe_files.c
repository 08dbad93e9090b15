/* source_bpe_files.c - vocab.json and merges.txt of GPT-2, RoBERTa, CLIP, DeBERTa, HerBERT, Qwen2.
 * The rest of the tokenizer follows from its class or, if no file names one, from the special
 * tokens of the vocabulary. */
#include "base/os/file.h"
#include "text/models/bpe_merges.h"
#include "text/sources/tokenizer_source.h"
#include "text/sources/token_class.h"

typedef enum family { GPT2, ROBERTA, CLIP, QWEN2, DEBERTA, HERBERT } family;

static pith_status source_bpe_files_read_merges(pith__bpe_spec *spec, pith_str bytes,
                                                pith_error *err) {
    const char *p = bytes.data, *end = p + bytes.size;
    size_t valid = pith__utf8_valid_prefix(bytes.data, bytes.size), number = 0;
    if (valid < bytes.size)
        return pith__fail(err, PITH_ERR_FORMAT, "merges.txt: invalid UTF-8 at byte %zu", valid);
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop > p && stop[-1] == '\r') stop--;
        pith_str line = { p, (size_t)(stop - p) }, left, right;
        p = next;
        number++;
        if (!line.size || (line.size >= 8 && memcmp(line.data, "#version", 8) == 0)) continue;
        if (!pith__bpe_split_merge(line, &left, &right))
            return pith__fail(err, PITH_ERR_FORMAT, "merges.txt:%zu: not two tokens and a space",
                              number);
        if (!pith__bpe_add_merge(spec, left, right))
            return pith__fail_memory(err, spec->merge_count);
    }
    return PITH_OK;
}

static pith_status source_bpe_files_read_vocab(pith__bpe_spec *spec, pith_str bytes,
                                               pith__loader *loader) {
    pith__json *j = pith__arena_alloc(loader->scratch, sizeof *j);
    if (!j) return pith__fail_memory(loader->err, sizeof *j);
    pith__json_init(j, bytes, "vocab.json", loader->scratch, loader->err);
    j->stop = loader->stop;
    pith__vocab_parse(&spec->vocab, j);
    pith__json_finish(j);
    return j->failed ? loader->err->code : PITH_OK;
}

typedef struct class_row {
    const char *name; /* the first member: see pith__source_class */
    family family;
} class_row;

static const class_row classes[] = {
    { "BartTokenizer", ROBERTA },    { "CLIPTokenizer", CLIP },
    { "CodeGenTokenizer", GPT2 },    { "DebertaTokenizer", DEBERTA },
    { "GPT2Tokenizer", GPT2 },       { "HerbertTokenizer", HERBERT },
    { "LEDTokenizer", ROBERTA },     { "LongformerTokenizer", ROBERTA },
    { "MvpTokenizer", ROBERTA },     { "Qwen2Tokenizer", QWEN2 },
    { "RobertaTokenizer", ROBERTA },
};

static pith_status source_bpe_files_find_family(family *kind, pith__loader *loader,
                                                const pith__bpe_spec *spec) {
    const void *row;
    PITH_TRY(pith__source_class(&row, loader, classes, sizeof classes / sizeof *classes,
                                sizeof *classes, "vocab.json and merges.txt"));
    *kind = row ? ((const class_row *)row)->family : GPT2;
    if (row) loader->class = pith__token_class_find(pith__str_of(((const class_row *)row)->name));
    if (!row)
        for (size_t i = 0; i < spec->vocab.count; i++) {
            pith_str token = { spec->vocab.entries[i].text, spec->vocab.entries[i].size };
            bool clip = pith__str_is(token, "<|startoftext|>");
            if (!clip && !pith__str_is(token, "<s>")) continue;
            *kind = clip ? CLIP : ROBERTA;
            break;
        }
    return PITH_OK;
}

static pith_status source_bpe_files_add_steps(pith__loader *loader, family kind) {
    static const char bytes[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"use_regex\":%s}";
#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define SPLIT(regex, rest) "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"}," rest "}"
    if (kind == HERBERT) {
        PITH_TRY(pith__loader_add(loader, "normalizer",
                                  PITH_STR("{\"type\":\"BertNormalizer\",\"clean_text\":true,"
                                           "\"handle_chinese_chars\":true,\"strip_accents\":false,"
                                           "\"lowercase\":false}")));
        PITH_TRY(
            pith__loader_add(loader, "pre_tokenizer", PITH_STR("{\"type\":\"BertPreTokenizer\"}")));
        return pith__loader_add(loader, "decoder",
                                PITH_STR("{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}"));
    }
    const char *space = loader->config->add_prefix_space == 1 ? "true" : "false";
    pith_str pre = pith__arena_printf(loader->scratch, bytes, kind == CLIP ? "false" : space,
                                      kind == QWEN2 ? "false" : "true");
    if (!pre.data) return pith__fail_memory(loader->err, sizeof bytes);
    if (kind == CLIP) {
        PITH_TRY(pith__loader_add(
            loader, "normalizer",
            PITH_STR("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":"
                     "\"Replace\",\"pattern\":{\"Regex\":\"\\\\s+\"},"
                     "\"content\":\" \"},{\"type\":\"Lowercase\"}]}")));
        PITH_TRY(pith__loader_add(
            loader, "pre_tokenizer",
            PITH_STR(SPLIT("<\\\\|startoftext\\\\|>|<\\\\|endoftext\\\\|>|" CONTRACTIONS
                           "|[\\\\p{L}]+|[\\\\p{N}]|[^\\\\s\\\\p{L}\\\\p{N}]+",
                           "\"behavior\":\"Removed\",\"invert\":true"))));
    } else if (kind == QWEN2) {
        PITH_TRY(pith__loader_add(loader, "normalizer", PITH_STR("{\"type\":\"NFC\"}")));
        PITH_TRY(pith__loader_add(
            loader, "pre_tokenizer",
            PITH_STR(SPLIT("(?i:" CONTRACTIONS ")|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|"
                           " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|"
                           "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+",
                           "\"behavior\":\"Isolated\",\"invert\":false"))));
    }
    PITH_TRY(pith__loader_add(loader, "pre_tokenizer", pre));
    return pith__loader_add(loader, "decoder", PITH_STR("{\"type\":\"ByteLevel\"}"));
}

/* The tokens of a class where tokenizer_config.json names no others; NULL: it has none of that
 * kind. */
static const struct {
    const char *class_name; /* where no file names one */
    const char *bos, *eos, *unk;
} usual[] = {
    [GPT2] = { "GPT2Tokenizer", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>" },
    [QWEN2] = { "Qwen2Tokenizer", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>" },
    [CLIP] = { "CLIPTokenizer", "<|startoftext|>", "<|endoftext|>", "<|endoftext|>" },
    [ROBERTA] = { "RobertaTokenizer", "<s>", "</s>", "<unk>" },
    [DEBERTA] = { "DebertaTokenizer", "[CLS]", "[SEP]", "[UNK]" },
    [HERBERT] = { "HerbertTokenizer", "<s>", "</s>", "<unk>" },
};

static pith_status source_bpe_files_add_frame(pith__loader *loader, family kind) {
    static const pith__source_template deberta = { "0A1", "000", "0A1B1", "00011" };
    const pith__tokenizer_config *c = loader->config;
    const pith_tokenizer *t = loader->tokenizer;
    if (kind == GPT2 || kind == QWEN2) return PITH_OK;
    const pith_str tokens[] = {
        pith__source_token(kind == CLIP ? c->bos_token : c->cls_token, usual[kind].bos),
        pith__source_token(kind == CLIP ? c->eos_token : c->sep_token, usual[kind].eos)
    };
    int32_t ids[2];
    for (int i = 0; i < 2; i++) {
        ids[i] = t->model->id(t->model_self, tokens[i]);
        if (ids[i] < 0)
            return pith__fail(loader->err, PITH_ERR_FORMAT,
                              "vocab.json: no token '" PITH_STR_FMT "'", PITH_STR_ARG(tokens[i]));
    }
    if (kind == DEBERTA) return pith__source_frame(loader, tokens, &deberta);
    pith_str json =
        pith__arena_printf(loader->scratch,
                           "{\"type\":\"%s\",\"sep\":[\"sep\",%d],\"cls\":[\"cls\",%d],"
                           "\"trim_offsets\":%s,\"add_prefix_space\":%s}",
                           kind == HERBERT ? "BertProcessing" : "RobertaProcessing", ids[1], ids[0],
                           kind == CLIP ? "false" : "true",
                           kind == ROBERTA && c->add_prefix_space == 1 ? "true" : "false");
    return json.data ? pith__loader_add(loader, "post_processor", json)
                     : pith__fail_memory(loader->err, 256);
}

static pith_status load_with_merges(pith__loader *loader, pith_str vocab, pith_str merges) {
    pith__bpe_spec spec = { .vocab.scratch = loader->scratch };
    const void *model = NULL;
    PITH_TRY(source_bpe_files_read_vocab(&spec, vocab, loader));
    PITH_TRY(source_bpe_files_read_merges(&spec, merges, loader->err));
    family kind;
    PITH_TRY(source_bpe_files_find_family(&kind, loader, &spec));
    if (kind == CLIP || kind == HERBERT) {
        spec.suffix = PITH_STR("</w>");
        spec.unk_token = pith__source_token(loader->config->unk_token, usual[kind].unk);
    }
    PITH_TRY(pith__bpe_build(&model, &spec, loader));
    pith__loader_set_model(loader, &pith__model_BPE, model);
    PITH_TRY(source_bpe_files_add_steps(loader, kind));
    if (!loader->class)
        loader->class = pith__token_class_find(pith__str_of(usual[kind].class_name));
    return source_bpe_files_add_frame(loader, kind);
}

static pith_status source_bpe_files_load(pith__loader *loader, const char *path, pith_str bytes) {
    const char *slash = strrchr(path, '/');
    pith_str merges_path = pith__arena_printf(
        loader->scratch, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, "merges.txt");
    pith__file merges;
    if (!merges_path.data) return pith__fail_memory(loader->err, strlen(path));
    bool there;
    PITH_TRY(pith__file_there(&there, merges_path.data, loader->allocator, loader->err));
    if (!there)
        return pith__fail(loader->err, PITH_ERR_NOT_FOUND, "%s needs a merges.txt next to it",
                          path);
    PITH_TRY(pith__source_open(&merges, loader, merges_path.data, false));
    pith_status status =
        load_with_merges(loader, bytes, (pith_str){ (const char *)merges.data, merges.size });
    pith__file_close(&merges);
    return status;
}

const pith__tokenizer_source pith__source_bpe_files = {
    "vocab.json and merges.txt", 30, { "vocab.json" }, NULL, source_bpe_files_load, NULL
};

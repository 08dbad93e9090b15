/* token_class.c - see token_class.h. Sources: transformers 4.57.6 and 5.24.0, __init__ of the
 * tokenizer classes and of PreTrainedTokenizerFast and TokenizersBackend;
 * models/auto/tokenization_auto.py. */
#include "text/sources/token_class.h"

#include "text/added_tokens.h"
#include "text/post_processing.h"
#include "text/sources/tokenizer_source.h"

const char *const pith__named_keys[PITH_NAMED_TOKENS] = { "bos_token", "eos_token", "unk_token",
                                                          "sep_token", "pad_token", "cls_token",
                                                          "mask_token" };

#define BERT "- - [UNK] [SEP] [PAD] [CLS] [MASK]"
#define ROBERTA "<s> </s> <unk> </s> <pad> <s> <mask>"
#define ALBERT "[CLS] [SEP] <unk> [SEP] <pad> [CLS] [MASK]"
#define DEBERTA "[CLS] [SEP] [UNK] [SEP] [PAD] [CLS] [MASK]"
#define GPT2 "<|endoftext|> <|endoftext|> <|endoftext|> - - - -"
#define T5 "- </s> <unk> - <pad> - -"

static const pith__token_class classes[] = {
    { "AlbertTokenizer", ALBERT, PITH_SETTINGS_NONE, PITH_UNTYPED_BY_5 },
    { "BartTokenizer", ROBERTA, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "BarthezTokenizer", ROBERTA, PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "BertTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "BigBirdTokenizer", "<s> </s> <unk> [SEP] <pad> [CLS] [MASK]", PITH_SETTINGS_NONE,
      PITH_UNTYPED },
    { "CLIPTokenizer", "<|startoftext|> <|endoftext|> <|endoftext|> - <|endoftext|> - -",
      PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "CamembertTokenizer", ROBERTA, PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "CodeGenTokenizer", GPT2, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "CodeLlamaTokenizer", "- - - - - - -", PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "ConvBertTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "DPRContextEncoderTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "DPRQuestionEncoderTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "DPRReaderTokenizer", BERT, PITH_SETTINGS_BERT, PITH_UNTYPED },
    { "DebertaTokenizer", DEBERTA, PITH_SETTINGS_BYTE_LEVEL, PITH_TYPED },
    { "DebertaV2Tokenizer", DEBERTA, PITH_SETTINGS_NONE, PITH_TYPED },
    { "DistilBertTokenizer", BERT, PITH_SETTINGS_BERT, PITH_UNTYPED },
    { "ElectraTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "FunnelTokenizer", "<s> </s> <unk> <sep> <pad> <cls> <mask>", PITH_SETTINGS_BERT,
      PITH_UNTYPED_BY_5 },
    { "GPT2Tokenizer", GPT2, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "GPTNeoXTokenizer", GPT2, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "GemmaTokenizer", "<bos> <eos> <unk> - <pad> - -", PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "HerbertTokenizer", "- - <unk> </s> <pad> <s> <mask>", PITH_SETTINGS_NONE,
      PITH_UNTYPED_BY_5 },
    { "LEDTokenizer", ROBERTA, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "LayoutLMTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "LayoutXLMTokenizer", ROBERTA, PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "LlamaTokenizer", "- - - - - - -", PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "LongformerTokenizer", ROBERTA, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "LxmertTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "MBart50Tokenizer", "- </s> <unk> </s> <pad> <s> <mask>", PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "MBartTokenizer", ROBERTA, PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "MPNetTokenizer", "<s> </s> [UNK] </s> <pad> <s> <mask>", PITH_SETTINGS_BERT, PITH_UNTYPED },
    { "MT5Tokenizer", T5, PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "MobileBertTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "MvpTokenizer", ROBERTA, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "NllbTokenizer", ROBERTA, PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "PegasusTokenizer", "- </s> <unk> - <pad> - <mask_2>", PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "Qwen2Tokenizer", "- <|endoftext|> <|endoftext|> - <|endoftext|> - -", PITH_SETTINGS_NONE,
      PITH_UNTYPED },
    { "RemBertTokenizer", ALBERT, PITH_SETTINGS_NONE, PITH_UNTYPED_BY_5 },
    { "RetriBertTokenizer", BERT, PITH_SETTINGS_BERT, PITH_UNTYPED },
    { "RoFormerTokenizer", BERT, PITH_SETTINGS_NONE, PITH_UNTYPED_BY_5 },
    { "RobertaTokenizer", ROBERTA, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "SiglipTokenizer", "- </s> <unk> - </s> - -", PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "SplinterTokenizer", "- - - - - - -", PITH_SETTINGS_NONE, PITH_UNTYPED_BY_5 },
    { "SqueezeBertTokenizer", BERT, PITH_SETTINGS_BERT, PITH_TYPED },
    { "T5Tokenizer", T5, PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "TokenizersBackend", "- - - - - - -", PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "WhisperTokenizer", GPT2, PITH_SETTINGS_BYTE_LEVEL, PITH_UNTYPED },
    { "XGLMTokenizer", "<s> </s> <unk> </s> <pad> <s> -", PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "XLMRobertaTokenizer", ROBERTA, PITH_SETTINGS_NONE, PITH_UNTYPED },
    { "XLNetTokenizer", "<s> </s> <unk> <sep> <pad> <cls> <mask>", PITH_SETTINGS_NONE,
      PITH_UNTYPED_BY_5 },
};

/* Model types whose class has another name. Source: TOKENIZER_MAPPING_NAMES. */
static const struct {
    const char *type, *class_name;
} by_type[] = {
    { "align", "BertTokenizer" },
    { "bros", "BertTokenizer" },
    { "data2vec-text", "RobertaTokenizer" },
    { "ernie", "BertTokenizer" },
    { "gemma2", "GemmaTokenizer" },
    { "gemma3", "GemmaTokenizer" },
    { "gemma3_text", "GemmaTokenizer" },
    { "gpt_neo", "GPT2Tokenizer" },
    { "ibert", "RobertaTokenizer" },
    { "megatron-bert", "BertTokenizer" },
    { "mistral", "LlamaTokenizer" },
    { "nezha", "BertTokenizer" },
    { "nomic_bert", "BertTokenizer" },
    { "nystromformer", "AlbertTokenizer" },
    { "opt", "GPT2Tokenizer" },
    { "qwen3", "Qwen2Tokenizer" },
    { "roberta-prelayernorm", "RobertaTokenizer" },
    { "umt5", "T5Tokenizer" },
    { "xlm-roberta-xl", "XLMRobertaTokenizer" },
    { "xmod", "XLMRobertaTokenizer" },
    { "yoso", "AlbertTokenizer" },
};

const pith__token_class *pith__token_class_find(pith_str name) {
    if (name.size > 4 && memcmp(name.data + name.size - 4, "Fast", 4) == 0) name.size -= 4;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (pith__str_is(name, classes[i].name)) return &classes[i];
    return NULL;
}

pith_str pith__token_class_of_type(pith_str model_type) {
    for (size_t i = 0; i < sizeof by_type / sizeof *by_type; i++)
        if (pith__str_is(model_type, by_type[i].type)) return pith__str_of(by_type[i].class_name);
    return (pith_str){ NULL, 0 };
}

pith_str pith__token_class_name(const pith__tokenizer_config *c) {
    if (c->tokenizer_class.data) return c->tokenizer_class;
    pith_str other = pith__token_class_of_type(c->model_type);
    if (other.data) return other;
    if (!c->model_type.data) return PITH_STR("");
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (pith__source_type_is(c->model_type, classes[i].name))
            return pith__str_of(classes[i].name);
    return PITH_STR("");
}

/* ---- special tokens ---- */

static pith_status special_add(pith__loader *loader, pith_str content, uint32_t flags) {
    if (!content.size ||
        pith__map_get(&loader->tokenizer->added_tokens->by_content, content) != UINT32_MAX)
        return PITH_OK;
    return pith__loader_add_token(loader, content, -1, flags | PITH_ADDED_SPECIAL);
}

/* Those that every class may have, by name. */
static pith_status special_add_named(pith__loader *loader, const pith__token_class *class,
                                     uint32_t mask_flags) {
    const char *usual = class ? class->tokens : "- - - - - - -";
    for (size_t i = 0; i < PITH_NAMED_TOKENS; i++) {
        const pith__named_token *named =
            pith__tokenizer_config_named(loader->config, pith__named_keys[i]);
        const size_t size = strcspn(usual, " ");
        pith_str content = { usual, size };
        uint32_t flags = i == PITH_NAMED_TOKENS - 1 ? mask_flags : 0;
        usual += size + (usual[size] == ' ');
        if (size == 1 && content.data[0] == '-') content.size = 0;
        if (named) content = named->content;
        if (named && named->object) flags = named->flags;
        PITH_TRY(special_add(loader, content, flags));
    }
    return PITH_OK;
}

/* Tokens that stand in the files under names of the model's own, such as image_token. */
static pith_status special_add_own(pith__loader *loader) {
    const pith__tokenizer_config *c = loader->config;
    for (size_t i = 0; i < c->named_count; i++) {
        size_t k = 0;
        while (k < PITH_NAMED_TOKENS && !pith__str_is(c->named[i].key, pith__named_keys[k])) k++;
        if (k == PITH_NAMED_TOKENS)
            PITH_TRY(special_add(loader, c->named[i].content, c->named[i].flags));
    }
    return PITH_OK;
}

/* The tokens of a list, or of an object that gives them names. */
static pith_status special_add_json(pith__loader *loader, pith_str json, const char *name,
                                    bool list) {
    pith__json *j = pith__arena_alloc(loader->scratch, sizeof *j);
    pith_status status = PITH_OK;
    pith_str key;
    if (!json.data) return PITH_OK;
    if (!j) return pith__fail_memory(loader->err, sizeof *j);
    pith__json_init(j, json, name, loader->scratch, loader->err);
    const bool is_list = pith__json_peek(j) == PITH_JSON_ARRAY;
    if (is_list != list) return PITH_OK;
    if (list)
        pith__json_array(j);
    else
        pith__json_object(j);
    while (!status && (list ? pith__json_next_item(j) : pith__json_next_key(j, &key))) {
        pith__named_token token = { .content = { NULL, 0 } };
        if (!pith__json_null(j)) pith__named_token_parse(&token, j, loader->scratch);
        if (!j->failed) status = special_add(loader, token.content, token.flags);
    }
    if (status) return status;
    pith__json_finish(j);
    return j->failed ? loader->err->code : PITH_OK;
}

/* A token that the vocabulary does not have gets the next id behind it, so the order counts: named
 * ones first, then the model's own, then those of objects, then those of lists. */
pith_status pith__special_tokens_add(pith__loader *loader, const pith__token_class *class,
                                     uint32_t mask_flags) {
    static const char extra[] = "extra_special_tokens", additional[] = "additional_special_tokens";
    const pith__tokenizer_config *c = loader->config;
    PITH_TRY(special_add_named(loader, class, mask_flags));
    PITH_TRY(special_add_own(loader));
    PITH_TRY(special_add_json(loader, c->extra, extra, false));
    PITH_TRY(special_add_json(loader, c->extra_of_map, extra, false));
    PITH_TRY(special_add_json(loader, c->own, "model_specific_special_tokens", false));
    PITH_TRY(special_add_json(loader, c->extra, extra, true));
    PITH_TRY(special_add_json(loader, c->extra_of_map, extra, true));
    return special_add_json(loader, c->additional, additional, true);
}

/* ---- settings ---- */

typedef struct step_json {
    pith_str type;
    int lowercase, strip_accents, handle_chinese_chars, clean_text; /* -1: null or not there */
    int add_prefix_space, trim_offsets, use_regex;
    bool all; /* lowercase, strip_accents and handle_chinese_chars are there */
} step_json;

static pith_status read_step(step_json *s, pith__loader *loader, pith_str json, const char *kind) {
    struct {
        const char *key;
        int *flag;
    } flags[] = { { "lowercase", &s->lowercase },
                  { "strip_accents", &s->strip_accents },
                  { "handle_chinese_chars", &s->handle_chinese_chars },
                  { "clean_text", &s->clean_text },
                  { "add_prefix_space", &s->add_prefix_space },
                  { "trim_offsets", &s->trim_offsets },
                  { "use_regex", &s->use_regex } };
    pith__json *j = pith__arena_alloc(loader->scratch, sizeof *j);
    pith_str key;
    if (!j) return pith__fail_memory(loader->err, sizeof *j);
    *s = (step_json){ PITH_STR(""), -1, -1, -1, -1, -1, -1, -1, false };
    pith__json_init(j, json, kind, loader->scratch, loader->err);
    if (pith__json_peek(j) != PITH_JSON_OBJECT) return PITH_OK;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        size_t i = 0;
        while (i < sizeof flags / sizeof *flags && !pith__str_is(key, flags[i].key)) i++;
        if (i < sizeof flags / sizeof *flags)
            *flags[i].flag = pith__json_null(j) ? -1 : pith__json_bool(j);
        else if (pith__str_is(key, "type"))
            s->type = pith__json_string(j);
        else
            pith__json_skip(j);
    }
    return j->failed ? loader->err->code : PITH_OK;
}

static const char *flag_json(int flag) {
    if (flag < 0) return "null";
    if (flag) return "true";
    return "false";
}

/* transformers makes the normalizer of a class's tokenizer.json anew where its flags differ from
 * the settings of tokenizer_config.json, and so does this; clean_text stays as the file has it. */
static pith_status apply_bert(pith__loader *loader) {
    const pith__tokenizer_config *c = loader->config;
    const int lower = c->do_lower_case != 0, chinese = c->tokenize_chinese_chars != 0;
    pith_str json = pith__loader_setting(loader, "normalizer");
    step_json s;
    PITH_TRY(read_step(&s, loader, json, "normalizer"));
    if (!pith__str_is(s.type, "BertNormalizer")) return PITH_OK;
    if (s.lowercase == lower && s.strip_accents == c->strip_accents &&
        s.handle_chinese_chars == chinese)
        return PITH_OK;
    json = pith__arena_printf(
        loader->scratch,
        "{\"type\":\"BertNormalizer\",\"clean_text\":%s,\"handle_chinese_chars\":%s,"
        "\"strip_accents\":%s,\"lowercase\":%s}",
        flag_json(s.clean_text != 0), flag_json(chinese), flag_json(c->strip_accents),
        flag_json(lower));
    return json.data ? pith__loader_replace(loader, "normalizer", json)
                     : pith__fail_memory(loader->err, 256);
}

static pith_status apply_byte_level(pith__loader *loader) {
    const int wanted = loader->config->add_prefix_space == 1;
    pith_str json = pith__loader_setting(loader, "pre_tokenizer");
    step_json s;
    PITH_TRY(read_step(&s, loader, json, "pre_tokenizer"));
    if (!pith__str_is(s.type, "ByteLevel") || s.add_prefix_space == wanted) return PITH_OK;
    json = pith__arena_printf(
        loader->scratch,
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":%s,\"use_regex\":%s}",
        flag_json(wanted), flag_json(s.trim_offsets != 0), flag_json(s.use_regex != 0));
    return json.data ? pith__loader_replace(loader, "pre_tokenizer", json)
                     : pith__fail_memory(loader->err, 256);
}

pith_status pith__token_class_apply(pith__loader *loader) {
    const pith__token_class *class = pith__token_class_find(pith__token_class_name(loader->config));
    if (class && class->settings == PITH_SETTINGS_BERT) PITH_TRY(apply_bert(loader));
    if (class && class->settings == PITH_SETTINGS_BYTE_LEVEL) PITH_TRY(apply_byte_level(loader));
    PITH_TRY(pith__listed_tokens_add(loader, false));
    return pith__special_tokens_add(loader, class, 0);
}

void pith__token_class_settle(pith__loader *loader) {
    const pith__tokenizer_config *c = loader->config;
    const pith__token_class *class = pith__token_class_find(pith__token_class_name(c));
    pith_tokenizer *t = loader->tokenizer;
    t->left = c->left >= 0
                  ? c->left
                  : (t->truncates || c->tokenizer_class.data || c->model_type.data) &&
                        t->post_processing->truncation.on && t->post_processing->truncation.left;
    t->untyped = c->typed == 0 || (c->typed < 0 && class &&
                                   (class->typing == PITH_UNTYPED ||
                                    (class->typing == PITH_UNTYPED_BY_5 && c->written_by_5)));
    t->added_tokens->specials_are_text = c->split_special_tokens == 1;
}

/* config_files.h - tokenizer_config.json and the files beside it, as transformers reads them.
 *
 * special_tokens_map.json and added_tokens.json count only where tokenizer_config.json has no
 * added_tokens_decoder; then what special_tokens_map.json says wins. Source: transformers,
 * PreTrainedTokenizerBase._from_pretrained. */
#ifndef PITH_TEXT_SOURCES_CONFIG_FILES_H
#define PITH_TEXT_SOURCES_CONFIG_FILES_H

#include "text/pipeline.h"

/* A special token with a name: "mask_token", or one of the model's own such as "image_token". */
typedef struct pith__named_token {
    pith_str key, content; /* content.data NULL: the file says null, so there is none */
    uint32_t flags;        /* PITH_ADDED_* */
    bool object;           /* the file says what its flags are */
    bool special;          /* an object that says that it is special */
} pith__named_token;

/* What the files say. Absent strings have no data. */
typedef struct pith__tokenizer_config {
    pith_str tokenizer_class, unk_token, bos_token, eos_token, cls_token, sep_token, pad_token,
        mask_token, src_lang;
    pith__named_token *named; /* in the order of reading, each key once */
    size_t named_count, named_capacity;
    pith_str added_tokens, old_added_tokens;       /* JSON: see listed_tokens.c */
    pith_str additional, extra, extra_of_map, own; /* JSON: special tokens without names, and the
                                                      model's own */
    pith_str model_type; /* of config.json; read, as its tokenizer_class, where
                            tokenizer_config.json has no class */
    /* -1: not said */
    int do_lower_case, strip_accents, tokenize_chinese_chars, keep_accents;
    /* -1: not said */
    int add_bos_token, add_eos_token, add_prefix_space, legacy, clean_up_tokenization_spaces;
    /* -1: not said */
    int split_special_tokens, split_by_punct;
    int32_t extra_ids; /* of T5: how many tokens <extra_id_0>, <extra_id_1>, … there are; -1:
                                 not said */
    int left;          /* truncation_side is left; -1: not said */
    int typed;         /* model_input_names has token_type_ids; -1: not said */
    bool written_by_5; /* transformers 5 wrote the file */
    bool truncates;    /* of frozen tokenizers: see pith_tokenizer */
    int64_t model_max_length; /* 0: not said, or beyond 2^30 */
} pith__tokenizer_config;

/* An empty one, in the arena; NULL: out of memory. */
pith__tokenizer_config *pith__tokenizer_config_create(pith__arena *arena);
/* Reads the text of a tokenizer_config.json into loader->config. Keys of which nothing is known are
 * told to the log. */
pith_status pith__tokenizer_config_parse(pith__loader *loader, const char *name, pith_str bytes);
/* Reads tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json of a
 * directory, those that are there, into loader->config. */
pith_status pith__tokenizer_config_read(pith__loader *loader, const char *dir, bool copy);
/* The named token with this key ("mask_token"); NULL: no file names it. */
const pith__named_token *pith__tokenizer_config_named(const pith__tokenizer_config *config,
                                                      const char *key);

/* Reads a token, a string or an object, into token->content, which is in the arena, and its flags.
 */
void pith__named_token_parse(pith__named_token *token, pith__json *j, pith__arena *arena);

#endif

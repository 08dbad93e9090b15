/* token_class.h - what the tokenizer classes of transformers add to the files: the special tokens
 * they know by name, and which settings of tokenizer_config.json they put into effect. */
#ifndef PITH_TEXT_SOURCES_TOKEN_CLASS_H
#define PITH_TEXT_SOURCES_TOKEN_CLASS_H

#include "text/sources/config_files.h"

typedef enum pith__token_settings {
    PITH_SETTINGS_NONE,
    PITH_SETTINGS_BERT,      /* do_lower_case, strip_accents, tokenize_chinese_chars */
    PITH_SETTINGS_BYTE_LEVEL /* add_prefix_space */
} pith__token_settings;

/* When models get token types, if model_input_names does not say. */
typedef enum pith__token_typing {
    PITH_TYPED,
    PITH_UNTYPED,
    PITH_UNTYPED_BY_5 /* not by a class of transformers 5 */
} pith__token_typing;

enum { PITH_NAMED_TOKENS = 7 };
/* "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token": in
 * this order they are added. */
extern const char *const pith__named_keys[PITH_NAMED_TOKENS];

typedef struct pith__token_class {
    const char *name;   /* without "Fast" */
    const char *tokens; /* those of the keys, with spaces between; "-": none */
    pith__token_settings settings;
    pith__token_typing typing;
} pith__token_class;

/* NULL: not in the table. The name may end in "Fast". */
const pith__token_class *pith__token_class_find(pith_str name);
/* The class that the files name: tokenizer_config.json, else config.json, else the one that goes
 * with model_type. size 0: none does. */
pith_str pith__token_class_name(const pith__tokenizer_config *config);
/* The class that goes with a model type, where its name does not say so; data NULL: no other. */
pith_str pith__token_class_of_type(pith_str model_type);

/* Adds the special tokens that have names, and those without, in the order of transformers; tokens
 * that are added already stay as they are. class may be NULL. mask_flags: of the class's own mask
 * token, if no file says it. */
pith_status pith__special_tokens_add(pith__loader *loader, const pith__token_class *class,
                                     uint32_t mask_flags);

/* After tokenizer.json was read: what AutoTokenizer makes of it with the class's settings and the
 * tokens of the other files. Where 4.57 and 5.24 do not agree, tokenizer.json stays as it is. */
pith_status pith__token_class_apply(pith__loader *loader);
/* What the files say about a tokenizer of any source: the side of truncation, token types, special
 * tokens in texts. */
void pith__token_class_settle(pith__loader *loader);

#endif

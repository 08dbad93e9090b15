/* modules.h - what the small JSON files of a model directory say about embedding. */
#ifndef PITH_HF_MODULES_H
#define PITH_HF_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* Bits of pith_modules.pooling, in the order their vectors are laid end to end. */
enum {
    PITH_POOL_CLS = 1u << 0,
    PITH_POOL_MAX = 1u << 1,
    PITH_POOL_MEAN = 1u << 2,
    PITH_POOL_MEAN_SQRT = 1u << 3, /* sum divided by the square root of the length */
    PITH_POOL_WEIGHTED = 1u << 4,  /* mean weighted by position, counted from 1 */
    PITH_POOL_LAST = 1u << 5,
    PITH_POOL_MODES = 6
};

typedef struct pith_prompt {
    pith_str name, text;
} pith_prompt;

typedef struct pith_modules {
    uint32_t pooling; /* PITH_POOL_*; mean where nothing is said */
    bool normalize;
    bool include_prompt; /* false: pooling leaves the prompt's tokens out */
    int32_t max_length;  /* sentence_bert_config.json; 0 if not said */
    int32_t positions;   /* tokens the position table of config.json can hold; 0: no limit known */
    int32_t pad_token_id;
    const pith_prompt *prompts;
    size_t prompt_count;
    pith_str default_prompt; /* name; data is NULL if none */
} pith_modules;

/* Files that are missing say nothing, unless modules.json names them. Unreadable and damaged files are errors, and so
 * are modules this build cannot run. Strings lie in the arena. */
pith_status pith_modules_read(pith_modules *modules, const char *dir, const pith_allocator *allocator,
                              pith_arena *arena, pith_error *err);

/* Tokens per text by the rule flag, sentence_bert_config.json, tokenizer_config.json, config.json, the flag and all
 * others held below the positions; 0: no limit. tokenizer: model_max_length, 0 if not said. */
int32_t pith_modules_max_length(const pith_modules *modules, int32_t flag, int32_t tokenizer);

#endif

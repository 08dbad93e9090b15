/* modules.h - the settings for embedding in the small JSON files of a model directory. */
#ifndef PITH_HF_MODULES_H
#define PITH_HF_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* Bits of pith_modules.pooling, in the order in which their vectors are concatenated. */
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
    uint32_t pooling; /* PITH_POOL_*; mean by default */
    bool normalize;
    bool include_prompt; /* false: pooling ignores the prompt's tokens */
    int32_t max_length;  /* from sentence_bert_config.json; 0: not given */
    int32_t positions;   /* tokens for which config.json has positions; 0: not known */
    int32_t pad_token_id;
    const pith_prompt *prompts;
    size_t prompt_count;
    pith_str default_prompt; /* name; data is NULL if none */
} pith_modules;

/* Reads the settings. A missing file leaves the defaults, unless modules.json names it. Unreadable and damaged files
 * are errors, and so are modules that this build cannot run. Strings are in the arena. */
pith_status pith_modules_read(pith_modules *modules, const char *dir, const pith_allocator *allocator,
                              pith_arena *arena, pith_error *err);

/* Returns the number of tokens at which texts are cut; 0: no limit. The first that is given counts: flag,
 * sentence_bert_config.json, tokenizer_config.json, config.json. The number of positions limits all of them. tokenizer
 * is model_max_length, or 0 if it is not given. */
int32_t pith_modules_max_length(const pith_modules *modules, int32_t flag, int32_t tokenizer);

#endif

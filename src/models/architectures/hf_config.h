/* hf_config.h - the values of config.json that most builders need, and its text for the rest
 * (hf_builder.h). */
#ifndef PITH_MODELS_ARCHITECTURES_HF_CONFIG_H
#define PITH_MODELS_ARCHITECTURES_HF_CONFIG_H

#include "base/memory/memory.h"

typedef struct pith__hf_builder pith__hf_builder;
typedef struct pith__value pith__value;

/* If the file does not have a value, sizes are 0 and pad_token_id is -1. Strings are spans of the
 * text. */
typedef struct pith__hf_config {
    pith_str model_type, hidden_act, position_embedding_type;
    int64_t hidden_size, layers, heads, intermediate_size, vocab_size, positions, types,
        pad_token_id, relative_buckets;
    double layer_norm_eps;
    bool is_decoder;
    const struct pith__rerank_prompt
        *rerank;       /* not in the file: which tokens a language model answers with;
                                        NULL: none */
    bool flash;        /* use_flash_attn is there: a setting of code beside weights */
    bool classifier;   /* an architecture is one for sequence classification */
    bool both_ways;    /* not in the file: a decoder's tokens see those behind them
                                        too */
    pith_str task;     /* not in the file: which entry of lora_adaptations is taken;
                                        size 0: as it says */
    const char *reads; /* not in the file: keys and defaults of the family
                                        (hf_keys.h); NULL: none */
    /* not in the file: makes more outputs of x, which is last_hidden_state (models/tasks); NULL:
     * none */
    void (*add_tasks)(pith__hf_builder *b, pith__value *x);
    pith__arena *arena; /* of what was read */
    const char *name;   /* for messages */
    pith_str text;      /* of the whole file, well-formed */
} pith__hf_config;

/* Reads the text of config.json; name is for messages. The keys of DistilBERT (dim, n_layers, …)
 * mean the same. */
pith_status pith__hf_config_read(pith__hf_config *config, pith_str text, const char *name,
                                 pith__arena *arena, pith_error *err);

/* The values that the file leaves out become those of a list such as pith__hf_keys.reads, which
 * config keeps. */
pith_status pith__hf_config_complete(pith__hf_config *config, const char *reads, pith_error *err);
/* Whether the file has the key, whatever its value. */
bool pith__hf_config_has(const pith__hf_config *config, const char *key);

#endif

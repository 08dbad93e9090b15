/* hf_config.h - the values of config.json that most builders need, and its text for the rest (hf_builder.h). */
#ifndef PITH_HF_HF_CONFIG_H
#define PITH_HF_HF_CONFIG_H

#include "base/memory.h"

/* If the file does not have a value, sizes are 0 and pad_token_id is -1. Strings are spans of the text. */
typedef struct pith_hf_config {
    pith_str model_type, hidden_act, position_embedding_type;
    int64_t hidden_size, layers, heads, intermediate_size, vocab_size, positions, types, pad_token_id, relative_buckets;
    double layer_norm_eps;
    bool is_decoder;
    const struct pith_judge *judge; /* not in the file: which tokens a language model answers with; NULL: none */
    bool flash;                     /* use_flash_attn is there: a setting of code beside weights */
    pith_str text;                  /* of the whole file, well-formed */
} pith_hf_config;

/* Reads the text of config.json; name is for messages. The keys of DistilBERT (dim, n_layers, …) mean the same. */
pith_status pith_hf_config_read(pith_hf_config *config, pith_str text, const char *name, pith_arena *arena,
                                pith_error *err);

#endif

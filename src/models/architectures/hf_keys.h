/* hf_keys.h - every key of a config.json is one that its family reads, one whose value is fixed,
 * one that cannot change a vector, or one that nobody knows, which is said aloud. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_KEYS_H
#define PITH_MODELS_ARCHITECTURES_HF_KEYS_H

#include "base/memory/memory.h"
#include "models/architectures/family.h"
#include "pith/types.h"

/* The lists of a family. Words stand apart by a space; a value is written as JSON writes it, but
 * without quotes. */
typedef struct pith__hf_keys {
    const char *reads;   /* "hidden_size=768 head_dim": with the default of the class, if it has
                            one */
    const char *fixed;   /* "is_decoder=false": another value than this one or null is refused */
    const char *ignores; /* of training, generation, tokenizers */
    const char *code; /* classes that auto_map may name, because the family is they: "NewModel" or
                  "modeling.NewModel" */
    const char *two_ways;                      /* the same of classes that are the family's without
                                                  its causal mask */
    const struct pith__hf_keys *text, *vision; /* of the objects text_config and vision_config, if
                                                  these are read */
} pith__hf_keys;

/* What BERT and its relatives have. Sizes are those of BERT's class. */
#define PITH_HF_BERT_SIZES                                                                         \
    "hidden_size=768 num_hidden_layers=12 num_attention_heads=12 intermediate_size=3072 "          \
    "hidden_act=gelu "                                                                             \
    "max_position_embeddings=512 "
#define PITH_HF_BERT_READS                                                                         \
    PITH_HF_BERT_SIZES "type_vocab_size=2 layer_norm_eps=1e-12 position_embedding_type=absolute "
#define PITH_HF_BERT_IGNORES "attention_probs_dropout_prob classifier_dropout "
/* Rotary positions, in the forms of transformers 4 and 5. */
#define PITH_HF_ROPE_READS "rope_theta rope_scaling rope_parameters partial_rotary_factor "
/* What all decoders have. */
#define PITH_HF_DECODER_READS PITH_HF_ROPE_READS "head_dim rms_norm_eps=1e-6 is_causal layer_types "
#define PITH_HF_DECODER_IGNORES "attention_dropout mlp_dropout pretraining_tp "

/* What became of the keys: their names, with commas between them. */
typedef struct pith__hf_report {
    pith_str read, ignored, unknown;
    pith_str code; /* the class that auto_map names for the network; "": none */
} pith__hf_report;

/* Names with commas between them. */
typedef struct pith__hf_key_list {
    char *text;
    size_t size, capacity;
} pith__hf_key_list;

/* Adds a key; section is before its name: "text_config.", "" for a key of the file itself. */
pith_status pith__hf_key_list_add(pith__hf_key_list *list, const char *section, pith_str key,
                                  pith__arena *arena, pith_error *err);

/* Is the key in a list of words? *value is what follows it behind '=', or empty. list may be NULL.
 */
bool pith__hf_keys_find(pith_str *value, const char *list, pith_str wanted);

/* The default of a key in a list `reads`: *value is its text. False if it has none. */
bool pith__hf_keys_default(pith_str *value, const char *reads, pith_str key);

/* The lists of the class that transformers has for a model_type; NULL if there is none. */
const pith__hf_keys *pith__hf_keys_of_type(pith_str model_type);

/* Checks the whole of config->text, warns of keys that are not known, and sets config->both_ways if
 * auto_map names a class without a causal mask. report may be NULL; its strings are in the arena.
 * PITH_ERR_UNSUPPORTED names the key. */
pith_status pith__hf_keys_check(pith__hf_report *report, pith__hf_config *config,
                                const pith__hf_family *family, pith__arena *arena,
                                const pith_log *log, pith_error *err);

#endif

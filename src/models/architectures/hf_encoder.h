/* hf_encoder.h - encoders that normalise after each block: BERT and its relatives. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_ENCODER_H
#define PITH_MODELS_ARCHITECTURES_HF_ENCODER_H

#include "models/architectures/hf_attention.h"

typedef enum pith__hf_gate {
    PITH_HF_NO_GATE,     /* down(act(up(x))) */
    PITH_HF_GATE_FIRST,  /* up gives two halves: act(first) * second */
    PITH_HF_GATE_SECOND, /* first * act(second) */
    PITH_HF_GATE_APART   /* up(x) * act(gate(x)) */
} pith__hf_gate;

/* The names a family gives to its tensors, and where it differs from BERT. Names of a layer follow
 * `layer`; each names a pair of .weight and .bias. NULL where the family has no such part. */
typedef struct pith__hf_encoder_layout {
    const char *layer; /* before the number: "encoder.layer." */
    const char *query, *key, *value, *attention_out, *attention_norm, *up, *down, *norm;
    const char *qkv;                   /* one matrix instead of query, key and value */
    const char *query_norm, *key_norm; /* over all heads together, before they are split */
    const char *again_norm;            /* x is added to the normalised attention once more, and
                                          normalised by this */
    const char *gate;                  /* of PITH_HF_GATE_APART */
    const char *table_norm;            /* after the look-ups; NULL: "embeddings.LayerNorm" */
    const char *projection;            /* from tables of embedding_size to hidden_size, where these
                                          differ, … */
    bool projects;                     /* … and where they are equal */
    bool projects_first;               /* the projection comes before table_norm and has no bias */
    pith__hf_gate gating;
    bool type_input; /* token_type_ids is an input; else every token has type 0, where there are
                        types */
    bool has_types;
    bool task_types;       /* with use_task_id: a table of types of tasks, of which every token has
                              the first */
    bool padded_positions; /* position of the i-th token that is no padding: pad_token_id + 1 + i */
    bool pads_with_one;    /* … as if pad_token_id were 1, whatever config.json says */
    bool relative_bias;    /* one bias per head and distance, added to the scores of every layer */
    bool relative_keys;    /* position_embedding_type may be relative_key or relative_key_query */
    bool alibi;            /* instead of a table of positions */
    bool rotary;           /* instead of a table of positions */
    bool no_positions;     /* no table of positions */
    bool no_attention_bias, no_up_bias, no_down_bias; /* these matrices have no .bias */
    pith__hf_rotary_settings turn;                    /* with rotary */
    double scale;                                     /* of scores; 0: 1 / sqrt(size of a head) */
    /* Sets the builder's layer i; NULL: layer, i and a dot. */
    void (*place)(pith__hf_builder *b, const void *state, int64_t i);
    /* Called once, before the layers. */
    void (*prepare)(pith__hf_builder *b, void *state, pith__value *ids);
    /* A term of the scores [batch, heads, sequence, sequence] before they are scaled, in the
     * builder's layer; q and k are [batch, heads, sequence, size]. */
    pith__value *(*relate)(pith__hf_builder *b, const void *state, pith__value *q, pith__value *k);
    void *state; /* of place, prepare and relate */
} pith__hf_encoder_layout;

/* The names of BERT's layers. */
#define PITH_HF_BERT_NAMES                                                                         \
    .layer = "encoder.layer.", .query = "attention.self.query", .key = "attention.self.key",       \
    .value = "attention.self.value", .attention_out = "attention.output.dense",                    \
    .attention_norm = "attention.output.LayerNorm", .up = "intermediate.dense",                    \
    .down = "output.dense", .norm = "output.LayerNorm"

/* For pith__hf_family.build; layout is a pith__hf_encoder_layout. */
pith_status pith__hf_encoder_build(pith__graph *graph, const void *layout,
                                   const pith__hf_config *config, const pith__weights *weights,
                                   const char *weights_name, pith_error *err);
/* What follows pith__hf_begin in it, for families that read settings of their own first. */
pith_status pith__hf_encoder_make(pith__hf_builder *b, const pith__hf_encoder_layout *layout);
/* What stands before the tables' names. */
#define PITH_HF_ENCODER_ANCHOR "embeddings.word_embeddings.weight"

#endif

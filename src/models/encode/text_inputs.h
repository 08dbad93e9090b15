/* text_inputs.h - making a graph's input tensors from a chunk of texts: ids, mask, types, positions
 * and offsets, as needed.
 *
 * For a ragged graph a chunk is packed texts, [tokens]; for any other graph it is one text, [1,
 * tokens]. */
#ifndef PITH_MODELS_ENCODE_TEXT_INPUTS_H
#define PITH_MODELS_ENCODE_TEXT_INPUTS_H

#include "engine/graph/graph.h"

/* The tokens of one text. */
typedef struct pith__row {
    const int32_t *ids, *type_ids; /* type_ids may be NULL if the graph has no use for them
                                      (pith__text_inputs.typed) */
    int32_t count;
    int32_t hidden; /* the last so many tokens are masked: no token attends to them; 0 if the feed
                       is ragged */
    int32_t prompt; /* the first so many are those of a prompt that pooling leaves out, besides
                       those of the prompt of the call */
} pith__row;

/* The form in which a graph takes texts. */
typedef struct pith__text_inputs {
    const pith__graph *graph;
    uint8_t *roles;       /* by graph input */
    bool ragged;          /* texts are packed: [tokens]; else one text: [1, tokens] */
    bool typed;           /* the graph has token type ids */
    bool masked;          /* it has a mask */
    bool tasked;          /* it has the number of a task */
    int32_t task;         /* that number; set after pith__text_inputs_init, which makes it 0 */
    int64_t fixed_length; /* the sequence length the graph was exported for, texts are padded to it;
                             0: any */
    int32_t pad_token_id;
} pith__text_inputs;

/* Finds the role of each input. Inputs of a cache of earlier tokens (past_key_values.*) get no
 * tokens, and those that say whether there is a cache get false. Returns PITH_ERR_UNSUPPORTED, with
 * the input's name, if an input cannot be made from text. */
pith_status pith__text_inputs_init(pith__text_inputs *form, const pith__graph *graph, bool ragged,
                                   int32_t pad_token_id, pith__arena *arena, pith_error *err);

/* Makes the input tensors for rows, in the order of the graph's inputs and in memory of the arena.
 * A feed that is not ragged takes one row. */
pith_status pith__text_inputs_fill(pith_tensor *inputs, const pith__text_inputs *form,
                                   const pith__row *const *rows, size_t count, pith__arena *arena,
                                   pith_error *err);

#endif

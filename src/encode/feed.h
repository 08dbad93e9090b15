/* feed.h - the tensors a chunk of texts becomes: ids, mask, types, positions, offsets, whichever the graph asks for.
 *
 * A chunk is packed texts, [tokens], for a ragged graph; and one text, [1, tokens], for any other. */
#ifndef PITH_ENCODE_FEED_H
#define PITH_ENCODE_FEED_H

#include "graph/graph.h"

/* The tokens of one text. */
typedef struct pith_row {
    const int32_t *ids, *type_ids; /* type_ids may be NULL if the graph has no use for them (pith_feed.typed) */
    int32_t count;
} pith_row;

/* How a graph wants its texts. */
typedef struct pith_feed {
    const pith_graph *graph;
    uint8_t *roles;       /* by graph input */
    bool ragged;          /* texts are packed: [tokens]; else one text: [1, tokens] */
    bool typed;           /* the graph has token type ids */
    int64_t fixed_length; /* the sequence length the graph was exported for, texts are padded to it; 0: any */
    int32_t pad_token_id;
} pith_feed;

/* Names inputs by what they stand for; UNSUPPORTED naming an input that is none of a text's. */
pith_status pith_feed_init(pith_feed *feed, const pith_graph *graph, bool ragged, int32_t pad_token_id,
                           pith_arena *arena, pith_error *err);

/* Tensors for rows in the order of the graph's inputs; memory is the arena's. rows of a feed that is not ragged: one.
 */
pith_status pith_feed_fill(pith_tensor *inputs, const pith_feed *feed, const pith_row *const *rows, size_t count,
                           pith_arena *arena, pith_error *err);

#endif

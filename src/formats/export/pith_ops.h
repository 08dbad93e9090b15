/* pith_ops.h - shared by the files that write operators of the domain "pith" as those of other
 * engines: replace_pith_ops.c has the table of forms, dense layers and norms; pith_ops_attention.c
 * attention; pith_ops_rows.c rotary positions and looked-up rows; pith_ops_quantized.c sums and
 * convolutions of bytes. */
#ifndef PITH_FORMATS_EXPORT_PITH_OPS_H
#define PITH_FORMATS_EXPORT_PITH_OPS_H

#include "formats/export/new_nodes.h"
#include "formats/export/replace_pith_ops.h"

/* What was made for several nodes of a graph, such as a mask. Keys are compared as bytes. */
typedef struct pith__replace_key {
    const void *from;   /* a value; NULL: none */
    int64_t numbers[7]; /* the first tells what is made */
} pith__replace_key;

typedef struct pith__replace_memo {
    struct pith__replace_made *items;
    size_t count, capacity;
} pith__replace_memo;

typedef struct pith__replace {
    pith__new_nodes nodes;
    const pith__replace_form *how;
    const pith__type *type; /* of what is made: that of the node's output */
    pith__replace_memo *memo;
} pith__replace;

/* ---- nodes; v may be NULL, after a failure ---- */

/* Gives v the type of the node's output, if it has none. */
pith__value *pith__replace_typed(const pith__replace *b, pith__value *v);
/* Gives v a type. */
pith__value *pith__replace_shape(pith__value *v, int dtype, int rank, const pith__dim *dims);
/* A node of ai.onnx with the type of the node's output. */
#define PITH_REPLACE(b, op, ...) pith__replace_typed(b, PITH_NEW_NODE(&(b)->nodes, op, __VA_ARGS__))
/* A node of com.microsoft with its first output; all have the type of the node's output. */
pith__value *pith__replace_contrib(pith__replace *b, const char *op, pith__value *const *inputs,
                                   int count, int outputs);
void pith__replace_set_float(pith__replace *b, pith__value *v, const char *name, float number);
/* A list of integers, and one integer. */
pith__value *pith__replace_numbers(pith__replace *b, const int64_t *numbers, int64_t count);
pith__value *pith__replace_number(pith__replace *b, int64_t number);
/* Elements begin to end of an axis, each step-th of them; the type is that of x but for the axis.
 */
pith__value *pith__replace_slice(pith__replace *b, pith__value *x, int64_t axis, int64_t begin,
                                 int64_t end, int64_t step);
/* The size of axes begin to end - 1 of x, as a list; and of one axis, as one integer. */
pith__value *pith__replace_sizes(pith__replace *b, pith__value *x, int64_t begin, int64_t end);
pith__value *pith__replace_size(pith__replace *b, pith__value *x, int64_t axis);

/* What was made for this key; NULL: nothing. Nodes are visited in order, so it stands before the
 * node. */
pith__value *pith__replace_recall(const pith__replace *b, const pith__replace_key *key);
/* Remembers v, and returns it. */
pith__value *pith__replace_remember(pith__replace *b, const pith__replace_key *key, pith__value *v);

/* ---- forms: whether a node has one, else why not; and what stands for its output ---- */

bool pith__replace_attention_fits(const pith__node *node, const pith__replace_form *how,
                                  const char **why);
pith__value *pith__replace_attention(pith__replace *b, pith__node *node);
bool pith__replace_rotary_fits(const pith__node *node, const pith__replace_form *how,
                               const char **why);
pith__value *pith__replace_rotary(pith__replace *b, pith__node *node);
pith__value *pith__replace_embed_norm(pith__replace *b, pith__node *node);
pith__value *pith__replace_quantized_lstm(pith__replace *b, pith__node *node);
pith__value *pith__replace_quantized_add(pith__replace *b, pith__node *node);
/* Whether a QLinearConv has a mix of signs that ONNX Runtime has no kernel for; and what it stands
 * for. */
bool pith__replace_is_odd_conv(const pith__node *node);
pith__value *pith__replace_odd_conv(pith__replace *b, pith__node *node);
/* LayerNormalization or RMSNormalization over the last axis. beta may be NULL. */
pith__value *pith__replace_norm(pith__replace *b, pith__value *x, pith__value *gamma,
                                pith__value *beta, float epsilon, bool rms);

#endif

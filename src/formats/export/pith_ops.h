/* pith_ops.h - shared by the files that write operators of the domain "pith" as those of other engines: replace_pith_ops.c has
 * the table of forms, dense layers and norms; pith_ops_attention.c attention; pith_ops_rows.c rotary positions and looked-up
 * rows; pith_ops_quantized.c sums and convolutions of bytes. */
#ifndef PITH_FORMATS_EXPORT_PITH_OPS_H
#define PITH_FORMATS_EXPORT_PITH_OPS_H

#include "formats/export/new_nodes.h"
#include "formats/export/replace_pith_ops.h"

/* What was made for several nodes of a graph, such as a mask. Keys are compared as bytes. */
typedef struct pith_back_key {
    const void *from;   /* a value; NULL: none */
    int64_t numbers[7]; /* the first tells what is made */
} pith_back_key;

typedef struct pith_back_memo {
    struct pith_back_made *items;
    size_t count, capacity;
} pith_back_memo;

typedef struct pith_back {
    pith_maker m;
    const pith_write_back *how;
    const pith_type *type; /* of what is made: that of the node's output */
    pith_back_memo *memo;
} pith_back;

/* ---- nodes; v may be NULL, after a failure ---- */

/* Gives v the type of the node's output, if it has none. */
pith_value *pith_back_typed(const pith_back *b, pith_value *v);
/* Gives v a type. */
pith_value *pith_back_shape(pith_value *v, int dtype, int rank, const pith_dim *dims);
/* A node of ai.onnx with the type of the node's output. */
#define PITH_BACK(b, op, ...) pith_back_typed(b, PITH_MAKE(&(b)->m, op, __VA_ARGS__))
/* A node of com.microsoft with its first output; all have the type of the node's output. */
pith_value *pith_back_contrib(pith_back *b, const char *op, pith_value *const *inputs, int count, int outputs);
void pith_back_set_float(pith_back *b, pith_value *v, const char *name, float number);
/* A list of integers, and one integer. */
pith_value *pith_back_numbers(pith_back *b, const int64_t *numbers, int64_t count);
pith_value *pith_back_number(pith_back *b, int64_t number);
/* Elements begin to end of an axis, each step-th of them; the type is that of x but for the axis. */
pith_value *pith_back_slice(pith_back *b, pith_value *x, int64_t axis, int64_t begin, int64_t end, int64_t step);
/* The size of axes begin to end - 1 of x, as a list; and of one axis, as one integer. */
pith_value *pith_back_sizes(pith_back *b, pith_value *x, int64_t begin, int64_t end);
pith_value *pith_back_size(pith_back *b, pith_value *x, int64_t axis);

/* What was made for this key; NULL: nothing. Nodes are visited in order, so it stands before the node. */
pith_value *pith_back_recall(const pith_back *b, const pith_back_key *key);
/* Remembers v, and returns it. */
pith_value *pith_back_remember(pith_back *b, const pith_back_key *key, pith_value *v);

/* ---- forms: whether a node has one, else why not; and what stands for its output ---- */

bool pith_back_attention_fits(const pith_node *node, const pith_write_back *how, const char **why);
pith_value *pith_back_attention(pith_back *b, pith_node *node);
bool pith_back_rotary_fits(const pith_node *node, const pith_write_back *how, const char **why);
pith_value *pith_back_rotary(pith_back *b, pith_node *node);
pith_value *pith_back_embed_norm(pith_back *b, pith_node *node);
pith_value *pith_back_quantized_lstm(pith_back *b, pith_node *node);
pith_value *pith_back_quantized_add(pith_back *b, pith_node *node);
/* Whether a QLinearConv has a mix of signs that ONNX Runtime has no kernel for; and what it stands for. */
bool pith_back_is_odd_conv(const pith_node *node);
pith_value *pith_back_odd_conv(pith_back *b, pith_node *node);
/* LayerNormalization or RMSNormalization over the last axis. beta may be NULL. */
pith_value *pith_back_norm(pith_back *b, pith_value *x, pith_value *gamma, pith_value *beta, float epsilon, bool rms);

#endif

/* rule.h - the rules that translate operators to packed tokens, and their helpers.
 *
 * Every value of the padded graph has a form, which follows from its symbolic shape, and a value in the new graph:
 *   CONST   neither batch nor sequence in its shape: unchanged
 *   TOKEN   [batch, …, sequence, …] or, by position, [1, …, sequence, …]: [tokens, rest], the rest being its other axes
 *           in their order (without a batch axis). A value by position is computed by token from pith.positions
 *   TEXT    [batch, …]: [texts, …]
 *   PAIR    two sequence axes and no batch, a bias of attention: computed only there, for the longest text
 *   SHARED  neither, but a different value per text (a quantisation scale): [tokens, …] or [texts, …], see
 * rule_quantize.c SIZE    integers computed from shapes: no value, readers use the shapes themselves NONE    not
 * translated; this matters only if another value needs it A rule translates one operator, or fails with r->why. */
#ifndef PITH_ENGINE_RAGGED_RULE_H
#define PITH_ENGINE_RAGGED_RULE_H

#include "engine/opt/pass.h"

typedef enum pith_ragged_kind {
    PITH_RAGGED_NONE,
    PITH_RAGGED_CONST,
    PITH_RAGGED_TOKEN,
    PITH_RAGGED_TEXT,
    PITH_RAGGED_PAIR,
    PITH_RAGGED_SHARED,
    PITH_RAGGED_SIZE
} pith_ragged_kind;

typedef struct pith_ragged_form {
    pith_ragged_kind kind;
    int sequence;        /* axis, of TOKEN */
    bool batch;          /* axis 0 is the batch */
    pith_ragged_kind of; /* of SHARED: TOKEN or TEXT, what its rows are */
} pith_ragged_form;

typedef struct pith_ragged {
    const pith_graph *from;
    pith_graph *to;
    pith_dim batch, sequence;
    pith_ragged_form *forms; /* by value id of from */
    pith_value **values;     /* by value id of from; NULL for PAIR and SIZE */
    pith_value **pairs;      /* by value id of from: as computed for the longest text */
    pith_value *ids, *positions, *offsets, *ones, *longest;
    const char *why;          /* set by a rule that fails */
    const pith_node *culprit; /* the node that causes it; NULL: the node being translated */
    const pith_node **blame;  /* by value id of from, for NONE and EachText: the cause, … */
    const char **whys;        /* … and the reason */
    pith_status status;       /* PITH_ERR_MEMORY if memory was out */
    pith_error *err;
} pith_ragged;

/* A rule translates some operators: one file, one line in select/ragged.def. */
typedef struct pith_ragged_rule {
    const char *operators; /* names between blanks, with their domain unless it is ai.onnx: "Gemm pith::Linear" */
    bool elementwise;      /* also every operator with PITH_OP_ELEMENTWISE and one output that no rule names */
    /* False: the node is not row-wise, and r->why says so; or memory is out, and r->status says so. */
    bool (*translate)(pith_ragged *r, const pith_node *node);
} pith_ragged_rule;

/* Made from select/ragged.def by select/tables.c. */
extern const pith_ragged_rule *const pith_ragged_rule_table[];
extern const size_t pith_ragged_rule_table_count;

/* NULL if no rule knows the operator. */
const pith_ragged_rule *pith_ragged_find(const pith_node *node);

/* Sets r->why; returns false. */
bool pith_ragged_refuse(pith_ragged *r, const char *why);
/* CONST for constants, which have no form of their own. */
pith_ragged_kind pith_ragged_kind_of(const pith_ragged *r, const pith_value *v);
/* After storing an attribute: false with r->status if that failed. */
bool pith_ragged_stored(pith_ragged *r, pith_status status);
/* Returns the axis in the new graph of a rest axis of a TOKEN value. */
int64_t pith_ragged_moved_axis(const pith_ragged_form *form, int axis);
/* The sizes of the rest axes; false if one is not a number. */
bool pith_ragged_rest_dims(const pith_ragged_form *form, const pith_type *type, int64_t *dims, int *count);

/* Reshape to [as before, rest…]. */
bool pith_ragged_reshape_rest(pith_ragged *r, const pith_value *out, pith_value *x, const pith_ragged_form *form);
/* pith.Segment over the tokens of x; the sequence axis of out is gone, or 1 if kept. */
bool pith_ragged_segment(pith_ragged *r, const pith_value *x, const pith_value *out, const char *how, bool kept);

/* The form of this shape; kind NONE if it has other symbols or batch elsewhere. */
pith_ragged_form pith_ragged_form_of(const pith_ragged *r, const pith_type *type);
/* Appends a node; NULL with r->status if memory is out. */
pith_node *pith_ragged_emit(pith_ragged *r, const char *domain, const char *op_type, pith_value *const *inputs,
                            int count);
/* Appends a node like `like`, with other inputs; NULL with r->status if memory is out. */
pith_node *pith_ragged_clone(pith_ragged *r, const pith_node *like, pith_value *const *inputs, int count);
/* Records `value` as the translation of v. Returns value != NULL. */
bool pith_ragged_set(pith_ragged *r, const pith_value *v, pith_value *value);
/* v in the new graph if it is CONST (or a SIZE that is a number); else NULL with r->why. */
pith_value *pith_ragged_const(pith_ragged *r, const pith_value *v);
/* v as an operand that broadcasts, in the new graph, to a TOKEN (or TEXT, CONST) result of this form and rank. */
pith_value *pith_ragged_operand(pith_ragged *r, const pith_value *v, const pith_ragged_form *form, int rank);
/* v computed for the longest text, alone. */
pith_value *pith_ragged_pair(pith_ragged *r, const pith_value *v, int depth);
pith_value *pith_ragged_ints(pith_ragged *r, const int64_t *items, int count);
/* Returns the axis in the new graph of a rest axis; -1 with r->why if it is the batch or the sequence. */
int64_t pith_ragged_rest_axis(pith_ragged *r, const pith_ragged_form *form, int64_t axis, int rank);

/* ---- each_text.c ---- */

/* Puts a node that no rule could translate, and the untranslated nodes before it, into a pith.EachText, which runs one
 * text at a time. Returns false if its output has neither one row per token nor one per text, if a node inside cannot
 * run that way, or if memory is out (r->status). */
bool pith_ragged_each_text(pith_ragged *r, const pith_node *node);

/* ---- rule_quantize.c ---- */

/* True if an input of the node is SHARED. */
bool pith_ragged_is_shared(const pith_ragged *r, const pith_node *node);
/* A SHARED v as an operand of a TOKEN or TEXT result. */
pith_value *pith_ragged_shared_operand(pith_ragged *r, const pith_value *v, const pith_ragged_form *form, int rank);
/* An elementwise node of SHARED and CONST values. */
bool pith_ragged_map_shared(pith_ragged *r, const pith_node *node);

#endif

/* rule.h - the rules that translate operators to packed tokens, and their helpers.
 *
 * Every value of the padded graph has a form, which follows from its symbolic shape, and a value in
 * the new graph:
 *   CONST   neither batch nor sequence in its shape: unchanged
 *   TOKEN   [batch, …, sequence, …] or, by position, [1, …, sequence, …]: [tokens, rest], the rest
 *           being its other axes in their order (without a batch axis). A value by position is
 *           computed by token from pith.positions
 *   TEXT    [batch, …]: [texts, …]
 *   PAIR    two sequence axes and no batch, a bias of attention: computed only there, for the
 *           longest text
 *   SHARED  neither, but a different value per text (a quantisation scale): [tokens, …] or
 *           [texts, …], see rule_quantize.c
 *   SIZE    integers computed from shapes: no value, readers use the shapes themselves
 *   NONE    not translated; this matters only if another value needs it
 * A rule translates one operator, or fails with r->why. */
#ifndef PITH_ENGINE_RAGGED_RULE_H
#define PITH_ENGINE_RAGGED_RULE_H

#include "engine/opt/pass.h"

typedef enum pith__ragged_kind {
    PITH_RAGGED_NONE,
    PITH_RAGGED_CONST,
    PITH_RAGGED_TOKEN,
    PITH_RAGGED_TEXT,
    PITH_RAGGED_PAIR,
    PITH_RAGGED_SHARED,
    PITH_RAGGED_SIZE
} pith__ragged_kind;

typedef struct pith__ragged_form {
    pith__ragged_kind kind;
    int sequence;         /* axis, of TOKEN */
    bool batch;           /* axis 0 is the batch */
    pith__ragged_kind of; /* of SHARED: TOKEN or TEXT, what its rows are */
} pith__ragged_form;

typedef struct pith__ragged {
    const pith__graph *from;
    pith__graph *to;
    pith__dim batch, sequence;
    pith__ragged_form *forms; /* by value id of from */
    pith__value **values;     /* by value id of from; NULL for PAIR and SIZE */
    pith__value **pairs;      /* by value id of from: as computed for the longest text */
    pith__value *ids, *positions, *offsets, *ones, *longest;
    const char *why;           /* set by a rule that fails */
    const pith__node *culprit; /* the node that causes it; NULL: the node being translated */
    const pith__node **blame;  /* by value id of from, for NONE and EachText: the cause, … */
    const char **whys;         /* … and the reason */
    pith_status status;        /* PITH_ERR_MEMORY if memory was out */
    pith_error *err;
} pith__ragged;

/* A rule translates some operators: one file, one line in select/ragged.def. */
typedef struct pith__ragged_rule {
    const char *operators; /* names between blanks, with their domain unless it is ai.onnx: "Gemm
                              pith::Linear" */
    bool elementwise;      /* also every operator with PITH_OP_ELEMENTWISE and one output that no
                              rule names */
    /* False: the node is not row-wise, and r->why says so; or memory is out, and r->status says so.
     */
    bool (*translate)(pith__ragged *r, const pith__node *node);
} pith__ragged_rule;

/* Made from select/ragged.def by select/tables.c. */
extern const pith__ragged_rule *const pith__ragged_rule_table[];
extern const size_t pith__ragged_rule_table_count;

/* NULL if no rule knows the operator. */
const pith__ragged_rule *pith__ragged_find(const pith__node *node);

/* Sets r->why; returns false. */
bool pith__ragged_refuse(pith__ragged *r, const char *why);
/* CONST for constants, which have no form of their own. */
pith__ragged_kind pith__ragged_kind_of(const pith__ragged *r, const pith__value *v);
/* After storing an attribute: false with r->status if that failed. */
bool pith__ragged_stored(pith__ragged *r, pith_status status);
/* Returns the axis in the new graph of a rest axis of a TOKEN value. */
int64_t pith__ragged_moved_axis(const pith__ragged_form *form, int axis);
/* The sizes of the rest axes; false if one is not a number. */
bool pith__ragged_rest_dims(const pith__ragged_form *form, const pith__type *type, int64_t *dims,
                            int *count);

/* Reshape to [as before, rest…]. */
bool pith__ragged_reshape_rest(pith__ragged *r, const pith__value *out, pith__value *x,
                               const pith__ragged_form *form);
/* pith.Segment over the tokens of x; the sequence axis of out is gone, or 1 if kept. */
bool pith__ragged_segment(pith__ragged *r, const pith__value *x, const pith__value *out,
                          const char *how, bool kept);

/* The form of this shape; kind NONE if it has other symbols or batch elsewhere. */
pith__ragged_form pith__ragged_form_of(const pith__ragged *r, const pith__type *type);
/* Appends a node; NULL with r->status if memory is out. */
pith__node *pith__ragged_emit(pith__ragged *r, const char *domain, const char *op_type,
                              pith__value *const *inputs, int count);
/* Appends a node like `like`, with other inputs; NULL with r->status if memory is out. */
pith__node *pith__ragged_clone(pith__ragged *r, const pith__node *like, pith__value *const *inputs,
                               int count);
/* Records `value` as the translation of v. Returns value != NULL. */
bool pith__ragged_set(pith__ragged *r, const pith__value *v, pith__value *value);
/* v in the new graph if it is CONST (or a SIZE that is a number); else NULL with r->why. */
pith__value *pith__ragged_const(pith__ragged *r, const pith__value *v);
/* v as an operand that broadcasts, in the new graph, to a TOKEN (or TEXT, CONST) result of this
 * form and rank. */
pith__value *pith__ragged_operand(pith__ragged *r, const pith__value *v,
                                  const pith__ragged_form *form, int rank);
/* v computed for the longest text, alone. */
pith__value *pith__ragged_pair(pith__ragged *r, const pith__value *v, int depth);
pith__value *pith__ragged_ints(pith__ragged *r, const int64_t *items, int count);
/* Returns the axis in the new graph of a rest axis; -1 with r->why if it is the batch or the
 * sequence. */
int64_t pith__ragged_rest_axis(pith__ragged *r, const pith__ragged_form *form, int64_t axis,
                               int rank);

/* ---- each_text.c ---- */

/* Puts a node that no rule could translate, and the untranslated nodes before it, into a
 * pith.EachText, which runs one text at a time. Returns false if its output has neither one row per
 * token nor one per text, if a node inside cannot run that way, or if memory is out (r->status). */
bool pith__ragged_each_text(pith__ragged *r, const pith__node *node);

/* ---- rule_quantize.c ---- */

/* True if an input of the node is SHARED. */
bool pith__ragged_is_shared(const pith__ragged *r, const pith__node *node);
/* A SHARED v as an operand of a TOKEN or TEXT result. */
pith__value *pith__ragged_shared_operand(pith__ragged *r, const pith__value *v,
                                         const pith__ragged_form *form, int rank);
/* An elementwise node of SHARED and CONST values. */
bool pith__ragged_map_shared(pith__ragged *r, const pith__node *node);

#endif

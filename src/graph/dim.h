/* dim.h - sizes that may be symbolic.
 *
 * A pith_dim is an int64. Ordinary values stand for themselves (elements of shape tensors may be negative); values
 * up to PITH_DIM_LIMIT are handles of interned expressions over symbols ("batch", "sequence * 12"). Equal handles are
 * equal sizes; PITH_DIM_UNKNOWN equals nothing, not even itself. With concrete operands the functions only compute, so
 * the same shape rules serve at load (symbolic) and at bind (concrete, dims may then be NULL).
 *
 * An integer from a file or a caller may lie where the handles are, so none becomes a pith_dim by assignment. Contents
 * of tensors go through pith_type_elem, which makes such a number unknown; attributes are checked when the node gets
 * its operator (ops/op_bind.c), so what the getters of attributes give is no handle. The functions here take a handle
 * that is not of their table for unknown. */
#ifndef PITH_GRAPH_DIM_H
#define PITH_GRAPH_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

typedef int64_t pith_dim;

#define PITH_DIM_UNKNOWN INT64_MIN
#define PITH_DIM_LIMIT (INT64_MIN / 2)

typedef struct pith_dims pith_dims; /* the table of symbols and expressions; one per model, shared with subgraphs */

typedef enum pith_dim_op {
    PITH_DIM_ADD,
    PITH_DIM_SUB,
    PITH_DIM_MUL,
    PITH_DIM_FLOOR_DIV,
    PITH_DIM_CEIL_DIV,
    PITH_DIM_MIN,
    PITH_DIM_MAX
} pith_dim_op;

/* An integer from outside as a size or an element: unknown if it is no representable number. */
static inline pith_dim pith_dim_of(int64_t number) { return number > PITH_DIM_LIMIT ? number : PITH_DIM_UNKNOWN; }
static inline bool pith_dim_known(pith_dim d) { return d > PITH_DIM_LIMIT; } /* a number */
static inline bool pith_dim_equal(pith_dim a, pith_dim b) { return a == b && a != PITH_DIM_UNKNOWN; }

pith_status pith_dims_create(pith_dims **dims, pith_arena *arena);
/* The symbol of this name (the same for the same name); PITH_DIM_UNKNOWN if memory is out. */
pith_dim pith_dim_symbol(pith_dims *dims, pith_str name);
/* a op b, normalised: constants folded, sums and products sorted, (a * b) / b = a. Unknown if an operand is, if a
 * concrete result overflows or divides by zero, or if dims is NULL and an operand is symbolic. */
pith_dim pith_dim_apply(pith_dims *dims, pith_dim_op op, pith_dim a, pith_dim b);
/* A number, or a handle of this table (of none if dims is NULL). */
bool pith_dim_means(const pith_dims *dims, pith_dim d);
pith_dim pith_dim_product(pith_dims *dims, const pith_dim *items, int count);

/* Symbols are numbered from 0. values has one entry per symbol, PITH_DIM_UNKNOWN where it is not bound. */
size_t pith_dims_symbol_count(const pith_dims *dims);
int32_t pith_dim_symbol_index(const pith_dims *dims, pith_dim d); /* -1 if d is not a plain symbol */
pith_str pith_dims_symbol_name(const pith_dims *dims, int32_t index);
pith_dim pith_dim_eval(const pith_dims *dims, pith_dim d, const pith_dim *values);
/* Which size of which symbol makes d equal to value; false if d is not a * symbol + b, or no size does. */
bool pith_dim_solve(const pith_dims *dims, pith_dim d, int64_t value, int32_t *symbol, int64_t *size);
/* "12*sequence", "?", "384". */
const char *pith_dim_text(const pith_dims *dims, pith_dim d, char *buffer, size_t size);

#endif

/* symbolic_dim.h - sizes that may be symbolic.
 *
 * A pith_dim is an int64. Values above PITH_DIM_LIMIT are numbers (elements of shape tensors may be negative). Values
 * up to PITH_DIM_LIMIT are handles of interned expressions over symbols ("batch", "sequence * 12"). Equal handles are
 * equal sizes. PITH_DIM_UNKNOWN equals nothing, not even itself. With numbers as operands the functions only compute,
 * so the same shape rules work at load, with symbols, and at bind, with numbers; dims may then be NULL.
 *
 * An integer from a file or a caller may be in the range of the handles, so never assign one to a pith_dim. Read
 * contents of tensors with pith_type_elem, which makes such a number unknown. Integers of attributes are checked when
 * the node gets its operator (engine/ops/shared/op_bind.c), so their getters never return a handle. The functions here treat a handle
 * that is not in their table as unknown. */
#ifndef PITH_ENGINE_GRAPH_SYMBOLIC_DIM_H
#define PITH_ENGINE_GRAPH_SYMBOLIC_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

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

/* Converts an integer from outside to a size or an element. One in the range of the handles becomes unknown. */
static inline pith_dim pith_dim_of(int64_t number) { return number > PITH_DIM_LIMIT ? number : PITH_DIM_UNKNOWN; }
static inline bool pith_dim_known(pith_dim d) { return d > PITH_DIM_LIMIT; } /* a number */
static inline bool pith_dim_equal(pith_dim a, pith_dim b) { return a == b && a != PITH_DIM_UNKNOWN; }

pith_status pith_dims_create(pith_dims **dims, pith_arena *arena);
/* Returns the symbol of this name, always the same one, or PITH_DIM_UNKNOWN if memory is out. */
pith_dim pith_dim_symbol(pith_dims *dims, pith_str name);
/* Returns `a op b` in normal form: constants are folded, sums and products are sorted, (a * b) / b is a. The result is
 * unknown if an operand is, if a number overflows or is divided by zero, or if dims is NULL and an operand is a handle.
 */
pith_dim pith_dim_apply(pith_dims *dims, pith_dim_op op, pith_dim a, pith_dim b);
/* True for a number, and for a handle of this table (for no handle if dims is NULL). */
bool pith_dim_means(const pith_dims *dims, pith_dim d);
pith_dim pith_dim_product(pith_dims *dims, const pith_dim *items, int count);

/* Symbols are numbered from 0. values has one entry per symbol, PITH_DIM_UNKNOWN where it is not bound. */
size_t pith_dims_symbol_count(const pith_dims *dims);
int32_t pith_dim_symbol_index(const pith_dims *dims, pith_dim d); /* -1 if d is not a plain symbol */
pith_str pith_dims_symbol_name(const pith_dims *dims, int32_t index);
pith_dim pith_dim_eval(const pith_dims *dims, pith_dim d, const pith_dim *values);
/* Finds the size of the symbol in d that makes d equal to value. Returns false if d is not of the form a * symbol + b,
 * or if no size does. */
bool pith_dim_solve(const pith_dims *dims, pith_dim d, int64_t value, int32_t *symbol, int64_t *size);
/* Writes d as text: "12*sequence", "?" or "384". Returns buffer. */
const char *pith_dim_text(const pith_dims *dims, pith_dim d, char *buffer, size_t size);
/* "[batch, 12*sequence, ?, 384]". */
const char *pith_shape_text(const pith_dims *dims, const pith_dim *sizes, int rank, char *buffer, size_t size);

#endif

/* symbolic_dim.h - sizes that may be symbolic.
 *
 * A pith__dim is an int64. Values above PITH_DIM_LIMIT are numbers (elements of shape tensors may
 * be negative). Values up to PITH_DIM_LIMIT are handles of interned expressions over symbols
 * ("batch", "sequence * 12"). Equal handles are equal sizes. PITH_DIM_UNKNOWN equals nothing, not
 * even itself. With numbers as operands the functions only compute, so the same shape rules work at
 * load, with symbols, and at bind, with numbers; dims may then be NULL.
 *
 * An integer from a file or a caller may be in the range of the handles, so never assign one to a
 * pith__dim. Read contents of tensors with pith__type_elem, which makes such a number unknown.
 * Integers of attributes are checked when the node gets its operator
 * (engine/ops/shared/bind_operators.c), so their getters never return a handle. The functions here
 * treat a handle that is not in their table as unknown. */
#ifndef PITH_ENGINE_GRAPH_SYMBOLIC_DIM_H
#define PITH_ENGINE_GRAPH_SYMBOLIC_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"
#include "base/private_symbol.h"

typedef int64_t pith__dim;

#define PITH_DIM_UNKNOWN INT64_MIN
#define PITH_DIM_LIMIT (INT64_MIN / 2)

typedef struct pith__dims pith__dims; /* the table of symbols and expressions; one per model, shared
                                         with subgraphs */

typedef enum pith__dim_op {
    PITH_DIM_ADD,
    PITH_DIM_SUB,
    PITH_DIM_MUL,
    PITH_DIM_FLOOR_DIV,
    PITH_DIM_CEIL_DIV,
    PITH_DIM_MIN,
    PITH_DIM_MAX
} pith__dim_op;

/* Converts an integer from outside to a size or an element. One in the range of the handles becomes
 * unknown. */
static inline pith__dim pith__dim_of(int64_t number) {
    return number > PITH_DIM_LIMIT ? number : PITH_DIM_UNKNOWN;
}
static inline bool pith__dim_known(pith__dim d) { return d > PITH_DIM_LIMIT; } /* a number */
static inline bool pith__dim_equal(pith__dim a, pith__dim b) {
    return a == b && a != PITH_DIM_UNKNOWN;
}

pith_status pith__dims_create(pith__dims **dims, pith__arena *arena);
/* Returns the symbol of this name, always the same one, or PITH_DIM_UNKNOWN if memory is out. */
PITH_PRIVATE pith__dim pith__dim_symbol(pith__dims *dims, pith_str name);
/* Returns `a op b` in normal form: constants are folded, sums and products are sorted, (a * b) / b
 * is a. The result is unknown if an operand is, if a number overflows or is divided by zero, or if
 * dims is NULL and an operand is a handle. */
pith__dim pith__dim_apply(pith__dims *dims, pith__dim_op op, pith__dim a, pith__dim b);
/* True for a number, and for a handle of this table (for no handle if dims is NULL). */
bool pith__dim_means(const pith__dims *dims, pith__dim d);
pith__dim pith__dim_product(pith__dims *dims, const pith__dim *items, int count);

/* Symbols are numbered from 0. values has one entry per symbol, PITH_DIM_UNKNOWN where it is not
 * bound. */
size_t pith__dims_symbol_count(const pith__dims *dims);
/* -1 if d is not a plain symbol */
int32_t pith__dim_symbol_index(const pith__dims *dims, pith__dim d);
pith_str pith__dims_symbol_name(const pith__dims *dims, int32_t index);
pith__dim pith__dim_eval(const pith__dims *dims, pith__dim d, const pith__dim *values);
/* Finds the size of the symbol in d that makes d equal to value. Returns false if d is not of the
 * form a * symbol + b, or if no size does. */
bool pith__dim_solve(const pith__dims *dims, pith__dim d, int64_t value, int32_t *symbol,
                     int64_t *size);
/* Writes d as text: "12*sequence", "?" or "384". Returns buffer. */
const char *pith__dim_text(const pith__dims *dims, pith__dim d, char *buffer, size_t size);
/* "[batch, 12*sequence, ?, 384]". */
const char *pith__shape_text(const pith__dims *dims, const pith__dim *sizes, int rank, char *buffer,
                             size_t size);

#endif

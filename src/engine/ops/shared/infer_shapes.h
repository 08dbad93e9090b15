/* infer_shapes.h - helpers for the shape rules of operators: absent inputs, equal dtypes, lists of
 * numbers from constant inputs, contents of shape arithmetic, and upgrades of attributes that
 * became inputs. */
#ifndef PITH_ENGINE_OPS_SHARED_INFER_SHAPES_H
#define PITH_ENGINE_OPS_SHARED_INFER_SHAPES_H

#include "engine/kernels/kernel.h"
#include "engine/kernels/move.h"
#include "engine/ops/op.h"

/* True if input i is present. Works on pith__infer, pith__prepare and pith__run. */
#define pith__has_input(c, i) ((i) < (c)->in_count && (c)->in[i] != NULL)

/* Output 0 gets the dtype, shape and known contents of input 0. */
pith_status pith__infer_same(pith__infer *c);
/* Fails unless all known dtypes of inputs [first, last] are equal. Absent inputs are ignored. */
pith_status pith__infer_equal_dtypes(pith__infer *c, int first, int last);
/* Sets the type of an output, even if the node does not have it: scratch may need its shape. */
void pith__infer_set(pith__infer *c, int output, int dtype, int rank, const pith__dim *dims);

/* Numbers that a one-dimensional (or scalar) input of at most PITH_MAX_RANK * 2 elements holds.
 * count: -1 if not even their number is known, 0 if the input is absent. items[i] is
 * PITH_DIM_UNKNOWN where only the number is known. These are arguments, not contents that others go
 * on with: a number below all representable ones is the smallest of those, which means the same to
 * Slice and is as wrong elsewhere. */
typedef struct pith__numbers {
    int count;
    pith__dim items[2 * PITH_MAX_RANK];
} pith__numbers;
pith_status pith__infer_numbers(pith__infer *c, int input, pith__numbers *numbers);
/* The same from a tensor while running: i32 or i64. */
pith_status pith__run_numbers(pith__run *r, int input, pith__numbers *numbers);
/* A scalar or one-element input; false if it is absent or not known. */
bool pith__infer_number(const pith__infer *c, int input, pith__dim *number);

/* The same as a double, of any number type; contents must be known as data or elems. */
bool pith__infer_scalar(const pith__infer *c, int input, double *scalar);

/* Contents of output 0 are those of input 0 in the same order (another shape). */
void pith__infer_keep_elems(pith__infer *c);
/* Contents of output 0, element by element of the broadcast inputs, if all are known and few. */
typedef pith__dim pith__elem_fn(pith__dims *dims, const pith__dim *operands, int count);
pith_status pith__infer_elems(pith__infer *c, pith__elem_fn *fn);
/* Room for contents of output 0, to be filled by the caller; NULL if they are too many, the
 * output's shape is not known or its dtype is not an integer or bool. *count elements. */
pith__dim *pith__infer_new_elems(pith__infer *c, int64_t *count);

/* Fails if the elements of input 0 are packed, since those cannot be moved one by one. */
pith_status pith__prepare_movable(pith__prepare *c);

/* Sizes of a tensor seen as [outer, n, inner] around an axis: the product of the dims before it,
 * its own, and the product of those behind it. */
void pith__axis_split(const int64_t *dims, int rank, int axis, int64_t form[3]);

/* Makes negative axes non-negative. Fails if an axis is out of range or occurs twice. */
pith_status pith__axes_normalize(pith__dim *axes, int count, int rank, pith_error *err);

/* Turn an attribute into a constant input. They do nothing if the attribute is absent. */
pith_status pith__upgrade_ints(pith__node *node, const char *attribute, int input);
pith_status pith__upgrade_int(pith__node *node, const char *attribute, int input);
pith_status pith__upgrade_float(pith__node *node, const char *attribute, int input);

/* Finds the kernel of a family, or fails with an error that names the dtype. */
pith_status pith__prepare_kernel(pith__prepare *c, const char *family, int dtype,
                                 pith__kernel_fn **fn);

/* pith__move (engine/kernels/move.h), shared among the run's threads along the first dimension. */
void pith__run_move(pith__run *r, void *to, const int64_t *to_strides, const void *from,
                    const int64_t *from_strides, const int64_t *dims, int rank, size_t size);
/* pith__fill (likewise), piece by piece. */
pith_status pith__run_fill(const pith__run *r, void *to, const void *value, int64_t n, size_t size);
/* The same as pith__run_move with a loop for rows that become columns. */
void pith__run_turn(pith__run *r, pith__turn_fn *turn, void *to, const int64_t *to_strides,
                    const void *from, const int64_t *from_strides, const int64_t *dims, int rank,
                    size_t size);

/* A complex number is two floats, the part dtype; of other dtypes an element is one part. */
static inline int pith__part_dtype(int dtype) {
    if (dtype == PITH_C64) return PITH_F32;
    return dtype == PITH_C128 ? PITH_F64 : dtype;
}
static inline int pith__parts(int dtype) { return pith__part_dtype(dtype) == dtype ? 1 : 2; }

/* size in bytes of an element that is not packed; 0 for packed and unknown types. */
size_t pith__element_size(int dtype);
/* Fails with the error for a dtype that an operator's loops do not support. */
pith_status pith__fail_dtype(pith_error *err, int dtype);

#endif

/* half_precision.h - a float32 graph becomes one of float16 or bfloat16. */
#ifndef PITH_FORMATS_EXPORT_HALF_PRECISION_H
#define PITH_FORMATS_EXPORT_HALF_PRECISION_H

#include "engine/graph/graph.h"

/* What the conversion met. */
typedef struct pith__half_precision_report {
    size_t clamped;      /* numbers beyond the largest one of the type, which became that one */
    size_t lost;         /* numbers that became 0 */
    pith_str clamped_in; /* the first constant with such a number; "" if none */
} pith__half_precision_report;

typedef struct pith__half_precision_form {
    int dtype;               /* PITH_F16 or PITH_BF16 */
    int32_t opset;           /* nodes stay in f32 whose operator does not take the type in this
                                opset */
    bool ports;              /* inputs and outputs of the graph change, too */
    const char *const *keep; /* nodes of these operators stay in f32, and nodes whose name contains
                                one of these */
    size_t keep_count;
} pith__half_precision_form;

/* Weights and most operators of the main graph change to the dtype; inputs and outputs of the graph
 * keep their types unless `ports` is set. Operators that need the range or the precision of f32
 * stay in it. Numbers of masks that stand for minus infinity become PITH_HALF_PRECISION_MASK, so
 * that two of them can be added; single numbers and limits that would become 0 become the least
 * number above it. Types are inferred, and must be inferred again after this. A constant with a
 * number that is not finite and no infinity gives PITH_ERR_ARGUMENT with its name. */
#define PITH_HALF_PRECISION_MASK (-30000.0f)
pith_status pith__half_precision(pith__half_precision_report *report, pith__graph *graph,
                                 const pith__half_precision_form *form, pith_error *err);

#endif

/* quantized_weights.h - the matmuls and tables of a graph with weights of few bits. */
#ifndef PITH_FORMATS_EXPORT_QUANTIZED_WEIGHTS_H
#define PITH_FORMATS_EXPORT_QUANTIZED_WEIGHTS_H

#include "engine/graph/graph.h"
#include "formats/export/weight_codes.h"

/* How the weights of matmuls are written. */
typedef enum pith__quantized_kind {
    PITH_QUANTIZED_DYNAMIC, /* int8 with a scale per column; inputs are quantised as a whole in each
                               run. Operators: DynamicQuantizeLinear, MatMulInteger, Cast, Mul, as
                               ONNX Runtime's tools write it */
    PITH_QUANTIZED_ROWS,    /* the same, but each row of the inputs has a scale and a middle of its
                               own, so that a row's result does not depend on the others. Operators:
                               ReduceMax, ReduceMin, Max, Mul, Div, Round, Add, Sub, Cast,
                               MatMulInteger */
    PITH_QUANTIZED_STATIC, /* int8 with a scale per column, and inputs in 8 bits between limits that
                              are fixed: pairs of QuantizeLinear and DequantizeLinear around a
                              MatMul */
    PITH_QUANTIZED_BLOCKS  /* 4 or 8 bits in blocks: com.microsoft's MatMulNBits */
} pith__quantized_kind;

typedef struct pith__quantized_form {
    pith__quantized_kind kind;
    pith__weight_code_form weights;
    int32_t accuracy; /* of blocks: the attribute accuracy_level */
    int32_t opset;    /* of the graph; set before it is rewritten */
    /* Tables: 4 or 8 bits, 0: they stay. Without blocks they have a scale per row and become
     * Gather, Cast and Mul; else com.microsoft's GatherBlockQuantized, whose blocks lie along a
     * row. */
    pith__weight_code_form tables;
    const char *const *keep; /* nodes stay whose name, or whose weight's name, contains one of
                                these, or is one behind a '=' */
    size_t keep_count;
} pith__quantized_form;

/* The weight of one or more matmuls, or a table. */
typedef struct pith__quantized_weight {
    pith__value *value;
    bool table;
    pith__weight_code_source source; /* the columns of a matmul's output, or the rows of a table */
    pith__weight_codes codes;        /* codes NULL: not rounded yet */
    float low, high;                 /* of the inputs, with fixed limits; 0 is between them */
    const float *smooth;      /* [k] of rows: inputs are divided by these, and source is multiplied;
                            NULL: they are not */
    const pith__value *input; /* of the first node */
    const pith__node *other;  /* a node that reads the weight and needs it as it is: the weight gets
                                 8 bits, and all readers get it dequantised; NULL: there is none */
    bool unseen;              /* no input came: its limits are not known, and it stays in f32 */
    pith_str label;           /* the weight's name, or else that of its first node */
} pith__quantized_weight;

typedef struct pith__quantized {
    pith__graph *graph;
    const pith__quantized_form *form;
    pith__quantized_weight *weights;
    size_t count;
    size_t matmuls, tables,
        kept; /* nodes that changed, and matmuls with a constant weight that stayed: set by
                 rewrite */
} pith__quantized;

/* Finds the weights of the main graph: constants of f32 and rank 2 that MatMul and Gemm multiply
 * by, and tables of at least PITH_QUANTIZED_TABLE_LEAST rows that Gather reads. One that a kept
 * node reads stays. Types are inferred. A number that is not finite gives PITH_ERR_ARGUMENT with
 * the names of constant and element. */
#define PITH_QUANTIZED_TABLE_LEAST 16
pith_status pith__quantized_find(pith__quantized *q, pith__graph *graph,
                                 const pith__quantized_form *form, pith_error *err);
/* Rounds one weight; factor may be NULL. */
pith_status pith__quantized_round(pith__quantized *q, size_t weight,
                                  const struct pith__factor *factor, pith__arena *scratch,
                                  pith_error *err);
/* Rewrites the nodes whose weights were rounded. Types cannot be inferred any more. */
pith_status pith__quantized_rewrite(pith__quantized *q, pith_error *err);

#endif

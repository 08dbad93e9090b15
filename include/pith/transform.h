/* transform.h - models as smaller or faster ONNX files, which other engines run too. */
#ifndef PITH_TRANSFORM_H
#define PITH_TRANSFORM_H

#include "pith/call.h"
#include "pith/source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- weights of few bits ---- */

/* What the weights of matmuls become. */
typedef enum pith_quantize_scheme {
    PITH_QUANTIZE_INT8 = 0,    /* int8 with a scale per column. The inputs of a matmul are quantised
                                  as a whole in each run, so that vectors depend a little on the
                                  batch in engines that pad texts. Standard operators:
                                  DynamicQuantizeLinear, MatMulInteger, Cast, Mul */
    PITH_QUANTIZE_BLOCKS8 = 1, /* 8 bits with a scale for every block of a column: MatMulNBits of
                                  com.microsoft */
    PITH_QUANTIZE_BLOCKS4 = 2, /* 4 bits in blocks */
    PITH_QUANTIZE_STATIC = 3   /* int8 with a scale per column, and inputs in 8 bits between limits
                                that texts or tensors gave (calibrate). Vectors do not depend on the
                                batch. Standard operators: QuantizeLinear, DequantizeLinear,
                                MatMul */
} pith_quantize_scheme;

/* What the limits of the scheme static are. */
typedef enum pith_range_method {
    PITH_RANGE_MIN_MAX = 0,    /* the smallest and the largest number */
    PITH_RANGE_PERCENTILE = 1, /* that share of all numbers is inside, what is outside as often
                                  below as above */
    PITH_RANGE_ENTROPY = 2     /* those that keep most of the distribution: least Kullback-Leibler
                                  divergence */
} pith_range_method;

/* Whether rounding follows what texts or tensors bring. */
typedef enum pith_calibration {
    PITH_CALIBRATE_NOT = 0,
    PITH_CALIBRATE = 1,               /* a model that does not embed texts is refused, except for
                                         tensors */
    PITH_CALIBRATE_WHERE_POSSIBLE = 2 /* of int8 with rows: with texts made up from the vocabulary;
                                         a model that does not embed texts, or has no words, goes
                                         without */
} pith_calibration;

/* In the context, progress reports the "steps" of opening, the "texts" that run for compensation
 * (GPTQ), the "weights" that are rounded, which both come in turns, and the "bytes" that are
 * written; profile records the phases of opening. */
typedef struct pith_quantize_model_options {
    pith_call call;
    int32_t scheme;       /* a pith_quantize_scheme */
    int32_t block;        /* of the block schemes: numbers that share a scale; 16, 32, 64, 128 or
                             256; 0: 32 */
    int32_t asymmetric;   /* of the block schemes, 1: each block has a zero point of its own */
    int32_t accuracy;     /* of the block schemes: accuracy_level of MatMulNBits, 1 to 4; 0: 4 with
                             blocks of 4 bits, none with blocks of 8; -1: none. With 4, engines may
                             use inputs in 8 bits too, with a scale for each block, which Pith
                             and ONNX Runtime do: faster, and hardly less exact than the weights */
    int32_t rows;         /* of int8, 1: each row of a matmul's inputs is quantised with a scale of
                             its own, so that a text's vector does not depend on the batch, and is
                             nearer to that of f32; slower. Adds ReduceMax, ReduceMin, Max, Sub,
                             Div, Round and Add to the operators. With calibrate, channels of inputs
                             that are much larger than others are brought nearer to them, too */
    int32_t reduce_range; /* of int8, 1: weights have 7 bits, for processors whose sums of 16 bits
                             saturate (AVX2) */
    int32_t table_bits;   /* of the tables of words and positions: 8, 4, or -1: they stay in f32; 0:
                             8. 4 needs a block scheme. With int8 a row has one scale, and the
                             operators are Gather, Cast and Mul; with the block schemes it is
                             GatherBlockQuantized of com.microsoft */
    int32_t table_block;  /* with the block schemes: numbers of a row that share a scale, as block;
                             0: 64 */
    const char *const *keep; /* [keep_count]: a node stays in f32 if its name, or that of its
                                weight, contains one, or equals what is behind a '=' */
    size_t keep_count;
    int32_t calibrate;     /* a pith_calibration: rounding errors are compensated for the inputs
                              that texts give to the matmuls (GPTQ; of rows, see there) */
    const pith_str *texts; /* [text_count] with calibrate: texts like those the model will embed, as
                              in pith_calibrate_options; NULL: texts are made up from the
                              vocabulary */
    size_t text_count;
    const char *data_name;     /* as in pith_export_options */
    int32_t data_always;       /* as in pith_export_options */
    int32_t ranges;            /* of the scheme static: a pith_range_method */
    float percentile;          /* with PITH_RANGE_PERCENTILE: above 50 and at most 100; 0:
                                        99.99 */
    const pith_tensor *inputs; /* [input_sets, pith_input_count] with calibrate, of the scheme
                                  static: tensors to run, in the order of the model's inputs, in
                                  place of texts; NULL: none */
    size_t input_sets;
    void (*tell)(void *user, const char *name,
                 double error); /* with calibrate: called for each weight and table that was
                                   rounded, with its name, or that of its node if it has none, and
                                   its error: the sum of squared differences that rounding makes to
                                   the results of the matmul on some of the texts or tensors,
                                   divided by the sum of squares of these results. For a table the
                                   same of its numbers. NULL: no reports */
    void *tell_user;            /* passed to tell */
} pith_quantize_model_options;

#define PITH_QUANTIZE_MODEL_OPTIONS_INIT PITH_OPTIONS_INIT(pith_quantize_model_options)

/* What a quantisation did. */
typedef struct pith_quantize_model_report {
    size_t size;
    int32_t opset;        /* of ai.onnx in the file */
    uint64_t matmuls;     /* nodes whose weights have few bits now */
    uint64_t tables;      /* look-ups likewise */
    uint64_t kept;        /* matmuls with a constant weight of f32 that stayed */
    uint64_t model_bytes; /* of the file */
    uint64_t data_bytes;  /* of the second file */
} pith_quantize_model_report;

#define PITH_QUANTIZE_MODEL_REPORT_INIT PITH_SIZED_INIT(pith_quantize_model_report)

/* Writes the network of a model directory or of an ONNX file with weights of few bits. The same
 * model, options and texts give the same bytes on every processor.
 *   - model, writer, data and report are as in pith_source_export.
 *   - Weights are constants of f32 and rank 2 that MatMul and Gemm multiply by, in the main graph.
 *     A model without any is PITH_ERR_ARGUMENT, and so is a weight with a NaN or an infinity, which
 *     the message names.
 * Nothing is written before everything that can fail but writing has been done. Thread-safe. */
PITH_API pith_status pith_source_quantize(const pith_source *source,
                                          const pith_quantize_model_options *options,
                                          const pith_writer *writer, const pith_writer *data,
                                          pith_quantize_model_report *report, pith_error *err);

/* ---- fewer and faster operators ---- */

/* In the context, progress reports the "steps" of opening and the "bytes" that are written, and
 * profile records the phases of opening. */
typedef struct pith_optimize_options {
    pith_call call;
    int32_t level;    /* 0: 3. 1: constants folded, equal nodes and constants shared, what nothing
                         reads cut off; 2: and operators fused that keep their arithmetic
                         (LayerNormalization, GELU, biases, residual sums); 3: and attention, and
                         BatchNormalization in convolutions. Opening a model has the same levels */
    int32_t standard; /* 1: only operators of ai.onnx are made; else those of com.microsoft, too,
                         which ONNX Runtime knows */
    int32_t gpu;      /* 1: operators are made too that are faster on GPUs only:
                         SkipLayerNormalization. Not with standard */
    int32_t opset;    /* of ai.onnx, 17 to 28; 0: that of the file, or the oldest from 17 on that
                         has the operators */
    int32_t dtype;    /* PITH_F32, PITH_F16 or PITH_BF16, as in pith_export_options; 0: PITH_F32 */
    int32_t narrow_ports;    /* with another dtype than f32, 1: inputs and outputs have it, too */
    const char *const *keep; /* [keep_count] with another dtype than f32: nodes of these operators
                                stay in f32, and nodes whose name contains one of these */
    size_t keep_count;
    const char *const *inputs; /* [input_count] names of values: what the outputs need of these is
                                  written; NULL: the model's inputs */
    size_t input_count;
    const char *const *outputs; /* [output_count] names of values; NULL: the model's outputs */
    size_t output_count;
    const char *const *input_shapes; /* [input_shape_count] as in pith_open_options: inputs have
                                        these shapes in the file */
    size_t input_shape_count;
    int32_t free_shapes;   /* 1: sizes that the file fixes for its inputs become symbols */
    const char *data_name; /* as in pith_export_options */
    int32_t data_always;   /* as in pith_export_options */
    /* called for each fusion (done 1), and for what was nearly one, with the reason (done 0); NULL:
     * no reports. The strings are valid during the call */
    void (*tell)(void *user, int32_t done, const char *what, const char *text);
    void *tell_user; /* passed to tell */
    int32_t contrib; /* 1: all operators of com.microsoft are made that ONNX Runtime's own optimiser
                        makes, faster on a CPU or not: also EmbedLayerNormalization,
                        SkipLayerNormalization, RotaryEmbedding, and GroupQueryAttention. The last
                        needs ONNX Runtime 1.32. Not with standard */
} pith_optimize_options;

#define PITH_OPTIMIZE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_optimize_options)

/* What an optimisation did. */
typedef struct pith_optimize_report {
    size_t size;
    int32_t opset;         /* of ai.onnx in the file */
    uint64_t nodes_before; /* of the main graph: of the part that is written, with functions
                              inlined */
    uint64_t nodes;        /* in the file */
    uint64_t fusions;      /* calls of tell with done 1 */
    uint64_t shared;       /* constants that were stored more than once */
    uint64_t model_bytes;  /* of the file */
    uint64_t data_bytes;   /* of the second file */
    uint64_t clamped;      /* as in pith_export_report */
    uint64_t lost;
} pith_optimize_report;

#define PITH_OPTIMIZE_REPORT_INIT PITH_SIZED_INIT(pith_optimize_report)

/* Writes the network of a model directory or of an ONNX file after optimisation. Results differ
 * from the model's by rounding only; of texts without any token, whose attention has no key left,
 * they may differ.
 *   - model, writer, data and report are as in pith_source_export.
 *   - Names of inputs, outputs and of values that are not fused away stay.
 *   - Attention is fused in all places or in none: if one has no form in com.microsoft, tell gets
 *     the reason.
 * Nothing is written before everything that can fail but writing has been done. Thread-safe. */
PITH_API pith_status pith_source_optimize(const pith_source *source,
                                          const pith_optimize_options *options,
                                          const pith_writer *writer, const pith_writer *data,
                                          pith_optimize_report *report, pith_error *err);

/* ---- text ---- */

typedef enum pith_convert_to {
    PITH_CONVERT_OTHER = 0, /* text becomes ONNX, and ONNX text */
    PITH_CONVERT_ONNX = 1,
    PITH_CONVERT_TEXT = 2
} pith_convert_to;

/* In the context, log, allocator and the ways to stop have an effect. */
typedef struct pith_convert_options {
    pith_call call;
    int32_t to; /* a pith_convert_to */
} pith_convert_options;

#define PITH_CONVERT_OPTIONS_INIT PITH_OPTIONS_INIT(pith_convert_options)

/* The result of a conversion. */
typedef struct pith_convert_report {
    size_t size;
    int32_t from, to;  /* PITH_CONVERT_ONNX or PITH_CONVERT_TEXT */
    uint64_t bytes;    /* written */
    uint64_t left_out; /* parts that the text syntax has no place for, such as doc strings of nodes;
                     warnings name them */
} pith_convert_report;

#define PITH_CONVERT_REPORT_INIT PITH_SIZED_INIT(pith_convert_report)

/* Turns an ONNX file into ONNX's own text syntax, or text into an ONNX file. onnx.parser reads what
 * is written, and what onnx.printer writes is read. The model itself is not changed: nothing is
 * run, upgraded or checked beyond the syntax.
 *   - source: a file, as with PITH_SOURCE_FILE. "-" and pipes cannot be used.
 *   - report: may be NULL.
 * Numbers stay as they are, except the payload of NaN. External data stays a reference to its
 * file. Errors of text begin with line and column; what changes the meaning and has no text (sparse
 * tensors) is PITH_ERR_UNSUPPORTED. Nothing is written before everything that can fail but writing
 * has been done. Thread-safe. */
PITH_API pith_status pith_source_convert(const pith_source *source,
                                         const pith_convert_options *options,
                                         const pith_writer *writer, pith_convert_report *report,
                                         pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

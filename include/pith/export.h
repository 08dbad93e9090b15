/* export.h - a model as an ONNX file for other engines. */
#ifndef PITH_EXPORT_H
#define PITH_EXPORT_H

#include "pith/call.h"
#include "pith/embed.h"
#include "pith/source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the context, progress reports the "steps" of opening and the "bytes" that are written, and
 * profile records the phases of opening. threads applies to the weights that opening packs. */
typedef struct pith_export_options {
    pith_call call;
    int32_t opset;         /* of ai.onnx, 17 to 25; 0: the oldest from 17 to 28 that has
                               the operators */
    int32_t dtype;         /* PITH_F32, PITH_F16 or PITH_BF16: of weights and most operators; 0:
                               PITH_F32. Inputs and outputs keep their types. */
    int32_t int32_inputs;  /* 1: integer inputs are int32, not int64 */
    int32_t pool;          /* 0: the outputs are those of the network, such as last_hidden_state.
                               1: there is one output, sentence_embedding, f32 [batch, dim]: the
                               vectors that pith_embed gives */
    int32_t pooling;       /* with pool: a pith_pooling */
    int32_t normalize;     /* with pool: a pith_choice: whether vectors have length 1 */
    int32_t dim;           /* with pool: keep the first dim components, then normalise; 0: what the
                               model says */
    const char *data_name; /* name of a second file next to the first, for weights of 1 kB and more,
                               if the first would have more than 2 GB; NULL: such a model is an
                               error */
    int32_t data_always;   /* 1: the second file is written whatever the size */
    int32_t contrib;       /* 1: operators are fused to those of com.microsoft, as
                               pith_optimize_options.contrib does */
} pith_export_options;

#define PITH_EXPORT_OPTIONS_INIT PITH_OPTIONS_INIT(pith_export_options)

/* What an export did. */
typedef struct pith_export_report {
    size_t size;
    int32_t opset;        /* of ai.onnx in the file */
    uint64_t model_bytes; /* of the file */
    uint64_t data_bytes;  /* of the second file */
    uint64_t parameters;  /* numbers in constants */
    uint64_t clamped;     /* numbers too large for the dtype, which became its largest one; a
                             warning names the first */
    uint64_t lost;        /* numbers other than 0 that became 0 */
    uint64_t fusions;     /* with contrib */
} pith_export_report;

#define PITH_EXPORT_REPORT_INIT PITH_SIZED_INIT(pith_export_report)

/* Writes the network of a source, which is that of a directory or an ONNX file, as an ONNX file of
 * standard operators, and the operators of com.microsoft that it had. The same model and options
 * give the same bytes.
 *   - A compiled file (.pith) cannot be exported.
 *   - writer receives the file, data the second file, which comes first (NULL if data_name is
 *     NULL).
 *   - report: may be NULL.
 * Errors name the operator, the constant or the option at fault. Nothing is written before
 * everything that can fail but writing has been done. Thread-safe. */
PITH_API pith_status pith_source_export(const pith_source *source,
                                        const pith_export_options *options,
                                        const pith_writer *writer, const pith_writer *data,
                                        pith_export_report *report, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

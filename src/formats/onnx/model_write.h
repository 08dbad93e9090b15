/* model_write.h - writes a graph as an ONNX model. */
#ifndef PITH_FORMATS_ONNX_MODEL_WRITE_H
#define PITH_FORMATS_ONNX_MODEL_WRITE_H

#include "base/private_symbol.h"
#include "base/writer.h"
#include "engine/graph/graph.h"

typedef struct pith__onnx_model {
    pith__graph *graph;   /* only its values' names may change: those that are missing or not unique
                             are made */
    int64_t ir_version;   /* of the format */
    const char *producer; /* name and version, where about has none; may be NULL */
    const char *producer_version;
    pith_str about; /* a ModelProto; its producer, domain, version, doc and metadata are written,
                       too. data NULL: none */
    const pith__opset *opsets;
    size_t opset_count;
    const char *data_name; /* the file beside the model that large constants go to if they do not
                              fit; NULL: none */
    bool data_always;      /* they go there in any case */
} pith__onnx_model;

typedef struct pith__onnx_sizes {
    uint64_t model, data; /* bytes */
} pith__onnx_sizes;

typedef struct pith__onnx_sinks {
    const pith_writer *model, *data; /* data may be NULL if data_name is */
    pith__onnx_sizes *sizes;         /* receives what was written; may be NULL */
} pith__onnx_sinks;

/* Constants of at least this many bytes go to the data file, if there is one, at multiples of
 * PITH_ONNX_DATA_ALIGNMENT: the page size of the usual systems, so that they can be mapped. */
#define PITH_ONNX_DATA_LEAST 1024
#define PITH_ONNX_DATA_ALIGNMENT 4096
/* No file that protobuf reads may have more bytes. */
#define PITH_ONNX_FILE_MOST ((uint64_t)INT32_MAX)

/* Writes the model. The same graph gives the same bytes. A file that would be larger than
 * PITH_ONNX_FILE_MOST, and has no data file, gives PITH_ERR_ARGUMENT before anything is written. A
 * constant without contents, as compiled files have them, gives PITH_ERR_UNSUPPORTED. */
PITH_PRIVATE pith_status pith__onnx_write_model(const pith__onnx_model *model,
                                                const pith__onnx_sinks *sinks, pith__arena *arena,
                                                pith_error *err);

#endif

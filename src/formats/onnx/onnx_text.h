/* onnx_text.h - models in ONNX's own text syntax. Source: onnx/defs/parser.cc and printer.cc of
 * onnx 1.23.2. */
#ifndef PITH_FORMATS_ONNX_ONNX_TEXT_H
#define PITH_FORMATS_ONNX_ONNX_TEXT_H

#include "base/stop.h"
#include "base/writer.h"
#include "formats/onnx/wire_build.h"

/* What the syntax has no place for, and the printer leaves out. */
typedef enum pith__syntax_omission {
    PITH_OMIT_DOCS,        /* doc_string, but for those of the model and of functions */
    PITH_OMIT_METADATA,    /* metadata_props, but for those of the model */
    PITH_OMIT_DENOTATIONS, /* of types and sizes */
    PITH_OMIT_TYPES,       /* declared types without an element type */
    PITH_OMIT_NAMES,       /* of subgraphs and of tensors in attributes, if they are no
                              identifiers */
    PITH_OMIT_QUANTIZATION,
    PITH_OMIT_TRAINING,
    PITH_OMIT_DEVICES,
    PITH_OMIT_UNKNOWN, /* fields that onnx.proto does not have */
    PITH_OMISSIONS
} pith__syntax_omission;

extern const char *const pith__syntax_omission_names[PITH_OMISSIONS];

typedef struct pith__syntax_sink {
    pith__out out;
    pith__stop *stop;                 /* may be NULL */
    uint64_t size;                    /* bytes written */
    uint64_t omitted[PITH_OMISSIONS]; /* how many of each */
} pith__syntax_sink;

/* Whether a file is text rather than a ModelProto. */
bool pith__onnx_is_text(pith_str bytes);

/* Writes a ModelProto as text. Numbers are read back as they are, but for the payload of NaN.
 * External data is written as the reference that it is. What changes the model's meaning and has no
 * form (sparse tensors, names of operators that are no identifiers) is PITH_ERR_UNSUPPORTED.
 * Nothing is written before all of the model has been checked. scratch: for a tensor's numbers. */
pith_status pith__onnx_print(pith__syntax_sink *sink, pith_str model, pith__arena *scratch,
                             pith_error *err);

/* Makes a ModelProto of text: model is empty at first, and the caller frees it, whatever is
 * returned. Errors begin with line and column. scratch: for strings with escapes. stop may be NULL.
 */
pith_status pith__onnx_parse(pith__wire_build *model, pith_str text, pith__stop *stop,
                             pith__arena *scratch, pith_error *err);

#endif

/* syntax_printer.h - shared by the files that write ONNX messages as text: syntax_print_model.c has
 * models, graphs, functions and nodes; syntax_print_attr.c has attributes and types;
 * syntax_print_tensor.c tensors. */
#ifndef PITH_FORMATS_ONNX_SYNTAX_PRINTER_H
#define PITH_FORMATS_ONNX_SYNTAX_PRINTER_H

#include "base/error.h"
#include "base/formats/decimal.h"
#include "base/str.h"
#include "formats/onnx/onnx_text.h"
#include "formats/onnx/wire.h"

typedef struct pith__syntax_printer {
    pith__syntax_sink *sink;
    pith__arena *scratch;
    pith_error *err;
    const void *base; /* of the model, for messages */
    pith__decimal decimal;
    bool checking; /* nothing is written, and numbers are not turned into text */
    int indent, depth;
    size_t used;
    char buffer[1 << 14];
} pith__syntax_printer;

/* ---- syntax_print_model.c ---- */

void pith__syntax_write(pith__syntax_printer *t, pith_str text);
void pith__syntax_words(pith__syntax_printer *t, const char *text);
void pith__syntax_int(pith__syntax_printer *t, int64_t number);
void pith__syntax_quoted(pith__syntax_printer *t, pith_str text);
/* in quotes unless it is an identifier and no type */
void pith__syntax_name(pith__syntax_printer *t, pith_str name);
void pith__syntax_line(pith__syntax_printer *t); /* a new line, indented */
void pith__syntax_omit(pith__syntax_printer *t, pith__syntax_omission what);
void pith__syntax_walk(pith__wire *w, pith_str bytes, const pith__syntax_printer *t);
/* StringStringEntryProto as "key": "value". */
pith_status pith__syntax_entry(pith__syntax_printer *t, pith_str bytes);
/* A graph that is the value of an attribute. */
pith_status pith__syntax_subgraph(pith__syntax_printer *t, pith_str bytes);

/* ---- syntax_print_attr.c ---- */

pith_status pith__syntax_put_attr(pith__syntax_printer *t, pith_str bytes);
/* A TypeProto. *some: whether it has a form; nothing is written otherwise. */
pith_status pith__syntax_put_type(pith__syntax_printer *t, pith_str bytes, bool *some);

/* ---- syntax_print_tensor.c ---- */

pith_status pith__syntax_put_tensor(pith__syntax_printer *t, pith_str bytes, bool initializer);

#endif

/* syntax_printer.h - shared by the files that write ONNX messages as text: onnx_print.c has models, graphs, functions
 * and nodes; syntax_print_attr.c has attributes and types; syntax_print_tensor.c tensors. */
#ifndef PITH_FORMATS_ONNX_SYNTAX_PRINTER_H
#define PITH_FORMATS_ONNX_SYNTAX_PRINTER_H

#include "base/formats/decimal.h"
#include "base/error.h"
#include "base/str.h"
#include "formats/onnx/onnx_text.h"
#include "formats/onnx/wire.h"

typedef struct pith_syntax_printer {
    pith_syntax_sink *sink;
    pith_arena *scratch;
    pith_error *err;
    const void *base; /* of the model, for messages */
    pith_decimal decimal;
    bool checking; /* nothing is written, and numbers are not turned into text */
    bool failed;   /* the sink took no more */
    int indent, depth;
    size_t used;
    char buffer[1 << 14];
} pith_syntax_printer;

/* ---- onnx_print.c ---- */

void pith_syntax_write(pith_syntax_printer *t, pith_str text);
void pith_syntax_words(pith_syntax_printer *t, const char *text);
void pith_syntax_int(pith_syntax_printer *t, int64_t number);
void pith_syntax_quoted(pith_syntax_printer *t, pith_str text);
void pith_syntax_name(pith_syntax_printer *t, pith_str name); /* in quotes unless it is an identifier and no type */
void pith_syntax_line(pith_syntax_printer *t);                /* a new line, indented */
void pith_syntax_omit(pith_syntax_printer *t, pith_syntax_omission what);
void pith_syntax_walk(pith_wire *w, pith_str bytes, const pith_syntax_printer *t);
/* StringStringEntryProto as "key": "value". */
pith_status pith_syntax_entry(pith_syntax_printer *t, pith_str bytes);
/* A graph that is the value of an attribute. */
pith_status pith_syntax_subgraph(pith_syntax_printer *t, pith_str bytes);

/* ---- syntax_print_attr.c ---- */

pith_status pith_syntax_put_attr(pith_syntax_printer *t, pith_str bytes);
/* A TypeProto. *some: whether it has a form; nothing is written otherwise. */
pith_status pith_syntax_put_type(pith_syntax_printer *t, pith_str bytes, bool *some);

/* ---- syntax_print_tensor.c ---- */

pith_status pith_syntax_put_tensor(pith_syntax_printer *t, pith_str bytes, bool initializer);

#endif

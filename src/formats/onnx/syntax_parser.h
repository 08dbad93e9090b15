/* syntax_parser.h - shared by the files that turn ONNX's text syntax into messages:
 * syntax_parse_model.c has models, graphs, functions and nodes; syntax_parse_attr.c has attributes
 * and types; syntax_parse_tensor.c tensors.
 *
 * Faults are in scan (syntax_scan.h), or in out.failed if memory was out; all functions return at
 * once then. */
#ifndef PITH_FORMATS_ONNX_SYNTAX_PARSER_H
#define PITH_FORMATS_ONNX_SYNTAX_PARSER_H

#include "formats/onnx/syntax_scan.h"
#include "formats/onnx/wire_build.h"

typedef struct pith__syntax_parser {
    pith__syntax_scan scan;
    pith__wire_build *out;
    int depth; /* of graphs and types */
} pith__syntax_parser;

/* What a type says of a tensor that may follow. */
typedef struct pith__syntax_type {
    int dtype;  /* PITH_UNDEFINED: it is not the type of a tensor */
    bool fixed; /* it has a shape, whose sizes are all numbers */
    int rank;   /* PITH_MAX_RANK + 1: more than dims has room for */
    int64_t dims[PITH_MAX_RANK];
} pith__syntax_type;

/* ---- syntax_parse_model.c ---- */

/* One level more, unless there are too many. Leave with depth--. */
bool pith__syntax_enter(pith__syntax_parser *t);
/* The rest of a graph behind its name: fields of a GraphProto. */
void pith__syntax_graph(pith__syntax_parser *t, pith_str name);
/* Items with commas between, up to the closing bracket, which is taken; nothing if it comes at
 * once. */
void pith__syntax_list(pith__syntax_parser *t, const char *close,
                       void (*item)(pith__syntax_parser *t, int number), int number);
/* "key": "value", as a field of that number. */
void pith__syntax_pair(pith__syntax_parser *t, int number);

/* ---- syntax_parse_attr.c ---- */

/* An attribute as a field of that number, behind its name. */
void pith__syntax_attribute(pith__syntax_parser *t, int number, pith_str name);
/* <attributes>, if they come next. Returns whether they did. */
bool pith__syntax_attributes(pith__syntax_parser *t);
/* A type as a field of that number. type may be NULL. */
void pith__syntax_type_proto(pith__syntax_parser *t, int number, pith__syntax_type *type);

/* ---- syntax_parse_tensor.c ---- */

/* The contents of a tensor behind type and name, as a field of that number. */
void pith__syntax_tensor(pith__syntax_parser *t, int number, const pith__syntax_type *type,
                         pith_str name);

#endif

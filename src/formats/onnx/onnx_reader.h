/* onnx_reader.h - shared by the files that turn a ModelProto into a graph.
 *
 * model_read.c walks models, functions, graphs and nodes; type_read.c reads types, name_read.c
 * resolves names, attr_read.c reads attributes, and with them subgraphs. All functions report
 * through the reader's error; what they allocate is in its arena. */
#ifndef PITH_FORMATS_ONNX_ONNX_READER_H
#define PITH_FORMATS_ONNX_ONNX_READER_H

#include "base/memory/span_map.h"
#include "engine/graph/graph.h"
#include "formats/onnx/tensor_read.h"
#include "formats/onnx/wire.h"

/* The deepest nesting of subgraphs, types and stand-alone values. */
#define PITH_ONNX_DEPTH_MAX 32
/* The most subgraphs of one node; each of them gets every capture. */
#define PITH_ONNX_SUBGRAPHS_MAX 16

typedef struct pith__onnx_reader {
    pith__onnx_source source;
    const pith_log *log;
    const pith__opset *opsets; /* of the model, or of the function that is being read */
    size_t opset_count, node_count;
    int64_t ir_version;
} pith__onnx_reader;

/* A node that has subgraphs, while they are read. */
typedef struct pith__onnx_owner {
    pith__value **captures; /* values of the node's graph */
    size_t count, capacity;
    pith__map places; /* name to place in captures */
} pith__onnx_owner;

/* A graph while it is read, with the values of its names. */
typedef struct pith__onnx_scope {
    pith__graph *graph;
    pith__map names;                /* to value id */
    struct pith__onnx_scope *outer; /* NULL for the main graph and for functions */
    pith__onnx_owner *owner;        /* the node of the outer graph */
    size_t capture_capacity;
    int depth;
} pith__onnx_scope;

/* The subgraphs of one node: their captures and scopes. Begins as zeros. */
typedef struct pith__onnx_subgraphs {
    pith__onnx_owner owner;
    pith__onnx_scope *scopes[PITH_ONNX_SUBGRAPHS_MAX];
    size_t count;
    bool started;
} pith__onnx_subgraphs;

/* ---- model_read.c ---- */

pith_status pith__onnx_no_memory(pith__onnx_reader *r);
void pith__onnx_walk(pith__wire *w, pith_str bytes, const pith__onnx_reader *r);
/* The first field with this tag, or "". Faults of the wire format are reported by the walk that
 * follows. */
pith_str pith__onnx_find(const pith__onnx_reader *r, pith_str bytes, uint32_t tag);
/* A GraphProto into s->graph, which is empty. */
pith_status pith__onnx_read_graph(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes);

/* ---- type_read.c ---- */

/* Reads a TypeProto. Types that the engine does not have stay unknown; so does an optional, since
 * it may be empty. A map becomes a sequence of its keys and values. */
pith_status pith__onnx_read_type(pith__onnx_reader *r, pith__type *type, pith_str bytes,
                                 pith__graph *graph);
/* A ValueInfoProto: its name and type. */
pith_status pith__onnx_read_value_info(pith__onnx_reader *r, pith_str *name, pith__type *type,
                                       pith_str bytes, pith__graph *graph);

/* ---- name_read.c ---- */

/* Defines a name. Fails if it is defined already, or if value is NULL because memory was out. */
pith_status pith__onnx_define(pith__onnx_reader *r, pith__onnx_scope *s, pith_str name,
                              const pith__value *value);
/* Sets *value to the value of a name in this scope, or NULL if it has none. A name of an outer
 * graph becomes a capture. */
pith_status pith__onnx_resolve(pith__onnx_reader *r, pith__onnx_scope *s, pith_str name,
                               pith__value **value);
/* Gives all subgraphs of a node the same captures, used or not. Call it after the last one was
 * read. */
pith_status pith__onnx_complete_captures(pith__onnx_reader *r, pith__onnx_subgraphs *subs);

/* ---- attr_read.c ---- */

/* An AttributeProto of a node in the scope; its graphs go to subs. */
pith_status pith__onnx_read_attr(pith__onnx_reader *r, pith__attr *attr, pith_str bytes,
                                 pith__onnx_scope *s, pith__onnx_subgraphs *subs);

#endif

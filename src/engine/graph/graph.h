/* graph.h - the network as data: values, nodes, attributes, subgraphs.
 *
 * A graph is built by a reader (onnx/, hf/), rewritten by passes (opt/) and then never changed
 * again: the plan and all sessions share it. Everything lives in the model's arena; strings and
 * tensors are spans into mapped files. Invariants (pith__graph_check, run after every pass in debug
 * and test builds):
 *   - nodes are in topological order; a value has at most one producer, which comes before its
 *     users
 *   - value->users lists exactly the node inputs that name it; graph outputs are counted in
 *     output_uses
 *   - inputs and outputs of a node may be NULL (absent optional), values never dangle
 *   - a node with subgraphs names every outer value they use as a trailing input (captures): a
 *     subgraph sees the outer graph only through its own capture values, the i-th paired with input
 *     (input_count - capture_count + i); every subgraph of the node has capture_count captures,
 *     used or not */
#ifndef PITH_ENGINE_GRAPH_GRAPH_H
#define PITH_ENGINE_GRAPH_GRAPH_H

#include "base/log.h"
#include "base/memory/memory.h"
#include "base/private_symbol.h"
#include "base/stop.h"
#include "base/str.h"
#include "engine/graph/symbolic_dim.h"

typedef struct pith__graph pith__graph;
typedef struct pith__node pith__node;
typedef struct pith__value pith__value;

/* Integer tensors up to this many elements have their contents followed through shape arithmetic.
 */
#define PITH_ELEMS_MAX 64

/* A float32 constant of at least 64 kB may lie at any address, as its file has it: readers do not
 * copy it. The plan aligns it if an operator reads it as numbers. */
static inline bool pith__constant_lies_anywhere(const pith_tensor *t) {
    return t->dtype == PITH_F32 && t->bytes >= (size_t)64 << 10;
}

#define PITH_OPSET_NEWEST INT32_MAX

/* The largest magnitude of an integer attribute that is not data. No tensor has as many elements,
 * and sums of such numbers cannot reach the handles of symbolic sizes. */
#define PITH_ATTR_INT_MAX ((int64_t)1 << 48)

/* What is known of a value before it is computed. */
typedef struct pith__type {
    int32_t dtype;      /* PITH_UNDEFINED: unknown */
    int32_t item_dtype; /* of a sequence's or optional's tensors; else 0 */
    int32_t rank;       /* -1: unknown */
    pith__dim dims[PITH_MAX_RANK];
    const pith_tensor *data; /* contents: a constant, or computed at bind; else NULL */
    const pith__dim *elems;  /* integer contents known symbolically, row-major; else NULL */
} pith__type;

typedef enum pith__value_kind {
    PITH_VALUE_INPUT,   /* of the graph (a default may be in type.data) */
    PITH_VALUE_CAPTURE, /* of a subgraph: a value of the outer graph */
    PITH_VALUE_CONST,   /* type.data */
    PITH_VALUE_NODE,    /* made by producer */
    PITH_VALUE_PACKED   /* a constant without type.data: its nodes have its contents in their packed
                           forms */
} pith__value_kind;

typedef struct pith__use {
    pith__node *node;
    int32_t input;
} pith__use;

struct pith__value {
    pith_str name; /* "" is allowed for values made by passes */
    pith__value_kind kind;
    uint32_t id; /* dense, graph->values[id] */
    pith__graph *graph;
    pith__type type;
    pith__type *hint; /* as declared in inputs, value_info or outputs; never trusted; NULL if not
                         declared */
    bool warned;      /* a warning said that the hint is wrong */
    bool fixed;       /* an input whose shape the caller fixed */
    pith__node *producer;
    pith__use *users;
    size_t user_count, user_capacity;
    int32_t output_uses;   /* number of graph outputs that name it */
    uint32_t first_output; /* 1 + the first of those, a chain through graph->output_next; 0 before
                              that is made */
};

/* Numbers are those of onnx.AttributeProto.AttributeType. */
typedef enum pith__attr_kind {
    PITH_ATTR_FLOAT = 1,
    PITH_ATTR_INT = 2,
    PITH_ATTR_STRING = 3,
    PITH_ATTR_TENSOR = 4,
    PITH_ATTR_GRAPH = 5,
    PITH_ATTR_FLOATS = 6,
    PITH_ATTR_INTS = 7,
    PITH_ATTR_STRINGS = 8,
    PITH_ATTR_TENSORS = 9,
    PITH_ATTR_GRAPHS = 10,
    PITH_ATTR_TYPE = 13
} pith__attr_kind;

typedef struct pith__attr {
    pith_str name;
    pith__attr_kind kind;
    pith_str reference; /* name of the function's attribute it stands for (ref_attr_name), inside
                           functions; else "" */
    size_t count;       /* of the list kinds */
    union {
        float real;
        int64_t integer;
        pith_str string;
        const pith_tensor *tensor;
        pith__graph *graph;
        const float *floats;
        const int64_t *ints;
        const pith_str *strings;
        const pith_tensor *const *tensors;
        pith__graph *const *graphs;
        const pith__type *type;
    };
} pith__attr;

/* A constant of a node as its operator packed it (engine/ops/shared/packed_constants.h), from a
 * compiled file. */
typedef struct pith__packed {
    pith_str layout;
    const void *data; /* 64-byte aligned */
    size_t bytes;
} pith__packed;

/* What a node is, apart from its inputs, outputs and attributes. */
typedef struct pith__node_head {
    pith_str name, domain, op_type, overload;
    int32_t opset, index;
} pith__node_head;

/* The first six are its head. */
struct pith__node {
    pith_str name, domain, op_type; /* domain "" is ai.onnx */
    pith_str overload;
    int32_t opset;             /* of its domain in the model; PITH_OPSET_NEWEST for nodes that
                                  passes make */
    int32_t index;             /* place in the file, for messages; -1 if a pass made it */
    const struct pith__op *op; /* set by pith__ops_bind */
    pith__value **inputs, **outputs;
    uint32_t *places; /* by input: where the use stands in its value's list of users */
    int32_t input_count, output_count, capture_count;
    pith__attr *attrs;
    size_t attr_count;
    const pith__packed *packed; /* in the order the operator asks for them; none unless the graph
                                   was compiled */
    size_t packed_count;
    pith__node *prev, *next;
    pith__graph *graph; /* NULL once removed */
    uint32_t mark;      /* scratch of one walk over the graph */
};

typedef struct pith__opset {
    pith_str domain;
    int64_t version;
} pith__opset;

/* A model-local function: a body to inline. */
typedef struct pith__function {
    pith_str domain, name, overload;
    pith__graph *body;          /* inputs and outputs by position; nodes with attribute
                                   references */
    const pith_str *attr_names; /* declared without default */
    size_t attr_name_count;
    const pith__attr *defaults;
    size_t default_count;
} pith__function;

/* The call that makes a graph, changes it or plans it. */
typedef struct pith__making {
    pith__stop *stop;            /* NULL: it cannot be stopped, or there is no such call now */
    int32_t threads;             /* see pith__threads_count */
    struct pith__progress *told; /* of what it does beyond opening; NULL: nobody is told */
} pith__making;

struct pith__graph {
    pith_str name;
    pith__arena *arena;
    pith__dims *dims;
    const pith_log *log;
    const struct pith__device_list
        *devices; /* to run on (engine/backend/backend.h), set before it is planned; NULL:
                            any */
    const pith__making *making; /* main graph only; lives as long as the graph. NULL: as if all of
                                   it were 0 */
    const struct pith_operator_set
        *operators; /* main graph only: those of a program that nodes may have besides the engine's
                       and the process's (engine/ops/custom/custom.h), set before they are bound;
                       NULL: none */
    pith__graph *parent; /* of a subgraph; NULL for the main graph */
    pith__value **inputs, **outputs, **captures;
    size_t input_count, output_count, capture_count;
    bool apart;            /* every axis of an input has a symbol of its own, whatever the file
                              calls it */
    pith_str fault;        /* of a branch: why its shapes cannot be, so that it fails if it is
                              taken; "": they can */
    bool contradictory;    /* sizes that the file declares contradict each other; those of inputs
                              mean nothing then */
    uint32_t *output_next; /* by output: 1 + the next one that names the same value, or 0; made when
                              it is needed */
    const pith_str *output_names; /* as in the file, whatever passes do to the values; set by
                                     pith__ops_bind */
    pith__value **values;
    size_t value_count, value_capacity;
    pith__node *first, *last;
    size_t node_count;
    const pith__opset *opsets;
    size_t opset_count;
    const pith__function *functions; /* main graph only */
    size_t function_count;
    bool compiled; /* main graph only: from a compiled file, so that nodes may have attributes that
                      upgrades set */
    int64_t ir_version;
    pith_str producer; /* "pytorch 2.1.0" */
};

/* The stop of the call that makes the graph; NULL: there is none. */
pith__stop *pith__graph_stop(const pith__graph *graph);
/* Who is told of how far that call is; NULL: nobody. */
struct pith__progress *pith__graph_told(const pith__graph *graph);
/* The number of threads that making a graph may take. */
int pith__graph_threads(const pith__graph *graph);

/* The name of an output: as in the file, if that is known. */
pith_str pith__graph_output_name(const pith__graph *graph, size_t output);
/* The first output of that name; -1: there is none. */
int pith__graph_find_output(const pith__graph *graph, const char *name);

/* ---- making and editing; these fail only if memory is out, and return NULL or PITH_ERR_MEMORY
 * ---- */

PITH_PRIVATE pith_status pith__graph_create(pith__graph **graph, pith__arena *arena,
                                            pith__graph *parent, pith_error *err);

PITH_PRIVATE pith__value *pith__graph_add_value(pith__graph *graph, pith_str name,
                                                pith__value_kind kind);
/* A constant that owns nothing: tensor->data must live as long as the model. The struct is copied.
 */
PITH_PRIVATE pith__value *pith__graph_add_const(pith__graph *graph, pith_str name,
                                                const pith_tensor *tensor);
/* Adds a constant of rank 1 (items are copied), or a scalar. */
PITH_PRIVATE pith__value *pith__graph_add_i64s(pith__graph *graph, pith_str name,
                                               const int64_t *items, int64_t count);
PITH_PRIVATE pith__value *pith__graph_add_f32(pith__graph *graph, pith_str name, float item);

/* Inserts a node before `before` (NULL: at the end). inputs may hold NULLs. Outputs that are not
 * given are made, without names. op_type and domain must be literals or live as long as the
 * model. */
PITH_PRIVATE pith__node *pith__graph_add_node(pith__graph *graph, pith__node *before,
                                              const char *domain, const char *op_type,
                                              pith__value *const *inputs, int input_count,
                                              pith__value *const *outputs, int output_count);
/* The same with a head read or copied from elsewhere. */
pith__node *pith__graph_add_headed(pith__graph *graph, pith__node *before,
                                   const pith__node_head *head, pith__value *const *inputs,
                                   int input_count, pith__value *const *outputs, int output_count);
pith__node_head pith__node_head_of(const pith__node *node);
/* A node of like's operator with its head, attributes and outputs (made new; absent where like's
 * are) on other inputs, maybe in another graph. */
pith__node *pith__graph_add_like(pith__graph *graph, pith__node *before, const pith__node *like,
                                 pith__value *const *inputs, int input_count);
/* keeps the user lists right */
pith_status pith__node_set_input(pith__node *node, int input, pith__value *value);
/* new ones are NULL */
pith_status pith__node_set_input_count(pith__node *node, int count);
/* all users and graph outputs of old */
pith_status pith__value_replace(pith__value *old, pith__value *by);
void pith__node_remove(pith__node *node); /* its outputs must have no user left; they lose their
                                             producer */
void pith__node_detach(
    pith__node *node); /* the same, but its outputs may have users; give them a new producer at
                          once */
void pith__node_move_before(pith__node *node, pith__node *before);
/* Removes nodes without used outputs until there are none left. Returns how many it removed.
 * Captures that no subgraph of their node reads become NULL. */
size_t pith__graph_sweep(pith__graph *graph);
/* Gives every node its place in the list as its mark, counted from 1. */
void pith__graph_number(pith__graph *graph);
/* Sorts the nodes topologically; the sort is stable. A cycle gives PITH_ERR_FORMAT that names a
 * node on it. */
pith_status pith__graph_sort(pith__graph *graph, pith_error *err);
/* Replaces a node by a copy of body's nodes. inputs (body->input_count of them) and the node's
 * captures replace those of the body; the copy makes the node's outputs. Attribute references are
 * resolved from the node's attributes, then from the function's defaults (function may be NULL if
 * body has no references). A reference that neither has is left out. If an output of the body is an
 * input that is missing, the result is PITH_ERR_FORMAT. */
pith_status pith__graph_inline(pith__node *node, const pith__graph *body,
                               pith__value *const *inputs, const pith__function *function,
                               pith_error *err);
/* Makes a graph of its own of what one output needs: a copy of these nodes, with the inputs they
 * read. Types are those of the inputs only. Constants stay where they are. */
pith_status pith__graph_extract(pith__graph **part, const pith__graph *graph, size_t output,
                                pith__arena *arena, pith_error *err);
/* Copies a main graph, with the nodes' operators and the types of its inputs; the others are to be
 * inferred again. It has a table of sizes of its own. Constants stay where they are. */
pith_status pith__graph_copy(pith__graph **copy, const pith__graph *graph, pith__arena *arena,
                             pith_error *err);
/* Checks the invariants above. */
PITH_PRIVATE pith_status pith__graph_check(const pith__graph *graph, pith_error *err);

/* Input or output i, NULL if it is absent: the node has fewer of them, or leaves this one out. */
static inline pith__value *pith__node_input(const pith__node *node, int i) {
    return i < node->input_count ? node->inputs[i] : NULL;
}
static inline pith__value *pith__node_output(const pith__node *node, int i) {
    return i < node->output_count ? node->outputs[i] : NULL;
}

/* Attributes; the getters return the fall-back if the attribute is absent or of another kind. */
const pith__attr *pith__node_attr(const pith__node *node, const char *name);
int64_t pith__node_int(const pith__node *node, const char *name, int64_t fallback);
/* For a dtype or another choice among few. A value that does not fit int32 becomes INT32_MAX, which
 * is no choice. */
int32_t pith__node_choice(const pith__node *node, const char *name, int32_t fallback);
float pith__node_float(const pith__node *node, const char *name, float fallback);
pith_str pith__node_str(const pith__node *node, const char *name, const char *fallback);
/* NULL and 0 if absent */
const int64_t *pith__node_ints(const pith__node *node, const char *name, size_t *count);
const float *pith__node_floats(const pith__node *node, const char *name, size_t *count);
const pith_str *pith__node_strs(const pith__node *node, const char *name, size_t *count);
const pith_tensor *pith__node_tensor(const pith__node *node, const char *name);
pith__graph *pith__node_graph(const pith__node *node, const char *name);
PITH_PRIVATE pith_status pith__node_set_int(pith__node *node, const char *name, int64_t value);
pith_status pith__node_set_float(pith__node *node, const char *name, float value);
pith_status pith__node_set_str(pith__node *node, const char *name, pith_str value);
PITH_PRIVATE pith_status pith__node_set_ints(pith__node *node, const char *name,
                                             const int64_t *items, size_t count); /* copied */
/* Replaces all attributes of the node by those of `from`. Contents are not copied; they must live
 * as long as the model. */
pith_status pith__node_copy_attrs(pith__node *node, const pith__node *from);
pith_status pith__node_set_floats(pith__node *node, const char *name, const float *items,
                                  size_t count); /* copied */
/* not copied */
pith_status pith__node_set_graph(pith__node *node, const char *name, pith__graph *graph);
void pith__node_unset(pith__node *node, const char *name);

/* Writes "node 12 'attn/Softmax' (Softmax)" to buffer, for the front of messages. Returns buffer.
 */
const char *pith__node_place(const pith__node *node, char *buffer, size_t size);

/* ---- types ---- */

void pith__type_init(pith__type *type); /* nothing known */
void pith__type_of_tensor(pith__type *type, const pith_tensor *tensor);
PITH_PRIVATE void pith__type_set(pith__type *type, int dtype, int rank, const pith__dim *dims);
/* Sets *elem to element i of an integer tensor, if its contents are known (data or elems); else
 * returns false. A number in the range of the handles becomes PITH_DIM_UNKNOWN. pith__type_count
 * returns the number of elements, or -1 if it is not known. */
bool pith__type_elem(const pith__type *type, int64_t i, pith__dim *elem);
int64_t pith__type_count(const pith__type *type);
bool pith__type_concrete(const pith__type *type); /* dtype, rank and all dims are numbers */

/* ---- looking ---- */

/* Write the graph to a sink: as text with one line per node, or as Graphviz DOT. */
typedef void pith__text_sink(void *context, const char *text, size_t size);
void pith__graph_dump(const pith__graph *graph, pith__text_sink *sink, void *context);
void pith__graph_dump_dot(const pith__graph *graph, pith__text_sink *sink, void *context);

#endif

/* op.h - the operator descriptor: everything the engine knows of an operator.
 *
 * An operator (or close family) is one file op_<name>.c ending in `const pith_op pith_op_Foo = { … };` and one line
 * OP(Foo) in select/ops.def. There is no switch over operators anywhere. The life of a node:
 *   upgrade   once at load: rewrites an older opset's spelling into the newest, so that the rest knows one form
 *   infer     dtypes and shapes: at load with symbolic dims, at bind with numbers, in a run for late values
 *   prepare   once per plan: reads attributes, fetches kernels, packs weights, into a state that is never changed again
 *   scratch   at bind: bytes that run wants
 *   run       computes; allocates nothing (but late outputs), starts no thread (but through pith_run_parallel)
 *   cost      what a run took in operations and bytes, only for profiles
 * How inputs and outputs are reached: the arrays that infer, prepare, scratch, run and cost are handed have at least
 * max_inputs and max_outputs entries, whatever the node's counts are. Entries beyond the node's own are NULL (types of
 * outputs: nothing known until infer says it), so in[i] with i < max_inputs is always a valid read, and NULL always
 * means absent. Inputs below min_inputs and, unless FIRST_OPTIONAL says otherwise, output 0 are there. Upgrades ask
 * pith_node_input and pith_node_output, since older spellings have other counts.
 * Inner loops live in kernels/, never here. Domains: "" (ai.onnx), "ai.onnx.ml", "ai.onnx.preview.training",
 * "com.microsoft", and "pith" for what fusion makes. */
#ifndef PITH_OPS_OP_H
#define PITH_OPS_OP_H

#include "base/cpu.h"
#include "base/error.h"
#include "base/threads.h"
#include "graph/graph.h"

enum {
    PITH_OP_ELEMENTWISE = 1u << 0, /* each output element depends on the broadcast input elements at its place only */
    PITH_OP_IN_PLACE = 1u << 1,    /* output 0 may share the buffer of an input of the same bytes that dies here: input
                                      0 (or input 1 as well if ELEMENTWISE and of the output's own shape) */
    PITH_OP_VIEW = 1u << 2,        /* output 0 is input 0's bytes under another shape; run is NULL, nothing is copied */
    PITH_OP_LATE = 1u << 3,        /* output shapes depend on contents: infer leaves dims unknown, run allocates */
    PITH_OP_RANDOM = 1u << 4,      /* not a function of its inputs: never folded or shared */
    PITH_OP_SHAPE_ONLY = 1u << 5,  /* reads shapes of its inputs, not contents (Shape, Size) */
    PITH_OP_SEQUENCES = 1u << 6,   /* takes sequences and absent optionals; others never see any (captures excepted) */
    PITH_OP_GAPS = 1u << 7,        /* of any number of inputs, those from min_inputs on may be absent */
    PITH_OP_FIRST_OPTIONAL = 1u << 8 /* output 0 may be absent; for others it is there, wanted or not */
};

/* Inputs of infer, upgrade and scratch. */
typedef struct pith_infer {
    const pith_node *node;
    pith_dims *dims;            /* NULL at bind */
    const pith_type *const *in; /* NULL for an absent optional; captures are the last of in_count */
    pith_type *out;             /* begins as "nothing known" */
    int in_count, out_count;
    pith_arena *arena; /* for elems */
    pith_error *err;
    bool strict;                    /* declared shapes that contradict are errors */
    struct pith_refusals *refusals; /* collects dtypes that are not taken; NULL: the first one is an error */
} pith_infer;

typedef struct pith_prepare {
    const pith_node *node;
    const pith_type *const *in; /* as inferred at load; constants have data */
    const pith_type *out;
    int in_count, out_count;
    pith_isa isa;
    pith_arena *arena;          /* the plan's */
    void *state;                /* result; handed to scratch and run */
    struct pith_packer *packer; /* the plan's, for pith_prepare_pack (ops/pack.h); NULL: there is no plan */
    uint32_t packed_inputs;     /* result of pith_prepare_pack: bit i set if run does not read input i */
    size_t pack_count;          /* … and how often it was called */
    pith_error *err;
} pith_prepare;

struct pith_run;

/* What the executor offers to a running operator. */
typedef struct pith_exec {
    int threads;
    pith_isa isa;
    const volatile int *cancel; /* may be NULL */
    int64_t loop_limit;
    /* 64-byte aligned memory that lives until the end of the run; NULL if out. */
    void *(*alloc)(struct pith_exec *exec, size_t bytes);
    /* Runs the subgraph in the node's graph attribute: inputs are the subgraph's inputs by position; captures are taken
     * from the node's trailing inputs. outputs are filled and live until the call after the next one for this
     * attribute, or the end of the run: what one call gave may be given to the next. */
    pith_status (*subgraph)(struct pith_exec *exec, const struct pith_run *run, const char *attribute,
                            const pith_tensor *inputs, size_t input_count, pith_tensor *outputs, size_t output_count);
} pith_exec;

/* Packed constants: where and how many bytes. */
typedef struct pith_packed_bytes {
    const void *data;
    size_t bytes;
} pith_packed_bytes;

typedef struct pith_run {
    const pith_node *node;
    const void *state;
    const pith_tensor *const *in; /* NULL for an absent optional */
    pith_tensor *const *out;      /* shape and data are set (LATE: not yet); NULL if absent or unused */
    int in_count, out_count;
    void *scratch;              /* 64-byte aligned, scratch() bytes */
    pith_packed_bytes upcoming; /* what the next step that has any will read, to be fetched meanwhile; or 0 bytes */
    pith_exec *exec;
    const void *plan; /* the executor's own */
    pith_error *err;
} pith_run;

/* What a run of a step costs, for profiles. */
typedef struct pith_cost {
    double operations;  /* arithmetic ones; a multiply-add counts two */
    double bytes;       /* that must be read and written at least, each once */
    const char *kernel; /* the family of the kernels that do most of it; NULL: none in particular */
} pith_cost;

typedef struct pith_op {
    const char *domain, *name;
    int32_t since;  /* first opset of the form that infer, prepare and run know */
    int32_t newest; /* newest version of the operator in its standard that this follows; 1 where there are none */
    int32_t min_inputs, max_inputs; /* -1: any number, none of them absent (but see GAPS) */
    int32_t max_outputs;
    uint32_t flags;
    /* Dtypes of inputs: a letter of op_types.c each, the last one for all that follow, * for any; NULL: any. infer,
     * prepare and run never see another one. */
    const char *types;
    /* The attributes it has, in all opsets: "axis int = -1; mode string linear|cubic = linear" (ops/attrs.h). Nodes are
     * checked by it before upgrade, so that no value outside reaches the operator. "": none. */
    const char *attrs;
    uint32_t unaligned; /* bit i: run takes input i at any address */
    /* NULL if every opset so far spells it alike. May replace the node by others. opset < since when called. */
    pith_status (*upgrade)(pith_node *node, pith_error *err);
    pith_status (*infer)(pith_infer *c);
    pith_status (*prepare)(pith_prepare *c);                                                    /* NULL: no state */
    pith_status (*scratch)(const pith_infer *c, const void *state, int threads, size_t *bytes); /* NULL: none */
    pith_status (*run)(pith_run *r);
    /* NULL if one operation per element of output 0, all inputs and all outputs is the cost, which *cost begins as. */
    void (*cost)(const pith_run *r, pith_cost *cost);
    const char *note; /* a restriction for docs/operators.md; NULL */
} pith_op;

/* In the order of select/ops.def (sorted by symbol); defined by select/tables.c. */
extern const pith_op *const pith_op_table[];
extern const size_t pith_op_table_count;

/* The operator takes the dtype at that input; sequences, optionals and what is not known yet pass. */
bool pith_op_takes(const pith_op *op, int input, int dtype);
/* "floats, i32", for messages and docs/operators.md. */
const char *pith_op_types_text(const pith_op *op, int input);

const pith_op *pith_op_find(pith_str domain, pith_str name); /* NULL if this build has it not; "ai.onnx" means "" */

/* Gives every node, subgraphs included, its op, inlining model-local functions first, and upgrades it. Lists every
 * unsupported op at once in the message, each with node, domain and opset. */
pith_status pith_ops_bind(pith_graph *graph, pith_error *err);
/* How many entries the arrays of a node's inputs and outputs have: its own, or more if its operator may index more. */
size_t pith_node_in_room(const pith_node *node);
size_t pith_node_out_room(const pith_node *node);

/* For nodes a pass made; their attributes are not checked. */
pith_status pith_op_bind_node(pith_node *node, pith_error *err);

/* Infers types through the whole graph (subgraphs through their owners). Sets value->type. Contradictions with hints
 * give one warning a value, or an error if strict. */
pith_status pith_ops_infer(pith_graph *graph, bool strict, pith_error *err);
/* One node from given types; checks counts, prepends the node's place to messages. */
pith_status pith_op_infer_node(pith_infer *c);

/* ---- helpers for operator files ---- */

/* Sets the error with the code; the caller's caller adds the node's place. */
#define pith_op_fail(context, ...) pith_fail((context)->err, PITH_ERR_ARGUMENT, __VA_ARGS__)

/* Types of the outputs of the node's subgraph for these types of its inputs (their contents are taken to vary from call
 * to call; captures come from the node's trailing inputs). At load the subgraph's values get their types; at bind only
 * dtypes are given back. Counts must be the subgraph's. */
pith_status pith_infer_subgraph(pith_infer *c, const char *attribute, const pith_type *in, size_t in_count,
                                pith_type *out, size_t out_count);
/* NumPy broadcast of two shapes into out (dims and rank only). Unequal symbolic dims become unknown. */
pith_status pith_infer_broadcast(pith_infer *c, const pith_type *a, const pith_type *b, pith_type *out);
/* axis in [-rank, rank) made non-negative, or an error that names it. */
pith_status pith_axis_normalize(int64_t axis, int rank, int *result, pith_error *err);

/* Sets the shape of a LATE output and takes its memory from the run. */
pith_status pith_run_alloc(pith_run *r, int output, int dtype, int rank, const int64_t *dims);
/* *to = *from with contents of its own, items of sequences and characters of strings included. alloc gives 64-byte
 * aligned memory or NULL. */
typedef void *pith_alloc_fn(void *context, size_t bytes);
pith_status pith_tensor_copy(pith_tensor *to, const pith_tensor *from, pith_alloc_fn *alloc, void *context,
                             pith_error *err);
/* The same in memory of the run. */
pith_status pith_run_copy(pith_run *r, pith_tensor *to, const pith_tensor *from);
/* Runs the parts on the run's threads; worker numbers are below r->exec->threads. */
void pith_run_parallel(pith_run *r, pith_task *task, void *context, size_t parts);
/* Rows per part so that each part has at least `grain` units of work and there are a few parts per thread. */
int64_t pith_run_chunk(const pith_run *r, int64_t rows, int64_t work_per_row, int64_t grain);
/* What the operator's scratch says, 0 bytes if it has none. Unless it is LATE, every output that infer spoke of must
 * have its shape by now. */
pith_status pith_op_scratch(const pith_infer *c, const void *state, int threads, size_t *bytes);
/* The cost of a step as a profile shows it. */
pith_cost pith_run_cost(const pith_run *r);
/* The operations of products: k multiply-adds per element of output 0. */
void pith_cost_product(pith_cost *cost, int64_t k, const char *kernel);
/* Elements of a tensor; exact, checked when it was made. */
int64_t pith_tensor_count(const pith_tensor *t);

#endif

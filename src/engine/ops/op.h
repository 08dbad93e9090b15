/* op.h - the operator descriptor: everything the engine knows about an operator.
 *
 * An operator (or close family) is one file op_<name>.c ending in `const pith__op pith_op_Foo = { …
 * };` and one line OP(Foo) in select/ops.def. There is no switch over operators anywhere. The life
 * of a node:
 *   upgrade   once at load: rewrites the form of an older opset into the newest, so that the rest
 *             knows one form
 *   infer     dtypes and shapes: at load with symbols, at bind with numbers, in a run for dynamic
 *             shapes
 *   prepare   once per plan: reads attributes, finds kernels, packs weights; its state does not
 *             change afterwards
 *   scratch   at bind: the bytes that run needs
 *   run       computes; allocates only outputs of dynamic shape, uses threads only through
 *             pith__run_parallel
 *   cost      operations and bytes of a run, for profiles only
 * The arrays of inputs and outputs that infer, prepare, scratch, run and cost receive have at least
 * max_inputs and max_outputs entries, whatever the node's counts are. Entries beyond the node's own
 * are NULL (types of outputs: nothing known until infer sets them). So in[i] with i < max_inputs is
 * always a valid read, and NULL always means absent. Inputs below min_inputs are always present,
 * and so is output 0 unless FIRST_OPTIONAL is set. Upgrades use pith__node_input and
 * pith__node_output, since older forms have other counts. Inner loops live in kernels/, never here.
 * Domains: "" (ai.onnx), "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft", and "pith" for
 * what fusion makes. */
#ifndef PITH_ENGINE_OPS_OP_H
#define PITH_ENGINE_OPS_OP_H

#include "base/error.h"
#include "base/os/cpu.h"
#include "base/os/threads.h"
#include "base/stop.h"
#include "engine/graph/graph.h"
#include "engine/kernels/kernel.h"

enum {
    PITH_OP_ELEMENTWISE = 1u << 0, /* each output element depends on the broadcast input elements at
                                      its place only */
    PITH_OP_IN_PLACE = 1u << 1, /* output 0 may reuse the buffer of an input of the same size that
                                   has no later reader: input 0, or input 1 if ELEMENTWISE and of
                                   the output's shape */
    PITH_OP_VIEW = 1u << 2,     /* output 0 is input 0 with another shape: nothing is copied, run is
                                   NULL */
    PITH_OP_LATE = 1u << 3,     /* dynamic shape: output shapes depend on contents; infer leaves
                                   dims unknown, and run allocates */
    PITH_OP_RANDOM = 1u << 4,   /* not a function of its inputs: never folded or shared */
    PITH_OP_SHAPE_ONLY = 1u << 5, /* reads only the shapes of its inputs (Shape, Size) */
    PITH_OP_SEQUENCES = 1u << 6, /* accepts sequences and empty optionals; others never receive any,
                               except as captures */
    PITH_OP_GAPS = 1u << 7, /* with any number of inputs: those from min_inputs on may be absent */
    PITH_OP_FIRST_OPTIONAL = 1u << 8, /* output 0 may be absent; other operators always have it,
                                         used or not */
    PITH_OP_CUSTOM = 1u << 9,         /* a program's own, see custom.h */
    PITH_OP_TAILS = 1u << 10          /* run applies r->tail to every element of output 0
                                (engine/ops/shared/elementwise.h) */
};

/* Inputs of infer, upgrade and scratch. */
typedef struct pith__infer {
    const pith__node *node;
    pith__dims *dims;            /* NULL at bind */
    const pith__type *const *in; /* NULL for an absent optional; captures are the last of
                                    in_count */
    pith__type *out;             /* begins as "nothing known" */
    int in_count, out_count;
    pith__arena *arena; /* for elems */
    pith_error *err;
    bool strict;                     /* declared shapes that contradict are errors */
    struct pith__refusals *refusals; /* collects inputs of unsupported dtypes; NULL: the first one
                                        is an error */
} pith__infer;

typedef struct pith__prepare {
    const pith__node *node;
    const pith__type *const *in; /* types as inferred at load; constants have data */
    const pith__type *out;
    int in_count, out_count;
    pith__isa isa;
    pith__arena *arena; /* the plan's */
    void *state;        /* result, passed to scratch and run */
    struct pith__packer
        *packer; /* the plan's, for pith__prepare_pack (engine/ops/shared/packed_constants.h); NULL:
                    there is no plan */
    uint32_t packed_inputs; /* result of pith__prepare_pack: bit i set if run does not read input
                               i */
    size_t pack_count;      /* result of pith__prepare_pack: the number of calls */
    pith__lacks *lacks;     /* takes the kernels that a selective build does not have; NULL: nobody
                               asks */
    bool lacking;           /* one of them was for this node: looking for another one in its place
                               is no use */
    pith_error *err;
} pith__prepare;

/* Bytes of the place of a node in messages that list several. */
enum { PITH_PLACE_SHOWN = 80 };

struct pith__run;
struct pith__elementwise;

/* What the executor offers to a running operator. */
typedef struct pith__exec {
    int threads;
    pith__isa isa;
    pith__stop *stop; /* may be NULL */
    int64_t loop_limit;
    /* 64-byte aligned memory that lives until the end of the run; NULL if out. */
    void *(*alloc)(struct pith__exec *exec, size_t bytes);
    /* Runs the subgraph in the node's graph attribute. inputs are the subgraph's inputs by
     * position; captures are taken from the node's trailing inputs. outputs are valid until the
     * call after the next one for this attribute, or the end of the run, so the outputs of one call
     * may be inputs of the next. */
    pith_status (*subgraph)(struct pith__exec *exec, const struct pith__run *run,
                            const char *attribute, const pith_tensor *inputs, size_t input_count,
                            pith_tensor *outputs, size_t output_count);
} pith__exec;

/* The address and size of packed constants. */
typedef struct pith__packed_bytes {
    const void *data;
    size_t bytes;
} pith__packed_bytes;

typedef struct pith__run {
    const pith__node *node;
    const void *state;
    const pith_tensor *const *in; /* NULL for an absent optional */
    pith_tensor *const *out;      /* shape and data are set, except for LATE; NULL if absent or
                                     unused */
    int in_count, out_count;
    void *scratch;                 /* 64-byte aligned, scratch() bytes */
    const struct pith__tail *tail; /* of operators with PITH_OP_TAILS: steps to run on output 0;
                                      NULL: none */
    pith__packed_bytes upcoming;   /* packed constants of a later step, for prefetching; 0 bytes:
                                      none */
    pith__exec *exec;
    const void *plan; /* the executor's own */
    pith_error *err;
} pith__run;

/* The cost of one run of a step, for profiles. */
typedef struct pith__cost {
    double operations;  /* arithmetic operations; a multiply-add counts two */
    double bytes;       /* bytes that must be read or written, each counted once */
    const char *kernel; /* the family of the kernels that do most of it; NULL: none in particular */
    bool serial;        /* further threads help little */
} pith__cost;

typedef struct pith__op {
    const char *domain, *name;
    int32_t since;  /* first opset of the form that infer, prepare and run handle */
    int32_t newest; /* newest version in the operator's standard that this follows; 1 if it has no
                       versions */
    int32_t min_inputs, max_inputs; /* -1: any number, none absent (but see GAPS) */
    int32_t max_outputs;
    uint32_t flags;
    /* Supported dtypes: one letter of operator_dtypes.c per input, the last one also for all
     * further inputs; * and NULL mean any. infer, prepare and run never receive other dtypes. */
    const char *types;
    /* The attributes it has, in all opsets: "axis int = -1; mode string linear|cubic = linear"
     * (engine/ops/shared/attrs.h). Nodes are checked against it before upgrade, so no other value
     * reaches the operator. "": none. */
    const char *attrs;
    uint32_t unaligned; /* bit i: run accepts input i at any address */
    /* Bit i: shapes of outputs depend on the contents of input i (a target shape, axes). These
     * inputs are in host memory, whichever backend runs the node. */
    uint32_t shape_inputs;
    /* NULL if all opsets have the same form. Called only for nodes with opset < since. May replace
     * the node by others. */
    pith_status (*upgrade)(pith__node *node, pith_error *err);
    pith_status (*infer)(pith__infer *c);
    /* NULL: no state */
    pith_status (*prepare)(pith__prepare *c);
    /* NULL: none */
    pith_status (*scratch)(const pith__infer *c, const void *state, int threads, size_t *bytes);
    pith_status (*run)(pith__run *r);
    /* Sets *e to what run computes, if that is one elementwise computation of r; then it may run as
     * the tail of another step. Shapes are known, data may be NULL. NULL: it is none. */
    bool (*elementwise)(const pith__run *r, struct pith__elementwise *e);
    /* *cost begins as one operation per element of output 0, and the bytes of all inputs and
     * outputs. NULL: that is right. It is also asked before the run: shapes are known then, but
     * scratch and the data of tensors may be NULL. */
    void (*cost)(const pith__run *r, pith__cost *cost);
    const char *note; /* a restriction to show in docs/operators.md; may be NULL */
} pith__op;

/* In the order of select/ops.def (sorted by symbol); defined by select/tables.c. */
extern const pith__op *const pith__op_table[];
extern const size_t pith__op_table_count;

/* What nodes are checked with. A build without operators links none of it: it is reached through
 * pith__op_checks_used. */
typedef struct pith__op_checks {
    /* pith__attrs_check */
    pith_status (*attrs)(const pith__node *node, const pith__op *op, bool own, pith_error *err);
    /* pith__attrs_prune */
    void (*prune)(pith__node *node, const pith__op *op);
    bool (*takes)(const pith__op *op, int input, int dtype);
    const char *(*types_text)(const pith__op *op, int input);
} pith__op_checks;
extern const pith__op_checks pith__op_checks_all;
/* pith__op_checks_all if the table has operators, else NULL; defined by select/tables.c. */
extern const pith__op_checks *const pith__op_checks_used;
/* Those of this operator. */
const pith__op_checks *pith__op_checks_of(const pith__op *op);
bool pith__op_takes_dtype(const pith__op *op, int input, int dtype);
const char *pith__op_dtypes_text(const pith__op *op, int input);

/* True if the operator supports the dtype at that input. Sequences, optionals and unknown dtypes
 * pass. */
bool pith__op_takes(const pith__op *op, int input, int dtype);
/* "floats, i32", for messages and docs/operators.md. */
const char *pith__op_types_text(const pith__op *op, int input);

/* NULL: not in this build; "ai.onnx" means "" */
const pith__op *pith__op_find(pith_str domain, pith_str name);
/* The same for a node, whose graph may have operators of its own. */
const pith__op *pith__op_of_node(const pith__node *node);

/* Inlines model-local functions, then gives every node its operator and upgrades it, in subgraphs
 * too. The message lists all unsupported operators at once, each with node, domain and opset. */
pith_status pith__ops_bind(pith__graph *graph, pith_error *err);
/* The same for a graph of a compiled file, which has no functions. */
pith_status pith__ops_bind_compiled(pith__graph *graph, pith_error *err);
/* Return the sizes of the arrays of a node's inputs and outputs: at least the operator's max_inputs
 * and max_outputs. */
size_t pith__node_in_room(const pith__node *node);
size_t pith__node_out_room(const pith__node *node);

/* Gives a node that a pass made its operator. Attributes are not checked. */
pith_status pith__op_bind_node(pith__node *node, pith_error *err);

/* Infers types through the whole graph (subgraphs through their owners). Sets value->type. A type
 * that contradicts its hint gives one warning per value, or an error if strict. */
pith_status pith__ops_infer(pith__graph *graph, bool strict, pith_error *err);
/* After pith__ops_infer: compares declared sizes of inner values and outputs with those that follow
 * from the declared sizes of the inputs. The first difference is an error if strict; else it is a
 * warning, and sets graph->contradictory. */
pith_status pith__ops_check_declared(pith__graph *graph, bool strict, pith_error *err);
/* Infers one node from the given types. Checks its counts, and puts the node's place in front of
 * messages. */
pith_status pith__op_infer_node(pith__infer *c);

/* ---- helpers for operator files ---- */

/* The kernel of this family and dtype, or NULL. A kernel that only this build lacks is noted in
 * c->lacks. Whoever called prepare looks there first, so prepare may go on without it or fail; what
 * it makes is not used. */
pith__kernel_fn *pith__prepare_find(pith__prepare *c, const char *family, int dtype);
#define PITH_PREPARE_KERNEL(type, family, dtype, c) ((type *)pith__prepare_find(c, family, dtype))

/* Fails with PITH_ERR_ARGUMENT; a caller adds the node's place. */
#define pith__op_fail(context, ...) pith__fail((context)->err, PITH_ERR_ARGUMENT, __VA_ARGS__)

/* Infers the types of the outputs of a node's subgraph from the types of its inputs. Contents of
 * the inputs count as unknown; captures come from the node's trailing inputs. At load, the
 * subgraph's values get their types; at bind, only dtypes are returned. Fails unless the counts are
 * those of the subgraph. */
pith_status pith__infer_subgraph(pith__infer *c, const char *attribute, const pith__type *in,
                                 size_t in_count, pith__type *out, size_t out_count);
/* NumPy broadcast of two shapes into out (dims and rank only). Unequal symbolic dims become
 * unknown. */
pith_status pith__infer_broadcast(pith__infer *c, const pith__type *a, const pith__type *b,
                                  pith__type *out);
/* Makes an axis in [-rank, rank) non-negative, or fails with an error that names it. */
pith_status pith__axis_normalize(int64_t axis, int rank, int *result, pith_error *err);

/* Zeroes the last byte of a tensor of 4- or 2-bit elements: those that follow may leave some of its
 * bits unused. */
void pith__tensor_clear_tail(const pith_tensor *t);
/* Sets the shape of a LATE output and takes its memory from the run. */
pith_status pith__run_alloc(pith__run *r, int output, int dtype, int rank, const int64_t *dims);
/* Copies a tensor with its contents, including items of sequences and characters of strings. alloc
 * returns memory aligned to 64 bytes, or NULL. */
typedef void *pith__alloc_fn(void *context, size_t bytes);
pith_status pith__tensor_copy(pith_tensor *to, const pith_tensor *from, pith__alloc_fn *alloc,
                              void *context, pith__stop *stop, pith_error *err);
/* The same in memory of the run. */
pith_status pith__run_copy(pith__run *r, pith_tensor *to, const pith_tensor *from);
/* Runs the parts on the run's threads; worker numbers are below r->exec->threads. If the run must
 * stop, parts that have not begun are left out: what they would have written is then anything, and
 * must be good for nothing but more numbers. */
void pith__run_parallel(pith__run *r, pith__task *task, void *context, size_t parts);
/* Returns the number of rows per part, so that each part has at least `grain` units of work and
 * each thread gets a few parts. */
int64_t pith__run_chunk(const pith__run *r, int64_t rows, int64_t work_per_row, int64_t grain);
/* A part of a run that may have to stop does at most so many multiply-adds, some milliseconds,
 * where it can be cut. */
#define PITH_STOP_PRODUCTS ((double)(1 << 26))
/* Into how many parts work of so many multiply-adds is cut at least; 1 if the run cannot stop. */
int64_t pith__run_parts_least(const pith__run *r, double products);
/* PITH_OK, or the error of a run that must stop: for loops of steps that one thread does. */
static inline pith_status pith__run_look(const pith__run *r) {
    return pith__stop_check(r->exec->stop, r->err);
}
/* Steps of a loop between two looks, where a step takes up to a hundred nanoseconds. Smaller: runs
 * end sooner, and loops of short steps are slower. A power of two. */
#define PITH_LOOK_STEPS ((int64_t)1 << 13)
/* As pith__run_look, of step i of a loop of short steps. */
static inline pith_status pith__run_step(const pith__run *r, int64_t i) {
    return i & (PITH_LOOK_STEPS - 1) ? PITH_OK : pith__run_look(r);
}
/* The same where steps differ: `work` is that of the next one, in units of about a nanosecond, and
 * *spent, which begins as 0, what was done since the last look. */
#define PITH_LOOK_WORK ((int64_t)1 << 19)
static inline pith_status pith__run_spend(const pith__run *r, int64_t *spent, int64_t work) {
    *spent += work;
    if (*spent < PITH_LOOK_WORK) return PITH_OK;
    *spent = 0;
    return pith__run_look(r);
}
/* Copies bytes piece by piece, or writes zeros if from is NULL. */
static inline pith_status pith__run_bytes(const pith__run *r, void *to, const void *from,
                                          size_t bytes) {
    return pith__copy_until(r->exec->stop, to, from, bytes, r->err);
}
/* Sets *bytes to the operator's scratch, or 0 if it has none. Unless the operator is LATE, every
 * output that infer set must have a known shape. */
pith_status pith__op_scratch(const pith__infer *c, const void *state, int threads, size_t *bytes);
/* One operation per element of output 0, all inputs and all outputs: what a step costs unless its
 * operator knows better. */
pith__cost pith__run_cost(const pith__run *r);
/* Sets the operations of a matmul: k multiply-adds per element of output 0. */
void pith__cost_product(pith__cost *cost, int64_t k, const char *kernel);
/* Returns the number of elements. It cannot overflow: the shape was checked when the tensor was
 * made. */
int64_t pith__tensor_count(const pith_tensor *t);

#endif

/* op.h - operators of your own: the descriptor, what its functions may rely on, and how the library
 * learns of it.
 *
 *     static pith_status twice_infer(pith_op_infer *c) {
 *         c->out[0] = *c->in[0];
 *         return PITH_OK;
 *     }
 *     static pith_status twice_run(pith_op_run *r) {
 *         const float *x = r->in[0]->data;
 *         float *y = r->out[0]->data;
 *         int64_t n = pith_shape_count(r->in[0]->dims, r->in[0]->rank);
 *         for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i];
 *         return PITH_OK;
 *     }
 *     const pith_operator pith_operator_Twice = {
 *         PITH_OPERATOR_BEGIN, .domain = "example", .name = "Twice", .min_inputs = 1,
 *         .max_inputs = 1, .max_outputs = 1, .types = "f32", .attributes = "",
 *         .infer = twice_infer, .run = twice_run,
 *     };
 *
 * There are three ways to make it known:
 *   - The program calls pith_register_op(&pith_operator_Twice, &err) before it opens a model: all
 *     models that this process opens from then on know it.
 *   - It is compiled into the library, with -DPITH_EXTRA_OPS="op_twice.c;my_ops.def" and the line
 *     EXTRA_OP(Twice, example::Twice) in my_ops.def: all models of the process know it.
 *   - pith_operator_set_create makes a set of operators, which is given to single models when they
 *     are opened (pith_open_options.operators) or to a source (pith_source_options.operators): no
 *     other model knows them.
 * However it became known, it is then an operator like Pith's own. Nodes are checked against the
 * descriptor, types follow from infer, constants are computed at load, and plans and threads treat
 * it as any other. Selective builds do so too, except for sets. docs/extending.md has a complete
 * example.
 *
 * The life of a node, in this order:
 *   infer     when the model is opened, with what is known by then, and again when the sizes of the
 *             inputs are known
 *   prepare   once per plan; makes the state, which never changes afterwards
 *   scratch   when the sizes are known: how much memory run needs in addition to its outputs
 *   run       each time; computes the outputs
 * All of them may be called by several threads at the same time, run also with the same state. They
 * must be functions of what they are given, keep the floating-point mode, and not call
 * pith_register_op, nor open or close models. A function that fails returns a status and writes the
 * reason to c->err->message (snprintf); the library puts the node's name in front. The structs that
 * functions receive belong to the library and are valid during the call.
 *
 * A result is to have the same bits whatever the number of threads: sums in a fixed order. */
#ifndef PITH_OP_H
#define PITH_OP_H

#include "pith/call.h"
#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface between the library and operators. It changes when operators must be
 * compiled again. */
#define PITH_OP_ABI 1

/* A node of a model. */
typedef struct pith_op_node pith_op_node;

/* The facts that are known of a tensor before it is computed. */
typedef struct pith_op_type {
    int32_t dtype; /* a pith_dtype; PITH_UNDEFINED: not known yet */
    int32_t rank;  /* -1: not known yet */
    /* Below 0: not known yet. Where an output's size is that of an input, copy it, even if it is
     * not known: then later stages know that both are equal. Otherwise write -1. */
    int64_t dims[PITH_MAX_RANK];
    const pith_tensor *data; /* the contents, if they are known (a constant), else NULL; of an
                                output it is ignored */
} pith_op_type;

/* What infer and scratch are given. in has at least max_inputs entries and out at least
 * max_outputs, whatever the node has; so entries below those are always valid to read. in[i] is
 * NULL for an input that is absent, which those below min_inputs never are. dtypes of inputs that
 * are known are among those of pith_operator.types. */
typedef struct pith_op_infer {
    const pith_op_node *node;
    const pith_op_type *const *in;
    pith_op_type *out; /* result of infer: dtype, rank and dims. They begin as "not known". */
    int32_t in_count, out_count;
    pith_error *err;
} pith_op_infer;

/* What prepare is given. Types are those known when the model was opened. */
typedef struct pith_op_prepare {
    const pith_op_node *node;
    const pith_op_type *const *in;
    const pith_op_type *out;
    int32_t in_count, out_count;
    void *state; /* result, passed to scratch and run; begins as NULL. Memory for it comes from
                    pith_op_state. */
    pith_error *err;
    void *engine; /* the library's own */
} pith_op_prepare;

/* What run is given. Data is dense and aligned to 64 bytes, but inputs that the caller or a file
 * provides have the alignment of their dtype only. Inputs are not written to. */
typedef struct pith_op_run {
    const pith_op_node *node;
    const void *state;            /* of prepare */
    const pith_tensor *const *in; /* NULL: absent */
    /* Shape and data are set, unless the operator is PITH_OPERATOR_DYNAMIC; every element is to be
     * written. NULL: absent, or never read. */
    pith_tensor *const *out;
    int32_t in_count, out_count;
    void *scratch;   /* aligned to 64 bytes, of the size that scratch said; its contents are
                        undefined */
    int32_t threads; /* of this run, at least 1 */
    pith_error *err;
    void *engine; /* the library's own */
} pith_op_run;

enum {
    /* Each element of the outputs depends on the broadcast elements of the inputs at its place
     * only. */
    PITH_OPERATOR_ELEMENTWISE = 1 << 0,
    /* run may be given an input's memory as that of output 0: of input 0, or if ELEMENTWISE also of
     * input 1, when the size is the same and the input is not read later. */
    PITH_OPERATOR_IN_PLACE = 1 << 1,
    /* The shapes of outputs depend on contents: infer sets dtypes and may leave sizes open, and run
     * gets the memory of each output from pith_op_output. */
    PITH_OPERATOR_DYNAMIC = 1 << 2,
    /* Not a function of its inputs, such as random numbers: it is not computed at load, and equal
     * nodes stay apart. */
    PITH_OPERATOR_RANDOM = 1 << 3
};

/* An operator. Fields that are 0 or NULL have the meaning given; abi, size, name, max_outputs,
 * infer and run are required. The strings and functions must stay valid as long as the operator is
 * known: until the process ends, or as pith_operator_set says. */
typedef struct pith_operator {
    uint32_t abi, size; /* PITH_OPERATOR_BEGIN sets them */
    const char *domain; /* as models write it; NULL and "" are ONNX's own */
    const char *name;
    int32_t min_inputs, max_inputs; /* at most 64; max_inputs -1: any number, none of them absent */
    int32_t max_outputs;            /* 1 to 64; output 0 is always there, others may be absent */
    int32_t flags;                  /* PITH_OPERATOR_* */
    /* The dtypes of the inputs: a word per input, the last one also for all further ones, such as
     * "f32|f16 i64 *". Names are f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool string c64
     * c128; * is any. NULL: any. Other dtypes never reach the operator; models that have them are
     * refused, with a message that names the node. */
    const char *types;
    /* The attributes: "axis int = -1; mode string linear|cubic = linear; pads ints! 0..". Each is a
     * name, a kind (int, bool, float, string, tensor, ints, floats, strings), ! if it is required,
     * then a range of integers or the alternatives, then = and a default (not for lists). An int
     * must fit 32 bits, unless `any` stands for the range. Nodes with others are refused, so no
     * other value reaches the operator. NULL: any attributes, unchecked. "": none. */
    const char *attributes;
    /* Bit i: infer reads the contents of input i, such as a target shape. */
    uint32_t shape_inputs;
    pith_status (*infer)(pith_op_infer *c);
    pith_status (*prepare)(pith_op_prepare *c); /* NULL: no state */
    /* Sets *bytes, which begins as 0. All sizes are known. NULL: none are needed. */
    pith_status (*scratch)(size_t *bytes, const pith_op_infer *c, const void *state,
                           int32_t threads);
    pith_status (*run)(pith_op_run *r);
} pith_operator;

/* clang-format off */
#define PITH_OPERATOR_BEGIN PITH_OP_ABI, sizeof(pith_operator)
/* For C++ before C++20, which fills the fields one by one. */
#define PITH_OPERATOR_INIT \
    { PITH_OPERATOR_BEGIN, NULL, NULL, 0, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL }
/* clang-format on */

/* Makes the operator known to this process for good; models opened from now on find it. The struct
 * is copied. Thread-safe, also while models are opened. Errors: PITH_ERR_ARGUMENT for another
 * PITH_OP_ABI, missing functions, unreadable types or attributes, and a name that the domain
 * already has; PITH_ERR_MEMORY. */
PITH_API pith_status pith_register_op(const pith_operator *op, pith_error *err);

/* ---- operators of single models ---- */

/* A set of operators for the models that are opened with it. In these, an operator of the set goes
 * before a registered one of the same name, and sets may have the same names for different
 * operators. The descriptors are copied. What they point to, strings and functions, must stay valid
 * until the set is destroyed and the last model and source that were opened with it are gone: each
 * holds a reference to the set. So the set may be destroyed as soon as they are open. Any number of
 * threads may use a set at once. */
typedef struct pith_operator_set pith_operator_set;

/* Makes a set of the operators list[0] to list[count - 1], which the caller owns. In the call
 * context, which may be NULL, the allocator has an effect. Thread-safe. Errors: those of
 * pith_register_op, for two operators of one name in the list too; the message names the operator.
 */
PITH_API pith_status pith_operator_set_create(pith_operator_set **set,
                                              const pith_operator *const *list, size_t count,
                                              const pith_call *call, pith_error *err);
/* Gives up the caller's reference; NULL is allowed. Thread-safe. */
PITH_API void pith_operator_set_destroy(pith_operator_set *set);

/* ---- attributes of a node, in any of its functions ---- */

/* The attribute of this name. If the node lacks it: the default of pith_operator.attributes;
 * without one, 0, an empty string, or NULL and 0 items. *count is the number of items. Results live
 * as long as the model. Thread-safe. */
PITH_API int64_t pith_op_int(const pith_op_node *node, const char *name);
PITH_API float pith_op_float(const pith_op_node *node, const char *name);
PITH_API pith_str pith_op_string(const pith_op_node *node, const char *name);
PITH_API const int64_t *pith_op_ints(size_t *count, const pith_op_node *node, const char *name);
PITH_API const float *pith_op_floats(size_t *count, const pith_op_node *node, const char *name);
PITH_API const pith_str *pith_op_strings(size_t *count, const pith_op_node *node, const char *name);
PITH_API const pith_tensor *pith_op_tensor(const pith_op_node *node, const char *name);

/* ---- what prepare and run may ask for ---- */

/* Returns memory for the state, aligned to 64 bytes, which lives as long as the plan; NULL if there
 * is none: then return PITH_ERR_MEMORY. For prepare only. */
PITH_API void *pith_op_state(pith_op_prepare *c, size_t bytes);

/* Gives an output of a PITH_OPERATOR_DYNAMIC operator its shape and its memory. Only the thread
 * that called run may call it. Errors: PITH_ERR_ARGUMENT if the node has no such output, or sizes
 * are negative or too large; PITH_ERR_MEMORY. */
PITH_API pith_status pith_op_output(pith_op_run *r, int32_t output, int32_t dtype, int32_t rank,
                                    const int64_t *dims);

/* Calls task for each part from 0 to parts - 1 on the threads of the run, and returns when all are
 * done. worker is below r->threads; parts that run at the same time have different ones. For run
 * only. */
PITH_API void pith_op_parallel(pith_op_run *r, void (*task)(void *context, size_t part, int worker),
                               void *context, size_t parts);

#ifdef __cplusplus
}
#endif

#endif

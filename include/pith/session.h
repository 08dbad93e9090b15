/* session.h - running any graph: a model's inputs and outputs, sessions, and tensors in files. */
#ifndef PITH_SESSION_H
#define PITH_SESSION_H

#include "pith/call.h"
#include "pith/types.h"
#include "pith/profile.h"
#include "pith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An input or output of a model. It belongs to the model, with its strings, and is valid until the
 * model is closed. Later versions may add members at its end. */
typedef struct pith_port {
    size_t size;
    const char *name;
    int32_t dtype;                /* a pith_dtype, or PITH_SEQUENCE or PITH_NONE (an optional) */
    int32_t rank;                 /* number of dimensions; -1: unknown */
    int64_t dims[PITH_MAX_RANK];  /* the declared sizes; -1: any size. A run also accepts inputs of
                                    other sizes. */
    const char *shape;            /* the shape as text, such as "[batch, sequence]"; "?" if the rank
                                    is unknown */
    int32_t item_dtype;           /* dtype of the tensors in a sequence or optional; PITH_MAP_I64 or
                                    PITH_MAP_STRING: it is a sequence of maps, or a map, which has
                                    dims[0] 2; 0 for a tensor */
    int32_t optional;             /* 1: the input has a default and may be left out */
    const char *const *dim_names; /* [rank] the symbol of each dimension, such as "batch"; "" where
                                     it is a number or has no name; none if rank is -1 */
} pith_port;

/* The inputs and outputs of a model, in its own order; NULL if there is none of this index. Valid
 * as long as the model. Thread-safe. */
PITH_API size_t pith_model_input_count(const pith_model *model);
PITH_API size_t pith_model_output_count(const pith_model *model);
PITH_API const pith_port *pith_model_input(const pith_model *model, size_t index);
PITH_API const pith_port *pith_model_output(const pith_model *model, size_t index);

/* The state of runs: memory for activations, and plans for the shapes seen so far. One thread at a
 * time may use a session. A model may have any number of sessions, and they may run at the same
 * time. */
typedef struct pith_session pith_session;

/* Makes a session, which the caller owns. It holds a reference to its model, so that the model may
 * be closed first. A model that embeds texts is made ready to run on tensors by the first run of
 * its first session, whose context can end that. */
PITH_API pith_status pith_session_create(pith_session **session, const pith_model *model,
                                         pith_error *err);
/* Frees the session; NULL is allowed. */
PITH_API void pith_session_destroy(pith_session *session);

/* In the call context, threads, profile and the three ways to end a call have an effect; in
 * pith_model_run also the allocator. */
typedef struct pith_run_options {
    pith_call call;
    const char *const *output_names; /* [output_count]: the outputs to compute, in the order of
                                        the results; only what they need is computed, and
                                        they have the same bits as in a run of all. Each name
                                        may be there once. NULL: all, in the model's order */
    size_t output_count;
} pith_run_options;

#define PITH_RUN_OPTIONS_INIT PITH_OPTIONS_INIT(pith_run_options)

/* Runs the model once.
 *   - inputs: pith_tensor[input_count]; names[i] is the name of inputs[i]. The call only reads
 *     them.
 *   - outputs: pith_tensor[asked], one for each output that is asked for: options->output_count,
 *     or all of the model's. Their data belongs to the session and is valid until its next run or
 *     its end; that of bound outputs is the caller's. Memory that is bound to an output that is not
 *     asked for is left as it is.
 *   - Inputs that were bound may be left out. One that is given replaces a bound one in
 *     this run.
 *   - An optional input may be fed a value other than its default. The first such run plans the
 *     graph again for this session, which takes as long as opening did; later runs reuse the plan.
 *     Compiled models refuse it.
 *   - An input may lie in the memory of a device (pith_tensor.device). Steps on that device read it
 *     where it lies; for all others it is copied. An input with a default, a string and a sequence
 *     must be in host memory, and so must inputs of other runtimes than "builtin".
 *   - Which steps a set of outputs needs is found in its first run; a session remembers the last
 *     eight such sets. All inputs are needed whatever is asked for.
 * Errors: PITH_ERR_ARGUMENT if the inputs do not fit the model, PITH_ERR_RUN if a node cannot
 * compute its result. */
PITH_API pith_status pith_session_run(pith_session *session, pith_tensor *outputs,
                                      const char *const *names, const pith_tensor *inputs,
                                      size_t input_count, const pith_run_options *options,
                                      pith_error *err);

/* ---- runs without a session ---- */

/* Runs the model once, as pith_session_run does, with a session that the model keeps for such calls
 * (pith_open_options.sessions, .session_idle_ms). Any number of threads may call this at once. The
 * caller owns outputs[asked], strings and the tensors of sequences included, and frees each with
 * pith_tensor_free; it may outlive the model. call.allocator makes them. After an error of the run
 * all outputs are zeros. */
PITH_API pith_status pith_model_run(pith_tensor *outputs, const pith_model *model,
                                    const char *const *names, const pith_tensor *inputs,
                                    size_t input_count, const pith_run_options *options,
                                    pith_error *err);
/* Frees what pith_model_run put into a tensor, and sets it to zeros. NULL and zeros are allowed; a
 * tensor from elsewhere is not. Thread-safe for different tensors. */
PITH_API void pith_tensor_free(pith_tensor *tensor);

/* ---- bound tensors: memory of the caller that many runs use ---- */

/* Binds an input: runs that are not given it use this tensor. The struct is copied; its data stays
 * the caller's, is read where it lies, and may change between runs. tensor NULL ends the binding.
 * Errors: PITH_ERR_ARGUMENT, as pith_session_run gives it for this input. */
PITH_API pith_status pith_session_bind_input(pith_session *session, const char *name,
                                             const pith_tensor *tensor, pith_error *err);

/* Binds an output: runs write it to tensor->data, which stays the caller's and has room for
 * tensor->bytes bytes. outputs[i].data of pith_session_run is then that address. tensor NULL ends
 * the binding.
 *   - dtype is that of the output. dims are the shape that the output must have; rank -1 allows any
 *     shape that fits.
 *   - tensor->device may name a device: the output then stays in, or is copied to, its memory. data
 *     NULL, with bytes 0, takes memory of the session there, which is valid until the session's
 *     next run or its end. With a stream the run may return before the output is there; inputs that
 *     lie in the memory of a device must not change before it is. The next run of the session, and
 *     the end of the session, wait for it.
 *   - The run works in this memory from the start, also before an error. It copies the output there
 *     at the end if its shape is known only then, if data is not aligned to its type, if an input
 *     of the run lies there too, or if it shares its memory with another output or shows an input
 *     or a constant. pith_statistics counts outputs of both kinds as tensors_bound and
 *     tensors_copied. The bits are the same.
 * Errors: PITH_ERR_ARGUMENT for a name, dtype, shape or memory that cannot fit, and for memory that
 * two outputs share. A run whose output does not fit fails with PITH_ERR_ARGUMENT: the message
 * names the output and what it needs. It does so before it computes anything, if the shape is known
 * by then. */
PITH_API pith_status pith_session_bind_output(pith_session *session, const char *name,
                                              const pith_tensor *tensor, pith_error *err);

/* Ends all bindings of the session. */
PITH_API void pith_session_unbind(pith_session *session);

/* A value of a file. One thread at a time may use it. */
typedef struct pith_value_file pith_value_file;

/* Reads one value from a .pb file as the ONNX test folders hold them. kind says what the file
 * holds: PITH_SEQUENCE for a SequenceProto, PITH_NONE for an OptionalProto, PITH_MAP_I64 or
 * PITH_MAP_STRING for a MapProto, any other dtype for a TensorProto. name may be NULL; else *name
 * is set to the value's name, or to "" if the file gives none. *tensor and *name are valid until
 * pith_value_close. In call, which may be NULL, the three ways to end it have an effect. */
PITH_API pith_status pith_value_open(pith_value_file **file, pith_tensor *tensor, const char **name,
                                     const char *path, int32_t kind, const pith_call *call,
                                     pith_error *err);
/* Frees the value; NULL is allowed. */
PITH_API void pith_value_close(pith_value_file *file);

/* Writes a value as such a file holds it. kind is as above: PITH_NONE wraps the value in an
 * OptionalProto, and an empty value (dtype PITH_NONE) needs that. Items of a sequence that are maps
 * are written as such. name may be NULL. Returns PITH_ERR_ARGUMENT, before anything is written, if
 * the value's bytes do not hold its shape or lie in the memory of a device. call is as of
 * pith_value_open. Thread-safe. */
PITH_API pith_status pith_value_write(const pith_tensor *value, const char *name, int32_t kind,
                                      const pith_call *call, const pith_writer *writer,
                                      pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

/* model.h - opening a model from a directory, an ONNX file, a compiled file or memory; checking,
 * compiling and describing it. */
#ifndef PITH_MODEL_H
#define PITH_MODEL_H

#include "pith/call.h"
#include "pith/types.h"
#include "pith/profile.h"
#include "pith/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does not change once it is open; any number of threads may use it at once. */
typedef struct pith_model pith_model;
struct pith_operator_set; /* pith/op.h */

enum {
    PITH_OPEN_COPY = 1u << 0,          /* read the files instead of mapping them; other processes
                                          may then change or truncate them while the model is
                                          open */
    PITH_OPEN_STRICT_SHAPES = 1u << 1, /* a declared shape that contradicts the real one is an
                                          error; without this flag it is a warning */
    PITH_OPEN_DESCRIBE = 1u << 2,      /* keep the facts that PITH_DESCRIBE_JSON prints; costs some
                                          memory */
    PITH_OPEN_NO_PREDICTION = 1u << 4, /* under a memory limit, do not predict whether a batch fits:
                                          run it, and run it again in smaller pieces if it does
                                          not */
    PITH_OPEN_CHECK = 1u << 3,         /* compare the optimised model with the model as written on a
                                          few made-up inputs. A pass that changes the results is
                                          left out, with a warning. Opening takes several times as
                                          long. */
    PITH_OPEN_NO_ARENA = 1u << 5,      /* allocate each activation when its step begins and free it
                                          after its last use, instead of one planned buffer. The
                                          results have the same bits. For measuring what the buffer
                                          saves. */
    PITH_OPEN_NO_PLAN_REUSE = 1u << 6, /* plan shapes and memory again in each run, also for shapes
                                          that had a plan. For measuring what the reuse saves. */
    PITH_OPEN_INNER = 1u << 7          /* every named value of an .onnx file's graph that a node
                                          gives, and that is a tensor of numbers, is an output, in
                                          the order of nodes. Also on ONNX Runtime. With
                                          PITH_OPTIMIZATION_NONE only; such a model embeds no texts.
                                          For finding where two runtimes begin to differ. */
};

#define PITH_OPTIMIZATION_NONE (-1)

/* call.log and call.allocator are kept, as copies, for all calls on the model. The rest of the
 * context is of the opening: call.profile records its phases, and progress reports its "steps". */
typedef struct pith_open_options {
    pith_call call;
    uint32_t flags;                  /* PITH_OPEN_* */
    int32_t optimization;            /* level 1 to 3; 0: 3, all passes; PITH_OPTIMIZATION_NONE: the
                                        graph runs as it is written */
    size_t memory_limit;             /* bytes that the model, its sessions and its calls may hold
                                        together, without mapped files. A call that needs more
                                        fails with PITH_ERR_MEMORY. 0: no limit */
    int64_t loop_limit;              /* iterations that one Loop node may make before the run fails;
                                        0: 2^31 */
    const char *stop_after;          /* name of the last optimisation pass to run; NULL: all run */
    const char *const *input_shapes; /* [input_shape_count] strings such as "name=1x3x480x640": the
                                        input has this shape, whatever the file declares. If any is
                                        given, the shapes that the file declares for its other
                                        values are ignored. */
    size_t input_shape_count;
    int32_t precision;      /* a pith_precision: arithmetic of the dense layers */
    const char *runtime;    /* the engine that runs the model: "builtin" (Pith's own), "ort" or
                               "auto"; NULL: "builtin". See pith/runtime.h */
    const char *model_file; /* name of the file to open in a directory: "onnx/model_fp16.onnx",
                               "pytorch_model.bin"; NULL: the best one there, see docs/cli.md */
    const char *route;      /* which route of a Router module to use: "query"; or which task of a
                          network with a part for each (lora_adaptations in config.json):
                          "retrieval.query"; NULL: the model's default */
    /* Freed buffers that are kept for later calls. They count as held by the model, but not against
     * a request: the pool is freed before the memory limit refuses one. pith_model_trim frees it
     * too. */
    int32_t pool_blocks; /* the most buffers; 0: 32; -1: none are kept. At most 4096 */
    size_t pool_bytes;   /* the most bytes; 0: 16 MiB */
    int32_t sessions;    /* the most idle sessions (buffers and plans of one run at a time) that
                            text calls keep; 0: one per thread; -1: none. At most 4096 */
    int32_t pressure_percent; /* memory is short when this share of the machine's memory, or of the
                                 control group's limit, is in use: text calls then free what is only
                                 kept for speed and make their batches small, and the log says so.
                                 0: 80; -1: never. See pith/memory.h */
    const char *system_root;  /* put in front of the paths of /proc and /sys that tell it, for
                                 tests; NULL: nothing */
    int32_t session_idle_ms;  /* an idle session ends when it was not used for so long; it is looked
                                 for at the end of each call. 0: never */
    const char *devices;      /* devices in the order of preference, such as "cuda,cpu". An
                            operator runs on the first that supports it. A device that this build
                            does not have, that is missing or fails to open is left out. If one
                            fails in a run, the run is repeated on the others, and so are all later
                            ones. Each is logged and counted. An operator that no device of the list
                            supports is an error, so cpu should be last. "auto": all devices of this
                            build. NULL: the same, but a device that fails is an error.
                            Settings follow a device as in pith_runtime_options.providers:
                            "cuda:device_id=1,memory_limit=2000000000,cpu". Each kind may be in the
                            list several times, with different values of device_id.
                              - device_id: which of its kind, from 0.
                              - memory_limit, or gpu_mem_limit: bytes of its memory that the model
                                may hold; 0: any number.
                              - Others are the kind's own (docs/devices.md). One that it does not
                                know is PITH_ERR_ARGUMENT.
                            With precision PITH_PRECISION_F32 a device that computes in another one
                            is left out. */
    const pith_runtime_options *runtime_options; /* of the runtimes "ort" and "auto"; NULL: the
                                                    defaults. Not kept. */
    int32_t inter_op_threads; /* threads that work on independent branches of the graph at the same
                                 time, out of those of the run. Branches run side by side only where
                                 an estimate says that it saves time. The results have the same
                                 bits. Their activations share no memory. 0 and 1: one step at a
                                 time. At most 512; more than 1 needs the part `branches` */
    const struct pith_operator_set *operators; /* operators that this model knows and others do not
                                    (pith/op.h); the model holds a reference to the set. NULL: none.
                                    A compiled model is opened with a set that has the operators
                                    it was compiled with. The runtime "ort" does not know them */
} pith_open_options;

#define PITH_OPEN_OPTIONS_INIT PITH_OPTIONS_INIT(pith_open_options)

/* Opens a model. path is one of:
 *   - a directory in Hugging Face layout;
 *   - an .onnx file; if a tokenizer.json lies next to it, it opens as its directory would;
 *   - a compiled .pith file, which is known by its first bytes. It keeps the optimisation level and
 *     the precision it was compiled with: options->optimization is ignored, and another precision
 *     than its own is an error;
 *   - the name of a model in the model cache: $PITH_CACHE, else $XDG_CACHE_HOME/pith, else
 *     ~/.cache/pith; or in the cache of Hugging Face's tools: $HF_HUB_CACHE, else $HF_HOME/hub,
 *     else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. The network is never
 *     used. Capitals do not matter, the organisation may be left out if no other model has the rest
 *     of the name, and short names such as "minilm" stand for the full ones.
 * The files stay mapped until pith_model_close. They must not be truncated before that, unless
 * PITH_OPEN_COPY is set. On success the caller owns *model. Errors: PITH_ERR_NOT_FOUND if there is
 * no such model; PITH_ERR_IO, PITH_ERR_FORMAT and PITH_ERR_UNSUPPORTED name the file, or the node,
 * at fault; PITH_ERR_ARGUMENT names the option; PITH_ERR_MEMORY. Thread-safe. */
PITH_API pith_status pith_model_open(pith_model **model, const char *path,
                                     const pith_open_options *options, pith_error *err);

/* Writes to path[size], with a NUL, where pith_model_open would look for a model: its file or
 * directory, with a directory of the Hugging Face cache followed to its snapshot. name NULL gives
 * the model cache itself, in which a model is models/<name>. PITH_ERR_NOT_FOUND: there is none;
 * PITH_ERR_ARGUMENT: size is too small. Thread-safe. */
PITH_API pith_status pith_model_locate(char *path, size_t size, const char *name, pith_error *err);

/* Opens a model from the bytes of an .onnx or .pith file in memory. data must stay valid and
 * unchanged until pith_model_close. Models with external data are refused. Errors are those of
 * pith_model_open. Thread-safe. */
PITH_API pith_status pith_model_open_memory(pith_model **model, const void *data, size_t size,
                                            const pith_open_options *options, pith_error *err);

/* Gives up a reference to the model; NULL is allowed. The model is freed with the last one.
 * pith_model_open gives the caller one and pith_model_share one more; sessions and session pools
 * hold one each while they exist. A call that is running needs one that lasts as long. Thread-safe.
 */
PITH_API void pith_model_close(pith_model *model);
/* Returns the model, with one more reference, which pith_model_close gives up. Thread-safe. */
PITH_API pith_model *pith_model_share(const pith_model *model);

/* Returns the bytes that the model, its sessions and its running calls hold now, without mapped
 * files. *peak, if peak is not NULL, is set to the most they have held so far. Thread-safe. */
PITH_API size_t pith_model_bytes(const pith_model *model, size_t *peak);

/* Frees the buffers that the model and its tokenizer keep for later calls. Call it before the host
 * goes idle. A long pith_embed frees its own buffers already. Thread-safe. */
PITH_API void pith_model_trim(const pith_model *model);

/* A pair of strings. A plain value: it never grows. */
typedef struct pith_metadata {
    const char *key, *value;
} pith_metadata;

/* What the file of a network says of itself. The strings belong to the model; "" is where the
 * file says nothing. A compiled file says what that said from which it was compiled. */
typedef struct pith_model_info {
    size_t size;
    const char *producer, *producer_version; /* the program that wrote it; of a model that is no
                                                ONNX file, its format */
    const char *domain, *doc;                /* doc: the model's doc_string */
    int64_t version;                         /* model_version */
    int64_t ir_version, opset;               /* opset: of ai.onnx, as written; 0: no ONNX file */
    const pith_metadata *metadata; /* [metadata_count]: metadata_props, in the order of the file.
                                      Exported, optimised and quantised models have them too, with
                                      domain, version and doc */
    size_t metadata_count;
} pith_model_info;

#define PITH_MODEL_INFO_INIT PITH_SIZED_INIT(pith_model_info)

/* Fills a struct that was initialised with PITH_MODEL_INFO_INIT. Thread-safe. Errors:
 * PITH_ERR_FORMAT if an entry of the metadata is damaged, which opening does not look at. */
PITH_API pith_status pith_model_report(pith_model_info *info, const pith_model *model,
                                       pith_error *err);

/* Tells which runtime runs the model, and why; report->size must be set. Thread-safe. */
PITH_API pith_status pith_model_runtime(pith_runtime_report *report, const pith_model *model,
                                        pith_error *err);

/* ---- are the fusions right? pith_source_check_fusions (pith/source.h) says ---- */

/* A difference between the model as written and the optimised model. The strings are valid during
 * the callback. */
typedef struct pith_check_finding {
    int32_t level;      /* the optimisation level */
    const char *pass;   /* the first pass that changes a result; "ragged": the graph that runs
                           packed texts */
    const char *node;   /* the first node whose output differs; "?" if no node with a name does */
    const char *output; /* the model's output that differs */
    const char *inputs; /* shapes and kind of mask of the inputs that show the difference */
    double difference;  /* the largest difference divided by the output's largest number; infinite
                           if shapes or NaNs differ */
    double allowed;     /* the largest difference that rounding can explain, in the same unit */
} pith_check_finding;

/* The call context goes for all models that the check opens; log and profile are ignored, progress
 * reports "runs", and open->call.allocator overrides its allocator. */
typedef struct pith_check_options {
    pith_call call;
    const pith_open_options *open; /* NULL: the defaults. Levels 1 to open->optimization are
                                      compared, in f32. */
    uint64_t seed;                 /* the same seed makes the same inputs */
    int32_t runs;                  /* number of inputs per level; 0: 12 */
    /* called at most once per level; may be NULL */
    void (*finding)(void *user, const pith_check_finding *finding);
    void *user; /* passed to finding */
} pith_check_options;

#define PITH_CHECK_OPTIONS_INIT PITH_OPTIONS_INIT(pith_check_options)

/* ---- one file that opens by mapping ---- */

/* Writes the model as one compiled file: the optimised graphs, the weights in the layout of the
 * kernels, the tokenizer and the settings. pith_model_open and pith_model_open_memory open it
 * without the files it was made from. It gives the same bits on every processor, and processes that
 * map it share its pages. docs/architecture.md describes the format. writer->begin gets the
 * size of the file. In call, which may be NULL, the three ways to end it have an effect, and
 * progress, which reports the "bytes" that are written. */
PITH_API pith_status pith_model_save(const pith_model *model, const pith_call *call,
                                     const pith_writer *writer, pith_error *err);

/* Writes several routes of one Router model, each opened by itself, to one file. The first is the
 * file's default route; the others are opened by options.route. Equal weights are kept once.
 * pith_model_save of such a model writes its own route only. Two models of the same route, and more
 * than 8 routes, are PITH_ERR_ARGUMENT. */
PITH_API pith_status pith_model_save_routes(const pith_model *const *models, size_t count,
                                            const pith_call *call, const pith_writer *writer,
                                            pith_error *err);

/* Returns the route of a Router module that the model was opened for; "" if it has no Router. Valid
 * as long as the model. Thread-safe. */
PITH_API const char *pith_model_route(const pith_model *model);
/* The names that options.route may have: those of the routes, and of the tasks that lead to one; a
 * compiled file has those of the routes in it. 0 without a Router. Thread-safe. */
PITH_API size_t pith_model_route_count(const pith_model *model);
/* "" if there is no such name. Valid as long as the model. Thread-safe. */
PITH_API const char *pith_model_route_name(const pith_model *model, size_t index);

/* In the call context, the three ways to end a call and progress ("texts") have an effect. After an
 * early end some weights are rounded, and the model works. */
typedef struct pith_calibrate_options {
    pith_call call;
    const pith_str *texts; /* [text_count] texts like those the model will embed. If there are
                              more than 1,024, evenly spaced ones are used, as many. NULL: texts
                              are made up from the vocabulary, in every script it covers. */
    size_t text_count;
} pith_calibrate_options;

#define PITH_CALIBRATE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_calibrate_options)

/* Re-quantises the int8 weights of a text encoder with GPTQ: rounding errors are moved into
 * directions that real inputs rarely use. This roughly halves the distance to the f32 vectors and
 * costs nothing at run time. Open the model with precision int8, calibrate it, then keep the result
 * with pith_model_save. options may be NULL for the defaults.
 *   - A model of 22 million parameters takes about ten seconds. Larger models take up to 512 MB of
 *     extra memory.
 *   - The same texts give the same weights on every processor.
 *   - No other call on the model may be running.
 *   - After an error the model stays usable; some of its weights may be calibrated and others not.
 *   - A compiled model, or a model without int8 weights, gives PITH_ERR_ARGUMENT. */
PITH_API pith_status pith_model_calibrate(pith_model *model, const pith_calibrate_options *options,
                                          pith_error *err);

/* ---- looking inside ---- */

typedef enum pith_description {
    PITH_DESCRIBE_JSON = 0,  /* one JSON object; docs/cli.md lists its keys. Needs
                                PITH_OPEN_DESCRIBE. */
    PITH_DESCRIBE_NODES = 1, /* the optimised graph as text, one line per node */
    PITH_DESCRIBE_DOT = 2    /* the optimised graph for Graphviz */
} pith_description;

/* Describes an open model in one of these forms. In call, which may be NULL, the three ways to end
 * it have an effect. */
PITH_API pith_status pith_model_describe(const pith_model *model, pith_description form,
                                         const pith_call *call, const pith_writer *writer,
                                         pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

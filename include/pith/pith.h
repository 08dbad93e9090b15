/* pith.h - text to vectors, and any ONNX model, in one small library.
 *
 *     pith_model *model;
 *     pith_error err = PITH_ERROR_INIT;
 *     if (pith_model_open(&model, "all-MiniLM-L6-v2", NULL, &err)) puts(err.message);
 *
 * Rules that hold for every declaration here:
 *   - A function that can fail returns pith_status, 0 is success, and fills the caller's pith_error if one is given.
 *     Outputs come first, inputs follow, the error is last. After a failure every handle stays usable, and outputs are
 *     untouched unless the function says otherwise.
 *   - Option structs begin with their size and are made by their _INIT macro; NULL means the defaults.
 *   - A pith_model is immutable once open and may be used by any number of threads at once.
 *     Every other handle is for one thread at a time.
 *   - The library prints nothing, ends no process, keeps no thread-local state and leaves errno, signals and the
 *     floating point mode of the caller as they were.
 *   - Text is UTF-8 with a length; it may hold NUL bytes.
 */
#ifndef PITH_PITH_H
#define PITH_PITH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PITH_API __attribute__((visibility("default")))
#else
#define PITH_API
#endif

#define PITH_VERSION_MAJOR 0
#define PITH_VERSION_MINOR 1
#define PITH_VERSION_PATCH 0

/* "0.1.0". */
PITH_API const char *pith_version(void);

/* Whether (0, 1) the threads the library makes from now on stay on a processor each, of those the calling thread may
 * use now; the first of these is left to the host's own thread, which is never moved. Off unless asked for: it helps a
 * machine that does nothing else and harms one that is shared. Call before the first model is opened. Thread-safe. */
PITH_API void pith_pin_threads(int32_t pin);

/* ---- status and errors ---- */

typedef enum pith_status {
    PITH_OK = 0,
    PITH_ERR_MEMORY = 1,      /* an allocation failed or a stated limit was reached */
    PITH_ERR_IO = 2,          /* a file could not be opened, read, mapped or written */
    PITH_ERR_FORMAT = 3,      /* a file is damaged or not what its name says */
    PITH_ERR_UNSUPPORTED = 4, /* valid, but this build has no operator, dtype, architecture … for it */
    PITH_ERR_ARGUMENT = 5,    /* the caller's values do not fit: name, dtype, shape, range, encoding */
    PITH_ERR_CANCELLED = 6,   /* the cancel flag was set */
    PITH_ERR_NOT_FOUND = 7,   /* no such file, model, tensor or name */
    PITH_ERR_RUN = 8          /* a model asked for something impossible while it ran (index out of range, …) */
} pith_status;

#define PITH_ERROR_MESSAGE_SIZE 1024

/* The caller's own; the message is one line that names the place and, where possible, what to do. */
typedef struct pith_error {
    pith_status code;
    char message[PITH_ERROR_MESSAGE_SIZE];
} pith_error;

/* clang-format off */
#define PITH_ERROR_INIT { PITH_OK, { 0 } }
/* clang-format on */

/* ---- what a host may replace ---- */

/* alloc returns memory aligned to at least 16 bytes or NULL; free takes what alloc returned. Called from any thread. */
typedef struct pith_allocator {
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *memory);
    void *user;
} pith_allocator;

typedef enum pith_log_level { PITH_LOG_WARNING = 1, PITH_LOG_INFO = 2, PITH_LOG_DEBUG = 3 } pith_log_level;

/* message is one line without newline, valid during the call. Called from the thread that opened or runs the model. */
typedef struct pith_log {
    void (*write)(void *user, pith_log_level level, const char *message);
    void *user;
} pith_log;

/* ---- tensors ---- */

#define PITH_MAX_RANK 12

/* Numbers are those of onnx.TensorProto.DataType; the last two are Pith's own. */
typedef enum pith_dtype {
    PITH_UNDEFINED = 0,
    PITH_F32 = 1,
    PITH_U8 = 2,
    PITH_I8 = 3,
    PITH_U16 = 4,
    PITH_I16 = 5,
    PITH_I32 = 6,
    PITH_I64 = 7,
    PITH_STRING = 8,
    PITH_BOOL = 9,
    PITH_F16 = 10,
    PITH_F64 = 11,
    PITH_U32 = 12,
    PITH_U64 = 13,
    PITH_C64 = 14,
    PITH_C128 = 15,
    PITH_BF16 = 16,
    PITH_F8E4M3FN = 17,
    PITH_F8E4M3FNUZ = 18,
    PITH_F8E5M2 = 19,
    PITH_F8E5M2FNUZ = 20,
    PITH_U4 = 21,
    PITH_I4 = 22,
    PITH_F4E2M1 = 23,
    PITH_F8E8M0 = 24,
    PITH_U2 = 25,
    PITH_I2 = 26,
    PITH_DTYPE_COUNT = 27,
    PITH_SEQUENCE = 32, /* data is pith_tensor[dims[0]], rank 1 */
    PITH_NONE = 33      /* an optional without element: no data, rank 0 */
} pith_dtype;

/* A byte string with a length. */
typedef struct pith_str {
    const char *data;
    size_t size;
} pith_str;

/* A dense row-major array. 4-bit and 2-bit elements are packed, the first in the low bits. Strings: data is pith_str[].
 */
typedef struct pith_tensor {
    void *data;
    size_t bytes;                /* of data */
    int32_t dtype;               /* pith_dtype */
    int32_t rank;                /* 0 for a scalar */
    int64_t dims[PITH_MAX_RANK]; /* the first rank ones count */
} pith_tensor;

/* ---- profiles ---- */

/* What ran when: the steps of runs, each with operator, shapes, kernel, bytes, operations and thread, and the phases
 * around them (open, tokenise, bind, run, pool). One profile may be given to any number of opens, runs and embeds, also
 * to several at the same time in different threads; without one nothing is recorded and nothing is paid for it. It
 * holds copies, so models may be closed before it is written. Beyond a million events only their number is kept. */
typedef struct pith_profile pith_profile;

/* allocator: NULL is malloc and free; copied. */
PITH_API pith_status pith_profile_create(pith_profile **profile, const pith_allocator *allocator, pith_error *err);
/* NULL is allowed. No call that was given the profile may be under way; the same holds for pith_profile_write. */
PITH_API void pith_profile_destroy(pith_profile *profile);
/* The clock of profiles: nanoseconds, monotonic. */
PITH_API uint64_t pith_profile_now(void);
/* Adds a phase of the host's own in the calling thread, from begin_ns to now. profile may be NULL; name is copied. */
PITH_API void pith_profile_phase(pith_profile *profile, const char *name, uint64_t begin_ns);
/* The Chrome trace format (JSON), which Perfetto reads; docs/cli.md lists the keys. write receives it in pieces. */
PITH_API pith_status pith_profile_write(const pith_profile *profile,
                                        void (*write)(void *user, const char *text, size_t size), void *user,
                                        pith_error *err);

/* ---- models ---- */

typedef struct pith_model pith_model;

enum {
    PITH_OPEN_COPY = 1u << 0,          /* read the files instead of mapping them: safe if others truncate them */
    PITH_OPEN_STRICT_SHAPES = 1u << 1, /* declared shapes that contradict what is inferred or given are errors, not
                                          warnings */
    PITH_OPEN_DESCRIBE = 1u << 2,      /* keep what pith_model_describe tells of the file and of the fusions */
    PITH_OPEN_CHECK = 1u << 3          /* compare the optimised model with the model as written on a few made-up inputs,
                                          and leave out passes whose result does not hold, with a warning each; opening
                                          takes several times as long */
};

/* The arithmetic of products by constant matrices (dense layers), which are nearly all of a text encoder's work; wants
 * optimization 2 or 3. With int8 and bf16 attention is in fixed point of 16 bits where all tokens of a text see each
 * other, without a bias; everything else stays f32. */
typedef enum pith_precision {
    PITH_PRECISION_AUTO = 0, /* as the file was compiled for; else f32 */
    PITH_PRECISION_F32 = 1,
    PITH_PRECISION_INT8 = 2, /* weights, activations and tables of looked-up rows in 8 bits; exact sums: the same bits
                                on every CPU */
    PITH_PRECISION_BF16 = 3  /* factors rounded to bf16, sums in f32 as the CPU makes them: the same bits for every
                                batch, order and number of threads, but not from CPU to CPU */
} pith_precision;

typedef struct pith_open_options {
    size_t size;                     /* sizeof(pith_open_options) */
    uint32_t flags;                  /* PITH_OPEN_* */
    int32_t optimization;            /* 0 runs the graph as written; 3 (default) does everything */
    const pith_allocator *allocator; /* NULL: malloc, mmap for large blocks. Copied. */
    const pith_log *log;             /* NULL: silence. Copied. */
    size_t memory_limit;             /* bytes everything made from this handle may hold together, files that are
                                        mapped left out; beyond it calls fail with PITH_ERR_MEMORY; 0: no limit */
    int64_t loop_limit;              /* iterations of one Loop; 0: 2^31 */
    const char *stop_after;          /* the name of the last pass to run, for looking at the graph; NULL: all */
    pith_profile *profile;           /* records the phases of opening; NULL: none. Not kept. */
    const char *const *input_shapes; /* "name=1x3x480x640": the input has this shape, whatever the file declares; */
    size_t input_shape_count;        /* what the file declares of other values is ignored then */
    int32_t precision;               /* pith_precision */
} pith_open_options;

/* clang-format off */
#define PITH_OPEN_OPTIONS_INIT { sizeof(pith_open_options), 0, 3, NULL, NULL, 0, 0, NULL, NULL, NULL, 0, 0 }
/* clang-format on */

/* path: a directory in Hugging Face layout, an .onnx file, a compiled .pith file (known by its first bytes; what it
 * was compiled with stands, options->optimization and precision do not count), or the name of a model in the model
 * cache ($PITH_CACHE, else $XDG_CACHE_HOME/pith, else ~/.cache/pith; never the network). An .onnx beside a
 * tokenizer.json opens as its directory would. The files stay mapped until close and must not be truncated meanwhile
 * (see PITH_OPEN_COPY). */
PITH_API pith_status pith_model_open(pith_model **model, const char *path, const pith_open_options *options,
                                     pith_error *err);

/* The same from an ONNX or compiled file in memory, which must stay valid until close. External data is refused. */
PITH_API pith_status pith_model_open_memory(pith_model **model, const void *data, size_t size,
                                            const pith_open_options *options, pith_error *err);

/* NULL is allowed. No call on the model may be under way. */
PITH_API void pith_model_close(pith_model *model);

/* Bytes the model holds now with its sessions and the calls under way, mapped files left out, and the most so far (peak
 * may be NULL). Thread-safe. */
PITH_API size_t pith_model_bytes(const pith_model *model, size_t *peak);

/* Gives back the buffers kept for the next call of pith_embed. A call that took long against the price of its buffers
 * has given back its own already; this is for a host that expects to be idle. Thread-safe. */
PITH_API void pith_model_trim(const pith_model *model);

/* ---- are the fusions right? ---- */

/* A difference between the model as written and the optimised one. Strings are valid during the call. */
typedef struct pith_check_finding {
    int32_t level;      /* optimisation level */
    const char *pass;   /* the first pass with which results differ; "ragged": the form for packed texts */
    const char *node;   /* the first node whose output differs; "?" if none has a name to compare by */
    const char *output; /* of the model */
    const char *inputs; /* shapes and kind of mask it was found with */
    double difference;  /* largest difference, as a share of the output's largest number; infinite: NaN or shape */
    double allowed;     /* what rounding may explain */
} pith_check_finding;

typedef struct pith_check_options {
    size_t size;
    const pith_open_options *open; /* NULL: the defaults; levels up to its optimization are compared, in f32 */
    uint64_t seed;                 /* of the inputs; the same seed gives the same inputs */
    int32_t runs;                  /* inputs per level; 0: 12 */
    void (*finding)(void *user, const pith_check_finding *finding); /* at most one per level; or NULL */
    void *user;
    const volatile int *cancel; /* set to end the call with PITH_ERR_CANCELLED; or NULL */
} pith_check_options;

/* clang-format off */
#define PITH_CHECK_OPTIONS_INIT { sizeof(pith_check_options), NULL, 0, 0, NULL, NULL, NULL }
/* clang-format on */

/* Runs the model as written and at every optimisation level on made-up inputs of several shapes and masks, texts packed
 * together included, and counts the levels at which results differ by more than rounding. PITH_ERR_UNSUPPORTED: no
 * inputs could be made up that the model takes; PITH_ERR_ARGUMENT: the model is compiled. */
PITH_API pith_status pith_model_check_fusions(size_t *findings, const char *path, const pith_check_options *options,
                                              pith_error *err);

/* ---- one file that opens by mapping ---- */

/* Writes the model as it is run: optimised graphs, weights in the layout of the kernels, tokenizer, settings. The file
 * (docs/architecture.md, compiled models) opens with pith_model_open and pith_model_open_memory, gives the same bits
 * on every processor, needs none of the files it was made from, and its pages are shared by all processes that map it.
 * write gets it piece by piece, in order; not 0 ends the call with PITH_ERR_IO. total: bytes of the whole file. */
PITH_API pith_status pith_model_save(const pith_model *model,
                                     int (*write)(void *user, const void *data, size_t size, uint64_t total),
                                     void *user, pith_error *err);

typedef struct pith_calibrate_options {
    size_t size;
    const pith_str *texts; /* like those the model will meet; of more than 1,024 so many, evenly spread. NULL: texts
                              made of the vocabulary, in every script it has letters of */
    size_t text_count;
    void (*progress)(void *user, size_t done, size_t total); /* now and then, on the calling thread; or NULL */
    void *user;
    const volatile int *cancel; /* set to end the call with PITH_ERR_CANCELLED; or NULL */
} pith_calibrate_options;

/* clang-format off */
#define PITH_CALIBRATE_OPTIONS_INIT { sizeof(pith_calibrate_options), NULL, 0, NULL, NULL, NULL }
/* clang-format on */

/* Rounds the weights of a text encoder opened with precision int8 anew, so that what rounding changes meets least of
 * what texts bring (GPTQ): the distance of vectors to those of f32 about halves, at no cost later. Takes ten seconds
 * for a model of 22 million parameters, and up to 512 MB beside larger ones. The same texts give the same weights on
 * every processor. Keep them by pith_model_save. No other call on the model may be under way. Errors leave the model
 * usable, with some weights rounded anew and others not. PITH_ERR_ARGUMENT: it was compiled, or has no 8-bit products.
 * options: NULL for the defaults. */
PITH_API pith_status pith_model_calibrate(pith_model *model, const pith_calibrate_options *options, pith_error *err);

/* Compares all contents of such a file with the hashes in it; opening only checks its header. */
PITH_API pith_status pith_model_verify(const char *path, pith_error *err);

/* ---- running any graph ---- */

typedef struct pith_port {
    const char *name; /* valid until close */
    int32_t dtype;
    int32_t rank;                /* -1: unknown */
    int64_t dims[PITH_MAX_RANK]; /* -1: free; of an input as declared, others are taken too */
    const char *shape;           /* "[batch, sequence]", "?" if the rank is unknown; valid until close */
    int32_t item_dtype;          /* of a sequence's or optional's tensors; else 0 */
    int32_t optional;            /* 1: an input that may be left out, it has a default */
} pith_port;

PITH_API size_t pith_model_input_count(const pith_model *model);
PITH_API size_t pith_model_output_count(const pith_model *model);
/* index must be below the count. */
PITH_API pith_port pith_model_input(const pith_model *model, size_t index);
PITH_API pith_port pith_model_output(const pith_model *model, size_t index);

/* What a run needs and remembers: activations, shapes seen. One thread at a time; any number per model. */
typedef struct pith_session pith_session;

PITH_API pith_status pith_session_create(pith_session **session, const pith_model *model, pith_error *err);
PITH_API void pith_session_destroy(pith_session *session);

typedef struct pith_run_options {
    size_t size;
    int32_t threads;            /* 0: as many as the machine or the container gives */
    const volatile int *cancel; /* set to non-zero by anyone: the call returns PITH_ERR_CANCELLED soon */
    pith_profile *profile;      /* records steps and phases; NULL: none */
} pith_run_options;

/* clang-format off */
#define PITH_RUN_OPTIONS_INIT { sizeof(pith_run_options), 0, NULL, NULL }
/* clang-format on */

/* names[i] goes with inputs[i]; inputs are only read. The first run that feeds an optional input another value than its
 * default makes a plan of the session's own for it, which takes as long as opening did; later ones use it. Models from
 * compiled files refuse that. outputs has pith_model_output_count places, filled in the model's order; their data
 * belongs to the session and is valid until its next run or its end. */
PITH_API pith_status pith_session_run(pith_session *session, pith_tensor *outputs, const char *const *names,
                                      const pith_tensor *inputs, size_t input_count, const pith_run_options *options,
                                      pith_error *err);

/* One value from a file as the ONNX test folders hold them: a TensorProto, or a SequenceProto (kind PITH_SEQUENCE) or
 * OptionalProto (kind PITH_NONE). tensor and *name (may be NULL; "" if the file gives none) are valid until
 * pith_value_close. */
typedef struct pith_value_file pith_value_file;
PITH_API pith_status pith_value_open(pith_value_file **file, pith_tensor *tensor, const char **name, const char *path,
                                     int32_t kind, pith_error *err);
PITH_API void pith_value_close(pith_value_file *file);

/* ---- looking inside ---- */

typedef enum pith_description {
    PITH_DESCRIBE_JSON = 0, /* one JSON object, its keys are those of docs/cli.md, inspect; PITH_OPEN_DESCRIBE wanted */
    PITH_DESCRIBE_NODES = 1, /* the optimised graph, a line a node */
    PITH_DESCRIBE_DOT = 2    /* the same for Graphviz */
} pith_description;

/* write receives the text in pieces. */
PITH_API pith_status pith_model_describe(const pith_model *model, pith_description form,
                                         void (*write)(void *user, const char *text, size_t size), void *user,
                                         pith_error *err);

/* ---- text to vectors ---- */

typedef enum pith_pooling {
    PITH_POOLING_MODEL = 0, /* as the directory's modules say; mean where nothing is said */
    PITH_POOLING_CLS = 1,
    PITH_POOLING_MEAN = 2,
    PITH_POOLING_MAX = 3,
    PITH_POOLING_LAST = 4
} pith_pooling;

typedef struct pith_embed_stats {
    uint64_t texts;
    uint64_t tokens;        /* real tokens fed to the model */
    uint64_t padded_tokens; /* rows computed that belong to no token; 0 in ragged execution */
    uint64_t truncated;     /* texts cut at max_length */
    uint64_t peak_bytes;    /* most activation memory held at once by this call */
    uint64_t texts_done;    /* set, not added to: how many texts from the first on this call has finished */
} pith_embed_stats;

typedef struct pith_embed_options {
    size_t size;
    int32_t threads;      /* 0: as many as the machine or the container gives */
    int32_t max_length;   /* tokens per text with specials; 0: the model's; never more than its positions */
    int32_t batch_tokens; /* token budget of one chunk; 0: 128 to 512, by L2 and the widest rows */
    int32_t pooling;      /* pith_pooling */
    int32_t normalize;    /* -1: as the modules say; 0 no; 1 L2 */
    int32_t dim;          /* keep the first dim components (before normalisation); 0: all */
    const volatile int *cancel;
    pith_embed_stats *stats; /* added to, not reset; NULL: not wanted */
    const char *prompt_name; /* a prompt of config_sentence_transformers.json; NULL: its default, "": none */
    pith_profile *profile;   /* records steps and phases; NULL: none */
} pith_embed_options;

/* clang-format off */
#define PITH_EMBED_OPTIONS_INIT { sizeof(pith_embed_options), 0, 0, 0, 0, -1, 0, NULL, NULL, NULL, NULL }
/* clang-format on */

/* Components of one vector under these options; 0 if the model cannot embed text. */
PITH_API size_t pith_embed_dim(const pith_model *model, const pith_embed_options *options);

/* Tokens, specials included, that a text is cut at under these options; 0: never. */
PITH_API size_t pith_embed_max_length(const pith_model *model, const pith_embed_options *options);

/* Writes count rows of pith_embed_dim floats. A text's vector does not depend on the other texts, the number of
 * threads or the CPU. The empty text is a valid text. Invalid UTF-8: PITH_ERR_ARGUMENT naming the text's index. After
 * an error the first stats->texts_done rows are complete, and the contents of the others are unspecified. */
PITH_API pith_status pith_embed(float *vectors, const pith_model *model, const pith_str *texts, size_t count,
                                const pith_embed_options *options, pith_error *err);

/* ---- tokens ---- */

typedef struct pith_tokenizer pith_tokenizer;

/* path: a directory with tokenizer files, a tokenizer.json, a compiled model, or a name in the cache. Immutable,
 * shared by threads. */
PITH_API pith_status pith_tokenizer_open(pith_tokenizer **tokenizer, const char *path, const pith_open_options *options,
                                         pith_error *err);
PITH_API void pith_tokenizer_close(pith_tokenizer *tokenizer);
/* The tokens an embedder cuts texts at, as the files beside the tokenizer say; 0 if they say nothing. path: what the
 * tokenizer was opened with. */
PITH_API pith_status pith_tokenizer_limit(int32_t *tokens, const pith_tokenizer *tokenizer, const char *path,
                                          pith_error *err);
/* The model's own, or NULL; belongs to the model. */
PITH_API const pith_tokenizer *pith_model_tokenizer(const pith_model *model);

/* What pith_tokenize fills. Reuse it to avoid allocation; begin with PITH_TOKENS_INIT. Special tokens and padding come
 * from no text: their offsets are 0, 0, their word and sequence -1. */
typedef struct pith_tokens {
    size_t size;
    int32_t *ids;          /* [count] */
    int32_t *type_ids;     /* [count] what a model with segments is fed: 0, or 1 for the second text */
    uint32_t *begin, *end; /* [count] where in its text the token came from, in bytes or characters */
    int32_t *word_ids;     /* [count] index of the pre-token in its text */
    uint32_t *windows;     /* [count] the window the token is in: 0, more only with overflow */
    int8_t *sequence_ids;  /* [count] 0 the text, 1 its pair */
    uint8_t *special;      /* [count] 1 where a post-processor put the token, or padding */
    uint8_t *attention;    /* [count] 0 where it is padding */
    size_t count, capacity;
    int32_t truncated; /* texts of which tokens were cut off */
} pith_tokens;

/* clang-format off */
#define PITH_TOKENS_INIT \
    { sizeof(pith_tokens), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0 }
/* clang-format on */

/* Which of two texts is cut: the longer one at each token, or always the same one. */
typedef enum pith_cut { PITH_CUT_LONGEST = 0, PITH_CUT_FIRST = 1, PITH_CUT_SECOND = 2 } pith_cut;

typedef struct pith_tokenize_options {
    size_t size;
    int32_t max_length;  /* specials included; 0: no truncation */
    int32_t no_specials; /* 1: the post-processor's tokens are left out */
    int32_t raw;         /* 1: apply the file's own padding, and its truncation where max_length is 0 */
    int32_t no_offsets;  /* 1: begin and end are not wanted and have no meaning */
    int32_t characters;  /* 1: begin and end count code points instead of bytes */
    int32_t cut;         /* pith_cut */
    int32_t left;        /* 1: a text loses its beginning rather than its end */
    int32_t overflow;    /* 1: what is cut off follows in further windows, framed like the first */
    int32_t stride;      /* tokens of a text that a window repeats of the one before; less than it holds of the text */
    int32_t threads;     /* of a batch; 0: as many as the machine or the container gives */
} pith_tokenize_options;

/* clang-format off */
#define PITH_TOKENIZE_OPTIONS_INIT { sizeof(pith_tokenize_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* One text, or a text and its pair (NULL: none), as rerankers take them. */
PITH_API pith_status pith_tokenize(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text,
                                   const pith_str *pair, const pith_tokenize_options *options, pith_error *err);

/* count texts, with pairs[i] each if pairs is not NULL, one behind the other in tokens, text i ending before token
 * ends[i]. The result is the same for any number of threads. A failure names the first text that has one. */
PITH_API pith_status pith_tokenize_batch(pith_tokens *tokens, size_t *ends, const pith_tokenizer *tokenizer,
                                         const pith_str *texts, const pith_str *pairs, size_t count,
                                         const pith_tokenize_options *options, pith_error *err);
PITH_API void pith_tokens_free(pith_tokens *tokens);

/* How the vocabulary spells a token; data is NULL if there is no such id. Valid until close. */
PITH_API pith_str pith_token_text(const pith_tokenizer *tokenizer, int32_t id);

/* The text of ids as the tokenizer's decoder writes it; skip_specials: 1 leaves out special tokens. *text is followed
 * by a NUL and freed with pith_text_free. An id that is no token is PITH_ERR_ARGUMENT naming it. */
PITH_API pith_status pith_detokenize(char **text, size_t *size, const pith_tokenizer *tokenizer, const int32_t *ids,
                                     size_t count, int32_t skip_specials, pith_error *err);
PITH_API void pith_text_free(const pith_tokenizer *tokenizer, char *text);

/* The same, id by id. What is given never ends in the middle of a character: text is held back until it is whole. */
typedef struct pith_text_stream pith_text_stream;

PITH_API pith_status pith_text_stream_create(pith_text_stream **stream, const pith_tokenizer *tokenizer,
                                             int32_t skip_specials, pith_error *err);
PITH_API void pith_text_stream_destroy(pith_text_stream *stream);
/* text: what is new, often empty; valid until the next call on the stream. */
PITH_API pith_status pith_text_stream_push(pith_text_stream *stream, pith_str *text, int32_t id, pith_error *err);
/* What was held back, as it is; the stream is as new afterwards. */
PITH_API pith_status pith_text_stream_finish(pith_text_stream *stream, pith_str *text, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

/* model.h - opening a model from a directory, an ONNX file, a compiled file or memory; checking, compiling and
 * describing it. */
#ifndef PITH_MODEL_H
#define PITH_MODEL_H

#include "pith/types.h"
#include "pith/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif

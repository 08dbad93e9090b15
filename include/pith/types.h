/* types.h - the types that all other headers use: status and error, allocator, log, tensor. */
#ifndef PITH_TYPES_H
#define PITH_TYPES_H

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
#define PITH_VERSION_MINOR 2
#define PITH_VERSION_PATCH 0

/* Returns the version, such as "0.2.0". Valid as long as the process. Thread-safe. */
PITH_API const char *pith_version(void);

/* ---- status and errors ---- */

typedef enum pith_status {
    PITH_OK = 0,
    PITH_ERR_MEMORY = 1,      /* an allocation failed, or the memory limit was reached */
    PITH_ERR_IO = 2,          /* a file could not be opened, read, mapped or written */
    PITH_ERR_FORMAT = 3,      /* a file is damaged or is not of the format its name says */
    PITH_ERR_UNSUPPORTED = 4, /* valid, but this build lacks an operator, dtype or architecture for
                                 it */
    PITH_ERR_ARGUMENT = 5,    /* a value from the caller has the wrong name, dtype, shape, range or
                                 encoding */
    PITH_ERR_CANCELLED = 6,   /* the cancel flag was set, or the stop function said so */
    PITH_ERR_NOT_FOUND = 7,   /* a file, model, tensor or name does not exist */
    PITH_ERR_RUN = 8,         /* a node could not compute its result, such as an index out of
                                 range */
    PITH_ERR_BUSY = 9,        /* what the call needs is in use, and did not become free in the time
                                 given */
    PITH_ERR_DEADLINE = 10    /* the deadline passed before the call was done */
} pith_status;

#define PITH_ERROR_MESSAGE_SIZE 1024

/* An error, owned by the caller. The message is one line that says what is wrong, where, and what
 * to do. It ends with a NUL. */
typedef struct pith_error {
    pith_status code;
    char message[PITH_ERROR_MESSAGE_SIZE];
} pith_error;

/* clang-format off */
#define PITH_ERROR_INIT { PITH_OK, { 0 } }
/* clang-format on */

/* ---- what a host may replace ---- */

/* alloc returns memory aligned to at least 16 bytes, or NULL if there is none. free gets what
 * alloc returned. Both are called from any thread, also at the same time. user is passed to
 * both. */
typedef struct pith_allocator {
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *memory);
    void *user;
} pith_allocator;

typedef enum pith_log_level {
    PITH_LOG_WARNING = 1,
    PITH_LOG_INFO = 2,
    PITH_LOG_DEBUG = 3
} pith_log_level;

/* write receives one line without a newline, which is valid during the call. It is called on the
 * thread that opens or runs the model. user is passed to it. */
typedef struct pith_log {
    void (*write)(void *user, pith_log_level level, const char *message);
    void *user;
} pith_log;

/* ---- tensors ---- */

#define PITH_MAX_RANK 12

/* Element types. The values are those of onnx.TensorProto.DataType; PITH_SEQUENCE and those behind
 * it are Pith's own. */
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
    PITH_SEQUENCE = 32, /* a sequence: rank 1, data is pith_tensor[dims[0]] */
    PITH_NONE = 33,     /* an optional without an element: rank 0, no data */
    /* Maps to float32, as the item_dtype of a port and as the kind of a value file. The value of a
     * map is a sequence of two tensors [n], its keys and its values; that of a sequence of maps a
     * sequence of such sequences. */
    PITH_MAP_I64 = 34,   /* keys are int64 */
    PITH_MAP_STRING = 35 /* keys are strings */
} pith_dtype;

/* The arithmetic of matmuls with constant weights (dense layers), which are nearly all of a text
 * encoder's work. int8 and bf16 need optimization 2 or 3. With them, attention runs in 16-bit fixed
 * point if it has no bias and every token of a text attends to every other; everything else stays
 * f32. */
typedef enum pith_precision {
    PITH_PRECISION_AUTO = 0, /* f32, or the precision that a .pith file was compiled for */
    PITH_PRECISION_F32 = 1,
    PITH_PRECISION_INT8 = 2, /* weights, activations and embedding tables in 8 bits. Sums are exact,
                                so every CPU gives the same bits. */
    PITH_PRECISION_BF16 = 3  /* factors rounded to bf16, sums in f32. The bits do not depend on the
                                batch, the order of texts or the number of threads, but they do
                                depend on the CPU. */
} pith_precision;

/* Whether something is done that the model's files have a say in. */
typedef enum pith_choice {
    PITH_CHOICE_MODEL = 0, /* what the model's files say */
    PITH_CHOICE_YES = 1,
    PITH_CHOICE_NO = -1
} pith_choice;

/* A string of size bytes. It need not end with a NUL. */
typedef struct pith_str {
    const char *data;
    size_t size;
} pith_str;

/* Returns the length of the longest beginning of a text that is valid UTF-8 (RFC 3629) and ends
 * between characters. It is text.size if all of the text is valid, which functions that read texts
 * demand. Thread-safe. */
PITH_API size_t pith_text_valid(pith_str text);

/* A dense row-major array. 4-bit and 2-bit elements are packed, the first one in the low bits of a
 * byte. For PITH_STRING, data is pith_str[]. A plain value: it never grows. Set what you do not use
 * to zeros: tensors of runs may lie in the memory of a device, all others lie in the host's. */
typedef struct pith_tensor {
    void *data;
    size_t bytes;                /* size of data */
    int32_t dtype;               /* a pith_dtype */
    int32_t rank;                /* 0 for a scalar */
    int64_t dims[PITH_MAX_RANK]; /* the sizes; only the first rank of them have a meaning */
    int32_t device; /* 0: data is host memory; n: it is memory of the n-th device, counted from 1,
                       of the list that the model was opened with (pith_open_options.devices) */
    void *stream;   /* with a device: its kind's stream (for CUDA a CUstream). An input's data is
                       ready when the stream gets there; for an output the call may return before,
                       and data is ready when the stream gets there. NULL: it is ready when the call
                       begins, or returns */
} pith_tensor;

#ifdef __cplusplus
}
#endif

#endif

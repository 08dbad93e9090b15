/* types.h - what every other header of Pith uses: status and error, allocator, log, tensor. */
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

#ifdef __cplusplus
}
#endif

#endif

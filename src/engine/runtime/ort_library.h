/* ort_library.h - the library of ONNX Runtime: where it is searched, loading it, and the functions
 * that it has.
 *
 * These declarations are Pith's own; ort_slots.def lists the functions. A library is loaded once
 * per process and never unloaded: its threads may be running. */
#ifndef PITH_ENGINE_RUNTIME_ORT_LIBRARY_H
#define PITH_ENGINE_RUNTIME_ORT_LIBRARY_H

#include <stdbool.h>

#include "base/log.h"
#include "base/memory/memory.h"
#include "pith/runtime.h"

typedef struct ort_status ort_status;
typedef struct ort_env ort_env;
typedef struct ort_session ort_session;
typedef struct ort_session_options ort_session_options;
typedef struct ort_run_options ort_run_options;
typedef struct ort_value ort_value;
typedef struct ort_shape ort_shape;
typedef struct ort_allocator ort_allocator;
typedef struct ort_memory_info ort_memory_info;
typedef struct ort_cuda_options ort_cuda_options;
typedef struct ort_tensorrt_options ort_tensorrt_options;
typedef void ort_log_fn(void *user, int level, const char *category, const char *id,
                        const char *place, const char *message);

/* Levels of the library's log, and of its optimiser. */
enum {
    ORT_LOG_ERROR = 3,
    ORT_OPTIMIZE_NONE = 0,
    ORT_OPTIMIZE_BASIC = 1,
    ORT_OPTIMIZE_EXTENDED = 2,
    ORT_OPTIMIZE_ALL = 99
};
/* Of memory: the library's default allocators, on the host. */
enum { ORT_ALLOCATOR_DEVICE = 0, ORT_MEMORY_DEFAULT = 0 };

#define SLOT(index, name, since, result, parameters) typedef result ort_fn_##name parameters;
#include "engine/runtime/ort_slots.def"
#undef SLOT

/* What OrtGetApiBase returns. */
typedef struct ort_base {
    const void *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
} ort_base;

/* The version of the interface that has the functions every session needs, and the one that has all
 * of the list. */
enum { ORT_API_NEEDED = 5, ORT_API_ALL = 12 };

typedef struct pith__ort {
    const char *path, *version;
    const ort_base *base;
    uint32_t api; /* version of the interface that the library gave; functions of later ones are
                     NULL */
    ort_env *env;
    ort_memory_info *host;
    ort_allocator *allocator; /* of names */
#define SLOT(index, name, since, result, parameters) ort_fn_##name *name;
#include "engine/runtime/ort_slots.def"
#undef SLOT
    struct pith__ort *next;
} pith__ort;

/* Finds and loads the library. PITH_ERR_NOT_FOUND: there is none; PITH_ERR_UNSUPPORTED: what was
 * found cannot be used. The message names the paths that were tried and what the loader said.
 * Thread-safe. */
pith_status pith__ort_load(const pith__ort **ort, const pith_runtime_options *options,
                           pith_error *err);

/* Turns a status of the library into an error ("what: the library's message") and releases it; NULL
 * is PITH_OK. */
pith_status pith__ort_check(const pith__ort *ort, ort_status *status, const char *what,
                            pith_error *err);

#endif

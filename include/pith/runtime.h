/* runtime.h - which engine runs a model: Pith's own, or ONNX Runtime where its library is found at
 * run time.
 *
 * pith_open_options.runtime names the engine:
 *   - "builtin", or NULL: Pith's own.
 *   - "ort": ONNX Runtime. It runs the .onnx file as it is written, on its own threads.
 *   - "auto": Pith's own, and ONNX Runtime for a model with an operator or a type that Pith lacks.
 * The library of ONNX Runtime is loaded with dlopen when the first model asks for it, and stays
 * loaded. It is not loaded in a program that runs with the rights of another user (set-uid). If it
 * is missing or cannot be used, or cannot run the model, the log gets one warning and the builtin
 * engine runs the model; with `strict` opening fails. */
#ifndef PITH_RUNTIME_H
#define PITH_RUNTIME_H

#include "pith/call.h"
#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How ONNX Runtime is found and set up. Strings and arrays are copied when the model is opened. */
typedef struct pith_runtime_options {
    size_t size;
    int32_t strict;          /* 1: opening fails where it would fall back to the builtin engine */
    const char *ort_library; /* the library's path. NULL: it is searched in the program's folder, in
                                ort_python, and where the loader looks; never in the working
                                directory */
    const char *ort_python;  /* a Python environment, or a folder with packages, that has the
                                package onnxruntime; NULL: none */
    int32_t ort_optimization; /* 0: ONNX Runtime's default (all); 1: none, 2: basic, 3: extended, 4:
                                 all */
    int32_t ort_threads;      /* threads of the session that opening makes, at most 512; 0: all CPUs
                                 the process may use. A run that asks for another number makes a
                                 session of its own, which the model keeps. */
    const char *const *providers; /* [provider_count] execution providers in the order of
                                     preference, each with its settings: "cuda",
                                     "cuda:device_id=0,gpu_mem_limit=1000000000", "cpu". One that
                                     the library lacks is skipped with a warning; without any
                                     left, ONNX Runtime is treated as unusable. Steps of no provider
                                     run on the CPU. */
    size_t provider_count;
    const char *const *settings; /* [setting_count] entries of the session's configuration:
                                    "key=value" */
    size_t setting_count;
    const char *ort_profile; /* ONNX Runtime writes its own profile to this path, with a time and
                                ".json" behind it; NULL: none */
} pith_runtime_options;

#define PITH_RUNTIME_OPTIONS_INIT PITH_SIZED_INIT(pith_runtime_options)

/* Which engine an open model runs on. The strings belong to the model and are valid until it is
 * closed. */
typedef struct pith_runtime_report {
    size_t size;
    const char *name;      /* "builtin" or "ort" */
    const char *requested; /* what the options named: "builtin", "ort" or "auto" */
    int32_t fallback;      /* 1: ort was asked for, and builtin runs the model */
    const char *reason;    /* why name is not what was requested, or why auto took ort; "" if there
                              is nothing to say */
    const char *library;   /* path of the library of ONNX Runtime; "" without it */
    const char *version;   /* its version, such as "1.32.0"; "" without it */
    const char *providers; /* the providers that were set up, with commas; "cpu" if none was named;
                              "" without ort */
} pith_runtime_report;

#define PITH_RUNTIME_REPORT_INIT PITH_SIZED_INIT(pith_runtime_report)

#ifdef __cplusplus
}
#endif

#endif

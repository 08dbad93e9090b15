/* build.h - what this build of the library has, and what it could load. */
#ifndef PITH_BUILD_H
#define PITH_BUILD_H

#include "pith/call.h"
#include "pith/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The strings live as long as the process. Lists have spaces between their words. */
typedef struct pith_build_info {
    size_t size;
    const char *compiler;        /* name and version of the compiler that built the library */
    const char *runtimes;        /* engines that run models, for pith_open_options.runtime */
    const char *backends;        /* what the builtin engine can place operators on */
    const char *images;          /* formats of pictures that can be decoded, such as "JPEG PNG
                                    JPEG2000"; "": none */
    const char *images_missing;  /* why other formats cannot be; "": all can */
    const char *extra_operators; /* operators beyond Pith's own, from PITH_EXTRA_OPS:
                                    "example::Twice" */
} pith_build_info;

#define PITH_BUILD_INFO_INIT PITH_SIZED_INIT(pith_build_info)

/* Fills a struct that was initialised with PITH_BUILD_INFO_INIT. The first call loads
 * libpith_image.so, if it is there; the answer stays the same for the life of the process.
 * Thread-safe. Error: PITH_ERR_ARGUMENT if the struct has no size. */
PITH_API pith_status pith_build_report(pith_build_info *info, pith_error *err);

/* Fills a report that was initialised with PITH_RUNTIME_REPORT_INIT with what is known of a runtime
 * before a model is opened: name, and of ONNX Runtime library and version. The library is searched
 * and loaded as pith_model_open does with these options (NULL: the defaults), and stays loaded. The
 * strings live as long as the process. Thread-safe. Errors: PITH_ERR_ARGUMENT: this build has no
 * such runtime, or a struct has no size; PITH_ERR_NOT_FOUND: its library is not there, and the
 * message names the places that were tried; PITH_ERR_UNSUPPORTED: the library cannot be used. */
PITH_API pith_status pith_runtime_probe(pith_runtime_report *report, const char *runtime,
                                        const pith_runtime_options *options, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

/* source.h - a model that has been found and identified, and not yet planned: what opens it, and
 * what checks, converts or rewrites it, starts from here.
 *
 *     pith_source *source;
 *     if (pith_source_open(&source, "all-MiniLM-L6-v2", NULL, &err)) puts(err.message);
 *     if (pith_source_export(source, NULL, &writer, NULL, NULL, &err)) puts(err.message);
 *     if (pith_model_open_source(&model, source, NULL, &err)) puts(err.message);
 *     pith_source_close(source);
 *
 * pith_source_export is in pith/export.h; pith_source_quantize, pith_source_optimize and
 * pith_source_convert are in pith/transform.h.
 *
 * A source does not change once it is open, and any number of threads may use it at once. Files
 * that are replaced, added or removed later have no effect on it: it keeps them mapped, or has read
 * them with PITH_OPEN_COPY. Mapped files must not be truncated or written over in place. */
#ifndef PITH_SOURCE_H
#define PITH_SOURCE_H

#include "pith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pith_source pith_source;

enum {
    PITH_SOURCE_FILE = 1u << 16 /* path is that of a file, and no directory or name of the model
                                   cache: for files of any contents that pith_source_verify and
                                   pith_source_convert need */
};

/* In the context, progress reports "files" (of the directory, with folders as one), the three ways
 * to end a call have an effect, and the allocator is that of the source. Warnings come from the
 * calls on the source. */
typedef struct pith_source_options {
    pith_call call;
    uint32_t flags;         /* PITH_OPEN_COPY and PITH_SOURCE_FILE, or 0. With PITH_OPEN_COPY the
                               network's file and all others of up to 16 MiB are read; of others
                               the size and the time are noted, and the first call that needs one
                               reads it: it is PITH_ERR_IO if the file is gone or has changed */
    const char *model_file; /* as in pith_open_options; copied */
    const char *route;      /* as in pith_open_options; copied */
    size_t memory_limit;    /* bytes that the source may hold, and that each call on it may hold;
                               0: no limit. Without mapped files */
    const struct pith_operator_set *operators; /* operators that all calls on the source know
                                    (pith/op.h), models opened from it included unless they are
                                    given others; the source holds a reference to the set. NULL:
                                    none */
} pith_source_options;

#define PITH_SOURCE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_source_options)

/* Finds a model, as pith_model_open does, and opens its files: those of its directory, three
 * folders deep and at most 4,096, and external data of an ONNX file. Files elsewhere, such as the
 * base model of an adapter, are opened and kept by the first call that needs them. Calls on the
 * source report faults in the contents of a file. The caller owns *source.
 * Thread-safe. */
PITH_API pith_status pith_source_open(pith_source **source, const char *path,
                                      const pith_source_options *options, pith_error *err);
/* The same of data, the bytes of an .onnx, .gguf or .pith file, which must stay valid and unchanged
 * until the source and all models opened from it are closed. options->model_file must be NULL, and
 * flags have no effect. Thread-safe. */
PITH_API pith_status pith_source_open_memory(pith_source **source, const void *data, size_t size,
                                             const pith_source_options *options, pith_error *err);
/* NULL is allowed. No call on the source may be running. Models that were opened from the source
 * keep what they need of it. */
PITH_API void pith_source_close(pith_source *source);

/* What a source is. The strings live as long as the source. */
typedef struct pith_source_info {
    size_t size;
    const char *format; /* "onnx", "text" (of ONNX), "pith", "safetensors", "torch", "gguf"; "" of
                           PITH_SOURCE_FILE */
    const char *path;   /* of the directory or file; "" in memory */
    const char *file;   /* of the network or its weights, below path; "" if path is the file, or
                           several files build the network */
    uint64_t bytes;     /* of all files that are mapped or read, or in memory */
    int32_t directory;  /* 1: path is a directory */
} pith_source_info;

#define PITH_SOURCE_INFO_INIT PITH_SIZED_INIT(pith_source_info)

/* Error: PITH_ERR_ARGUMENT if info has no size. Thread-safe. */
PITH_API pith_status pith_source_report(pith_source_info *info, const pith_source *source,
                                        pith_error *err);

/* As pith_model_open. options->model_file and options->route must be NULL: those of the source
 * hold. options->memory_limit 0 is that of the source, and PITH_OPEN_COPY has no effect.
 * Thread-safe. */
PITH_API pith_status pith_model_open_source(pith_model **model, const pith_source *source,
                                            const pith_open_options *options, pith_error *err);

/* Runs the model as written and at every optimisation level on the same made-up inputs, with
 * several shapes and masks and with packed texts. Sets *findings to the number of levels whose
 * results differ by more than rounding. options->open is as in pith_model_open_source. Returns
 * PITH_ERR_UNSUPPORTED if no inputs can be made up that the model accepts, PITH_ERR_ARGUMENT for a
 * compiled model. Thread-safe. */
PITH_API pith_status pith_source_check_fusions(size_t *findings, const pith_source *source,
                                               const pith_check_options *options, pith_error *err);

/* Compares all bytes of a compiled file with the hashes stored in it. Opening a file checks its
 * header only. A damaged file gives PITH_ERR_FORMAT, and the message names the section. In the
 * context, which may be NULL, progress reports "bytes", and the three ways to end a call have an
 * effect. Thread-safe. */
PITH_API pith_status pith_source_verify(const pith_source *source, const pith_call *call,
                                        pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

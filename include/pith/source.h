/* source.h - a model that has been found and identified, and not yet planned: what opens it, and
 * what rewrites it, starts from here.
 *
 *     pith_source *source;
 *     if (pith_source_open(&source, "all-MiniLM-L6-v2", NULL, &err)) puts(err.message);
 *     if (pith_source_export(source, NULL, &writer, NULL, NULL, &err)) puts(err.message);
 *     if (pith_model_open_source(&model, source, NULL, &err)) puts(err.message);
 *     pith_source_close(source);
 *
 * A source does not change once it is open, and any number of threads may use it at once. Its files
 * stay mapped. Everything here can be stopped, tells its progress and keeps to the memory limit. */
#ifndef PITH_SOURCE_H
#define PITH_SOURCE_H

#include "pith/export.h"
#include "pith/model.h"
#include "pith/transform.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pith_source pith_source;

typedef struct pith_source_options {
    pith_call call;
    uint32_t flags;         /* PITH_OPEN_COPY, or 0 */
    const char *model_file; /* as in pith_open_options */
    const char *route;      /* as in pith_open_options */
    size_t memory_limit;    /* bytes that each call on the source may hold; 0: no limit */
} pith_source_options;

#define PITH_SOURCE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_source_options)

/* Finds a model, as pith_model_open does, and opens its files. The caller owns *source. */
PITH_API pith_status pith_source_open(pith_source **source, const char *path,
                                      const pith_source_options *options, pith_error *err);
/* The bytes of an .onnx or .pith file, which must stay valid and unchanged until the source and all
 * models opened from it are closed. */
PITH_API pith_status pith_source_open_memory(pith_source **source, const void *data, size_t size,
                                             const pith_source_options *options, pith_error *err);
/* NULL is allowed. Models that were opened from the source keep what they need of it. */
PITH_API void pith_source_close(pith_source *source);

/* What a source is. The strings live as long as the source. */
typedef struct pith_source_info {
    size_t size;
    const char *format; /* "onnx", "pith", "safetensors", "torch", "gguf" */
    const char *path;   /* of the directory or file; "" in memory */
    const char *file;   /* of the network or its weights, below path; "" if path is the file */
    const char *family; /* the architecture that config.json names, such as "bert"; "" */
    uint64_t bytes;     /* of all files of the network */
    int32_t tokenizer;  /* 1: there is one */
} pith_source_info;

#define PITH_SOURCE_INFO_INIT PITH_SIZED_INIT(pith_source_info)

PITH_API pith_status pith_source_report(pith_source_info *info, const pith_source *source,
                                        pith_error *err);

/* As pith_model_open. options->model_file and options->route must be NULL: those of the source
 * hold. */
PITH_API pith_status pith_model_open_source(pith_model **model, const pith_source *source,
                                            const pith_open_options *options, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

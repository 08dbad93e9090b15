/* session.h - running any graph: the ports of a model, sessions, and values in files. */
#ifndef PITH_SESSION_H
#define PITH_SESSION_H

#include "pith/types.h"
#include "pith/profile.h"
#include "pith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif

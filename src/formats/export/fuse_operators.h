/* fuse_operators.h - a model's graph with its operators fused to those of other engines. */
#ifndef PITH_FORMATS_EXPORT_FUSE_OPERATORS_H
#define PITH_FORMATS_EXPORT_FUSE_OPERATORS_H

#include "formats/export/replace_pith_ops.h"
#include "models/model.h"

/* What may be made. */
typedef enum pith__fused_kind {
    PITH_FUSED_STANDARD, /* operators of ai.onnx */
    PITH_FUSED_FAST,     /* and those of com.microsoft that are faster on a CPU */
    PITH_FUSED_GPU,      /* and SkipLayerNormalization */
    PITH_FUSED_ALL       /* all that ONNX Runtime's own optimiser makes */
} pith__fused_kind;

enum { PITH_FUSED_TRIES = 4 };

/* Passes that are left out, since what they made could not be written, with the reasons. Begins as
 * zeros. */
typedef struct pith__fused {
    pith__fused_kind kind;
    int level;
    pith__report lines; /* of the last try, in the model's arena */
    const char *failed[PITH_FUSED_TRIES];
    char why[PITH_FUSED_TRIES][PITH_ERROR_MESSAGE_SIZE];
    int failures;
} pith__fused;

/* Runs the passes on model->graph. If what they made cannot be written
 * (formats/export/replace_pith_ops.h), *again is set: the model must be opened once more and tried
 * again, without the passes that are listed by then. The graph is unspecified then. */
pith_status pith__fused_run(pith__fused *f, pith_model *model, bool *again, pith_error *err);
/* Writes back what was fused. */
pith_status pith__fused_write_back(const pith__fused *f, pith__graph *graph, int32_t opset,
                                   pith_error *err);
/* Tells of every fusion, and of what was nearly one. Returns the number of fusions. */
uint64_t pith__fused_tell(const pith__fused *f,
                          void (*tell)(void *user, int32_t done, const char *what,
                                       const char *text),
                          void *user);

#endif

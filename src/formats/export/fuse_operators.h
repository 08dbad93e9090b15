/* fuse_operators.h - a model's graph with its operators fused to those of other engines. */
#ifndef PITH_FORMATS_EXPORT_FUSE_OPERATORS_H
#define PITH_FORMATS_EXPORT_FUSE_OPERATORS_H

#include "formats/export/replace_pith_ops.h"
#include "models/model.h"

/* What may be made. */
typedef enum pith__fuse_kind {
    PITH_FUSE_STANDARD, /* operators of ai.onnx */
    PITH_FUSE_FAST,     /* and those of com.microsoft that are faster on a CPU */
    PITH_FUSE_GPU,      /* and SkipLayerNormalization */
    PITH_FUSE_ALL       /* all that ONNX Runtime's own optimiser makes */
} pith__fuse_kind;

enum { PITH_FUSE_TRIES = 4 };

/* Passes that are left out, since what they made could not be written, with the reasons. Begins as
 * zeros. */
typedef struct pith__fuse_state {
    pith__fuse_kind kind;
    int level;
    pith__report lines; /* of the last try, in the model's arena */
    const char *failed[PITH_FUSE_TRIES];
    char why[PITH_FUSE_TRIES][PITH_ERROR_MESSAGE_SIZE];
    int failures;
} pith__fuse_state;

/* Runs the passes on model->graph. If what they made cannot be written
 * (formats/export/replace_pith_ops.h), *again is set: the model must be opened once more and tried
 * again, without the passes that are listed by then. The graph is unspecified then. */
pith_status pith__fuse_operators(pith__fuse_state *f, pith_model *model, bool *again,
                                 pith_error *err);
/* Writes back what was fused. */
pith_status pith__fuse_write_back(const pith__fuse_state *f, pith__graph *graph, int32_t opset,
                                  pith_error *err);
/* Tells of every fusion, and of what was nearly one. Returns the number of fusions. */
uint64_t pith__fuse_tell(const pith__fuse_state *f,
                         void (*tell)(void *user, int32_t done, const char *what, const char *text),
                         void *user);

#endif

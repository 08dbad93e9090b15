/* older_opset.h - rewrites nodes into the operators of an older opset. */
#ifndef PITH_FORMATS_EXPORT_OLDER_OPSET_H
#define PITH_FORMATS_EXPORT_OLDER_OPSET_H

#include "engine/graph/graph.h"

/* The oldest opset that is written: older ones lack LayerNormalization. */
#define PITH_EXPORT_OPSET_LEAST 17

/* Rewrites the nodes of ai.onnx whose form is newer than the opset. Types are inferred, and must be
 * inferred again after this. PITH_ERR_UNSUPPORTED names the nodes' first operator that has no older
 * form. */
pith_status pith__older_opset(pith__graph *graph, int32_t opset, pith_error *err);

/* The last step: reductions get their axes as an attribute where the opset wants it. Types cannot
 * be inferred any more. */
pith_status pith__older_opset_axes(pith__graph *graph, int32_t opset, pith_error *err);

/* Which opsets may be written. */
typedef struct pith__opset_choice {
    int32_t given;       /* this one only; 0: the oldest from `least` to `most` */
    int32_t least, most; /* at least PITH_EXPORT_OPSET_LEAST */
} pith__opset_choice;

/* Sets *opset to one in which all nodes may stand, once pith__older_opset and
 * pith__older_opset_axes have run for it: operators, attributes, numbers of inputs and outputs,
 * and types (formats/export/opset_rules.h). Types are inferred. Names of modes become those of that
 * opset. PITH_ERR_UNSUPPORTED names the first node that has no place in the opset that is given, or
 * in the last one. */
pith_status pith__older_opset_choose(int32_t *opset, const pith__graph *graph,
                                     const pith__opset_choice *choice, pith_error *err);

#endif

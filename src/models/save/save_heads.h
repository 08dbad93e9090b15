/* save_heads.h - the section "heads" of a compiled file: one graph for packed texts with every
 * output that a head reads. The graph of a view is what some of these outputs need of it. */
#ifndef PITH_MODELS_SAVE_SAVE_HEADS_H
#define PITH_MODELS_SAVE_SAVE_HEADS_H

#include "formats/compiled/constant_spans.h"
#include "formats/compiled/wire_bytes.h"
#include "models/model.h"

/* Writes nothing if no head reads more than the output of dense vectors. *program holds what the
 * weights point to. */
pith_status pith__save_heads_write(pith__bytes_out *out, pith__program *program,
                                   pith__constant_spans_out *weights, const pith_model *model,
                                   pith__stop *stop, pith_error *err);
/* Makes the graph of these outputs of the model, ascending; NULL if the file has not all of them.
 */
pith_status pith__save_heads_read(pith__graph **graph, const pith_model *model, const int *outputs,
                                  size_t count, pith__arena *arena, pith_error *err);

#endif

/* export_graph.h - the graph of an open model as an ONNX file. */
#ifndef PITH_FORMATS_EXPORT_EXPORT_GRAPH_H
#define PITH_FORMATS_EXPORT_EXPORT_GRAPH_H

#include "formats/export/half_precision.h"
#include "formats/export/older_opset.h"
#include "formats/onnx/model_write.h"
#include "models/model.h"
#include "pith/source.h"

/* The newest opset that is written. */
#define PITH_EXPORT_OPSET_MOST 28

typedef struct pith__export_graph_form {
    int32_t opset;         /* of ai.onnx, up to PITH_EXPORT_OPSET_MOST */
    const char *data_name; /* as in pith__onnx_model */
    bool data_always;
} pith__export_graph_form;

/* What was written. */
typedef struct pith__export_graph_report {
    uint64_t model_bytes, data_bytes;
    uint64_t parameters; /* numbers in constants */
} pith__export_graph_report;

/* Opens a model whose graph is to be written: at level 0 or 1, so that passes leave no operators of
 * Pith's own. A compiled model is PITH_ERR_UNSUPPORTED. The caller
 * destroys the model (models/open/open_model.h). */
pith_status pith__export_graph_open(pith_model **model, const pith_source *source, int level,
                                    const pith_open_options *open, pith_error *err);
/* Gives a call within a call what the caller said of it, for options of another size. */
void pith__export_graph_take_call(pith_call *inner, const pith_call *call);
/* Takes away the outputs that opening added. */
pith_status pith__export_graph_own_outputs(pith__graph *graph, pith_error *err);

/* Narrows model->graph, with a warning if numbers became the largest of the type. *clamped, *lost:
 * as in pith__half_precision_report. */
pith_status pith__export_graph_narrow(uint64_t *clamped, uint64_t *lost, pith_model *model,
                                      const pith__half_precision_form *form, pith_error *err);

/* Sets *opset to one in which all of model->graph may stand (formats/export/older_opset.h), and
 * lowers and infers the graph for it. */
pith_status pith__export_graph_settle(int32_t *opset, pith_model *model,
                                      const pith__opset_choice *choice, pith_error *err);

/* Inputs and outputs, also of subgraphs, get the sizes that the model's file declares for its
 * inputs, and what follows from them. Types cannot be inferred any more. */
pith_status pith__export_graph_declare(pith__graph *graph, pith_error *err);
/* Of outputs, nothing but the rank, where it does not follow. */
void pith__export_graph_declare_ranks(pith__graph *graph);

/* PITH_ERR_ARGUMENT unless the name is that of a file beside the model; NULL is allowed. */
pith_status pith__export_graph_check_name(const char *data_name, pith_error *err);

/* PITH_ERR_ARGUMENT unless there is a writer for each file that may be written. */
pith_status pith__export_graph_check_sinks(const pith__onnx_sinks *sinks, const char *data_name,
                                           pith_error *err);

/* Writes model->graph. The nodes are of that opset already. */
pith_status pith__export_graph_write(pith__export_graph_report *written, pith_model *model,
                                     const pith__export_graph_form *form,
                                     const pith__onnx_sinks *sinks, pith_error *err);

#endif

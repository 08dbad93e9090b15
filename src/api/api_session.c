/* api_session.c - the public functions of pith/session.h. */
#include "api/entry.h"
#include "formats/onnx/value_write.h"
#include "formats/onnx/value_file.h"
#include "models/session/model_runs.h"

size_t pith_model_input_count(const pith_model *model) { return model->graph->input_count; }
size_t pith_model_output_count(const pith_model *model) { return model->graph->output_count; }
const pith_port *pith_model_input(const pith_model *model, size_t index) {
    return index < model->graph->input_count ? &model->inputs[index] : NULL;
}
const pith_port *pith_model_output(const pith_model *model, size_t index) {
    return index < model->graph->output_count ? &model->outputs[index] : NULL;
}

pith_status pith_session_create(pith_session **session, const pith_model *model, pith_error *err) {
    PITH_ENTRY(pith__model_open_session(session, model, err));
}

void pith_session_destroy(pith_session *session) { pith__model_destroy_session(session); }

pith_status pith_session_run(pith_session *session, pith_tensor *outputs, const char *const *names,
                             const pith_tensor *inputs, size_t input_count,
                             const pith_run_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_run_session(session, outputs, names, inputs, input_count, options, err));
}

pith_status pith_model_run(pith_tensor *outputs, const pith_model *model, const char *const *names,
                           const pith_tensor *inputs, size_t input_count,
                           const pith_run_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_run_kept(outputs, model, names, inputs, input_count, options, err));
}

void pith_tensor_free(pith_tensor *tensor) { pith__tensor_free(tensor); }

pith_status pith_session_bind_input(pith_session *session, const char *name,
                                    const pith_tensor *tensor, pith_error *err) {
    PITH_ENTRY(pith__model_bind_session_input(session, name, tensor, err));
}

pith_status pith_session_bind_output(pith_session *session, const char *name,
                                     const pith_tensor *tensor, pith_error *err) {
    PITH_ENTRY(pith__model_bind_session_output(session, name, tensor, err));
}

void pith_session_unbind(pith_session *session) { pith__model_unbind_session(session); }

pith_status pith_value_open(pith_value_file **file, pith_tensor *tensor, const char **name,
                            const char *path, int32_t kind, const pith_call *call,
                            pith_error *err) {
    PITH_ENTRY(pith__value_file_open(file, tensor, name, path, kind, call, err));
}

pith_status pith_value_write(const pith_tensor *value, const char *name, int32_t kind,
                             const pith_call *call, const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__onnx_write_value(value, name, kind, call, writer, err));
}

void pith_value_close(pith_value_file *file) { pith__value_file_close(file); }

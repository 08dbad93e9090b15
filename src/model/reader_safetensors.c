/* reader_safetensors.c - directories without an ONNX file: config.json with weights in safetensors, files of
 * torch.save or GGUF, and models that are tables of vectors. */
#include "base/error.h"
#include "hf/hf.h"
#include "model/reader.h"

static pith_status reader_safetensors_read(pith_model *m, const pith_source *source, pith_error *err) {
    static const pith_opset opset = { { "", 0 }, PITH_OPSET_NEWEST };
    const pith_input_module *input = &m->modules.input;
    m->from_safetensors = true;
    if (!input->build || m->options.model_file)
        return pith_hf_build_from(&m->graph, source->folder, m->weights_file, &m->modules.judge, &m->files, &m->arena,
                                  m->options.log, err);
    PITH_TRY(pith_graph_create(&m->graph, &m->arena, NULL, err));
    m->graph->log = m->options.log;
    m->graph->name = PITH_STR("static");
    m->graph->producer = PITH_STR("safetensors");
    m->graph->opsets = &opset;
    m->graph->opset_count = 1;
    return input->build(m->graph, input->module, err);
}

const pith_reader pith_reader_safetensors = { .name = "safetensors",
                                              .rank = 20,
                                              .stages = &pith_stages_written,
                                              .files = { "model.safetensors", "model.safetensors.index.json",
                                                         "pytorch_model.bin", "pytorch_model.bin.index.json",
                                                         "model.gguf" },
                                              .beside = "config.json",
                                              .read = reader_safetensors_read };

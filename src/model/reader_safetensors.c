/* reader_safetensors.c - directories in Hugging Face layout without an ONNX file: config.json and safetensors. */
#include "hf/hf.h"
#include "model/reader.h"

static pith_status reader_safetensors_read(pith_model *m, const pith_source *source, pith_error *err) {
    m->from_safetensors = true;
    return pith_hf_build(&m->graph, source->folder, &m->files, &m->arena, m->options.log, err);
}

const pith_reader pith_reader_safetensors = { .name = "safetensors",
                                              .rank = 20,
                                              .files = { "model.safetensors", "model.safetensors.index.json" },
                                              .beside = "config.json",
                                              .read = reader_safetensors_read };

/* reader_safetensors.c - directories without an ONNX file: config.json with weights in safetensors,
 * files of torch.save or GGUF, and models that are tables of vectors. */
#include "base/error.h"
#include "models/checkpoint/hf_build.h"
#include "models/open/reader.h"

/* What became of the keys of config.json. */
static pith_status reader_safetensors_note(pith_model *m, const pith__hf_report *r,
                                           pith_error *err) {
    const struct {
        const char *what;
        pith_str value;
    } lines[] = { { "network's own code", r->code },
                  { "settings read", r->read },
                  { "settings ignored", r->ignored },
                  { "settings not known", r->unknown } };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i].value.size)
            PITH_TRY(pith__modules_note(&m->modules, lines[i].what, lines[i].value,
                                        PITH_STR("config.json"), &m->arena, err));
    return PITH_OK;
}

static pith_status reader_safetensors_read(pith_model *m, const pith__source *source,
                                           pith_error *err) {
    static const pith__opset opset = { { "", 0 }, PITH_OPSET_NEWEST };
    const pith__input_module *input = &m->modules.input;
    m->from_safetensors = true;
    if (!input->build || m->options.model_file) {
        pith__hf_report report;
        const pith__modules *modules = &m->modules;
        PITH_TRY(pith__hf_build_from(&m->graph, &report, source->folder, m->weights_file,
                                     &m->modules.rerank, pith__modules_task(modules),
                                     modules->config_args, &m->files, &m->arena,
                                     m->options.call.log, err));
        m->modules.config_args = PITH_STR("");
        return reader_safetensors_note(m, &report, err);
    }
    PITH_TRY(pith__graph_create(&m->graph, &m->arena, NULL, err));
    m->graph->log = m->options.call.log;
    m->graph->name = PITH_STR("static");
    m->graph->producer = PITH_STR("safetensors");
    m->graph->opsets = &opset;
    m->graph->opset_count = 1;
    return input->build(m->graph, input->module, err);
}

const pith__reader pith__reader_safetensors = { .name = "safetensors",
                                                PITH_READER_SAFETENSORS,
                                                .stages = &pith__open_graph_stages,
                                                .read = reader_safetensors_read };

/* reader_gguf.c - GGUF files that are opened by their own name: weights, settings and tokenizer are
 * in the file. In a directory with a config.json they are weights only (reader_safetensors.c). */
#include "base/error.h"
#include "base/str.h"
#include "formats/weights/gguf/gguf_header.h"
#include "models/checkpoint/gguf_model.h"
#include "models/open/reader.h"

static pith_status reader_gguf_read(pith_model *m, const pith__source *source, pith_error *err) {
    const char *name = source->path ? pith__path_name(pith__str_of(source->path)).data : "GGUF";
    m->modules_read = true;
    m->tokenizer_bytes = source->bytes;
    m->from_safetensors = true;
    return pith__gguf_build(&m->graph, &m->modules, source->bytes, name, &m->arena,
                            m->options.call.log, err);
}

const pith__reader pith__reader_gguf = { .name = "gguf",
                                         .rank = 2,
                                         .stages = &pith__open_graph_stages,
                                         .complete = true,
                                         .takes = pith__gguf_is,
                                         .read = reader_gguf_read };

/* reader_onnx.c - ONNX files, and directories that hold one. */
#include "formats/onnx/model_read.h"
#include "models/open/reader.h"

/* A protobuf has no magic number: whatever no other reader knows is taken for one, and the parser
 * says what is wrong. */
static bool reader_onnx_takes(pith_str bytes) {
    (void)bytes;
    return true;
}

static pith_status reader_onnx_again(pith__graph **graph, const pith_model *m,
                                     const pith__source *source, pith__files *files,
                                     pith__arena *arena, pith_error *err) {
    return pith__onnx_read(graph, source->bytes, source->folder, files, arena, m->options.call.log,
                           err);
}

static pith_status reader_onnx_read(pith_model *m, const pith__source *source, pith_error *err) {
    return reader_onnx_again(&m->graph, m, source, &m->files, &m->arena, err);
}

const pith__reader pith__reader_onnx = { .name = "onnx",
                                         PITH_READER_ONNX,
                                         .stages = &pith__open_graph_stages,
                                         .takes = reader_onnx_takes,
                                         .read = reader_onnx_read,
                                         .again = reader_onnx_again };

/* reader_compiled.c - compiled .pith files, recognised by their first bytes. */
#include "model/reader.h"
#include "model/saved.h"

static pith_status reader_compiled_read(pith_model *m, const pith_source *source, pith_error *err) {
    return pith_model_load(m, source->bytes, err);
}

const pith_reader pith_reader_compiled = {
    .name = "compiled", .rank = 0, .complete = true, .takes = pith_compiled_is, .read = reader_compiled_read
};

/* reader_compiled.c - compiled .pith files, recognised by their first bytes. */
#include "base/error.h"
#include "models/open/chosen_runtime.h"
#include "models/open/reader.h"
#include "models/save/save_model.h"

static pith_status reader_compiled_read(pith_model *m, const pith__source *source,
                                        pith_error *err) {
    return pith__model_load(m, source->bytes, err);
}

/* What is run is in the file. */
static pith_status reader_compiled_finish(pith_model *m, pith_error *err) {
    pith_error none = PITH_ERROR_INIT;
    if (m->options.flags & PITH_OPEN_INNER)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "a compiled model has no inner values of the file it was made from");
    if (m->options.input_shape_count)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "a compiled model keeps the input shapes it was compiled with; give them "
                          "when you compile it");
    return pith__chosen_runtime_choose(m, PITH_OK, &none, err);
}

static const pith__reader_stages reader_compiled_stages = { .finish = reader_compiled_finish };

const pith__reader pith__reader_compiled = { .name = "compiled",
                                             .rank = 0,
                                             .stages = &reader_compiled_stages,
                                             .complete = true,
                                             .takes = pith__compiled_is,
                                             .read = reader_compiled_read };

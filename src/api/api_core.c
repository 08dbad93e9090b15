/* api_core.c - public functions that libpith-core does in another way than libpith, whose models
 * may be directories and hold texts: there models are files, and have no sessions but those of the
 * caller.
 *
 * The other public functions of libpith-core are those of the files that CMakeLists.txt names. */
#include "api/entry.h"
#include "models/describe/statistics.h"
#include "models/open/open_model.h"

pith_status pith_model_open(pith_model **model, const char *path, const pith_open_options *options,
                            pith_error *err) {
    PITH_ENTRY(pith__model_make(model, pith__origin_file(path), options, err));
}

void pith_model_trim(const pith_model *model) { pith__account_trim(&model->account.allocator); }

pith_status pith_model_statistics(pith_statistics *statistics, const pith_model *model,
                                  pith_error *err) {
    return pith__model_read_statistics(statistics, model, 0, err);
}

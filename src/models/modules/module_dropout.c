/* module_dropout.c - Dropout, which does nothing to a model that is not being trained. */
#include "base/error.h"
#include "models/modules/module_class.h"

static pith_status module_dropout_read(pith__module_reader *r, pith_str folder) {
    PITH_TRY(pith__module_needs(r, PITH_STAGE_VECTOR));
    return pith__module_decide(r, "module", folder, NULL, "Dropout, which does nothing here");
}

static const pith__module_keys dropout_keys = { .file = "config.json",
                                                .reads = "",
                                                .ignores = "dropout" };
const pith__module_class pith__module_class_dropout = { .name = "Dropout",
                                                        .read = module_dropout_read,
                                                        .keys = &dropout_keys };

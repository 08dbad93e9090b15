/* module_clip_model.c - CLIPModel: texts and pictures in one space. The network pools by itself. */
#include "base/error.h"
#include "models/modules/module_transformer.h"

static pith_status clip_model_read(pith__module_reader *r, pith_str folder) {
    bool causal;
    PITH_TRY(pith__module_transformer_read(r, folder, &causal));
    r->stage = PITH_STAGE_VECTOR;
    return PITH_OK;
}

const pith__module_class pith__module_class_clip_model = { .name = "CLIPModel",
                                                           .read = clip_model_read };

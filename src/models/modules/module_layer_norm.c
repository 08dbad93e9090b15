/* module_layer_norm.c - LayerNorm on a text's vector. Source: sentence-transformers,
 * modules/layer_norm.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

static void layer_norm_read_config(pith__json *j, pith__module_reader *r, void *to) {
    pith_str key;
    (void)r;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "dimension"))
            *(int64_t *)to = pith__json_int(j);
        else
            pith__json_skip(j);
    }
}

static pith_status module_layer_norm_read(pith__module_reader *r, pith_str folder) {
    pith__weights weights;
    const char *file;
    int64_t n = 0;
    PITH_TRY(pith__module_needs(r, PITH_STAGE_VECTOR));
    PITH_TRY(pith__module_json(NULL, r, folder, "config.json", layer_norm_read_config, &n));
    if (n < 1 || n > PITH_MODULE_WIDTH_MAX)
        return pith__fail(r->err, PITH_ERR_FORMAT, "config.json: dimension is %lld", (long long)n);
    PITH_TRY(pith__module_weights(&weights, &file, r, folder));
    pith__vector_step step = { .kind = PITH_STEP_LAYER_NORM, .in = n, .out = n };
    PITH_TRY(pith__module_tensor(&step.weight, r, &weights, file, "norm.weight", 1, &n));
    PITH_TRY(pith__module_tensor(&step.bias, r, &weights, file, "norm.bias", 1, &n));
    PITH_TRY(pith__module_add_step(r, &step));
    return pith__module_decide(r, "module", folder, file, "LayerNorm of %lld", (long long)n);
}

static const pith__module_keys layer_norm_keys = { .file = "config.json", .reads = "dimension" };
const pith__module_class pith__module_class_layer_norm = { .name = "LayerNorm",
                                                           .read = module_layer_norm_read,
                                                           .keys = &layer_norm_keys };

/* module_layer_norm.c - LayerNorm on a text's vector. Source: sentence-transformers, modules/layer_norm.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

static void layer_norm_read_config(pith_json *j, pith_module_reader *r, void *to) {
    pith_str key;
    (void)r;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "dimension"))
            *(int64_t *)to = pith_json_int(j);
        else
            pith_json_skip(j);
    }
}

static pith_status module_layer_norm_read(pith_module_reader *r, pith_str folder) {
    pith_weights weights;
    const char *file;
    int64_t n = 0;
    PITH_TRY(pith_module_needs(r, PITH_STAGE_VECTOR));
    PITH_TRY(pith_module_json(NULL, r, folder, "config.json", layer_norm_read_config, &n));
    if (n < 1 || n > PITH_MODULE_WIDTH_MAX)
        return pith_fail(r->err, PITH_ERR_FORMAT, "config.json: dimension is %lld", (long long)n);
    PITH_TRY(pith_module_weights(&weights, &file, r, folder));
    pith_vector_step step = { .kind = PITH_STEP_LAYER_NORM, .in = n, .out = n };
    PITH_TRY(pith_module_tensor(&step.weight, r, &weights, file, "norm.weight", 1, &n));
    PITH_TRY(pith_module_tensor(&step.bias, r, &weights, file, "norm.bias", 1, &n));
    PITH_TRY(pith_module_add_step(r, &step));
    return pith_module_decide(r, "module", folder, file, "LayerNorm of %lld", (long long)n);
}

static const pith_module_keys layer_norm_keys = { .file = "config.json", .reads = "dimension" };
const pith_module_class pith_module_class_layer_norm = { .name = "LayerNorm",
                                                         .read = module_layer_norm_read,
                                                         .keys = &layer_norm_keys };

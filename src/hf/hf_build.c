/* hf_build.c - a model directory without an ONNX file: config.json names the architecture, safetensors hold the
 * weights. */
#include "base/error.h"
#include "base/json.h"
#include "hf/hf.h"
#include "hf/family.h"

static pith_status open_in(pith_str *bytes, pith_files *files, const char *dir, pith_str name, pith_arena *arena,
                           pith_error *err) {
    pith_str path;
    PITH_TRY(pith_path_join(&path, arena, dir, name, err));
    return pith_files_open(bytes, files, path.data, err);
}

static pith_status add_file(pith_weights *weights, pith_files *files, const char *dir, pith_str name, pith_arena *arena,
                            pith_error *err) {
    pith_str bytes, text = pith_arena_str(arena, name);
    if (!text.data) return pith_fail_memory(err, name.size);
    PITH_TRY(open_in(&bytes, files, dir, name, arena, err));
    return pith_safetensors_read(weights, bytes, text.data, err);
}

/* model.safetensors.index.json: {"weight_map": {tensor: file}}. */
static pith_status add_shards(pith_weights *weights, pith_files *files, const char *dir, pith_arena *arena,
                              pith_error *err) {
    static const char index_name[] = "model.safetensors.index.json";
    pith_str text, key, tensor;
    pith_map shards;
    pith_json j;
    pith_error local = PITH_ERROR_INIT;
    PITH_TRY(open_in(&text, files, dir, PITH_STR(index_name), arena, err));
    if (pith_map_init(&shards, arena, 16)) return pith_fail_memory(err, 0);
    pith_json_init(&j, text, index_name, arena, err ? err : &local);
    for (pith_json_object(&j); pith_json_next_key(&j, &key);) {
        if (!pith_str_is(key, "weight_map")) {
            pith_json_skip(&j);
            continue;
        }
        for (pith_json_object(&j); pith_json_next_key(&j, &tensor);) {
            pith_str shard = pith_json_string(&j);
            if (j.failed || pith_map_get(&shards, shard) != UINT32_MAX) continue;
            if (!pith_map_put(&shards, shard, 0, NULL)) return pith_fail_memory(err, 0);
            PITH_TRY(add_file(weights, files, dir, shard, arena, err));
        }
    }
    pith_json_finish(&j);
    return j.failed ? j.err->code : PITH_OK;
}

static pith_status hf_build_add_weights(pith_weights *weights, const char **name, pith_files *files, const char *dir,
                                        pith_arena *arena, pith_error *err) {
    pith_str path;
    bool there;
    *name = "model.safetensors";
    PITH_TRY(pith_file_find(&there, &path, arena, dir, *name, err));
    if (there) return add_file(weights, files, dir, pith_str_of(*name), arena, err);
    PITH_TRY(pith_file_find(&there, &path, arena, dir, "model.safetensors.index.json", err));
    if (there) return add_shards(weights, files, dir, arena, err);
    return pith_fail(err, PITH_ERR_NOT_FOUND, "%s: model.safetensors and model.safetensors.index.json are both missing",
                     dir);
}

static pith_status hf_build_find_family(const pith_hf_family **family, const pith_hf_config *config, pith_arena *arena,
                                        pith_error *err) {
    pith_str known = PITH_STR(""), model_type = config->model_type;
    for (size_t i = 0; i < pith_hf_family_count; i++) {
        *family = pith_hf_family_table[i];
        if ((*family)->takes && pith_str_is(model_type, (*family)->model_type) && (*family)->takes(config))
            return PITH_OK;
    }
    for (size_t i = 0; i < pith_hf_family_count; i++) {
        *family = pith_hf_family_table[i];
        if ((*family)->takes) continue;
        if (pith_str_is(model_type, (*family)->model_type)) return PITH_OK;
        known = pith_arena_printf(arena, "%s%s%s", known.data, known.size ? ", " : "", (*family)->model_type);
        if (!known.data) return pith_fail_memory(err, 0);
    }
    return pith_fail(err, PITH_ERR_UNSUPPORTED,
                     "config.json: architecture \"" PITH_STR_FMT "\" is not supported; supported are %s",
                     PITH_STR_ARG(model_type), known.data);
}

pith_status pith_hf_build(pith_graph **graph, const char *dir, pith_files *files, pith_arena *arena,
                          const pith_log *log, pith_error *err) {
    static const pith_opset opset = { { "", 0 }, PITH_OPSET_NEWEST };
    pith_hf_config config;
    const pith_hf_family *family = NULL;
    pith_weights weights;
    const char *weights_name;
    pith_str text;
    pith_graph *built;
    PITH_TRY(open_in(&text, files, dir, PITH_STR("config.json"), arena, err));
    PITH_TRY(pith_hf_config_read(&config, text, "config.json", arena, err));
    PITH_TRY(hf_build_find_family(&family, &config, arena, err));
    PITH_TRY(pith_weights_init(&weights, arena, err));
    PITH_TRY(hf_build_add_weights(&weights, &weights_name, files, dir, arena, err));
    PITH_TRY(pith_graph_create(&built, arena, NULL, err));
    built->log = log;
    built->name = pith_str_of(family->model_type);
    built->producer = PITH_STR("safetensors");
    built->opsets = &opset;
    built->opset_count = 1;
    PITH_TRY(family->build(built, family->layout, &config, &weights, weights_name, err));
    *graph = built;
    return PITH_OK;
}

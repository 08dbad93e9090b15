/* hf_build.c - a model directory without an ONNX file: config.json names the architecture, safetensors or files of
 * torch.save hold the weights. */
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "hf/hf.h"
#include "hf/family.h"

static pith_status open_in(pith_str *bytes, pith_files *files, const char *dir, pith_str name, pith_arena *arena,
                           pith_error *err) {
    pith_str path;
    PITH_TRY(pith_path_join(&path, arena, dir, name, err));
    return pith_files_open(bytes, files, path.data, err);
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

/* The tensors of a file that lies beside the network's weights, as "<name>.<tensor>", if there is such a file. */
static pith_status hf_build_add_beside(pith_weights *weights, const char *name, const char *dir, pith_files *files,
                                       pith_arena *arena, pith_error *err) {
    pith_weights own;
    const char *file;
    bool there;
    pith_str path, wanted = pith_arena_printf(arena, "%s.pt", name);
    if (!wanted.data) return pith_fail_memory(err, 64);
    PITH_TRY(pith_file_find(&there, &path, arena, dir, wanted.data, err));
    if (!there) return PITH_OK;
    PITH_TRY(pith_weights_init(&own, arena, err));
    PITH_TRY(pith_weights_read(&own, &file, dir, wanted.data, files, err));
    for (size_t i = 0; i < own.count; i++) {
        pith_str full = pith_arena_printf(arena, "%s." PITH_STR_FMT, name, PITH_STR_ARG(own.keys[i]));
        if (!full.data) return pith_fail_memory(err, own.keys[i].size);
        PITH_TRY(pith_weights_put(weights, full, &own.items[i], err));
    }
    return PITH_OK;
}

static void answers_read_vocabulary(pith_json *j, int64_t answers[2]) {
    pith_str key;
    for (pith_json_object(j); pith_json_next_key(j, &key);) {
        int which = pith_str_is(key, "yes") ? 0 : pith_str_is(key, "no") ? 1 : -1;
        if (which < 0)
            pith_json_skip(j);
        else
            answers[which] = pith_json_int(j);
    }
}

/* The ids of "yes" and "no" in tokenizer.json, for a language model that is no embedder: such a directory has no
 * modules.json. A file that does not have them, or is damaged, which the tokenizer says, gives none. */
static pith_status hf_build_find_answers(pith_hf_config *config, const char *dir, pith_files *files, pith_arena *arena,
                                         pith_error *err) {
    static const char end[] = "ForCausalLM\"";
    bool there, causal = false;
    pith_error fault = PITH_ERROR_INIT;
    pith_str path, text, key;
    pith_json j;
    for (size_t i = 0; i + sizeof end <= config->text.size && !causal; i++)
        causal = !memcmp(config->text.data + i, end, sizeof end - 1);
    if (!causal) return PITH_OK;
    PITH_TRY(pith_file_find(&there, &path, arena, dir, "modules.json", err));
    if (there) return PITH_OK;
    PITH_TRY(pith_file_find(&there, &path, arena, dir, "tokenizer.json", err));
    if (!there) return PITH_OK;
    PITH_TRY(pith_files_open(&text, files, path.data, err));
    pith_json_init(&j, text, "tokenizer.json", arena, &fault);
    for (pith_json_object(&j); pith_json_next_key(&j, &key);) {
        if (!pith_str_is(key, "model") || pith_json_peek(&j) != PITH_JSON_OBJECT) {
            pith_json_skip(&j);
            continue;
        }
        for (pith_json_object(&j); pith_json_next_key(&j, &key);)
            if (pith_str_is(key, "vocab") && pith_json_peek(&j) == PITH_JSON_OBJECT)
                answers_read_vocabulary(&j, config->answers);
            else
                pith_json_skip(&j);
    }
    bool good = !j.failed;
    for (int i = 0; i < 2; i++) good = good && config->answers[i] > 0 && config->answers[i] < config->vocab_size;
    if (!good) config->answers[0] = config->answers[1] = 0;
    return fault.code == PITH_ERR_MEMORY ? pith_fail(err, PITH_ERR_MEMORY, "%s", fault.message) : PITH_OK;
}

pith_status pith_hf_build_from(pith_graph **graph, const char *dir, const char *wanted, pith_files *files,
                               pith_arena *arena, const pith_log *log, pith_error *err) {
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
    PITH_TRY(hf_build_find_answers(&config, dir, files, arena, err));
    PITH_TRY(pith_weights_init(&weights, arena, err));
    PITH_TRY(pith_weights_read(&weights, &weights_name, dir, wanted, files, err));
    PITH_TRY(hf_build_add_beside(&weights, "sparse_linear", dir, files, arena, err));
    PITH_TRY(hf_build_add_beside(&weights, "colbert_linear", dir, files, arena, err));
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

pith_status pith_hf_build(pith_graph **graph, const char *dir, pith_files *files, pith_arena *arena,
                          const pith_log *log, pith_error *err) {
    return pith_hf_build_from(graph, dir, NULL, files, arena, log, err);
}

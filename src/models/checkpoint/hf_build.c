/* hf_build.c - a model directory without an ONNX file: config.json names the architecture,
 * safetensors or files of torch.save hold the weights. */
#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/piece_listener.h"
#include "base/str.h"
#include "formats/weights/adapter.h"
#include "models/architectures/family.h"
#include "models/architectures/hf_keys.h"
#include "models/checkpoint/hf_build.h"
#include "models/modules/config_args.h"
#include "models/tasks/task.h"

static pith_status open_in(pith_str *bytes, pith__files *files, const char *dir, pith_str name,
                           pith__arena *arena, pith_error *err) {
    pith_str path;
    PITH_TRY(pith__path_join(&path, arena, dir, name, err));
    return pith__files_open(bytes, files, path.data, err);
}

/* Families that take some models of another one's model_type: an error if this build was made
 * without the one that takes this model. The other architecture would compute something else. */
static pith_status hf_build_check_left_out(const pith__hf_config *c, pith_error *err) {
    static const struct {
        const char *family, *model_type;
        bool (*takes)(const pith__hf_config *config);
    } variants[] = {
        { "jina_bert", "bert", pith__hf_takes_jina_bert },
        { "jina_xlm_roberta", "xlm-roberta", pith__hf_takes_jina_xlm_roberta },
        { "nomic_native", "nomic_bert", pith__hf_takes_nomic_native },
    };
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (!pith__str_is(c->model_type, variants[i].model_type) || !variants[i].takes(c)) continue;
        PITH_TRY(pith__piece_check("families", pith__str_of(variants[i].family), err));
    }
    return PITH_OK;
}

/* Families that take some models of another one's model_type are asked first: their conditions are
 * narrower than a name. */
static pith_status hf_build_find_family(const pith__hf_family **family,
                                        const pith__hf_config *config, pith__arena *arena,
                                        pith_error *err) {
    pith_str known = PITH_STR(""), model_type = config->model_type;
    for (size_t i = 0; i < pith__hf_family_count; i++) {
        *family = pith__hf_family_table[i];
        if ((*family)->takes && pith__str_is(model_type, (*family)->model_type) &&
            (*family)->takes(config))
            return PITH_OK;
    }
    PITH_TRY(hf_build_check_left_out(config, err));
    for (size_t i = 0; i < pith__hf_family_count; i++) {
        *family = pith__hf_family_table[i];
        if ((*family)->takes) continue;
        if (pith__str_is(model_type, (*family)->model_type)) return PITH_OK;
        known = pith__arena_printf(arena, "%s%s%s", known.data, known.size ? ", " : "",
                                   (*family)->model_type);
        if (!known.data) return pith__fail_memory(err, 0);
    }
    PITH_TRY(pith__piece_check("families", model_type, err));
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "config.json: architecture \"" PITH_STR_FMT
                      "\" is not supported; supported are %s",
                      PITH_STR_ARG(model_type), known.data);
}

/* The tensors of a file that lies beside the network's weights, as "<name>.<tensor>", if there is
 * such a file. */
static pith_status hf_build_add_beside(pith__weights *weights, const char *name, const char *dir,
                                       pith__files *files, pith__arena *arena, pith_error *err) {
    pith__weights own;
    const char *file;
    bool there;
    pith_str path, wanted = pith__arena_printf(arena, "%s.pt", name);
    if (!wanted.data) return pith__fail_memory(err, 64);
    PITH_TRY(pith__file_find(&there, &path, arena, dir, wanted.data, err));
    if (!there) return PITH_OK;
    PITH_TRY(pith__weights_init(&own, arena, err));
    PITH_TRY(pith__weights_read(&own, &file, dir, wanted.data, files, err));
    for (size_t i = 0; i < own.count; i++) {
        pith_str full =
            pith__arena_printf(arena, "%s." PITH_STR_FMT, name, PITH_STR_ALL(own.keys[i]));
        if (!full.data) return pith__fail_memory(err, own.keys[i].size);
        PITH_TRY(pith__weights_put(weights, full, &own.items[i], err));
    }
    return PITH_OK;
}

/* The graph looks as if it had been read from a file of the newest opset, so everything behind is
 * the same for both. */
static pith_status hf_build_family(pith__graph **graph, const pith__hf_family *family,
                                   pith__hf_config *config, const pith__weights *weights,
                                   const char *weights_name, pith__arena *arena,
                                   const pith_log *log, pith_error *err) {
    static const pith__opset opset = { { "", 0 }, PITH_OPSET_NEWEST };
    pith__graph *built;
    config->add_tasks = pith__hf_add_tasks;
    pith__piece_used(family);
    PITH_TRY(pith__graph_create(&built, arena, NULL, err));
    built->log = log;
    built->name = pith__str_of(family->model_type);
    built->producer = PITH_STR("safetensors");
    built->opsets = &opset;
    built->opset_count = 1;
    PITH_TRY(family->build(built, family->layout, config, weights, weights_name, err));
    *graph = built;
    return PITH_OK;
}

pith_status pith__hf_build_weights(pith__graph **graph, const pith__hf_config *config,
                                   const pith__weights *weights, const char *weights_name,
                                   pith__arena *arena, const pith_log *log, pith_error *err) {
    const pith__hf_family *family;
    pith__hf_config complete = *config;
    PITH_TRY(hf_build_find_family(&family, config, arena, err));
    complete.reads = family->keys ? family->keys->reads : NULL;
    return hf_build_family(graph, family, &complete, weights, weights_name, arena, log, err);
}

/* The order matters: arguments of the modules go before config.json, config.json goes before the
 * defaults of the family, and only then are keys judged. An adapter is merged into the weights
 * before the graph is built of them. */
pith_status pith__hf_build_from(pith__graph **graph, pith__hf_report *report, const char *dir,
                                const char *wanted, const pith__rerank_prompt *rerank,
                                pith_str task, pith_str args, pith__files *files,
                                pith__arena *arena, const pith_log *log, pith_error *err) {
    pith__hf_config config;
    const pith__hf_family *family;
    pith__weights weights;
    const char *weights_name;
    pith_str text, base;
    bool adapted;
    PITH_TRY(pith__adapter_base(&base, &adapted, dir, arena, err));
    PITH_TRY(open_in(&text, files, base.data, PITH_STR("config.json"), arena, err));
    PITH_TRY(pith__hf_config_read(&config, text, "config.json", arena, err));
    PITH_TRY(hf_build_find_family(&family, &config, arena, err));
    if (args.size) PITH_TRY(pith__config_args_merge(&text, args, family->keys, arena, err));
    if (args.size) PITH_TRY(pith__hf_config_read(&config, text, "config.json", arena, err));
    if (family->keys) PITH_TRY(pith__hf_config_complete(&config, family->keys->reads, err));
    PITH_TRY(pith__hf_keys_check(report, &config, family, arena, log, err));
    config.task = task;
    config.rerank = rerank && rerank->answers ? rerank : NULL;
    PITH_TRY(pith__weights_init(&weights, arena, err));
    PITH_TRY(pith__weights_read(&weights, &weights_name, base.data, wanted, files, err));
    if (adapted) PITH_TRY(pith__adapter_apply(&weights, dir, files, err));
    PITH_TRY(hf_build_add_beside(&weights, "sparse_linear", dir, files, arena, err));
    PITH_TRY(hf_build_add_beside(&weights, "colbert_linear", dir, files, arena, err));
    return hf_build_family(graph, family, &config, &weights, weights_name, arena, log, err);
}

pith_status pith__hf_build(pith__graph **graph, const char *dir, pith__files *files,
                           pith__arena *arena, const pith_log *log, pith_error *err) {
    return pith__hf_build_from(graph, NULL, dir, NULL, NULL, PITH_STR(""), PITH_STR(""), files,
                               arena, log, err);
}

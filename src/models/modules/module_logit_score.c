/* module_logit_score.c - LogitScore: a score is the logit of one token behind the text, minus that of another. Source:
 * sentence-transformers 6.2, cross_encoder/modules/logit_score.py. */
#include "base/error.h"
#include "models/modules/module_class.h"

static int32_t logit_score_id(pith_json *j) {
    int64_t id = pith_json_int(j);
    if (!j->failed && (id < 0 || id >= INT32_MAX)) pith_json_fail(j, PITH_ERR_FORMAT, "%lld is no id", (long long)id);
    return j->failed ? -1 : (int32_t)id;
}

static void logit_score_read_config(pith_json *j, pith_module_reader *r, void *to) {
    pith_judge *judge = &r->modules->judge;
    pith_str key;
    (void)to;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "true_token_id"))
            judge->yes = logit_score_id(j);
        else if (pith_str_is(key, "false_token_id"))
            judge->no = pith_json_null(j) ? -1 : logit_score_id(j);
        else if (pith_str_is(key, "module_input_name"))
            pith_module_expect(j, "module_input_name", "causal_logits");
        else
            pith_json_skip(j);
    }
}

static pith_status logit_score_read(pith_module_reader *r, pith_str folder) {
    pith_judge *judge = &r->modules->judge;
    PITH_TRY(pith_module_needs(r, PITH_STAGE_ROWS));
    if (r->task != PITH_TASK_GENERATE)
        return pith_fail(r->err, PITH_ERR_UNSUPPORTED,
                         "it needs a Transformer whose transformer_task is text-generation");
    PITH_TRY(pith_module_json(NULL, r, folder, "config.json", logit_score_read_config, NULL));
    if (judge->yes < 0) return pith_fail(r->err, PITH_ERR_FORMAT, "config.json: true_token_id is missing");
    r->stage = PITH_STAGE_VECTOR;
    r->modules->pooling = 0;
    judge->answers = judge->only = true;
    if (judge->no < 0) return pith_module_decide(r, "score", folder, "config.json", "logit of token %d", judge->yes);
    return pith_module_decide(r, "score", folder, "config.json", "logit of token %d minus that of token %d", judge->yes,
                              judge->no);
}

static const pith_module_keys logit_score_keys = { .file = "config.json",
                                                   .reads = "true_token_id false_token_id module_input_name" };
const pith_module_class pith_module_class_logit_score = { .name = "LogitScore",
                                                          .read = logit_score_read,
                                                          .keys = &logit_score_keys };

/* module_logit_score.c - LogitScore: a score is the logit of one token behind the text, minus that
 * of another. Source: sentence-transformers 6.2, cross_encoder/modules/logit_score.py. */
#include "base/error.h"
#include "models/modules/module_class.h"

static int32_t logit_score_id(pith__json *j) {
    int64_t id = pith__json_int(j);
    if (!j->failed && (id < 0 || id >= INT32_MAX))
        pith__json_fail(j, PITH_ERR_FORMAT, "%lld is no id", (long long)id);
    return j->failed ? -1 : (int32_t)id;
}

static void logit_score_read_config(pith__json *j, pith__module_reader *r, void *to) {
    pith__rerank_prompt *rerank = &r->modules->rerank;
    pith_str key;
    (void)to;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "true_token_id"))
            rerank->yes = logit_score_id(j);
        else if (pith__str_is(key, "false_token_id"))
            rerank->no = pith__json_null(j) ? -1 : logit_score_id(j);
        else if (pith__str_is(key, "module_input_name"))
            pith__module_expect(j, "module_input_name", "causal_logits");
        else
            pith__json_skip(j);
    }
}

static pith_status logit_score_read(pith__module_reader *r, pith_str folder) {
    pith__rerank_prompt *rerank = &r->modules->rerank;
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    if (r->task != PITH_TASK_GENERATE)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "it needs a Transformer whose transformer_task is text-generation");
    PITH_TRY(pith__module_json(NULL, r, folder, "config.json", logit_score_read_config, NULL));
    if (rerank->yes < 0)
        return pith__fail(r->err, PITH_ERR_FORMAT, "config.json: true_token_id is missing");
    r->stage = PITH_STAGE_VECTOR;
    r->modules->pooling = 0;
    rerank->answers = rerank->only = true;
    if (rerank->no < 0)
        return pith__module_decide(r, "score", folder, "config.json", "logit of token %d",
                                   rerank->yes);
    return pith__module_decide(r, "score", folder, "config.json",
                               "logit of token %d minus that of token %d", rerank->yes, rerank->no);
}

static const pith__module_keys logit_score_keys = {
    .file = "config.json", .reads = "true_token_id false_token_id module_input_name"
};
const pith__module_class pith__module_class_logit_score = { .name = "LogitScore",
                                                            .read = logit_score_read,
                                                            .keys = &logit_score_keys };

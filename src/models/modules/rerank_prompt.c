/* rerank_prompt.c - causal language models that are known as rerankers by their architecture. Which
 * words they answer with stands in their documentation; the ids of these words, in tokenizer.json.
 *
 * Sources: the model card of Qwen/Qwen3-Reranker-0.6B; the package mxbai-rerank 0.1.6,
 * mxbai_rerank_v2.py. */
#include "models/modules/rerank_prompt.h"

#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

typedef struct rerank_card {
    const char *model_type;
    pith__rerank_form form;
    const char *yes, *no;
} rerank_card;

static const rerank_card cards[] = {
    { "qwen2", PITH_RERANK_MXBAI, "1", "0" },
    { "qwen3", PITH_RERANK_QWEN3, "yes", "no" },
};

typedef struct rerank_words {
    const rerank_card *card;
    int64_t yes, no;
} rerank_words;

static void rerank_read_vocabulary(pith__json *j, rerank_words *w) {
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, w->card->yes))
            w->yes = pith__json_int(j);
        else if (pith__str_is(key, w->card->no))
            w->no = pith__json_int(j);
        else
            pith__json_skip(j);
    }
}

static void rerank_read_words(pith__json *j, pith__module_reader *r, void *to) {
    pith_str key;
    (void)r;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (!pith__str_is(key, "model") || pith__json_peek(j) != PITH_JSON_OBJECT) {
            pith__json_skip(j);
            continue;
        }
        for (pith__json_object(j); pith__json_next_key(j, &key);)
            if (pith__str_is(key, "vocab") && pith__json_peek(j) == PITH_JSON_OBJECT)
                rerank_read_vocabulary(j, to);
            else
                pith__json_skip(j);
    }
}

/* A damaged tokenizer.json gives no answers here; opening the tokenizer says what is wrong with it.
 */
pith_status pith__rerank_prompt_read(pith__module_reader *r, pith_str model_type) {
    pith__rerank_prompt *rerank = &r->modules->rerank;
    pith__module_reader own = *r;
    pith_error fault = PITH_ERROR_INIT;
    rerank_words words = { NULL, -1, -1 };
    bool there;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        if (pith__str_is(model_type, cards[i].model_type)) words.card = &cards[i];
    if (!words.card || !r->source->files) return PITH_OK; /* a tokenizer alone judges nothing */
    own.err = &fault;
    pith_status status = pith__module_json(&there, &own, r->modules->folder, "tokenizer.json",
                                           rerank_read_words, &words);
    if (status == PITH_ERR_MEMORY) return pith__fail(r->err, status, "%s", fault.message);
    if (status || words.yes < 0 || words.no < 0 || words.yes >= INT32_MAX || words.no >= INT32_MAX)
        return PITH_OK;
    rerank->form = words.card->form;
    rerank->answers = true;
    rerank->yes = (int32_t)words.yes;
    rerank->no = (int32_t)words.no;
    return PITH_OK;
}

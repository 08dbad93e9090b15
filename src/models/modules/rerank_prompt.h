/* rerank_prompt.h - rerankers that read a query and a document as one text with words of the model
 * around them: language models that answer "yes" or "no", and classifiers that were made of such
 * models. */
#ifndef PITH_MODELS_MODULES_RERANK_PROMPT_H
#define PITH_MODELS_MODULES_RERANK_PROMPT_H

#include <stdint.h>

#include "models/chat/chat_template.h"

/* How query and document become one text. The numbers are stored in compiled files. */
typedef enum pith__rerank_form {
    PITH_RERANK_PAIR = 0,  /* as the tokenizer joins a pair */
    PITH_RERANK_QWEN3 = 1, /* the words on the model card of Qwen3-Reranker */
    PITH_RERANK_MXBAI = 2, /* the words of the package mxbai-rerank, version 2 of its models */
    PITH_RERANK_CHAT = 3,  /* the chat template of the tokenizer */
    PITH_RERANK_FORMS = 4
} pith__rerank_form;

typedef struct pith__rerank_prompt {
    pith__rerank_form form;
    bool answers;    /* a score is a logit of the token behind the last one; false: the network has
                        a classifier */
    bool only;       /* modules.json says so: the directory has no vectors */
    int32_t yes, no; /* of answers: ids of the tokens whose logits are subtracted; no is -1: only
                        yes counts */
    bool keeps_end;  /* of CHAT: a text that is cut keeps the words of the template at its end */
    pith__chat_form chat[2]; /* of CHAT: without an instruction and with one; count 0: the template
                                fails with one */
} pith__rerank_prompt;

/* clang-format off */
#define PITH_RERANK_INIT \
    { PITH_RERANK_PAIR, false, false, -1, -1, true, { { NULL, 0 }, { NULL, 0 } } }
/* clang-format on */

typedef struct pith__module_reader pith__module_reader;

/* Sets reader->modules->rerank for a causal language model without modules.json, if models of its
 * architecture are known as rerankers and its tokenizer.json has their answers. */
pith_status pith__rerank_prompt_read(pith__module_reader *r, pith_str model_type);
/* Looks for a chat template, and for a reranker with one sets reader->modules->rerank.form to
 * PITH_RERANK_CHAT. */
pith_status pith__rerank_chat_read(pith__module_reader *r);

/* The part "chat" (base/optional_part.h): the two functions above, and the reading of chat
 * templates. */
typedef struct pith__rerank_prompt_part {
    pith_status (*card)(pith__module_reader *r, pith_str model_type);
    pith_status (*chat)(pith__module_reader *r);
} pith__rerank_prompt_part;

#endif

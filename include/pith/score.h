/* score.h - scores for texts and pairs of texts: rerankers and classifiers. */
#ifndef PITH_SCORE_H
#define PITH_SCORE_H

#include "pith/call.h"
#include "pith/embed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What turns the model's logits into scores. */
typedef enum pith_activation {
    PITH_ACTIVATION_MODEL = 0,   /* what the model's files say */
    PITH_ACTIVATION_NONE = 1,    /* the logits as they are */
    PITH_ACTIVATION_SIGMOID = 2, /* each by itself, 0 to 1 */
    PITH_ACTIVATION_SOFTMAX = 3  /* together they give 1 */
} pith_activation;

/* The call context is as in pith_embed_options. */
typedef struct pith_score_options {
    pith_call call;
    int32_t max_length;      /* tokens at which a text, or a pair of texts together, is cut; 0: the
                                model's own limit */
    int32_t batch_tokens;    /* tokens that one thread runs at once; 0: chosen by the size of L2 */
    int32_t activation;      /* a pith_activation */
    pith_embed_stats *stats; /* receives the counts; NULL: not needed */
    pith_text_result *results;     /* as in pith_embed_options; the scores of a bad text are NaN. A
                                      bad query ends the call */
    pith_error *failures;          /* as in pith_embed_options */
    const pith_batching *batching; /* NULL: the defaults */
    const char *instruction;       /* of rerankers that are language models: what makes a document a
                                      good one; NULL: what the model's files say, or the sentence on
                                      its model card */
} pith_score_options;

#define PITH_SCORE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_score_options)

/* Returns the number of scores that the model gives a text, or 0 if it is no classifier.
 * Thread-safe. */
PITH_API size_t pith_label_count(const pith_model *model);

/* Returns the name of a label as config.json has it (id2label), or "" if it has none or there is no
 * such label. Valid as long as the model. Thread-safe. */
PITH_API const char *pith_label_name(const pith_model *model, size_t label);

/* Writes scores: float[count][pith_label_count(model)], owned by the caller, row i for texts[i], or
 * for the pair of texts[i] and pairs[i] if pairs is not NULL. A pair too long is cut at the end of
 * the longer text first, as transformers does ("longest_first"). With PITH_ACTIVATION_MODEL, scores
 * are those of transformers' pipeline: logits if config.json says regression, sigmoids if it says
 * multi_label_classification or there is one label, and a softmax otherwise. A row has the same
 * bits whatever the other texts, the number of threads and the CPU are. Errors are those of
 * pith_embed. Thread-safe. */
PITH_API pith_status pith_classify(float *scores, const pith_model *model, const pith_str *texts,
                                   const pith_str *pairs, size_t count,
                                   const pith_score_options *options, pith_error *err);

/* Writes one score per document to scores[count], owned by the caller, in their order.
 * A higher score means that the document answers the query better. The model is a cross-encoder
 * with one label, or a causal language model that answers with a word (docs/tasks.md says which are
 * known). With PITH_ACTIVATION_MODEL, scores are what sentence-transformers' CrossEncoder gives:
 * the activation that config.json names, else a sigmoid; for mxbai-rerank-v2 they are logits, as
 * its own package gives. Otherwise as pith_classify. */
PITH_API pith_status pith_rerank(float *scores, const pith_model *model, pith_str query,
                                 const pith_str *documents, size_t count,
                                 const pith_score_options *options, pith_error *err);

/* As pith_classify and pith_rerank, for texts, or pairs of texts, that are tokens already; see
 * pith_embed_tokens. A pair is one row, as pith_tokenize makes it of a text and its pair: special
 * tokens and type ids included. The row of a language model that judges holds all words around the
 * query and the document too. options->max_length must be 0 and options->instruction NULL. */
PITH_API pith_status pith_classify_tokens(float *scores, const pith_model *model,
                                          const pith_token_ids *texts, size_t count,
                                          const pith_score_options *options, pith_error *err);
PITH_API pith_status pith_rerank_tokens(float *scores, const pith_model *model,
                                        const pith_token_ids *pairs, size_t count,
                                        const pith_score_options *options, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif

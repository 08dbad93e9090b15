/* labels.h - what config.json says about a classifier: its labels, and what turns logits into
 * scores. */
#ifndef PITH_MODELS_TASKS_LABELS_H
#define PITH_MODELS_TASKS_LABELS_H

#include <stdbool.h>

#include "base/memory/memory.h"
#include "base/str.h"
#include "pith/score.h"

typedef struct pith__hf_labels {
    const pith_str *names;    /* [count] id2label; data is NULL for a label without a name. Followed
                                 by a NUL. */
    size_t count;             /* 0: config.json names no labels */
    bool classifier;          /* an architecture in config.json is one for sequence
                                 classification */
    bool causal;              /* … or one for a causal language model */
    pith_activation classify; /* never PITH_ACTIVATION_MODEL; see pith_classify */
    pith_activation rerank;   /* the same; see pith_rerank */
} pith__hf_labels;

typedef struct pith__hf_labels_source {
    pith_str network;    /* the directory of config.json, or of an adapter to a network that has
                            one; a NUL follows */
    pith_str dir;        /* the directory of modules.json; a NUL follows */
    bool answers;        /* a score is the logit of an answer, not of a label */
    const pith_log *log; /* is told of an activation that is passed over; may be NULL */
} pith__hf_labels_source;

/* Reads config.json and config_sentence_transformers.json; a missing file leaves the defaults.
 * Strings are in the arena. PITH_ERR_UNSUPPORTED names an activation of torch that is not
 * computed. */
pith_status pith__hf_labels_read(pith__hf_labels *labels, const pith__hf_labels_source *source,
                                 const pith_allocator *allocator, pith__arena *arena,
                                 pith_error *err);

#endif

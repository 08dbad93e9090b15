/* family_ernie.c - ERNIE: BERT with types of tasks, all of which are 0 where the caller gives none.
 */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout ernie_layout = { PITH_HF_BERT_NAMES, .relative_keys = true,
                                                      .type_input = true, .has_types = true,
                                                      .task_types = true };

static const pith__hf_keys ernie_keys = {
    .reads = PITH_HF_BERT_READS "vocab_size=30522 task_type_vocab_size=3 use_task_id=false",
    .ignores = PITH_HF_BERT_IGNORES,
};

const pith__hf_family pith__hf_family_ernie = { .model_type = "ernie",
                                                .build = pith__hf_encoder_build,
                                                .layout = &ernie_layout,
                                                .keys = &ernie_keys };

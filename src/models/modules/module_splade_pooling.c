/* module_splade_pooling.c - SpladePooling: how logits of tokens become weights of vocabulary entries. The head "sparse"
 * does the work. Source: sentence-transformers 6.2, sparse_encoder/modules/splade_pooling.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

/* One of two strings; true for the second. */
static bool splade_choice(pith_json *j, const char *key, const char *first, const char *second) {
    pith_str value = pith_json_string(j);
    if (j->failed || pith_str_is(value, first)) return false;
    if (pith_str_is(value, second)) return true;
    pith_json_fail(j, PITH_ERR_UNSUPPORTED, "%s '" PITH_STR_FMT "' is not supported; supported are %s and %s", key,
                   PITH_STR_ARG(value), first, second);
    return false;
}

static void splade_read_config(pith_json *j, pith_module_reader *r, void *to) {
    pith_sparse_settings *s = &r->modules->sparse;
    pith_str key;
    (void)to;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "pooling_strategy"))
            s->sum = splade_choice(j, "pooling_strategy", "max", "sum");
        else if (pith_str_is(key, "activation_function"))
            s->twice = splade_choice(j, "activation_function", "relu", "log1p_relu");
        else
            pith_json_skip(j);
    }
}

static pith_status splade_pooling_read(pith_module_reader *r, pith_str folder) {
    bool there = false;
    PITH_TRY(pith_module_needs(r, PITH_STAGE_ROWS));
    r->stage = PITH_STAGE_VECTOR;
    r->modules->pooling = 0;
    r->modules->sparse.only = true;
    if (folder.size) PITH_TRY(pith_module_json(&there, r, folder, "config.json", splade_read_config, NULL));
    const pith_sparse_settings *s = &r->modules->sparse;
    return pith_module_decide(r, "sparse", folder, there ? "config.json" : NULL, "%s of %s", s->sum ? "sum" : "maximum",
                              s->twice ? "log(1 + log(1 + relu))" : "log(1 + relu)");
}

static const pith_module_keys splade_pooling_keys = { .file = "config.json",
                                                      .reads = "pooling_strategy activation_function",
                                                      .ignores =
                                                          "embedding_dimension word_embedding_dimension chunk_size" };
const pith_module_class pith_module_class_splade_pooling = { .name = "SpladePooling",
                                                             .read = splade_pooling_read,
                                                             .keys = &splade_pooling_keys };

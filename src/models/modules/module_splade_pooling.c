/* module_splade_pooling.c - SpladePooling: how logits of tokens become weights of vocabulary
 * entries. The head "sparse" does the work. Source: sentence-transformers 6.2,
 * sparse_encoder/modules/splade_pooling.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

/* One of two strings; true for the second. */
static bool splade_choice(pith__json *j, const char *key, const char *first, const char *second) {
    pith_str value = pith__json_string(j);
    if (j->failed || pith__str_is(value, first)) return false;
    if (pith__str_is(value, second)) return true;
    pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                    "%s '" PITH_STR_FMT "' is not supported; supported are %s and %s", key,
                    PITH_STR_ARG(value), first, second);
    return false;
}

static void splade_read_config(pith__json *j, pith__module_reader *r, void *to) {
    pith__sparse_settings *s = &r->modules->sparse;
    pith_str key;
    (void)to;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "pooling_strategy"))
            s->sum = splade_choice(j, "pooling_strategy", "max", "sum");
        else if (pith__str_is(key, "activation_function"))
            s->twice = splade_choice(j, "activation_function", "relu", "log1p_relu");
        else
            pith__json_skip(j);
    }
}

static pith_status splade_pooling_read(pith__module_reader *r, pith_str folder) {
    bool there = false;
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    r->stage = PITH_STAGE_VECTOR;
    r->modules->pooling = 0;
    r->modules->sparse.only = true;
    if (folder.size)
        PITH_TRY(pith__module_json(&there, r, folder, "config.json", splade_read_config, NULL));
    const pith__sparse_settings *s = &r->modules->sparse;
    return pith__module_decide(r, "sparse", folder, there ? "config.json" : NULL, "%s of %s",
                               s->sum ? "sum" : "maximum",
                               s->twice ? "log(1 + log(1 + relu))" : "log(1 + relu)");
}

static const pith__module_keys splade_pooling_keys = {
    .file = "config.json",
    .reads = "pooling_strategy activation_function",
    .ignores = "embedding_dimension word_embedding_dimension chunk_size"
};
const pith__module_class pith__module_class_splade_pooling = { .name = "SpladePooling",
                                                               .read = splade_pooling_read,
                                                               .keys = &splade_pooling_keys };

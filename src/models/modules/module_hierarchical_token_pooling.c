/* module_hierarchical_token_pooling.c - HierarchicalTokenPooling: the vectors of a text that are
 * alike become their mean, which the head "multi_vector" does (models/heads/token_pooling.h).
 * Source: sentence-transformers 6.2, multi_vector_encoder/modules/token_pooling.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"
#include "pith/encode.h"

/* As a file without the key is read, which is not as the class is made. */
#define POOLING_DEFAULTS                                                                           \
    { .factor = 1, .protects = 1, .normalizes = false, .roles = 1u << PITH_ROLE_DOCUMENT }

static double pooling_factor(pith__json *j) {
    const double factor = pith__json_double(j);
    if (!j->failed && !(factor >= 1))
        pith__json_fail(j, PITH_ERR_FORMAT, "pool_factor is %g; it must be at least 1", factor);
    return factor;
}

static int32_t pooling_protected(pith__json *j) {
    const int64_t count = pith__json_int(j);
    if (!j->failed && (count < 0 || count >= INT32_MAX))
        pith__json_fail(j, PITH_ERR_FORMAT, "num_protected_tokens is no number of tokens");
    return (int32_t)count;
}

static void pooling_read_config(pith__json *j, pith__module_reader *r, void *to) {
    pith__token_pool_settings *p = to;
    pith_str key;
    (void)r;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "pool_factor"))
            p->factor = pooling_factor(j);
        else if (pith__str_is(key, "num_protected_tokens"))
            p->protects = pooling_protected(j);
        else if (pith__str_is(key, "normalize_embeddings"))
            p->normalizes = pith__json_bool(j);
        else if (pith__str_is(key, "tasks"))
            p->roles = pith__json_null(j) ? 1u << PITH_ROLE_DOCUMENT : pith__module_roles(j);
        else
            pith__json_fail(
                j, PITH_ERR_UNSUPPORTED,
                "HierarchicalTokenPooling has no setting '" PITH_STR_FMT
                "'; it has pool_factor, num_protected_tokens, normalize_embeddings and tasks",
                PITH_STR_ARG(key));
    }
}

static pith_status hierarchical_token_pooling_read(pith__module_reader *r, pith_str folder) {
    pith__late_interaction *l = &r->modules->late;
    pith__token_pool_settings pool = POOLING_DEFAULTS;
    static const char *const texts[4] = { "no texts", [1u << PITH_ROLE_DOCUMENT] = "documents",
                                          [1u << PITH_ROLE_QUERY] = "queries",
                                          "documents and queries" };
    bool there = false;
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    if (l->expands && !l->masked)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "queries are filled up (query_expansion), which needs a module "
                          "MultiVectorMask before it");
    if (folder.size)
        PITH_TRY(pith__module_json(&there, r, folder, "config.json", pooling_read_config, &pool));
    l->pool = pool;
    l->masked = true; /* the modules say how vectors are made, and nothing else does */
    return pith__module_decide(
        r, "module", folder, there ? "config.json" : NULL,
        "HierarchicalTokenPooling of %s, factor %g, the first %d not pooled%s",
        texts[pool.roles & 3], pool.factor, pool.protects, pool.normalizes ? ", of length 1" : "");
}

const pith__module_class pith__module_class_hierarchical_token_pooling = {
    .name = "HierarchicalTokenPooling", .read = hierarchical_token_pooling_read
};

/* module_sparse_static_embedding.c - SparseStaticEmbedding: each token that a text has gets the
 * weight that a table has for it, however often it occurs. Texts get no special tokens. Source:
 * sentence-transformers 6.2, sparse_encoder/modules/sparse_static_embedding.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/static_table.h"

/* path: a file of weights by word somewhere else, from which the package makes the table. */
static void sparse_static_read_config(pith__json *j, pith__module_reader *r, void *to) {
    pith_str key;
    (void)r;
    (void)to;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "path") && !pith__json_null(j))
            pith__json_fail(
                j, PITH_ERR_UNSUPPORTED,
                "weights by word in a file elsewhere are not supported; save the model with "
                "sentence-transformers, which writes them to model.safetensors");
        else
            pith__json_skip(j);
    }
}

static pith_status sparse_static_read(pith__module_reader *r, pith_str folder) {
    bool there = false;
    PITH_TRY(pith__module_needs(r, PITH_STAGE_TEXT));
    PITH_TRY(pith__module_json(&there, r, folder, "config.json", sparse_static_read_config, NULL));
    PITH_TRY(pith__static_weights_read(r, folder));
    r->modules->sparse.only = r->modules->sparse.words = true;
    return PITH_OK;
}

static const pith__module_keys sparse_static_embedding_keys = { .file = "config.json",
                                                                .reads = "path",
                                                                .ignores = "frozen" };
const pith__module_class pith__module_class_sparse_static_embedding = {
    .name = "SparseStaticEmbedding",
    .read = sparse_static_read,
    .keys = &sparse_static_embedding_keys
};

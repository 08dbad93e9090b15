/* module_static_embedding.c - StaticEmbedding: the mean of a table's rows, without special tokens. */
#include "base/error.h"
#include "models/modules/static_table.h"

static pith_status static_embedding_read(pith_module_reader *r, pith_str folder) {
    PITH_TRY(pith_module_needs(r, PITH_STAGE_TEXT));
    return pith_static_table_read(r, folder);
}

const pith_module_class pith_module_class_static_embedding = { .name = "StaticEmbedding",
                                                               .read = static_embedding_read };

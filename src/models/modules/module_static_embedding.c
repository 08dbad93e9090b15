/* module_static_embedding.c - StaticEmbedding: the mean of a table's rows, without special tokens.
 */
#include "base/error.h"
#include "models/modules/static_table.h"

static pith_status static_embedding_read(pith__module_reader *r, pith_str folder) {
    PITH_TRY(pith__module_needs(r, PITH_STAGE_TEXT));
    return pith__static_table_read(r, folder);
}

const pith__module_class pith__module_class_static_embedding = { .name = "StaticEmbedding",
                                                                 .read = static_embedding_read };

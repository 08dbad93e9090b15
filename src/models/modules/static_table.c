/* static_table.c - a table of vectors as a graph: input_ids to rows. Source: sentence-transformers
 * 6, modules/static_embedding.py (_fold_model2vec_weights); model2vec 0.10, model.py. */
#include "models/modules/static_table.h"

#include "base/dtype.h"
#include "base/error.h"
#include "base/str.h"

typedef struct static_table {
    const pith_tensor *rows;    /* [rows, width] */
    const pith_tensor *mapping; /* [tokens], or NULL: token i has row i */
    const pith_tensor *weights; /* [tokens], or NULL */
    const char *output;
} static_table;

static pith__value *table_look_up(pith__graph *graph, const pith_tensor *table, const char *name,
                                  pith__value *ids) {
    pith__value *rows = pith__graph_add_const(graph, pith__str_of(name), table);
    return pith__row_node(graph, PITH_STR("embedding"), "Gather", (pith__value *[]){ rows, ids },
                          2);
}

static pith__value *table_cast(pith__graph *graph, pith__value *x, int from, int to) {
    if (from == to) return x;
    pith__value *y = pith__row_node(graph, PITH_STR("embedding"), "Cast", &x, 1);
    return y && !pith__node_set_int(y->producer, "to", to) ? y : NULL;
}

/* [batch, sequence, 1] */
static pith__value *table_weights(pith__graph *graph, const static_table *t, pith__value *ids) {
    pith__value *w = table_cast(graph, table_look_up(graph, t->weights, "weights", ids),
                                t->weights->dtype, PITH_F32);
    pith__value *last = pith__graph_add_i64s(graph, PITH_STR(""), (const int64_t[]){ -1 }, 1);
    return pith__row_node(graph, PITH_STR("embedding"), "Unsqueeze", (pith__value *[]){ w, last },
                          2);
}

static pith__value *table_rows(pith__graph *graph, const static_table *t, pith__value *ids) {
    pith__value *places = ids;
    if (!t->rows) return table_weights(graph, t, ids);
    if (t->mapping)
        places = table_cast(graph, table_look_up(graph, t->mapping, "mapping", ids),
                            t->mapping->dtype, PITH_I64);
    pith__value *x = table_cast(graph, table_look_up(graph, t->rows, "embedding.weight", places),
                                t->rows->dtype, PITH_F32);
    if (!t->weights) return x;
    pith__value *w = table_weights(graph, t, ids);
    return pith__row_node(graph, PITH_STR("embedding"), "Mul", (pith__value *[]){ x, w }, 2);
}

static pith_status table_build(pith__graph *graph, const void *module, pith_error *err) {
    pith__dim dims[] = { pith__dim_symbol(graph->dims, PITH_STR("batch")),
                         pith__dim_symbol(graph->dims, PITH_STR("sequence")) };
    pith__value *ids = pith__graph_add_value(graph, PITH_STR("input_ids"), PITH_VALUE_INPUT);
    graph->inputs = pith__arena_array(graph->arena, 1, sizeof *graph->inputs);
    graph->outputs = pith__arena_array(graph->arena, 1, sizeof *graph->outputs);
    if (!ids || !graph->inputs || !graph->outputs || dims[0] == PITH_DIM_UNKNOWN ||
        dims[1] == PITH_DIM_UNKNOWN)
        return pith__fail_memory(err, 0);
    pith__type_set(&ids->type, PITH_I64, 2, dims);
    graph->inputs[graph->input_count++] = ids;
    const static_table *t = module;
    pith__value *rows = table_rows(graph, t, ids);
    if (!rows) return pith__fail_memory(err, 0);
    rows->name = pith__str_of(t->output);
    rows->output_uses = 1;
    graph->outputs[graph->output_count++] = rows;
    return PITH_OK;
}

/* The tensor if its rank and dtype are right; an optional one may be missing. */
static pith_status table_find(const pith_tensor **t, const pith__module_reader *r,
                              const pith__weights *weights, const char *file, const char *name,
                              int rank, bool numbers) {
    *t = pith__weights_find(weights, pith__str_of(name));
    if (!*t) return PITH_OK;
    const int dtype = (*t)->dtype;
    bool whole = dtype == PITH_I64 || dtype == PITH_I32 || dtype == PITH_U32 || dtype == PITH_U16;
    bool known = numbers ? dtype == PITH_F32 || dtype == PITH_F16 || dtype == PITH_BF16 ||
                               dtype == PITH_F64 || dtype == PITH_I8 || dtype == PITH_U8
                         : whole;
    if ((*t)->rank == rank && known && pith__dims_count((*t)->dims, rank)) return PITH_OK;
    char shape[128];
    return pith__fail(
        r->err, PITH_ERR_UNSUPPORTED, "%s: tensor '%s' is %s of shape %s; %s with %d %s expected",
        file, name, pith__dtype_name(dtype),
        pith__dims_text((*t)->dims, (*t)->rank, shape, sizeof shape),
        numbers ? "numbers" : "whole numbers", rank, rank == 1 ? "axis are" : "axes are");
}

/* The table becomes the input of the model. */
static void table_take(pith__module_reader *r, const static_table *t, pith_str folder,
                       uint32_t pooling, pith__module_stage stage) {
    r->modules->folder = folder;
    r->modules->input = (pith__input_module){ t, table_build };
    r->modules->pooling = pooling;
    r->stage = stage;
}

pith_status pith__static_table_read(pith__module_reader *r, pith_str folder) {
    pith__weights weights;
    const char *file;
    static_table *t = pith__arena_array(r->arena, 1, sizeof *t);
    if (!t) return pith__fail_memory(r->err, sizeof *t);
    PITH_TRY(pith__module_weights(&weights, &file, r, folder));
    PITH_TRY(table_find(&t->rows, r, &weights, file, "embedding.weight", 2, true));
    if (!t->rows) {
        PITH_TRY(table_find(&t->rows, r, &weights, file, "embeddings", 2, true));
        PITH_TRY(table_find(&t->mapping, r, &weights, file, "mapping", 1, false));
        PITH_TRY(table_find(&t->weights, r, &weights, file, "weights", 1, true));
    }
    if (!t->rows && r->source->files)
        return pith__fail(r->err, PITH_ERR_NOT_FOUND,
                          "%s: tensors 'embedding.weight' and 'embeddings' are both missing", file);
    r->modules->no_specials = r->modules->tokenizer_alone = true;
    t->output = "token_embeddings";
    table_take(r, t, folder, PITH_POOL_MEAN, PITH_STAGE_VECTOR);
    if (!t->rows) return PITH_OK;
    return pith__module_decide(r, "module", folder, file, "StaticEmbedding, %lld rows of %lld",
                               (long long)t->rows->dims[0], (long long)t->rows->dims[1]);
}

pith_status pith__static_weights_read(pith__module_reader *r, pith_str folder) {
    pith__weights weights;
    const char *file;
    static_table *t = pith__arena_array(r->arena, 1, sizeof *t);
    if (!t) return pith__fail_memory(r->err, sizeof *t);
    PITH_TRY(pith__module_weights(&weights, &file, r, folder));
    PITH_TRY(table_find(&t->weights, r, &weights, file, "weight", 1, true));
    if (!t->weights && r->source->files)
        return pith__fail(r->err, PITH_ERR_NOT_FOUND, "%s: tensor 'weight' is missing", file);
    r->modules->no_specials = true;
    t->output = "sparse_weights";
    table_take(r, t, folder, 0, PITH_STAGE_VECTOR);
    if (!t->weights) return PITH_OK;
    return pith__module_decide(r, "sparse", folder, file,
                               "SparseStaticEmbedding, weights of %lld tokens",
                               (long long)t->weights->dims[0]);
}

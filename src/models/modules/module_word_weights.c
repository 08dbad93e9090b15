/* module_word_weights.c - WordWeights: the vector of each token is multiplied by a weight of its word, and means are
 * those of weights. Source: sentence-transformers 6, modules/word_weights.py and modules/pooling.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

typedef struct module_word_weights {
    int64_t words; /* of the vocabulary */
    const float *weights;
} module_word_weights;

static void word_weights_read_config(pith_json *j, pith_module_reader *r, void *to) {
    module_word_weights *w = to;
    pith_str key;
    (void)r;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (!pith_str_is(key, "vocab")) {
            pith_json_skip(j);
            continue;
        }
        w->words = 0;
        for (pith_json_array(j); pith_json_next_item(j); w->words++) pith_json_skip(j);
    }
    if (!j->failed && w->words < 1) pith_json_fail(j, PITH_ERR_FORMAT, "vocab has no words");
}

/* The weight of each token, [batch, sequence, 1]. */
static pith_value *word_weights_make(pith_graph *graph, const void *module, pith_error *err) {
    const module_word_weights *w = module;
    const pith_str place = PITH_STR("WordWeights");
    pith_value *ids = NULL;
    for (size_t i = 0; i < graph->input_count; i++)
        if (pith_str_is(graph->inputs[i]->name, "input_ids")) ids = graph->inputs[i];
    if (!ids) {
        pith_fail(err, PITH_ERR_UNSUPPORTED,
                  "module WordWeights needs an input 'input_ids', which the graph does not "
                  "have");
        return NULL;
    }
    pith_value *table = pith_row_constant(graph, w->weights, 2, (const int64_t[]){ w->words, 1 });
    return pith_row_node(graph, place, "Gather", (pith_value *[]){ table, ids }, 2);
}

static pith_value *word_weights_append(pith_graph *graph, pith_value *rows, const void *module, pith_error *err) {
    pith_value *weights = word_weights_make(graph, module, err);
    return pith_row_node(graph, PITH_STR("WordWeights"), "Mul", (pith_value *[]){ rows, weights }, 2);
}

static pith_status word_weights_read(pith_module_reader *r, pith_str folder) {
    pith_weights weights;
    const char *file;
    module_word_weights *w = pith_arena_array(r->arena, 1, sizeof *w);
    if (!w) return pith_fail_memory(r->err, sizeof *w);
    PITH_TRY(pith_module_needs(r, PITH_STAGE_ROWS));
    PITH_TRY(pith_module_json(NULL, r, folder, "config.json", word_weights_read_config, w));
    PITH_TRY(pith_module_weights(&weights, &file, r, folder));
    PITH_TRY(pith_module_tensor(&w->weights, r, &weights, file, "emb_layer.weight", 2, (int64_t[]){ w->words, 1 }));
    PITH_TRY(pith_module_add_rows(r, &(pith_row_step){ w, word_weights_append, PITH_STR("WordWeights") }));
    r->modules->weighted = true;
    r->modules->row_weights = (pith_row_weights){ w, word_weights_make };
    return pith_module_decide(r, "module", folder, file, "WordWeights of %lld words", (long long)w->words);
}

static const pith_module_keys word_weights_keys = { .file = "config.json",
                                                    .reads = "vocab",
                                                    .ignores = "word_weights unknown_word_weight" };
const pith_module_class pith_module_class_word_weights = { .name = "WordWeights",
                                                           .read = word_weights_read,
                                                           .keys = &word_weights_keys };

/* module_word_weights.c - WordWeights: the vector of each token is multiplied by a weight of its
 * word, and means are those of weights. Source: sentence-transformers 6, modules/word_weights.py
 * and modules/pooling.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

typedef struct module_word_weights {
    int64_t words; /* of the vocabulary */
    const float *weights;
} module_word_weights;

static void word_weights_read_config(pith__json *j, pith__module_reader *r, void *to) {
    module_word_weights *w = to;
    pith_str key;
    (void)r;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (!pith__str_is(key, "vocab")) {
            pith__json_skip(j);
            continue;
        }
        w->words = 0;
        for (pith__json_array(j); pith__json_next_item(j); w->words++) pith__json_skip(j);
    }
    if (!j->failed && w->words < 1) pith__json_fail(j, PITH_ERR_FORMAT, "vocab has no words");
}

/* The weight of each token, [batch, sequence, 1]. */
static pith__value *word_weights_make(pith__graph *graph, const void *module, pith_error *err) {
    const module_word_weights *w = module;
    const pith_str place = PITH_STR("WordWeights");
    pith__value *ids = NULL;
    for (size_t i = 0; i < graph->input_count; i++)
        if (pith__str_is(graph->inputs[i]->name, "input_ids")) ids = graph->inputs[i];
    if (!ids) {
        pith__fail(err, PITH_ERR_UNSUPPORTED,
                   "module WordWeights needs an input 'input_ids', which the graph does not "
                   "have");
        return NULL;
    }
    pith__value *table = pith__row_constant(graph, w->weights, 2, (const int64_t[]){ w->words, 1 });
    return pith__row_node(graph, place, "Gather", (pith__value *[]){ table, ids }, 2);
}

static pith__value *word_weights_append(pith__graph *graph, pith__value *rows, const void *module,
                                        pith_error *err) {
    pith__value *weights = word_weights_make(graph, module, err);
    return pith__row_node(graph, PITH_STR("WordWeights"), "Mul", (pith__value *[]){ rows, weights },
                          2);
}

static pith_status word_weights_read(pith__module_reader *r, pith_str folder) {
    pith__weights weights;
    const char *file;
    module_word_weights *w = pith__arena_array(r->arena, 1, sizeof *w);
    if (!w) return pith__fail_memory(r->err, sizeof *w);
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    PITH_TRY(pith__module_json(NULL, r, folder, "config.json", word_weights_read_config, w));
    PITH_TRY(pith__module_weights(&weights, &file, r, folder));
    PITH_TRY(pith__module_tensor(&w->weights, r, &weights, file, "emb_layer.weight", 2,
                                 (int64_t[]){ w->words, 1 }));
    PITH_TRY(pith__module_add_rows(
        r, &(pith__row_step){ w, word_weights_append, PITH_STR("WordWeights") }));
    r->modules->weighted = true;
    r->modules->row_weights = (pith__row_weights){ w, word_weights_make };
    return pith__module_decide(r, "module", folder, file, "WordWeights of %lld words",
                               (long long)w->words);
}

static const pith__module_keys word_weights_keys = {
    .file = "config.json", .reads = "vocab", .ignores = "word_weights unknown_word_weight"
};
const pith__module_class pith__module_class_word_weights = { .name = "WordWeights",
                                                             .read = word_weights_read,
                                                             .keys = &word_weights_keys };

/* module_weighted_layer_pooling.c - WeightedLayerPooling: the vectors of tokens become the weighted
 * mean of what the network's layers make of them. Layer 0 is what goes into the first one; the last
 * is the network's output.
 *
 * As in sentence-transformers, the module does nothing unless the network's settings ask for its
 * layers (output_hidden_states). Source: sentence-transformers 6,
 * modules/weighted_layer_pooling.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

enum { LAYERS_MAX = 512 };

typedef struct module_layers {
    int64_t width, last, first; /* of vectors; layers from first to last */
    const float *weights;       /* [last - first + 1] */
    float sum;                  /* of the weights */
} module_layers;

static void layers_read_config(pith__json *j, pith__module_reader *r, void *to) {
    module_layers *l = to;
    pith_str key;
    (void)r;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "embedding_dimension") ||
            pith__str_is(key, "word_embedding_dimension"))
            l->width = pith__json_int(j);
        else if (pith__str_is(key, "num_hidden_layers"))
            l->last = pith__json_int(j);
        else if (pith__str_is(key, "layer_start"))
            l->first = pith__json_int(j);
        else
            pith__json_skip(j);
    }
    if (!j->failed && (l->first < 0 || l->last < l->first || l->last > LAYERS_MAX || l->width < 1 ||
                       l->width > PITH_MODULE_WIDTH_MAX))
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "layers %lld to %lld of width %lld; there are at most %d layers",
                        (long long)l->first, (long long)l->last, (long long)l->width, LAYERS_MAX);
}

/* What layer i gives, by its name; the last one may be the rows of the output. */
static pith__value *layers_find(pith__graph *graph, const module_layers *l, int64_t i,
                                pith_error *err) {
    pith_str name = pith__arena_printf(graph->arena, "hidden_states.%lld", (long long)i);
    pith__value *x = NULL;
    if (!name.data) return NULL;
    for (size_t v = 0; v < graph->value_count && !x; v++)
        if (graph->values[v]->producer && pith__str_eq(graph->values[v]->name, name))
            x = graph->values[v];
    int output = i == l->last ? pith__graph_find_output(graph, "last_hidden_state") : -1;
    if (!x && output >= 0) x = graph->outputs[output];
    if (!x)
        pith__fail(err, PITH_ERR_UNSUPPORTED,
                   "module WeightedLayerPooling reads layer %lld, but the network has no value "
                   "'hidden_states.%lld'; "
                   "open its safetensors, or export it with hidden states as outputs",
                   (long long)i, (long long)i);
    return x && pith__row_width_fits(x, l->width, "WeightedLayerPooling", err) ? x : NULL;
}

static pith__value *layers_append(pith__graph *graph, pith__value *rows, const void *module,
                                  pith_error *err) {
    const module_layers *l = module;
    const pith_str place = PITH_STR("WeightedLayerPooling");
    pith__value *sum = NULL;
    (void)rows;
    pith_str beyond =
        pith__arena_printf(graph->arena, "hidden_states.%lld", (long long)l->last + 1);
    if (!beyond.data) return NULL;
    for (size_t v = 0; v < graph->value_count; v++)
        if (graph->values[v]->producer && pith__str_eq(graph->values[v]->name, beyond)) {
            pith__fail(err, PITH_ERR_FORMAT,
                       "module WeightedLayerPooling has weights up to layer %lld, but the network "
                       "has more layers",
                       (long long)l->last);
            return NULL;
        }
    for (int64_t i = l->first; i <= l->last; i++) {
        pith__value *x = layers_find(graph, l, i, err);
        if (x && x->type.dtype != PITH_F32 && x->type.dtype != PITH_UNDEFINED) {
            x = pith__row_node(graph, place, "Cast", &x, 1);
            if (!x || pith__node_set_int(x->producer, "to", PITH_F32)) return NULL;
        }
        pith__value *weight = pith__graph_add_f32(graph, PITH_STR(""), l->weights[i - l->first]);
        x = pith__row_node(graph, place, "Mul", (pith__value *[]){ x, weight }, 2);
        sum =
            i == l->first ? x : pith__row_node(graph, place, "Add", (pith__value *[]){ sum, x }, 2);
        if (!sum) return NULL;
    }
    pith__value *all = pith__graph_add_f32(graph, PITH_STR(""), l->sum);
    return pith__row_node(graph, place, "Div", (pith__value *[]){ sum, all }, 2);
}

static pith_status layers_read(pith__module_reader *r, pith_str folder) {
    pith__weights weights;
    const char *file;
    module_layers *l = pith__arena_array(r->arena, 1, sizeof *l);
    if (!l) return pith__fail_memory(r->err, sizeof *l);
    *l = (module_layers){ .last = 12, .first = 4 };
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    PITH_TRY(pith__module_json(NULL, r, folder, "config.json", layers_read_config, l));
    PITH_TRY(pith__module_weights(&weights, &file, r, folder));
    const int64_t count = l->last - l->first + 1;
    PITH_TRY(pith__module_tensor(&l->weights, r, &weights, file, "layer_weights", 1, &count));
    if (l->weights)
        for (int64_t i = 0; i < count; i++) l->sum += l->weights[i];
    if (!r->layered)
        return pith__module_decide(
            r, "module", PITH_STR(""), "modules.json",
            "WeightedLayerPooling, which does nothing: the network's output_hidden_states is not "
            "true");
    PITH_TRY(pith__module_add_rows(
        r, &(pith__row_step){ l, layers_append, PITH_STR("WeightedLayerPooling") }));
    return pith__module_decide(r, "module", folder, file,
                               "WeightedLayerPooling of layers %lld to %lld", (long long)l->first,
                               (long long)l->last);
}

static const pith__module_keys weighted_layer_pooling_keys = {
    .file = "config.json",
    .reads = "embedding_dimension word_embedding_dimension num_hidden_layers layer_start"
};
const pith__module_class pith__module_class_weighted_layer_pooling = {
    .name = "WeightedLayerPooling", .read = layers_read, .keys = &weighted_layer_pooling_keys
};

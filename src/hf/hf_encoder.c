/* hf_encoder.c - BERT, RoBERTa, DistilBERT and MPNet as a graph of ordinary operators.
 *
 * The graph is spelled as exporters spell it (eager attention, opset 20), so the passes that fuse exported models fuse
 * this one as well. Weights stay as they are stored. A matrix is read through a Transpose and, in half precision, a
 * Cast, which the fused steps look through. Table rows are widened after the look-up. Sources: modeling_bert,
 * modeling_roberta, modeling_distilbert, modeling_mpnet of transformers. */
#include "hf/hf_encoder.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"

/* The largest distance MPNet tells apart. */
#define RELATIVE_DISTANCE_MAX 128

typedef struct builder {
    pith_graph *graph;
    const pith_hf_encoder_layout *layout;
    const pith_hf_config *config;
    const pith_weights *weights;
    const char *weights_name;
    pith_str prefix; /* before "embeddings." in the tensors' names */
    pith_str place;  /* of the nodes being made: "encoder.layer.0.attention.self.query" */
    pith_error *err;
    pith_status status; /* the first fault; after it everything returns NULL */
} builder;

static pith_value *made(builder *b, pith_value *value) {
    if (!value && !b->status) b->status = pith_fail_memory(b->err, 0);
    return value;
}

/* A node with one output. */
static pith_value *hf_encoder_put(builder *b, const char *op, pith_value *const *inputs, int count) {
    if (b->status) return NULL;
    pith_node *node = pith_graph_add_node(b->graph, NULL, "", op, inputs, count, NULL, 1);
    pith_str name = pith_arena_printf(b->graph->arena, PITH_STR_FMT "/%s", PITH_STR_ARG(b->place), op);
    if (!node || !name.data) return made(b, NULL);
    node->name = name;
    return node->outputs[0];
}

#define PUT(b, op, ...)                                                                                                \
    hf_encoder_put(b, op, (pith_value *[]){ __VA_ARGS__ },                                                             \
                   (int)(sizeof(pith_value *[]){ __VA_ARGS__ } / sizeof(pith_value *)))

static void set_int(builder *b, pith_value *value, const char *name, int64_t number) {
    if (value && pith_node_set_int(value->producer, name, number)) made(b, NULL);
}

static pith_value *put_axis(builder *b, const char *op, pith_value *x, int64_t axis) {
    pith_value *y = PUT(b, op, x);
    set_int(b, y, "axis", axis);
    return y;
}

static pith_value *hf_encoder_cast(builder *b, pith_value *x, pith_dtype to) {
    pith_value *y = PUT(b, "Cast", x);
    set_int(b, y, "to", to);
    return y;
}

static pith_value *hf_encoder_transpose(builder *b, pith_value *x, const int64_t *perm, size_t count) {
    pith_value *y = PUT(b, "Transpose", x);
    if (y && pith_node_set_ints(y->producer, "perm", perm, count)) made(b, NULL);
    return y;
}

static pith_value *i64s(builder *b, const int64_t *items, int64_t count) {
    return b->status ? NULL : made(b, pith_graph_add_i64s(b->graph, PITH_STR(""), items, count));
}

static pith_value *i64(builder *b, int64_t item) { return i64s(b, &item, 1); }

static pith_value *i64_scalar(builder *b, int64_t item) {
    int64_t *copy = b->status ? NULL : pith_arena_alloc(b->graph->arena, sizeof *copy);
    if (!copy) return made(b, NULL);
    *copy = item;
    pith_tensor t = { .data = copy, .bytes = sizeof *copy, .dtype = PITH_I64 };
    return made(b, pith_graph_add_const(b->graph, PITH_STR(""), &t));
}

static pith_value *f32(builder *b, float item) {
    return b->status ? NULL : made(b, pith_graph_add_f32(b->graph, PITH_STR(""), item));
}

static pith_value *unsqueeze(builder *b, pith_value *x, int64_t axis) { return PUT(b, "Unsqueeze", x, i64(b, axis)); }

static pith_value *hf_encoder_reshape(builder *b, pith_value *x, const int64_t *dims, int64_t rank) {
    return PUT(b, "Reshape", x, i64s(b, dims, rank));
}

/* ---- tensors ---- */

/* prefix + place + suffix as it stands in the file. */
static const pith_tensor *hf_encoder_find(builder *b, const char *suffix, pith_str *name) {
    *name = pith_arena_printf(b->graph->arena, PITH_STR_FMT PITH_STR_FMT "%s", PITH_STR_ARG(b->prefix),
                              PITH_STR_ARG(b->place), suffix);
    if (!name->data) made(b, NULL);
    return b->status ? NULL : pith_weights_find(b->weights, *name);
}

/* The tensor at the place being built, checked. old_suffix (may be NULL): what early models called it. */
static pith_value *tensor(builder *b, const char *suffix, const char *old_suffix, int rank, const int64_t *dims) {
    char want[128], found[128];
    pith_str name, old_name;
    const pith_tensor *t = hf_encoder_find(b, suffix, &name);
    if (!t && old_suffix) t = hf_encoder_find(b, old_suffix, &old_name);
    if (b->status) return NULL;
    pith_dims_text(dims, rank, want, sizeof want);
    if (!t) {
        b->status = pith_fail(b->err, PITH_ERR_NOT_FOUND,
                              "%s: tensor '" PITH_STR_FMT "' is missing; config.json asks for shape %s",
                              b->weights_name, PITH_STR_ARG(name), want);
    } else if (t->rank != rank || memcmp(t->dims, dims, (size_t)rank * sizeof *dims)) {
        b->status =
            pith_fail(b->err, PITH_ERR_FORMAT, "%s: tensor '" PITH_STR_FMT "' has shape %s; config.json asks for %s",
                      b->weights_name, PITH_STR_ARG(name), pith_dims_text(t->dims, t->rank, found, sizeof found), want);
    } else if (t->dtype != PITH_F32 && t->dtype != PITH_F16 && t->dtype != PITH_BF16) {
        b->status = pith_fail(b->err, PITH_ERR_UNSUPPORTED,
                              "%s: tensor '" PITH_STR_FMT "' is %s; float32, float16 and bfloat16 are supported",
                              b->weights_name, PITH_STR_ARG(name), pith_dtype_name(t->dtype));
    }
    return b->status ? NULL : made(b, pith_graph_add_const(b->graph, name, t));
}

static pith_value *hf_encoder_widen(builder *b, const pith_value *stored, pith_value *x) {
    return !stored || stored->type.dtype == PITH_F32 ? x : hf_encoder_cast(b, x, PITH_F32);
}

static pith_value *vector(builder *b, const char *suffix, const char *old_suffix, int64_t size) {
    pith_value *v = tensor(b, suffix, old_suffix, 1, &size);
    return hf_encoder_widen(b, v, v);
}

static void go_to(builder *b, int64_t layer, const char *name) {
    pith_arena *arena = b->graph->arena;
    b->place = layer < 0 ? pith_arena_printf(arena, "%s", name)
                         : pith_arena_printf(arena, "%s%lld.%s", b->layout->layer, (long long)layer, name);
    if (!b->place.data) made(b, NULL);
}

/* ---- layers ---- */

static pith_value *hf_encoder_look_up(builder *b, const char *name, int64_t rows, pith_value *ids) {
    go_to(b, -1, name);
    pith_value *table = tensor(b, ".weight", NULL, 2, (int64_t[]){ rows, b->config->hidden_size });
    return hf_encoder_widen(b, table, PUT(b, "Gather", table, ids));
}

static pith_value *linear(builder *b, int64_t layer, const char *name, pith_value *x, int64_t in, int64_t out) {
    go_to(b, layer, name);
    pith_value *stored = tensor(b, ".weight", NULL, 2, (int64_t[]){ out, in });
    pith_value *weight = hf_encoder_transpose(b, hf_encoder_widen(b, stored, stored), (int64_t[]){ 1, 0 }, 2);
    pith_value *bias = vector(b, ".bias", NULL, out);
    return PUT(b, "Add", PUT(b, "MatMul", x, weight), bias);
}

static pith_value *norm(builder *b, int64_t layer, const char *name, pith_value *x) {
    go_to(b, layer, name);
    pith_value *gain = vector(b, ".weight", ".gamma", b->config->hidden_size);
    pith_value *bias = vector(b, ".bias", ".beta", b->config->hidden_size);
    pith_value *y = PUT(b, "LayerNormalization", x, gain, bias);
    set_int(b, y, "axis", -1);
    if (y && pith_node_set_float(y->producer, "epsilon", (float)b->config->layer_norm_eps)) made(b, NULL);
    return y;
}

static pith_value *hf_encoder_activate(builder *b, int64_t layer, pith_value *x) {
    static const struct {
        const char *name, *op, *approximate;
    } known[] = {
        { "gelu", "Gelu", "none" },     { "gelu_fast", "Gelu", "tanh" },
        { "gelu_new", "Gelu", "tanh" }, { "gelu_pytorch_tanh", "Gelu", "tanh" },
        { "relu", "Relu", NULL },       { "tanh", "Tanh", NULL },
    };
    go_to(b, layer, "activation");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!pith_str_is(b->config->hidden_act, known[i].name)) continue;
        pith_value *y = PUT(b, known[i].op, x);
        if (y && known[i].approximate &&
            pith_node_set_str(y->producer, "approximate", pith_str_of(known[i].approximate))) {
            made(b, NULL);
        }
        return y;
    }
    if (!b->status) {
        b->status =
            pith_fail(b->err, PITH_ERR_UNSUPPORTED,
                      "config.json: activation \"" PITH_STR_FMT
                      "\" is not supported; supported are gelu, gelu_fast, gelu_new, gelu_pytorch_tanh, relu, tanh",
                      PITH_STR_ARG(b->config->hidden_act));
    }
    return NULL;
}

/* The length of the sequence, a scalar. */
static pith_value *sequence_length(builder *b, pith_value *ids) {
    pith_value *length = PUT(b, "Gather", PUT(b, "Shape", ids), i64_scalar(b, 1));
    set_int(b, length, "axis", 0);
    return length;
}

/* Position of each token: 0, 1, 2, … [1, sequence], or counted over what is no padding [batch, sequence]. */
static pith_value *hf_encoder_positions(builder *b, pith_value *ids) {
    const pith_hf_config *c = b->config;
    if (b->layout->padded_positions) {
        int64_t pad = c->pad_token_id < 0 ? 1 : c->pad_token_id;
        pith_value *real = hf_encoder_cast(b, PUT(b, "Not", PUT(b, "Equal", ids, i64_scalar(b, pad))), PITH_I64);
        pith_value *counted = PUT(b, "Mul", PUT(b, "CumSum", real, i64_scalar(b, 1)), real);
        return PUT(b, "Add", counted, i64_scalar(b, pad));
    }
    int64_t *all = b->status ? NULL : pith_arena_array(b->graph->arena, (size_t)c->positions, sizeof *all);
    if (!all) return made(b, NULL);
    for (int64_t i = 0; i < c->positions; i++) all[i] = i;
    pith_tensor t = { .data = all,
                      .bytes = (size_t)c->positions * sizeof *all,
                      .dtype = PITH_I64,
                      .rank = 2,
                      .dims = { 1, c->positions } };
    pith_value *table = made(b, pith_graph_add_const(b->graph, PITH_STR("position_ids"), &t));
    return PUT(b, "Slice", table, i64(b, 0), unsqueeze(b, sequence_length(b, ids), 0), i64(b, 1));
}

/* 0 where the token is real, the lowest f32 where it is padding: [batch, 1, 1, sequence]. */
static pith_value *padding_term(builder *b, pith_value *mask) {
    go_to(b, -1, "attention_mask");
    pith_value *real = hf_encoder_cast(b, unsqueeze(b, unsqueeze(b, mask, 1), 2), PITH_F32);
    return PUT(b, "Mul", PUT(b, "Sub", f32(b, 1), real), f32(b, -FLT_MAX));
}

/* The bucket of a key `distance` places after the query: exact near by, logarithmic further off. */
static int64_t relative_bucket(int64_t distance, int64_t buckets) {
    int64_t half = buckets / 2, exact = half / 2, bucket = distance > 0 ? half : 0;
    int64_t n = distance < 0 ? -distance : distance;
    if (n < exact) return bucket + n;
    float scale = (float)log((double)RELATIVE_DISTANCE_MAX / (double)exact);
    float far = (float)log((double)((float)n / (float)exact)) / scale * (float)(half - exact);
    int64_t log_bucket = exact + (int64_t)far;
    return bucket + (log_bucket < half ? log_bucket : half - 1);
}

/* MPNet's bias by distance, [1, heads, sequence, sequence]: the learned row of each distance's bucket. */
static pith_value *relative_term(builder *b, pith_value *ids) {
    const pith_hf_config *c = b->config;
    int64_t buckets = c->relative_buckets ? c->relative_buckets : 32, reach = c->positions - 1;
    go_to(b, -1, "encoder.relative_attention_bias");
    if (buckets < 4 && !b->status)
        b->status =
            pith_fail(b->err, PITH_ERR_FORMAT,
                      "config.json: relative_attention_num_buckets is %lld; it must be at least 4", (long long)buckets);
    pith_value *learned = tensor(b, ".weight", NULL, 2, (int64_t[]){ buckets, c->heads });
    int64_t *bucket = b->status ? NULL : pith_arena_array(b->graph->arena, 2 * (size_t)reach + 1, sizeof *bucket);
    if (!bucket) return made(b, NULL);
    for (int64_t d = -reach; d <= reach; d++) bucket[reach + d] = relative_bucket(d, buckets);
    pith_value *bucket_of = i64s(b, bucket, 2 * reach + 1);
    pith_value *range = PUT(b, "Range", i64_scalar(b, 0), sequence_length(b, ids), i64_scalar(b, 1));
    pith_value *distance = PUT(b, "Sub", unsqueeze(b, range, 0), unsqueeze(b, range, 1));
    pith_value *place = PUT(b, "Gather", bucket_of, PUT(b, "Add", distance, i64(b, reach)));
    pith_value *rows = hf_encoder_widen(b, learned, PUT(b, "Gather", learned, place));
    return unsqueeze(b, hf_encoder_transpose(b, rows, (int64_t[]){ 2, 0, 1 }, 3), 0);
}

static pith_value *embed(builder *b, pith_value *ids, pith_value *types) {
    const pith_hf_config *c = b->config;
    pith_value *sum = hf_encoder_look_up(b, "embeddings.word_embeddings", c->vocab_size, ids);
    if (b->layout->has_types) {
        if (!types)
            types = PUT(b, "Expand", hf_encoder_reshape(b, i64(b, 0), (int64_t[]){ 1, 1 }, 2), PUT(b, "Shape", ids));
        sum = PUT(b, "Add", sum, hf_encoder_look_up(b, "embeddings.token_type_embeddings", c->types, types));
    }
    go_to(b, -1, "embeddings.position_ids");
    pith_value *place = hf_encoder_positions(b, ids);
    sum = PUT(b, "Add", sum, hf_encoder_look_up(b, "embeddings.position_embeddings", c->positions, place));
    return norm(b, -1, "embeddings.LayerNorm", sum);
}

static pith_value *attend(builder *b, int64_t layer, pith_value *x, pith_value *padding, pith_value *relative) {
    const pith_hf_config *c = b->config;
    const pith_hf_encoder_layout *f = b->layout;
    int64_t n = c->hidden_size, size = n / c->heads;
    const int64_t split[] = { 0, 0, c->heads, size }, joined[] = { 0, 0, n };
    const int64_t heads_first[] = { 0, 2, 1, 3 }, keys_last[] = { 0, 2, 3, 1 };
    pith_value *q =
        hf_encoder_transpose(b, hf_encoder_reshape(b, linear(b, layer, f->query, x, n, n), split, 4), heads_first, 4);
    pith_value *k =
        hf_encoder_transpose(b, hf_encoder_reshape(b, linear(b, layer, f->key, x, n, n), split, 4), keys_last, 4);
    pith_value *v =
        hf_encoder_transpose(b, hf_encoder_reshape(b, linear(b, layer, f->value, x, n, n), split, 4), heads_first, 4);
    go_to(b, layer, "attention");
    pith_value *scores = PUT(b, "Mul", PUT(b, "MatMul", q, k), f32(b, (float)(1 / sqrt((double)size))));
    if (relative) scores = PUT(b, "Add", scores, relative);
    pith_value *weights = put_axis(b, "Softmax", PUT(b, "Add", scores, padding), -1);
    pith_value *heads = hf_encoder_transpose(b, PUT(b, "MatMul", weights, v), heads_first, 4);
    return linear(b, layer, f->attention_out, hf_encoder_reshape(b, heads, joined, 3), n, n);
}

static pith_value *hf_encoder_encode(builder *b, int64_t layer, pith_value *x, pith_value *padding,
                                     pith_value *relative) {
    const pith_hf_config *c = b->config;
    const pith_hf_encoder_layout *f = b->layout;
    pith_value *y = attend(b, layer, x, padding, relative);
    x = norm(b, layer, f->attention_norm, PUT(b, "Add", y, x));
    y = hf_encoder_activate(b, layer, linear(b, layer, f->up, x, c->hidden_size, c->intermediate_size));
    y = linear(b, layer, f->down, y, c->intermediate_size, c->hidden_size);
    return norm(b, layer, f->norm, PUT(b, "Add", y, x));
}

/* ---- the whole ---- */

static pith_value *hf_encoder_input(builder *b, const char *name) {
    pith_dim dims[] = { pith_dim_symbol(b->graph->dims, PITH_STR("batch")),
                        pith_dim_symbol(b->graph->dims, PITH_STR("sequence")) };
    pith_value *value = b->status ? NULL : pith_graph_add_value(b->graph, pith_str_of(name), PITH_VALUE_INPUT);
    if (!value || dims[0] == PITH_DIM_UNKNOWN || dims[1] == PITH_DIM_UNKNOWN) return made(b, NULL);
    pith_type_set(&value->type, PITH_I64, 2, dims);
    b->graph->inputs[b->graph->input_count++] = value;
    return value;
}

/* Models save the encoder alone or inside a larger one: "bert.embeddings.…", "0.auto_model.embeddings.…". */
static void find_prefix(builder *b) {
    const pith_str tail = PITH_STR("embeddings.word_embeddings.weight");
    bool found = false;
    for (size_t i = 0; i < b->weights->count; i++) {
        pith_str key = b->weights->keys[i];
        if (key.size < tail.size || memcmp(key.data + key.size - tail.size, tail.data, tail.size)) continue;
        if (found && b->prefix.size <= key.size - tail.size) continue;
        b->prefix = (pith_str){ key.data, key.size - tail.size };
        found = true;
    }
}

static pith_status check_config(const pith_hf_config *c, const pith_hf_encoder_layout *f, pith_error *err) {
    const struct {
        const char *name;
        int64_t value, limit;
    } sizes[] = {
        { "hidden_size", c->hidden_size, 1 << 20 },
        { "num_hidden_layers", c->layers, 1 << 12 },
        { "num_attention_heads", c->heads, c->hidden_size },
        { "intermediate_size", c->intermediate_size, 1 << 24 },
        { "vocab_size", c->vocab_size, INT32_MAX },
        { "max_position_embeddings", c->positions, 1 << 20 },
        { "type_vocab_size", f->has_types ? c->types : 1, 1 << 20 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].value >= 1 && sizes[i].value <= sizes[i].limit) continue;
        return pith_fail(err, PITH_ERR_FORMAT, "config.json: %s is %lld; it must be between 1 and %lld", sizes[i].name,
                         (long long)sizes[i].value, (long long)sizes[i].limit);
    }
    if (c->hidden_size % c->heads) {
        return pith_fail(err, PITH_ERR_FORMAT,
                         "config.json: hidden_size %lld is not a multiple of num_attention_heads %lld",
                         (long long)c->hidden_size, (long long)c->heads);
    }
    if (!pith_str_is(c->position_embedding_type, "absolute")) {
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "config.json: position_embedding_type \"" PITH_STR_FMT "\"; only \"absolute\" is supported",
                         PITH_STR_ARG(c->position_embedding_type));
    }
    if (c->is_decoder)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "config.json: is_decoder is true; only encoders are supported");
    return PITH_OK;
}

pith_status pith_hf_encoder_build(pith_graph *graph, const void *given, const pith_hf_config *config,
                                  const pith_weights *weights, const char *weights_name, pith_error *err) {
    const pith_hf_encoder_layout *layout = given;
    PITH_TRY(check_config(config, layout, err));
    builder b = { graph, layout, config, weights, weights_name, PITH_STR(""), PITH_STR(""), err, PITH_OK };
    find_prefix(&b);
    graph->inputs = pith_arena_array(graph->arena, 3, sizeof *graph->inputs);
    graph->outputs = pith_arena_array(graph->arena, 1, sizeof *graph->outputs);
    if (!graph->inputs || !graph->outputs) return pith_fail_memory(err, 0);
    pith_value *ids = hf_encoder_input(&b, "input_ids"), *mask = hf_encoder_input(&b, "attention_mask");
    pith_value *types = layout->type_input ? hf_encoder_input(&b, "token_type_ids") : NULL;
    pith_value *x = embed(&b, ids, types);
    pith_value *padding = padding_term(&b, mask);
    pith_value *relative = layout->relative_bias ? relative_term(&b, ids) : NULL;
    for (int64_t i = 0; i < config->layers && !b.status; i++) x = hf_encoder_encode(&b, i, x, padding, relative);
    if (b.status) return b.status;
    x->name = PITH_STR("last_hidden_state");
    x->output_uses = 1;
    graph->outputs[graph->output_count++] = x;
    return PITH_OK;
}

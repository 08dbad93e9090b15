/* hf_builder.c - nodes, constants and tensors of the graphs that are built from config.json and
 * safetensors.
 *
 * The graphs are spelled as exporters spell them (eager attention, opset 20), so the passes that
 * fuse exported models fuse these as well. */
#include "models/architectures/hf_builder.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"

pith__value *pith__hf_made(pith__hf_builder *b, pith__value *value) {
    if (!value && !b->status) b->status = pith__fail_memory(b->err, 0);
    return value;
}

/* ---- beginning and end ---- */

/* What stands in front of the architecture's own names ("bert.", "model."), told by one tensor that
 * every checkpoint has. The shortest prefix counts, since a network inside another one has a longer
 * one. */
static void hf_builder_find_prefix(pith__hf_builder *b, pith_str tail) {
    bool found = false;
    for (size_t i = 0; i < b->weights->count; i++) {
        pith_str key = b->weights->keys[i];
        if (key.size < tail.size || memcmp(key.data + key.size - tail.size, tail.data, tail.size))
            continue;
        size_t before = key.size - tail.size;
        if ((found && b->prefix.size <= before) || (before && key.data[before - 1] != '.'))
            continue;
        b->prefix = (pith_str){ key.data, before };
        found = true;
    }
}

/* Room for three inputs and one output; towers and tasks take more of their own. */
pith_status pith__hf_begin(pith__hf_builder *b, pith__graph *graph, const pith__hf_config *config,
                           const pith__weights *weights, const char *weights_name,
                           const char *anchor, pith_error *err) {
    *b = (pith__hf_builder){ .graph = graph,
                             .config = config,
                             .weights = weights,
                             .weights_name = weights_name,
                             .prefix = PITH_STR(""),
                             .layer = PITH_STR(""),
                             .place = PITH_STR(""),
                             .err = err };
    graph->inputs = pith__arena_array(graph->arena, 3, sizeof *graph->inputs);
    graph->outputs = pith__arena_array(graph->arena, 1, sizeof *graph->outputs);
    if (!graph->inputs || !graph->outputs || pith__map_init(&b->constants, graph->arena, 256))
        return b->status = pith__fail_memory(err, 0);
    hf_builder_find_prefix(b, pith__str_of(anchor));
    return PITH_OK;
}

/* All inputs have the same two symbolic sizes, so that inference knows them equal. */
pith__value *pith__hf_input(pith__hf_builder *b, const char *name) {
    pith__dim dims[] = { pith__dim_symbol(b->graph->dims, PITH_STR("batch")),
                         pith__dim_symbol(b->graph->dims, PITH_STR("sequence")) };
    pith__value *value =
        b->status ? NULL : pith__graph_add_value(b->graph, pith__str_of(name), PITH_VALUE_INPUT);
    if (!value || dims[0] == PITH_DIM_UNKNOWN || dims[1] == PITH_DIM_UNKNOWN)
        return pith__hf_made(b, NULL);
    pith__type_set(&value->type, PITH_I64, 2, dims);
    b->graph->inputs[b->graph->input_count++] = value;
    return value;
}

pith__value *pith__hf_layer_input(pith__hf_builder *b, int64_t i, pith__value *x) {
    if (!x || b->status) return x;
    pith_str name = pith__arena_printf(b->graph->arena, "hidden_states.%lld", (long long)i);
    if (!name.data) return pith__hf_made(b, NULL);
    x->name = name;
    return x;
}

pith_status pith__hf_end(pith__hf_builder *b, pith__value *x) {
    if (b->status) return b->status;
    x->name = PITH_STR("last_hidden_state");
    x->output_uses = 1;
    b->graph->outputs[b->graph->output_count++] = x;
    if (b->config->add_tasks) b->config->add_tasks(b, x);
    return b->status;
}

/* ---- places ---- */

void pith__hf_set_layer(pith__hf_builder *b, pith_str name) {
    b->layer = name;
    if (!name.data) {
        b->layer = PITH_STR("");
        pith__hf_made(b, NULL);
    }
}

void pith__hf_go_to(pith__hf_builder *b, const char *name) { b->place = pith__str_of(name); }

void pith__hf_in_layer(pith__hf_builder *b, const char *name) {
    pith_str place =
        pith__arena_printf(b->graph->arena, PITH_STR_FMT "%s", PITH_STR_ALL(b->layer), name);
    if (place.data)
        b->place = place;
    else
        pith__hf_made(b, NULL);
}

/* ---- nodes ---- */

/* Nodes go to the end and are not bound here: operators are bound when the graph is finished, as
 * for a graph from a file. The name is that of the place, as exporters name nodes after modules. */
pith__value *pith__hf_put(pith__hf_builder *b, const char *op, pith__value *const *inputs,
                          int count) {
    if (b->status) return NULL;
    pith__node *node = pith__graph_add_node(b->graph, NULL, "", op, inputs, count, NULL, 1);
    pith_str name =
        pith__arena_printf(b->graph->arena, PITH_STR_FMT "/%s", PITH_STR_ALL(b->place), op);
    if (!node || !name.data) return pith__hf_made(b, NULL);
    node->name = name;
    return node->outputs[0];
}

void pith__hf_set_int(pith__hf_builder *b, pith__value *value, const char *name, int64_t number) {
    if (value && pith__node_set_int(value->producer, name, number)) pith__hf_made(b, NULL);
}

pith__value *pith__hf_put_axis(pith__hf_builder *b, const char *op, pith__value *x, int64_t axis) {
    pith__value *y = PITH_HF_PUT(b, op, x);
    pith__hf_set_int(b, y, "axis", axis);
    return y;
}

pith__value *pith__hf_cast(pith__hf_builder *b, pith__value *x, pith_dtype to) {
    pith__value *y = PITH_HF_PUT(b, "Cast", x);
    pith__hf_set_int(b, y, "to", to);
    return y;
}

pith__value *pith__hf_transpose(pith__hf_builder *b, pith__value *x, const int64_t *perm,
                                size_t count) {
    pith__value *y = PITH_HF_PUT(b, "Transpose", x);
    if (y && pith__node_set_ints(y->producer, "perm", perm, count)) pith__hf_made(b, NULL);
    return y;
}

pith__value *pith__hf_reshape(pith__hf_builder *b, pith__value *x, const int64_t *dims,
                              int64_t rank) {
    return PITH_HF_PUT(b, "Reshape", x, pith__hf_i64s(b, dims, rank));
}

pith__value *pith__hf_unsqueeze(pith__hf_builder *b, pith__value *x, int64_t axis) {
    return PITH_HF_PUT(b, "Unsqueeze", x, pith__hf_i64(b, axis));
}

pith__value *pith__hf_slice(pith__hf_builder *b, pith__value *x, int64_t from, int64_t to,
                            int64_t axis) {
    return PITH_HF_PUT(b, "Slice", x, pith__hf_i64(b, from), pith__hf_i64(b, to),
                       pith__hf_i64(b, axis));
}

pith__value *pith__hf_join(pith__hf_builder *b, pith__value *x, pith__value *y, int64_t axis) {
    pith__value *z = PITH_HF_PUT(b, "Concat", x, y);
    pith__hf_set_int(b, z, "axis", axis);
    return z;
}

void pith__hf_split(pith__hf_builder *b, pith__value **parts, int count, pith__value *x,
                    int64_t size, int64_t axis) {
    for (int i = 0; i < count; i++) parts[i] = pith__hf_slice(b, x, i * size, (i + 1) * size, axis);
}

pith__value *pith__hf_length(pith__hf_builder *b, pith__value *ids) {
    pith__value *length =
        PITH_HF_PUT(b, "Gather", PITH_HF_PUT(b, "Shape", ids), pith__hf_i64_scalar(b, 1));
    pith__hf_set_int(b, length, "axis", 0);
    return length;
}

pith__value *pith__hf_range(pith__hf_builder *b, pith__value *ids) {
    return PITH_HF_PUT(b, "Range", pith__hf_i64_scalar(b, 0), pith__hf_length(b, ids),
                       pith__hf_i64_scalar(b, 1));
}

/* ---- constants ---- */

pith__value *pith__hf_i64s(pith__hf_builder *b, const int64_t *items, int64_t count) {
    return b->status ? NULL
                     : pith__hf_made(b, pith__graph_add_i64s(b->graph, PITH_STR(""), items, count));
}

pith__value *pith__hf_i64(pith__hf_builder *b, int64_t item) { return pith__hf_i64s(b, &item, 1); }

pith__value *pith__hf_i64_scalar(pith__hf_builder *b, int64_t item) {
    int64_t *copy = b->status ? NULL : pith__arena_alloc(b->graph->arena, sizeof *copy);
    if (!copy) return pith__hf_made(b, NULL);
    *copy = item;
    pith_tensor t = { .data = copy, .bytes = sizeof *copy, .dtype = PITH_I64 };
    return pith__hf_made(b, pith__graph_add_const(b->graph, PITH_STR(""), &t));
}

pith__value *pith__hf_f32(pith__hf_builder *b, float item) {
    return b->status ? NULL : pith__hf_made(b, pith__graph_add_f32(b->graph, PITH_STR(""), item));
}

pith__value *pith__hf_f32s(pith__hf_builder *b, const float *items, int rank, const int64_t *dims) {
    pith_tensor t = { .dtype = PITH_F32, .rank = rank };
    size_t count = 1;
    for (int i = 0; i < rank; i++) {
        t.dims[i] = dims[i];
        count *= (size_t)dims[i];
    }
    t.bytes = count * sizeof *items;
    t.data = b->status ? NULL : pith__arena_alloc64(b->graph->arena, t.bytes);
    if (!t.data) return pith__hf_made(b, NULL);
    memcpy(t.data, items, t.bytes);
    return pith__hf_made(b, pith__graph_add_const(b->graph, PITH_STR(""), &t));
}

/* ---- tensors ---- */

const pith_tensor *pith__hf_find(pith__hf_builder *b, const char *suffix, pith_str *name) {
    *name = pith__arena_printf(b->graph->arena, PITH_STR_FMT PITH_STR_FMT "%s",
                               PITH_STR_ALL(b->prefix), PITH_STR_ALL(b->place), suffix);
    if (!name->data) pith__hf_made(b, NULL);
    return b->status ? NULL : pith__weights_find(b->weights, *name);
}

/* Each tensor is one value, however often a network uses it. */
static pith__value *hf_builder_constant(pith__hf_builder *b, pith_str name, const pith_tensor *t) {
    uint32_t id = pith__map_get(&b->constants, name);
    if (id != UINT32_MAX) return b->graph->values[id];
    pith__value *v = pith__graph_add_const(b->graph, name, t);
    return pith__hf_made(b, v && pith__map_put(&b->constants, name, v->id, NULL) ? v : NULL);
}

/* Shape and dtype are compared with what config.json asks for before the tensor is used, so the
 * graph cannot disagree with its weights. `old_suffix` is another name of the same tensor, from
 * TensorFlow or from adapters. */
pith__value *pith__hf_tensor(pith__hf_builder *b, const char *suffix, const char *old_suffix,
                             int rank, const int64_t *dims) {
    char want[128], found[128];
    pith_str name, old_name;
    const pith_tensor *t = pith__hf_find(b, suffix, &name);
    if (!t && old_suffix) t = pith__hf_find(b, old_suffix, &old_name);
    if (b->status) return NULL;
    pith__dims_text(dims, rank, want, sizeof want);
    if (!t) {
        b->status =
            pith__fail(b->err, PITH_ERR_NOT_FOUND,
                       "%s: tensor '" PITH_STR_FMT "' is missing; config.json asks for shape %s",
                       b->weights_name, PITH_STR_ARG(name), want);
    } else if (t->rank != rank || memcmp(t->dims, dims, (size_t)rank * sizeof *dims)) {
        b->status = pith__fail(
            b->err, PITH_ERR_FORMAT,
            "%s: tensor '" PITH_STR_FMT "' has shape %s; config.json asks for %s", b->weights_name,
            PITH_STR_ARG(name), pith__dims_text(t->dims, t->rank, found, sizeof found), want);
    } else if (t->dtype != PITH_F32 && t->dtype != PITH_F16 && t->dtype != PITH_BF16) {
        b->status = pith__fail(b->err, PITH_ERR_UNSUPPORTED,
                               "%s: tensor '" PITH_STR_FMT
                               "' is %s; float32, float16 and bfloat16 are supported",
                               b->weights_name, PITH_STR_ARG(name), pith__dtype_name(t->dtype));
    }
    return b->status ? NULL : hf_builder_constant(b, name, t);
}

pith__value *pith__hf_widen(pith__hf_builder *b, const pith__value *stored, pith__value *x) {
    return !stored || stored->type.dtype == PITH_F32 ? x : pith__hf_cast(b, x, PITH_F32);
}

pith__value *pith__hf_vector(pith__hf_builder *b, const char *suffix, const char *old_suffix,
                             int64_t size) {
    pith__value *v = pith__hf_tensor(b, suffix, old_suffix, 1, &size);
    return pith__hf_widen(b, v, v);
}

/* Where torch keeps the weight of a layer that has adapters beside it. */
#define UNDER_ADAPTERS ".parametrizations.weight.original"

/* The chosen matrix of an adapter's stack [adapters, rows, columns], as stored. */
static pith__value *hf_builder_adapter(pith__hf_builder *b, const char *suffix, int64_t rows,
                                       int64_t columns) {
    pith__value *stack =
        pith__hf_tensor(b, suffix, NULL, 3, (int64_t[]){ b->adapters, rows, columns });
    if (!stack) return NULL;
    pith_tensor t = { .dtype = stack->type.dtype, .rank = 2, .dims = { rows, columns } };
    t.bytes = stack->type.data->bytes / (size_t)b->adapters;
    t.data = (char *)stack->type.data->data + t.bytes * (size_t)(b->adapter - 1);
    return pith__hf_made(b, pith__graph_add_const(b->graph, PITH_STR(""), &t));
}

#define ADAPTER_A ".parametrizations.weight.0.lora_A"
#define ADAPTER_B ".parametrizations.weight.0.lora_B"

/* The table's rows plus those of the adapter: A's row of the id by B. */
pith__value *pith__hf_look_up(pith__hf_builder *b, int64_t rows, int64_t size, pith__value *ids) {
    pith__value *table =
        pith__hf_tensor(b, ".weight", UNDER_ADAPTERS, 2, (int64_t[]){ rows, size });
    pith__value *x = pith__hf_widen(b, table, PITH_HF_PUT(b, "Gather", table, ids));
    if (!b->adapter) return x;
    pith__value *down = hf_builder_adapter(b, ADAPTER_A, rows, b->adapter_rank);
    pith__value *up = hf_builder_adapter(b, ADAPTER_B, b->adapter_rank, size);
    pith__value *y = pith__hf_widen(b, down, PITH_HF_PUT(b, "Gather", down, ids));
    y = PITH_HF_PUT(b, "MatMul", y, pith__hf_widen(b, up, up));
    return PITH_HF_PUT(b, "Add", x,
                       PITH_HF_PUT(b, "Mul", y, pith__hf_f32(b, (float)b->adapter_scale)));
}

/* x by A, then by B. */
static pith__value *hf_builder_adapt(pith__hf_builder *b, pith__value *x, int64_t in, int64_t out) {
    pith__value *parts[] = { hf_builder_adapter(b, ADAPTER_A, b->adapter_rank, in),
                             hf_builder_adapter(b, ADAPTER_B, out, b->adapter_rank) };
    for (int i = 0; i < 2; i++)
        x = PITH_HF_PUT(
            b, "MatMul", x,
            pith__hf_transpose(b, pith__hf_widen(b, parts[i], parts[i]), (int64_t[]){ 1, 0 }, 2));
    return PITH_HF_PUT(b, "Mul", x, pith__hf_f32(b, (float)b->adapter_scale));
}

/* x W^T + b, as torch.nn.Linear. 16-bit weights stay as they are stored, behind a Cast. */
pith__value *pith__hf_linear(pith__hf_builder *b, pith__value *x, int64_t in, int64_t out,
                             bool has_bias) {
    pith__value *stored = pith__hf_tensor(b, ".weight", UNDER_ADAPTERS, 2, (int64_t[]){ out, in });
    pith__value *weight =
        pith__hf_transpose(b, pith__hf_widen(b, stored, stored), (int64_t[]){ 1, 0 }, 2);
    pith__value *y = PITH_HF_PUT(b, "MatMul", x, weight);
    if (has_bias) y = PITH_HF_PUT(b, "Add", y, pith__hf_vector(b, ".bias", NULL, out));
    return b->adapter ? PITH_HF_PUT(b, "Add", y, hf_builder_adapt(b, x, in, out)) : y;
}

static void hf_builder_set_norm(pith__hf_builder *b, pith__value *y, double eps) {
    pith__hf_set_int(b, y, "axis", -1);
    if (y && pith__node_set_float(y->producer, "epsilon", (float)eps)) pith__hf_made(b, NULL);
}

/* Checkpoints that came from TensorFlow name the gain gamma and the bias beta. */
pith__value *pith__hf_norm(pith__hf_builder *b, pith__value *x, int64_t size, double eps,
                           bool has_bias) {
    pith__value *gain = pith__hf_vector(b, ".weight", ".gamma", size);
    pith__value *bias = has_bias ? pith__hf_vector(b, ".bias", ".beta", size) : NULL;
    pith__value *y = has_bias ? PITH_HF_PUT(b, "LayerNormalization", x, gain, bias)
                              : PITH_HF_PUT(b, "LayerNormalization", x, gain);
    hf_builder_set_norm(b, y, eps);
    return y;
}

pith__value *pith__hf_linear_in_layer(pith__hf_builder *b, const char *name, pith__value *x,
                                      int64_t in, int64_t out, bool has_bias) {
    pith__hf_in_layer(b, name);
    return pith__hf_linear(b, x, in, out, has_bias);
}

pith__value *pith__hf_norm_in_layer(pith__hf_builder *b, const char *name, pith__value *x) {
    pith__hf_in_layer(b, name);
    return pith__hf_norm(b, x, b->config->hidden_size, b->config->layer_norm_eps, true);
}

pith__value *pith__hf_rms_norm(pith__hf_builder *b, pith__value *x, int64_t size, double eps,
                               float plus) {
    pith__value *gain = pith__hf_vector(b, ".weight", NULL, size);
    if (plus != 0) gain = PITH_HF_PUT(b, "Add", gain, pith__hf_f32(b, plus));
    pith__value *y = PITH_HF_PUT(b, "RMSNormalization", x, gain);
    hf_builder_set_norm(b, y, eps);
    return y;
}

/* What x is multiplied by: the logistic function of `slope` times x. */
static pith__value *hf_builder_sigmoid(pith__hf_builder *b, pith__value *x, float slope) {
    pith__value *scaled = slope == 1 ? x : PITH_HF_PUT(b, "Mul", x, pith__hf_f32(b, slope));
    return PITH_HF_PUT(b, "Mul", x, PITH_HF_PUT(b, "Sigmoid", scaled));
}

/* The names of ACT2FN in transformers. gelu_fast, gelu_new and gelu_pytorch_tanh are one formula,
 * spelled three times there. */
pith__value *pith__hf_activate(pith__hf_builder *b, pith__value *x) {
    static const struct {
        const char *name, *op, *approximate;
        float slope; /* of x * sigmoid(slope * x), which has no operator of its own */
    } known[] = {
        { "gelu", "Gelu", "none", 0 },
        { "gelu_fast", "Gelu", "tanh", 0 },
        { "gelu_new", "Gelu", "tanh", 0 },
        { "gelu_pytorch_tanh", "Gelu", "tanh", 0 },
        { "relu", "Relu", NULL, 0 },
        { "tanh", "Tanh", NULL, 0 },
        { "silu", NULL, NULL, 1 },
        { "swish", NULL, NULL, 1 },
        { "quick_gelu", NULL, NULL, 1.702f },
        { "gelu_python", "Gelu", "none", 0 },
    };
    pith__hf_in_layer(b, "activation");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!pith__str_is(b->config->hidden_act, known[i].name)) continue;
        if (!known[i].op) return hf_builder_sigmoid(b, x, known[i].slope);
        pith__value *y = PITH_HF_PUT(b, known[i].op, x);
        if (y && known[i].approximate &&
            pith__node_set_str(y->producer, "approximate", pith__str_of(known[i].approximate)))
            pith__hf_made(b, NULL);
        return y;
    }
    pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                  "config.json: activation \"" PITH_STR_FMT
                  "\" is not supported; supported are gelu, gelu_fast, gelu_new, gelu_python, "
                  "gelu_pytorch_tanh, "
                  "quick_gelu, relu, silu, swish, tanh",
                  PITH_STR_ARG(b->config->hidden_act));
    return NULL;
}

pith__value *pith__hf_gate_halves(pith__hf_builder *b, pith__value *x, int64_t inner, int gate) {
    pith__value *halves[2];
    pith__hf_split(b, halves, 2, x, inner, 2);
    return PITH_HF_PUT(b, "Mul", pith__hf_activate(b, halves[gate]), halves[1 - gate]);
}

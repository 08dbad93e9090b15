/* hf_builder.h - what the builders of architectures share: nodes, constants, tensors by name,
 * settings of config.json.
 *
 * A builder makes the graph of a network from front to back. The first fault is kept in `status`
 * and `err`; after it every function returns NULL or a fall-back, so that one check at the end is
 * enough. Weights stay as they are stored. A matrix is read through a Transpose and, in half
 * precision, a Cast, which the fused steps look through. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_BUILDER_H
#define PITH_MODELS_ARCHITECTURES_HF_BUILDER_H

#include "base/error.h"
#include "base/memory/span_map.h"
#include "models/architectures/family.h"

typedef struct pith__hf_builder {
    pith__graph *graph;
    const pith__hf_config *config;
    const pith__weights *weights;
    const char *weights_name; /* for messages */
    pith_str prefix;          /* before the names of all tensors: "bert.", "model." */
    pith_str layer;           /* before the names in a layer, with the prefix left out:
                                 "encoder.layer.3." */
    pith_str place;           /* of the nodes being made: "encoder.layer.3.attention.self.query" */
    pith__map constants;      /* tensor names to value ids: each tensor becomes one value */
    int64_t adapter;          /* which of several low-rank adapters is added to the matrices, from
                                 1; 0: none */
    int64_t adapters, adapter_rank;
    double adapter_scale;
    pith_error *err;
    pith_status status;
} pith__hf_builder;

/* ---- beginning and end ---- */

/* Finds the prefix: what stands before `anchor` in the shortest tensor name that ends in it. */
pith_status pith__hf_begin(pith__hf_builder *b, pith__graph *graph, const pith__hf_config *config,
                           const pith__weights *weights, const char *weights_name,
                           const char *anchor, pith_error *err);
/* An input [batch, sequence] i64; at most 3. */
pith__value *pith__hf_input(pith__hf_builder *b, const char *name);
/* Names x, which goes into layer i, so that modules which read layers find it. Returns x. */
pith__value *pith__hf_layer_input(pith__hf_builder *b, int64_t i, pith__value *x);
/* Makes x [batch, sequence, hidden] the output last_hidden_state, and adds the outputs of the
 * checkpoint's tasks (models/tasks/task.h). Returns the builder's status. */
pith_status pith__hf_end(pith__hf_builder *b, pith__value *x);

/* ---- places ---- */

/* Names the layer that pith__hf_in_layer means; format takes one int64 as %lld. */
void pith__hf_set_layer(pith__hf_builder *b, pith_str name);
void pith__hf_go_to(pith__hf_builder *b, const char *name);    /* outside of layers */
void pith__hf_in_layer(pith__hf_builder *b, const char *name); /* in the layer */

/* ---- nodes; the result is output 0 ---- */

/* NULL without a fault means that memory is out. */
pith__value *pith__hf_made(pith__hf_builder *b, pith__value *value);
pith__value *pith__hf_put(pith__hf_builder *b, const char *op, pith__value *const *inputs,
                          int count);
#define PITH_HF_PUT(b, op, ...)                                                                    \
    pith__hf_put(b, op, (pith__value *[]){ __VA_ARGS__ },                                          \
                 (int)(sizeof(pith__value *[]){ __VA_ARGS__ } / sizeof(pith__value *)))
void pith__hf_set_int(pith__hf_builder *b, pith__value *value, const char *name, int64_t number);
pith__value *pith__hf_put_axis(pith__hf_builder *b, const char *op, pith__value *x, int64_t axis);
pith__value *pith__hf_cast(pith__hf_builder *b, pith__value *x, pith_dtype to);
pith__value *pith__hf_transpose(pith__hf_builder *b, pith__value *x, const int64_t *perm,
                                size_t count);
pith__value *pith__hf_reshape(pith__hf_builder *b, pith__value *x, const int64_t *dims,
                              int64_t rank);
pith__value *pith__hf_unsqueeze(pith__hf_builder *b, pith__value *x, int64_t axis);
pith__value *pith__hf_slice(pith__hf_builder *b, pith__value *x, int64_t from, int64_t to,
                            int64_t axis);
/* Concat */
pith__value *pith__hf_join(pith__hf_builder *b, pith__value *x, pith__value *y, int64_t axis);
/* Cuts x [.., count * size] along `axis` into parts of `size`. */
void pith__hf_split(pith__hf_builder *b, pith__value **parts, int count, pith__value *x,
                    int64_t size, int64_t axis);
/* The length of the sequence of ids [batch, sequence], a scalar; its positions 0, 1, …, [sequence]
 * i64. */
pith__value *pith__hf_length(pith__hf_builder *b, pith__value *ids);
pith__value *pith__hf_range(pith__hf_builder *b, pith__value *ids);

/* ---- constants; items are copied ---- */

pith__value *pith__hf_i64s(pith__hf_builder *b, const int64_t *items, int64_t count);
pith__value *pith__hf_i64(pith__hf_builder *b, int64_t item);        /* [1] */
pith__value *pith__hf_i64_scalar(pith__hf_builder *b, int64_t item); /* [] */
pith__value *pith__hf_f32(pith__hf_builder *b, float item);          /* [] */
pith__value *pith__hf_f32s(pith__hf_builder *b, const float *items, int rank, const int64_t *dims);

/* ---- tensors ---- */

/* The tensor prefix + place + suffix as stored; its shape and dtype are checked. old_suffix (may be
 * NULL): another name that files use. */
pith__value *pith__hf_tensor(pith__hf_builder *b, const char *suffix, const char *old_suffix,
                             int rank, const int64_t *dims);
/* The same as the file has it, without a check; NULL if it is absent. */
const pith_tensor *pith__hf_find(pith__hf_builder *b, const char *suffix, pith_str *name);
/* x, which was made of the tensor `stored`, in f32. */
pith__value *pith__hf_widen(pith__hf_builder *b, const pith__value *stored, pith__value *x);
/* [size] in f32. */
pith__value *pith__hf_vector(pith__hf_builder *b, const char *suffix, const char *old_suffix,
                             int64_t size);
/* Rows of the table [rows, size] at the place. */
pith__value *pith__hf_look_up(pith__hf_builder *b, int64_t rows, int64_t size, pith__value *ids);
/* x [.., in] by the matrix [out, in] at the place, plus its bias if has_bias. */
pith__value *pith__hf_linear(pith__hf_builder *b, pith__value *x, int64_t in, int64_t out,
                             bool has_bias);
/* LayerNormalization over the last axis by .weight and .bias (or the early .gamma and .beta). */
pith__value *pith__hf_norm(pith__hf_builder *b, pith__value *x, int64_t size, double eps,
                           bool has_bias);
/* Both at a place in the layer; the norm has the size and the epsilon of the config. */
pith__value *pith__hf_linear_in_layer(pith__hf_builder *b, const char *name, pith__value *x,
                                      int64_t in, int64_t out, bool has_bias);
pith__value *pith__hf_norm_in_layer(pith__hf_builder *b, const char *name, pith__value *x);
/* RMSNormalization over the last axis by .weight, to which `plus` is added. */
pith__value *pith__hf_rms_norm(pith__hf_builder *b, pith__value *x, int64_t size, double eps,
                               float plus);
/* The activation function that config.json names (hidden_act), at the place "activation" of the
 * layer. */
pith__value *pith__hf_activate(pith__hf_builder *b, pith__value *x);
/* act(gate) * the other of the two halves of x [batch, sequence, 2 * inner]; gate: which half, 0 or
 * 1. */
pith__value *pith__hf_gate_halves(pith__hf_builder *b, pith__value *x, int64_t inner, int gate);

/* ---- settings: keys may be paths such as "rope_scaling.factor". A key that config.json does not
 * have has the default of the family's list (hf_keys.h); if that has none, or for null, it has the
 * fall-back ---- */

bool pith__hf_has(pith__hf_builder *b, const char *key);
/* config.json has the key, with the value null */
bool pith__hf_is_null(pith__hf_builder *b, const char *key);
int64_t pith__hf_int(pith__hf_builder *b, const char *key, int64_t fallback, int64_t min,
                     int64_t max);
double pith__hf_real(pith__hf_builder *b, const char *key, double fallback);
bool pith__hf_bool(pith__hf_builder *b, const char *key, bool fallback);
pith_str pith__hf_string(pith__hf_builder *b, const char *key, const char *fallback);
/* A list of 1 to `limit` whole numbers; returns how many, or 0 if it is absent. */
int64_t pith__hf_ints(pith__hf_builder *b, const char *key, int64_t limit, int64_t *items);
/* A list of at most `limit` strings; a single string is a list whose items stand between bars. */
pith_str *pith__hf_strings(pith__hf_builder *b, const char *key, int64_t limit, int64_t *count);
/* The names of the keys of an object, at most 64; none if it is absent or null. */
pith_str *pith__hf_keys_of(pith__hf_builder *b, const char *key, int64_t *count);
/* Fails, naming the key, unless the setting is absent or as said. */
void pith__hf_want_bool(pith__hf_builder *b, const char *key, bool wanted);
void pith__hf_want_string(pith__hf_builder *b, const char *key, const char *wanted);
void pith__hf_want_absent(pith__hf_builder *b, const char *key);
/* PITH_ERR_UNSUPPORTED "config.json: …" or PITH_ERR_FORMAT. */
void pith__hf_fail(pith__hf_builder *b, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A size out of range gives PITH_ERR_FORMAT that names it. */
void pith__hf_check_size(pith__hf_builder *b, const char *name, int64_t value, int64_t limit);
/* hidden_size, num_hidden_layers, num_attention_heads, intermediate_size, vocab_size,
 * max_position_embeddings. */
void pith__hf_check_sizes(pith__hf_builder *b);
/* hidden_size must be a multiple of num_attention_heads. */
void pith__hf_check_heads(pith__hf_builder *b);

#endif

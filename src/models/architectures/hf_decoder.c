/* hf_decoder.c - Qwen, Llama, Mistral, Gemma and EuroBERT as a graph of ordinary operators.
 *
 * Each layer is x + attention(norm(x)), then x + feed_forward(norm(x)). Attention is causal unless
 * the family or config.json says otherwise; a layer of type sliding_attention sees a window.
 * Sources: modeling_qwen3, modeling_llama, modeling_mistral, modeling_gemma, modeling_gemma2,
 * modeling_gemma3, modeling_eurobert and masking_utils of transformers. */
#include "models/architectures/hf_decoder.h"

#include <math.h>

/* What all layers share; the second of each pair is for layers with a window. */
typedef struct decoder {
    const pith__hf_decoder_layout *layout;
    pith__value *padding, *bias[2];
    pith__hf_rotary turn[2];
    int64_t size, shared;         /* of a head; heads of keys and values */
    int64_t window;               /* 0: none */
    int64_t first_local, pattern; /* without layer_types: layers from first_local on, but each
                                     pattern-th, have it */
    const bool *local;            /* by layer_types */
    double eps, scale;
    float plus; /* to the gains of norms */
    double cap; /* scores are cap * tanh(scores / cap); 0: as they are */
    bool projection_bias, out_bias, mlp_bias;
    bool both_ways;
    bool half_window; /* a window for both directions is half on either side, else all of it */
} decoder;

static pith__value *hf_decoder_norm(pith__hf_builder *b, const decoder *d, const char *name,
                                    pith__value *x) {
    pith__hf_in_layer(b, name);
    return pith__hf_rms_norm(b, x, b->config->hidden_size, d->eps, d->plus);
}

/* Heads of a projection [batch, heads, sequence, size], normalised one by one and turned. */
static pith__value *hf_decoder_heads(pith__hf_builder *b, const decoder *d, const char *name,
                                     const char *norm, pith__value *x, int64_t heads,
                                     const pith__hf_rotary *turn) {
    const int64_t split[] = { 0, 0, heads, d->size }, first[] = { 0, 2, 1, 3 };
    pith__value *rows = pith__hf_linear_in_layer(b, name, x, b->config->hidden_size,
                                                 heads * d->size, d->projection_bias);
    rows = pith__hf_reshape(b, rows, split, 4);
    if (norm) {
        pith__hf_in_layer(b, norm);
        rows = pith__hf_rms_norm(b, rows, d->size, d->eps, d->plus);
    }
    rows = pith__hf_transpose(b, rows, first, 4);
    return turn ? pith__hf_turn(b, turn, rows, heads, d->size) : rows;
}

/* LlamaAttention and its relatives: fewer heads for keys and values are repeated, Qwen3 and Gemma 3
 * normalise each head, Gemma 2 caps scores with tanh. `local` chooses the window and, in Gemma 3,
 * its own base of rotary positions. */
static pith__value *hf_decoder_attend(pith__hf_builder *b, const decoder *d, pith__value *x,
                                      bool local) {
    int64_t heads = b->config->heads, width = heads * d->size, times = heads / d->shared;
    bool norms = d->layout->head_norms;
    const pith__hf_rotary *turn = &d->turn[local];
    pith__value *biases[] = { d->bias[local], d->padding };
    pith__value *q = hf_decoder_heads(b, d, "self_attn.q_proj", norms ? "self_attn.q_norm" : NULL,
                                      x, heads, turn);
    pith__value *k = hf_decoder_heads(b, d, "self_attn.k_proj", norms ? "self_attn.k_norm" : NULL,
                                      x, d->shared, turn);
    pith__value *v = hf_decoder_heads(b, d, "self_attn.v_proj", NULL, x, d->shared, NULL);
    pith__hf_in_layer(b, "self_attn");
    k = pith__hf_repeat_heads(b, k, d->shared, times, d->size);
    v = pith__hf_repeat_heads(b, v, d->shared, times, d->size);
    pith__value *scores = pith__hf_scores(b, q, k, d->scale);
    if (d->cap > 0) {
        scores =
            PITH_HF_PUT(b, "Tanh", PITH_HF_PUT(b, "Div", scores, pith__hf_f32(b, (float)d->cap)));
        scores = PITH_HF_PUT(b, "Mul", scores, pith__hf_f32(b, (float)d->cap));
    }
    pith__value *rows = pith__hf_attend(b, scores, biases, 2, v, width);
    return pith__hf_linear_in_layer(b, "self_attn.o_proj", rows, width, b->config->hidden_size,
                                    d->out_bias);
}

static pith__value *hf_decoder_feed_forward(pith__hf_builder *b, const decoder *d, pith__value *x) {
    int64_t n = b->config->hidden_size, inner = b->config->intermediate_size;
    pith__value *gate = pith__hf_activate(
        b, pith__hf_linear_in_layer(b, "mlp.gate_proj", x, n, inner, d->mlp_bias));
    pith__value *up = pith__hf_linear_in_layer(b, "mlp.up_proj", x, n, inner, d->mlp_bias);
    return pith__hf_linear_in_layer(b, "mlp.down_proj", PITH_HF_PUT(b, "Mul", gate, up), inner, n,
                                    d->mlp_bias);
}

static bool hf_decoder_is_local(const decoder *d, int64_t i) {
    if (!d->window) return false;
    return d->local ? d->local[i] : i >= d->first_local && (i + 1) % d->pattern != 0;
}

/* One layer with norms in front of its parts (pre-norm); Gemma 2 and 3 have norms behind them as
 * well, under names that mean something else in Llama. */
static pith__value *hf_decoder_decode(pith__hf_builder *b, const decoder *d, int64_t i,
                                      pith__value *x) {
    bool after = d->layout->norms_after;
    pith__hf_set_layer(b, pith__arena_printf(b->graph->arena, "layers.%lld.", (long long)i));
    pith__value *y = hf_decoder_norm(b, d, "input_layernorm", x);
    y = hf_decoder_attend(b, d, y, hf_decoder_is_local(d, i));
    if (after) y = hf_decoder_norm(b, d, "post_attention_layernorm", y);
    x = PITH_HF_PUT(b, "Add", x, y);
    y = hf_decoder_norm(b, d, after ? "pre_feedforward_layernorm" : "post_attention_layernorm", x);
    y = hf_decoder_feed_forward(b, d, y);
    if (after) y = hf_decoder_norm(b, d, "post_feedforward_layernorm", y);
    return PITH_HF_PUT(b, "Add", x, y);
}

/* ---- settings ---- */

/* is_causal: masking_utils of transformers 5, which lets a window reach as far behind a token as
 * before it. use_bidirectional_attention: Gemma 3, which halves it. */
static void hf_decoder_direction(pith__hf_builder *b, decoder *d) {
    bool flag = pith__hf_bool(b, "use_bidirectional_attention", false);
    d->half_window = flag && d->layout->local_base;
    d->both_ways = d->layout->both_ways || b->config->both_ways || flag ||
                   !pith__hf_bool(b, "is_causal", true);
}

/* Settings with the defaults of the classes in transformers. Gains of Gemma's norms are stored less
 * 1, but GGUF files have them whole. Layers with a window are listed by layer_types, or follow from
 * a pattern. */
static void hf_decoder_read(pith__hf_builder *b, decoder *d,
                            const pith__hf_decoder_layout *layout) {
    const pith__hf_config *c = b->config;
    int64_t heads = c->heads, size = layout->head_size ? layout->head_size : c->hidden_size / heads;
    bool bias = pith__hf_bool(b, "attention_bias", false);
    *d = (decoder){ .layout = layout,
                    .size = pith__hf_int(b, "head_dim", size, 1, 1 << 16),
                    .shared = pith__hf_int(b, "num_key_value_heads", heads, 1, heads),
                    .eps = pith__hf_real(b, "rms_norm_eps", 1e-6),
                    .plus = layout->gemma && !b->weights->whole_gains ? 1 : 0,
                    .projection_bias = bias || layout->projection_bias,
                    .out_bias = bias,
                    .mlp_bias = pith__hf_bool(b, "mlp_bias", false),
                    .cap = pith__hf_real(b, "attn_logit_softcapping", 0) };
    d->scale = 1 / sqrt(layout->norms_after ? pith__hf_real(b, "query_pre_attn_scalar", 256)
                                            : (double)d->size);
    if (heads % d->shared)
        pith__hf_fail(
            b, PITH_ERR_FORMAT,
            "config.json: num_attention_heads %lld is not a multiple of num_key_value_heads %lld",
            (long long)heads, (long long)d->shared);
    if (heads > (1 << 20) / d->size)
        pith__hf_fail(b, PITH_ERR_FORMAT, "config.json: head_dim is too large");
    if (!isfinite(d->scale) || d->scale <= 0)
        pith__hf_fail(b, PITH_ERR_FORMAT, "config.json: query_pre_attn_scalar must be above 0");
    if (layout->windows || pith__hf_bool(b, "use_sliding_window", false))
        d->window = pith__hf_int(b, "sliding_window", 0, 1, 1 << 24);
    d->first_local = layout->windows ? 0 : pith__hf_int(b, "max_window_layers", 28, 0, 1 << 12);
    d->pattern =
        layout->pattern
            ? pith__hf_int(b, "sliding_window_pattern",
                           pith__hf_int(b, "_sliding_window_pattern", layout->pattern, 1, 1 << 12),
                           1, 1 << 12)
            : INT64_MAX;
    d->local = pith__hf_local_layers(b);
    hf_decoder_direction(b, d);
}

/* Keys of the window and before it: causal, or in both directions. */
static void hf_decoder_mask(pith__hf_builder *b, decoder *d, pith__value *ids, pith__value *mask) {
    bool both_ways = d->both_ways;
    int64_t reach = d->half_window ? d->window / 2 : d->window;
    d->padding = pith__hf_padding_bias(b, mask);
    d->bias[0] = pith__hf_window_bias(b, ids, -1, both_ways ? -1 : 0);
    if (d->window)
        d->bias[1] =
            pith__hf_window_bias(b, ids, both_ways ? reach : d->window - 1, both_ways ? reach : 0);
}

/* One table for all layers, and in Gemma 3 a second one, with another base, for layers with a
 * window. */
static void hf_decoder_rotary(pith__hf_builder *b, decoder *d, pith__value *ids,
                              pith__value *mask) {
    pith__hf_rotary_settings turn = { .size = d->size, .theta = d->layout->theta };
    pith__hf_rotary_read(b, &turn, "full_attention");
    d->turn[0] = pith__hf_rotary_tables(b, ids, mask, &turn);
    d->turn[1] = d->turn[0];
    if (!d->layout->local_base || !d->window) return;
    pith__hf_rotary_settings local = { .size = d->size };
    local.theta = pith__hf_real(b, "rope_parameters.sliding_attention.rope_theta",
                                pith__hf_real(b, "rope_local_base_freq", 10000));
    if (pith__hf_has(b, "rope_parameters.sliding_attention"))
        local.scaling = "rope_parameters.sliding_attention";
    d->turn[1] = pith__hf_rotary_tables(b, ids, mask, &local);
}

/* Embeddings, layers, a last norm; no lm_head, which the task causal_answer adds where it is
 * wanted. Gemma multiplies embeddings by the root of the width. An activation of "gelu" in Gemma's
 * files means the tanh form, as GemmaConfig reads it. */
pith_status pith__hf_decoder_build(pith__graph *graph, const void *layout,
                                   const pith__hf_config *config, const pith__weights *weights,
                                   const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    pith__hf_config c = *config;
    decoder d;
    const pith__hf_decoder_layout *f = layout;
    PITH_TRY(pith__hf_begin(&b, graph, &c, weights, weights_name, "embed_tokens.weight", err));
    c.hidden_act = pith__hf_string(&b, f->activation ? f->activation : "hidden_act",
                                   f->gemma ? "gelu_pytorch_tanh" : "silu");
    if (f->gemma && pith__str_is(c.hidden_act, "gelu"))
        c.hidden_act = PITH_STR("gelu_pytorch_tanh"); /* GemmaConfig */
    pith__hf_check_sizes(&b);
    if (b.status) return b.status;
    hf_decoder_read(&b, &d, layout);
    if (b.status) return b.status;
    pith__value *ids = pith__hf_input(&b, "input_ids"),
                *mask = pith__hf_input(&b, "attention_mask");
    hf_decoder_mask(&b, &d, ids, mask);
    hf_decoder_rotary(&b, &d, ids, mask);
    pith__hf_go_to(&b, "embed_tokens");
    pith__value *x = pith__hf_look_up(&b, c.vocab_size, c.hidden_size, ids);
    if (f->gemma)
        x = PITH_HF_PUT(&b, "Mul", x, pith__hf_f32(&b, (float)sqrt((double)c.hidden_size)));
    for (int64_t i = 0; i < c.layers && !b.status; i++)
        x = hf_decoder_decode(&b, &d, i, pith__hf_layer_input(&b, i, x));
    pith__hf_set_layer(&b, PITH_STR(""));
    return pith__hf_end(&b, hf_decoder_norm(&b, &d, "norm", x));
}

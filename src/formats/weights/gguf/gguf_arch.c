/* gguf_arch.c - see gguf_arch.h. */
#include "formats/weights/gguf/gguf_arch.h"

#include <string.h>

#include "base/str.h"

#define END                                                                                        \
    { NULL, NULL }

static const pith__gguf_name bert_plain[] = {
    { "token_embd.", "embeddings.word_embeddings." },
    { "token_types.", "embeddings.token_type_embeddings." },
    { "position_embd.", "embeddings.position_embeddings." },
    { "token_embd_norm.", "embeddings.LayerNorm." },
    END,
};
static const pith__gguf_name bert_layer[] = {
    { "attn_q.", "attention.self.query." },
    { "attn_k.", "attention.self.key." },
    { "attn_v.", "attention.self.value." },
    { "attn_output.", "attention.output.dense." },
    { "attn_output_norm.", "attention.output.LayerNorm." },
    { "ffn_up.", "intermediate.dense." },
    { "ffn_down.", "output.dense." },
    { "layer_output_norm.", "output.LayerNorm." },
    END,
};

static const pith__gguf_name nomic_plain[] = {
    { "token_embd.", "embeddings.word_embeddings." },
    { "token_types.", "embeddings.token_type_embeddings." },
    { "token_embd_norm.", "emb_ln." },
    END,
};
static const pith__gguf_name nomic_layer[] = {
    { "attn_qkv.", "attn.Wqkv." },      { "attn_output.", "attn.out_proj." },
    { "attn_output_norm.", "norm1." },  { "ffn_up.", "mlp.fc11." },
    { "ffn_gate.", "mlp.fc12." },       { "ffn_down.", "mlp.fc2." },
    { "layer_output_norm.", "norm2." }, END,
};

static const pith__gguf_name decoder_plain[] = {
    { "token_embd.", "embed_tokens." },
    { "output_norm.", "norm." },
    END,
};
#define DECODER_LAYER                                                                              \
    { "attn_norm.", "input_layernorm." }, { "attn_q.", "self_attn.q_proj." },                      \
        { "attn_k.", "self_attn.k_proj." }, { "attn_v.", "self_attn.v_proj." },                    \
        { "attn_output.", "self_attn.o_proj." }, { "attn_q_norm.", "self_attn.q_norm." },          \
        { "attn_k_norm.", "self_attn.k_norm." }, { "ffn_gate.", "mlp.gate_proj." },                \
        { "ffn_up.", "mlp.up_proj." }, {                                                           \
        "ffn_down.", "mlp.down_proj."                                                              \
    }
static const pith__gguf_name decoder_layer[] = { DECODER_LAYER,
                                                 { "ffn_norm.", "post_attention_layernorm." },
                                                 END };
static const pith__gguf_name gemma_layer[] = {
    DECODER_LAYER,
    { "post_attention_norm.", "post_attention_layernorm." },
    { "ffn_norm.", "pre_feedforward_layernorm." },
    { "post_ffw_norm.", "post_feedforward_layernorm." },
    END,
};

#define DECODER                                                                                    \
    .layer = "layers.", .plain = decoder_plain, .in_layer = decoder_layer, .decoder = true,        \
    .rotary = true

static const pith__gguf_arch archs[] = {
    { .name = "bert",
      .model_type = "bert",
      .layer = "encoder.layer.",
      .plain = bert_plain,
      .in_layer = bert_layer },
    { .name = "nomic-bert",
      .model_type = "nomic_bert",
      .layer = "encoder.layers.",
      .plain = nomic_plain,
      .in_layer = nomic_layer,
      .rotary = true },
    { .name = "qwen2", .model_type = "qwen2", DECODER },
    { .name = "qwen3", .model_type = "qwen3", DECODER },
    { .name = "eurobert", .model_type = "eurobert", DECODER },
    { .name = "gemma-embedding",
      .model_type = "gemma3_text",
      .layer = "layers.",
      .plain = decoder_plain,
      .in_layer = gemma_layer,
      .decoder = true,
      .rotary = true,
      .whole_gains = true,
      .windows = true,
      .reads = "rope.freq_base_swa attention.sliding_window attention.sliding_window_pattern "
               "dense_2_feat_in "
               "dense_2_feat_out dense_3_feat_in dense_3_feat_out" },
};

const pith__gguf_arch *pith__gguf_arch_find(pith_str name) {
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (pith__str_is(name, archs[i].name)) return &archs[i];
    return NULL;
}

static bool gguf_arch_begins(pith_str *rest, pith_str name, const char *with) {
    const size_t n = strlen(with);
    if (name.size < n || memcmp(name.data, with, n)) return false;
    *rest = (pith_str){ name.data + n, name.size - n };
    return true;
}

pith_str pith__gguf_arch_hf_name(const pith__gguf_arch *arch, pith_str name, pith__arena *arena) {
    pith_str rest, end;
    size_t digits = 0;
    for (const pith__gguf_name *n = arch->plain; n->gguf; n++)
        if (gguf_arch_begins(&rest, name, n->gguf))
            return pith__arena_printf(arena, "%s" PITH_STR_FMT, n->hf, PITH_STR_ALL(rest));
    if (!gguf_arch_begins(&rest, name, "blk.")) return name;
    while (digits < rest.size && rest.data[digits] >= '0' && rest.data[digits] <= '9') digits++;
    if (!digits || digits == rest.size || rest.data[digits] != '.') return name;
    const pith_str number = { rest.data, digits },
                   part = { rest.data + digits + 1, rest.size - digits - 1 };
    for (const pith__gguf_name *n = arch->in_layer; n->gguf; n++)
        if (gguf_arch_begins(&end, part, n->gguf))
            return pith__arena_printf(arena, "%s" PITH_STR_FMT ".%s" PITH_STR_FMT, arch->layer,
                                      PITH_STR_ALL(number), n->hf, PITH_STR_ALL(end));
    return name;
}

#!/usr/bin/env python3
"""Writes tests/data/hf: tiny directories in Hugging Face layout with random weights, and what they compute.

usage: make_hf.py [NAME...]      (all that this version of transformers has; needs torch; see ORIGIN.md)
A directory holds config.json, the weights, the inputs as int64 and last_hidden_state as float32, computed in double.
The weights are written with save_pretrained, or renamed and cut into shards as files on the hub are. A family whose
code lies beside its weights, not in transformers, is written out below after its published architecture.
"""
import json
import math
import pathlib
import shutil
import sys
import tempfile
import warnings

import numpy as np
import safetensors.torch
import torch
import transformers as tf
from torch import nn

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "hf"
VOCAB, HIDDEN, INNER, LENGTH = 96, 16, 24, 45
LENGTHS = (LENGTH, 17, 1)
warnings.filterwarnings("ignore")


# ---- networks written here: code that lies beside weights ----

def rotate(x, cos, sin, interleaved):
    """x [batch, heads, sequence, size]; the first elements of a head, as many as cos has, are turned."""
    size = cos.shape[-1]
    part, rest = x[..., :size], x[..., size:]
    if interleaved:
        turned = torch.stack((-part[..., 1::2], part[..., ::2]), dim=-1).flatten(-2)
    else:
        a, b = part.chunk(2, dim=-1)
        turned = torch.cat((-b, a), dim=-1)
    return torch.cat((part * cos + turned * sin, rest), dim=-1)


def tables(length, base, size, interleaved=False, change=lambda f: f):
    """As all of them compute it, in float32."""
    frequencies = change(1.0 / (base ** (torch.arange(0, size, 2, dtype=torch.float32) / size)))
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
    angles = angles.repeat_interleave(2, -1) if interleaved else torch.cat((angles, angles), -1)
    return angles.double().cos(), angles.double().sin()


def alibi_slopes(heads):
    """Press et al. 2021: a geometric sequence; where heads is no power of 2, every other slope of the next one."""
    def power(n):
        return [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]
    closest = 2 ** math.floor(math.log2(heads))
    return torch.tensor(power(closest) + power(2 * closest)[0::2][:heads - closest])


class Attention(nn.Module):
    """Query, key and value by one matrix or three, and the output's matrix; names as the family gives them."""

    def __init__(self, names, bias, norms=()):
        super().__init__()
        self.names, self.norms = names, norms
        for name in names[:-1]:
            self.add(name, nn.Linear(HIDDEN, HIDDEN if len(names) == 4 else 3 * HIDDEN, bias=bias))
        self.add(names[-1], nn.Linear(HIDDEN, HIDDEN, bias=bias))
        for name in norms:
            self.add(name, nn.LayerNorm(HIDDEN, eps=1e-12))

    def add(self, path, module):
        place = self
        *parents, last = path.split(".")
        for part in parents:
            if part not in place._modules:
                place.add_module(part, nn.Module())
            place = place._modules[part]
        place.add_module(last, module)

    def forward(self, x, heads, bias, turn):
        parts = [self.get_submodule(n)(x) for n in self.names[:-1]]
        q, k, v = parts if len(parts) == 3 else parts[0].chunk(3, dim=-1)
        if self.norms:
            q, k = self.get_submodule(self.norms[0])(q), self.get_submodule(self.norms[1])(k)
        q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
        if turn:
            q, k = rotate(q, *turn), rotate(k, *turn)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
        return self.get_submodule(self.names[-1])((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Embeddings(nn.Module):
    def __init__(self, types, norm=True, positions=0):
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCAB, HIDDEN)
        if types:
            self.token_type_embeddings = nn.Embedding(types, HIDDEN)
        if positions:
            self.position_embeddings = nn.Embedding(positions, HIDDEN)
        if norm:
            self.LayerNorm = nn.LayerNorm(HIDDEN, eps=1e-12)

    def forward(self, ids, types):
        x = self.word_embeddings(ids)
        return x + self.token_type_embeddings(types) if hasattr(self, "token_type_embeddings") else x


class Nomic(nn.Module):
    """nomic-ai/nomic-bert-2048, modeling_hf_nomic_bert.py: NomicBertModel."""

    class Mlp(nn.Module):
        def __init__(self, gated):
            super().__init__()
            inner = 256 if gated else INNER  # whole blocks of 256
            for name in ("fc11", "fc12") if gated else ("fc1",):
                self.add_module(name, nn.Linear(HIDDEN, inner, bias=not gated))
            self.fc2 = nn.Linear(inner, HIDDEN, bias=not gated)

        def forward(self, x):
            if hasattr(self, "fc1"):
                return self.fc2(nn.functional.gelu(self.fc1(x)))
            return self.fc2(self.fc11(x) * nn.functional.silu(self.fc12(x)))

    class Block(nn.Module):
        def __init__(self, gated):
            super().__init__()
            self.attn = Attention(("Wqkv", "out_proj"), bias=not gated)
            self.mlp = Nomic.Mlp(gated)
            self.norm1, self.norm2 = nn.LayerNorm(HIDDEN, eps=1e-12), nn.LayerNorm(HIDDEN, eps=1e-12)

    def __init__(self, gated=True, interleaved=False, fraction=1.0, stretch=None, trained=16):
        super().__init__()
        self.interleaved, self.fraction, self.stretch, self.trained = interleaved, fraction, stretch, trained
        self.embeddings = Embeddings(2 if gated else 0, norm=False)
        self.emb_ln = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(Nomic.Block(gated) for _ in range(1 if gated else 2))  # 256 is much
        self.config = {
            "model_type": "nomic_bert", "n_embd": HIDDEN, "n_head": 2, "n_layer": 1 if gated else 2,
            "n_inner": 200 if gated else INNER, "n_positions": 64, "vocab_size": VOCAB,
            "type_vocab_size": 2 if gated else 0, "layer_norm_epsilon": 1e-12,
            "activation_function": "swiglu" if gated else "gelu", "qkv_proj_bias": not gated, "mlp_fc1_bias": not gated,
            "mlp_fc2_bias": not gated, "rotary_emb_base": 1000, "rotary_emb_fraction": fraction,
            "rotary_emb_interleaved": interleaved, "rotary_emb_scale_base": None, "rotary_scaling_factor": stretch,
            "max_trained_positions": trained, "prenorm": False, "causal": False, "use_rms_norm": None}

    def forward(self, ids, types):
        base, length, size = 1000.0, ids.shape[1], int(HIDDEN // 2 * self.fraction)
        if self.stretch and length > self.trained:  # NomicBertDynamicNTKRotaryEmbedding
            grown = self.stretch * length / self.trained - (self.stretch - 1)
            base *= grown ** (size / (size - 2))
        turn = (*tables(length, base, size, self.interleaved), self.interleaved)
        x = self.emb_ln(self.embeddings(ids, types))
        for layer in self.encoder.layers:
            x = layer.norm1(layer.attn(x, 2, 0, turn) + x)
            x = layer.norm2(layer.mlp(x) + x)
        return x


class Gte(nn.Module):
    """Alibaba-NLP/new-impl, modeling.py: NewModel."""

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.up_gate_proj = nn.Linear(HIDDEN, 2 * INNER, bias=False)
            self.down_proj = nn.Linear(INNER, HIDDEN)

        def forward(self, x):
            up, gate = self.up_gate_proj(x).split(INNER, dim=-1)
            return self.down_proj(nn.functional.gelu(gate) * up)

    class Layer(nn.Module):
        def __init__(self, packed):
            super().__init__()
            self.attention = Attention(("qkv_proj", "o_proj") if packed else ("q_proj", "k_proj", "v_proj", "o_proj"),
                                       bias=True)
            self.mlp = Gte.Mlp()
            self.attn_ln, self.mlp_ln = nn.LayerNorm(HIDDEN, eps=1e-12), nn.LayerNorm(HIDDEN, eps=1e-12)

    def __init__(self, packed=True, factor=None, types=2, name="new"):
        super().__init__()
        self.factor = factor
        self.embeddings = Embeddings(types)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(Gte.Layer(packed) for _ in range(2))
        self.config = {
            "model_type": name, "hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": INNER, "vocab_size": VOCAB, "max_position_embeddings": 64, "type_vocab_size": types,
            "hidden_act": "gelu", "layer_norm_type": "layer_norm", "layer_norm_eps": 1e-12, "pack_qkv": packed,
            "position_embedding_type": "rope", "rope_theta": 500.0, "logn_attention_scale": False,
            "logn_attention_clip1": False,
            "rope_scaling": {"type": "ntk", "factor": factor} if factor else None}

    def forward(self, ids, types):
        size, s = HIDDEN // 2, self.factor or 1.0  # NTKScalingRotaryEmbedding without mixed_b
        turn = (*tables(ids.shape[1], 500.0 * s, size, change=lambda f: f / s ** (2 / size)), False)
        x = self.embeddings.LayerNorm(self.embeddings(ids, types))
        for layer in self.encoder.layer:
            x = layer.attn_ln(layer.attention(x, 2, 0, turn) + x)
            x = layer.mlp_ln(layer.mlp(x) + x)
        return x


class JinaBert(nn.Module):
    """jinaai/jina-bert-implementation, modeling_bert.py: JinaBertModel. Second version: jina-bert-v2-qk-post-norm."""

    class Mlp(nn.Module):
        def __init__(self, second, act):
            super().__init__()
            self.second, self.act = second, act
            self.up = "up_gated_layer" if second else "gated_layers"
            self.down = "down_layer" if second else "wo"
            self.add_module(self.up, nn.Linear(HIDDEN, 2 * INNER, bias=False))
            self.add_module(self.down, nn.Linear(INNER, HIDDEN))
            if not second:
                self.layernorm = nn.LayerNorm(HIDDEN, eps=1e-12)

        def forward(self, x):
            a, b = self.get_submodule(self.up)(x).split(INNER, dim=-1)
            return self.get_submodule(self.down)(a * self.act(b) if self.second else self.act(a) * b)

    class Layer(nn.Module):
        def __init__(self, second, act):
            super().__init__()
            self.attention = Attention(("self.query", "self.key", "self.value", "output.dense"), bias=True,
                                       norms=("self.layer_norm_q", "self.layer_norm_k") if second else ())
            self.attention.add("output.LayerNorm", nn.LayerNorm(HIDDEN, eps=1e-12))
            self.mlp = JinaBert.Mlp(second, act)
            if second:
                self.layer_norm_1, self.layer_norm_2 = nn.LayerNorm(HIDDEN, eps=1e-12), nn.LayerNorm(HIDDEN, eps=1e-12)

    def __init__(self, second=False, heads=4, gate="geglu"):
        super().__init__()
        self.second, self.heads = second, heads
        act = nn.functional.gelu if gate == "geglu" else nn.functional.relu
        self.embeddings = Embeddings(2)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(JinaBert.Layer(second, act) for _ in range(2))
        self.config = {
            "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": heads,
            "intermediate_size": INNER, "vocab_size": VOCAB, "max_position_embeddings": 64, "type_vocab_size": 2,
            "hidden_act": "gelu", "layer_norm_eps": 1e-12, "position_embedding_type": "alibi",
            "feed_forward_type": gate, "emb_pooler": "mean", "attn_implementation": "torch"}

    def forward(self, ids, types):
        at = torch.arange(ids.shape[1])
        bias = -alibi_slopes(self.heads)[:, None, None] * (at[None, :] - at[:, None]).abs()
        x = self.embeddings.LayerNorm(self.embeddings(ids, types))
        for layer in self.encoder.layer:
            y = layer.attention(x, self.heads, bias, None)
            y = layer.attention.get_submodule("output.LayerNorm")(y + x)
            if self.second:
                x = layer.layer_norm_1(x + y)
                x = layer.layer_norm_2(x + layer.mlp(x))
            else:
                x = layer.mlp.layernorm(y + layer.mlp(y))
        return x


class JinaXlm(nn.Module):
    """jinaai/xlm-roberta-flash-implementation: XLMRobertaModel, in XLMRobertaLoRA if there are tasks. An adapter adds
    B A / rank * alpha to a matrix and A B / rank * alpha to a table."""

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(HIDDEN, INNER), nn.Linear(INNER, HIDDEN)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.mixer = Attention(("Wqkv", "out_proj"), bias=True)
            self.mlp = JinaXlm.Mlp()
            self.norm1, self.norm2 = nn.LayerNorm(HIDDEN, eps=1e-5), nn.LayerNorm(HIDDEN, eps=1e-5)

    def __init__(self, rotary=True, tasks=(), task=None, rank=2, alpha=3):
        super().__init__()
        self.rotary, self.chosen, self.scale = rotary, tasks.index(task) if task else None, alpha / rank
        self.embeddings = Embeddings(1, norm=False, positions=0 if rotary else 64)
        self.emb_ln = nn.LayerNorm(HIDDEN, eps=1e-5)
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(JinaXlm.Block() for _ in range(2))
        self.adapters = nn.ParameterDict()
        for name, module in list(self.named_modules()) if tasks else ():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                rows, columns = module.weight.shape
                key, table = name.replace(".", "/"), isinstance(module, nn.Embedding)
                a, b = ((rows, rank), (rank, columns)) if table else ((rank, columns), (rows, rank))
                self.adapters[key + "/lora_A"] = nn.Parameter(torch.zeros(len(tasks), *a))
                self.adapters[key + "/lora_B"] = nn.Parameter(torch.zeros(len(tasks), *b))
        self.config = {
            "model_type": "xlm-roberta", "hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": INNER, "vocab_size": VOCAB, "max_position_embeddings": 64, "type_vocab_size": 1,
            "hidden_act": "gelu", "layer_norm_eps": 1e-5, "pad_token_id": 1, "use_flash_attn": False,
            "position_embedding_type": "rotary" if rotary else "absolute", "rotary_emb_base": 2000.0}
        if tasks:
            self.config |= {"lora_adaptations": list(tasks), "lora_rank": rank, "lora_alpha": alpha}
        if task:
            self.config |= {"default_task": task}

    def published_names(self, state):
        """Tensors as torch's parametrizations name them."""
        keys = {k.split(".", 1)[1].rsplit("/", 1)[0].replace("/", ".") for k in state if k.startswith("adapters")}
        out = {}
        for k, v in state.items():
            owner, last = k.rsplit(".", 1)
            if k.startswith("adapters"):
                path, last = k.split(".", 1)[1].rsplit("/", 1)
                out[f"{path.replace('/', '.')}.parametrizations.weight.0.{last}"] = v
            else:
                out[f"{owner}.parametrizations.weight.original" if owner in keys and last == "weight" else k] = v
        return out

    def merge(self):
        if self.chosen is None:
            return
        for name, module in self.named_modules():
            key = name.replace(".", "/")
            if key + "/lora_A" in self.adapters:
                a, b = (self.adapters[f"{key}/lora_{x}"].data[self.chosen] for x in "AB")
                module.weight.data += self.scale * (a @ b if isinstance(module, nn.Embedding) else b @ a)

    def forward(self, ids, types):
        length = ids.shape[1]
        turn = (*tables(length, 2000.0, HIDDEN // 2), False) if self.rotary else None
        x = self.embeddings(ids, torch.zeros_like(ids))
        if not self.rotary:
            x = x + self.embeddings.position_embeddings(torch.arange(length) + 2)  # no pad in a text alone
        x = self.emb_ln(x)
        for layer in self.encoder.layers:
            x = layer.norm1(layer.mixer(x, 2, 0, turn) + x)
            x = layer.norm2(layer.mlp.fc2(nn.functional.gelu(layer.mlp.fc1(x))) + x)
        return x


# ---- the directories ----

def like(**more):
    return dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=2,
                intermediate_size=INNER, max_position_embeddings=64) | more


def net(kind, config, **more):
    """A network of transformers; `more` are settings of the config."""
    config = getattr(tf, config)(**more)
    config._attn_implementation = "eager"
    return getattr(tf, kind)(config)


def decoder(kind, config, **more):
    return net(kind, config, **like(num_attention_heads=4, num_key_value_heads=2, head_dim=8, use_cache=False) | more)


def t5(kind, **more):
    sizes = dict(vocab_size=VOCAB, d_model=HIDDEN, d_kv=6, d_ff=INNER, num_layers=2, num_heads=2)
    return net(f"{kind}EncoderModel", f"{kind}Config", **sizes | more)


def wide(hidden, make):
    """A network written here, of another width."""
    global HIDDEN
    usual, HIDDEN = HIDDEN, hidden
    model = make()
    HIDDEN = usual
    return model


TYPES = ("input_ids", "attention_mask", "token_type_ids")
MASK = ("input_ids", "attention_mask")
# name: (inputs, network, prefix of the tensors' names, dtype)
MODELS = {
    "modernbert": (MASK, lambda: net("ModernBertModel", "ModernBertConfig", **like(
        num_hidden_layers=3, global_attn_every_n_layers=3, local_attention=8, pad_token_id=0, bos_token_id=1,
        cls_token_id=1, eos_token_id=2, sep_token_id=2, reference_compile=False)), "model.", torch.float32),
    "modernbert-biased": (MASK, lambda: net("ModernBertModel", "ModernBertConfig", **like(
        global_attn_every_n_layers=2, local_attention=6, local_rope_theta=100.0, norm_bias=True, mlp_bias=True,
        attention_bias=True, hidden_activation="relu", pad_token_id=0, bos_token_id=1, cls_token_id=1, eos_token_id=2,
        sep_token_id=2, reference_compile=False)), "", torch.bfloat16),
    "qwen3": (MASK, lambda: decoder("Qwen3Model", "Qwen3Config"), "model.", torch.bfloat16),
    "qwen3-window": (MASK, lambda: decoder(
        "Qwen3Model", "Qwen3Config", use_sliding_window=True, sliding_window=8, max_window_layers=1,
        attention_bias=True, rope_scaling={"rope_type": "yarn", "factor": 4.0, "beta_fast": 2.0,
                                           "original_max_position_embeddings": 16}), "", torch.bfloat16),
    "qwen3-llama3": (MASK, lambda: decoder("Qwen3Model", "Qwen3Config", rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}), "model.", torch.float16),
    "qwen2": (MASK, lambda: decoder("Qwen2Model", "Qwen2Config", rope_scaling={
        "rope_type": "dynamic", "factor": 2.0}), "model.", torch.bfloat16),
    "embedding-gemma": (MASK, lambda: decoder(
        "Gemma3TextModel", "Gemma3TextConfig", num_hidden_layers=3, sliding_window=8, query_pre_attn_scalar=12,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"], use_bidirectional_attention=True),
        "", torch.float16),
    "gemma3": (MASK, lambda: decoder(
        "Gemma3TextModel", "Gemma3TextConfig", num_hidden_layers=2, sliding_window=6, query_pre_attn_scalar=8,
        layer_types=["sliding_attention", "full_attention"], rope_scaling={"rope_type": "linear", "factor": 8.0}),
        "model.", torch.bfloat16),
    "nomic": (TYPES, lambda: Nomic(), "", torch.float16),
    "nomic-plain": (MASK, lambda: Nomic(gated=False, interleaved=True, fraction=0.5), "", torch.float16),
    "nomic-stretched": (MASK, lambda: Nomic(gated=False, stretch=2.0), "", torch.bfloat16),
    "gte": (TYPES, lambda: Gte(factor=2.0), "new.", torch.float16),
    "gte-apart": (MASK, lambda: Gte(packed=False, types=0, name="gte"), "", torch.bfloat16),
    "jina-v2": (TYPES, lambda: JinaBert(), "", torch.float16),
    "jina-v2-slopes": (TYPES, lambda: wide(24, lambda: JinaBert(heads=3, gate="reglu")), "bert.", torch.bfloat16),
    "jina-v2-code": (TYPES, lambda: JinaBert(second=True, heads=2), "", torch.float16),
    "jina-v3": (MASK, lambda: JinaXlm(tasks=("retrieval.query", "text-matching")), "roberta.", torch.bfloat16),
    "jina-v3-task": (MASK, lambda: JinaXlm(tasks=("retrieval.query", "text-matching"), task="text-matching"),
                     "roberta.", torch.bfloat16),
    "jina-xlm-absolute": (MASK, lambda: JinaXlm(rotary=False), "roberta.", torch.float16),
    "deberta-v3": (MASK, lambda: net("DebertaV2Model", "DebertaV2Config", **like(
        relative_attention=True, position_buckets=8, max_relative_positions=-1, share_att_key=True,
        pos_att_type="p2c|c2p", norm_rel_ebd="layer_norm", position_biased_input=False,
        type_vocab_size=0)), "deberta.", torch.float16),
    "deberta-v2-apart": (TYPES, lambda: net("DebertaV2Model", "DebertaV2Config", **like(
        relative_attention=True, position_buckets=6, max_relative_positions=12, share_att_key=False, pos_att_type=["c2p", "p2c"],
        position_biased_input=True, type_vocab_size=2, embedding_size=8)), "", torch.bfloat16),
    "deberta-v2-near": (MASK, lambda: net("DebertaV2Model", "DebertaV2Config", **like(
        relative_attention=True, max_relative_positions=16, share_att_key=False, pos_att_type=["c2p"],
        position_biased_input=False, type_vocab_size=0)), "deberta.", torch.float16),
    "albert": (TYPES, lambda: net("AlbertModel", "AlbertConfig", **like(
        embedding_size=8, num_hidden_layers=4, num_hidden_groups=2, inner_group_num=1, hidden_act="gelu_new")),
        "albert.", torch.bfloat16),
    "electra": (TYPES, lambda: net("ElectraModel", "ElectraConfig", **like(embedding_size=8)), "electra.",
                torch.float32),
    "ernie": (TYPES, lambda: net("ErnieModel", "ErnieConfig", **like(use_task_id=True, task_type_vocab_size=4)), "ernie.",
              torch.bfloat16),
    "llama": (MASK, lambda: decoder("LlamaModel", "LlamaConfig", mlp_bias=True, attention_bias=True), "model.",
              torch.float16),
    "mistral": (MASK, lambda: decoder("MistralModel", "MistralConfig", sliding_window=9), "", torch.bfloat16),
    "gemma": (MASK, lambda: decoder("GemmaModel", "GemmaConfig"), "model.", torch.float16),
    "gemma2": (MASK, lambda: decoder("Gemma2Model", "Gemma2Config", sliding_window=9, query_pre_attn_scalar=12,
                                     attn_logit_softcapping=3.0), "model.", torch.bfloat16),
    "t5": (MASK, lambda: t5("T5"), "", torch.bfloat16),
    "t5-gated": (MASK, lambda: t5("T5", feed_forward_proj="gated-gelu", relative_attention_num_buckets=8,
                                  relative_attention_max_distance=20), "", torch.float16),
    "mt5": (MASK, lambda: t5("MT5", num_layers=1), "", torch.float16),
    "umt5": (MASK, lambda: t5("UMT5", feed_forward_proj="gated-silu", relative_attention_max_distance=30), "",
             torch.bfloat16),
    "bert-relative-key": (TYPES, lambda: net("BertModel", "BertConfig", **like(
        position_embedding_type="relative_key", hidden_act="silu")), "", torch.bfloat16),
    "bert-relative-key-query": (TYPES, lambda: net("BertModel", "BertConfig", **like(
        position_embedding_type="relative_key_query", hidden_act="quick_gelu")), "bert.", torch.bfloat16),
}

# Written by transformers 5.
MODELS_5 = {
    "nomic-native": (TYPES, lambda: net("NomicBertModel", "NomicBertConfig", **like(pad_token_id=0)), "", torch.float16),
    "jina-v3-native": (MASK, lambda: net("JinaEmbeddingsV3Model", "JinaEmbeddingsV3Config", **like(
        rope_parameters={"rope_type": "linear", "rope_theta": 700.0, "factor": 2.0})), "", torch.bfloat16),
    "eurobert": (MASK, lambda: decoder("EuroBertModel", "EuroBertConfig", pad_token_id=0, mlp_bias=True), "model.",
                 torch.bfloat16),
    "gte-native": (TYPES, lambda: net("GteModel", "GteConfig", **like(type_vocab_size=2)), "", torch.bfloat16),
    "qwen3-both-ways": (MASK, lambda: decoder(
        "Qwen3Model", "Qwen3Config", is_causal=False, use_sliding_window=True, sliding_window=6, max_window_layers=1,
        pad_token_id=0), "model.", torch.float16),
    "modernbert-5": (MASK, lambda: net("ModernBertModel", "ModernBertConfig", **like(
        num_hidden_layers=3, local_attention=8, pad_token_id=0, bos_token_id=1, cls_token_id=1, eos_token_id=2,
        sep_token_id=2, rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 900.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}})), "model.", torch.bfloat16),
}


# ---- making one ----

def randomize(model):
    g = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=g)
            if p.ndim < 2:
                norm = name.endswith("weight") and float(p.detach().float().mean().abs()) > 0.5
                p.copy_(1.0 + 0.2 * noise if norm else 0.1 * noise)
            else:
                p.copy_(noise * (1.0 if "embed" in name else 1.2 / math.sqrt(p[0].numel())))
            if "SelfAttention.q." in name:  # T5 leaves the scale of scores to this matrix
                p.mul_(6 ** -0.5)
            if ".wi_1." in name:  # no norm follows the product of the two halves
                p.mul_(0.5)
    return model.eval()


def make_inputs(names):
    rng = np.random.default_rng(11)
    mask = (np.arange(LENGTH)[None, :] < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids = rng.integers(5, VOCAB - 1, mask.shape) * mask
    types = mask * (np.arange(LENGTH) > 9)
    return {n: v for n, v in zip(TYPES, (ids, mask, types)) if n in names}


def compute(model, inputs):
    """Each text alone; rows of padding stay 0."""
    rows = []
    for i, n in enumerate(LENGTHS):
        given = {k: torch.from_numpy(v[i:i + 1, :n]) for k, v in inputs.items()}
        with torch.no_grad():
            if isinstance(model.config, dict):
                y = model(given["input_ids"], given.get("token_type_ids"))
            else:
                y = model(**given).last_hidden_state
        rows.append(np.pad(y[0].numpy(), ((0, LENGTH - n), (0, 0))))
    return np.stack(rows).astype(np.float32)


def written_names(model):
    """Tensors as save_pretrained writes them: transformers 5 turns its own names back into those of the hub."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return safetensors.torch.load_file(f"{folder}/model.safetensors")


def store(name, model, prefix, dtype, inputs):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = model.config if isinstance(model.config, dict) else json.loads(model.config.to_json_string())
    if config.get("use_bidirectional_attention"):  # the class halved what it was given and would do so again
        config["sliding_window"] = 2 * (config["sliding_window"] - 1)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    stored = model.state_dict()
    if hasattr(model, "published_names"):
        stored = model.published_names(stored)
    elif name in MODELS_5:
        stored = written_names(model)
    stored.pop("encoder.embed_tokens.weight", None)  # of T5: the same as "shared"
    state = {prefix + k: v.detach().to(dtype).contiguous() for k, v in stored.items()
             if v.dtype.is_floating_point and "pooler" not in k}
    safetensors.torch.save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    for p in model.parameters():  # as they are stored
        p.data = p.data.to(dtype).double()
    model = model.double()
    if hasattr(model, "merge"):
        model.merge()
    out = compute(model, inputs)
    out.tofile(folder / "last_hidden_state.f32")
    for k, v in inputs.items():
        v.tofile(folder / f"{k}.i64")
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size} bytes, values to {np.abs(out).max():.2f}", flush=True)


def main():
    models = MODELS_5 if tf.__version__.startswith("5.") else MODELS
    for name, (names, make, prefix, dtype) in models.items():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            torch.manual_seed(0)
            store(name, randomize(make()), prefix, dtype, make_inputs(names))


if __name__ == "__main__":
    main()

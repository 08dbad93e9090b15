#!/usr/bin/env python3
"""Writes tests/data/families: tiny networks of many families with random weights, exported as their users export them.

usage: make_families.py [NAME...]      (all; needs torch, transformers, onnxscript, onnxruntime; see ORIGIN.md)
A folder is <family>-<exporter><opset>[-<form>]: model.onnx, test_data_set_0 and data.json. The stored outputs are ONNX
Runtime's with optimisation off, and those of a float32 network are compared with torch's here. A family whose code lies
beside its weights, not in transformers, is written out below after its published architecture.
"""
import importlib.metadata
import json
import math
import pathlib
import shutil
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers as tf
from torch import nn

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "families"
VOCAB, LENGTH = 96, 19
warnings.filterwarnings("ignore")


# ---- networks written here ----

def rotate(x, cos, sin, interleaved):
    """x [batch, heads, sequence, size]; cos and sin [sequence, size]."""
    if interleaved:
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    else:
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((-b, a), dim=-1)
    return x * cos + turned * sin


def alibi_slopes(heads):
    return torch.tensor([2.0 ** (-8.0 * (i + 1) / heads) for i in range(heads)])


class Encoder(nn.Module):
    """The encoders of NomicBERT, GTE, Jina v2 and Jina's XLM-R as published with their weights: one matrix for query,
    key and value, positions by rotation, ALiBi or a table, a gated or plain feed-forward part, norms after the sums."""

    def __init__(self, hidden, *, positions, gate=None, bias=False, interleaved=False, pad=0, alibi_table=False,
                 heads=2, layers=2, inner=40, classes=0):
        super().__init__()
        self.positions, self.gate, self.interleaved, self.pad = positions, gate, interleaved, pad
        self.heads, self.size, self.alibi_table, self.classes = heads, hidden // heads, alibi_table, classes
        self.words = nn.Embedding(VOCAB, hidden)
        self.types = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        if positions == "table":
            self.table = nn.Embedding(64, hidden)
        if positions == "rotary":
            angles = torch.outer(torch.arange(64).float(), 1.0 / 1000.0 ** (torch.arange(0, self.size, 2) / self.size))
            angles = angles.repeat_interleave(2, -1) if interleaved else torch.cat((angles, angles), -1)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())
        if alibi_table:
            self.register_buffer("alibi", self.make_alibi(40))
        self.layers = nn.ModuleList(nn.ModuleDict({
            "qkv": nn.Linear(hidden, 3 * hidden, bias=bias), "out": nn.Linear(hidden, hidden, bias=bias),
            "norm1": nn.LayerNorm(hidden), "norm2": nn.LayerNorm(hidden),
            "up": nn.Linear(hidden, inner * (2 if gate else 1), bias=bias), "down": nn.Linear(inner, hidden, bias=bias),
        }) for _ in range(layers))
        if classes:
            self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, classes))

    def make_alibi(self, size):
        at = torch.arange(size)
        distance = torch.abs(at[None, :] - at[:, None])
        distance = distance.unsqueeze(0).expand(self.heads, -1, -1)
        return (alibi_slopes(self.heads).unsqueeze(1).unsqueeze(1) * -distance).unsqueeze(0)

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        batch, sequence = input_ids.shape
        x = self.words(input_ids)
        if token_type_ids is not None:
            x = x + self.types(token_type_ids)
        if self.positions == "table":
            real = input_ids.ne(self.pad).int()
            x = x + self.table(((torch.cumsum(real, dim=1).type_as(real)) * real).long() + self.pad)
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        if self.positions == "alibi":
            mask = mask + (self.alibi[:, :, :sequence, :sequence] if self.alibi_table else self.make_alibi(sequence))
        for layer in self.layers:
            q, k, v = layer["qkv"](x).view(batch, sequence, 3, self.heads, self.size).unbind(2)
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            if self.positions == "rotary":
                cos, sin = self.cos[:sequence], self.sin[:sequence]
                q, k = rotate(q, cos, sin, self.interleaved), rotate(k, cos, sin, self.interleaved)
            scores = q @ k.transpose(-1, -2) / math.sqrt(self.size) + mask
            attended = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, sequence, -1)
            x = layer["norm1"](x + layer["out"](attended))
            y = layer["up"](x)
            if self.gate:
                a, b = y.chunk(2, dim=-1)
                y = a * (nn.functional.gelu(b) if self.gate == "gelu" else nn.functional.silu(b))
            else:
                y = nn.functional.gelu(y)
            x = layer["norm2"](x + layer["down"](y))
        return self.head(x[:, 0]) if self.classes else x


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.net = kind(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        y, state = self.net(x)
        state = state[0] if isinstance(state, tuple) else state
        return self.out(y), state


# ---- what is exported of a network ----

class Take(nn.Module):
    """The outputs named, of a transformers model."""

    def __init__(self, model, *names, **more):
        super().__init__()
        self.model, self.names, self.more = model, names, more

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        out = self.model(**{k: v for k, v in given.items() if v is not None}, **self.more)
        return tuple(out[name] for name in self.names)


class TakeImage(nn.Module):
    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, pixel_values):
        out = self.model(pixel_values)
        return tuple(out[name] for name in self.names)


class Colbert(nn.Module):
    def __init__(self, model, hidden):
        super().__init__()
        self.model, self.linear = model, nn.Linear(hidden, 8, bias=False)

    def forward(self, input_ids, attention_mask):
        x = self.linear(self.model(input_ids, attention_mask=attention_mask).last_hidden_state)
        return nn.functional.normalize(x * attention_mask.unsqueeze(-1).to(x.dtype), p=2, dim=2)


class Splade(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        logits = self.model(input_ids, attention_mask=attention_mask).logits
        return torch.max(torch.log1p(torch.relu(logits)) * attention_mask.unsqueeze(-1), dim=1).values


class M3(nn.Module):
    """BGE-M3: a normalised vector, a weight a token, a vector a token."""

    def __init__(self, model, hidden):
        super().__init__()
        self.model, self.sparse, self.colbert = model, nn.Linear(hidden, 1), nn.Linear(hidden, hidden)

    def forward(self, input_ids, attention_mask):
        x = self.model(input_ids, attention_mask=attention_mask).last_hidden_state
        rows = self.colbert(x[:, 1:]) * attention_mask[:, 1:, None].to(x.dtype)
        return (nn.functional.normalize(x[:, 0], dim=-1), torch.relu(self.sparse(x)),
                nn.functional.normalize(rows, dim=-1))


class LastToken(nn.Module):
    """Qwen3-Embedding's: the last real token's row, of length 1."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        x = self.model(input_ids, attention_mask=attention_mask).last_hidden_state
        at = attention_mask.sum(dim=1) - 1
        return nn.functional.normalize(x[torch.arange(x.shape[0]), at], p=2, dim=1)


class MeanGemma(nn.Module):
    """EmbeddingGemma's: mean over tokens, two dense layers, length 1."""

    def __init__(self, model, hidden):
        super().__init__()
        self.model = model
        self.dense1, self.dense2 = nn.Linear(hidden, 48, bias=False), nn.Linear(48, hidden, bias=False)

    def forward(self, input_ids, attention_mask):
        x = self.model(input_ids, attention_mask=attention_mask).last_hidden_state
        m = attention_mask.unsqueeze(-1).to(x.dtype)
        mean = (x * m).sum(1) / m.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(self.dense2(self.dense1(mean)), p=2, dim=1)


# ---- the families ----

def bert_like(hidden, **more):
    return dict(vocab_size=VOCAB, hidden_size=hidden, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40,
                max_position_embeddings=48) | more


def roberta_like(hidden, **more):
    return bert_like(hidden, pad_token_id=1, type_vocab_size=1, layer_norm_eps=1e-5) | more


def decoder_like(hidden, **more):
    return bert_like(hidden, num_key_value_heads=1, head_dim=hidden // 2, max_position_embeddings=64, use_cache=False) | more


def vision_like(hidden, **more):
    return dict(hidden_size=hidden, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40, image_size=32,
                patch_size=8) | more


IDS, IDS_MASK, IDS_MASK_TYPES, IMAGE, ROWS = "ids", "mask", "types", "image", "rows"
STATE = "last_hidden_state"


def xlm_roberta(h, att):
    return tf.XLMRobertaModel(tf.XLMRobertaConfig(**roberta_like(h), attn_implementation=att), add_pooling_layer=False)


FAMILIES = {
    # name: (inputs, what to export given hidden size and attention implementation)
    "roberta": (IDS_MASK, lambda h, att: Take(tf.RobertaModel(
        tf.RobertaConfig(**roberta_like(h), attn_implementation=att)), STATE, "pooler_output")),
    "xlm-roberta": (IDS_MASK, lambda h, att: Take(xlm_roberta(h, att), STATE)),
    "camembert": (IDS_MASK, lambda h, att: Take(tf.CamembertModel(
        tf.CamembertConfig(**roberta_like(h), attn_implementation=att), add_pooling_layer=False), STATE)),
    "distilbert": (IDS_MASK, lambda h, att: Take(tf.DistilBertModel(tf.DistilBertConfig(
        vocab_size=VOCAB, dim=h, n_layers=2, n_heads=2, hidden_dim=40, max_position_embeddings=48,
        attn_implementation=att)), STATE)),
    "mpnet": (IDS_MASK, lambda h, att: Take(tf.MPNetModel(tf.MPNetConfig(
        **bert_like(h, pad_token_id=1)), add_pooling_layer=False), STATE)),
    "albert": (IDS_MASK_TYPES, lambda h, att: Take(tf.AlbertModel(tf.AlbertConfig(
        **bert_like(h, embedding_size=16), attn_implementation=att)), STATE, "pooler_output")),
    "electra": (IDS_MASK_TYPES, lambda h, att: Take(tf.ElectraModel(tf.ElectraConfig(
        **bert_like(h, embedding_size=16), attn_implementation=att)), STATE)),
    "deberta-v2": (IDS_MASK, lambda h, att: Take(tf.DebertaV2Model(tf.DebertaV2Config(
        **bert_like(h), relative_attention=True, position_buckets=8, max_relative_positions=16, share_att_key=True,
        pos_att_type=["c2p", "p2c"], norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0)), STATE)),
    "modernbert": (IDS_MASK, lambda h, att: Take(tf.ModernBertModel(tf.ModernBertConfig(
        **bert_like(h, num_hidden_layers=3), global_attn_every_n_layers=3, local_attention=8, pad_token_id=0,
        bos_token_id=1, cls_token_id=1, eos_token_id=2, sep_token_id=2, attn_implementation=att)), STATE)),
    "nomic-bert": (IDS_MASK_TYPES, lambda h, att: Take(tf.NomicBertModel(tf.NomicBertConfig(
        **bert_like(h), attn_implementation=att)), STATE)),
    "nomic-published": (IDS_MASK_TYPES, lambda h, att: Encoder(h, positions="rotary", gate="silu")),
    "gte": (IDS_MASK, lambda h, att: Take(tf.GteModel(tf.GteConfig(
        **bert_like(h), attn_implementation=att), add_pooling_layer=False), STATE)),
    "gte-published": (IDS_MASK, lambda h, att: Encoder(h, positions="rotary", gate="gelu", bias=True)),
    "rotary-interleaved": (IDS_MASK, lambda h, att: Encoder(h, positions="rotary", interleaved=True, bias=True)),
    "jina-v2": (IDS_MASK_TYPES, lambda h, att: Encoder(h, positions="alibi", gate="gelu")),
    "jina-v2-table": (IDS_MASK_TYPES, lambda h, att: Encoder(h, positions="alibi", gate="gelu", alibi_table=True)),
    "jina-reranker-v2": (IDS_MASK, lambda h, att: Encoder(h, positions="table", bias=True, pad=1, classes=1)),
    "jina-v3": (IDS_MASK, lambda h, att: Take(tf.JinaEmbeddingsV3Model(tf.JinaEmbeddingsV3Config(
        **bert_like(h, pad_token_id=1), attn_implementation=att), add_pooling_layer=False), STATE)),
    "t5": (IDS_MASK, lambda h, att: Take(tf.T5EncoderModel(tf.T5Config(
        vocab_size=VOCAB, d_model=h, d_kv=h // 2, d_ff=40, num_layers=2, num_heads=2, relative_attention_num_buckets=8,
        relative_attention_max_distance=16, feed_forward_proj="gated-gelu")), STATE)),
    "qwen2": (IDS_MASK, lambda h, att: Take(tf.Qwen2Model(tf.Qwen2Config(
        **decoder_like(h), attn_implementation=att)), STATE)),
    "qwen3": (IDS_MASK, lambda h, att: LastToken(tf.Qwen3Model(tf.Qwen3Config(
        **decoder_like(h), attn_implementation=att)))),
    "gemma3": (IDS_MASK, lambda h, att: MeanGemma(tf.Gemma3TextModel(tf.Gemma3TextConfig(
        **decoder_like(h, num_hidden_layers=2, sliding_window=8, query_pre_attn_scalar=h // 2),
        layer_types=["sliding_attention", "full_attention"], use_bidirectional_attention=True,
        attn_implementation=att)), h)),
    "bge-m3": (IDS_MASK, lambda h, att: M3(xlm_roberta(h, att), h)),
    "splade": (IDS_MASK, lambda h, att: Splade(tf.DistilBertForMaskedLM(tf.DistilBertConfig(
        vocab_size=VOCAB, dim=h, n_layers=2, n_heads=2, hidden_dim=40, max_position_embeddings=48,
        attn_implementation=att)))),
    "colbert": (IDS_MASK, lambda h, att: Colbert(tf.BertModel(tf.BertConfig(
        **bert_like(h), attn_implementation=att), add_pooling_layer=False), h)),
    "clip-text": (IDS_MASK, lambda h, att: Take(tf.CLIPTextModelWithProjection(tf.CLIPTextConfig(
        **bert_like(h, projection_dim=16, eos_token_id=VOCAB - 1), attn_implementation=att)), "text_embeds", STATE)),
    "clip-vision": (IMAGE, lambda h, att: TakeImage(tf.CLIPVisionModelWithProjection(tf.CLIPVisionConfig(
        **vision_like(h, projection_dim=16), attn_implementation=att)), "image_embeds")),
    "siglip-text": (IDS, lambda h, att: Take(tf.SiglipTextModel(tf.SiglipTextConfig(
        **bert_like(h), attn_implementation=att)), "pooler_output", STATE)),
    "siglip-vision": (IMAGE, lambda h, att: TakeImage(tf.SiglipVisionModel(tf.SiglipVisionConfig(
        **vision_like(h), attn_implementation=att)), "pooler_output")),
    "vit": (IMAGE, lambda h, att: TakeImage(tf.ViTModel(tf.ViTConfig(
        **vision_like(h), attn_implementation=att)), STATE, "pooler_output")),
    "dinov2": (IMAGE, lambda h, att: TakeImage(tf.Dinov2Model(tf.Dinov2Config(
        **vision_like(h, mlp_ratio=1), attn_implementation=att)), "pooler_output")),
    "resnet": (IMAGE, lambda h, att: TakeImage(tf.ResNetModel(tf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")), "pooler_output")),
    "convnext": (IMAGE, lambda h, att: TakeImage(tf.ConvNextModel(tf.ConvNextConfig(
        hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)), "pooler_output")),
    "mobilenet-v2": (IMAGE, lambda h, att: TakeImage(tf.MobileNetV2Model(tf.MobileNetV2Config(
        depth_multiplier=0.1, min_depth=4, depth_divisible_by=4, expand_ratio=2, finegrained_output=False)), "pooler_output")),
    "lstm": (ROWS, lambda h, att: Recurrent(nn.LSTM)),
    "gru": (ROWS, lambda h, att: Recurrent(nn.GRU)),
}

ATTENTION = {"script14": "eager", "script17": "sdpa", "dynamo20": "sdpa"}
WIDE = ["jina-v2-dynamo20", "qwen3-dynamo20", "vit-dynamo20"]  # hidden size 32, heads of 16
ONLY = {  # where another spelling adds nothing, or the exporter fails
    "albert": ["script17"], "bge-m3": ["script17"], "camembert": ["script17"], "clip-vision": ["script14"],
    "colbert": ["dynamo20"], "convnext": ["dynamo20"], "dinov2": ["script17"], "distilbert": ["dynamo20"],
    "electra": ["script17"], "gemma3": ["dynamo20"], "gru": ["script17"], "gte-published": ["script14"],
    "jina-reranker-v2": ["script17"], "jina-v2-table": ["dynamo20"], "lstm": ["script14", "dynamo20"],
    "mobilenet-v2": ["script17"], "mpnet": ["script17"], "nomic-published": ["script17"], "qwen3": ["dynamo20"],
    "resnet": ["script14"], "roberta": ["script14"], "siglip-text": ["script14"], "siglip-vision": ["dynamo20"],
    "splade": ["script17"], "t5": ["script14", "script17"], "vit": ["script14", "dynamo20"], "xlm-roberta": ["script14"],
}
FORMS = [  # of which export, and how its weights are stored
    ("qwen2-dynamo20", "f16"), ("modernbert-script17", "f16"), ("xlm-roberta-script14", "int8"),
    ("gte-dynamo20", "int8"), ("jina-v2-script17", "qdq"), ("vit-dynamo20", "qdq"), ("resnet-script14", "qdq"),
    ("resnet-script14", "qoperator"), ("distilbert-dynamo20", "qoperator"), ("qwen3-dynamo20", "q4"),
]


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
                p.copy_(noise * (1.0 if "embed" in name or "words" in name else 1.2 / math.sqrt(p[0].numel())))
        for name, b in model.named_buffers():
            if name.endswith("running_var"):
                b.copy_(torch.rand(b.shape, generator=g) + 0.5)
            if name.endswith("running_mean"):
                b.copy_(0.1 * torch.randn(b.shape, generator=g))
    return model.eval()


def make_inputs(kind, family):
    """Three texts of 19, 7 and 1 tokens, padded right; or two images; or two sequences."""
    rng = np.random.default_rng(11)
    if kind == IMAGE:
        return {"pixel_values": rng.standard_normal((2, 3, 32, 32), dtype=np.float32)}
    if kind == ROWS:
        return {"x": rng.standard_normal((2, 7, 6), dtype=np.float32)}
    pad = 1 if any(family.startswith(n) for n in ("roberta", "xlm", "camem", "mpnet", "bge", "jina-re", "jina-v3")) else 0
    mask = np.arange(LENGTH)[None, :] < np.array([[LENGTH], [7], [1]])
    ids = np.where(mask, rng.integers(5, VOCAB - 1, (3, LENGTH)), pad)
    if family == "clip-text":
        ids[[0, 1, 2], [LENGTH - 1, 6, 0]] = VOCAB - 1
    inputs = {"input_ids": ids.astype(np.int64)}
    if kind in (IDS_MASK, IDS_MASK_TYPES):
        inputs["attention_mask"] = mask.astype(np.int64)
    if kind == IDS_MASK_TYPES:
        inputs["token_type_ids"] = (mask & (np.arange(LENGTH) > 4)).astype(np.int64)
    return inputs


def free_axes(kind):
    if kind == IMAGE:
        return {0: "batch"}
    return {0: "batch", 1: "sequence"}


def export(model, inputs, kind, exporter, path):
    args = tuple(torch.from_numpy(v) for v in inputs.values())
    with torch.no_grad():
        wanted = model(*args)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    outputs = [f"output_{i}" for i in range(len(wanted))]
    opset = int(exporter[-2:])
    if exporter.startswith("script"):
        axes = {name: free_axes(kind) for name in inputs} | {name: {0: "batch"} for name in outputs}
        torch.onnx.export(model, args, path, dynamo=False, opset_version=opset, input_names=list(inputs),
                          output_names=outputs, dynamic_axes=axes, do_constant_folding=True)
    else:
        dims = {axis: torch.export.Dim(name, min=1, max=40 if name == "sequence" else 64)
                for axis, name in free_axes(kind).items()}
        torch.onnx.export(model, args, path, dynamo=True, opset_version=opset, input_names=list(inputs),
                          output_names=outputs, dynamic_shapes=tuple(dims for _ in inputs), external_data=False,
                          verbose=False)
    proto = onnx.load(path)
    strip(proto.graph, {n: n for n in ['', *(p.name for p in [*proto.graph.input, *proto.graph.output])]})
    del proto.metadata_props[:]
    onnx.save(proto, path)
    return [w.detach().numpy() for w in wanted]


def strip(graph, names):
    """Leaves out where each node came from in Python and the long names: they are most of a small file."""
    for item in [*graph.node, *graph.input, *graph.output, *graph.initializer]:
        item.doc_string = ""
        del item.metadata_props[:]
    for item in graph.initializer:
        item.name = names.setdefault(item.name, f"w{len(names)}")
    for node in graph.node:
        node.name = ""
        node.input[:] = [names.setdefault(n, f"v{len(names)}") for n in node.input]
        node.output[:] = [names.setdefault(n, f"v{len(names)}") for n in node.output]
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                strip(a.g, names)
    for item in graph.output:
        item.name = names.get(item.name, item.name)
    del graph.metadata_props[:]
    del graph.value_info[:]


def run(path, inputs):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: inputs[i.name] for i in session.get_inputs()})


def difference(a, b, mask):
    """Of real tokens: what a padded position gives is nobody's, and torch and ONNX Runtime differ there."""
    if mask is not None and a.ndim == 3 and a.shape[:2] == mask.shape:
        a, b = a[mask != 0], b[mask != 0]
    return float(np.abs(a - b).max())


class Reader:
    """For static quantisation: the test inputs are the calibration set."""

    def __init__(self, inputs):
        self.left = [inputs]

    def get_next(self):
        return self.left.pop() if self.left else None


def convert(source, form, path, inputs):
    from onnxruntime import quantization as q
    if form == "f16":
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), path)
    elif form == "int8":
        q.quantize_dynamic(source, path, weight_type=q.QuantType.QInt8)
    elif form in ("qdq", "qoperator"):
        q.quantize_static(source, path, Reader(inputs), weight_type=q.QuantType.QInt8,
                          quant_format=q.QuantFormat.QDQ if form == "qdq" else q.QuantFormat.QOperator)
    elif form == "q4":
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=16, is_symmetric=False)
        quantizer.process()
        onnx.save(quantizer.model.model, path)


def store(folder, path, inputs, outputs, rtol, atol):
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    shutil.copyfile(path, folder / "model.onnx")
    proto = onnx.load(path)
    for i, port in enumerate(proto.graph.input):
        (data / f"input_{i}.pb").write_bytes(onnx.numpy_helper.from_array(inputs[port.name], port.name).SerializeToString())
    for i, port in enumerate(proto.graph.output):
        (data / f"output_{i}.pb").write_bytes(onnx.numpy_helper.from_array(outputs[i], port.name).SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}) + "\n")


def main():
    torch.manual_seed(0)
    chosen = sys.argv[1:]
    for package in ("torch", "transformers", "onnxscript", "onnxruntime", "onnx"):
        print(package, importlib.metadata.version(package))
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/model.onnx"
        for family, (kind, build) in FAMILIES.items():
            for exporter in ONLY.get(family, ["script17", "dynamo20"]):
                name = f"{family}-{exporter}"
                if chosen and name not in chosen and family not in chosen:
                    continue
                try:
                    torch.manual_seed(0)
                    model = randomize(build(32 if name in WIDE else 16, ATTENTION[exporter]))
                    inputs = make_inputs(kind, family)
                    wanted = export(model, inputs, kind, exporter, path)
                    got = run(path, inputs)
                    worst = max(difference(g, w, inputs.get("attention_mask")) for g, w in zip(got, wanted))
                    if worst > 2e-4:
                        raise RuntimeError(f"ONNX Runtime differs from torch by {worst}")
                    store(OUT / name, path, inputs, got, 1e-3, 1e-5)
                    print(f"{name}: {pathlib.Path(path).stat().st_size} bytes, torch differs by {worst:.1e}", flush=True)
                except Exception as e:  # the others go on; the exit code tells
                    failed.append(name)
                    print(f"{name}: FAILED {type(e).__name__}: {str(e)[:600]}", flush=True)
        for source, form in FORMS:
            name = f"{source}-{form}"
            if chosen and name not in chosen and form not in chosen:
                continue
            family = max((f for f in FAMILIES if source.startswith(f)), key=len)
            inputs = make_inputs(FAMILIES[family][0], family)
            convert(str(OUT / source / "model.onnx"), form, path, inputs)
            atol = 1e-2 if form == "f16" else 1e-4
            store(OUT / name, path, inputs, run(path, inputs), 1e-3 if form != "f16" else 2e-2, atol)
            print(f"{name}: {pathlib.Path(path).stat().st_size} bytes", flush=True)
    return f"failed: {failed}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())

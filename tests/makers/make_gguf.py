#!/usr/bin/env python3
"""Makes tests/data/gguf: a BERT with random weights as GGUF, written and quantised by the PyPI package gguf (0.19), and as
safetensors with the numbers that this package decodes. Run by hand:

usage: make_gguf.py SOURCE_DIR             needs gguf, safetensors and NumPy; tokenizer and settings are those of
                                           tests/data/modules/dense-plain
       make_gguf.py --kinds SOURCE_DIR      the tensors of each type alone
       make_gguf.py --lone MODEL_DIR FILE  a BERT of Hugging Face as one file of F16, with settings and tokenizer, as
                                           llama.cpp's converter writes it
"""
import json
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file, save_file

HIDDEN, INNER, LAYERS, HEADS, WORDS, PLACES = 32, 64, 2, 4, 24, 32
KINDS = {"q4_0": gguf.GGMLQuantizationType.Q4_0, "q8_0": gguf.GGMLQuantizationType.Q8_0, "f16": gguf.GGMLQuantizationType.F16,
         "f32": gguf.GGMLQuantizationType.F32}


def tensors(draw):
    """(name in GGUF, name of Hugging Face, kind, numbers)"""
    normal = lambda *shape: (draw.standard_normal(shape) * 0.3).astype(np.float32)
    yield "token_embd.weight", "embeddings.word_embeddings.weight", "q8_0", normal(WORDS, HIDDEN)
    yield "token_types.weight", "embeddings.token_type_embeddings.weight", "f32", normal(2, HIDDEN)
    yield "position_embd.weight", "embeddings.position_embeddings.weight", "f16", normal(PLACES, HIDDEN)
    norms = [("token_embd_norm", "embeddings.LayerNorm")]
    for i in range(LAYERS):
        ours, theirs = f"blk.{i}.", f"encoder.layer.{i}."
        for name, hf, rows, columns in (("attn_q", "attention.self.query", HIDDEN, HIDDEN), ("attn_k", "attention.self.key", HIDDEN, HIDDEN),
                                        ("attn_v", "attention.self.value", HIDDEN, HIDDEN),
                                        ("attn_output", "attention.output.dense", HIDDEN, HIDDEN),
                                        ("ffn_up", "intermediate.dense", INNER, HIDDEN), ("ffn_down", "output.dense", HIDDEN, INNER)):
            yield f"{ours}{name}.weight", f"{theirs}{hf}.weight", "q4_0", normal(rows, columns)
            yield f"{ours}{name}.bias", f"{theirs}{hf}.bias", "f32", normal(rows)
        norms += [(f"{ours}attn_output_norm", f"{theirs}attention.output.LayerNorm"), (f"{ours}layer_output_norm", f"{theirs}output.LayerNorm")]
    for name, hf in norms:
        yield f"{name}.weight", f"{hf}.weight", "f32", 1 + normal(HIDDEN)
        yield f"{name}.bias", f"{hf}.bias", "f32", normal(HIDDEN)


def stored_token(token):
    """As llama.cpp stores tokens of WordPiece."""
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[2:] if token.startswith("##") else "\u2581" + token


def describe(writer, config, tokenizer, pooling):
    """Settings and tokenizer, under the keys of llama.cpp's converter."""
    writer.add_name("random")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    writer.add_token_type_count(config["type_vocab_size"])
    vocab = tokenizer["model"]["vocab"]
    specials = {token["content"] for token in tokenizer["added_tokens"] if token["special"]}
    tokens = sorted(vocab, key=vocab.get)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([stored_token(token) for token in tokens])
    writer.add_token_types([gguf.TokenType.CONTROL if token in specials else gguf.TokenType.NORMAL for token in tokens])
    for add, token in ((writer.add_unk_token_id, "[UNK]"), (writer.add_sep_token_id, "[SEP]"), (writer.add_pad_token_id, "[PAD]"),
                       (writer.add_bos_token_id, "[CLS]"), (writer.add_mask_token_id, "[MASK]")):
        add(vocab[token])


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def names(layers):
    """Names in GGUF by those of Hugging Face, without their ends."""
    plain = {"embeddings.word_embeddings": "token_embd", "embeddings.token_type_embeddings": "token_types",
             "embeddings.position_embeddings": "position_embd", "embeddings.LayerNorm": "token_embd_norm"}
    parts = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
             "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm", "intermediate.dense": "ffn_up",
             "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
    return plain | {f"encoder.layer.{i}.{hf}": f"blk.{i}.{name}" for i in range(layers) for hf, name in parts.items()}


def kinds(data):
    """A tensor of each type with random blocks, and the numbers that the package decodes."""
    draw, writer, decoded = np.random.default_rng(2), gguf.GGUFWriter(data / "gguf/kinds.gguf", "bert"), {}
    for name, scales in (("Q4_0", (0,)), ("Q4_1", (0, 2)), ("Q5_0", (0,)), ("Q5_1", (0, 2)), ("Q8_0", (0,)), ("Q4_K", (0, 2)), ("Q5_K", (0, 2)), ("Q6_K", (208,)),
                         ("Q2_K", (80, 82)), ("Q3_K", (108,)), ("IQ4_NL", (0,)), ("IQ4_XS", (0,))):
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = draw.integers(0, 256, (3, 2, size), dtype=np.uint8)
        for at in scales:
            blocks[:, :, at : at + 2] = draw.standard_normal((3, 2, 1)).astype(np.float16).view(np.uint8)
        writer.add_tensor(name, blocks.reshape(3, 2 * size), raw_dtype=kind)
        decoded[name] = np.ascontiguousarray(gguf.quants.dequantize(blocks.reshape(3, 2 * size), kind).reshape(3, 2 * elements))
    write(writer)
    save_file(decoded, data / "gguf/kinds.safetensors")


def lone(model, out):
    config, tokenizer = (json.loads((model / name).read_text()) for name in ("config.json", "tokenizer.json"))
    weights, known = load_file(model / "model.safetensors"), names(config["num_hidden_layers"])
    writer = gguf.GGUFWriter(out, "bert")
    describe(writer, config, tokenizer, gguf.PoolingType.MEAN)
    for name, numbers in weights.items():
        stem, end = name.rsplit(".", 1)
        if stem in known:
            writer.add_tensor(f"{known[stem]}.{end}", numbers.astype(np.float16 if numbers.ndim == 2 and "token_types" not in known[stem] else np.float32))
    write(writer)


def main():
    if sys.argv[1] == "--lone":
        return lone(Path(sys.argv[2]), Path(sys.argv[3]))
    if sys.argv[1] == "--kinds":
        return kinds(Path(sys.argv[2]) / "tests/data")
    data = Path(sys.argv[1]) / "tests/data"
    out, plain = data / "gguf/blocks", data / "gguf/decoded"
    for folder in (out, plain):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("tokenizer.json", "tokenizer_config.json", "sentence_bert_config.json"):
            shutil.copy(data / "modules/dense-plain" / name, folder)
        config = json.loads((data / "modules/dense-plain/config.json").read_text())
        config.update(hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    writer = gguf.GGUFWriter(out / "model.gguf", "bert")
    describe(writer, config, json.loads((out / "tokenizer.json").read_text()), gguf.PoolingType.CLS)
    decoded = {}
    for name, hf, kind, numbers in tensors(np.random.default_rng(1)):
        stored = gguf.quants.quantize(numbers, KINDS[kind])
        writer.add_tensor(name, stored, raw_dtype=KINDS[kind])
        decoded[hf] = np.ascontiguousarray(gguf.quants.dequantize(stored, KINDS[kind]).astype(np.float32).reshape(numbers.shape))
    write(writer)
    save_file(decoded, plain / "model.safetensors")
    kinds(data)
    print("""ORIGIN.md should say:
`blocks/model.gguf` has random weights as Q4_0 (matmuls), Q8_0 (words), F16 (positions) and F32, and settings and tokenizer as
llama.cpp's converter writes them; it was written by the PyPI package gguf 0.19 (`tests/makers/make_gguf.py`).
`decoded/model.safetensors` has the numbers that this package decodes. Tokenizer and settings are those of
`tests/data/modules/dense-plain`. `kinds.gguf` has a tensor of each type, of random blocks; `kinds.safetensors` has the package's
numbers. All numbers are random, so no licence but Pith's own applies.""")


if __name__ == "__main__":
    main()

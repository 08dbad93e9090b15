#!/usr/bin/env python3
"""Makes tests/data/gguf: a BERT with random weights as GGUF, written and quantised by the PyPI package gguf (0.19), and as
safetensors with the numbers that this package decodes. Run by hand:

usage: make_gguf.py SOURCE_DIR     needs gguf, safetensors and NumPy; tokenizer and settings are those of
                                   tests/data/modules/dense-plain"""
import json
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

DATA = Path(sys.argv[1]) / "tests/data"
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


def main():
    out, plain = DATA / "gguf/blocks", DATA / "gguf/decoded"
    for folder in (out, plain):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("tokenizer.json", "tokenizer_config.json", "sentence_bert_config.json"):
            shutil.copy(DATA / "modules/dense-plain" / name, folder)
        config = json.loads((DATA / "modules/dense-plain/config.json").read_text())
        config.update(hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    writer = gguf.GGUFWriter(out / "model.gguf", "bert")
    writer.add_name("random")
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(HIDDEN)
    writer.add_token_list(["[PAD]", "a", "b"])
    decoded = {}
    for name, hf, kind, numbers in tensors(np.random.default_rng(1)):
        data = gguf.quants.quantize(numbers, KINDS[kind])
        writer.add_tensor(name, data, raw_dtype=KINDS[kind])
        decoded[hf] = np.ascontiguousarray(gguf.quants.dequantize(data, KINDS[kind]).astype(np.float32).reshape(numbers.shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(decoded, plain / "model.safetensors")
    (DATA / "gguf/ORIGIN.md").write_text("""# A BERT in GGUF
`blocks/model.gguf` has random weights as Q4_0 (matmuls), Q8_0 (words), F16 (positions) and F32, written by the PyPI package gguf 0.19
(`tests/python/make_gguf.py`). `decoded/model.safetensors` has the numbers that this package decodes. Tokenizer and settings are those of
`tests/data/modules/dense-plain`. The weights are random numbers, so no licence but Pith's own applies.
""")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes tests/data/sparse_modules: tiny sparse encoders of sentence-transformers with random weights, and their vectors.

usage: make_sparse_modules.py      (needs sentence-transformers; see tests/data/sparse_modules/ORIGIN.md)
Each folder is a model directory with expected.f32 (float32, one row of all components for each line of
../modules/texts.txt), or expected.route=<route>.f32, computed in double precision.
"""
import pathlib
import shutil

import numpy as np
import torch
from make_module_cases import HIDDEN, TEXTS, WORDS, randomize, tokenizer, wrapped
from sentence_transformers import SparseEncoder
from sentence_transformers.sparse_encoder.models import SparseAutoEncoder, SparseStaticEmbedding, SpladePooling
from sentence_transformers.models import Normalize, Pooling, Router, Transformer
from transformers import BertConfig, BertForMaskedLM

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "sparse_modules"


def network(folder, **more):
    torch.manual_seed(9)
    config = BertConfig(vocab_size=len(WORDS), hidden_size=HIDDEN, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=12, max_position_embeddings=32, pad_token_id=0, initializer_range=0.8)
    BertForMaskedLM(config).save_pretrained(folder / "base")
    wrapped(tokenizer()).save_pretrained(folder / "base")
    return Transformer(str(folder / "base"), **more)


def write(folder, modules, routes=(None,), **more):
    model = SparseEncoder(modules=modules, device="cpu", **more)
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(folder / "base", ignore_errors=True)
    for route in routes:
        loaded = SparseEncoder(str(folder), device="cpu").to(torch.float64)
        with torch.inference_mode():
            rows = [loaded.encode([t], convert_to_sparse_tensor=False, **({"task": route} if route else {}))[0] for t in TEXTS]
        name = f"expected.route={route}.f32" if route else "expected.f32"
        np.asarray(torch.stack(rows), "<f4").tofile(folder / name)
        print(folder.name, name, [int((r != 0).sum()) for r in rows])
    for path in folder.rglob("*"):
        if path.name in (".gitattributes", "README.md", "special_tokens_map.json"):
            path.unlink()


def code(**more):
    return randomize(SparseAutoEncoder(HIDDEN, 24, **more))


def weights():
    generator = torch.Generator().manual_seed(12)
    table = torch.rand(len(WORDS), generator=generator) + 0.25
    table[WORDS.index("cat")] = 0
    table[WORDS.index("red")] = -0.5
    return SparseStaticEmbedding(wrapped(tokenizer()), weight=table, frozen=True)


CASES = {
    "code": lambda f: write(f, [network(f), Pooling(HIDDEN), code(k=4)]),
    "code-standardised": lambda f: write(f, [network(f), Pooling(HIDDEN, "cls"), code(k=3, normalize=True), Normalize()],
                                         max_active_dims=5),
    "static": lambda f: write(f, [weights()]),
    "static-most": lambda f: write(f, [weights()], max_active_dims=3),
    "splade-most": lambda f: write(f, [network(f, transformer_task="fill-mask"), SpladePooling("max")], max_active_dims=6),
    "router": lambda f: write(f, [Router.for_query_document([weights()], [network(f, transformer_task="fill-mask"),
                                                                          SpladePooling("sum")])],
                              routes=("query", "document")),
}


def main():
    for name, make in CASES.items():
        shutil.rmtree(OUT / name, ignore_errors=True)
        make(OUT / name)


if __name__ == "__main__":
    main()

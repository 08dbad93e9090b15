#!/usr/bin/env python3
"""Writes tests/data/late_modules: tiny models for late interaction of sentence-transformers 6 with random weights, and
their vectors.

usage: make_late_modules.py      (needs sentence-transformers 6.2; see tests/data/late_modules/ORIGIN.md)
Each folder is a model directory with expected.query.f32 and expected.document.f32: float32, first the number of vectors of
each line of ../modules/texts.txt, then all vectors, computed in double precision, text by text.
"""
import pathlib
import shutil

import numpy as np
import torch
from make_module_cases import HIDDEN, TEXTS, WORDS, dense, transformer
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.models import Normalize
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "late_modules"
PROMPTS = {"query": "query : ", "document": "find : "}


def write(name, modules, settings={}, **more):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    network = transformer(folder, **settings)
    model = MultiVectorEncoder(modules=[network, *modules], device="cpu", **more)
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(folder / "base")
    loaded = MultiVectorEncoder(str(folder), device="cpu").to(torch.float64)
    for role, encode in (("query", loaded.encode_query), ("document", loaded.encode_document)):
        rows = [np.asarray(encode([t])[0], np.float64) for t in TEXTS]
        counts = np.array([len(r) for r in rows], "<f4")
        np.concatenate([counts, np.concatenate(rows).astype("<f4").ravel()]).tofile(folder / f"expected.{role}.f32")
        print(name, role, counts.astype(int).tolist(), rows[0].shape[1])
    for path in folder.rglob("*"):
        if path.name in (".gitattributes", "README.md", "special_tokens_map.json"):
            path.unlink()


def project():
    return dense(HIDDEN, 5, torch.nn.Identity(), bias=False, module_input_name="token_embeddings")


def main():
    write("fixed", [project(), Normalize(module_input_name="token_embeddings"), MultiVectorMask([".", ",", "zebra"])],
          {"query_expansion": {"strategy": "fixed", "attend": True, "length": 12}, "document_length": 9}, prompts=PROMPTS)
    write("hidden", [project(), MultiVectorMask()],
          {"query_expansion": {"strategy": "fixed", "attend": False, "length": 10}})
    write("least", [MultiVectorMask(["the", "red", "[UNK]"], skiplist_tasks=["query", "document"])],
          {"query_expansion": {"strategy": "min", "attend": True, "length": 8, "token": "red"}, "query_length": 14},
          prompts={"query": "", "passage": "find : the "})
    keep = [WORDS.index(w) for w in ("mat", "cat", "dog", "a", "find", ".")]
    write("kept", [MultiVectorMask(["."], keep_only_token_ids=keep)])


if __name__ == "__main__":
    main()

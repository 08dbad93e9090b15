#!/usr/bin/env python3
"""Writes tests/data/cases/late: what sentence-transformers makes of directories of PyLate whose prefixes are several
tokens, and of a model with the module HierarchicalTokenPooling.

usage: make_late_cases.py      (needs sentence-transformers 6.2: tests/references_5.txt)
"""
import json
import pathlib
import shutil
import tempfile

import torch
from scipy.cluster import hierarchy
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling, MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Normalize
from transformers import AutoTokenizer, BertConfig, BertModel

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
BASE, OUT = DATA / "encode/colbert-hidden", DATA / "cases/late"
TEXTS = ["the cat sat on the mat", "", "where is the zebra ? a cat , a dog - a tree . " * 3]
PREFIXES = {
    "several": dict(query_prefix="where is - ", document_prefix="a house: "),
    "first word": dict(query_prefix="[unused0] ", document_prefix="[unused1] find - "),
    "unknown": dict(query_prefix="[Q] ", document_prefix="[D] "),
    "prompts": dict(query_prefix="where is ", document_prefix="[unused1] ",
                    prompts={"query": "find ", "document": "[unused1] a tree "}),
    "attended": dict(query_prefix="find the ", document_prefix="", attend_to_expansion_tokens=True),
    "short": dict(query_prefix="find the ", document_prefix="find a ", do_query_expansion=False),
    "cut": dict(query_prefix="where is the house ? ", document_prefix="a tree , ", query_length=5, document_length=4),
}
TOKENIZERS = {
    "first word": {"mask_token": "house"},
    "short": {},
    "attended": {"mask_token": None, "eos_token": "[SEP]"},
}
POOLINGS = {
    "half": dict(pool_factor=2.0, normalize_embeddings=True),
    "means": dict(pool_factor=3.5, num_protected_tokens=3, normalize_embeddings=False, tasks=["query", "document"]),
    "most": dict(pool_factor=1.05, num_protected_tokens=0, normalize_embeddings=True),
    "one": dict(pool_factor=1000.0, normalize_embeddings=True, tasks="query"),
    "none": dict(pool_factor=1.0, normalize_embeddings=True, tasks=["document"]),
}


def rounded(rows):
    return [[float(f"{v:.6f}") for v in row] for row in rows.tolist()]


def run(model, text, role):
    """The ids of the tokens with a vector, the first one of each cluster, and the vectors."""
    seen = {"labels": None}

    def fcluster(*arguments, **keywords):
        seen["labels"] = real(*arguments, **keywords)
        return seen["labels"]
    real, hierarchy.fcluster = hierarchy.fcluster, fcluster

    def mask(module, inputs, features):
        seen["ids"] = features["input_ids"][0][features["attention_mask"][0].bool()].tolist()
    hook = next(m for m in model if isinstance(m, MultiVectorMask)).register_forward_hook(mask)
    rows = (model.encode_query if role == "query" else model.encode_document)([text])[0]
    hook.remove()
    hierarchy.fcluster = real
    ids = seen["ids"]
    if seen["labels"] is not None:
        first = model[-1].num_protected_tokens
        labels = seen["labels"].tolist()
        ids = ids[:first] + [ids[first + labels.index(label)] for label in sorted(set(labels))]
    assert len(ids) == len(rows)
    return ids, rows.float()


def lines(model, texts):
    return [dict(zip(("text", "role", "ids", "vectors"), (text, role, ids, rounded(rows))))
            for role in ("document", "query") for text in texts for ids, rows in [run(model, text, role)]]


def prefixes():
    expected = {}
    for name, settings in PREFIXES.items():
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(BASE, folder, dirs_exist_ok=True)
            file = pathlib.Path(folder) / "config_sentence_transformers.json"
            settings = {**settings, "skiplist_words": [",", ".", "!"]}  # all known: else PyLate skips [UNK], and this one does not
            file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))
            file = pathlib.Path(folder) / "tokenizer_config.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), **TOKENIZERS.get(name, {})}))
            expected[name] = {"settings": settings, "tokenizer": TOKENIZERS.get(name, {}), "lines": lines(MultiVectorEncoder(folder, device="cpu"), TEXTS)}
    (OUT / "prefixes.json").write_text(json.dumps(expected))


def pooled_model():
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = AutoTokenizer.from_pretrained(str(BASE))
        tokenizer.model_max_length = 200
        tokenizer.save_pretrained(folder)
        BertModel(BertConfig(vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                             intermediate_size=12, max_position_embeddings=200, pad_token_id=0,
                             initializer_range=0.8)).save_pretrained(folder)
        rows = dict(module_input_name="token_embeddings")
        modules = [Transformer(folder), Dense(8, 6, bias=False, activation_function=torch.nn.Identity(), **rows),
                   MultiVectorMask(skiplist_words=[",", "."]), Normalize(**rows), HierarchicalTokenPooling()]
        return MultiVectorEncoder(modules=modules, device="cpu", prompts={"query": "find ", "document": ""})


def poolings():
    model = pooled_model()
    model.save_pretrained(str(OUT / "pooling"), create_model_card=False)
    expected = {}
    texts = TEXTS + ["red", "red house", "the dog walked and the cats sat on a red mat , where is the house ? " * 11]
    for name, settings in POOLINGS.items():
        model[-1] = HierarchicalTokenPooling(**settings)
        expected[name] = {"settings": model[-1].get_config_dict(), "lines": lines(model, texts)}
    (OUT / "poolings.json").write_text(json.dumps(expected))


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    prefixes()
    poolings()


if __name__ == "__main__":
    main()

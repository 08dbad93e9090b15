#!/usr/bin/env python3
"""Small text encoders of many families as sentence-transformers folders, embedded by Pith and by sentence-transformers.

usage: compare_embed.py [--library PATH] [FAMILY...]      (needs what make_families.py needs, and sentence-transformers)
A folder has random weights, a tokenizer of 96 words and a pooling; Pith reads its ONNX export, and its safetensors where it
knows the architecture. 40 texts of 0 to 30 words go in at once. Vectors of length 1 must agree within 1e-5. Nothing is
downloaded; exit status 1 if one differs.
"""
import argparse
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
import numpy as np
import sentence_transformers
import tokenizers
import torch
import transformers
from sentence_transformers import models as parts

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/makers")]
import make_families as families
import pith_ctypes as pith

LIMIT = 1e-5
POOLINGS = {"gte": "cls", "camembert": "max", "qwen2": "lasttoken", "qwen3": "lasttoken"}  # mean where nothing is said
FAMILIES = ["roberta", "xlm-roberta", "camembert", "distilbert", "mpnet", "albert", "electra", "deberta-v2", "modernbert",
            "nomic-bert", "gte", "jina-v3", "t5", "qwen2", "qwen3", "gemma3"]


def make_tokenizer(pad):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if pad else ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
    words = special + [f"w{i}" for i in range(len(special), families.VOCAB)]
    t = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    t.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    t.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[(w, words.index(w)) for w in ("<s>", "</s>")])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="<pad>", unk_token="<unk>", cls_token="<s>",
                                                sep_token="</s>", bos_token="<s>", eos_token="</s>", mask_token="<mask>",
                                                model_max_length=40, padding_side="right",
                                                model_input_names=["input_ids", "attention_mask"])


def make_folder(family, path):
    """A saved SentenceTransformer with an ONNX export beside its weights; what it gives for the texts."""
    kind, build = families.FAMILIES[family]
    exporter = families.ONLY.get(family, ["script17"])[0]
    torch.manual_seed(0)
    model = families.randomize(build(16, families.ATTENTION[exporter]).model)
    inputs = families.make_inputs(families.IDS_MASK, family)
    plain = path / "plain"
    model.save_pretrained(plain)
    make_tokenizer(int(inputs["input_ids"].min() > 0)).save_pretrained(plain)
    transformer = parts.Transformer(str(plain), max_seq_length=40)
    pooling = parts.Pooling(16, pooling_mode=POOLINGS.get(family, "mean"))
    encoder = sentence_transformers.SentenceTransformer(modules=[transformer, pooling, parts.Normalize()], device="cpu")
    encoder.save(str(path / "saved"))
    families.export(families.Take(model, families.STATE), inputs, families.IDS_MASK, exporter,
                    str(path / "saved" / "model.onnx"))
    return sentence_transformers.SentenceTransformer(str(path / "saved"), device="cpu")


def embed(library, folder, texts):
    model = pith.Model(library, folder)
    try:
        return model.embed(texts, threads=2)
    finally:
        model.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default=ROOT / "build" / "libpith.so")
    parser.add_argument("families", nargs="*", default=FAMILIES)
    options = parser.parse_args()
    rng = np.random.default_rng(3)
    texts = [" ".join(f"w{i}" for i in rng.integers(5, families.VOCAB, n)) for n in rng.integers(0, 31, 40)]
    failed = []
    for family in options.families:
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch)
            encoder = make_folder(family, path)
            want = encoder.encode(texts, batch_size=8)
            for form in ("onnx", "safetensors"):
                try:
                    worst = float(np.abs(embed(options.library, path / "saved", texts) - want).max())
                    verdict = f"largest difference {worst:.1e}"
                    if not worst <= LIMIT:
                        failed.append(f"{family} {form}")
                except pith.PithError as failure:
                    verdict = str(failure)
                    if form == "onnx":
                        failed.append(f"{family} {form}")
                print(f"{family} {form}: {verdict}", flush=True)
                (path / "saved" / "model.onnx").unlink(missing_ok=True)
    return f"differ: {failed}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""How near the vectors of quantised ONNX files are to the model's when ONNX Runtime runs them.

For each file: mean of 1 - cosine between a text's vector and the one that Pith computes in f32, the share of the 10
nearest other texts that both agree on, and Spearman's correlation with the human scores, times 100. Texts are both
columns of a CSV of the STS benchmark, in batches of 16; vectors are means over tokens, of length 1.
"""
import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from bench_quality import ROOT, read, spearman

NEAREST = 10


def in_pith(pith, model, texts):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "v.npy"
        lines = "".join(text.replace("\n", " ") + "\n" for text in texts)
        subprocess.run([pith, "embed", "-m", model, "--format", "npy", "-o", file], input=lines.encode(), check=True)
        return np.load(file)


def in_onnxruntime(file, tokenizer, texts, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    wanted, out = {i.name for i in session.get_inputs()}, []
    for at in range(0, len(texts), 16):
        tokens = tokenizer.encode_batch(texts[at:at + 16])
        feeds = {"input_ids": np.array([t.ids for t in tokens]), "attention_mask": np.array([t.attention_mask for t in tokens]),
                 "token_type_ids": np.array([t.type_ids for t in tokens])}
        hidden = session.run(None, {k: v for k, v in feeds.items() if k in wanted})[0]
        mask = feeds["attention_mask"][..., None]
        out.append((hidden * mask).sum(1) / mask.sum(1))
    vectors = np.concatenate(out)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def nearest(vectors):
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    return np.argpartition(-scores, NEAREST, axis=1)[:, :NEAREST]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.onnx")
    parser.add_argument("--texts", type=Path, default=ROOT / "tests/data/sts/stsb-en-dev.csv")
    parser.add_argument("--model", type=Path, required=True, help="the directory that the files were made from")
    parser.add_argument("--pith", type=Path, default=ROOT / "build/pith")
    parser.add_argument("-t", "--threads", type=int, default=1)
    args = parser.parse_args()
    scores, texts = read(args.texts)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(256)
    before = in_pith(args.pith, args.model, texts)
    print("| file | mean of 1 - cosine | overlap of the 10 nearest | 100 × Spearman |\n|---|---|---|---|")
    for file in args.files:
        after, half = in_onnxruntime(file, tokenizer, texts, args.threads), len(scores)
        overlap = np.mean([len(set(a) & set(b)) / NEAREST for a, b in zip(nearest(before), nearest(after))])
        rank = spearman((after[:half] * after[half:]).sum(1), scores)
        print(f"| {file.name} | {1 - (before * after).sum(1).mean():.2g} | {overlap:.3f} | {100 * rank:.2f} |", flush=True)


if __name__ == "__main__":
    main()

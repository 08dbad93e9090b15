#!/usr/bin/env python3
"""The default model's Spearman correlation on the development part of the STS benchmark is that of sentence-transformers.

usage: sts.py PITH SOURCE_DIR          compares with EXPECTED; needs NumPy
       sts.py --reference MODEL_DIR SOURCE_DIR     prints the value of sentence-transformers; needs it
"""
import csv
import subprocess
import sys
from pathlib import Path

import numpy as np

EXPECTED = 0.8671631  # sentence-transformers 5.7.0, torch 2.15.0


def ranks(values):
    """From 1, the mean of their places for equal values."""
    order = np.argsort(values, kind="stable")
    ranked = np.empty(len(values))
    ranked[order] = np.arange(1, len(values) + 1)
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.bincount(group, ranked) / counts)[group]


def correlation(first, second, scores):
    cosine = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return np.corrcoef(ranks(cosine), ranks(scores))[0, 1]


def main():
    reference = sys.argv[1] == "--reference"
    source = Path(sys.argv[3 if reference else 2])
    with open(source / "tests/data/sts/stsb-en-dev.csv", newline="") as f:
        rows = list(csv.reader(f))
    texts = [r[0] for r in rows] + [r[1] for r in rows]
    if reference:
        from sentence_transformers import SentenceTransformer
        vectors = SentenceTransformer(sys.argv[2], device="cpu").encode(texts)
    else:
        out = subprocess.run([sys.argv[1], "embed", "--format", "f32", "-0"], input="\0".join(texts).encode() + b"\0",
                             capture_output=True, check=True).stdout
        vectors = np.frombuffer(out, "<f4").reshape(len(texts), -1)
    value = correlation(vectors[:len(rows)], vectors[len(rows):], np.array([float(r[2]) for r in rows]))
    print(f"Spearman correlation {value:.7f} over {len(rows)} pairs; sentence-transformers {EXPECTED:.7f}")
    sys.exit(0 if reference or round(float(value), 4) == round(EXPECTED, 4) else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What a precision costs: Spearman correlation of cosines with the human scores of STS-B, per language and precision.

Each CSV holds sentence, sentence, score without a header (the multilingual STS-B files: stsb-<language>-dev.csv). The
table gives 100 times the correlation for f32 and the difference of the others, and the smallest cosine between a
text's vector and its f32 one.
"""
import argparse
import csv
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import get_model
import numpy as np
from pith_ctypes import Model


def ranks(values):
    """Ranks from 1, equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def spearman(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="stsb-LANGUAGE-dev.csv")
    parser.add_argument("--library", type=Path, default=ROOT / "build/libpith.so")
    parser.add_argument("--model", help="directory, file or name in the cache", default=get_model.NAME)
    parser.add_argument("--precisions", nargs="+", default=["int8", "bf16"])
    args = parser.parse_args()
    if args.model == get_model.NAME:
        get_model.main()
    models = {p: Model(args.library, args.model, precision=p) for p in ["f32", *args.precisions]}
    print(f"{'file':24} {'f32':>8}" + "".join(f" {p:>8} {'min cos':>8}" for p in args.precisions))
    for file in args.files:
        rows = [row for row in csv.reader(file.open(encoding="utf-8", newline="")) if row]
        scores = np.array([float(row[2]) for row in rows])
        texts = [row[0] for row in rows] + [row[1] for row in rows]
        line, base, base_vectors = f"{file.name:24}", None, None
        for precision, model in models.items():
            vectors = model.embed(texts, 2).astype(np.float64)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            a, b = np.split(vectors, 2)
            figure = 100 * spearman((a * b).sum(1), scores)
            if base is None:
                base, base_vectors = figure, vectors
                line += f" {figure:8.3f}"
            else:
                line += f" {figure - base:+8.3f} {(vectors * base_vectors).sum(1).min():8.5f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()

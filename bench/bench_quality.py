#!/usr/bin/env python3
"""What a precision costs: Spearman correlation of cosines with the human scores of STS-B, per language and precision.

8 bits are measured with weights at their nearest steps (int8), calibrated with texts of the vocabulary, as pith compile
does it (vocabulary), and with texts drawn from the files themselves, without their scores (own texts).

Each CSV holds sentence, sentence, score without a header (the multilingual STS-B files: stsb-<language>-dev.csv). The
table gives 100 times the correlation for f32 and for the others the difference, the mean of 1 - cosine between a text's
vector and its f32 one in units of 1e-4, and the smallest cosine.
"""
import argparse
import csv
import subprocess
import sys
import tempfile
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


def read(file):
    """Scores, and all first sentences before all second ones."""
    rows = [row for row in csv.reader(file.open(encoding="utf-8", newline="")) if row]
    return np.array([float(row[2]) for row in rows]), [row[0] for row in rows] + [row[1] for row in rows]


def calibrated(args, folder):
    """Models compiled in 8 bits, by name."""
    texts = folder / "texts"
    texts.write_text("".join(f"{text}\n" for file in args.files for text in read(file)[1]), encoding="utf-8")
    for name, source in (("vocabulary", "vocabulary"), ("own texts", str(texts))):
        file = folder / f"{name}.pith"
        subprocess.run([args.library.with_name("pith"), "compile", "-q", "--precision", "int8", "--calibrate", source,
                        "-m", args.model, "-o", file], check=True)
        yield name, Model(args.library, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="stsb-LANGUAGE-dev.csv")
    parser.add_argument("--library", type=Path, default=ROOT / "build/libpith.so")
    parser.add_argument("--model", help="directory, file or name in the cache", default=get_model.NAME)
    args = parser.parse_args()
    if args.model == get_model.NAME:
        get_model.main()
    models = {p: Model(args.library, args.model, precision=p) for p in ("f32", "int8", "bf16")}
    with tempfile.TemporaryDirectory() as folder:
        models.update(calibrated(args, Path(folder)))
        measure(args.files, models)


def measure(files, models):
    print(f"{'file':20} {'f32':>7}" + "".join(f" | {name:>12} {'off':>5} {'min cos':>7}" for name in list(models)[1:]))
    for file in files:
        scores, texts = read(file)
        line, base, base_vectors = f"{file.name:20}", None, None
        for model in models.values():
            vectors = model.embed(texts, 2).astype(np.float64)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            a, b = np.split(vectors, 2)
            figure = 100 * spearman((a * b).sum(1), scores)
            if base is None:
                base, base_vectors = figure, vectors
                line += f" {figure:7.3f}"
            else:
                cosines = (vectors * base_vectors).sum(1)
                line += f" | {figure - base:+12.3f} {1e4 * (1 - cosines.mean()):5.1f} {cosines.min():7.4f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""BM25 of Pith beside fastembed's, in one process, interleaved, on one thread.

usage: bm25.py LIBPITH.so [TEXTS]       (needs fastembed and NumPy)
The texts are made up of a vocabulary with Zipf's distribution, 3 to 200 words each.
"""
import ctypes
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from fastembed.sparse.bm25 import Bm25

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import pith_ctypes  # noqa: E402
from pith_ctypes import Call, Str  # noqa: E402


def make_texts(count):
    rng = np.random.default_rng(3)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    words = ["".join(rng.choice(letters, rng.integers(2, 11))) + e for e in ("", "s", "ing", "ed") for _ in range(5000)]
    rng.shuffle(words)
    return [" ".join(words[min(int(z), len(words)) - 1] for z in rng.zipf(1.2, rng.integers(3, 200))) for _ in range(count)]


def main():
    lib = pith_ctypes.load(sys.argv[1])
    texts = make_texts(int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
    raw = [t.encode() for t in texts]
    strings = (Str * len(raw))(*[Str(r, len(r)) for r in raw])
    handle, rows, one_thread = ctypes.c_void_p(), pith_ctypes.struct("pith_bm25_rows")(), Call(threads=1)
    ratios, own = [], []
    with tempfile.TemporaryDirectory() as folder:
        open(folder + "/config.json", "w").write("{}")
        peer = Bm25("Qdrant/bm25", specific_model_path=folder)
        if lib.pith_bm25_open(ctypes.byref(handle), None, None, None):
            sys.exit("pith_bm25_open failed")
        for turn in range(8):
            begin = time.perf_counter()
            lib.pith_bm25_encode(ctypes.byref(rows), handle, strings, ctypes.c_size_t(len(raw)), 0, ctypes.byref(one_thread), None)
            middle = time.perf_counter()
            list(peer.raw_embed(texts))
            end = time.perf_counter()
            lib.pith_bm25_rows_free(ctypes.byref(rows), handle)
            if turn:
                ratios.append((end - middle) / (middle - begin))
                own.append(len(texts) / (middle - begin))
    print(f"pith {statistics.median(own):.0f} texts/s; fastembed takes {statistics.median(ratios):.1f} times as long "
          f"({min(ratios):.1f} to {max(ratios):.1f}, {len(ratios)} rounds, one thread)")


if __name__ == "__main__":
    main()

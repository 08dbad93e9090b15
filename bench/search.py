#!/usr/bin/env python3
"""Searching a million vectors: share of the memory's bandwidth, what a first pass gains and loses, NumPy and Faiss.

usage: search.py [--build DIR] [--rows N] [--dim N] [--threads N] [--rounds N] [--cpu] [--json FILE]
Everything is measured in one run, one after the other in each round, and shares and ratios are taken round by round: so
they hold on a machine whose load changes. Bandwidth is what a plain loop reads on as many threads (cli/measure/cpu_peak.h). Faiss is
left out where it is not installed. The scores of all are compared before anything is timed.

--cpu takes processor time divided by the number of threads in place of wall time: on a machine that others use it is the
measure that holds, with one thread above all, since waiting threads may spin.

The vectors are random with a spectrum that falls as that of text embeddings does, turned in space, and of length 1.
Queries are some of them with noise. Recall depends on the data: measure your own with --rows-file and --queries-file
(.npy of float32).
"""
import argparse
import ctypes as c
import importlib.util
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import pith_ctypes  # noqa: E402

QUERIES, HITS = 64, 10
METRICS = {"cosine": 0, "dot": 1, "l2": 2}
PASSES = {"f32": 0, "int8": 1, "binary": 2}


Error, IndexOptions, SearchOptions = map(pith_ctypes.struct, ("pith_error", "pith_search_index_options", "pith_search_options"))


class Index:
    """An index of libpith over rows of float32."""

    def __init__(self, library, rows, metric="dot", first_pass="f32", threads=0):
        self.library, self.rows, self.threads, self.handle, error = library, rows, threads, c.c_void_p(), Error()
        options = IndexOptions(metric=METRICS[metric], dtype=1, first_pass=PASSES[first_pass], threads=threads)
        if library.pith_search_index_create(c.byref(self.handle), c.c_void_p(rows.ctypes.data), c.c_size_t(len(rows)),
                                            c.c_size_t(rows.shape[1]), c.byref(options), c.byref(error)):
            sys.exit(error.message.decode())

    def search(self, queries, k=HITS, rescore=0):
        hits, error = np.zeros((len(queries), k), [("index", "<i8"), ("score", "<f4"), ("", "<i4")]), Error()
        options = SearchOptions(threads=self.threads, rescore=rescore)
        if self.library.pith_search(c.c_void_p(hits.ctypes.data), self.handle, c.c_void_p(queries.ctypes.data),
                                    c.c_size_t(len(queries)), c.c_size_t(k), c.byref(options), c.byref(error)):
            sys.exit(error.message.decode())
        return hits["index"], hits["score"]

    def close(self):
        self.library.pith_search_index_destroy(self.handle)


def draw(count, dim):
    """Rows of length 1 whose components are mixed from ones of falling size, and queries near some of them."""
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32) * (1 + np.arange(dim, dtype=np.float32)[:, None]) ** -0.4
    rows = np.empty((count, dim), np.float32)
    for at in range(0, count, 50_000):
        part = rng.standard_normal((min(50_000, count - at), dim), np.float32) @ turn
        rows[at : at + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
    queries = rows[rng.integers(count, size=QUERIES)] + rng.standard_normal((QUERIES, dim), np.float32) @ turn * 0.15
    return rows, np.ascontiguousarray(queries / np.linalg.norm(queries, axis=1, keepdims=True))


def numpy_search(rows):
    def run(queries):
        scores = queries @ rows.T
        best = np.argpartition(scores, -HITS, axis=1)[:, -HITS:]
        taken = np.take_along_axis(scores, best, 1)
        order = np.argsort(-taken, axis=1)
        return np.take_along_axis(best, order, 1), np.take_along_axis(taken, order, 1)
    return run


def faiss_search(rows, threads):
    import faiss
    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)

    def run(queries):
        scores, best = index.search(queries, HITS)
        return best, scores
    return run


def recall(found, wanted):
    return float(np.mean([len(set(a) & set(b)) / HITS for a, b in zip(found, wanted)]))


def contenders(library, rows, threads):
    """name → search(queries), of those that are here."""
    made = {}
    for name, metric, first in (("pith dot", "dot", "f32"), ("pith cosine", "cosine", "f32"), ("pith l2", "l2", "f32"),
                                ("pith int8", "dot", "int8"), ("pith binary", "dot", "binary")):
        began = time.perf_counter()
        made[name] = Index(library, rows, metric, first, threads).search
        if first != "f32":
            print(f"{name}: the copy is made in {time.perf_counter() - began:.2f} s", flush=True)
    made["numpy"] = numpy_search(rows)
    if importlib.util.find_spec("faiss"):
        made["faiss"] = faiss_search(rows, threads)
    return made


def check(made, queries):
    """All that are exact agree with NumPy; returns the recall of first passes by the number of candidates."""
    scores = made["numpy"](queries)[1]
    wanted = made["pith dot"](queries)[0]  # NumPy orders equal scores differently
    for name in made.keys() & {"pith dot", "pith cosine", "faiss"}:
        error = np.abs(made[name](queries)[1] - scores).max()
        if error > 1e-5:
            sys.exit(f"{name}: scores differ by {error}")
    recalls = {}
    for name in ("pith int8", "pith binary"):
        recalls[name] = {n: recall(made[name](queries, rescore=n)[0], wanted) for n in (1, 2, 4, 8, 16)}
        print(f"{name}: recall@{HITS} " + ", ".join(f"{r:.3f} with {n} candidates a hit" for n, r in recalls[name].items()), flush=True)
    return recalls


def measure(made, queries, peak, threads, rounds, clock):
    """name → seconds of each round; "bandwidth" → bytes per second."""
    times = {name: [] for name in made}
    rates = []
    for _ in range(rounds):
        rates.append(peak.cpu_peak_bandwidth(threads))
        for name, search in made.items():
            began = clock()
            search(queries)
            times[name].append(clock() - began)
    return times, rates


def report(times, rates, size, count):
    """Medians, and ratios taken within a round."""
    print(f"\n{count} {'query' if count == 1 else 'queries'}, reading {statistics.median(rates) / 1e9:.1f} GB/s")
    out = {}
    for name, seconds in times.items():
        share = statistics.median(size / s / r for s, r in zip(seconds, rates))
        ratio = statistics.median(f / s for f, s in zip(times["pith dot"], seconds))
        out[name] = {"ms": statistics.median(seconds) * 1e3, "share_of_bandwidth": share, "times_pith_dot": ratio}
        print(f"  {name:12} {out[name]['ms']:9.2f} ms   {share:6.2f} of bandwidth by the size of f32   {ratio:6.2f} × pith dot")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows-file")
    parser.add_argument("--queries-file")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(a.threads)
    global np
    import numpy as np
    if a.rows_file:
        rows, queries = np.ascontiguousarray(np.load(a.rows_file)), np.ascontiguousarray(np.load(a.queries_file)[:QUERIES])
    else:
        rows, queries = draw(a.rows, a.dim)
    library, peak = pith_ctypes.load(a.build / "libpith.so"), c.CDLL(str(a.build / "libpeak.so"))
    peak.cpu_peak_bandwidth.restype = c.c_double
    print(f"{len(rows)} × {rows.shape[1]} float32, {a.threads} threads", flush=True)
    made = contenders(library, rows, a.threads)
    clock = (lambda: time.process_time() / a.threads) if a.cpu else time.perf_counter
    results = {"rows": len(rows), "dim": rows.shape[1], "threads": a.threads, "recall": check(made, queries)}
    for count in (1, QUERIES):
        results[f"queries_{count}"] = report(*measure(made, queries[:count], peak, a.threads, a.rounds, clock), rows.nbytes, count)
    if a.json:
        a.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

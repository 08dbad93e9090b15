#!/usr/bin/env python3
"""Pith beside ONNX Runtime on all-MiniLM-L6-v2, text to vectors, in one interleaved run.

Both work in this process: Pith through libpith.so, ONNX Runtime through its Python package with the `tokenizers`
package, the faster of two ONNX files (as exported; as its transformer optimizer writes it), mean pooling in NumPy.
Each workload checks parity of the vectors first, then alternates the runners and prints medians with the spread; the
ratio is taken round by round, so a machine whose speed drifts does not spoil it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import get_model
import numpy as np
import onnxruntime as ort
import tokenizers
from pith_ctypes import Model, Stats


class Peer:
    """ONNX Runtime as its users run it: padded batches, sorted by length or in arrival order."""

    def __init__(self, onnx_file, model, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.session = ort.InferenceSession(str(onnx_file), options, providers=["CPUExecutionProvider"])
        self.tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.enable_padding()

    def embed(self, texts, batch=32, sort=True):
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i])) if sort else range(len(texts))
        order, out = list(order), None
        for start in range(0, len(order), batch):
            part = order[start:start + batch]
            encoded = self.tokenizer.encode_batch([texts[i] for i in part])
            ids = np.array([e.ids for e in encoded], np.int64)
            mask = np.array([e.attention_mask for e in encoded], np.int64)
            hidden = self.session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
            vectors = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            out = np.empty((len(texts), vectors.shape[1]), np.float32) if out is None else out
            out[part] = vectors
        return out


WORDS = ("the of and to in a is that for it as was with be by on not he his but at are this have from or had an they "
         "which one you were her all she there would their we him been has when who will more no if out so said what up "
         "its about into than them can only other new some could time these two may then do first any my now such like "
         "river market engine winter garden signal carbon policy vector window museum planet bridge copper harvest").split()


def sentence(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


def workloads(scale):
    rng = np.random.default_rng(7)
    mixed = [sentence(rng, int(np.clip(rng.lognormal(3.0, 0.7), 3, 60))) for _ in range(int(512 * scale))]
    return {
        "fixed, 110 words": ([sentence(rng, 110) for _ in range(int(64 * scale))], [("sorted", True)]),
        "mixed 3 to 60 words": (mixed, [("arrival order", False), ("sorted", True)]),
        "short, 5 words": ([f"user_id of customers variant_{i}" for i in range(int(512 * scale))], [("sorted", True)]),
        "one query of 12 tokens": (["how do i reset the password of my account"], [("sorted", True)]),
    }


def onnx_files(model):
    folder = get_model.cache_dir() / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for form, flags in (("exported", []), ("fused", ["--fused"])):
        files[form] = folder / f"all-MiniLM-L6-v2-{form}.onnx"
        if not files[form].exists():
            subprocess.run([sys.executable, str(ROOT / "tools/make_onnx.py"), str(model), str(files[form]), *flags], check=True)
    return files


def measure(runners, rounds, repeat):
    seconds = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            begin = time.perf_counter()
            for _ in range(repeat):
                run()
            seconds[name].append((time.perf_counter() - begin) / repeat)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "build/libpith.so")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the workloads")
    parser.add_argument("--json", type=Path, help="write every figure here")
    args = parser.parse_args()
    get_model.main()
    model = get_model.cache_dir() / "models" / get_model.NAME
    pith, files, rows = Model(args.library, model), onnx_files(model), []
    for threads in args.threads:
        if threads > os.cpu_count():
            continue
        peers = {form: Peer(file, model, threads) for form, file in files.items()}
        for name, (texts, orders) in workloads(args.scale).items():
            stats = Stats()
            mine = pith.embed(texts, threads, stats)
            runners = {"pith": lambda: pith.embed(texts, threads)}
            for label, sort in orders:
                for form, peer in peers.items():
                    difference = float(np.abs(peer.embed(texts, sort=sort) - mine).max())
                    if difference > 1e-5:
                        sys.exit(f"error: {name}: vectors differ from ONNX Runtime's by {difference:.1e}")
                    runners[f"onnxruntime {form}, {label}"] = lambda peer=peer, sort=sort: peer.embed(texts, sort=sort)
            seconds = measure(runners, args.rounds, 1 if len(texts) > 1 else 50)
            print(f"\n{name}, {threads} thread{'s' * (threads > 1)}: {stats.texts} texts, {stats.tokens} tokens")
            for runner, values in seconds.items():
                ratios = [other / own for other, own in zip(values, seconds["pith"])]
                median = statistics.median(values)
                print(f"  {runner:38} {stats.tokens / median:9.0f} tokens/s  {1e3 * median / len(texts):8.3f} ms/text  "
                      f"spread {min(values) / median:.2f}..{max(values) / median:.2f}"
                      + ("" if runner == "pith" else f"  pith is {statistics.median(ratios):.2f}x"))
                rows.append(dict(workload=name, threads=threads, runner=runner, seconds=values, texts=len(texts),
                                 tokens=int(stats.tokens)))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

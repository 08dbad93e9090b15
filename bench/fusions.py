#!/usr/bin/env python3
"""What `pith optimize --fuse com.microsoft` fuses beside ONNX Runtime's own optimiser (onnxruntime.transformers.optimizer), and
how long the files take in ONNX Runtime: one line of a table per model, medians of interleaved runs.

usage: fusions.py PITH MODEL.onnx... [--runs N] [--heads N --hidden N]

The models are exports of today's torch (tests/data/models has small ones, of dynamo and of TorchScript). Results of both files
are compared with the model as it was before a time is printed."""
import argparse
import collections
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

FUSED = ("EmbedLayerNormalization", "Attention", "MultiHeadAttention", "GroupQueryAttention", "RotaryEmbedding", "SkipLayerNormalization",
         "SkipSimplifiedLayerNormalization", "LayerNormalization", "SimplifiedLayerNormalization", "BiasGelu", "FastGelu", "Gelu",
         "QuickGelu")
KINDS = {"bert": "bert", "roberta": "bert", "distilbert": "bert", "modernbert": "bert", "mpnet": "bert", "qwen3": "gpt2"}


def counted(path):
    graph = onnx.load(path, load_external_data=False).graph
    ops = collections.Counter(n.op_type for n in graph.node)
    return {op: ops[op] for op in FUSED if ops[op]}, len(graph.node)


def theirs(source, out, kind, heads, hidden):
    """ONNX Runtime's optimiser, with all fusions of the model type that it has for this architecture."""
    from onnxruntime.transformers import optimizer
    options = optimizer.FusionOptions(kind)
    model = optimizer.optimize_model(str(source), model_type=kind, num_heads=heads, hidden_size=hidden, optimization_options=options,
                                     opt_level=0)
    model.save_model_to_file(str(out))


def session(path, optimised):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds_of(model, rows, length):
    """Random ids below the vocabulary, texts of several lengths padded on the right."""
    draw = np.random.default_rng(1)
    tables = [t.dims[0] for t in model.graph.initializer if len(t.dims) == 2 and t.dims[0] > 100]
    words = min(tables or [300])
    lengths = draw.integers(length // 2, length + 1, rows)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int64)
    feeds = {"input_ids": draw.integers(5, words, (rows, length)) * mask, "attention_mask": mask,
             "token_type_ids": np.zeros((rows, length), np.int64),
             "position_ids": np.broadcast_to(np.arange(length), (rows, length)).copy()}
    return {i.name: feeds[i.name] for i in model.graph.input if i.name in feeds}, mask


def times(sessions, feeds, runs):
    taken = {name: [] for name in sessions}
    for _ in range(runs):
        for name, s in sessions.items():
            begin = time.perf_counter()
            s.run(None, feeds)
            taken[name].append(time.perf_counter() - begin)
    return {name: statistics.median(t) * 1e3 for name, t in taken.items()}


def compare(pith, path, arguments, folder):
    model = onnx.load(path)
    kind = next((k for name, k in sorted(KINDS.items(), key=lambda x: -len(x[0])) if name in str(path)), "bert")
    ours, other = folder / "pith.onnx", folder / "ort.onnx"
    done = subprocess.run([pith, "optimize", "--fuse", "com.microsoft", "--force", "--json", path, "-o", ours], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    row = {"model": path.parent.name, "pith": counted(ours)}
    try:
        theirs(path, other, kind, arguments.heads, arguments.hidden)
        row["ort"] = counted(other)
    except Exception as failure:  # some exports stop it
        row["ort"] = ({"error": str(failure)[:80]}, 0)
    feeds, mask = feeds_of(model, 8, arguments.length)
    plain = session(path, False).run(None, feeds)[0]
    sessions = {"as it is": session(path, True), "pith": session(ours, True)}
    if row["ort"][1]:
        sessions["ort"] = session(other, True)
    seen = mask == 1
    for name, s in list(sessions.items()):
        try:
            got = s.run(None, feeds)[0]
        except Exception as failure:  # a file of the optimiser that runs no batch of several texts
            if name != "ort":
                raise
            row["ort fails"] = str(failure).split(":")[-1].strip()[:90]
            del sessions[name]
            continue
        far = np.abs(got - plain)
        row[f"{name} differs"] = float((far[seen] if far.ndim == 3 else far).max())
    row["ms"] = times(sessions, feeds, arguments.runs)
    return row


def fused_text(counts):
    return ", ".join(f"{op} {n}" for op, n in counts.items())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pith")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--heads", type=int, default=0, help="0: the optimiser finds it")
    parser.add_argument("--hidden", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.models:
            rows.append(compare(arguments.pith, path, arguments, Path(folder)))
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    print("| model | nodes: Pith, ONNX Runtime's optimiser | fused operators: Pith, optimiser | ms: as it is, Pith, optimiser | largest difference: Pith, optimiser |")
    print("|---|---|---|---|---|")
    for r in rows:
        ms = r["ms"]
        print(f"| {r['model']} | {r['pith'][1]}, {r['ort'][1]} | {sum(r['pith'][0].values())}, "
              f"{sum(v for v in r['ort'][0].values() if isinstance(v, int))} | {ms['as it is']:.2f}, {ms['pith']:.2f}, "
              f"{ms.get('ort', float('nan')):.2f} | {r['pith differs']:.1e}, {r.get('ort differs', float('nan')):.1e} |")
    for r in rows:
        print(f"{r['model']}\n  Pith:      {fused_text(r['pith'][0])}\n  optimiser: {fused_text(r['ort'][0])}{'; fails: ' + r['ort fails'] if 'ort fails' in r else ''}")


if __name__ == "__main__":
    main()

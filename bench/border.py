#!/usr/bin/env python3
"""What the border promises of costs: an inner output beside the whole network, and 1,000 callers of a queue beside one batch.

usage: border.py [--build DIR] [--threads N] [--rounds N] [--model NAME]
An encoder of 12 layers with random weights has its result after layer 6 as an output: a run for that output alone may take 0.55 of
a run for all. 1,000 callers of one short text each through a queue: one call of pith_embed may take no less than 0.85 of
their time. Both are measured in turns (bench/bench_border.c, which is built first); several rounds are several processes.
Exit status 1: a figure is not met.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
LAYERS, INNER, ROWS, WIDTH, HEADS = 12, 6, 128, 384, 12
SUBSET_MOST, QUEUE_LEAST = 0.55, 0.85


def encoder(path):
    """x [1, ROWS, WIDTH] to h6 and h12: attention and feed-forward layers as exporters spell them."""
    nodes, weights, random = [], [], np.random.default_rng(0)

    def constant(values):
        weights.append(numpy_helper.from_array(values, f"w{len(weights)}"))
        return weights[-1].name

    def add(kind, *inputs, name=None, **attributes):
        name = name or f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def dense(x, rows, columns):
        w = constant((random.standard_normal((rows, columns)) * rows**-0.5).astype(np.float32))
        return add("Add", add("MatMul", x, w), constant(np.zeros(columns, np.float32)))

    def heads(x, order):
        return add("Transpose", add("Reshape", x, split), perm=order)

    def norm(x, name=None):
        return add("LayerNormalization", x, constant(np.ones(WIDTH, np.float32)), constant(np.zeros(WIDTH, np.float32)), name=name, axis=-1)

    split, joined = constant(np.array([1, ROWS, HEADS, WIDTH // HEADS])), constant(np.array([1, ROWS, WIDTH]))
    scale, half, one, root = (constant(np.array(v, np.float32)) for v in ((WIDTH // HEADS) ** -0.5, 0.5, 1, 2**0.5))
    x = "x"
    for layer in range(1, LAYERS + 1):
        q, k, v = (heads(dense(x, WIDTH, WIDTH), order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        seen = add("MatMul", add("Softmax", add("Mul", add("MatMul", q, k), scale), axis=-1), v)
        x = norm(add("Add", x, dense(add("Reshape", add("Transpose", seen, perm=[0, 2, 1, 3]), joined), WIDTH, WIDTH)))
        wide = dense(x, WIDTH, 4 * WIDTH)
        wide = add("Mul", add("Mul", wide, add("Add", add("Erf", add("Div", wide, root)), one)), half)
        x = norm(add("Add", x, dense(wide, 4 * WIDTH, WIDTH)), f"h{layer}")
    port = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, ROWS, WIDTH])
    graph = helper.make_graph(nodes, "encoder", [port("x")], [port(f"h{INNER}"), port(f"h{LAYERS}")], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def measure(args, *command):
    runs = [json.loads(subprocess.run([args.build / "bench_border", *command, str(args.threads)], check=True, capture_output=True,
                                      text=True).stdout) for _ in range(args.rounds)]
    return statistics.median(run["ratio"] for run in runs), runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="of the queue")
    args = parser.parse_args()
    subprocess.run(["cmake", "--build", args.build, "--target", "bench_border"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "encoder.onnx"
        encoder(path)
        part, runs = measure(args, "subset", path, f"h{INNER}")
        print(f"layer {INNER} of {LAYERS}: {part:.3f} of the whole (at most {SUBSET_MOST}); "
              f"{runs[0]['seconds'] * 1e3:.2f} ms beside {runs[0]['beside'] * 1e3:.2f} ms")
    ratio, runs = measure(args, "queue", args.model)
    print(f"1,000 callers: {1 / ratio:.3f} of the speed of one batch (at least {QUEUE_LEAST}); "
          f"{runs[0]['seconds'] * 1e3:.1f} ms beside {runs[0]['beside'] * 1e3:.1f} ms")
    return int(part > SUBSET_MOST or 1 / ratio < QUEUE_LEAST)


if __name__ == "__main__":
    sys.exit(main())

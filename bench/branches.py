#!/usr/bin/env python3
"""Networks whose branches may run side by side: `pith bench` with --inter-op-threads and without, in turns, ONNX Runtime beside both.

usage: branches.py [--build DIR] [--rounds N] [--threads N] [--write]
The networks have random weights: 26 small towers as recommenders have them, two LSTMs, and blocks of four branches of
convolutions. --write puts the table into docs/performance/options.md.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/performance/options.md"


class Network:
    """Collects the nodes of a model with random weights."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.random = [], [], [], np.random.default_rng(0)

    def weight(self, *shape, scale=None):
        values = self.random.standard_normal(shape).astype(np.float32) * np.float32(scale or np.prod(shape[1:]) ** -0.5)
        self.weights.append(numpy_helper.from_array(values, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def add(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[-1]

    def save(self, path, output, rank):
        out = helper.make_tensor_value_info(output, TensorProto.FLOAT, [f"d{i}" for i in range(rank)])
        graph = helper.make_graph(self.nodes, "network", self.inputs, [out], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def towers(path):
    n = Network()
    dense = lambda x, rows, columns: n.add("Relu", n.add("MatMul", x, n.weight(rows, columns, scale=rows**-0.5)))
    ids = [n.input(f"id{i}", ["batch"], TensorProto.INT64) for i in range(26)]
    ends = [dense(dense(n.add("Gather", n.weight(1000, 32), name), 32, 64), 64, 32) for name in ids]
    n.save(path, dense(dense(n.add("Concat", *ends, axis=1), 26 * 32, 128), 128, 1), 2)
    return [f"{name}=64" for name in ids]


def recurrent(path):
    n = Network()
    ends = [n.add("LSTM", n.input(f"x{i}", [100, 1, 128]), n.weight(1, 512, 128, scale=0.1), n.weight(1, 512, 128, scale=0.1), outputs=2,
                  hidden_size=128) for i in range(2)]
    n.save(path, n.add("Concat", *ends, axis=2), 3)
    return []


def blocks(path):
    n = Network()
    conv = lambda x, inputs, outputs, k: n.add("Relu", n.add("Conv", x, n.weight(outputs, inputs, k, k), pads=[k // 2] * 4))
    x, channels = n.input("x", [1, 64, 28, 28]), 64
    for _ in range(9):
        parts = (conv(x, channels, 32, 1), conv(conv(x, channels, 24, 1), 24, 32, 3), conv(conv(x, channels, 8, 1), 8, 16, 5),
                 conv(n.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4), channels, 16, 1))
        x, channels = n.add("Concat", *parts, axis=1), 96
    n.save(path, x, 4)
    return []


NETWORKS = {"26 towers of two layers, batch 64": towers, "two LSTMs of 128, 100 steps": recurrent, "9 blocks of 4 branches of convolutions": blocks}


def measure(args, path, shapes, branches):
    """The milliseconds of the fastest run of Pith and of ONNX Runtime."""
    command = [args.build / "pith", "bench", "-m", path, "--runtime", "builtin,ort", "--ort-python", sys.prefix, "-t", str(args.threads),
               "--rounds", "60", "--inter-op-threads", str(branches), "--json"]
    for shape in shapes:
        command += ["--input-shape", shape]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = {row["runtime"]: row["seconds_min"] * 1e3 for row in report["results"][0]["runtimes"]}
    return found["builtin"], found["ort"]


def table(args):
    lines = [f"| network, {args.threads} threads | one step at a time, ms | side by side, ms | ratio | ONNX Runtime, ms |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, make in NETWORKS.items():
            path = Path(folder) / f"{make.__name__}.onnx"
            shapes = make(path)
            rounds = [[measure(args, path, shapes, branches) for branches in (1, args.threads)] for _ in range(args.rounds)]
            alone, beside = (statistics.median(r[i][0] for r in rounds) for i in range(2))
            ratios = sorted(r[0][0] / r[1][0] for r in rounds)
            ort = statistics.median(way[1] for r in rounds for way in r)
            lines.append(f"| {name} | {alone:.3f} | {beside:.3f} | {statistics.median(ratios):.2f} ({ratios[0]:.2f} … {ratios[-1]:.2f}) | {ort:.3f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=min(os.cpu_count(), 4))
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance/options.md")
    args = parser.parse_args()
    args.build = args.build.resolve()
    text = table(args)
    print(text)
    if args.write:
        (head, rest), mark = PAGE.read_text().split("<!-- branches -->\n"), "<!-- /branches -->"
        PAGE.write_text(f"{head}<!-- branches -->\n{text}\n{mark}{rest.split(mark)[1]}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Draws graphs that look like what the passes fuse, and near misses of it, and lets `pith verify --fusions` compare every
optimisation level with the graph as written.

usage: fuzz_fusions.py PITH [--seconds N] [--seed N] [--count N] [--keep DIR]
Models that differ are kept in DIR. Ends with 'N graphs, N findings'; exit status 1 if there is a finding."""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Graph:
    """Nodes and constants under construction. A method makes one node and returns the name of its output."""

    def __init__(self, rng):
        self.rng, self.nodes, self.constants, self.inputs, self.extra, self.count = rng, [], [], [], [], 0
        self.np = np.random.default_rng(rng.getrandbits(32))
        self.opset = rng.choice([13, 14, 17, 18, 20, 21, 23])

    def name(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    def const(self, value, dtype=np.float32):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64), np.int64)

    def weight(self, *shape, scale=0.3):
        return self.const(self.np.normal(0, scale, shape))

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [self.name(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=self.name("n"), domain=domain, **attributes))
        if outputs == 1 and self.rng.random() < 0.02:
            self.extra.append(names[0])
        return names[0] if outputs == 1 else names

    def chance(self, p):
        return self.rng.random() < p

    def either(self, kind, a, b):
        """Both operand orders of a commutative operator."""
        return self.op(kind, a, b) if self.chance(0.5) else self.op(kind, b, a)

    def softmax(self, x):
        return self.op("Softmax", x, axis=self.rng.choice([-1, -1, -1, -1, 3, 2]))

    def model(self, outputs):
        names = list(dict.fromkeys(outputs + self.extra))
        graph = helper.make_graph(self.nodes, "drawn", self.inputs,
                                  [helper.make_tensor_value_info(n, F32, None) for n in names], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


# ---- parts of transformers ----

def linear(g, x, n_in, n_out):
    w = g.weight(n_in, n_out)
    if g.chance(0.15):
        y = g.op("MatMul", x, g.op("Transpose", g.weight(n_out, n_in), perm=[1, 0]))
    else:
        y = g.op("MatMul", x, w)
    if g.chance(0.7):
        y = g.either("Add", y, g.weight(n_out) if g.chance(0.9) else g.weight(1))
    return y


def layer_norm(g, x, width):
    epsilon = g.rng.choice([1e-5, 1e-6, 1e-12, 1e-3, 0.1])
    kind = g.rng.choice(["layer", "layer", "rms", "node", "wrong axis", "no sqrt"])
    if kind == "node" and g.opset >= 17:
        return g.op("LayerNormalization", x, g.weight(width), g.weight(width), axis=-1, epsilon=epsilon)
    axis = 1 if kind == "wrong axis" else -1
    mean = lambda v: (g.op("ReduceMean", v, g.ints(axis), keepdims=1) if g.opset >= 18
                      else g.op("ReduceMean", v, axes=[axis], keepdims=1))
    centred = x if kind == "rms" else g.op("Sub", x, mean(x))
    square = g.op("Pow", centred, g.const(2.0)) if g.chance(0.5) else g.op("Mul", centred, centred)
    variance = g.either("Add", mean(square), g.const(epsilon))
    root = variance if kind == "no sqrt" else g.op("Sqrt", variance)
    y = g.op("Div", centred, root) if g.chance(0.6) else g.either("Mul", centred, g.op("Reciprocal", root))
    if g.chance(0.8):
        y = g.either("Mul", y, g.weight(width))
    return g.either("Add", y, g.weight(width)) if g.chance(0.7) else y


def activation(g, x):
    kind = g.rng.choice(["erf", "tanh", "quick", "silu", "relu", "near", "exact20"])
    if kind == "exact20" and g.opset >= 20:
        return g.op("Gelu", x, approximate=g.rng.choice(["none", "tanh"]))
    if kind in ("erf", "near"):
        root = g.const(1.4142135 if kind == "erf" else g.rng.choice([1.5, 1.41]))
        e = g.either("Add", g.op("Erf", g.op("Div", x, root)), g.const(1.0 if g.chance(0.9) else 1.1))
        y = g.either("Mul", x, e)
        return g.either("Mul", y, g.const(0.5 if g.chance(0.9) else 0.6))
    if kind == "tanh":
        cube = g.op("Pow", x, g.const(3.0 if g.chance(0.9) else 2.0))
        inner = g.either("Add", x, g.either("Mul", cube, g.const(0.044715 if g.chance(0.9) else 0.05)))
        t = g.op("Tanh", g.either("Mul", inner, g.const(0.7978845608)))
        return g.either("Mul", g.either("Mul", x, g.const(0.5)), g.either("Add", t, g.const(1.0)))
    if kind == "quick":
        return g.either("Mul", x, g.op("Sigmoid", g.either("Mul", x, g.const(1.702))))
    if kind == "silu":
        return g.either("Mul", x, g.op("Sigmoid", x))
    return g.op("Relu", x)


def feed_forward(g, x, width):
    wide = g.rng.choice([width, 2 * width, 24])
    if g.chance(0.5):
        return linear(g, activation(g, linear(g, x, width, wide)), wide, width)
    if g.chance(0.5):  # both halves out of one product
        both = linear(g, x, width, 2 * wide)
        a, b = g.op("Split", both, g.ints(wide, wide), outputs=2, axis=-1)
        if g.chance(0.5):
            a, b = b, a
    else:
        a, b = linear(g, x, width, wide), linear(g, x, width, wide)
    return linear(g, g.either("Mul", activation(g, a), b), wide, width)


def split_heads(g, x, heads, size):
    shape = g.op("Reshape", x, g.ints(0, 0, heads, size))
    return g.op("Transpose", shape, perm=[0, 2, 1, 3])


def rotate(g, x, size, positions):
    """Rotary positions of [batch, heads, sequence, size]; the part turned may be smaller than a head."""
    turned = g.rng.choice([size, size, size // 2]) if size % 4 == 0 else size
    rest = None
    if turned != size:
        rest = g.op("Slice", x, g.ints(turned), g.ints(size), g.ints(3))
        x = g.op("Slice", x, g.ints(0), g.ints(turned), g.ints(3))
    half = turned // 2
    angles = g.op("Mul", g.op("Unsqueeze", g.op("Cast", positions, to=F32), g.ints(-1)),
                  g.const(1.0 / 100 ** (np.arange(half) / half)))
    interleaved = g.chance(0.3)
    if interleaved:
        table = g.op("Reshape", g.op("Concat", g.op("Unsqueeze", angles, g.ints(-1)), g.op("Unsqueeze", angles, g.ints(-1)),
                                     axis=-1), g.ints(-1, turned))
    else:
        table = g.op("Concat", angles, angles, axis=-1)
    cos, sin = g.op("Cos", table), g.op("Sin", table)
    if interleaved:
        even = g.op("Slice", x, g.ints(0), g.ints(turned), g.ints(3), g.ints(2))
        odd = g.op("Slice", x, g.ints(1), g.ints(turned), g.ints(3), g.ints(2))
        pair = g.op("Concat", g.op("Unsqueeze", g.op("Neg", odd), g.ints(-1)), g.op("Unsqueeze", even, g.ints(-1)), axis=-1)
        other = g.op("Reshape", pair, g.op("Shape", x))
    else:
        first = g.op("Slice", x, g.ints(0), g.ints(half), g.ints(3))
        second = g.op("Slice", x, g.ints(half), g.ints(turned), g.ints(3))
        if g.chance(0.1):
            other = g.op("Concat", second, g.op("Neg", first), axis=-1)  # turned the other way
        else:
            other = g.op("Concat", g.op("Neg", second), first, axis=-1)
    y = g.either("Add", g.either("Mul", x, cos), g.either("Mul", other, sin))
    return g.op("Concat", y, rest, axis=-1) if rest else y


def project(g, x, width, heads, kv_heads, size, v_size):
    """Query, key and value as [batch, heads, sequence, size]: apart, merged, or merged by head."""
    way = g.rng.choice(["apart", "apart", "merged", "by head", "shared"])
    if way == "by head" and heads == kv_heads:
        rows = 2 * size + v_size
        whole = g.op("Transpose", g.op("Reshape", linear(g, x, width, heads * rows), g.ints(0, 0, heads, rows)),
                     perm=[0, 2, 1, 3])
        return g.op("Split", whole, g.ints(size, size, v_size), outputs=3, axis=-1)
    if way == "merged":
        sizes = [heads * size, kv_heads * size, kv_heads * v_size]
        q, k, v = g.op("Split", linear(g, x, width, sum(sizes)), g.ints(*sizes), outputs=3, axis=-1)
    elif way == "shared" and heads == kv_heads and size == v_size:
        q = k = v = linear(g, x, width, heads * size)
    else:
        q, k, v = (linear(g, x, width, n) for n in (heads * size, kv_heads * size, kv_heads * v_size))
    return split_heads(g, q, heads, size), split_heads(g, k, kv_heads, size), split_heads(g, v, kv_heads, v_size)


def repeat(g, x, heads, kv_heads, size):
    if heads == kv_heads:
        return x
    shape = g.op("Shape", x)
    b, s = (g.op("Gather", shape, g.ints(i), axis=0) for i in (0, 2))
    wide = g.op("Unsqueeze", x, g.ints(2))
    wide = g.op("Expand", wide, g.op("Concat", b, g.ints(kv_heads, heads // kv_heads), s, g.ints(size), axis=0))
    return g.op("Reshape", wide, g.op("Concat", b, g.ints(heads), s, g.ints(size), axis=0))


def masks(g, scores, mask, positions, heads):
    """Scores with padding, causal, window, bias masks in several spellings."""
    low = g.const(g.rng.choice([-np.inf, -3.4028235e38, -1e9, -10000.0]))
    if g.chance(0.7):
        m = g.op("Unsqueeze", mask, g.ints(1, 2))
        way = g.rng.choice(["added", "where", "shifted", "multiplied"])
        if way == "added":
            m = g.op("Mul", g.op("Sub", g.const(1.0), g.op("Cast", m, to=F32)),
                     g.const(g.rng.choice([-3.4028235e38, -10000.0])))
            scores = g.either("Add", scores, m)
        elif way == "where":
            scores = g.op("Where", g.op("Cast", m, to=BOOL), scores, low)
        elif way == "shifted":
            zero = g.op("Where", g.op("Equal", m, g.ints(0)), low, g.const(0.0))
            scores = g.either("Add", scores, zero)
        else:
            scores = g.either("Mul", scores, g.op("Cast", m, to=F32))
    if g.chance(0.4):
        rows, columns = g.op("Unsqueeze", positions, g.ints(1)), g.op("Unsqueeze", positions, g.ints(0))
        seen = g.op("LessOrEqual", columns, rows)
        if g.chance(0.4):
            distance = g.op("Sub", rows, columns)
            seen = g.op("And", seen, g.op("Less", distance, g.ints(g.rng.choice([2, 3, 6]))))
        scores = g.op("Where", seen, scores, low)
    if g.chance(0.25):
        distance = g.op("Cast", g.op("Sub", g.op("Unsqueeze", positions, g.ints(0)), g.op("Unsqueeze", positions, g.ints(1))),
                        to=F32)
        slopes = g.const(np.linspace(0.1, 0.4, heads).reshape(heads, 1, 1))
        scores = g.either("Add", scores, g.op("Mul", distance, slopes))
    return scores


def attention(g, x, width, mask, positions):
    heads = g.rng.choice([1, 2, 3, 4])
    kv_heads = g.rng.choice([h for h in (1, heads) if heads % h == 0])
    size = g.rng.choice([2, 4, 8, 5])
    v_size = size if g.chance(0.8) else g.rng.choice([3, 6])
    q, k, v = project(g, x, width, heads, kv_heads, size, v_size)
    if size % 2 == 0 and g.chance(0.5):
        q, k = rotate(g, q, size, positions), rotate(g, k, size, positions)
    k, v = repeat(g, k, heads, kv_heads, size), repeat(g, v, heads, kv_heads, v_size)
    scale = float(size) ** -0.5
    where = g.rng.choice(["scores", "q", "both", "none", "k", "per head"])
    if where == "q":
        q = g.either("Mul", q, g.const(scale))
    elif where == "k":
        k = g.op("Div", k, g.const(1 / scale))
    elif where == "both":
        q, k = g.op("Mul", q, g.const(scale ** 0.5)), g.op("Mul", k, g.const(scale ** 0.5))
    elif where == "per head":
        q = g.op("Mul", q, g.const(np.linspace(0.2, 0.5, heads).reshape(heads, 1, 1)))
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    if where == "scores":
        scores = g.either("Mul", scores, g.const(scale)) if g.chance(0.5) else g.op("Div", scores, g.const(1 / scale))
    weights = g.softmax(masks(g, scores, mask, positions, heads))
    if g.chance(0.1):
        weights = g.op("Where", g.op("IsNaN", weights), g.const(0.0), weights)
    y = g.op("MatMul", weights, v)
    joined = g.op("Transpose", y, perm=[0, 2, 1, 3] if g.chance(0.95) else [0, 1, 2, 3])
    y = g.op("Reshape", joined, g.ints(0, 0, heads * v_size)) if g.nodes[-1].attribute[0].ints[1] == 2 else \
        g.op("Reshape", g.op("Transpose", joined, perm=[0, 2, 1, 3]), g.ints(0, 0, heads * v_size))
    return linear(g, y, heads * v_size, width)


def transformer(rng):
    g = Graph(rng)
    width, vocabulary = rng.choice([8, 12, 16]), 40
    g.inputs = [helper.make_tensor_value_info(n, I64, ["batch", "sequence"]) for n in ("input_ids", "attention_mask")]
    shape = g.op("Shape", "input_ids")
    length = g.op("Squeeze", g.op("Gather", shape, g.ints(1), axis=0), g.ints(0))
    positions = g.op("Range", g.const(0, np.int64), length, g.const(1, np.int64))
    x = g.op("Gather", g.weight(vocabulary, width, scale=1.0), "input_ids", axis=0)
    if g.chance(0.5):
        x = g.either("Add", x, g.op("Gather", g.weight(40, width), positions, axis=0))
    if g.chance(0.5):
        x = layer_norm(g, x, width)
    for _ in range(rng.choice([1, 1, 2])):
        way = rng.choice(["post", "pre", "parallel"])
        inner = layer_norm(g, x, width) if way != "post" else x
        a = attention(g, inner, width, "attention_mask", positions)
        if way == "parallel":
            x = g.either("Add", g.either("Add", x, a), feed_forward(g, inner, width))
            continue
        x = g.either("Add", x, a)
        x = layer_norm(g, x, width) if way == "post" else x
        f = feed_forward(g, layer_norm(g, x, width) if way == "pre" else x, width)
        x = g.either("Add", x, f)
        x = layer_norm(g, x, width) if way == "post" else x
    if g.chance(0.2):
        m = g.op("Unsqueeze", g.op("Cast", "attention_mask", to=F32), g.ints(-1))
        total = g.op("ReduceSum", g.op("Mul", x, m), g.ints(1), keepdims=0)
        x = g.op("Div", total, g.op("Clip", g.op("ReduceSum", m, g.ints(1), keepdims=0), g.const(1e-9)))
    return g.model([x])


# ---- convolutional networks ----

def convolution(g, x, channels):
    out = g.rng.choice([channels, 4, 6])
    group = g.rng.choice([1, 1, channels]) if out % channels == 0 else 1
    kernel = g.rng.choice([1, 3])
    if g.chance(0.2):
        x = g.op("Pad", x, g.ints(0, 0, 1, 1, 0, 0, 1, 1), g.const(0.0 if g.chance(0.7) else 1.0))
    inputs = [x, g.weight(out, channels // group, kernel, kernel)] + ([g.weight(out)] if g.chance(0.5) else [])
    y = g.op("Conv", *inputs, kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4, group=group,
             strides=[g.rng.choice([1, 1, 2])] * 2)
    if g.chance(0.6):
        y = g.op("BatchNormalization", y, g.weight(out), g.weight(out), g.weight(out),
                 g.const(g.np.uniform(0.5, 2, out)), epsilon=g.rng.choice([1e-5, 1e-3]))
    elif g.chance(0.3):
        y = g.either("Mul", y, g.weight(1, out, 1, 1))
    return y, out


def convolutional(rng):
    g = Graph(rng)
    g.inputs = [helper.make_tensor_value_info("pixels", F32, ["batch", 3, 9, 11])]
    x, channels = "pixels", 3
    for _ in range(rng.choice([2, 3, 4])):
        y, out = convolution(g, x, channels)
        kind = rng.choice(["Relu", "HardSwish", "Sigmoid", "LeakyRelu", "clip", "silu", "none"])
        if kind == "clip":
            y = g.op("Clip", y, g.const(0.0), g.const(6.0))
        elif kind == "silu":
            y = g.either("Mul", y, g.op("Sigmoid", y))
        elif kind != "none" and (kind != "HardSwish" or g.opset >= 14):
            y = g.op(kind, y)
        if g.chance(0.4):
            z = g.op("Conv", y, g.weight(out, out, 1, 1))
            y = g.either("Add", y, z)
            y = g.op("Relu", y) if g.chance(0.5) else y
        if g.chance(0.2):
            y = g.op("Transpose", g.op("Transpose", y, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2])
        x, channels = y, out
    if g.chance(0.5):
        x = g.op("Flatten", g.op("GlobalAveragePool", x))
        x = linear(g, x, channels, 5)
    return g.model([x])


def draw(seed):
    rng = random.Random(seed)
    return transformer(rng) if rng.random() < 0.8 else convolutional(rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("pith")
    parser.add_argument("--seconds", type=float, help="go on for so long")
    parser.add_argument("--count", type=int, default=200, help="graphs, unless --seconds is given (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the others count on from it")
    parser.add_argument("--keep", type=Path, help="folder for models that differ")
    options = parser.parse_args()
    begin, seed, findings, graphs, unrun = time.monotonic(), options.seed, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - begin < options.seconds if options.seconds else graphs < options.count:
            paths = {}
            for _ in range(20):
                path = Path(folder) / f"{seed}.onnx"
                path.write_bytes(draw(seed).SerializeToString())
                paths[str(path)] = seed
                seed += 1
            graphs += len(paths)
            done = subprocess.run([options.pith, "verify", "--fusions", "--json", "--runs", "6", *paths],
                                  capture_output=True, text=True)
            if done.returncode < 0:
                print(f"seeds {seed - 20} to {seed - 1}: ended by signal {-done.returncode}")
                findings += 1
                continue
            result = json.loads(done.stdout)
            for finding in result["findings"]:
                print(f"seed {paths[finding['model']]}: level {finding['level']}, pass {finding['pass']}, "
                      f"{finding['node']}: {finding['difference']}; {finding['inputs']}")
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / Path(finding["model"]).name).write_bytes(Path(finding["model"]).read_bytes())
            findings += len(result["findings"])
            for line in done.stderr.splitlines():
                unrun += 1
                print(line)
            for path in paths:
                Path(path).unlink()
    print(f"{graphs} graphs, {findings} findings" + (f", {unrun} could not be run" if unrun else ""))
    sys.exit(1 if findings or unrun else 0)


if __name__ == "__main__":
    main()

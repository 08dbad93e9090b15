#!/usr/bin/env python3
"""Random integer networks at the edges of 32 and 64 bits, run by Pith at levels 0, 1 and 3 and by ONNX Runtime (PyPI).

usage: compare_contents.py [--library PATH] [--count N] [--seed S]
The operators are those whose contents Pith follows while it opens a model: constants, and sizes of the input, go through
chains of them. NumPy computes along, so that what the standard leaves open (division by zero, a quotient or a range that
leaves the type) is not asked for. Seed and case number are printed with every difference; exit status 1 if there is one.
"""
import argparse
import pathlib
import random
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from pith_ctypes import Model, PithError

SHAPE = [3, 5]  # of the input x
EDGES = [s * 2**b + d for b in (31, 32, 53, 61, 62) for s in (1, -1) for d in (-1, 0, 1)]
EDGES += [2**63 - 1, 2**63 - 2, -2**63, -2**63 + 1, -2**63 + 2, -2**63 + 40, -2**63 + 2**20, 0, 0, 1, 1, -1, 2, 3, -3, 7, 100]
CASTS = [np.int64, np.int64, np.int32, np.int32, np.uint8, np.int8, np.uint32, np.uint64, np.bool_]
TYPES = {np.dtype(t): helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in CASTS}


class Network:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.nodes, self.constants, self.values, self.last = [], [], {}, set()
        self.add("Shape", [], np.array(SHAPE), names=["x"])
        self.add("Size", [], np.array(np.prod(SHAPE)), names=["x"])

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        self.values[name] = array
        return name

    def add(self, op, inputs, value, names=None, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, (names or []) + list(inputs), [name], **attributes))
        self.values[name] = np.asarray(value)
        return name

    def edge(self, dtype):
        while True:
            x = self.r.choice(EDGES)
            if np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
                return x

    def fresh(self, dtype=np.int64, size=None):
        size = self.r.randrange(4) if size is None else size
        items = [self.edge(dtype) for _ in range(max(size, 1))]
        return self.constant(np.array(items if size else items[0], dtype))

    def pick(self, *dtypes, rank=None, low=0):
        """A value made so far, or a new constant."""
        fit = [n for n, v in self.values.items() if n not in self.last and v.dtype in [np.dtype(d) for d in dtypes] and
               (rank is None or v.ndim == rank) and v.size >= low]
        made = [n for n in fit if n[0] == "v"]
        if made and self.r.random() < 0.7:
            return self.r.choice(made[-6:])
        return self.fresh(dtypes[0], None if rank is None else rank and self.r.randint(max(low, 1), 4))

    def pair(self, *dtypes):
        a = self.pick(*dtypes)
        x = self.values[a]
        fit = [n for n, v in self.values.items() if n not in self.last and v.dtype == x.dtype and
               (v.size == 1 or x.size == 1 or v.shape == x.shape)]
        b = self.r.choice(fit[-6:]) if self.r.random() < 0.6 else self.fresh(x.dtype, self.r.choice([0, 1]))
        return (a, b) if self.r.randrange(2) else (b, a)

    def ints(self, *items):
        return self.constant(np.array(items, np.int64))

    def arithmetic(self):
        op = self.r.choice(["Add", "Sub", "Mul", "Div", "Mod", "Mod", "Min", "Max", "Sum"])
        if op == "Sum":
            op = "Add"
        a, b = self.pair(np.int64, np.int32)
        x, y = self.values[a], self.values[b]
        attributes = {}
        if op in ("Div", "Mod") and ((y == 0).any() or (y == -1).any()):
            return
        if op == "Mod":
            attributes = {"fmod": self.r.randrange(2)}
        functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum,
                     "Mod": np.fmod if attributes.get("fmod") else np.mod,
                     "Div": lambda x, y: np.array([int(p) // int(q) if (p < 0) == (q < 0) else -(-int(p) // int(q))
                                                   if q > 0 else -(int(p) // -int(q)) for p, q in
                                                   np.broadcast(x, y)], x.dtype).reshape(np.broadcast_shapes(x.shape, y.shape))}
        self.add(op, [a, b], functions[op](x, y), **attributes)

    def compare(self):
        op, f = self.r.choice([("Equal", np.equal), ("Less", np.less), ("Greater", np.greater),
                               ("LessOrEqual", np.less_equal), ("GreaterOrEqual", np.greater_equal)])
        a, b = self.pair(np.int64, np.int32)
        c = self.add(op, [a, b], f(self.values[a], self.values[b]))
        if self.r.randrange(2):
            c = self.add("Not", [c], ~self.values[c])
        self.add("Where", [c, a, b], np.where(self.values[c], self.values[a], self.values[b]))

    def unary(self):
        op, f = self.r.choice([("Neg", np.negative), ("Abs", np.abs), ("Identity", np.copy)])
        a = self.pick(np.int64, np.int32)
        self.add(op, [a], f(self.values[a]))

    def cast(self):
        a, to = self.pick(*CASTS), self.r.choice(CASTS)
        b = self.add("Cast", [a], self.values[a].astype(to), to=TYPES[np.dtype(to)])
        if self.r.randrange(2):
            self.add("Cast", [b], self.values[b].astype(np.int64), to=TensorProto.INT64)

    def move(self):
        a = self.pick(np.int64, np.int32, rank=1, low=1)
        x = self.values[a]
        kind = self.r.randrange(6)
        if kind == 0:
            b = self.pick(x.dtype, rank=1)
            self.add("Concat", [a, b], np.concatenate([x, self.values[b]]), axis=0)
        elif kind == 1:
            at = np.array([self.r.randrange(-x.size, x.size) for _ in range(self.r.randint(1, 3))])
            at = at[0] if self.r.randrange(2) else at
            self.add("Gather", [a, self.constant(np.asarray(at, np.int64))], x[at], axis=0)
        elif kind == 2:
            step = self.r.choice([1, 1, -1, 2, 2**62, -2**63 + 1])
            start, end = self.edge(np.int64), self.edge(np.int64)
            value = x[slice(start, end if step > 0 or end >= -x.size else None, step)]
            self.add("Slice", [a, self.ints(start), self.ints(end), self.ints(0), self.ints(step)], value)
        elif kind == 3:
            b = self.add("Unsqueeze", [a, self.ints(0)], x[None])
            self.add("Squeeze", [b, self.ints(0)], x)
        elif kind == 4:
            b = self.add("Reshape", [a, self.ints(1, -1)], x[None])
            self.add("Reshape", [b, self.ints(-1)], x)
        else:
            self.add("Transpose", [a], x)

    def fold(self):
        op, f = self.r.choice([("ReduceSum", np.sum), ("ReduceProd", np.prod), ("ReduceMax", np.max), ("ReduceMin", np.min)])
        a = self.pick(np.int64, np.int32, rank=1, low=1)
        x = self.values[a]
        if op in ("ReduceSum", "ReduceProd") and not np.iinfo(x.dtype).min <= f(x.astype(object)) <= np.iinfo(x.dtype).max:
            return  # ONNX Runtime does not wrap around
        self.add(op, [a], np.asarray(f(x)).astype(x.dtype), keepdims=0)

    def fill(self):
        item, count = np.array([self.edge(np.int64)]), self.r.randint(1, 3)
        self.add("ConstantOfShape", [self.ints(count)], np.repeat(item, count))
        self.nodes[-1].attribute.append(helper.make_attribute("value", numpy_helper.from_array(item)))
        a = self.pick(np.int64, np.int32, rank=0)
        self.add("Expand", [a, self.ints(2)], np.repeat(self.values[a], 2))

    def range(self):
        delta = self.r.choice([1, 1, 2, 3, -1, -2])
        start, count = self.edge(np.int64), self.r.randint(0, 5)
        limit = start + delta * count
        if not -2**63 <= limit < 2**63:
            return
        names = [self.constant(np.array(x, np.int64)) for x in (start, limit, delta)]
        self.last.add(f"v{len(self.nodes)}")  # ONNX Runtime may have another
        self.add("Range", names, np.array([start + delta * i for i in range(count)], np.int64))

    def model(self):
        for _ in range(self.r.randint(3, 12)):
            with np.errstate(all="ignore"):
                self.r.choice([self.arithmetic, self.arithmetic, self.arithmetic, self.compare, self.unary, self.cast,
                               self.move, self.move, self.fold, self.fill, self.range])()
        outputs = [helper.make_tensor_value_info(n.output[0], TYPES[self.values[n.output[0]].dtype], None) for n in self.nodes]
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b"])],
                                  outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()


def judge(network, bytes_, library):
    """What differs, or None; whether ONNX Runtime has NumPy's results (it counts the elements of a Range in double)."""
    feeds = {"x": np.zeros(SHAPE, np.float32)}
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        wanted = onnxruntime.InferenceSession(bytes_, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception:
        return None, False
    if not all(np.array_equal(a, network.values[n.output[0]]) for a, n in zip(wanted, network.nodes)):
        return None, False
    for level in (0, 1, 3):
        try:
            model = Model(library, bytes_, level)
            got = model.run(feeds)
            model.close()
        except PithError as e:
            return f"level {level}: {e}", True
        for i, (a, b) in enumerate(zip(got, wanted)):
            if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b):
                return f"level {level}, output {i}: {a.tolist()}, not {b.tolist()}", True
    return None, True


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--library", default="build/libpith.so")
    p.add_argument("--count", type=int, default=1500)
    p.add_argument("--seed", type=int, default=random.randrange(2**31))
    p.add_argument("--write", type=pathlib.Path, help="writes the model of each difference into this folder")
    a = p.parse_args()
    judged = different = 0
    for case in range(a.count):
        network = Network(a.seed * 1000003 + case)
        bytes_ = network.model()
        what, ran = judge(network, bytes_, a.library)
        judged += ran
        if what:
            different += 1
            print(f"seed {a.seed} case {case}: {what}")
            if a.write:
                (a.write / f"{a.seed}_{case}.onnx").write_bytes(bytes_)
    print(f"seed {a.seed}: {a.count} cases, {judged} judged, {different} different")
    sys.exit(1 if different or judged < a.count // 2 else 0)


if __name__ == "__main__":
    main()

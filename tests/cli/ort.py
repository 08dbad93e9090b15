#!/usr/bin/env python3
"""required_operators.config of ONNX Runtime: what `pith select` reads and writes, and cli/select/ort_fusions.def beside ONNX Runtime itself.

usage: ort.py PITH SOURCE_DIR [unittest arguments]; PITH lies in its build directory
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

PITH, SOURCE = (Path(a).resolve() for a in sys.argv[1:3])
BUILD = PITH.parent
sys.path.insert(0, str(SOURCE / "tests/select"))
import small
MODELS = [Path(os.environ["PITH_ORT_MODELS"])] if "PITH_ORT_MODELS" in os.environ else [SOURCE / "tests/data" / d for d in ("models", "yunet")]
LEVELS = ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_LAYOUT", "ENABLE_ALL")
ROWS = re.findall(r'^ORT_FUSION\("([^"]*)", "([^"]*)"\)$', (SOURCE / "cli/select/ort_fusions.def").read_text(), re.M)


def operators(graph):
    for node in graph.node:
        yield f"{node.domain}::{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        for a in node.attribute:
            for inner in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                yield from operators(inner)


def optimized(path, levels=LEVELS):
    """The operators of the graphs that ONNX Runtime runs, at these levels; None: it cannot run the model at all."""
    found = None
    for level in levels:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
        options.log_severity_level = 4
        with tempfile.TemporaryDirectory() as folder:
            options.optimized_model_filepath = f"{folder}/model.onnx"
            try:
                onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            except Exception:
                continue
            found = (found or set()) | set(operators(onnx.load(f"{folder}/model.onnx", load_external_data=False).graph))
    return found


def config(*models, folder, more=()):
    """The operators of what pith writes for the models, and {(domain, opset)}."""
    path = Path(folder) / "out.config"
    done = small.run(PITH, "select", "-q", "--use", "run", *more, *models, "-o", Path(folder) / "out.yaml", "--ort-operators", path)
    assert done.returncode == 0, done.stderr
    rows = [line.split(";") for line in path.read_text().splitlines() if not line.startswith("#")]
    return {op if domain == "ai.onnx" else f"{domain}::{op}" for domain, _, ops in rows for op in ops.split(",")}, {(d, int(o)) for d, o, _ in rows}


# ---- a graph for each row ----

class Draw:
    """A graph that grows by calls: g.Add(a, b) gives the name of the sum."""

    def __init__(self, opset=17):
        self.nodes, self.inputs, self.weights, self.outputs, self.count, self.opset = [], [], [], [], 0, opset

    def x(self, *shape, dtype=T.FLOAT):
        self.inputs.append(h.make_tensor_value_info(f"x{len(self.inputs)}", dtype, shape))
        return self.inputs[-1].name

    def w(self, value, dtype=np.float32):
        if isinstance(value, tuple):
            value = np.linspace(-1, 1, int(np.prod(value))).reshape(value)
        self.count += 1
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), f"w{self.count}"))
        return f"w{self.count}"

    def __getattr__(self, op):
        def node(*inputs, outs=1, domain="", **attributes):
            names = [f"v{self.count + i + 1}" for i in range(outs)]
            self.count += outs
            self.nodes.append(h.make_node(op, list(inputs), names, domain=domain, **attributes))
            return names[0] if outs == 1 else names
        return node

    def q(self, value, scale=0.02, zero=128, dtype=np.uint8):
        return self.QuantizeLinear(value, self.w(scale), self.w(zero, dtype))

    def d(self, value, scale=0.02, zero=128, dtype=np.uint8):
        return self.DequantizeLinear(value, self.w(scale), self.w(zero, dtype))

    def qd(self, value):
        return self.d(self.q(value))

    def save(self, path, *results, dtype=T.FLOAT):
        outputs = [h.make_tensor_value_info(r, dtype, None) for r in results]
        graph = h.make_graph(self.nodes, "g", self.inputs, outputs, self.weights)
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", self.opset), h.make_opsetid("com.microsoft", 1)], ir_version=8)
        onnx.save(model, path)
        return path


def layer_norm(g, x):
    centred = g.Sub(x, g.ReduceMean(x, axes=[-1]))
    root = g.Sqrt(g.Add(g.ReduceMean(g.Pow(centred, g.w(2.0)), axes=[-1]), g.w(1e-5)))
    return g.Add(g.Mul(g.Div(centred, root), g.w((8,))), g.w((8,)))


def erf_gelu(g, x):
    return g.Mul(g.Mul(x, g.Add(g.Erf(g.Div(x, g.w(1.4142135))), g.w(1.0))), g.w(0.5))


def conv(g, x=None, cin=16, cout=16):
    return g.Conv(x or g.x(1, cin, 8, 8), g.w((cout, cin, 3, 3)), pads=[1, 1, 1, 1], kernel_shape=[3, 3])


def quantized_unary(op, **attributes):
    def draw(g):
        return g.q(getattr(g, op)(g.qd(g.x(1, 16, 8, 8)), **attributes))
    return draw


def quantized_binary(op):
    def draw(g):
        return g.q(getattr(g, op)(g.qd(g.x(2, 8)), g.qd(g.x(2, 8))))
    return draw


def fast_gelu(g):
    x = g.x(2, 8)
    cube = g.Add(x, g.Mul(g.Pow(x, g.w(3.0)), g.w(0.044715)))
    return g.Neg(g.Mul(g.Mul(x, g.w(0.5)), g.Add(g.Tanh(g.Mul(cube, g.w(0.7978846))), g.w(1.0))))


def quantized_matmul(g, bits=np.uint8, output=True):
    y = g.MatMul(g.qd(g.x(2, 8)), g.d(g.w(np.arange(64).reshape(8, 8) % 7, bits), dtype=bits))
    return g.q(y) if output else y


def quantized_weight(g, shape, zero=128):
    return g.d(g.w(np.arange(np.prod(shape)).reshape(shape) % 7, np.uint8), zero=zero)


def block_quantized(g):
    weight = h.make_tensor("packed", T.UINT4, [32, 8], [i % 16 for i in range(256)])
    g.weights.append(weight)
    return g.MatMul(g.x(2, 32), g.DequantizeLinear("packed", g.w(np.full((2, 8), 0.1)), axis=0, block_size=16))


def integer_matmul(g):
    weight = g.w(np.arange(64).reshape(8, 8) % 7, np.uint8)
    q, scale, zero = g.DynamicQuantizeLinear(g.x(2, 8), outs=3)
    return g.Mul(g.Cast(g.MatMulInteger(q, weight, zero, g.w(3, np.uint8)), to=1), g.Mul(scale, g.w(0.1)))


def integer_input(g):
    weight = g.w(np.arange(64).reshape(8, 8) % 7, np.uint8)
    y = g.MatMulInteger(g.x(2, 8, dtype=T.UINT8), weight, g.x(dtype=T.UINT8), g.w(3, np.uint8))
    return g.Mul(g.Cast(y, to=1), g.Mul(g.x(), g.w(0.1)))


def attention(g):
    hidden, heads = 8, 2
    x = layer_norm(g, g.x("b", "s", hidden))
    mask = g.x("b", "s", dtype=T.INT64)

    def head(perm):
        y = g.Add(g.MatMul(x, g.w((hidden, hidden))), g.w((hidden,)))
        return g.Transpose(g.Reshape(y, g.w([0, 0, heads, hidden // heads], np.int64)), perm=perm)
    q, k, v = head([0, 2, 1, 3]), head([0, 2, 3, 1]), head([0, 2, 1, 3])
    wide = g.Cast(g.Unsqueeze(g.Unsqueeze(mask, axes=[1]), axes=[2]), to=1)
    p = g.Softmax(g.Add(g.Div(g.MatMul(q, k), g.w(2.0)), g.Mul(g.Sub(g.w(1.0), wide), g.w(-10000.0))), axis=3)
    y = g.Reshape(g.Transpose(g.MatMul(p, v), perm=[0, 2, 1, 3]), g.w([0, 0, hidden], np.int64))
    return g.Neg(g.Add(g.Add(g.MatMul(y, g.w((hidden, hidden))), g.w((hidden,))), x))


GRAPHS = {
    "MatMul Softmax LayerNormalization": [attention],
    "Range Gather": [lambda g: g.Gather(g.Relu(g.x(8, 4)), g.Range(g.x(dtype=T.INT64), g.x(dtype=T.INT64), g.w(1, np.int64)))],
    "MatMul Add": [lambda g: g.Add(g.MatMul(g.x(2, 8), g.w((8, 8))), g.w((8,))), lambda g: g.Add(g.MatMul(g.x(2, 3, 8), g.w((8, 8))), g.w((8,)))],
    "MatMul BatchNormalization": [lambda g: g.BatchNormalization(g.MatMul(g.x(2, 8), g.w((8, 8))), g.w((8,)), g.w((8,)), g.w((8,)), g.w(np.ones(8)))],
    "Gather|Slice": [lambda g: [g.Gather(y, g.w(i, np.int64), axis=1) for y in [g.Relu(g.x(4, 3, 8))] for i in range(3)],
                     lambda g: [g.Gather(y, g.w([i], np.int64), axis=1) for y in [g.Relu(g.x(4, 3, 8))] for i in range(3)]],
    "Erf": [lambda g: erf_gelu(g, g.x(2, 8))],
    "Add Gelu|com.microsoft::Gelu": [lambda g: erf_gelu(g, g.Add(g.x(2, 8), g.w((8,))))],
    "Tanh": [fast_gelu],
    "Sigmoid Mul": [lambda g: g.Mul(x, g.Sigmoid(g.Mul(x, g.w(1.702)))) if (x := g.x(2, 8)) else 0],
    "ReduceMean Sqrt": [lambda g: layer_norm(g, g.x(2, 8)),
                        lambda g: g.Mul(g.w((8,)), g.Div(x, g.Sqrt(g.Add(g.ReduceMean(g.Pow(x, g.w(2.0)), axes=[-1]), g.w(1e-5))))) if (x := g.x(2, 8)) else 0],
    "Add LayerNormalization": [lambda g: g.LayerNormalization(g.Add(g.x(1, 2, 8), g.x(1, 2, 8)), g.w((8,)), g.w((8,)))],
    "MatMul Transpose|Mul|Div": [lambda g: g.MatMul(g.x(2, 3, 8), g.Transpose(g.x(2, 3, 8), perm=[0, 2, 1])),
                                 lambda g: g.Mul(g.MatMul(g.x(2, 3, 8), g.x(2, 8, 3)), g.w(0.5))],
    "Gemm Relu|LeakyRelu|Elu|HardSigmoid|Sigmoid|Softplus|Softsign|Tanh|ThresholdedRelu": [
        lambda g, op=op: getattr(g, op)(g.Gemm(g.x(2, 8), g.w((8, 8)), g.w((8,))))
        for op in ("Relu", "LeakyRelu", "Elu", "HardSigmoid", "Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu")],
    "Conv Relu|LeakyRelu|Clip|HardSigmoid|Sigmoid|Tanh|Add": [
        *(lambda g, op=op: getattr(g, op)(conv(g)) for op in ("Relu", "LeakyRelu", "HardSigmoid", "Sigmoid", "Tanh")),
        lambda g: g.Clip(conv(g), g.w(0.0), g.w(6.0)), lambda g: g.Add(conv(g, cin=3, cout=3), g.x(1, 3, 8, 8))],
    "MatMulInteger Mul": [integer_matmul, integer_input],
    "DequantizeLinear MatMul": [quantized_matmul, lambda g: quantized_matmul(g, output=False), block_quantized],
    "DequantizeLinear Conv": [lambda g: g.q(g.Conv(g.qd(g.x(1, 16, 8, 8)), quantized_weight(g, (16, 16, 3, 3)), kernel_shape=[3, 3]))],
    "QLinearConv MaxPool": [lambda g: g.q(g.MaxPool(g.qd(g.Conv(g.qd(g.x(1, 16, 8, 8)), quantized_weight(g, (16, 16, 3, 3)), kernel_shape=[3, 3])),
                                                    kernel_shape=[2, 2]))],
    "Softmax": [lambda g: g.Cast(g.Softmax(g.x(2, 8, dtype=T.FLOAT16)), to=1)],
    "DequantizeLinear Gemm": [lambda g: g.q(g.Gemm(g.qd(g.x(2, 8)), quantized_weight(g, (8, 8))))],
    "DequantizeLinear Add": [quantized_binary("Add")],
    "DequantizeLinear Mul": [quantized_binary("Mul")],
    "DequantizeLinear Where": [lambda g: g.q(g.Where(g.x(2, 8, dtype=T.BOOL), g.qd(g.x(2, 8)), g.qd(g.x(2, 8))))],
    "DequantizeLinear Concat": [lambda g: g.q(g.Concat(g.qd(g.x(2, 8)), g.qd(g.x(2, 8)), axis=0))],
    "DequantizeLinear Sigmoid": [quantized_unary("Sigmoid")],
    "DequantizeLinear Softmax": [quantized_unary("Softmax", axis=-1)],
    "DequantizeLinear LeakyRelu": [quantized_unary("LeakyRelu")],
    "DequantizeLinear AveragePool": [quantized_unary("AveragePool", kernel_shape=[2, 2])],
    "DequantizeLinear GlobalAveragePool": [quantized_unary("GlobalAveragePool")],
    "Conv": [conv],
    "Conv MaxPool": [lambda g: g.MaxPool(conv(g), kernel_shape=[2, 2])],
    "Conv AveragePool": [lambda g: g.AveragePool(conv(g), kernel_shape=[2, 2])],
    "Conv GlobalMaxPool": [lambda g: g.GlobalMaxPool(conv(g))],
    "Conv GlobalAveragePool": [lambda g: g.GlobalAveragePool(conv(g))],
    "Conv Resize|Upsample": [lambda g: g.Resize(conv(g), "", g.w([1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
}


# Rows that the source of ONNX Runtime shows and for which there is no graph here.
UNSEEN = {"Gather LayerNormalization"}


# Operators that Pith's passes and ragged rules make; needs.def says so. A list from a configuration has them too.
MADE = {re.sub(r"^(\w+)_pith$", r"pith::\1", op) for ops in re.findall(r"^MAKES\(\w+, \w+, (.*)\)", (SOURCE / "src/select/needs.def").read_text(), re.M)
        for op in ops.split()}


def own(names):
    """Without what every list from a configuration has."""
    return {n for n in names if not n.startswith("pith::") and n not in MADE}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)


class Config(Case):
    def select(self, *arguments, code=0):
        done = small.run(PITH, "select", "-q", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def read(self, text, *more, code=0):
        path = self.dir / "in.config"
        path.write_text(text)
        out, err = self.select(*more, path, code=code)
        return small.read(out.partition("\n")[2]), err

    def test_model(self):
        model = SOURCE / "tests/data/models/bert-base-script14-eager-int8"
        listed, opsets = config(model, folder=self.dir)
        self.assertEqual(opsets, {("ai.onnx", 14), ("com.microsoft", 1)})
        self.assertLessEqual({"MatMulInteger", "LayerNormalization", "com.microsoft::DynamicQuantizeMatMul", "com.microsoft::SkipLayerNormalization"}, listed)
        self.assertNotIn("Conv", listed)
        yunet = next(p for p in sorted((SOURCE / "tests/data/yunet").glob("*/model.onnx")))
        both, _ = config(model, yunet, folder=self.dir)
        text = (self.dir / "out.config").read_text()
        self.assertEqual(both, listed | config(yunet, folder=self.dir)[0])
        config(yunet, model, folder=self.dir)
        self.assertEqual(text, (self.dir / "out.config").read_text())
        _, said = self.select(SOURCE / "tests/data/hf/bert", "--ort-operators", self.dir / "none.config", code=1)
        self.assertIn("ONNX Runtime reads ONNX files only; write one with 'pith export'", said)
        for wrong, words in (("-", "--ort-operators -"), ("operators.txt", "is the name of a file that ends in .config")):
            _, said = self.select(model, "--ort-operators", wrong, code=2)
            self.assertIn(words, said)

    def test_format_of_onnx_runtime(self):
        """A line is read as reduced_build_config_parser.py reads it: three parts, whose opsets are whole numbers."""
        config(SOURCE / "tests/data/models/qwen3-base-script17-sdpa", folder=self.dir)
        for line in (self.dir / "out.config").read_text().splitlines():
            if not line.startswith("#"):
                domain, opset, names = line.split(";")
                self.assertTrue(opset.isdecimal() and domain and names == ",".join(sorted(set(names.split(",")))), line)

    def test_read(self):
        found, _ = self.read("# mine\n\nai.onnx;12,14;Add, MatMul ,Softmax\r\ncom.microsoft;1;BiasGelu\n!no_ops_specified_means_all_ops_are_required\n")
        names = found.pop("operators")
        self.assertEqual(found, {})
        self.assertEqual(own(names), {"Softmax", "com.microsoft::BiasGelu"})
        self.assertLessEqual(MADE, set(names))

    def test_read_types(self):
        found, _ = self.read('ai.onnx;12;Add,Elu{"inputs": {"0": ["float", "int32_t"]}, "outputs": {"0": ["float", "int64_t"]}},Concat,'
                             'OneHot{"custom": [["float", "int64_t", "int64_t"], ["int64_t", "std::string", "int64_t"]]}\n')
        for name, dtypes in (("Add", []), ("Elu", ["f32", "i32", "i64"]), ("Concat", []), ("OneHot", ["f32", "i64", "string"])):
            self.assertEqual(found["operators"][name], dtypes)
        found, _ = self.read("!globally_allowed_types;float,MLFloat16\nai.onnx;12;Sub\n")
        self.assertEqual(found["operators"]["Sub"], ["f32", "i32", "i64", "bool", "f16"])

    def test_unknown_lines(self):
        found, said = self.read('ai.onnx;14;Add,Nope\n\nhello\nai.onnx;x;Mul\n!what\nai.onnx;7;Sub{"inputs": {"0": ["quux"]}},Div\nai.onnx;7;Neg{"inputs":\n'
                                "!globally_allowed_types;float,long\norg.me;1;Own\n", code=1)
        self.assertEqual(own(found["operators"]), {"Sub", "Div"})
        wanted = {1: "this Pith has no operator 'Nope'", 3: "neither 'domain;opset;operators'", 4: "neither 'domain;opset;operators'",
                  5: "neither 'domain;opset;operators'", 6: "the type 'quux' is not known", 7: "the types of an operator are no JSON",
                  8: "the type 'long' is not known", 9: "this Pith has no operator 'org.me::Own'"}
        self.assertEqual([int(line.split(":")[2]) for line in said.splitlines()], list(wanted))
        for (number, text), line in zip(wanted.items(), said.splitlines()):
            self.assertIn(f"in.config:{number}: {text}", line)
        self.assertIn("none.config: No such file", self.select(self.dir / "none.config", code=1)[1])
        (self.dir / "zero.config").write_bytes(b"ai.onnx;1;A\0dd\n")
        self.assertIn("no text: byte 11 is 0", self.select(self.dir / "zero.config", code=1)[1])

    def test_merge(self):
        (self.dir / "a.config").write_text("ai.onnx;14;Abs\n")
        (self.dir / "b.yaml").write_text("pith: 1\noperators:\n  - Sub f32\n")
        for order in (("a.config", "b.yaml"), ("b.yaml", "a.config")):
            found = small.read(self.select("--merge", *(self.dir / o for o in order))[0].partition("\n")[2])
            self.assertLessEqual({"Abs", "Sub"}, set(found["operators"]))

    def test_build(self):
        """A build of the operators in a configuration runs its models."""
        folder = small.Folder(SOURCE, BUILD, self.dir)
        inputs = []
        for name, value in (("input_ids", [[1, 2, 3, 4], [3, 2, 1, 1]]), ("attention_mask", [[1, 1, 1, 1], [1, 1, 0, 0]]), ("token_type_ids", [[0] * 4] * 2)):
            np.save(self.dir / f"{name}.npy", np.array(value, np.int64))
            inputs += ["-i", f"{name}={self.dir / name}.npy"]
        for name in ("bert-base-script14-eager", "bert-base-dynamo20-sdpa"):
            model = SOURCE / "tests/data/models" / name
            config(model, folder=self.dir)
            _, said = self.select(self.dir / "out.config", "-o", self.dir / "ops.yaml", code=0)
            pith = folder.command(name, "--list", self.dir / "ops.yaml")
            results = []
            for number, command in enumerate((PITH, pith)):
                done = small.run(command, "run", model, *inputs, "-o", self.dir / f"{name}{number}")
                self.assertEqual(done.returncode, 0, done.stderr)
                results.append([np.load(p) for p in sorted((self.dir / f"{name}{number}").glob("*.npy"))])
            for first, second in zip(*results, strict=True):
                self.assertLess(np.abs(first - second).max(), 1e-5)


class Fusions(Case):
    def covers(self, path, what=None):
        """What ONNX Runtime runs is in the configuration of the model; the operators it runs."""
        run = optimized(path)
        if run is None:
            return None
        listed, _ = config(path, folder=self.dir)
        self.assertEqual(run - listed, set(), what or path)
        return run

    def test_models(self):
        """Every model of the folders: nothing that the optimiser introduces is missing."""
        count = 0
        for path in sorted(p for folder in MODELS for p in folder.glob("*/")):
            files = [f for f in (path / "model.onnx", path / "onnx/model.onnx") if f.exists()]
            count += bool(files and self.covers(files[0]))
        self.assertGreater(count, 30)

    def test_rows(self):
        """Each row is true: ONNX Runtime makes each of the operators from a graph that has those on the left."""
        for wanted, made in ROWS:
            if wanted not in GRAPHS or wanted in UNSEEN:
                continue
            found, had = set(), set()
            for opset in (11, 14, 17, 20, 21):
                for draw in GRAPHS[wanted]:
                    g = Draw(opset)
                    try:
                        ends = draw(g)
                        path = g.save(self.dir / "model.onnx", *([ends] if isinstance(ends, str) else ends), dtype=T.FLOAT)
                        kinds = {n.output[0]: n.op_type for n in g.nodes}
                        if all(kinds[e] == "QuantizeLinear" for e in ([ends] if isinstance(ends, str) else ends)):
                            g.save(path, ends, dtype=T.UINT8)
                        run = self.covers(path, wanted)
                    except onnx.checker.ValidationError:
                        continue
                    if run:
                        found |= run - set(operators(onnx.load(path).graph))
            with self.subTest(row=wanted):
                self.assertEqual(set(made.split()) - found, set(), f"not made from {wanted}; made: {found}")

    def test_functions(self):
        """The other rows: operators without a kernel, of the ONNX node tests."""
        home = subprocess.run([SOURCE / "tests/conformance/node_tests.sh", BUILD], check=True, capture_output=True, text=True).stdout.strip()
        rows = {wanted: set(made.split()) for wanted, made in ROWS if wanted not in GRAPHS and wanted not in UNSEEN}
        found = {wanted: set() for wanted in rows}
        for path in sorted(Path(home).rglob("model.onnx")):
            has = set(operators(onnx.load(path).graph))
            for wanted in rows:
                if len(has) < 3 and (wanted in has or not wanted):
                    run = self.covers(path)
                    if run:
                        found[wanted] |= run - has
        for wanted, made in rows.items():
            with self.subTest(row=wanted):
                self.assertEqual(made - found[wanted], set())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

#!/usr/bin/env python3
"""Optimises every stored model at every level and runs the files in ONNX Runtime, with the inputs that lie beside them.
Results are compared with those of the models as they were. What ONNX Runtime cannot run as it was is left out.

usage: compare_rewritten.py PITH DATA..."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

at = next((i for i, a in enumerate(sys.argv) if a == "--"), len(sys.argv))
PITH, FOLDERS, REST = Path(sys.argv[1]).resolve(), [Path(a).resolve() for a in sys.argv[2:at]], sys.argv[at + 1:]
DATA = FOLDERS[0]
# What has no form in the operators of ai.onnx and com.microsoft from opset 17 on.
REFUSED = {"scan_opset8_lengths": "no opset from 17 on has its form",

           "ms_attention_spans_0": "its mask is neither", "ms_attention_spans_1": "its mask is neither",
           "ms_attention_lengths_0": "its mask is neither", "ms_attention_lengths_1": "its mask is neither",
           "ms_attention_sums_0": "its mask is neither", "ms_attention_sums_1": "its mask is neither"}
# Another order of sums; and networks of f16 or with quantised inputs, where a value may be rounded the other way.
NEAR, NEAR_COARSE = 1e-5, 5e-3


def pith(*arguments):
    return subprocess.run([PITH, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def session(path, plain):
    """plain: without ONNX Runtime's own fusions, which round quantised values in other places."""
    options = onnxruntime.SessionOptions()
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(path, feeds, plain=False):
    s = session(path, plain)
    return dict(zip([o.name for o in s.get_outputs()], s.run(None, feeds)))


def stored_feeds(model, folder):
    """None if an input is no tensor, or is missing."""
    feeds = {}
    given = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in given] or [i.name for i in model.graph.input]
    for i, name in enumerate(names):
        file = folder / f"input_{i}.pb"
        if not file.exists():
            return None
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString(file.read_bytes())
            feeds[tensor.name or name] = numpy_helper.to_array(tensor)
        except Exception:  # a sequence
            return None
    return feeds


def is_coarse(model):
    """Small errors become large: f16, or values that are rounded in the graph."""
    ops = {n.op_type for n in model.graph.node}
    halves = {t.data_type for t in model.graph.initializer} & {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    return bool(halves or ops & {"DynamicQuantizeLinear", "QuantizeLinear", "Cast16"} or
                any(a.name == "to" and a.i in (10, 16) for n in model.graph.node for a in n.attribute))


class Rewritten(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def optimize(self, model, *arguments, name="model.onnx"):
        path = self.dir / name
        done = pith("optimize", "--force", "--json", model, "-o", path, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path, json.loads(done.stdout)

    def compare(self, wanted, got, near):
        self.assertEqual(list(wanted), list(got))
        for name, x in wanted.items():
            y = got[name]
            if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub":
                continue
            self.assertEqual((x.shape, x.dtype), (y.shape, y.dtype), name)
            if x.dtype.kind == "f":
                finite = np.isfinite(x)
                largest = max(1, float(np.abs(x[finite].astype(np.float64)).max(initial=0)))
                np.testing.assert_allclose(y.astype(np.float64), x.astype(np.float64), atol=near * largest, rtol=0,
                                           err_msg=name)
            elif near == NEAR:
                np.testing.assert_array_equal(x, y, name)


class EveryModel(Rewritten):
    def models(self):
        for folder in FOLDERS:
            for path in sorted(folder.rglob("*.onnx")):
                if (path.parent / "test_data_set_0").exists():
                    yield path

    def original(self, path):
        """Model, inputs and results; None if there is nothing to compare with."""
        model = onnx.load(path, load_external_data=False)
        feeds = stored_feeds(model, path.parent / "test_data_set_0")
        try:
            return feeds is not None and (model, feeds, run(path, feeds, is_coarse(model))) or None
        except Exception:
            return None

    def test_every_model(self):
        ways = [("--level", 1), ("--level", 2), ("--level", 3), ("--level", 3, "--gpu"), ("--level", 3, "--standard"),
                ("--fuse", "com.microsoft")]
        compared, refused, fewer = 0, set(), 0
        for path in self.models():
            original = self.original(path)
            if not original:
                continue
            model, feeds, wanted = original
            near = NEAR_COARSE if is_coarse(model) else NEAR
            standard = all(d.domain in ("", "ai.onnx") for d in model.opset_import)
            for way in ways:
                with self.subTest(f"{path.parent.parent.name}/{path.parent.name}", way=way):
                    done = pith("optimize", "--force", "--json", path, "-o", self.dir / "model.onnx", *way)
                    if done.returncode and path.parent.name in REFUSED:
                        self.assertIn(REFUSED[path.parent.name], done.stderr)
                        refused.add(path.parent.name)
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    said = json.loads(done.stdout)
                    if standard and ("--standard" in way or way == ("--level", 1)):
                        onnx.checker.check_model(str(self.dir / "model.onnx"), full_check=True)
                    self.compare(wanted, run(self.dir / "model.onnx", feeds, is_coarse(model)), near)
                    compared += 1
                    fewer += said["nodes"] < said["nodes_before"]
        print(f"{compared} files compared, {fewer} have fewer nodes")
        self.assertGreater(compared, 800)
        self.assertEqual(refused, set(REFUSED))


class Fused(Rewritten):
    """What is fused where, and to which operators."""

    def ops(self, path):
        count = {}
        for node in onnx.load(path).graph.node:
            count[node.op_type] = count.get(node.op_type, 0) + 1
        return count

    def test_encoders(self):
        """Two layers: each has one attention, two sums with their norm, and one GELU with its bias."""
        for name in ("bert-base-dynamo20-eager", "bert-base-dynamo23-sdpa", "bert-base-script14-sdpa",
                     "bert-base-script17-eager", "roberta-base-script17-sdpa", "distilbert-base-dynamo20-sdpa",
                     "bert-base-script14-eager-fused"):
            with self.subTest(name):
                path, said = self.optimize(DATA / "models" / name / "model.onnx", "--gpu")
                ops = self.ops(path)
                self.assertEqual((ops.get("Attention"), ops.get("BiasGelu")), (2, 2))
                self.assertIn(ops.get("SkipLayerNormalization"), (4, 5))  # that of the embeddings is one, if it can be
                self.assertLessEqual({"attention", "linear"} - {l["what"] for l in said["fused"]},
                                     {"attention"} if name.endswith("fused") else set())
                path, _ = self.optimize(DATA / "models" / name / "model.onnx", "--level", 2, "--gpu")
                if not name.endswith("fused"):
                    self.assertFalse([n for n in onnx.load(path).graph.node
                                      if (n.domain, n.op_type) == ("com.microsoft", "Attention")])
                self.assertIn("SkipLayerNormalization", self.ops(path))
                path, _ = self.optimize(DATA / "models" / name / "model.onnx")
                self.assertNotIn("SkipLayerNormalization", self.ops(path))

    def test_all_of_com_microsoft(self):
        """With --fuse com.microsoft: what each layer of two becomes (ModernBERT has three, the first with one norm)."""
        bert = {"EmbedLayerNormalization": 1, "Attention": 2, "SkipLayerNormalization": 4, "BiasGelu": 2}
        modernbert = {"RotaryEmbedding": 6, "MultiHeadAttention": 3, "SkipLayerNormalization": 6, "LayerNormalization": 1, "Gelu": 3}
        qwen = {"GroupQueryAttention": 2, "RotaryEmbedding": 4, "SkipSimplifiedLayerNormalization": 4, "QuickGelu": 2,
                "SimplifiedLayerNormalization": 5}
        phi = {"MultiHeadAttention": 2, "RotaryEmbedding": 4, "FastGelu": 2, "SkipLayerNormalization": 2}
        for name, wanted in (("bert-base-dynamo20-eager", bert), ("bert-base-dynamo20-sdpa", bert), ("bert-base-script14-eager", bert),
                             ("bert-base-script17-sdpa", bert), ("roberta-base-dynamo20-sdpa", bert),
                             ("distilbert-base-dynamo20-sdpa", bert), ("distilbert-base-script17-sdpa", bert),
                             ("mpnet-base-dynamo20-eager", bert), ("modernbert-base-dynamo20-sdpa", modernbert),
                             ("modernbert-base-script17-sdpa", modernbert), ("qwen3-base-dynamo20-sdpa", qwen),
                             ("qwen3-base-script17-sdpa", qwen), ("phi-base-script16", phi)):
            with self.subTest(name):
                path, said = self.optimize(DATA / "models" / name / "model.onnx", "--fuse", "com.microsoft")
                ops = self.ops(path)
                self.assertEqual({op: ops.get(op, 0) for op in wanted}, wanted)
                self.assertEqual([op for op in ops if op in ("Softmax", "Erf", "ReduceMean", "Pow")], [])
                self.assertEqual([line for line in said["not_fused"] if line["what"] in ("attention", "rotary")], [])

    def test_fused_files(self):
        """Files with operators of com.microsoft can be exported and quantised too."""
        model = DATA / "models/bert-base-script14-eager-fused/model.onnx"
        feeds = stored_feeds(onnx.load(model), model.parent / "test_data_set_0")
        wanted = run(model, feeds)
        for verb, near in (("export", 1e-5), ("quantize", 0.1)):
            done = pith(verb, model, "--force", "-o", self.dir / "made.onnx")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.compare(wanted, run(self.dir / "made.onnx", feeds), near)

    def test_reason(self):
        _, said = self.optimize(DATA / "models/qwen3-base-script17-sdpa/model.onnx")
        reasons = [line["text"] for line in said["not_fused"] if line["what"] == "attention"]
        self.assertTrue(any("heads share keys and values" in r for r in reasons), said["not_fused"])

    def test_standard(self):
        path, _ = self.optimize(DATA / "models/bert-base-script17-eager/model.onnx", "--standard")
        self.assertEqual({n.domain for n in onnx.load(path).graph.node}, {""})

    def test_directory(self):
        """A directory of safetensors, and one that opens again with its tokenizer."""
        done = pith("optimize", DATA / "modules/chain", "-o", f"{self.dir}/out/")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [[json.loads(line) for line in subprocess.run([PITH, "embed", "-m", m], input="a b c\n", text=True,
                                                             capture_output=True).stdout.splitlines()]
                for m in (DATA / "modules/chain", self.dir / "out")]
        np.testing.assert_allclose(*rows, atol=1e-6)

    def test_same_bytes(self):
        first, second = (self.optimize(DATA / "models/bert-base-script17-eager/model.onnx", name=n)[0] for n in ("a.onnx", "b.onnx"))
        self.assertEqual(first.read_bytes(), second.read_bytes())


class Bytes(Rewritten):
    """A block of convolutions and a sum, written with DequantizeLinear and QuantizeLinear. Scales are powers of two, so
    that floats are exact and every result is the same number."""

    def block(self, first, second, last, weights):
        """The types of the two convolutions' results, of the sum and of the weights."""
        random = np.random.default_rng(3)
        constants, nodes = {}, []

        def const(value, dtype):
            constants[f"c{len(constants)}"] = np.asarray(value, dtype)
            return f"c{len(constants) - 1}"

        def node(kind, *inputs, **attributes):
            nodes.append(onnx.helper.make_node(kind, inputs, [f"v{len(nodes)}"], f"n{len(nodes)}", **attributes))
            return f"v{len(nodes) - 1}"

        def pair(dtype, scale):
            return const(scale, np.float32), const(-128 if dtype is np.int8 else 0, dtype)

        def convolution(x, dtype, relu):
            centre = 128 if weights is np.uint8 else 0
            w = const(centre + random.integers(-20, 21, (4, 4, 3, 3)), weights)
            w = node("DequantizeLinear", w, const([2 ** -6, 2 ** -7, 2 ** -6, 2 ** -5], np.float32), const([centre] * 4, weights), axis=0)
            bias = node("DequantizeLinear", const(random.integers(-500, 500, 4), np.int32),
                        const([2 ** -11, 2 ** -12, 2 ** -11, 2 ** -10], np.float32), axis=0)
            y = node("Conv", x, w, bias, pads=[1] * 4)
            numbers = pair(dtype, 2 ** -5)
            return node("DequantizeLinear", node("QuantizeLinear", node("Relu", y) if relu else y, *numbers), *numbers)

        x = node("DequantizeLinear", node("QuantizeLinear", "x", *pair(first, 2 ** -5)), *pair(first, 2 ** -5))
        a = convolution(x, first, True)
        b = convolution(a, second, False)
        y = node("DequantizeLinear", node("QuantizeLinear", node("Relu", node("Add", a, b)), *pair(last, 2 ** -4)), *pair(last, 2 ** -4))
        tensor = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 4, 7, 9])
        graph = onnx.helper.make_graph(nodes, "block", [tensor("x")], [tensor(y)],
                                       [numpy_helper.from_array(v, k) for k, v in constants.items()])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), self.dir / "qdq.onnx")
        return self.dir / "qdq.onnx"

    def test_sums(self):
        """QLinearConv and QLinearAdd where ONNX Runtime has them for the types, else what they stand for."""
        feeds = {"x": np.random.default_rng(1).normal(0, 2, (2, 4, 7, 9)).astype(np.float32)}
        u8, i8 = np.uint8, np.int8
        for types, convs, sums in (((u8, u8, u8, i8), 2, 1), ((u8, u8, u8, u8), 2, 1), ((i8, i8, i8, i8), 2, 1), ((i8, i8, i8, u8), 0, 1),
                                   ((u8, i8, u8, i8), 1, 0), ((u8, u8, i8, i8), 2, 0), ((i8, u8, u8, u8), 0, 0)):
            path = self.block(*types)
            wanted = run(path, feeds, plain=True)
            self.assertGreater(len(np.unique(next(iter(wanted.values())))), 50)
            for way, added in (((), sums), (("--standard",), 0), (("--fuse", "com.microsoft"), sums)):
                with self.subTest(types=[t.__name__ for t in types], way=way):
                    out, _ = self.optimize(path, *way)
                    ops = [n.op_type for n in onnx.load(out).graph.node]
                    self.assertEqual((ops.count("QLinearConv"), ops.count("QLinearAdd"), ops.count("Add")), (convs, added, 1 - added))
                    self.assertEqual({n.domain for n in onnx.load(out).graph.node}, {"", "com.microsoft"} if added else {""})
                    for plain in (True, False):
                        self.compare(wanted, run(out, feeds, plain), 0)


class Types(Rewritten):
    MODEL = DATA / "models/bert-base-script17-eager/model.onnx"

    def results(self, path):
        return run(path, stored_feeds(onnx.load(self.MODEL), self.MODEL.parent / "test_data_set_0"))

    def test_f16(self):
        wanted = self.results(self.MODEL)
        for more in ((), ("--gpu",), ("--standard",), ("--level", 1)):
            path, said = self.optimize(self.MODEL, "--dtype", "f16", *more)
            self.assertEqual(said["clamped"], 0)
            self.assertLess(path.stat().st_size, 0.8 * self.MODEL.stat().st_size)
            got = self.results(path)
            for name, x in wanted.items():
                self.assertEqual(got[name].dtype, np.float32)
                np.testing.assert_allclose(got[name], x, atol=5e-3 * max(1, np.abs(x).max()))

    def test_keep(self):
        path, _ = self.optimize(self.MODEL, "--dtype", "f16", "--level", 1, "--keep-f32", "Softmax", "--keep-f32", "layer.0/intermediate")
        graph = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True).graph
        types = {v.name: v.type.tensor_type.elem_type for v in graph.value_info}
        types.update({t.name: t.data_type for t in graph.initializer})
        wide = [n for n in graph.node if n.op_type == "Softmax" or "layer.0/intermediate" in n.name]
        self.assertGreater(len(wide), 4)
        for node in wide:
            self.assertNotIn(onnx.TensorProto.FLOAT16, [types.get(i) for i in node.input], node.name)
        self.assertIn(onnx.TensorProto.FLOAT16, types.values())
        self.results(path)

    def test_ports(self):
        """Outputs of 16 bits; and inputs, in a network of pictures."""
        path, _ = self.optimize(self.MODEL, "--dtype", "f16", "--narrow-ports")
        self.assertEqual({o.dtype for o in self.results(path).values()}, {np.dtype(np.float16)})
        model = DATA / "families/vit-dynamo20/model.onnx"
        feeds = stored_feeds(onnx.load(model), model.parent / "test_data_set_0")
        wanted = run(model, feeds)
        path, _ = self.optimize(model, "--dtype", "f16", "--narrow-ports")
        got = run(path, {k: v.astype(np.float16) for k, v in feeds.items()})
        for name, x in wanted.items():
            np.testing.assert_allclose(got[name].astype(np.float32), x, atol=2e-2 * max(1, np.abs(x).max()))


class Parts(Rewritten):
    MODEL = DATA / "models/bert-base-script17-eager/model.onnx"

    def test_extract(self):
        """The second half of a network gives on the values of the first half what the whole gives."""
        model = onnx.load(self.MODEL)
        feeds = stored_feeds(model, self.MODEL.parent / "test_data_set_0")
        middle = next(n.output[0] for n in model.graph.node if n.op_type == "LayerNormalization" and "layer.0/output" in n.name)
        last = model.graph.output[0].name
        first, _ = self.optimize(self.MODEL, "--extract-output", middle, name="first.onnx")
        second, _ = self.optimize(self.MODEL, "--extract-output", last, "--extract-input", middle,
                                  "--extract-input", "attention_mask", name="second.onnx")
        self.assertEqual([i.name for i in onnx.load(second).graph.input], [middle, "attention_mask"])
        self.assertEqual([o.name for o in onnx.load(first).graph.output], [middle])
        used = [i.name for i in onnx.load(first).graph.input]
        between = run(first, {k: feeds[k] for k in used})[middle]
        got = run(second, {middle: between, "attention_mask": feeds["attention_mask"]})
        np.testing.assert_allclose(got[last], run(self.MODEL, feeds)[last], atol=1e-5)

    def test_unused_is_cut(self):
        path, _ = self.optimize(self.MODEL, "--extract-output", onnx.load(self.MODEL).graph.output[0].name)
        self.assertLess(path.stat().st_size, self.MODEL.stat().st_size)
        self.assertEqual(len(onnx.load(path).graph.output), 1)

    def made(self, nodes, inputs, outputs, constants):
        tensor = lambda name, shape: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        graph = onnx.helper.make_graph([onnx.helper.make_node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes], "made",
                                       [tensor(*i) for i in inputs], [tensor(*o) for o in outputs],
                                       [numpy_helper.from_array(v, k) for k, v in constants.items()])
        path = self.dir / "made.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9), path)
        return path

    def test_shared_and_folded(self):
        w = np.arange(16, dtype=np.float32).reshape(4, 4)
        path = self.made([("Add", ["a", "b"], ["ab"]), ("MatMul", ["x", "a"], ["xa"]), ("MatMul", ["xa", "c"], ["xc"]),
                          ("Add", ["xc", "ab"], ["y"]), ("Sub", ["x", "a"], ["unused"])],
                         [("x", [4, 4])], [("y", [4, 4])], {"a": w, "b": 2 * w, "c": w})
        out, said = self.optimize(path, "--level", 1)
        graph = onnx.load(out).graph
        self.assertEqual([n.op_type for n in graph.node], ["MatMul", "MatMul", "Add"])
        self.assertEqual((said["shared"], len(graph.initializer), said["opset"]), (1, 2, 19))
        x = np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32)
        np.testing.assert_allclose(run(out, {"x": x})["y"], x @ w @ w + 3 * w, rtol=1e-5)

    def shape(self, path):
        return [d.dim_value or d.dim_param for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]

    def test_shapes(self):
        path = self.made([("Relu", ["x"], ["y"])], [("x", [1, 3, "height", 8])], [("y", [1, 3, "height", 8])], {})
        self.assertEqual(self.shape(self.optimize(path)[0]), [1, 3, "height", 8])
        fixed, _ = self.optimize(path, "--input-shape", "x=1x3x6x8", name="fixed.onnx")
        self.assertEqual(self.shape(fixed), [1, 3, 6, 8])
        free, _ = self.optimize(path, "--free-shapes", name="free.onnx")
        self.assertTrue(all(isinstance(d, str) for d in self.shape(free)))
        run(free, {"x": np.zeros((2, 5, 6, 7), np.float32)})


class Refused(Rewritten):
    def fails(self, says, *arguments, code=1):
        done = pith("optimize", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual([p.name for p in self.dir.iterdir() if ".onnx" in p.name and p.name != "old.onnx"], [])

    def test_refused(self):
        model, out = Parts.MODEL, self.dir / "x.onnx"
        (self.dir / "old.onnx").write_bytes(b"precious")
        self.fails("exists; --force replaces it", model, "-o", self.dir / "old.onnx")
        self.assertEqual((self.dir / "old.onnx").read_bytes(), b"precious")
        self.fails("-o is needed", model, code=2)
        self.fails("--level", model, "-o", out, "--level", 4, code=2)
        self.fails("--dtype", model, "-o", out, "--dtype", "f8", code=2)
        self.fails("go with --dtype", model, "-o", out, "--keep-f32", "Softmax", code=2)
        self.fails("exclude each other", model, "-o", out, "--gpu", "--standard", code=2)
        self.fails("exclude each other", model, "-o", out, "--free-shapes", "--input-shape", "x=1", code=2)
        self.fails("no value 'nothing'", model, "-o", out, "--extract-output", "nothing")
        self.fails("no value 'nothing'", model, "-o", out, "--extract-input", "nothing")
        self.fails("the outputs need the input", model, "-o", out, "--extract-input", "attention_mask")
        self.fails("is there twice", model, "-o", out, "--extract-input", "input_ids", "--extract-input", "input_ids")
        self.fails("missing.onnx", self.dir / "missing.onnx", "-o", out)
        self.fails("cannot be written", model, "-o", self.dir / "missing/x.onnx")
        subprocess.run([PITH, "compile", DATA / "hf/bert", "-o", self.dir / "bert.pith"], check=True, capture_output=True)
        self.fails("a compiled model cannot be exported", self.dir / "bert.pith", "-o", out)

    def test_not_a_number(self):
        """A weight that is NaN is named when it is narrowed."""
        model = onnx.load(Parts.MODEL)
        weight = next(t for t in model.graph.initializer if t.data_type == 1 and len(t.dims) == 2)
        numbers = numpy_helper.to_array(weight).copy()
        numbers[0, 0] = np.nan
        weight.CopyFrom(numpy_helper.from_array(numbers, weight.name))
        onnx.save(model, self.dir / "bad.model")
        self.fails(f"'{weight.name}' has a NaN at element 0", self.dir / "bad.model", "-o", self.dir / "x.onnx", "--dtype", "f16")

    def test_no_space(self):
        done = pith("optimize", "--force", Parts.MODEL, "-o", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + REST)

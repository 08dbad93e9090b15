#!/usr/bin/env python3
"""ONNX files that export, optimize and quantize write: opsets, types, sizes, and what ONNX Runtime makes of them.

usage: written.py PITH SOURCE_DIR [unittest arguments]; needs NumPy, onnx, onnxruntime (tests/requirements.txt).
"""
import sys
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import MapProto, SequenceProto, TensorProto, helper, numpy_helper

from command import SOURCE, Command

CASES = SOURCE / "tests/data/cases"
QUANTIZE = [["--scheme", s] for s in ("int8", "q8", "q4")]


def run(path, **feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options).run(None, feeds)


def sizes(values):
    return [[d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in values]


def weights(model, dtype):
    return sum(len(t.raw_data) for t in model.graph.initializer if t.data_type == dtype)


class Written(Command):
    verb = "optimize"

    def write(self, verb, source, *options):
        """The file that a verb writes, checked by onnx; and what the verb says."""
        path = self.dir / "written.onnx"
        done = self.run_pith(source if str(source).startswith("/") else CASES / source, "-o", path, "-f", *options, verb=verb)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        onnx.checker.check_model(str(path), full_check=True)
        return onnx.load(path), path, done.stderr.decode()

    def opset(self, model):
        return next(o.version for o in model.opset_import if not o.domain)

    def save(self, nodes, inputs, outputs, constants=(), opset=17, name="made.onnx", **domains):
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, t, d) for n, t, d in inputs],
                                  [helper.make_tensor_value_info(n, t, d) for n, t, d in outputs],
                                  [numpy_helper.from_array(np.asarray(a), n) for n, a in constants])
        opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d.replace("_", "."), v) for d, v in domains.items()]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), self.dir / name)
        return self.dir / name


class Opsets(Written):
    def test_attributes(self):
        """The oldest opset that has the attributes; an older one that is asked for is refused."""
        for name, oldest, own in (("average-dilations-19", 19, 19), ("resize-antialias-18", 18, 18), ("resize-defaults-20", 18, 20)):
            source = f"old-opset-new-attributes/{name}.onnx"
            original = run(CASES / source, x=np.arange(243, dtype=np.float32).reshape(1, 3, 9, 9), v=np.ones((2, 16), np.float32))
            for verb, options in [("export", []), ("optimize", [])] + [("quantize", q) for q in QUANTIZE]:
                model, path, _ = self.write(verb, source, *options)
                self.assertEqual(self.opset(model), own if verb == "optimize" else oldest)
                results = run(path, x=np.arange(243, dtype=np.float32).reshape(1, 3, 9, 9), v=np.ones((2, 16), np.float32))
                np.testing.assert_allclose(results[0], original[0], rtol=1e-6)
                np.testing.assert_allclose(results[1], original[1], atol=0.5 if "q4" in options else 0.05 if verb == "quantize" else 1e-6)
            for verb in ("export", "optimize"):
                self.bad(1, CASES / source, "-o", self.dir / "x.onnx", "--opset", 17, verb=verb, says=("opset 17", "lacks attribute"))

    def test_values(self):
        """Meanings that came without a new attribute: floats in Mod, and the last window of a pool."""
        x = ("x", TensorProto.FLOAT, [5])
        mod = self.save([helper.make_node("Mod", ["x", "b"], ["y"])], [x], [("y", TensorProto.FLOAT, [5])], [("b", np.float32(2))], opset=28)
        self.bad(1, mod, "-o", self.dir / "x.onnx", "--opset", 27, says="'fmod' = 0 of floats")
        self.assertEqual(self.opset(self.write("export", mod)[0]), 28)
        pool = self.save([helper.make_node("MaxPool", ["x"], ["y"], ceil_mode=1, kernel_shape=[2], pads=[1, 1], strides=[3])],
                         [("x", TensorProto.FLOAT, [1, 1, 4])], [("y", TensorProto.FLOAT, [1, 1, 2])], opset=22)
        self.bad(1, pool, "-o", self.dir / "x.onnx", "--opset", 17, says="'ceil_mode' as opset 22 defines it")
        self.assertEqual(self.opset(self.write("export", pool)[0]), 22)

    def test_bf16(self):
        """Conv takes bfloat16 from opset 22 on."""
        for verb in ("optimize", "export"):
            model, _, _ = self.write(verb, "bf16-old-opset/conv.onnx", "--dtype", "bf16")
            self.assertEqual(self.opset(model), 22)
            self.assertEqual(weights(model, TensorProto.BFLOAT16), 4 * 3 * 3 * 3 * 2)
        # An opset that is asked for leaves it in f32.
        model, _, _ = self.write("optimize", "bf16-old-opset/conv.onnx", "--dtype", "bf16", "--opset", 17)
        self.assertEqual((self.opset(model), weights(model, TensorProto.BFLOAT16)), (17, 0))

    def test_bf16_operators(self):
        f32 = TensorProto.FLOAT
        made = {"AveragePool": ([1, 2, 4, 4], [1, 2, 3, 3], [], {"kernel_shape": [2, 2]}),
                "InstanceNormalization": ([1, 2, 4, 4], [1, 2, 4, 4], [np.ones(2, np.float32), np.ones(2, np.float32)], {}),
                "LSTM": ([3, 1, 2], [3, 1, 1, 2], [np.ones((1, 8, 2), np.float32), np.ones((1, 8, 2), np.float32)], {"hidden_size": 2})}
        for op, (dims, to, constants, attributes) in made.items():
            names = [f"c{i}" for i in range(len(constants))]
            path = self.save([helper.make_node(op, ["x", *names], ["y"], **attributes)], [("x", f32, dims)], [("y", f32, to)],
                             list(zip(names, constants)))
            self.assertIn(self.opset(self.write("optimize", path, "--dtype", "bf16")[0]), (17, 22), op)

    def test_group_normalization(self):
        """A scale per group becomes one per channel: opset 21 has no other form."""
        source, x = CASES / "group-normalization-18/group.onnx", np.arange(36, dtype=np.float32).reshape(1, 4, 3, 3) ** 1.5
        expected = run(source, x=x)[0]
        for verb, options in (("optimize", []), ("export", []), ("optimize", ["--opset", 21]), ("optimize", ["--free-shapes"])):
            model, path, _ = self.write(verb, source, *options)
            self.assertEqual(self.opset(model), 21)
            np.testing.assert_allclose(run(path, x=x)[0], expected, atol=1e-5)
        done = self.run_pith(source, "-o", self.dir / "o18.onnx", "--opset", 18)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        np.testing.assert_allclose(run(self.dir / "o18.onnx", x=x)[0], expected, atol=1e-5)

    def test_wrap(self):
        """Pad's mode wrap, which PyTorch writes before opset 19 has it."""
        folder = CASES / "pad-wrap-opset18"
        x = np.load(folder / "x.npy")
        self.good(folder / "model.onnx", "-i", f"x={folder / 'x.npy'}", "-o", "out", verb="run")
        np.testing.assert_array_equal(np.load(self.dir / "out/0_y.npy"), np.load(folder / "expected_y.npy"))
        self.good(folder / "torch_circular_conv18.onnx", "-i", f"x={folder / 'x.npy'}", "-o", "conv", verb="run")
        np.testing.assert_allclose(np.load(self.dir / "conv/0_conv1d.npy"), run(folder / "torch_circular_conv18.onnx", x=x)[0], atol=1e-5)
        for name in ("model", "torch_circular_conv18"):
            self.assertEqual(self.opset(self.write("export", folder / f"{name}.onnx")[0]), 19)


class Sizes(Written):
    def test_declared(self):
        """Fixed sizes stay fixed, and those of outputs follow from them."""
        for verb, options in [("export", []), ("optimize", []), ("export", ["--dtype", "f16"]), ("optimize", ["--dtype", "bf16"])] + [
                ("quantize", q) for q in QUANTIZE]:
            model, _, _ = self.write(verb, "export-frees-sizes/fixed.onnx", *options)
            self.assertEqual(sizes(model.graph.input) + sizes(model.graph.output), [[1, 3, 8, 8], [1, 4]], (verb, options))
        model, _, _ = self.write("export", "old-opset-new-attributes/average-dilations-19.onnx")
        self.assertEqual(sizes(model.graph.output), [[1, 3, 7, 7], [2, 8]])

    def test_quantised_weights_stay(self):
        source = CASES / "qdq-matmul-unfolded/qdq.onnx"
        for verb, options in (("optimize", ["--level", 1]), ("optimize", []), ("optimize", ["--standard"]),
                              ("optimize", ["--fuse", "com.microsoft"]), ("export", [])):
            model, path, _ = self.write(verb, source, *options)
            self.assertEqual(sum(len(t.raw_data) for t in model.graph.initializer if list(t.dims) == [128, 128]), 2 * 128 * 128)
            self.assertLess(path.stat().st_size, 1.02 * source.stat().st_size)
            x = np.linspace(-2, 2, 256, dtype=np.float32).reshape(2, 128)
            np.testing.assert_allclose(run(path, x=x)[0], run(source, x=x)[0], atol=0.1)

    def test_half_weights_stay(self):
        """Weights of f16 behind a Cast, and one weight that is also read transposed, are not stored once more."""
        w = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float16)
        nodes = [helper.make_node("Cast", ["w"], ["v"], to=1), helper.make_node("MatMul", ["x", "v"], ["m"]),
                 helper.make_node("Transpose", ["v"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["m", "t"], ["y"])]
        path = self.save(nodes, [("x", 1, ["n", 64])], [("y", 1, ["n", 64])], [("w", w)])
        for verb, options in (("export", []), ("optimize", []), ("optimize", ["--level", 1])):
            self.assertLess(self.write(verb, path, *options)[1].stat().st_size, path.stat().st_size + 300)

    def test_shared_weights(self):
        source = CASES / "quantize-larger/shared.onnx"
        x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)
        y, z = run(source, x=x)
        for options in QUANTIZE:
            model, path, said = self.write("quantize", source, *options)
            self.assertLess(path.stat().st_size, source.stat().st_size / 2)
            self.assertIn("'w'", said)
            self.assertIn("ReduceMax", said)
            got = run(path, x=x)
            np.testing.assert_allclose(got[0], y, atol=0.05 * np.abs(y).max())
            np.testing.assert_allclose(got[1], z, atol=0.05 * np.abs(z).max())

    def test_tied_table(self):
        """A table that a matmul reads too gets few bits for both."""
        table = np.random.default_rng(0).standard_normal((256, 32)).astype(np.float32)
        nodes = [helper.make_node("Gather", ["t", "ids"], ["e"]), helper.make_node("Reshape", ["e", "s"], ["r"]),
                 helper.make_node("Gemm", ["r", "t"], ["y"], transB=1)]
        path = self.save(nodes, [("ids", 7, ["n"])], [("y", 1, ["n", 256])], [("t", table), ("s", np.array([-1, 32]))])
        ids = np.arange(7)
        for options in QUANTIZE:
            _, written, _ = self.write("quantize", path, *options)
            self.assertLess(written.stat().st_size, 0.75 * path.stat().st_size)
            wanted = run(path, ids=ids)[0]
            np.testing.assert_allclose(run(written, ids=ids)[0], wanted, atol=0.15 * np.abs(wanted).max())

    def test_constant_nodes(self):
        """A weight in a Constant node counts as an initializer."""
        for options in QUANTIZE:
            files = [self.write("quantize", f"constant-node-weights/{n}.onnx", *options)[1].read_bytes() for n in ("constant-node", "initializer")]
            self.assertLess(abs(len(files[0]) - len(files[1])), 100)
        for verb in ("export", "optimize"):
            model, _, _ = self.write(verb, "constant-node-weights/constant-node.onnx", "--dtype", "f16")
            self.assertEqual(weights(model, TensorProto.FLOAT16), 129 * 129 * 2)
        folder = CASES / "constant-node-weights"
        self.good(folder / "attention.onnx", "-i", f"x={folder / 'x.npy'}", "-o", "out", verb="run")
        got = np.load(self.dir / "out/0_y.npy")
        np.testing.assert_allclose(got.ravel()[:4], [-0.38140562, -1.6344478, 0.06943584, 0.38871402], atol=1e-5)
        np.testing.assert_allclose(got, run(folder / "attention.onnx", x=np.load(folder / "x.npy"))[0], atol=1e-4)


class Types(Written):
    def test_limits(self):
        """x / max(|x|, 1e-12): a row of zeros stays one."""
        x = np.load(CASES / "f16-normalise-zero/x.npy")
        for verb in ("optimize", "export"):
            for dtype in ("f16", "bf16"):
                _, path, _ = self.write(verb, "f16-normalise-zero/normalise.onnx", "--dtype", dtype)
                self.good(path, "-i", f"x={CASES / 'f16-normalise-zero/x.npy'}", "-o", "out", verb="run")
                got = np.load(self.dir / "out/0_y.npy")
                zero = ~x.any(1)
                self.assertTrue(zero.any())
                self.assertFalse(got[zero].any())
                np.testing.assert_allclose(got, x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12), atol=1e-2)

    def test_limits_in_both_types(self):
        """Divisors that are also read in f32 are stored twice: a Cast would make the small ones 0, and 0 / 0 is no number."""
        d = np.ones(300, np.float32)
        d[7] = 1e-9
        x = np.linspace(-2, 2, 300, dtype=np.float32)[None]
        x[0, 7] = 0
        source = self.save([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Div", ["r", "d"], ["y"]),
                            helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Add", ["e", "d"], ["z"])],
                           [("x", TensorProto.FLOAT, ["n", 300])], [(n, TensorProto.FLOAT, ["n", 300]) for n in "yz"], [("d", d)])
        wanted = run(source, x=x)
        for verb in ("optimize", "export"):
            for dtype in ("f16", "bf16"):
                model, path, _ = self.write(verb, source, "--dtype", dtype)
                if dtype == "f16":
                    self.assertGreater(weights(model, TensorProto.FLOAT16), 0)
                    np.testing.assert_allclose(run(path, x=x), wanted, atol=2e-3 * 8)

    def test_many_outputs(self):
        """All outputs of a node are narrow, however many there are."""
        x, parts = np.linspace(-1, 1, 80, dtype=np.float32).reshape(2, 40), [f"p{i}" for i in range(40)]
        source = self.save([helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("Split", ["s"], parts, axis=1, num_outputs=40),
                            *[helper.make_node("Exp" if i % 2 else "Tanh", [p], [f"y{i}"]) for i, p in enumerate(parts)]],
                           [("x", TensorProto.FLOAT, ["n", 40])], [(f"y{i}", TensorProto.FLOAT, ["n", 1]) for i in range(40)], opset=18)
        for options in (["--dtype", "f16"], ["--dtype", "bf16"]):
            model, path, _ = self.write("optimize", source, *options, "--level", 1)
            casts = [n for n in model.graph.node if n.op_type == "Cast" and n.input[0] in parts]
            self.assertEqual(sorted(n.input[0] for n in casts), sorted(parts[1::2]))
            if "f16" in options:
                np.testing.assert_allclose(run(path, x=x), run(source, x=x), atol=2e-3)

    def test_sequences(self):
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        wanted = run(CASES / "f16-sequence/sequence.onnx", x=x)[0]
        for verb in ("optimize", "export"):
            for dtype in ("f16", "bf16"):
                _, path, _ = self.write(verb, "f16-sequence/sequence.onnx", "--dtype", dtype)
                np.testing.assert_allclose(run(path, x=x)[0], wanted, rtol=1e-2)

    def test_fused(self):
        """With the operators of com.microsoft all weights are f16."""
        model, path, _ = self.write("export", SOURCE / "tests/data/modules/chain", "--pool", "--dtype", "f16", "--int32-inputs",
                                    "--fuse", "com.microsoft")
        ops = [n.op_type for n in model.graph.node]
        for op in ("EmbedLayerNormalization", "BiasGelu", "SkipLayerNormalization"):
            self.assertIn(op, ops)
        types = {t.name: t.data_type for t in model.graph.initializer}
        for node in model.graph.node:
            if not node.name.startswith("/pooling") and node.domain:
                floats = {types[i] for i in node.input if i in types} & {TensorProto.FLOAT, TensorProto.FLOAT16}
                self.assertLessEqual(floats, {TensorProto.FLOAT16}, node.op_type)
        ids = np.ones((2, 3), np.int32)
        self.assertTrue(np.isfinite(run(path, **{i.name: ids for i in model.graph.input})[0]).all())
        for options in (["--gpu"], ["--fuse", "com.microsoft"]):
            model, path, _ = self.write("optimize", SOURCE / "tests/data/hf/bert", "--dtype", "f16", *options)
            self.assertIn("Attention", [n.op_type for n in model.graph.node])
            self.assertLess(weights(model, TensorProto.FLOAT), 0.01 * weights(model, TensorProto.FLOAT16))


class Operators(Written):
    def test_dynamic_quantize_lstm(self):
        source, x = CASES / "dynamic-quantize-lstm-write/lstm.onnx", np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 2, 3)
        for verb, options in (("optimize", []), ("optimize", ["--level", 1]), ("export", []), ("optimize", ["--dtype", "f16"])):
            model, path, _ = self.write(verb, source, *options)
            self.assertIn("DynamicQuantizeLSTM", [n.op_type for n in model.graph.node])
            np.testing.assert_array_equal(run(path, x=x)[0], run(source, x=x)[0])

    def test_both_directions(self):
        r = np.random.default_rng(0)
        c = {"W": r.integers(-127, 127, (2, 3, 16), np.int8), "R": r.integers(-127, 127, (2, 4, 16), np.int8),
             "B": r.standard_normal((2, 32)).astype(np.float32), "ws": np.full(2, 0.01, np.float32), "wz": np.zeros(2, np.int8),
             "rs": np.full(2, 0.02, np.float32), "rz": np.zeros(2, np.int8)}
        node = helper.make_node("DynamicQuantizeLSTM", ["x", "W", "R", "B", "", "h0", "", "", "ws", "wz", "rs", "rz"], ["y", "h", ""],
                                domain="com.microsoft", hidden_size=4, direction="bidirectional")
        path = self.save([node], [("x", 1, ["t", 2, 3]), ("h0", 1, [2, 2, 4])], [("y", 1, ["t", 2, 2, 4]), ("h", 1, [2, 2, 4])],
                         list(c.items()), com_microsoft=1)
        feeds = {"x": r.standard_normal((5, 2, 3)).astype(np.float32), "h0": r.standard_normal((2, 2, 4)).astype(np.float32)}
        _, written, _ = self.write("optimize", path)
        for got, wanted in zip(run(written, **feeds), run(path, **feeds)):
            np.testing.assert_array_equal(got, wanted)
        self.assertLess(written.stat().st_size, path.stat().st_size + 600)

    def test_ties(self):
        """scale_a * scale_b / scale_y in f32, in this order, decides where a tie goes."""
        folder = CASES / "qlinearmatmul-tie"
        self.good(folder / "tie.onnx", "-i", f"a={folder / 'a.npy'}", "-o", "out", verb="run")
        self.assertEqual(np.load(self.dir / "out/0_y.npy").ravel().tolist(), [5, -5, 4])

    def test_many_ties(self):
        """The definition in f32, as onnx's reference computes it, for all codes."""
        a, b = np.arange(-128, 128, dtype=np.int8).reshape(-1, 1), np.arange(-127, 128, 2, dtype=np.int8).reshape(1, -1)
        for scales in ((0.1, 0.1, 0.1), (0.3, 0.7, 1.4), (0.01, 0.05, 0.02), (0.2, 0.5, 12.8)):
            sa, sb, sy = (np.float32(s) for s in scales)
            node = helper.make_node("QLinearMatMul", ["a", "sa", "z", "b", "sb", "z", "sy", "z"], ["y"])
            path = self.save([node], [("a", TensorProto.INT8, ["n", 1])], [("y", TensorProto.INT8, ["n", b.shape[1]])],
                             [("b", b), ("sa", sa), ("sb", sb), ("sy", sy), ("z", np.int8(0))])
            np.save(self.dir / "a.npy", a)
            self.good(path, "-i", "a=a.npy", "-o", "out", verb="run")
            whole = np.float32(np.float32(sa * sb) / sy)
            wanted = np.clip(np.rint((a.astype(np.int32) @ b.astype(np.int32)).astype(np.float32) * whole), -128, 127)
            np.testing.assert_array_equal(np.load(self.dir / "out/0_y.npy"), wanted.astype(np.int8))

    def test_maps(self):
        source, x = CASES / "pb-maps/zipmap.onnx", CASES / "pb-maps/x.npy"
        listed = self.good(source, "-i", f"x={x}", "--pb", "-o", "out", verb="run").decode()
        self.assertEqual(listed, "0 z sequence of 1 map(int64, float32)\n")
        value = SequenceProto.FromString((self.dir / "out/0_z.pb").read_bytes())
        self.assertEqual([{k: float(v) for k, v in m.items()} for m in numpy_helper.to_list(value)], [{0: 0.25, 1: 0.75}])
        self.assertIn(b"sequence of map(int64, float32)", self.good(source, verb="inspect"))
        model, path, _ = self.write("export", source)
        self.assertEqual(run(path, x=np.load(x))[0], [{0: 0.25, 1: 0.75}])

    def test_map_inputs(self):
        """A map of strings is fed from a .pb file."""
        graph = helper.make_graph([helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", string_vocabulary=["b", "a", "c"])],
                                  "g", [], [helper.make_tensor_value_info("y", 1, [1, 3])])
        m = graph.input.add(name="m")
        m.type.map_type.key_type = TensorProto.STRING
        m.type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
        m.type.map_type.value_type.tensor_type.shape.SetInParent()
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8),
                  self.dir / "dict.onnx")
        value = MapProto(name="m", key_type=TensorProto.STRING, string_keys=[b"a", b"b"])
        value.values.CopyFrom(numpy_helper.from_list([np.float32(2), np.float32(3)]))
        (self.dir / "m.pb").write_bytes(value.SerializeToString())
        self.good("dict.onnx", "-i", "m=m.pb", "-o", "out", verb="run")
        self.assertEqual(np.load(self.dir / "out/0_y.npy").tolist(), [[3, 2, 0]])

    def test_unused_names(self):
        """Names that are made do not meet those of outputs that nothing reads."""
        nodes = [helper.make_node("TopK", ["x", "k"], ["v0", "v1"]), helper.make_node("MatMul", ["v0", "w"], [""]),
                 helper.make_node("MatMul", ["v0", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
        nodes = [n for n in nodes if n.output[0]]
        path = self.save(nodes, [("x", 1, [2, 4])], [("y", 1, [2, 4])], [("k", np.array([4])), ("w", np.eye(4, dtype=np.float32))])
        for options in (["--dtype", "f16"], [], ["--gpu"]):
            self.write("optimize", path, *options)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
